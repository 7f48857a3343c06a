/* fuzz_log_chrome.c - any bytes as a trace in Chrome's JSON. */
#include "fuzz/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { return read_log(data, n, qn_import_chrome); }

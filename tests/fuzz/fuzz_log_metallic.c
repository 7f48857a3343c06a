/* fuzz_log_metallic.c - any bytes as a log of Metallic. */
#include "fuzz/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { return read_log(data, n, qn_import_metallic); }

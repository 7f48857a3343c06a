/* fuzz_log_mlc.c - any bytes as tables of MLC. */
#include "fuzz/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { return read_log(data, n, qn_import_mlc); }

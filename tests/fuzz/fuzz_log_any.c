/* fuzz_log_any.c - any bytes as a log of whichever kind it looks like, our own traces first of all. */
#include "fuzz/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { return read_log(data, n, NULL); }

/* fuzz_log_doppler.c - any bytes as a console log of Doppler. */
#include "fuzz/logs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { return read_log(data, n, qn_import_doppler); }

/* safetensors_parse.h - one safetensors file that is in memory; for safetensors.c and its fuzzer. */
#ifndef QN_SAFETENSORS_PARSE_H
#define QN_SAFETENSORS_PARSE_H

#include "format/source.h"

/* Adds the tensors of the file of `bytes` at p to s; they get `file`, path is for messages. Data points into p. */
bool qn_safetensors_parse(qn_source *s, const u8 *p, u64 bytes, int file, const char *path, qn_err *e);

#endif

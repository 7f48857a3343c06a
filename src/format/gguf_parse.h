/* gguf_parse.h - what gguf.c and gguf_split.c share. Others use gguf.h; the fuzzer comes in here, with bytes in memory. */
#ifndef QN_GGUF_PARSE_H
#define QN_GGUF_PARSE_H

#include "format/source.h"

/* Reads the GGUF of `bytes` at p into s, whose path is used in messages. Keys, strings and tensor data point into p. */
bool qn_gguf_parse(qn_source *s, const u8 *p, u64 bytes, qn_err *e);

/* One file, whether or not it is part of a split model. */
qn_source *qn_gguf_open_one(const char *path, qn_err *e);

/* If s is a part of a split model: the whole model, s being closed; else s itself. NULL: failed, s is closed. */
qn_source *qn_gguf_join(qn_source *s, qn_err *e);

#endif

/* requant.h - writes a source as a GGUF file with chosen types; what convert and quantize share. */
#ifndef QN_REQUANT_H
#define QN_REQUANT_H

#include "format/source.h"

/* Keys as s has them (those of ours, "quern.*", left out), tensors in types[n_tensors]. d_head: not 0 if q and k rows have to
 * be put into GGUF's order (hf.h). All lanes of a pool work on pieces of tensors; o gives threads and progress, `what` its word.
 * Weights that are not finite are refused where the type cannot hold them. The file appears whole or not at all. */
bool qn_requant(const char *path, const qn_source *s, const qn_dtype *types, u64 d_head, const char *what, const qn_options *o,
                qn_err *e);

#endif

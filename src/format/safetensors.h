/* safetensors.h - tensors of a Hugging Face folder: model.safetensors, or the shards that model.safetensors.index.json names.
 * Reads names, types, shapes; knows no model. dims come out contiguous first, as in GGUF (the file lists them the other way
 * round). Nothing outside the folder is opened. */
#ifndef QN_SAFETENSORS_H
#define QN_SAFETENSORS_H

#include "format/source.h"

/* Adds every tensor of the folder to s under its Hugging Face name, and the maps. */
bool qn_safetensors_read(qn_source *s, const char *dir, qn_err *e);

#endif

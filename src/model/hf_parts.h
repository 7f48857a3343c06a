/* hf_parts.h - what hf.c, hf_config.c and hf_names.c share. */
#ifndef QN_HF_PARTS_H
#define QN_HF_PARTS_H

#include "format/source.h"

typedef struct qn_hf_rope { bool llama3; double base, factor, low, high, old_ctx; } qn_hf_rope; /* of Llama 3's scaling */

typedef struct qn_hf_config {
    bool gemma;             /* norms hold w - 1, four norms a layer */
    int tied;               /* 1: no output matrix; 0: there must be one; -1: as the file has it */
    u32 n_layer, d_head;
    qn_hf_rope rope;
} qn_hf_config;

/* Reads dir/config.json: keys into s, what the tensors need into c. */
bool qn_hf_config_read(qn_source *s, const char *dir, qn_hf_config *c, qn_err *e);

/* The GGUF name of a tensor. False: it is not part of the text model. */
bool qn_hf_name(const qn_hf_config *c, const char *name, char out[65]);

#endif

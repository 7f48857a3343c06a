/* hf.h - a Hugging Face folder as a source: GGUF keys from config.json, GGUF names for the tensors of its safetensors files.
 * Matrices stay mapped as they are; vectors become F32, and what GGUF stores in another form (Gemma's norms, Llama 3's rope
 * factors) is made in the source's arena. The tokenizer and the chat template are not in the source: their files lie in the
 * folder, which is the source's path.
 *
 * One thing is left as the folder has it: q and k rows of llama models. GGUF interleaves the two halves of each head; copying
 * them at open would cost their size in memory. The key quern.rope.neox says so, and qn_hf_row serves whoever writes a GGUF.
 * Keys of ours that must not be written: all that begin with "quern.". */
#ifndef QN_HF_H
#define QN_HF_H

#include "format/source.h"

qn_source *qn_hf_open(const char *dir, qn_err *e);

/* Whether GGUF wants the rows of this tensor (by its GGUF name) in another order than the folder has them. Only where
 * quern.rope.neox is set. */
bool qn_hf_is_permuted(const char *name);
/* The folder's row that is row `row` in GGUF; heads have d_head rows. */
static inline u64 qn_hf_row(u64 row, u64 d_head)
{
    const u64 in = row % d_head; /* GGUF: pairs (0, d/2), (1, d/2 + 1), ... side by side */
    return row - in + in % 2 * (d_head / 2) + in / 2;
}

#endif

/* gemma3.c - Gemma 3, text: five sliding layers to a global one, norms on both sides of each block, scaled embeddings. */
#include <math.h>

#include "model/model.h"

/* The 27B model, alone with its 62 layers, divides by sqrt(d_model / n_head); no key in the file says so. */
static float scale(const qn_model *m)
{
    return 1 / sqrtf((float)(m->n_layer == 62 ? m->d_model / m->n_head : m->d_head));
}

const qn_arch qn_arch_gemma3 = {
    .name = "gemma3", .rope_neox = true, .qk_norm = true, .post_norm = true, .geglu = true, .scale_embed = true,
    .global_every = 6, .rope_base_local = 10000, .attn_scale = scale,
};

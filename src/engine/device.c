/* device.c - an engine on a GPU: which one, its memory, its weights. The engine's books stay where they are; the device has a
 * twin of the scratch and the pages themselves. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

static void copy_page(void *user, u8 *to, const u8 *from, size_t bytes)
{
    qn_err lost; /* the next pass fails on the same device and says why */
    (void)!qn_cuda_copy(user, to, from, bytes, &lost);
}

const qn_remote qn_device_pages = { .copy = copy_page };

static u64 weight_bytes(const qn_model *m)
{
    u64 sum = 0;
    for (size_t i = 0; i < m->src->n_tensors; i++) {
        const qn_tensor *t = &m->src->tensors[i];
        sum += qn_cuda_weight_bytes(t->n_dims > 1 ? t->type : DT_f32, t->dims[1], t->dims[0]);
    }
    return sum;
}

bool qn_device_reserve(qn_engine *en, qn_err *e)
{
    u8 *kv[2];
    const qn_cuda_need need = {
        .scratch = en->scratch, .scratch_bytes = en->scratch_bytes, .logits = (const u8 *)en->b.logits,
        .rows = (const u8 *)en->b.tokens, .tables = (const u8 *)en->tables[0], .tokens = en->b.tokens, .pos = en->b.pos,
        .first = en->firsts, .narrow = en->b.narrow, .n_vocab = en->m->n_vocab, .n_ctx = en->n_ctx, .n_rows = en->n_batch,
        .n_logits = en->n_logits,
        .weights = weight_bytes(en->m), .kv_bytes = { en->kv[0].bytes, en->kv[1].bytes },
    };
    if (!qn_cuda_reserve(en->cuda, &need, kv, e)) return false;
    for (int g = 0; g < N_GROUPS; g++) en->kv[g].memory = kv[g];
    return true;
}

bool qn_device_load(qn_engine *en, const qn_options *o, qn_err *e)
{
    const qn_cuda_load l = { .plan = &en->plan, .pool = en->pool, .path = en->m->src->path, .progress = o->progress,
                             .user = o->progress_user };
    qn_cuda_info info;
    if (!qn_cuda_load_plan(en->cuda, &l, e)) return false;
    qn_cuda_get_info(en->cuda, &info);
    snprintf(en->device, sizeof en->device, "cuda:%d (%s)", info.ordinal, info.name);
    const int n = qn_cuda_decoded(en->cuda);
    const char *why = qn_cuda_why_not(en->cuda);
    int at = 0;
    if (n) at = snprintf(en->note, sizeof en->note, "the device has no kernel for the types of %d matrices: they became f16", n);
    if (why) snprintf(en->note + at, sizeof en->note - (size_t)at, "%stokens are made kernel by kernel: %s", at ? "; " : "", why);
    return true;
}

bool qn_device_fetch(qn_engine *en, qn_err *e) { return !en->cuda || qn_cuda_fetch(en->cuda, e); }

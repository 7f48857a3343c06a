/* attention.c - which kernel attends for which rows of a pass: tokens of many sequences, one row each, share keys and values
 * between heads and cut long contexts (fused.cu); runs of a prompt go to the tensor cores (flash.cu); caches and heads that these
 * do not know take the plain way (ops.cu). */
#include "kernel/cuda/program.h"

#define RUN 16     /* rows of one sequence, one behind the other, that are worth the tensor cores */
#define HEADS 4    /* of fused.cu: heads of a block */
#define CLUSTER 8  /* blocks that may share a context */

static int rows_of(const qn_cattend *a)
{
    if (a->type != QN_KVT_f16) return -1;
    return a->d_head == 64 ? FN_attend_64 : a->d_head == 128 ? FN_attend_128 : a->d_head == 256 ? FN_attend_256 : -1;
}

static int flash_of(const qn_cattend *a)
{
    if (a->type != QN_KVT_f16) return -1;
    return a->d_head == 64 ? FN_flash_64 : a->d_head == 128 ? FN_flash_128 : -1;
}

/* keys and values of 64 tokens, twice, rows 16 bytes apart */
static unsigned flash_bytes(int d_head) { return 2 * 2 * 64 * ((unsigned)d_head + 8) * 2; }

bool qn_attention_make(qn_cuda *c, qn_err *e)
{
    const qn_driver *d = &c->gpu.d;
    if (!c->gpu.fn[FN_flash_128]) return true; /* a test's driver has no kernels */
    return qn_driver_ok(d, d->function_set(c->gpu.fn[FN_flash_128], CU_FUNC_DYNAMIC_SMEM, (int)flash_bytes(128)),
                        "sizing shared memory", e);
}

const char *qn_attention_name(const qn_cattend *a, int bucket)
{
    if (bucket == BUCKET_many && flash_of(a) >= 0) return "rows_flash"; /* by which rows a pass has: single ones, or runs */
    return rows_of(a) >= 0 ? "rows" : "plain";
}

bool qn_attention_can_half(const qn_cattend *a) { return rows_of(a) >= 0; }

int qn_attention_singles(const qn_cuda *c, int n)
{
    const i32 *pos = c->need.pos, *first = c->need.first;
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && first[j] == first[i] && pos[j] == pos[i] + j - i;) j++;
        if (j - i >= RUN) return i;
    }
    return n;
}

/* Rows t.. of the pass. */
static qn_cattend part_of(const qn_cattend *a, int t, int n)
{
    qn_cattend p = *a;
    const u64 values = (u64)t * (u64)a->n_head * (u64)a->d_head;
    p.y += values * (a->half ? 2 : 4);
    p.q += values * 4;
    p.at.pos += 4 * (u64)t;
    p.at.first += 4 * (u64)t;
    p.n = n;
    return p;
}

static bool attend_rows(qn_cuda *c, const qn_cattend *a, qn_err *e)
{
    const int fn = rows_of(a), chunks = (a->n_head / a->n_kv + HEADS - 1) / HEADS, blocks = a->n * a->n_kv * chunks;
    if (fn < 0) {
        const unsigned smem = 8 * ((unsigned)a->d_head + 2) * 4;
        return qn_gpu_launch(&c->gpu, FN_attend, (qn_grid){ (unsigned)a->n, (unsigned)a->n_head, 256, smem }, a, e);
    }
    const int split = c->gpu.major < 9 ? 1 : qn_maxi(1, qn_mini(CLUSTER,
                                                                4 * c->gpu.n_sm / blocks)); /* four blocks fit side by side */
    const qn_grid g = { (unsigned)(split * a->n), (unsigned)(a->n_kv * chunks), 128, 0 };
    return qn_gpu_launch_early(&c->gpu, fn, g, split, a, e);
}

bool qn_attention_launch(qn_cuda *c, const qn_cattend *a, int n, qn_err *e)
{
    const int flash = flash_of(a), singles = flash < 0 ? n : qn_mini(c->n_single, n);
    const qn_cattend rows = part_of(a, 0, singles), runs = part_of(a, singles, n - singles);
    if (singles && !attend_rows(c, &rows, e)) return false;
    if (singles == n) return true;
    const qn_grid g = { ((unsigned)runs.n + 63) / 64, (unsigned)a->n_head, 128, flash_bytes(a->d_head) };
    return qn_gpu_launch_early(&c->gpu, flash, g, 1, &runs, e);
}

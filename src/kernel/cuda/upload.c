/* upload.c - brings what the plan's steps point to onto the device: matrices in device order, packed by all lanes into pinned
 * memory while the piece before is still on its way; floats as they are; angles made there. One block of device memory holds
 * all of it. */
#include <string.h>

#include "base/file.h"
#include "kernel/cuda/program.h"
#include "kernel/cuda/weights.h"

#define PIECE ((size_t)32 << 20)

const qn_placed *qn_placed_find(const qn_cuda *c, const void *host)
{
    for (int i = 0; i < c->n_placed; i++)
        if (c->placed[i].host == host) return &c->placed[i];
    return NULL;
}

/* ---- what there is to place */

typedef struct operand { const void *host; qn_dtype type; int rows, cols; } operand; /* rows 0: floats */

static int operands_of(const qn_step *s, operand out[3])
{
    const qn_args *a = &s->args;
    switch (s->op) {
    case OP_embed: out[0] = (operand){ a->embed.table, a->embed.type, -1, a->embed.d }; return 1;
    case OP_rmsnorm: out[0] = (operand){ a->rmsnorm.w, DT_f32, 0, a->rmsnorm.d }; return 1;
    case OP_headnorm: out[0] = (operand){ a->headnorm.w, DT_f32, 0, a->headnorm.d }; return 1;
    case OP_rope: out[0] = (operand){ a->rope.freq, DT_f32, 0, a->rope.d_rot / 2 }; return 1;
    case OP_linear:
        out[0] = (operand){ a->linear.w, a->linear.type, a->linear.rows, a->linear.cols };
        out[1] = (operand){ a->linear.bias, DT_f32, 0, a->linear.rows };
        return a->linear.bias ? 2 : 1;
    default: return 0;
    }
}

static u64 align256(u64 n) { return (n + 255) & ~(u64)255; }

static bool note(qn_cuda *c, const operand *o, int n_vocab, u64 *bytes)
{
    const int rows = o->rows < 0 ? n_vocab : o->rows; /* the embedding's rows are the vocabulary */
    if (qn_placed_find(c, o->host)) return true;
    qn_placed *p = &c->placed[c->n_placed++];
    *p = (qn_placed){ .host = o->host, .type = o->type, .w = { .cols = (u32)o->cols } };
    if (rows) p->w = qn_wmat_of(o->type, rows, o->cols);
    if (rows && !qn_wmat_native(o->type)) c->n_decoded++;
    p->w.at = *bytes; /* from the start of the block, until there is one */
    *bytes += align256(rows ? qn_wmat_bytes(&p->w) : 4 * (u64)o->cols);
    return true;
}

static u64 list_all(qn_cuda *c)
{
    u64 bytes = 0;
    operand o[3];
    for (int i = 0; i < c->plan->n; i++)
        for (int k = 0, n = operands_of(&c->plan->steps[i], o); k < n; k++) note(c, &o[k], c->need.n_vocab, &bytes);
    return bytes;
}

/* ---- packing and copying */

typedef struct packing { const qn_placed *p; const u8 *rows; u8 *out; int n; } packing;

static void pack_share(const void *args, qn_lane lane)
{
    const packing *k = args;
    const size_t bytes = qn_dtype_bytes(k->p->type, k->p->w.cols);
    for (int r = lane_begin(k->n, lane), end = lane_end(k->n, lane); r < end; r++)
        qn_wmat_pack_row(&k->p->w, k->p->type, k->rows + (size_t)r * bytes, k->out + (size_t)r * k->p->w.row_bytes);
}

typedef struct lift {
    qn_cuda *c;
    const qn_cuda_load *l;
    u8 *pinned[2];
    void *sent[2];          /* events: this buffer's bytes have left */
    int turn;
    u64 done, all;
} lift;

static bool open_lift(lift *f, qn_err *e)
{
    const qn_driver *d = &f->c->gpu.d;
    for (int i = 0; i < 2; i++) {
        void *p = NULL;
        if (!qn_driver_ok(d, d->host_alloc(&p, PIECE, 0), "taking pinned memory", e)) return false;
        f->pinned[i] = p;
        if (!qn_driver_ok(d, d->event_create(&f->sent[i], CU_EVENT_NO_TIMING), "making an event", e)) return false;
    }
    return true;
}

static void close_lift(lift *f)
{
    const qn_driver *d = &f->c->gpu.d;
    d->stream_wait(f->c->gpu.stream);
    for (int i = 0; i < 2; i++) {
        if (f->sent[i]) d->event_destroy(f->sent[i]);
        if (f->pinned[i]) d->host_free(f->pinned[i]);
    }
}

static bool send(lift *f, u64 to, size_t bytes, qn_err *e)
{
    const qn_driver *d = &f->c->gpu.d;
    const int t = f->turn;
    f->turn ^= 1;
    f->done += bytes;
    if (!qn_driver_ok(d, d->copy_up(to, f->pinned[t], bytes, f->c->gpu.stream), "copying weights", e) ||
        !qn_driver_ok(d, d->event_record(f->sent[t], f->c->gpu.stream), "recording an event", e)) return false;
    if (!f->l->progress || f->l->progress(f->l->user, "loading", (double)f->done / (double)f->all)) return true;
    return qn_fail(e, QN_ECANCELLED, "loading was stopped");
}

static bool send_matrix(lift *f, const qn_placed *p, qn_err *e)
{
    const qn_driver *d = &f->c->gpu.d;
    const int most = (int)(PIECE / p->w.row_bytes);
    const size_t stored = qn_dtype_bytes(p->type, p->w.cols);
    if (most == 0)
        return qn_fail(e, QN_EUNSUPPORTED, "%s: a row of %u bytes is too long for the device", f->l->path, p->w.row_bytes);
    for (int r = 0; r < (int)p->w.rows; r += most) {
        const int n = qn_mini(most, (int)p->w.rows - r);
        if (!qn_driver_ok(d, d->event_wait(f->sent[f->turn]), "copying weights", e)) return false;
        const packing k = { p, (const u8 *)p->host + (size_t)r * stored, f->pinned[f->turn], n };
        qn_pool_run(f->l->pool, pack_share, &k);
        if (!qn_bytes_whole(p->host, f->l->path, e)) return false;
        if (!send(f, p->w.at + (u64)r * p->w.row_bytes, (size_t)n * p->w.row_bytes, e)) return false;
    }
    qn_map_drop(p->host, (size_t)p->w.rows * stored);
    return true;
}

static bool send_floats(lift *f, const qn_placed *p, qn_err *e)
{
    const qn_driver *d = &f->c->gpu.d;
    const size_t bytes = 4 * (size_t)p->w.cols;
    if (!qn_driver_ok(d, d->event_wait(f->sent[f->turn]), "copying weights", e)) return false;
    memcpy(f->pinned[f->turn], p->host, bytes); /* at most a vocabulary of floats: far below a piece */
    return send(f, p->w.at, bytes, e);
}

bool qn_upload(qn_cuda *c, const qn_cuda_load *l, qn_err *e)
{
    u64 base = 0;
    c->placed = qn_new_array(3 * (size_t)c->plan->n, sizeof *c->placed, e);
    if (!c->placed) return false;
    const u64 bytes = list_all(c);
    u64 slack = 0; /* rows are read in pairs: behind the last there must be something */
    for (int i = 0; i < c->n_placed; i++) slack = c->placed[i].w.row_bytes > slack ? c->placed[i].w.row_bytes : slack;
    if (!qn_gpu_take(&c->gpu, "the weights", bytes + slack, &base, e)) return false;
    lift f = { .c = c, .l = l, .all = bytes };
    bool good = open_lift(&f, e);
    for (int i = 0; good && i < c->n_placed; i++) {
        c->placed[i].w.at += base;
        good = c->placed[i].w.rows ? send_matrix(&f, &c->placed[i], e) : send_floats(&f, &c->placed[i], e);
    }
    good = good && qn_gpu_wait(&c->gpu, e);
    close_lift(&f);
    return good;
}

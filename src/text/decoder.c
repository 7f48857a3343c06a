/* decoder.c - ids to text, one at a time. A decoder step takes a piece of text and hands pieces on to the next step; the last
 * one appends to the output. What a later token could still change is kept inside a step until it cannot. qn_detokenize is
 * this run over all ids, so the two agree by construction. */
#include <string.h>

#include "text/pipeline.h"

typedef struct qn_stage {
    const qn_step *step;
    qn_buf held;               /* bytes that wait for what comes */
    qn_buf made;               /* what the step makes of the piece at hand */
    size_t n_in;               /* pieces seen */
    size_t cut;                /* strip behind a fuse: characters taken off the beginning so far */
    bool fused;                /* all pieces count as one: a fuse stands before this step */
    bool done_cutting;
} qn_stage;

struct qn_decoder {
    const qn_tokenizer *t;
    bool special;
    qn_matcher matcher;
    qn_stage *stages;
    size_t n;
    qn_err *e;                 /* of the call that runs */
    bool ok;
};

qn_decoder *qn_decoder_open(const qn_tokenizer *t, bool special, qn_err *e)
{
    qn_decoder *d = qn_new(sizeof *d, e);
    if (!d) return NULL;
    d->t = t;
    d->special = special;
    d->n = t->n_steps;
    d->stages = qn_new_array(d->n + 1, sizeof *d->stages, e);
    if (!d->stages || !qn_matcher_open(&d->matcher, e)) {
        qn_decoder_close(d);
        return NULL;
    }
    bool fused = false;
    for (size_t i = 0; i < d->n; i++) {
        d->stages[i].step = &t->steps[i];
        d->stages[i].fused = fused;
        fused = fused || t->steps[i].kind == STEP_fuse || t->steps[i].kind == STEP_bytes;
    }
    return d;
}

void qn_decoder_close(qn_decoder *d)
{
    if (!d) return;
    for (size_t i = 0; d->stages && i < d->n; i++) {
        qn_buf_close(&d->stages[i].held);
        qn_buf_close(&d->stages[i].made);
    }
    qn_free(d->stages);
    qn_matcher_close(&d->matcher);
    qn_free(d);
}

static void pass(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out);

static void drop(qn_buf *b, size_t n)
{
    if (n == 0) return;
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = 0;
}

/* Bytes of byte-level tokens: whole characters go on, the beginning of one waits. */
static void step_bytes(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    if (!qn_bytes_unspell(&g->held, s, n)) qn_buf_put(&g->held, s, n);
    const size_t whole = qn_utf8_whole(g->held.p, g->held.n);
    g->made.n = 0;
    qn_utf8_lossy(&g->made, g->held.p, whole);
    drop(&g->held, whole);
    if (g->made.n > 0) pass(d, k + 1, g->made.p, g->made.n, out);
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a token like <0x0A> stands for; -1: none. */
static int byte_of(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>') return -1;
    const int high = digit_of(s[3]), low = digit_of(s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A run of byte tokens is text if all of it is valid, else one U+FFFD per byte; so it waits until it is over. */
static void end_run(qn_decoder *d, size_t k, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    if (g->held.n == 0) return;
    g->made.n = 0;
    if (qn_utf8_valid(g->held.p, g->held.n)) qn_buf_put(&g->made, g->held.p, g->held.n);
    else for (size_t i = 0; i < g->held.n; i++) qn_buf_puts(&g->made, "\xEF\xBF\xBD");
    g->held.n = 0;
    pass(d, k + 1, g->made.p, g->made.n, out);
}

static void step_fallback(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    const int byte = byte_of(s, n);
    if (byte >= 0) {
        qn_buf_putc(&d->stages[k].held, (char)(u8)byte);
        return;
    }
    end_run(d, k, out);
    pass(d, k + 1, s, n, out);
}

static void replace_piece(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    const qn_step *x = g->step;
    g->made.n = 0;
    d->ok = d->ok && qn_replace(&g->made, s, n, x->regex, x->literal, x->content, &d->matcher, d->e);
    pass(d, k + 1, g->made.p, g->made.n, out);
}

static void step_replace(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    if (d->stages[k].fused) qn_buf_put(&d->stages[k].held, s, n); /* the pattern may lie across what comes: all of it waits */
    else replace_piece(d, k, s, n, out);
}

static bool begins(const char *s, size_t n, qn_str c) { return c.n > 0 && n >= c.n && memcmp(s, c.p, c.n) == 0; }
static bool ends(const char *s, size_t n, qn_str c) { return c.n > 0 && n >= c.n && memcmp(s + n - c.n, c.p, c.n) == 0; }

/* One piece alone: up to start characters off its beginning, up to stop off its end. */
static void strip_piece(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    const qn_step *x = d->stages[k].step;
    for (size_t i = 0; i < x->start && begins(s, n, x->literal); i++) {
        s += x->literal.n;
        n -= x->literal.n;
    }
    for (size_t i = 0; i < x->stop && ends(s, n, x->literal); i++) n -= x->literal.n;
    pass(d, k + 1, s, n, out);
}

static void step_strip(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    const qn_step *x = g->step;
    if (!g->fused) {
        strip_piece(d, k, s, n, out);
        return;
    }
    if (x->stop > 0) {
        qn_buf_put(&g->held, s, n);
        return;
    }
    while (!g->done_cutting && n > 0) {
        if (g->cut >= x->start || !begins(s, n, x->literal)) {
            g->done_cutting = true;
            break;
        }
        s += x->literal.n;
        n -= x->literal.n;
        g->cut++;
    }
    if (n > 0) pass(d, k + 1, s, n, out);
}

static void step_metaspace(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    const qn_str space = { " ", g->step->drop_first && g->n_in == 1 ? 0 : 1 };
    g->made.n = 0;
    qn_replace(&g->made, s, n, NULL, g->step->literal, space, &d->matcher, d->e);
    pass(d, k + 1, g->made.p, g->made.n, out);
}

/* A word's suffix becomes a space, and nothing in the last piece: a piece that has one waits. */
static void end_word(qn_decoder *d, size_t k, bool last, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    if (g->held.n == 0) return;
    g->made.n = 0;
    qn_replace(&g->made, g->held.p, g->held.n, NULL, g->step->literal, (qn_str){ " ", last ? 0 : 1 }, &d->matcher, d->e);
    g->held.n = 0;
    pass(d, k + 1, g->made.p, g->made.n, out);
}

static void step_suffix(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    end_word(d, k, false, out);
    if (g->step->literal.n && memmem(s, n, g->step->literal.p, g->step->literal.n)) qn_buf_put(&g->held, s, n);
    else pass(d, k + 1, s, n, out);
}

/* Hands a piece to step k; behind the last one is the output. Steps are at most as many as the file lists, 64. */
static void pass(qn_decoder *d, size_t k, const char *s, size_t n, qn_buf *out)
{
    if (!d->ok) return;
    if (k == d->n) {
        qn_buf_put(out, s, n);
        return;
    }
    d->stages[k].n_in++;
    switch (d->stages[k].step->kind) {
    case STEP_bytes: step_bytes(d, k, s, n, out); return;
    case STEP_fallback: step_fallback(d, k, s, n, out); return;
    case STEP_fuse: pass(d, k + 1, s, n, out); return;
    case STEP_replace: step_replace(d, k, s, n, out); return;
    case STEP_strip: step_strip(d, k, s, n, out); return;
    case STEP_metaspace: step_metaspace(d, k, s, n, out); return;
    case STEP_suffix: step_suffix(d, k, s, n, out); return;
    case STEP_spaced:
        if (d->stages[k].n_in > 1) pass(d, k + 1, " ", 1, out);
        pass(d, k + 1, s, n, out);
        return;
    }
}

static void end(qn_decoder *d, size_t k, qn_buf *out)
{
    qn_stage *g = &d->stages[k];
    switch (g->step->kind) {
    case STEP_bytes:
        g->made.n = 0;
        qn_utf8_lossy(&g->made, g->held.p, g->held.n);
        if (g->made.n) pass(d, k + 1, g->made.p, g->made.n, out);
        break;
    case STEP_fallback: end_run(d, k, out); break;
    case STEP_suffix: end_word(d, k, true, out); break;
    case STEP_replace:
        if (g->fused) replace_piece(d, k, g->held.p, g->held.n, out);
        break;
    case STEP_strip:
        if (g->fused && g->step->stop > 0) strip_piece(d, k, g->held.p, g->held.n, out);
        break;
    default: break;
    }
}

static bool finish(qn_decoder *d, qn_buf *out, qn_err *e)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->stages[i].held.failed || d->stages[i].made.failed) d->ok = qn_fail(e, QN_ENOMEM, "out of memory: decoded text");
    }
    if (d->ok && out->failed) return qn_fail(e, QN_ENOMEM, "out of memory: %zu bytes of decoded text", out->n);
    return d->ok;
}

bool qn_decoder_push(qn_decoder *d, i32 id, qn_buf *out, qn_err *e)
{
    const qn_tokenizer *t = d->t;
    if (id < 0 || (size_t)id >= t->n || !(t->flags[id] & TOKEN_there)) return true;
    if (!d->special && (t->flags[id] & TOKEN_special)) return true;
    d->e = e;
    d->ok = true;
    pass(d, 0, t->texts[id].p, t->texts[id].n, out);
    return finish(d, out, e);
}

bool qn_decoder_flush(qn_decoder *d, qn_buf *out, qn_err *e)
{
    d->e = e;
    d->ok = true;
    for (size_t i = 0; i < d->n; i++) end(d, i, out);
    for (size_t i = 0; i < d->n; i++) {
        qn_stage *g = &d->stages[i];
        g->held.n = g->n_in = g->cut = 0;
        g->done_cutting = false;
    }
    return finish(d, out, e);
}

bool qn_detokenize(const qn_tokenizer *t, const int32_t *ids, size_t n_ids, bool special, char **text, size_t *n, qn_err *e)
{
    qn_buf out = { 0 };
    qn_decoder *d = qn_decoder_open(t, special, e);
    bool ok = d != NULL;
    for (size_t i = 0; i < n_ids && ok; i++) ok = qn_decoder_push(d, ids[i], &out, e);
    ok = ok && qn_decoder_flush(d, &out, e);
    qn_decoder_close(d);
    qn_buf_put(&out, "", 0); /* an empty text is a string too */
    if (ok) return qn_buf_take(&out, text, n, e);
    qn_buf_close(&out);
    return false;
}

/* bpe.c - byte-pair encoding. Symbols are merged best pair first, leftmost among equals, with a heap over a linked list.
 *
 * One idea keeps a word of a million letters linear and inside the cache. A list of tokens is the encoding of its text exactly
 * when every two neighbours are the encoding of theirs: until some merge crosses a border, each stretch between borders goes
 * its own way, so the first merge to cross one would cross it in the encoding of the two neighbours alone. Therefore a long
 * word is encoded in windows that overlap, each beginning where a token of the one before begins; where both windows have the
 * same token in the same place, the first one's tokens up to it and the second one's behind it are the encoding of both. */
#include <string.h>

#include "text/pipeline.h"

#define WINDOW 2048u          /* symbols merged at once: 190 KiB of lists, an eighth of them twice */
#define NONE 0xFFFFFFFFu

struct qn_symbol { i32 id; u32 at, n; u32 prev, next; }; /* at: byte in the word; n: bytes, 0 once merged away */
struct qn_pair { u32 rank, left, n; i32 id; };           /* n: bytes of both; another n means that the pair has changed */

void qn_bpe_init(qn_bpe *b, const qn_table *ids)
{
    b->ids = ids;
    for (u32 cp = 0; cp < QN_COUNT(b->chars); cp++) {
        char utf8[4];
        b->chars[cp] = (i32)qn_table_get(ids, utf8, (size_t)qn_utf8_put(cp, utf8));
    }
    static const char hex[] = "0123456789ABCDEF";
    for (int i = 0; i < 256; i++) {
        const char name[] = { '<', '0', 'x', hex[i >> 4], hex[i & 15], '>' };
        b->byte_ids[i] = (i32)qn_table_get(ids, name, sizeof name);
    }
}

/* ---- the table of merges */

static size_t slot_of(const qn_bpe *b, u32 left, u32 right)
{
    u64 h = ((u64)left << 32 | right) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    size_t i = (size_t)(h * 0xD6E8FEB86659FD93u >> 20) & (b->cap - 1);
    while (b->merges[i].id >= 0 && (b->merges[i].left != left || b->merges[i].right != right)) i = (i + 1) & (b->cap - 1);
    return i;
}

bool qn_bpe_reserve(qn_bpe *b, size_t n_merges, qn_err *e)
{
    size_t cap = 16, bytes;
    while (cap / 2 < n_merges) cap *= 2;
    if (!qn_mul(cap, sizeof *b->merges, &bytes)) return qn_fail(e, QN_ENOMEM, "out of memory: %zu merges", n_merges);
    b->merges = qn_alloc(bytes, e);
    if (!b->merges) return false;
    memset(b->merges, 0xFF, bytes);
    b->cap = cap;
    return true;
}

bool qn_bpe_add(qn_bpe *b, u32 left, u32 right, u32 rank, i32 id, qn_err *e)
{
    if (b->n_merges >= b->cap / 2) return qn_fail(e, QN_EFORMAT, "more merges than announced: %zu", b->n_merges);
    qn_merge *m = &b->merges[slot_of(b, left, right)];
    if (m->id >= 0) return true;
    *m = (qn_merge){ .left = left, .right = right, .rank = rank, .id = id };
    b->n_merges++;
    return true;
}

const qn_merge *qn_bpe_find(const qn_bpe *b, u32 left, u32 right)
{
    if (b->n_merges == 0) return NULL;
    const qn_merge *m = &b->merges[slot_of(b, left, right)];
    return m->id >= 0 ? m : NULL;
}

void qn_bpe_close(qn_bpe *b) { qn_free(b->merges); }

void qn_bpe_work_close(qn_bpe_work *w)
{
    qn_free(w->symbols);
    qn_free(w->heap);
    qn_free(w->a);
    qn_free(w->b);
    qn_buf_close(&w->spelled);
}

static bool grow(void **p, size_t *cap, size_t n, size_t size, qn_err *e)
{
    if (n <= *cap) return true;
    size_t more = *cap * 2 > n ? *cap * 2 : n, bytes;
    if (!qn_mul(more, size, &bytes)) return qn_fail(e, QN_ENOMEM, "out of memory: %zu symbols", n);
    void *q = qn_resize(*p, bytes, e);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

/* ---- symbols: the characters of a word */

static i32 find_char(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, u32 cp, bool first, bool last)
{
    const bool dressed = (!first && b->prefix.n) || (last && b->suffix.n);
    if (!dressed) return cp < QN_COUNT(b->chars) ? b->chars[cp] : (i32)qn_table_get(b->ids, s, n);
    w->spelled.n = 0;
    if (!first) qn_buf_put(&w->spelled, b->prefix.p, b->prefix.n);
    qn_buf_put(&w->spelled, s, n);
    if (last) qn_buf_put(&w->spelled, b->suffix.p, b->suffix.n);
    return w->spelled.failed ? -1 : (i32)qn_table_get(b->ids, w->spelled.p, w->spelled.n);
}

static bool has_bytes(const qn_bpe *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (b->byte_ids[(u8)s[i]] < 0) return false;
    }
    return b->byte_fallback;
}

/* Fills w->symbols with `most` symbols, or a few more, of s[0..n) from byte `begin` on. *end: where they end. */
static size_t make_symbols(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, size_t begin, size_t most, size_t *end)
{
    size_t k = 0, i = begin;
    bool after_unk = false;
    while (i < n && (k < most || (after_unk && b->fuse_unk))) { /* a run of unknown characters is never cut */
        u32 cp;
        const size_t len = qn_char_next(s + i, n - i, &cp);
        const i32 id = find_char(b, w, s + i, len, cp, i == 0, i + len == n);
        const bool spell = id < 0 && !b->scores && has_bytes(b, s + i, len);
        const bool unk = id < 0 && !b->scores && !spell;
        if (k >= most && !unk) break;
        if (spell) {
            for (size_t j = 0; j < len; j++) {
                w->symbols[k++] = (struct qn_symbol){ .id = b->byte_ids[(u8)s[i + j]], .at = (u32)(i + j), .n = 1 };
            }
        } else if (!unk) {
            w->symbols[k++] = (struct qn_symbol){ .id = id, .at = (u32)i, .n = (u32)len };
        } else if (after_unk && b->fuse_unk) {
            w->symbols[k - 1].n += (u32)len;
        } else if (b->unk >= 0) {
            w->symbols[k++] = (struct qn_symbol){ .id = b->unk, .at = (u32)i, .n = (u32)len };
        }
        after_unk = unk && b->unk >= 0;
        i += len;
    }
    *end = i;
    return k;
}

/* ---- merging */

static bool before(const struct qn_pair *x, const struct qn_pair *y)
{
    return x->rank != y->rank ? x->rank < y->rank : x->left < y->left;
}

static void heap_push(struct qn_pair *h, size_t *n, struct qn_pair x)
{
    size_t i = (*n)++;
    for (; i > 0 && before(&x, &h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = x;
}

static struct qn_pair heap_pop(struct qn_pair *h, size_t *n)
{
    const struct qn_pair top = h[0], x = h[--*n];
    size_t i = 0;
    for (size_t child = 1; child < *n; child = 2 * i + 1) {
        if (child + 1 < *n && before(&h[child + 1], &h[child])) child++;
        if (!before(&h[child], &x)) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = x;
    return top;
}

/* A score as a rank: the higher the score, the lower the number. */
static u32 rank_of(float score)
{
    u32 bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    const u32 up = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ~up;
}

static bool look_up(const qn_bpe *b, const char *s, const struct qn_symbol *x, const struct qn_symbol *y, struct qn_pair *out)
{
    if (!b->scores) {
        const qn_merge *m = x->id < 0 || y->id < 0 ? NULL : qn_bpe_find(b, (u32)x->id, (u32)y->id);
        if (m) *out = (struct qn_pair){ .rank = m->rank, .id = m->id, .n = x->n + y->n };
        return m != NULL;
    }
    const i32 id = (i32)qn_table_get(b->ids, s + x->at, (size_t)x->n + y->n);
    if (id >= 0) *out = (struct qn_pair){ .rank = rank_of(b->scores[id]), .id = id, .n = x->n + y->n };
    return id >= 0;
}

static void push_pair(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t *n_heap, u32 left)
{
    const struct qn_symbol *x = &w->symbols[left];
    struct qn_pair p = { 0 };
    if (x->next == NONE || !look_up(b, s, x, &w->symbols[x->next], &p)) return;
    p.left = left;
    heap_push(w->heap, n_heap, p);
}

/* Merges up to `size` symbols of s[0..n) from byte `begin` on; the tokens go to out. Returns how many, and where they end. */
static size_t merge(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, size_t begin, size_t size, struct qn_cut *out,
                    size_t *end)
{
    struct qn_symbol *v = w->symbols;
    const size_t count = make_symbols(b, w, s, n, begin, size, end);
    size_t n_heap = 0, k = 0;
    for (size_t i = 0; i < count; i++) {
        v[i].prev = i > 0 ? (u32)i - 1 : NONE;
        v[i].next = i + 1 < count ? (u32)i + 1 : NONE;
    }
    for (size_t i = 0; i < count; i++) push_pair(b, w, s, &n_heap, (u32)i);
    while (n_heap > 0) {
        const struct qn_pair top = heap_pop(w->heap, &n_heap);
        struct qn_symbol *x = &v[top.left];
        if (x->n == 0 || x->next == NONE || x->n + v[x->next].n != top.n) continue;
        struct qn_symbol *y = &v[x->next];
        x->id = top.id;
        x->n = top.n;
        x->next = y->next;
        y->n = 0;
        if (x->next != NONE) v[x->next].prev = top.left;
        if (x->prev != NONE) push_pair(b, w, s, &n_heap, x->prev);
        push_pair(b, w, s, &n_heap, top.left);
    }
    for (u32 i = 0; i != NONE && count > 0; i = v[i].next) {
        out[k++] = (struct qn_cut){ .at = v[i].at, .n = v[i].n, .id = v[i].id };
    }
    return k;
}

/* ---- tokens out */

static bool put(const qn_bpe *b, const char *s, const struct qn_cut *c, qn_ids *out, qn_err *e)
{
    if (c->id >= 0) return qn_ids_push(out, c->id, e);
    /* SentencePiece only: one character that is no token */
    if (!has_bytes(b, s + c->at, c->n)) return b->unk < 0 || qn_ids_push(out, b->unk, e);
    for (size_t i = 0; i < c->n; i++) {
        if (!qn_ids_push(out, b->byte_ids[(u8)s[c->at + i]], e)) return false;
    }
    return true;
}

static bool put_all(const qn_bpe *b, const char *s, const struct qn_cut *v, size_t n, qn_ids *out, qn_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!put(b, s, &v[i], out, e)) return false;
    }
    return true;
}

/* Room for a window of n symbols. */
static bool open_window(qn_bpe_work *w, size_t n, qn_err *e)
{
    /* the last character may be up to four bytes; n - 1 pairs at first, every merge removes one symbol and adds at most two */
    n += 4;
    return grow((void **)&w->symbols, &w->cap, n, sizeof *w->symbols, e) &&
           grow((void **)&w->heap, &w->cap_heap, 3 * n, sizeof *w->heap, e) &&
           grow((void **)&w->a, &w->cap_a, n, sizeof *w->a, e) && grow((void **)&w->b, &w->cap_b, n, sizeof *w->b, e);
}

/* The first token that both lists have: its place in a and in b. */
static bool meet(const struct qn_cut *a, size_t n_a, const struct qn_cut *b, size_t n_b, size_t *i, size_t *j)
{
    for (*i = *j = 0; *i < n_a && *j < n_b;) {
        if (a[*i].at < b[*j].at) ++*i;
        else if (a[*i].at > b[*j].at) ++*j;
        else if (a[*i].n == b[*j].n) return true;
        else ++*i, ++*j;
    }
    return false;
}

static void swap_lists(qn_bpe_work *w)
{
    struct qn_cut *const a = w->a;
    const size_t cap = w->cap_a;
    w->a = w->b;
    w->cap_a = w->cap_b;
    w->b = a;
    w->cap_b = cap;
}

static bool encode_word(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, qn_ids *out, qn_err *e)
{
    size_t size = qn_minz(n, WINDOW), begin = 0, end; /* w->a is the encoding of bytes [begin, end) */
    if (!open_window(w, size, e)) return false;
    size_t n_a = merge(b, w, s, n, begin, size, w->a, &end);
    while (end < n) {
        size_t k = 0, i, j, end_b = 0;
        while (k + 1 < n_a && w->a[k].at - begin < (end - begin) / 8 * 7) k++; /* the border where the next one begins */
        const size_t next = k > 0 ? w->a[k].at : 0;
        const size_t n_b = k > 0 ? merge(b, w, s, n, next, size, w->b, &end_b) : 0;
        if (end_b > end && meet(w->a + k, n_a - k, w->b, n_b, &i, &j)) {
            if (!put_all(b, s, w->a, k + i, out, e)) return false;
            begin = w->b[j].at;
            end = end_b;
            n_a = n_b - j;
            memmove(w->b, w->b + j, n_a * sizeof *w->b);
            swap_lists(w);
        } else { /* tokens as long as the overlap: a wider window */
            size = size * 2;
            if (!open_window(w, size, e)) return false;
            n_a = merge(b, w, s, n, begin, size, w->a, &end);
        }
    }
    return put_all(b, s, w->a, n_a, out, e);
}

bool qn_bpe_encode(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, qn_ids *out, qn_err *e)
{
    if (n == 0) return true;
    if (n > UINT32_MAX / 4) return qn_fail(e, QN_EUSAGE, "a word of %zu bytes is too long to tokenize", n);
    if (b->ignore_merges) {
        const i32 whole = (i32)qn_table_get(b->ids, s, n);
        if (whole >= 0) return qn_ids_push(out, whole, e);
    }
    return encode_word(b, w, s, n, out, e);
}

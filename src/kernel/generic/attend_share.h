/* attend_share.h - how a pass of attention is cut up. Queries (a row and a head) that look at the same KV head of the same
 * sequence form groups of at most QUERIES; positions are cut into chunks of QN_CHUNK tokens whose sums are made apart and joined
 * oldest first, always: so lanes may share one long sequence by chunks, or a prompt by groups, and the bits are the same.
 * The arithmetic is what the file that includes this brings: a struct group and the functions declared here. */
#ifndef QN_ATTEND_SHARE_H
#define QN_ATTEND_SHARE_H

#include <stdatomic.h>

#include "kernel/generic/vec.h"
#include "kernel/kvpage.h"

#define BLOCK 64                       /* tokens that go through the softmax at once: four pages */
#define BLOCK_PAGES (BLOCK / QN_PAGE)
static_assert(QN_CHUNK % BLOCK == 0, "whole blocks");

/* Queries of a group, before anything is fetched for them: n of them from the j-th of a run of rows of one sequence, where the
 * heads of a row that share a KV head follow each other. */
typedef struct place {
    int row, rows;         /* the run */
    int kv, j, n;
} place;

typedef struct group group;
static void open_group(group *g, const qn_attend *a, const place *p);
INLINE void take_chunk(group *g, const qn_dtype type, int chunk);
static void join_chunk(group *g);                  /* the sums of the chunk behind those of the chunks before */
static void leave_part(const group *g, int chunk); /* the sums of the chunk to the parts, and back */
static void fetch_part(group *g, int chunk);
static void finish_group(group *g);

static bool next_place(const qn_attend *a, place *p)
{
    const int per_kv = a->n_head / a->n_kv;
    p->j += p->n;
    if (p->j == p->rows * per_kv) {
        p->j = 0;
        p->kv++;
    }
    if (p->kv == a->n_kv || p->rows == 0) {
        p->row += p->rows;
        p->rows = p->kv = 0;
        if (p->row == a->n) return false;
        while (p->row + p->rows < a->n && a->at->first[p->row + p->rows] == a->at->first[p->row]) p->rows++;
    }
    p->n = qn_mini(QUERIES, p->rows * per_kv - p->j);
    return true;
}

static int first_seen(const qn_attend *a, int row) { return a->window ? qn_maxi(0, a->at->pos[row] - a->window + 1) : 0; }

/* row and head of query i of a group */
static int row_of(const qn_attend *a, const place *p, int i) { return p->row + (p->j + i) / (a->n_head / a->n_kv); }

static size_t head_of(const qn_attend *a, const place *p, int i)
{
    const int per_kv = a->n_head / a->n_kv;
    return (size_t)row_of(a, p, i) * (size_t)a->n_head + (size_t)(p->kv * per_kv + (p->j + i) % per_kv);
}

/* chunks that the group looks at: *from is the first */
static int count_chunks(const qn_attend *a, const place *p, int *from)
{
    *from = first_seen(a, row_of(a, p, 0)) / QN_CHUNK;
    return a->at->pos[row_of(a, p, p->n - 1)] / QN_CHUNK - *from + 1;
}

/* d_head weighted values, the largest score, the sum of weights */
static float *part_of(const qn_attend *a, const place *p, int i, int chunk)
{
    return a->parts.sums + (head_of(a, p, i) * (size_t)a->parts.n_chunks + (size_t)chunk) * (size_t)(a->d_head + 2);
}

/* Chunks begin..end-1 of the group's n. The lane that ends the last of all joins them. */
INLINE void take_share(group *g, const qn_dtype type, i32 *count, int begin, int end, int first, int n)
{
    for (int chunk = first + begin; chunk < first + end; chunk++) {
        take_chunk(g, type, chunk);
        leave_part(g, chunk);
    }
    atomic_int *ended = (atomic_int *)(void *)count;
    if (atomic_fetch_add_explicit(ended, end - begin, memory_order_acq_rel) + end - begin < n) return;
    atomic_store_explicit(ended, 0, memory_order_relaxed);
    for (int chunk = first; chunk < first + n; chunk++) {
        fetch_part(g, chunk);
        join_chunk(g);
    }
    finish_group(g);
}

INLINE void take_whole(group *g, const qn_dtype type, int first, int n)
{
    for (int chunk = first; chunk < first + n; chunk++) {
        take_chunk(g, type, chunk);
        join_chunk(g);
    }
    finish_group(g);
}

/* g: room for one group at a time */
INLINE void attend(group *g, const qn_attend *a, qn_lane lane, const qn_dtype type)
{
    const bool split = a->n <= a->parts.n_split;
    int units = 0, first;
    for (place p = { 0 }; next_place(a, &p);) units += split ? count_chunks(a, &p, &first) : 1;
    const int begin = lane_begin(units, lane), end = lane_end(units, lane);
    int at = 0, index = 0;
    for (place p = { 0 }; at < end && next_place(a, &p); index++) {
        const int chunks = count_chunks(a, &p, &first), n = split ? chunks : 1;
        const int from = qn_maxi(begin - at, 0), to = qn_mini(end - at, n);
        at += n;
        if (from >= to) continue;
        open_group(g, a, &p);
        if (n > 1) take_share(g, type, a->parts.ended + index, from, to, first, n);
        else take_whole(g, type, first, chunks);
    }
}

#endif

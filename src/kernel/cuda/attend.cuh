/* attend.cuh - attention of one token. A block has a head, or some heads that read the same keys and a part of the context (ring.cuh).
 * Lanes have eight values of a head each, some lanes a token, so that a warp looks at several tokens at once for one head or two;
 * the first keys and values are on their way before the queries are there, which every warp brings and turns for itself: nobody
 * waits for another until all have seen their tokens. The newest token is a warp's own: its key and value come when the queries do.
 * Parts are sent to the block that joins a head's. */
#pragma once
#include "kernel/cuda/ring.cuh"

struct results { float *made, *parts; }; /* shared memory: [stripes, heads, d + 2], [chunks, d + 2] */

/* Eight values of a row. */
template <bool WIDE> struct eight { uint4 a, b; };

template <bool WIDE> static __device__ __forceinline__ eight<WIDE> load8(const uint8_t *row)
{
    eight<WIDE> v;
    v.a = __ldcg(reinterpret_cast<const uint4 *>(row));
    v.b = WIDE ? __ldcg(reinterpret_cast<const uint4 *>(row) + 1) : make_uint4(0, 0, 0, 0);
    return v;
}

template <bool WIDE> static __device__ __forceinline__ void spread(const eight<WIDE> &v, float out[8])
{
    if (WIDE) {
        out[0] = __uint_as_float(v.a.x), out[1] = __uint_as_float(v.a.y), out[2] = __uint_as_float(v.a.z);
        out[3] = __uint_as_float(v.a.w), out[4] = __uint_as_float(v.b.x), out[5] = __uint_as_float(v.b.y);
        out[6] = __uint_as_float(v.b.z), out[7] = __uint_as_float(v.b.w);
        return;
    }
    const uint32_t u[4] = { v.a.x, v.a.y, v.a.z, v.a.w };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&u[i]));
        out[2 * i] = f.x, out[2 * i + 1] = f.y;
    }
}

/* ---- queries, and the newest key and value */

/* Eight sent values of each of N heads, from first[] on. All are looked at together: one way for all. */
template <int N>
static __device__ __forceinline__ void receive8(uint64_t vector, const uint32_t first[N], uint32_t tag, float out[N][8])
{
    ulonglong2 a[N], b[N];
    for (;;) {
        bool all = true;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const ulonglong2 *src = at<const ulonglong2>(vector) + first[i] / 4;
            a[i] = look16(src), b[i] = look16(src + 1);
        }
#pragma unroll
        for (int i = 0; i < N; i++) all = all && both_come(a[i], tag) && both_come(b[i], tag);
        if (__all_sync(~0u, all)) break;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float4 x = four_of(a[i]), y = four_of(b[i]);
        out[i][0] = x.x, out[i][1] = x.y, out[i][2] = x.z, out[i][3] = x.w;
        out[i][4] = y.x, out[i][5] = y.y, out[i][6] = y.z, out[i][7] = y.w;
    }
}

/* What the lane's eight values are turned by; all of it is known before they come. Lane 0 of a head's has the first eight. */
struct turning { float4 angle[4]; int lane; bool turns, second; }; /* lane: who has the other halves of pairs, if they lie apart */

static __device__ __forceinline__ turning turning_of(const qn_att &t, int pos, int mine, int lane)
{
    const int half = t.d_rot / 2, i = 8 * mine;
    turning u;
    u.turns = i < t.d_rot;
    u.second = t.neox && i >= half;
    u.lane = u.turns && t.neox ? lane + (u.second ? -half : half) / 8 : lane;
    const float4 *table = reinterpret_cast<const float4 *>(at<const float2>(t.angles) + (size_t)pos * half) +
                          (t.neox ? u.second ? i - half : i : i / 2) / 2;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u.angle[j] = make_float4(1, 0, 1, 0);
        if (u.turns && (t.neox || j < 2)) u.angle[j] = __ldg(table + j);
    }
    return u;
}

/* Norm, scale, rotation of a head whose values are in LANES lanes. */
template <int LANES>
static __device__ __forceinline__ void turn8(const qn_att &t, const turning &u, uint64_t norm, float scale, int mine, float v[8])
{
    if (norm) {
        float ss = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) ss = fmaf(v[j], v[j], ss);
        if ((int)who_am_i().lane() % LANES != mine) ss = 0; /* past the head's end: its last values once more */
#pragma unroll
        for (int o = LANES / 2; o; o >>= 1) ss += __shfl_xor_sync(~0u, ss, o);
        scale *= rsqrtf(__fdividef(ss, (float)t.d_head) + t.eps);
        const float *w = at<const float>(norm) + 8 * mine;
#pragma unroll
        for (int j = 0; j < 8; j++) v[j] *= __ldg(w + j);
    }
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] *= scale;
    const float a[16] = { u.angle[0].x, u.angle[0].y, u.angle[0].z, u.angle[0].w, u.angle[1].x, u.angle[1].y, u.angle[1].z, u.angle[1].w,
                          u.angle[2].x, u.angle[2].y, u.angle[2].z, u.angle[2].w, u.angle[3].x, u.angle[3].y, u.angle[3].z, u.angle[3].w };
    if (t.neox) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float other = __shfl_sync(~0u, v[j], u.lane);
            v[j] = fmaf(v[j], a[2 * j], u.second ? other * a[2 * j + 1] : -other * a[2 * j + 1]);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        const float x = v[j], y = v[j + 1];
        v[j] = x * a[j] - y * a[j + 1];
        v[j + 1] = x * a[j + 1] + y * a[j];
    }
}

/* Eight values into the cache; what later tokens will see of them. */
template <bool WIDE> static __device__ __forceinline__ void keep8(uint8_t *row, bool stores, float v[8])
{
    uint4 u = make_uint4(0, 0, 0, 0);
    if (WIDE) {
        if (stores) reinterpret_cast<float4 *>(row)[0] = make_float4(v[0], v[1], v[2], v[3]);
        if (stores) reinterpret_cast<float4 *>(row)[1] = make_float4(v[4], v[5], v[6], v[7]);
        return;
    }
    __half2 *h = reinterpret_cast<__half2 *>(&u);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
        const float2 f = __half22float2(h[i]);
        v[2 * i] = f.x, v[2 * i + 1] = f.y;
    }
    if (stores) *reinterpret_cast<uint4 *>(row) = u;
}

struct place { uint8_t *cache; size_t stride, row_bytes; const int *pages; }; /* of this lane's values */

static __device__ __forceinline__ uint8_t *row_of(const place &p, int token)
{
    return p.cache + (size_t)p.pages[token / QN_CPAGE] * p.stride + (size_t)(token % QN_CPAGE) * p.row_bytes;
}

/* ---- tokens */

/* A warp's heads and tokens: how many heads, the first of them; which of the warps that share them. Lanes past a head's end (whole: not
 * such a one) have its last values once more. */
struct lot { int heads, head, stripe, mine; bool whole; };

template <int HEADS> struct running { float top[HEADS], sum[HEADS], acc[HEADS][8]; };

/* One token for all heads of this warp: lanes of a token add up, then everybody has its score. */
template <int LANES, int HEADS>
static __device__ __forceinline__ void see_token(running<HEADS> &r, const float (*q)[8], bool there, const float k[8], const float v[8])
{
    float s[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++)
        s[h] = fmaf(q[h][0], k[0], fmaf(q[h][1], k[1], fmaf(q[h][2], k[2], q[h][3] * k[3]))) +
               fmaf(q[h][4], k[4], fmaf(q[h][5], k[5], fmaf(q[h][6], k[6], q[h][7] * k[7])));
#pragma unroll
    for (int o = LANES / 2; o; o >>= 1)
#pragma unroll
        for (int h = 0; h < HEADS; h++) s[h] += __shfl_xor_sync(~0u, s[h], o);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const float above = fmaxf(r.top[h], there ? s[h] : -1e30f), keep = __expf(r.top[h] - above);
        const float share = there ? __expf(s[h] - above) : 0.f;
        r.sum[h] = r.sum[h] * keep + share;
        r.top[h] = above;
#pragma unroll
        for (int i = 0; i < 8; i++) r.acc[h][i] = fmaf(r.acc[h][i], keep, share * v[i]);
    }
}

/* What the warp's lanes made of their tokens, as one; to made[head, d + 2]. */
template <int LANES, int HEADS>
static __device__ __forceinline__ void join_lanes(running<HEADS> &r, int n_heads, int d, int mine, float *made)
{
    const who me = who_am_i();
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        if (h >= n_heads) break;
        float most = r.top[h];
#pragma unroll
        for (int o = 16; o >= LANES; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
        const float f = __expf(r.top[h] - most);
        float sum = r.sum[h] * f;
#pragma unroll
        for (int i = 0; i < 8; i++) r.acc[h][i] *= f;
#pragma unroll
        for (int o = 16; o >= LANES; o >>= 1) {
            sum += __shfl_xor_sync(~0u, sum, o);
#pragma unroll
            for (int i = 0; i < 8; i++) r.acc[h][i] += __shfl_xor_sync(~0u, r.acc[h][i], o);
        }
        float2 *to = reinterpret_cast<float2 *>(made + h * (d + 2));
        if ((int)me.lane() == mine) { /* the first lanes that have a token */
#pragma unroll
            for (int i = 0; i < 4; i++) to[4 * mine + i] = make_float2(r.acc[h][2 * i], r.acc[h][2 * i + 1]);
            if (mine == 0) to[d / 2] = make_float2(most, sum);
        }
    }
}

/* Tokens that are in the cache. */
template <bool WIDE, int LANES, int HEADS>
static __device__ __forceinline__ void see_old(const qn_att &t, const share &s, const lot &l, const place &at_row, int stripes, int end, int pos,
                                               uint32_t tag, float *made)
{
    const int lane = (int)who_am_i().lane(), each = 32 / LANES, step = stripes * each; /* LANES of a token */
    const size_t to_values = QN_CPAGE * at_row.row_bytes;
    int base = s.begin + l.stripe * each, p = base + lane / LANES;
    const uint8_t *row = row_of(at_row, max(min(p, end - 1), 0));
    eight<WIDE> k = load8<WIDE>(row), v = load8<WIDE>(row + to_values);
    float q[HEADS][8];
    uint32_t first[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) first[h] = t.q_at + (uint32_t)((l.head + min(h, l.heads - 1)) * t.d_head + 8 * l.mine);
    {
        const turning u = turning_of(t, pos, l.mine, lane);
        receive8<HEADS>(t.qkv, first, tag, q); /* a head too many is one twice */
#pragma unroll
        for (int h = 0; h < HEADS; h++) turn8<LANES>(t, u, t.q_norm, t.scale, l.mine, q[h]);
    }
    running<HEADS> r;
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        r.top[h] = -1e30f, r.sum[h] = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) r.acc[h][j] = 0, q[h][j] = l.whole ? q[h][j] : 0; /* nobody has values twice */
    }
#pragma unroll 1
    for (; base < end; base += step, p += step) {
        const bool there = p < end;
        float x[8], y[8];
        spread<WIDE>(k, x);
        spread<WIDE>(v, y);
        if (base + step < end) {
            row = row_of(at_row, min(p + step, end - 1));
            k = load8<WIDE>(row), v = load8<WIDE>(row + to_values);
        }
        see_token<LANES, HEADS>(r, q, there, x, y);
    }
    join_lanes<LANES, HEADS>(r, l.heads, t.d_head, l.mine, made);
}

/* The newest token: a result of its own. The block that has its KV head's first stores it. */
template <bool WIDE, int LANES, int HEADS>
static __device__ __forceinline__ void see_newest(const qn_att &t, const share &s, const lot &l, const place &at_row, int pos, uint32_t tag,
                                                  float *made)
{
    const int lane = (int)who_am_i().lane(), d = t.d_head;
    const bool has = l.whole && lane < LANES, stores = has && l.head == s.kv * t.group;
    uint8_t *row = row_of(at_row, pos);
    float x[HEADS + 2][8]; /* queries, key, value */
    uint32_t first[HEADS + 2];
#pragma unroll
    for (int h = 0; h < HEADS; h++) first[h] = t.q_at + (uint32_t)((l.head + min(h, l.heads - 1)) * d + 8 * l.mine);
    first[HEADS] = t.k_at + (uint32_t)(s.kv * d + 8 * l.mine), first[HEADS + 1] = t.v_at + (uint32_t)(s.kv * d + 8 * l.mine);
    const turning u = turning_of(t, pos, l.mine, lane);
    receive8<HEADS + 2>(t.qkv, first, tag, x);
#pragma unroll
    for (int h = 0; h < HEADS; h++) turn8<LANES>(t, u, t.q_norm, t.scale, l.mine, x[h]);
    turn8<LANES>(t, u, t.k_norm, 1, l.mine, x[HEADS]);
    keep8<WIDE>(row, stores, x[HEADS]);
    keep8<WIDE>(row + QN_CPAGE * at_row.row_bytes, stores, x[HEADS + 1]);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float score = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) score = fmaf(x[h][j], l.whole ? x[HEADS][j] : 0, score);
#pragma unroll
        for (int o = LANES / 2; o; o >>= 1) score += __shfl_xor_sync(~0u, score, o);
        float2 *to = reinterpret_cast<float2 *>(made + h * (d + 2));
        if (h >= l.heads || !has) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) to[4 * l.mine + i] = make_float2(x[HEADS + 1][2 * i], x[HEADS + 1][2 * i + 1]);
        if (l.mine == 0) to[d / 2] = make_float2(score, 1);
    }
}

/* This block's part. d is a multiple of 8, pairs that are turned lie in whole lanes (list.c). */
template <bool WIDE, int LANES, int HEADS>
static __device__ __forceinline__ void attend_part(const qn_att &t, float *made, const share &s, const int *pages, int pos, uint32_t tag)
{
    const who me = who_am_i();
    const int d = t.d_head, sets = (s.heads + HEADS - 1) / HEADS, stripes = over(QN_P_WARPS, sets), stripe = over((int)me.warp(), sets);
    const int at_head = HEADS * ((int)me.warp() - stripe * sets), group = (int)me.lane() % LANES, mine = min(group, d / 8 - 1);
    const int newest = s.end == pos + 1;
    if (stripe >= stripes) return;
    const lot l = { min(HEADS, s.heads - at_head), s.head + at_head, stripe, mine, group == mine };
    const size_t value = WIDE ? 4 : 2;
    const place at_row = { at<uint8_t>(t.cache) + (size_t)(s.kv * d + 8 * mine) * value, t.stride, (size_t)t.n_kv * d * value, pages };
    made += (stripe * s.heads + at_head) * (d + 2);
    if (newest && stripe == stripes - 1) see_newest<WIDE, LANES, HEADS>(t, s, l, at_row, pos, tag, made);
    else see_old<WIDE, LANES, HEADS>(t, s, l, at_row, stripes - newest, s.end - newest, pos, tag, made);
}

/* ---- what comes of it */

/* n results of a head, each a float2 of values at i, its largest score and its sum; N lanes have one each and add up. */
struct joined { float2 v; float top, sum; };

template <int N> static __device__ __forceinline__ joined join_results(const float *p, int n, int step, int d, int i, int lane)
{
    const int l = lane % N;
    const bool has = l < n;
    const float2 *mine = reinterpret_cast<const float2 *>(p + l * step);
    const float2 scores = has ? mine[d / 2] : make_float2(-1e30f, 0), v = has ? mine[i / 2] : make_float2(0, 0);
    joined j = { v, scores.x, 0 };
#pragma unroll
    for (int o = N / 2; o; o >>= 1) j.top = fmaxf(j.top, __shfl_xor_sync(~0u, j.top, o));
    const float f = __expf(scores.x - j.top);
    j.sum = f * scores.y, j.v.x *= f, j.v.y *= f;
#pragma unroll
    for (int o = N / 2; o; o >>= 1) {
        j.sum += __shfl_xor_sync(~0u, j.sum, o);
        j.v.x += __shfl_xor_sync(~0u, j.v.x, o);
        j.v.y += __shfl_xor_sync(~0u, j.v.y, o);
    }
    return j;
}

static __device__ __forceinline__ void send_values(const qn_att &t, const joined &j, int head, int i, uint32_t tag)
{
    const float inverse = __fdividef(1.f, j.sum);
    put8(at<uint64_t>(t.y) + (head * t.d_head + i) / 2, pack(j.v.x * inverse, j.v.y * inverse, tag));
}

/* Half a warp has two values of a head. */
static __device__ __forceinline__ void send_part(const qn_crun &a, const qn_att &t, const results &r, const share &s, uint32_t tag)
{
    const who me = who_am_i();
    const int d = t.d_head, lane = (int)me.lane(), stripes = s.heads == 1 ? QN_P_WARPS : QN_P_WARPS / ((s.heads + 1) / 2);
    int head = 0, i = 2 * (int)(me.thread / 16);
#pragma unroll 1
    for (;; i += CONSUMERS / 8) {
        for (; i >= d; i -= d) head++;
        if (head >= s.heads) return; /* both halves: there are as many values as four divide */
        const joined j = join_results<16>(r.made + head * (d + 2), stripes, s.heads * (d + 2), d, i, lane);
        if (lane % 16) continue;
        if (s.parts == 1) {
            send_values(t, j, s.head + head, i, tag);
            continue;
        }
        uint64_t *to = at<uint64_t>(a.parts) + (size_t)((s.head + head) * t.chunks + s.part) * (d + 2);
        put_tagged(to + i, __float_as_uint(j.v.x), tag);
        put_tagged(to + i + 1, __float_as_uint(j.v.y), tag);
        if (i == 0) put_tagged(to + d, __float_as_uint(j.top), tag), put_tagged(to + d + 1, __float_as_uint(j.sum), tag);
    }
}

/* Blocks that have no part come first: the last block has the first head. */
static __device__ __forceinline__ void join_parts(const qn_crun &a, const qn_att &t, const results &r, const share &s, uint32_t tag)
{
    const who me = who_am_i();
    const int d = t.d_head, warp = (int)me.warp(), lane = (int)me.lane();
#pragma unroll 1
    for (int head = (int)gridDim.x - 1 - this_block(); head < t.n_head; head += (int)gridDim.x) {
#pragma unroll 1
        for (int w = warp; w < s.parts; w += QN_P_WARPS) {
            const uint64_t *from = at<const uint64_t>(a.parts) + (size_t)(head * t.chunks + w) * (d + 2);
#pragma unroll 3
            for (int i = lane; i < d + 2; i += 32) r.parts[w * (d + 2) + i] = __uint_as_float(receive_tagged(from + i, tag));
        }
        sync_consumers();
#pragma unroll 1
        for (int i = 2 * warp; i < d; i += 2 * QN_P_WARPS) {
            const joined j = join_results<32>(r.parts, s.parts, d + 2, d, i, lane);
            if (lane == 0) send_values(t, j, head, i, tag);
        }
        sync_consumers();
    }
}

/* tag: of what is read; made: of what is sent. */
template <bool WIDE, int LANES>
static __device__ __forceinline__ void run_attend(const qn_crun &a, const qn_att &t, float *room, int pos, uint32_t tag, uint32_t made)
{
    const share s = share_of(t, pos);
    const int d = t.d_head, *pages = at<const int>(t.pages) + a.first;
    const int stripes = s.heads == 1 ? QN_P_WARPS : QN_P_WARPS / ((s.heads + 1) / 2);
    const results r = { room, room + stripes * s.heads * (d + 2) };
    if (s.part < s.parts) {
        if (s.heads == 1) attend_part<WIDE, LANES, 1>(t, r.made, s, pages, pos, tag);
        else attend_part<WIDE, LANES, 2>(t, r.made, s, pages, pos, tag);
        sync_consumers();
        send_part(a, t, r, s, made);
        sync_consumers();
    }
    if (s.parts > 1) join_parts(a, t, r, s, made);
}

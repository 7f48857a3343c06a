/* attend.cuh - attention of one token. A block has a head, or some heads that read the same keys and a part of the context (ring.cuh).
 * Lanes have eight values of a head each, some lanes a token, so that a warp looks at several tokens at once for one head or two;
 * the first keys and values are on their way before the queries are there. Parts are sent to the block that joins a head's. */
#pragma once
#include "kernel/cuda/ring.cuh"

struct heads { float *q, *k, *v, *made, *parts; }; /* shared memory: [heads, d], [d], [d], [stripes, heads, d + 2], [chunks, d + 2] */

/* Eight values of a row. */
template <bool WIDE> struct eight { uint4 a, b; };

template <bool WIDE> static __device__ __forceinline__ eight<WIDE> load8(const uint8_t *row, bool there)
{
    eight<WIDE> v = { make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0) };
    if (there) v.a = __ldcg(reinterpret_cast<const uint4 *>(row));
    if (WIDE && there) v.b = __ldcg(reinterpret_cast<const uint4 *>(row) + 1);
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

/* One head by one warp: its values as they come, norm, rotation, scale. angles NULL: as it is. */
static __device__ __forceinline__ void turn_head(const qn_att &t, uint32_t from, uint64_t norm, const float2 *angles, float scale,
                                                 uint32_t tag, float *to)
{
    const who me = who_am_i();
    const int lane = (int)me.lane(), d = t.d_head, half = angles ? t.d_rot / 2 : 0;
    float2 angle[4]; /* asked for first: they are far away */
    float ss = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) angle[j] = lane + 32 * j < half ? __ldg(angles + lane + 32 * j) : make_float2(1, 0);
#pragma unroll 1
    for (int u = lane; u < d / 2; u += 32) {
        const float2 v = receive2(t.qkv, from / 2 + u, tag);
        to[2 * u] = v.x * scale, to[2 * u + 1] = v.y * scale;
        ss += v.x * v.x + v.y * v.y;
    }
    __syncwarp();
    if (norm) {
        const float s = rsqrtf(__fdividef(sum32(ss), (float)d) + t.eps);
#pragma unroll 1
        for (int i = lane; i < d; i += 32) to[i] *= s * __ldg(at<const float>(norm) + i);
        __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int i = lane + 32 * j;
        if (i >= half) break;
        float *x = to + (t.neox ? i : 2 * i), *y = t.neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y;
        *x = x0 * angle[j].x - y0 * angle[j].y;
        *y = x0 * angle[j].y + y0 * angle[j].x;
    }
    __syncwarp();
}

/* The queries, and where the newest token belongs to this part its key and value; one of the blocks that have them stores them. */
static __device__ __forceinline__ void prepare_heads(const qn_att &t, const heads &h, const int *pages, const share &s, int pos,
                                                     uint32_t tag)
{
    const who me = who_am_i();
    const int warp = (int)me.warp(), lane = (int)me.lane(), d = t.d_head;
    const bool query = warp < s.heads, is_v = warp == QN_P_WARPS - 1;
    if (!query && (s.end != pos + 1 || warp < QN_P_WARPS - 2)) return;
    float *mine = query ? h.q + warp * d : is_v ? h.v : h.k;
    const uint32_t from = query ? t.q_at + (s.head + warp) * d : (is_v ? t.v_at : t.k_at) + s.kv * d;
    const float2 *angles = !query && is_v ? NULL : at<const float2>(t.angles) + (size_t)pos * (t.d_rot / 2);
    turn_head(t, from, query ? t.q_norm : is_v ? 0 : t.k_norm, angles, query ? t.scale : 1.f, tag, mine);
    if (query) return;
    const bool stores = s.head == s.kv * (t.n_head / t.n_kv);
    const size_t row_bytes = (size_t)t.n_kv * d * (t.type == QN_KVT_f16 ? 2 : 4);
    uint8_t *row = at<uint8_t>(t.cache) + (size_t)pages[pos / QN_CPAGE] * t.stride +
                   (size_t)(pos % QN_CPAGE + (is_v ? QN_CPAGE : 0)) * row_bytes;
#pragma unroll 1
    for (int i = lane; i < d; i += 32) {
        if (t.type == QN_KVT_f16) {
            const __half x = __float2half(mine[i]);
            if (stores) reinterpret_cast<__half *>(row)[s.kv * d + i] = x;
            mine[i] = __half2float(x); /* as all later tokens will see it */
        } else if (stores) {
            reinterpret_cast<float *>(row)[s.kv * d + i] = mine[i];
        }
    }
}

template <int HEADS> struct running { float top[HEADS], sum[HEADS], acc[HEADS][8]; };

/* One token for all heads of this warp: lanes of a token add up, then everybody has its score. */
template <int LANES, int HEADS>
static __device__ __forceinline__ void see_token(running<HEADS> &r, const float4 *const q[HEADS], bool there, const float k[8],
                                                 const float v[8])
{
    float s[HEADS];
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const float4 a = q[h][0], b = q[h][1];
        s[h] = fmaf(a.x, k[0], fmaf(a.y, k[1], fmaf(a.z, k[2], a.w * k[3]))) +
               fmaf(b.x, k[4], fmaf(b.y, k[5], fmaf(b.z, k[6], b.w * k[7])));
    }
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
        float *to = made + h * (d + 2);
        if ((int)me.lane() == mine && 8 * mine < d) { /* the first lanes that have a token */
#pragma unroll
            for (int i = 0; i < 8; i++) to[8 * mine + i] = r.acc[h][i];
            if (mine == 0) to[d] = most, to[d + 1] = sum;
        }
    }
}

struct place { const uint8_t *cache; size_t stride, row_bytes; const int *pages; };

static __device__ __forceinline__ const uint8_t *row_of(const place &p, int token)
{
    return p.cache + (size_t)p.pages[token / QN_CPAGE] * p.stride + (size_t)(token % QN_CPAGE) * p.row_bytes;
}

/* This block's part. d is a multiple of 8. */
template <bool WIDE, int LANES, int HEADS>
static __device__ __forceinline__ void attend_part(const qn_crun &a, const qn_att &t, const heads &h, const share &s, int pos, uint32_t tag)
{
    const who me = who_am_i();
    const int warp = (int)me.warp(), lane = (int)me.lane(), d = t.d_head, group = s.heads;
    const int sets = (group + HEADS - 1) / HEADS, stripes = QN_P_WARPS / sets, set = warp % sets, stripe = warp / sets;
    const int mine = lane % LANES, each = 32 / LANES, step = stripes * each; /* LANES of a token */
    const place at_row = { at<const uint8_t>(t.cache) + (size_t)(s.kv * d + 8 * mine) * (WIDE ? 4 : 2), t.stride,
                           (size_t)t.n_kv * d * (WIDE ? 4 : 2), at<const int>(t.pages) + a.first };
    const size_t to_values = QN_CPAGE * at_row.row_bytes;
    int p = s.begin + stripe * each + lane / LANES;
    const bool busy = stripe < stripes, whole = 8 * mine < d;
    bool old = busy && whole && p < s.end && p != pos;
    const uint8_t *row = old ? row_of(at_row, p) : NULL;
    eight<WIDE> k = load8<WIDE>(row, old), v = load8<WIDE>(row + to_values, old);
    prepare_heads(t, h, at_row.pages, s, pos, tag);
    sync_consumers();
    running<HEADS> r;
    const int n_heads = min(HEADS, group - set * HEADS);
    const float4 *q[HEADS];
#pragma unroll
    for (int i = 0; i < HEADS; i++) { /* a head too many is one twice */
        q[i] = reinterpret_cast<const float4 *>(h.q + (set * HEADS + min(i, n_heads - 1)) * d + 8 * min(mine, d / 8 - 1));
        r.top[i] = -1e30f, r.sum[i] = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) r.acc[i][j] = 0;
    }
#pragma unroll 1
    for (int base = s.begin + stripe * each; busy && base < s.end; base += step, p += step) {
        const bool there = p < s.end;
        float x[8], y[8];
        spread<WIDE>(k, x);
        spread<WIDE>(v, y);
        if (there && whole && p == pos) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = h.k[8 * mine + i], y[i] = h.v[8 * mine + i];
        }
        old = whole && p + step < s.end && p + step != pos;
        row = old ? row_of(at_row, p + step) : NULL;
        k = load8<WIDE>(row, old), v = load8<WIDE>(row + to_values, old);
        see_token<LANES, HEADS>(r, q, there, x, y); /* lanes past the head's end have keys of 0 */
    }
    if (busy) join_lanes<LANES, HEADS>(r, n_heads, d, mine, h.made + (stripe * group + set * HEADS) * (d + 2));
    sync_consumers();
}

/* What n (at most 32) results of a head make together, by one warp; they lie `step` floats apart: values, the largest score, the sum. */
struct joined_head { const float *p; int n, step; float factor, top, sum; }; /* factor: of result `lane` */

static __device__ __forceinline__ joined_head join_head(const float *p, int n, int step, int d)
{
    const who me = who_am_i();
    const int lane = (int)me.lane();
    const float top = lane < n ? p[lane * step + d] : -1e30f, sum = lane < n ? p[lane * step + d + 1] : 0.f, most = max32(top);
    const float factor = __expf(top - most);
    return { p, n, step, factor, most, sum32(factor * sum) };
}

/* Values i and i + 1; all lanes of the warp. */
static __device__ __forceinline__ float2 values_of(const joined_head &h, int i, bool there)
{
    float2 v = make_float2(0, 0);
#pragma unroll 4
    for (int w = 0; w < h.n; w++) {
        const float f = __shfl_sync(~0u, h.factor, w);
        const float2 y = there ? *reinterpret_cast<const float2 *>(h.p + w * h.step + i) : make_float2(0, 0);
        v.x = fmaf(f, y.x, v.x), v.y = fmaf(f, y.y, v.y);
    }
    return v;
}

static __device__ __forceinline__ void send_head(const qn_att &t, const joined_head &h, int head, float2 v, int i, uint32_t tag)
{
    const float inverse = __fdividef(1.f, h.sum);
    put8(at<uint64_t>(t.y) + (head * t.d_head + i) / 2, pack(v.x * inverse, v.y * inverse, tag));
}

/* A warp for each head. */
static __device__ __forceinline__ void send_part(const qn_crun &a, const qn_att &t, const heads &h, const share &s, int stripes,
                                                 uint32_t tag)
{
    const who me = who_am_i();
    const int d = t.d_head, warp = (int)me.warp(), lane = (int)me.lane();
    if (warp >= s.heads) return;
    const joined_head j = join_head(h.made + warp * (d + 2), stripes, s.heads * (d + 2), d);
    uint64_t *to = at<uint64_t>(a.parts) + (size_t)((s.head + warp) * t.chunks + s.part) * (d + 2);
#pragma unroll 1
    for (int i = 2 * lane; i - 2 * lane < d; i += 64) {
        const float2 v = values_of(j, i, i < d);
        if (i >= d) continue;
        if (s.parts == 1) {
            send_head(t, j, s.head + warp, v, i, tag);
        } else {
            put_tagged(to + i, __float_as_uint(v.x), tag);
            put_tagged(to + i + 1, __float_as_uint(v.y), tag);
        }
    }
    if (s.parts > 1 && lane == 0) put_tagged(to + d, __float_as_uint(j.top), tag), put_tagged(to + d + 1, __float_as_uint(j.sum), tag);
}

/* Blocks that have no part come first: the last block has the first head. */
static __device__ __forceinline__ void join_parts(const qn_crun &a, const qn_att &t, const heads &h, const share &s, uint32_t tag)
{
    const who me = who_am_i();
    const int d = t.d_head, warp = (int)me.warp(), lane = (int)me.lane();
#pragma unroll 1
    for (int head = (int)(gridDim.x - 1 - blockIdx.x); head < t.n_head; head += (int)gridDim.x) {
#pragma unroll 1
        for (int w = warp; w < s.parts; w += QN_P_WARPS) {
            const uint64_t *from = at<const uint64_t>(a.parts) + (size_t)(head * t.chunks + w) * (d + 2);
#pragma unroll 3
            for (int i = lane; i < d + 2; i += 32) h.parts[w * (d + 2) + i] = __uint_as_float(receive_tagged(from + i, tag));
        }
        sync_consumers();
        if (64 * warp < d) {
            const joined_head j = join_head(h.parts, s.parts, d + 2, d);
            const int i = 64 * warp + 2 * lane;
            const float2 v = values_of(j, i, i < d);
            if (i < d) send_head(t, j, head, v, i, tag);
        }
        sync_consumers();
    }
}

/* tag: of what is read; made: of what is sent. */
template <bool WIDE, int LANES>
static __device__ __forceinline__ void run_attend(const qn_crun &a, const qn_att &t, float *room, int pos, uint32_t tag, uint32_t made)
{
    const share s = share_of(t, pos);
    const int d = t.d_head, stripes = s.heads == 1 ? QN_P_WARPS : QN_P_WARPS / ((s.heads + 1) / 2);
    heads h;
    h.q = room;
    h.k = h.q + s.heads * d, h.v = h.k + d, h.made = h.v + d, h.parts = h.made + stripes * s.heads * (d + 2);
    if (s.part < s.parts) {
        if (s.heads == 1) attend_part<WIDE, LANES, 1>(a, t, h, s, pos, tag);
        else attend_part<WIDE, LANES, 2>(a, t, h, s, pos, tag);
        send_part(a, t, h, s, stripes, made);
        sync_consumers();
    }
    if (s.parts > 1) join_parts(a, t, h, s, made);
}

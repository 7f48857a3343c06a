/* fused.cu - what surrounds the linears of several rows, each thing in one launch: a norm that ends in f16, rotation with the KV
 * store, and the attention of single rows, each of a sequence of its own. They do what the kernels of ops.cu do one by one. */
#include "kernel/cuda/grid.cuh"
#include "kernel/cuda/weights.cuh"

static __device__ __forceinline__ uint32_t pack2(float a, float b)
{
    const __half2 h = __floats2half2_rn(fminf(fmaxf(a, -65504.f), 65504.f), fminf(fmaxf(b, -65504.f), 65504.f));
    return *reinterpret_cast<const uint32_t *>(&h);
}

static __device__ __forceinline__ float block_sum(float v)
{
    __shared__ float part[32];
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    float s = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++) s += part[i];
    return s;
}

/* A row of d values, a multiple of 4; y is f16. The row stays in registers between sum and product where it is short enough. */
extern "C" __global__ void __launch_bounds__(256) qn_norm_half(const qn_cnorm a, const uint64_t stamp)
{
    enum { KEPT = 4 };
    const float4 *x = reinterpret_cast<const float4 *>(at<const float>(a.x) + (size_t)blockIdx.x * a.d);
    const float4 *w = reinterpret_cast<const float4 *>(at<const float>(a.w));
    uint2 *y = reinterpret_cast<uint2 *>(at<__half>(a.y) + (size_t)blockIdx.x * a.d);
    const int n = a.d / 4;
    float4 kept[KEPT];
    float ss = 0;
    let_next_start();
    wait_for_last();
    step_begins(stamp);
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const int i = (int)threadIdx.x + 256 * k;
        kept[k] = i < n ? x[i] : make_float4(0, 0, 0, 0);
        ss += kept[k].x * kept[k].x + kept[k].y * kept[k].y + kept[k].z * kept[k].z + kept[k].w * kept[k].w;
    }
    for (int i = (int)threadIdx.x + 256 * KEPT; i < n; i += 256) {
        const float4 v = x[i];
        ss += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    const float s = rsqrtf(block_sum(ss) / (float)a.d + a.eps);
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const int i = (int)threadIdx.x + 256 * k;
        if (i >= n) break;
        const float4 v = kept[k], f = w[i];
        y[i] = make_uint2(pack2(v.x * s * f.x, v.y * s * f.y), pack2(v.z * s * f.z, v.w * s * f.w));
    }
    for (int i = (int)threadIdx.x + 256 * KEPT; i < n; i += 256) {
        const float4 v = x[i], f = w[i];
        y[i] = make_uint2(pack2(v.x * s * f.x, v.y * s * f.y), pack2(v.z * s * f.z, v.w * s * f.w));
    }
}

/* One row: q turned where it is; k turned, and v, into an f16 cache. */
extern "C" __global__ void __launch_bounds__(256) qn_rotate(const qn_crotate a, const uint64_t stamp)
{
    const qn_crope &r = a.rope;
    const qn_cstore &c = a.store;
    let_next_start();
    wait_for_last();
    step_begins(stamp);
    const int t = (int)blockIdx.x, half = r.d_rot / 2, pos = at<const int>(r.pos)[t], values = r.n_kv * r.d_head;
    const float2 *angle = at<const float2>(r.table) + (size_t)pos * half;
    const int page = at<const int>(c.at.pages)[at<const int>(c.at.first)[t] + pos / QN_CPAGE];
    __half *keys = at<__half>(c.cache + (uint64_t)page * c.stride) + (size_t)(pos % QN_CPAGE) * values;
    for (int j = (int)threadIdx.x; j < (r.n_head + r.n_kv) * half; j += 256) {
        const int h = j / half, i = j % half, kv = h - r.n_head, first = r.neox ? i : 2 * i, second = r.neox ? i + half : 2 * i + 1;
        float *head = kv < 0 ? at<float>(r.q) + ((size_t)t * r.n_head + h) * r.d_head
                             : at<float>(r.k) + ((size_t)t * r.n_kv + kv) * r.d_head;
        const float x = head[first], y = head[second], u = x * angle[i].x - y * angle[i].y, v = x * angle[i].y + y * angle[i].x;
        if (kv < 0) {
            head[first] = u;
            head[second] = v;
        } else {
            keys[kv * r.d_head + first] = __float2half(u);
            keys[kv * r.d_head + second] = __float2half(v);
        }
    }
    const float *k = at<const float>(r.k) + (size_t)t * values, *v = at<const float>(c.v) + (size_t)t * values;
    for (int i = (int)threadIdx.x; i < values; i += 256) {
        keys[QN_CPAGE * values + i] = __float2half(v[i]);
        if (i % r.d_head >= r.d_rot) keys[i] = __float2half(k[i]);
    }
}

/* ---- attention of single rows: a block has one row and up to four heads that share keys and values; D / 8 lanes hold a token, 8
 * values each, and every such group of lanes walks its own tokens with a running maximum. The blocks of a cluster cut the context. */

#define HEADS 4
#define DEEP 4              /* tokens of a group that are on their way at once */

struct running { float o[HEADS][8], top[HEADS], sum[HEADS]; };

static __device__ __forceinline__ void halves8(uint4 v, float out[8])
{
    const uint32_t u[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&u[i]));
        out[2 * i] = f.x, out[2 * i + 1] = f.y;
    }
}

/* DEEP tokens' keys and values; those that are not there weigh nothing. */
template <int D> static __device__ __forceinline__ void take(running &r, const float q[HEADS][8], const uint4 k[DEEP], const uint4 v[DEEP],
                                                             const bool there[DEEP])
{
    float s[DEEP][HEADS];
#pragma unroll
    for (int d = 0; d < DEEP; d++) {
        float x[8];
        halves8(k[d], x);
#pragma unroll
        for (int h = 0; h < HEADS; h++) {
            s[d][h] = 0;
#pragma unroll
            for (int i = 0; i < 8; i++) s[d][h] += q[h][i] * x[i];
#pragma unroll
            for (int o = D / 16; o; o >>= 1) s[d][h] += __shfl_xor_sync(~0u, s[d][h], o);
            if (!there[d]) s[d][h] = -INFINITY;
        }
    }
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float top = r.top[h];
#pragma unroll
        for (int d = 0; d < DEEP; d++) top = fmaxf(top, s[d][h]);
        const float base = top == -INFINITY ? 0.f : top, keep = __expf(r.top[h] - base);
        r.top[h] = top;
        r.sum[h] *= keep;
#pragma unroll
        for (int i = 0; i < 8; i++) r.o[h][i] *= keep;
#pragma unroll
        for (int d = 0; d < DEEP; d++) s[d][h] = __expf(s[d][h] - base), r.sum[h] += s[d][h];
    }
#pragma unroll
    for (int d = 0; d < DEEP; d++) {
        float x[8];
        halves8(v[d], x);
#pragma unroll
        for (int h = 0; h < HEADS; h++)
#pragma unroll
            for (int i = 0; i < 8; i++) r.o[h][i] += s[d][h] * x[i];
    }
}

template <int D> static __device__ __forceinline__ void walk(running &r, const qn_cattend &a, const float q[HEADS][8], int t, int kv,
                                                             int group, int n_groups)
{
    const int last = at<const int>(a.at.pos)[t], from = a.window ? max(0, last - a.window + 1) : 0;
    const int *pages = at<const int>(a.at.pages) + at<const int>(a.at.first)[t];
    const size_t row = 2 * (size_t)a.n_kv * D;
    const uint8_t *base = at<const uint8_t>(a.cache) + 2 * ((size_t)kv * D + threadIdx.x % (D / 8) * 8);
    for (int p0 = from; p0 <= last; p0 += DEEP * n_groups) { /* all lanes of a warp take the same turns */
        uint4 k[DEEP], v[DEEP];
        bool there[DEEP];
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
            const int p = p0 + d * n_groups + group;
            there[d] = p <= last;
            const int at_ = there[d] ? p : last;
            const uint8_t *token = base + (size_t)pages[at_ / QN_CPAGE] * a.stride + (size_t)(at_ % QN_CPAGE) * row;
            k[d] = *reinterpret_cast<const uint4 *>(token);
            v[d] = *reinterpret_cast<const uint4 *>(token + QN_CPAGE * row);
        }
        take<D>(r, q, k, v, there);
    }
}

/* Values i of head h of n parts, each with its own maximum (at [D]) and sum (at [D + 1]): joined, not yet divided. */
template <int D, typename READ> static __device__ __forceinline__ float3 join(int n, int i, READ read)
{
    float top = -INFINITY, sum = 0, value = 0;
    for (int k = 0; k < n; k++) top = fmaxf(top, read(k, D));
    const float base = top == -INFINITY ? 0.f : top;
    for (int k = 0; k < n; k++) {
        const float share = __expf(read(k, D) - base);
        sum += read(k, D + 1) * share;
        value += read(k, i) * share;
    }
    return make_float3(value, top, sum);
}

template <int D> static __device__ __forceinline__ void attend_rows(const qn_cattend &a, uint64_t stamp)
{
    enum { LANES = D / 8, GROUPS = 128 / LANES, WIDE = D + 2 };
    __shared__ float parts[GROUPS][HEADS][WIDE], whole[HEADS][WIDE];
    const int split = cluster_size(), rank = (int)blockIdx.x % split, t = (int)blockIdx.x / split;
    const int share = a.n_head / a.n_kv, chunks = (share + HEADS - 1) / HEADS, kv = (int)blockIdx.y / chunks;
    const int h0 = kv * share + (int)blockIdx.y % chunks * HEADS, heads = min(HEADS, (kv + 1) * share - h0);
    const int group = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    float q[HEADS][8];
    running r = {};
    let_next_start();
    wait_for_last();
    step_begins(stamp);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
        const float *from = at<const float>(a.q) + ((size_t)t * a.n_head + h0 + min(h, heads - 1)) * D + lane * 8;
        r.top[h] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 8; i++) q[h][i] = from[i] * a.scale;
    }
    walk<D>(r, a, q, t, kv, rank * GROUPS + group, split * GROUPS);
#pragma unroll
    for (int h = 0; h < HEADS; h++) {
#pragma unroll
        for (int i = 0; i < 8; i++) parts[group][h][lane * 8 + i] = r.o[h][i];
        if (lane == 0) parts[group][h][D] = r.top[h], parts[group][h][D + 1] = r.sum[h];
    }
    __syncthreads();
    for (int e = (int)threadIdx.x; e < heads * D; e += 128) {
        const int h = e / D, i = e % D;
        const float3 v = join<D>(GROUPS, i, [&](int k, int j) { return parts[k][h][j]; });
        whole[h][i] = v.x;
        if (i == 0) whole[h][D] = v.y, whole[h][D + 1] = v.z;
    }
    cluster_sync();
    for (int e = (int)threadIdx.x + 128 * rank; e < heads * D; e += 128 * split) {
        const int h = e / D, i = e % D;
        const float3 v = join<D>(split, i, [&](int k, int j) { return read_of(&whole[h][j], k); });
        const size_t to = ((size_t)t * a.n_head + h0 + h) * D + i;
        if (a.half) at<__half>(a.y)[to] = __float2half(v.x / v.z);
        else at<float>(a.y)[to] = v.x / v.z;
    }
    if (split > 1) cluster_sync(); /* a block's shared memory stays until all have read it */
}

extern "C" __global__ void __launch_bounds__(128, 4) qn_attend_64(const qn_cattend a, const uint64_t stamp) { attend_rows<64>(a, stamp); }
extern "C" __global__ void __launch_bounds__(128, 4) qn_attend_128(const qn_cattend a, const uint64_t stamp) { attend_rows<128>(a, stamp); }
extern "C" __global__ void __launch_bounds__(128, 4) qn_attend_256(const qn_cattend a, const uint64_t stamp) { attend_rows<256>(a, stamp); }

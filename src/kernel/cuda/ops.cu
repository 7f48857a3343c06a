/* ops.cu - every op of a plan as an ordinary kernel: activations and sums in float, one launch a step. The reference on the
 * device, and what runs where the persistent kernel does not. No result depends on how many rows came along.
 * Built by nvcc alone; the host finds these by name (program.c). */
#include "kernel/cuda/grid.cuh"
#include "kernel/cuda/weights.cuh"

static __device__ __forceinline__ float warp_sum(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* the sum over a block of at most 1,024 threads, known to all of them */
static __device__ float block_sum(float v)
{
    __shared__ float part[32];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    float s = 0;
    for (int i = 0; i < (int)blockDim.x / 32; i++) s += part[i];
    __syncthreads();
    return s;
}

extern "C" __global__ void qn_embed(const qn_cembed a, const uint64_t stamp)
{
    step_begins(stamp);
    const int t = (int)blockIdx.x, d = (int)a.table.cols;
    const uint8_t *row = at<const uint8_t>(a.table.at) + (size_t)at<const int>(a.tokens)[t] * a.table.row_bytes;
    float *y = at<float>(a.y) + (size_t)t * d;
    for (int c = (int)threadIdx.x * 8; c < d; c += (int)blockDim.x * 8) {
        float w[8];
        weights8_any(row, a.table, c, w);
        for (int i = 0; i < 8 && c + i < d; i++) y[c + i] = w[i] * a.scale;
    }
}

extern "C" __global__ void qn_rmsnorm(const qn_cnorm a, const uint64_t stamp)
{
    step_begins(stamp);
    const float *x = at<const float>(a.x) + (size_t)blockIdx.x * a.d, *w = at<const float>(a.w);
    float *y = at<float>(a.y) + (size_t)blockIdx.x * a.d, ss = 0;
    for (int i = (int)threadIdx.x; i < a.d; i += (int)blockDim.x) ss += x[i] * x[i];
    const float s = rsqrtf(block_sum(ss) / (float)a.d + a.eps);
    for (int i = (int)threadIdx.x; i < a.d; i += (int)blockDim.x) y[i] = x[i] * s * w[i];
}

/* One warp makes one output row for up to N rows of x. */
template <int KIND, int N> static __device__ __forceinline__ void gemv(const qn_clinear &a, int r, int t0)
{
    const uint8_t *row = at<const uint8_t>(a.w.at) + (size_t)r * a.w.row_bytes;
    const int lane = (int)threadIdx.x % 32, cols = (int)a.w.cols, n = min(N, a.n - t0);
    const float *x = at<const float>(a.x) + (size_t)t0 * cols;
    float sum[N] = { 0 };
    for (int c = lane * 8; c < cols; c += 256) {
        float w[8];
        weights8<KIND>(row, a.w, c, w);
#pragma unroll
        for (int t = 0; t < N; t++) {
            if (t >= n) break;
            for (int i = 0; i < 8; i++)
                if (c + i < cols) sum[t] += w[i] * x[(size_t)t * cols + c + i];
        }
    }
    const float bias = a.bias ? at<const float>(a.bias)[r] : 0.f;
#pragma unroll
    for (int t = 0; t < N; t++) {
        const float s = warp_sum(sum[t]);
        if (lane == 0 && t < n) at<float>(a.y)[(size_t)(t0 + t) * a.w.rows + r] = s + bias;
    }
}

template <int N> static __device__ __forceinline__ void gemv_any(const qn_clinear &a)
{
    const int r = (int)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32), t0 = (int)blockIdx.y * N;
    if (r >= (int)a.w.rows) return;
    switch (a.w.kind) {
    case QN_W_f32: gemv<QN_W_f32, N>(a, r, t0); break;
    case QN_W_f16: gemv<QN_W_f16, N>(a, r, t0); break;
    case QN_W_bf16: gemv<QN_W_bf16, N>(a, r, t0); break;
    case QN_W_q8: gemv<QN_W_q8, N>(a, r, t0); break;
    case QN_W_q4: gemv<QN_W_q4, N>(a, r, t0); break;
    case QN_W_q4m: gemv<QN_W_q4m, N>(a, r, t0); break;
    default: gemv<QN_W_q6, N>(a, r, t0);
    }
}

extern "C" __global__ void qn_linear_r1(const qn_clinear a, const uint64_t stamp)
{
    step_begins(stamp);
    gemv_any<1>(a);
}

extern "C" __global__ void qn_linear_r8(const qn_clinear a, const uint64_t stamp)
{
    step_begins(stamp);
    gemv_any<8>(a);
}


/* cos and sin of every position and pair, in double: a float angle is off by 0.004 at position 100,000. */
extern "C" __global__ void qn_angles(const qn_cangles a)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= a.n_pos * a.n_pair) return;
    const double angle = (double)(i / a.n_pair) * (double)at<const float>(a.freq)[i % a.n_pair];
    double s, c;
    sincos(angle, &s, &c);
    at<float2>(a.table)[i] = make_float2((float)(c * (double)a.mscale), (float)(s * (double)a.mscale));
}

extern "C" __global__ void qn_rope(const qn_crope a, const uint64_t stamp)
{
    step_begins(stamp);
    const int t = (int)blockIdx.x, heads = a.n_head + a.n_kv, half = a.d_rot / 2, pos = at<const int>(a.pos)[t];
    const float2 *angle = at<const float2>(a.table) + (size_t)pos * half;
    for (int j = (int)threadIdx.x; j < heads * half; j += (int)blockDim.x) {
        const int h = j / half, i = j % half;
        float *head = h < a.n_head ? at<float>(a.q) + ((size_t)t * a.n_head + h) * a.d_head
                                   : at<float>(a.k) + ((size_t)t * a.n_kv + (h - a.n_head)) * a.d_head;
        float *x = head + (a.neox ? i : 2 * i), *y = a.neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y, c = angle[i].x, s = angle[i].y;
        *x = x0 * c - y0 * s;
        *y = x0 * s + y0 * c;
    }
}

/* ---- the KV cache */

static __device__ __forceinline__ uint8_t *kv_row(const qn_crows &at_, uint64_t cache, uint64_t stride, size_t row_bytes, int t,
                                                  int pos, int part)
{
    const int page = at<const int>(at_.pages)[at<const int>(at_.first)[t] + pos / QN_CPAGE];
    return at<uint8_t>(cache) + (size_t)page * stride + (size_t)(part * QN_CPAGE + pos % QN_CPAGE) * row_bytes;
}

static __device__ __forceinline__ size_t kv_bytes(int type, int values)
{
    return type == QN_KVT_f16 ? 2 * (size_t)values : type == QN_KVT_f32 ? 4 * (size_t)values : (size_t)values / 32 * 34;
}

static __device__ __forceinline__ float kv_get(const uint8_t *row, int type, int i)
{
    if (type == QN_KVT_f16) return half_at(row, i);
    if (type == QN_KVT_f32) return reinterpret_cast<const float *>(row)[i];
    const uint8_t *b = row + i / 32 * 34;
    return half_at(b, 0) * (float)(int8_t)b[2 + i % 32];
}

/* one block of 32 values as q8_0, by one warp */
static __device__ __forceinline__ void put_q8(float v, uint8_t *block)
{
    const int lane = (int)threadIdx.x % 32;
    float most = fabsf(v);
#pragma unroll
    for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    const float d = most / 127.f;
    if (lane == 0) *reinterpret_cast<__half *>(block) = __float2half(d);
    reinterpret_cast<int8_t *>(block)[2 + lane] = (int8_t)roundf(d > 0 ? v / d : 0.f);
}

extern "C" __global__ void qn_store(const qn_cstore a, const uint64_t stamp)
{
    step_begins(stamp);
    const int t = (int)blockIdx.x, values = a.n_kv * a.d_head, pos = at<const int>(a.at.pos)[t];
    const size_t bytes = kv_bytes(a.type, values);
    for (int part = 0; part < 2; part++) {
        const float *x = at<const float>(part ? a.v : a.k) + (size_t)t * values;
        uint8_t *row = kv_row(a.at, a.cache, a.stride, bytes, t, pos, part);
        for (int i = (int)threadIdx.x; i < values; i += (int)blockDim.x) { /* q8_0: values are a multiple of 32 */
            if (a.type == QN_KVT_f16) reinterpret_cast<__half *>(row)[i] = __float2half(x[i]);
            else if (a.type == QN_KVT_f32) reinterpret_cast<float *>(row)[i] = x[i];
            else put_q8(x[i], row + i / 32 * 34);
        }
    }
}

/* A block makes one head of one row: its warps take tokens in turn, each with a running maximum, and are joined at the end.
 * Lane l holds values l, l + 32, ... of the head. */
#define ATTEND_WARPS 8
#define ATTEND_SLOTS 16 /* 32 * 16 = 512: the model refuses larger heads */

extern "C" __global__ void qn_attend(const qn_cattend a, const uint64_t stamp)
{
    step_begins(stamp);
    extern __shared__ float joined[]; /* [ATTEND_WARPS, d_head + 2] */
    const int t = (int)blockIdx.x, h = (int)blockIdx.y, warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int d = a.d_head, slots = (d + 31) / 32, kv = h / (a.n_head / a.n_kv), last = at<const int>(a.at.pos)[t];
    const size_t bytes = kv_bytes(a.type, a.n_kv * d);
    const float *q = at<const float>(a.q) + ((size_t)t * a.n_head + h) * d;
    float qv[ATTEND_SLOTS], acc[ATTEND_SLOTS], top = -INFINITY, sum = 0;
#pragma unroll
    for (int j = 0; j < ATTEND_SLOTS; j++) {
        qv[j] = j < slots && lane + 32 * j < d ? q[lane + 32 * j] * a.scale : 0.f;
        acc[j] = 0;
    }
    for (int p = (a.window ? max(0, last - a.window + 1) : 0) + warp; p <= last; p += ATTEND_WARPS) {
        const uint8_t *k = kv_row(a.at, a.cache, a.stride, bytes, t, p, 0), *v = k + QN_CPAGE * bytes;
        float s = 0;
#pragma unroll
        for (int j = 0; j < ATTEND_SLOTS; j++)
            if (j < slots && lane + 32 * j < d) s += qv[j] * kv_get(k, a.type, kv * d + lane + 32 * j);
        s = warp_sum(s);
        const float above = fmaxf(top, s), keep = __expf(top - above), weight = __expf(s - above);
        sum = sum * keep + weight;
        top = above;
#pragma unroll
        for (int j = 0; j < ATTEND_SLOTS; j++)
            if (j < slots && lane + 32 * j < d) acc[j] = acc[j] * keep + weight * kv_get(v, a.type, kv * d + lane + 32 * j);
    }
    float *mine = joined + warp * (d + 2);
#pragma unroll
    for (int j = 0; j < ATTEND_SLOTS; j++)
        if (j < slots && lane + 32 * j < d) mine[lane + 32 * j] = acc[j];
    if (lane == 0) mine[d] = top, mine[d + 1] = sum;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < d; i += (int)blockDim.x) {
        float most = -INFINITY, total = 0, value = 0;
        for (int w = 0; w < ATTEND_WARPS; w++) most = fmaxf(most, joined[w * (d + 2) + d]);
        for (int w = 0; w < ATTEND_WARPS; w++) {
            const float *o = joined + w * (d + 2), share = __expf(o[d] - most);
            total += o[d + 1] * share;
            value += o[i] * share;
        }
        at<float>(a.y)[((size_t)t * a.n_head + h) * d + i] = value / total;
    }
}

/* ---- small ones */

extern "C" __global__ void qn_add(const qn_cadd a, const uint64_t stamp)
{
    step_begins(stamp);
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.n) at<float>(a.x)[i] += at<const float>(a.y)[i];
}

extern "C" __global__ void qn_glu(const qn_cglu a, const uint64_t stamp)
{
    step_begins(stamp);
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= a.n) return;
    const float x = at<float>(a.gate)[i];
    const float g = a.gelu ? 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1.f + __expf(-x));
    at<float>(a.gate)[i] = g * at<const float>(a.up)[i];
}

extern "C" __global__ void qn_pick(const qn_cpick a, const uint64_t stamp)
{
    step_begins(stamp);
    const float *x = at<const float>(a.x) + (size_t)at<const int>(a.rows)[blockIdx.x] * a.d;
    float *y = at<float>(a.y) + (size_t)blockIdx.x * a.d;
    for (int i = (int)threadIdx.x; i < a.d; i += (int)blockDim.x) y[i] = x[i];
}

/* The end of a pass: a stamp and nothing else. */
extern "C" __global__ void qn_end(const uint64_t stamp) { step_begins(stamp); }

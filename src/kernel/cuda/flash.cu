/* flash.cu - attention of many neighbouring rows of one sequence, on the tensor cores. A block has 64 rows of one head, a warp 16 of
 * them; keys and values come page by page into shared memory, 64 tokens at a time, and scores never leave the registers: a running
 * maximum and sum make the softmax. For heads of 64 and 128 values in an f16 cache; ops.cu has the rest. */
#include "kernel/cuda/weights.cuh"

#define ROWS 64
#define TOKENS 64

static __device__ __forceinline__ void ldmatrix4(uint32_t r[4], const __half *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((uint32_t)__cvta_generic_to_shared(p)));
}

static __device__ __forceinline__ void ldmatrix4_turned(uint32_t r[4], const __half *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((uint32_t)__cvta_generic_to_shared(p)));
}

static __device__ __forceinline__ void mma(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t pack2(float a, float b)
{
    const __half2 h = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* The warp's 16 rows of q as left operands: registers of a 16 x 16 tile hold rows lane/4 and +8, columns 2(lane%4) and +8. */
template <int D> static __device__ __forceinline__ void load_q(const qn_cattend &a, int t0, int h, int lane, uint32_t q[D / 16][4])
{
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int t = min(t0 + lane / 4 + 8 * (i % 2), a.n - 1), c = 16 * k + lane % 4 * 2 + 8 * (i / 2);
            const float2 v = *reinterpret_cast<const float2 *>(at<const float>(a.q) + ((size_t)t * a.n_head + h) * D + c);
            q[k][i] = pack2(v.x * a.scale, v.y * a.scale);
        }
}

/* Tokens p0.. of one KV head, keys and values; what lies behind the last is zero. */
template <int D>
static __device__ __forceinline__ void bring(const qn_cattend &a, const int *pages, int kv, int p0, int last, __half *ks, __half *vs)
{
    const size_t row_bytes = 2 * (size_t)a.n_kv * D;
#pragma unroll
    for (int e = (int)threadIdx.x; e < TOKENS * D / 8; e += 128) {
        const int i = e / (D / 8), c = e % (D / 8) * 8, p = p0 + i;
        uint4 k = make_uint4(0, 0, 0, 0), v = k;
        const int page = p <= last ? pages[p / QN_CPAGE] : -1; /* -1 too: no window sees it any more */
        if (page >= 0) {
            const uint8_t *row = at<const uint8_t>(a.cache) + (size_t)page * a.stride +
                                 (size_t)(p % QN_CPAGE) * row_bytes + 2 * ((size_t)kv * D + c);
            k = *reinterpret_cast<const uint4 *>(row);
            v = *reinterpret_cast<const uint4 *>(row + QN_CPAGE * row_bytes);
        }
        *reinterpret_cast<uint4 *>(ks + i * (D + 8) + c) = k;
        *reinterpret_cast<uint4 *>(vs + i * (D + 8) + c) = v;
    }
}

template <int D>
static __device__ __forceinline__ void score(float s[TOKENS / 8][4], const uint32_t q[D / 16][4], const __half *ks, int lane)
{
#pragma unroll
    for (int n = 0; n < TOKENS / 16; n++)
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t b[4];
            ldmatrix4(b, ks + (16 * n + lane % 8 + lane / 16 * 8) * (D + 8) + 16 * k + lane / 8 % 2 * 8);
            mma(s[2 * n], q[k], b[0], b[1]);
            mma(s[2 * n + 1], q[k], b[2], b[3]);
        }
}

/* Hides what a row may not see; the new maximum, weights instead of scores; returns by how much the old sums shrink. */
static __device__ __forceinline__ void weigh(float s[TOKENS / 8][4], const qn_cattend &a, int p0, int pos, int lane, float top[2],
                                             float sum[2], float keep[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int at_ = pos + 8 * r, from = a.window ? at_ - a.window + 1 : 0;
        float most = top[r], total = 0;
#pragma unroll
        for (int n = 0; n < TOKENS / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int p = p0 + 8 * n + lane % 4 * 2 + i;
                if (p > at_ || p < from) s[n][2 * r + i] = -INFINITY;
                most = fmaxf(most, s[n][2 * r + i]);
            }
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        const float base = most == -INFINITY ? 0.f : most; /* nothing seen yet */
        keep[r] = __expf(top[r] - base);
#pragma unroll
        for (int n = 0; n < TOKENS / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) total += s[n][2 * r + i] = __expf(s[n][2 * r + i] - base);
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        sum[r] = sum[r] * keep[r] + total;
        top[r] = most;
    }
}

template <int D>
static __device__ __forceinline__ void gather(float o[D / 8][4], const float s[TOKENS / 8][4], const __half *vs, const float keep[2],
                                              int lane)
{
#pragma unroll
    for (int n = 0; n < D / 8; n++) o[n][0] *= keep[0], o[n][1] *= keep[0], o[n][2] *= keep[1], o[n][3] *= keep[1];
#pragma unroll
    for (int k = 0; k < TOKENS / 16; k++) { /* two tiles of scores side by side are one left operand */
        const uint32_t p[4] = { pack2(s[2 * k][0], s[2 * k][1]), pack2(s[2 * k][2], s[2 * k][3]),
                                pack2(s[2 * k + 1][0], s[2 * k + 1][1]), pack2(s[2 * k + 1][2], s[2 * k + 1][3]) };
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t b[4];
            ldmatrix4_turned(b, vs + (16 * k + lane % 16) * (D + 8) + 16 * n + lane / 16 * 8);
            mma(o[2 * n], p, b[0], b[1]);
            mma(o[2 * n + 1], p, b[2], b[3]);
        }
    }
}

template <int D> static __device__ __forceinline__ void flash(const qn_cattend &a)
{
    __shared__ __align__(16) __half ks[TOKENS * (D + 8)], vs[TOKENS * (D + 8)];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, h = (int)blockIdx.y, kv = h / (a.n_head / a.n_kv);
    const int b0 = ((int)gridDim.x - 1 - (int)blockIdx.x) * ROWS, t0 = b0 + 16 * warp; /* the longest contexts first */
    const int begin = at<const int>(a.at.pos)[0], last = begin + min(b0 + ROWS, a.n) - 1, pos = begin + t0 + lane / 4;
    const int *pages = at<const int>(a.at.pages) + at<const int>(a.at.first)[0];
    uint32_t q[D / 16][4];
    float o[D / 8][4] = {}, top[2] = { -INFINITY, -INFINITY }, sum[2] = { 0, 0 };
    load_q<D>(a, t0, h, lane, q);
    const int seen = a.window ? max(0, begin + b0 - a.window + 1) : 0;
    for (int p0 = seen / TOKENS * TOKENS; p0 <= last; p0 += TOKENS) {
        float s[TOKENS / 8][4] = {}, keep[2];
        __syncthreads();
        bring<D>(a, pages, kv, max(p0, 0), last, ks, vs);
        __syncthreads();
        score<D>(s, q, ks, lane);
        weigh(s, a, p0, pos, lane, top, sum, keep);
        gather<D>(o, s, vs, keep, lane);
    }
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int t = t0 + lane / 4 + 8 * r;
            if (t >= a.n) continue;
            float *y = at<float>(a.y) + ((size_t)t * a.n_head + h) * D + 8 * n + lane % 4 * 2;
            *reinterpret_cast<float2 *>(y) = make_float2(__fdividef(o[n][2 * r], sum[r]), __fdividef(o[n][2 * r + 1], sum[r]));
        }
}

extern "C" __global__ void __launch_bounds__(128) qn_flash_64(const qn_cattend a) { flash<64>(a); }
extern "C" __global__ void __launch_bounds__(128) qn_flash_128(const qn_cattend a) { flash<128>(a); }

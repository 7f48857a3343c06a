/* gemm.cu - linears over many rows, on the tensor cores: y[t, r] = x[t, :] * w[r, :]. Weights of any kind are decoded to f16 once per
 * tile on their way into shared memory, activations are rounded to f16 before (and held within its range), sums are floats. The
 * next tiles' bytes are on their way while one is multiplied. A sum's order does not depend on the tile, so a
 * row's result does not depend on its company. */
#include "kernel/cuda/grid.cuh"
#include "kernel/cuda/mma.cuh"
#include "kernel/cuda/weights.cuh"

#define BK 32               /* columns of a tile */
#define PITCH (BK + 8)      /* halves from row to row: eight rows of 16 bytes then lie in different banks */

static __device__ __forceinline__ uint32_t pack2(float a, float b)
{
    const __half2 h = __floats2half2_rn(fminf(fmaxf(a, -65504.f), 65504.f), fminf(fmaxf(b, -65504.f), 65504.f));
    return *reinterpret_cast<const uint32_t *>(&h);
}

static __device__ __forceinline__ uint4 pack8(const float v[8])
{
    return make_uint4(pack2(v[0], v[1]), pack2(v[2], v[3]), pack2(v[4], v[5]), pack2(v[6], v[7]));
}

/* 8 weights as f16, straight where they are f16 already */
template <int KIND> static __device__ __forceinline__ uint4 weights_half8(const uint8_t *row, const qn_wmat &w, int c)
{
    if (KIND == QN_W_f16) return *reinterpret_cast<const uint4 *>(row + 2 * (size_t)c);
    float v[8];
    weights8<KIND>(row, w, c, v);
    return pack8(v);
}

/* What a thread carries from memory to shared memory: TR rows of 32 columns by 256 threads are TR / 32 pieces of 8 columns. */
template <int N> struct cargo { uint4 v[N]; };

template <int KIND, int N>
static __device__ __forceinline__ void fetch_weights(cargo<N> &g, const qn_wmat &w, int r0, int c0)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int e = (int)threadIdx.x + 256 * i, r = r0 + e / 4, c = c0 + e % 4 * 8;
        g.v[i] = make_uint4(0, 0, 0, 0);
        if (r < (int)w.rows && c < (int)w.cols)
            g.v[i] = weights_half8<KIND>(at<const uint8_t>(w.at) + (size_t)r * w.row_bytes, w, c);
    }
}

/* 16 bytes into shared memory, past the registers; zeros where there is nothing. */
static __device__ __forceinline__ void copy16(__half *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}

/* n rows of a tile, of a matrix of halves whose rows are row_bytes apart */
template <int N>
static __device__ __forceinline__ void copy_tile(__half *tile, uint64_t matrix, size_t row_bytes, int r0, int rows, int c0, int cols)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int e = (int)threadIdx.x + 256 * i, r = r0 + e / 4, c = c0 + e % 4 * 8;
        const bool there = r < rows && c < cols;
        copy16(tile + e / 4 * PITCH + e % 4 * 8, at<const uint8_t>(matrix) + (there ? (size_t)r * row_bytes + 2 * (size_t)c : 0), there);
    }
}

template <int N> static __device__ __forceinline__ void put(const cargo<N> &g, __half *tile)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int e = (int)threadIdx.x + 256 * i;
        *reinterpret_cast<uint4 *>(tile + e / 4 * PITCH + e % 4 * 8) = g.v[i];
    }
}

/* One tile's products of a warp: 16 * MT rows of x with 8 * NT rows of w. */
template <int MT, int NT>
static __device__ __forceinline__ void multiply(float (&acc)[MT][NT][4], const __half *x, const __half *w, int lane)
{
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        uint32_t a[MT][4], b[NT / 2][4];
#pragma unroll
        for (int m = 0; m < MT; m++) ldmatrix4(a[m], x + (16 * m + lane % 16) * PITCH + k + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < NT / 2; n++)
            ldmatrix4(b[n], w + (16 * n + lane % 8 + lane / 16 * 8) * PITCH + k + lane / 8 % 2 * 8);
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < NT; n++) mma(acc[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
    }
}

template <int MT, int NT>
static __device__ __forceinline__ void store(const float (&acc)[MT][NT][4], const qn_clinear &a, int t0, int r0, int lane)
{
    const int rows = (int)a.w.rows;
    const float *bias = at<const float>(a.bias);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        const int r = r0 + 8 * n + lane % 4 * 2;
        const float b0 = bias && r < rows ? bias[r] : 0.f, b1 = bias && r + 1 < rows ? bias[r + 1] : 0.f;
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int t = t0 + 16 * m + lane / 4 + 8 * h;
                if (t >= a.n) continue;
                float *y = at<float>(a.y) + (size_t)t * rows + r;
                if (r < rows) y[0] = acc[m][n][2 * h] + b0;
                if (r + 1 < rows) y[1] = acc[m][n][2 * h + 1] + b1;
            }
    }
}

#define STAGES 4            /* tiles of x (and of f16 weights) on their way or in use */

template <int KIND, int MT, int NT> static __device__ __forceinline__ void gemm(const qn_clinear &a)
{
    extern __shared__ __align__(16) __half smem[];
    const int BT = 32 * MT, BR = 32 * NT, STAGE = (BT + BR) * PITCH; /* 2 warps by 4 */
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, t0 = (int)blockIdx.y * BT, r0 = (int)blockIdx.x * BR;
    const int wt = warp / 4 * 16 * MT, wr = warp % 4 * 8 * NT, cols = (int)a.w.cols, tiles = (cols + BK - 1) / BK;
    float acc[MT][NT][4] = {};
    cargo<BR / 64> w;
    const auto begin = [&](int j) { /* tile j on its way */
        __half *xs = smem + j % STAGES * STAGE;
        if (j < tiles) {
            copy_tile<BT / 64>(xs, a.x, 2 * (size_t)cols, t0, a.n, j * BK, cols);
            if (KIND == QN_W_f16) copy_tile<BR / 64>(xs + BT * PITCH, a.w.at, a.w.row_bytes, r0, (int)a.w.rows, j * BK, cols);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int j = 0; j < STAGES - 1; j++) begin(j);
    if (KIND != QN_W_f16) {
        fetch_weights<KIND>(w, a.w, r0, 0);
        put(w, smem + BT * PITCH);
    }
    for (int j = 0; j < tiles; j++) {
        const __half *xs = smem + j % STAGES * STAGE;
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();
        begin(j + STAGES - 1);
        if (KIND != QN_W_f16 && j + 1 < tiles) fetch_weights<KIND>(w, a.w, r0, (j + 1) * BK);
        multiply<MT, NT>(acc, xs + wt * PITCH, xs + (BT + wr) * PITCH, lane);
        if (KIND != QN_W_f16 && j + 1 < tiles) put(w, smem + (j + 1) % STAGES * STAGE + BT * PITCH);
    }
    store<MT, NT>(acc, a, t0 + wt, r0 + wr, lane);
}

/* Activations as f16, held within its range: once for all matrices that read them. n is a multiple of 4. */
extern "C" __global__ void qn_narrow(const qn_cadd a, const uint64_t stamp)
{
    step_begins(stamp);
    const uint32_t i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= a.n) return;
    const float4 v = *reinterpret_cast<const float4 *>(at<const float>(a.y) + i);
    *reinterpret_cast<uint2 *>(at<__half>(a.x) + i) = make_uint2(pack2(v.x, v.y), pack2(v.z, v.w));
}

/* Tiles of 128 x 128 where there are enough of them for every multiprocessor, else smaller ones. */
#define ONE(kind, mt, nt)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256) qn_gemm_##kind##_##mt##_##nt(const qn_clinear a, const uint64_t stamp) \
    {                                                                                                                    \
        step_begins(stamp);                                                                                              \
        gemm<QN_W_##kind, mt, nt>(a);                                                                                    \
    }
#define GEMM(kind) ONE(kind, 4, 4) ONE(kind, 4, 2) ONE(kind, 2, 2)
GEMM(f16)
GEMM(bf16)
GEMM(q8)
GEMM(q4)
GEMM(q4m)
GEMM(q6)

/* flash.cu - attention of many rows, on the tensor cores. A block has 64 rows of one head, a warp 16 of them; keys and values come
 * page by page into shared memory, 64 tokens at a time, the next ones while these are used, and scores never leave the registers:
 * a running maximum and sum make the softmax. Rows of several sequences are taken run by run: a run is rows of one sequence, one
 * behind the other. For heads of 64 and 128 values in an f16 cache; fused.cu and ops.cu have the rest. */
#include "kernel/cuda/grid.cuh"
#include "kernel/cuda/mma.cuh"
#include "kernel/cuda/weights.cuh"

#define ROWS 64
#define TOKENS 64

static __device__ __forceinline__ void ldmatrix4_turned(uint32_t r[4], const __half *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((uint32_t)__cvta_generic_to_shared(p)));
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

/* 16 bytes into shared memory, past the registers; zeros where there is nothing. */
static __device__ __forceinline__ void copy16(__half *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}

/* Tokens p0.. of one KV head, keys and values behind them, on their way; what lies behind the last is zero. */
template <int D>
static __device__ __forceinline__ void bring(const qn_cattend &a, const int *pages, int kv, int p0, int last, __half *to)
{
    const size_t row_bytes = 2 * (size_t)a.n_kv * D;
#pragma unroll
    for (int e = (int)threadIdx.x; e < TOKENS * D / 8; e += 128) {
        const int i = e / (D / 8), c = e % (D / 8) * 8, p = p0 + i;
        const int page = p <= last ? pages[p / QN_CPAGE] : -1; /* -1 too: no window sees it any more */
        const uint8_t *row = at<const uint8_t>(a.cache) + (size_t)max(page, 0) * a.stride +
                             (size_t)(p % QN_CPAGE) * row_bytes + 2 * ((size_t)kv * D + c);
        copy16(to + i * (D + 8) + c, row, page >= 0);
        copy16(to + (TOKENS + i) * (D + 8) + c, row + QN_CPAGE * row_bytes, page >= 0);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
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
static __device__ __forceinline__ void weigh(float s[TOKENS / 8][4], const qn_cattend &a, int p0, const int pos[2], int lane,
                                             float top[2], float sum[2], float keep[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int at_ = pos[r], from = a.window ? at_ - a.window + 1 : 0;
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

/* Where the runs of rows b0.. begin, a bit each. */
static __device__ __forceinline__ uint64_t runs_of(const qn_cattend &a, int b0)
{
    __shared__ uint32_t begins[2];
    const int t = b0 + (int)threadIdx.x, *pos = at<const int>(a.at.pos), *first = at<const int>(a.at.first);
    if (threadIdx.x < ROWS) {
        const bool begin = threadIdx.x == 0 || t >= a.n || first[t] != first[t - 1] || pos[t] != pos[t - 1] + 1;
        const uint32_t bits = __ballot_sync(~0u, begin);
        if (threadIdx.x % 32 == 0) begins[threadIdx.x / 32] = bits;
    }
    __syncthreads();
    return (uint64_t)begins[1] << 32 | begins[0];
}

template <int D> struct state { uint32_t q[D / 16][4]; float o[D / 8][4], top[2], sum[2]; };

/* Rows from..to-1 of the block; others stay as they are. Shared memory: two places for keys and values. */
template <int D>
static __device__ __forceinline__ void run(state<D> &w, const qn_cattend &a, int b0, int from, int to, int kv, __half *places)
{
    const int PLACE = 2 * TOKENS * (D + 8);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, row = 16 * warp + lane / 4;
    const int begin = at<const int>(a.at.pos)[b0 + from], last = begin + to - 1 - from;
    const int *pages = at<const int>(a.at.pages) + at<const int>(a.at.first)[b0 + from];
    int pos[2]; /* of this lane's rows; -1: it sees nothing */
    for (int r = 0; r < 2; r++) pos[r] = row + 8 * r >= from && row + 8 * r < to ? begin + row + 8 * r - from : -1;
    const int seen = (a.window ? max(0, begin - a.window + 1) : 0) / TOKENS * TOKENS;
    bring<D>(a, pages, kv, seen, last, places);
    for (int p0 = seen, i = 0; p0 <= last; p0 += TOKENS, i ^= 1) {
        const __half *ks = places + i * PLACE, *vs = ks + PLACE / 2;
        float s[TOKENS / 8][4] = {}, keep[2];
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads(); /* these are there, and nobody uses the other place any more */
        if (p0 + TOKENS <= last) bring<D>(a, pages, kv, p0 + TOKENS, last, places + (i ^ 1) * PLACE);
        score<D>(s, w.q, ks, lane);
        weigh(s, a, p0, pos, lane, w.top, w.sum, keep);
        gather<D>(w.o, s, vs, keep, lane);
    }
    __syncthreads();
}

template <int D> static __device__ __forceinline__ void flash(const qn_cattend &a, uint64_t stamp)
{
    extern __shared__ __align__(16) __half places[];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, h = (int)blockIdx.y, kv = h / (a.n_head / a.n_kv);
    const int b0 = ((int)gridDim.x - 1 - (int)blockIdx.x) * ROWS, t0 = b0 + 16 * warp; /* the longest contexts first */
    state<D> w = {};
    w.top[0] = w.top[1] = -INFINITY;
    let_next_start();
    wait_for_last();
    step_begins(stamp);
    load_q<D>(a, t0, h, lane, w.q);
    const uint64_t begins = runs_of(a, b0);
    for (int from = 0, n = min(ROWS, a.n - b0); from < n;) {
        const uint64_t rest = from < ROWS - 1 ? begins >> (from + 1) : 0;
        const int to = min(n, rest ? from + __ffsll((long long)rest) : ROWS);
        run<D>(w, a, b0, from, to, kv, places);
        from = to;
    }
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int t = t0 + lane / 4 + 8 * r;
            if (t >= a.n) continue;
            const size_t to = ((size_t)t * a.n_head + h) * D + 8 * n + lane % 4 * 2;
            const float x = __fdividef(w.o[n][2 * r], w.sum[r]), y = __fdividef(w.o[n][2 * r + 1], w.sum[r]);
            if (a.half) *reinterpret_cast<uint32_t *>(at<__half>(a.y) + to) = pack2(x, y);
            else *reinterpret_cast<float2 *>(at<float>(a.y) + to) = make_float2(x, y);
        }
}

extern "C" __global__ void __launch_bounds__(128) qn_flash_64(const qn_cattend a, const uint64_t stamp) { flash<64>(a, stamp); }
extern "C" __global__ void __launch_bounds__(128) qn_flash_128(const qn_cattend a, const uint64_t stamp) { flash<128>(a, stamp); }

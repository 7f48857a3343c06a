/* wgmma.cu - linears over two rows and more on Hopper's tensor cores (sm_90a): y[t, r] = x[t, :] * w[r, :]. Weights are the left
 * operand, so that a tile is 128 rows of w and as few as 16 rows of x: prompts and the tokens of some sequences take the same way.
 * One warpgroup brings tiles of 64 columns into a ring of stages: x (f16) and f16 weights by the copy engine; others come as they
 * are stored, into a ring of their own, and are decoded to f16 once per tile. Two warpgroups multiply 64 rows each, with float sums. Where a matrix has fewer tiles than the chip has room
 * for, the blocks of a cluster share its columns and add up through each other's shared memory, in a fixed order.
 * Bias, residual and gate are part of the end. On other chips gemm.cu does the work. */
#include "kernel/cuda/grid.cuh"
#include "kernel/cuda/weights.cuh"
#include "kernel/cuda/wgmma.cuh"

#define ROWS (2 * QN_GEMM_HALF)
#define COLS QN_GEMM_COLS
#define A_BYTES (ROWS * COLS * 2)
#define PITCH (ROWS + 4)    /* floats from row to row of x in the end's staging: neighbours fall into different banks */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* ---- barriers in shared memory, copies */

static __device__ __forceinline__ void bar_init(uint32_t bar, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(n) : "memory");
}

static __device__ __forceinline__ void bar_expect(uint32_t bar, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void bar_arrive(uint32_t bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
}

static __device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

static __device__ __forceinline__ void copy_box(uint32_t to, const qn_tmap &map, int col, int row, uint32_t bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(reinterpret_cast<uint64_t>(&map)), "r"(col), "r"(row), "r"(bar) : "memory");
}

/* the float4 at this shared address in block `rank` of the cluster */
static __device__ __forceinline__ float4 read4_of(uint32_t address, int rank)
{
    float4 v;
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %4, %5; ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [a]; }"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address), "r"(rank) : "memory");
    return v;
}

/* ---- weights that are not f16: 16 bytes of values at a time, decoded in pairs. A byte under the exponent of 1,024 is a number. */

template <int KIND> struct unit { uint4 v; uint2 high; uint32_t scale; };

/* weights in 16 bytes of values */
static __device__ __forceinline__ constexpr int per_unit(int kind) { return kind == QN_W_q8 ? 16 : kind == QN_W_bf16 ? 8 : 32; }

/* Columns c.. of a row of a stage of stored values; scales: of the row, from the 64 columns' first on. */
template <int KIND>
static __device__ __forceinline__ void take(unit<KIND> &u, const uint8_t *raw, const uint8_t *scales, int row, int c, bool there)
{
    u.v = *reinterpret_cast<const uint4 *>(raw + row * QN_GEMM_VALUES(KIND) + c / per_unit(KIND) * 16);
    u.scale = 0;
    if (KIND == QN_W_bf16 && !there) u.v = make_uint4(0, 0, 0, 0);
    if (KIND == QN_W_q8 || KIND == QN_W_q4) u.scale = reinterpret_cast<const uint16_t *>(scales)[c / 32];
    if (KIND == QN_W_q4m || KIND == QN_W_q6) u.scale = reinterpret_cast<const uint32_t *>(scales)[c / 32];
    if (KIND == QN_W_q6) u.high = *reinterpret_cast<const uint2 *>(raw + ROWS * QN_GEMM_VALUES(KIND) + row * 16 + c / 32 * 8);
    if (!there) u.scale = 0; /* behind the last column lies anything */
}

static __device__ __forceinline__ __half2 pair(uint32_t bits) { return *reinterpret_cast<const __half2 *>(&bits); }
static __device__ __forceinline__ uint32_t bits(__half2 v) { return *reinterpret_cast<const uint32_t *>(&v); }

/* four bytes, 0..255: two pairs of (byte - zero) * s, or (byte - zero) * s + m */
template <bool MIN> static __device__ __forceinline__ uint2 four(uint32_t q, uint32_t zero, __half2 s, __half2 m)
{
    const __half2 a = __hsub2(pair(__byte_perm(q, 0x64646464, 0x4140)), pair(zero));
    const __half2 b = __hsub2(pair(__byte_perm(q, 0x64646464, 0x4342)), pair(zero));
    return MIN ? make_uint2(bits(__hfma2(a, s, m)), bits(__hfma2(b, s, m))) : make_uint2(bits(__hmul2(a, s)), bits(__hmul2(b, s)));
}

static __device__ __forceinline__ uint32_t narrow2(uint32_t v) /* two bf16 */
{
    const float a = __uint_as_float(v << 16), b = __uint_as_float(v & 0xFFFF0000u);
    return bits(__floats2half2_rn(fminf(fmaxf(a, -65504.f), 65504.f), fminf(fmaxf(b, -65504.f), 65504.f)));
}

static __device__ __forceinline__ void put(uint32_t row_at, int piece, int row, uint2 a, uint2 b)
{
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};"
                 :: "r"(row_at + (uint32_t)((piece ^ (row & 7)) << 4)), "r"(a.x), "r"(a.y), "r"(b.x), "r"(b.y) : "memory");
}

/* four bytes of 4 * (q - 32) and anything in their last bits: q */
static __device__ __forceinline__ uint32_t six(uint32_t v) { return (v ^ 0x80808080u) >> 2 & 0x3F3F3F3Fu; }

/* One unit into its row of a stage; c: its first column there. */
template <int KIND> static __device__ __forceinline__ void decode(const unit<KIND> &u, uint32_t tile, int row, int c)
{
    const uint32_t v[4] = { u.v.x, u.v.y, u.v.z, u.v.w }, at_ = tile + (uint32_t)row * 128;
    const __half2 s = pair(KIND == QN_W_q8 || KIND == QN_W_q4 ? u.scale * 0x10001u : u.scale);
    const __half2 low = __low2half2(s), high = __high2half2(s);
    if (KIND == QN_W_bf16) put(at_, c / 8, row, make_uint2(narrow2(v[0]), narrow2(v[1])), make_uint2(narrow2(v[2]), narrow2(v[3])));
#pragma unroll
    for (int j = 0; j < (KIND == QN_W_bf16 ? 0 : 4); j += 2) {
        if (KIND == QN_W_q8) {
            put(at_, c / 8 + j / 2, row, four<false>(v[j] ^ 0x80808080, 0x64806480, s, s),
                four<false>(v[j + 1] ^ 0x80808080, 0x64806480, s, s));
            continue;
        }
        uint32_t q[4] = { v[j] & 0x0F0F0F0F, v[j + 1] & 0x0F0F0F0F, v[j] >> 4 & 0x0F0F0F0F, v[j + 1] >> 4 & 0x0F0F0F0F };
        if (KIND == QN_W_q6) {
            q[0] = six(j ? u.high.x : v[0]), q[1] = six(j ? last_sixes(v[0], v[1], u.high.x) : v[1]);
            q[2] = six(j ? u.high.y : v[2]), q[3] = six(j ? last_sixes(v[2], v[3], u.high.y) : v[3]);
        }
        const uint32_t zero = KIND == QN_W_q4 ? 0x64086408 : KIND == QN_W_q6 ? 0x64206420 : 0x64006400;
        const __half2 s0 = KIND == QN_W_q4 ? s : low, s1 = KIND == QN_W_q6 ? high : s0;
        put(at_, c / 8 + j / 2, row, four<KIND == QN_W_q4m>(q[0], zero, s0, high), four<KIND == QN_W_q4m>(q[1], zero, s0, high));
        put(at_, c / 8 + 2 + j / 2, row, four<KIND == QN_W_q4m>(q[2], zero, s1, high), four<KIND == QN_W_q4m>(q[3], zero, s1, high));
    }
}

/* ---- a tile */

template <int KIND, int BN> struct shape { /* BN: rows of x */
    static const int stages = QN_GEMM_STAGES(KIND, BN), stage = QN_GEMM_STAGE(BN), raws = QN_GEMM_RAWS(KIND, BN),
                     raw = QN_GEMM_RAW(KIND), slots = QN_GEMM_SLOTS(KIND, BN), slot = ROWS * QN_GEMM_SCALES(KIND);
};

struct place { int mat[2], row[2]; }; /* of the tile's halves */

static __device__ __forceinline__ place place_of(const qn_cgemm &a, int tile)
{
    if (a.out >= QN_GEMM_silu) return { { 0, 1 }, { QN_GEMM_HALF * tile, QN_GEMM_HALF * tile } };
    const int m = tile < (int)a.m[0].end ? 0 : tile < (int)a.m[1].end ? 1 : 2;
    const int row = ROWS * (tile - (m ? (int)a.m[m - 1].end : 0));
    return { { m, m }, { row, row + QN_GEMM_HALF } };
}

struct tile {
    place p;
    int t0, begin, end;         /* first row of x; tiles of columns */
    uint8_t *ring, *raw, *slots; /* shared memory: stages; stages of stored values; scales */
    uint32_t full, empty, raw_full, raw_empty; /* barriers of the stages */
};

/* The first stages' weights are on their way before the kernel in front has ended. */
template <int BN> static __device__ __forceinline__ void bring_f16(const qn_cgemm &a, const tile &k)
{
    typedef shape<QN_W_f16, BN> S;
    if (threadIdx.x != 0) return wait_for_last();
    const uint32_t ring = shared_at(k.ring);
    const auto weights = [&](int i) {
        const uint32_t stage = ring + (uint32_t)(i % S::stages * S::stage), bar = k.full + 8 * (uint32_t)(i % S::stages);
        bar_expect(bar, S::stage);
        copy_box(stage, a.map[k.p.mat[0]], (k.begin + i) * COLS, k.p.row[0], bar);
        copy_box(stage + A_BYTES / 2, a.map[k.p.mat[1]], (k.begin + i) * COLS, k.p.row[1], bar);
    };
    const int n = k.end - k.begin;
    for (int i = 0; i < S::stages && i < n; i++) weights(i);
    wait_for_last();
    for (int i = 0; i < n; i++) {
        const int s = i % S::stages;
        if (i >= S::stages) {
            bar_wait(k.empty + 8 * (uint32_t)s, (uint32_t)(i / S::stages - 1) & 1);
            weights(i);
        }
        copy_box(ring + (uint32_t)(s * S::stage) + A_BYTES, a.x, (k.begin + i) * COLS, k.t0, k.full + 8 * (uint32_t)s);
    }
}

/* One thread: stored values of the i-th tile of columns on their way; with every fourth, the scales of 256 columns. */
template <int KIND, int BN> static __device__ __forceinline__ void bring_raw(const qn_cgemm &a, const tile &k, int i)
{
    typedef shape<KIND, BN> S;
    const int V = QN_GEMM_VALUES(KIND), H = QN_GEMM_HIGHS(KIND), C = QN_GEMM_SCALES(KIND), j = k.begin + i, s = i % S::raws;
    const uint32_t raw = shared_at(k.raw) + (uint32_t)(s * S::raw), bar = k.raw_full + 8 * (uint32_t)s;
    const uint32_t slot = shared_at(k.slots) + (uint32_t)(j / 4 % S::slots * S::slot);
    const bool scales = C && (j % 4 == 0 || i == 0);
    const qn_wmat &w = a.m[0].w; /* all have its layout */
    bar_expect(bar, S::raw + (scales ? S::slot : 0));
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const qn_tmap &map = a.map[k.p.mat[h]], &fine = a.fine[k.p.mat[h]];
        const int row = k.p.row[h];
        copy_box(raw + (uint32_t)(h * QN_GEMM_HALF * V), map, j * V, row, bar);
        if (H) copy_box(raw + (uint32_t)(ROWS * V + h * QN_GEMM_HALF * H), fine, (int)w.high + j * H, row, bar);
        if (scales) copy_box(slot + (uint32_t)(h * QN_GEMM_HALF * C), C == 16 ? fine : map, (int)w.scale + j / 4 * C, row, bar);
    }
}

/* A warpgroup: stored values to f16. */
template <int KIND, int BN> static __device__ __forceinline__ void decode_all(const qn_cgemm &a, const tile &k)
{
    typedef shape<KIND, BN> S;
    const int PER = per_unit(KIND), N = COLS / PER, STEP = 128 / N; /* units of a row, which is also those of a thread */
    const int first = (int)threadIdx.x / N, c = (int)threadIdx.x % N * PER, C = QN_GEMM_SCALES(KIND);
    for (int i = 0; threadIdx.x == 0 && i < S::raws && i < k.end - k.begin; i++) bring_raw<KIND, BN>(a, k, i);
    wait_for_last();
    for (int j = k.begin, i = 0; j < k.end; j++, i++) {
        const int s = i % S::stages, r = i % S::raws;
        const uint32_t stage = shared_at(k.ring) + (uint32_t)(s * S::stage), bar = k.full + 8 * (uint32_t)s;
        const uint8_t *raw = k.raw + r * S::raw, *scales = k.slots + j / 4 % S::slots * S::slot + j % 4 * (C / 4);
        unit<KIND> u[N];
        bar_wait(k.raw_full + 8 * (uint32_t)r, (uint32_t)(i / S::raws) & 1);
#pragma unroll
        for (int n = 0; n < N; n++)
            take<KIND>(u[n], raw, scales + (first + STEP * n) * C, first + STEP * n, c, j * COLS + c < (int)a.m[0].w.cols);
        __syncwarp();
        if (threadIdx.x % 32 == 0) bar_arrive(k.raw_empty + 8 * (uint32_t)r);
        if (i >= S::stages) bar_wait(k.empty + 8 * (uint32_t)s, (uint32_t)(i / S::stages - 1) & 1);
        if (threadIdx.x == 0) {
            if (j + S::raws < k.end) {
                bar_wait(k.raw_empty + 8 * (uint32_t)r, (uint32_t)(i / S::raws) & 1);
                bring_raw<KIND, BN>(a, k, i + S::raws);
            }
            bar_expect(bar, S::stage - A_BYTES);
            copy_box(stage + A_BYTES, a.x, j * COLS, k.t0, bar);
        }
#pragma unroll
        for (int n = 0; n < N; n++) decode<KIND>(u[n], stage, first + STEP * n, c);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        bar_arrive(bar);
    }
}

template <int KIND, int BN> static __device__ __forceinline__ void multiply(float (&acc)[BN / 2], const tile &k, int half)
{
    typedef shape<KIND, BN> S;
    const int N = BN < 128 ? BN : 128;
    for (int j = k.begin, i = 0; j < k.end; j++, i++) {
        const int s = i % S::stages;
        const uint32_t stage = shared_at(k.ring) + (uint32_t)(s * S::stage);
        const uint64_t w = operand(stage + (uint32_t)half * (A_BYTES / 2)), x = operand(stage + A_BYTES);
        bar_wait(k.full + 8 * (uint32_t)s, (uint32_t)(i / S::stages) & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int c = 0; c < COLS / 16; c++)
#pragma unroll
            for (int n = 0; n < BN / N; n++) product<N>(acc + n * (N / 2), w + 2 * c, x + 2 * c + n * (N * 128 >> 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (i > 0 && threadIdx.x % 32 == 0) bar_arrive(k.empty + 8 * (uint32_t)((i - 1) % S::stages));
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* The sums of a half into the staging: [BN] rows of x, PITCH floats each. */
template <int BN> static __device__ __forceinline__ void stage_sums(const float (&acc)[BN / 2], float *to, int half)
{
    const int lane = (int)threadIdx.x % 32, row = QN_GEMM_HALF * half + (int)threadIdx.x / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < BN / 2; i++) to[(i / 4 * 8 + lane % 4 * 2 + i % 2) * PITCH + row + i / 2 % 2 * 8] = acc[i];
}

static __device__ __forceinline__ float4 sum_of(const float *from, int split)
{
    if (split == 1) return *reinterpret_cast<const float4 *>(from);
    float4 v = read4_of(shared_at(from), 0);
    for (int i = 1; i < split; i++) {
        const float4 o = read4_of(shared_at(from), i);
        v.x += o.x, v.y += o.y, v.z += o.z, v.w += o.w;
    }
    return v;
}

static __device__ __forceinline__ void add_bias(float v[4], uint64_t bias, int r, int rows)
{
    if (bias)
        for (int i = 0; i < 4; i++)
            if (r + i < rows) v[i] += at<const float>(bias)[r + i];
}

static __device__ __forceinline__ void end_plain(const qn_cgemm &a, const place &p, float4 sum, int t, int r4)
{
    const qn_cmat &m = a.m[p.mat[0]];
    const int rows = (int)m.w.rows, r = p.row[0] + r4;
    float *y = at<float>(m.y) + (size_t)t * rows + r, v[4] = { sum.x, sum.y, sum.z, sum.w };
    add_bias(v, m.bias, r, rows);
    if (rows % 4 == 0 && r < rows) {
        float4 *y4 = reinterpret_cast<float4 *>(y);
        const float4 before = a.out == QN_GEMM_add ? *y4 : make_float4(0, 0, 0, 0);
        *y4 = make_float4(before.x + v[0], before.y + v[1], before.z + v[2], before.w + v[3]);
        return;
    }
    for (int i = 0; i < 4; i++)
        if (r + i < rows) y[i] = a.out == QN_GEMM_add ? y[i] + v[i] : v[i];
}

static __device__ __forceinline__ float gate_of(float x, bool gelu)
{
    if (gelu) return 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    return x / (1.f + __expf(-x));
}

/* rows r4.. of gate and up as f16 values of act(gate) * up */
static __device__ __forceinline__ void end_gated(const qn_cgemm &a, const place &p, float4 gate, float4 up, int t, int r4)
{
    const int rows = (int)a.m[0].w.rows, r = p.row[0] + r4; /* a multiple of 4: the host looked */
    float g[4] = { gate.x, gate.y, gate.z, gate.w }, u[4] = { up.x, up.y, up.z, up.w };
    if (r >= rows) return;
    add_bias(g, a.m[0].bias, r, rows);
    add_bias(u, a.m[1].bias, r, rows);
    for (int i = 0; i < 4; i++) g[i] = fminf(fmaxf(gate_of(g[i], a.out == QN_GEMM_gelu) * u[i], -65504.f), 65504.f);
    *reinterpret_cast<uint2 *>(at<__half>(a.m[0].y) + (size_t)t * rows + r) =
        make_uint2(bits(__floats2half2_rn(g[0], g[1])), bits(__floats2half2_rn(g[2], g[3])));
}

/* What every block of the cluster has staged, added up and written; each takes its share of the rows of x. */
template <int BN> static __device__ __forceinline__ void finish(const qn_cgemm &a, const tile &k, const float *staged)
{
    const bool gated = a.out >= QN_GEMM_silu;
    const int wide = gated ? 16 : 32, at_ = (int)threadIdx.x / wide, r4 = (int)threadIdx.x % wide * 4;
    for (int t = at_ * a.split + (int)blockIdx.x % a.split; t < BN && k.t0 + t < a.n; t += 384 / wide * a.split) {
        const float *from = staged + t * PITCH + r4;
        if (gated) end_gated(a, k.p, sum_of(from, a.split), sum_of(from + QN_GEMM_HALF, a.split), k.t0 + t, r4);
        else end_plain(a, k.p, sum_of(from, a.split), k.t0 + t, r4);
    }
}

template <int KIND, int BN> static __device__ __forceinline__ void gemm(const qn_cgemm &a, uint64_t stamp)
{
    typedef shape<KIND, BN> S;
    extern __shared__ uint8_t dynamic[];
    __shared__ __align__(8) uint64_t bars[2 * S::stages + 2 * S::raws];
    uint8_t *ring = dynamic + (-shared_at(dynamic) & 1023), *raw = ring + S::stages * S::stage;
    const int tiles = ((int)a.m[0].w.cols + COLS - 1) / COLS, rank = (int)blockIdx.x % a.split, group = (int)threadIdx.x / 128;
    const tile k = { place_of(a, (int)blockIdx.y), (int)blockIdx.x / a.split * BN, tiles * rank / a.split,
                     tiles * (rank + 1) / a.split, ring, raw, raw + S::raws * S::raw, shared_at(bars),
                     shared_at(bars + S::stages), shared_at(bars + 2 * S::stages), shared_at(bars + 2 * S::stages + S::raws) };
    let_next_start();
    if (threadIdx.x == 0) {
        for (int s = 0; s < S::stages; s++) {
            bar_init(k.full + 8 * (uint32_t)s, KIND == QN_W_f16 ? 1 : 129);
            bar_init(k.empty + 8 * (uint32_t)s, 8);
        }
        for (int s = 0; s < (KIND == QN_W_f16 ? 0 : S::raws); s++) {
            bar_init(k.raw_full + 8 * (uint32_t)s, 1);
            bar_init(k.raw_empty + 8 * (uint32_t)s, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (group > 0) {
        float acc[BN / 2] = {};
        wait_for_last();
        step_begins(stamp, 128);
        multiply<KIND, BN>(acc, k, group - 1);
        __syncthreads(); /* nobody reads the stages any more */
        stage_sums<BN>(acc, reinterpret_cast<float *>(ring), group - 1);
    } else {
        if constexpr (KIND == QN_W_f16) bring_f16<BN>(a, k);
        else decode_all<KIND, BN>(a, k);
        __syncthreads();
    }
    if (a.split > 1) cluster_sync();
    else __syncthreads();
    finish<BN>(a, k, reinterpret_cast<const float *>(ring));
    if (a.split > 1) cluster_sync(); /* a block's shared memory stays until all have read it */
}
#define BODY(kind, bn) gemm<QN_W_##kind, bn>(a, stamp);
#else
#define BODY(kind, bn)
#endif

#define ONE(kind, bn, blocks)                                                                              \
    extern "C" __global__ void __launch_bounds__(384, blocks)                                              \
    qn_wg_##kind##_##bn(const __grid_constant__ qn_cgemm a, const uint64_t stamp)                          \
    { BODY(kind, bn) }
#define ALL(kind) ONE(kind, 16, 2) ONE(kind, 32, 2) ONE(kind, 64, 2) ONE(kind, 128, 1) ONE(kind, 256, 1)
ALL(f16)
ALL(bf16)
ALL(q8)
ALL(q4)
ALL(q4m)
ALL(q6)

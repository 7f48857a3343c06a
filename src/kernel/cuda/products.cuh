/* products.cuh - eight rows of a stage with the input, on the tensor cores. The rows are the 8 columns of an mma; its 16 rows are the
 * input, in two forms whose sum is exact enough: halves and what they round off, or the high and the low byte of 16-bit integers.
 * A lane brings 16 bytes of row lane / 4, whatever the type; which columns these are does not matter, as long as the input's
 * lanes bring the same ones. Quantised blocks must not be mixed before their scales are known: so each block has an mma row of
 * its own, where only the lanes that hold its columns have something else than zero. Eight blocks are then eight sums in eight
 * lanes, and every lane scales its own.
 * Lanes: g = lane / 4, q = lane % 4. Sums: rows 2q and 2q + 1 of the weights; whoever adds up all g has the product. */
#pragma once
#include "kernel/cuda/ring.cuh"

/* Where a warp's work of a stage lies. */
struct work {
    uint32_t row;             /* of this lane, its first chunk */
    uint32_t scale0, scale1;  /* scales of rows 2q and 2q + 1, from the stage's first block */
    uint32_t high;            /* of this lane's row */
    uint32_t first, last;     /* chunks of this warp in the stage */
    uint32_t chunk, n_units;  /* of the stage, see qn_stage */
    uint32_t input, more, zero; /* shared memory: this kind's form; scales of integers; 16 bytes of zeros */
};

static __device__ __forceinline__ void mma_int(int c[4], uint4 a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

template <bool BF16>
static __device__ __forceinline__ void mma_half(float c[4], uint4 a, uint32_t b0, uint32_t b1)
{
    if (BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/* 16 bytes of chunk c; what lies behind the row's end is nothing. */
static __device__ __forceinline__ uint4 values(const work &w, uint32_t c, uint32_t q)
{
    return 4 * c + q < w.n_units ? lds16(w.row + 64 * c) : make_uint4(0, 0, 0, 0);
}

/* Four values of the input: two and what they lack, two and what they lack: an mma's operand. Only its rows 0 and 8 are used. */
template <bool BF16> static __device__ __forceinline__ void add_halves(const work &w, uint32_t lane, float &s0, float &s1)
{
    float c[2][4] = { { 0, 0, 0, 0 }, { 0, 0, 0, 0 } };
    const uint32_t q = lane % 4, step = lane < 4 ? 128 : 0;
    uint32_t in = lane < 4 ? w.input + ((w.chunk + w.first) * 4 + q) * 32 : w.zero;
    const uint32_t more = lane < 4 ? 16 : 0;
#pragma unroll 4
    for (uint32_t k = w.first; k < w.last; k++, in += step) {
        const uint4 b = values(w, k, q);
        mma_half<BF16>(c[0], lds16(in), b.x, b.y);
        mma_half<BF16>(c[1], lds16(in + more), b.z, b.w);
    }
    s0 += (c[0][0] + c[1][0]) + (c[0][2] + c[1][2]);
    s1 += (c[0][1] + c[1][1]) + (c[0][3] + c[1][3]);
}

static __device__ __forceinline__ void add_floats(const work &w, uint32_t lane, float &s0, float &s1)
{
    const uint32_t q = lane % 4;
    float s = 0;
#pragma unroll 2
    for (uint32_t k = w.first; k < w.last; k++) {
        const uint4 b = values(w, k, q), x = lds16(w.input + ((w.chunk + k) * 4 + q) * 16);
        s = fmaf(__uint_as_float(b.x), __uint_as_float(x.x), s);
        s = fmaf(__uint_as_float(b.y), __uint_as_float(x.y), s);
        s = fmaf(__uint_as_float(b.z), __uint_as_float(x.z), s);
        s = fmaf(__uint_as_float(b.w), __uint_as_float(x.w), s);
    }
    s += __shfl_xor_sync(~0u, s, 1);
    s += __shfl_xor_sync(~0u, s, 2);
    const float even = __shfl_sync(~0u, s, 8 * q), odd = __shfl_sync(~0u, s, 8 * q + 4); /* rows 2q, 2q + 1 */
    if (lane < 4) s0 += even, s1 += odd;
}

static __device__ __forceinline__ float joined(int high, int low) { return (float)(high * 128 + low); }

/* Bytes: a chunk is two blocks, lanes 2j and 2j + 1 of four have block j. Four chunks at a time. */
static __device__ __forceinline__ void add_q8(const work &w, uint32_t lane, float &s0, float &s1)
{
    const uint32_t g = lane / 4, q = lane % 4;
    const bool mine = (g & 1) == q >> 1;
    const uint32_t blocks = w.n_units / 2;
#pragma unroll 1
    for (uint32_t k = w.first; k < w.last; k += 4) {
        const uint32_t block = 2 * (w.chunk + k) + g;
        const bool there = k + g / 2 < w.last; /* this lane's block is this warp's */
        const uint32_t in = mine && there ? w.input + block * 64 + (q & 1) * 32 : w.zero;
        const uint4 a0 = lds16(in), a1 = lds16(mine && there ? in + 16 : in);
        int c[4][4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint4 b = values(w, k + j, q); /* those of the next warp are left out below */
            c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
            mma_int(c[j], a0, b.x, b.y);
            mma_int(c[j], a1, b.z, b.w);
        }
        int m[4];
#pragma unroll
        for (int i = 0; i < 4; i++) m[i] = g & 4 ? (g & 2 ? c[3][i] : c[2][i]) : g & 2 ? c[1][i] : c[0][i];
        const uint32_t here = 2 * k + g; /* in the stage */
        if (there && here < blocks) {
            float x;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(w.more + block * 16));
            s0 = fmaf(lds_half(w.scale0 + 2 * here) * x, joined(m[0], m[2]), s0);
            s1 = fmaf(lds_half(w.scale1 + 2 * here) * x, joined(m[1], m[3]), s1);
        }
    }
}

/* Weights of 4 and 6 bits as signed bytes, times a power of two: their top bit turned over and everything below it shifted to the
 * top of the byte is 16 * (w - 8), 4 * (w - 32). Those with a minimum stay as they are. shift: where the nibbles begin. */
template <int KIND, int SHIFT> static __device__ __forceinline__ uint32_t bytes_of(uint32_t w, uint32_t high)
{
    if (KIND == QN_W_q4) return ((SHIFT ? w : w << 4) & 0xF0F0F0F0u) ^ 0x80808080u;
    if (KIND == QN_W_q4m) return (SHIFT ? w >> 4 : w) & 0x0F0F0F0Fu;
    return (((SHIFT ? w >> 2 : w << 2) & 0x3C3C3C3Cu) | (high & 0xC0C0C0C0u)) ^ 0x80808080u;
}

/* high: two more bits for 16 values: word k of them has field k of each byte */
template <int KIND, int SHIFT> static __device__ __forceinline__ uint4 bytes_of(uint4 w, uint32_t high)
{
    return make_uint4(bytes_of<KIND, SHIFT>(w.x, high << 6), bytes_of<KIND, SHIFT>(w.y, high << 4), bytes_of<KIND, SHIFT>(w.z, high << 2),
                      bytes_of<KIND, SHIFT>(w.w, high));
}

/* One block of 32 with its scales: d0 of values 0..15, d1 of 16..31; x: scale of the input, its sum times scale. */
template <int KIND> static __device__ __forceinline__ float scaled(float d0, float d1, uint32_t scale, uint32_t block, float2 x)
{
    if (KIND == QN_W_q4) return lds_half(scale + 2 * block) * (x.x * 0.0625f) * d0;
    const float2 f = lds_half2(scale + 4 * block);
    if (KIND == QN_W_q4m) return fmaf(f.x * x.x, d0, f.y * x.y);
    return x.x * 0.25f * fmaf(f.x, d0, f.y * d1);
}

/* Nibbles: a chunk is four blocks, lane q has block q. Two chunks at a time. */
template <int KIND> static __device__ __forceinline__ void add_nibbles(const work &w, uint32_t lane, float &s0, float &s1)
{
    const uint32_t g = lane / 4, q = lane % 4;
    const bool mine = (g & 3) == q;
    constexpr bool SPLIT = KIND == QN_W_q6; /* a scale for each 16 */
#pragma unroll 1
    for (uint32_t k = w.first; k < w.last; k += 2) {
        const uint32_t block = 4 * (w.chunk + k) + g;
        const bool there = k + g / 4 < w.last;
        const bool real = mine && there;
        const uint32_t in = real ? w.input + block * 64 : w.zero, step = real ? 16 : 0;
        const uint4 a0 = lds16(in), a1 = lds16(in + step), a2 = lds16(in + 2 * step), a3 = lds16(in + 3 * step);
        int c[2][4], d[2][4];
#pragma unroll
        for (int j = 0; j < 2; j++) { /* those of the next warp are left out below */
#pragma unroll
            for (int i = 0; i < 4; i++) c[j][i] = d[j][i] = 0;
            const uint4 b = values(w, k + j, q);
            uint2 two = make_uint2(0, 0);
            if (SPLIT && 4 * (k + j) + q < w.n_units)
                asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(two.x), "=r"(two.y) : "r"(w.high + (4 * (k + j) + q) * 8));
            const uint4 b0 = bytes_of<KIND, 0>(b, two.x), b1 = bytes_of<KIND, 4>(b, two.y);
            mma_int(c[j], a0, b0.x, b0.y);
            mma_int(SPLIT ? d[j] : c[j], a2, b1.x, b1.y);
            mma_int(c[j], a1, b0.z, b0.w);
            mma_int(SPLIT ? d[j] : c[j], a3, b1.z, b1.w);
        }
        const uint32_t here = 4 * k + g;
        if (!there || here >= w.n_units) continue;
        int m[4], n[4];
#pragma unroll
        for (int i = 0; i < 4; i++) m[i] = g & 4 ? c[1][i] : c[0][i], n[i] = g & 4 ? d[1][i] : d[0][i];
        float2 x;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(w.more + block * 16));
        s0 += scaled<KIND>(joined(m[0], m[2]), SPLIT ? joined(n[0], n[2]) : 0.f, w.scale0, here, x);
        s1 += scaled<KIND>(joined(m[1], m[3]), SPLIT ? joined(n[1], n[3]) : 0.f, w.scale1, here, x);
    }
}

/* Where the forms of an input lie, from the start of the room for it; cols is a multiple of 256. */
struct forms { uint32_t floats, halves, ints, more; };

static __device__ __forceinline__ forms forms_of(uint32_t which, uint32_t cols)
{
    forms f;
    f.floats = 0;
    f.halves = which & QN_FORM_float ? 4 * cols : 0;
    f.ints = f.halves + (which & (QN_FORM_half | QN_FORM_bf16) ? 4 * cols : 0);
    f.more = f.ints + 2 * cols;
    return f;
}

/* This warp's part of a stage. stage: where it lies; input: the room for the input; warp: of its team. */
static __device__ __forceinline__ void add_stage(const qn_stage *s, uint32_t stage, uint32_t input, const forms &f, uint32_t zero,
                                                 uint32_t warp, float &s0, float &s1)
{
    const uint32_t lane = threadIdx.x % 32, g = lane / 4, q = lane % 4, kind = s->kind;
    const uint32_t half = s->rows_b ? warp & 1 : 0, turn = s->rows_b ? warp >> 1 : warp;
    const uint32_t rows = half ? s->rows_b : s->rows_a, row0 = half ? s->rows_a : 0, pitch = s->pitch, each = s->each;
    const uint32_t row = stage + (row0 + min(g, rows - 1)) * pitch;
    work w;
    w.row = row + 16 * q;
    w.high = row + s->high_at;
    w.scale0 = stage + (row0 + min(2 * q, rows - 1)) * pitch + s->scale_at;
    w.scale1 = stage + (row0 + min(2 * q + 1, rows - 1)) * pitch + s->scale_at;
    w.first = turn * each;
    w.last = min(w.first + each, (uint32_t)s->n_chunks);
    w.chunk = s->chunk;
    w.n_units = s->n_units;
    w.zero = zero;
    w.more = input + f.more;
    w.input = input + (kind == QN_W_f32 ? f.floats : kind <= QN_W_bf16 ? f.halves : f.ints);
    switch (kind) {
    case QN_W_f32: add_floats(w, lane, s0, s1); break;
    case QN_W_f16: add_halves<false>(w, lane, s0, s1); break;
    case QN_W_bf16: add_halves<true>(w, lane, s0, s1); break;
    case QN_W_q8: add_q8(w, lane, s0, s1); break;
    case QN_W_q4: add_nibbles<QN_W_q4>(w, lane, s0, s1); break;
    case QN_W_q4m: add_nibbles<QN_W_q4m>(w, lane, s0, s1); break;
    default: add_nibbles<QN_W_q6>(w, lane, s0, s1);
    }
}

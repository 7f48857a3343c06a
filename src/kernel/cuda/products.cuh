/* products.cuh - a few rows of a stage with the input, by one warp. A lane has a piece of every row: a block of 32 quantised weights
 * or 16 bytes of floats, and 32 pieces on the next; so all lanes read neighbouring 16 bytes, a block's scale belongs to one lane,
 * and what a lane reads of the input serves all rows. Quantised weights are multiplied as bytes with integers of 16 bits, floats as
 * floats. */
#pragma once
#include <stddef.h>

#include "kernel/cuda/ring.cuh"

/* Where an input lies in shared memory; columns in whole groups of 128. Integers of 16 bits: four planes of 16 bytes a block, which have
 * eight of its values each; behind them for each block its scale and the sum of its values. Behind these, if there are any, floats:
 * two planes, of 8 neighbours the first four and the others. */
struct input {
    uint32_t at, plane, floats; /* bytes of a plane of integers; where floats begin */
    __device__ __forceinline__ uint32_t more() const { return at + 4 * plane; }
    __device__ __forceinline__ uint32_t plane_f() const { return 4 * plane; }
};

static __device__ __forceinline__ input input_of(uint32_t room, uint32_t which, uint32_t cols)
{
    const uint32_t plane = ((cols + 127) & ~127u) / 2;
    return { room, plane, room + (which & QN_FORM_int ? 9 * plane / 2 : 0) };
}

/* What products need of a task, out of the first 32 of its 48 bytes (abi.h). */
struct task {
    uint4 a, b;
    __device__ __forceinline__ uint32_t at() const { return a.x; }
    __device__ __forceinline__ uint32_t pitch() const { return (a.z & 0xFFFF) * 16; }
    __device__ __forceinline__ uint32_t up() const { return (a.z >> 16) * 16; }
    __device__ __forceinline__ uint32_t high() const { return a.w & 0xFFFF; }
    __device__ __forceinline__ uint32_t scale() const { return a.w >> 16; }
    __device__ __forceinline__ uint32_t begin() const { return b.x & 0xFFFF; }
    __device__ __forceinline__ uint32_t end() const { return b.x >> 16; }
    __device__ __forceinline__ uint32_t piece() const { return b.y & 0xFFFF; }
    __device__ __forceinline__ uint32_t stage() const { return b.y >> 16; }
    __device__ __forceinline__ uint32_t part() const { return b.w & 255; }
    __device__ __forceinline__ uint32_t weight() const { return b.w >> 8 & 255; }
    __device__ __forceinline__ uint32_t flags() const { return b.w >> 16 & 255; }
    __device__ __forceinline__ uint32_t kind() const { return b.z >> 16 & 255; }
    __device__ __forceinline__ uint32_t rows() const { return b.z >> 24; }
};
static_assert(sizeof(qn_task) == 48 && offsetof(qn_task, high) == 12 && offsetof(qn_task, begin) == 16 && offsetof(qn_task, kind) == 26 &&
              offsetof(qn_task, part) == 28, "where these are in it");

/* Where its rows lie, half of them those of `up` where there is one: those past the end are the last one again. */
template <int ROWS> static __device__ __forceinline__ void rows_of(const task &t, uint32_t row[ROWS])
{
    const uint32_t pitch = t.pitch(), up = t.up(), n = t.rows();
    if (n == (up ? ROWS / 2 : ROWS)) {
        const uint32_t half = up ? up : ROWS / 2 * pitch;
#pragma unroll
        for (uint32_t r = 0; r < ROWS; r++) row[r] = t.at() + r % (ROWS / 2) * pitch + (r < ROWS / 2 ? 0 : half);
        return;
    }
#pragma unroll
    for (uint32_t r = 0; r < ROWS; r++) row[r] = t.at() + min(up ? r % (ROWS / 2) : r, n - 1) * pitch + (r < ROWS / 2 ? 0 : up);
}

struct ints { uint4 v[4]; float2 more; };

/* turned: with its halves exchanged, to go with weights that are. */
static __device__ __forceinline__ ints ints_of(const input &in, uint32_t piece, bool turned)
{
    ints x;
    const uint32_t at = in.at + 16 * piece, a = at + (turned ? 2 * in.plane : 0), b = at + (turned ? 0 : 2 * in.plane);
    x.v[0] = lds16(a), x.v[1] = lds16(a + in.plane), x.v[2] = lds16(b), x.v[3] = lds16(b + in.plane);
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.more.x), "=f"(x.more.y) : "r"(in.more() + 8 * piece));
    return x;
}

/* Two products of 16-bit integers of the input with bytes, signed or not: those of the lower half of `w`, or of the upper one. */
template <bool SIGNED, bool UPPER> static __device__ __forceinline__ int dot2(uint32_t x, uint32_t w, int sum)
{
    int r;
    if (SIGNED && UPPER) asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    else if (SIGNED) asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    else if (UPPER) asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    else asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(w), "r"(sum));
    return r;
}

/* 16 bytes with 16 values, the first eight and the others; two sums at a time, since each product waits for the one before. */
template <bool SIGNED> static __device__ __forceinline__ int dot16(uint4 w, uint4 x, uint4 y)
{
    int a = dot2<SIGNED, false>(x.x, w.x, 0), b = dot2<SIGNED, false>(y.x, w.z, 0);
    a = dot2<SIGNED, true>(x.y, w.x, a), b = dot2<SIGNED, true>(y.y, w.z, b);
    a = dot2<SIGNED, false>(x.z, w.y, a), b = dot2<SIGNED, false>(y.z, w.w, b);
    return dot2<SIGNED, true>(x.w, w.y, a) + dot2<SIGNED, true>(y.w, w.w, b);
}

static __device__ __forceinline__ uint4 masked(uint4 w, uint32_t m) { return make_uint4(w.x & m, w.y & m, w.z & m, w.w & m); }

/* 16 weights of 6 bits as signed bytes, times four, out of their three words. */
static __device__ __forceinline__ uint4 sixes_of(uint32_t a, uint32_t b, uint32_t c)
{
    return make_uint4(a & 0xFCFCFCFCu, b & 0xFCFCFCFCu, c & 0xFCFCFCFCu, last_sixes(a, b, c));
}

/* 32 weights of a row, and their scale, or what their kind has instead. */
struct block { uint4 a, b; uint2 high; float2 scale; };

template <int KIND> static __device__ __forceinline__ block block_of(const task &t, uint32_t row, uint32_t e, bool turned)
{
    block w = { };
    if (KIND == QN_W_q8) w.a = lds16(row + 32 * e + (turned ? 16 : 0)), w.b = lds16(row + 32 * e + (turned ? 0 : 16));
    else w.a = lds16(row + 16 * e);
    if (KIND == QN_W_q6)
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(w.high.x), "=r"(w.high.y) : "r"(row + t.high() + 8 * e));
    if (KIND == QN_W_q8 || KIND == QN_W_q4) w.scale.x = lds_half(row + t.scale() + 2 * e);
    else w.scale = lds_half2(row + t.scale() + 4 * e);
    return w;
}

template <int KIND> static __device__ __forceinline__ float dot_block(const block &w, const ints &x)
{
    if (KIND == QN_W_q8) {
        return w.scale.x * x.more.x * (float)(dot16<true>(w.a, x.v[0], x.v[1]) + dot16<true>(w.b, x.v[2], x.v[3]));
    }
    if (KIND == QN_W_q4 || KIND == QN_W_q4m) { /* low nibbles as they are, high ones 16 times as large: a mask is all it takes */
        const int low = dot16<false>(masked(w.a, 0x0F0F0F0Fu), x.v[0], x.v[1]), high = dot16<false>(masked(w.a, 0xF0F0F0F0u), x.v[2], x.v[3]);
        const float d = (float)(16 * low + high) * (x.more.x * 0.0625f);
        return KIND == QN_W_q4 ? w.scale.x * fmaf(-8.f, x.more.y, d) : fmaf(w.scale.x, d, w.scale.y * x.more.y);
    }
    const uint4 a = sixes_of(w.a.x, w.a.y, w.high.x), b = sixes_of(w.a.z, w.a.w, w.high.y); /* a scale for each 16 */
    const float d0 = (float)dot16<true>(a, x.v[0], x.v[1]), d1 = (float)dot16<true>(b, x.v[2], x.v[3]);
    return x.more.x * 0.25f * fmaf(w.scale.x, d0, w.scale.y * d1);
}

static __device__ __forceinline__ float4 floats_at(uint32_t p)
{
    const uint4 u = lds16(p);
    return make_float4(__uint_as_float(u.x), __uint_as_float(u.y), __uint_as_float(u.z), __uint_as_float(u.w));
}

template <bool BF16> static __device__ __forceinline__ float2 two_of(uint32_t u)
{
    if (BF16) return make_float2(__uint_as_float(u << 16), __uint_as_float(u & 0xFFFF0000u));
    return __half22float2(*reinterpret_cast<const __half2 *>(&u));
}

template <bool BF16> static __device__ __forceinline__ float dot8(uint4 w, float4 x, float4 y, float sum)
{
    const float2 a = two_of<BF16>(w.x), b = two_of<BF16>(w.y), c = two_of<BF16>(w.z), d = two_of<BF16>(w.w);
    sum = fmaf(a.x, x.x, fmaf(a.y, x.y, sum));
    sum = fmaf(b.x, x.z, fmaf(b.y, x.w, sum));
    sum = fmaf(c.x, y.x, fmaf(c.y, y.y, sum));
    return fmaf(d.x, y.z, fmaf(d.y, y.w, sum));
}

/* N pieces of floats, 32 apart, from e on. */
template <int KIND, int ROWS, int N>
static __device__ __forceinline__ void add_floats(const input &in, const uint32_t row[ROWS], uint32_t piece, uint32_t e, float v[ROWS])
{
    if constexpr (KIND == QN_W_f32) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const uint32_t c = piece + e + 32 * i;
            const float4 x = floats_at(in.floats + (c & 1) * in.plane_f() + 16 * (c / 2));
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float4 w = floats_at(row[r] + 16 * (e + 32 * i));
                v[r] = fmaf(w.x, x.x, fmaf(w.y, x.y, fmaf(w.z, x.z, fmaf(w.w, x.w, v[r]))));
            }
        }
    } else {
        float4 x[N], y[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            const uint32_t at = in.floats + 16 * (piece + e + 32 * i);
            x[i] = floats_at(at), y[i] = floats_at(at + in.plane_f());
        }
#pragma unroll
        for (int r = 0; r < ROWS; r += 2) {
            uint4 a[N], b[N];
#pragma unroll
            for (int i = 0; i < N; i++) a[i] = lds16(row[r] + 16 * (e + 32 * i)), b[i] = lds16(row[r + 1] + 16 * (e + 32 * i));
#pragma unroll
            for (int i = 0; i < N; i++) {
                v[r] = dot8<KIND == QN_W_bf16>(a[i], x[i], y[i], v[r]);
                v[r + 1] = dot8<KIND == QN_W_bf16>(b[i], x[i], y[i], v[r + 1]);
            }
        }
    }
}

/* N blocks, likewise. */
template <int KIND, int ROWS, int N>
static __device__ __forceinline__ void add_blocks(const task &t, const input &in, const uint32_t row[ROWS], uint32_t e, bool turned,
                                                  float v[ROWS])
{
    ints x[N];
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = ints_of(in, t.piece() + e + 32 * i, turned);
    if constexpr (N == 1) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) v[r] += dot_block<KIND>(block_of<KIND>(t, row[r], e, turned), x[0]);
    } else {
        block w[N][ROWS];
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) w[i][r] = block_of<KIND>(t, row[r], e + 32 * i, turned);
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) v[r] += dot_block<KIND>(w[i][r], x[i]);
    }
}

/* Where rows are few, two pieces at a time: what the second waits for is the first's as well. */
template <int KIND, int ROWS>
static __device__ __forceinline__ void add_rows(const task &t, const input &in, uint32_t lane, float v[ROWS])
{
    const uint32_t end = t.end();
    const bool turned = KIND == QN_W_q8 && lane & 4; /* 32 bytes apart, lanes 0 and 4 would want the same banks */
    uint32_t row[ROWS], e = t.begin();
    rows_of<ROWS>(t, row);
    if constexpr (ROWS == 2) {
#pragma unroll 1
        for (; e + 64 <= end; e += 64) {
            if (KIND <= QN_W_bf16) add_floats<KIND, ROWS, 2>(in, row, t.piece(), e + lane, v);
            else add_blocks<KIND, ROWS, 2>(t, in, row, e + lane, turned, v);
        }
    }
#pragma unroll 1
    for (e += lane; e < end; e += 32) {
        if (KIND <= QN_W_bf16) add_floats<KIND, ROWS, 1>(in, row, t.piece(), e, v);
        else add_blocks<KIND, ROWS, 1>(t, in, row, e, turned, v);
    }
}

template <int ROWS>
static __device__ __forceinline__ void add_task(const task &t, const input &in, uint32_t lane, float v[ROWS])
{
    switch (t.kind()) {
    case QN_W_f32: add_rows<QN_W_f32, ROWS>(t, in, lane, v); break;
    case QN_W_f16: add_rows<QN_W_f16, ROWS>(t, in, lane, v); break;
    case QN_W_bf16: add_rows<QN_W_bf16, ROWS>(t, in, lane, v); break;
    case QN_W_q8: add_rows<QN_W_q8, ROWS>(t, in, lane, v); break;
    case QN_W_q4: add_rows<QN_W_q4, ROWS>(t, in, lane, v); break;
    case QN_W_q4m: add_rows<QN_W_q4m, ROWS>(t, in, lane, v); break;
    default: add_rows<QN_W_q6, ROWS>(t, in, lane, v);
    }
}

/* All lanes' sums of 1 << LOG rows: row r is then in the lanes whose bits from 4 down are those of r from 0 up. */
template <int LOG> static __device__ __forceinline__ float sum_rows(float v[1 << LOG], uint32_t lane)
{
#pragma unroll
    for (int i = 0; i < LOG; i++) { /* two rows become one; a lane keeps one of them and gives the other away */
        const bool odd = lane & (16 >> i);
#pragma unroll
        for (int r = 0; r < 1 << (LOG - 1 - i); r++) {
            const float keep = odd ? v[2 * r + 1] : v[2 * r], give = odd ? v[2 * r] : v[2 * r + 1];
            v[r] = keep + __shfl_xor_sync(~0u, give, 16 >> i);
        }
    }
#pragma unroll
    for (int o = 16 >> LOG; o; o >>= 1) v[0] += __shfl_xor_sync(~0u, v[0], o);
    return v[0];
}

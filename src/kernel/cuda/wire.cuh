/* wire.cuh - how blocks hear of each other. Values are sent in units of 8 bytes that hold their own tag (abi.h): written at
 * once, read until the tag is the one that is wanted. No counter, no fence, one way through the second cache instead of four. */
#pragma once
#include "kernel/cuda/weights.cuh"

#define CONSUMERS (32 * QN_P_WARPS) /* threads that compute; others bring weights */

/* Which thread this is. Asked at the beginning of what belongs together: a register that is held through a whole phase is one
 * that spills, and asking takes 20 cycles where a reload takes 500. */
struct who {
    uint32_t thread;
    __device__ __forceinline__ uint32_t warp() const { return thread / 32; }
    __device__ __forceinline__ uint32_t lane() const { return thread % 32; }
};

static __device__ __forceinline__ who who_am_i()
{
    who me;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(me.thread));
    return me;
}

/* Likewise. */
static __device__ __forceinline__ int this_block()
{
    int block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}

static __device__ __forceinline__ void sync_consumers() { asm volatile("bar.sync 1, %0;" :: "n"(CONSUMERS) : "memory"); }

/* The tag of what a phase sends. */
static __device__ __forceinline__ uint32_t tag_of(const qn_crun &a, uint32_t token, uint32_t phase)
{
    return (a.epoch + token) * a.n_phases + phase + 1;
}

static __device__ __forceinline__ ulonglong2 look16(const void *p)
{
    ulonglong2 u;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(u.x), "=l"(u.y) : "l"(p) : "memory");
    return u;
}

static __device__ __forceinline__ uint64_t look8(const void *p)
{
    uint64_t u;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(u) : "l"(p) : "memory");
    return u;
}

static __device__ __forceinline__ void put8(void *p, uint64_t u)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(p), "l"(u) : "memory");
}

/* Between two looks: many that look all the time are in the way of what they wait for. */
static __device__ __forceinline__ void pause() { __nanosleep(32); }

/* ---- two values of 24 bits, 16 bits of tag */

static __device__ __forceinline__ uint64_t pack(float first, float second, uint32_t tag)
{
    const uint32_t a = __float_as_uint(first) + 0x80, b = __float_as_uint(second) + 0x80;
    const uint32_t low = (a & 0xFFFFFF00u) | (b >> 8 & 0xFF), high = (b & 0xFFFF0000u) | (tag & 0xFFFF);
    return (uint64_t)high << 32 | low;
}

static __device__ __forceinline__ float2 unpack(uint64_t u)
{
    const uint32_t low = (uint32_t)u, high = (uint32_t)(u >> 32);
    return make_float2(__uint_as_float(low & 0xFFFFFF00u), __uint_as_float(__byte_perm(low, high, 0x7604) & 0xFFFFFF00u));
}

static __device__ __forceinline__ bool both_come(ulonglong2 u, uint32_t tag)
{
    return ((((uint32_t)(u.x >> 32) ^ tag) | ((uint32_t)(u.y >> 32) ^ tag)) & 0xFFFF) == 0;
}

static __device__ __forceinline__ float4 four_of(ulonglong2 u)
{
    const float2 a = unpack(u.x), b = unpack(u.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

/* ---- a float or a number, 32 bits of tag: for places that are not written every time */

static __device__ __forceinline__ void put_tagged(uint64_t *p, uint32_t value, uint32_t tag) { put8(p, (uint64_t)tag << 32 | value); }

static __device__ __forceinline__ uint32_t receive_tagged(const uint64_t *p, uint32_t tag)
{
    uint64_t u = look8(p);
    while ((uint32_t)(u >> 32) != tag) u = look8(p);
    return (uint32_t)u;
}

/* Two of them that lie together, looked at together; the first is the upper half. */
static __device__ __forceinline__ uint64_t receive_two(const uint64_t *p, uint32_t tag)
{
    ulonglong2 u = look16(p);
    while ((uint32_t)(u.x >> 32) != tag || (uint32_t)(u.y >> 32) != tag) u = look16(p);
    return u.x << 32 | (uint32_t)u.y;
}

/* ---- one instruction each, for numbers that are not too small */

static __device__ __forceinline__ float over_one(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float over_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* ---- sums of a warp */

static __device__ __forceinline__ float sum32(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* ---- 16 bytes of shared memory, by the address that its instructions take */

static __device__ __forceinline__ uint32_t shared_at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ __forceinline__ uint4 lds16(uint32_t p)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(p));
    return v;
}

static __device__ __forceinline__ void sts8(uint32_t p, uint2 v)
{
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" :: "r"(p), "r"(v.x), "r"(v.y) : "memory");
}

static __device__ __forceinline__ void sts8(uint32_t p, float2 v)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(p), "f"(v.x), "f"(v.y) : "memory");
}

static __device__ __forceinline__ void sts16(uint32_t p, float4 v)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

static __device__ __forceinline__ float lds_half(uint32_t p)
{
    unsigned short h;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(h) : "r"(p));
    return __half2float(__ushort_as_half(h));
}

static __device__ __forceinline__ float2 lds_half2(uint32_t p)
{
    uint32_t h;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(h) : "r"(p));
    return __half22float2(*reinterpret_cast<__half2 *>(&h));
}

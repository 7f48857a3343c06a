/* wgmma.cuh - Hopper's products of tiles in shared memory, as its tensor cores want them. For sm_90a alone. */
#pragma once
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Rows of 128 bytes, 16-byte pieces swizzled by the row's number, eight rows a group of 1,024 bytes. */
static __device__ __forceinline__ uint64_t operand(uint32_t address)
{
    return (uint64_t)((address & 0x3FFFF) >> 4) | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define F16(i) F4(i), F4(i + 4), F4(i + 8), F4(i + 12)
#define PRODUCT(shape, list, a, b) \
    "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned." shape ".f32.f16.f16 {" list "}, " a ", " b ", p, 1, 1, 0, 0; }"
#define LIST8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define LIST16 LIST8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define LIST32 LIST16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST64 LIST32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
               ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

/* d += 64 rows of w by N rows of x, 16 columns */
template <int N> static __device__ __forceinline__ void product(float *d, uint64_t a, uint64_t b)
{
    if constexpr (N == 16) asm volatile(PRODUCT("m64n16k16", LIST8, "%8", "%9") : F4(0), F4(4) : "l"(a), "l"(b));
    if constexpr (N == 32) asm volatile(PRODUCT("m64n32k16", LIST16, "%16", "%17") : F16(0) : "l"(a), "l"(b));
    if constexpr (N == 64) asm volatile(PRODUCT("m64n64k16", LIST32, "%32", "%33") : F16(0), F16(16) : "l"(a), "l"(b));
    if constexpr (N == 128)
        asm volatile(PRODUCT("m64n128k16", LIST64, "%64", "%65") : F16(0), F16(16), F16(32), F16(48) : "l"(a), "l"(b));
}

#undef F4
#undef F16
#undef PRODUCT
#undef LIST8
#undef LIST16
#undef LIST32
#undef LIST64
#endif

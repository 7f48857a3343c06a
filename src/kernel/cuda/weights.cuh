/* weights.cuh - eight neighbouring weights of a row as floats, for every kind of device weight. What all kernels that do not
 * care for the last bit of speed read weights with. */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernel/cuda/abi.h"

template <typename T> __device__ __forceinline__ T *at(uint64_t address) { return reinterpret_cast<T *>(address); }

__device__ __forceinline__ float half_at(const uint8_t *p, int i) { return __half2float(reinterpret_cast<const __half *>(p)[i]); }

/* nibbles c..c+7 of the block of 32 that holds them: low nibbles of bytes 0..15 first, then the high ones */
__device__ __forceinline__ void nibbles8(const uint8_t *values, int c, int out[8])
{
    const uint2 w = *reinterpret_cast<const uint2 *>(values + c / 32 * 16 + c % 16);
    const int shift = c % 32 < 16 ? 0 : 4;
#pragma unroll
    for (int i = 0; i < 8; i++) out[i] = (int)((i < 4 ? w.x : w.y) >> (8 * (i & 3) + shift)) & 15;
}

/* Weights of 6 bits as signed bytes, times four: of 16 the last four, out of what the three words of the others leave free (abi.h). */
__device__ __forceinline__ uint32_t last_sixes(uint32_t a, uint32_t b, uint32_t c)
{
    return (a << 6 & 0xC0C0C0C0u) | (b << 4 & 0x30303030u) | (c << 2 & 0x0C0C0C0Cu);
}

/* eight of these, minus 32 */
__device__ __forceinline__ void sixes8(const uint8_t *row, uint32_t high, int c, int q[8])
{
    const uint2 w = *reinterpret_cast<const uint2 *>(row + c / 16 * 8);
    const uint32_t third = *reinterpret_cast<const uint32_t *>(row + high + c / 16 * 4);
    const uint32_t first = c % 16 ? third : w.x, second = c % 16 ? last_sixes(w.x, w.y, third) : w.y;
#pragma unroll
    for (int i = 0; i < 8; i++) q[i] = (int)(int8_t)((i < 4 ? first : second) >> (8 * (i & 3)) & 0xFC) / 4;
}

template <int KIND> __device__ __forceinline__ void weights8(const uint8_t *row, const qn_wmat &w, int c, float out[8])
{
    if (KIND == QN_W_f32) {
        const float4 a = *reinterpret_cast<const float4 *>(row + 4 * (size_t)c);
        const float4 b = *reinterpret_cast<const float4 *>(row + 4 * (size_t)c + 16);
        out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w, out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
        return;
    }
    if (KIND == QN_W_f16 || KIND == QN_W_bf16) {
        const uint4 v = *reinterpret_cast<const uint4 *>(row + 2 * (size_t)c);
        const uint32_t u[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (KIND == QN_W_f16) {
                const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&u[i]));
                out[2 * i] = f.x, out[2 * i + 1] = f.y;
            } else {
                out[2 * i] = __uint_as_float(u[i] << 16), out[2 * i + 1] = __uint_as_float(u[i] & 0xFFFF0000u);
            }
        }
        return;
    }
    const uint8_t *scale = row + w.scale;
    int q[8];
    if (KIND == QN_W_q8) {
        const uint2 v = *reinterpret_cast<const uint2 *>(row + c);
#pragma unroll
        for (int i = 0; i < 8; i++) q[i] = (int)(int8_t)((i < 4 ? v.x : v.y) >> (8 * (i & 3)) & 255);
    } else if (KIND == QN_W_q6) {
        sixes8(row, w.high, c, q);
    } else {
        nibbles8(row, c, q);
    }
    const float s = KIND == QN_W_q6 ? half_at(scale, c / 16) : half_at(scale, KIND == QN_W_q4m ? c / 32 * 2 : c / 32);
    const float m = KIND == QN_W_q4m ? half_at(scale, c / 32 * 2 + 1) : 0.f;
    const int zero = KIND == QN_W_q4 ? 8 : 0;
#pragma unroll
    for (int i = 0; i < 8; i++) out[i] = s * (float)(q[i] - zero) + m;
}

/* the same when the kind is only known at run time; every thread of a block has the same one */
__device__ __forceinline__ void weights8_any(const uint8_t *row, const qn_wmat &w, int c, float out[8])
{
    switch (w.kind) {
    case QN_W_f32: weights8<QN_W_f32>(row, w, c, out); break;
    case QN_W_f16: weights8<QN_W_f16>(row, w, c, out); break;
    case QN_W_bf16: weights8<QN_W_bf16>(row, w, c, out); break;
    case QN_W_q8: weights8<QN_W_q8>(row, w, c, out); break;
    case QN_W_q4: weights8<QN_W_q4>(row, w, c, out); break;
    case QN_W_q4m: weights8<QN_W_q4m>(row, w, c, out); break;
    default: weights8<QN_W_q6>(row, w, c, out);
    }
}

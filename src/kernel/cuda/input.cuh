/* input.cuh - the input of a phase, in shared memory. What others sent is added to the residual stream, or is the input itself; it is
 * multiplied with the norm's weights and stored in the forms that products want (products.cuh). The rest of the norm is a factor of
 * what comes of them, so nobody waits for a sum over all values. Everything around the wait is in the token's way: a thread has
 * the same four values in every phase, asks for all it needs before it waits, and holds nothing that can be read again. */
#pragma once
#include "kernel/cuda/products.cuh"

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float4 plus(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
static __device__ __forceinline__ float4 times(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
static __device__ __forceinline__ float largest(float4 v)
{
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* Four values to integers, by all lanes of a warp: they share a scale, eight of them have a block. Adding 1.5 * 2^23 leaves a
 * float's integer in its last bits. The sums of blocks, which weights of 4 bits need, are those of the values themselves: on their way while
 * the scale is found. */
static __device__ __forceinline__ void store_ints(const input &in, uint32_t t, float4 v)
{
    float sum = (v.x + v.y) + (v.z + v.w);
    const uint32_t top = __reduce_max_sync(~0u, __float_as_uint(largest(v))); /* floats above 0 are ordered as integers */
#pragma unroll
    for (int o = 4; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    const float most = fmaxf(__uint_as_float(top), 1e-30f), inverse = 32512.f * over_one(most);
    const uint32_t q0 = __float_as_uint(fmaf(v.x, inverse, 12582912.f)), q1 = __float_as_uint(fmaf(v.y, inverse, 12582912.f));
    const uint32_t q2 = __float_as_uint(fmaf(v.z, inverse, 12582912.f)), q3 = __float_as_uint(fmaf(v.w, inverse, 12582912.f));
    const uint32_t to = in.at + (t >> 1 & 3) * in.plane + 16 * (t >> 3) + 8 * (t & 1);
    sts8(to, make_uint2(__byte_perm(q0, q1, 0x5410), __byte_perm(q2, q3, 0x5410)));
    if ((t & 7) == 0) sts8(in.more() + t, make_float2(most * (1.f / 32512.f), sum));
}

static __device__ __forceinline__ void store_forms(const input &in, uint32_t which, uint32_t t, float4 v)
{
    if (which & QN_FORM_float) sts16(in.floats + (t & 1) * in.plane_f() + 16 * (t / 2), v);
    if (which & QN_FORM_int) store_ints(in, t, v);
}

/* Looks at src[t] and at every CONSUMERS-th behind it, of n; from the j-th on. */
template <int AT_ONCE>
static __device__ __forceinline__ void look_all(ulonglong2 u[AT_ONCE], const ulonglong2 *src, uint32_t t, uint32_t n, int j)
{
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
        if (i >= j && t + i * CONSUMERS < n) u[i] = look16(src + t + i * CONSUMERS);
}

/* The j-th four values, once they are there for all lanes. Whoever looks again looks at all that are missing: one way for all. */
template <int AT_ONCE>
static __device__ __forceinline__ float4 await4(ulonglong2 u[AT_ONCE], const ulonglong2 *src, uint32_t t, uint32_t n, int j, uint32_t tag)
{
    const bool any = t + j * CONSUMERS < n;
    while (!__all_sync(~0u, !any || both_come(u[j], tag))) {
        pause();
        look_all<AT_ONCE>(u, src, t, n, j);
    }
    return any ? four_of(u[j]) : make_float4(0, 0, 0, 0);
}

/* x += what was sent; AT_ONCE looks are on their way at a time. Returns this thread's squares. */
template <int AT_ONCE>
static __device__ __forceinline__ float add_sent(const qn_phase *p, float4 *x, const input &in, uint32_t tag, uint32_t thread)
{
    const uint32_t n = p->cols / 4, all = in.plane / 2, which = p->forms; /* behind the last value there are zeros */
    const ulonglong2 *src = at<const ulonglong2>(p->src);
    const float4 *norm = at<const float4>(p->norm);
    float ss = 0;
#pragma unroll 1
    for (uint32_t t0 = thread; t0 < all; t0 += AT_ONCE * CONSUMERS) { /* all lanes of a warp alike */
        ulonglong2 u[AT_ONCE] = { };
        float4 w[AT_ONCE], o[AT_ONCE];
        look_all<AT_ONCE>(u, src, t0, n, 0);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const uint32_t t = t0 + j * CONSUMERS;
            w[j] = o[j] = make_float4(0, 0, 0, 0);
            if (t < n) w[j] = __ldg(norm + t), o[j] = x[t];
        }
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const uint32_t t = t0 + j * CONSUMERS;
            if (t >= all) break;
            const float4 v = plus(await4<AT_ONCE>(u, src, t0, n, j, tag), o[j]);
            if (t < n) x[t] = v;
            ss += squares(v);
            store_forms(in, which, t, times(v, w[j]));
        }
    }
    return ss;
}

/* The input is what was sent. */
template <int AT_ONCE>
static __device__ __forceinline__ void copy_sent(const qn_phase *p, const input &in, uint32_t tag, uint32_t thread)
{
    const uint32_t n = p->cols / 4, all = in.plane / 2, which = p->forms; /* behind the last value there are zeros */
    const ulonglong2 *src = at<const ulonglong2>(p->src);
#pragma unroll 1
    for (uint32_t t0 = thread; t0 < all; t0 += AT_ONCE * CONSUMERS) {
        ulonglong2 u[AT_ONCE] = { };
        look_all<AT_ONCE>(u, src, t0, n, 0);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const uint32_t t = t0 + j * CONSUMERS;
            if (t >= all) break;
            store_forms(in, which, t, await4<AT_ONCE>(u, src, t0, n, j, tag));
        }
    }
}

/* The same for all threads: the sum of what the warps left. */
static __device__ __forceinline__ float sum_of(const float *part)
{
    const float4 *p = reinterpret_cast<const float4 *>(part);
    const float4 v = plus(plus(p[0], p[1]), plus(p[2], p[3]));
    return (v.x + v.y) + (v.z + v.w);
}
static_assert(QN_P_WARPS == 16, "four times four of them");

static __device__ __forceinline__ void leave_squares(float *part, float ss, who me)
{
    ss = sum32(ss);
    if (me.lane() == 0) part[me.warp()] = ss;
}

/* x = table[token] */
static __device__ __forceinline__ void bring_embedded(const qn_wmat &w, float4 *x, uint32_t n, int token, float factor,
                                                   uint32_t thread)
{
#pragma unroll 1
    for (uint32_t t = thread; t < n; t += CONSUMERS) {
        float v[8];
        weights8_any(at<const uint8_t>(w.at) + (size_t)token * w.row_bytes, w, (int)(t / 2 * 8), v);
        const bool odd = t & 1;
        x[t] = make_float4(factor * (odd ? v[4] : v[0]), factor * (odd ? v[5] : v[1]), factor * (odd ? v[6] : v[2]),
                           factor * (odd ? v[7] : v[3]));
    }
}

/* x += norm(src) * post, by way of the room for the input */
static __device__ __forceinline__ void add_normed(const qn_phase *p, float4 *x, float4 *room, uint32_t tag, float *part, who me)
{
    const uint32_t n = p->cols / 4;
    float ss = 0;
#pragma unroll 1
    for (uint32_t t = me.thread; t < n; t += CONSUMERS) {
        ulonglong2 u = look16(at<const ulonglong2>(p->src) + t);
        while (!both_come(u, tag)) u = look16(at<const ulonglong2>(p->src) + t);
        const float4 v = four_of(u);
        room[t] = v;
        ss += squares(v);
    }
    __syncwarp();
    leave_squares(part, ss, me);
    sync_consumers();
    const float s = over_root(fmaf(sum_of(part), p->inverse, p->eps));
#pragma unroll 1
    for (uint32_t t = me.thread; t < n; t += CONSUMERS) {
        const float4 y = room[t], w = __ldg(at<const float4>(p->post) + t), o = x[t];
        x[t] = make_float4(o.x + y.x * s * w.x, o.y + y.y * s * w.y, o.z + y.z * s * w.z, o.w + y.w * s * w.w);
    }
    sync_consumers(); /* the room and the sums are used anew */
}

/* The residual stream as it is. */
static __device__ __forceinline__ float form_stream(const qn_phase *p, const float4 *x, const input &in, uint32_t thread)
{
    const uint32_t n = p->cols / 4, all = in.plane / 2;
    float ss = 0;
#pragma unroll 1
    for (uint32_t t = thread; t < all; t += CONSUMERS) {
        const float4 v = t < n ? x[t] : make_float4(0, 0, 0, 0), w = t < n ? __ldg(at<const float4>(p->norm) + t) : v;
        ss += squares(v);
        store_forms(in, p->forms, t, times(v, w));
    }
    return ss;
}

/* The first input of a token, and one behind a norm of its own. By itself, since few phases are so. */
static __device__ __noinline__ void bring_stream(const qn_phase *p, const qn_wmat *tables, float4 *x, uint8_t *to, float *part,
                                                 uint32_t tag, int token)
{
    const who me = who_am_i();
    if (p->in == QN_IN_embed) bring_embedded(tables[p->index], x, p->cols / 4, token, p->factor, me.thread);
    else add_normed(p, x, reinterpret_cast<float4 *>(to), tag, part, me);
    leave_squares(part, form_stream(p, x, input_of(shared_at(to), p->forms, p->cols), me.thread), me);
}

/* Brings what was sent into its forms, and what is needed of its norm into `part`. */
static __device__ __forceinline__ void bring_sent(const qn_phase *p, float4 *x, const input &in, float *part, uint32_t tag)
{
    const who me = who_am_i();
    if (p->in == QN_IN_copy) {
        if (p->cols <= 4 * CONSUMERS) copy_sent<1>(p, in, tag, me.thread);
        else copy_sent<4>(p, in, tag, me.thread);
    } else {
        leave_squares(part, p->cols <= 4 * CONSUMERS ? add_sent<1>(p, x, in, tag, me.thread)
                                                     : add_sent<2>(p, x, in, tag, me.thread), me);
    }
}

/* What products of the input are to be multiplied with. No branch: it is found while other sums are on their way. */
static __device__ __forceinline__ float norm_of(const qn_phase *p, const float *part)
{
    const float s = over_root(fmaf(sum_of(part), p->inverse, p->eps));
    return p->in == QN_IN_copy ? 1.f : s;
}

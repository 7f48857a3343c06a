/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks its own list of instructions; nothing is launched
 * between them. Weights do not depend on what is being computed, so every warp has a ring of stages in shared memory and keeps
 * copies of its next rows in flight, across waits and from token to token: memory does not stop while a phase ends. A phase's
 * input is made by every block for itself (norms are cheap, a wait more is not).
 * What the lists hold is list.c's business; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/weights.cuh"

#define THREADS (32 * QN_P_WARPS)

/* ---- waiting and telling */

static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ uint32_t add_release(uint32_t *p)
{
    uint32_t v;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* signed difference: counters may pass 2^32 */
static __device__ __forceinline__ void wait_until(const uint32_t *counter, uint32_t target)
{
    while ((int32_t)(load_acquire(counter) - target) < 0) { }
}

static __device__ __forceinline__ uint64_t now_ns()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

static __device__ __forceinline__ float sum32(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* What other blocks wrote is read past the first cache, which does not hear of it. */
static __device__ __forceinline__ float fresh(const float *p) { return __ldcg(p); }
static __device__ __forceinline__ float4 fresh4(const float *p) { return __ldcg(reinterpret_cast<const float4 *>(p)); }

/* ---- a warp's ring */

struct ring {
    uint8_t *base;            /* of this warp */
    uint32_t stage_bytes, n_stages;
    uint32_t bars;            /* shared address of its barriers */
    uint32_t filled, used;    /* pieces so far */
    /* where filling is: instruction (of all that this launch runs), unit of this warp, column */
    const qn_ins *list, *window;
    uint32_t n_ins, n_all, seq, j, col;
    uint32_t now;             /* the instruction that is being run */
    /* of that instruction */
    uint64_t wa, wb;
    uint32_t n_units, cols, span, kind, stride, high, scale, s_high, s_scale, unit;
};

static __device__ __forceinline__ uint32_t value_bytes(uint32_t kind, uint32_t cols)
{
    return kind == QN_W_f32 ? 4 * cols : kind <= QN_W_bf16 ? 2 * cols : kind == QN_W_q8 ? cols : cols / 2;
}

static __device__ __forceinline__ uint32_t scale_bytes(uint32_t kind, uint32_t cols)
{
    return kind == QN_W_q4m ? cols / 8 : kind == QN_W_q6 ? cols / 8 : cols / 16;
}

static __device__ __forceinline__ uint32_t pad16(uint32_t n) { return (n + 15) & ~15u; }

/* Goes on to the next instruction that has units for this warp. */
static __device__ __forceinline__ void ring_seek(ring &r, uint32_t warp)
{
    for (; r.seq < r.n_all; r.seq++) {
        /* near ones are in shared memory; the window's last three may not be visible to this warp yet */
        const bool near = r.seq - r.now <= QN_P_AHEAD - 3;
        const qn_ins *i = near ? r.window + r.seq % QN_P_WINDOW : r.list + r.seq % r.n_ins;
        r.j = (warp + QN_P_WARPS - i->warp0) % QN_P_WARPS;
        r.n_units = i->n_units;
        if (i->op == QN_I_linear && r.j < r.n_units) {
            r.wa = i->wa, r.wb = i->wb, r.cols = i->cols, r.span = i->span, r.kind = i->kind, r.stride = i->stride;
            r.high = i->high, r.scale = i->scale, r.s_high = i->s_high, r.s_scale = i->s_scale, r.unit = i->unit;
            r.col = 0;
            return;
        }
    }
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void copy_in(uint32_t to, uint64_t from, uint32_t bytes, uint32_t bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
#endif

/* Begins to copy the next piece into the next stage. Called by a whole warp. */
static __device__ __forceinline__ void ring_fill(ring &r, uint32_t warp, uint32_t lane)
{
    if (r.seq == r.n_all) {
#if __CUDA_ARCH__ < 900
        asm volatile("cp.async.commit_group;" ::: "memory"); /* pieces are counted by groups: an empty one */
#endif
        return;
    }
    const uint32_t stage = r.filled % r.n_stages, cols = min(r.span, r.cols - r.col);
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(r.base + stage * r.stage_bytes);
    /* up to three planes of two rows: lane i takes plane i % 3 of row i / 3 */
    const uint32_t plane = lane % 3, half = lane / 3;
    const uint64_t row = (half ? r.wb : r.wa) + (uint64_t)(r.unit + r.j) * r.stride;
    uint32_t bytes = pad16(value_bytes(r.kind, cols)), at = 0;
    uint64_t from = row + value_bytes(r.kind, r.col);
    const uint32_t high = r.kind == QN_W_q6 ? pad16(cols / 4) : 0, scale = r.kind >= QN_W_q8 ? pad16(scale_bytes(r.kind, cols)) : 0;
    const uint32_t all = 2 * (bytes + high + scale);
    if (plane == 1) bytes = high, at = r.s_high, from = row + r.high + r.col / 4;
    if (plane == 2) bytes = scale, at = r.s_scale, from = row + r.scale + scale_bytes(r.kind, r.col);
    if (lane >= 6) bytes = 0;
    const uint32_t dst = to + (half ? r.stage_bytes / 2 : 0) + at;
#if __CUDA_ARCH__ >= 900
    const uint32_t bar = r.bars + 8 * stage;
    if (lane == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(all) : "memory");
    __syncwarp();
    if (bytes) copy_in(dst, from, bytes, bar);
#else
    for (int src = 0; src < 6; src++) {
        const uint32_t n = __shfl_sync(~0u, bytes, src), d = __shfl_sync(~0u, dst, src);
        const uint64_t f = __shfl_sync(~0u, (unsigned long long)from, src);
        for (uint32_t o = 16 * lane; o < n; o += 512)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(d + o), "l"(f + o) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    (void)all;
#endif
    r.filled++;
    r.col += cols;
    if (r.col < r.cols) return;
    r.col = 0;
    r.j += QN_P_WARPS;
    if (r.j < r.n_units) return;
    r.seq++;
    ring_seek(r, warp);
}

/* Waits for the oldest piece; returns where it lies. */
static __device__ __forceinline__ const uint8_t *ring_wait(ring &r)
{
    const uint32_t stage = r.used % r.n_stages;
#if __CUDA_ARCH__ >= 900
    const uint32_t bar = r.bars + 8 * stage, parity = r.used / r.n_stages & 1;
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}"
                 :: "r"(bar), "r"(parity) : "memory");
#else
    switch (r.n_stages) { /* groups that may still be on their way */
    case 2: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 3;" ::: "memory");
    }
    __syncwarp();
#endif
    r.used++;
    return r.base + stage * r.stage_bytes;
}

/* ---- the input of a phase, in shared memory
 * floats: 16-byte chunk c of block b (of 32 values) lies at place c ^ (b & 7), so that lanes which read chunk c of neighbouring
 * blocks hit different banks. integers: block b has four chunks (high bytes of values 0..15, of 16..31, low bytes of both) and
 * behind all of them a float4: scale, sum of the first 16, of the last 16, of all (times scale). */

struct input { uint8_t *at; uint32_t cols; };

static __device__ __forceinline__ uint32_t float_place(uint32_t chunk)
{
    const uint32_t b = chunk >> 3, c = chunk & 7;
    return (b << 3 | (c ^ (b & 7))) << 4;
}

static __device__ __forceinline__ uint32_t int_place(uint32_t b, uint32_t c)
{
    return b * 64 + ((c ^ ((b >> 1 & 1) * 2 + (b >> 2 & 1))) << 4);
}

static __device__ __forceinline__ uint32_t float_bytes(uint32_t cols) { return (cols + 31) / 32 * 128; }

/* four values of column 4t.., by all lanes of a warp; those past the end are zero */
static __device__ __forceinline__ void put_input(const input &in, uint32_t forms, uint32_t t, float4 v)
{
    const bool live = 4 * t < (in.cols + 31) / 32 * 32;
    if ((forms & QN_FORM_float) && live) *reinterpret_cast<float4 *>(in.at + float_place(t)) = v;
    if (!(forms & QN_FORM_int)) return;
    uint8_t *ints = in.at + ((forms & QN_FORM_float) ? float_bytes(in.cols) : 0);
    float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
#pragma unroll
    for (int o = 4; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    const float scale = most / 16256.f, inverse = most > 0 ? 16256.f / most : 0.f; /* 127 * 128 */
    const int q[4] = { __float2int_rn(v.x * inverse), __float2int_rn(v.y * inverse), __float2int_rn(v.z * inverse),
                       __float2int_rn(v.w * inverse) };
    uint32_t high = 0, low = 0;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int h = (q[i] + 64) >> 7;
        high |= (uint32_t)(h & 255) << (8 * i);
        low |= (uint32_t)((q[i] - h * 128) & 255) << (8 * i);
        sum += q[i];
    }
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int other = __shfl_xor_sync(~0u, sum, 4);
    if (!live) return;
    const uint32_t b = t / 8, i = t % 8; /* word i of the block */
    *reinterpret_cast<uint32_t *>(ints + int_place(b, i / 4) + 4 * (i & 3)) = high;
    *reinterpret_cast<uint32_t *>(ints + int_place(b, 2 + i / 4) + 4 * (i & 3)) = low;
    if (i == 0) {
        float4 *more = reinterpret_cast<float4 *>(ints + (in.cols + 31) / 32 * 64) + b;
        *more = make_float4(scale, scale * (float)sum, scale * (float)other, scale * (float)(sum + other));
    }
}

static __device__ float block_sum(float v, float *part)
{
    v = sum32(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    float s = threadIdx.x % 32 < QN_P_WARPS ? part[threadIdx.x % 32] : 0.f;
    s = sum32(s);
    __syncthreads();
    return s;
}

static __device__ __forceinline__ float4 part4(const float *p, uint32_t t, uint32_t cols, bool live)
{
    if (!live) return make_float4(0, 0, 0, 0);
    if (4 * t + 3 < cols) return fresh4(p + 4 * t);
    return make_float4(fresh(p + 4 * t), 4 * t + 1 < cols ? fresh(p + 4 * t + 1) : 0.f,
                       4 * t + 2 < cols ? fresh(p + 4 * t + 2) : 0.f, 0.f);
}

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float4 times(float4 v, float s, float4 w)
{
    return make_float4(v.x * s * w.x, v.y * s * w.y, v.z * s * w.z, v.w * s * w.w);
}

#define KEPT (QN_P_NORM / 4 / THREADS) /* float4s that a thread holds of a normed input */

static __device__ __forceinline__ float4 embed4(const qn_wmat &w, int token, uint32_t t, bool live, float factor)
{
    if (!live) return make_float4(0, 0, 0, 0);
    float v[8];
    weights8_any(at<const uint8_t>(w.at) + (size_t)token * w.row_bytes, w, (int)(t / 2 * 8), v);
    const int h = (t & 1) * 4;
    return make_float4(v[h] * factor, v[h + 1] * factor, v[h + 2] * factor, v[h + 3] * factor);
}

static __device__ void keep4(float *to, uint32_t t, uint32_t cols, float4 v)
{
    const float f[4] = { v.x, v.y, v.z, v.w };
    for (uint32_t i = 0; i < 4 && 4 * t + i < cols; i++) to[4 * t + i] = f[i];
}

/* A normed input: what the norm is of stays in registers between its two passes. */
static __device__ void bring_normed(const qn_ins *i, const qn_crun &a, const input &in, int token, float *part)
{
    const uint32_t d = i->cols;
    float4 x[KEPT], w[KEPT];
    float ss = 0;
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const uint32_t t = threadIdx.x + k * THREADS;
        const bool live = 4 * t < d;
        x[k] = w[k] = make_float4(0, 0, 0, 0);
        if (k * THREADS * 4 >= d) continue;
        w[k] = part4(at<const float>(i->norm), t, d, live);
        x[k] = i->in == QN_IN_embed ? embed4(at<const qn_wmat>(a.tables)[i->table], token, t, live, i->factor)
                                    : part4(at<const float>(i->src), t, d, live);
        if (i->in == QN_IN_post) ss += squares(part4(at<const float>(i->add), t, d, live));
    }
    if (i->in == QN_IN_post) {
        const float s = rsqrtf(block_sum(ss, part) / (float)d + i->eps);
        ss = 0;
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            const uint32_t t = threadIdx.x + k * THREADS;
            if (k * THREADS * 4 >= d) continue;
            const bool live = 4 * t < d;
            const float4 y = times(part4(at<const float>(i->add), t, d, live), s, part4(at<const float>(i->post), t, d, live));
            x[k] = make_float4(x[k].x + y.x, x[k].y + y.y, x[k].z + y.z, x[k].w + y.w);
        }
    }
#pragma unroll
    for (int k = 0; k < KEPT; k++) ss += squares(x[k]);
    const float s = rsqrtf(block_sum(ss, part) / (float)d + i->eps);
#pragma unroll
    for (int k = 0; k < KEPT; k++) {
        const uint32_t t = threadIdx.x + k * THREADS;
        if (k * THREADS * 4 >= d) continue;
        if (i->keep && blockIdx.x == 0) keep4(at<float>(i->keep), t, d, x[k]);
        put_input(in, i->forms, t, times(x[k], s, w[k]));
    }
}

static __device__ void bring_copy(const qn_ins *i, const input &in)
{
    const uint32_t d = i->cols, rounds = (d + 4 * THREADS - 1) / (4 * THREADS);
    for (uint32_t k = 0; k < rounds; k++) {
        const uint32_t t = threadIdx.x + k * THREADS;
        put_input(in, i->forms, t, part4(at<const float>(i->src), t, d, 4 * t < d));
    }
}

/* ---- products: a piece of two rows with the input; lanes take 16 bytes of values at a time */

static __device__ __forceinline__ void dot_half(const uint8_t *s, const uint8_t *s2, const input &in, uint32_t c0, uint32_t n,
                                                uint32_t lane, bool bf16, float &a, float &b)
{
    for (uint32_t c = 8 * lane; c < n; c += 256) {
        const uint4 u = *reinterpret_cast<const uint4 *>(s + 2 * c), v = *reinterpret_cast<const uint4 *>(s2 + 2 * c);
        const float4 x0 = *reinterpret_cast<const float4 *>(in.at + float_place((c0 + c) / 4));
        const float4 x1 = *reinterpret_cast<const float4 *>(in.at + float_place((c0 + c) / 4 + 1));
        const uint32_t p[4] = { u.x, u.y, u.z, u.w }, q[4] = { v.x, v.y, v.z, v.w };
        const float x[8] = { x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w };
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float2 f, g;
            if (bf16) {
                f = make_float2(__uint_as_float(p[k] << 16), __uint_as_float(p[k] & 0xFFFF0000u));
                g = make_float2(__uint_as_float(q[k] << 16), __uint_as_float(q[k] & 0xFFFF0000u));
            } else {
                f = __half22float2(*reinterpret_cast<const __half2 *>(&p[k]));
                g = __half22float2(*reinterpret_cast<const __half2 *>(&q[k]));
            }
            a = fmaf(f.x, x[2 * k], a), a = fmaf(f.y, x[2 * k + 1], a);
            b = fmaf(g.x, x[2 * k], b), b = fmaf(g.y, x[2 * k + 1], b);
        }
    }
}

static __device__ __forceinline__ void dot_float(const uint8_t *s, const uint8_t *s2, const input &in, uint32_t c0, uint32_t n,
                                                 uint32_t lane, float &a, float &b)
{
    for (uint32_t c = 4 * lane; c < n; c += 128) {
        const float4 u = *reinterpret_cast<const float4 *>(s + 4 * c), v = *reinterpret_cast<const float4 *>(s2 + 4 * c);
        const float4 x = *reinterpret_cast<const float4 *>(in.at + float_place((c0 + c) / 4));
        a = fmaf(u.x, x.x, fmaf(u.y, x.y, fmaf(u.z, x.z, fmaf(u.w, x.w, a))));
        b = fmaf(v.x, x.x, fmaf(v.y, x.y, fmaf(v.z, x.z, fmaf(v.w, x.w, b))));
    }
}

static __device__ __forceinline__ int4 chunk_at(const uint8_t *p) { return *reinterpret_cast<const int4 *>(p); }

/* 16 bytes of values with the matching high and low bytes of the input */
static __device__ __forceinline__ int dot16(int4 w, int4 h, int4 l)
{
    int high = __dp4a(w.x, h.x, __dp4a(w.y, h.y, __dp4a(w.z, h.z, __dp4a(w.w, h.w, 0))));
    int low = __dp4a(w.x, l.x, __dp4a(w.y, l.y, __dp4a(w.z, l.z, __dp4a(w.w, l.w, 0))));
    return high * 128 + low;
}

static __device__ __forceinline__ void dot_q8(const uint8_t *s, const uint8_t *s2, uint32_t scale, const uint8_t *ints,
                                              const float4 *more, uint32_t c0, uint32_t n, uint32_t lane, float &a, float &b)
{
    for (uint32_t c = 16 * lane; c < n; c += 512) {
        const uint32_t block = (c0 + c) / 32, half = (c / 16) & 1;
        const int4 h = chunk_at(ints + int_place(block, half)), l = chunk_at(ints + int_place(block, 2 + half));
        const float x = more[block].x;
        a = fmaf(half_at(s + scale, (int)(c / 32)) * x, (float)dot16(chunk_at(s + c), h, l), a);
        b = fmaf(half_at(s2 + scale, (int)(c / 32)) * x, (float)dot16(chunk_at(s2 + c), h, l), b);
    }
}

static __device__ __forceinline__ int4 low4(int4 w)
{
    return make_int4(w.x & 0x0F0F0F0F, w.y & 0x0F0F0F0F, w.z & 0x0F0F0F0F, w.w & 0x0F0F0F0F);
}

static __device__ __forceinline__ int4 high4(int4 w)
{
    return make_int4(w.x >> 4 & 0x0F0F0F0F, w.y >> 4 & 0x0F0F0F0F, w.z >> 4 & 0x0F0F0F0F, w.w >> 4 & 0x0F0F0F0F);
}

/* two more bits for 16 values: word k of them has field k of each byte of h */
static __device__ __forceinline__ int4 with_high(int4 w, uint32_t h)
{
    return make_int4(w.x | (int)((h & 0x03030303u) << 4), w.y | (int)((h >> 2 & 0x03030303u) << 4),
                     w.z | (int)((h >> 4 & 0x03030303u) << 4), w.w | (int)((h >> 6 & 0x03030303u) << 4));
}

template <int KIND> static __device__ __forceinline__ float dot_nibbles(const uint8_t *s, uint32_t high, uint32_t scale, uint32_t c,
                                                                        const int4 h[2], const int4 l[2], float4 x)
{
    const int4 w = chunk_at(s + c / 2);
    int4 w0 = low4(w), w1 = high4(w);
    if (KIND == QN_W_q6) {
        const uint2 two = *reinterpret_cast<const uint2 *>(s + high + c / 4);
        w0 = with_high(w0, two.x), w1 = with_high(w1, two.y);
    }
    const int d0 = dot16(w0, h[0], l[0]), d1 = dot16(w1, h[1], l[1]);
    if (KIND == QN_W_q6) {
        const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(s + scale + c / 8));
        return f.x * (x.x * (float)d0 - 32.f * x.y) + f.y * (x.x * (float)d1 - 32.f * x.z);
    }
    if (KIND == QN_W_q4m) {
        const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(s + scale + c / 8));
        return f.x * x.x * (float)(d0 + d1) + f.y * x.w;
    }
    return half_at(s + scale, (int)(c / 32)) * (x.x * (float)(d0 + d1) - 8.f * x.w);
}

template <int KIND>
static __device__ __forceinline__ void dot_4(const uint8_t *s, const uint8_t *s2, uint32_t high, uint32_t scale, const uint8_t *ints,
                                             const float4 *more, uint32_t c0, uint32_t n, uint32_t lane, float &a, float &b)
{
    for (uint32_t c = 32 * lane; c < n; c += 1024) {
        const uint32_t block = (c0 + c) / 32;
        const int4 h[2] = { chunk_at(ints + int_place(block, 0)), chunk_at(ints + int_place(block, 1)) };
        const int4 l[2] = { chunk_at(ints + int_place(block, 2)), chunk_at(ints + int_place(block, 3)) };
        const float4 x = more[block];
        a += dot_nibbles<KIND>(s, high, scale, c, h, l, x);
        b += dot_nibbles<KIND>(s2, high, scale, c, h, l, x);
    }
}

/* ---- a linear: this warp's units of this block */

struct best { float value; uint32_t token; };

static __device__ __forceinline__ float gate(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : x / (1.f + __expf(-x));
}

static __device__ __forceinline__ void put_unit(const qn_ins *i, uint32_t u, float a, float b, best &top)
{
    const float *bias = at<const float>(i->bias), *bias2 = at<const float>(i->bias2);
    float *y = at<float>(i->dst);
    if (i->out == QN_OUT_silu || i->out == QN_OUT_gelu) {
        if (bias) a += bias[u];
        if (bias2) b += bias2[u];
        y[u] = gate(a, i->out == QN_OUT_gelu) * b;
        return;
    }
    const uint32_t r = 2 * u;
    const bool pair = r + 1 < i->rows;
    if (bias) a += bias[r], b += pair ? bias[r + 1] : 0.f;
    if (i->out == QN_OUT_add) a += fresh(y + r), b += pair ? fresh(y + r + 1) : 0.f;
    y[r] = a;
    if (pair) y[r + 1] = b;
    if (i->out != QN_OUT_logits) return;
    if (a > top.value) top.value = a, top.token = r;
    if (pair && b > top.value) top.value = b, top.token = r + 1;
}

static __device__ __forceinline__ void run_linear(const qn_ins *i, ring &r, const input &in, uint32_t warp, uint32_t lane, best &top)
{
    const uint32_t kind = i->kind, cols = i->cols, span = i->span, high = i->s_high, scale = i->s_scale, n_units = i->n_units;
    const uint8_t *ints = in.at + ((i->forms & QN_FORM_float) ? float_bytes(cols) : 0);
    const float4 *more = reinterpret_cast<const float4 *>(ints + (cols + 31) / 32 * 64);
    for (uint32_t j = (warp + QN_P_WARPS - i->warp0) % QN_P_WARPS; j < n_units; j += QN_P_WARPS) {
        float a = 0, b = 0;
        for (uint32_t c0 = 0; c0 < cols; c0 += span) {
            const uint32_t n = min(span, cols - c0);
            const uint8_t *s = ring_wait(r), *s2 = s + r.stage_bytes / 2;
            switch (kind) {
            case QN_W_f32: dot_float(s, s2, in, c0, n, lane, a, b); break;
            case QN_W_f16: dot_half(s, s2, in, c0, n, lane, false, a, b); break;
            case QN_W_bf16: dot_half(s, s2, in, c0, n, lane, true, a, b); break;
            case QN_W_q8: dot_q8(s, s2, scale, ints, more, c0, n, lane, a, b); break;
            case QN_W_q4: dot_4<QN_W_q4>(s, s2, high, scale, ints, more, c0, n, lane, a, b); break;
            case QN_W_q4m: dot_4<QN_W_q4m>(s, s2, high, scale, ints, more, c0, n, lane, a, b); break;
            default: dot_4<QN_W_q6>(s, s2, high, scale, ints, more, c0, n, lane, a, b);
            }
            __syncwarp();
            ring_fill(r, warp, lane);
        }
        a = sum32(a);
        b = sum32(b);
        if (lane == 0) put_unit(i, i->unit + j, a, b, top);
    }
}

/* ---- attention: block b takes head b % n_kv and part b / n_kv of its context; the last part to be done joins them */

struct heads { float *q, *k, *v, *joined; }; /* in shared memory: [group, d], [d], [d], [warps, group, d + 2] */

static __device__ __forceinline__ float as_cached(float v, int type) { return type == QN_KVT_f16 ? __half2float(__float2half(v)) : v; }

/* One head by one warp: norm, rotation, scale. */
static __device__ void turn_head(const float *from, float *to, const qn_att &t, uint64_t norm, int pos, float scale, uint32_t lane)
{
    const int d = t.d_head, half = t.d_rot / 2;
    const float2 *angle = at<const float2>(t.angles) + (size_t)pos * half;
    float ss = 0;
    for (int i = (int)lane; i < d; i += 32) {
        const float x = fresh(from + i);
        to[i] = x;
        ss += x * x;
    }
    if (norm) {
        const float s = rsqrtf(sum32(ss) / (float)d + t.eps);
        for (int i = (int)lane; i < d; i += 32) to[i] *= s * at<const float>(norm)[i];
    }
    __syncwarp();
    for (int i = (int)lane; i < half; i += 32) {
        float *x = to + (t.neox ? i : 2 * i), *y = t.neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y;
        *x = x0 * angle[i].x - y0 * angle[i].y;
        *y = x0 * angle[i].y + y0 * angle[i].x;
    }
    __syncwarp();
    for (int i = (int)lane; i < d; i += 32) to[i] *= scale;
}

static __device__ __forceinline__ float cached(const uint8_t *row, int type, int i)
{
    if (type == QN_KVT_f32) return fresh(reinterpret_cast<const float *>(row) + i);
    return __half2float(__ushort_as_half(__ldcg(reinterpret_cast<const unsigned short *>(row) + i)));
}

template <int G, int SLOTS>
static __device__ void attend_part(const qn_att &t, const heads &h, const int *pages, int kv, int begin, int end, int pos)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, d = t.d_head, group = t.n_head / t.n_kv;
    const size_t row_bytes = (size_t)t.n_kv * d * (t.type == QN_KVT_f16 ? 2 : 4);
    float q[G][SLOTS], acc[G][SLOTS], top[G], sum[G];
#pragma unroll
    for (int g = 0; g < G; g++) {
        top[g] = -INFINITY, sum[g] = 0;
#pragma unroll
        for (int j = 0; j < SLOTS; j++) {
            q[g][j] = g < group && lane + 32 * j < d ? h.q[g * d + lane + 32 * j] : 0.f;
            acc[g][j] = 0;
        }
    }
    for (int p0 = begin + warp; p0 < end; p0 += 2 * QN_P_WARPS) { /* two tokens at a time: their loads overlap */
        float k[2][SLOTS], v[2][SLOTS];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            const int p = p0 + m * QN_P_WARPS;
            const uint8_t *row = NULL;
            if (p < end && p != pos)
                row = at<const uint8_t>(t.cache) + (size_t)pages[p / QN_CPAGE] * t.stride + (size_t)(p % QN_CPAGE) * row_bytes;
#pragma unroll
            for (int j = 0; j < SLOTS; j++) {
                const int i = lane + 32 * j;
                const bool live = i < d && p < end;
                k[m][j] = !live ? 0.f : row ? cached(row, t.type, kv * d + i) : h.k[i];
                v[m][j] = !live ? 0.f : row ? cached(row + QN_CPAGE * row_bytes, t.type, kv * d + i) : h.v[i];
            }
        }
#pragma unroll
        for (int m = 0; m < 2; m++) {
            if (p0 + m * QN_P_WARPS >= end) break;
#pragma unroll
            for (int g = 0; g < G; g++) {
                if (g >= group) break;
                float s = 0;
#pragma unroll
                for (int j = 0; j < SLOTS; j++) s = fmaf(q[g][j], k[m][j], s);
                s = sum32(s);
                const float above = fmaxf(top[g], s), keep = __expf(top[g] - above), share = __expf(s - above);
                sum[g] = sum[g] * keep + share;
                top[g] = above;
#pragma unroll
                for (int j = 0; j < SLOTS; j++) acc[g][j] = fmaf(acc[g][j], keep, share * v[m][j]);
            }
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++) {
        if (g >= group) break;
        float *mine = h.joined + (warp * group + g) * (d + 2);
#pragma unroll
        for (int j = 0; j < SLOTS; j++)
            if (lane + 32 * j < d) mine[lane + 32 * j] = acc[g][j];
        if (lane == 0) mine[d] = top[g], mine[d + 1] = sum[g];
    }
}

/* Joins n partial results that lie `step` floats apart, element i of head g. */
static __device__ __forceinline__ float join(const float *p, int n, size_t step, int i, int d, bool shared_, float *top, float *sum)
{
    float most = -INFINITY, total = 0, value = 0;
    for (int w = 0; w < n; w++) most = fmaxf(most, shared_ ? p[w * step + d] : fresh(p + w * step + d));
    for (int w = 0; w < n; w++) {
        const float *o = p + w * step, share = __expf((shared_ ? o[d] : fresh(o + d)) - most);
        total += (shared_ ? o[d + 1] : fresh(o + d + 1)) * share;
        value += (shared_ ? o[i] : fresh(o + i)) * share;
    }
    *top = most, *sum = total;
    return value;
}

static __device__ void prepare_heads(const qn_att &t, const heads &h, const int *pages, int kv, int pos, bool newest)
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int d = t.d_head, group = t.n_head / t.n_kv;
    if ((int)warp < group)
        turn_head(at<const float>(t.q) + (kv * group + (int)warp) * d, h.q + (int)warp * d, t, t.q_norm, pos, t.scale, lane);
    if (!newest || warp < QN_P_WARPS - 2) return;
    const size_t row_bytes = (size_t)t.n_kv * d * (t.type == QN_KVT_f16 ? 2 : 4);
    uint8_t *row = at<uint8_t>(t.cache) + (size_t)pages[pos / QN_CPAGE] * t.stride + (size_t)(pos % QN_CPAGE) * row_bytes;
    const bool is_v = warp == QN_P_WARPS - 1;
    float *to = is_v ? h.v : h.k;
    if (is_v) row += QN_CPAGE * row_bytes;
    else turn_head(at<const float>(t.k) + kv * d, to, t, t.k_norm, pos, 1.f, lane);
    for (int i = (int)lane; i < d; i += 32) {
        const float x = is_v ? fresh(at<const float>(t.v) + kv * d + i) : to[i];
        to[i] = as_cached(x, t.type);
        if (t.type == QN_KVT_f16) reinterpret_cast<__half *>(row)[kv * d + i] = __float2half(x);
        else reinterpret_cast<float *>(row)[kv * d + i] = x;
    }
}

static __device__ __noinline__ void run_attend(const qn_ins *ins, const qn_crun &a, uint8_t *smem, int pos, uint32_t target, uint32_t *flag)
{
    const qn_att t = at<const qn_att>(a.atts)[ins->unit]; /* before the wait: it takes a while, and does not depend on it */
    const int from = t.window ? max(0, pos - t.window + 1) : 0, n = pos + 1 - from, d = t.d_head, group = t.n_head / t.n_kv;
    const int chunks = min(t.chunks, (n + 31) / 32), length = (n + chunks - 1) / chunks;
    const int kv = (int)blockIdx.x % t.n_kv, part = (int)blockIdx.x / t.n_kv;
    uint32_t *counters = at<uint32_t>(a.counters);
    if (part >= chunks) return;
    if (threadIdx.x == 0) wait_until(counters + ins->wait - 1, target);
    __syncthreads();
    const int *pages = at<const int>(t.pages) + a.first;
    const int begin = from + part * length, end = min(begin + length, pos + 1);
    heads h;
    h.q = reinterpret_cast<float *>(smem);
    h.k = h.q + group * d, h.v = h.k + d, h.joined = h.v + d;
    prepare_heads(t, h, pages, kv, pos, begin <= pos && pos < end);
    __syncthreads();
    if (d <= 64) attend_part<QN_P_GROUP, 2>(t, h, pages, kv, begin, end, pos);
    else if (d <= 128) attend_part<QN_P_GROUP, 4>(t, h, pages, kv, begin, end, pos);
    else attend_part<4, 8>(t, h, pages, kv, begin, end, pos);
    __syncthreads();
    float *mine = at<float>(a.parts) + ((size_t)kv * t.chunks + part) * group * (d + 2);
    for (int e = (int)threadIdx.x; e < group * d; e += THREADS) {
        const int g = e / d, i = e % d;
        float top, sum;
        const float v = join(h.joined + g * (d + 2), QN_P_WARPS, (size_t)group * (d + 2), i, d, true, &top, &sum);
        if (chunks == 1) at<float>(t.y)[(kv * group + g) * d + i] = v / sum;
        else mine[g * (d + 2) + i] = v;
        if (chunks > 1 && i == 0) mine[g * (d + 2) + d] = top, mine[g * (d + 2) + d + 1] = sum;
    }
    __syncthreads();
    if (chunks > 1) {
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = atomicInc(at<uint32_t>(a.heads) + kv, (unsigned)chunks - 1) == (unsigned)chunks - 1;
            __threadfence();
        }
        __syncthreads();
        if (!*flag) return;
        const float *all = at<const float>(a.parts) + (size_t)kv * t.chunks * group * (d + 2);
        for (int e = (int)threadIdx.x; e < group * d; e += THREADS) {
            const int g = e / d, i = e % d;
            float top, sum;
            const float v = join(all + g * (d + 2), chunks, (size_t)group * (d + 2), i, d, false, &top, &sum);
            at<float>(t.y)[(kv * group + g) * d + i] = v / sum;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) add_release(counters + ins->signal - 1);
}

/* ---- the best logit: larger wins, among equals the lower token. Ordered as one 64-bit number. */

static __device__ __forceinline__ unsigned long long key_of(best b)
{
    const uint32_t u = __float_as_uint(b.value), ordered = u & 0x80000000u ? ~u : u | 0x80000000u;
    return (unsigned long long)ordered << 32 | (0xFFFFFFFFu - b.token);
}

static __device__ void offer_best(const qn_crun &a, best top, uint32_t parity, unsigned long long *room)
{
    const uint32_t warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) room[warp] = top.token == ~0u ? 0 : key_of(top);
    __syncthreads();
    if (threadIdx.x) return;
    unsigned long long most = 0;
    for (int w = 0; w < QN_P_WARPS; w++) most = room[w] > most ? room[w] : most;
    if (most) atomicMax(at<unsigned long long>(a.best) + parity, most);
}

static __device__ __forceinline__ int token_of(unsigned long long key) { return (int)(0xFFFFFFFFu - (uint32_t)key); }

/* ---- the walk */

struct shared_state { float part[32]; unsigned long long room[QN_P_WARPS]; uint32_t flag; int token; };

static __device__ __noinline__ void begin_phase(const qn_ins *i, const qn_crun &a, const input &in, uint32_t t, shared_state *st)
{
    const uint32_t parity = (a.epoch + t) & 1;
    if (threadIdx.x == 0) {
        if (i->wait && !(i->in == QN_IN_embed && t == 0)) { /* the first token is the host's */
            const uint32_t tokens = a.epoch + t + (i->in == QN_IN_embed ? 0 : 1); /* the logits are those of the token before */
            wait_until(at<uint32_t>(a.counters) + i->wait - 1, tokens * i->wait_for);
        }
        if (i->in == QN_IN_embed)
            st->token = t == 0 ? a.token : token_of(__ldcg(at<unsigned long long>(a.best) + (parity ^ 1)));
    }
    __syncthreads();
    if (i->in == QN_IN_copy) bring_copy(i, in);
    else bring_normed(i, a, in, st->token, st->part);
    __syncthreads();
}

static __device__ __noinline__ void end_phase(const qn_ins *i, const qn_crun &a, uint32_t t, best top, shared_state *st)
{
    const uint32_t parity = (a.epoch + t) & 1;
    if (i->out == QN_OUT_logits) offer_best(a, top, parity, st->room);
    __syncthreads();
    if (threadIdx.x) return;
    const uint32_t before = add_release(at<uint32_t>(a.counters) + i->signal - 1);
    if (i->out != QN_OUT_logits || before + 1 != (a.epoch + t + 1) * gridDim.x) return;
    at<int>(a.chosen)[t] = token_of(__ldcg(at<unsigned long long>(a.best) + parity)); /* the last block knows them all */
}

static __device__ void stamp(const qn_crun &a, uint32_t k, int end)
{
    if (a.stamps && threadIdx.x == 0) at<uint64_t>(a.stamps)[((uint64_t)blockIdx.x * a.n_ins + k) * 2 + end] = now_ns();
}

/* Lane l's 16 bytes of an instruction. */
#define INS_LANES (sizeof(qn_ins) / 16)
static_assert(sizeof(qn_ins) % 16 == 0 && INS_LANES <= 32, "a warp copies an instruction");

static __device__ __forceinline__ void open_ring(ring &r, const qn_crun &a, uint8_t *smem, uint32_t warp, uint32_t lane)
{
    uint8_t *bars = smem + a.input_bytes + (size_t)QN_P_WARPS * a.n_stages * a.stage_bytes;
    r.window = reinterpret_cast<const qn_ins *>(bars + (size_t)QN_P_WARPS * a.n_stages * 8);
    r.base = smem + a.input_bytes + (size_t)warp * a.n_stages * a.stage_bytes;
    r.stage_bytes = a.stage_bytes, r.n_stages = a.n_stages, r.filled = r.used = 0;
    r.bars = (uint32_t)__cvta_generic_to_shared(bars + (size_t)warp * a.n_stages * 8);
    r.list = at<const qn_ins>(a.lists) + (size_t)blockIdx.x * a.n_ins;
    r.n_ins = a.n_ins, r.n_all = a.n_ins * a.n_tokens, r.seq = r.now = 0;
#if __CUDA_ARCH__ >= 900
    if (lane == 0) {
        for (uint32_t s = 0; s < a.n_stages; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(r.bars + 8 * s) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
#endif
}

static __device__ __forceinline__ void ring_start(ring &r, const qn_crun &a, uint32_t warp, uint32_t lane)
{
    ring_seek(r, warp);
    for (uint32_t s = 0; s < a.n_stages; s++) ring_fill(r, warp, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) qn_persist(const __grid_constant__ qn_crun a)
{
    extern __shared__ __align__(128) uint8_t smem[];
    __shared__ shared_state st;
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint4 *list = at<const uint4>(a.lists) + (size_t)blockIdx.x * a.n_ins * INS_LANES;
    ring r;
    open_ring(r, a, smem, warp, lane);
    uint4 *window = reinterpret_cast<uint4 *>(const_cast<qn_ins *>(r.window));
    if (warp < QN_P_AHEAD && lane < INS_LANES) window[warp * INS_LANES + lane] = list[warp % a.n_ins * INS_LANES + lane];
    __syncthreads();
    ring_start(r, a, warp, lane);
    for (uint32_t t = 0; t < a.n_tokens; t++) {
        best top = { -INFINITY, ~0u };
        for (uint32_t k = 0; k < a.n_ins; k++) {
            const uint32_t seq = r.now = t * a.n_ins + k, later = seq + QN_P_AHEAD;
            const qn_ins *i = r.window + seq % QN_P_WINDOW;
            uint4 ahead;
            const bool fetches = warp == seq % QN_P_WARPS && lane < INS_LANES;
            if (fetches) ahead = list[later % a.n_ins * INS_LANES + lane];
            stamp(a, k, 0);
            if (i->op == QN_I_attend) {
                run_attend(i, a, smem, a.pos + (int)t, (a.epoch + t + 1) * i->wait_for, &st.flag);
                /* all blocks are past this token's start: the other token's place is free again */
                if (blockIdx.x == 0 && threadIdx.x == 0) at<unsigned long long>(a.best)[(a.epoch + t + 1) & 1] = 0;
            } else {
                const input in = { smem, i->cols };
                if (i->in != QN_IN_keep) begin_phase(i, a, in, t, &st);
                run_linear(i, r, in, warp, lane, top);
            }
            if (fetches) window[later % QN_P_WINDOW * INS_LANES + lane] = ahead;
            if (i->op == QN_I_linear && i->signal) end_phase(i, a, t, top, &st);
            stamp(a, k, 1);
        }
    }
}

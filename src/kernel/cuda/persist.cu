/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks its own list of instructions; nothing is launched
 * between them. Weights do not depend on what is being computed, so every warp has a ring of stages in shared memory and keeps
 * copies of its next rows in flight, across waits and from token to token: memory does not stop while a phase ends. A phase's
 * input is made by every block for itself (norms are cheap, a wait more is not).
 * What the lists hold is list.c's business; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/weights.cuh"

#define THREADS (32 * QN_P_WARPS)

static __device__ __forceinline__ uint64_t now_ns()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
}

/* Where an instruction of this block is, for those who profile. */
static __device__ __forceinline__ void stamp(const qn_crun &a, uint32_t k, int which)
{
    if (a.stamps && threadIdx.x == 0) at<uint64_t>(a.stamps)[((uint64_t)blockIdx.x * a.n_ins + k) * QN_STAMPS + which] = now_ns();
}

/* ---- waiting and telling */

/* Relaxed: an acquire would empty the first cache at every look, and with it every thread's stack. What it would guard, values of
 * other blocks, is only ever read from the second cache (fresh), behind this load and a barrier. */
static __device__ __forceinline__ uint32_t load_counter(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
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
    while ((int32_t)(load_counter(counter) - target) < 0) { }
}

static __device__ __forceinline__ void tell(uint32_t *p) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" :: "l"(p) : "memory"); }

static __device__ __forceinline__ float sum32(float v)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

/* What other blocks wrote is read past the first cache, which does not hear of it. */
static __device__ __forceinline__ float fresh(const float *p) { return __ldcg(p); }

/* ---- a warp's ring */

/* Registers are dear: what spills goes to local memory, which no first cache of 24 KiB holds for 512 threads. So the fetch at hand
 * lies in shared memory, and the ring keeps what changes with every piece. */
struct ring {
    uint8_t *base;            /* of this warp */
    uint32_t at_shared;       /* the same, as shared memory is addressed */
    uint32_t to_fill, to_use, parity; /* stages, in turn; parity of the barrier that is waited for */
    uint32_t left, at;        /* fetches still to begin, of all tokens; the next to ask for */
    uint4 next;               /* lanes 0..3: the fetch behind the current one, on its way */
    uint64_t a, b;            /* the current one: rows of its unit */
    uint32_t n, col;          /* units left, column */
};

struct fetch { uint32_t n, step, cols, span, kind, high, scale, s_high, s_scale, each, row, second; }; /* qn_fetch without rows */

static __device__ __forceinline__ uint32_t value_bytes(uint32_t kind, uint32_t cols)
{
    return kind == QN_W_f32 ? 4 * cols : kind <= QN_W_bf16 ? 2 * cols : kind == QN_W_q8 ? cols : cols / 2;
}

static __device__ __forceinline__ uint32_t scale_bytes(uint32_t kind, uint32_t cols)
{
    return kind == QN_W_q4m ? cols / 8 : kind == QN_W_q6 ? cols / 8 : cols / 16;
}

static __device__ __forceinline__ uint32_t pad16(uint32_t n) { return (n + 15) & ~15u; }

static __device__ __forceinline__ uint32_t from_lane(uint32_t v, int lane) { return __shfl_sync(~0u, v, lane); }

/* Begins the next fetch, and asks for the one behind it: by the time it is wanted, it has come. */
static __device__ __forceinline__ void ring_advance(ring &r, const qn_crun &p, fetch *f, uint32_t warp, uint32_t lane)
{
    r.n = 0;
    if (r.left == 0) return;
    const uint4 v = r.next;
    r.a = (uint64_t)from_lane(v.y, 0) << 32 | from_lane(v.x, 0);
    r.b = (uint64_t)from_lane(v.w, 0) << 32 | from_lane(v.z, 0);
    r.n = from_lane(v.x, 1);
    __syncwarp();
    if (lane - 1 < 3) reinterpret_cast<uint4 *>(f)[lane - 1] = v;
    __syncwarp();
    r.col = 0;
    r.left--;
    const uint32_t *where = at<const uint32_t>(p.fetch_at) + blockIdx.x * QN_P_WARPS + warp;
    if (lane < 4) r.next = at<const uint4>(p.fetches)[(size_t)(where[0] + r.at) * 4 + lane];
    r.at = r.at + 1 == where[1] - where[0] ? 0 : r.at + 1;
}

/* Hopper's copy engine takes a whole run from one lane and tells a barrier (7 % faster than the other way); before it, each lane
 * copies 16 bytes at a time past the registers, and pieces are counted by groups of copies. */
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void copy_run(uint32_t to, uint64_t from, uint32_t bytes, uint32_t lane, uint32_t bar)
{
    if (lane == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
#else
static __device__ __forceinline__ void copy_run(uint32_t to, uint64_t from, uint32_t bytes, uint32_t lane, uint32_t bar)
{
    (void)bar;
#pragma unroll 1
    for (uint32_t o = 16 * lane; o < bytes; o += 512)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to + o), "l"(from + o) : "memory");
}
#endif

/* One row's part of a span: its planes one by one. */
static __device__ __forceinline__ void copy_span(const fetch *f, uint32_t to, uint64_t row, uint32_t col, uint32_t cols, uint32_t lane,
                                                 uint32_t bar)
{
    const uint32_t kind = f->kind;
    copy_run(to, row + value_bytes(kind, col), pad16(value_bytes(kind, cols)), lane, bar);
    if (kind == QN_W_q6) copy_run(to + f->s_high, row + f->high + col / 4, pad16(cols / 4), lane, bar);
    if (kind >= QN_W_q8) copy_run(to + f->s_scale, row + f->scale + scale_bytes(kind, col), pad16(scale_bytes(kind, cols)), lane, bar);
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ uint32_t span_bytes(uint32_t kind, uint32_t cols)
{
    return pad16(value_bytes(kind, cols)) + (kind == QN_W_q6 ? pad16(cols / 4) : 0) +
           (kind >= QN_W_q8 ? pad16(scale_bytes(kind, cols)) : 0);
}
#endif

/* Begins to copy the next piece into the next stage. A warp's pieces are counted, so one that has nothing to copy counts too. */
static __device__ __forceinline__ void ring_fill(ring &r, const qn_crun &p, fetch *f, uint32_t bars, uint32_t warp, uint32_t lane)
{
    if (r.n) {
        const uint32_t all = f->cols, cols = min(f->span, all - r.col), row = f->row, each = f->each, second = f->second;
        const uint32_t to = r.at_shared + r.to_fill * p.stage_bytes, bar = bars + 8 * r.to_fill;
#if __CUDA_ARCH__ >= 900
        if (lane == 0) {
            const uint32_t bytes = each * (row ? row : span_bytes(f->kind, cols));
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
        }
#endif
        if (row) {
            const bool joined = each == 2 && r.b == r.a + row;
            copy_run(to, r.a, joined ? 2 * row : row, lane, bar);
            if (each == 2 && !joined) copy_run(to + second, r.b, row, lane, bar);
        } else {
            copy_span(f, to, r.a, r.col, cols, lane, bar);
            if (each == 2) copy_span(f, to + second, r.b, r.col, cols, lane, bar);
        }
        r.to_fill = r.to_fill + 1 == p.n_stages ? 0 : r.to_fill + 1;
        r.col += cols;
        if (r.col >= all) {
            r.col = 0;
            r.a += f->step, r.b += f->step;
            if (--r.n == 0) ring_advance(r, p, f, warp, lane);
        }
    }
#if __CUDA_ARCH__ < 900
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for the oldest piece; returns where it lies. */
static __device__ __forceinline__ const uint8_t *ring_wait(ring &r, const qn_crun &p, uint32_t bars)
{
    const uint32_t stage = r.to_use;
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}"
                 :: "r"(bars + 8 * stage), "r"(r.parity) : "memory");
#else
    (void)bars;
    switch (p.n_stages) { /* groups that may still be on their way */
    case 2: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
    case 3: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
    default: asm volatile("cp.async.wait_group 3;" ::: "memory");
    }
    __syncwarp();
#endif
    r.to_use = stage + 1 == p.n_stages ? 0 : stage + 1;
    if (r.to_use == 0) r.parity ^= 1;
    return r.base + stage * p.stage_bytes;
}

/* ---- the input of a phase, in shared memory
 * A block of 32 columns has 128 bytes, eight places of 16. As floats, chunk c (4 values) of block b lies at place c ^ (b & 7), so that
 * lanes which read the same chunk of neighbouring blocks hit different banks; as integers, the same holds for five things: high
 * bytes of values 0..15 and 16..31, low bytes of both, and a float4 with scale and sums (of the first 16, the last 16, all; times
 * scale). Floats are brought first and turned into integers where they lie.
 * Code here is kept small, loops rolled: a phase's code is run once and then thrown out of the instruction cache by the next. */

struct input { uint8_t *at; uint32_t cols; };

enum { ID_high = 0, ID_low = 1, ID_more = 2, ID_second = 4 }; /* of values 16..31: + ID_second */

static __device__ __forceinline__ uint32_t float_place(uint32_t chunk) { return (chunk ^ (chunk >> 3 & 7)) << 4; }
static __device__ __forceinline__ uint32_t int_place(uint32_t b, uint32_t id) { return b << 7 | (id ^ (b & 7)) << 4; }
static __device__ __forceinline__ uint32_t form_bytes(uint32_t cols) { return (cols + 31) / 32 * 128; }
static __device__ __forceinline__ float4 *chunk_of(const input &in, uint32_t t)
{
    return reinterpret_cast<float4 *>(in.at + float_place(t));
}

/* Four values of chunk t to integers, by all lanes of a warp: eight of them have a block. */
static __device__ __forceinline__ void turn_to_ints(uint8_t *ints, uint32_t t, bool live, float4 v)
{
    float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
#pragma unroll
    for (int o = 4; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    const float inverse = most > 0 ? __fdividef(16256.f, most) : 0.f, scale = most * (1.f / 16256.f); /* 127 * 128 */
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
    const int other = __shfl_xor_sync(~0u, sum, 4); /* also: every lane has read its floats by now */
    if (!live) return;
    const uint32_t b = t / 8, i = t % 8, second = i / 4 * ID_second;
    *reinterpret_cast<uint32_t *>(ints + int_place(b, ID_high + second) + 4 * (i & 3)) = high;
    *reinterpret_cast<uint32_t *>(ints + int_place(b, ID_low + second) + 4 * (i & 3)) = low;
    if (i == 0)
        *reinterpret_cast<float4 *>(ints + int_place(b, ID_more)) =
            make_float4(scale, scale * (float)sum, scale * (float)other, scale * (float)(sum + other));
}

static __device__ float block_sum(float v, float *part)
{
    v = sum32(v);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return sum32(threadIdx.x % 32 < QN_P_WARPS ? part[threadIdx.x % 32] : 0.f);
}

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float4 times(float4 v, float s, float4 w)
{
    return make_float4(v.x * s * w.x, v.y * s * w.y, v.z * s * w.z, v.w * s * w.w);
}

struct shared_state { qn_att att; float part[QN_P_WARPS], part2[QN_P_WARPS]; unsigned long long room[QN_P_WARPS]; uint32_t flag; int token; };

static __device__ __forceinline__ int token_of(unsigned long long key) { return (int)(0xFFFFFFFFu - (uint32_t)key); }

static __device__ __forceinline__ void wait_phase(const qn_ins *i, const qn_crun &a, uint32_t k, uint32_t t, shared_state *st)
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
    stamp(a, k, QN_STAMP_waited);
}

/* src as it is into shared memory, four chunks of a thread at a time; what lies behind the end is zero. */
static __device__ __forceinline__ void bring_raw(const input &in, uint64_t src)
{
    const uint32_t n = in.cols / 4, all = (n + 7) & ~7u;
#pragma unroll 1
    for (uint32_t first = threadIdx.x; first < all; first += 4 * THREADS) {
        float4 v[4];
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            v[k] = first + k * THREADS < n ? __ldcg(at<const float4>(src) + first + k * THREADS) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (first + k * THREADS < all) *chunk_of(in, first + k * THREADS) = v[k];
    }
}

static __device__ __noinline__ void bring_embedded(const qn_wmat &w, const input &in, int token, float factor)
{
    const uint32_t n = in.cols / 4, all = (n + 7) & ~7u;
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < all; t += THREADS) {
        float v[8];
        weights8_any(at<const uint8_t>(w.at) + (size_t)token * w.row_bytes, w, (int)(min(t, n - 1) / 2 * 8), v);
        const bool odd = t & 1, live = t < n;
        *chunk_of(in, t) = make_float4(live ? factor * (odd ? v[4] : v[0]) : 0.f, live ? factor * (odd ? v[5] : v[1]) : 0.f,
                                       live ? factor * (odd ? v[6] : v[2]) : 0.f, live ? factor * (odd ? v[7] : v[3]) : 0.f);
    }
}

/* src + norm(add) * post */
static __device__ __forceinline__ void add_post(const qn_ins *i, const input &in, float *part)
{
    const uint32_t n = in.cols / 4;
    const float4 *add = at<const float4>(i->add), *post = at<const float4>(i->post);
    float ss = 0;
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += THREADS) ss += squares(__ldcg(add + t));
    const float s = rsqrtf(__fdividef(block_sum(ss, part), (float)in.cols) + i->eps);
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += THREADS) {
        const float4 y = times(__ldcg(add + t), s, __ldg(post + t)), x = *chunk_of(in, t);
        *chunk_of(in, t) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

static __device__ __noinline__ void begin_phase(const qn_ins *i, const qn_crun &a, uint32_t k, const input in, uint32_t round,
                                                shared_state *st)
{
    const uint32_t n = in.cols / 4, all = (n + 31) & ~31u;
    const float4 *norm = at<const float4>(i->norm);
    const bool normed = i->in != QN_IN_copy;
    /* the norm's weights come while others are still being waited for */
    const float4 first = normed && threadIdx.x < n ? __ldg(norm + threadIdx.x) : make_float4(1, 1, 1, 1);
    wait_phase(i, a, k, round, st);
    if (i->in == QN_IN_embed) bring_embedded(at<const qn_wmat>(a.tables)[i->table], in, st->token, i->factor);
    else bring_raw(in, i->src);
    if (i->in == QN_IN_post) add_post(i, in, st->part2);
    float s = 1;
    if (normed) {
        float ss = 0;
#pragma unroll 1
        for (uint32_t t = threadIdx.x; t < n; t += THREADS) {
            const float4 v = *chunk_of(in, t);
            ss += squares(v);
            if (i->keep && blockIdx.x == 0) at<float4>(i->keep)[t] = v;
        }
        s = rsqrtf(__fdividef(block_sum(ss, st->part), (float)in.cols) + i->eps);
    }
    uint8_t *ints = in.at + ((i->forms & QN_FORM_float) ? form_bytes(in.cols) : 0);
    if (normed || (i->forms & QN_FORM_int)) {
#pragma unroll 1
        for (uint32_t t = threadIdx.x; t < all; t += THREADS) {
            const bool live = t < ((n + 7) & ~7u);
            float4 v = live ? *chunk_of(in, t) : make_float4(0, 0, 0, 0);
            if (normed && t < n) v = times(v, s, t == threadIdx.x ? first : __ldg(norm + t));
            __syncwarp();
            if ((i->forms & QN_FORM_float) && live) *chunk_of(in, t) = v;
            if (i->forms & QN_FORM_int) turn_to_ints(ints, t, live, v);
        }
    }
    __syncthreads();
    stamp(a, k, QN_STAMP_ready);
}

/* ---- products: a piece of two rows with the input; lanes take 16 bytes of values at a time */

template <bool PAIR>
static __device__ __forceinline__ void dot_half(const uint8_t *s, const uint8_t *s2, const input &in, uint32_t c0, uint32_t n,
                                                uint32_t lane, bool bf16, float &a, float &b)
{
    float a2 = 0, b2 = 0;
#pragma unroll 2
    for (uint32_t c = 8 * lane; c < n; c += 256) {
        const uint4 u = *reinterpret_cast<const uint4 *>(s + 2 * c);
        const uint4 v = PAIR ? *reinterpret_cast<const uint4 *>(s2 + 2 * c) : make_uint4(0, 0, 0, 0);
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
            a = fmaf(f.x, x[2 * k], a), a2 = fmaf(f.y, x[2 * k + 1], a2);
            if (PAIR) b = fmaf(g.x, x[2 * k], b), b2 = fmaf(g.y, x[2 * k + 1], b2);
        }
    }
    a += a2, b += b2;
}

static __device__ __forceinline__ void dot_float(const uint8_t *s, const uint8_t *s2, const input &in, uint32_t c0, uint32_t n,
                                                 uint32_t lane, float &a, float &b)
{
#pragma unroll 2
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

template <bool PAIR>
static __device__ __forceinline__ void dot_q8(const uint8_t *s, const uint8_t *s2, uint32_t scale, const uint8_t *ints,
                                              uint32_t c0, uint32_t n, uint32_t lane, float &a,
                                              float &b)
{
#pragma unroll 2
    for (uint32_t c = 16 * lane; c < n; c += 512) {
        const uint32_t block = (c0 + c) / 32, half = (c / 16) & 1;
        const int4 h = chunk_at(ints + int_place(block, ID_high + half * ID_second));
        const int4 l = chunk_at(ints + int_place(block, ID_low + half * ID_second));
        const float x = *reinterpret_cast<const float *>(ints + int_place(block, ID_more));
        a = fmaf(half_at(s + scale, (int)(c / 32)) * x, (float)dot16(chunk_at(s + c), h, l), a);
        if (PAIR) b = fmaf(half_at(s2 + scale, (int)(c / 32)) * x, (float)dot16(chunk_at(s2 + c), h, l), b);
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

template <int KIND, bool PAIR>
static __device__ __forceinline__ void dot_4(const uint8_t *s, const uint8_t *s2, uint32_t high, uint32_t scale, const uint8_t *ints,
                                             uint32_t c0, uint32_t n, uint32_t lane, float &a,
                                             float &b)
{
#pragma unroll 2
    for (uint32_t c = 32 * lane; c < n; c += 1024) {
        const uint32_t block = (c0 + c) / 32;
        const int4 h[2] = { chunk_at(ints + int_place(block, ID_high)), chunk_at(ints + int_place(block, ID_high + ID_second)) };
        const int4 l[2] = { chunk_at(ints + int_place(block, ID_low)), chunk_at(ints + int_place(block, ID_low + ID_second)) };
        const float4 x = *reinterpret_cast<const float4 *>(ints + int_place(block, ID_more));
        a += dot_nibbles<KIND>(s, high, scale, c, h, l, x);
        if (PAIR) b += dot_nibbles<KIND>(s2, high, scale, c, h, l, x);
    }
}

/* ---- a linear: this warp's units of this block */

struct best { float value; uint32_t token; };

static __device__ __forceinline__ float gate(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : __fdividef(x, 1.f + __expf(-x));
}

static __device__ __forceinline__ bool is_gated(const qn_ins *i) { return i->out == QN_OUT_silu || i->out == QN_OUT_gelu; }

static __device__ __forceinline__ void begin_unit(const qn_ins *i, uint32_t u, float &a, float &b)
{
    const float *bias = at<const float>(i->bias), *bias2 = at<const float>(i->bias2), *y = at<const float>(i->dst);
    const uint32_t r = i->each * u;
    if (is_gated(i)) {
        if (bias) a = bias[u];
        if (bias2) b = bias2[u];
        return;
    }
    const bool second = i->each == 2 && r + 1 < i->rows;
    if (bias) a = bias[r], b = second ? bias[r + 1] : 0.f;
    if (i->out == QN_OUT_add) a += fresh(y + r), b += second ? fresh(y + r + 1) : 0.f;
}

static __device__ __forceinline__ void put_unit(const qn_ins *i, uint32_t u, float a, float b, best &top)
{
    float *y = at<float>(i->dst);
    if (is_gated(i)) {
        y[u] = gate(a, i->out == QN_OUT_gelu) * b;
        return;
    }
    const uint32_t r = i->each * u;
    const bool pair = i->each == 2 && r + 1 < i->rows;
    y[r] = a;
    if (pair) y[r + 1] = b;
    if (i->out != QN_OUT_logits) return;
    if (a > top.value) top.value = a, top.token = r;
    if (pair && b > top.value) top.value = b, top.token = r + 1;
}

template <bool PAIR>
static __device__ __forceinline__ void dot_piece(const uint8_t *s, const uint8_t *s2, uint32_t kind, const input &in,
                                                 const uint8_t *ints, uint32_t high, uint32_t scale, uint32_t c0, uint32_t n,
                                                 uint32_t lane, float &a, float &b)
{
    switch (kind) {
    case QN_W_f32: dot_float(s, s2, in, c0, n, lane, a, b); break;
    case QN_W_f16: dot_half<PAIR>(s, s2, in, c0, n, lane, false, a, b); break;
    case QN_W_bf16: dot_half<PAIR>(s, s2, in, c0, n, lane, true, a, b); break;
    case QN_W_q8: dot_q8<PAIR>(s, s2, scale, ints, c0, n, lane, a, b); break;
    case QN_W_q4: dot_4<QN_W_q4, PAIR>(s, s2, high, scale, ints, c0, n, lane, a, b); break;
    case QN_W_q4m: dot_4<QN_W_q4m, PAIR>(s, s2, high, scale, ints, c0, n, lane, a, b); break;
    default: dot_4<QN_W_q6, PAIR>(s, s2, high, scale, ints, c0, n, lane, a, b);
    }
}

/* Both sums of a warp: lane 0 gets them. */
static __device__ __forceinline__ void sum_both(float &a, float &b, uint32_t lane)
{
    float mine = lane < 16 ? a : b;
    const float theirs = __shfl_xor_sync(~0u, lane < 16 ? b : a, 16);
    mine += theirs;
#pragma unroll
    for (int o = 8; o; o >>= 1) mine += __shfl_xor_sync(~0u, mine, o);
    a = mine;
    b = __shfl_sync(~0u, mine, 16);
}

static __device__ __forceinline__ void run_linear(const qn_ins *i, ring &r, const qn_crun &p, fetch *f, uint32_t bars, const input &in,
                                                  uint32_t warp, uint32_t lane, best &top)
{
    const uint32_t kind = i->kind, cols = i->cols, span = i->span, high = i->s_high, scale = i->s_scale, n_units = i->n_units;
    const bool pair = i->each == 2;
    const uint32_t second = i->second;
    const uint8_t *ints = in.at + ((i->forms & QN_FORM_float) ? form_bytes(cols) : 0);
    for (uint32_t j = (warp + QN_P_WARPS - i->warp0) % QN_P_WARPS; j < n_units; j += QN_P_WARPS) {
        float a = 0, b = 0;
        if (lane == 0) begin_unit(i, i->unit + j, a, b); /* what is added to comes while products are made */
        for (uint32_t c0 = 0; c0 < cols; c0 += span) {
            const uint32_t n = min(span, cols - c0);
            const uint8_t *s = ring_wait(r, p, bars), *s2 = s + second;
            if (pair) dot_piece<true>(s, s2, kind, in, ints, high, scale, c0, n, lane, a, b);
            else dot_piece<false>(s, s2, kind, in, ints, high, scale, c0, n, lane, a, b);
            __syncwarp();
            ring_fill(r, p, f, bars, warp, lane);
        }
        sum_both(a, b, lane);
        if (lane == 0) put_unit(i, i->unit + j, a, b, top);
    }
}

/* ---- attention: block b takes head b % n_kv and part b / n_kv of its context; the last part to be done joins them */

struct heads { float *q, *k, *joined; }; /* in shared memory: [group, d], [d], [warps / group, group, d + 2] */

/* One head by one warp: norm, rotation, scale. */
static __device__ __noinline__ void turn_head(const float *from, float *to, const qn_att &t, uint64_t norm, int pos, float scale, uint32_t lane)
{
    const int d = t.d_head, half = t.d_rot / 2;
    const float2 *angles = at<const float2>(t.angles) + (size_t)pos * half;
    float2 angle[4]; /* asked for first: they are far away */
    float ss = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) angle[j] = (int)lane + 32 * j < half ? __ldg(angles + lane + 32 * j) : make_float2(1, 0);
#pragma unroll 1
    for (int i = (int)lane; i < d; i += 32) {
        const float x = fresh(from + i);
        to[i] = x;
        ss += x * x;
    }
    if (norm) {
        const float s = rsqrtf(__fdividef(sum32(ss), (float)d) + t.eps);
#pragma unroll 1
        for (int i = (int)lane; i < d; i += 32) to[i] *= s * at<const float>(norm)[i];
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int i = (int)lane + 32 * j;
        if (i >= half) break;
        float *x = to + (t.neox ? i : 2 * i), *y = t.neox ? x + half : x + 1;
        const float x0 = *x, y0 = *y;
        *x = x0 * angle[j].x - y0 * angle[j].y;
        *y = x0 * angle[j].y + y0 * angle[j].x;
    }
    __syncwarp();
#pragma unroll 1
    for (int i = (int)lane; i < d; i += 32) to[i] *= scale;
}

template <bool WIDE> static __device__ __forceinline__ float cached(const uint8_t *row, int i)
{
    if (WIDE) return fresh(reinterpret_cast<const float *>(row) + i);
    return __half2float(__ushort_as_half(__ldcg(reinterpret_cast<const unsigned short *>(row) + i)));
}

/* A warp has one head of the group and every n-th token of the part; the tokens' loads come four at a time. */
#define TOKENS 4
template <int SLOTS, bool WIDE>
static __device__ __noinline__ void attend_part(const qn_att &t, const heads &h, const int *pages, int kv, int begin, int end)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, d = t.d_head, group = t.n_head / t.n_kv;
    const int g = warp % group, stripe = warp / group, stripes = QN_P_WARPS / group;
    const size_t row_bytes = (size_t)t.n_kv * d * (WIDE ? 4 : 2);
    float q[SLOTS], acc[SLOTS], top = -INFINITY, sum = 0;
    if (stripe >= stripes) return; /* warps that are left over */
#pragma unroll
    for (int j = 0; j < SLOTS; j++) q[j] = lane + 32 * j < d ? h.q[g * d + lane + 32 * j] : 0.f, acc[j] = 0;
#pragma unroll 1
    for (int p0 = begin + stripe; p0 < end; p0 += TOKENS * stripes) {
        float k[TOKENS][SLOTS], v[TOKENS][SLOTS];
#pragma unroll
        for (int m = 0; m < TOKENS; m++) {
            const int p = min(p0 + m * stripes, end - 1);
            const uint8_t *row = at<const uint8_t>(t.cache) + (size_t)pages[p / QN_CPAGE] * t.stride +
                                 (size_t)(p % QN_CPAGE) * row_bytes;
#pragma unroll
            for (int j = 0; j < SLOTS; j++) {
                const int i = min(lane + 32 * j, d - 1);
                k[m][j] = cached<WIDE>(row, kv * d + i);
                v[m][j] = cached<WIDE>(row + QN_CPAGE * row_bytes, kv * d + i);
            }
        }
#pragma unroll
        for (int m = 0; m < TOKENS; m++) {
            float s = 0;
#pragma unroll
            for (int j = 0; j < SLOTS; j++) s = fmaf(q[j], k[m][j], s); /* lanes past the end have q 0 */
            s = sum32(s);
            if (p0 + m * stripes >= end) s = -INFINITY;
            const float above = fmaxf(top, s), keep = __expf(top - above), share = __expf(s - above);
            sum = sum * keep + share;
            top = above;
#pragma unroll
            for (int j = 0; j < SLOTS; j++) acc[j] = fmaf(acc[j], keep, share * v[m][j]);
        }
    }
    float *mine = h.joined + (stripe * group + g) * (d + 2);
#pragma unroll
    for (int j = 0; j < SLOTS; j++)
        if (lane + 32 * j < d) mine[lane + 32 * j] = acc[j];
    if (lane == 0) mine[d] = top, mine[d + 1] = sum;
}

/* Joins n <= 32 partial results that lie `step` floats apart, by one warp: lane w knows the share of part w; element i of the head
 * is this lane's. FRESH: they are other blocks'. */
template <bool FRESH>
static __device__ __forceinline__ float join(const float *p, int n, size_t step, int i, int d, float *top, float *sum)
{
    const int lane = (int)threadIdx.x % 32;
    float mine = -INFINITY, weight = 0, value = 0;
    if (lane < n) {
        mine = FRESH ? fresh(p + lane * step + d) : p[lane * step + d];
        weight = FRESH ? fresh(p + lane * step + d + 1) : p[lane * step + d + 1];
    }
    float most = mine;
#pragma unroll
    for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    const float share = __expf(mine - most);
    *top = most;
    *sum = sum32(weight * share);
#pragma unroll 4
    for (int w = 0; w < n; w++) {
        const float o = i >= d ? 0.f : FRESH ? fresh(p + w * step + i) : p[w * step + i];
        value += __shfl_sync(~0u, share, w) * o;
    }
    return value;
}

/* Old rows do not depend on what is being waited for: they come into the second cache meanwhile. */
static __device__ void warm_rows(const qn_att &t, const int *pages, int kv, int begin, int end)
{
    const int each = t.type == QN_KVT_f16 ? 2 : 4, lines = (t.d_head * each + 127) / 128, n = (end - begin) * lines * 2;
    const size_t row_bytes = (size_t)t.n_kv * t.d_head * each;
#pragma unroll 1
    for (int e = (int)threadIdx.x; e < n; e += THREADS) {
        const int p = begin + e / (lines * 2), part = e / lines % 2;
        const uint8_t *row = at<const uint8_t>(t.cache) + (size_t)pages[p / QN_CPAGE] * t.stride +
                             (size_t)(part * QN_CPAGE + p % QN_CPAGE) * row_bytes + (size_t)kv * t.d_head * each + e % lines * 128;
        asm volatile("prefetch.global.L2 [%0];" :: "l"(row));
    }
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
    if (is_v) row += QN_CPAGE * row_bytes;
    else turn_head(at<const float>(t.k) + kv * d, h.k, t, t.k_norm, pos, 1.f, lane);
#pragma unroll 1
    for (int i = (int)lane; i < d; i += 32) {
        const float x = is_v ? fresh(at<const float>(t.v) + kv * d + i) : h.k[i];
        if (t.type == QN_KVT_f16) reinterpret_cast<__half *>(row)[kv * d + i] = __float2half(x);
        else reinterpret_cast<float *>(row)[kv * d + i] = x;
    }
}

static __device__ __noinline__ void run_attend(const qn_ins *ins, const qn_crun &a, uint32_t k, uint8_t *smem, int pos,
                                               uint32_t target, shared_state *st)
{
    const qn_att &far = at<const qn_att>(a.atts)[ins->unit];
    const int n_kv = far.n_kv, kv = (int)blockIdx.x % n_kv, part = (int)blockIdx.x / n_kv;
    if (part >= far.chunks) return;
    if (threadIdx.x < sizeof(qn_att) / 16) /* before the wait: it takes a while, and does not depend on it */
        reinterpret_cast<uint4 *>(&st->att)[threadIdx.x] = reinterpret_cast<const uint4 *>(&far)[threadIdx.x];
    __syncthreads();
    const qn_att &t = st->att;
    const int from = t.window ? max(0, pos - t.window + 1) : 0, n = pos + 1 - from, d = t.d_head, group = t.n_head / t.n_kv;
    const int chunks = min(t.chunks, (n + 31) / 32), length = (n + chunks - 1) / chunks;
    uint32_t *counters = at<uint32_t>(a.counters);
    if (part >= chunks) return;
    const int *pages = at<const int>(t.pages) + a.first;
    const int begin = from + part * length, end = min(begin + length, pos + 1);
    warm_rows(t, pages, kv, begin, min(end, pos));
    if (threadIdx.x == 0) wait_until(counters + ins->wait - 1, target);
    __syncthreads();
    stamp(a, k, QN_STAMP_waited);
    heads h;
    h.q = reinterpret_cast<float *>(smem);
    h.k = h.q + group * d, h.joined = h.k + d;
    prepare_heads(t, h, pages, kv, pos, begin <= pos && pos < end);
    __syncthreads();
    stamp(a, k, QN_STAMP_ready);
    if (t.type == QN_KVT_f32) attend_part<8, true>(t, h, pages, kv, begin, end);
    else if (d <= 64) attend_part<2, false>(t, h, pages, kv, begin, end);
    else if (d <= 128) attend_part<4, false>(t, h, pages, kv, begin, end);
    else attend_part<8, false>(t, h, pages, kv, begin, end);
    __syncthreads();
    float *mine = at<float>(a.parts) + ((size_t)kv * t.chunks + part) * group * (d + 2);
    const int parts_of_head = (d + 31) / 32, lane = (int)threadIdx.x % 32; /* 32 values of a head to a warp */
#pragma unroll 1
    for (int e = (int)threadIdx.x / 32; e < group * parts_of_head; e += QN_P_WARPS) {
        const int g = e / parts_of_head, i = e % parts_of_head * 32 + lane;
        float top, sum;
        const float v = join<false>(h.joined + g * (d + 2), QN_P_WARPS / group, (size_t)group * (d + 2), i, d, &top, &sum);
        if (i >= d) continue;
        if (chunks == 1) at<float>(t.y)[(kv * group + g) * d + i] = __fdividef(v, sum);
        else mine[g * (d + 2) + i] = v;
        if (chunks > 1 && i == 0) mine[g * (d + 2) + d] = top, mine[g * (d + 2) + d + 1] = sum;
    }
    __syncthreads();
    if (chunks > 1) {
        if (threadIdx.x == 0) {
            __threadfence();
            st->flag = atomicInc(at<uint32_t>(a.heads) + kv, (unsigned)chunks - 1) == (unsigned)chunks - 1;
        }
        __syncthreads();
        if (!st->flag) return;
        const float *all = at<const float>(a.parts) + (size_t)kv * t.chunks * group * (d + 2);
#pragma unroll 1
        for (int e = (int)threadIdx.x / 32; e < group * parts_of_head; e += QN_P_WARPS) {
            const int g = e / parts_of_head, i = e % parts_of_head * 32 + lane;
            float top, sum;
            const float v = join<true>(all + g * (d + 2), chunks, (size_t)group * (d + 2), i, d, &top, &sum);
            if (i < d) at<float>(t.y)[(kv * group + g) * d + i] = __fdividef(v, sum);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) tell(counters + ins->signal - 1);
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

/* ---- the walk */

static __device__ __forceinline__ void end_phase(const qn_ins *i, const qn_crun &a, uint32_t t, best top, shared_state *st)
{
    const uint32_t parity = (a.epoch + t) & 1;
    if (i->out == QN_OUT_logits) offer_best(a, top, parity, st->room);
    __syncthreads();
    if (threadIdx.x) return;
    if (i->out != QN_OUT_logits) {
        tell(at<uint32_t>(a.counters) + i->signal - 1);
        return;
    }
    const uint32_t before = add_release(at<uint32_t>(a.counters) + i->signal - 1);
    if (before + 1 != (a.epoch + t + 1) * gridDim.x) return;
    at<int>(a.chosen)[t] = token_of(__ldcg(at<unsigned long long>(a.best) + parity)); /* the last block knows them all */
}


/* Lane l's 16 bytes of an instruction. */
#define INS_LANES (sizeof(qn_ins) / 16)
static_assert(sizeof(qn_ins) % 16 == 0 && INS_LANES <= 32, "a warp copies an instruction");

/* Where this warp's barriers are. */
static __device__ __forceinline__ uint32_t barriers_of(const qn_crun &a, uint8_t *smem, uint32_t warp)
{
    return (uint32_t)__cvta_generic_to_shared(smem + a.input_bytes + (size_t)QN_P_WARPS * a.n_stages * a.stage_bytes +
                                              QN_P_WINDOW * sizeof(qn_ins) + (size_t)warp * a.n_stages * 8);
}

static __device__ __forceinline__ void open_ring(ring &r, const qn_crun &a, uint8_t *smem, fetch *f, uint32_t warp, uint32_t lane)
{
    const uint32_t bars = barriers_of(a, smem, warp);
    r.base = smem + a.input_bytes + (size_t)warp * a.n_stages * a.stage_bytes;
    r.at_shared = (uint32_t)__cvta_generic_to_shared(r.base);
    r.to_fill = r.to_use = r.parity = 0;
#if __CUDA_ARCH__ >= 900
    if (lane == 0) {
#pragma unroll 1
        for (uint32_t s = 0; s < a.n_stages; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bars + 8 * s) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncwarp();
#endif
    const uint32_t *where = at<const uint32_t>(a.fetch_at) + blockIdx.x * QN_P_WARPS + warp;
    const uint32_t n = where[1] - where[0];
    r.left = n * a.n_tokens;
    r.at = n > 1 ? 1 : 0;
    if (n && lane < 4) r.next = at<const uint4>(a.fetches)[(size_t)where[0] * 4 + lane];
    ring_advance(r, a, f, warp, lane);
#pragma unroll 1
    for (uint32_t s = 0; s < a.n_stages; s++) ring_fill(r, a, f, bars, warp, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) qn_persist(const __grid_constant__ qn_crun a)
{
    extern __shared__ __align__(128) uint8_t smem[];
    __shared__ shared_state st;
    __shared__ __align__(16) fetch fetches[QN_P_WARPS];
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint4 *list = at<const uint4>(a.lists) + (size_t)blockIdx.x * a.n_ins * INS_LANES;
    ring r;
    open_ring(r, a, smem, fetches + warp, warp, lane);
    const uint32_t bars = barriers_of(a, smem, warp);
    uint4 *window = reinterpret_cast<uint4 *>(smem + a.input_bytes + (size_t)QN_P_WARPS * a.n_stages * a.stage_bytes);
    if (warp < QN_P_AHEAD && lane < INS_LANES) window[warp * INS_LANES + lane] = list[warp % a.n_ins * INS_LANES + lane];
    __syncthreads();
    for (uint32_t t = 0; t < a.n_tokens; t++) {
        best top = { -INFINITY, ~0u };
        for (uint32_t k = 0; k < a.n_ins; k++) {
            const uint32_t seq = t * a.n_ins + k, later = seq + QN_P_AHEAD;
            const qn_ins *i = reinterpret_cast<const qn_ins *>(window + seq % QN_P_WINDOW * INS_LANES);
            uint4 ahead;
            const bool carries = warp == seq % QN_P_WARPS && lane < INS_LANES;
            if (carries) ahead = list[later % a.n_ins * INS_LANES + lane];
            stamp(a, k, QN_STAMP_begin);
            if (i->op == QN_I_attend) {
                run_attend(i, a, k, smem, a.pos + (int)t, (a.epoch + t + 1) * i->wait_for, &st);
                /* all blocks are past this token's start: the other token's place is free again */
                if (blockIdx.x == 0 && threadIdx.x == 0) at<unsigned long long>(a.best)[(a.epoch + t + 1) & 1] = 0;
            } else {
                const input in = { smem, i->cols };
                if (i->in != QN_IN_keep) begin_phase(i, a, k, in, t, &st);
                run_linear(i, r, a, fetches + warp, bars, in, warp, lane, top);
            }
            stamp(a, k, QN_STAMP_done);
            if (carries) window[later % QN_P_WINDOW * INS_LANES + lane] = ahead;
            if (i->op == QN_I_linear && i->signal) end_phase(i, a, t, top, &st);
            stamp(a, k, QN_STAMP_end);
        }
    }
}

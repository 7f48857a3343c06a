/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks the same phases; nothing is launched between them and
 * nobody waits for all: what others need is sent (wire.cuh), weights are always on their way (ring.cuh), products are made by the
 * tensor cores (products.cuh). Sixteen warps compute, one more brings weights.
 * What the lists hold is the business of list.c and deal.c; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/attend.cuh"
#include "kernel/cuda/products.cuh"

#define WINDOW 4 /* phases in shared memory */

struct item { uint8_t rows_a, rows_b; uint16_t warps_a, warps_b, half; uint32_t row; uint64_t bias, bias2; };

struct shared_state {
    slots s;
    qn_phase window[WINDOW];
    qn_att att;
    item items[2][QN_P_ITEMS];
    float squares[2][QN_P_WARPS], most[2][QN_P_WARPS];
    unsigned long long best[QN_P_ROWS], most_likely[QN_P_WARPS];
    uint4 zero;
};


/* What a block keeps in mind from phase to phase; the same for all its consumers. */
struct mind {
    uint32_t token, seq;      /* of this launch; stages of earlier phases */
    uint32_t side;            /* which of two sets of sums */
    uint32_t turn;            /* which of two sets of squares */
    int id;                   /* the token itself */
};

/* ---- the input of a phase, in shared memory */

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float largest(float4 v)
{
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* Four values to integers, by all lanes of a warp: they share a scale, eight of them have a block. Value = scale * (128 * high + low). */
static __device__ __forceinline__ void turn_to_ints(uint8_t *ints, float4 *more, uint32_t t, float4 v, bool sums)
{
    const float most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(largest(v)))); /* floats above 0 are ordered as integers */
    const float inverse = most > 0 ? __fdividef(16256.f, most) : 0.f, scale = most * (1.f / 16256.f); /* 127 * 128 */
    const int q[4] = { __float2int_rn(v.x * inverse), __float2int_rn(v.y * inverse), __float2int_rn(v.z * inverse),
                       __float2int_rn(v.w * inverse) };
    uint32_t high = 0, low = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int h = (q[i] + 64) >> 7;
        high |= (uint32_t)(h & 255) << (8 * i);
        low |= (uint32_t)((q[i] - h * 128) & 255) << (8 * i);
    }
    int sum = 0;
    if (sums) { /* of a block; only what has a minimum needs it */
        sum = q[0] + q[1] + q[2] + q[3];
#pragma unroll
        for (int o = 4; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    }
    const uint32_t b = t / 8, i = t % 8;
    *reinterpret_cast<uint2 *>(ints + 64 * b + 8 * i) = make_uint2(high, low); /* as an mma wants it: rows 0 and 8 in turn */
    if (i == 0) more[b] = make_float4(scale, scale * (float)sum, 0, 0);
}

template <bool BF16> static __device__ __forceinline__ uint32_t two_of(float x, float y, float2 *back)
{
    if (BF16) {
        const __nv_bfloat162 h = __floats2bfloat162_rn(x, y);
        *back = __bfloat1622float2(h);
        return *reinterpret_cast<const uint32_t *>(&h);
    }
    const __half2 h = __floats2half2_rn(x, y);
    *back = __half22float2(h);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* Floats to halves and what they lack, where they lie. */
template <bool BF16> static __device__ __forceinline__ void turn_to_halves(uint8_t *room, uint32_t all, float factor)
{
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < all; t += CONSUMERS) {
        float4 v = reinterpret_cast<const float4 *>(room)[t];
        v = make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
        float2 a, b, none;
        const uint32_t h0 = two_of<BF16>(v.x, v.y, &a), h1 = two_of<BF16>(v.z, v.w, &b);
        const uint32_t l0 = two_of<BF16>(v.x - a.x, v.y - a.y, &none), l1 = two_of<BF16>(v.z - b.x, v.w - b.y, &none);
        reinterpret_cast<uint4 *>(room)[t] = make_uint4(h0, l0, h1, l1); /* as an mma wants it: rows 0 and 8 in turn */
    }
}

/* x = table[token] */
static __device__ __noinline__ void bring_embedded(const qn_wmat &w, float4 *x, uint32_t n, int token, float factor)
{
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += CONSUMERS) {
        float v[8];
        weights8_any(at<const uint8_t>(w.at) + (size_t)token * w.row_bytes, w, (int)(t / 2 * 8), v);
        const bool odd = t & 1;
        x[t] = make_float4(factor * (odd ? v[4] : v[0]), factor * (odd ? v[5] : v[1]), factor * (odd ? v[6] : v[2]),
                           factor * (odd ? v[7] : v[3]));
    }
}

/* Four sent values of this thread; seen: what was found there some time ago. */
static __device__ __forceinline__ float4 receive(uint64_t vector, uint32_t t, uint32_t tag, ulonglong2 seen)
{
    while (!has_come(seen.x, tag) || !has_come(seen.y, tag)) seen = look16(at<const ulonglong2>(vector) + t);
    const float2 a = unpack(seen.x), b = unpack(seen.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

/* The same for all threads: the sum or the largest of what the warps left. */
static __device__ __forceinline__ float sum_of(const float *part)
{
    float v = part[threadIdx.x % QN_P_WARPS];
#pragma unroll
    for (int o = QN_P_WARPS / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    return v;
}

static __device__ __forceinline__ float most_of(const float *part)
{
    float v = part[threadIdx.x % QN_P_WARPS];
#pragma unroll
    for (int o = QN_P_WARPS / 2; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    return v;
}

/* x += norm(src) * post, by way of the room for the input */
static __device__ __noinline__ void add_normed(const qn_phase *p, float4 *x, float4 *room, uint32_t tag, float *part)
{
    const uint32_t n = p->cols / 4;
    float ss = 0;
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += CONSUMERS) {
        const float4 v = receive(p->src, t, tag, look16(at<const ulonglong2>(p->src) + t));
        room[t] = v;
        ss += squares(v);
    }
    ss = sum32(ss);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = ss;
    sync_consumers();
    const float s = rsqrtf(__fdividef(sum_of(part), (float)p->cols) + p->eps);
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += CONSUMERS) {
        const float4 y = room[t], w = __ldg(at<const float4>(p->post) + t), o = x[t];
        x[t] = make_float4(o.x + y.x * s * w.x, o.y + y.y * s * w.y, o.z + y.z * s * w.z, o.w + y.w * s * w.w);
    }
    sync_consumers(); /* the room and the sums are used anew */
}

struct factors { float plain, halves; }; /* what products are multiplied with: halves are kept near 2^14 */

/* Brings the input into its forms. Norms: the values are multiplied with the norm's weights at once, the products with the rest. */
static __device__ __forceinline__ factors bring_input(const qn_phase *p, const qn_crun &a, float4 *x, uint8_t *room, shared_state *st,
                                                      uint32_t token, uint32_t side, int id)
{
    const uint32_t n = p->cols / 4, all = ((p->cols + 255) & ~255u) / 4, tag = tag_of(a, token, p->from);
    const bool normed = p->in != QN_IN_copy, receives = p->in == QN_IN_add || p->in == QN_IN_copy;
    const float4 *norm = at<const float4>(p->norm);
    const bool half = p->forms & (QN_FORM_half | QN_FORM_bf16);
    const forms f = forms_of(p->forms, 4 * all);
    const float4 first_norm = normed && threadIdx.x < n ? __ldg(norm + threadIdx.x) : make_float4(0, 0, 0, 0); /* before the wait */
    float ss = 0, most = 0;
    if (p->in == QN_IN_embed) bring_embedded(at<const qn_wmat>(a.tables)[p->index], x, n, id, p->factor);
    if (p->in == QN_IN_post) add_normed(p, x, reinterpret_cast<float4 *>(room), tag, st->squares[side]);
    const ulonglong2 *src = at<const ulonglong2>(p->src);
    ulonglong2 next = make_ulonglong2(0, 0);
    if (receives && threadIdx.x < n) next = look16(src + threadIdx.x);
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < all; t += CONSUMERS) { /* all lanes of a warp alike */
        const ulonglong2 seen = next;
        if (receives && t + CONSUMERS < n) next = look16(src + t + CONSUMERS);
        float4 v = receives && t < n ? receive(p->src, t, tag, seen) : make_float4(0, 0, 0, 0);
        __syncwarp();
        if (normed && t < n) {
            const float4 o = x[t], w = t == threadIdx.x ? first_norm : __ldg(norm + t);
            v = make_float4(v.x + o.x, v.y + o.y, v.z + o.z, v.w + o.w);
            x[t] = v;
            ss += squares(v);
            v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
        }
        most = fmaxf(most, largest(v));
        if (p->forms & QN_FORM_float) reinterpret_cast<float4 *>(room + f.floats)[t] = v;
        if (half) reinterpret_cast<float4 *>(room + f.halves)[t] = v;
        if (p->forms & QN_FORM_int) turn_to_ints(room + f.ints, reinterpret_cast<float4 *>(room + f.more), t, v, p->forms & QN_FORM_sums);
    }
    if (normed) ss = sum32(ss);
    if (half) most = max32(most);
    if (threadIdx.x % 32 == 0) st->squares[side][threadIdx.x / 32] = ss, st->most[side][threadIdx.x / 32] = most;
    sync_consumers();
    factors out = { 1, 1 };
    if (normed) out.plain = rsqrtf(__fdividef(sum_of(st->squares[side]), (float)p->cols) + p->eps);
    out.halves = out.plain;
    if (half) {
        const int e = min(max(268 - (int)(__float_as_uint(most_of(st->most[side])) >> 23), 1), 253); /* to 2^14 .. 2^15 */
        const float up = __uint_as_float((uint32_t)e << 23);
        if (p->forms & QN_FORM_bf16) turn_to_halves<true>(room + f.halves, all, up);
        else turn_to_halves<false>(room + f.halves, all, up);
        out.halves *= __uint_as_float((uint32_t)(254 - e) << 23);
        sync_consumers();
    }
    return out;
}

/* ---- what comes of it */

static __device__ __forceinline__ float gate(float x, bool gelu)
{
    return gelu ? 0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))) : __fdividef(x, 1.f + __expf(-x));
}

/* The best logit: larger wins, among equals the lower token. Ordered as one 64-bit number. */
static __device__ __forceinline__ unsigned long long key_of(float value, uint32_t token)
{
    const uint32_t u = __float_as_uint(value), ordered = u & 0x80000000u ? ~u : u | 0x80000000u;
    return (unsigned long long)ordered << 32 | (0xFFFFFFFFu - token);
}

static __device__ __forceinline__ int token_of(unsigned long long key) { return (int)(0xFFFFFFFFu - (uint32_t)key); }

/* Row i of a set: the parts of all warps that had columns of it, always in the same order. */
static __device__ __forceinline__ float total(const float *sums, uint32_t i, uint32_t warps)
{
    float v[QN_P_WARPS], s = 0;
#pragma unroll
    for (int w = 0; w < QN_P_WARPS; w++) v[w] = sums[w * QN_P_ROWS + i]; /* all at once; what nobody wrote is left out below */
#pragma unroll
    for (int w = 0; w < QN_P_WARPS; w++) s += warps >> w & 1 ? v[w] : 0.f;
    return s;
}

/* A thread for each row of a set of items; warps 0 to 3. */
static __device__ __forceinline__ void put_rows(const qn_phase *p, const item *items, uint32_t n_items, const float *sums,
                                                const factors &f, uint32_t tag, unsigned long long *best)
{
    const uint32_t i = threadIdx.x, r = i % 16;
    const bool gated = p->out == QN_OUT_silu || p->out == QN_OUT_gelu;
    const item *t = &items[i / 16];
    bool there = i / 16 < n_items;
    float v = 0;
    if (there) there = r < 8 ? r < t->rows_a : !gated && r - 8 < t->rows_b;
    if (there) {
        const float factor = t->half ? f.halves : f.plain;
        v = total(sums, i, r < 8 ? t->warps_a : t->warps_b) * factor + (t->bias ? __ldg(at<const float>(t->bias) + r) : 0.f);
        if (gated) {
            const float up = total(sums, i + 8, t->warps_b) * factor + (t->bias2 ? __ldg(at<const float>(t->bias2) + r) : 0.f);
            v = gate(v, p->out == QN_OUT_gelu) * up;
        }
    }
    const float next = __shfl_down_sync(~0u, v, 1);
    if (!there) return;
    const uint32_t row = t->row + r;
    if (p->out == QN_OUT_logits) {
        at<float>(p->dst)[row] = v;
        const unsigned long long key = key_of(v, row);
        if (key > *best) *best = key;
    } else if (r % 2 == 0) {
        put8(at<uint64_t>(p->dst) + row / 2, pack(v, next, tag));
    }
}

/* This warp's sums of an item: over all columns it had, rows of its half. */
static __device__ __forceinline__ void leave_sums(float s0, float s1, float *sums)
{
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int o = 4; o < 32; o <<= 1) s0 += __shfl_xor_sync(~0u, s0, o), s1 += __shfl_xor_sync(~0u, s1, o);
    if (lane < 4) *reinterpret_cast<float2 *>(sums + 2 * lane) = make_float2(s0, s1);
}

/* groups: of this phase, behind their number */
static __device__ __forceinline__ void run_linear(const qn_phase *p, const qn_crun &a, uint32_t k, const uint16_t *groups, const factors &f,
                                                  uint8_t *room, float *sums, uint32_t ring, shared_state *st, mind &m)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, input = shared_at(room), zero = shared_at(&st->zero);
    const uint32_t teams = p->teams, size = QN_P_WARPS / teams, member = warp % size, n_groups = groups[0];
    const forms where = forms_of(p->forms, (p->cols + 255) & ~255u);
    uint32_t i = warp / size, end = 0; /* this team's next stage of the phase */
#pragma unroll 1
    for (uint32_t g = 0; g < n_groups; g++) {
        float *mine = sums + (m.side * QN_P_WARPS + warp) * QN_P_ROWS, s0 = 0, s1 = 0;
        end += groups[1 + 2 * g];
#pragma unroll 1
        for (; i < end; i += teams) {
            const uint32_t slot = (m.seq + i) % QN_P_SLOTS;
            const qn_stage *s = &st->s.stage[slot];
            wait_for(&st->s.full[slot], (m.seq + i) / QN_P_SLOTS & 1);
            add_stage(s, ring + s->to, input, where, zero, member, s0, s1);
            const uint32_t left = s->left;
            if (left < teams) { /* no more of this item for this team */
                leave_sums(s0, s1, mine + 16 * s->slot + (s->rows_b ? 8 * (member & 1) : 0));
                if (left == 0 && lane == 0 && member == 0)
                    st->items[m.side][s->slot] = { s->rows_a, s->rows_b, s->warps_a, s->warps_b,
                                                   s->kind == QN_W_f16 || s->kind == QN_W_bf16, s->row, s->bias, s->bias2 };
                s0 = s1 = 0;
            }
            __syncwarp();
            if (lane == 0) arrive(&st->s.empty[slot], teams);
        }
        sync_consumers();
        if (threadIdx.x < QN_P_ROWS)
            put_rows(p, st->items[m.side], groups[2 + 2 * g], sums + m.side * QN_P_WARPS * QN_P_ROWS, f, tag_of(a, m.token, k),
                     st->best + threadIdx.x);
        m.side ^= 1;
    }
    m.seq += end;
}

/* ---- the end of a token: everybody tells its likeliest and hears all others', so all know the next one. Also the only place where
 * blocks wait for each other in the plain sense: what they wrote to the cache is seen behind it. */

static __device__ __noinline__ int choose_token(const qn_crun &a, shared_state *st, uint32_t token)
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, tag = tag_of(a, token, a.n_phases - 1);
    uint64_t *all = at<uint64_t>(a.best);
    unsigned long long best = 0;
    if (threadIdx.x < QN_P_ROWS) best = st->best[threadIdx.x], st->best[threadIdx.x] = 0;
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
#pragma unroll
        for (int o = 16; o; o >>= 1) {
            const unsigned long long other = __shfl_xor_sync(~0u, best, o);
            best = other > best ? other : best;
        }
        if (lane == 0) st->most_likely[warp] = best;
        sync_consumers();
        best = 0;
        for (int w = 0; w < QN_P_WARPS; w++) best = st->most_likely[w] > best ? st->most_likely[w] : best;
        if (turn) break;
        if (threadIdx.x == 0) {
            __threadfence();
            put_tagged(all + 2 * blockIdx.x, (uint32_t)(best >> 32), tag);
            put_tagged(all + 2 * blockIdx.x + 1, (uint32_t)best, tag);
        }
        for (uint32_t b = threadIdx.x; b < gridDim.x; b += CONSUMERS) {
            const unsigned long long high = receive_tagged(all + 2 * b, tag), key = high << 32 | receive_tagged(all + 2 * b + 1, tag);
            best = key > best ? key : best;
        }
        __threadfence();
        sync_consumers();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) at<int>(a.chosen)[token] = token_of(best);
    return token_of(best);
}

/* ---- the walk */

static __device__ __forceinline__ uint32_t ring_at(const qn_crun &a, const uint8_t *smem)
{
    return shared_at(smem) + a.x_bytes + a.form_bytes + QN_P_SUMS + ((2 * a.n_groups + 127) & ~127u);
}

static __device__ __forceinline__ void stamp(const qn_crun &a, uint32_t i)
{
    uint64_t t;
    if (!a.stamps || threadIdx.x) return;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    atomicMax(at<unsigned long long>(a.stamps) + i, (unsigned long long)t);
}

template <bool WIDE, int LANES> static __device__ __forceinline__ void walk(const qn_crun &a, uint8_t *smem, shared_state *st)
{
    float4 *x = reinterpret_cast<float4 *>(smem);
    uint8_t *room = smem + a.x_bytes;
    float *sums = reinterpret_cast<float *>(room + a.form_bytes);
    uint16_t *const all_groups = reinterpret_cast<uint16_t *>(room + a.form_bytes + QN_P_SUMS);
    const uint32_t ring = ring_at(a, smem), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    mind m = { 0, 0, 0, 0, a.next ? *at<const int>(a.next) : a.token };
    stamp(a, 0);
#pragma unroll 1
    for (m.token = 0; m.token < a.n_tokens; m.token++) {
        const uint16_t *groups = all_groups;
#pragma unroll 1
        for (uint32_t k = 0, at_phase = m.token * a.n_phases; k < a.n_phases; k++, at_phase++) {
            const qn_phase *p = &st->window[at_phase % WINDOW];
            const uint32_t later = k + 2 < a.n_phases ? k + 2 : (k + 2) % a.n_phases;
            const bool carries = warp == 8 && lane < sizeof(qn_phase) / 16;
            uint4 ahead;
            if (carries) ahead = at<const uint4>(a.phases)[later * (sizeof(qn_phase) / 16) + lane];
            if (p->op == QN_I_attend) {
                if (threadIdx.x < sizeof(qn_att) / 16)
                    reinterpret_cast<uint4 *>(&st->att)[threadIdx.x] =
                        __ldg(reinterpret_cast<const uint4 *>(at<const qn_att>(a.atts) + p->index) + threadIdx.x);
                sync_consumers();
                const uint32_t tag = tag_of(a, m.token, p->from), made = tag_of(a, m.token, k);
                run_attend<WIDE, LANES>(a, st->att, reinterpret_cast<float *>(room), a.pos + (int)m.token, tag, made);
            } else {
                const uint32_t n = groups[0];
                if (n || p->in != QN_IN_copy) {
                    const factors f = bring_input(p, a, x, room, st, m.token, m.turn, m.id);
                    m.turn ^= 1;
                    run_linear(p, a, k, groups, f, room, sums, ring, st, m);
                } else {
                    sync_consumers(); /* the window moves on behind every phase */
                }
                groups += 1 + 2 * n;
            }
            if (carries) reinterpret_cast<uint4 *>(&st->window[(at_phase + 2) % WINDOW])[lane] = ahead;
            stamp(a, at_phase + 1);
        }
        m.id = choose_token(a, st, m.token);
    }
}

/* Twenty warps get 96 registers each; the one that only copies needs few, its three neighbours none, and what they give is enough for
 * the others not to spill: their stacks would not fit what is left of the first cache. A block can take no more than it gives. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
static __device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 64;"); }
static __device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 104;"); }
#else
static __device__ __forceinline__ void give_registers() { }
static __device__ __forceinline__ void take_registers() { }
#endif

/* Heads of up to 8 * LANES values; WIDE: an f32 cache. */
template <bool WIDE, int LANES> static __device__ __forceinline__ void persist(const qn_crun &a, uint8_t *smem, shared_state &st)
{
    static_assert(sizeof(shared_state) <= 6400, "deal.c leaves so much");
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < QN_P_SLOTS) {
        init_barrier(&st.s.full[threadIdx.x], ARRIVALS);
        init_barrier(&st.s.empty[threadIdx.x], QN_P_WARPS);
        fence_barriers();
    }
    if (threadIdx.x == 0) st.zero = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < QN_P_ROWS) st.best[threadIdx.x] = 0;
    if (warp < 2 && lane < sizeof(qn_phase) / 16)
        reinterpret_cast<uint4 *>(&st.window[warp])[lane] = at<const uint4>(a.phases)[warp % a.n_phases * (sizeof(qn_phase) / 16) + lane];
    uint4 *groups = reinterpret_cast<uint4 *>(smem + a.x_bytes + a.form_bytes + QN_P_SUMS);
    for (uint32_t i = threadIdx.x; i < a.n_groups / 8; i += QN_P_THREADS)
        groups[i] = at<const uint4>(a.groups)[blockIdx.x * (a.n_groups / 8) + i];
    __syncthreads();
    if (warp >= QN_P_WARPS) {
        give_registers();
        if (warp == QN_P_WARPS) bring_weights(a, &st.s, ring_at(a, smem));
    } else {
        take_registers();
        walk<WIDE, LANES>(a, smem, &st);
    }
}

/* One for each width of head: what a model does not use is not in the way of its instructions. */
#define PERSIST(NAME, WIDE, LANES) \
    extern "C" __global__ void __launch_bounds__(QN_P_THREADS, 1) NAME(const __grid_constant__ qn_crun a) \
    { \
        extern __shared__ __align__(128) uint8_t smem[]; \
        __shared__ __align__(16) shared_state st; \
        persist<WIDE, LANES>(a, smem, st); \
    }
PERSIST(qn_persist_64, false, 8)
PERSIST(qn_persist_128, false, 16)
PERSIST(qn_persist_256, false, 32)
PERSIST(qn_persist_wide, true, 32)

/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks the same phases; nothing is launched between them and
 * nobody waits for all: what others need is sent (wire.cuh), weights are always on their way (ring.cuh), products are made by
 * warps each on its own (products.cuh). Sixteen warps compute, one more brings weights.
 * What the lists hold is the business of list.c and deal.c; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/attend.cuh"
#include "kernel/cuda/products.cuh"

#define WINDOW 4 /* phases in shared memory */

/* A task of a stage, and what becomes of it; add: the bias of its first row and that of `up`, 0: none. */
/* What a warp keeps in mind from phase to phase: in shared memory, since a register held through a whole phase is one that spills,
 * and a stack of 512 threads does not fit what is left of the first cache. */
struct __align__(16) mind {
    uint32_t token, k;        /* of this launch; the phase */
    uint32_t tag;             /* of what the phase sends */
    uint32_t seq;             /* stages of earlier phases */
    uint32_t linears, at_item;/* phases that multiplied; linear phases of this token */
    int id;                   /* the token itself */
    uint32_t at_phase;        /* of this launch */
};

#define NO_KIND 255u
struct __align__(16) job { task t; uint32_t kind, row, left; uint64_t add[2]; };

struct shared_state {
    slots s;
    job jobs[QN_P_WARPS];     /* of each warp's first item, made ready before the input comes: registers are few */
    qn_phase window[WINDOW];
    qn_att att;
    uint64_t done;            /* a barrier: every warp is done with the input of the newest linear phase */
    float4 squares[2][QN_P_WARPS / 4];
    float sums[2][QN_P_WARPS][8]; /* of parts of rows */
    mind minds[QN_P_WARPS];
    unsigned long long best[QN_P_WARPS * 8];
};

/* ---- the input of a phase, in shared memory */

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float largest(float4 v)
{
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* Four values to integers, by all lanes of a warp: they share a scale, eight of them have a block. Value = scale * (128 * high + low). */
static __device__ __forceinline__ void turn_to_ints(uint8_t *room, const forms &f, uint32_t t, float4 v, bool sums)
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
    uint8_t *to = room + f.ints + (i / 4) * f.plane_i + 16 * b + 4 * (i % 4);
    *reinterpret_cast<uint32_t *>(to) = high;
    *reinterpret_cast<uint32_t *>(to + 2 * f.plane_i) = low;
    if (i == 0) *reinterpret_cast<float2 *>(room + f.more + 8 * b) = make_float2(scale, scale * (float)sum);
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

static __device__ __forceinline__ bool both_come(ulonglong2 u, uint32_t tag) { return has_come(u.x, tag) && has_come(u.y, tag); }

static __device__ __forceinline__ float4 four_of(ulonglong2 u)
{
    const float2 a = unpack(u.x), b = unpack(u.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

#define AT_ONCE 4 /* units of 16 bytes that a thread looks for */

/* Four sent values at src[t], and at every so many threads further on; n: how many there are. All lanes of a warp together. */
static __device__ __forceinline__ void receive(ulonglong2 u[AT_ONCE], const ulonglong2 *src, uint32_t t, uint32_t n, uint32_t tag)
{
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++)
        if (t + j * CONSUMERS < n) u[j] = look16(src + t + j * CONSUMERS);
    for (;;) {
        bool all = true;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) all = all && (t + j * CONSUMERS >= n || both_come(u[j], tag));
        if (__all_sync(~0u, all)) return;
        pause();
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (t + j * CONSUMERS < n && !both_come(u[j], tag)) u[j] = look16(src + t + j * CONSUMERS);
    }
}

/* The same for all threads: the sum of what the warps left. */
static __device__ __forceinline__ float sum_of(const float4 *part)
{
    const float4 a = part[0], b = part[1], c = part[2], d = part[3];
    return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w)) + (((c.x + c.y) + (c.z + c.w)) + ((d.x + d.y) + (d.z + d.w)));
}

/* x += norm(src) * post, by way of the room for the input */
static __device__ __noinline__ void add_normed(const qn_phase *p, float4 *x, float4 *room, uint32_t tag, float4 *part)
{
    const uint32_t n = p->cols / 4;
    float ss = 0;
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += CONSUMERS) {
        ulonglong2 u = look16(at<const ulonglong2>(p->src) + t);
        while (!both_come(u, tag)) u = look16(at<const ulonglong2>(p->src) + t);
        const float4 v = four_of(u);
        room[t] = v;
        ss += squares(v);
    }
    ss = sum32(ss);
    if (threadIdx.x % 32 == 0) reinterpret_cast<float *>(part)[threadIdx.x / 32] = ss;
    sync_consumers();
    const float s = rsqrtf(__fdividef(sum_of(part), (float)p->cols) + p->eps);
#pragma unroll 1
    for (uint32_t t = threadIdx.x; t < n; t += CONSUMERS) {
        const float4 y = room[t], w = __ldg(at<const float4>(p->post) + t), o = x[t];
        x[t] = make_float4(o.x + y.x * s * w.x, o.y + y.y * s * w.y, o.z + y.z * s * w.z, o.w + y.w * s * w.w);
    }
    sync_consumers(); /* the room and the sums are used anew */
}

/* All warps are done with the input before. */
static __device__ __forceinline__ void wait_for_done(shared_state *st, const mind *m)
{
    const uint32_t n = m->linears;
    if (n) wait_for(&st->done, (n - 1) & 1);
}

/* Brings the input into its forms. Norms: the values are multiplied with the norm's weights at once, the products with the rest
 * (norm_of). Nothing is written before all warps are done with the input before. */
static __device__ __forceinline__ void bring_input(const qn_phase *p, const qn_crun &a, float4 *x, uint8_t *room, shared_state *st,
                                                   const mind *m)
{
    const uint32_t n = p->cols / 4, all = ((p->cols + 255) & ~255u) / 4, tag = m->tag - (m->k - p->from);
    const bool normed = p->in != QN_IN_copy, receives = p->in == QN_IN_add || p->in == QN_IN_copy;
    const float4 *norm = at<const float4>(p->norm);
    const forms f = forms_of(p->forms, 4 * all);
    const float4 first_norm = normed && threadIdx.x < n ? __ldg(norm + threadIdx.x) : make_float4(0, 0, 0, 0); /* before the wait */
    float ss = 0;
    if (p->in == QN_IN_embed) bring_embedded(at<const qn_wmat>(a.tables)[p->index], x, n, m->id, p->factor);
    if (!receives) wait_for_done(st, m);
    if (p->in == QN_IN_post) add_normed(p, x, reinterpret_cast<float4 *>(room), tag, st->squares[m->linears & 1]);
#pragma unroll 1
    for (uint32_t t0 = threadIdx.x; t0 < all; t0 += AT_ONCE * CONSUMERS) { /* all lanes of a warp alike */
        ulonglong2 u[AT_ONCE];
        if (receives) receive(u, at<const ulonglong2>(p->src), t0, n, tag);
        if (receives) wait_for_done(st, m);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const uint32_t t = t0 + j * CONSUMERS;
            if (t >= all) break;
            float4 v = receives && t < n ? four_of(u[j]) : make_float4(0, 0, 0, 0);
            if (normed && t < n) {
                const float4 o = x[t], w = t == threadIdx.x ? first_norm : __ldg(norm + t);
                v = make_float4(v.x + o.x, v.y + o.y, v.z + o.z, v.w + o.w);
                x[t] = v;
                ss += squares(v);
                v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
            }
            if (p->forms & QN_FORM_float) *reinterpret_cast<float4 *>(room + f.floats + (t & 1) * f.plane_f + 16 * (t / 2)) = v;
            if (p->forms & QN_FORM_int) turn_to_ints(room, f, t, v, p->forms & QN_FORM_sums);
        }
    }
    if (normed) ss = sum32(ss);
    if (normed && threadIdx.x % 32 == 0) reinterpret_cast<float *>(st->squares[m->linears & 1])[threadIdx.x / 32] = ss;
    sync_consumers();
}

static __device__ __forceinline__ float norm_of(const qn_phase *p, const float4 *squares)
{
    return p->in == QN_IN_copy ? 1.f : rsqrtf(__fdividef(sum_of(squares), (float)p->cols) + p->eps);
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

/* What a warp has to do in a phase: which task of an item, which part of its columns. rows: logarithm of those multiplied. */
struct role { uint32_t team, first, part, log_parts, rows, gated; };

static __device__ __forceinline__ role role_of(const qn_phase *p)
{
    const uint32_t warp = threadIdx.x / 32, member = warp & ((QN_P_WARPS >> p->teams) - 1);
    role r;
    r.team = warp >> (4 - p->teams);
    r.log_parts = p->parts;
    r.first = member >> p->parts << p->rows;
    r.part = member & ((1u << p->parts) - 1);
    r.gated = p->out == QN_OUT_silu || p->out == QN_OUT_gelu;
    r.rows = p->rows + r.gated;
    return r;
}

/* The row of the task that this lane gets the sum of. */
static __device__ __forceinline__ uint32_t row_of_lane(const role &r)
{
    return (__brev(threadIdx.x % 32) >> 27) & ((1u << (r.rows - r.gated)) - 1);
}

/* Of a stage that has come. */
static __device__ __forceinline__ job job_of(const qn_stage *s, uint32_t ring, const role &r)
{
    const uint32_t rows = s->rows, pitch = s->pitch, n = s->n_pieces, each = (n + (1u << r.log_parts) - 1) >> r.log_parts;
    job j;
    j.left = rows > r.first ? rows - r.first : 0;
    j.row = s->row + r.first;
    j.kind = s->kind;
    j.t.row = ring + s->to + r.first * pitch;
    j.t.pitch = pitch;
    j.t.last = j.left - 1;
    j.t.mask = (1u << (r.rows - r.gated)) - 1;
    j.t.up = r.gated ? rows * pitch : 0;
    j.t.planes = s->high_at | (uint32_t)s->scale_at << 16;
    j.t.begin = r.part * each;
    j.t.end = j.left ? min(j.t.begin + each, n) : 0;
    j.t.x = s->piece;
    j.add[0] = s->bias ? s->bias + 4 * r.first : 0;
    j.add[1] = s->bias2 ? s->bias2 + 4 * r.first : 0;
    return j;
}

/* The bias of the row that this lane gets the sum of. */
static __device__ __forceinline__ float bias_of(const job &j, const role &r)
{
    const bool up = r.gated && threadIdx.x % 32 & (16 >> (r.rows - 1));
    const uint64_t add = up ? j.add[1] : j.add[0];
    return add && row_of_lane(r) < j.left ? __ldg(at<const float>(add) + row_of_lane(r)) : 0.f;
}

/* Parts of rows, joined by the warp that has the first; always in the same order. */
static __device__ __forceinline__ float join_parts_of(float v, const role &r, uint32_t threads, float (*sums)[8])
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = 1u << r.log_parts;
    if (lane % 4 == 0) sums[warp][lane / 4] = v;
    asm volatile("bar.sync %0, %1;" :: "r"(2 + r.team), "r"(threads) : "memory");
    if (r.part) return v;
    float s = 0;
    for (uint32_t i = 0; i < n; i++) s += sums[warp + i][lane / 4];
    return s;
}

/* What a task has made. */
static __device__ __forceinline__ void put_task(const qn_phase *p, const role &r, float v, const job &j, uint32_t tag,
                                                unsigned long long *best)
{
    if (r.gated) v = gate(v, p->out == QN_OUT_gelu) * __shfl_xor_sync(~0u, v, 16 >> (r.rows - 1));
    const float next = __shfl_xor_sync(~0u, v, 16);
    const uint32_t log = r.rows - r.gated, mine = row_of_lane(r), row = j.row + mine;
    if (r.part || threadIdx.x & ((32u >> log) - 1) || mine >= j.left) return;
    if (p->out == QN_OUT_logits) {
        at<float>(p->dst)[row] = v;
        const unsigned long long key = key_of(v, row);
        if (key > best[threadIdx.x / 4]) best[threadIdx.x / 4] = key;
    } else if (mine % 2 == 0) {
        put8(at<uint64_t>(p->dst) + row / 2, pack(v, next, tag));
    }
}

/* Makes the first job ready if its stage is there; it may have to wait for others that this phase uses first. */
static __device__ __forceinline__ void make_ready(const qn_phase *p, uint32_t n_items, uint32_t first, uint32_t ring, shared_state *st)
{
    const role r = role_of(p);
    const uint32_t seq = first + r.team * p->cut, slot = seq % QN_P_SLOTS;
    if (r.team >= n_items || threadIdx.x % 32) return;
    if (p->cut == 1 && passed(&st->s.full[slot], seq / QN_P_SLOTS & 1)) st->jobs[threadIdx.x / 32] = job_of(&st->s.stage[slot], ring, r);
    else st->jobs[threadIdx.x / 32].kind = NO_KIND;
}

static __device__ __forceinline__ void run_linear(const qn_phase *p, uint32_t n_items, uint32_t input, uint32_t ring, shared_state *st,
                                                  mind *m)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    job j = st->jobs[warp];
    bool ready = j.kind != NO_KIND;
#pragma unroll 1
    for (uint32_t i = role_of(p).team; i < n_items;) {
        float v[8] = { 0, 0, 0, 0, 0, 0, 0, 0 }, bias = 0;
#pragma unroll 1
        for (uint32_t c = 0, seq = m->seq + i * p->cut; c < p->cut; c++, seq++) {
            const role r = role_of(p);
            const forms f = forms_of(p->forms, (p->cols + 255) & ~255u);
            const uint32_t slot = seq % QN_P_SLOTS;
            if (!ready) {
                wait_for(&st->s.full[slot], seq / QN_P_SLOTS & 1);
                j = job_of(&st->s.stage[slot], ring, r);
            }
            ready = false;
            if (c == 0) bias = bias_of(j, r); /* its way is as long as the products */
            if (r.rows == 1) add_task<2>(j.kind, j.t, f, input, lane, v);
            else if (r.rows == 2) add_task<4>(j.kind, j.t, f, input, lane, v);
            else add_task<8>(j.kind, j.t, f, input, lane, v);
            __syncwarp();
            arrive(&st->s.empty[slot], 1u << p->teams); /* every lane: the race checker does not follow one for its warp */
        }
        const role r = role_of(p);
        const uint32_t side = i >> p->teams & 1;
        i += 1u << p->teams;
        if (i >= n_items) arrive(&st->done, 1);
        float sum = sum_rows(v, r.rows, lane);
        if (r.log_parts) sum = join_parts_of(sum, r, CONSUMERS >> p->teams, st->sums[side]);
        put_task(p, r, fmaf(sum, norm_of(p, st->squares[m->linears & 1]), bias), j, m->tag, st->best);
    }
    if (role_of(p).team >= n_items) arrive(&st->done, 1);
    __syncwarp();
    if (lane == 0) m->seq += n_items * p->cut, m->linears++;
    __syncwarp();
}

/* ---- the end of a token: everybody tells its likeliest and hears all others', so all know the next one. Also the only place where
 * blocks wait for each other in the plain sense: what they wrote to the cache is seen behind it. */

static __device__ __forceinline__ unsigned long long best_of_warp(unsigned long long best)
{
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        const unsigned long long other = __shfl_xor_sync(~0u, best, o);
        best = other > best ? other : best;
    }
    return best;
}

static __device__ __noinline__ int choose_token(const qn_crun &a, shared_state *st, uint32_t token)
{
    const uint32_t tag = tag_of(a, token, a.n_phases - 1), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint64_t *all = at<uint64_t>(a.best);
    unsigned long long best = 0;
    sync_consumers();
    if (warp == 0) {
        for (int i = 0; i < QN_P_WARPS * 8; i += 32) best = st->best[i + lane] > best ? st->best[i + lane] : best;
        best = best_of_warp(best);
        if (lane == 0) {
            __threadfence();
            put_tagged(all + 2 * blockIdx.x, (uint32_t)(best >> 32), tag);
            put_tagged(all + 2 * blockIdx.x + 1, (uint32_t)best, tag);
        }
    }
    for (uint32_t b = threadIdx.x; b < gridDim.x; b += CONSUMERS) {
        const unsigned long long high = receive_tagged(all + 2 * b, tag), key = high << 32 | receive_tagged(all + 2 * b + 1, tag);
        best = key > best ? key : best;
    }
    __threadfence();
    best = best_of_warp(best);
    sync_consumers(); /* the block's own have been read */
    if (lane == 0) st->best[warp] = best;
    sync_consumers();
    for (int w = 0; w < QN_P_WARPS; w++) best = st->best[w] > best ? st->best[w] : best;
    sync_consumers();
    if (threadIdx.x < QN_P_WARPS * 8) st->best[threadIdx.x] = 0;
    if (blockIdx.x == 0 && threadIdx.x == 0) at<int>(a.chosen)[token] = token_of(best);
    return token_of(best);
}

/* ---- the walk */

static __device__ __forceinline__ uint32_t ring_at(const qn_crun &a, const uint8_t *smem)
{
    return shared_at(smem) + a.x_bytes + a.form_bytes + ((2 * a.n_items + 127) & ~127u);
}

static __device__ __forceinline__ void stamp(const qn_crun &a, uint32_t i)
{
    uint64_t t;
    if (!a.stamps || threadIdx.x) return;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    atomicMax(at<unsigned long long>(a.stamps) + i, (unsigned long long)t);
}

/* Descriptions are brought by the last warp before they are needed: a phase's two phases before, an attention's in the phase before
 * it. What is on its way has come when the next phase begins, and all see it behind that phase's barrier. */
static __device__ __forceinline__ void copy16(void *to, const void *from, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 32;
    if (threadIdx.x / 32 == QN_P_WARPS - 1 && lane < n)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;"
                     :: "r"(shared_at(to) + 16 * lane), "l"(static_cast<const uint8_t *>(from) + 16 * lane) : "memory");
}

static __device__ __forceinline__ void bring_phase(const qn_crun &a, uint32_t k, qn_phase *to)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    copy16(to, at<const qn_phase>(a.phases) + k, sizeof(qn_phase) / 16);
}

static __device__ __forceinline__ void bring_att(const qn_crun &a, const qn_phase *next, qn_att *to)
{
    if (next->op == QN_I_attend) copy16(to, at<const qn_att>(a.atts) + next->index, sizeof(qn_att) / 16);
}

/* One phase of this warp. */
template <bool WIDE, int LANES>
static __device__ __forceinline__ void walk_phase(const qn_crun &a, uint8_t *smem, const qn_phase *p, shared_state *st, mind *m)
{
    uint8_t *room = smem + a.x_bytes;
    if (p->op == QN_I_attend) {
        sync_consumers(); /* its description is there, the room free */
        run_attend<WIDE, LANES>(a, st->att, reinterpret_cast<float *>(room), a.pos + (int)m->token, m->tag - (m->k - p->from), m->tag);
        return;
    }
    const uint32_t n = reinterpret_cast<const uint16_t *>(room + a.form_bytes)[m->at_item];
    if (n || p->in != QN_IN_copy) {
        make_ready(p, n, m->seq, ring_at(a, smem), st);
        bring_input(p, a, reinterpret_cast<float4 *>(smem), room, st, m);
    } else {
        sync_consumers(); /* the window moves on behind every phase */
    }
    bring_att(a, &st->window[(m->at_phase + 1) % WINDOW], &st->att);
    if (n || p->in != QN_IN_copy)
        run_linear(p, reinterpret_cast<const uint16_t *>(room + a.form_bytes)[m->at_item], shared_at(room), ring_at(a, smem), st, m);
    if (threadIdx.x % 32 == 0) m->at_item++;
}

template <bool WIDE, int LANES> static __device__ __forceinline__ void walk(const qn_crun &a, uint8_t *smem, shared_state *st)
{
    mind *m = &st->minds[threadIdx.x / 32];
    const bool first = threadIdx.x % 32 == 0;
    if (first) *m = { 0, 0, tag_of(a, 0, 0), 0, 0, 0, a.next ? *at<const int>(a.next) : a.token, 0 };
    __syncwarp();
    stamp(a, 0);
#pragma unroll 1
    while (m->token < a.n_tokens) {
        bring_phase(a, m->k + 2 < a.n_phases ? m->k + 2 : (m->k + 2) % a.n_phases, &st->window[(m->at_phase + 2) % WINDOW]);
        walk_phase<WIDE, LANES>(a, smem, &st->window[m->at_phase % WINDOW], st, m);
        __syncwarp();
        stamp(a, m->at_phase + 1);
        if (first) m->k++, m->tag++, m->at_phase++;
        __syncwarp();
        if (m->k < a.n_phases) continue;
        const int id = choose_token(a, st, m->token);
        __syncwarp();
        if (first) m->k = 0, m->at_item = 0, m->id = id, m->token++;
        __syncwarp();
    }
}

/* Twenty warps get 96 registers each; the one that only copies needs few, its three neighbours none, and what they give the others
 * take: what those spill must fit what is left of the first cache. A block can take no more than it gives. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
static __device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 32;"); }
static __device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 112;"); }
#else
static __device__ __forceinline__ void give_registers() { }
static __device__ __forceinline__ void take_registers() { }
#endif

/* Heads of up to 8 * LANES values; WIDE: an f32 cache. */
template <bool WIDE, int LANES> static __device__ __forceinline__ void persist(const qn_crun &a, uint8_t *smem, shared_state &st)
{
    static_assert(sizeof(shared_state) <= 8192, "deal.c leaves so much");
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x < QN_P_SLOTS) {
        init_barrier(&st.s.full[threadIdx.x], ARRIVALS);
        init_barrier(&st.s.empty[threadIdx.x], 32 * QN_P_WARPS);
        fence_barriers();
    }
    if (threadIdx.x < QN_P_WARPS * 8) st.best[threadIdx.x] = 0;
    if (threadIdx.x == QN_P_SLOTS) init_barrier(&st.done, 32 * QN_P_WARPS), fence_barriers();
    if (warp < 2 && lane < sizeof(qn_phase) / 16)
        reinterpret_cast<uint4 *>(&st.window[warp])[lane] = at<const uint4>(a.phases)[warp % a.n_phases * (sizeof(qn_phase) / 16) + lane];
    uint4 *items = reinterpret_cast<uint4 *>(smem + a.x_bytes + a.form_bytes);
    for (uint32_t i = threadIdx.x; i < a.n_items / 8; i += QN_P_THREADS)
        items[i] = at<const uint4>(a.items)[blockIdx.x * (a.n_items / 8) + i];
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

/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks the same phases; nothing is launched between them and
 * nobody waits for all: what others need is sent (wire.cuh), weights are always on their way (ring.cuh), products are made by
 * warps each on its own (products.cuh). Sixteen warps compute, one more brings weights, another sees that
 * the memory is never idle.
 * What the lists hold is the business of list.c and deal.c; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/attend.cuh"
#include "kernel/cuda/products.cuh"

/* How far a warp is: in shared memory, since a register held through a whole phase is one that spills, and the stacks of 512
 * threads do not fit what is left of the first cache: each reload would come from the second. */
struct __align__(16) mind {
    uint32_t k, tag;          /* the phase; the tag of what it sends */
    uint32_t stages;          /* of earlier tokens */
    uint32_t linears;         /* phases that multiplied, of this launch */
    uint32_t next, n;         /* the task behind the one at hand; how many there are, for one token */
    uint32_t task;            /* which of the two places has the one at hand */
    uint32_t token, at_phase; /* of this launch */
    int id;                   /* the token itself */
    const qn_task *list;
};

struct shared_state {
    slots s;
    mind minds[QN_P_WARPS];
    qn_task tasks[QN_P_WARPS][2];   /* a warp's task at hand, and the next */
    qn_phase phases[QN_P_WARPS][2]; /* likewise: every warp has its own, so that nobody waits for another's copy */
    qn_att att;
    uint64_t done;            /* a barrier: every warp is done with the input of the newest linear phase */
    float4 squares[2][QN_P_WARPS / 4];
    float sums[2][QN_P_WARPS][8]; /* of parts of rows */
    unsigned long long best[QN_P_WARPS * 8];
};

/* ---- the input of a phase, in shared memory */

static __device__ __forceinline__ float squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }
static __device__ __forceinline__ float largest(float4 v)
{
    return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* Four values to integers, by all lanes of a warp: they share a scale, eight of them have a block. Value = scale * (256 * high + low),
 * both of them signed bytes. Adding 1.5 * 2^23 leaves a float's integer in its last bits. */
static __device__ __forceinline__ void turn_to_ints(uint8_t *room, const forms &f, uint32_t t, float4 v, bool sums)
{
    const float most = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(largest(v)))); /* floats above 0 are ordered as integers */
    const float inverse = most > 0 ? __fdividef(32512.f, most) : 0.f, scale = most * (1.f / 32512.f); /* 127 * 256 */
    const float q[4] = { fmaf(v.x, inverse, 12582912.f), fmaf(v.y, inverse, 12582912.f), fmaf(v.z, inverse, 12582912.f),
                         fmaf(v.w, inverse, 12582912.f) };
    uint32_t low[4], high[4]; /* low bytes are signed, so the high ones are those of 128 more */
#pragma unroll
    for (int i = 0; i < 4; i++) low[i] = __float_as_uint(q[i]), high[i] = __float_as_uint(q[i] + 128.f);
    int sum = 0;
    if (sums) { /* of a block; weights of 4 bits need it */
        sum = (int)(low[0] + low[1] + low[2] + low[3] - 4 * 0x4B400000u);
#pragma unroll
        for (int o = 4; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    }
    const uint32_t b = t / 8, i = t % 8;
    uint8_t *to = room + f.ints + (i / 4) * f.plane_i + 16 * b + 4 * (i % 4);
    *reinterpret_cast<uint32_t *>(to) =
        __byte_perm(__byte_perm(high[0], high[1], 0x0051), __byte_perm(high[2], high[3], 0x0051), 0x5410);
    *reinterpret_cast<uint32_t *>(to + 2 * f.plane_i) =
        __byte_perm(__byte_perm(low[0], low[1], 0x0040), __byte_perm(low[2], low[3], 0x0040), 0x5410);
    if (i == 0) *reinterpret_cast<float2 *>(room + f.more + 8 * b) = make_float2(scale, scale * (float)sum);
}

/* x = table[token] */
static __device__ __noinline__ void bring_embedded(const qn_wmat &w, float4 *x, uint32_t n, int token, float factor,
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

static __device__ __forceinline__ bool both_come(ulonglong2 u, uint32_t tag) { return has_come(u.x, tag) && has_come(u.y, tag); }

static __device__ __forceinline__ float4 four_of(ulonglong2 u)
{
    const float2 a = unpack(u.x), b = unpack(u.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

/* Four sent values at src[t], and at every so many threads further on; n: how many there are. All lanes of a warp together. */
template <int AT_ONCE>
static __device__ __forceinline__ void receive(ulonglong2 u[AT_ONCE], const ulonglong2 *src, uint32_t t, uint32_t n, uint32_t tag)
{
    for (;;) {
        bool all = true;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (t + j * CONSUMERS < n) u[j] = look16(src + t + j * CONSUMERS);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) all = all && (t + j * CONSUMERS >= n || both_come(u[j], tag));
        if (__all_sync(~0u, all)) return;
        pause();
    }
}

/* The same for all threads: the sum of what the warps left. */
static __device__ __forceinline__ float sum_of(const float4 *part)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < QN_P_WARPS / 4; i++) sum += (part[i].x + part[i].y) + (part[i].z + part[i].w);
    return sum;
}

/* x += norm(src) * post, by way of the room for the input */
static __device__ __noinline__ void add_normed(const qn_phase *p, float4 *x, float4 *room, uint32_t tag, float4 *part, who me)
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
    ss = sum32(ss);
    if (me.lane() == 0) reinterpret_cast<float *>(part)[me.warp()] = ss;
    sync_consumers();
    const float s = rsqrtf(__fdividef(sum_of(part), (float)p->cols) + p->eps);
#pragma unroll 1
    for (uint32_t t = me.thread; t < n; t += CONSUMERS) {
        const float4 y = room[t], w = __ldg(at<const float4>(p->post) + t), o = x[t];
        x[t] = make_float4(o.x + y.x * s * w.x, o.y + y.y * s * w.y, o.z + y.z * s * w.z, o.w + y.w * s * w.w);
    }
    sync_consumers(); /* the room and the sums are used anew */
}

/* All warps are done with the input before. */
static __device__ __forceinline__ void wait_for_done(shared_state *st, uint32_t linears)
{
    if (linears) wait_for(&st->done, (linears - 1) & 1);
}

/* What an input goes through on its way: sent values are added to the residual stream (or are the input themselves), squared,
 * multiplied with the norm's weights, and stored in the forms that the products want. The rest of the norm is a factor of the
 * products (norm_of). RECEIVES: else the stream is there already. Nothing is written before all warps are done with the input
 * before. AT_ONCE: times 2048 columns, or as often as needed. */
template <bool NORMED, bool RECEIVES, int AT_ONCE>
static __device__ __forceinline__ float form_input(const qn_phase *p, float4 *x, uint8_t *room, uint32_t tag, shared_state *st,
                                                   uint32_t linears, uint32_t thread)
{
    const uint32_t cols = p->cols, n = cols / 4, all = ((cols + 255) & ~255u) / 4, which = p->forms;
    const ulonglong2 *src = at<const ulonglong2>(p->src);
    const float4 *norm = at<const float4>(p->norm);
    const forms f = forms_of(which, 4 * all);
    float ss = 0;
    float4 w = make_float4(0, 0, 0, 0);
    if (NORMED && thread < n) w = __ldg(norm + thread); /* before the wait */
#pragma unroll 1
    for (uint32_t t0 = thread; t0 < all; t0 += AT_ONCE * CONSUMERS) { /* all lanes of a warp alike */
        ulonglong2 u[AT_ONCE];
        if (RECEIVES) receive<AT_ONCE>(u, src, t0, n, tag);
        if (t0 == thread) wait_for_done(st, linears);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const uint32_t t = t0 + j * CONSUMERS;
            if (t >= all) break;
            float4 v = RECEIVES && t < n ? four_of(u[j]) : make_float4(0, 0, 0, 0);
            if (NORMED && t < n) {
                const float4 o = x[t];
                if (t != thread) w = __ldg(norm + t);
                v = make_float4(v.x + o.x, v.y + o.y, v.z + o.z, v.w + o.w);
                if (RECEIVES) x[t] = v;
                ss += squares(v);
                v = make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
            }
            if (which & QN_FORM_float) *reinterpret_cast<float4 *>(room + f.floats + (t & 1) * f.plane_f + 16 * (t / 2)) = v;
            if (which & QN_FORM_int) turn_to_ints(room, f, t, v, which & QN_FORM_sums);
        }
    }
    return ss;
}

/* Brings the input into its forms. */
static __device__ __forceinline__ void bring_input(const qn_phase *p, const qn_crun &a, float4 *x, uint8_t *room, shared_state *st,
                                                   const mind *m, who me)
{
    const uint32_t tag = m->tag - (m->k - p->from), linears = m->linears, in = p->in;
    float ss;
    if (in == QN_IN_add) {
        ss = p->cols <= 4 * CONSUMERS ? form_input<true, true, 1>(p, x, room, tag, st, linears, me.thread)
                                      : form_input<true, true, 4>(p, x, room, tag, st, linears, me.thread);
    } else if (in == QN_IN_copy) {
        if (p->cols <= 4 * CONSUMERS) form_input<false, true, 1>(p, x, room, tag, st, linears, me.thread);
        else form_input<false, true, 4>(p, x, room, tag, st, linears, me.thread);
    } else {
        if (in == QN_IN_embed) bring_embedded(at<const qn_wmat>(a.tables)[p->index], x, p->cols / 4, m->id, p->factor, me.thread);
        wait_for_done(st, linears);
        if (in == QN_IN_post) add_normed(p, x, reinterpret_cast<float4 *>(room), tag, st->squares[linears & 1], me);
        ss = form_input<true, false, 1>(p, x, room, tag, st, 0, me.thread);
    }
    if (in != QN_IN_copy) {
        ss = sum32(ss);
        if (me.lane() == 0) reinterpret_cast<float *>(st->squares[linears & 1])[me.warp()] = ss;
    }
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

/* How the phase's tasks look; rows: logarithm of those that are multiplied; mine: the row that this lane gets the sum of. */
struct look { uint32_t out, rows, parts, mine; bool gated; };

static __device__ __forceinline__ look look_of(const qn_phase *p, uint32_t lane)
{
    look l;
    l.out = p->out;
    l.gated = l.out == QN_OUT_silu || l.out == QN_OUT_gelu;
    l.rows = p->rows + l.gated;
    l.parts = p->parts;
    l.mine = (__brev(lane) >> 27) & ((1u << p->rows) - 1);
    return l;
}

/* The bias of the row that this lane gets the sum of. */
static __device__ __forceinline__ float bias_of(const qn_task *t, const look &l, uint32_t lane)
{
    const uint64_t bias = l.gated && lane & (16 >> (l.rows - 1)) ? t->bias2 : t->bias;
    return bias && l.mine < t->rows ? __ldg(at<const float>(bias) + l.mine) : 0.f;
}

/* Parts of rows, joined by the warp that has the first; always in the same order. */
static __device__ __forceinline__ float join_parts_of(float v, const look &l, uint32_t part, float (*sums)[8], who me)
{
    const uint32_t n = 1u << l.parts;
    if (me.lane() % 4 == 0) sums[me.warp()][me.lane() / 4] = v;
    asm volatile("bar.sync %0, %1;" :: "r"(2 + (me.warp() >> l.parts)), "r"(32 * n) : "memory");
    if (part) return v;
    float s = 0;
    for (uint32_t i = 0; i < n; i++) s += sums[me.warp() + i][me.lane() / 4];
    return s;
}

/* What a task has made. */
static __device__ __forceinline__ void put_task(const qn_phase *p, const look &l, float v, const qn_task *t, uint32_t tag,
                                                unsigned long long *best, who me)
{
    if (l.gated) v = gate(v, l.out == QN_OUT_gelu) * __shfl_xor_sync(~0u, v, 16 >> (l.rows - 1));
    const float next = __shfl_xor_sync(~0u, v, 16);
    const uint32_t log = l.rows - l.gated, row = t->row + l.mine;
    if (t->part || me.lane() & ((32u >> log) - 1) || l.mine >= t->rows) return;
    if (l.out == QN_OUT_logits) {
        at<float>(p->dst)[row] = v;
        const unsigned long long key = key_of(v, row);
        if (key > best[me.thread / 4]) best[me.thread / 4] = key;
    } else if (l.mine % 2 == 0) {
        put8(at<uint64_t>(p->dst) + row / 2, pack(v, next, tag));
    }
}

static __device__ __forceinline__ task task_at(const qn_task *t)
{
    const uint4 *w = reinterpret_cast<const uint4 *>(t);
    return { w[0], w[1] };
}

/* What comes of a task whose last stage it was. Everything is read anew: nothing is held through the products. */
static __device__ __forceinline__ void finish_task(const qn_phase *p, const qn_task *t, const float v[8], float bias, uint32_t joins,
                                                   shared_state *st, const mind *m, who me)
{
    const look l = look_of(p, me.lane());
    const float norm = norm_of(p, st->squares[m->linears & 1]); /* while the sums are on their way */
    float sum = sum_rows(v, l.rows, me.lane());
    if (l.parts) sum = join_parts_of(sum, l, t->part, st->sums[joins & 1], me);
    put_task(p, l, fmaf(sum, norm, bias), t, m->tag, st->best, me);
}

/* The tasks of a phase that this warp has; the first is at hand. bias: of its rows. */
static __device__ __forceinline__ void run_tasks(uint32_t input, uint32_t ring, shared_state *st, float bias)
{
    const who me = who_am_i();
    mind *m = &st->minds[me.warp()];
    const qn_phase *p = &st->phases[me.warp()][m->at_phase & 1];
    float v[8];
#pragma unroll 1
    for (uint32_t joins = 0, here = m->task;; here ^= 1) {
        const qn_task *now = &st->tasks[me.warp()][here];
        const uint32_t next = m->next;
        copy16(&st->tasks[me.warp()][here ^ 1], m->list + next, sizeof(qn_task) / 16, me.lane());
        if (now->flags & QN_T_begins) {
#pragma unroll
            for (int i = 0; i < 8; i++) v[i] = 0;
        }
        const uint32_t seq = m->stages + now->stage;
        wait_for(&st->s.full[seq % QN_P_SLOTS], seq / QN_P_SLOTS & 1);
        {
            const uint32_t rows = look_of(p, me.lane()).rows;
            const forms f = forms_of(p->forms, (p->cols + 255) & ~255u);
            if (rows == 1) add_task<2>(task_at(now), f, input, ring, me.lane(), v);
            else if (rows == 2) add_task<4>(task_at(now), f, input, ring, me.lane(), v);
            else add_task<8>(task_at(now), f, input, ring, me.lane(), v);
        }
        __syncwarp();
        if (me.lane() == 0) m->next = next + 1 < m->n ? next + 1 : 0, m->task = here ^ 1;
        const uint32_t flags = now->flags;
        arrive(&st->s.empty[(m->stages + now->stage) % QN_P_SLOTS], now->weight); /* every lane: the race checker does not follow
            one for its warp */
        if (flags & QN_T_last) arrive(&st->done, 1);
        if (flags & QN_T_ends) finish_task(p, now, v, bias, joins++, st, m, me);
        if (flags & QN_T_last) return;
        wait_copies();
        now = &st->tasks[me.warp()][here ^ 1];
        if (now->flags & QN_T_begins) bias = bias_of(now, look_of(p, me.lane()), me.lane()); /* on its way with the products */
    }
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

static __device__ __noinline__ int choose_token(const qn_crun &a, shared_state *st, uint32_t token, who me)
{
    const uint32_t tag = tag_of(a, token, a.n_phases - 1), warp = me.warp(), lane = me.lane();
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
    for (uint32_t b = me.thread; b < gridDim.x; b += CONSUMERS) {
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
    if (me.thread < QN_P_WARPS * 8) st->best[me.thread] = 0;
    if (blockIdx.x == 0 && me.thread == 0) at<int>(a.chosen)[token] = token_of(best);
    return token_of(best);
}

/* ---- the walk */

static __device__ __forceinline__ uint32_t ring_at(const qn_crun &a, const uint8_t *smem)
{
    return shared_at(smem) + a.x_bytes + a.form_bytes;
}

static __device__ __forceinline__ void stamp(const qn_crun &a, uint32_t i, uint32_t thread)
{
    uint64_t t;
    if (!a.stamps || thread) return;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    atomicMax(at<unsigned long long>(a.stamps) + i, (unsigned long long)t);
}

/* A phase of linears. Whether weights have come is asked when the input has: all warps are done with the phase before then, and no
 * barrier is two turns behind. The description of an attention comes while nobody reads the one before: a linear lies between. */
static __device__ __forceinline__ void walk_linear(const qn_crun &a, uint8_t *smem, const qn_phase *p, shared_state *st, mind *m,
                                                   who me)
{
    const qn_task *now = &st->tasks[me.warp()][m->task];
    const bool has = now->phase == m->k;
    const float bias = has ? bias_of(now, look_of(p, me.lane()), me.lane()) : 0.f;
    if (p->att && me.warp() == QN_P_WARPS - 1)
        copy16(&st->att, at<const qn_att>(a.atts) + (p->att - 1), sizeof(qn_att) / 16, me.lane());
    bring_input(p, a, reinterpret_cast<float4 *>(smem), smem + a.x_bytes, st, m, me);
    if (has) run_tasks(shared_at(smem) + a.x_bytes, ring_at(a, smem), st, bias);
    else arrive(&st->done, 1);
    __syncwarp();
    if (me.lane() == 0) m->linears++;
}

static __device__ __forceinline__ void begin_walk(const qn_crun &a, shared_state *st)
{
    const who me = who_am_i();
    mind *m = &st->minds[me.warp()];
    const uint32_t *begins = at<const uint32_t>(a.task_at) + blockIdx.x * QN_P_WARPS + me.warp();
    const uint32_t n = begins[1] - begins[0];
    const qn_task *list = at<const qn_task>(a.tasks) + begins[0];
    if (me.lane() == 0)
        *m = { 0, tag_of(a, 0, 0), 0, 0, n > 1, n, 0, 0, 0, a.next ? *at<const int>(a.next) : a.token, list };
    copy16(&st->tasks[me.warp()][0], list, sizeof(qn_task) / 16, me.lane());
    copy16(&st->phases[me.warp()][0], at<const qn_phase>(a.phases), sizeof(qn_phase) / 16, me.lane());
    stamp(a, 0, me.thread);
}

/* What is behind a phase; false: behind the last of the last token. */
static __device__ __forceinline__ bool end_phase(const qn_crun &a, shared_state *st)
{
    const who me = who_am_i();
    mind *m = &st->minds[me.warp()];
    stamp(a, m->at_phase + 1, me.thread);
    __syncwarp();
    if (me.lane() == 0) m->k++, m->tag++, m->at_phase++;
    __syncwarp();
    if (m->k < a.n_phases) return true;
    const int id = choose_token(a, st, m->token, me);
    const uint32_t *stage_at = at<const uint32_t>(a.stage_at) + blockIdx.x;
    if (me.lane() == 0) m->k = 0, m->stages += stage_at[1] - stage_at[0], m->id = id, m->token++;
    __syncwarp();
    return m->token < a.n_tokens;
}

template <bool WIDE, int LANES>
static __device__ __forceinline__ bool walk_phase(const qn_crun &a, uint8_t *smem, shared_state *st)
{
    const who me = who_am_i();
    mind *m = &st->minds[me.warp()];
    wait_copies();
    const uint32_t next = m->k + 1 < a.n_phases ? m->k + 1 : 0, here = m->at_phase & 1;
    copy16(&st->phases[me.warp()][here ^ 1], at<const qn_phase>(a.phases) + next, sizeof(qn_phase) / 16, me.lane());
    const qn_phase *p = &st->phases[me.warp()][here];
    if (p->op == QN_I_attend) {
        sync_consumers(); /* its description is there, the room free */
        run_attend<WIDE, LANES>(a, st->att, reinterpret_cast<float *>(smem + a.x_bytes), a.pos + (int)m->token,
                                m->tag - (m->k - p->from), m->tag);
    } else {
        walk_linear(a, smem, p, st, m, me);
    }
    __syncwarp();
    return end_phase(a, st);
}

template <bool WIDE, int LANES>
static __device__ __forceinline__ void walk(const qn_crun &a, uint8_t *smem, shared_state *st)
{
    begin_walk(a, st);
#pragma unroll 1
    while (walk_phase<WIDE, LANES>(a, smem, st)) { }
}

/* Twenty warps get 96 registers each; those that bring weights need few, their two neighbours none, and what they give the others
 * take, so that those who compute have no stack in their way (SPEED.md). A block can take no more than it gives. */
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
    static_assert(sizeof(shared_state) <= 9216, "deal.c leaves so much");
    const who me = who_am_i();
    if (threadIdx.x < QN_P_SLOTS) {
        init_barrier(&st.s.full[threadIdx.x], ARRIVALS);
        init_barrier(&st.s.empty[threadIdx.x], 32 * QN_T_USES);
        fence_barriers();
    }
    if (threadIdx.x == 0) st.s.begun = 0;
    if (threadIdx.x < QN_P_WARPS * 8) st.best[threadIdx.x] = 0;
    if (threadIdx.x == QN_P_SLOTS) init_barrier(&st.done, 32 * QN_P_WARPS), fence_barriers();
    __syncthreads();
    if (me.warp() >= QN_P_WARPS) {
        give_registers();
        if (me.warp() == QN_P_WARPS) bring_weights(a, &st.s, ring_at(a, smem));
        if (me.warp() == QN_P_WARPS + 1) bring_closer(a, &st.s);
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

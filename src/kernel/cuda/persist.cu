/* persist.cu - a whole token in one kernel. A block on each multiprocessor walks the same phases; nothing is launched between them and
 * nobody waits for all: what others need is sent (wire.cuh), weights are always on their way (ring.cuh), products are made by
 * warps each on its own (products.cuh). Sixteen warps compute, one more brings weights.
 * What the lists hold is the business of list.c and deal.c; the same lists are run on the host by tests/unit/test_list.c. */
#include "kernel/cuda/attend.cuh"
#include "kernel/cuda/input.cuh"

#define TASKS 4u /* a warp's: the one at hand, and those on their way, which take longer to come than a short one to do */

struct shared_state {
    slots s;
    qn_task tasks[QN_P_WARPS][TASKS];
    uint4 list[QN_P_WARPS];         /* of a token: where the warp's tasks begin and end, among all; the block's stages */
    qn_phase phases[QN_P_WARPS][2]; /* that at hand, and the next: every warp has its own, so that nobody waits for another's copy */
    qn_att atts[QN_P_WARPS];        /* the attention that comes next */
    float squares[2][QN_P_WARPS];   /* of inputs in each room, by warps */
    float sums[2][QN_P_WARPS][8];   /* of parts of rows */
    unsigned long long best[QN_P_WARPS * 8];
    int ids[QN_P_WARPS];            /* the token itself; a register more that is held is one that spills */
};

/* How far a warp is; every lane has it, in as few registers as can be: more of them would be spilled, and the stacks of 512 threads do
 * not fit what is left of the first cache, so that each reload comes from the second. */
struct walker {
    uint32_t tag;             /* of what the phase sends */
    uint32_t token_k;         /* the token of this launch, and the phase: 16 bits each */
    uint32_t stages;          /* of earlier tokens */
    uint32_t next;            /* TASKS times the next task to be copied, among all, and which place the one at hand has */
    __device__ __forceinline__ uint32_t k() const { return token_k & 0xFFFF; }
    __device__ __forceinline__ uint32_t token() const { return token_k >> 16; }
    __device__ __forceinline__ uint32_t place() const { return next % TASKS; }
};

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

static __device__ __forceinline__ uint32_t ring_at(const qn_crun &a, const uint8_t *smem)
{
    return shared_at(smem) + a.x_bytes + a.form_bytes;
}

/* Its own copy of the phase at hand. */
static __device__ __forceinline__ const qn_phase *phase_of(const shared_state *st, const walker *w, who me)
{
    return &st->phases[me.warp()][w->tag & 1];
}

static __device__ __forceinline__ bool is_gated(const qn_phase *p) { return p->out == QN_OUT_silu || p->out == QN_OUT_gelu; }

static __device__ __forceinline__ task task_at(const qn_task *t)
{
    const uint4 *w = reinterpret_cast<const uint4 *>(t);
    return { w[0], w[1] };
}

/* The task at hand, and what can be known of it before its input and its weights come: between the products and what is sent, every
 * instruction that waits for another is in the token's way. */
struct ready {
    task t;
    uint64_t to;              /* where this lane's rows go: two of them sent, or a logit */
    float bias;
    bool puts;                /* this lane has rows to put */
};

/* A lane gets the sum of one row; its neighbour across the warp has the next, which are sent together. */
static __device__ __forceinline__ ready ready_for(const qn_phase *p, const qn_task *now, uint32_t ring, uint32_t lane)
{
    ready r;
    r.t = task_at(now);
    r.t.a.x += ring;
    const uint32_t log = p->rows, mine = (__brev(lane) >> 27) & ((1u << log) - 1);
    const bool has = mine < r.t.rows(), first = (lane & ((32u >> log) - 1)) == 0, logits = p->out == QN_OUT_logits;
    const uint32_t row = now->row + mine;
    r.to = p->dst + 4 * (uint64_t)(logits ? row : row & ~1u);
    r.puts = first && has && !r.t.part() && (logits || mine % 2 == 0);
    r.bias = 0;
    if (r.t.flags() & QN_T_bias) {
        const uint64_t bias = is_gated(p) && lane & (16 >> log) ? now->bias2 : now->bias;
        if (bias && has) r.bias = __ldg(at<const float>(bias) + mine);
    }
    return r;
}

/* Parts of rows, joined by the warp that has the first; always in the same order. */
static __device__ __forceinline__ float join_parts_of(float v, uint32_t log, uint32_t part, float (*sums)[8], who me)
{
    const uint32_t n = 1u << log;
    if (me.lane() % 4 == 0) sums[me.warp()][me.lane() / 4] = v;
    asm volatile("bar.sync %0, %1;" :: "r"(2 + (me.warp() >> log)), "r"(32 * n) : "memory");
    if (part) return v;
    float s = 0;
    for (uint32_t i = 0; i < n; i++) s += sums[me.warp() + i][me.lane() / 4];
    return s;
}

/* What a task has made. */
template <int LOG>
static __device__ __forceinline__ void put_rows(const qn_phase *p, const ready &r, float v, uint32_t tag, unsigned long long *best, who me)
{
    const uint32_t out = p->out;
    if (out == QN_OUT_silu || out == QN_OUT_gelu) v = gate(v, out == QN_OUT_gelu) * __shfl_xor_sync(~0u, v, 16 >> (LOG - 1));
    if (out != QN_OUT_logits) {
        const float next = __shfl_xor_sync(~0u, v, 16);
        if (r.puts) put8(at<uint64_t>(r.to), pack(v, next, tag));
    } else if (r.puts) {
        *at<float>(r.to) = v;
        const unsigned long long key = key_of(v, (uint32_t)(r.to - p->dst) / 4);
        if (key > best[me.thread / 4]) best[me.thread / 4] = key;
    }
}

/* The task at hand. */
static __device__ __forceinline__ const qn_task *task_of(const shared_state *st, const walker *w, who me)
{
    return &st->tasks[me.warp()][w->place()];
}

/* Begins to copy a task more, to the place of the one before the one at hand; behind the last of a token its first comes again. */
static __device__ __forceinline__ void copy_next_task(const qn_crun &a, shared_state *st, walker *w, who me)
{
    const uint4 list = st->list[me.warp()];
    const uint32_t place = w->place(), from = w->next / TASKS, behind = from + 1 == list.y ? list.x : from + 1;
    copy16(&st->tasks[me.warp()][(place + TASKS - 1) % TASKS], at<const qn_task>(a.tasks) + from, sizeof(qn_task) / 16, me.lane());
    end_copies();
    w->next = TASKS * behind + place;
}

/* It is the one at hand from now on. */
static __device__ __forceinline__ void take_next_task(walker *w)
{
    wait_copies_but<TASKS - 2>();
    w->next = w->next - w->place() + (w->place() + 1) % TASKS;
}

static __device__ __forceinline__ void use(shared_state *st, uint32_t slot, const task &t)
{
    __syncwarp();
    arrive(&st->s.empty[slot], t.weight()); /* every lane: the race checker does not follow one for its warp */
}

/* The tasks of a phase that this warp has; the first is at hand, those behind it on their way. */
template <int LOG>
static __device__ __forceinline__ void run_tasks(const qn_crun &a, const uint8_t *smem, shared_state *st, walker *w, const input &in, ready r)
{
    const who me = who_am_i();
    const qn_phase *p = phase_of(st, w, me);
    float v[1 << LOG];
#pragma unroll
    for (int i = 0; i < 1 << LOG; i++) v[i] = 0; /* else they would be held through all phases, as if somebody had set them */
#pragma unroll 1
    for (uint32_t joins = 0;;) {
        const uint32_t flags = r.t.flags(), seq = w->stages + r.t.stage(), slot = seq % QN_P_SLOTS;
        if (flags & QN_T_begins) {
#pragma unroll
            for (int i = 0; i < 1 << LOG; i++) v[i] = 0;
        }
        wait_for(&st->s.full[slot], seq / QN_P_SLOTS & 1);
        add_task<1 << LOG>(r.t, in, me.lane(), v);
        if (!(flags & QN_T_last)) use(st, slot, r.t); /* the last one's room can wait, others cannot wait for what it made */
        if (flags & QN_T_ends) {
            float sum = sum_rows<LOG>(v, me.lane());
            const float norm = norm_of(p, st->squares[p->room != 0]);
            if (p->parts) sum = join_parts_of(sum, p->parts, r.t.part(), st->sums[joins], me);
            put_rows<LOG>(p, r, fmaf(sum, norm, r.bias), w->tag, st->best, me);
            joins ^= 1; /* between two with the same place all of the team are at a barrier */
        }
        if (flags & QN_T_last) use(st, slot, r.t);
        take_next_task(w);
        if (flags & QN_T_last) return;
        r = ready_for(p, task_of(st, w, me), ring_at(a, smem), me.lane());
        copy_next_task(a, st, w, me);
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
        const unsigned long long key = receive_two(all + 2 * b, tag);
        best = key > best ? key : best;
    }
    if (me.thread < gridDim.x) __threadfence(); /* also for all that are at a barrier with it */
    __syncwarp();
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

static __device__ __forceinline__ void stamp(const qn_crun &a, uint32_t i, uint32_t thread)
{
    uint64_t t;
    if (!a.stamps || thread) return;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    atomicMax(at<unsigned long long>(a.stamps) + i, (unsigned long long)t);
}

/* A phase of linears. What does not depend on the input is asked for before it is waited for. Nobody waits until all are done with an
 * input: the next one has another room, and behind the one after that all have been at a barrier. */
static __device__ __forceinline__ void run_linear(const qn_crun &a, uint8_t *smem, shared_state *st, walker *w)
{
    ready r = { };
    input in;
    bool has;
    uint32_t log;
    {
        const who me = who_am_i();
        const qn_phase *p = phase_of(st, w, me);
        const qn_task *now = task_of(st, w, me);
        has = now->phase == w->k();
        log = p->rows + is_gated(p);
        in = input_of(shared_at(smem) + a.x_bytes + p->room, p->forms, p->cols);
        if (has) r = ready_for(p, now, ring_at(a, smem), me.lane()), copy_next_task(a, st, w, me);
    }
    {
        const who me = who_am_i();
        const qn_phase *p = phase_of(st, w, me);
        float4 *x = reinterpret_cast<float4 *>(smem);
        uint8_t *room = smem + a.x_bytes + p->room;
        float *part = st->squares[p->room != 0];
        if (p->in == QN_IN_embed || p->in == QN_IN_post)
            bring_stream(p, at<const qn_wmat>(a.tables), x, room, part, w->tag - p->back, st->ids[me.warp()]);
        else bring_sent(p, x, in, part, w->tag - p->back);
        sync_consumers();
    }
    if (!has) return;
    if (log == 1) run_tasks<1>(a, smem, st, w, in, r);
    else if (log == 2) run_tasks<2>(a, smem, st, w, in, r);
    else run_tasks<3>(a, smem, st, w, in, r);
}

static __device__ __forceinline__ void begin_walk(const qn_crun &a, shared_state *st, walker *w)
{
    const who me = who_am_i();
    const uint32_t *begins = at<const uint32_t>(a.task_at) + blockIdx.x * QN_P_WARPS + me.warp();
    const uint32_t *stages = at<const uint32_t>(a.stage_at) + blockIdx.x;
    const uint32_t tag = tag_of(a, 0, 0), first = begins[0], end = begins[1];
    uint32_t next = first;
    st->list[me.warp()] = make_uint4(first, end, stages[1] - stages[0], 0);
    for (uint32_t i = 0; i + 1 < TASKS; i++, next = next + 1 == end ? first : next + 1)
        copy16(&st->tasks[me.warp()][i], at<const qn_task>(a.tasks) + next, sizeof(qn_task) / 16, me.lane());
    copy16(&st->phases[me.warp()][tag & 1], at<const qn_phase>(a.phases), sizeof(qn_phase) / 16, me.lane());
    wait_copies();
    *w = { tag, 0, 0, TASKS * next };
    st->ids[me.warp()] = a.next ? *at<const int>(a.next) : a.token;
    stamp(a, 0, me.thread);
}

/* What is behind a phase; false: behind the last of the last token. */
static __device__ __forceinline__ bool end_phase(const qn_crun &a, shared_state *st, walker *w)
{
    const who me = who_am_i();
    if (a.stamps) stamp(a, w->token() * a.n_phases + w->k() + 1, me.thread);
    w->token_k++, w->tag++;
    if (w->k() < a.n_phases) return true;
    st->ids[me.warp()] = choose_token(a, st, w->token(), me);
    w->token_k = (w->token() + 1) << 16;
    w->stages += st->list[me.warp()].z;
    return w->token() < a.n_tokens;
}

/* What the phase and those behind it need to know, on its way. Returns whether it is a linear. */
static __device__ __forceinline__ bool begin_phase(const qn_crun &a, shared_state *st, const walker *w)
{
    const who me = who_am_i();
    const qn_phase *p = phase_of(st, w, me);
    wait_copies();
    copy16(&st->phases[me.warp()][~w->tag & 1], at<const qn_phase>(a.phases) + (w->k() + 1 < a.n_phases ? w->k() + 1 : 0),
           sizeof(qn_phase) / 16, me.lane());
    if (p->att) copy16(&st->atts[me.warp()], at<const qn_att>(a.atts) + (p->att - 1), sizeof(qn_att) / 16, me.lane());
    return p->op == QN_I_linear;
}

template <bool WIDE, int LANES>
static __device__ __forceinline__ void walk(const qn_crun &a, uint8_t *smem, shared_state *st)
{
    walker w;
    begin_walk(a, st, &w);
#pragma unroll 1
    do {
        if (begin_phase(a, st, &w)) {
            run_linear(a, smem, st, &w);
        } else {
            const who me = who_am_i();
            const qn_phase *p = phase_of(st, &w, me);
            run_attend<WIDE, LANES>(a, st->atts[me.warp()], reinterpret_cast<float *>(smem + a.x_bytes + p->room), a.pos + (int)w.token(),
                                    w.tag - p->back, w.tag);
        }
        __syncwarp();
    } while (end_phase(a, st, &w));
}

/* Twenty warps get 96 registers each; the one that brings weights needs few, its three neighbours none, and what they give the others
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
    static_assert(sizeof(shared_state) <= 11264, "deal.c leaves so much");
    const who me = who_am_i();
    if (threadIdx.x < QN_P_SLOTS) {
        init_barrier(&st.s.full[threadIdx.x], ARRIVALS);
        init_barrier(&st.s.empty[threadIdx.x], 32 * QN_T_USES);
        fence_barriers();
    }
    if (threadIdx.x < QN_P_WARPS * 8) st.best[threadIdx.x] = 0;
    __syncthreads();
    if (me.warp() >= QN_P_WARPS) {
        give_registers();
        if (me.warp() == QN_P_WARPS) bring_weights(a, &st.s, ring_at(a, smem));
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

/* ring.cuh - weights on their way. One warp walks the block's list of stages and keeps copies in flight into a ring in shared
 * memory, across phases and from token to token; a barrier for each stage says that it has come, another that all warps have
 * used it. The list says what goes where (deal.c). */
#pragma once
#include "kernel/cuda/wire.cuh"

#define STAGE_LANES (uint32_t)(sizeof(qn_stage) / 16)
#define STAGES_AT_ONCE (uint32_t)(32 / STAGE_LANES) /* descriptions that the lanes of a warp bring together */
static_assert(32 % STAGE_LANES == 0, "lanes of a warp copy descriptions of stages");

struct __align__(16) slots {
    qn_stage stage[2 * STAGES_AT_ONCE]; /* those at hand, and the next */
    uint64_t full[QN_P_SLOTS], empty[QN_P_SLOTS];
};

static __device__ __forceinline__ void init_barrier(uint64_t *b, uint32_t n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_at(b)), "r"(n) : "memory");
}

/* 16 bytes for each of the first n lanes; wait_copies before they are read. */
static __device__ __forceinline__ void copy16(void *to, const void *from, uint32_t n, uint32_t lane)
{
    if (lane < n)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;"
                     :: "r"(shared_at(to) + 16 * lane), "l"(static_cast<const uint8_t *>(from) + 16 * lane) : "memory");
}

static __device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

/* Copies so far belong together; all but the newest N such groups have come. */
static __device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N> static __device__ __forceinline__ void wait_copies_but()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
    __syncwarp();
}

/* Asks, and never waits on its own; `passed` may wait a moment. */
static __device__ __forceinline__ bool has_passed(uint64_t *b, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(shared_at(b)), "r"(parity) : "memory");
    return done;
}

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void fence_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#define ARRIVALS 1 /* of a stage: the lane that says how many bytes come */

static __device__ __forceinline__ void arrive(uint64_t *b, uint32_t times)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" :: "r"(shared_at(b)), "r"(times) : "memory");
}

static __device__ __forceinline__ bool passed(uint64_t *b, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(shared_at(b)), "r"(parity) : "memory");
    return done;
}

/* Stages that are asked for into the second cache while the ring has no room, at most; bytes at a time. */
#define ASK_STAGES 5u
#define ASK_BYTES 8192u

static __device__ __forceinline__ void bring_closer(uint64_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(from), "r"(bytes) : "memory");
}

/* Weights are read once a token: they should not drive out what is read again. */
static __device__ __forceinline__ void copy_run(uint32_t to, uint64_t from, uint32_t bytes, uint64_t *bar, uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(shared_at(bar)), "l"(policy) : "memory");
}

static __device__ __forceinline__ uint64_t read_once()
{
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* Descriptions for the warp that brings weights. */
static __device__ __forceinline__ void copy_list(qn_stage *to, const qn_stage *from, uint32_t n, uint32_t lane)
{
    copy16(to, from, STAGE_LANES * n, lane);
}
static __device__ __forceinline__ void wait_list() { wait_copies(); }

/* Lane r has row r of the stage, or one of the two runs. */
static __device__ __forceinline__ void copy_stage(const qn_stage *s, uint32_t ring, uint64_t *bar, uint32_t lane, uint64_t policy)
{
    if (lane == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_at(bar)), "r"(s->bytes) : "memory");
    __syncwarp();
    const uint32_t a = s->rows, b = s->b ? a : 0, to = ring + s->to;
    if (s->n_value == 0) {
        if (lane == 0) copy_run(to, s->a, a * s->row_bytes, bar, policy);
        if (lane == 1 && b) copy_run(to + a * s->pitch, s->b, b * s->row_bytes, bar, policy);
    } else if (lane < a + b) {
        const uint64_t row = lane < a ? s->a + (uint64_t)lane * s->row_bytes : s->b + (uint64_t)(lane - a) * s->row_bytes;
        const uint32_t mine = to + lane * s->pitch;
        copy_run(mine, row, s->n_value, bar, policy);
        if (s->n_high) copy_run(mine + s->high_at, row + s->high, s->n_high, bar, policy);
        if (s->n_scale) copy_run(mine + s->scale_at, row + s->scale, s->n_scale, bar, policy);
    }
}
#else
static __device__ __forceinline__ void fence_barriers() { }

/* Not by the instructions that bring weights: waiting for one would be waiting for all. */
static __device__ __forceinline__ void copy_list(qn_stage *to, const qn_stage *from, uint32_t n, uint32_t lane)
{
    if (lane < STAGE_LANES * n) reinterpret_cast<uint4 *>(to)[lane] = reinterpret_cast<const uint4 *>(from)[lane];
}
static __device__ __forceinline__ void wait_list() { __syncwarp(); }

#define ARRIVALS 32 /* every lane's copies */

static __device__ __forceinline__ void arrive(uint64_t *b, uint32_t times)
{
    for (; times; times--)
        asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}" :: "r"(shared_at(b)) : "memory");
}

static __device__ __forceinline__ bool passed(uint64_t *b, uint32_t parity) { return has_passed(b, parity); }

#define ASK_STAGES 0u /* not measured */
#define ASK_BYTES 16u
static __device__ __forceinline__ void bring_closer(uint64_t, uint32_t) { }

static __device__ __forceinline__ uint64_t read_once() { return 0; }

static __device__ __forceinline__ void copy_run(uint32_t to, uint64_t from, uint32_t bytes, uint32_t lane)
{
#pragma unroll 4
    for (uint32_t o = 16 * lane; o < bytes; o += 512)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to + o), "l"(from + o) : "memory");
}

static __device__ __forceinline__ void copy_stage(const qn_stage *s, uint32_t ring, uint64_t *bar, uint32_t lane, uint64_t)
{
    const uint32_t a = s->rows, b = s->b ? a : 0, to = ring + s->to;
    if (s->n_value == 0) {
        copy_run(to, s->a, a * s->row_bytes, lane);
        copy_run(to + a * s->pitch, s->b, b * s->row_bytes, lane);
    }
    for (uint32_t r = 0; s->n_value && r < a + b; r++) {
        const uint64_t row = r < a ? s->a + (uint64_t)r * s->row_bytes : s->b + (uint64_t)(r - a) * s->row_bytes;
        const uint32_t mine = to + r * s->pitch;
        copy_run(mine, row, s->n_value, lane);
        copy_run(mine + s->high_at, row + s->high, s->n_high, lane);
        copy_run(mine + s->scale_at, row + s->scale, s->n_scale, lane);
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(shared_at(bar)) : "memory");
}
#endif

static __device__ __forceinline__ void wait_for(uint64_t *b, uint32_t parity)
{
    while (!passed(b, parity)) { }
}

/* What this block attends to. A short context: head `block`, all of it. Else: KV head block % n_kv with all heads that read it, part
 * block / n_kv of the context. */
#define WHOLE_CONTEXT 288 /* tokens: so few take less time than joining parts */
/* a / b, of numbers of blocks and tokens: whole numbers are divided in 100 instructions. */
static __device__ __forceinline__ int over(int a, int b) { return (int)__fdividef((float)a + 0.5f, (float)b); }

struct share { int kv, head, heads, part, parts, begin, end; };

static __device__ __forceinline__ share share_of(const qn_att &t, int pos)
{
    share s;
    const int from = t.window ? max(0, pos - t.window + 1) : 0, n = pos + 1 - from, block = this_block();
    const bool few = n <= WHOLE_CONTEXT && t.n_head <= (int)gridDim.x;
    s.parts = few ? 1 : min(t.chunks, (n + 63) / 64);
    const int length = over(n + s.parts - 1, s.parts), of = over(block, few ? t.group : t.n_kv);
    s.heads = few ? 1 : t.group;
    s.kv = few ? of : block - of * t.n_kv;
    s.head = few ? block : s.kv * t.group;
    s.part = few ? block >= t.n_head : of;
    s.begin = from + s.part * length;
    s.end = min(s.begin + length, pos + 1);
    return s;
}

/* Old keys and values do not depend on this token: they come into the second cache long before they are asked for. */
static __device__ void warm_rows(const qn_crun &a, const qn_att &t, int pos, uint32_t lane)
{
    const share s = share_of(t, pos);
    if (s.part >= s.parts) return;
    const int *pages = at<const int>(t.pages) + a.first;
    const int each = t.type == QN_KVT_f16 ? 2 : 4, lines = (t.d_head * each + 127) / 128, n = (min(s.end, pos) - s.begin) * lines;
    const size_t row_bytes = (size_t)t.n_kv * t.d_head * each;
#pragma unroll 1
    for (int e = (int)lane; e < n; e += 32) {
        const int p = s.begin + e / lines;
        const uint8_t *row = at<const uint8_t>(t.cache) + (size_t)pages[p / QN_CPAGE] * t.stride +
                             (size_t)(p % QN_CPAGE) * row_bytes + (size_t)s.kv * t.d_head * each + e % lines * 128;
        asm volatile("prefetch.global.L2 [%0];" :: "l"(row));
        asm volatile("prefetch.global.L2 [%0];" :: "l"(row + QN_CPAGE * row_bytes));
    }
}

/* What has been asked for into the second cache: this token's stages in front of `stage`, and so many bytes of that one. */
struct asked { uint32_t stage, bytes; };

/* Among the stages from i on, of n, which the ring has no room for yet. While the short phases run the ring is full and memory idle;
 * what is asked for then is there when gate and up want more than the ring holds. */
static __device__ __forceinline__ bool any_to_ask(asked *p, uint32_t i, uint32_t n)
{
    if (p->stage < i) *p = { i, 0 };
    return p->stage < min(n, i + ASK_STAGES);
}

/* The next piece of them. */
static __device__ __forceinline__ void ask_ahead(const slots *s, asked *p, uint32_t i, uint32_t half, uint32_t lane)
{
    const uint32_t batch = p->stage / STAGES_AT_ONCE - i / STAGES_AT_ONCE; /* descriptions at hand, or the next */
    if (batch) wait_list();
    const qn_stage *next = &s->stage[(batch ? half ^ STAGES_AT_ONCE : half) + p->stage % STAGES_AT_ONCE];
    const uint32_t all = next->n_value ? 0 : next->bytes, run = next->b ? all / 2 : all, done = p->bytes;
    if (done < all) {
        const bool second = done >= run;
        const uint32_t bytes = min(ASK_BYTES, (second ? all : run) - done);
        if (lane == 0) bring_closer((second ? next->b - run : next->a) + done, bytes);
        p->bytes += bytes;
    }
    if (p->bytes >= all) *p = { p->stage + 1, 0 };
}

/* The warp that brings weights. Descriptions come eight at a time, while the eight before are used; the list begins anew with
 * every token, and its last eight may be fewer. */
static __device__ __forceinline__ void bring_weights(const qn_crun &a, slots *s, uint32_t ring)
{
    const uint32_t lane = threadIdx.x % 32, first = at<const uint32_t>(a.stage_at)[blockIdx.x];
    const uint32_t n = at<const uint32_t>(a.stage_at)[blockIdx.x + 1] - first;
    const qn_stage *list = at<const qn_stage>(a.stages) + first;
    const uint64_t policy = read_once();
    uint32_t used = 0, seq = 0, half = 0;
    if (n == 0) return;
    copy_list(s->stage, list, min(n, STAGES_AT_ONCE), lane);
#pragma unroll 1
    for (uint32_t t = 0; t < a.n_tokens; t++) {
        asked ahead = { 0, 0 };
#pragma unroll 1
        for (uint32_t i = 0; i < n; i++, seq++) {
            if (i % STAGES_AT_ONCE == 0) {
                wait_list();
                const uint32_t next = i + STAGES_AT_ONCE < n ? i + STAGES_AT_ONCE : 0;
                half = i == 0 && t == 0 ? 0 : half ^ STAGES_AT_ONCE;
                copy_list(&s->stage[half ^ STAGES_AT_ONCE], list + next, min(n - next, STAGES_AT_ONCE), lane);
            }
            const qn_stage *now = &s->stage[half + i % STAGES_AT_ONCE];
            const uint32_t back = now->back;
            while ((int32_t)(used + back - seq - 1) < 0) { /* stage seq - back is used when that many + 1 are */
                uint64_t *const bar = &s->empty[used % QN_P_SLOTS];
                while (any_to_ask(&ahead, i, n) && !__all_sync(~0u, has_passed(bar, used / QN_P_SLOTS & 1))) {
                    if (seq) wait_for(&s->full[(seq - 1) % QN_P_SLOTS], (seq - 1) / QN_P_SLOTS & 1);
                    ask_ahead(s, &ahead, i, half, lane);
                }
                wait_for(bar, used / QN_P_SLOTS & 1);
                used++;
            }
            const uint32_t after = now->after;
            if (seq >= after) wait_for(&s->full[(seq - after) % QN_P_SLOTS], (seq - after) / QN_P_SLOTS & 1);
            copy_stage(now, ring, &s->full[seq % QN_P_SLOTS], lane, policy);
            if (now->flags & QN_S_kv) warm_rows(a, at<const qn_att>(a.atts)[now->att], a.pos + (int)t, lane);
        }
    }
}

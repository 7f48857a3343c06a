/* shortlist.cu - the best logits of each row, best first, a tie to the lower id: all that a sampler with a top-k looks at. A block
 * sorts 1,024 keys and keeps the first 64; what all blocks kept goes through the same kernel again until one block is left.
 * A key is the logit as an ordered number above, and the id below, turned round. And a draw from them, so that tokens follow each other
 * without the host. */
#include "kernel/cuda/weights.cuh"

/* 0 is less than every key. What is no number counts as the least there is. */
static __device__ __forceinline__ uint64_t key_of(float x, uint32_t id)
{
    const uint32_t u = __float_as_uint(isnan(x) ? -INFINITY : x + 0.f); /* -0 is 0 */
    return (uint64_t)(u >> 31 ? ~u : u | 0x80000000u) << 32 | (0xFFFFFFFFu - id);
}

extern "C" __global__ void __launch_bounds__(QN_LIST_KEYS / 2) qn_shortlist(const qn_clist a)
{
    __shared__ uint64_t key[QN_LIST_KEYS];
    const int t = (int)threadIdx.x, row = (int)blockIdx.y;
    for (int i = t; i < QN_LIST_KEYS; i += QN_LIST_KEYS / 2) {
        const uint32_t from = blockIdx.x * QN_LIST_KEYS + (uint32_t)i;
        key[i] = from >= a.n ? 0 : a.logits ? key_of(at<const float>(a.logits)[(size_t)row * a.n + from], from)
                                            : at<const uint64_t>(a.keys)[(size_t)row * a.pitch + from];
    }
    for (int size = 2; size <= QN_LIST_KEYS; size *= 2)
        for (int far = size / 2; far; far /= 2) {
            const int i = 2 * t - (t & (far - 1)), j = i + far;
            __syncthreads();
            const uint64_t x = key[i], y = key[j];
            if ((x < y) == ((i & size) == 0)) key[i] = y, key[j] = x; /* larger first, in every other run the other way round */
        }
    __syncthreads();
    if (t < QN_LIST_BEST) at<uint64_t>(a.out)[(size_t)row * a.out_pitch + blockIdx.x * QN_LIST_BEST + (uint32_t)t] = key[t];
}

static __device__ __forceinline__ float logit_of(uint64_t key)
{
    const uint32_t u = (uint32_t)(key >> 32);
    return __uint_as_float(u >> 31 ? u & 0x7FFFFFFFu : ~u);
}

/* One block, a thread for each of the best. Sums go in order, by one thread: they are those of the host, where exponentials are. */
extern "C" __global__ void __launch_bounds__(QN_LIST_BEST) qn_draw(const qn_cdraw a)
{
    __shared__ double e[QN_LIST_BEST], w[QN_LIST_BEST], all;
    __shared__ float p[QN_LIST_BEST];
    const int t = (int)threadIdx.x;
    const uint64_t *keys = at<const uint64_t>(a.keys);
    const float logit = logit_of(keys[t]), top = logit_of(keys[0]);
    double sum = 0, reached = 0;
    e[t] = exp((double)(logit - top));
    w[t] = exp((double)((logit - top) / a.temp));
    __syncthreads();
    if (t == 0) {
        for (int i = 0; i < a.n; i++) sum += e[i];
        all = (double)top + log(sum);
    }
    __syncthreads();
    p[t] = (float)exp((double)logit - all);
    __syncthreads();
    if (t) return;
    int most = 0, keep = 1, i = 0;
    for (sum = 0; most < a.n && (most == 0 || sum < (double)a.top_p); most++) sum += (double)p[most];
    while (keep < most && p[keep] >= p[0] * a.min_p) keep++;
    for (sum = 0; i < keep; i++) sum += w[i];
    for (i = 0; i < keep - 1; i++) {
        reached += w[i];
        if (a.u * sum < reached) break;
    }
    *at<int>(a.next) = *at<int>(a.out) = (int)(0xFFFFFFFFu - (uint32_t)keys[i]);
}

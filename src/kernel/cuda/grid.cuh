/* grid.cuh - blocks beside each other and kernels behind each other: clusters (sm_90 and later), and starting before the kernel
 * in front has ended. On older chips a cluster is one block and a kernel starts when it may. */
#pragma once
#include <stdint.h>

/* The kernel behind this one may take its places now; what this one reads of others is there. Every thread that reads or writes
 * what other kernels do calls `after` first; what never changes (weights) may be read before. */
static __device__ __forceinline__ void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

static __device__ __forceinline__ void wait_for_last()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* When the step began whose first kernel this is: what is in front of it has ended. One word by one thread, in every pass; who
 * profiles only reads them. stamp 0: this is not a step's first kernel. */
static __device__ __forceinline__ void step_begins(uint64_t stamp, unsigned thread = 0)
{
    uint64_t now;
    if (stamp == 0 || threadIdx.x != thread || (blockIdx.x | blockIdx.y) != 0) return;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *reinterpret_cast<uint64_t *>(stamp) = now;
}

static __device__ __forceinline__ int cluster_size()
{
#if __CUDA_ARCH__ >= 900
    uint32_t n;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
    return (int)n;
#else
    return 1;
#endif
}

static __device__ __forceinline__ void cluster_sync()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

/* what lies at this place of the shared memory of block `rank` of the cluster */
static __device__ __forceinline__ float read_of(const float *p, int rank)
{
#if __CUDA_ARCH__ >= 900
    float v;
    asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %1, %2; ld.shared::cluster.f32 %0, [a]; }"
                 : "=f"(v) : "r"((uint32_t)__cvta_generic_to_shared(p)), "r"(rank) : "memory");
    return v;
#else
    return *p;
#endif
}

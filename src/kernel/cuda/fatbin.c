/* fatbin.c - takes the kernels that nvcc compiled into the program, as bytes. A build without CUDA=1 has none, and is the same in
 * everything else. */
#include "kernel/cuda/fatbin.h"

#ifdef QN_CUDA
#define EMBED(name)                                                                                                      \
    __asm__(".section .rodata\n.balign 64\n.global qn_fatbin_" #name "\n.hidden qn_fatbin_" #name "\nqn_fatbin_" #name ":\n" \
            ".incbin \"" QN_CUDA "/" #name ".fatbin\"\n.byte 0\n.previous\n");                                              \
    extern const u8 qn_fatbin_##name[];
EMBED(ops)
EMBED(persist)
EMBED(gemm)
EMBED(flash)
EMBED(fused)
EMBED(wgmma)
EMBED(ceiling)
EMBED(shortlist)
const qn_fatbin qn_fatbins[] = { { "ops", qn_fatbin_ops }, { "persist", qn_fatbin_persist },
                                 { "gemm", qn_fatbin_gemm }, { "flash", qn_fatbin_flash },
                                 { "fused", qn_fatbin_fused }, { "wgmma", qn_fatbin_wgmma },
                                 { "ceiling", qn_fatbin_ceiling }, { "shortlist", qn_fatbin_shortlist } };
const int qn_n_fatbins = QN_COUNT(qn_fatbins);
#else
const qn_fatbin qn_fatbins[] = { { NULL, NULL } };
const int qn_n_fatbins = 0;
#endif

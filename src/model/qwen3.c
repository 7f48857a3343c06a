/* qwen3.c - Qwen3 (dense): no biases, a norm on each head of q and k. */
#include "model/model.h"

const qn_arch qn_arch_qwen3 = { .name = "qwen3", .rope_neox = true, .qk_norm = true };

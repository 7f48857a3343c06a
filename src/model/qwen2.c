/* qwen2.c - Qwen2 and Qwen2.5: llama with biases on q, k and v and the other rope order. */
#include "model/model.h"

const qn_arch qn_arch_qwen2 = { .name = "qwen2", .rope_neox = true, .qkv_bias = true };

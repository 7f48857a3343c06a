/* llama.c - Llama 2 and 3, Mistral, SmolLM2 and the many that share their shape. A sliding window (Mistral 7B v0.1) covers
 * every layer. */
#include "model/model.h"

const qn_arch qn_arch_llama = { .name = "llama" };

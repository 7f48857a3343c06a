/* abi.h - what host and device code agree on: how a weight lies in device memory, the arguments of every kernel, and the
 * instructions of the persistent one. Read by C and by CUDA C++, so it holds nothing but plain structs. Addresses are 64-bit
 * numbers: the host never follows one. */
#ifndef QN_CUDA_ABI_H
#define QN_CUDA_ABI_H

#include <stdint.h>

/* A row of a weight lies in planes, each padded: values, then (6-bit types) two high bits, then scales. 16 bytes at a time are
 * then always values of one kind, and a row or a part of it can be copied as it is.
 *   f32 f16 bf16  the values
 *   q8            bytes; an f16 scale for each 32
 *   q4, q4m       32 weights in 16 bytes: low nibbles are 0..15, high ones 16..31; f16 scale, or scale and min: y = s*q + m
 *   q6            nibbles as q4; 8 bytes of high bits for each 32; an f16 scale for each 16: y = s*(q - 32) */
enum { QN_W_f32, QN_W_f16, QN_W_bf16, QN_W_q8, QN_W_q4, QN_W_q4m, QN_W_q6, QN_W_KINDS };

typedef struct qn_wmat {
    uint64_t at;            /* row 0 */
    uint32_t rows, cols;
    uint32_t row_bytes;     /* from row to row, all planes; a multiple of 16 */
    uint32_t high, scale;   /* where these planes begin in a row; 0: none */
    uint32_t kind;          /* QN_W_* */
} qn_wmat;

enum { QN_KVT_f16, QN_KVT_f32, QN_KVT_q8 };
enum { QN_CPAGE = 16 };     /* tokens of a page: QN_PAGE */

/* Where the rows of a pass are, in device memory; the same for every pass. */
typedef struct qn_crows { uint64_t pos, first, pages; } qn_crows;

typedef struct qn_cembed { uint64_t y, tokens; qn_wmat table; float scale; int n; } qn_cembed;
typedef struct qn_cnorm { uint64_t y, x, w; int n, d; float eps; } qn_cnorm; /* heads: n rows of d each */
typedef struct qn_clinear { uint64_t y, x, bias; qn_wmat w; int n; } qn_clinear;
typedef struct qn_crope { uint64_t q, k, pos, table; int n, n_head, n_kv, d_head, d_rot, neox; } qn_crope;
typedef struct qn_cstore { uint64_t k, v, cache, stride; qn_crows at; int n, n_kv, d_head, type; } qn_cstore;
typedef struct qn_cattend {
    uint64_t y, q, cache, stride;
    qn_crows at;
    int n, n_head, n_kv, d_head, type, window;
    float scale;
} qn_cattend;
typedef struct qn_cadd { uint64_t x, y; uint32_t n; } qn_cadd;              /* values */
typedef struct qn_cglu { uint64_t gate, up; uint32_t n; int gelu; } qn_cglu; /* values */
typedef struct qn_cpick { uint64_t y, x, rows; int n, d; } qn_cpick;
typedef struct qn_cangles { uint64_t table, freq; int n_pos, n_pair; float mscale; } qn_cangles;
typedef struct qn_cargmax { uint64_t logits, out; int n_vocab; } qn_cargmax;

#endif

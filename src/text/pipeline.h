/* pipeline.h - what a tokenizer is inside: a list of normaliser steps, a list of pre-tokeniser steps, a BPE model, a list of
 * decoder steps, and the vocabulary. tokenizer_json.c and vocab.c fill it, tokenizer.c runs it. Only text/ includes this. */
#ifndef QN_PIPELINE_H
#define QN_PIPELINE_H

#include "base/table.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

/* ---- ids that grow */

typedef struct qn_ids { i32 *v; size_t n, cap; } qn_ids;
bool qn_ids_push(qn_ids *ids, i32 id, qn_err *e);

/* ---- normalisers: text to text (normalize.c) */

typedef enum qn_norm_kind {
    NORM_form, NORM_lowercase, NORM_strip, NORM_strip_accents, NORM_replace, NORM_prepend, NORM_nmt, NORM_bytes
} qn_norm_kind;

typedef struct qn_norm {
    qn_norm_kind kind;
    qn_form form;
    bool left, right;          /* strip */
    qn_regex *regex;           /* replace: NULL means the literal */
    qn_str literal, content;   /* content: replace, prepend */
} qn_norm;

/* Runs all steps on text; tmp is scratch. */
bool qn_normalise(const qn_norm *steps, size_t n, qn_matcher *m, qn_buf *text, qn_buf *tmp, qn_err *e);
/* Every occurrence of the literal, or of the regex, becomes content. */
bool qn_replace(qn_buf *out, const char *s, size_t n, const qn_regex *r, qn_str literal, qn_str content, qn_matcher *m,
                qn_err *e);

/* ---- pre-tokenisers: pieces to pieces (pretokenize.c) */

typedef struct qn_span { u32 at, n; } qn_span; /* small, because a text of a million digits has a million of them */
typedef struct qn_pieces { qn_buf text; qn_span *v; size_t n, cap; } qn_pieces;

typedef enum qn_pre_kind { PRE_split, PRE_prefix_space, PRE_bytes, PRE_metaspace } qn_pre_kind;
typedef enum qn_split { SPLIT_isolated, SPLIT_removed, SPLIT_previous, SPLIT_next, SPLIT_contiguous } qn_split;
typedef enum qn_prepend { PREPEND_never, PREPEND_first, PREPEND_always } qn_prepend;

typedef struct qn_pre {
    qn_pre_kind kind;
    qn_regex *regex;           /* split: NULL means the literal `pattern` */
    qn_str pattern;            /* split: as the file spells it; metaspace: the replacement */
    qn_split how;
    bool invert;
    qn_prepend prepend;        /* metaspace */
    bool split;                /* metaspace: also cut before each replacement */
} qn_pre;

typedef struct qn_pre_work { qn_pieces a, b; qn_buf subject; } qn_pre_work;
/* Cuts text; the pieces come out in w->a. first: the text begins where the whole input begins. */
bool qn_pretokenise(const qn_pre *steps, size_t n, qn_matcher *m, const char *text, size_t bytes, bool first, qn_pre_work *w,
                    qn_err *e);
void qn_pre_work_close(qn_pre_work *w);

/* The pre-tokenisers that GGUF knows by name. */
typedef struct qn_pre_row {
    const char *name;
    const char *const *splits; /* patterns, in order; ends with NULL */
    bool ignore_merges, add_bos, nfc;
} qn_pre_row;
const qn_pre_row *qn_pre_find(const char *name, size_t n);               /* NULL: unknown */
const qn_pre_row *qn_pre_rows(size_t *n);
extern const char qn_gpt2_split[];

/* ---- the model (bpe.c) */

typedef struct qn_merge { u32 left, right, rank; i32 id; } qn_merge;     /* id -1: empty slot */

typedef struct qn_bpe {
    const qn_table *ids;       /* the vocabulary, text to id */
    qn_merge *merges;          /* open addressing, cap a power of two */
    size_t n_merges, cap;
    const float *scores;       /* not NULL: SentencePiece; any two neighbours that spell a token may merge, best score first */
    i32 byte_ids[256];         /* <0x00>..<0xFF>; -1: none */
    i32 chars[512];            /* id of the token that is just this character; -1: none */
    i32 unk;                   /* -1: unknown characters give nothing */
    bool byte_fallback, fuse_unk, ignore_merges;
    qn_str prefix, suffix;     /* continuing_subword_prefix, end_of_word_suffix */
} qn_bpe;

typedef struct qn_bpe_work {
    struct qn_symbol *symbols; /* of the window that is being merged */
    struct qn_pair *heap;
    struct qn_cut { u32 at, n; i32 id; } *a, *b;  /* tokens of two overlapping windows; at and n in bytes */
    size_t cap, cap_heap, cap_a, cap_b;
    qn_buf spelled;
} qn_bpe_work;

void qn_bpe_init(qn_bpe *b, const qn_table *ids);                        /* fills chars and byte_ids */
bool qn_bpe_reserve(qn_bpe *b, size_t n_merges, qn_err *e);
bool qn_bpe_add(qn_bpe *b, u32 left, u32 right, u32 rank, i32 id, qn_err *e); /* the first of two equal pairs stays */
const qn_merge *qn_bpe_find(const qn_bpe *b, u32 left, u32 right);
bool qn_bpe_encode(const qn_bpe *b, qn_bpe_work *w, const char *s, size_t n, qn_ids *out, qn_err *e);
void qn_bpe_close(qn_bpe *b);
void qn_bpe_work_close(qn_bpe_work *w);

/* ---- added tokens: found in the text before anything else (added.c) */

typedef struct qn_added { i32 id; qn_str text; bool single_word, lstrip, rstrip, control; } qn_added;
typedef struct qn_trie { struct qn_trie_node *nodes; size_t n, cap; } qn_trie;

typedef struct qn_found { size_t begin, end; const qn_added *token; } qn_found;
bool qn_trie_add(qn_trie *t, qn_str text, u32 value, qn_err *e);
void qn_trie_close(qn_trie *t);
/* Where control tokens may stand: parse false, nowhere; marks, not over a marked byte. */
typedef struct qn_allow { bool parse; const u8 *marks; } qn_allow;
/* The next added token that begins at or behind *at; found->token NULL: none. */
void qn_added_next(const qn_trie *t, const qn_added *added, const char *s, size_t n, size_t at, qn_allow allow, qn_found *found);

/* ---- decoders (decoder.c) */

typedef enum qn_step_kind {
    STEP_bytes, STEP_fallback, STEP_fuse, STEP_replace, STEP_strip, STEP_metaspace, STEP_suffix, STEP_spaced
} qn_step_kind;

typedef struct qn_step {
    qn_step_kind kind;
    qn_regex *regex;
    qn_str literal, content;   /* replace; strip: literal is the character; metaspace, suffix: literal */
    size_t start, stop;        /* strip */
    bool drop_first;           /* metaspace */
} qn_step;

/* ---- the whole */

enum { TOKEN_there = 1, TOKEN_special = 2, TOKEN_control = 4, TOKEN_end = 8, TOKEN_added = 16 };

struct qn_tokenizer {
    qn_arena arena;
    char *what;
    char kind[96];
    size_t n;                  /* ids are 0..n-1, some may be absent */
    qn_str *texts;             /* [n] */
    u8 *types;                 /* [n] QN_TOKEN_*; 0: absent */
    u8 *flags;                 /* [n] TOKEN_* */
    qn_table ids, added_ids;   /* the model's tokens; the added ones */
    qn_added *added;
    size_t n_added;
    qn_trie raw, normal;       /* tokens looked for before, and after, normalising */
    qn_trie marked;            /* control tokens of `normal`, looked for before normalising when the text has marks */
    qn_norm *norms;
    size_t n_norms;
    qn_pre *pres;
    size_t n_pres;
    qn_bpe bpe;
    float *scores;             /* [n] or NULL */
    i32 *head, *tail;          /* what the post-processor puts around a text */
    size_t n_head, n_tail;
    qn_step *steps;
    size_t n_steps;
    i32 bos, eos, pad, unk;
    const char *pre;           /* GGUF's name of the pre-tokeniser where it was made from one, else NULL */
    bool space_prefix;         /* made from a SentencePiece vocabulary with a space before each text */
};

/* The last touch of both makers: which tokens end an answer, which ones are control tokens. */
void qn_tokenizer_finish(qn_tokenizer *t);
/* Room for n ids: texts, types, flags. */
bool qn_tokenizer_reserve(qn_tokenizer *t, size_t n, qn_err *e);
void *qn_tokenizer_array(qn_tokenizer *t, size_t n, size_t size, qn_err *e); /* zeroed, in the arena; n = 0 gives one */
bool qn_tokenizer_copy(qn_tokenizer *t, qn_str s, qn_str *out, qn_err *e);
/* Adds one split with a pattern to pres[*k] and counts k up. */
bool qn_tokenizer_add_split(qn_tokenizer *t, size_t *k, const char *pattern, size_t n, qn_err *e);

#endif

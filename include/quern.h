/* quern.h - the public interface of libquern, and its only header.
 *
 * Four objects, from cold to warm:
 *   qn_model    a model file or folder: weights (mapped), hyper-parameters, tokenizer, chat template. Immutable.
 *   qn_engine   a plan for that model on this machine: threads, kernels, scratch, the pool of KV pages.
 *   qn_session  one timeline of tokens in an engine. Sessions of one engine share KV pages by prefix and run in one batch.
 *   qn_tokenizer text to ids and back; comes with a model or opens alone.
 *
 * Ownership: what a call named `open` returns is yours until you pass it to the matching `close`; close takes NULL. A child
 * borrows its parent: close sessions before their engine, engines before their model. Memory handed out through a `**out`
 * parameter is yours and ends with qn_free(). `const char *` results belong to the object and live as long as it does.
 * Errors: calls that can fail take a `qn_err *` last, return false / NULL, and fill it with one sentence. `e` is never NULL.
 * Threads: a model and a tokenizer may be read from any thread. An engine with all its sessions belongs to one thread at a
 * time; only qn_engine_cancel may be called from anywhere, signal handlers included.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERN_H
#define QUERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library is built with hidden symbols: what this header names is all it shows */
#endif

#define QN_VERSION "0.1.0"

/* ---- errors ------------------------------------------------------------------------------------------------------- */

enum {
    QN_OK = 0,
    QN_EFAIL,        /* anything without a code of its own */
    QN_EUSAGE,       /* the caller asked for something senseless: a flag, an id, a range */
    QN_EFORMAT,      /* a file or text is not what it must be */
    QN_EIO,          /* the system refused: open, read, write, network */
    QN_ENOMEM,       /* not enough memory; msg has need and have in bytes where they are known */
    QN_EUNSUPPORTED, /* well-formed, but nothing here can run it */
    QN_ECONTEXT,     /* more tokens than the context holds; msg has both numbers */
    QN_ECANCELLED    /* qn_engine_cancel, a progress callback or an `each` callback said stop */
};

typedef struct qn_err {
    int code;
    char msg[240]; /* one sentence, UTF-8, no newline; control bytes from outside are escaped */
} qn_err;

/* Frees what a `**out` parameter handed out. NULL is fine. */
void qn_free(void *p);

/* ---- options ------------------------------------------------------------------------------------------------------ */

enum { QN_ISA_AUTO = 0, QN_ISA_REF, QN_ISA_BASE, QN_ISA_AVX2, QN_ISA_AVXVNNI, QN_ISA_AVX512,
       QN_ISA_AVX512VNNI, QN_ISA_AVX512BF16, QN_ISA_NEONDOT, QN_ISA_NEONI8MM }; /* highest level the kernels may use */
enum { QN_KV_F16 = 0, QN_KV_F32, QN_KV_Q8_0 };

/* Called while something long runs; share is 0..1. Returning false cancels (QN_ECANCELLED). */
typedef bool (*qn_progress_fn)(void *user, const char *what, double share);

/* A recording of what an engine does, made by the program: trace/trace.h. */
typedef struct qn_trace qn_trace;

typedef struct qn_options {
    int threads;  /* 0: one per physical core that the topology, the affinity mask and the cgroup quota allow */
    int isa;      /* QN_ISA_* */
    int kv;       /* QN_KV_* */
    int n_ctx;    /* tokens per session; 0: the model's own, at most 8192 */
    int n_seq;    /* sessions that may be open at once, each with a full context; 0: 1 */
    int n_batch;  /* most rows in one pass through the plan; 0: 512 */
    bool no_repack; /* leave weights as they are mapped, where kernels would like another order of them better */
    qn_progress_fn progress; /* may be NULL */
    void *progress_user;
    const char *device; /* "cpu", "cuda", "cuda:1"; NULL or "auto": CUDA if it works, else the CPU */
    qn_trace *trace; /* records what this engine does; NULL: nothing is recorded. Must outlive the engine */
    const char *tuning; /* file of winners that `quern probe --tune` wrote: plans obey it, and where
                           it says nothing a built-in table of other machines' winners; NULL: neither */
    const char *kernel; /* "OP=KERNEL,...": plans use these, whatever else is said; NULL: none */
} qn_options;

#define QN_OPTIONS_DEFAULT { 0, QN_ISA_AUTO, QN_KV_F16, 0, 1, 0, false, NULL, NULL, NULL, NULL, NULL, NULL }

/* ---- models ------------------------------------------------------------------------------------------------------- */

typedef struct qn_model qn_model;
typedef struct qn_tokenizer qn_tokenizer;
typedef struct qn_engine qn_engine;
typedef struct qn_session qn_session;

/* Opens a GGUF file (any part of a split one) or a Hugging Face folder. Reads metadata, maps weights, touches no tensor data.
 * A file without vocabulary opens too: qn_model_tokenizer is then NULL. */
qn_model *qn_model_open(const char *path, qn_err *e);
void qn_model_close(qn_model *m);

typedef struct qn_model_info {
    const char *path, *name, *arch;   /* arch as in general.architecture: llama, qwen2, qwen3, gemma3 */
    const char *type;                 /* the type that holds most weights: "Q4_K" */
    uint64_t n_params, n_bytes;       /* of all tensors */
    int n_layer, n_head, n_kv, d_model, d_head, d_ff, n_vocab, n_ctx_train, sliding_window; /* 0: no window */
    const char *tokenizer_kind;       /* "BPE (gpt2, pre smollm)", "none" */
    const char *chat_template;        /* Jinja source; NULL if there is none */
    int bos_id, eos_id;               /* -1: none */
} qn_model_info;

void qn_model_get_info(const qn_model *m, qn_model_info *out);

/* Everything known about the model as a JSON object: hyper-parameters, all metadata (arrays shortened), tensors by type,
 * memory for contexts. *json is yours. */
bool qn_model_describe(const qn_model *m, char **json, size_t *n, qn_err *e);

/* Bytes of KV cache that n_ctx tokens of one session take, in the given QN_KV_* type. */
uint64_t qn_model_kv_bytes(const qn_model *m, int n_ctx, int kv);

/* ---- text --------------------------------------------------------------------------------------------------------- */

/* Opens a tokenizer.json, the folder that holds one, or a GGUF file. */
qn_tokenizer *qn_tokenizer_open(const char *path, qn_err *e);
void qn_tokenizer_close(qn_tokenizer *t);

/* The model's own tokenizer, borrowed; NULL if the file carries no vocabulary. */
const qn_tokenizer *qn_model_tokenizer(const qn_model *m);

enum {
    QN_TOK_ADD_SPECIAL = 1,   /* add what the post-processor adds (beginning of sequence, ...) */
    QN_TOK_PARSE_SPECIAL = 2  /* control tokens spelled out in the text become their ids */
};

/* Text (any bytes) to ids. marks, if not NULL, has one byte per byte of text: a control token is recognised only where no
 * byte of its spelling is marked. *ids is yours. */
bool qn_tokenize(const qn_tokenizer *t, const char *text, size_t n, const uint8_t *marks, unsigned flags, int32_t **ids,
                 size_t *n_ids, qn_err *e);

/* Ids to text as Hugging Face decodes them; control tokens are left out unless `special`. *text is yours, NUL-terminated. */
bool qn_detokenize(const qn_tokenizer *t, const int32_t *ids, size_t n_ids, bool special, char **text, size_t *n, qn_err *e);

int qn_tokenizer_n_vocab(const qn_tokenizer *t);
bool qn_token_is_end(const qn_tokenizer *t, int32_t id); /* end of sequence, of turn or of text */

/* Renders the model's chat template. messages_json: an array of {role, content, ...}; tools_json: an array or NULL.
 * *marks (may be asked for with marks = NULL to skip) has a 1 for each byte that came out of the messages or tools, for
 * qn_tokenize: text inside a message never becomes a control token. *text and *marks are yours. */
enum { QN_CHAT_GENERATION_PROMPT = 1 };
bool qn_chat_render(const qn_model *m, const char *messages_json, const char *tools_json, unsigned flags, char **text,
                    size_t *n, uint8_t **marks, qn_err *e);

/* Renders a template that comes alone (a tokenizer folder or tokenizer_config.json instead of a model). Same ownership. */
bool qn_chat_render_path(const char *path, const char *messages_json, const char *tools_json, unsigned flags, char **text,
                         size_t *n, qn_err *e);

/* ---- running ------------------------------------------------------------------------------------------------------ */

/* Makes the plan, takes all memory that running will need (scratch, KV pages), starts the threads. Borrows the model. */
qn_engine *qn_engine_open(const qn_model *m, const qn_options *o, qn_err *e);
void qn_engine_close(qn_engine *en);

/* Stops the pass that is running between two steps, or the next one; the call that ran it fails with QN_ECANCELLED. One that
 * comes behind the last pass of a qn_generate is forgotten with it. Async-signal-safe. */
void qn_engine_cancel(qn_engine *en);

qn_session *qn_session_open(qn_engine *en, qn_err *e);
void qn_session_close(qn_session *s);

int qn_session_pos(const qn_session *s);      /* tokens computed so far */
int qn_session_n_ctx(const qn_session *s);
void qn_session_rewind(qn_session *s, int n); /* forget everything after the first n tokens */

/* Makes the session's timeline equal to ids[0..n): keeps what it shares with what is there or with any cached prefix, queues
 * the rest. *n_cached (may be NULL): tokens that need no computing. The last token is always computed, so that there are
 * logits. */
bool qn_session_set(qn_session *s, const int32_t *ids, size_t n, size_t *n_cached, qn_err *e);
/* Queues one more token. */
bool qn_session_push(qn_session *s, int32_t id, qn_err *e);

/* One pass: rows of every session that has queued tokens, at most n_batch. *left (may be NULL): rows still queued. */
bool qn_engine_step(qn_engine *en, size_t *left, qn_err *e);

/* Computes what is queued and takes the likeliest next token, n times; ids [n] gets them. All but the last become part of the
 * timeline, as if pushed. A GPU makes many in one go. */
bool qn_session_decode(qn_session *s, int n, int32_t *ids, qn_err *e);

/* Logits [n_vocab] of the session's newest token, once nothing of it is queued; NULL before. Valid until the next step. */
const float *qn_session_logits(const qn_session *s);

/* Queues ids behind what is there and runs until they are done, calling each() for every position with its logits. Returning
 * false from each() cancels. */
typedef bool (*qn_logits_fn)(void *user, int pos, const float *logits);
bool qn_session_eval(qn_session *s, const int32_t *ids, size_t n, qn_logits_fn each, void *user, qn_err *e);

/* ---- sampling and generation -------------------------------------------------------------------------------------- */

typedef struct qn_bias { int32_t id; float add; } qn_bias; /* add = -INFINITY bans the token */

typedef struct qn_sampling {
    float temp;             /* 0: greedy */
    int top_k;              /* 0: off */
    float top_p, min_p, typical_p; /* 1, 0, 1: off */
    float repeat_penalty, presence_penalty, frequency_penalty; /* 1, 0, 0: off */
    int repeat_last_n;      /* tokens the penalties look back on; -1: all, 0: off */
    uint64_t seed;
    const qn_bias *bias;    /* borrowed while in use */
    int n_bias;
    int n_probs;            /* best candidates to report with each token, at most 20; 0: no log-probabilities at all */
} qn_sampling;

#define QN_SAMPLING_DEFAULT { 0.8f, 40, 0.95f, 0.05f, 1.0f, 1.0f, 0.0f, 0.0f, 64, 0, NULL, 0, 0 }

typedef struct qn_prob { int32_t id; float logprob; } qn_prob;

typedef struct qn_piece {   /* what generation hands out for one token */
    int32_t id;
    const char *text;       /* whole UTF-8 characters that became final; may be empty. Never part of a stop string */
    size_t n_text;
    float logprob;          /* of id, before penalties, temperature and truncation; NaN unless n_probs was asked for */
    const qn_prob *probs;   /* [n_probs], best first */
    int n_probs;
} qn_piece;

typedef bool (*qn_piece_fn)(void *user, const qn_piece *piece); /* false: stop here */

enum { QN_STOP_NONE = 0, QN_STOP_END, QN_STOP_LENGTH, QN_STOP_STRING, QN_STOP_CONTEXT, QN_STOP_CALLER, QN_STOP_CANCELLED };

typedef struct qn_request {
    const int32_t *ids;     /* the whole timeline so far: earlier turns and this prompt; what is cached is reused */
    size_t n_ids;
    int n_predict;          /* most tokens to make; -1: until the model or the context ends */
    bool ignore_end;        /* go on past end tokens */
    qn_sampling sampling;
    const char *const *stop; /* n_stop strings */
    int n_stop;
    qn_piece_fn each;       /* may be NULL */
    void *user;
} qn_request;

typedef struct qn_result {
    int stop;               /* QN_STOP_* */
    int n_prompt, n_cached, n_new;
    uint64_t prompt_ns, decode_ns, first_ns; /* first_ns: from the call to the first token */
    int32_t *ids;           /* [n_new] the tokens made; yours */
} qn_result;

/* Runs one request on a session. On QN_ECANCELLED out->ids and the counts hold what was made until then. */
bool qn_generate(qn_session *s, const qn_request *r, qn_result *out, qn_err *e);

/* Picks one token from logits [n_vocab] as a request would; history is what the penalties look at, n_drawn how many tokens
 * this seed has drawn before. *logprob (may be NULL) as in qn_piece. */
bool qn_sample(const float *logits, int n_vocab, const qn_sampling *p, const int32_t *history, size_t n_history,
               uint64_t n_drawn, int32_t *id, float *logprob, qn_err *e);

/* ---- the plan and where time went --------------------------------------------------------------------------------- */

typedef struct qn_step_info {
    const char *op, *role, *type; /* "linear", "blk.3.ffn_down"; type of its weights or cache; layer -1: outside the layers */
    int layer;
    const char *kernel[3];      /* for 1 row, 2..8 rows, more */
    const char *reason[3];      /* why that one */
    const char *rejected[3];    /* what else there was, and why not */
    char shape[160];            /* op and sizes for the rows and context asked for, as `quern probe --spec` takes them */
    uint64_t bytes, flops;      /* for the same */
} qn_step_info;

int qn_engine_n_steps(const qn_engine *en);
/* rows new tokens behind ctx tokens already there. */
void qn_engine_get_step(const qn_engine *en, int i, int rows, int ctx, qn_step_info *out);

/* bytes; resident and peak: of the process; device: taken on a GPU, where weights, kv and scratch are then */
typedef struct qn_memory { uint64_t weights, kv, scratch, resident, peak, device; } qn_memory;
void qn_engine_get_memory(const qn_engine *en, qn_memory *out);
/* Reads all packed weights once with the engine's threads and returns bytes per second: what no decoding step can beat at this
 * moment. 0: there are none in this process's memory (a device, a mapped file). Not while another call runs on the engine. */
double qn_engine_sweep(qn_engine *en);
int qn_engine_threads(const qn_engine *en);
qn_trace *qn_engine_trace(const qn_engine *en); /* the one it was opened with; NULL: none */
const char *qn_engine_isa(const qn_engine *en);
const char *qn_engine_device(const qn_engine *en); /* "cpu", "cuda:0 (NVIDIA H200)" */
/* A sentence on the device: why "auto" came to the CPU, or what the device could not take as it is; NULL: nothing to say. */
const char *qn_engine_device_note(const qn_engine *en);

/* ---- files -------------------------------------------------------------------------------------------------------- */

/* Writes a Hugging Face folder as one GGUF, tokenizer and chat template included. type: "F16", "Q8_0", ... or NULL to keep
 * the stored type. The file appears whole or not at all. */
bool qn_convert(const char *dir, const char *out, const char *type, const qn_options *o, qn_err *e);

/* Writes a GGUF with its matrices in another type; "Q4_K_M" style names are mixes. */
bool qn_quantize(const char *in, const char *out, const char *type, const qn_options *o, qn_err *e);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif

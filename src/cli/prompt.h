/* prompt.h - what run and chat share: sampling options, a conversation, one answer to it with its figures. */
#ifndef QN_PROMPT_H
#define QN_PROMPT_H

#include "cli/command.h"
#include "report/report.h"

typedef struct qn_sampling_args {
    double temp, top_p, min_p, typical, repeat_penalty, presence_penalty, frequency_penalty;
    int top_k, repeat_last_n;
    u64 seed;
    qn_list logit_bias;
} qn_sampling_args;
extern const qn_opt qn_sampling_opts[];

typedef struct qn_run_args {
    qn_engine_args engine;
    qn_sampling_args sampling;
    const char *model, *prompt, *file, *system;
    int n_predict, n_probs;
    bool raw, json, profile, ignore_eos, chat;
    qn_list stop;
} qn_run_args;

extern const qn_opt qn_prompt_opts[];

/* The model's name as typed (NULL: the default one) and the prompt, yours, from wherever it comes: an argument, -p, -f, stdin.
 * Of the two arguments either may stand alone: several words that name no model are the prompt.
 * usual: taken when there is none; NULL: stdin is read unless it is a terminal, and then *text stays NULL: chat. */
bool qn_prompt_find(const qn_cli *c, const qn_run_args *a, const char *usual, const char **model, char **text, size_t *n,
                    qn_err *e);

/* The sampling that args ask for; *bias (yours) backs it. */
bool qn_sampling_from(const qn_sampling_args *a, int n_vocab, qn_sampling *out, qn_bias **bias, qn_err *e);

/* ---- one model, ready to answer */

typedef struct qn_talk {
    const qn_cli *cli;
    const qn_run_args *args;
    qn_model *model;
    qn_engine *engine;
    qn_session *session;
    qn_sampling sampling;
    qn_bias *bias;
    qn_model_info info;
    bool templated;        /* messages go through the chat template; else text is continued as it stands */
    qn_buf messages;       /* `{...}, {...}`: the conversation so far, without its brackets */
    qn_buf text;           /* the same for a model without template */
} qn_talk;

/* One answer, and what it cost. */
typedef struct qn_answer {
    qn_buf text;
    qn_buf probs;          /* JSON, one object per token, when probabilities were asked for */
    qn_result result;
    bool stream;           /* pieces go to stdout as they come */
    bool broken;           /* stdout is gone */
    const qn_talk *talk;
} qn_answer;

bool qn_talk_open(qn_talk *t, const qn_cli *c, const qn_run_args *a, const char *model, qn_err *e);
void qn_talk_close(qn_talk *t, bool ok);
/* Forgets the conversation; the system message stays. */
void qn_talk_reset(qn_talk *t);
/* Adds what the user said, generates, adds the answer to the conversation. Close the answer in any case. */
bool qn_talk_say(qn_talk *t, const char *text, size_t n, qn_answer *a, qn_err *e);
void qn_answer_close(qn_answer *a);
/* "12 tokens, first after 31 ms; prompt 34 tokens at 310 tok/s, decode at 42 tok/s" on stderr. */
void qn_answer_figures(const qn_cli *c, const qn_answer *a);
const char *qn_stop_name(int stop);

/* ---- profile.c: a trace for a report and nothing else */

typedef struct qn_profile { int fd; char path[40]; const char *trace; } qn_profile;
/* Makes args record every step: to the file they name, or to one without name. Report after the engine is closed. */
bool qn_profile_open(qn_profile *p, qn_engine_args *a, qn_err *e);
bool qn_profile_report(const qn_profile *p, const qn_report_options *o, qn_buf *out, qn_err *e);
void qn_profile_close(qn_profile *p);

/* terminal.c: a conversation on the terminal, opened by `first` if that is not NULL. */
int qn_chat(qn_talk *t, const char *first, size_t n_first);

#endif

/* cmd_logits.c - quern logits: the raw answer of a model, for other programs and for tests: float32 little-endian, one row of the
 * vocabulary's size per token. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"

typedef struct logits_args { qn_engine_args engine; const char *tokens, *out; bool last; } logits_args;

static const qn_opt options[] = {
    { "tokens", NULL, NULL, OPT_text, QN_AT(logits_args, tokens, const char *), "IDS", NULL,
      "token ids: \"1 2 3\", \"1,2,3\" or \"[1, 2, 3]\"; -: from stdin", 0, 0 },
    { "output", "o", NULL, OPT_text, QN_AT(logits_args, out, const char *), "FILE", NULL, "where to write; -: stdout", 0, 0 },
    { "last", NULL, NULL, OPT_flag, QN_AT(logits_args, last, bool), NULL, NULL, "only the row of the last token", 0, 0 },
    { 0 },
};

static const qn_opt_group groups[] = {
    { "Input and output", options, 0 },
    { "Engine", qn_engine_opts, offsetof(logits_args, engine) },
    { 0 },
};

typedef struct sink { qn_out file; bool to_stdout, last; int n_vocab, n_rows, last_pos; qn_err *e; } sink;

static bool take_row(void *user, int pos, const float *logits)
{
    sink *s = user;
    const size_t bytes = (size_t)s->n_vocab * sizeof *logits; /* every machine we build for is little-endian */
    if (s->last && pos != s->last_pos) return true;
    s->n_rows++;
    return s->to_stdout ? qn_cli_write(logits, bytes) : qn_out_write(&s->file, logits, bytes, s->e);
}

static bool evaluate(const qn_cli *c, const logits_args *a, qn_model *m, qn_engine *en, sink *s, qn_err *e)
{
    char *typed = NULL;
    int32_t *ids = NULL;
    size_t n_typed = 0, n_ids = 0;
    qn_err sink_error = { 0 };
    qn_model_info info;
    qn_session *session = NULL;
    qn_model_get_info(m, &info);
    s->n_vocab = info.n_vocab;
    s->e = &sink_error;
    bool ok = strcmp(a->tokens, "-") ? true : qn_cli_read("-", &typed, &n_typed, e);
    const char *text = typed ? typed : a->tokens;
    ok = ok && qn_cli_parse_ids(text, typed ? n_typed : strlen(text), info.n_vocab, &ids, &n_ids, e);
    if (ok && n_ids == 0) ok = qn_fail(e, QN_EUSAGE, "--tokens: there are none");
    s->last_pos = (int)n_ids - 1;
    ok = ok && (session = qn_session_open(en, e)) != NULL && (s->to_stdout || qn_out_open(&s->file, a->out, e));
    ok = ok && qn_session_eval(session, ids, n_ids, take_row, s, e);
    if (!ok && sink_error.code) *e = sink_error; /* the cause, instead of "cancelled" */
    ok = ok && (s->to_stdout || qn_out_commit(&s->file, e));
    if (ok) qn_cli_note(c, "%d rows of %d logits", s->n_rows, s->n_vocab);
    qn_session_close(session);
    qn_out_close(&s->file);
    qn_free(ids);
    qn_free(typed);
    return ok;
}

static int run(qn_cli *c, void *values)
{
    const logits_args *a = values;
    qn_model *m = NULL;
    qn_engine *en = NULL;
    qn_err e = { 0 };
    sink s = { .to_stdout = a->out && !strcmp(a->out, "-"), .last = a->last };
    bool ok = a->tokens || qn_fail(&e, QN_EUSAGE, "logits: --tokens is missing");
    ok = ok && (a->out || qn_fail(&e, QN_EUSAGE, "logits: -o FILE is missing (-o - writes to stdout)"));
    ok = ok && qn_cli_open(c, c->args[0], &a->engine, &m, &en, &e) && evaluate(c, a, m, en, &s, &e);
    /* stdout that is gone is main's to report */
    const bool reader_left = !ok && e.code == QN_ECANCELLED && !qn_interrupted();
    const int code = ok || reader_left ? QN_EXIT_OK : qn_cli_fail(c, &e);
    qn_cli_close(m, en, ok);
    return code;
}

const qn_command qn_command_logits = {
    .name = "logits",
    .args = "MODEL",
    .summary = "Write the logits of every position of a list of tokens",
    .about = "Runs MODEL on token ids and writes what it predicts after each of them: float32, little-endian, a row of the "
             "vocabulary's size per token. The file appears whole or not at all. With --kv f32 the cache loses nothing, which "
             "is what comparisons with other implementations want.",
    .examples = "quern logits model.gguf --tokens \"1 2 3\" -o out.f32 --kv f32\tthree rows\n",
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .values_bytes = sizeof(logits_args),
    .run = run,
};

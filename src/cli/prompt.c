/* prompt.c - from what the user said to an answer: messages, template, tokens, generation. The one idea: a conversation is
 * kept as its messages and rendered anew each turn; the engine finds the prefix that it already knows, so nothing here keeps
 * a cache. Text of a message never becomes a control token: the renderer marks it, the tokenizer obeys the marks. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/prompt.h"
#include "cli/tracing.h"
#include "hub/hub.h"

#define OPT(name, brief, alias, type, field, ctype, arg, preset, help, lo, hi) \
    { name, brief, alias, type, QN_AT(qn_sampling_args, field, ctype), arg, preset, help, lo, hi }
const qn_opt qn_sampling_opts[] = {
    OPT("temp", NULL, "temperature", OPT_real, temp, double, "T", "0.8", "temperature; 0: always the likeliest token", 0, 100),
    OPT("top-k", NULL, NULL, OPT_int, top_k, int, "N", "40", "choose among the N likeliest; 0: all", 0, INT_MAX),
    OPT("top-p", NULL, NULL, OPT_real, top_p, double, "P", "0.95", "choose among the likeliest that sum to P; 1: all", 0, 1),
    OPT("min-p", NULL, NULL, OPT_real, min_p, double, "P", "0.05",
        "drop tokens less likely than P times the likeliest; 0: none", 0, 1),
    OPT("typical", NULL, "typical-p", OPT_real, typical, double, "P", "1", "locally typical sampling; 1: off", 0, 1),
    OPT("repeat-penalty", NULL, NULL, OPT_real, repeat_penalty, double, "X", "1", "penalise repetition; 1: off", 0.01, 100),
    OPT("repeat-last-n", NULL, NULL, OPT_int, repeat_last_n, int, "N", "64",
        "tokens that the penalties look back on; -1: all, 0: none", -1, INT_MAX),
    OPT("presence-penalty", NULL, NULL, OPT_real, presence_penalty, double, "X", "0",
        "subtract X from tokens that occurred", -100, 100),
    OPT("frequency-penalty", NULL, NULL, OPT_real, frequency_penalty, double, "X", "0",
        "subtract X per occurrence", -100, 100),
    OPT("logit-bias", "l", NULL, OPT_list, logit_bias, qn_list, "ID+X", NULL,
        "add X to a token's logit: 15043+1, 15043-1, 15043-inf", 0, 0),
    OPT("seed", "s", NULL, OPT_u64, seed, u64, "N", "0", "the same seed gives the same answer", 0, 0),
    { 0 },
};
#undef OPT

#define OPT(name, brief, alias, type, field, ctype, arg, preset, help, lo, hi) \
    { name, brief, alias, type, QN_AT(qn_run_args, field, ctype), arg, preset, help, lo, hi }
const qn_opt qn_prompt_opts[] = {
    OPT("model", "m", NULL, OPT_text, model, const char *, "MODEL", NULL,
        "the model; the first argument is the prompt then", 0, 0),
    OPT("prompt", "p", NULL, OPT_text, prompt, const char *, "TEXT", NULL, "the prompt; -: from stdin", 0, 0),
    OPT("file", "f", NULL, OPT_text, file, const char *, "FILE", NULL, "read the prompt from a file; -: stdin", 0, 0),
    OPT("system-prompt", "sys", "system", OPT_text, system, const char *, "TEXT", NULL, "a system message before the first", 0,
        0),
    OPT("predict", "n", "n-predict", OPT_int, n_predict, int, "N", "-1",
        "most tokens to make; -1: until the model or the context ends", -1, INT_MAX),
    OPT("raw", NULL, NULL, OPT_flag, raw, bool, NULL, NULL, "no chat template: continue the prompt as it stands", 0, 0),
    OPT("stop", "r", "reverse-prompt", OPT_list, stop, qn_list, "TEXT", NULL, "end the answer before this text", 0, 0),
    OPT("ignore-eos", NULL, NULL, OPT_flag, ignore_eos, bool, NULL, NULL, "go on past the model's end tokens", 0, 0),
    { 0 },
};
#undef OPT

static bool parse_bias(const char *text, int n_vocab, qn_bias *out, qn_err *e)
{
    char id[16];
    const size_t n = strcspn(text, "+-");
    i64 v = 0;
    double add = 0;
    memcpy(id, text, qn_minz(n, sizeof id - 1));
    id[qn_minz(n, sizeof id - 1)] = 0;
    if (n >= sizeof id || !text[n] || !qn_parse_i64(id, 0, n_vocab - 1, &v))
        return qn_fail(e, QN_EUSAGE, "--logit-bias: \"%.40s\" must be ID+X or ID-X with an id below %d", text, n_vocab);
    const bool banned = !strcmp(text + n, "-inf");
    if (!banned && !qn_parse_double(text + n + (text[n] == '+'), -1e6, 1e6, &add))
        return qn_fail(e, QN_EUSAGE, "--logit-bias: \"%.40s\" does not end in a number", text);
    *out = (qn_bias){ (int32_t)v, banned ? -INFINITY : (float)add };
    return true;
}

bool qn_sampling_from(const qn_sampling_args *a, int n_vocab, qn_sampling *out, qn_bias **bias, qn_err *e)
{
    if (a->logit_bias.n > 1024) return qn_fail(e, QN_EUSAGE, "--logit-bias: more than 1024 of them");
    *bias = qn_new_array((size_t)a->logit_bias.n + 1, sizeof **bias, e);
    if (!*bias) return false;
    for (int i = 0; i < a->logit_bias.n; i++)
        if (!parse_bias(a->logit_bias.at[i], n_vocab, &(*bias)[i], e)) return false;
    *out = (qn_sampling){
        .temp = (float)a->temp, .top_k = a->top_k, .top_p = (float)a->top_p, .min_p = (float)a->min_p,
        .typical_p = (float)a->typical, .repeat_penalty = (float)a->repeat_penalty,
        .presence_penalty = (float)a->presence_penalty, .frequency_penalty = (float)a->frequency_penalty,
        .repeat_last_n = a->repeat_last_n, .seed = a->seed, .bias = *bias, .n_bias = a->logit_bias.n,
    };
    return true;
}

/* `quern run "Why is the sky blue?"`: one argument of several words that names no model is the prompt. One that ends like a
 * file's name is a file that is not there, and so is one word: both are more often a slip than a prompt. */
static bool is_prompt(const char *word)
{
    qn_err ignored = { 0 };
    char *path = NULL;
    if (!word[strcspn(word, " \t\n")] || qn_ends_with(word, ".gguf")) return false;
    const bool found = qn_hub_find(word, &path, &ignored);
    qn_free(path);
    return !found;
}

/* Nothing on stdin or in a file is a pipe that broke, not a wish for an answer to nothing; -p "" is that. */
static bool read_prompt(const char *path, char **text, size_t *n, qn_err *e)
{
    if (!qn_cli_read(path, text, n, e)) return false;
    return *n > 0 || qn_fail(e, QN_EUSAGE, "the prompt is empty: there is nothing %s%s", strcmp(path, "-") ? "in " : "on stdin",
                             strcmp(path, "-") ? qn_path_tail(path) : "");
}

bool qn_prompt_find(const qn_cli *c, const qn_run_args *a, const char *usual, const char **model, char **text, size_t *n,
                    qn_err *e)
{
    const bool lone = c->n_args == 1 && !a->model && !a->prompt && !a->file && is_prompt(c->args[0]);
    const int given = a->model || lone ? 0 : 1; /* arguments before the prompt */
    const char *typed = c->n_args > given ? c->args[given] : NULL, *verb = c->command->name;
    *model = a->model ? a->model : c->n_args > 0 && !lone ? c->args[0] : NULL;
    if (lone) qn_cli_note(c, "no model is called that, so it is the prompt; the default model answers");
    if ((typed != NULL) + (a->prompt != NULL) + (a->file != NULL) > 1)
        return qn_fail(e, QN_EUSAGE, "%s: the prompt is given twice", verb);
    if (c->n_args > given + 1) return qn_fail(e, QN_EUSAGE, "%s: one argument too many: \"%.80s\"", verb, c->args[given + 1]);
    if (a->prompt) typed = a->prompt;
    if (a->file) return read_prompt(a->file, text, n, e);
    if (typed && !strcmp(typed, "-")) return read_prompt("-", text, n, e);
    if (!typed) typed = usual;
    if (!typed && !a->chat && !isatty(0)) return read_prompt("-", text, n, e);
    if (!typed) return true;
    *n = strlen(typed);
    *text = qn_strndup(typed, *n, e);
    return *text != NULL;
}

static void add_message(qn_talk *t, const char *role, const char *text, size_t n)
{
    qn_buf_printf(&t->messages, "%s{\"role\": \"%s\", \"content\": ", t->messages.n ? ", " : "", role);
    qn_buf_json(&t->messages, text, n);
    qn_buf_putc(&t->messages, '}');
}

void qn_talk_reset(qn_talk *t)
{
    qn_buf_close(&t->messages);
    qn_buf_close(&t->text);
    t->messages = t->text = (qn_buf){ 0 };
    if (t->args->system) add_message(t, "system", t->args->system, strlen(t->args->system));
}

bool qn_talk_open(qn_talk *t, const qn_cli *c, const qn_run_args *a, const char *model, qn_err *e)
{
    *t = (qn_talk){ .cli = c, .args = a };
    qn_engine_args engine = a->engine;
    engine.seed = a->sampling.seed;
    if (!qn_cli_open(c, model, &engine, &t->model, &t->engine, e)) return false;
    qn_model_get_info(t->model, &t->info);
    if (!qn_model_tokenizer(t->model))
        return qn_fail(e, QN_EUNSUPPORTED, "%s has no vocabulary; `quern logits` runs it on token ids", t->info.path);
    t->templated = t->info.chat_template && !a->raw;
    if (!t->templated && a->system)
        return qn_fail(e, QN_EUSAGE, "--system-prompt: %s",
                       a->raw ? "not together with --raw" : "this model has no chat template");
    t->session = qn_session_open(t->engine, e);
    if (!t->session || !qn_sampling_from(&a->sampling, t->info.n_vocab, &t->sampling, &t->bias, e)) return false;
    t->sampling.n_probs = a->n_probs;
    qn_talk_reset(t);
    return true;
}

void qn_talk_close(qn_talk *t, bool ok)
{
    qn_buf_close(&t->messages);
    qn_buf_close(&t->text);
    qn_free(t->bias);
    qn_session_close(t->session);
    qn_cli_close(t->model, t->engine, ok);
    *t = (qn_talk){ 0 };
}

/* ---- one answer ----------------------------------------------------------------------------------------------------- */

/* The conversation as tokens. *bytes: of the text that they were made of. */
static bool render(const qn_talk *t, int32_t **ids, size_t *n_ids, size_t *bytes, qn_err *e)
{
    const qn_tokenizer *tok = qn_model_tokenizer(t->model);
    *bytes = t->text.n;
    if (!t->templated)
        return qn_tokenize(tok, t->text.p ? t->text.p : "", t->text.n, NULL, QN_TOK_ADD_SPECIAL | QN_TOK_PARSE_SPECIAL, ids,
                           n_ids, e);
    char *json = NULL, *text = NULL;
    uint8_t *marks = NULL;
    size_t n_json = 0, n = 0;
    qn_buf b = { 0 };
    qn_buf_putc(&b, '[');
    qn_buf_put(&b, t->messages.p, t->messages.n);
    qn_buf_putc(&b, ']');
    b.failed |= t->messages.failed;
    const bool ok = qn_buf_take(&b, &json, &n_json, e) &&
                    qn_chat_render(t->model, json, NULL, QN_CHAT_GENERATION_PROMPT, &text, &n, &marks, e) &&
                    qn_tokenize(tok, text, n, marks, QN_TOK_PARSE_SPECIAL, ids, n_ids, e);
    *bytes = n;
    qn_free(json);
    qn_free(text);
    qn_free(marks);
    return ok;
}

static void put_probs(qn_buf *b, const qn_piece *p)
{
    qn_buf_printf(b, "%s{\"id\": %d, \"logprob\": %.6g, \"top\": [", b->n ? ", " : "", p->id, (double)p->logprob);
    for (int i = 0; i < p->n_probs; i++)
        qn_buf_printf(b, "%s{\"id\": %d, \"logprob\": %.6g}", i ? ", " : "", p->probs[i].id, (double)p->probs[i].logprob);
    qn_buf_puts(b, "]}");
}

static bool take_piece(void *user, const qn_piece *p)
{
    qn_answer *a = user;
    qn_buf_put(&a->text, p->text, p->n_text);
    if (a->talk->args->n_probs > 0) put_probs(&a->probs, p);
    if (a->stream && p->n_text > 0) a->broken = !qn_cli_write(p->text, p->n_text) || !qn_cli_flush();
    return !a->broken && !a->text.failed;
}

bool qn_talk_say(qn_talk *t, const char *text, size_t n, qn_answer *a, qn_err *e)
{
    int32_t *ids = NULL;
    size_t n_ids = 0, bytes = 0;
    const u64 begin = qn_now_ns();
    const size_t messages_before = t->messages.n, text_before = t->text.n;
    a->talk = t;
    if (t->templated) add_message(t, "user", text, n);
    else qn_buf_put(&t->text, text, n);
    if (t->messages.failed || t->text.failed) return qn_fail(e, QN_ENOMEM, "not enough memory for the conversation");
    if (!render(t, &ids, &n_ids, &bytes, e)) return qn_free(ids), false;
    qn_tracing_tokenize(qn_engine_trace(t->engine), begin, bytes, n_ids);
    if (n_ids == 0) {
        qn_free(ids);
        return qn_fail(e, QN_EUSAGE, "the prompt is empty, and this model has no token to begin with");
    }
    const qn_request r = {
        .ids = ids, .n_ids = n_ids, .n_predict = t->args->n_predict, .ignore_end = t->args->ignore_eos,
        .sampling = t->sampling, .stop = t->args->stop.at, .n_stop = t->args->stop.n, .each = take_piece, .user = a,
    };
    const bool ok = qn_generate(t->session, &r, &a->result, e);
    qn_free(ids);
    if (!ok && e->code != QN_ECANCELLED) { /* what could not be answered was not said */
        t->messages.n = messages_before;
        t->text.n = text_before;
        return false;
    }
    /* a stopped answer is part of the conversation too: the user saw it */
    if (t->templated) add_message(t, "assistant", a->text.p ? a->text.p : "", a->text.n);
    else qn_buf_put(&t->text, a->text.p, a->text.n);
    return ok;
}

void qn_answer_close(qn_answer *a)
{
    qn_buf_close(&a->text);
    qn_buf_close(&a->probs);
    qn_free(a->result.ids);
    *a = (qn_answer){ 0 };
}

static double rate(int n, u64 ns) { return ns > 0 ? (double)n * 1e9 / (double)ns : 0; }

void qn_answer_figures(const qn_cli *c, const qn_answer *a)
{
    const qn_result *r = &a->result;
    char cached[48] = "";
    if (r->n_cached > 0) snprintf(cached, sizeof cached, " (%d cached)", r->n_cached);
    qn_cli_note(c, "%s[%d tokens, first after %.0f ms; prompt %d tokens%s at %.1f tok/s; decode at %.1f tok/s]%s",
                qn_cli_color(c, 2, QN_DIM), r->n_new, (double)r->first_ns * 1e-6, r->n_prompt, cached,
                rate(r->n_prompt - r->n_cached, r->prompt_ns), rate(r->n_new > 1 ? r->n_new - 1 : 0, r->decode_ns),
                qn_cli_color(c, 2, QN_PLAIN));
}

const char *qn_stop_name(int stop)
{
    static const char *const names[] = { "none", "end", "length", "stop", "context", "caller", "cancelled" };
    return stop >= 0 && stop < (int)QN_COUNT(names) ? names[stop] : "none";
}

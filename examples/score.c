/* score.c - how likely is a text? Prints the log-probability of each token given those before it, and the sum: the way to
 * compare answers, detect languages, or rank what somebody else wrote.
 * Build: cc score.c $(pkg-config --cflags --libs quern) -lm */
#include <math.h>
#include <quern.h>
#include <stdio.h>
#include <string.h>

typedef struct score { const qn_tokenizer *tokenizer; const int32_t *ids; size_t n_ids; int n_vocab; double sum; } score;

/* The logits of position pos say what comes at pos + 1. */
static bool take_logits(void *user, int pos, const float *logits)
{
    score *s = user;
    if ((size_t)pos + 1 >= s->n_ids) return true;
    const int32_t next = s->ids[pos + 1];
    double most = (double)logits[0], all = 0;
    for (int i = 1; i < s->n_vocab; i++) most = fmax(most, (double)logits[i]);
    for (int i = 0; i < s->n_vocab; i++) all += exp((double)logits[i] - most);
    const double logprob = (double)logits[next] - most - log(all);
    char *text = NULL;
    size_t n = 0;
    qn_err e = { 0 };
    if (!qn_detokenize(s->tokenizer, &next, 1, true, &text, &n, &e)) return false;
    printf("%9.4f  %s\n", logprob, text);
    qn_free(text);
    s->sum += logprob;
    return true;
}

int main(int argc, char **argv)
{
    qn_err e = { 0 };
    qn_options options = QN_OPTIONS_DEFAULT;
    qn_model_info info;
    qn_engine *engine = NULL;
    qn_session *session = NULL;
    int32_t *ids = NULL;
    score s = { 0 };
    bool ok = false;
    if (argc != 3) {
        fprintf(stderr, "usage: score MODEL TEXT\n");
        return 2;
    }

    qn_model *model = qn_model_open(argv[1], &e);
    s.tokenizer = model ? qn_model_tokenizer(model) : NULL;
    if (model && !s.tokenizer) snprintf(e.msg, sizeof e.msg, "%s has no vocabulary", argv[1]);
    if (s.tokenizer && (engine = qn_engine_open(model, &options, &e)) && (session = qn_session_open(engine, &e)) &&
        qn_tokenize(s.tokenizer, argv[2], strlen(argv[2]), NULL, QN_TOK_ADD_SPECIAL, &ids, &s.n_ids, &e)) {
        qn_model_get_info(model, &info);
        s.ids = ids;
        s.n_vocab = info.n_vocab;
        ok = qn_session_eval(session, ids, s.n_ids, take_logits, &s, &e);
        if (ok) printf("%9.4f  in all, %zu tokens\n", s.sum, s.n_ids);
    }
    if (!ok) fprintf(stderr, "score: %s\n", e.msg);

    qn_free(ids);
    qn_session_close(session);
    qn_engine_close(engine);
    qn_model_close(model);
    return ok ? 0 : 1;
}

/* complete.c - continue a text, printing it as it is made. What every program that uses libquern does, in order: a model, an
 * engine, a session, a request. Build: cc complete.c $(pkg-config --cflags --libs quern) */
#include <quern.h>
#include <stdio.h>
#include <string.h>

static bool print_piece(void *user, const qn_piece *p)
{
    (void)user;
    return fwrite(p->text, 1, p->n_text, stdout) == p->n_text && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    qn_err e = { 0 };
    qn_options options = QN_OPTIONS_DEFAULT;
    qn_sampling sampling = QN_SAMPLING_DEFAULT;
    qn_result result = { 0 };
    qn_engine *engine = NULL;
    qn_session *session = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    bool ok = false;
    if (argc != 3) {
        fprintf(stderr, "usage: complete MODEL PROMPT\n");
        return 2;
    }

    qn_model *model = qn_model_open(argv[1], &e);
    const qn_tokenizer *tokenizer = model ? qn_model_tokenizer(model) : NULL;
    if (model && !tokenizer) snprintf(e.msg, sizeof e.msg, "%s has no vocabulary", argv[1]);
    if (tokenizer && (engine = qn_engine_open(model, &options, &e)) && (session = qn_session_open(engine, &e)) &&
        qn_tokenize(tokenizer, argv[2], strlen(argv[2]), NULL, QN_TOK_ADD_SPECIAL, &ids, &n_ids, &e)) {
        const qn_request request = {
            .ids = ids, .n_ids = n_ids, .n_predict = 64, .sampling = sampling, .each = print_piece,
        };
        printf("%s", argv[2]);
        ok = qn_generate(session, &request, &result, &e);
        printf("\n");
        fprintf(stderr, "%d tokens, the first after %.1f ms\n", result.n_new, (double)result.first_ns / 1e6);
    }
    if (!ok) fprintf(stderr, "complete: %s\n", e.msg);

    qn_free(result.ids);
    qn_free(ids);
    qn_session_close(session); /* children before their parents; all of them take NULL */
    qn_engine_close(engine);
    qn_model_close(model);
    return ok ? 0 : 1;
}

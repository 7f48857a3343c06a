/* chat.h - chat templates with the variables that they expect. The public calls are in quern.h. */
#ifndef QN_CHAT_H
#define QN_CHAT_H

#include "base/buf.h"
#include "model/model.h"

typedef struct qn_chat {
    const qn_template *tmpl;
    const qn_tokenizer *tok;      /* for bos_token and eos_token; may be NULL */
    const char *messages, *tools; /* JSON; tools may be NULL */
    unsigned flags;               /* QN_CHAT_* */
    i64 now;                      /* for strftime_now; 0: the clock */
} qn_chat;

bool qn_chat_run(const qn_chat *c, qn_buf *out, qn_buf *marks, qn_err *e);

/* The template out of chat_template.jinja or tokenizer_config.json (either may be NULL); *out NULL: there is none. */
bool qn_chat_template(const char *jinja, size_t n_jinja, const char *config, size_t n_config, const char *what, char **out,
                      qn_err *e);

/* read_text.c: tokenizer and template's text of a GGUF file, a folder, or a json file in one; either may come out NULL. */
bool qn_read_text_at(const char *path, qn_tokenizer **tok, char **chat, qn_err *e);

#endif

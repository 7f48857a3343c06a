/* chat.h - where chat templates and tokenizers are read from. Rendering is public: quern.h. */
#ifndef QN_CHAT_H
#define QN_CHAT_H

#include "model/model.h"

/* The template out of chat_template.jinja or tokenizer_config.json (either may be NULL); *out NULL: there is none. */
bool qn_chat_template(const char *jinja, size_t n_jinja, const char *config, size_t n_config, const char *what, char **out,
                      qn_err *e);

/* read_text.c: tokenizer and template's text of a GGUF file, a folder, or a json file in one; either may come out NULL. */
bool qn_read_text_at(const char *path, qn_tokenizer **tok, char **chat, qn_err *e);

#endif

/* chat.c - messages to a prompt: builds the variables that chat templates expect and renders. Where the template comes from
 * is read_text.c's business, how it is rendered text/template's. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "model/chat.h"

/* ---- the template of a folder */

/* tokenizer_config.json: chat_template is a text, or a list of named ones; "default" is the one for chat. */
static const char *pick(yyjson_val *root)
{
    yyjson_val *v = yyjson_obj_get(root, "chat_template"), *it;
    if (yyjson_is_str(v)) return yyjson_get_str(v);
    const char *first = NULL;
    size_t i, n;
    yyjson_arr_foreach(v, i, n, it) {
        const char *text = yyjson_get_str(yyjson_obj_get(it, "template"));
        if (yyjson_equals_str(yyjson_obj_get(it, "name"), "default")) return text;
        if (!first) first = text;
    }
    return first;
}

bool qn_chat_template(const char *jinja, size_t n_jinja, const char *config, size_t n_config, const char *what, char **out,
                      qn_err *e)
{
    *out = NULL;
    if (jinja) return (*out = qn_strndup(jinja, n_jinja, e)) != NULL;
    if (!config) return true;
    yyjson_doc *doc = qn_json_parse(config, n_config, 0, what, e);
    if (!doc) return false;
    const char *text = pick(yyjson_doc_get_root(doc));
    const bool ok = !text || (*out = qn_strdup(text, e)) != NULL;
    yyjson_doc_free(doc);
    return ok;
}

/* ---- messages */

static bool check_message(yyjson_val *m, size_t i, qn_err *e)
{
    if (!yyjson_is_obj(m)) return qn_fail(e, QN_EUSAGE, "messages[%zu] is no object", i);
    if (!yyjson_is_str(yyjson_obj_get(m, "role"))) return qn_fail(e, QN_EUSAGE, "messages[%zu].role is no text", i);
    yyjson_val *content = yyjson_obj_get(m, "content"), *part;
    if (!content || yyjson_is_null(content) || yyjson_is_str(content)) return true; /* tool calls come without content */
    if (!yyjson_is_arr(content)) return qn_fail(e, QN_EUSAGE, "messages[%zu].content is neither text nor a list of parts", i);
    size_t k, n;
    yyjson_arr_foreach(content, k, n, part) {
        if (!yyjson_equals_str(yyjson_obj_get(part, "type"), "text") || !yyjson_is_str(yyjson_obj_get(part, "text")))
            return qn_fail(e, QN_EUSAGE, "messages[%zu].content[%zu] is no part of type text", i, k);
    }
    return true;
}

static bool check_messages(const char *json, qn_err *e)
{
    yyjson_doc *doc = qn_json_parse(json, strlen(json), 0, "messages", e);
    if (!doc) return false;
    yyjson_val *root = yyjson_doc_get_root(doc), *m;
    bool ok = yyjson_is_arr(root) && yyjson_arr_size(root) > 0;
    if (!ok) qn_fail(e, QN_EUSAGE, "messages is no list with at least one message");
    size_t i, n;
    yyjson_arr_foreach(root, i, n, m) ok = ok && check_message(m, i, e);
    yyjson_doc_free(doc);
    return ok;
}

static bool check_tools(const char *json, qn_err *e)
{
    if (!json) return true;
    yyjson_doc *doc = qn_json_parse(json, strlen(json), 0, "tools", e);
    if (!doc) return false;
    const bool ok = yyjson_is_arr(yyjson_doc_get_root(doc)) || yyjson_is_null(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return ok || qn_fail(e, QN_EUSAGE, "tools is no list");
}

/* ---- rendering */

typedef struct chat {
    const qn_template *tmpl;
    const qn_tokenizer *tok;      /* for bos_token and eos_token; may be NULL */
    const char *messages, *tools; /* JSON; tools may be NULL */
    unsigned flags;               /* QN_CHAT_* */
} chat;

static void put_token(qn_buf *b, const qn_tokenizer *t, i32 id)
{
    const qn_str s = t && id >= 0 ? qn_token_text(t, id) : (qn_str){ NULL, 0 };
    if (s.p) qn_buf_json(b, s.p, s.n);
    else qn_buf_puts(b, "\"\"");
}

static bool render(const chat *c, qn_buf *out, qn_buf *marks, qn_err *e)
{
    if (!check_messages(c->messages, e) || !check_tools(c->tools, e)) return false;
    qn_buf bos = { 0 }, eos = { 0 };
    put_token(&bos, c->tok, c->tok ? qn_tokenizer_bos(c->tok) : -1);
    put_token(&eos, c->tok, c->tok ? qn_tokenizer_eos(c->tok) : -1);
    const char *tools = c->tools ? c->tools : "null", *prompt = c->flags & QN_CHAT_GENERATION_PROMPT ? "true" : "false";
    bool ok = !bos.failed && !eos.failed;
    if (!ok) qn_fail(e, QN_ENOMEM, "out of memory for the variables of the chat template");
    const qn_template_var vars[] = {
        { "messages", c->messages, strlen(c->messages), true }, { "tools", tools, strlen(tools), true },
        { "documents", "null", 4, false }, { "add_generation_prompt", prompt, strlen(prompt), false },
        { "bos_token", bos.p, bos.n, false }, { "eos_token", eos.p, eos.n, false },
    };
    ok = ok && qn_template_render(c->tmpl, vars, QN_COUNT(vars), 0, out, marks, e);
    qn_buf_close(&bos);
    qn_buf_close(&eos);
    return ok;
}

static bool hand_over(qn_buf *out, qn_buf *marks, char **text, size_t *n, uint8_t **marks_out, qn_err *e)
{
    char *m = NULL;
    bool ok = qn_buf_take(marks, &m, NULL, e);
    ok = qn_buf_take(out, text, n, e) && ok;
    if (ok && marks_out) *marks_out = (uint8_t *)m;
    else qn_free(m);
    if (!ok) {
        qn_free(*text);
        *text = NULL;
    }
    return ok;
}

bool qn_chat_render(const qn_model *m, const char *messages_json, const char *tools_json, unsigned flags, char **text,
                    size_t *n, uint8_t **marks, qn_err *e)
{
    *text = NULL;
    if (!m->chat && m->chat_error.code) return qn_fail(e, m->chat_error.code, "%s: %s", m->src->path, m->chat_error.msg);
    if (!m->chat) return qn_fail(e, QN_EUNSUPPORTED, "%s has no chat template; complete a prompt instead (--raw)", m->src->path);
    qn_buf out = { 0 }, marked = { 0 };
    const chat c = { .tmpl = m->chat, .tok = m->tok, .messages = messages_json, .tools = tools_json, .flags = flags };
    if (render(&c, &out, &marked, e)) return hand_over(&out, &marked, text, n, marks, e);
    qn_buf_close(&out);
    qn_buf_close(&marked);
    return false;
}

/* A folder or a tokenizer_config.json in it, without a model: the tokenizer is there for its special tokens. */
bool qn_chat_render_path(const char *path, const char *messages_json, const char *tools_json, unsigned flags, char **text,
                         size_t *n, qn_err *e)
{
    *text = NULL;
    qn_buf out = { 0 }, marks = { 0 };
    char *source = NULL;
    qn_tokenizer *tok = NULL;
    qn_template *tmpl = NULL;
    bool ok = qn_read_text_at(path, &tok, &source, e);
    if (ok && !source) ok = qn_fail(e, QN_EUNSUPPORTED, "%s: no chat template", path);
    if (ok) tmpl = qn_template_open(source, strlen(source), "chat template", e);
    const chat c = { .tmpl = tmpl, .tok = tok, .messages = messages_json, .tools = tools_json, .flags = flags };
    ok = tmpl && render(&c, &out, &marks, e) && hand_over(&out, &marks, text, n, NULL, e);
    qn_buf_close(&out);
    qn_buf_close(&marks);
    qn_template_close(tmpl);
    qn_tokenizer_close(tok);
    qn_free(source);
    return ok;
}

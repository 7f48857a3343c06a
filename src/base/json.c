/* json.c - yyjson behind our allocator. Depth is counted before parsing: whoever walks the document later may recurse without
 * a counter of its own. Numbers that fit no 64-bit type come out raw (yyjson_is_raw), so that the reader can name their key. */
#include "base/json.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"

static void *json_alloc(void *ctx, size_t n) { (void)ctx; return qn_alloc(n, NULL); }
static void *json_resize(void *ctx, void *p, size_t old, size_t n) { (void)ctx; (void)old; return qn_resize(p, n, NULL); }
static void json_free(void *ctx, void *p) { (void)ctx; qn_free(p); }

static const yyjson_alc alc = { .malloc = json_alloc, .realloc = json_resize, .free = json_free };

/* Strings are skipped, nothing else is looked at: what is wrong otherwise is the parser's to say. */
static bool deeper_than(const char *s, size_t n, int most)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"') {
            for (i++; i < n && s[i] != '"'; i++) i += s[i] == '\\';
        } else if (s[i] == '[' || s[i] == '{') {
            if (++depth > most) return true;
        } else if (s[i] == ']' || s[i] == '}') {
            depth--;
        }
    }
    return false;
}

yyjson_doc *qn_json_parse(const char *text, size_t n, int depth, const char *what, qn_err *e)
{
    const int most = depth ? depth : QN_JSON_DEPTH;
    const char *name = qn_path_tail(what);
    if (deeper_than(text, n, most)) {
        qn_fail(e, QN_EFORMAT, "%s: JSON nested deeper than %d", name, most);
        return NULL;
    }
    yyjson_read_err why;
    /* without YYJSON_READ_INSITU the text is copied and not written to */
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text, n, YYJSON_READ_BIGNUM_AS_RAW, &alc, &why);
    if (doc) return doc;
    if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        qn_fail(e, QN_ENOMEM, "%s: no memory to read %zu bytes of JSON", name, n);
    else
        qn_fail(e, QN_EFORMAT, "%s: not valid JSON at byte %zu: %s", name, why.pos, why.msg);
    return NULL;
}

yyjson_doc *qn_json_read(const char *path, size_t most, qn_err *e)
{
    char *text;
    size_t n;
    if (!qn_file_read(path, most, &text, &n, e)) return NULL;
    yyjson_doc *doc = qn_json_parse(text, n, 0, path, e);
    qn_free(text);
    return doc;
}

char *qn_json_text(yyjson_val *v, size_t *n, qn_err *e)
{
    yyjson_write_err why;
    char *text = yyjson_val_write_opts(v, YYJSON_WRITE_NOFLAG, &alc, n, &why);
    if (!text) qn_fail(e, QN_ENOMEM, "no memory to write JSON: %s", why.msg);
    return text;
}

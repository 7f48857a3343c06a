/* json.h - yyjson with our allocator and a limit on depth that is checked before parsing, so that no input can exhaust the
 * stack. Reading is yyjson's own API on the returned document; close with yyjson_doc_free. Numbers that no 64-bit type can hold
 * come out raw (yyjson_is_raw), neither int nor real. */
#ifndef QN_JSON_H
#define QN_JSON_H

#include <yyjson.h>

#include "base/err.h"

#define QN_JSON_DEPTH 64

/* what: names the text in messages, e.g. the file's path. depth 0: QN_JSON_DEPTH. */
yyjson_doc *qn_json_parse(const char *text, size_t n, int depth, const char *what, qn_err *e);
yyjson_doc *qn_json_read(const char *path, size_t most, qn_err *e);
/* A value as text, NUL behind it; end with qn_free. */
char *qn_json_text(yyjson_val *v, size_t *n, qn_err *e);

#endif

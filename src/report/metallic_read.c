/* metallic_read.c - lines of Metallic's JSONL as events. As forgiving as its analyser: blank lines and records
 * without a type are passed over, what is no JSON is said with its line, counted from 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "report/metallic.h"
#include "trace/stream.h"

static qn_str text_of(yyjson_val *object, const char *key)
{
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_str(v) ? (qn_str){ yyjson_get_str(v), yyjson_get_len(v) } : (qn_str){ 0 };
}

/* A value of a map of texts; numbers, which older logs have, as they were written. */
static qn_str value_text(yyjson_val *v, char room[32])
{
    if (yyjson_is_str(v)) return (qn_str){ yyjson_get_str(v), yyjson_get_len(v) };
    if (yyjson_is_uint(v)) snprintf(room, 32, "%llu", (unsigned long long)yyjson_get_uint(v));
    else if (yyjson_is_sint(v)) snprintf(room, 32, "%lld", (long long)yyjson_get_sint(v));
    else if (yyjson_is_real(v)) snprintf(room, 32, "%.15g", yyjson_get_real(v));
    else return (qn_str){ 0 };
    return (qn_str){ room, strlen(room) };
}

static void take_data(yyjson_val *map, qn_metallic_event *ev, qn_metallic_pair pairs[QN_METALLIC_PAIRS],
                      char rooms[QN_METALLIC_PAIRS][32])
{
    ev->data = pairs;
    yyjson_val *inner = yyjson_obj_get(map, "data"), *key, *value;
    size_t i, n;
    if (yyjson_is_obj(inner) && yyjson_obj_get(inner, "op")) map = inner;
    if (!yyjson_is_obj(map)) return; /* the macro below reckons with a pointer */
    yyjson_obj_foreach(map, i, n, key, value) {
        if (ev->n_data == QN_METALLIC_PAIRS) break;
        const qn_str text = value_text(value, rooms[ev->n_data]);
        if (!text.p) continue;
        pairs[ev->n_data++] = (qn_metallic_pair){ { yyjson_get_str(key), yyjson_get_len(key) }, text };
    }
}

static void take_duration(yyjson_val *v, qn_metallic_event *ev)
{
    const double d = yyjson_is_num(v) ? yyjson_get_num(v) : -1;
    if (!(d >= 0) || d > 1e18) return; /* neither negative times nor those that no clock can have are samples */
    ev->timed = true;
    ev->us = yyjson_is_uint(v) ? yyjson_get_uint(v) : (u64)floor(d);
}

bool qn_metallic_take(qn_str line, qn_metallic_fn fn, void *user, qn_err *why, qn_err *e)
{
    char rooms[QN_METALLIC_PAIRS][32];
    qn_metallic_pair pairs[QN_METALLIC_PAIRS];
    qn_metallic_event ev = { 0 };
    *why = (qn_err){ 0 };
    yyjson_doc *doc = qn_json_parse(line.p, line.n, 0, "line", why);
    if (!doc && why->code == QN_ENOMEM) *e = *why;
    if (!doc) return why->code != QN_ENOMEM;
    yyjson_val *event = yyjson_obj_get(yyjson_doc_get_root(doc), "event"), *data = yyjson_obj_get(event, "data");
    bool ok = true;
    ev.when = text_of(yyjson_doc_get_root(doc), "timestamp");
    ev.members = data;
    ev.type = yyjson_get_str(yyjson_obj_get(event, "type"));
    if (ev.type && *ev.type) {
        ev.op = text_of(data, "op_name");
        ev.kernel = text_of(data, "internal_kernel_name");
        ev.parent = text_of(data, "parent_op_name");
        ev.backend = text_of(data, "backend");
        ev.reason = text_of(data, "reason");
        take_duration(yyjson_obj_get(data, "duration_us"), &ev);
        take_data(yyjson_obj_get(data, "data"), &ev, pairs, rooms);
        ok = fn(user, &ev, e);
    }
    yyjson_doc_free(doc);
    return ok;
}

static bool blank(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r\n\v\f", p[i]) || !p[i]) return false;
    return true;
}

bool qn_metallic_read(const char *path, qn_metallic_fn fn, void *user, qn_buf *out, qn_err *e)
{
    qn_stream *s = qn_stream_open(path, false, e);
    qn_line line;
    bool ok = s != NULL;
    for (u64 number = 0; ok;) {
        qn_err why = { 0 };
        const qn_got got = qn_stream_line(s, &line, e);
        if (got == QN_GOT_END) break;
        ok = got != QN_GOT_ERROR;
        if (got != QN_GOT_ONE) continue;
        if (!blank(line.text.p, line.text.n)) ok = qn_metallic_take(line.text, fn, user, &why, e);
        if (ok && why.code) qn_buf_printf(out, "Error parsing line %llu: %s\n", (unsigned long long)number, why.msg);
        number++;
    }
    qn_stream_close(s);
    return ok;
}

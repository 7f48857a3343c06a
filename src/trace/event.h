/* event.h - an event as a struct, made from events.def: QN_EV_<kind>, struct qn_ev_<kind>, and one qn_event that holds any. */
#ifndef QN_EVENT_H
#define QN_EVENT_H

#include "base/buf.h"
#include "base/str.h"

#define QN_TRACE_SCHEMA 1

typedef i64 qn_ev_int;
typedef double qn_ev_num;
typedef qn_str qn_ev_str;                                          /* UTF-8, not escaped, not NUL-terminated */
typedef struct qn_ev_list { const i64 *p; size_t n; } qn_ev_list;
typedef qn_str qn_ev_json;                                         /* one JSON value as text */

#define F(type, name, doc) qn_ev_##type name;
#define EVENT(kind, doc, fields) typedef struct qn_ev_##kind { fields } qn_ev_##kind;
#include "trace/events.def"
#undef EVENT
#define EVENT(kind, doc, fields) QN_EV_##kind,
typedef enum qn_ev_kind {
#include "trace/events.def"
    N_EV_KINDS
} qn_ev_kind;
#undef EVENT
#undef F

typedef struct qn_event {
    qn_ev_kind kind;
    i64 t;                  /* ns since the trace began */
    union {
#define EVENT(name, doc, fields) qn_ev_##name name;
#include "trace/events.def"
#undef EVENT
    };
} qn_event;

/* event.c: the table behind events.def, for the writer, the reader and the page of documentation. */
typedef enum qn_ev_type { QN_EV_INT, QN_EV_NUM, QN_EV_STR, QN_EV_LIST, QN_EV_JSON } qn_ev_type;
#define QN_KEY_ROOM 16
typedef struct qn_ev_field {
    qn_ev_type type;
    const char *name, *doc;
    const char *key;        /* `,"name":` as it stands in a line, n_key bytes; QN_KEY_ROOM bytes can be read */
    size_t n_key;
    size_t offset;          /* from the start of qn_event */
} qn_ev_field;
typedef struct qn_ev_info {
    const char *name;
    size_t n_name;
    const char *doc;
    const qn_ev_field *fields;
    int n_fields;
} qn_ev_info;
const qn_ev_info *qn_ev_info_of(qn_ev_kind kind);

/* line.c: one event as one line of JSON with its newline. Whole numbers are always written; other fields only where they say
 * something. Text that is not UTF-8 is mended, numbers that are not finite are left out. */
void qn_ev_line(qn_buf *out, const qn_event *ev);

#endif

/* event.c - the fields of every kind of event, out of events.def. A function and not one array, because an offset needs the name
 * of its struct, and a row of events.def says that once, not in each of its fields. */
#include "trace/event.h"

#define TYPE_int  QN_EV_INT
#define TYPE_num  QN_EV_NUM
#define TYPE_str  QN_EV_STR
#define TYPE_list QN_EV_LIST
#define TYPE_json QN_EV_JSON

#define BODY offsetof(qn_event, trace) /* all members of the union begin there */
#define KEY(name) ",\"" #name "\":"
#define PAD "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" /* QN_KEY_ROOM with the last one */
#define F(type, name, doc) { TYPE_##type, #name, doc, KEY(name) PAD, sizeof KEY(name) - 1, BODY + offsetof(current, name) },
#define EVENT(kind, doc, rows) \
    case QN_EV_##kind: { \
        typedef qn_ev_##kind current; \
        static const qn_ev_field fields[] = { rows }; \
        static const qn_ev_info info = { #kind, sizeof #kind - 1, doc, fields, (int)QN_COUNT(fields) }; \
        return &info; \
    }

const qn_ev_info *qn_ev_info_of(qn_ev_kind kind)
{
    switch (kind) {
#include "trace/events.def"
    default: return NULL;
    }
}

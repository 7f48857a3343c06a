/* line.c - an event as a line of JSON. The thread that writes a trace does little else, and on a core that a lane of the pool
 * wants: room is taken once a line, keys are ready-made and copied whole, numbers are printed in place, two digits at a time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "trace/event.h"

#define INT_MOST 20 /* -9223372036854775808 */
#define NUM_MOST 32 /* %.9g */

static const char two_digits[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

static int count_digits(u64 v)
{
    static const u64 tens[] = { 0, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
                                100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u,
                                10000000000000000u, 100000000000000000u, 1000000000000000000u, 10000000000000000000u };
    const int low = (64 - __builtin_clzll(v | 1)) * 1233 >> 12; /* log10(2) is 1233 / 4096: right, or one too many */
    return low + 1 - (v < tens[low]);
}

/* Prints v at p; returns the place behind it. */
static char *print_int(char *p, i64 v)
{
    u64 u = v < 0 ? 0 - (u64)v : (u64)v;
    *p = '-';
    p += (v < 0) + count_digits(u);
    char *at = p;
    for (; u >= 100; u /= 100) memcpy(at -= 2, two_digits + 2 * (u % 100), 2);
    if (u >= 10) memcpy(at - 2, two_digits + 2 * u, 2);
    else at[-1] = (char)('0' + u);
    return p;
}

static char *put_key(char *p, const qn_ev_field *f)
{
    static_assert(QN_KEY_ROOM == 16, "one load, one store");
    if (f->n_key <= QN_KEY_ROOM) memcpy(p, f->key, QN_KEY_ROOM);
    else memcpy(p, f->key, f->n_key);
    return p + f->n_key;
}

static char *put_list(char *p, const qn_ev_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        *p++ = i ? ',' : '[';
        p = print_int(p, l->p[i]);
    }
    *p++ = ']';
    return p;
}

static bool is_plain(qn_str s)
{
    size_t i = 0;
    while (i < s.n && s.p[i] >= ' ' && s.p[i] != '"' && s.p[i] != '\\' && s.p[i] != 0x7F) i++;
    return i == s.n;
}

/* Most bytes that the value of a field can take, but for text that must be escaped; 0: it is left out. */
static size_t most_bytes(const qn_ev_field *f, const void *at)
{
    const qn_ev_list *l = at;
    const qn_str *s = at;
    switch (f->type) {
    case QN_EV_INT: return INT_MOST;
    case QN_EV_NUM: return *(const double *)at != 0 && isfinite(*(const double *)at) ? NUM_MOST : 0;
    case QN_EV_STR: return s->n && s->n < SIZE_MAX / 32 ? s->n + 2 : 0;
    case QN_EV_LIST: return l->n && l->n < SIZE_MAX / 32 ? l->n * (INT_MOST + 1) + 1 : 0;
    case QN_EV_JSON: return s->n < SIZE_MAX / 32 ? s->n : 0;
    }
    return 0;
}

/* The value at p, where there is room for it; escaped text goes through the buffer, which then has room for `all` bytes again.
 * NULL: no memory. */
static char *put_value(qn_buf *b, char *p, const qn_ev_field *f, const void *at, size_t all)
{
    const qn_str *s = at;
    switch (f->type) {
    case QN_EV_INT: return print_int(p, *(const i64 *)at);
    case QN_EV_NUM: return p + snprintf(p, NUM_MOST, "%.9g", *(const double *)at);
    case QN_EV_LIST: return put_list(p, at);
    case QN_EV_JSON: memcpy(p, s->p, s->n); return p + s->n;
    case QN_EV_STR: break;
    }
    if (!is_plain(*s)) {
        b->n = (size_t)(p - b->p);
        qn_buf_json(b, s->p, s->n);
        return b->failed ? NULL : qn_buf_room(b, all);
    }
    *p = '"';
    memcpy(p + 1, s->p, s->n);
    p[1 + s->n] = '"';
    return p + s->n + 2;
}

void qn_ev_line(qn_buf *b, const qn_event *ev)
{
    static const qn_ev_field t = { .key = "\",\"t\":\0\0\0\0\0\0\0\0\0\0", .n_key = 6 };
    const qn_ev_info *k = qn_ev_info_of(ev->kind);
    size_t all = 7 + k->n_name + t.n_key + INT_MOST + 3 + QN_KEY_ROOM; /* a key is copied with what stands behind it */
    for (int i = 0; i < k->n_fields; i++) {
        const size_t most = most_bytes(&k->fields[i], (const char *)ev + k->fields[i].offset);
        all += most ? k->fields[i].n_key + most : 0;
    }
    char *p = qn_buf_room(b, all);
    if (!p) return;
    memcpy(p, "{\"ev\":\"", 7);
    memcpy(p + 7, k->name, k->n_name);
    p = print_int(put_key(p + 7 + k->n_name, &t), ev->t);
    for (int i = 0; i < k->n_fields; i++) {
        const qn_ev_field *f = &k->fields[i];
        const void *at = (const char *)ev + f->offset;
        if (!most_bytes(f, at)) continue;
        if (!(p = put_value(b, put_key(p, f), f, at, all))) return;
    }
    memcpy(p, "}\n", 3);
    b->n = (size_t)(p + 2 - b->p);
}

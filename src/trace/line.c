/* line.c - an event as a line of JSON. A step's line takes about 0.2 us: keys are ready-made and whole numbers are printed two
 * digits at a time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "trace/event.h"

#define INT_MOST 20 /* -9223372036854775808 */

static const char two_digits[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

/* Prints v at p; returns the place behind it. */
static char *print_int(char *p, i64 v)
{
    char digits[INT_MOST], *at = digits + sizeof digits;
    u64 u = v < 0 ? 0 - (u64)v : (u64)v;
    for (; u >= 100; u /= 100) memcpy(at -= 2, two_digits + 2 * (u % 100), 2);
    if (u >= 10) memcpy(at -= 2, two_digits + 2 * u, 2);
    else *--at = (char)('0' + u);
    if (v < 0) *p++ = '-';
    const size_t n = (size_t)(digits + sizeof digits - at);
    memcpy(p, at, n);
    return p + n;
}

/* Room for a key and `more` bytes; the key is written. NULL: no memory. */
static char *begin_field(qn_buf *b, const qn_ev_field *f, size_t more)
{
    char *p = qn_buf_room(b, f->n_key + more);
    if (!p) return NULL;
    memcpy(p, f->key, f->n_key);
    return p + f->n_key;
}

static void end_field(qn_buf *b, const char *p) { b->n = (size_t)(p - b->p); }

static void put_int(qn_buf *b, const qn_ev_field *f, i64 v)
{
    char *p = begin_field(b, f, INT_MOST);
    if (p) end_field(b, print_int(p, v));
}

static void put_num(qn_buf *b, const qn_ev_field *f, double v)
{
    if (v == 0 || !isfinite(v)) return;
    qn_buf_put(b, f->key, f->n_key);
    qn_buf_printf(b, "%.9g", v);
}

static void put_list(qn_buf *b, const qn_ev_field *f, const qn_ev_list *l)
{
    char *p = l->n && l->n < SIZE_MAX / 32 ? begin_field(b, f, l->n * (INT_MOST + 1) + 1) : NULL;
    if (!p) return;
    for (size_t i = 0; i < l->n; i++) {
        *p++ = i ? ',' : '[';
        p = print_int(p, l->p[i]);
    }
    *p++ = ']';
    end_field(b, p);
}

static void put_str(qn_buf *b, const qn_ev_field *f, qn_str s)
{
    size_t plain = 0;
    if (s.n == 0) return;
    qn_buf_put(b, f->key, f->n_key);
    while (plain < s.n && s.p[plain] >= ' ' && s.p[plain] != '"' && s.p[plain] != '\\' && s.p[plain] != 0x7F) plain++;
    if (plain < s.n) {
        qn_buf_json(b, s.p, s.n);
        return;
    }
    qn_buf_putc(b, '"');
    qn_buf_put(b, s.p, s.n);
    qn_buf_putc(b, '"');
}

static void put_json(qn_buf *b, const qn_ev_field *f, qn_str s)
{
    if (s.n == 0) return;
    qn_buf_put(b, f->key, f->n_key);
    qn_buf_put(b, s.p, s.n);
}

void qn_ev_line(qn_buf *b, const qn_event *ev)
{
    static const qn_ev_field t = { .key = ",\"t\":", .n_key = 5 };
    const qn_ev_info *k = qn_ev_info_of(ev->kind);
    qn_buf_put(b, "{\"ev\":\"", 7);
    qn_buf_puts(b, k->name);
    qn_buf_putc(b, '"');
    put_int(b, &t, ev->t);
    for (int i = 0; i < k->n_fields; i++) {
        const qn_ev_field *f = &k->fields[i];
        const void *at = (const char *)ev + f->offset;
        switch (f->type) {
        case QN_EV_INT: put_int(b, f, *(const i64 *)at); break;
        case QN_EV_NUM: put_num(b, f, *(const double *)at); break;
        case QN_EV_STR: put_str(b, f, *(const qn_str *)at); break;
        case QN_EV_LIST: put_list(b, f, at); break;
        case QN_EV_JSON: put_json(b, f, *(const qn_str *)at); break;
        }
    }
    qn_buf_put(b, "}\n", 2);
}

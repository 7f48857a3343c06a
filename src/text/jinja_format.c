/* jinja_format.c - Python's two ways to format: 'a %s b' % x, and '{} {name:>8}'.format(...). Both reduce to one description
 * of a field (width, precision, fill, type) and one function that writes it. Marks follow the value that is written. */
#include "text/jinja.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_WIDTH 10000 /* of one field */

typedef struct field {
    char align, sign, type; /* align: < > ^ or =; sign: + or blank */
    bool zero, alt, comma;
    i64 width, precision;   /* precision -1: none */
    qn_jstr fill;
} field;

static bool put_padding(qn_jx *x, qn_jbuild *b, const field *f, i64 n)
{
    for (; n > 0; n--)
        if (!qn_jbuild_put(x, b, f->fill)) return false;
    return true;
}

/* body within the field's width; the first `lead` bytes (a sign, 0x) stay before padding with '='. */
static bool put_field(qn_jx *x, qn_jbuild *b, const field *f, qn_jstr body, size_t lead)
{
    const i64 pad = f->width - (i64)qn_jstr_chars(body);
    const char align = f->align;
    if (pad <= 0 || align == '<') return qn_jbuild_put(x, b, body) && (pad <= 0 || put_padding(x, b, f, pad));
    if (align == '=') {
        return qn_jbuild_put(x, b, qn_jstr_part(body, 0, lead)) && put_padding(x, b, f, pad) &&
               qn_jbuild_put(x, b, qn_jstr_part(body, lead, body.n));
    }
    const i64 before = align == '^' ? pad / 2 : pad;
    return put_padding(x, b, f, before) && qn_jbuild_put(x, b, body) && put_padding(x, b, f, pad - before);
}

/* Digits with a comma after each three. */
static size_t group(const char *digits, size_t n, char *out)
{
    size_t k = 0, whole = strcspn(digits, ".e");
    if (whole > n) whole = n;
    for (size_t i = 0; i < n; i++) {
        if (i && i < whole && (whole - i) % 3 == 0) out[k++] = ',';
        out[k++] = digits[i];
    }
    return k;
}

static void point_not_comma(char *s) /* the locale of the process may write 0,5 */
{
    for (; *s; s++)
        if (*s == ',') *s = '.';
}

static bool put_int(qn_jx *x, qn_jbuild *b, const field *f, i64 v, bool marked)
{
    char digits[72], text[160];
    size_t n = 0, k = 0;
    const u64 mag = v < 0 ? 0 - (u64)v : (u64)v;
    if (f->type == 'x' || f->type == 'X')
        n = (size_t)snprintf(digits, sizeof digits, f->type == 'x' ? "%llx" : "%llX", (unsigned long long)mag);
    else if (f->type == 'o') n = (size_t)snprintf(digits, sizeof digits, "%llo", (unsigned long long)mag);
    else if (f->type == 'b') {
        for (int i = mag ? 63 - __builtin_clzll(mag) : 0; i >= 0; i--) digits[n++] = (char)('0' + (mag >> i & 1));
        digits[n] = 0;
    } else n = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)mag);
    if (v < 0) text[k++] = '-';
    else if (f->sign) text[k++] = f->sign;
    if (f->alt && strchr("xXob", f->type)) {
        text[k++] = '0';
        text[k++] = f->type;
    }
    const size_t lead = k;
    for (i64 z = f->precision - (i64)n; z > 0 && k < 64; z--) text[k++] = '0';
    if (f->comma) k += group(digits, n, text + k);
    else memcpy(text + k, digits, n), k += n;
    qn_jbuild tmp = { 0 };
    return qn_jbuild_bytes(x, &tmp, text, k, marked) && put_field(x, b, f, qn_jbuild_str(&tmp), lead);
}

static bool put_float(qn_jx *x, qn_jbuild *b, const field *f, double v, bool marked)
{
    char digits[500], text[700];
    size_t k = 0;
    const char type = f->type == '%' ? 'f' : f->type;
    const int precision = (int)(f->precision < 0 ? 6 : f->precision > 100 ? 100 : f->precision);
    const double mag = fabs(f->type == '%' ? v * 100 : v);
    if (!type) qn_jfloat_text(mag, digits);
    else if (type == 'g' || type == 'G' || type == 'n')
        snprintf(digits, sizeof digits, type == 'G' ? "%.*G" : "%.*g", precision ? precision : 1, mag);
    else if (type == 'e' || type == 'E') snprintf(digits, sizeof digits, type == 'E' ? "%.*E" : "%.*e", precision, mag);
    else snprintf(digits, sizeof digits, "%.*f", precision, mag);
    point_not_comma(digits);
    if (signbit(v) && !isnan(v)) text[k++] = '-';
    else if (f->sign) text[k++] = f->sign;
    const size_t lead = k, n = strlen(digits);
    if (f->comma && isfinite(v)) k += group(digits, n, text + k);
    else memcpy(text + k, digits, n), k += n;
    if (f->type == '%') text[k++] = '%';
    qn_jbuild tmp = { 0 };
    return qn_jbuild_bytes(x, &tmp, text, k, marked) && put_field(x, b, f, qn_jbuild_str(&tmp), lead);
}

static bool put_text(qn_jx *x, qn_jbuild *b, const field *f, qn_jstr s)
{
    if (f->precision >= 0) s = qn_jstr_part(s, 0, qn_jstr_offset(s, (size_t)f->precision));
    return put_field(x, b, f, s, 0);
}

static bool read_digits(qn_jx *x, qn_jstr s, size_t *at, i64 *out)
{
    for (*out = 0; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at) {
        *out = *out * 10 + (s.p[*at] - '0');
        if (*out > MAX_WIDTH) return qn_jx_fail(x, "format: a width of more than %d", MAX_WIDTH);
    }
    return true;
}

/* ---- % */

typedef struct percent { qn_jx *x; qn_jstr fmt; size_t at; qn_jv args; size_t used; } percent;

static bool next_arg(percent *p, qn_jv *out)
{
    if (p->args.type == JT_tuple) {
        if (p->used >= p->args.l->n) return qn_jx_fail(p->x, "not enough arguments for format string");
        *out = p->args.l->at[p->used++];
        return true;
    }
    if (p->used++) return qn_jx_fail(p->x, "not enough arguments for format string");
    *out = p->args;
    return true;
}

/* %(name)s */
static bool named_arg(percent *p, qn_jv *out)
{
    const size_t end = qn_jstr_find(p->fmt, QN_JLIT(")"), p->at);
    qn_jv key, *hit;
    if (end == (size_t)-1) return qn_jx_fail(p->x, "incomplete format key");
    if (p->args.type != JT_dict) return qn_jx_fail(p->x, "format requires a mapping");
    if (!qn_jv_str(p->x, qn_jstr_part(p->fmt, p->at + 1, end), &key) || !qn_jdict_get(p->x, p->args.d, key, &hit))
        return false;
    if (!hit) return qn_jx_fail(p->x, "format: no value for %.*s", (int)qn_minz(key.s->n, 60), key.s->p);
    p->at = end + 1;
    *out = *hit;
    return true;
}

static bool star_or_digits(percent *p, i64 *out)
{
    qn_jv v;
    if (p->at >= p->fmt.n || p->fmt.p[p->at] != '*') return read_digits(p->x, p->fmt, &p->at, out);
    p->at++;
    if (!next_arg(p, &v)) return false;
    if (!qn_jv_integer(v, out)) return qn_jx_fail(p->x, "* wants int");
    return (*out <= MAX_WIDTH && *out >= -MAX_WIDTH) || qn_jx_fail(p->x, "format: a width of more than %d", MAX_WIDTH);
}

static bool read_flags(percent *p, field *f)
{
    *f = (field){ .align = '>', .precision = -1, .fill = QN_JLIT(" ") };
    bool minus = false;
    for (; p->at < p->fmt.n && strchr("-+ #0", p->fmt.p[p->at]) && p->fmt.p[p->at]; p->at++) {
        const char c = p->fmt.p[p->at];
        minus |= c == '-';
        f->zero |= c == '0';
        f->alt |= c == '#';
        if (c == '+' || (c == ' ' && !f->sign)) f->sign = c;
    }
    if (!star_or_digits(p, &f->width)) return false;
    if (f->width < 0) {
        minus = true;
        f->width = -f->width;
    }
    if (minus) f->align = '<';
    if (p->at < p->fmt.n && p->fmt.p[p->at] == '.') {
        p->at++;
        if (!star_or_digits(p, &f->precision)) return false;
    }
    while (p->at < p->fmt.n && strchr("hlL", p->fmt.p[p->at]) && p->fmt.p[p->at]) p->at++;
    return true;
}

static bool put_char(qn_jx *x, qn_jbuild *b, const field *f, qn_jv v)
{
    if (v.type != JT_str || qn_jstr_chars(*v.s) != 1) return qn_jx_fail(x, "%%c requires a character");
    return put_field(x, b, f, *v.s, 0);
}

static bool put_percent(percent *p, qn_jbuild *b, field *f, char c, qn_jv v)
{
    i64 i;
    double d;
    qn_jstr s;
    qn_jbuild tmp = { 0 };
    if (c == 's') return qn_jv_text(p->x, v, &s) && put_text(p->x, b, f, s);
    if (c == 'r' || c == 'a') return qn_jv_repr(p->x, &tmp, v) && put_text(p->x, b, f, qn_jbuild_str(&tmp));
    if (c == 'c') return put_char(p->x, b, f, v);
    if (f->zero && f->align == '>') {
        f->align = '=';
        f->fill = QN_JLIT("0");
    }
    f->type = c;
    if (strchr("diuxXo", c)) {
        if (v.type == JT_float && strchr("diu", c) && fabs(v.f) < 9e18)
            v = (qn_jv){ .type = JT_int, .marked = v.marked, .i = (i64)v.f };
        if (!qn_jv_integer(v, &i)) return qn_jx_fail(p->x, "%%%c: a number is required, not %s", c, qn_jv_type_name(v));
        return put_int(p->x, b, f, i, v.marked);
    }
    if (!strchr("fFeEgG", c)) return qn_jx_fail(p->x, "unsupported format character");
    if (c == 'F') f->type = 'f';
    if (!qn_jv_number(v, &d)) return qn_jx_fail(p->x, "%%%c: must be real number, not %s", c, qn_jv_type_name(v));
    return put_float(p->x, b, f, d, v.marked);
}

bool qn_jformat_percent(qn_jx *x, qn_jstr fmt, qn_jv args, qn_jv *out)
{
    percent p = { .x = x, .fmt = fmt, .args = args };
    qn_jbuild b = { 0 };
    while (p.at < fmt.n) {
        const size_t hit = qn_jstr_find(fmt, QN_JLIT("%"), p.at), end = hit == (size_t)-1 ? fmt.n : hit;
        qn_jv v = { 0 };
        field f;
        if (!qn_jx_step(x, 1) || !qn_jbuild_put(x, &b, qn_jstr_part(fmt, p.at, end))) return false;
        p.at = end + 1;
        if (end == fmt.n) break;
        if (p.at < fmt.n && fmt.p[p.at] == '(' && !named_arg(&p, &v)) return false;
        if (!read_flags(&p, &f)) return false;
        if (p.at >= fmt.n) return qn_jx_fail(x, "incomplete format");
        const char c = fmt.p[p.at++];
        if (c == '%') {
            if (!qn_jbuild_put(x, &b, qn_jstr_part(fmt, p.at - 1, p.at))) return false;
            continue;
        }
        if ((!qn_jv_given(v) && !next_arg(&p, &v)) || !put_percent(&p, &b, &f, c, v)) return false;
    }
    const bool indexed = args.type == JT_dict || args.type == JT_list || args.type == JT_range || args.type == JT_undef;
    if (args.type == JT_tuple ? p.used < args.l->n : !p.used && !indexed) /* Python lets what has items go unused */
        return qn_jx_fail(x, "not all arguments converted during string formatting");
    return qn_jbuild_value(x, &b, out);
}

/* ---- {} */

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static bool read_spec(qn_jx *x, qn_jstr s, field *f)
{
    size_t at = 0, len = 0;
    u32 cp;
    *f = (field){ .precision = -1, .fill = QN_JLIT(" ") };
    if (s.n) len = qn_jchar(s.p, s.n, &cp);
    if (len && len < s.n && strchr("<>^=", s.p[len])) {
        f->fill = qn_jstr_part(s, 0, len);
        f->align = s.p[len];
        at = len + 1;
    } else if (s.n && strchr("<>^=", s.p[0])) {
        f->align = s.p[0];
        at = 1;
    }
    if (at < s.n && strchr("+- ", s.p[at])) {
        f->sign = s.p[at] == '-' ? 0 : s.p[at];
        at++;
    }
    if (at < s.n && s.p[at] == '#') f->alt = true, at++;
    if (at < s.n && s.p[at] == '0') {
        if (!f->align) f->align = '=', f->fill = QN_JLIT("0");
        at++;
    }
    if (!read_digits(x, s, &at, &f->width)) return false;
    if (at < s.n && s.p[at] == ',') f->comma = true, at++;
    if (at < s.n && s.p[at] == '.') {
        at++;
        if (!read_digits(x, s, &at, &f->precision)) return false;
    }
    if (at < s.n) f->type = s.p[at++];
    return at == s.n || qn_jx_fail(x, "format: invalid format specifier");
}

static bool put_by_spec(qn_jx *x, qn_jbuild *b, qn_jv v, qn_jstr spec)
{
    field f;
    i64 i;
    double d;
    qn_jstr s;
    if (!read_spec(x, spec, &f)) return false;
    const bool floaty = f.type && strchr("eEfFgGn%", f.type);
    if (v.type != JT_str && !(v.type == JT_bool && !f.type) && qn_jv_number(v, &d) && f.type != 's') {
        if (!f.align) f.align = '>';
        if (f.type == 'F') f.type = 'f';
        if (qn_jv_integer(v, &i) && !floaty) {
            if (f.type && !strchr("dxXob", f.type))
                return qn_jx_fail(x, "format: unknown format code '%c' for an integer", f.type);
            return put_int(x, b, &f, i, v.marked);
        }
        if (f.type && !floaty) return qn_jx_fail(x, "format: unknown format code '%c' for a float", f.type);
        if (!f.type && f.precision >= 0) f.type = 'g';
        return put_float(x, b, &f, d, v.marked);
    }
    if (f.type && f.type != 's')
        return qn_jx_fail(x, "format: unknown format code '%c' for type %s", f.type, qn_jv_type_name(v));
    if (f.align == '=') return qn_jx_fail(x, "format: '=' alignment is for numbers");
    if (!f.align) f.align = '<';
    return qn_jv_text(x, v, &s) && put_text(x, b, &f, s);
}

/* name.attr[key]: the first part is an argument, by name or number; *next counts those without either. */
static bool find_field(qn_jx *x, qn_jstr name, const qn_jargs *args, size_t *next, qn_jv *out)
{
    size_t end = 0, at = 0;
    i64 index = 0;
    while (end < name.n && name.p[end] != '.' && name.p[end] != '[') end++;
    const qn_jstr first = qn_jstr_part(name, 0, end);
    if (!first.n) index = (i64)(*next)++;
    else if (!read_digits(x, first, &at, &index)) return false;
    *out = (qn_jv){ 0 };
    if (at == first.n && (size_t)index < args->n) *out = args->pos[index];
    for (size_t i = 0; i < args->n_kw && at < first.n; i++)
        if (args->kw[i].name.n == first.n && memcmp(args->kw[i].name.p, first.p, first.n) == 0) *out = args->kw[i].v;
    if (!qn_jv_given(*out))
        return qn_jx_fail(x, "format: no argument for the field '%.*s'", (int)qn_minz(first.n, 60), first.p);
    while (end < name.n) {
        const bool item = name.p[end++] == '[';
        size_t to = end, k = end;
        qn_jv key;
        while (to < name.n && (item ? name.p[to] != ']' : name.p[to] != '.' && name.p[to] != '[')) to++;
        if (item && to == name.n) return qn_jx_fail(x, "format: a missing ']'");
        if (item && to > end && read_digits(x, qn_jstr_part(name, 0, to), &k, &index) && k == to) key = qn_jv_int(index);
        else if (!qn_jv_str(x, qn_jstr_part(name, end, to), &key)) return false;
        if (item || key.type == JT_int ? !qn_jx_item(x, *out, key, out) : !qn_jx_attr(x, *out, *key.s, out)) return false;
        end = to + item;
    }
    return true;
}

/* One replacement field: inner is what stands between the braces. */
static bool put_replacement(qn_jx *x, qn_jbuild *b, qn_jstr inner, const qn_jargs *args, size_t *next)
{
    size_t colon = qn_jstr_find(inner, QN_JLIT(":"), 0), bang = qn_jstr_find(inner, QN_JLIT("!"), 0);
    const size_t end = colon == (size_t)-1 ? inner.n : colon;
    char conversion = 0;
    qn_jv v;
    qn_jbuild tmp = { 0 };
    if (bang < end) {
        if (bang + 2 != end || !strchr("rsa", inner.p[bang + 1])) return qn_jx_fail(x, "format: an unknown conversion");
        conversion = inner.p[bang + 1];
    } else {
        bang = end;
    }
    if (!find_field(x, qn_jstr_part(inner, 0, bang), args, next, &v)) return false;
    if (conversion && (conversion == 's' ? !qn_jv_print(x, &tmp, v) : !qn_jv_repr(x, &tmp, v))) return false;
    if (conversion && !qn_jbuild_value(x, &tmp, &v)) return false;
    return put_by_spec(x, b, v, colon == (size_t)-1 ? QN_JLIT("") : qn_jstr_part(inner, colon + 1, inner.n));
}

bool qn_jformat_braces(qn_jx *x, qn_jstr fmt, const qn_jargs *args, qn_jv *out)
{
    qn_jbuild b = { 0 };
    size_t next = 0;
    for (size_t at = 0; at < fmt.n;) {
        const char c = fmt.p[at];
        if (!qn_jx_step(x, 1)) return false;
        if (c != '{' && c != '}') {
            size_t to = at + 1;
            while (to < fmt.n && fmt.p[to] != '{' && fmt.p[to] != '}') to++;
            if (!qn_jbuild_put(x, &b, qn_jstr_part(fmt, at, to))) return false;
            at = to;
        } else if (at + 1 < fmt.n && fmt.p[at + 1] == c) {
            if (!qn_jbuild_put(x, &b, qn_jstr_part(fmt, at, at + 1))) return false;
            at += 2;
        } else {
            const size_t end = c == '{' ? qn_jstr_find(fmt, QN_JLIT("}"), at) : (size_t)-1;
            if (end == (size_t)-1) return qn_jx_fail(x, "format: a single '%c' in the format string", c);
            if (!put_replacement(x, &b, qn_jstr_part(fmt, at + 1, end), args, &next)) return false;
            at = end + 1;
        }
    }
    return qn_jbuild_value(x, &b, out);
}

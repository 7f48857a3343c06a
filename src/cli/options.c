/* options.c - argv into a command's struct, as its tables say. The one idea: a default is parsed by the same code as what
 * a user types, so a table cannot hold a default that the user could not give.
 * Accepts --name value, --name=value, -x value, `--` (the rest are arguments) and `-` (an argument: stdin). Numbers are
 * strict and checked against the row's range. Unknown names are answered with the nearest known one. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"

const qn_opt qn_common_opts[] = {
    { "help", "h", NULL, OPT_flag, QN_AT(qn_cli, help, bool), NULL, NULL, "print this help", 0, 0 },
    { "quiet", "q", NULL, OPT_flag, QN_AT(qn_cli, quiet, bool), NULL, NULL, "results and errors only", 0, 0 },
    { "verbose", "v", NULL, OPT_flag, QN_AT(qn_cli, verbose, bool), NULL, NULL, "say more on stderr", 0, 0 },
    { "color", NULL, "colour", OPT_choice, QN_AT(qn_cli, color, int), "auto|always|never", "auto", "colour on terminals", 0, 0 },
    { 0 },
};

typedef struct found { const qn_opt *opt; char *base; bool no; } found; /* a row, and the struct it writes into */

static bool names_match(const qn_opt *o, const char *name, size_t n, bool is_brief)
{
    const char *const candidates[] = { is_brief ? o->brief : o->name, is_brief ? NULL : o->alias };
    for (size_t i = 0; i < QN_COUNT(candidates); i++)
        if (candidates[i] && strlen(candidates[i]) == n && !memcmp(candidates[i], name, n)) return true;
    return false;
}

static bool find_in(const qn_opt *opts, char *base, const char *name, size_t n, bool is_brief, found *f)
{
    for (const qn_opt *o = opts; o->name; o++) {
        f->no = false;
        if (names_match(o, name, n, is_brief)) return f->opt = o, f->base = base, true;
        if (is_brief || o->type != OPT_flag || n < 4 || memcmp(name, "no-", 3)) continue;
        f->no = true;
        if (names_match(o, name + 3, n - 3, false)) return f->opt = o, f->base = base, true;
    }
    return false;
}

static bool find_option(qn_cli *c, void *values, const char *name, size_t n, bool is_brief, found *f)
{
    for (const qn_opt_group *g = c->command->groups; g && g->opts; g++)
        if (find_in(g->opts, (char *)values + g->base, name, n, is_brief, f)) return true;
    return find_in(qn_common_opts, (char *)c, name, n, is_brief, f);
}

static size_t distance(const char *a, const char *b) /* edits between two names of at most 63 bytes */
{
    size_t row[64], na = strlen(a), nb = strlen(b);
    if (na > 63 || nb > 63) return 64;
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            const size_t insert = qn_minz(row[j], row[j - 1]) + 1;
            row[j] = qn_minz(change, insert);
        }
    }
    return row[nb];
}

const char *qn_nearest(const char *typed, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_d = 3; /* more than two slips is another word */
    for (size_t i = 0; i < n; i++) {
        const size_t d = distance(typed, names[i]);
        if (d < best_d && d < strlen(names[i])) best = names[i], best_d = d;
    }
    return best;
}

static bool unknown_option(const qn_cli *c, const char *typed, const char *name, size_t n_name, qn_err *e)
{
    const char *names[96];
    char cut[64];
    size_t n = 0;
    for (const qn_opt_group *g = c->command->groups; g && g->opts; g++)
        for (const qn_opt *o = g->opts; o->name && n < QN_COUNT(names) - 4; o++) names[n++] = o->name;
    for (const qn_opt *o = qn_common_opts; o->name && n < QN_COUNT(names); o++) names[n++] = o->name;
    n_name = qn_minz(n_name, sizeof cut - 1);
    memcpy(cut, name, n_name);
    cut[n_name] = 0;
    const char *near = qn_nearest(cut, names, n);
    if (!near)
        for (size_t i = 0; i < n && !near && n_name >= 3; i++)
            if (!strncmp(names[i], cut, n_name)) near = names[i];
    if (near) return qn_fail(e, QN_EUSAGE, "unknown option %.60s; did you mean --%s?", typed, near);
    return qn_fail(e, QN_EUSAGE, "unknown option %.60s", typed);
}

static bool bad_value(const qn_opt *o, const char *text, const char *wanted, qn_err *e)
{
    return qn_fail(e, QN_EUSAGE, "--%s: \"%.60s\" is not %s", o->name, text, wanted);
}

static bool choose(const qn_opt *o, const char *text, int *out, qn_err *e)
{
    char wanted[128] = "one of ";
    const size_t n = strlen(text);
    int i = 0;
    for (const char *p = o->arg; p; i++) {
        const char *bar = strchr(p, '|');
        const size_t len = bar ? (size_t)(bar - p) : strlen(p);
        if (len == n && !memcmp(p, text, n)) return *out = i, true;
        p = bar ? bar + 1 : NULL;
    }
    strncat(wanted, o->arg, sizeof wanted - strlen(wanted) - 1);
    return bad_value(o, text, wanted, e);
}

static bool add_to_list(qn_list *list, const char *text, qn_err *e)
{
    const char **at = qn_resize(list->at, ((size_t)list->n + 1) * sizeof *at, e);
    if (!at) return false;
    list->at = at;
    at[list->n++] = text;
    return true;
}

static bool store_number(const qn_opt *o, void *at, const char *text, qn_err *e)
{
    char wanted[96];
    const bool open = o->lo == 0 && o->hi == 0;
    if (o->type == OPT_int) {
        const i64 lo = open ? INT_MIN : (i64)o->lo, hi = open ? INT_MAX : (i64)o->hi;
        i64 v;
        if (qn_parse_i64(text, lo, hi, &v)) return *(int *)at = (int)v, true;
        if (qn_parse_i64(text, INT64_MIN, INT64_MAX, &v)) {
            if (v < lo) return qn_fail(e, QN_EUSAGE, "--%s: %s is below %lld", o->name, text, (long long)lo);
            return qn_fail(e, QN_EUSAGE, "--%s: %s is above %lld", o->name, text, (long long)hi);
        }
        return bad_value(o, text, "a whole number", e);
    }
    if (o->type == OPT_u64)
        return qn_parse_u64(text, at) || bad_value(o, text, "a whole number from 0", e);
    const double lo = open ? -1e30 : o->lo, hi = open ? 1e30 : o->hi;
    if (qn_parse_double(text, lo, hi, at)) return true;
    qn_buf b = { 0 };
    qn_buf_printf(&b, "a number from %g to %g", lo, hi);
    memcpy(wanted, b.failed ? "a number" : b.p, qn_minz(b.failed ? 9 : b.n + 1, sizeof wanted));
    wanted[sizeof wanted - 1] = 0;
    qn_buf_close(&b);
    return bad_value(o, text, open ? "a number" : wanted, e);
}

static bool store(const found *f, const char *text, qn_err *e)
{
    void *at = f->base + f->opt->at;
    switch (f->opt->type) {
    case OPT_flag: *(bool *)at = !f->no; return true;
    case OPT_text: *(const char **)at = text; return true;
    case OPT_choice: return choose(f->opt, text, at, e);
    case OPT_list: return add_to_list(at, text, e);
    default: return store_number(f->opt, at, text, e);
    }
}

static bool store_presets(const qn_opt *opts, char *base, qn_err *e)
{
    for (const qn_opt *o = opts; o->name; o++)
        if (o->preset && !store(&(found){ o, base, false }, o->preset, e)) return false;
    return true;
}

/* One option at argv[*i]; steps *i over its value. */
static bool take_option(qn_cli *c, int argc, char **argv, int *i, void *values, qn_err *e)
{
    const char *typed = argv[*i];
    const bool is_brief = typed[1] != '-';
    const char *name = typed + (is_brief ? 1 : 2);
    const char *equals = is_brief ? NULL : strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    found f = { 0 };
    /* llama.cpp also takes one dash before some long names and two before none: only exact names count here */
    if (!find_option(c, values, name, n, is_brief, &f)) return unknown_option(c, typed, name, n, e);
    if (f.opt->type == OPT_flag) {
        if (equals) return qn_fail(e, QN_EUSAGE, "--%s takes no value", f.opt->name);
        return store(&f, NULL, e);
    }
    if (equals) return store(&f, equals + 1, e);
    if (*i + 1 >= argc) return qn_fail(e, QN_EUSAGE, "--%s needs a value (%s)", f.opt->name, f.opt->arg);
    *i += 1;
    return store(&f, argv[*i], e);
}

bool qn_options_parse(qn_cli *c, int argc, char **argv, void *values, qn_err *e)
{
    const qn_command *k = c->command;
    bool rest = false;
    for (const qn_opt_group *g = k->groups; g && g->opts; g++)
        if (!store_presets(g->opts, (char *)values + g->base, e)) return false;
    if (!store_presets(qn_common_opts, (char *)c, e)) return false;
    c->args = qn_new_array((size_t)argc + 1, sizeof *c->args, e);
    if (!c->args) return false;

    for (int i = 0; i < argc; i++) {
        const bool is_option = !rest && argv[i][0] == '-' && argv[i][1];
        if (is_option && !strcmp(argv[i], "--")) { rest = true; continue; }
        if (!is_option) c->args[c->n_args++] = argv[i];
        else if (!take_option(c, argc, argv, &i, values, e)) return false;
    }
    if (c->help) return true;
    if (c->n_args > k->max_args)
        return qn_fail(e, QN_EUSAGE, "%s: one argument too many: \"%.80s\"", k->name, c->args[k->max_args]);
    if (c->n_args < k->min_args) return qn_fail(e, QN_EUSAGE, "%s: an argument is missing: %s", k->name, k->args);
    return true;
}

void qn_options_close(qn_cli *c, void *values)
{
    qn_free(c->args);
    c->args = NULL;
    if (!values) return;
    for (const qn_opt_group *g = c->command->groups; g && g->opts; g++)
        for (const qn_opt *o = g->opts; o->name; o++)
            if (o->type == OPT_list) qn_free(((qn_list *)(void *)((char *)values + g->base + o->at))->at);
}

static void put_choice(const qn_opt *o, int v, qn_buf *out)
{
    const char *p = o->arg;
    for (; v > 0 && strchr(p, '|'); v--) p = strchr(p, '|') + 1;
    qn_buf_json(out, p, strcspn(p, "|"));
}

static void put_list(const qn_list *l, qn_buf *out)
{
    for (int i = 0; i < l->n; i++) {
        qn_buf_putc(out, i ? ',' : '[');
        qn_buf_json(out, l->at[i], strlen(l->at[i]));
    }
    qn_buf_puts(out, l->n ? "]" : "[]");
}

static void put_value(const qn_opt *o, const void *at, qn_buf *out)
{
    const char *s;
    switch (o->type) {
    case OPT_flag: qn_buf_puts(out, *(const bool *)at ? "true" : "false"); break;
    case OPT_int: qn_buf_printf(out, "%d", *(const int *)at); break;
    case OPT_u64: qn_buf_printf(out, "%llu", (unsigned long long)*(const u64 *)at); break;
    case OPT_real: qn_buf_printf(out, "%.9g", *(const double *)at); break;
    case OPT_choice: put_choice(o, *(const int *)at, out); break;
    case OPT_list: put_list(at, out); break;
    case OPT_text:
        s = *(const char *const *)at;
        if (s) qn_buf_json(out, s, strlen(s));
        else qn_buf_puts(out, "null");
    }
}

void qn_options_json(const qn_cli *c, qn_buf *out)
{
    bool any = false;
    qn_buf_putc(out, '{');
    for (const qn_opt_group *g = c->command->groups; g && g->opts; g++)
        for (const qn_opt *o = g->opts; o->name; o++, any = true) {
            qn_buf_printf(out, "%s\"%s\":", any ? "," : "", o->name);
            put_value(o, (const char *)c->values + g->base + o->at, out);
        }
    qn_buf_putc(out, '}');
}

/* jinja_tests.c - what may follow `is`: each row of the table at the end is a test, also for select and its kin. */
#include "text/jinja.h"

#include <string.h>
#include <utf8proc.h>

#define TEST(name) static bool name(qn_jx *x, qn_jv self, const qn_jargs *raw, const qn_jv *a, qn_jv *out)
#define UNUSED (void)x, (void)self, (void)raw, (void)a
#define ANSWER(yes) return UNUSED, *out = qn_jv_bool(yes), true

TEST(t_defined) { ANSWER(!qn_jv_is_undef(self)); }
TEST(t_undefined) { ANSWER(qn_jv_is_undef(self)); }
TEST(t_none) { ANSWER(self.type == JT_none); }
TEST(t_boolean) { ANSWER(self.type == JT_bool); }
TEST(t_true) { ANSWER(self.type == JT_bool && self.b); }
TEST(t_false) { ANSWER(self.type == JT_bool && !self.b); }
TEST(t_integer) { ANSWER(self.type == JT_int || self.type == JT_big); }
TEST(t_float) { ANSWER(self.type == JT_float); }
TEST(t_number) { ANSWER(self.type == JT_int || self.type == JT_float || self.type == JT_bool || self.type == JT_big); }
TEST(t_string) { ANSWER(self.type == JT_str); }
TEST(t_mapping) { ANSWER(self.type == JT_dict); }
TEST(t_escaped) { ANSWER(false); }

/* jinja2 asks for a length and for items: a mapping and an undefined value pass too. */
TEST(t_sequence)
{
    ANSWER(self.type == JT_str || qn_jv_is_seq(self) || self.type == JT_dict || self.type == JT_range ||
           self.type == JT_undef);
}

TEST(t_iterable)
{
    ANSWER(self.type == JT_str || qn_jv_is_seq(self) || self.type == JT_dict || self.type == JT_range ||
           self.type == JT_undef || self.type == JT_gen || self.type == JT_view || self.type == JT_loop);
}

TEST(t_callable) { ANSWER(self.type >= JT_func || self.type == JT_undef); }

static bool all_cased(qn_jx *x, qn_jv v, utf8proc_category_t wrong, qn_jv *out)
{
    qn_jstr s;
    bool any = false, bad = false;
    if (!qn_jv_text(x, v, &s) || !qn_jx_step(x, s.n / 64)) return false;
    for (size_t at = 0; at < s.n && !bad;) {
        u32 cp;
        at += qn_jchar(s.p + at, s.n - at, &cp);
        const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
        bad = c == wrong || c == UTF8PROC_CATEGORY_LT;
        any |= c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL;
    }
    *out = qn_jv_bool(any && !bad);
    return true;
}

TEST(t_lower) { UNUSED; return all_cased(x, self, UTF8PROC_CATEGORY_LU, out); }
TEST(t_upper) { UNUSED; return all_cased(x, self, UTF8PROC_CATEGORY_LL, out); }

static bool divisible(qn_jx *x, qn_jv v, qn_jv by, i64 rest, qn_jv *out)
{
    qn_jv r;
    bool yes;
    if (!qn_jx_binary(x, '%', v, by, &r) || !qn_jv_equal(x, r, qn_jv_int(rest), &yes)) return false;
    *out = qn_jv_bool(yes);
    return true;
}

TEST(t_even) { UNUSED; return divisible(x, self, qn_jv_int(2), 0, out); }
TEST(t_odd) { UNUSED; return divisible(x, self, qn_jv_int(2), 1, out); }
TEST(t_divisibleby) { UNUSED; return divisible(x, self, a[0], 0, out); }

TEST(t_sameas)
{
    bool same = self.type == a[0].type;
    if (same && self.type >= JT_str) same = self.l == a[0].l; /* any of the pointers */
    else if (same && !qn_jv_equal(x, self, a[0], &same)) return false;
    ANSWER(same);
}

static bool compare(qn_jx *x, u16 op, qn_jv v, qn_jv w, qn_jv *out)
{
    bool yes;
    if (!qn_jx_compare(x, op, v, w, &yes)) return false;
    *out = qn_jv_bool(yes);
    return true;
}

TEST(t_in) { UNUSED; return compare(x, 'i', self, a[0], out); }
TEST(t_eq) { UNUSED; return compare(x, QN_JOP2('=', '='), self, a[0], out); }
TEST(t_ne) { UNUSED; return compare(x, QN_JOP2('!', '='), self, a[0], out); }
TEST(t_lt) { UNUSED; return compare(x, '<', self, a[0], out); }
TEST(t_gt) { UNUSED; return compare(x, '>', self, a[0], out); }
TEST(t_le) { UNUSED; return compare(x, QN_JOP2('<', '='), self, a[0], out); }
TEST(t_ge) { UNUSED; return compare(x, QN_JOP2('>', '='), self, a[0], out); }

TEST(t_filter) { ANSWER(self.type == JT_str && qn_jfilter_find(*self.s)); }
TEST(t_test) { ANSWER(self.type == JT_str && qn_jrow_find(qn_jtests, *self.s)); }

const qn_jrow qn_jtests[] = {
    { "!=", t_ne, "other", 1 }, { "<", t_lt, "other", 1 }, { "<=", t_le, "other", 1 }, { "==", t_eq, "other", 1 },
    { ">", t_gt, "other", 1 }, { ">=", t_ge, "other", 1 }, { "boolean", t_boolean, "", 0 },
    { "callable", t_callable, "", 0 }, { "defined", t_defined, "", 0 }, { "divisibleby", t_divisibleby, "num", 1 },
    { "eq", t_eq, "other", 1 }, { "equalto", t_eq, "other", 1 }, { "escaped", t_escaped, "", 0 },
    { "even", t_even, "", 0 }, { "false", t_false, "", 0 }, { "filter", t_filter, "", 0 },
    { "float", t_float, "", 0 }, { "ge", t_ge, "other", 1 }, { "greaterthan", t_gt, "other", 1 },
    { "gt", t_gt, "other", 1 }, { "in", t_in, "seq", 1 }, { "integer", t_integer, "", 0 },
    { "iterable", t_iterable, "", 0 }, { "le", t_le, "other", 1 }, { "lessthan", t_lt, "other", 1 },
    { "lower", t_lower, "", 0 }, { "lt", t_lt, "other", 1 }, { "mapping", t_mapping, "", 0 },
    { "ne", t_ne, "other", 1 }, { "none", t_none, "", 0 }, { "number", t_number, "", 0 }, { "odd", t_odd, "", 0 },
    { "sameas", t_sameas, "other", 1 }, { "sequence", t_sequence, "", 0 }, { "string", t_string, "", 0 },
    { "test", t_test, "", 0 }, { "true", t_true, "", 0 }, { "undefined", t_undefined, "", 0 },
    { "upper", t_upper, "", 0 }, { NULL, NULL, NULL, 0 } };

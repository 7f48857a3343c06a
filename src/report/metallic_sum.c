/* metallic_sum.c - Metallic's analyser, the half that reads: which events count for which section, under which title.
 * Durations are whole microseconds, as in the log. */
#include <string.h>

#include "report/metallic_parts.h"

qn_metallic *qn_metallic_open(qn_err *e) { return qn_new(sizeof(qn_metallic), e); }

void qn_metallic_close(qn_metallic *m)
{
    if (!m) return;
    for (int s = 0; s < N_SUMS; s++) {
        for (size_t i = 0; i < m->groups[s].n; i++) qn_free(m->groups[s].p[i].us.p);
        qn_free(m->groups[s].p);
        qn_table_close(&m->tables[s]);
    }
    qn_arena_close(&m->arena);
    qn_free(m);
}

/* ---- groups -------------------------------------------------------------------------------------------------------- */

static qn_mgroup *group_of(qn_metallic *m, qn_msum sum, qn_str title, qn_err *e)
{
    u32 at = qn_table_get(&m->tables[sum], title.p, title.n);
    if (at != QN_NONE) return &m->groups[sum].p[at];
    const char *copy = qn_arena_strndup(&m->arena, title.p, title.n, e);
    qn_mgroup *g = copy ? QN_RUN_PUSH(&m->groups[sum], e) : NULL;
    if (!g) return NULL;
    at = (u32)(m->groups[sum].n - 1);
    *g = (qn_mgroup){ .title = copy, .order = at, .parent = QN_NONE };
    return qn_table_put(&m->tables[sum], copy, title.n, at, e) == QN_NONE ? NULL : g;
}

static qn_mcount *find_count(const qn_mcounts *c, u32 us)
{
    size_t i = (us * 2654435769u) & (c->cap - 1); /* odd: no two of the low values meet */
    while (c->p[i].n && c->p[i].us != us) i = (i + 1) & (c->cap - 1);
    return &c->p[i];
}

static bool grow_counts(qn_mcounts *c, qn_err *e)
{
    qn_mcounts more = { .n = c->n, .cap = c->cap ? 2 * c->cap : 16 };
    if (!(more.p = qn_new_array(more.cap, sizeof *more.p, e))) return false;
    for (size_t i = 0; i < c->cap; i++)
        if (c->p[i].n) *find_count(&more, c->p[i].us) = c->p[i];
    qn_free(c->p);
    *c = more;
    return true;
}

static bool sample(qn_mgroup *g, u64 us, qn_err *e)
{
    const u32 small = us > UINT32_MAX ? UINT32_MAX : (u32)us;
    if (!g || (4 * g->us.n >= 3 * g->us.cap && !grow_counts(&g->us, e))) return false;
    qn_mcount *c = find_count(&g->us, small);
    g->us.n += c->n == 0;
    c->us = small;
    c->n++;
    if (!g->n || us < g->min_us) g->min_us = us;
    if (us > g->max_us) g->max_us = us;
    g->total_us += us;
    g->n++;
    return true;
}

/* Counted here now, and again when the same event comes. */
static void note_place(const qn_metallic_event *ev, qn_msum sum, const qn_mgroup *g)
{
    qn_metallic_place *p = ev->place;
    if (!p || !g) return;
    assert(p->n < (int)QN_COUNT(p->at));
    p->at[p->n].sum = sum;
    p->at[p->n++].group = g->order;
}

static bool add(qn_metallic *m, qn_msum sum, qn_str title, const qn_metallic_event *ev, qn_err *e)
{
    qn_mgroup *g = group_of(m, sum, title, e);
    note_place(ev, sum, g);
    return sample(g, ev->us, e);
}

static bool count(qn_metallic *m, qn_msum sum, qn_str title, u64 n, qn_err *e)
{
    qn_mgroup *g = group_of(m, sum, title, e);
    if (g) g->count += n;
    return g != NULL;
}

/* a + between + b, until the next call of its kind; NULL text when there is no memory. */
static qn_str joined(qn_buf *b, qn_str x, const char *between, qn_str y)
{
    b->n = 0;
    qn_buf_put(b, x.p, x.n);
    qn_buf_puts(b, between);
    qn_buf_put(b, y.p, y.n);
    return (qn_str){ b->failed ? NULL : b->p, b->n };
}

static bool add_joined(qn_metallic *m, qn_msum sum, qn_str x, const char *between, qn_str y,
                       const qn_metallic_event *ev, qn_err *e)
{
    qn_buf b = { 0 };
    const qn_str title = joined(&b, x, between, y);
    const bool ok = title.p ? add(m, sum, title, ev, e) : qn_fail(e, QN_ENOMEM, "out of memory: a title");
    qn_buf_close(&b);
    return ok;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

static const qn_str unknown = { "<unknown>", 9 };

static qn_str or_unknown(qn_str s) { return s.p ? s : unknown; }

static bool contains(qn_str s, const char *part) { return memmem(s.p, s.n, part, strlen(part)) != NULL; }

static bool starts(qn_str s, const char *with) { return s.n >= strlen(with) && !memcmp(s.p, with, strlen(with)); }

static bool ends(qn_str s, const char *with)
{
    const size_t n = strlen(with);
    return s.n >= n && !memcmp(s.p + s.n - n, with, n);
}

static bool has_sync(qn_str s)
{
    for (size_t i = 0; i + 4 <= s.n; i++)
        if ((s.p[i] | 32) == 's' && (s.p[i + 1] | 32) == 'y' && (s.p[i + 2] | 32) == 'n' && (s.p[i + 3] | 32) ==
            'c') return true;
    return false;
}

static qn_str kind_of(qn_str op)
{
    const char *slash = op.n ? memrchr(op.p, '/', op.n) : NULL;
    qn_str s = slash ? (qn_str){ slash + 1, op.n - (size_t)(slash + 1 - op.p) } : op;
    if (starts(s, "sdpa_block_") && ends(s, "_op")) return (qn_str){ "sdpa", 4 };
    if (starts(s, "mlp_swiglu_block_") && ends(s, "_op")) return (qn_str){ "mlp_swiglu", 10 };
    if (starts(s, "forward_cpu_block_")) return (qn_str){ "forward_cpu", 11 };
    if (ends(s, "_op")) s.n -= 3;
    while (s.n && s.p[s.n - 1] == '_') s.n--;
    return s;
}

/* ---- matrix products ----------------------------------------------------------------------------------------------- */

typedef struct pairs { qn_metallic_pair at[QN_METALLIC_PAIRS]; int n; } pairs;

static bool is(qn_str s, const char *word) { return s.n == strlen(word) && !memcmp(s.p, word, s.n); }

static qn_str value_of(const pairs *p, const char *key)
{
    for (int i = p->n; i-- > 0;) /* the last one counts, as in a dictionary */
        if (is(p->at[i].key, key)) return p->at[i].value;
    return (qn_str){ 0 };
}

/* The older form: key=value between slashes behind "matmul/". */
static void parse_path(qn_str op, pairs *out)
{
    const char *at = memmem(op.p, op.n, "matmul_cache/", 13), *end = op.p + op.n;
    if (!at) at = memmem(op.p, op.n, "matmul/", 7);
    if (!at) return;
    for (at = memchr(at, '/', (size_t)(end - at)); at && at < end;) {
        const char *from = at + 1, *to = memchr(from, '/', (size_t)(end - from));
        qn_str seg = { from, (size_t)((to ? to : end) - from) };
        at = to;
        if (contains(seg, "::")) return;
        const char *mark = memchr(seg.p, '#', seg.n);
        if (mark) seg.n = (size_t)(mark - seg.p);
        const char *eq = memchr(seg.p, '=', seg.n);
        if (!eq || out->n == QN_METALLIC_PAIRS) continue;
        out->at[out->n++] = (qn_metallic_pair){ { seg.p, (size_t)(eq - seg.p) }, { eq + 1, seg.n - (size_t)(eq + 1 - seg.p) } };
    }
}

static const char *const base_keys[] = { "op", "batch", "m", "n", "k", "tA", "tB" };

static bool is_base(qn_str key)
{
    for (size_t i = 0; i < QN_COUNT(base_keys); i++)
        if (is(key, base_keys[i])) return true;
    return is(key, "backend");
}

static int order(qn_str a, qn_str b)
{
    const int c = memcmp(a.p, b.p, qn_minz(a.n, b.n));
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static void shape_of(const pairs *p, qn_buf *out)
{
    for (size_t i = 0; i < QN_COUNT(base_keys); i++) {
        const qn_str v = value_of(p, base_keys[i]);
        qn_buf_printf(out, "%s%s=", i ? " | " : "", base_keys[i]);
        if (v.p) qn_buf_put(out, v.p, v.n);
        else qn_buf_putc(out, '?');
    }
    qn_str last = { "", 0 };
    for (;;) { /* the others by name */
        int next = -1;
        for (int i = 0; i < p->n; i++) {
            if (is_base(p->at[i].key) || order(p->at[i].key, last) <= 0) continue;
            if (next < 0 || order(p->at[i].key, p->at[next].key) < 0) next = i;
        }
        if (next < 0) return;
        last = p->at[next].key;
        qn_buf_puts(out, " | ");
        qn_buf_put(out, last.p, last.n);
        qn_buf_putc(out, '=');
        qn_buf_put(out, p->at[next].value.p, p->at[next].value.n);
    }
}

static bool add_shape(qn_metallic *m, const pairs *p, qn_str backend, const qn_metallic_event *ev, qn_err *e)
{
    qn_buf b = { 0 };
    shape_of(p, &b);
    qn_mgroup *shape = b.failed ? NULL : group_of(m, SUM_shape, (qn_str){ b.p, b.n }, e);
    if (!shape) {
        const bool full = b.failed;
        qn_buf_close(&b);
        return full ? qn_fail(e, QN_ENOMEM, "out of memory: a shape") : false;
    }
    const u32 parent = shape->order;
    shape->total_us += ev->us;
    note_place(ev, SUM_shape, shape);
    qn_buf_putc(&b, '\n'); /* shapes hold none: one key for the pair */
    const size_t at = b.n;
    qn_buf_put(&b, backend.p, backend.n);
    qn_mgroup *g = b.failed ? NULL : group_of(m, SUM_shape_backend, (qn_str){ b.p, b.n }, e);
    if (g && g->parent == QN_NONE) {
        g->parent = parent;
        g->title += at;
    }
    note_place(ev, SUM_shape_backend, g);
    const bool ok = b.failed ? qn_fail(e, QN_ENOMEM, "out of memory: a shape") : sample(g, ev->us, e);
    qn_buf_close(&b);
    return ok;
}

static bool add_matmul(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    pairs p = { .n = 0 };
    for (int i = 0; i < ev->n_data; i++) p.at[p.n++] = ev->data[i];
    if (!value_of(&p, "op").p || !value_of(&p, "backend").p) {
        p.n = 0;
        parse_path(ev->op, &p);
        if (!p.n) return true;
    }
    const qn_str backend = or_unknown(value_of(&p, "backend")), op = or_unknown(value_of(&p, "op"));
    return add_shape(m, &p, backend, ev, e) && add(m, SUM_mm_backend, backend, ev, e) &&
           add_joined(m, SUM_mm_op, op, " @ ", backend, ev, e);
}

/* "k00": "name:count" of a capture, and "dispatches". */
static bool add_capture(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    for (int i = 0; i < ev->n_data; i++) {
        const qn_str key = ev->data[i].key, value = ev->data[i].value;
        const bool all = is(key, "dispatches");
        const char *colon = value.n ? memrchr(value.p, ':', value.n) : NULL;
        if (!all && (!starts(key, "k") || !colon)) continue;
        const qn_str number = all ? value : (qn_str){ colon + 1, value.n - (size_t)(colon + 1 - value.p) };
        char text[24] = "";
        u64 n;
        memcpy(text, number.p, qn_minz(number.n, sizeof text - 1));
        if (!qn_parse_u64(text, &n)) continue;
        if (all) m->dispatches += n;
        else if (!count(m, SUM_foundry, (qn_str){ value.p, (size_t)(colon - value.p) }, n, e)) return false;
    }
    return true;
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

static bool add_gpu(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    const qn_str op = or_unknown(ev->op);
    if (contains(op, "/cb_gpu")) return add(m, SUM_cb_gpu, op, ev, e);
    if (contains(op, "cb_wait") || ends(op, "wait")) return add(m, SUM_wait, op, ev, e);
    return add(m, SUM_gpu, op, ev, e) && (!starts(op, "foundry_capture#") || add_capture(m, ev, e)) &&
           add_matmul(m, ev, e) &&
           add(m, SUM_gpu_kind, kind_of(op), ev, e);
}

static bool add_internal(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    const qn_str parent = or_unknown(ev->parent), kernel = or_unknown(ev->kernel);
    return add(m, SUM_parent, parent, ev, e) && add_joined(m, SUM_parent_op, parent, " :: ", kernel, ev, e) &&
           add(m, SUM_kernel, kernel, ev, e);
}

static bool add_selection(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    const qn_str op = or_unknown(ev->op), backend = or_unknown(ev->backend);
    qn_buf b = { 0 };
    const qn_str both = joined(&b, op, " backend=", backend);
    const bool ok = both.p && count(m, SUM_backend, backend, 1, e) && count(m, SUM_reason, or_unknown(ev->reason), 1, e) &&
                    count(m, SUM_op_backend, both, 1, e);
    const bool full = !both.p;
    qn_buf_close(&b);
    return ok || (full ? qn_fail(e, QN_ENOMEM, "out of memory: a title") : false);
}

static bool add_again(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    for (int i = 0; i < ev->place->n; i++) {
        qn_mgroup *g = &m->groups[ev->place->at[i].sum].p[ev->place->at[i].group];
        if (ev->place->at[i].sum == SUM_shape) g->total_us += ev->us; /* its backends have the samples */
        else if (!sample(g, ev->us, e)) return false;
        g->count += ev->place->at[i].sum == SUM_type;
    }
    m->events++;
    return true;
}

bool qn_metallic_add(qn_metallic *m, const qn_metallic_event *ev, qn_err *e)
{
    if (ev->place && ev->place->n) return add_again(m, ev, e);
    qn_mgroup *type = group_of(m, SUM_type, (qn_str){ ev->type, strlen(ev->type) }, e);
    if (!type) return false;
    m->events++;
    type->count++;
    if (ev->timed) {
        const qn_str name = ev->kernel.n ? ev->kernel : ev->op;
        note_place(ev, SUM_type, type);
        if (!sample(type, ev->us, e)) return false;
        if (has_sync(name) && !add(m, SUM_sync, (qn_str){ "sync kernels", 12 }, ev, e)) return false;
        if (!strcmp(ev->type, "InternalKernelCompleted")) return add_internal(m, ev, e);
        if (!strcmp(ev->type, "GpuOpCompleted")) return add_gpu(m, ev, e);
    }
    return strcmp(ev->type, "KernelBackendSelected") || add_selection(m, ev, e);
}

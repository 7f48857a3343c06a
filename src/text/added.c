/* added.c - finds added tokens in a text: leftmost first, then longest. A trie over bytes; its root is a table, so that the
 * bytes that begin no token cost one look each. */
#include "text/pipeline.h"

/* Nodes 0..255 are the root's children, by byte. Others are lists of siblings. value: QN_NONE if no token ends here. */
struct qn_trie_node { u32 child, sibling, value; u8 byte; };

static u32 new_node(qn_trie *t, u8 byte, qn_err *e)
{
    if (t->n == t->cap) {
        const size_t cap = t->cap ? t->cap * 2 : 512;
        if (cap >= QN_NONE) return qn_fail(e, QN_EFORMAT, "too many added tokens"), QN_NONE;
        struct qn_trie_node *v = qn_resize(t->nodes, cap * sizeof *v, e);
        if (!v) return QN_NONE;
        t->nodes = v;
        t->cap = cap;
    }
    t->nodes[t->n] = (struct qn_trie_node){ .child = QN_NONE, .sibling = QN_NONE, .value = QN_NONE, .byte = byte };
    return (u32)t->n++;
}

static u32 child_of(const qn_trie *t, u32 node, u8 byte)
{
    u32 i = t->nodes[node].child;
    while (i != QN_NONE && t->nodes[i].byte != byte) i = t->nodes[i].sibling;
    return i;
}

bool qn_trie_add(qn_trie *t, qn_str text, u32 value, qn_err *e)
{
    if (text.n == 0) return true;
    for (int i = 0; t->n < 256; i++) {
        if (new_node(t, (u8)i, e) == QN_NONE) return false;
    }
    u32 node = (u8)text.p[0];
    for (size_t i = 1; i < text.n; i++) {
        u32 next = child_of(t, node, (u8)text.p[i]);
        if (next == QN_NONE) {
            next = new_node(t, (u8)text.p[i], e);
            if (next == QN_NONE) return false;
            t->nodes[next].sibling = t->nodes[node].child;
            t->nodes[node].child = next;
        }
        node = next;
    }
    if (t->nodes[node].value == QN_NONE) t->nodes[node].value = value;
    return true;
}

void qn_trie_close(qn_trie *t) { qn_free(t->nodes); }

static bool is_allowed(const qn_added *x, size_t begin, size_t end, qn_allow allow)
{
    if (!x->control) return true;
    if (!allow.parse) return false;
    for (size_t i = begin; allow.marks && i < end; i++) {
        if (allow.marks[i]) return false;
    }
    return true;
}

/* The longest allowed token at s + at; *stop is where it ends. */
static const qn_added *longest(const qn_trie *t, const qn_added *added, const char *s, size_t n, size_t at, qn_allow allow,
                               size_t *stop)
{
    const qn_added *best = NULL;
    u32 node = (u8)s[at];
    for (size_t end = at + 1; node != QN_NONE; end++) {
        const u32 value = t->nodes[node].value;
        if (value != QN_NONE && is_allowed(&added[value], at, end, allow)) {
            best = &added[value];
            *stop = end;
        }
        node = end < n ? child_of(t, node, (u8)s[end]) : QN_NONE;
    }
    return best;
}

/* Stands the token for itself, with no letter at either side? */
static bool is_single(const char *s, size_t n, size_t begin, size_t end)
{
    u32 cp;
    if (begin > 0) {
        qn_char_prev(s, begin, &cp);
        if (qn_is_word(cp)) return false;
    }
    if (end == n) return true;
    qn_char_next(s + end, n - end, &cp);
    return !qn_is_word(cp);
}

void qn_added_next(const qn_trie *t, const qn_added *added, const char *s, size_t n, size_t at, qn_allow allow, qn_found *found)
{
    *found = (qn_found){ .begin = n, .end = n };
    const size_t start = at;
    for (; t->n > 0 && at < n; at++) {
        const struct qn_trie_node *root = &t->nodes[(u8)s[at]];
        if (root->child == QN_NONE && root->value == QN_NONE) continue;
        size_t begin = at, end = at;
        const qn_added *x = longest(t, added, s, n, at, allow, &end);
        if (!x) continue;
        u32 cp;
        if (x->single_word && !is_single(s, n, begin, end)) {
            at = end - 1;
            continue;
        }
        while (x->lstrip && begin > start) {
            const size_t len = qn_char_prev(s, begin, &cp);
            if (!qn_is_space(cp) || begin - start < len) break;
            begin -= len;
        }
        while (x->rstrip && end < n) {
            const size_t len = qn_char_next(s + end, n - end, &cp);
            if (!qn_is_space(cp)) break;
            end += len;
        }
        *found = (qn_found){ .begin = begin, .end = end, .token = x };
        return;
    }
}

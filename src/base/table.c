/* table.c - open addressing with linear probing, at most three quarters full. */
#include "base/table.h"

#include <string.h>

#include "base/mem.h"

struct qn_slot { const char *key; size_t n; u64 hash; u32 value; }; /* key NULL: empty */

u64 qn_hash(const void *p, size_t n, u64 seed)
{
    const u8 *b = p;
    u64 h = seed ^ (n * 0x9E3779B97F4A7C15u);
    for (; n >= 8; n -= 8, b += 8) {
        u64 w;
        memcpy(&w, b, 8);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    u64 tail = 0;
    memcpy(&tail, b, n);
    h = (h ^ tail) * 0xD6E8FEB86659FD93u;
    h ^= h >> 29;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

static struct qn_slot *find(const qn_table *t, const char *key, size_t n, u64 hash)
{
    for (size_t i = (size_t)hash & (t->cap - 1);; i = (i + 1) & (t->cap - 1)) {
        struct qn_slot *s = &t->slots[i];
        if (!s->key || (s->hash == hash && s->n == n && memcmp(s->key, key, n) == 0)) return s;
    }
}

bool qn_table_reserve(qn_table *t, size_t n, qn_err *e)
{
    if (n < t->cap / 4 * 3) return true;
    size_t cap = t->cap ? t->cap : 16;
    while (n >= cap / 4 * 3) {
        if (!qn_mul(cap, 2, &cap)) return qn_fail(e, QN_ENOMEM, "out of memory: table of %zu entries", n);
    }
    qn_table bigger = { .slots = qn_new_array(cap, sizeof *t->slots, e), .n = t->n, .cap = cap };
    if (!bigger.slots) return false;
    for (size_t i = 0; i < t->cap; i++) {
        const struct qn_slot *s = &t->slots[i];
        if (s->key) *find(&bigger, s->key, s->n, s->hash) = *s;
    }
    qn_free(t->slots);
    *t = bigger;
    return true;
}

u32 qn_table_put(qn_table *t, const char *key, size_t n, u32 value, qn_err *e)
{
    if (!qn_table_reserve(t, t->n + 1, e)) return QN_NONE;
    const u64 hash = qn_hash(key, n, 0);
    struct qn_slot *s = find(t, key, n, hash);
    if (!s->key) {
        *s = (struct qn_slot){ .key = key, .n = n, .hash = hash, .value = value };
        t->n++;
    }
    return s->value;
}

u32 qn_table_get(const qn_table *t, const char *key, size_t n)
{
    if (t->cap == 0) return QN_NONE;
    const struct qn_slot *s = find(t, key, n, qn_hash(key, n, 0));
    return s->key ? s->value : QN_NONE;
}

void qn_table_close(qn_table *t)
{
    qn_free(t->slots);
    *t = (qn_table){ 0 };
}

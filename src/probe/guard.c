/* guard.c - operands in memory of their own. A flush operand ends where an unmapped page begins, so reading one byte too far
 * is a crash and not luck; the other kind begins one element behind a cache line, so nothing is aligned by luck either. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "probe/case.h"

#define CANARY 0xA5
#define MARGIN 256 /* canary bytes before an operand, and behind one that is not flush */

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* As an engine has it: a mapping of its own, on huge pages. */
static void *plain_operand(qn_case *c, qn_operand *o, const char *name, size_t bytes, qn_use use)
{
    void *p = qn_pages_new(bytes + 1, NULL);
    if (!p) {
        c->failed = true;
        return NULL;
    }
    c->n_operands++;
    *o = (qn_operand){ .name = name, .p = p, .bytes = bytes, .use = use, .map = p, .map_bytes = bytes + 1 };
    return p;
}

void *qn_case_operand(qn_case *c, const char *name, size_t n, size_t size, qn_use use)
{
    assert(c->n_operands < QN_OPERANDS);
    qn_operand *o = &c->operand[c->n_operands];
    const size_t page = page_size(), bytes = n * size;
    if (c->timed) return plain_operand(c, o, name, bytes, use);
    o->usable = (bytes + 2 * MARGIN + page - 1) / page * page;
    o->map_bytes = o->usable + page;
    o->saved = qn_new(bytes + 1, NULL);
    void *map = mmap(NULL, o->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!o->saved || map == MAP_FAILED || mprotect((u8 *)map + o->usable, page, PROT_NONE)) {
        if (map != MAP_FAILED) munmap(map, o->map_bytes);
        qn_free(o->saved);
        o->saved = NULL;
        c->failed = true;
        return NULL;
    }
    c->n_operands++;
    o->map = map;
    memset(o->map, CANARY, o->usable);
    o->name = name;
    o->bytes = bytes;
    o->use = use;
    o->p = c->flush ? o->map + o->usable - bytes : o->map + MARGIN + size % 64;
    return o->p;
}

void qn_case_close(qn_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        if (c->timed) qn_pages_free(c->operand[i].map, c->operand[i].map_bytes);
        else munmap(c->operand[i].map, c->operand[i].map_bytes);
        qn_free(c->operand[i].saved);
    }
    c->n_operands = 0;
}

void qn_case_reset(qn_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        qn_operand *o = &c->operand[i];
        if (o->use == USE_out) memset(o->p, 0xFF, o->bytes); /* NaN, as a float and as a half */
        else memcpy(o->p, o->saved, o->bytes);
    }
}

static bool all_canary(const u8 *p, const u8 *end)
{
    for (; p < end; p++)
        if (*p != CANARY) return false;
    return true;
}

const char *qn_case_damage(const qn_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        const qn_operand *o = &c->operand[i];
        if (!all_canary(o->map, o->p) || !all_canary(o->p + o->bytes, o->map + o->usable)) return o->name;
        if (o->use == USE_in && memcmp(o->p, o->saved, o->bytes)) return o->name;
    }
    return NULL;
}

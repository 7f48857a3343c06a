/* mem.h - every byte that quern allocates comes through here, so that one counter sees it and a test can make the Nth
 * allocation fail. Libraries that take an allocator (yyjson, pcre2) get this one too. */
#ifndef QN_MEM_H
#define QN_MEM_H

#include "base/err.h"

/* All three set e (QN_ENOMEM, with the size) and return NULL when there is no memory. new is zeroed. e may be NULL here. */
void *qn_alloc(size_t bytes, qn_err *e);
void *qn_new(size_t bytes, qn_err *e);
void *qn_resize(void *p, size_t bytes, qn_err *e);
/* n * size, checked. Zeroed. */
void *qn_new_array(size_t n, size_t size, qn_err *e);
char *qn_strdup(const char *s, qn_err *e);
char *qn_strndup(const char *s, size_t n, qn_err *e);
/* qn_free is public: quern.h */

/* Page-aligned memory of its own mapping, zeroed, on huge pages where the system gives them. */
void *qn_pages_new(size_t bytes, qn_err *e);
void qn_pages_free(void *p, size_t bytes);

/* An arena: many small things of one lifetime. Zeroed struct = empty arena. Pointers stay where they are. */
typedef struct qn_arena { struct qn_arena_block *last; } qn_arena;
void *qn_arena_new(qn_arena *a, size_t bytes, qn_err *e);                  /* zeroed, 64-byte aligned if bytes >= 64 */
char *qn_arena_strndup(qn_arena *a, const char *s, size_t n, qn_err *e);
void qn_arena_close(qn_arena *a);

/* Tests: allocation number n from now (1 = the next) fails; with forever, all after it too. 0 switches this off. */
void qn_mem_fail_at(u64 n, bool forever);
u64 qn_mem_count(void); /* allocations so far */

/* Resident and peak resident bytes of the process (/proc/self/status); 0 if unknown. */
void qn_mem_process(u64 *resident, u64 *peak);

/* Bytes that may still be taken: what the system has available, within the limits of cgroup and address space; 0: unknown. */
u64 qn_mem_available(void);

#endif

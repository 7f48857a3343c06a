/* shelf.h - runs for commands: from trace files, from the store by name, and new ones into the store. */
#ifndef QN_SHELF_H
#define QN_SHELF_H

#include "cli/command.h"
#include "report/store.h"

typedef struct qn_shelf { qn_run **p; size_t n; } qn_shelf; /* zeroed: empty */

/* The store of this user ($XDG_STATE_HOME/quern/runs.sqlite), made if it is not there. Says when a damaged one was
 * set aside. */
qn_store *qn_shelf_store(const qn_cli *c, qn_err *e);
/* Appends the runs of a file, or with a name that begins with @ the run of the store (store.h has the names). */
bool qn_shelf_add(const qn_cli *c, qn_shelf *s, const char *name, qn_err *e);
void qn_shelf_close(qn_shelf *s);
/* After a traced run: its trace becomes an entry of the store. Never fails the command: a note says what went
 * wrong. */
void qn_shelf_record(const qn_cli *c, const char *trace_path);

/* Columns of the terminal behind stdout; 0: it is none. */
int qn_cli_width(void);
/* A result to a file, whole or not at all, or to stdout when path is NULL. Closes b; returns an exit code. */
int qn_cli_deliver(const qn_cli *c, qn_buf *b, const char *path);

#endif

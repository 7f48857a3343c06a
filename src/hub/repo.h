/* repo.h - a Hugging Face repository: its name as typed, and its folder in the cache that all Hugging Face programs share:
 *   CACHE/models--ORG--REPO/blobs/ETAG            contents, named by their hash
 *   CACHE/models--ORG--REPO/refs/REV              a commit, as text
 *   CACHE/models--ORG--REPO/snapshots/COMMIT/FILE relative links into blobs
 *   CACHE/.locks/models--ORG--REPO/ETAG.lock      held (flock) while a blob is written */
#ifndef QN_REPO_H
#define QN_REPO_H

#include "base/err.h"

typedef struct qn_repo { char *id, *file, *rev; } qn_repo; /* file NULL: none named; rev NULL: "main" is meant */

/* "[hf:]ORG/REPO[/FILE][@REV]"; with hf: also a repository without ORG. Refuses what Hugging Face would not accept. */
bool qn_repo_parse(qn_repo *r, const char *name, qn_err *e);
void qn_repo_close(qn_repo *r);

typedef struct qn_repo_dir { char *cache, *folder, *dir; } qn_repo_dir; /* folder: "models--ORG--REPO" */
bool qn_repo_dir_open(qn_repo_dir *d, const char *id, qn_err *e);
void qn_repo_dir_close(qn_repo_dir *d);

/* The snapshot folder that rev stands for. No rev: main, or else the newest there is. NULL with e->code QN_OK: not there. */
char *qn_repo_snapshot(const qn_repo_dir *d, const char *rev, qn_err *e);

bool qn_is_commit(const char *s); /* 40 hexadecimal digits */

/* Makes snapshots/COMMIT/FILE point to blobs/ETAG, and refs/REV say COMMIT; nothing is written where that is so already. */
bool qn_repo_link(const qn_repo_dir *d, const char *commit, const char *file, const char *etag, qn_err *e);
bool qn_repo_ref(const qn_repo_dir *d, const char *rev, const char *commit, qn_err *e);

#endif

/* blob.h - the bytes of one file of a repository, brought into its blobs folder under the name of their hash. */
#ifndef QN_BLOB_H
#define QN_BLOB_H

#include "hub/net.h"
#include "hub/repo.h"

typedef struct qn_blob {
    const char *file;  /* its name in the repository */
    char *url;
    char etag[160];    /* the blob's name; 64 hexadecimal digits are the SHA-256 of its bytes */
    i64 size;          /* -1: the server did not say */
    u64 fetched;       /* bytes that came over the wire for it */
} qn_blob;

/* Asks the server for etag and size. b->file and b->url are set. where: the repository, for messages. */
bool qn_blob_ask(qn_blob *b, qn_net *n, const char *where, qn_err *e);

/* True if the blob lies there already with the right size. */
bool qn_blob_is_here(const qn_blob *b, const qn_repo_dir *d);

/* Brings the bytes: resumes what is there, tries again when the connection breaks, checks hash and size, renames when it is
 * right. n->done grows with every byte and stands at its start + size in the end. */
bool qn_blob_bring(qn_blob *b, qn_net *n, const qn_repo_dir *d, qn_err *e);

/* A status that is no success, in words. */
bool qn_status_fail(const qn_answer *a, const qn_net *n, const char *where, const char *file, qn_err *e);

#endif

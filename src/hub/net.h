/* net.h - HTTP(S) requests to a hub, by libcurl. One object, one connection cache, one request at a time. */
#ifndef QN_NET_H
#define QN_NET_H

#include "base/buf.h"
#include "base/err.h"

typedef struct qn_net {
    void *curl;            /* CURL */
    char *endpoint;        /* "https://huggingface.co": HF_ENDPOINT without a slash at its end */
    char *origin;          /* scheme, host and port of it: who may see the token */
    char *auth;            /* "Authorization: Bearer ..."; NULL: no token */
    char *authorities;     /* SSL_CERT_FILE: certificates to trust; NULL: the system's */
    bool started;          /* curl_global_init was called */
    qn_progress_fn progress;
    void *user;
    const char *what;      /* for progress */
    u64 done, total;       /* bytes that the share is made of */
} qn_net;

/* progress may be NULL. Reads HF_ENDPOINT, HF_TOKEN and SSL_CERT_FILE. */
bool qn_net_open(qn_net *n, qn_progress_fn progress, void *user, qn_err *e);
void qn_net_close(qn_net *n);

/* Shows progress, and tells whether to go on: false with QN_ECANCELLED. */
bool qn_net_tick(const qn_net *n, qn_err *e);
/* Sleeps in short naps, ticking. */
bool qn_net_wait(const qn_net *n, int ms, qn_err *e);

/* What came back. Texts are empty, numbers -1, where the server said nothing. */
typedef struct qn_answer {
    long status;
    char etag[160], linked_etag[160], commit[64], problem[64]; /* problem: X-Error-Code */
    i64 size, linked_size, range_from, range_size;             /* range_size: of the whole file */
    i64 retry_after;       /* seconds */
    bool again;            /* it failed in a way that may be over soon */
    bool redirect;         /* the answer is the redirect itself (head only) */
} qn_answer;

/* Where bytes of the body go; false stops the request (the sink has set e). Called for 2xx bodies only, after the headers:
 * a->status and the range are there. */
typedef bool (*qn_sink)(void *user, const qn_answer *a, const void *p, size_t n, qn_err *e);

/* All of these are true when the server answered, whatever the status; false on no answer, a broken one, or cancelling.
 * head stops at the first redirect that leads to another host or already tells the file's hash. */
bool qn_net_head(qn_net *n, const char *url, qn_answer *a, qn_err *e);
bool qn_net_get(qn_net *n, const char *url, u64 from, qn_sink sink, void *user, qn_answer *a, qn_err *e);
/* A small text, whole; tried a few times. */
bool qn_net_text(qn_net *n, const char *url, size_t most, qn_buf *out, qn_answer *a, qn_err *e);

/* Appends s with everything but letters, digits and -._~ as %XX; keep: one more character that stays, 0 for none. */
void qn_url_put(qn_buf *b, const char *s, char keep);

#endif

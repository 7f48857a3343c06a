/* net.c - one HTTP request with its redirects. Redirects are followed here, not by libcurl, because each hop decides two things:
 * whether the token may go there (only to the endpoint's own host), and whether the answer is already enough. Knows headers of
 * Hugging Face, no files: what to do with bytes is the sink's business, what to do with a status the caller's. */
#include "hub/net.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

#define HOPS 10
#define ERROR_BODY_MOST (1 << 20) /* bytes of an error page that are read and thrown away */

typedef struct request {
    qn_net *net;
    qn_answer *a;
    const char *url;
    bool head;
    u64 from;
    qn_sink sink;
    void *user;
    qn_buf *text;        /* where the sink puts a whole text; emptied before each try */
    u64 skipped;         /* of an error page */
    bool stopped;        /* by the sink or the user: e is set */
    qn_err *e;
    char why[CURL_ERROR_SIZE];
} request;

/* ---- the object */

static void *curl_malloc(size_t n) { return qn_alloc(n, NULL); }
static void *curl_realloc(void *p, size_t n) { return qn_resize(p, n, NULL); }
static void *curl_calloc(size_t n, size_t size) { return qn_new_array(n, size, NULL); }
static char *curl_dup(const char *s) { return qn_strdup(s, NULL); }

/* "scheme://host:port", the port always there; NULL: not a URL that we speak. */
static char *origin_of(const char *url, qn_err *e)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL, *out = NULL;
    qn_buf b = { 0 };
    if (u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_SCHEME, &scheme, 0)
        && !curl_url_get(u, CURLUPART_HOST, &host, 0) && !curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)
        && (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0)) {
        for (char *p = host; *p; p++)
            if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
        qn_buf_printf(&b, "%s://%s:%s", scheme, host, port);
        qn_buf_take(&b, &out, NULL, e);
    } else qn_fail(e, QN_EIO, "%s: not an http or https address", url);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return out;
}

static bool read_settings(qn_net *n, qn_err *e)
{
    const char *end = getenv("HF_ENDPOINT"), *token = getenv("HF_TOKEN"), *trust = getenv("SSL_CERT_FILE");
    if (!end || !end[0]) end = "https://huggingface.co";
    size_t len = strlen(end);
    while (len && end[len - 1] == '/') len--;
    n->endpoint = qn_strndup(end, len, e);
    n->origin = n->endpoint ? origin_of(n->endpoint, e) : NULL;
    if (!n->origin) return n->endpoint && e->code != QN_ENOMEM ? qn_fail_within(e, "HF_ENDPOINT") : false;
    if (trust && trust[0] && !(n->authorities = qn_strdup(trust, e))) return false;
    if (!token) return true;
    while (*token == ' ' || *token == '\n') token++;
    const size_t n_token = strcspn(token, " \r\n");
    if (n_token == 0) return true;
    for (size_t i = 0; i < n_token; i++)
        if (token[i] < 0x21 || token[i] > 0x7E) return qn_fail(e, QN_EUSAGE, "HF_TOKEN holds bytes that no token has");
    qn_buf b = { 0 };
    qn_buf_puts(&b, "Authorization: Bearer ");
    qn_buf_put(&b, token, n_token);
    return qn_buf_take(&b, &n->auth, NULL, e);
}

bool qn_net_open(qn_net *n, qn_progress_fn progress, void *user, qn_err *e)
{
    *n = (qn_net){ .progress = progress, .user = user, .what = "connecting" };
    n->started = curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_malloc, qn_free, curl_realloc, curl_dup, curl_calloc) == CURLE_OK;
    n->curl = n->started ? curl_easy_init() : NULL;
    if (!n->curl) qn_fail(e, QN_ENOMEM, "the network library does not start");
    else if (read_settings(n, e)) return true;
    qn_net_close(n);
    return false;
}

void qn_net_close(qn_net *n)
{
    if (n->curl) curl_easy_cleanup(n->curl);
    if (n->started) curl_global_cleanup();
    qn_free(n->endpoint);
    qn_free(n->origin);
    qn_free(n->auth);
    qn_free(n->authorities);
    *n = (qn_net){ 0 };
}

bool qn_net_tick(const qn_net *n, qn_err *e)
{
    const double share = n->total ? (double)n->done / (double)n->total : 0;
    if (!n->progress || n->progress(n->user, n->what, share > 1 ? 1 : share)) return true;
    return qn_fail(e, QN_ECANCELLED, "cancelled");
}

bool qn_net_wait(const qn_net *n, int ms, qn_err *e)
{
    for (; ms > 0; ms -= 50) {
        nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000000 }, NULL);
        if (!qn_net_tick(n, e)) return false;
    }
    return true;
}

/* ---- what the server says */

static void keep_text(char *out, size_t cap, const char *v, size_t n)
{
    if (n < cap) {
        memcpy(out, v, n);
        out[n] = '\0';
    }
}

/* W/"abc" and "abc" are abc. */
static void keep_etag(char *out, size_t cap, const char *v, size_t n)
{
    if (n > 2 && v[0] == 'W' && v[1] == '/') v += 2, n -= 2;
    if (n >= 2 && v[0] == '"' && v[n - 1] == '"') v++, n -= 2;
    keep_text(out, cap, v, n);
}

static i64 number(const char *v, size_t n)
{
    char text[24];
    u64 out;
    if (n == 0 || n >= sizeof text) return -1;
    memcpy(text, v, n);
    text[n] = '\0';
    return qn_parse_u64(text, &out) && out <= INT64_MAX ? (i64)out : -1;
}

/* "bytes 100-199/1000" */
static void keep_range(qn_answer *a, const char *v, size_t n)
{
    const char *end = v + n, *dash = memchr(v, '-', n), *slash = memchr(v, '/', n);
    if (n < 7 || strncasecmp(v, "bytes ", 6) != 0 || !dash || !slash || dash > slash) return;
    a->range_from = number(v + 6, (size_t)(dash - v - 6));
    a->range_size = number(slash + 1, (size_t)(end - slash - 1));
}

static void keep_header(qn_answer *a, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n);
    if (!colon) return;
    const size_t n_name = (size_t)(colon - line);
    const char *v = colon + 1, *end = line + n;
    while (v < end && (*v == ' ' || *v == '\t')) v++;
    while (end > v && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
    const size_t n_v = (size_t)(end - v);
#define IS(text) (n_name == sizeof text - 1 && strncasecmp(line, text, sizeof text - 1) == 0)
    if (IS("etag")) keep_etag(a->etag, sizeof a->etag, v, n_v);
    else if (IS("x-linked-etag")) keep_etag(a->linked_etag, sizeof a->linked_etag, v, n_v);
    else if (IS("x-linked-size")) a->linked_size = number(v, n_v);
    else if (IS("x-repo-commit")) keep_text(a->commit, sizeof a->commit, v, n_v);
    else if (IS("x-error-code")) keep_text(a->problem, sizeof a->problem, v, n_v);
    else if (IS("content-length")) a->size = number(v, n_v);
    else if (IS("content-range")) keep_range(a, v, n_v);
    else if (IS("retry-after")) a->retry_after = number(v, n_v);
#undef IS
}

static size_t on_header(char *p, size_t size, size_t n, void *user)
{
    request *r = user;
    qn_answer *a = r->a;
    if (n >= 5 && strncmp(p, "HTTP/", 5) == 0) { /* a new answer: what a hop said of itself is over */
        a->size = a->range_from = a->range_size = a->retry_after = -1;
        a->etag[0] = a->problem[0] = '\0';
    }
    keep_header(a, p, n);
    return size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *user)
{
    request *r = user;
    (void)size; /* always 1 */
    curl_easy_getinfo(r->net->curl, CURLINFO_RESPONSE_CODE, &r->a->status);
    if (r->a->status / 100 != 2 || !r->sink) {
        r->skipped += n;
        return r->skipped > ERROR_BODY_MOST ? CURL_WRITEFUNC_ERROR : n;
    }
    if (r->sink(r->user, r->a, p, n, r->e)) return n;
    r->stopped = true;
    return CURL_WRITEFUNC_ERROR;
}

static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    request *r = user;
    (void)a, (void)b, (void)c, (void)d;
    if (!r->stopped && !qn_net_tick(r->net, r->e)) r->stopped = true;
    return r->stopped;
}

/* ---- one hop, and the chain of them */

/* Failures that another try may not meet. */
static bool may_pass(CURLcode c)
{
    switch ((int)c) {
    case CURLE_COULDNT_CONNECT: case CURLE_PARTIAL_FILE: case CURLE_OPERATION_TIMEDOUT: case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR: case CURLE_RECV_ERROR: case CURLE_HTTP2: case CURLE_HTTP2_STREAM: case CURLE_SSL_CONNECT_ERROR:
        return true;
    default: return false;
    }
}

static void set_up(CURL *c, request *r)
{
    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, r->url);
    curl_easy_setopt(c, CURLOPT_NOBODY, r->head ? 1L : 0L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "quern/" QN_VERSION);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 15L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L); /* a peer that sends nothing for this long is gone */
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 30L);
    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (r->net->authorities) curl_easy_setopt(c, CURLOPT_CAINFO, r->net->authorities);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->why);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, r);
}

/* Sends one request. *next (yours, curl_free) is where a redirect leads; NULL: it is the last answer. */
static bool hop(request *r, bool trusted, char **next)
{
    CURL *c = r->net->curl;
    struct curl_slist *headers = NULL;
    char range[32], *to = NULL;
    set_up(c, r);
    if (r->from) {
        snprintf(range, sizeof range, "%llu-", (unsigned long long)r->from);
        curl_easy_setopt(c, CURLOPT_RANGE, range);
    }
    if (trusted && r->net->auth) {
        headers = curl_slist_append(NULL, r->net->auth);
        if (!headers) return qn_fail(r->e, QN_ENOMEM, "out of memory");
        curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    }
    r->why[0] = '\0';
    const CURLcode got = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &r->a->status);
    if (got == CURLE_OK) curl_easy_getinfo(c, CURLINFO_REDIRECT_URL, &to);
    curl_slist_free_all(headers);
    if (r->stopped) return false;
    if (got != CURLE_OK && got != CURLE_WRITE_ERROR) { /* a write error is ours: an error page that went on and on */
        r->a->again = may_pass(got);
        return qn_fail(r->e, got == CURLE_OUT_OF_MEMORY ? QN_ENOMEM : QN_EIO, "%s",
                       r->why[0] ? r->why : curl_easy_strerror(got));
    }
    if (to && !(*next = qn_strdup(to, r->e))) return false;
    return true;
}

/* Is this redirect, met by a head, answer enough? */
static bool says_enough(const request *r, const char *origin)
{
    return r->head && (r->a->linked_etag[0] || strcmp(origin, r->net->origin) != 0);
}

static bool follow(request *r, const char *url)
{
    char *at = qn_strdup(url, r->e), *origin = at ? origin_of(at, r->e) : NULL;
    bool ok = origin != NULL, more = ok;
    for (int hops = 0; ok && more; hops++) {
        char *next = NULL, *next_origin = NULL;
        r->url = at;
        ok = hop(r, strcmp(origin, r->net->origin) == 0, &next);
        more = ok && next;
        if (more && hops == HOPS) ok = qn_fail(r->e, QN_EIO, "%s: redirected %d times, which looks like a loop", url, HOPS);
        if (ok && more) ok = (next_origin = origin_of(next, r->e)) != NULL;
        if (ok && more && strncmp(origin, "https", 5) == 0 && strncmp(next_origin, "https", 5) != 0)
            ok = qn_fail(r->e, QN_EIO, "%s: redirected from https to http, which is refused", url);
        if (ok && more && says_enough(r, next_origin)) {
            r->a->redirect = true;
            more = false;
        }
        if (ok && more) {
            qn_free(at);
            qn_free(origin);
            at = next, origin = next_origin;
        } else {
            qn_free(next);
            qn_free(next_origin);
        }
    }
    r->url = NULL;
    qn_free(at);
    qn_free(origin);
    if (ok) r->a->again = r->a->status == 429 || r->a->status == 408 || r->a->status / 100 == 5;
    return ok;
}

static void clear(qn_answer *a)
{
    *a = (qn_answer){ .size = -1, .linked_size = -1, .range_from = -1, .range_size = -1, .retry_after = -1 };
}

/* Short requests are tried again here; a file's bytes are resumed by those who keep them. */
static bool patiently(request *r, const char *url)
{
    for (int attempt = 0;; attempt++) {
        clear(r->a);
        if (r->text) r->text->n = 0;
        const bool ok = follow(r, url);
        if (r->stopped || attempt == 3 || !r->a->again) return ok;
        const int ms = r->a->retry_after > 0 ? (int)(r->a->retry_after > 10 ? 10000 : r->a->retry_after * 1000) : 200 << attempt;
        if (!qn_net_wait(r->net, ms, r->e)) return false;
    }
}

bool qn_net_head(qn_net *n, const char *url, qn_answer *a, qn_err *e)
{
    request r = { .net = n, .a = a, .head = true, .e = e };
    return patiently(&r, url);
}

bool qn_net_get(qn_net *n, const char *url, u64 from, qn_sink sink, void *user, qn_answer *a, qn_err *e)
{
    request r = { .net = n, .a = a, .from = from, .sink = sink, .user = user, .e = e };
    clear(a);
    return follow(&r, url);
}

typedef struct text_sink { qn_buf *out; size_t most; const char *url; } text_sink;

static bool keep_body(void *user, const qn_answer *a, const void *p, size_t n, qn_err *e)
{
    const text_sink *t = user;
    (void)a;
    if (n > t->most - t->out->n) return qn_fail(e, QN_EFORMAT, "%s: the answer is longer than %zu bytes", t->url, t->most);
    qn_buf_put(t->out, p, n);
    return !t->out->failed || qn_fail(e, QN_ENOMEM, "out of memory after %zu bytes of an answer", t->out->n);
}

bool qn_net_text(qn_net *n, const char *url, size_t most, qn_buf *out, qn_answer *a, qn_err *e)
{
    request r = { .net = n, .a = a, .sink = keep_body, .user = &(text_sink){ out, most, url }, .text = out, .e = e };
    return patiently(&r, url);
}

void qn_url_put(qn_buf *b, const char *s, char keep)
{
    for (; *s; s++) {
        const char c = *s;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
        if (plain || (keep && c == keep)) qn_buf_putc(b, c);
        else qn_buf_printf(b, "%%%02X", (unsigned char)c);
    }
}

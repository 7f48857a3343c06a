/* download.c - pulls a model: asks which files there are, chooses, brings their bytes, and only then makes them visible: links
 * first, the revision last, so that a pull that was cut short never looks like a model. */
#include "hub/hub.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "hub/blob.h"
#include "hub/choice.h"
#include "hub/net.h"
#include "hub/repo.h"
#include "hub/wheel.h"

#define API_MOST ((size_t)64 << 20) /* repositories with 100,000 files answer with a tenth of this */

typedef struct pull {
    qn_net net;
    qn_repo repo;
    qn_repo_dir dir;
    char commit[41];
    qn_names all;     /* what the server has */
    qn_choice choice;
    qn_blob *blobs;   /* [choice.files.n] */
} pull;

/* ---- what the server has */

static bool read_names(pull *p, yyjson_val *files, qn_err *e)
{
    yyjson_val *f;
    size_t i, n;
    yyjson_arr_foreach(files, i, n, f) {
        yyjson_val *v = yyjson_obj_get(f, "rfilename");
        const char *name = yyjson_get_str(v);
        if (!name || strlen(name) != yyjson_get_len(v) || !qn_is_safe_path(name))
            return qn_fail(e, QN_EFORMAT, "%s: the server lists a file named '%.100s', which is refused", p->repo.id,
                           name ? name : "");
        if (!qn_names_add(&p->all, name, e)) return false;
    }
    return true;
}

static bool read_listing(pull *p, const qn_buf *text, const char *url, qn_err *e)
{
    yyjson_doc *doc = qn_json_parse(text->p ? text->p : "", text->n, 0, url, e);
    if (!doc) return false;
    yyjson_val *root = yyjson_doc_get_root(doc), *files = yyjson_obj_get(root, "siblings");
    const char *commit = yyjson_get_str(yyjson_obj_get(root, "sha"));
    bool ok = true;
    if (!commit || !qn_is_commit(commit)) ok = qn_fail(e, QN_EFORMAT, "%s: the answer names no commit", url);
    else if (!yyjson_is_arr(files)) ok = qn_fail(e, QN_EFORMAT, "%s: the answer lists no files", url);
    else {
        memcpy(p->commit, commit, sizeof p->commit);
        ok = read_names(p, files, e);
    }
    yyjson_doc_free(doc);
    return ok;
}

static bool ask_listing(pull *p, qn_err *e)
{
    qn_buf url = { 0 }, text = { 0 };
    qn_answer a;
    qn_buf_printf(&url, "%s/api/models/%s/revision/", p->net.endpoint, p->repo.id);
    qn_url_put(&url, p->repo.rev ? p->repo.rev : "main", 0);
    bool ok = !url.failed || qn_fail(e, QN_ENOMEM, "out of memory");
    if (ok && !qn_net_text(&p->net, url.p, API_MOST, &text, &a, e))
        ok = e->code == QN_EIO ? qn_fail_within(e, p->net.endpoint) : false;
    if (ok && a.status != 200) ok = qn_status_fail(&a, &p->net, p->repo.id, NULL, e);
    ok = ok && read_listing(p, &text, url.p, e);
    qn_buf_close(&url);
    qn_buf_close(&text);
    return ok;
}

/* ---- its files */

static bool ask_blobs(pull *p, qn_err *e)
{
    const size_t n = p->choice.files.n;
    p->blobs = qn_new_array(n, sizeof *p->blobs, e);
    if (!p->blobs) return false;
    p->net.what = "asking for sizes";
    for (size_t i = 0; i < n; i++) {
        qn_blob *b = &p->blobs[i];
        qn_buf url = { 0 };
        b->file = p->choice.files.at[i];
        qn_buf_printf(&url, "%s/%s/resolve/%s/", p->net.endpoint, p->repo.id, p->commit);
        qn_url_put(&url, b->file, '/');
        if (!qn_buf_take(&url, &b->url, NULL, e) || !qn_blob_ask(b, &p->net, p->repo.id, e)) return false;
        if (b->size > 0 && __builtin_add_overflow(p->net.total, (u64)b->size, &p->net.total))
            return qn_fail(e, QN_EFORMAT, "%s: the server's sizes make no sense", p->repo.id);
    }
    return true;
}

static bool bring_blobs(pull *p, qn_hub_pulled *out, qn_err *e)
{
    for (size_t i = 0; i < p->choice.files.n; i++) {
        qn_blob *b = &p->blobs[i];
        const bool ok = qn_blob_bring(b, &p->net, &p->dir, e);
        out->fetched += b->fetched;
        if (!ok) return false;
        out->bytes += b->size > 0 ? (u64)b->size : b->fetched;
    }
    out->n_files = (int)p->choice.files.n;
    return true;
}

static bool publish(const pull *p, qn_err *e)
{
    for (size_t i = 0; i < p->choice.files.n; i++)
        if (!qn_repo_link(&p->dir, p->commit, p->blobs[i].file, p->blobs[i].etag, e)) return false;
    return qn_repo_ref(&p->dir, p->repo.rev ? p->repo.rev : "main", p->commit, e);
}

static bool say_where(const pull *p, qn_hub_pulled *out, qn_err *e)
{
    qn_buf b = { 0 };
    const char *tail = p->choice.open ? p->choice.open : p->choice.folder;
    qn_buf_printf(&b, "%s/snapshots/%s%s%s", p->dir.dir, p->commit, tail[0] ? "/" : "", tail);
    return qn_buf_take(&b, &out->path, NULL, e);
}

static void close_pull(pull *p)
{
    for (size_t i = 0; p->blobs && i < p->choice.files.n; i++) qn_free(p->blobs[i].url);
    qn_free(p->blobs);
    qn_choice_close(&p->choice);
    qn_names_close(&p->all);
    qn_repo_dir_close(&p->dir);
    qn_repo_close(&p->repo);
    qn_net_close(&p->net);
}

/* ---- offline, and the two ways to pull */

static bool is_offline(void)
{
    const char *v = getenv("HF_HUB_OFFLINE");
    return v && (strcmp(v, "1") == 0 || strcasecmp(v, "true") == 0 || strcasecmp(v, "yes") == 0 || strcasecmp(v, "on") == 0);
}

static bool pull_repo(const char *name, qn_progress_fn progress, void *user, qn_hub_pulled *out, qn_err *e)
{
    pull p = { 0 };
    const bool ok = qn_repo_parse(&p.repo, name, e) && qn_repo_dir_open(&p.dir, p.repo.id, e)
        && qn_net_open(&p.net, progress, user, e) && ask_listing(&p, e)
        && qn_choice_open(&p.choice, &p.all, p.repo.file, p.repo.id, e) && ask_blobs(&p, e) && bring_blobs(&p, out, e)
        && publish(&p, e) && say_where(&p, out, e);
    close_pull(&p);
    return ok;
}

bool qn_hub_pull(const char *name, qn_progress_fn progress, void *user, qn_hub_pulled *p, qn_err *e)
{
    *p = (qn_hub_pulled){ 0 };
    if (is_offline()) {
        if (qn_hub_find(name, &p->path, e)) return true;
        return e->code == QN_ENOMEM ? false : qn_fail(e, QN_EIO, "%s is not here, and HF_HUB_OFFLINE forbids to fetch it", name);
    }
    if (strcmp(name, QN_WHEEL_NAME) == 0) return qn_wheel_pull(progress, user, p, e);
    if (!strchr(name, '/') && strncmp(name, "hf:", 3) != 0)
        return qn_fail(e, QN_EUSAGE, "%s: cannot be pulled; known are %s and hf:ORG/REPO[/FILE][@REV]", name, QN_WHEEL_NAME);
    return pull_repo(name, progress, user, p, e);
}

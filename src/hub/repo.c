/* repo.c - names of Hugging Face repositories, and the layout of their cache on disk. What the layout must be was read off the
 * caches that huggingface_hub leaves, so that both programs use each other's downloads. Brings nothing: see blob.c. */
#include "hub/repo.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "hub/choice.h"
#include "hub/hub.h"

/* ---- names */

#define ID_MOST 96

/* Letters, digits, - _ . ; no -- or .. (they mean something in the cache), no . or - at either end. */
static bool is_id_part(const char *s, size_t n)
{
    if (n == 0 || n > ID_MOST) return false;
    for (size_t i = 0; i < n; i++) {
        const char c = s[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!plain && c != '-' && c != '.') return false;
        if (!plain && (i == 0 || i == n - 1 || (c == s[i + 1]))) return false;
    }
    return true;
}

static bool is_id(const char *id, bool bare)
{
    const char *slash = strchr(id, '/');
    if (!slash) return bare && is_id_part(id, strlen(id));
    return is_id_part(id, (size_t)(slash - id)) && is_id_part(slash + 1, strlen(slash + 1));
}

bool qn_repo_parse(qn_repo *r, const char *name, qn_err *e)
{
    *r = (qn_repo){ 0 };
    const bool tagged = strncmp(name, "hf:", 3) == 0;
    const char *text = tagged ? name + 3 : name, *at = strrchr(text, '@');
    const size_t n = at ? (size_t)(at - text) : strlen(text);
    const char *slash = memchr(text, '/', n);
    const char *second = slash ? memchr(slash + 1, '/', n - (size_t)(slash + 1 - text)) : NULL;
    const size_t n_id = second ? (size_t)(second - text) : n;
    r->id = qn_strndup(text, n_id, e);
    if (!r->id) return false;
    bool ok = is_id(r->id, tagged) && (!at || (qn_is_safe_path(at + 1) && strlen(at + 1) <= 200));
    if (!ok) qn_fail(e, QN_EUSAGE, "%s: not a repository name; it looks like hf:ORG/REPO, hf:ORG/REPO/FILE or either @REV", name);
    if (ok && at) ok = (r->rev = qn_strdup(at + 1, e)) != NULL;
    if (ok && second) ok = (r->file = qn_strndup(second + 1, n - n_id - 1, e)) != NULL;
    if (ok && r->file && !qn_is_safe_path(r->file)) ok = qn_fail(e, QN_EUSAGE, "%s: not a file name inside a repository", name);
    if (!ok) qn_repo_close(r);
    return ok;
}

void qn_repo_close(qn_repo *r)
{
    qn_free(r->id);
    qn_free(r->file);
    qn_free(r->rev);
    *r = (qn_repo){ 0 };
}

/* ---- the folder */

bool qn_repo_dir_open(qn_repo_dir *d, const char *id, qn_err *e)
{
    *d = (qn_repo_dir){ 0 };
    qn_buf b = { 0 };
    const size_t org = strcspn(id, "/");
    qn_buf_puts(&b, "models--");
    qn_buf_put(&b, id, org);
    if (id[org]) qn_buf_printf(&b, "--%s", id + org + 1);
    if (qn_buf_take(&b, &d->folder, NULL, e) && (d->cache = qn_place_path(QN_PLACE_HF, e))
        && (d->dir = qn_path_join(d->cache, d->folder, e))) return true;
    qn_repo_dir_close(d);
    return false;
}

void qn_repo_dir_close(qn_repo_dir *d)
{
    qn_free(d->cache);
    qn_free(d->folder);
    qn_free(d->dir);
    *d = (qn_repo_dir){ 0 };
}

bool qn_is_commit(const char *s)
{
    return strlen(s) == 40 && strspn(s, "0123456789abcdef") == 40;
}

/* dir/kind/name, allocated. */
static char *path_of(const qn_repo_dir *d, const char *kind, const char *name, qn_err *e)
{
    qn_buf b = { 0 };
    char *out = NULL;
    qn_buf_printf(&b, "%s/%s/%s", d->dir, kind, name);
    return qn_buf_take(&b, &out, NULL, e) ? out : NULL;
}

/* What refs/REV says; NULL when there is none or it holds no commit. */
static char *read_ref(const qn_repo_dir *d, const char *rev, qn_err *e)
{
    char *path = path_of(d, "refs", rev, e), *text = NULL;
    if (!path) return NULL;
    qn_err ignored = { 0 };
    size_t n;
    if (qn_is_file(path) && qn_file_read(path, 256, &text, &n, &ignored)) {
        text[strcspn(text, " \r\n")] = '\0';
        if (!qn_is_commit(text)) {
            qn_free(text);
            text = NULL;
        }
    }
    qn_free(path);
    return text;
}

/* The folder below snapshots/ that changed last; NULL: none. */
static char *newest_snapshot(const qn_repo_dir *d, qn_err *e)
{
    char *best = NULL, *top = qn_path_join(d->dir, "snapshots", e);
    i64 best_time = 0;
    DIR *dir = top ? opendir(top) : NULL;
    for (const struct dirent *f; dir && (f = readdir(dir));) {
        struct stat st;
        if (!qn_is_commit(f->d_name) || fstatat(dirfd(dir), f->d_name, &st, 0) != 0 || !S_ISDIR(st.st_mode)) continue;
        if (best && (i64)st.st_mtime <= best_time) continue;
        qn_free(best);
        best_time = (i64)st.st_mtime;
        best = qn_path_join(top, f->d_name, e);
        if (!best) break;
    }
    if (dir) closedir(dir);
    qn_free(top);
    return best;
}

char *qn_repo_snapshot(const qn_repo_dir *d, const char *rev, qn_err *e)
{
    e->code = QN_OK;
    char *commit = read_ref(d, rev ? rev : "main", e);
    if (!commit && e->code == QN_OK && rev && qn_is_commit(rev)) commit = qn_strdup(rev, e);
    char *path = commit ? path_of(d, "snapshots", commit, e) : NULL;
    if (path && !qn_is_dir(path)) {
        qn_free(path);
        path = NULL;
    }
    if (!path && e->code == QN_OK && !rev) path = newest_snapshot(d, e);
    qn_free(commit);
    return path;
}

/* ---- writing */

static bool make_parent(const char *path, qn_err *e)
{
    char *dir = qn_strdup(path, e);
    if (!dir) return false;
    char *slash = strrchr(dir, '/');
    if (slash) *slash = '\0';
    const bool ok = !slash || slash == dir || qn_is_dir(dir) || qn_mkdirs(dir, e);
    qn_free(dir);
    return ok;
}

static bool points_to(const char *path, const char *target)
{
    char now[512];
    const ssize_t n = readlink(path, now, sizeof now);
    return n >= 0 && (size_t)n == strlen(target) && memcmp(now, target, (size_t)n) == 0;
}

/* A new link beside, then renamed: a reader sees the old or the new, never none. */
static bool put_link(const char *path, const char *target, qn_err *e)
{
    qn_buf b = { 0 };
    char *temp = NULL;
    if (points_to(path, target)) return true;
    qn_buf_printf(&b, "%s.%ld.tmp", path, (long)getpid());
    if (!make_parent(path, e) || !qn_buf_take(&b, &temp, NULL, e)) {
        qn_buf_close(&b);
        return false;
    }
    unlink(temp);
    bool ok = symlink(target, temp) == 0 && rename(temp, path) == 0;
    if (!ok) {
        qn_fail_errno(e, "%s: cannot link", path);
        unlink(temp);
    }
    qn_free(temp);
    return ok;
}

bool qn_repo_link(const qn_repo_dir *d, const char *commit, const char *file, const char *etag, qn_err *e)
{
    qn_buf at = { 0 }, to = { 0 };
    char *path = NULL, *target = NULL;
    qn_buf_printf(&at, "%s/snapshots/%s/%s", d->dir, commit, file);
    qn_buf_puts(&to, "../../");
    for (const char *p = file; *p; p++)
        if (*p == '/') qn_buf_puts(&to, "../");
    qn_buf_printf(&to, "blobs/%s", etag);
    const bool a = qn_buf_take(&at, &path, NULL, e), b = qn_buf_take(&to, &target, NULL, e);
    const bool ok = a && b && put_link(path, target, e);
    qn_free(path);
    qn_free(target);
    return ok;
}

bool qn_repo_ref(const qn_repo_dir *d, const char *rev, const char *commit, qn_err *e)
{
    if (strcmp(rev, commit) == 0) return true; /* a commit stands for itself */
    e->code = QN_OK;
    char *now = read_ref(d, rev, e);
    const bool same = now && strcmp(now, commit) == 0;
    qn_free(now);
    if (same) return true;
    char *path = e->code == QN_OK ? path_of(d, "refs", rev, e) : NULL;
    qn_out o = { 0 };
    const bool ok = path && make_parent(path, e) && qn_out_open(&o, path, e) && qn_out_write(&o, commit, 40, e)
        && qn_out_commit(&o, e);
    qn_out_close(&o);
    qn_free(path);
    return ok;
}

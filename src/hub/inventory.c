/* inventory.c - every model that is on this machine under a name: the built-in one, the models folder, the Hugging Face cache.
 * Each is listed by the name that finds it. Files are counted, not opened: a broken model is listed too. */
#include "hub/inventory.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hub/choice.h"
#include "hub/repo.h"

typedef struct found { const char *kind, *from; u64 bytes; i64 mtime; } found;

static void count(found *f, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return;
    f->bytes += (u64)st.st_size;
    if ((i64)st.st_mtime > f->mtime) f->mtime = (i64)st.st_mtime;
}

static void count_in(found *f, const char *dir, const char *name)
{
    qn_err ignored;
    char *path = qn_path_join(dir, name, &ignored);
    if (path) count(f, path);
    qn_free(path);
}

/* Takes name and path over, whatever happens. The built-in model is the first to come; where it lies in the models folder it is
 * not listed again. */
static bool add(qn_hub_list *l, char *name, char *path, const found *f, qn_err *e)
{
    size_t bytes;
    qn_hub_model *at = NULL;
    const bool again = path && l->n && strcmp(path, l->at[0].path) == 0;
    if (!again && name && path && qn_mul(l->n + 1, sizeof *at, &bytes)) at = qn_resize(l->at, bytes, e);
    if (!at) {
        qn_free(name);
        qn_free(path);
        return again;
    }
    l->at = at;
    l->at[l->n++] = (qn_hub_model){ name, path, f->kind, f->from, f->bytes, f->mtime };
    return true;
}

static char *text3(qn_err *e, const char *a, const char *b, const char *c)
{
    qn_buf t = { 0 };
    char *out = NULL;
    qn_buf_printf(&t, "%s%s%s", a, b, c);
    return qn_buf_take(&t, &out, NULL, e) ? out : NULL;
}

static bool add_default(qn_hub_list *l, qn_err *e)
{
    char *path = NULL;
    if (!qn_find_default(&path, e)) return e->code == QN_OK;
    found f = { .kind = "gguf", .from = "built-in" };
    count(&f, path);
    return add(l, qn_strdup(QN_DEFAULT_NAME, e), path, &f, e);
}

/* ---- folders of files */

/* Adds each GGUF of a list (split ones once, by their first part) and each folder with safetensors. title: what stands before
 * the file's name; "" for the models folder, where a GGUF goes by its name without the ending. */
static bool add_gguf(qn_hub_list *l, const char *dir, const qn_names *all, size_t i, const char *title, const char *from,
                     qn_err *e)
{
    int part, n_parts;
    const char *name = all->at[i];
    found f = { .kind = "gguf", .from = from };
    const bool split = qn_split_part(name, &part, &n_parts);
    if (split && part != 1) return true;
    count_in(&f, dir, name);
    const size_t stem = strlen(name) - (split ? sizeof "00001-of-00002.gguf" - 1 : 0);
    for (size_t k = 0; split && k < all->n; k++) {
        int other, n_other;
        const bool same = k != i && strncmp(all->at[k], name, stem) == 0 && strlen(all->at[k]) == strlen(name);
        if (same && qn_split_part(all->at[k], &other, &n_other) && n_other == n_parts) count_in(&f, dir, all->at[k]);
    }
    char *label = title[0] ? text3(e, title, "/", name) : qn_strndup(name, strlen(name) - 5, e);
    return add(l, label, label ? qn_path_join(dir, name, e) : NULL, &f, e);
}

/* The folder that holds all->at[i], if that is a safetensors file and the first of its folder. */
static bool add_safetensors(qn_hub_list *l, const char *dir, const qn_names *all, size_t i, const char *title, const char *from,
                            qn_err *e)
{
    const char *name = all->at[i], *slash = strrchr(name, '/');
    const size_t n = slash ? (size_t)(slash - name) : 0;
    found f = { .kind = "safetensors", .from = from };
    for (size_t k = 0; k < all->n; k++) {
        const char *other = all->at[k], *cut = strrchr(other, '/');
        const bool same = (cut ? (size_t)(cut - other) : 0) == n && strncmp(other, name, n) == 0;
        if (!same || !qn_ends_with(other, ".safetensors")) continue;
        if (k < i) return true;
        count_in(&f, dir, other);
    }
    char *sub = qn_strndup(name, n, e);
    if (!sub) return false;
    char *path = n ? qn_path_join(dir, sub, e) : qn_strdup(dir, e);
    char *label = text3(e, title, title[0] && n ? "/" : "", sub);
    qn_free(sub);
    return add(l, label, path, &f, e);
}

static bool add_folder(qn_hub_list *l, const char *dir, const char *title, const char *from, qn_err *e)
{
    qn_names all = { 0 };
    bool ok = qn_names_scan(&all, dir, e);
    for (size_t i = 0; ok && i < all.n; i++) {
        if (qn_ends_with(all.at[i], ".gguf")) ok = add_gguf(l, dir, &all, i, title, from, e);
        else if (qn_ends_with(all.at[i], ".safetensors")) ok = add_safetensors(l, dir, &all, i, title, from, e);
    }
    qn_names_close(&all);
    return ok;
}

/* ---- the Hugging Face cache */

/* "models--ORG--REPO" to "ORG/REPO"; NULL: not such a folder. */
static char *repo_of(const char *folder, qn_err *e)
{
    if (strncmp(folder, "models--", 8) != 0 || !folder[8]) return NULL;
    char *id = qn_strdup(folder + 8, e);
    char *mid = id ? strstr(id, "--") : NULL;
    if (mid) {
        *mid = '/';
        memmove(mid + 1, mid + 2, strlen(mid + 2) + 1);
    }
    return id;
}

/* The snapshot that the bare name means. */
static bool add_snapshots(qn_hub_list *l, const char *id, qn_err *e)
{
    qn_repo_dir d = { 0 };
    if (!qn_repo_dir_open(&d, id, e)) return false;
    char *current = qn_repo_snapshot(&d, NULL, e);
    bool ok = e->code == QN_OK && (!current || add_folder(l, current, id, "hf", e));
    qn_free(current);
    qn_repo_dir_close(&d);
    return ok;
}

static bool add_cache(qn_hub_list *l, qn_err *e)
{
    char *top = qn_place_path(QN_PLACE_HF, e);
    if (!top) return e->code != QN_ENOMEM;
    DIR *dir = opendir(top);
    bool ok = true;
    for (const struct dirent *f; ok && dir && (f = readdir(dir));) {
        char *id = repo_of(f->d_name, e);
        if (id) ok = add_snapshots(l, id, e);
        else ok = e->code != QN_ENOMEM;
        qn_free(id);
    }
    if (dir) closedir(dir);
    qn_free(top);
    return ok;
}

/* ---- the list */

static int by_name(const void *a, const void *b)
{
    const qn_hub_model *x = a, *y = b;
    const int built = (strcmp(y->from, "built-in") == 0) - (strcmp(x->from, "built-in") == 0);
    const int name = built ? built : strcmp(x->name, y->name);
    return name ? name : strcmp(x->path, y->path);
}

bool qn_hub_list_open(qn_hub_list *l, qn_err *e)
{
    *l = (qn_hub_list){ 0 };
    *e = (qn_err){ 0 };
    bool ok = add_default(l, e);
    char *models = ok ? qn_place_path(QN_PLACE_MODELS, e) : NULL;
    if (ok && !models) ok = e->code != QN_ENOMEM;
    e->code = ok ? QN_OK : e->code;
    if (ok && models) ok = add_folder(l, models, "", "models", e);
    qn_free(models);
    if (ok) ok = add_cache(l, e);
    if (ok && l->n) qsort(l->at, l->n, sizeof *l->at, by_name);
    if (!ok) qn_hub_list_close(l);
    return ok;
}

void qn_hub_list_close(qn_hub_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        qn_free(l->at[i].name);
        qn_free(l->at[i].path);
    }
    qn_free(l->at);
    *l = (qn_hub_list){ 0 };
}

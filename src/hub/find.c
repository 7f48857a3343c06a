/* find.c - a model's name to its path. Looks in four places, in the order in which they can surprise least: the path itself, the
 * models folder, the Hugging Face cache, and, when no name was given, beside the program. Fetches nothing. */
#include "hub/hub.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hub/choice.h"
#include "hub/inventory.h"
#include "hub/repo.h"

/* Takes a path that exists; frees one that does not. */
static bool keep_if_there(char *path, char **out)
{
    if (path && access(path, F_OK) == 0) {
        *out = path;
        return true;
    }
    qn_free(path);
    return false;
}

static char *concat(const char *a, const char *b, qn_err *e)
{
    qn_buf t = { 0 };
    char *out = NULL;
    qn_buf_printf(&t, "%s%s", a, b);
    return qn_buf_take(&t, &out, NULL, e) ? out : NULL;
}

/* ---- the default model */

#define DEFAULT_NAME QN_DEFAULT_NAME ".gguf"

/* Beside the program: PREFIX/share/quern for PREFIX/bin/quern; models/ of the source tree for build/quern, build/asan/quern. Cuts
 * exe as it walks up. */
static bool find_beside(char *exe, char **path, qn_err *e)
{
    static const struct { int up; const char *tail; } places[] = {
        { 2, "/share/quern/" DEFAULT_NAME }, { 0, "/models/" DEFAULT_NAME }, { 1, "/models/" DEFAULT_NAME },
    };
    for (size_t i = 0; i < QN_COUNT(places); i++) {
        for (int up = 0; up < places[i].up; up++) {
            char *slash = strrchr(exe, '/');
            if (!slash) return false;
            *slash = '\0';
        }
        char *p = concat(exe, places[i].tail, e);
        if (!p) return false;
        if (keep_if_there(p, path)) return true;
    }
    return false;
}

/* e->code stays QN_OK when it is just not there. */
bool qn_find_default(char **path, qn_err *e)
{
    char exe[4096];
    e->code = QN_OK;
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n > 0) {
        exe[n] = '\0';
        if (find_beside(exe, path, e)) return true;
        if (e->code != QN_OK) return false;
    }
    char *models = qn_place_path(QN_PLACE_MODELS, e);
    char *p = models ? qn_path_join(models, DEFAULT_NAME, e) : NULL;
    qn_free(models);
    if (keep_if_there(p, path)) return true;
    if (e->code != QN_ENOMEM) e->code = QN_OK;
    return false;
}

/* ---- names */

static bool find_in_models(const char *name, char **path, qn_err *e)
{
    if (!qn_is_safe_path(name) || name[0] == '.') return false;
    char *models = qn_place_path(QN_PLACE_MODELS, e);
    char *p = models ? qn_path_join(models, name, e) : NULL;
    qn_free(models);
    if (!p) return false;
    char *with = concat(p, ".gguf", e);
    if (keep_if_there(with, path)) {
        qn_free(p);
        return true;
    }
    return keep_if_there(p, path);
}

/* What of a snapshot is the model? */
static bool choose_in(const char *snapshot, const qn_repo *r, char **path, qn_err *e)
{
    qn_names all = { 0 };
    qn_choice c = { 0 };
    const bool ok = qn_names_scan(&all, snapshot, e) && qn_choice_open(&c, &all, r->file, r->id, e);
    if (ok) {
        const char *tail = c.open ? c.open : c.folder;
        *path = tail[0] ? qn_path_join(snapshot, tail, e) : qn_strdup(snapshot, e);
    }
    qn_choice_close(&c);
    qn_names_close(&all);
    return ok && *path;
}

/* *there: the repository was found, so that e says what it lacks. */
static bool find_in_cache(const char *name, char **path, bool *there, qn_err *e)
{
    qn_repo r = { 0 };
    qn_repo_dir d = { 0 };
    char *snapshot = NULL;
    if (qn_repo_parse(&r, name, e) && qn_repo_dir_open(&d, r.id, e)) snapshot = qn_repo_snapshot(&d, r.rev, e);
    *there = snapshot != NULL;
    const bool ok = snapshot && choose_in(snapshot, &r, path, e);
    qn_free(snapshot);
    qn_repo_dir_close(&d);
    qn_repo_close(&r);
    return ok;
}

static bool is_pathlike(const char *name)
{
    return name[0] == '/' || name[0] == '.' || name[0] == '~' || (qn_ends_with(name, ".gguf") && !strchr(name, ':'));
}

bool qn_hub_find(const char *name, char **path, qn_err *e)
{
    bool there = false;
    *path = NULL;
    *e = (qn_err){ 0 };
    if (!name || !name[0]) {
        if (qn_find_default(path, e)) return true;
        return e->code == QN_OK ? qn_fail(e, QN_EIO, "no model named, and the default one, " DEFAULT_NAME
            ", is neither beside the program nor in the models folder; `quern pull smollm2` brings a model") : false;
    }
    struct stat st;
    if (stat(name, &st) == 0) return (*path = qn_strdup(name, e)) != NULL;
    if (strncmp(name, "hf:", 3) != 0 && find_in_models(name, path, e)) return true;
    if (e->code == QN_ENOMEM) return false;
    if (strcmp(name, QN_DEFAULT_NAME) == 0 || strcmp(name, DEFAULT_NAME) == 0)
        if (qn_find_default(path, e)) return true;
    if (find_in_cache(name, path, &there, e)) return true;
    if (there || e->code == QN_ENOMEM) return false;
    const bool repo = strncmp(name, "hf:", 3) == 0 || (strchr(name, '/') && name[0] != '/' && name[0] != '.');
    if (repo) return qn_fail(e, QN_EIO, "%s: no such file, and not pulled yet; `quern pull %.100s` brings it, `quern list` shows "
                             "what is here", name, name);
    return qn_fail(e, QN_EIO, "%s: no such file%s; `quern list` shows what is here, `quern pull` brings more", name,
                   is_pathlike(name) ? "" : " and no model of this name");
}

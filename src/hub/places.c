/* places.c - the folders that quern uses, from the environment and nothing else. Asking is what can fail, not starting: a
 * program without HOME runs until it needs a place that nobody named. */
#include "hub/hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

/* The XDG rules: empty counts as unset, a relative path is ignored. */
static const char *folder_of(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] == '/' ? v : NULL;
}

/* Ours may be relative: the user typed it. */
static const char *set_of(const char *name)
{
    const char *v = getenv(name);
    return v && v[0] ? v : NULL;
}

/* $xdg/tail, else $HOME/fallback/tail. */
static char *xdg(const char *var, const char *fallback, const char *tail, qn_err *e)
{
    const char *base = folder_of(var), *home = folder_of("HOME");
    qn_buf b = { 0 };
    char *out = NULL;
    if (base) qn_buf_printf(&b, "%s/%s", base, tail);
    else if (home) qn_buf_printf(&b, "%s/%s/%s", home, fallback, tail);
    else {
        qn_fail(e, QN_EIO, "no folder for %s: HOME is not set; set HOME, %s or QUERN_HOME", tail, var);
        return NULL;
    }
    return qn_buf_take(&b, &out, NULL, e) ? out : NULL;
}

static char *hf_place(qn_err *e)
{
    const char *hub = set_of("HF_HUB_CACHE"), *home = set_of("HF_HOME");
    if (hub) return qn_strdup(hub, e);
    if (home) return qn_path_join(home, "hub", e);
    char *path = xdg("XDG_CACHE_HOME", ".cache", "huggingface/hub", e);
    if (!path && e->code == QN_EIO)
        qn_fail(e, QN_EIO, "no folder for the Hugging Face cache: HOME is not set; set HOME, HF_HOME or HF_HUB_CACHE");
    return path;
}

char *qn_place_path(qn_place place, qn_err *e)
{
    static const struct { const char *own, *var, *fallback, *tail; } rows[] = {
        [QN_PLACE_MODELS] = { "models", "XDG_DATA_HOME", ".local/share", "quern/models" },
        [QN_PLACE_CACHE] = { "cache", "XDG_CACHE_HOME", ".cache", "quern" },
        [QN_PLACE_STATE] = { "state", "XDG_STATE_HOME", ".local/state", "quern" },
    };
    if (place == QN_PLACE_HF) return hf_place(e);
    assert((size_t)place < QN_COUNT(rows));
    const char *own = set_of("QUERN_HOME");
    if (own) return qn_path_join(own, rows[place].own, e);
    return xdg(rows[place].var, rows[place].fallback, rows[place].tail, e);
}

/* gguf_split.c - models in several GGUF files, NAME-00001-of-0000N.gguf. The first part has the keys, every part has tensors and
 * says which part it is; all parts are opened and become one source. Any part may be named to open the model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "format/gguf.h"
#include "format/gguf_parse.h"

enum { MOST_PARTS = 1024, TAIL = 20 }; /* "-00001-of-00002.gguf" */

/* N of "...-0000K-of-0000N.gguf"; 0 if the name is not of that form. */
static u32 parts_of_name(const char *path)
{
    const size_t n = strlen(path);
    if (n < TAIL) return 0;
    const char *t = path + n - TAIL;
    if (t[0] != '-' || memcmp(t + 6, "-of-", 4) || strcmp(t + 15, ".gguf")) return 0;
    char of[6] = { 0 };
    u64 k, count;
    memcpy(of, t + 1, 5);
    if (!qn_parse_u64(of, &k)) return 0;
    memcpy(of, t + 10, 5);
    return qn_parse_u64(of, &count) ? (u32)count : 0;
}

static char *part_path(const char *path, u32 k, u32 n, qn_err *e)
{
    char *p = qn_strdup(path, e);
    if (p) snprintf(p + strlen(p) - TAIL, TAIL + 1, "-%05u-of-%05u.gguf", k + 1, n);
    return p;
}

static bool check_part(const qn_source *part, u32 k, u32 n, qn_err *e)
{
    u32 no, count;
    if (!qn_source_u32(part, "split.no", 0, UINT32_MAX, &no, e)
        || !qn_source_u32(part, "split.count", 0, UINT32_MAX, &count, e))
        return false;
    if (count != n || no != k)
        return qn_fail(e, QN_EFORMAT, "%s: says it is part %u of %u, must be %u of %u", qn_path_tail(part->path), no + 1,
                       count, k + 1, n);
    return true;
}

/* Moves the part's map and tensors into s; closes part. Its keys are of no use any more. */
static bool absorb(qn_source *s, qn_source *part, qn_err *e)
{
    qn_map *maps = qn_resize(s->maps, ((size_t)s->n_maps + 1) * sizeof *maps, e);
    bool ok = maps != NULL;
    if (ok) {
        s->maps = maps;
        s->maps[s->n_maps++] = part->maps[0];
        part->n_maps = 0;
    }
    for (size_t i = 0; ok && i < part->n_tensors; i++) {
        qn_tensor t = part->tensors[i];
        t.file = s->n_maps - 1;
        ok = qn_source_put_tensor(s, &t, e);
    }
    qn_source_close(part);
    return ok;
}

static qn_source *open_part(const char *any, u32 k, u32 n, qn_err *e)
{
    char *path = part_path(any, k, n, e);
    if (!path) return NULL;
    qn_source *part = NULL;
    if (!qn_is_file(path)) qn_fail(e, QN_EIO, "%s: part %u of %u is missing", qn_path_tail(path), k + 1, n);
    else part = qn_gguf_open_one(path, e);
    qn_free(path);
    if (part && check_part(part, k, n, e)) return part;
    qn_source_close(part);
    return NULL;
}

static bool check_total(const qn_source *s, qn_err *e)
{
    u32 total;
    if (!qn_source_u32(s, "split.tensors.count", 0, INT32_MAX, &total, e)) return false;
    if (total == s->n_tensors) return true;
    return qn_fail(e, QN_EFORMAT, "%s: the parts hold %zu tensors, split.tensors.count says %u", qn_path_tail(s->path),
                   s->n_tensors, total);
}

static qn_source *join_all(const char *any, u32 n, qn_err *e)
{
    qn_source *s = open_part(any, 0, n, e);
    bool ok = s != NULL;
    for (u32 k = 1; ok && k < n; k++) {
        qn_source *part = open_part(any, k, n, e);
        ok = part && absorb(s, part, e);
    }
    if (ok && check_total(s, e)) return s;
    qn_source_close(s);
    return NULL;
}

qn_source *qn_gguf_join(qn_source *s, qn_err *e)
{
    if (!qn_source_get(s, "split.count")) return s;
    u32 n;
    qn_source *whole = NULL;
    if (!qn_source_u32(s, "split.count", 0, MOST_PARTS, &n, e)) goto done;
    if (n <= 1) return s;
    if (parts_of_name(s->path) != n)
        qn_fail(e, QN_EFORMAT, "%s: part of a model in %u files: to find the others, its name must end in -0000K-of-%05u.gguf",
                qn_path_tail(s->path), n, n);
    else
        whole = join_all(s->path, n, e);
done:
    qn_source_close(s);
    return whole;
}

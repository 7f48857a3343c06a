/* quantize.c - qn_quantize: a GGUF file in, one with its matrices in another type out. Opens, refuses what would destroy the
 * input, and leaves the choice of types to mix.c and the work to requant.c. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "model/mix.h"
#include "model/requant.h"

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* No part of the model may be what is written: the rest of a split model would be worth nothing. */
static bool check_apart(const qn_source *s, const char *in, const char *out, qn_err *e)
{
    enum { TAIL = 20 }; /* "-00001-of-00002.gguf" */
    char *part = qn_strdup(in, e);
    if (!part) return false;
    bool same = is_same(in, out);
    const size_t n = strlen(in);
    for (int k = 1; s->n_maps > 1 && n > TAIL && k <= s->n_maps && !same; k++) {
        char digits[8];
        snprintf(digits, sizeof digits, "%05d", k % 100000);
        memcpy(part + n - TAIL + 1, digits, 5);
        same = is_same(part, out);
    }
    qn_free(part);
    return !same || qn_fail(e, QN_EUSAGE, "%s: is the model itself; write to another file", qn_path_tail(out));
}

bool qn_quantize(const char *in, const char *out, const char *type, const qn_options *o, qn_err *e)
{
    qn_source *s = qn_gguf_open(in, e);
    if (!s) return false;
    qn_dtype *types = qn_new_array(s->n_tensors, sizeof *types, e);
    const bool ok = types && qn_mix_plan(s, type, types, e) && check_apart(s, in, out, e)
                    && qn_requant(out, s, types, 0, "quantizing", o, e);
    qn_free(types);
    qn_source_close(s);
    return ok;
}

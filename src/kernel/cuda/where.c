/* where.c - the words of --device. */
#include "kernel/cuda/where.h"

#include <string.h>

#include "base/str.h"

bool qn_where_parse(const char *text, qn_where *out, qn_err *e)
{
    i64 ordinal = 0;
    *out = (qn_where){ .cuda = true };
    if (!text || !strcmp(text, "auto")) return true;
    if (!strcmp(text, "cpu")) return out->cuda = false, true;
    out->must = true;
    if (!strcmp(text, "cuda")) return true;
    if (!strncmp(text, "cuda:", 5) && qn_parse_i64(text + 5, 0, 1023, &ordinal)) return out->ordinal = (int)ordinal, true;
    return qn_fail(e, QN_EUSAGE, "unknown device \"%.40s\"; there are auto, cpu, cuda and cuda:N", text);
}

/* trace_doc.c - docs/TRACE.md, made from events.def: `make docs` writes it, a test holds the page against it. */
#include "cli/command.h"
#include "trace/event.h"

static const char intro[] =
    "# Traces\n"
    "\n"
    "What `--trace FILE` writes (on `run`, `profile`, `bench`, `batch-bench`, `perplexity`, `logits`) and `quern\n"
    "analyze` reads. This page is made from `src/trace/events.def` by `make docs`.\n"
    "\n"
    "A trace is a text file of records, one JSON object a line, UTF-8. A name that ends in `.zst` makes it\n"
    "compressed: a row of zstd frames, each of whole lines. The first record is `trace`, the last is `end`; a run\n"
    "that was cut has no end, and its last line may be cut too. The kernel, type and place of a step are said once,\n"
    "by `plan` and `choice`, before the first pass.\n"
    "\n"
    "- Every record has `ev`, its kind, and `t`: nanoseconds of the monotonic clock since the trace began. `t` is the\n"
    "  start of what lasted; `token`, `done` and `end` look back, their `t` is the moment. Durations are `ns`.\n"
    "- Records of one thread stand in the order in which they were made: a pass behind its steps. Sort by `t` where\n"
    "  order matters.\n"
    "- A text, a list, an object or a fraction that is empty or not known is left out. Readers take 0 or nothing,\n"
    "  skip kinds and fields that they do not know, and refuse nothing but a `schema` that is not a number.\n"
    "- `--trace-level request` leaves out `pass`, `sample`, `token` and `step`; `token` leaves out `step`.\n"
    "- Exclusive times that add up to the wall time: `load`, `tokenize`, `pass`, `sample`, and `out_ns` of `token`.\n"
    "  Inside a pass: its steps, and what is between them.\n"
    "- Recording never waits: a producer puts a few words into a ring, one thread makes lines of them and writes.\n"
    "  What does not fit or cannot be written (a full disk, a reader that left) is counted in `lost`, told once at\n"
    "  the end, and changes nothing in the run. The file ends on a full line even then.\n";

static const char *const types[] = {
    [QN_EV_INT] = "integer", [QN_EV_NUM] = "number", [QN_EV_STR] = "text", [QN_EV_LIST] = "integers", [QN_EV_JSON] = "JSON",
};

void qn_trace_page(qn_buf *out)
{
    qn_buf_puts(out, intro);
    for (int k = 0; k < (int)N_EV_KINDS; k++) {
        const qn_ev_info *e = qn_ev_info_of((qn_ev_kind)k);
        qn_buf_printf(out, "\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n", e->name, e->doc);
        for (int i = 0; i < e->n_fields; i++)
            qn_buf_printf(out, "| `%s` | %s | %s |\n", e->fields[i].name, types[e->fields[i].type], e->fields[i].doc);
    }
}

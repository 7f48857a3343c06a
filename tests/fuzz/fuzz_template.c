/* fuzz_template.c - a template from the fuzzer, rendered with fixed messages and tools. Whatever it says, it must parse or
 * be refused, render or be stopped; and no byte of a message may come out without its mark: the messages use a letter (q)
 * that the rest of the world does not, so an unmarked q must stand in the template itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/template.h"

static const char messages[] =
    "[{\"role\": \"qsystemq\", \"content\": \"qqq\"},"
    " {\"role\": \"q\", \"content\": \"qq qq,q\\nq\", \"qn\": 12, \"ql\": [\"q\", {\"q\": \"q\"}]},"
    " {\"role\": \"q\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"q\", \"arguments\": {\"q\": "
    "\"qq\"}}}]}]";
static const char tools[] = "[{\"type\": \"q\", \"function\": {\"name\": \"q\", \"parameters\": {\"q\": [\"q\", \"qq\"]}}}]";

/* A template can make a q of its own: by writing one, by an escape, by case or by a format of a number. */
static int may_make_q(const char *src, size_t n)
{
    return memchr(src, 'q', n) || memchr(src, 'Q', n) || memchr(src, '\\', n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const qn_template_var vars[] = { { "messages", messages, sizeof messages - 1, true },
                                     { "tools", tools, sizeof tools - 1, true },
                                     { "add_generation_prompt", "true", 4, false },
                                     { "bos_token", "\"<s>\"", 5, false },
                                     { "eos_token", "\"</s>\"", 6, false } };
    qn_err e = { 0 };
    qn_template *t = qn_template_open((const char *)data, n, "fuzz", &e);
    if (!t) {
        if (!e.code || !e.msg[0]) abort();
        return 0;
    }
    qn_buf out = { 0 }, marks = { 0 };
    if (qn_template_render(t, vars, QN_COUNT(vars), 1721995200, &out, &marks, &e)) {
        if (out.n != marks.n) abort();
        const int excused = may_make_q((const char *)data, n);
        for (size_t i = 0; i < out.n && !excused; i++)
            if (out.p[i] == 'q' && !marks.p[i]) abort();
    } else if (!e.code || !strstr(e.msg, "fuzz") || out.n) {
        abort();
    }
    qn_buf_close(&out);
    qn_buf_close(&marks);
    qn_template_close(t);
    return 0;
}

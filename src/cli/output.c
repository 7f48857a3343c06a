/* output.c - results on stdout, everything else on stderr. Writing can fail (a full disk, a reader that left): every writer
 * here returns false from then on, and main turns it into the exit code. Leaves progress to progress.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"

#define MOST_INPUT ((size_t)1 << 30) /* of a prompt or a text to score: far above what any context holds */

int qn_cli_fail(const qn_cli *c, const qn_err *e)
{
    if (e->code == QN_ECANCELLED && qn_interrupted()) return QN_EXIT_SIGINT;
    fprintf(stderr, "%squern:%s %s\n", qn_cli_color(c, 2, QN_RED), qn_cli_color(c, 2, QN_PLAIN), e->msg);
    if (e->code == QN_EUSAGE) {
        if (c && c->command) fprintf(stderr, "Try: quern help %s\n", c->command->name);
        return QN_EXIT_USAGE;
    }
    return e->code == QN_ENOMEM ? QN_EXIT_MEMORY : QN_EXIT_FAIL;
}

static void say(const char *fmt, va_list args)
{
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

void qn_cli_note(const qn_cli *c, const char *fmt, ...)
{
    if (c->quiet) return;
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void qn_cli_debug(const qn_cli *c, const char *fmt, ...)
{
    if (!c->verbose || c->quiet) return;
    va_list args;
    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

/* The first failure is reported where errno still says why; stdout remembers it, so later writes fail silently. A reader that
 * left is no failure. */
static bool written(bool ok)
{
    const int why = errno;
    if (!ok && why != EPIPE) fprintf(stderr, "quern: cannot write the output: %s\n", strerror(why));
    return ok;
}

bool qn_cli_write(const void *p, size_t n)
{
    return !ferror(stdout) && written(fwrite(p, 1, n, stdout) == n);
}

bool qn_cli_printf(const char *fmt, ...)
{
    if (ferror(stdout)) return false;
    va_list args;
    va_start(args, fmt);
    const int n = vprintf(fmt, args);
    va_end(args);
    return written(n >= 0);
}

bool qn_cli_flush(void)
{
    return !ferror(stdout) && written(fflush(stdout) == 0);
}

int qn_cli_finish(const qn_cli *c, qn_buf *b)
{
    qn_err e = { 0 };
    if (b->failed) {
        qn_buf_close(b);
        qn_fail(&e, QN_ENOMEM, "not enough memory for the output");
        return qn_cli_fail(c, &e);
    }
    qn_cli_write(b->p, b->n); /* a failed write is main's to report */
    qn_buf_close(b);
    return QN_EXIT_OK;
}

bool qn_cli_put(void *file, const void *p, size_t n, qn_err *e)
{
    if (file) return qn_out_write(file, p, n, e);
    return qn_cli_write(p, n) || qn_fail(e, QN_EIO, "the output cannot be written");
}

int qn_cli_end(const qn_cli *c, bool ok, const qn_err *e) { return ok || ferror(stdout) ? QN_EXIT_OK : qn_cli_fail(c, e); }

const char *qn_cli_color(const qn_cli *c, int fd, int color)
{
    static const char *const codes[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[36m" };
    const int mode = c ? c->color : 0;
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (mode == 2) return "";
    if (mode == 0 && ((no && *no) || !isatty(fd) || (term && !strcmp(term, "dumb")))) return "";
    return codes[color];
}

static bool read_stdin(char **out, size_t *n, qn_err *e)
{
    qn_buf b = { 0 };
    for (;;) {
        char *room = qn_buf_room(&b, 1 << 16);
        if (!room) break;
        const ssize_t got = read(0, room, 1 << 16);
        if (got < 0 && errno == EINTR && !qn_interrupted()) continue;
        if (got < 0) {
            qn_buf_close(&b);
            if (qn_interrupted()) return qn_fail(e, QN_ECANCELLED, "interrupted");
            return qn_fail_errno(e, "stdin");
        }
        if (got == 0) break;
        b.n += (size_t)got;
        b.p[b.n] = 0;
        if (b.n <= MOST_INPUT) continue;
        qn_buf_close(&b);
        return qn_fail(e, QN_EUSAGE, "stdin: more than %zu bytes", MOST_INPUT);
    }
    if (!b.p) qn_buf_puts(&b, "");
    return qn_buf_take(&b, out, n, e);
}

bool qn_cli_read(const char *path, char **out, size_t *n, qn_err *e)
{
    if (!strcmp(path, "-")) return read_stdin(out, n, e);
    return qn_file_read(path, MOST_INPUT, out, n, e);
}

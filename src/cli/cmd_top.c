/* cmd_top.c - `quern top`: a trace followed on the terminal while it is written. Figures are report/live.c's; here
 * is the screen: the alternate one, drawn over in place, given back whatever ends the command. */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "report/live.h"

typedef struct top_args { bool once; double interval; int by; } top_args;

static const qn_opt options[] = {
    { "once", NULL, NULL, OPT_flag, QN_AT(top_args, once, bool), NULL, NULL, "print what there is, once", 0, 0 },
    { "interval", NULL, NULL, OPT_real, QN_AT(top_args, interval, double), "S", "0.5", "seconds between two screens", 0.1, 60 },
    { "by", NULL, NULL, OPT_choice, QN_AT(top_args, by, int), "kernel|op|role|layer", "kernel",
      "what the steps are grouped by", 0, 0 },
    { 0 },
};

typedef struct view {
    qn_live *live;
    qn_reader *reader;
    qn_by by;
    struct termios was;
    bool raw, color, quit;
} view;

/* ---- the terminal */

static void take_terminal(view *v)
{
    static const char begin[] = "\033[?1049h\033[?25l\033[2J";
    struct termios t;
    qn_interrupt_polled(true);
    if (isatty(0) && tcgetattr(0, &v->was) == 0) {
        t = v->was;
        t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        t.c_cc[VMIN] = 0;
        t.c_cc[VTIME] = 0;
        v->raw = tcsetattr(0, TCSANOW, &t) == 0;
    }
    qn_cli_write(begin, sizeof begin - 1);
    qn_cli_flush();
}

static void give_terminal_back(view *v)
{
    static const char end[] = "\033[?25h\033[?1049l";
    qn_cli_write(end, sizeof end - 1);
    qn_cli_flush();
    if (v->raw) tcsetattr(0, TCSANOW, &v->was);
    qn_interrupt_polled(false);
}

/* q leaves; k, o, r, l group the steps. True: draw again. */
static bool obey_keys(view *v)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    bool again = false;
    char key;
    while (v->raw && poll(&in, 1, 0) == 1 && read(0, &key, 1) == 1) {
        static const char keys[] = "korl"; /* in the order of qn_by */
        const char *at = strchr(keys, key);
        if (key == 'q' || key == 'Q' || key == 4) v->quit = true;
        else if (key && at) v->by = (qn_by)(at - keys), again = true;
    }
    return again;
}

/* Draws over what is there: each line is cleared to its end, and what is below the last one too. */
static bool draw(view *v, qn_err *e)
{
    struct winsize w;
    qn_reader_state st;
    qn_buf text = { 0 }, out = { 0 };
    int width = 80, height = 24;
    if (ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20 && w.ws_row >= 5) width = w.ws_col, height = w.ws_row;
    qn_reader_get_state(v->reader, &st);
    const bool ok = qn_live_draw(v->live, &st, v->by, width, height - 1, v->color, &text, e);
    qn_buf_puts(&out, "\033[H");
    for (size_t i = 0; ok && i < text.n; i++) {
        if (text.p[i] == '\n') qn_buf_puts(&out, "\033[K\r\n");
        else qn_buf_putc(&out, text.p[i]);
    }
    qn_buf_puts(&out, "\033[Jq quits; steps by k kernel, o op, r role, l layer\033[K");
    if (ok && (out.failed || !qn_cli_write(out.p, out.n) || !qn_cli_flush())) v->quit = true;
    qn_buf_close(&out);
    qn_buf_close(&text);
    return ok;
}

/* ---- following */

static bool follow(view *v, double interval, qn_err *e)
{
    const u64 step = (u64)(interval * 1e9);
    u64 drawn = 0, n = 0;
    int got = 2;
    while (!v->quit && !qn_interrupted()) {
        qn_event ev;
        if (got == 0) poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, v->raw, 100); /* it ended: look until q */
        else got = qn_reader_next(v->reader, &ev, e);
        if (got < 0 || (got == 1 && !qn_live_add(v->live, &ev, e))) return false;
        if (got == 1 && ++n % 64) continue;
        const u64 now = qn_now_ns();
        const bool again = obey_keys(v);
        if (!again && now - drawn < step) continue;
        if (!draw(v, e)) return false;
        drawn = now;
    }
    return true;
}

static int once(qn_cli *c, view *v)
{
    qn_reader_state st;
    qn_buf out = { 0 };
    qn_err e = { 0 };
    qn_event ev;
    int got;
    while ((got = qn_reader_next(v->reader, &ev, &e)) == 1 || got == 2)
        if ((got == 1 && !qn_live_add(v->live, &ev, &e)) || qn_interrupted()) break;
    qn_reader_get_state(v->reader, &st);
    if (got == 0 && qn_live_draw(v->live, &st, v->by, 110, 40, v->color, &out, &e)) return qn_cli_finish(c, &out);
    qn_buf_close(&out);
    if (qn_interrupted()) return QN_EXIT_SIGINT;
    return qn_cli_fail(c, &e);
}

/* The newest trace of this folder; yours. */
static char *newest_trace(qn_err *e)
{
    DIR *d = opendir(".");
    char *best = NULL;
    struct timespec when = { 0 };
    for (struct dirent *it; d && (it = readdir(d));) {
        struct stat st;
        if (!qn_ends_with(it->d_name, ".jsonl") && !qn_ends_with(it->d_name, ".jsonl.zst")) continue;
        if (stat(it->d_name, &st) || !S_ISREG(st.st_mode)) continue;
        if (best && (st.st_mtim.tv_sec < when.tv_sec
            || (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec <= when.tv_nsec))) continue;
        char *name = qn_strdup(it->d_name, e);
        if (!name) break;
        qn_free(best);
        best = name;
        when = st.st_mtim;
    }
    if (d) closedir(d);
    if (!best && !e->code)
        qn_fail(e, QN_EUSAGE, "top: there is no trace in this folder; say which, or run with --trace FILE.jsonl");
    return best;
}

static int run(qn_cli *c, void *values)
{
    const top_args *a = values;
    const bool screen = !a->once && isatty(1);
    qn_err e = { 0 };
    char *found = c->n_args ? NULL : newest_trace(&e);
    const char *path = c->n_args ? c->args[0] : found;
    view v = { .by = (qn_by)a->by, .color = *qn_cli_color(c, 1, QN_BOLD) != 0 };
    v.reader = path ? qn_reader_open(path, screen, &e) : NULL;
    v.live = v.reader ? qn_live_open(path, &e) : NULL;
    int code = QN_EXIT_OK;
    if (!v.live) {
        code = qn_cli_fail(c, &e);
    } else if (!screen) {
        code = once(c, &v);
    } else {
        take_terminal(&v);
        const bool ok = follow(&v, a->interval, &e);
        give_terminal_back(&v);
        code = qn_interrupted() ? QN_EXIT_SIGINT : ok ? QN_EXIT_OK : qn_cli_fail(c, &e);
    }
    qn_live_close(v.live);
    qn_reader_close(v.reader);
    qn_free(found);
    return code;
}

const qn_command qn_command_top = {
    .name = "top",
    .args = "[TRACE]",
    .summary = "Follow a run on the terminal: speed, phases, hottest steps, memory",
    .about = "Follows a trace while it is being written (another terminal runs `quern run --trace FILE.jsonl`) and "
             "draws, over and over "
             "in place: tokens a second now and in all, time of a token, how time divides into phases, memory, and "
             "the steps that "
             "took most. Without a name it takes the newest trace of the current folder.\n\n"
             "q leaves; k, o, r and l group the steps by kernel, op, role or layer. With --once, or when the output "
             "is no terminal, it "
             "prints what the trace has so far and ends.",
    .examples = "quern top run.jsonl\tfollow a run\n"
                "quern top --once run.jsonl\tone look, for a script\n",
    .min_args = 0,
    .max_args = 1,
    .groups = (const qn_opt_group[]){ { "Options", options, 0 }, { NULL, NULL, 0 } },
    .values_bytes = sizeof(top_args),
    .run = run,
};

/* terminal.c - a conversation on the terminal: libedit for the line, a history that outlives the program, four commands that
 * begin with a slash. Ctrl-C stops an answer; at the prompt, or a second time, it leaves. Without a terminal (--conversation
 * in a script) each line of stdin is one message. */
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/prompt.h"
#include "hub/hub.h"

enum { HISTORY_LINES = 1000 };

typedef struct console {
    EditLine *el;       /* NULL: stdin is no terminal */
    History *history;
    char *history_path; /* NULL: there is no place for it */
    char *line;         /* without terminal: getline's buffer */
    size_t cap;
    u64 n_new, decode_ns, n_turns;
} console;

static char *show_prompt(EditLine *el)
{
    static const char text[] = "> ";
    (void)el;
    return (char *)text; /* libedit only reads it */
}

/* Waits for a key. A Ctrl-C from just before the wait does not wake it, and the next may be long in coming: hence the rounds. */
static void await_key(void)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    while (!qn_interrupted() && poll(&in, 1, 100) == 0) continue;
}

/* libedit's own reader takes Ctrl-C for noise and reads on; this one gives up. */
static int read_char(EditLine *el, wchar_t *out)
{
    char bytes[4];
    u32 cp;
    (void)el;
    for (size_t n = 0; n < sizeof bytes;) {
        await_key();
        if (qn_interrupted()) return -1;
        const ssize_t got = read(0, bytes + n, 1);
        if (got < 0 && errno == EINTR && !qn_interrupted()) continue;
        if (got <= 0) return got < 0 ? -1 : 0;
        n++;
        if (qn_utf8_get(bytes, n, &cp)) return *out = (wchar_t)cp, 1;
        if (qn_utf8_whole(bytes, n) == n) break; /* no more bytes will make this a character */
    }
    *out = 0xFFFD;
    return 1;
}

static void open_history(console *k, const qn_cli *c)
{
    HistEvent ev;
    qn_err e = { 0 };
    char *dir = qn_place_path(QN_PLACE_STATE, &e);
    k->history = history_init();
    if (k->history) history(k->history, &ev, H_SETSIZE, HISTORY_LINES);
    if (dir && qn_mkdirs(dir, &e)) k->history_path = qn_path_join(dir, "history", &e);
    qn_free(dir);
    if (!k->history_path) qn_cli_debug(c, "no chat history: %s", e.msg);
    else if (k->history) history(k->history, &ev, H_LOAD, k->history_path); /* the first time there is none */
}

static void open_console(console *k, const qn_cli *c)
{
    if (!isatty(0)) return;
    setlocale(LC_CTYPE, "C.UTF-8"); /* what a character is, for libedit; numbers stay as they are */
    k->el = el_init("quern", stdin, stderr, stderr);
    if (!k->el) return;
    open_history(k, c);
    el_set(k->el, EL_PROMPT, show_prompt);
    el_set(k->el, EL_EDITOR, "emacs");
    el_set(k->el, EL_SIGNAL, 0);
    el_set(k->el, EL_GETCFN, read_char);
    if (k->history) el_set(k->el, EL_HIST, history, k->history);
    el_source(k->el, NULL);
}

static void close_console(console *k)
{
    HistEvent ev;
    if (k->history && k->history_path) history(k->history, &ev, H_SAVE, k->history_path);
    if (k->el) el_end(k->el);
    if (k->history) history_end(k->history);
    qn_free(k->history_path);
    free(k->line); /* getline's */
}

/* One line without its newline; false: the end, or Ctrl-C (then qn_interrupted). */
static bool read_line(console *k, const char **text, size_t *n)
{
    int got = 0;
    qn_interrupt_polled(true);
    if (k->el) {
        HistEvent ev;
        *text = el_gets(k->el, &got);
        if (k->history && *text && got > 1 && !qn_interrupted()) history(k->history, &ev, H_ENTER, *text);
    } else {
        got = (int)getline(&k->line, &k->cap, stdin);
        *text = k->line;
    }
    qn_interrupt_polled(false);
    if (!*text || got <= 0 || qn_interrupted()) return false;
    *n = (size_t)got;
    while (*n && ((*text)[*n - 1] == '\n' || (*text)[*n - 1] == '\r')) *n -= 1;
    return true;
}

static void print_stats(const qn_talk *t, const console *k)
{
    qn_memory m;
    char weights[32], kv[32], resident[32];
    qn_engine_get_memory(t->engine, &m);
    fprintf(stderr, "context  %d of %d tokens\n", qn_session_pos(t->session), qn_session_n_ctx(t->session));
    fprintf(stderr, "answers  %llu, %llu tokens, decode at %.1f tok/s\n", (unsigned long long)k->n_turns,
            (unsigned long long)k->n_new, k->decode_ns ? (double)k->n_new * 1e9 / (double)k->decode_ns : 0);
    fprintf(stderr, "memory   weights %s, KV cache %s, resident %s\n", qn_human_bytes(m.weights, weights),
            qn_human_bytes(m.kv, kv), qn_human_bytes(m.resident, resident));
    fprintf(stderr, "threads  %d, %s\n", qn_engine_threads(t->engine), qn_engine_isa(t->engine));
}

/* Commands begin with a slash. False: leave. */
static bool obey(qn_talk *t, const console *k, const char *line)
{
    if (!strcmp(line, "/quit") || !strcmp(line, "/exit") || !strcmp(line, "/bye")) return false;
    if (!strcmp(line, "/reset") || !strcmp(line, "/clear")) {
        qn_talk_reset(t);
        fputs("The conversation is forgotten.\n", stderr);
    } else if (!strcmp(line, "/stats")) {
        print_stats(t, k);
    } else {
        if (strcmp(line, "/help")) fprintf(stderr, "There is no command %.40s.\n", line);
        fputs("/help   this\n/stats  context, speed and memory\n/reset  forget the conversation\n/quit   leave (also Ctrl-D)\n"
              "Ctrl-C stops an answer; at the prompt it leaves.\n", stderr);
    }
    return true;
}

/* One turn. Returns an exit code when the chat cannot go on, else -1. */
static int answer(qn_talk *t, console *k, const char *text, size_t n)
{
    qn_err e = { 0 };
    qn_answer a = { .stream = true };
    int code = -1;
    const bool ok = qn_talk_say(t, text, n, &a, &e);
    qn_cli_write("\n", 1);
    if (!qn_cli_flush()) code = QN_EXIT_OK; /* main finds out why */
    if (ok || e.code == QN_ECANCELLED) qn_answer_figures(t->cli, &a);
    if (!ok && e.code != QN_ECANCELLED) {
        qn_cli_fail(t->cli, &e);
        if (e.code == QN_ECONTEXT) fputs("/reset forgets the conversation and makes room.\n", stderr);
        else if (e.code == QN_ENOMEM || e.code == QN_EIO) code = e.code == QN_ENOMEM ? QN_EXIT_MEMORY : QN_EXIT_FAIL;
    }
    k->n_new += a.result.n_new > 1 ? (u64)a.result.n_new - 1 : 0;
    k->decode_ns += a.result.decode_ns;
    k->n_turns++;
    qn_interrupt_clear(); /* it stopped this answer, not the chat */
    qn_answer_close(&a);
    return code;
}

static int talk(qn_talk *t, console *k)
{
    for (;;) {
        const char *text = NULL;
        size_t n = 0;
        if (!read_line(k, &text, &n)) {
            if (k->el) fputc('\n', stderr);
            return qn_interrupted() ? QN_EXIT_SIGINT : QN_EXIT_OK;
        }
        if (n == 0) continue;
        if (text[0] == '/') {
            char command[64] = "";
            memcpy(command, text, qn_minz(n, sizeof command - 1));
            if (!obey(t, k, command)) return QN_EXIT_OK;
            continue;
        }
        const int code = answer(t, k, text, n);
        if (code >= 0) return code;
    }
}

int qn_chat(qn_talk *t, const char *first, size_t n_first)
{
    console k = { 0 };
    int code = -1;
    open_console(&k, t->cli);
    if (k.el) {
        qn_cli_note(t->cli, "%s (%s), /help for help.%s", t->info.name ? t->info.name : t->info.path, t->info.type,
                    t->templated ? "" : " It has no chat template: it continues what you type.");
    }
    if (first) code = answer(t, &k, first, n_first);
    if (code < 0) code = talk(t, &k);
    close_console(&k);
    return code;
}

/* main.c - finds the command, parses its options, runs it, and turns what happened into an exit code. Knows no command by
 * name: they are rows of commands.def. The locale is never set, so numbers are written with '.' everywhere. */
#include <poll.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"

#define COMMAND(name) extern const qn_command qn_command_##name;
#include "cli/commands.def"
#undef COMMAND

const qn_command *const *qn_commands(void)
{
    static const qn_command *const all[] = {
#define COMMAND(name) &qn_command_##name,
#include "cli/commands.def"
#undef COMMAND
        NULL,
    };
    return all;
}

const qn_command *qn_command_find(const char *name)
{
    for (const qn_command *const *k = qn_commands(); *k; k++)
        if (!strcmp((*k)->name, name)) return *k;
    return NULL;
}

static int unknown_command(const qn_cli *c, const char *typed)
{
    const char *names[64];
    size_t n = 0;
    qn_err e = { 0 };
    for (const qn_command *const *k = qn_commands(); *k && n < QN_COUNT(names); k++) names[n++] = (*k)->name;
    const char *near = qn_nearest(typed, names, n);
    qn_fail(&e, QN_EUSAGE, "unknown command %.60s%s%s%s", typed, near ? "; did you mean " : "", near ? near : "",
            near ? "?" : "; `quern --help` lists them");
    return qn_cli_fail(c, &e);
}

static bool is_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help"); }

/* The words that are not commands. -1: this is none of them. */
static int run_word(const qn_cli *c, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    const char *next = argc > 2 ? argv[2] : NULL;
    const bool asked = next && is_help(next);
    qn_buf b = { 0 };
    if (!strcmp(word, "--version")) {
        qn_help_version(next && !strcmp(next, "--json"), &b);
    } else if (is_help(word) && (!next || asked || strcmp(word, "help"))) {
        qn_help_program(&b);
    } else if (!strcmp(word, "help") && !strcmp(next, "completion")) {
        qn_help_shells(&b);
    } else if (!strcmp(word, "help")) {
        const qn_command *k = qn_command_find(next);
        if (!k) return unknown_command(c, next);
        qn_help_long(k, &b);
    } else if (!strcmp(word, "__trace")) {
        qn_trace_page(&b);
    } else if (!strcmp(word, "__man")) {
        qn_help_man(&b);
    } else if (!strcmp(word, "completion")) {
        qn_err e = { 0 };
        if (asked) {
            qn_help_shells(&b);
        } else if (!next || !qn_help_completion(next, &b)) {
            qn_fail(&e, QN_EUSAGE, "completion: say bash, zsh or fish");
            return qn_cli_fail(c, &e);
        }
    } else {
        return -1;
    }
    const int code = qn_cli_finish(c, &b);
    return argc > 1 ? code : QN_EXIT_USAGE;
}

static int run_command(qn_cli *c, int argc, char **argv)
{
    qn_err e = { 0 };
    void *values = qn_new(c->command->values_bytes + 1, &e);
    c->values = values;
    int code = QN_EXIT_USAGE;
    if (!values || !qn_options_parse(c, argc, argv, values, &e)) {
        code = qn_cli_fail(c, &e);
    } else if (c->help) {
        qn_buf b = { 0 };
        qn_help_short(c->command, &b);
        code = qn_cli_finish(c, &b);
    } else {
        code = c->command->run(c, values);
    }
    qn_options_close(c, values);
    qn_free(values);
    return code;
}

/* Output that did not arrive is a failure, except when the reader simply had enough (`| head -1`). */
static int check_output(int code)
{
    struct pollfd out = { .fd = 1, .events = POLLOUT };
    if (qn_cli_flush() || code != QN_EXIT_OK) return code;
    const bool reader_left = poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
    return reader_left ? QN_EXIT_OK : QN_EXIT_FAIL;
}

int main(int argc, char **argv)
{
    qn_cli c = { .argc = argc, .argv = argv };
    qn_signals_init();
    int code = run_word(&c, argc, argv);
    if (code < 0) {
        c.command = qn_command_find(argv[1]);
        code = c.command ? run_command(&c, argc - 2, argv + 2) : unknown_command(&c, argv[1]);
    }
    return check_output(code);
}

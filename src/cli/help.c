/* help.c - everything that is said about the commands, made from their tables: --help, `quern help`, the man page. The
 * completions are in completion.c. What a row does not say is not said anywhere. */
#include <string.h>
#include <sys/utsname.h>

#include "base/cpu.h"
#include "cli/command.h"

enum { HELP_COLUMN = 30 }; /* where explanations begin */

static void put_names(qn_buf *out, const qn_opt *o)
{
    if (o->brief) qn_buf_printf(out, "-%s, ", o->brief);
    qn_buf_printf(out, "--%s", o->name);
    if (o->type != OPT_flag) qn_buf_printf(out, " %s", o->arg);
}

static void put_range(qn_buf *out, const qn_opt *o)
{
    const bool ranged = o->lo != 0 || o->hi != 0;
    if (o->type == OPT_list) qn_buf_puts(out, "; may be repeated");
    if (o->preset) qn_buf_printf(out, " (default %s)", o->preset);
    if (ranged && o->hi < 1e9) qn_buf_printf(out, " [%.10g to %.10g]", o->lo, o->hi);
    else if (ranged) qn_buf_printf(out, " [from %.10g]", o->lo);
}

static void put_option(qn_buf *out, const qn_opt *o, bool full)
{
    const size_t begin = out->n;
    qn_buf_puts(out, o->brief ? "  " : "      ");
    put_names(out, o);
    if (out->n - begin >= HELP_COLUMN) {
        qn_buf_putc(out, '\n');
        for (int i = 0; i < HELP_COLUMN; i++) qn_buf_putc(out, ' ');
    }
    while (out->n - begin < HELP_COLUMN && !out->failed) qn_buf_putc(out, ' ');
    qn_buf_puts(out, o->help);
    if (full) {
        put_range(out, o);
        if (o->alias) qn_buf_printf(out, "; also --%s", o->alias);
    } else if (o->preset) {
        qn_buf_printf(out, " (%s)", o->preset);
    }
    qn_buf_putc(out, '\n');
}

static void put_groups(const qn_command *k, qn_buf *out, bool full)
{
    for (const qn_opt_group *g = k->groups; g && g->opts; g++) {
        qn_buf_printf(out, "\n%s:\n", g->title);
        for (const qn_opt *o = g->opts; o->name; o++) put_option(out, o, full);
    }
    qn_buf_puts(out, "\nEverywhere:\n");
    for (const qn_opt *o = qn_common_opts; o->name; o++) put_option(out, o, full);
}

static void put_usage(const qn_command *k, qn_buf *out)
{
    qn_buf_printf(out, "Usage: quern %s [options]%s%s\n", k->name, *k->args ? " " : "", k->args);
}

void qn_help_short(const qn_command *k, qn_buf *out)
{
    put_usage(k, out);
    qn_buf_printf(out, "%s.\n", k->summary);
    put_groups(k, out, false);
    qn_buf_printf(out, "\n`quern help %s` says more.\n", k->name);
}

static void put_examples(const char *lines, qn_buf *out, const char *lead, const char *between)
{
    while (lines && *lines) {
        const char *tab = strchr(lines, '\t'), *end = strchr(lines, '\n');
        if (!end) end = lines + strlen(lines);
        if (!tab || tab > end) tab = end;
        qn_buf_puts(out, lead);
        qn_buf_put(out, lines, (size_t)(tab - lines));
        qn_buf_puts(out, between);
        if (tab < end) qn_buf_put(out, tab + 1, (size_t)(end - tab - 1));
        qn_buf_putc(out, '\n');
        lines = *end ? end + 1 : end;
    }
}

void qn_help_long(const qn_command *k, qn_buf *out)
{
    qn_buf_printf(out, "quern %s - %s\n\n", k->name, k->summary);
    put_usage(k, out);
    qn_buf_printf(out, "\n%s\n", k->about);
    put_groups(k, out, true);
    if (k->examples) {
        qn_buf_puts(out, "\nExamples:\n");
        put_examples(k->examples, out, "  ", "\n      ");
    }
}

static const char exit_codes[] =
    "0 all went well; 1 something failed; 2 the command line makes no sense; 3 a comparison found a regression; "
    "4 not enough memory; 130 stopped by Ctrl-C.";

void qn_help_program(qn_buf *out)
{
    qn_buf_puts(out, "quern runs language models on the machine you have, and tells you where every microsecond went.\n\n"
                     "Usage: quern COMMAND [options] [arguments]\n\nCommands:\n");
    for (const qn_command *const *k = qn_commands(); *k; k++)
        qn_buf_printf(out, "  %-12s %s\n", (*k)->name, (*k)->summary);
    qn_buf_puts(out, "  help         explain a command: quern help run\n"
                     "  completion   print completions for bash, zsh or fish\n\n"
                     "quern COMMAND --help lists a command's options; quern --version [--json] says what this is.\n");
}

/* ---- the man page --------------------------------------------------------------------------------------------------- */

static void put_roff(qn_buf *out, const char *s, size_t n) /* hyphens stay hyphens, a leading dot or quote stays text */
{
    bool line_start = true;
    for (size_t i = 0; i < n; i++) {
        const char ch = s[i];
        if (line_start && (ch == '.' || ch == '\'')) qn_buf_puts(out, "\\&");
        if (ch == '\n' && i + 1 < n && s[i + 1] == '\n') {
            qn_buf_puts(out, "\n.PP\n");
            i++;
            line_start = true;
            continue;
        }
        if (ch == '\\') qn_buf_puts(out, "\\e");
        else if (ch == '-') qn_buf_puts(out, "\\-");
        else qn_buf_putc(out, ch);
        line_start = ch == '\n';
    }
}

static void put_roff_text(qn_buf *out, const char *s) { put_roff(out, s, strlen(s)); }

static void put_roff_option(qn_buf *out, const qn_opt *o)
{
    qn_buf line = { 0 };
    put_names(&line, o);
    qn_buf_puts(out, ".TP\n.B ");
    if (line.p) put_roff(out, line.p, line.n);
    qn_buf_close(&line);
    line = (qn_buf){ 0 };
    qn_buf_puts(&line, o->help);
    put_range(&line, o);
    if (o->alias) qn_buf_printf(&line, "; also --%s", o->alias);
    qn_buf_putc(out, '\n');
    if (line.p) put_roff(out, line.p, line.n);
    qn_buf_putc(out, '\n');
    qn_buf_close(&line);
}

static void put_roff_command(qn_buf *out, const qn_command *k)
{
    qn_buf_printf(out, ".SS quern %s\n", k->name);
    qn_buf_puts(out, ".PP\n.B quern ");
    put_roff_text(out, k->name);
    qn_buf_puts(out, "\n[options] ");
    put_roff_text(out, k->args);
    qn_buf_puts(out, "\n.PP\n");
    put_roff_text(out, k->about);
    qn_buf_putc(out, '\n');
    for (const qn_opt_group *g = k->groups; g && g->opts; g++)
        for (const qn_opt *o = g->opts; o->name; o++) put_roff_option(out, o);
    if (!k->examples) return;
    qn_buf examples = { 0 };
    put_examples(k->examples, &examples, "", "\n    ");
    qn_buf_puts(out, ".PP\nExamples:\n.PP\n.nf\n");
    if (examples.p) put_roff(out, examples.p, examples.n);
    qn_buf_puts(out, ".fi\n");
    qn_buf_close(&examples);
}

void qn_help_man(qn_buf *out)
{
    qn_buf_puts(out, ".TH QUERN 1 \"\" \"quern " QN_VERSION "\" \"User Commands\"\n.SH NAME\n"
                     "quern \\- run language models and see where the time goes\n.SH SYNOPSIS\n.B quern\n"
                     "COMMAND [options] [arguments]\n.br\n.B quern help\n[COMMAND]\n.br\n.B quern completion\n"
                     "bash|zsh|fish\n.br\n.B quern \\-\\-version\n[\\-\\-json]\n.SH DESCRIPTION\n");
    put_roff_text(out, "quern runs language models from GGUF files and Hugging Face folders on the processor of this "
                       "machine. Results go to stdout, everything else to stderr. An option's value may follow as the "
                       "next word or after an equals sign; -- ends the options; - as a file name is stdin.\n\n"
                       "A MODEL is a GGUF file, a Hugging Face folder or a name that quern pull has fetched.");
    qn_buf_puts(out, "\n.SH COMMON OPTIONS\n");
    for (const qn_opt *o = qn_common_opts; o->name; o++) put_roff_option(out, o);
    qn_buf_puts(out, ".SH COMMANDS\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) put_roff_command(out, *k);
    qn_buf_puts(out, ".SH EXIT STATUS\n");
    put_roff_text(out, exit_codes);
    qn_buf_puts(out, "\n.SH ENVIRONMENT\n.TP\n.B NO_COLOR\nno colour on terminals.\n.TP\n.B QUERN_HOME\n"
                     "where models, caches and the chat history live, instead of the XDG folders.\n.TP\n"
                     ".B XDG_DATA_HOME, XDG_CACHE_HOME, XDG_STATE_HOME\nthe usual folders.\n.TP\n"
                     ".B HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE\nas Hugging Face's own tools read them.\n");
}

void qn_help_version(bool json, qn_buf *out)
{
    struct utsname u;
    const bool known = uname(&u) == 0;
    if (!json) {
        qn_buf_puts(out, "quern " QN_VERSION "\n");
        return;
    }
    qn_buf_puts(out, "{\"name\": \"quern\", \"version\": \"" QN_VERSION "\", \"compiler\": ");
    qn_buf_json(out, __VERSION__, strlen(__VERSION__));
    qn_buf_printf(out, ", \"machine\": \"%s\", \"system\": \"%s\", \"isa\": \"%s\", \"cpu\": ", known ? u.machine : "",
                  known ? u.sysname : "", qn_isa_name(qn_cpu_isa()));
    qn_buf_json(out, qn_cpu_name(), strlen(qn_cpu_name()));
    qn_buf_printf(out, ", \"threads\": %d}\n", qn_cpu_threads());
}

/* completion.c - what bash, zsh and fish need to complete quern's commands, options and choices; from the same tables as
 * the help. */
#include <string.h>

#include "cli/command.h"

typedef void each_opt(qn_buf *out, const qn_command *k, const qn_opt *o);

static void walk(qn_buf *out, const qn_command *k, each_opt *each)
{
    for (const qn_opt_group *g = k->groups; g && g->opts; g++)
        for (const qn_opt *o = g->opts; o->name; o++) each(out, k, o);
    for (const qn_opt *o = qn_common_opts; o->name; o++) each(out, k, o);
}

/* A word's text inside single quotes; the shells disagree on how to quote a quote, so it is left out. */
static void put_plain(qn_buf *out, const char *s)
{
    for (; *s; s++)
        if (!strchr("'[]:\\`", *s)) qn_buf_putc(out, *s);
}

static void put_choices(qn_buf *out, const char *choices)
{
    for (const char *p = choices; *p; p++) qn_buf_putc(out, *p == '|' ? ' ' : *p);
}

/* ---- bash */

static void bash_word(qn_buf *out, const qn_command *k, const qn_opt *o)
{
    (void)k;
    qn_buf_printf(out, " --%s", o->name);
}

static void bash_value(qn_buf *out, const qn_command *k, const qn_opt *o)
{
    if (o->type == OPT_flag) return;
    qn_buf_printf(out, "    %s:--%s", k->name, o->name);
    if (o->brief) qn_buf_printf(out, "|%s:-%s", k->name, o->brief);
    qn_buf_puts(out, ")");
    if (o->type != OPT_choice) {
        qn_buf_puts(out, " _filedir 2>/dev/null || COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n");
        return;
    }
    qn_buf_puts(out, " COMPREPLY=($(compgen -W '");
    put_choices(out, o->arg);
    qn_buf_puts(out, "' -- \"$cur\")); return;;\n");
}

static void bash(qn_buf *out)
{
    qn_buf_puts(out, "# bash completion for quern\n_quern() {\n  local cur=${COMP_WORDS[COMP_CWORD]} "
                     "prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n  COMPREPLY=()\n"
                     "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '");
    for (const qn_command *const *k = qn_commands(); *k; k++) qn_buf_printf(out, "%s ", (*k)->name);
    qn_buf_puts(out, "help completion --help --version' -- \"$cur\")); return\n  fi\n  case $verb:$prev in\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) walk(out, *k, bash_value);
    qn_buf_puts(out, "  esac\n  case $verb in\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) {
        qn_buf_printf(out, "    %s) words='", (*k)->name);
        walk(out, *k, bash_word);
        qn_buf_puts(out, "';;\n");
    }
    qn_buf_puts(out, "    help) words='");
    for (const qn_command *const *k = qn_commands(); *k; k++) qn_buf_printf(out, "%s ", (*k)->name);
    qn_buf_puts(out, "';;\n    completion) words='bash zsh fish';;\n    *) words=;;\n  esac\n  case $cur in\n"
                     "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"));;\n"
                     "    *) case $verb in help|completion) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"));;\n"
                     "       *) COMPREPLY=($(compgen -f -- \"$cur\"));; esac;;\n  esac\n}\n"
                     "complete -o filenames -F _quern quern\n");
}

/* ---- zsh */

static void zsh_option(qn_buf *out, const qn_command *k, const qn_opt *o)
{
    (void)k;
    qn_buf_printf(out, "        '%s--%s%s[", o->type == OPT_list ? "*" : "", o->name, o->type == OPT_flag ? "" : "=");
    put_plain(out, o->help);
    qn_buf_puts(out, "]");
    if (o->type == OPT_choice) {
        qn_buf_printf(out, ":%s:(", o->name);
        put_choices(out, o->arg);
        qn_buf_puts(out, ")");
    } else if (o->type != OPT_flag) {
        qn_buf_printf(out, ":%s:_files", o->name);
    }
    qn_buf_puts(out, "' \\\n");
}

static void zsh(qn_buf *out)
{
    qn_buf_puts(out, "#compdef quern\n_quern() {\n  local -a verbs\n  verbs=(\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) {
        qn_buf_printf(out, "    '%s:", (*k)->name);
        put_plain(out, (*k)->summary);
        qn_buf_puts(out, "'\n");
    }
    qn_buf_puts(out, "    'help:explain a command'\n    'completion:print completions for a shell'\n  )\n"
                     "  if (( CURRENT == 2 )); then _describe command verbs; return; fi\n"
                     "  local verb=$words[2]\n  shift words; (( CURRENT-- ))\n  case $verb in\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) {
        qn_buf_printf(out, "    %s)\n      _arguments \\\n", (*k)->name);
        walk(out, *k, zsh_option);
        qn_buf_puts(out, "        '*:file:_files';;\n");
    }
    qn_buf_puts(out, "    help) _describe command verbs;;\n    completion) _values shell bash zsh fish;;\n  esac\n}\n"
                     "_quern \"$@\"\n");
}

/* ---- fish */

static void fish_option(qn_buf *out, const qn_command *k, const qn_opt *o)
{
    qn_buf_printf(out, "complete -c quern -n '__fish_seen_subcommand_from %s' -l %s", k->name, o->name);
    if (o->brief) qn_buf_printf(out, " -%c %s", strlen(o->brief) == 1 ? 's' : 'o', o->brief);
    if (o->type == OPT_choice) {
        qn_buf_puts(out, " -x -a '");
        put_choices(out, o->arg);
        qn_buf_puts(out, "'");
    } else if (o->type != OPT_flag) {
        qn_buf_puts(out, " -r");
    }
    qn_buf_puts(out, " -d '");
    put_plain(out, o->help);
    qn_buf_puts(out, "'\n");
}

static void fish(qn_buf *out)
{
    qn_buf_puts(out, "# fish completion for quern\n");
    for (const qn_command *const *k = qn_commands(); *k; k++) {
        qn_buf_printf(out, "complete -c quern -n __fish_use_subcommand -a %s -d '", (*k)->name);
        put_plain(out, (*k)->summary);
        qn_buf_puts(out, "'\n");
        walk(out, *k, fish_option);
    }
    qn_buf_puts(out, "complete -c quern -n __fish_use_subcommand -a help -d 'explain a command'\n"
                     "complete -c quern -n __fish_use_subcommand -a completion -d 'print completions for a shell'\n"
                     "complete -c quern -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'\n");
}

void qn_help_shells(qn_buf *out)
{
    qn_buf_puts(out, "Usage: quern completion bash|zsh|fish\n"
                     "Print what the shell needs to complete quern's commands, options and their values; `make install` puts "
                     "it in place.\n\nExamples:\n"
                     "  source <(quern completion bash)\n      for this shell\n"
                     "  quern completion fish > ~/.config/fish/completions/quern.fish\n      for good\n");
}

bool qn_help_completion(const char *shell, qn_buf *out)
{
    if (!strcmp(shell, "bash")) bash(out);
    else if (!strcmp(shell, "zsh")) zsh(out);
    else if (!strcmp(shell, "fish")) fish(out);
    else return false;
    return true;
}

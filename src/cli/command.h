/* command.h - what a command is: one row in `commands.def`, one file, one table of options. Everything that is said about a
 * command is said in its table; the parser, --help, the man page and the completions of three shells are made from it.
 *
 * To add a command: write src/cli/cmd_<name>.c with a `const qn_command qn_command_<name>` and add COMMAND(<name>) to
 * commands.def. The command's values land in a struct of its own: an option row says where with QN_AT, which also checks
 * the field's type. Groups that several commands share (engine, sampling) are tables of their own with a base offset. */
#ifndef QN_COMMAND_H
#define QN_COMMAND_H

#include "base/buf.h"
#include "base/err.h"

/* Exit codes, documented in the man page. */
enum { QN_EXIT_OK = 0, QN_EXIT_FAIL = 1, QN_EXIT_USAGE = 2, QN_EXIT_REGRESSION = 3, QN_EXIT_MEMORY = 4, QN_EXIT_SIGINT = 130 };

typedef struct qn_list { const char **at; int n; } qn_list; /* a repeatable option; the strings are those of argv */

typedef enum qn_opt_type {
    OPT_flag,   /* bool, no argument; `--no-name` clears it */
    OPT_int,    /* int, lo..hi */
    OPT_u64,    /* u64 */
    OPT_real,   /* double, lo..hi */
    OPT_text,   /* const char * */
    OPT_choice, /* int: the index in `arg`, which reads "f16|f32|q8_0" */
    OPT_list    /* qn_list: may be given again and again */
} qn_opt_type;

typedef struct qn_opt {
    const char *name;   /* "top-k" for --top-k; a table ends with name NULL */
    const char *brief;  /* "k" for -k; NULL: none */
    const char *alias;  /* another long name, for those who come from elsewhere; NULL: none */
    qn_opt_type type;
    size_t at;          /* QN_AT(struct, field, type) */
    const char *arg;    /* how help calls the value; for OPT_choice the choices */
    const char *preset; /* the default as it would be typed; NULL: zero, none */
    const char *help;   /* one line, no capital, no full stop */
    double lo, hi;      /* for OPT_int and OPT_real; both 0: whatever the type holds */
} qn_opt;

/* The offset of a field; does not compile when the field has another type than the row says. */
#define QN_AT(T, field, type) \
    (offsetof(T, field) + 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((T *)0)->field), type) ? 1 : -1]))

typedef struct qn_opt_group { const char *title; const qn_opt *opts; size_t base; } qn_opt_group; /* ends with opts NULL */

typedef struct qn_cli qn_cli;

typedef struct qn_command {
    const char *name;
    const char *args;      /* "[MODEL] [PROMPT]", for the usage line */
    const char *summary;   /* one line for the list of commands */
    const char *about;     /* paragraphs for `quern help name` and the man page, separated by blank lines */
    const char *examples;  /* lines "command\twhat it does" */
    int min_args, max_args;
    const qn_opt_group *groups;
    size_t values_bytes;   /* sizeof the struct that the rows write to */
    int (*run)(qn_cli *c, void *values); /* returns an exit code */
} qn_command;

/* What every command gets. */
struct qn_cli {
    const qn_command *command;
    const char **args;     /* positional arguments */
    int n_args;
    bool quiet, verbose;
    int color;             /* 0 auto, 1 always, 2 never */
    bool help;
    char **argv;           /* the whole command line */
    int argc;
    const void *values;    /* of the command's options */
};

extern const qn_opt qn_common_opts[]; /* --help --quiet --verbose --color: every command has them */

/* All commands, in the order of commands.def, NULL behind the last. */
const qn_command *const *qn_commands(void);
const qn_command *qn_command_find(const char *name); /* NULL: none */
/* The known name nearest to `typed`, NULL when nothing is near. get(i) returns NULL behind the last. */
const char *qn_nearest(const char *typed, const char *const *names, size_t n);

/* ---- options.c ---------------------------------------------------------------------------------------------------- */

/* Parses argv[0..argc) for c->command into values (zeroed, values_bytes) and c->args. Lists and args are freed by
 * qn_options_close. */
bool qn_options_parse(qn_cli *c, int argc, char **argv, void *values, qn_err *e);
void qn_options_close(qn_cli *c, void *values);
/* Every option of the command with its value, as a JSON object. */
void qn_options_json(const qn_cli *c, qn_buf *out);

/* ---- help.c ------------------------------------------------------------------------------------------------------- */

void qn_help_program(qn_buf *out);                          /* quern --help */
void qn_help_short(const qn_command *k, qn_buf *out);       /* quern VERB --help */
void qn_help_long(const qn_command *k, qn_buf *out);        /* quern help VERB */
void qn_help_man(qn_buf *out);                              /* quern.1 */
void qn_help_shells(qn_buf *out);                           /* quern completion --help */
bool qn_help_completion(const char *shell, qn_buf *out);    /* bash, zsh, fish; false: none of them */
void qn_help_version(bool json, qn_buf *out);
void qn_trace_page(qn_buf *out);                            /* trace_doc.c: docs/TRACE.md */

/* ---- output.c: what every command prints with ---------------------------------------------------------------------- */

/* Reports e on stderr and returns the exit code that belongs to it. */
int qn_cli_fail(const qn_cli *c, const qn_err *e);
/* A sentence on stderr, unless --quiet. */
void qn_cli_note(const qn_cli *c, const char *fmt, ...) QN_PRINTF(2, 3);
/* The same, only with --verbose. */
void qn_cli_debug(const qn_cli *c, const char *fmt, ...) QN_PRINTF(2, 3);
/* Results: stdout. False once the reader is gone or the disk is full; the command should stop then, main says why. */
bool qn_cli_write(const void *p, size_t n);
bool qn_cli_printf(const char *fmt, ...) QN_PRINTF(1, 2);
bool qn_cli_flush(void);
/* Writes b to stdout, closes it, returns the exit code; no memory for b is reported too. */
int qn_cli_finish(const qn_cli *c, qn_buf *b);
/* Pieces of a long output, as qn_export_fn has them: to a qn_out, or to stdout where it is NULL. What such a command ends with: a
 * write to stdout that failed was said already. */
bool qn_cli_put(void *file, const void *p, size_t n, qn_err *e);
int qn_cli_end(const qn_cli *c, bool ok, const qn_err *e);
/* Colour for a stream (1 stdout, 2 stderr): an escape sequence, or "" where colour is not wanted. */
enum { QN_PLAIN, QN_BOLD, QN_DIM, QN_RED, QN_GREEN, QN_YELLOW, QN_CYAN };
const char *qn_cli_color(const qn_cli *c, int fd, int color);

/* Reads a file, or stdin for "-", whole. *out is yours. */
bool qn_cli_read(const char *path, char **out, size_t *n, qn_err *e);

/* ---- signals.c ---------------------------------------------------------------------------------------------------- */

void qn_signals_init(void);
bool qn_interrupted(void);
void qn_interrupt_clear(void);
/* While an engine is armed Ctrl-C cancels its pass; a second one ends the program. While `polled` work runs it only sets the
 * flag. With neither, it ends the program at once: nothing is lost then. */
void qn_interrupt_arm(qn_engine *en);
void qn_interrupt_polled(bool on);

/* ---- progress.c --------------------------------------------------------------------------------------------------- */

typedef struct qn_bar { bool on; uint64_t start_ns, drawn_ns; char what[48]; int width; } qn_bar;
void qn_bar_open(qn_bar *b, const qn_cli *c);                        /* draws only when stderr is a terminal */
bool qn_bar_show(void *bar, const char *what, double share);         /* a qn_progress_fn; false after Ctrl-C */
void qn_bar_close(qn_bar *b);                                        /* wipes the line */

/* ---- shared.c: option groups that several commands have, and what they mean ---------------------------------------- */

typedef struct qn_engine_args {
    int threads, isa, kv, n_ctx, n_batch, n_seq; /* n_seq has no option here */
    bool no_repack, no_tuning;
    const char *kernel;
    const char *device;
    const char *trace;     /* file to record to; NULL: none */
    int trace_level;
    u64 seed;              /* no options here: for the trace's header; ceilings NULL: those that are kept */
    const struct qn_ceilings *ceilings;
} qn_engine_args;
extern const qn_opt qn_engine_opts[];
#define QN_TRACE_HELP "record what happens, as JSONL; .zst: compressed"
#define QN_LEVEL_HELP "how much is recorded: requests; tokens too; every step too"
#define QN_DEVICE_HELP "auto, cpu, cuda or cuda:N; auto: a GPU if it works, else the CPU"

/* A model name as typed (file, folder, pulled name; NULL: the default one) to a path that is yours. */
bool qn_cli_find_model(const qn_cli *c, const char *name, char **path, qn_err *e);
/* Where `quern probe --tune` writes and engines read; yours. NULL: there is no place for it. */
char *qn_cli_tuning_path(void);

/* Finds and opens a model; with args also an engine, with a progress bar, armed for Ctrl-C. *en may be NULL when args is. */
bool qn_cli_open(const qn_cli *c, const char *name, const qn_engine_args *args, qn_model **m, qn_engine **en, qn_err *e);
/* Closes both, and the trace if there is one: ok says how its command ended. */
void qn_cli_close(qn_model *m, qn_engine *en, bool ok);
/* Layers that run on a GPU, for tables that ask: all or none. */
int qn_cli_gpu_layers(const qn_model *m, const qn_engine *en);
/* What convert and quantize do: the model args[0] written to args[1] by `write`, with a progress bar. Returns an exit code. */
typedef bool (*qn_write_fn)(const char *in, const char *out, const char *type, const qn_options *o, qn_err *e);
int qn_cli_rewrite(qn_cli *c, qn_write_fn write, const char *type, int threads);
/* "1 2 3", "1,2,3" or "[1, 2, 3]" to ids; every id must be below n_vocab (0: any). *ids is yours. */
bool qn_cli_parse_ids(const char *text, size_t n, int n_vocab, int32_t **ids, size_t *n_ids, qn_err *e);

#endif

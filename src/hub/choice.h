/* choice.h - lists of file names, and which files of a repository make one model. */
#ifndef QN_CHOICE_H
#define QN_CHOICE_H

#include "base/err.h"

typedef struct qn_names { char **at; size_t n, cap; } qn_names; /* zeroed is empty; owns its strings */
bool qn_names_add(qn_names *l, const char *name, qn_err *e);
void qn_names_sort(qn_names *l);
void qn_names_close(qn_names *l);

/* Plain files below dir, as paths relative to it; links are followed, broken ones left out. An absent dir is empty. */
bool qn_names_scan(qn_names *l, const char *dir, qn_err *e);

/* A path that stays below the folder it is joined to: relative, no "..", no control bytes. */
bool qn_is_safe_path(const char *s);

/* "x-00002-of-00005.gguf": the part's number and the count. False: not a part of a split file. */
bool qn_split_part(const char *name, int *part, int *n_parts);

typedef struct qn_choice {
    qn_names files; /* all that the model needs, relative to the repository */
    char *open;     /* the one to open: a GGUF file; NULL: the folder */
    char *folder;   /* the folder to open when open is NULL; "" is the repository itself */
} qn_choice;

/* Chooses among a repository's files. file: what the user named, a file or a folder; NULL: the best that is there, which is
 * Q4_K_M, then Q8_0, then others; without GGUF the safetensors with all that describes them. where: names the repository. */
bool qn_choice_open(qn_choice *c, const qn_names *all, const char *file, const char *where, qn_err *e);
void qn_choice_close(qn_choice *c);

#endif

/* hub.h - where models come from and where they lie: the places on disk, names to paths, downloads, the list of what is there.
 * Sees base only: it knows names of model files, never their content. The one folder beside cli/ that reads the environment.
 *
 * A model's name is one of
 *   a path                      an existing file or folder
 *   smollm2                     a file of the models folder, with or without .gguf
 *   [hf:]ORG/REPO[/FILE][@REV]  something in the Hugging Face cache, which other programs share with us
 *   nothing (NULL or "")        the default model that comes with the program */
#ifndef QN_HUB_H
#define QN_HUB_H

#include "base/err.h"

/* ---- places ------------------------------------------------------------------------------------------------------- */

typedef enum qn_place {
    QN_PLACE_MODELS, /* $QUERN_HOME/models, $XDG_DATA_HOME/quern/models, ~/.local/share/quern/models */
    QN_PLACE_CACHE,  /* $QUERN_HOME/cache,  $XDG_CACHE_HOME/quern,       ~/.cache/quern */
    QN_PLACE_STATE,  /* $QUERN_HOME/state,  $XDG_STATE_HOME/quern,       ~/.local/state/quern */
    QN_PLACE_HF      /* $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub */
} qn_place;

/* The folder's path, yours to free; it need not exist. NULL when neither HOME nor a variable says where it is. */
char *qn_place_path(qn_place place, qn_err *e);

/* ---- names to paths ----------------------------------------------------------------------------------------------- */

/* *path (yours) is a file or folder that qn_model_open can be given. */
bool qn_hub_find(const char *name, char **path, qn_err *e);

/* ---- downloads ---------------------------------------------------------------------------------------------------- */

typedef struct qn_hub_pulled { char *path; int n_files; u64 bytes, fetched; } qn_hub_pulled; /* fetched: over the wire, now */

/* Brings NAME ("smollm2" or a Hugging Face name) here, or finds that it is here already. p->path (yours) is what qn_hub_find
 * gives for it from then on. What was half done when it failed or was cancelled is kept, and continued the next time. */
bool qn_hub_pull(const char *name, qn_progress_fn progress, void *user, qn_hub_pulled *p, qn_err *e);

/* ---- what is there ------------------------------------------------------------------------------------------------ */

typedef struct qn_hub_model {
    char *name, *path;  /* what to type, and where it is */
    const char *kind;   /* "gguf" or "safetensors" */
    const char *from;   /* "built-in", "models", "hf" */
    u64 bytes;          /* all parts of it */
    i64 mtime;          /* seconds since 1970 */
} qn_hub_model;

typedef struct qn_hub_list { qn_hub_model *at; size_t n; } qn_hub_list;

/* Every model that qn_hub_find can find by name, built-in first, then by name. Places that are absent are just empty. */
bool qn_hub_list_open(qn_hub_list *l, qn_err *e);
void qn_hub_list_close(qn_hub_list *l);

#endif

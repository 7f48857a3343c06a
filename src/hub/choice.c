/* choice.c - which files of a repository make one model. The same choice is made over the server's list when pulling and over
 * the cache when finding, so that what was pulled is what is found. Looks at names only. */
#include "hub/choice.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- lists of names */

bool qn_names_add(qn_names *l, const char *name, qn_err *e)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 16;
        size_t bytes;
        if (!qn_mul(cap, sizeof *l->at, &bytes)) return qn_fail(e, QN_ENOMEM, "out of memory: %zu names", cap);
        char **at = qn_resize(l->at, bytes, e);
        if (!at) return false;
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n] = qn_strdup(name, e);
    return l->at[l->n] && ++l->n;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void qn_names_sort(qn_names *l)
{
    if (l->n) qsort(l->at, l->n, sizeof *l->at, by_text);
}

void qn_names_close(qn_names *l)
{
    for (size_t i = 0; i < l->n; i++) qn_free(l->at[i]);
    qn_free(l->at);
    *l = (qn_names){ 0 };
}

#define SCAN_DEPTH 8 /* a loop of linked folders ends here */

static bool scan(qn_names *l, const char *dir, const char *below, int depth, qn_err *e);

static bool scan_entry(qn_names *l, const char *dir, const char *below, const char *name, int depth, qn_err *e)
{
    struct stat st;
    char *path = qn_path_join(dir, name, e);
    char *rel = !path ? NULL : below[0] ? qn_path_join(below, name, e) : qn_strdup(name, e);
    bool ok = rel != NULL;
    if (ok && stat(path, &st) == 0) {
        if (S_ISREG(st.st_mode)) ok = qn_names_add(l, rel, e);
        else if (S_ISDIR(st.st_mode) && depth < SCAN_DEPTH) ok = scan(l, path, rel, depth + 1, e);
    }
    qn_free(rel);
    qn_free(path);
    return ok;
}

static bool scan(qn_names *l, const char *dir, const char *below, int depth, qn_err *e)
{
    DIR *d = opendir(dir);
    if (!d) return true; /* nothing there, or nothing that we may see */
    bool ok = true;
    for (const struct dirent *f; ok && (f = readdir(d));)
        if (f->d_name[0] != '.') ok = scan_entry(l, dir, below, f->d_name, depth, e);
    closedir(d);
    return ok;
}

bool qn_names_scan(qn_names *l, const char *dir, qn_err *e)
{
    const bool ok = scan(l, dir, "", 0, e);
    qn_names_sort(l); /* the order of a folder is the file system's mood */
    return ok;
}

bool qn_is_safe_path(const char *s)
{
    const size_t n = strlen(s);
    if (n == 0 || n > 1024 || s[0] == '/' || s[n - 1] == '/') return false;
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F || *p == '\\') return false;
    for (const char *at = s; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        const size_t len = strcspn(at, "/");
        if (len == 0 || len > 255 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.')) return false;
    }
    return true;
}

/* ---- what a name says */

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool has_tail(const char *name, const char *tail)
{
    const size_t n = strlen(name), m = strlen(tail);
    return n >= m && strcasecmp(name + n - m, tail) == 0;
}

static bool five_digits(const char *s, int *out)
{
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)s[i])) return false;
        *out = *out * 10 + (s[i] - '0');
    }
    return true;
}

#define SPLIT_TAIL (sizeof "-00001-of-00002.gguf" - 1)

bool qn_split_part(const char *name, int *part, int *n_parts)
{
    const size_t n = strlen(name);
    if (n < SPLIT_TAIL) return false;
    const char *t = name + n - SPLIT_TAIL;
    return t[0] == '-' && five_digits(t + 1, part) && memcmp(t + 6, "-of-", 4) == 0 && five_digits(t + 10, n_parts)
        && has_tail(name, ".gguf") && *part >= 1 && *part <= *n_parts;
}

/* True if name holds the word as one piece: "F16" is not in "BF16", "Q4_K" not in "Q4_K_M". */
static bool has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = name; *p; p++) {
        if (strncasecmp(p, word, n) != 0) continue;
        const bool left = p == name || !isalnum((unsigned char)p[-1]);
        const bool right = !isalnum((unsigned char)p[n]) && p[n] != '_';
        if (left && right) return true;
    }
    return false;
}

/* Best first: small enough to run anywhere, then exact enough, then whatever there is. */
static const char *const QUANTS[] = {
    "Q4_K_M", "Q8_0", "Q4_K_S", "Q5_K_M", "Q4_K", "Q5_K", "Q5_K_S", "Q6_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1",
    "IQ4_XS", "IQ4_NL", "MXFP4", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "F16", "FP16", "BF16", "F32",
};

static size_t rank(const char *name)
{
    for (size_t i = 0; i < QN_COUNT(QUANTS); i++)
        if (has_word(base_of(name), QUANTS[i])) return i;
    return QN_COUNT(QUANTS);
}

/* A GGUF that is a model by itself or the first part of one; vision parts and calibration data are not. */
static bool is_model_gguf(const char *name)
{
    int part, n_parts;
    const char *base = base_of(name);
    if (!has_tail(base, ".gguf") || strncasecmp(base, "mmproj", 6) == 0 || has_word(base, "imatrix")) return false;
    return !qn_split_part(base, &part, &n_parts) || part == 1;
}

/* ---- the choice */

static bool is_below(const char *name, const char *folder)
{
    const size_t n = strlen(folder);
    return n == 0 || (strncmp(name, folder, n) == 0 && name[n] == '/');
}

static bool has_name(const qn_names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i], name) == 0) return true;
    return false;
}

static const char *best_gguf(const qn_names *all, const char *folder)
{
    const char *best = NULL;
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->at[i];
        if (!is_below(name, folder) || !is_model_gguf(name)) continue;
        if (!best || rank(name) < rank(best) || (rank(name) == rank(best) && strcmp(name, best) < 0)) best = name;
    }
    return best;
}

#define MOST_PARTS 1000

/* One file, with all its parts if it is split. Any part stands for the whole. */
static bool take_file(qn_choice *c, const qn_names *all, const char *file, const char *where, qn_err *e)
{
    int part, n_parts;
    if (!qn_split_part(file, &part, &n_parts)) {
        c->open = qn_strdup(file, e);
        return c->open && qn_names_add(&c->files, file, e);
    }
    if (n_parts > MOST_PARTS) return qn_fail(e, QN_EFORMAT, "%s: %s: split into %d parts, at most %d are taken", where,
                                             qn_path_tail(file), n_parts, MOST_PARTS);
    char *name = c->open = qn_strdup(file, e);
    if (!name) return false;
    char *number = name + strlen(name) - SPLIT_TAIL + 1;
    for (int i = n_parts; i >= 1; i--) { /* down, so that part 1 stands in c->open at the end */
        char digits[16];
        snprintf(digits, sizeof digits, "%05d", i);
        memcpy(number, digits, 5);
        if (!has_name(all, name)) return qn_fail(e, QN_EFORMAT, "%s: part %s is missing", where, qn_path_tail(name));
        if (!qn_names_add(&c->files, name, e)) return false;
    }
    qn_names_sort(&c->files);
    return true;
}

/* Weights and everything that describes them. Other formats of the same weights stay away, and so does the second copy that
 * some publishers add (consolidated*.safetensors beside model*.safetensors). */
static bool is_wanted(const char *base, bool has_sharded)
{
    if (has_tail(base, ".safetensors")) return !has_sharded || strncmp(base, "consolidated", 12) != 0;
    return has_tail(base, ".json") || has_tail(base, ".jinja") || has_tail(base, ".txt")
        || (strncmp(base, "tokenizer", 9) == 0 && !has_tail(base, ".md"));
}

static bool take_folder(qn_choice *c, const qn_names *all, const char *folder, const char *where, qn_err *e)
{
    const size_t skip = folder[0] ? strlen(folder) + 1 : 0;
    bool weights = false, model = false;
    for (size_t i = 0; i < all->n; i++) {
        if (!is_below(all->at[i], folder) || strchr(all->at[i] + skip, '/')) continue;
        if (!has_tail(all->at[i], ".safetensors")) continue;
        weights = true;
        model |= strncmp(all->at[i] + skip, "model", 5) == 0;
    }
    if (!weights)
        return qn_fail(e, QN_EUNSUPPORTED, "%s: neither GGUF nor safetensors files are there (%zu files)", where, all->n);
    for (size_t i = 0; i < all->n; i++) {
        if (!is_below(all->at[i], folder) || strchr(all->at[i] + skip, '/')) continue;
        if (is_wanted(all->at[i] + skip, model) && !qn_names_add(&c->files, all->at[i], e)) return false;
    }
    qn_names_sort(&c->files);
    c->folder = qn_strdup(folder, e);
    return c->folder != NULL;
}

bool qn_choice_open(qn_choice *c, const qn_names *all, const char *file, const char *where, qn_err *e)
{
    const char *folder = "";
    *c = (qn_choice){ 0 };
    if (file && has_name(all, file)) return take_file(c, all, file, where, e);
    for (size_t i = 0; file && !folder[0] && i < all->n; i++)
        if (is_below(all->at[i], file)) folder = file;
    if (file && !folder[0]) return qn_fail(e, QN_EIO, "%s: no file named %s is there", where, qn_path_tail(file));
    const char *best = best_gguf(all, folder);
    return best ? take_file(c, all, best, where, e) : take_folder(c, all, folder, where, e);
}

void qn_choice_close(qn_choice *c)
{
    qn_names_close(&c->files);
    qn_free(c->open);
    qn_free(c->folder);
    *c = (qn_choice){ 0 };
}

/* file.h - files in: mapped or read whole, refused at once when they are not plain files. Files out: whole or not at all. */
#ifndef QN_FILE_H
#define QN_FILE_H

#include "base/err.h"

/* The end of a path, short enough to leave room for the rest of a message. Points into path. */
const char *qn_path_tail(const char *path);

/* Maps a plain file read-only. Folders, FIFOs, devices, sockets are refused without blocking. An empty file maps to
 * p = "" and bytes = 0. */
typedef struct qn_map { const u8 *p; u64 bytes; } qn_map;
bool qn_map_open(qn_map *m, const char *path, qn_err *e);
void qn_map_close(qn_map *m);
/* Mapped bytes that are not needed again soon leave resident memory; read once more, they come back. Memory that is of no
 * map is left alone. */
void qn_map_drop(const void *p, size_t n);

/* Reads a plain file into memory (NUL behind it); refuses more than `most` bytes. */
bool qn_file_read(const char *path, size_t most, char **out, size_t *n, qn_err *e);
bool qn_is_dir(const char *path);
bool qn_is_file(const char *path);

/* Writing: open makes a temporary beside path; commit does fsync, rename, fsync of the folder; close without it removes it. */
typedef struct qn_out { int fd; char *path, *temp; u64 bytes; } qn_out; /* zeroed is closed */
bool qn_out_open(qn_out *o, const char *path, qn_err *e);
bool qn_out_write(qn_out *o, const void *p, size_t n, qn_err *e);
bool qn_out_write_at(qn_out *o, u64 offset, const void *p, size_t n, qn_err *e); /* thread-safe */
bool qn_out_commit(qn_out *o, qn_err *e);
void qn_out_close(qn_out *o);

/* dir + "/" + name, allocated. */
char *qn_path_join(const char *dir, const char *name, qn_err *e);
/* The same for a file that must be in the folder: refuses names that are paths, links that lead out of the folder (but follows
 * those of a Hugging Face cache, from REPO/snapshots/REV to REPO/blobs), and what is not there. */
char *qn_path_within(const char *dir, const char *name, qn_err *e);
bool qn_mkdirs(const char *path, qn_err *e);
bool qn_mkdirs_for(const char *path, qn_err *e); /* the folder that a file of this path lies in */

/* A mapped file that was cut short raises SIGBUS when read, on whatever thread: what is gone reads as zero from then on. Whoever
 * has read maps asks here afterwards: false + QN_EIO if one of them was found cut short, now or before. Cheap while none
 * ever was: one atomic read. */
bool qn_maps_whole(const qn_map *maps, int n, const char *what, qn_err *e);
bool qn_bytes_whole(const void *p, const char *what, qn_err *e); /* the same for the map that p points into */

#endif

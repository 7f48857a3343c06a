/* sha256.h - SHA-256 (FIPS 180-4) over bytes that come in pieces. Names blobs and checks what was downloaded. */
#ifndef QN_SHA256_H
#define QN_SHA256_H

#include "base/err.h"

typedef struct qn_sha256 { u32 h[8]; u64 bytes; u8 block[64]; } qn_sha256;

void qn_sha256_begin(qn_sha256 *s);
void qn_sha256_add(qn_sha256 *s, const void *p, size_t n);
void qn_sha256_end(qn_sha256 *s, char hex[65]); /* lower case, NUL-terminated; begin again before more adds */

/* True if s is 64 hexadecimal digits. */
bool qn_is_sha256(const char *s);

#endif

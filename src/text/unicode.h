/* unicode.h - what the tokenizers ask of Unicode: characters out of any bytes, white space, the alphabet that byte-level
 * tokenizers spell bytes with, and normal forms. */
#ifndef QN_UNICODE_H
#define QN_UNICODE_H

#include "base/buf.h"

#define QN_BAD_BYTE 0xFFFFFFFFu /* cp of a byte that is no part of a character */

/* The character at s (n > 0). Never 0: a byte that begins no valid character is a character of its own, cp QN_BAD_BYTE. */
size_t qn_char_next(const char *s, size_t n, u32 *cp);
/* The character that ends at s + n (n > 0), by the same rule. */
size_t qn_char_prev(const char *s, size_t n, u32 *cp);
size_t qn_char_count(const char *s, size_t n);

bool qn_is_space(u32 cp);      /* White_Space */
bool qn_is_word(u32 cp);       /* letters, marks, digits, connectors, joiners */
bool qn_is_mark(u32 cp);       /* Mn, Mc, Me */

/* Byte-level spelling: every byte is one visible character, U+0021..U+0143. */
u32 qn_byte_to_char(u8 byte);
int qn_char_to_byte(u32 cp);   /* -1: no byte is spelled so */
void qn_bytes_spell(qn_buf *out, const char *s, size_t n);
/* False, nothing appended: some character spells no byte. */
bool qn_bytes_unspell(qn_buf *out, const char *s, size_t n);

typedef enum qn_form { QN_NFC, QN_NFD, QN_NFKC, QN_NFKD } qn_form;
/* Linear time whatever the text. Bytes that are no character stay as they are. */
bool qn_normal_form(qn_buf *out, const char *s, size_t n, qn_form form, qn_err *e);
void qn_lowercase(qn_buf *out, const char *s, size_t n);

/* As Rust's and Python's "replace": each maximal part of a broken character becomes U+FFFD. */
void qn_utf8_lossy(qn_buf *out, const char *s, size_t n);

#endif

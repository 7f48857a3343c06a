/* tokenizer_json.h - what the two readers of a tokenizer.json share: tokenizer_json.c reads the model and the tokens,
 * tokenizer_steps.c the lists of normalisers, pre-tokenisers and decoders. */
#ifndef QN_TOKENIZER_JSON_H
#define QN_TOKENIZER_JSON_H

#include "base/json.h"
#include "text/pipeline.h"

#define QN_MOST_STEPS 64u /* of each kind; the longest file in use has 8 */

typedef struct qn_reader { qn_tokenizer *t; const char *what; qn_err *e; } qn_reader;

/* Each reads one value of the file, NULL and null included, and fails naming file and key. */
bool qn_read_normalizer(qn_reader *r, yyjson_val *v);
bool qn_read_pre_tokenizer(qn_reader *r, yyjson_val *v);
bool qn_read_decoder(qn_reader *r, yyjson_val *v);

/* A key's value; missing or null gives the default. Another type fails. */
bool qn_read_bool(qn_reader *r, yyjson_val *v, const char *key, bool missing, bool *out);
bool qn_read_str(qn_reader *r, yyjson_val *v, const char *key, qn_str *out); /* missing: p NULL */
bool qn_read_need_str(qn_reader *r, yyjson_val *v, const char *key, qn_str *out); /* copied into the arena */
/* The "type" of an object; NULL with a message. */
const char *qn_read_type(qn_reader *r, yyjson_val *v, const char *key);
bool qn_read_fail(qn_reader *r, const char *key, const char *why);

#endif

/* describe.h - counts of a model that more than one place tells. */
#ifndef QN_DESCRIBE_H
#define QN_DESCRIBE_H

#include "model/model.h"

typedef struct qn_type_count { u64 tensors, weights, bytes; } qn_type_count;
void qn_model_count(const qn_model *m, qn_type_count by_type[N_DTYPES]);

qn_dtype qn_kv_dtype(int kv); /* QN_KV_* */

#endif

/* mix.h - which type each tensor of a model gets under a name such as Q8_0 or Q4_K_M. */
#ifndef QN_MIX_H
#define QN_MIX_H

#include "format/source.h"

/* Fills types [s->n_tensors] and puts general.file_type and general.quantization_version into s. Refuses a name that is
 * unknown or whose type cannot be made. */
bool qn_mix_plan(qn_source *s, const char *name, qn_dtype *types, qn_err *e);

#endif

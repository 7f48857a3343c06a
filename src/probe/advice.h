/* advice.h - in plain words, what slows a model down on this machine. */
#ifndef QN_ADVICE_H
#define QN_ADVICE_H

#include "probe/ceilings.h"
#include "probe/machine.h"

typedef struct qn_advice { char at[16][240]; int n; } qn_advice;

/* c NULL: nothing was measured. */
void qn_advise(const qn_machine *m, const qn_ceilings *c, qn_advice *out);

#endif

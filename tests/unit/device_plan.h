/* device_plan.h - for tests: the plan of an engine as a device gets it, as the decoder wrote it and with nothing fused. */
#ifndef QN_TEST_DEVICE_PLAN_H
#define QN_TEST_DEVICE_PLAN_H

#include "engine/engine.h"

static inline bool plan_for_device(qn_engine *en, qn_err *e)
{
    qn_plan plan = { .isa = en->plan.isa, .tuned = en->plan.tuned };
    qn_plan_close(&en->plan);
    en->plan = plan;
    return qn_decoder_plan(en->m, &en->b, &en->plan, e);
}

#endif

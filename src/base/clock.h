/* clock.h - monotonic time. */
#ifndef QN_CLOCK_H
#define QN_CLOCK_H

#include "base/types.h"

u64 qn_now_ns(void);

#endif

/* err.h - failing in one line. The error type itself is public: quern.h. */
#ifndef QN_ERR_H
#define QN_ERR_H

#include "quern.h"
#include "base/types.h"

/* Fills e (printf) and returns false. Control bytes and broken UTF-8 that came in through %s are escaped, the end is cut. */
bool qn_fail(qn_err *e, int code, const char *fmt, ...) QN_PRINTF(3, 4);

/* The same for a failed system call: appends strerror(errno). */
bool qn_fail_errno(qn_err *e, const char *fmt, ...) QN_PRINTF(2, 3);

/* Puts "what: " before the message that is there: a caller adds the file or the template it was busy with. */
bool qn_fail_within(qn_err *e, const char *what);

#endif

/* doctor.h - what the two halves of `quern doctor` share: the processor's (cmd_doctor.c) and a GPU's (doctor_device.c). */
#ifndef QN_CLI_DOCTOR_H
#define QN_CLI_DOCTOR_H

#include "base/stats.h"
#include "cli/command.h"

void qn_doctor_line(qn_buf *b, const qn_cli *c, const char *name, const char *fmt, ...) QN_PRINTF(4, 5);
void qn_doctor_json_text(qn_buf *b, const char *name, const char *text);
void qn_doctor_json_stats(qn_buf *b, const char *name, const qn_stats *s);

/* --device cuda or cuda:N. fast: looks only. */
int qn_doctor_device(qn_cli *c, const char *device, bool fast, bool json);

#endif

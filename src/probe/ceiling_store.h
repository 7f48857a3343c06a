/* ceiling_store.h - ceilings that were measured once, kept for runs that have no time to measure: by processor, instruction set
 * and number of threads, or by device. */
#ifndef QN_CEILING_STORE_H
#define QN_CEILING_STORE_H

#include "probe/ceilings.h"

/* Only medians are kept: load fills p50 (and n = 1 where there is one). note: as qn_db_open's, "" for none. */
bool qn_ceilings_save(const char *path, const qn_ceilings *c, char note[240], qn_err *e);
/* False without an error in *e: none are kept for this device ("": the processor, with this isa and number of threads). */
bool qn_ceilings_load(const char *path, const char *device, qn_isa isa, int threads, qn_ceilings *out, char note[240], qn_err *e);

#endif

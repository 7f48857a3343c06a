/* inventory.h - what find and list share. */
#ifndef QN_INVENTORY_H
#define QN_INVENTORY_H

#include "hub/hub.h"

#define QN_DEFAULT_NAME "quern-tiny"

/* The model that comes with the program. False with e->code QN_OK: there is none. */
bool qn_find_default(char **path, qn_err *e);

#endif

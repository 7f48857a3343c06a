/* make.h - a generic kernel under its name: qn_<op>_<type>_<ISA>_gen. The file that includes this says ISA. */
#ifndef QN_GENERIC_MAKE_H
#define QN_GENERIC_MAKE_H

#include "kernel/kernel.h"

#define NAME_(op, type, isa) qn_##op##_##type##_##isa##_gen
#define NAME(op, type, isa) NAME_(op, type, isa)
#define MAKE(op, type, call) \
    void NAME(op, type, ISA)(const void *args, qn_lane lane); \
    void NAME(op, type, ISA)(const void *args, qn_lane lane) { call; }

#endif

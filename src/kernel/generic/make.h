/* make.h - a generic kernel under its name: qn_<op>_<type>_<ISA>_gen, or another variant.
 * The file that includes this says ISA. */
#ifndef QN_GENERIC_MAKE_H
#define QN_GENERIC_MAKE_H

#include "kernel/kernel.h"

#define NAME_(op, type, isa, variant) qn_##op##_##type##_##isa##_##variant
#define NAME(op, type, isa, variant) NAME_(op, type, isa, variant)
#define MAKE_AS(variant, op, type, call) \
    void NAME(op, type, ISA, variant)(const void *args, qn_lane lane); \
    void NAME(op, type, ISA, variant)(const void *args, qn_lane lane) { call; }
#define MAKE(op, type, call) MAKE_AS(gen, op, type, call)

#endif

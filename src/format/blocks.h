/* blocks.h - the blocks and decoders of every type of dtypes.def. For kernels, which inline them; everybody else goes through
 * the table of dtype.h. */
#ifndef QN_BLOCKS_H
#define QN_BLOCKS_H

#include "format/f32.h"
#include "format/f16.h"
#include "format/bf16.h"
#include "format/q8_0.h"
#include "format/q4_0.h"
#include "format/q4_1.h"
#include "format/q5_0.h"
#include "format/q5_1.h"
#include "format/q2_k.h"
#include "format/q3_k.h"
#include "format/q4_k.h"
#include "format/q5_k.h"
#include "format/q6_k.h"
#include "format/iq4_nl.h"
#include "format/iq4_xs.h"
#include "format/mxfp4.h"

#endif

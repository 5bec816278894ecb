/* wrap.h: what the generated wrappers are made of (hooks.gen.c shows the pattern). */
#ifndef WEIR_INTERPOSE_WRAP_H
#define WEIR_INTERPOSE_WRAP_H

#include "interpose/record/capture.h"
#include "interpose/record/context.h"
#include "interpose/record/extract.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/table/rows.h"
#include "interpose/reroute/reroute.h"

/* Old functions are declared deprecated, and wrapping them is what we are here for. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Any argument as a 64-bit word. */
#define W(x) ((weir_word)(x))

/* What an out-pointer of the call holds: undefined after a failure, absent when NULL. */
#define WEIR_OUT(p) (c->status == 0 && (p) ? W(*(p)) : 0)

#define WEIR_SAME(function, type) __builtin_types_compatible_p(__typeof__(function), type)

#endif

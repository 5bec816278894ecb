/* reroutes.h: what Weir can do for a program, each by itself (reroutes.def): the words of
 * WEIR_REROUTE and of `weir run --reroute`, as a set of bits. */
#ifndef WEIR_BASE_REROUTES_H
#define WEIR_BASE_REROUTES_H

#include <stddef.h>
#include "core/base/options.h"

enum reroute_number {
#define REROUTE(NAME, word, by_default, of) REROUTE_NUMBER_##NAME,
#include "core/base/reroutes.def"
#undef REROUTE
  REROUTES
};

enum {
#define REROUTE(NAME, word, by_default, of) REROUTE_##NAME = 1 << REROUTE_NUMBER_##NAME,
#include "core/base/reroutes.def"
#undef REROUTE
  REROUTE_ALL = (1 << REROUTES) - 1,
  REROUTE_RELAXED = 1 << REROUTES, /* of a place: its frees do not wait (the mode relaxed) */
  REROUTE_DEFAULT = 0              /* what strict and relaxed do where nothing is named */
#define REROUTE(NAME, word, by_default, of) | ((by_default) ? 1 << REROUTE_NUMBER_##NAME : 0)
#include "core/base/reroutes.def"
#undef REROUTE
};

/* Before the remark in a trace that peer access was enabled, that a pool keeps its memory. */
#define REROUTE_NOTE "done by Weir: "

/* "device,pool": *out is the union. Errors: EINVAL, which states what would be right. */
static inline weir_status reroutes_read(unsigned *out, const char *name, const char *text)
{
  static const char *const words[] = {
#define REROUTE(NAME, word, by_default, of) #word,
#include "core/base/reroutes.def"
#undef REROUTE
      NULL};
  return option_choices(out, name, text, words);
}

#endif

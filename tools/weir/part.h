/* part.h: a file that is whole or not there: written beside its name, which it then takes. A signal that
 * ends weir meanwhile removes it. */
#ifndef WEIR_TOOLS_PART_H
#define WEIR_TOOLS_PART_H

#include <stdbool.h>

#include "core/base/status.h"

typedef struct part_file {
  const char *output; /* borrowed */
  char *path;         /* owned: what is written */
  bool made;
} part_file;

/* Makes it, empty, with these permissions. One at a time; part_end() whatever comes of it. Errors: EIO. */
weir_status part_begin(part_file *p, const char *output, unsigned mode);

/* Gives it its name where `s` is WEIR_OK, else removes it; returns `s`, or EIO. */
weir_status part_end(part_file *p, weir_status s);

#endif

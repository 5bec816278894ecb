/* activity.h: what the files of this folder share, and what the loader asks of it. */
#ifndef WEIR_INTERPOSE_ACTIVITY_H
#define WEIR_INTERPOSE_ACTIVITY_H

#include <stdbool.h>
#include <string.h>
#include "interpose/elf/elf.h"

/* `name` was looked up in `real`'s library: what the asker gets (clients.c). */
void *activity_wrap(const char *name, void *real);

/* Code of CUPTI's own: what it does with the driver is not the program's. */
static inline bool activity_is_cupti(const void *address)
{
  elf_object o;
  return elf_object_at(&o, address) && strncmp(o.soname, "libcupti.so", 11) == 0;
}

/* Whether it may be one of CUPTI's. */
static inline bool activity_is_name(const char *name)
{
  return name[0] == 'c' && name[1] == 'u' && name[2] == 'p' && name[3] == 't' && name[4] == 'i';
}

#endif

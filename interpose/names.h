/* names.h: what kernels are called. A NAME record is written the first time a handle is launched
 * (or made by name) in a spool; the event itself carries the handle only. */
#ifndef WEIR_INTERPOSE_NAMES_H
#define WEIR_INTERPOSE_NAMES_H

#include "interpose/record.h"

/* Before a slot is taken. */
void weir_name_launch(weir_call *c, uint64_t handle);                  /* is about to be recorded */
void weir_name_given(weir_call *c, uint64_t handle, const char *name); /* was made by that name */
void weir_name_of_kernel(weir_call *c, uint64_t handle,
                         uint64_t kernel); /* runs what `kernel` runs */

#endif

/* access.h: peer access that the program has left off (access.c). */
#ifndef WEIR_INTERPOSE_REROUTE_ACCESS_H
#define WEIR_INTERPOSE_REROUTE_ACCESS_H

#include "interpose/record/copy_args.h"

/* Before a copy, where REROUTE_ACCESS is on. */
void peer_access_at_copy(const copy_args *a);
/* The context of that number is gone. */
void peer_access_context_gone(unsigned number);

#endif

/* threads.h: work shared among the processor's cores. */
#ifndef WEIR_BACKEND_THREADS_H
#define WEIR_BACKEND_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/weir/threads.h"

typedef void (*parallel_part)(void *arg, int64_t from, int64_t to);

/* Calls `part` for pieces of at most `grain` that together are [0, count), in any order and by
 * several threads at once; returns when all are done. Every piece but the last begins at a multiple
 * of `grain` and is `grain` long, unless one thread does it all: then there is one call. From
 * within a part, and while another thread shares its work, the caller does all alone. */
void parallel_for(int64_t count, int64_t grain, parallel_part part, void *arg);

/* The same by at most `most` threads, each of which has a number below that while it works: room
 * for one's own. */
void parallel_for_most(int most, int64_t count, int64_t grain, parallel_part part, void *arg);
int parallel_self(void);

/* Whether work of 5 to 30 us is worth sharing: jobs follow each other so closely of late that
 * threads are awake, or will be for the next. Each such job asks, whatever comes of it. */
bool parallel_at_once(void);

#endif

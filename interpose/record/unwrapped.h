/* unwrapped.h: functions of the driver that the program gets by look-up and that nobody wrapped: a
 * newer driver's. One of them may start work, and a relaxed free, which waits for the work that was
 * noted, would not know of it. So their calls are noticed, and from the first one on frees wait.
 *
 * Functions that a program calls by name, without a look-up, and NVIDIA's private tables
 * (cuGetExportTable) are out of reach. */
#ifndef WEIR_INTERPOSE_RECORD_UNWRAPPED_H
#define WEIR_INTERPOSE_RECORD_UNWRAPPED_H

#define THUNKS      256 /* functions that can be watched */
#define THUNK_BYTES 64

#ifndef __ASSEMBLER__
#include <stdbool.h>

/* What the program gets for `real`, which it looked up as `name`: a way to it that notices its
 * first call. Without relaxed frees, and for what is such a way already: `real`. */
void *unwrapped_watch(const char *name, void *real);

/* The name of one that was called, or NULL. Not NULL, too, where more were looked up than can be
 * watched. */
const char *unwrapped_called(void);
bool unwrapped_overflowed(void);

/* Frees the lock, in a forked child: no thread there holds it. */
void unwrapped_forked(void);
#endif

#endif

/* verdict.h: whether staging is worth it, as an earlier program on this machine has measured it: a
 * file a key in $XDG_CACHE_HOME/weir or ~/.cache/weir, of two numbers, each the driver's time in
 * percent of ours. */
#ifndef WEIR_INTERPOSE_VERDICT_H
#define WEIR_INTERPOSE_VERDICT_H

#include <stdbool.h>

enum { WEIR_VERDICT_KEY = 512 }; /* bytes, its NUL included */

/* A key for a device and as many threads that copy on the host. False: none can be made. */
bool weir_verdict_key(char key[WEIR_VERDICT_KEY], unsigned device, unsigned threads);

/* A key for copies from one device to the other, by where they are plugged in. */
bool weir_verdict_key_peers(char key[WEIR_VERDICT_KEY], unsigned from, unsigned to);

/* 0: not measured. `which`: 0 or 1. */
unsigned weir_verdict_read(const char *key, int which);
void weir_verdict_write(const char *key, int which, unsigned percent);

#endif

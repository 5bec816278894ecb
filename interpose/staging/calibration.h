/* calibration.h: whether staging is worth it, as an earlier program on this machine has measured
 * it: a file a key in $XDG_CACHE_HOME/weir or ~/.cache/weir, of two numbers, each the driver's
 * time in percent of ours. */
#ifndef WEIR_INTERPOSE_STAGING_CALIBRATION_H
#define WEIR_INTERPOSE_STAGING_CALIBRATION_H

#include <stdbool.h>

enum { CALIBRATION_KEY_ROOM = 512 }; /* bytes, its NUL included */

/* A key for a device and as many threads that copy on the host. False: none can be made. */
bool calibration_key(char key[CALIBRATION_KEY_ROOM], unsigned device, unsigned threads);

/* A key for copies from one device to the other, by where they are plugged in. */
bool calibration_key_peers(char key[CALIBRATION_KEY_ROOM], unsigned from, unsigned to);

/* 0: not measured. `which`: 0 or 1. */
unsigned calibration_read(const char *key, int which);
void calibration_write(const char *key, int which, unsigned percent);

#endif

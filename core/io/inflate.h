/* inflate.h: deflated bytes (RFC 1951) that somebody else wrote, and the sum zip files keep. */
#ifndef WEIR_IO_INFLATE_H
#define WEIR_IO_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a deflated byte can become at most. */
enum { INFLATE_MOST = 1032 };

/* Exactly `room` bytes come from all `bytes`; else false, with some of `out` written. */
bool inflate_all(unsigned char *out, size_t room, const unsigned char *in, size_t bytes);
/* The CRC-32 of what `crc` is of (0: nothing) with `bytes` more after it. */
uint32_t crc32_of(uint32_t crc, const void *data, size_t bytes);

#endif

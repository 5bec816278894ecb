/* gzip.h: a gzip file whose blocks are stored, not compressed (RFC 1952, RFC 1951 3.2.4): what
 * readers want that take gzip alone, without a library for it. */
#ifndef WEIR_REPORTS_EXPORT_GZIP_H
#define WEIR_REPORTS_EXPORT_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GZIP_BLOCK 65535 /* bytes that a stored block can have */

typedef struct gzip {
  FILE *out;           /* borrowed; its error indicator shows that writing failed */
  uint32_t crc, bytes; /* of all; how many, modulo 2^32 */
  size_t count;        /* in block */
  uint32_t table[256]; /* of the CRC */
  unsigned char block[GZIP_BLOCK];
} gzip;

void gzip_begin(gzip *g, FILE *out);
void gzip_write(gzip *g, const void *bytes, size_t count);
void gzip_end(gzip *g);

#endif

/* sample.h: a small spool with something of everything, and its bytes, for those who damage them.
 */
#ifndef WEIR_TESTS_CORE_SAMPLE_H
#define WEIR_TESTS_CORE_SAMPLE_H

#include "tests/core/support.h"

enum {
  SAMPLE_CHUNKS = 2,
  SAMPLE_FULL = 60, /* records in chunk 0, handed over (key 1) */
  SAMPLE_OPEN = 40, /* records in chunk 1, still owned (key 2) */
  SAMPLE_RECORDS = SAMPLE_FULL + SAMPLE_OPEN,
  SAMPLE_BYTES = WEIR_SPOOL_HEADER + SAMPLE_CHUNKS * WEIR_SPOOL_UNIT
};

typedef struct sample {
  uint8_t *bytes;                 /* SAMPLE_BYTES, malloc'd */
  uint32_t used[SAMPLE_CHUNKS];   /* slots used in each chunk, an end mark included */
  uint32_t first[SAMPLE_RECORDS]; /* slot each record begins at, and after it the end */
  uint32_t after[SAMPLE_RECORDS]; /* slot behind each */
  char path[512];                 /* its file, in the folder given */
} sample;

/* Writes the spool into `folder` (by a process of its own, so that this one has none open) and
 * reads its bytes. */
void make_sample(sample *s, const char *folder);

/* Puts a right commit word into slot `slot` of chunk image `chunk` (its generation: 1). */
void recommit(uint8_t *bytes, uint32_t chunk, uint32_t slot);

#endif

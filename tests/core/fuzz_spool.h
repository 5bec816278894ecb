/* fuzz_spool.h: the fuzzer's input, a spool in few bytes.
 *
 * A spool proper is a megabyte of mostly nothing behind a check word no fuzzer guesses, so the
 * input says what is in it: this head, `entries` directory entries of 24 bytes, then `patches` of 4
 * bytes each (16-bit offset into the header's first part, 16-bit value), then slots of 64 bytes,
 * spread over the chunks by `per_chunk`. Slots get right commit words where bit 0 of `flags` says
 * so. */
#ifndef WEIR_TESTS_CORE_FUZZ_SPOOL_H
#define WEIR_TESTS_CORE_FUZZ_SPOOL_H

#include <stdint.h>

enum { FUZZ_COMMIT = 1, FUZZ_LIVE = 2, FUZZ_CUT = 4, FUZZ_CHUNKS = 8, FUZZ_UNITS = 64 };

typedef struct fuzz_head {
  uint8_t flags;      /* FUZZ_* */
  uint8_t entries;    /* directory entries given, modulo FUZZ_CHUNKS + 1 */
  uint8_t patches;    /* of the header */
  uint8_t cut;        /* FUZZ_CUT: the file ends this many slots behind the header */
  uint16_t per_chunk; /* slots before the next chunk is begun */
  uint16_t first;     /* slot the first goes to, in every chunk */
} fuzz_head;

#endif

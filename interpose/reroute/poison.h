/* poison.h: reads of uninitialised device memory that can be proved: a copy to the host whose bytes
 * are the pattern that the memory was filled with (fill.h).
 *
 * Proof are two whole words of the pattern in a row, each where eight divides the device's address
 * (one, where a row of the copy holds only one). The pattern has 40 random bits of each process, so
 * that no value which the program computes is taken for it; copies of it on the device keep their
 * phase mostly, and are found too. Not found are reads by kernels, whose results are the program's
 * own, and copies of less than eight bytes.
 *
 * A copy that is complete when it returns is looked at there. Of one that is not, the host's memory
 * is looked at when a later call of the same thread finds it complete, or at the thread's end: what
 * the program has overwritten meanwhile is not reported, and nothing is that did not come from the
 * device. */
#ifndef WEIR_INTERPOSE_POISON_H
#define WEIR_INTERPOSE_POISON_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/cuda_headers.h"

typedef struct poison_copy {         /* from a device to the host */
  uint64_t device, host;             /* addresses */
  uint64_t device_pitch, host_pitch; /* bytes from row to row; rows 1: not looked at */
  uint64_t width, rows;              /* bytes, count */
} poison_copy;

/* Looks at a copy that has succeeded. `stream`: it is complete only when this one is. */
void poison_check(const poison_copy *copy);
void poison_check_later(const poison_copy *copy, CUstream stream);

/* Looks at those of the calling thread's copies that are complete by now. */
void poison_poll(void);
/* Looks at all of them as they are; calls no CUDA. At the end of the thread or process. */
void poison_flush(void);
void poison_context_gone(unsigned number);

#endif

/* staging.h: pageable copies through page-locked memory of our own.
 *
 * A device can only read and write page-locked memory by itself; for any other the driver copies on
 * one thread, through a buffer of its own. Here several threads fill (or empty) a ring of
 * page-locked slots while the device drains it, all on the program's stream, so that the order is
 * what it was. To the device: returns when the program's memory may be used again (`wait`: when the
 * device has the data); from the device: when the program has it.
 *
 * It is used where it was measured to win: once a machine, device and direction (see calibrated()).
 */
#ifndef WEIR_INTERPOSE_STAGING_H
#define WEIR_INTERPOSE_STAGING_H

#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

#define WEIR_STAGE_MIN ((size_t)1 << 20) /* bytes; smaller copies are the driver's */

enum staging_use { WEIR_STAGE_AUTO, WEIR_STAGE_OFF, WEIR_STAGE_ON };

typedef struct staging_choice {
  enum staging_use use; /* ON: without measuring */
  unsigned threads;     /* that copy on the host; 0: min(4, processors) */
} staging_choice;

typedef struct staging_copy {
  bool to_device;
  bool always;     /* whatever was measured or is the default */
  bool wait;       /* to_device: until the device has the data */
  CUstream stream; /* the program's; CU_STREAM_LEGACY or _PER_THREAD for the default ones */
  char *host;
  size_t host_pitch; /* bytes from row to row */
  CUdeviceptr device;
  size_t device_pitch;
  size_t width, rows; /* bytes; rows 1: a copy in one dimension */
} staging_copy;

extern staging_choice staging_options;
void staging_start(const staging_choice *options);

/* Does the copy in the thread's current context (`number`, `device`: of it). False: it is the
 * driver's, nothing has happened. *result: the driver's answer. */
bool staging_run(const staging_copy *copy, unsigned number, unsigned device, CUresult *result);

/* A copy between the memories of two contexts on devices of which neither may access the other's:
 * out of one and into the other by way of the ring, both at once, as work of `stream`
 * (peer.c). */
typedef struct staging_peer_copy {
  CUdeviceptr dst, src;
  unsigned dst_context, src_context; /* numbers */
  size_t bytes;
  CUstream stream; /* the program's; CU_STREAM_LEGACY or _PER_THREAD for the default ones */
  bool blocking;   /* the program's call is the synchronous form */
  bool named;      /* it names both contexts or devices: cuMemcpyPeer and its kin */
} staging_peer_copy;

/* Copies between devices through page-locked memory. False: nothing has happened, and the driver
 * is to copy. *result: what the call returns. */
bool staging_run_peers(const staging_peer_copy *copy, CUresult *result);
void staging_peer_context_gone(unsigned number);
/* The program has waited for a context. */
void staging_peer_waited(void);

/* The context is gone and with it the ring's memory and events. */
void staging_context_gone(unsigned number);

/* Device memory to measure with (trial.c), in the thread's context and ready in any stream
 * of it: got and given back in `stream`, which has no other work, and without waiting for any
 * other. False: there is none. */
typedef struct staging_trial {
  CUdeviceptr at;
  CUmemoryPool pool; /* that it is from; owned */
} staging_trial;

bool staging_trial_alloc(staging_trial *t, unsigned device, size_t bytes, CUstream stream);
void staging_trial_free(staging_trial *t, CUstream stream);

/* The quickest of some copies by the driver, in percent of that of ours, one and the other in turn;
 * 0: one failed. Each is called with `of`, does the copy and waits for its end. */
unsigned staging_race(bool (*driver)(void *), bool (*ours)(void *), void *of);

typedef struct staging_question {
  const char *key;             /* of what is remembered (calibration.h); NULL: nothing can be */
  int which;                   /* of the two numbers there */
  unsigned device;             /* for the trace, as: */
  copy_kind kind;              /* and */
  size_t bytes;                /* of a copy that is measured */
  unsigned (*measure)(void *); /* percent as above, of: */
  void *of;
} staging_question;

/* Goes by what is remembered, or measures and remembers. */
bool staging_is_worth(const staging_question *q);

/* memcpy by several threads (threads.c); alone where they are busy or can't be had. */
void staging_memcpy(void *dst, const void *src, size_t bytes, unsigned threads);

#endif

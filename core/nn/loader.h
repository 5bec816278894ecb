/* loader.h: what a loader and an iteration of it are inside.
 *
 * An iteration is a ring of slots, one batch each, in the order of the batches. A batch goes
 * through
 *
 *   drawn   its items are named                (whoever loads it, one at a time: `draw` is held)
 *   loaded  its tensors are made               (a worker, or weir_loader_next() itself)
 *   staged  pinned, or on its way to a device  (the stager thread, in order, where one is wanted)
 *   taken   given to the program               (weir_loader_next())
 *
 * and its slot is empty again. Batches are numbered from 0, batch b is in slot b % window. A batch
 * is drawn when its slot is empty, that is, below taken + window. A failure is a batch, too: its
 * slot carries the status and the sentence to weir_loader_next().
 *
 * Words. window: slots. last: the number of batches, as soon as the sampler has ended. All that is
 * not stated to be otherwise is under `lock`. */
#ifndef WEIR_NN_LOADER_H
#define WEIR_NN_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include "core/weir/data.h"
#include "core/weir/stream.h"

struct weir_loader {
  _Atomic uint32_t refs;
  _Atomic uint64_t epoch; /* of the next iteration */
  weir_dataset set;
  weir_loader_options options; /* defaults filled in */
};

enum slot_state { SLOT_EMPTY, SLOT_BUSY, SLOT_LOADED, SLOT_STAGED };

typedef struct loader_slot {
  enum slot_state state;
  int64_t *index; /* the batch's items, room for batch_size; the drawer's and loader's */
  int64_t count;  /* of them */
  weir_batch batch;
  weir_event *copied; /* side's copies of the batch are done; NULL: nothing is copied */
  weir_status st;
  char text[512]; /* the sentence of st */
} loader_slot;

struct weir_loader_iter {
  weir_loader *loader;  /* a count of its own */
  pthread_mutex_t draw; /* the sampler, order, at; taken before lock */
  pthread_mutex_t lock;
  pthread_cond_t room;  /* a slot is empty, or stop */
  pthread_cond_t moved; /* a slot is loaded or staged, last is known, or stop */
  loader_slot *slot;    /* owned, `window` of them */
  int64_t window;
  int64_t *indices;           /* owned: all slots' index */
  int64_t drawn, taken, last; /* batches; last INT64_MAX: not known */
  bool stop;

  int64_t length; /* items, constant */
  int64_t *order; /* owned: shuffled items; NULL: in order, or a sampler's */
  int64_t at;     /* items named so far */

  bool pin;            /* to page-locked memory; constant, as all below */
  bool staging;        /* there is something to do between loading and taking */
  weir_device device;  /* to there, with an index; its type not given: nowhere */
  weir_device current; /* the current cuda device of the thread that began */
  weir_stream *side;   /* of `device`, the copies' (borrowed); NULL: none */
  pthread_t *worker;   /* owned */
  int workers;         /* running */
  pthread_t stager;
  bool stages; /* stager runs */
};

/* ---- sampler.c ------------------------------------------------------------------------------- */

/* order of an iteration where it is shuffled. Errors: ENOMEM. */
weir_status loader_shuffle(int64_t **out, int64_t length, uint64_t seed, uint64_t epoch);
/* Names the next batch's items in `s` (at most batch_size; count 0: no more). `draw` is held. */
weir_status loader_draw(weir_loader_iter *it, loader_slot *s);

/* ---- batch.c --------------------------------------------------------------------------------- */

/* Makes the batch of the items in s, or its failure. */
void loader_load(const weir_loader *l, loader_slot *s);
/* Pins and copies it; a failure takes the batch's place. */
void loader_stage(const weir_loader_iter *it, loader_slot *s);

#endif

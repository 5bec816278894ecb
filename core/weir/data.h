/* data.h: datasets and loaders: batches from items, made in advance by threads. Included by weir.h.
 *
 * Semantics are torch.utils.data's (its documentation as of 2.8), with threads in the place of
 * worker processes. A loader is what is to be loaded and how; an iteration of it is one epoch. What
 * comes out is the same, in the same order, for any number of workers.
 *
 *   for (st = weir_loader_begin(&it, loader); !st;) {
 *     if ((st = weir_loader_next(&batch, it)) || !batch.count) break;
 *     ... batch.tensor[0], batch.tensor[1] ...
 *     weir_batch_drop(&batch);
 *   }
 *   weir_loader_end(it);
 */
#ifndef WEIR_DATA_H
#define WEIR_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_BATCH_TENSORS 8

/* The tensors of an item, or of a batch: input, target, ... */
typedef struct weir_batch {
  int count;                               /* 0: none */
  weir_tensor *tensor[WEIR_BATCH_TENSORS]; /* new, `count` of them */
} weir_batch;

/* Releases the tensors; the batch is empty then. An empty one is nothing. */
WEIR_PUBLIC void weir_batch_drop(weir_batch *batch);
/* WEIR_BATCH batch = {0}; is dropped at the end of its block. */
#define WEIR_BATCH __attribute__((cleanup(weir_batch_drop))) weir_batch

/* Items by number. With workers, get is called from several threads at once. */
typedef struct weir_dataset {
  int64_t (*length)(void *user); /* items; below 0: it failed, with a reason (weir_fail) */
  /* Fills *out, which is empty, with the tensors of an item; what a failed call has put there is
   * dropped. */
  weir_status (*get)(weir_batch *out, void *user, int64_t index);
  void (*destroy)(void *user); /* with the loader's last use; NULL: nobody is called */
  void *user;                  /* the program's */
} weir_dataset;

/* A dataset of the rows of `count` tensors (borrowed: counted once more): item i is the i-th of
 * each. Its tensors are views. Errors: EINVAL "Size mismatch between tensors", ENOMEM. */
WEIR_PUBLIC weir_status weir_tensor_dataset(weir_dataset *out, weir_tensor *const *tensors,
                                            int count);

/* In which order. Called by one thread at a time, in order, not always the same one. */
typedef struct weir_sampler {
  weir_status (*begin)(void *user, uint64_t epoch); /* a new iteration; NULL: nobody is called */
  weir_status (*next)(int64_t *out, void *user);    /* the next item; -1: no more */
  void *user;                                       /* the program's */
} weir_sampler;

/* Makes a batch of `count` items (their tensors are borrowed). */
typedef weir_status (*weir_collate)(weir_batch *out, const weir_batch *items, int64_t count,
                                    void *user);

typedef struct weir_loader_options {
  int64_t batch_size;   /* items; 0: 1 */
  bool drop_last;       /* a batch that is not full is not given */
  bool shuffle;         /* another order in each epoch, which follows from seed and epoch */
  uint64_t seed;        /* of shuffle */
  weir_sampler sampler; /* next NULL: all items, in order or shuffled */
  weir_collate collate; /* NULL: each tensor is those of the items on a new first dimension */
  void *collate_user;   /* the program's */
  int workers;          /* threads that load; 0: weir_loader_next() does it */
  int prefetch_factor;  /* batches a worker makes in advance, at most; 0: 2 */
  bool pin_memory;      /* copied to page-locked memory, by a thread where there are workers */
  weir_device device;   /* copied there, during other work; type not given: stays */
} weir_loader_options;

typedef struct weir_loader weir_loader;
typedef struct weir_loader_iter weir_loader_iter;

/* *out is new; dataset is copied, its user data is the loader's from now on, also where this fails.
 * options NULL: one item a batch, in order. Errors: EINVAL "batch_size should be a positive integer
 * value, but got batch_size=-1", "sampler option is mutually exclusive with shuffle", "num_workers
 * option should be non-negative", "prefetch_factor option could only be specified in
 * multiprocessing", ENOMEM. */
WEIR_PUBLIC weir_status weir_loader_create(weir_loader **out, const weir_dataset *dataset,
                                           const weir_loader_options *options);
/* Steals it; iterations under way go on. NULL is nothing. */
WEIR_PUBLIC void weir_loader_release(weir_loader *loader);
/* WEIR_LOADER loader = NULL; is released at the end of its block. */
typedef weir_loader *weir_loader_owned;
static inline void weir_loader_drop(weir_loader **loader)
{
  weir_loader_release(*loader);
  *loader = NULL;
}
#define WEIR_LOADER __attribute__((cleanup(weir_loader_drop))) weir_loader_owned
/* Batches of an iteration without a sampler. Errors: the dataset's. */
WEIR_PUBLIC weir_status weir_loader_length(int64_t *out, const weir_loader *loader);
/* Epochs are counted from 0, one for each begin; the next one will be this. */
WEIR_PUBLIC void weir_loader_set_epoch(weir_loader *loader, uint64_t epoch);

/* Starts an iteration (*out is new) and its threads. Several of a loader may be under way.
 *
 * pin_memory: the batches are on the cpu, in page-locked memory. Without CUDA the log callback
 * (weir_set_log_callback) gets a warning and they are in ordinary memory.
 * device: batches are copied in a stream of the iteration's own; the stream that is current at
 * weir_loader_next() waits for that, not the host, if the memory is page-locked.
 * Errors: the dataset's and the sampler's, ENOMEM, EINVAL, those of the device. */
WEIR_PUBLIC weir_status weir_loader_begin(weir_loader_iter **out, weir_loader *loader);
/* The next batch (its tensors are new); count 0: no more. For one thread at a time. Errors: those
 * of loading this very batch, with their sentence: the next call gives the next batch. */
WEIR_PUBLIC weir_status weir_loader_next(weir_batch *out, weir_loader_iter *it);
/* Steals it: waits for calls of the dataset that are under way, and drops what is loaded. NULL is
 * nothing. */
WEIR_PUBLIC void weir_loader_end(weir_loader_iter *it);
/* WEIR_LOADER_ITER it = NULL; is ended at the end of its block. */
typedef weir_loader_iter *weir_loader_iter_owned;
static inline void weir_loader_iter_drop(weir_loader_iter **it)
{
  weir_loader_end(*it);
  *it = NULL;
}
#define WEIR_LOADER_ITER __attribute__((cleanup(weir_loader_iter_drop))) weir_loader_iter_owned

#ifdef __cplusplus
}
#endif

#endif

/* reroute.h: strict and relaxed: memory of the program out of our caches.
 *
 * A routed row's wrapper calls its handler (reroute_NAME) instead of the original, which the
 * handler gets and calls wherever it has nothing better: what we can't do exactly as the driver
 * does, the driver does. Pure questions whose answer depends on what is cached (handle_NAME)
 * record no event.
 *
 * Every pointer the program holds is the start of one real allocation. A block in a cache is real
 * memory that the program believes freed, so that questions about it get the answer the driver has
 * for an address that is nobody's, and the driver's own memory never seems smaller than without
 * us.
 *
 * strict: a free waits for the context's work, as cudaFree does; the block is reusable at once.
 * relaxed: a free does not wait; the block is reusable when the work of the streams that were busy
 * is complete (work.h). */
#ifndef WEIR_INTERPOSE_REROUTE_H
#define WEIR_INTERPOSE_REROUTE_H

#include "core/base/rules.h"
#include "interpose/process/mode.h"
#include "interpose/record/copy_args.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"
#include "interpose/reroute/fill.h"
#include "interpose/staging/staging.h"

typedef struct reroute_options {
  enum process_mode mode;
  unsigned reroutes; /* REROUTE_* */
  uint64_t
      keep_bytes; /* most cached bytes of a context; UINT64_MAX: min(10 % of the device, 4 GiB) */
  uint64_t decay_ms;
  const rule_list *rules; /* borrowed for the start only; NULL: none */
  fill_kind fill;         /* of blocks (fill.h) */
  staging_choice stage;
} reroute_options;

void reroute_start(const reroute_options *options);
/* The original has handed this address out: no cache has it, whatever its records have. A context
 * that is destroyed takes its memory with it, and its caches' records go a moment later. */
void reroute_address_handed_out(uint64_t address);

/* Nothing is routed or filled any more: where nothing is recorded, since what is not recorded is
 * not seen: contexts that end, captures, peer access. */
void reroute_end(void);
/* In a forked child: ends rerouting likewise, unless the parent had no context. Then the child has
 * lost nothing, and may be the one to use CUDA (a server that forks its workers first). */
void reroute_forked(void);

/* A call has failed with a CUresult or cudaError_t (their numbers agree where it matters). True:
 * the device has no memory and caches, this thread or another by them, have given some back since
 * this thread last asked, so that the call is worth another try; and so is each that fails then. */
bool reroute_should_retry(int error);

/* Such another try has succeeded. */
void reroute_retry_succeeded(int bank);

/* Notes the failure of a call that is not tried again. */
void reroute_note_error(int error);

/* Gives all that is cached back to the driver. True: some has gone back since this thread last
 * asked. */
bool reroute_release_cached(void);

/* The context, or all of a device's, is gone and its memory with it. */
void reroute_context_gone(unsigned number);
/* Peer access was enabled: from now on no free of device memory is kept. */
void reroute_peers_enabled(void);
/* A graph was made of work that may use any live block: none of these is cached from now on.
 * `tell`: in the trace, too. */
void reroute_taint_all(bool tell);

/* Whether the action is done anywhere in this process: calls that are no events otherwise are then,
 * so that the trace has what was done. */
static inline bool reroute_may(unsigned action)
{
  return process_reroutes_have(action) && process_mode_now() != WEIR_OBSERVE;
}

/* The original ends an event or a stream within another call. */
void kept_event_gone(uint64_t event);
void kept_stream_gone(uint64_t stream);

/* ---- handlers and questions ---------------------------------------------------------------------
 *
 * reroute_NAME(call, real, arguments...) does the call in place of the original, `real`;
 * handle_NAME answers a question (query.c). Their prototypes are made from hooks.tsv. */
#include "interpose/reroute/handlers.gen.h"

/* Does a copy in place of the original; false: the original has to. */
bool reroute_copy(hook_call *c, const copy_args *a);

/* What reroute_copy() looks at, by process_reroutes. */
void reroute_copies_start(void);

/* The entries of the driver's copies, NULL-terminated: while one of them is patched (elf/entry.h)
 * no copy of the runtime's is staged. */
void reroute_copies_know(const void *const *entries);

/* After a copy, whoever has done it. */
void reroute_look_at_copy(const hook_call *c, const copy_args *a);
static inline void reroute_copied(const hook_call *c, const copy_args *a, int error)
{
  if (__builtin_expect(fill_in_use == WEIR_FILL_POISON, 0) && !error) reroute_look_at_copy(c, a);
}

/* ---- memory as the program knows it (bounds.c) --------------------------------------------------
 *
 * Whether the driver, if it had only the memory that the program has, would refuse a copy or a
 * fill of `rows` rows of `width` bytes. Asked in the driver's functions, at any depth: a runtime's
 * copies arrive there, and its error is then its own. A refused batch has not begun; *failed
 * (NULL: not asked for): which of it. */
bool reroute_refuses_copy(const copy_args *a);
bool reroute_refuses_fill(uint64_t at, uint64_t pitch, uint64_t width, uint64_t rows);
bool reroute_refuses_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                           size_t count, size_t *failed);
bool reroute_refuses_boxes(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *failed);

/* What the address points to, as pointer_tag() returns it; where nothing is recorded, and the map
 * has the memory of caches alone, the driver is asked. Not for hot paths. */
block_tag reroute_tag(uint64_t at);

/* Returns the same of bytes at an address; `known`: the call requires that the driver knows it. */
bool reroute_refuses_bytes(uint64_t at, uint64_t bytes, bool known, int slot);

/* ---- within (defined in cache.c and query.c) ------------------------------------------------- */

/* What no allocation of the program can be: asked about, the driver answers as it does of memory
 * that was freed. */
#define WEIR_FREED_ADDRESS ((uint64_t)16)

typedef struct reroute_address { /* what an address is */
  enum { WEIR_ROUTED_NOT, WEIR_ROUTED_LIVE, WEIR_ROUTED_CACHED } what;
  uint64_t base, requested; /* LIVE: start and bytes that the program knows of */
  uint64_t again;           /* LIVE, and its memory was another block's before: the allocation's
                               number, from 1; else 0 */
} reroute_address;

/* The live block's memory has been shared: its free shall be a real one. */
void reroute_taint(uint64_t address, reroute_reason why);
/* A capture is live or a context has an error that stays: everything is the driver's. */
bool reroute_hands_off(void);
/* A context has an error that stays. */
bool reroute_context_broken(void);
/* What other libraries in the process have functions of their own for is left to them (owners.h).
 * At the first event, before the program's call. */
void reroute_make_way(void);
/* A debugger is at work, now that the program makes use of the device: all is the driver's. */
bool reroute_is_watched(void);

#endif

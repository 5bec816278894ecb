/* subscriber.h: what the recorder sees and who keeps the program's memory must hear at once: the
 * rerouter, which subscribes here and is not known here otherwise. One subscriber; before there is
 * one, nothing is kept, and the calls go nowhere. They come from the thread of the program's call,
 * within it, after the original has returned.
 */
#ifndef WEIR_INTERPOSE_SUBSCRIBER_H
#define WEIR_INTERPOSE_SUBSCRIBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/trace/event.h"

struct hook_call;

typedef struct record_subscriber {
  /* The original has handed this address out: no cache has it, whatever its records have. A context
   * that is destroyed takes its memory with it, and its caches' records go a moment later. */
  void (*allocated)(uint64_t address);
  /* The context of that number is gone, and its memory with it. */
  void (*context_gone)(unsigned number);
  /* Peer access was enabled. */
  void (*peers_enabled)(void);
  /* A graph was made of work that may use any live block. `in_trace`: the trace is to record it. */
  void (*graph_made)(bool in_trace);
  /* The block at that address is used by work of others than its context. */
  void (*shared)(uint64_t address, reroute_reason why);
  /* Returns whether the pool that the call takes from is to keep its memory (pools.h). */
  bool (*keeps_pool)(const struct hook_call *c);
} record_subscriber;

extern const record_subscriber *_Atomic record_subscribed;

/* From now on. `to` stays as long as the process. */
void record_subscribe(const record_subscriber *to);

static inline const record_subscriber *record_subscriber_now(void)
{
  return atomic_load_explicit(&record_subscribed, memory_order_acquire);
}

#endif

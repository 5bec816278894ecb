/* subscriber.c: see subscriber.h. */
#include "interpose/record/subscriber.h"

static void ignore_address(uint64_t address)
{
  (void)address;
}

static void ignore_context(unsigned number)
{
  (void)number;
}

static void ignore_peers(void) {}

static void ignore_graph(bool in_trace)
{
  (void)in_trace;
}

static void ignore_shared(uint64_t address, reroute_reason why)
{
  (void)address, (void)why;
}

static bool ignore_pool(const struct hook_call *c)
{
  (void)c;
  return false;
}

static const record_subscriber none = {ignore_address, ignore_context, ignore_peers,
                                       ignore_graph,   ignore_shared,  ignore_pool};

const record_subscriber *_Atomic record_subscribed = &none;

void record_subscribe(const record_subscriber *to)
{
  atomic_store_explicit(&record_subscribed, to, memory_order_release);
}

/* subscriber.c: see subscriber.h. */
#include "interpose/record/subscriber.h"

static void no_address(uint64_t address)
{
  (void)address;
}

static void no_context(unsigned number)
{
  (void)number;
}

static void no_peers(void) {}

static void no_graph(bool in_trace)
{
  (void)in_trace;
}

static void not_shared(uint64_t address, reroute_reason why)
{
  (void)address, (void)why;
}

static const record_subscriber none = {no_address, no_context, no_peers, no_graph, not_shared};

const record_subscriber *_Atomic record_subscribed = &none;

void record_subscribe(const record_subscriber *to)
{
  atomic_store_explicit(&record_subscribed, to, memory_order_release);
}

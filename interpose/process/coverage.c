/* coverage.c: which of CUDA's functions were looked up, called, or passed by, for every spool of
 * the process: those still to come as well. */
#include <stdio.h>
#include <string.h>
#include "interpose/process/process.h"

static _Atomic uint8_t coverage[WEIR_SPOOL_MAX_APIS]; /* WEIR_COVER_* */
static _Atomic uint32_t unknown_lookups;
static char unknown_name[64];

void coverage_add(uint16_t api, uint8_t bits)
{
  spool_header *h = spool_current();

  if (api >= WEIR_SPOOL_MAX_APIS) return;
  if ((atomic_load_explicit(&coverage[api], memory_order_relaxed) & bits) != bits)
    atomic_fetch_or_explicit(&coverage[api], bits, memory_order_relaxed);
  if (h && (atomic_load_explicit(&h->coverage[api], memory_order_relaxed) & bits) != bits)
    atomic_fetch_or_explicit(&h->coverage[api], bits, memory_order_relaxed);
}

void coverage_add_unknown(const char *name)
{
  spool_header *h = spool_current();

  if (atomic_fetch_add_explicit(&unknown_lookups, 1, memory_order_relaxed) == 0)
    (void)snprintf(unknown_name, sizeof unknown_name, "%s", name);
  if (h && atomic_fetch_add_explicit(&h->unknown_lookups, 1, memory_order_relaxed) == 0)
    (void)snprintf(h->unknown_name, sizeof h->unknown_name, "%s", name);
}

void process_publish_coverage(spool_header *h)
{
  uint32_t unknown = atomic_load(&unknown_lookups);

  for (unsigned i = 0; i < WEIR_SPOOL_MAX_APIS; i++) {
    uint8_t bits = atomic_load_explicit(&coverage[i], memory_order_relaxed);
    bits &= (uint8_t)~WEIR_COVER_CALLED;
    if (bits) atomic_fetch_or_explicit(&h->coverage[i], bits, memory_order_relaxed);
  }
  if (unknown && atomic_fetch_add(&h->unknown_lookups, unknown) == 0)
    memcpy(h->unknown_name, unknown_name, sizeof unknown_name);
}

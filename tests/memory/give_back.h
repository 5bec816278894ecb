/* give_back.h: a pool's unused memory goes back without a wait, which weir_pool_empty() makes
 * for what queued work may touch. For suites that want memory to stay behind work. */
#ifndef WEIR_TESTS_MEMORY_GIVE_BACK_H
#define WEIR_TESTS_MEMORY_GIVE_BACK_H

#include "core/memory/pool.h"

/* What is known to be unused goes back; nothing is waited for. */
static inline weir_status give_back_unawaited(mem_pool *p)
{
  pthread_mutex_lock(&p->lock);
  tcache_reclaim(p);
  epoch_collect(p);
  weir_status st = back_trim(p, p->clock(), UINT64_MAX, false);
  pthread_mutex_unlock(&p->lock);
  return st;
}

#endif

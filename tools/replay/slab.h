/* slab.h: many structs of one size, given out quickly and all freed at once: a model's bookkeeping.
 */
#ifndef WEIR_TOOLS_REPLAY_SLAB_H
#define WEIR_TOOLS_REPLAY_SLAB_H

#include <stdlib.h>
#include <string.h>

#define RP_SLAB_COUNT 256u

typedef struct rp_slab {
  size_t size;  /* of one, bytes; at least a pointer's, a multiple of 8 */
  void *unused; /* list through the first word */
  void *chunks; /* list through the first word, owned */
} rp_slab;

/* A zeroed struct, NULL: out of memory. */
static inline void *rp_slab_take(rp_slab *s)
{
  if (!s->unused) {
    char *chunk = malloc(sizeof(void *) * 2 + s->size * RP_SLAB_COUNT);
    if (!chunk) return NULL;
    *(void **)(void *)chunk = s->chunks;
    s->chunks = chunk;
    for (size_t i = RP_SLAB_COUNT; i-- > 0;) {
      void **one = (void **)(void *)(chunk + sizeof(void *) * 2 + s->size * i);
      *one = s->unused;
      s->unused = one;
    }
  }
  void *one = s->unused;
  s->unused = *(void **)one;
  return memset(one, 0, s->size);
}

static inline void rp_slab_put(rp_slab *s, void *one)
{
  *(void **)one = s->unused;
  s->unused = one;
}

static inline void rp_slab_free(rp_slab *s)
{
  while (s->chunks) {
    void *next = *(void **)s->chunks;
    free(s->chunks);
    s->chunks = next;
  }
  s->unused = NULL;
}

#endif

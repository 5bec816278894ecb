/* sampler.c: which items a batch has: in order, shuffled, or as the program's sampler states.
 *
 * Shuffling is Fisher and Yates' (Knuth, volume 2, algorithm P), on splitmix64 (Steele, Lea, Flood,
 * "Fast splittable pseudorandom number generators", OOPSLA 2014) started from seed and epoch:
 * nothing else takes part, so that an epoch can be repeated. */
#include <stdlib.h>
#include "core/base/require.h"
#include "core/nn/loader.h"

static uint64_t next_random(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* From 0 to bound - 1, each as likely (Lemire, "Fast random integer generation in an interval",
 * 2019). */
static uint64_t random_below(uint64_t *state, uint64_t bound)
{
  for (;;) {
    __extension__ unsigned __int128 product = (unsigned __int128)next_random(state) * bound;
    if ((uint64_t)product >= -bound % bound) return (uint64_t)(product >> 64);
  }
}

weir_status loader_shuffle(int64_t **out, int64_t length, uint64_t seed, uint64_t epoch)
{
  uint64_t state = seed;
  state = next_random(&state) ^ epoch;
  int64_t *order = calloc((size_t)length + 1, sizeof *order);
  *out = order;
  if (!order)
    return weir_fail(WEIR_ENOMEM, "no host memory to shuffle %lld items", (long long)length);
  for (int64_t i = 0; i < length; i++)
    order[i] = i;
  for (int64_t i = length - 1; i > 0; i--) {
    int64_t j = (int64_t)random_below(&state, (uint64_t)i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  return WEIR_OK;
}

/* The next item; -1: no more. */
static weir_status draw_one(weir_loader_iter *it, int64_t *out)
{
  const weir_sampler *s = &it->loader->options.sampler;
  if (s->next) {
    weir_status st = s->next(out, s->user);
    if (!st && *out >= it->length)
      st = fail_invalid("the sampler named item %lld, of a dataset of %lld", (long long)*out,
                        (long long)it->length);
    return st;
  }
  *out = it->at >= it->length ? -1 : it->order ? it->order[it->at] : it->at;
  return WEIR_OK;
}

weir_status loader_draw(weir_loader_iter *it, loader_slot *s)
{
  weir_status st = WEIR_OK;
  int64_t size = it->loader->options.batch_size, item;
  for (s->count = 0; s->count < size; it->at++) {
    if ((st = draw_one(it, &item)) || item < 0) break;
    s->index[s->count++] = item;
  }
  if (!st && s->count < size && it->loader->options.drop_last) s->count = 0;
  return st;
}

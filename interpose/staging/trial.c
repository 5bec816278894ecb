/* trial.c: whether staging is worth it, and device memory to measure it with. The memory comes
 * from a pool of our own and goes back in the order of a stream, because cuMemFree "may perform
 * implicit synchronization" (cuda.h): it would wait for all work of the context, and some of that
 * may wait for what this thread does when the program's copy, which waits for none of it, has
 * returned. A pool's free, and its end, wait for nothing. Where the driver has no pools nothing is
 * measured. */
#include "interpose/staging/staging.h"

#include "interpose/record/context.h"
#include "interpose/record/stats.h"
#include "interpose/staging/calibration.h"

enum { TRIALS = 3, WINS_PERCENT = 120 };

staging_choice staging_options;

static void destroy_trial_pool(CUmemoryPool pool)
{
  (void)WEIR_HELPER(cuMemPoolDestroy)(pool);
}

bool staging_trial_alloc(staging_trial *t, unsigned device, size_t bytes, CUstream stream)
{
  PFN_cuMemPoolCreate_v11020 create = WEIR_HELPER(cuMemPoolCreate);
  PFN_cuMemAllocFromPoolAsync_v11020 get = WEIR_HELPER(cuMemAllocFromPoolAsync);
  PFN_cuStreamSynchronize_v2000 wait = WEIR_HELPER(cuStreamSynchronize);
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)device}};
  *t = (staging_trial){0};
  if (!create || !get || !wait || !WEIR_HELPER(cuMemFreeAsync) || !WEIR_HELPER(cuMemPoolDestroy))
    return false;
  if (create(&t->pool, &props) != CUDA_SUCCESS) return false;
  if (get(&t->at, bytes, t->pool, stream) == CUDA_SUCCESS) {
    if (wait(stream) == CUDA_SUCCESS) return true;
    staging_trial_free(t, stream);
    return false;
  }
  destroy_trial_pool(t->pool);
  return false;
}

void staging_trial_free(staging_trial *t, CUstream stream)
{
  (void)WEIR_HELPER(cuMemFreeAsync)(t->at, stream);
  (void)WEIR_HELPER(cuStreamSynchronize)(stream);
  destroy_trial_pool(t->pool);
}

unsigned staging_race(bool (*driver)(void *), bool (*ours)(void *), void *of)
{
  uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
  for (int i = 0; i < TRIALS; i++) {
    uint64_t start = clock_ticks();
    if (!driver(of)) return 0;
    uint64_t middle = clock_ticks();
    if (!ours(of)) return 0;
    uint64_t end = clock_ticks();
    if (middle - start < best[0]) best[0] = middle - start;
    if (end - middle < best[1]) best[1] = end - middle;
  }
  return (unsigned)(best[0] * 100 / (best[1] ? best[1] : 1));
}

bool staging_is_worth(const staging_question *q)
{
  uint64_t start = clock_ticks();
  unsigned percent = q->key ? calibration_read(q->key, q->which) : 0;
  bool known = percent != 0;
  if (!known && (percent = q->measure(q->of)) && q->key)
    calibration_write(q->key, q->which, percent);
  cache_event_staging(start, q->device, q->kind, percent, known ? 0 : q->bytes);
  return percent >= WINS_PERCENT;
}

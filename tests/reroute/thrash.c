/* thrash.c: threads that have all of a small device between them, all of the time.
 *
 * `thrash THREADS OPERATIONS SEED MIB`: each thread allocates and frees blocks of whole pages at
 * random, with work of its own stream on them, and never has more than its share of the device's
 * MIB. So no allocation can fail: a free gives its memory back before it returns. Prints how many
 * did all the same, and how many blocks held what another thread wrote. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64, HELD = 64, PAGE = 2 << 20, LONGEST = 8 };

static unsigned operations, share; /* pages */

typedef struct worker {
  uint64_t state;
  unsigned number, held, pages, failed, wrong, errors;
  void *block[HELD];
  unsigned length[HELD];
  cudaStream_t stream;
  pthread_t thread;
} worker;

static uint64_t next_random_word(worker *w)
{
  uint64_t z = (w->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void free_random_block(worker *w)
{
  unsigned i = (unsigned)(next_random_word(w) % w->held);
  unsigned char first = 0;
  if (next_random_word(w) % 8 == 0) {
    w->errors += cudaMemcpyAsync(&first, w->block[i], 1, cudaMemcpyDeviceToHost, w->stream) ||
                 cudaStreamSynchronize(w->stream);
    w->wrong += first != w->number + 1;
  }
  w->errors += cudaFree(w->block[i]) != cudaSuccess;
  w->pages -= w->length[i];
  w->held--;
  w->block[i] = w->block[w->held];
  w->length[i] = w->length[w->held];
}

static void allocate_pages(worker *w, unsigned pages)
{
  void *p;
  if (cudaMalloc(&p, (size_t)pages * PAGE - next_random_word(w) % 4096) != cudaSuccess) {
    (void)cudaGetLastError();
    w->failed++;
    return;
  }
  w->errors += cudaMemsetAsync(p, (int)w->number + 1, 4096, w->stream) != cudaSuccess;
  w->block[w->held] = p;
  w->length[w->held++] = pages;
  w->pages += pages;
}

static void *run_thrash_worker(void *argument)
{
  worker *w = argument;
  w->errors += cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking) != cudaSuccess;
  for (unsigned i = 0; i < operations; i++) {
    uint64_t x = next_random_word(w);
    unsigned pages = 1 + (unsigned)(x >> 8) % LONGEST;
    if (x % 16 == 0) (void)sched_yield();
    while (w->held == HELD || (w->held && w->pages + pages > share))
      free_random_block(w);
    if (pages <= share) allocate_pages(w, pages);
  }
  while (w->held)
    free_random_block(w);
  w->errors += cudaStreamSynchronize(w->stream) != cudaSuccess;
  return NULL;
}

int main(int argc, char **argv)
{
  static worker w[MOST_THREADS];
  unsigned count = argc == 5 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
  if (!count || count > MOST_THREADS) return 2;
  operations = (unsigned)strtoul(argv[2], NULL, 10);
  share = (unsigned)strtoul(argv[4], NULL, 10) / 2 / count;
  unsigned failed = 0, wrong = 0, errors = 0;
  if (cudaFree(NULL) != cudaSuccess) return 1;
  for (unsigned i = 0; i < count; i++) {
    w[i].state = strtoul(argv[3], NULL, 10) * 1000 + i;
    w[i].number = i;
    if (pthread_create(&w[i].thread, NULL, run_thrash_worker, &w[i])) return 1;
  }
  for (unsigned i = 0; i < count; i++) {
    pthread_join(w[i].thread, NULL);
    failed += w[i].failed;
    wrong += w[i].wrong;
    errors += w[i].errors;
  }
  printf("%u failed, %u wrong, %u errors\n", failed, wrong, errors);
  return 0;
}

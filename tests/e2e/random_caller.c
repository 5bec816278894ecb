/* random_caller.c: SEED THREADS STEPS COUNTS-FILE. The seeded random caller (see random.h).
 *
 * Odd threads call through the per-thread-default-stream names, even ones through the legacy names;
 * every fourth thread mixes both. Exit 0: every call answered what the documentation says. */
#include "tests/e2e/random.h"

typedef struct job {
  caller c;
  tally sums;
  unsigned index, steps;
  pthread_t thread;
} job;

static void step_random_job(job *j)
{
  unsigned half = j->index % 4 == 3 ? caller_random_below(&j->c, 2) : j->index % 2;
  unsigned common = half ? ptds_operation_count : legacy_operation_count;
  unsigned all = common + (half ? ptds_table_operation_count : legacy_table_operation_count);
  unsigned i = caller_random_below(&j->c, all);
  if (i < common)
    (half ? ptds_operations : legacy_operations)[i](&j->c);
  else
    (half ? ptds_table_operations : legacy_table_operations)[i - common](&j->c);
}

static void *run_random_job(void *data)
{
  job *j = data;
  caller_open(&j->c);
  for (unsigned i = 0; i < j->steps && !j->c.failed; i++)
    step_random_job(j);
  caller_close(&j->c);
  return NULL;
}

/* What changes the whole process is done while there is one thread: peer access before the others
 * start, and a reset of a device after they ended, with a block left on it. */
static void before(caller *c)
{
  for (int d = 0; d < 2 && c->devices == 2; d++) {
    CALL(cudaSetDevice, d);
    CALL(cudaDeviceEnablePeerAccess, 1 - d, 0);
    EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess, 1 - d, 0);
  }
  (void)cudaGetLastError();
  CALL(cudaSetDevice, 0);
}

static void reset_all_devices(caller *c)
{
  void *p = NULL;
  CALL(cudaMalloc, &p, 12345);
  c->sums->alloc_calls++, c->sums->alloc_bytes += 12345;
  if (c->devices == 2) {
    CALL(cudaDeviceDisablePeerAccess, 1);
    CALL(cudaSetDevice, 1);
    CALL(cudaDeviceDisablePeerAccess, 0);
  }
  CALL(cudaDeviceReset);
  CALL(cudaSetDevice, 0);
  CALL(cudaDeviceReset);
}

static int finish(job *jobs, unsigned threads, caller *mine, const char *path)
{
  static tally all;
  int failed = 0;
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(jobs[i].thread, NULL);
    tally_add(&all, &jobs[i].sums);
    free(jobs[i].sums.moves);
    if (jobs[i].c.failed) {
      (void)fprintf(stderr, "random_caller: thread %u: %s answered %d in %s\n", i, jobs[i].c.failed,
                    jobs[i].c.failed_status, jobs[i].c.failed_in);
      failed = 1;
    }
  }
  reset_all_devices(mine);
  tally_add(&all, mine->sums);
  if (mine->failed) {
    (void)fprintf(stderr, "random_caller: %s answered %d\n", mine->failed, mine->failed_status);
    failed = 1;
  }
  return tally_write(&all, path) != 0 || failed;
}

int main(int argc, char **argv)
{
  if (argc != 5) return fprintf(stderr, "usage: random_caller SEED THREADS STEPS COUNTS\n"), 2;
  unsigned seed = (unsigned)strtoul(argv[1], NULL, 10);
  unsigned threads = (unsigned)strtoul(argv[2], NULL, 10);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1)
    return fprintf(stderr, "random_caller: no CUDA device\n"), 77;
  job *jobs = calloc(threads, sizeof *jobs);
  static tally mine_sums;
  caller mine = {.sums = &mine_sums, .devices = devices < DEVICES ? devices : DEVICES};
  if (!jobs) return 1;
  before(&mine);
  for (unsigned i = 0; i < threads; i++) {
    job *j = &jobs[i];
    j->index = i;
    j->steps = (unsigned)strtoul(argv[3], NULL, 10);
    j->c.rng = seed * UINT64_C(1000003) + i;
    j->c.sums = &j->sums;
    j->c.devices = devices < DEVICES ? devices : DEVICES;
    j->c.device = (int)(i / 2) % j->c.devices;
    if (pthread_create(&j->thread, NULL, run_random_job, j) != 0) return 1;
  }
  int failed = finish(jobs, threads, &mine, argv[4]);
  free(jobs);
  return failed;
}

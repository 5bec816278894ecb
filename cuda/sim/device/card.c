/* card.c: what things cost on a real card, so that what is slow there is slow here.
 *
 * Figures are published ones, of whoever measured them; a card that nobody measured alone has the
 * other's (alloc, free, launch, pin: the driver's and the host's work, not the card's).
 *
 *   device memory, NVLink  NVIDIA's data sheets: H100 SXM 3.35 TB/s and 900 GB/s, A100 80 GB SXM
 *                          2.039 TB/s and 600 GB/s. A copy reads and writes: half of the memory's;
 *                          one direction is half of NVLink's.
 *   h2d, d2h               pinned, by nvbandwidth: H100 52.77 GB/s (NVIDIA/nvbandwidth issue 24),
 *                          A100 25.13 GB/s (issue 42).
 *   pageable               the host's part: 6 GB/s (rapidsai/dask-cuda pull request 98: 5 to 6).
 *   a copy at all          6 us (arXiv 2602.21548, section 5.2: 5 to 7 us a cudaMemcpyAsync).
 *   launch                 5 us of the host's time (NVIDIA developer forum, topic 196616); 0.9 us
 *                          from kernel to kernel (NVIDIA's "Getting Started with CUDA Graphs":
 *                          kernels of 2.9 us, launched in advance, end every 3.8 us).
 *   graph                  a launch of a graph 3.5 us of the host's time, whatever is in it
 *                          (CUDA.jl's manual, "Graphs": 80 kernels in a row).
 *   access                 40 us to map a physical allocation and to give access to it (arXiv
 *                          2405.04437: cuMemMap and cuMemSetAccess), each one of a range (PyTorch
 *                          pull request 96995: by the number of allocations, not by their size);
 *                          all of it is in cuMemSetAccess here.
 *   record                 2.5 us an event with times, a tenth of that without (NVIDIA/NVTX issue
 *                          3: 400,000 records a second, ten times as many without times).
 *   alloc, free            cudaMalloc 13.9 us, cudaFree 46.7 us (eunomia-bpf/bpftime issue 506,
 *                          medians). A pool that has to grow takes what cudaMalloc does.
 *   pin, unpin             0.36 ms a MiB (rapidsai/dask-cuda issue 106: 11.6 ms for 32 MB); to give
 *                          back 0.22 ms (kekzl/imp issue 1653: 115 ms for 512 MiB).
 *
 * What has no such figure costs nothing: streams and events created, physical memory created and
 * released, what a pool still has. */
#include "cuda/sim/internal.h"

#include <string.h>
#include <time.h>

#define COPY_NS 6000
#define SPIN_NS 100000 /* what is shorter is waited for by looking at the clock */
#define MIB     ((uint64_t)1 << 20)
#define HOST_COSTS                                                                                 \
  .host_ns =                                                                                       \
      {[SIM_COST_ALLOC] = 13900,      [SIM_COST_FREE] = 46700,   [SIM_COST_LAUNCH] = 5000,         \
       [SIM_COST_GRAPH] = 3500,       [SIM_COST_ACCESS] = 40000, [SIM_COST_RECORD] = 250,          \
       [SIM_COST_RECORD_TIME] = 2500, [SIM_COST_PIN] = 362000,   [SIM_COST_UNPIN] = 225000},       \
  .kernel_ns = 900

static const struct card {
  const char *name;
  struct sim_link link[SIM_DIRECTIONS];
  double fill_bytes_per_ns;
  uint64_t host_ns[SIM_COSTS]; /* of the caller's time; of pins and unpins a MiB */
  uint64_t kernel_ns;          /* of the stream's time, at least */
} cards[] = {
    {.name = "a100",
     .link = {[SIM_H2D] = {25.13, COPY_NS},
              [SIM_D2H] = {25.13, COPY_NS},
              [SIM_D2D] = {1019.5, COPY_NS},
              [SIM_P2P] = {300, COPY_NS},
              [SIM_PAGEABLE] = {6, 0}},
     .fill_bytes_per_ns = 2039,
     HOST_COSTS},
    {.name = "h100",
     .link = {[SIM_H2D] = {52.77, COPY_NS},
              [SIM_D2H] = {52.77, COPY_NS},
              [SIM_D2D] = {1675, COPY_NS},
              [SIM_P2P] = {450, COPY_NS},
              [SIM_PAGEABLE] = {6, 0}},
     .fill_bytes_per_ns = 3350,
     HOST_COSTS},
};

_Atomic bool sim_has_card;
static _Atomic(const struct card *) the_card;

__attribute__((visibility("default"))) int weir_sim_set_card(const char *name)
{
  const struct card *found = NULL;
  for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
    if (name && strcmp(cards[i].name, name) == 0) found = &cards[i];
  if (name && *name && !found) {
    sim_print_once(NULL, "weir sim: no costs of this card are known: %s", name);
    return CUDA_ERROR_INVALID_VALUE;
  }
  atomic_store(&the_card, found);
  atomic_store(&sim_has_card, found != NULL);
  return weir_sim_set_link(NULL);
}

struct sim_link sim_card_link(enum sim_direction direction)
{
  const struct card *c = atomic_load(&the_card);
  return c ? c->link[direction] : (struct sim_link){0};
}

void sim_wait_until(uint64_t ns)
{
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  uint64_t now = sim_now_ns();
  while (now < ns && ns - now > SPIN_NS &&
         clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
    now = sim_now_ns();
  while (sim_now_ns() < ns)
    ;
}

void sim_spend_since(enum sim_cost what, size_t bytes, uint64_t since)
{
  const struct card *c = atomic_load(&the_card);
  if (!c) return;
  uint64_t ns = c->host_ns[what];
  if (what == SIM_COST_PIN || what == SIM_COST_UNPIN)
    ns = (uint64_t)((double)ns * (double)bytes / (double)MIB);
  sim_wait_until(since + ns);
}

void sim_spend_slow(enum sim_cost what, size_t bytes)
{
  sim_spend_since(what, bytes, sim_now_ns());
}

uint64_t sim_card_kernel_ns(void)
{
  const struct card *c = atomic_load(&the_card);
  return c ? c->kernel_ns : 0;
}

uint64_t sim_card_fill_ns(size_t bytes)
{
  const struct card *c = atomic_load(&the_card);
  return c ? COPY_NS + (uint64_t)((double)bytes / c->fill_bytes_per_ns) : 0;
}

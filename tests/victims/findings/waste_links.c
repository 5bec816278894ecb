/* waste_links.c: copies that are slow, that never run beside kernels, that come by a host buffer
 * that does not change, as far as calls tell; and launches that a queue has no room for. */
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 40 };

/* ---- slow-link ------------------------------------------------------------------------------- */

enum { LONG = 4 << 20 };

void set_link(const char *list)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int (*set)(const char *) =
      driver ? (int (*)(const char *))(uintptr_t)dlsym(driver, "weir_sim_set_link") : NULL;
  if (set && set(list)) exit(1);
}

/* A launch from here, where its site is. */
#define LAUNCH(stream, p)                                                                          \
  do {                                                                                             \
    float *memory = (float *)(void *)(p);                                                          \
    int n = 64;                                                                                    \
    void *args[] = {(void *)&memory, (void *)&n};                                                  \
    CHECK(cudaLaunchKernel(victim_kernel(), (dim3){2, 1, 1}, (dim3){64, 1, 1}, args, 0, stream));  \
  } while (0)

/* The fastest of several count: as many that some are fast on a machine with other work, too. */
static NOINLINE void copy_from_near(char *p, const char *host)
{
  for (int i = 0; i < 12; i++) {
    CHECK(cudaMemcpy(p, host, LONG, cudaMemcpyHostToDevice));
    LAUNCH(NULL, p);
    CHECK(cudaDeviceSynchronize());
  }
}

static NOINLINE void copy_from_far(char *p, const char *host, int times)
{
  for (int i = 0; i < times; i++) {
    CHECK(cudaMemcpy(p, host, LONG, cudaMemcpyHostToDevice)); /* WASTE slow-link */
    LAUNCH(NULL, p);
    CHECK(cudaDeviceSynchronize());
  }
}

static void copy_both(const char *far_away, int times)
{
  char *host = pinned_memory(LONG), *p = device_memory(LONG);
  CHECK(cudaDeviceSynchronize());
  set_link("h2d:200M");
  copy_from_near(p, host);
  set_link(far_away);
  copy_from_far(p, host, times);
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void slow_link(void)
{
  copy_both("h2d:40M", 3);
}

static void slow_link_twin(void)
{
  copy_both("h2d:150M", 12);
}

/* ---- no-overlap ------------------------------------------------------------------------------ */

/* A copy is queued behind a gate in a stream of its own, and a kernel in the default stream, which
 * waits for the other, or does not: then the kernel is the gate, and the copy runs beside it. */
static void copy_beside_kernels(int beside)
{
  volatile int *flags = (volatile int *)(void *)pinned_memory(64);
  char *host = pinned_memory(BYTES), *p = device_memory(2 * BYTES);
  cudaStream_t copies, kernels;
  CHECK(cudaStreamCreateWithFlags(&copies, beside ? cudaStreamNonBlocking : cudaStreamDefault));
  CHECK(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking));
  for (int i = 0; i < 10; i++) {
    flags[0] = flags[1] = 0;
    if (beside) {
      CHECK((cudaError_t)victim_gate_launch(kernels, flags));
      while (!flags[0])
        (void)usleep(100);
      CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, copies));
      CHECK(cudaStreamSynchronize(copies));
    } else {
      CHECK((cudaError_t)victim_gate_launch(copies, flags));
      CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, copies));
      LAUNCH(NULL, p + BYTES); /* WASTE no-overlap */
    }
    flags[1] = 1;
    CHECK(cudaDeviceSynchronize());
  }
  LAUNCH(NULL, p);
  CHECK(cudaStreamDestroy(copies));
  CHECK(cudaStreamDestroy(kernels));
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost((void *)(uintptr_t)flags));
}

static void no_overlap(void)
{
  copy_beside_kernels(0);
}

static void no_overlap_twin(void)
{
  copy_beside_kernels(1);
}

/* ---- launch-queue-full ----------------------------------------------------------------------- */

static void take_a_moment(void *unused)
{
  (void)unused;
  (void)usleep(100);
}

/* More than a queue holds, each with work of 100 us; or with a wait between. The limit is odd:
 * it is the kernel that waits for work to end, which comes before it by so many. */
static void queue_much(int wait)
{
  CHECK((cudaError_t)(setenv("WEIR_SIM_QUEUE", "1025", 1) ? 1 : 0));
  char *p = device_memory(4096);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < 800; i++) {
    CHECK(cudaLaunchHostFunc(s, take_a_moment, NULL));
    LAUNCH(s, p); /* WASTE launch-queue-full */
    if (wait && i == 400) CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

static void launch_queue_full(void)
{
  queue_much(0);
}

static void launch_queue_full_twin(void)
{
  queue_much(1);
}

/* ---- repeated-upload, through-the-host ------------------------------------------------------- */

/* The host buffer is the same each time; or a device writes it between. */
static void upload_again(int change)
{
  char *host = malloc(BYTES), *p = device_memory(BYTES), *other = device_memory(4096);
  memset(host, 3, BYTES);
  for (int i = 0; i < TIMES; i++) {
    if (change) CHECK(cudaMemcpy(host, other, 4096, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE repeated-upload */
    launch(NULL, (float *)(void *)other, 64);
  }
  CHECK(cudaFree(p));
  CHECK(cudaFree(other));
  free(host);
}

static void repeated_upload(void)
{
  upload_again(0);
}

static void repeated_upload_twin(void)
{
  upload_again(1);
}

/* What one device has made goes to the other; or each has a buffer of its own. */
static void move_by_host(int own)
{
  char *host = pinned_memory(2 * BYTES), *from = device_memory(BYTES);
  CHECK(cudaSetDevice(1));
  char *to = device_memory(BYTES);
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaSetDevice(0));
    launch(NULL, (float *)(void *)from, 64);
    CHECK(cudaMemcpyAsync(host, from, BYTES, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpy(to, host + own * BYTES, BYTES, /* WASTE through-the-host */
                     cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)to, 64);
  }
  CHECK(cudaFree(to));
  CHECK(cudaFree(from));
  CHECK(cudaFreeHost(host));
}

static void through_the_host(void)
{
  move_by_host(0);
}

static void through_the_host_twin(void)
{
  move_by_host(1);
}

/* ---- streams-serialised-by-events ------------------------------------------------------------ */

/* What is there for two streams, and a third. */
typedef struct streams_of_copies {
  cudaStream_t up, back, third;
  cudaEvent_t done, next;
  char *in, *out, *from, *to; /* `from` and `to`: page-locked */
} streams_of_copies;

static void make_streams(streams_of_copies *x)
{
  CHECK(cudaStreamCreateWithFlags(&x->up, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&x->back, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&x->third, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&x->done, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&x->next, cudaEventDisableTiming));
  x->in = device_memory(BYTES), x->out = device_memory(BYTES);
  x->from = pinned_memory(BYTES), x->to = pinned_memory(BYTES);
  CHECK(cudaDeviceSynchronize());
  set_link("h2d:1G,d2h:1G");
}

static void end_streams(const streams_of_copies *x)
{
  CHECK(cudaEventDestroy(x->done));
  CHECK(cudaEventDestroy(x->next));
  CHECK(cudaStreamDestroy(x->up));
  CHECK(cudaStreamDestroy(x->back));
  CHECK(cudaStreamDestroy(x->third));
  CHECK(cudaFree(x->in));
  CHECK(cudaFree(x->out));
  CHECK(cudaFreeHost(x->from));
  CHECK(cudaFreeHost(x->to));
}

/* What needs the order of a stream's wait for an event. */
enum need { NOBODY, THE_STREAM, A_THIRD_STREAM, THE_HOST };

/* A copy to the device in one stream, and one back in another, which waits for an event of the first. */
static void copy_in_two_streams(enum need need)
{
  streams_of_copies x;
  make_streams(&x);
  for (int i = 0; i < 16; i++) {
    CHECK(cudaMemcpyAsync(x.in, x.from, BYTES, cudaMemcpyHostToDevice, x.up));
    launch(x.up, (float *)(void *)x.in, 64);
    CHECK(cudaEventRecord(x.done, x.up));
    CHECK(cudaStreamWaitEvent(x.back, x.done, 0)); /* WASTE streams-serialised-by-events */
    launch(x.back, (float *)(void *)(need == THE_STREAM ? x.in : x.out), 64);
    CHECK(cudaMemcpyAsync(x.to, x.out, BYTES, cudaMemcpyDeviceToHost, x.back));
    CHECK(cudaEventRecord(x.next, x.back));
    CHECK(cudaStreamWaitEvent(x.third, x.next, 0));
    launch(x.third, (float *)(void *)(need == A_THIRD_STREAM ? x.in : x.out), 64);
    CHECK(need == THE_HOST ? cudaStreamSynchronize(x.third) : cudaDeviceSynchronize());
    x.from[i]++; /* the host fills it again */
  }
  end_streams(&x);
}

static void streams_serialised_by_events(void)
{
  copy_in_two_streams(NOBODY);
}

static void streams_serialised_by_events_twin(void)
{
  copy_in_two_streams(THE_STREAM);
  copy_in_two_streams(A_THIRD_STREAM);
  copy_in_two_streams(THE_HOST);
}

/* ---- chunks-in-turn -------------------------------------------------------------------------- */

enum { CHUNKS = 16, STREAMS = 3 };

/* What a chunk of the host's is, when it is uploaded. */
enum chunk { THERE_BEFORE, WRITTEN_NOW, THE_LAST_RESULT };

/* Chunks go to the device, and their results back, in one stream. */
static void work_on_chunks(enum chunk chunk)
{
  char *from = pinned_memory((size_t)CHUNKS * BYTES), *to = pinned_memory((size_t)CHUNKS * BYTES);
  char *p = device_memory(BYTES);
  set_link("h2d:1G,d2h:1G");
  for (int i = 0; i < CHUNKS; i++) {
    char *source = from + (size_t)i * BYTES;
    for (int k = 0; chunk == WRITTEN_NOW && k < BYTES; k++)
      ((volatile char *)source)[k] = (char)(i * k);
    if (chunk == THE_LAST_RESULT && i) source = to + (size_t)(i - 1) * BYTES;
    CHECK(cudaMemcpy(p, source, BYTES, cudaMemcpyHostToDevice)); /* WASTE chunks-in-turn */
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpy(to + (size_t)i * BYTES, p, BYTES, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(from));
  CHECK(cudaFreeHost(to));
}

/* The same in three streams. */
static void work_on_chunks_in_streams(void)
{
  char *from = pinned_memory((size_t)CHUNKS * BYTES), *to = pinned_memory((size_t)CHUNKS * BYTES);
  char *p[STREAMS];
  cudaStream_t s[STREAMS];
  for (int k = 0; k < STREAMS; k++) {
    CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
    p[k] = device_memory(BYTES);
  }
  set_link("h2d:1G,d2h:1G");
  for (int i = 0; i < CHUNKS; i++) {
    size_t at = (size_t)i * BYTES;
    int k = i % STREAMS;
    CHECK(cudaMemcpyAsync(p[k], from + at, BYTES, cudaMemcpyHostToDevice, s[k]));
    launch(s[k], (float *)(void *)p[k], 64);
    CHECK(cudaMemcpyAsync(to + at, p[k], BYTES, cudaMemcpyDeviceToHost, s[k]));
  }
  for (int k = 0; k < STREAMS; k++) {
    CHECK(cudaStreamSynchronize(s[k]));
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(p[k]));
  }
  CHECK(cudaFreeHost(from));
  CHECK(cudaFreeHost(to));
}

static void chunks_in_turn_waste(void)
{
  work_on_chunks(THERE_BEFORE);
}

static void chunks_in_turn_twin(void)
{
  work_on_chunks(WRITTEN_NOW);
  work_on_chunks(THE_LAST_RESULT);
  work_on_chunks_in_streams();
}

const waster link_wasters[] = {
    {"slow-link", slow_link, slow_link_twin, NULL},
    {"no-overlap", no_overlap, no_overlap_twin, "--device-times=all"},
    {"launch-queue-full", launch_queue_full, launch_queue_full_twin, NULL},
    {"repeated-upload", repeated_upload, repeated_upload_twin, NULL},
    {"streams-serialised-by-events", streams_serialised_by_events,
     streams_serialised_by_events_twin, "--device-times=all"},
    {"chunks-in-turn", chunks_in_turn_waste, chunks_in_turn_twin, NULL},
    {"through-the-host", through_the_host, through_the_host_twin, NULL},
    {NULL, NULL, NULL, NULL},
};

/* trap_fixes.c: what a program may rely on of objects that it makes again and again, and of
 * questions that it asks again and again. What it prints is the error of each call and what it was
 * told. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/reroute/trap.h"

static uint64_t hash_of(const void *data, size_t bytes)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++)
    h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
  return h;
}

/* Ends the output of a child: what it prints comes once. */
static void in_child(void (*run)(void))
{
  int status = 0;
  (void)fflush(stdout);
  pid_t child = fork();
  if (!child) {
    run();
    (void)fflush(stdout);
    _exit(0);
  }
  (void)waitpid(child, &status, 0);
  printf("child %x\n", (unsigned)status);
}

/* The same in several threads at once, which print nothing: the sum of what they return. */
static unsigned in_threads(void *(*run)(void *))
{
  enum { THREADS = 6 };
  pthread_t t[THREADS];
  unsigned sum = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    (void)pthread_create(&t[i], NULL, run, (void *)i);
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    (void)pthread_join(t[i], &result);
    sum += (unsigned)(uintptr_t)result;
  }
  return sum;
}

/* ---- properties of devices ------------------------------------------------------------------- */

/* Bytes of the structure that no answer fills are the program's. */
static void ask_all_devices(void)
{
  struct {
    struct cudaDeviceProp p;
    char after[64];
  } answer;
  int count = 0;
  PRINT(cudaGetDeviceCount(&count));
  for (int device = -1; device < count + 1; device++)
    for (int fill = 0; fill < 2; fill++) {
      memset(&answer, fill ? 0x77 : 0x55, sizeof answer);
      PRINT(cudaGetDeviceProperties(&answer.p, device));
      printf("%016llx\n", (unsigned long long)hash_of(&answer, sizeof answer));
    }
  PRINT(cudaGetDeviceProperties(NULL, 0));
  PRINT(cudaGetLastError());
}

static void *ask_first_device(void *unused)
{
  struct cudaDeviceProp p, first;
  uintptr_t wrong = 0;
  (void)unused;
  memset(&first, 0, sizeof first);
  memset(&p, 0, sizeof p);
  if (cudaGetDeviceProperties(&first, 0)) return (void *)1;
  for (int i = 0; i < 100; i++)
    wrong +=
        cudaGetDeviceProperties(&p, 0) || hash_of(&p, sizeof p) != hash_of(&first, sizeof first);
  return (void *)wrong;
}

/* Another process sets the compute mode; what else has changed is found by asking. */
static void change_devices(void)
{
  int (*set)(int, int) = NULL;
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver) *(void **)&set = dlsym(driver, "weir_sim_set_attribute");
  if (!set) return;
  PRINT(set(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 7));
  PRINT(set(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 2));
}

static void properties(void)
{
  void *p;
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  PRINT(cudaMalloc(&p, MIB));
  ask_all_devices();
  printf("threads %u\n", in_threads(ask_first_device));
  change_devices();
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  PRINT(cudaDeviceReset());
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  in_child(ask_all_devices);
}

/* ---- events ---------------------------------------------------------------------------------- */

static unsigned *memory; /* MIB elements */
static cudaStream_t busy, other;

static void make_memory(void)
{
  PRINT(cudaMalloc((void **)&memory, MIB * sizeof *memory));
  PRINT(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
  PRINT(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
}

static const unsigned event_flags[] = {cudaEventDefault, cudaEventBlockingSync,
                                       cudaEventDisableTiming,
                                       cudaEventDisableTiming | cudaEventBlockingSync};
enum { EVENT_FLAGS = sizeof event_flags / sizeof *event_flags };

/* One of each, of which one is recorded in the end. */
static void life_of_events(cudaStream_t stream)
{
  cudaEvent_t e[EVENT_FLAGS];
  float ms = -1;
  for (int i = 0; i < EVENT_FLAGS; i++)
    PRINT(cudaEventCreateWithFlags(&e[i], event_flags[i]));
  for (int i = 0; i < EVENT_FLAGS; i++) {
    PRINT(cudaEventQuery(e[i]));
    PRINT(cudaEventSynchronize(e[i]));
    PRINT(cudaStreamWaitEvent(stream, e[i], 0));
    PRINT(cudaEventElapsedTime(&ms, e[i], e[i]));
    PRINT(cudaEventElapsedTime(&ms, e[0], e[i]));
  }
  PRINT(cudaEventElapsedTime(NULL, e[0], e[0]));
  PRINT(cudaEventRecord(e[0], stream));
  PRINT(cudaEventSynchronize(e[0]));
  PRINT(cudaEventElapsedTime(&ms, e[0], e[1]));
  PRINT(cudaEventElapsedTime(&ms, e[0], e[0]));
  PRINT(cudaEventRecord(e[1], stream));
  PRINT(cudaEventSynchronize(e[1]));
  PRINT(cudaEventElapsedTime(&ms, e[0], e[1]));
  printf("%d\n", ms >= 0);
  PRINT(cudaEventRecord(e[2], stream));
  for (int i = 0; i < EVENT_FLAGS; i++)
    PRINT(cudaEventDestroy(e[i]));
  PRINT(cudaGetLastError());
}

/* An event that ended before its work, and one that a stream waits for when it ends. */
static void events_end_early(void)
{
  cudaEvent_t e, next;
  for (unsigned round = 1; round < 5; round++) {
    PRINT(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    PRINT(trap_launch_fill(busy, memory, MIB, round, SLOW / 4));
    PRINT(cudaEventRecord(e, busy));
    PRINT(cudaStreamWaitEvent(other, e, 0));
    PRINT(cudaEventDestroy(e));
    PRINT(cudaEventCreateWithFlags(&next, cudaEventDisableTiming));
    PRINT(cudaEventQuery(next));
    PRINT(cudaEventRecord(next, cudaStreamPerThread));
    printf("wrong %u\n", trap_wrong(memory, MIB, round, other));
    PRINT(cudaEventSynchronize(next));
    PRINT(cudaEventDestroy(next));
  }
}

/* A captured stream may wait for an event that was never recorded, and for no other. */
static void events_in_captures(void)
{
  for (int round = 0; round < 4; round++) {
    cudaGraph_t graph = NULL;
    cudaEvent_t fresh, within = NULL, external = NULL;
    PRINT(cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming));
    PRINT(cudaStreamBeginCapture(busy, cudaStreamCaptureModeGlobal));
    PRINT(cudaStreamWaitEvent(busy, fresh, 0));
    PRINT(cudaEventCreate(&within));
    PRINT(cudaEventRecord(within, busy));
    PRINT(cudaStreamWaitEvent(other, within, 0));
    PRINT(trap_launch_fill(other, memory, MIB, 3, 0));
    PRINT(cudaEventCreate(&external));
    PRINT(cudaEventRecord(external, other));
    PRINT(cudaStreamWaitEvent(busy, external, 0));
    PRINT(cudaEventDestroy(external));
    PRINT(cudaStreamEndCapture(busy, &graph));
    PRINT(cudaEventQuery(within));
    PRINT(cudaEventDestroy(within));
    PRINT(cudaEventDestroy(fresh));
    PRINT(cudaEventCreate(&within));
    PRINT(cudaEventQuery(within));
    PRINT(cudaEventRecord(within, busy));
    PRINT(cudaEventSynchronize(within));
    PRINT(cudaEventDestroy(within));
    PRINT(cudaGraphDestroy(graph));
    PRINT(cudaGetLastError());
  }
}

/* What a graph records, no call names. */
static void events_of_graphs(void)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaEvent_t e, end;
  float ms = -1;
  PRINT(cudaEventCreate(&e));
  PRINT(cudaEventCreate(&end));
  PRINT(cudaGraphCreate(&graph, 0));
  PRINT(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, e));
  PRINT(cudaGraphInstantiate(&exec, graph, 0));
  PRINT(cudaGraphLaunch(exec, busy));
  PRINT(cudaEventRecord(end, busy));
  PRINT(cudaStreamSynchronize(busy));
  PRINT(cudaEventElapsedTime(&ms, e, end));
  printf("%d\n", ms >= 0);
  PRINT(cudaGraphExecDestroy(exec));
  PRINT(cudaGraphDestroy(graph));
  PRINT(cudaEventDestroy(e));
  PRINT(cudaEventDestroy(end));
  life_of_events(busy);
}

static void bad_events(void)
{
  cudaEvent_t e = NULL;
  PRINT(cudaEventCreate(NULL));
  PRINT(cudaEventCreateWithFlags(&e, 0x80));
  PRINT(cudaEventCreateWithFlags(&e, cudaEventInterprocess));
  PRINT(cudaEventDestroy(NULL));
  PRINT(cudaGetLastError());
}

/* Made on one device, ended while the other is current. */
static void events_of_two_devices(void)
{
  cudaEvent_t e[2];
  for (int round = 0; round < 4; round++) {
    for (int device = 0; device < 2; device++) {
      PRINT(cudaSetDevice(device));
      PRINT(cudaEventCreate(&e[device]));
      PRINT(cudaEventRecord(e[device], cudaStreamPerThread));
      PRINT(cudaEventSynchronize(e[device]));
    }
    PRINT(cudaEventDestroy(e[0]));
    PRINT(cuEventDestroy(e[1]));
    PRINT(cudaSetDevice(0));
  }
}

static void *churn_events(void *number)
{
  uintptr_t wrong = 0;
  for (int i = 0; i < 200; i++) {
    cudaEvent_t e, first;
    float ms = -1;
    wrong += cudaEventCreate(&first) != cudaSuccess;
    wrong += cudaEventCreateWithFlags(&e, i & 1 ? cudaEventBlockingSync : 0) != cudaSuccess;
    wrong += cudaEventQuery(e) != cudaSuccess;
    wrong += cudaEventElapsedTime(&ms, e, first) != cudaErrorInvalidResourceHandle;
    wrong += cudaEventRecord(first, (uintptr_t)number & 1 ? cudaStreamPerThread : other) != 0;
    wrong += cudaEventRecord(e, (uintptr_t)number & 1 ? cudaStreamPerThread : other) != 0;
    wrong += cudaEventSynchronize(e) != cudaSuccess;
    wrong += cudaEventElapsedTime(&ms, first, e) != cudaSuccess || ms < 0;
    wrong += cudaEventDestroy(e) != cudaSuccess;
    wrong += cudaEventDestroy(first) != cudaSuccess;
  }
  return (void *)wrong;
}

static void make_and_end_event(void)
{
  cudaEvent_t e;
  PRINT(cudaEventCreate(&e) != cudaSuccess);
  PRINT(cudaStreamCreate(&busy) != cudaSuccess);
}

/* Under way in a thread: nothing may spoil it. */
static void *capture_often(void *wrong)
{
  cudaStream_t s;
  uintptr_t bad = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess;
  (void)wrong;
  for (int i = 0; i < 200; i++) {
    cudaGraph_t graph = NULL;
    bad += cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) != cudaSuccess;
    bad += trap_launch_fill(s, memory, 64, 1, 0) != 0;
    bad += cudaStreamEndCapture(s, &graph) != cudaSuccess || !graph;
    if (graph) bad += cudaGraphDestroy(graph) != cudaSuccess;
  }
  bad += cudaStreamDestroy(s) != cudaSuccess;
  return (void *)bad;
}

/* Makes and ends objects, and waits for none: a capture of another thread's forbids that. */
static void *make_often(void *unused)
{
  uintptr_t bad = 0;
  (void)unused;
  for (int i = 0; i < 400; i++) {
    cudaEvent_t e;
    cudaStream_t s;
    bad += cudaEventCreateWithFlags(&e, cudaEventDisableTiming) != cudaSuccess;
    bad += cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess;
    bad += cudaStreamDestroy(s) != cudaSuccess;
    bad += cudaEventDestroy(e) != cudaSuccess;
  }
  return (void *)bad;
}

static void *capture_or_make(void *number)
{
  return (uintptr_t)number < 2 ? capture_often(number) : make_often(number);
}

static void events(void)
{
  make_memory();
  bad_events();
  for (int round = 0; round < 4; round++)
    life_of_events(round & 1 ? busy : cudaStreamLegacy);
  events_end_early();
  events_in_captures();
  events_of_two_devices();
  printf("threads %u\n", in_threads(churn_events));
  printf("beside captures %u\n", in_threads(capture_or_make));
  PRINT(cudaDeviceReset());
  make_memory();
  life_of_events(busy);
  events_of_graphs();
  in_child(make_and_end_event);
}

/* ---- streams --------------------------------------------------------------------------------- */

static unsigned long long seen_ids[4096];
static unsigned seen_count;

/* "The stream ID is guaranteed unique for the life of the program." */
static int is_new_id(cudaStream_t s)
{
  unsigned long long id = 0, again = 1;
  if (cudaStreamGetId(s, &id) || cudaStreamGetId(s, &again) || id != again) return -1;
  for (unsigned i = 0; i < seen_count; i++)
    if (seen_ids[i] == id) return 0;
  seen_ids[seen_count++] = id;
  return 1;
}

static void print_policy(cudaStream_t s)
{
  cudaStreamAttrValue value = {0};
  PRINT(cudaStreamGetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &value));
  printf("%d\n", (int)value.syncPolicy);
}

static void life_of_stream(cudaStream_t s, bool ask_id)
{
  unsigned flags = 99;
  int priority = 99;
  PRINT(cudaStreamQuery(s));
  PRINT(cudaStreamGetFlags(s, &flags));
  PRINT(cudaStreamGetPriority(s, &priority));
  printf("%u %d\n", flags, priority);
  if (ask_id) PRINT(is_new_id(s));
  print_policy(s);
  PRINT(trap_launch_fill(s, memory, MIB, 5, 0));
  printf("wrong %u\n", trap_wrong(memory, MIB, 5, s));
}

static void streams_of_each_kind(void)
{
  cudaStream_t s[4];
  for (int round = 0; round < 6; round++) {
    PRINT(cudaStreamCreate(&s[0]));
    PRINT(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
    PRINT(cudaStreamCreateWithPriority(&s[2], cudaStreamNonBlocking, -1));
    PRINT(cudaStreamCreateWithPriority(&s[3], cudaStreamDefault, 0));
    for (int i = 0; i < 4; i++)
      life_of_stream(s[i], round & 1);
    for (int i = 0; i < 4; i++)
      PRINT(i & 1 ? (int)cuStreamDestroy(s[i]) : (int)cudaStreamDestroy(s[i]));
  }
}

static void streams_end_busy(void)
{
  for (unsigned round = 1; round < 6; round++) {
    cudaStream_t a, b;
    PRINT(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    PRINT(trap_launch_fill(a, memory, MIB / 2, round, SLOW / 4));
    PRINT(cudaStreamDestroy(a));
    PRINT(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    PRINT(cudaStreamQuery(b));
    PRINT(trap_launch_fill(b, memory + MIB / 2, MIB / 2, round, 0));
    printf("wrong %u\n", trap_wrong(memory + MIB / 2, MIB / 2, round, b));
    PRINT(cudaStreamDestroy(b));
    PRINT(cudaDeviceSynchronize());
    printf("wrong %u\n", trap_wrong(memory, MIB / 2, round, cudaStreamPerThread));
  }
}

/* Work of a stream that waits for the legacy stream, or does not. */
static void streams_beside_the_default(void)
{
  for (unsigned round = 1; round < 5; round++) {
    cudaStream_t s;
    bool waits = round & 1;
    PRINT(cudaStreamCreateWithFlags(&s, waits ? cudaStreamDefault : cudaStreamNonBlocking));
    PRINT(trap_launch_fill(cudaStreamLegacy, memory, MIB, round, SLOW / 8));
    if (waits) printf("wrong %u\n", trap_wrong(memory, MIB, round, s));
    PRINT(cudaDeviceSynchronize());
    PRINT(cudaStreamDestroy(s));
  }
}

static void streams_with_attributes(void)
{
  void *managed = NULL;
  PRINT(cudaMallocManaged(&managed, MIB, cudaMemAttachHost));
  for (int round = 0; round < 6; round++) {
    cudaStream_t s, like;
    cudaStreamAttrValue value = {0};
    PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    print_policy(s);
    value.syncPolicy = cudaSyncPolicyBlockingSync;
    if (round & 1)
      PRINT(cudaStreamSetAttribute(s, cudaStreamAttributeSynchronizationPolicy, &value));
    PRINT(cudaStreamCreateWithFlags(&like, cudaStreamNonBlocking));
    print_policy(like);
    if (round & 2) PRINT(cudaStreamCopyAttributes(like, s));
    if (round == 3) PRINT(cudaStreamAttachMemAsync(s, managed, 0, cudaMemAttachSingle));
    PRINT(cudaStreamSynchronize(s));
    PRINT(cudaStreamDestroy(like));
    PRINT(cudaStreamDestroy(s));
  }
  PRINT(cudaFree(managed));
}

static void streams_of_two_devices(void)
{
  cudaStream_t s[2];
  for (int round = 0; round < 4; round++) {
    for (int device = 0; device < 2; device++) {
      int of = -1;
      PRINT(cudaSetDevice(device));
      PRINT(cudaStreamCreate(&s[device]));
      PRINT(cudaStreamGetDevice(s[device], &of));
      printf("device %d\n", of);
    }
    PRINT(cudaStreamDestroy(s[0]));
    PRINT(cudaSetDevice(0));
    PRINT(cudaStreamDestroy(s[1]));
  }
}

static void *churn_streams(void *number)
{
  uintptr_t wrong = 0;
  unsigned *mine = memory + 1024 * (uintptr_t)number;
  for (unsigned i = 0; i < 100; i++) {
    cudaStream_t s;
    wrong += cudaStreamCreateWithFlags(&s, i & 1 ? cudaStreamNonBlocking : 0) != cudaSuccess;
    wrong += trap_launch_fill(s, mine, 1024, i, 0) != 0;
    wrong += trap_wrong(mine, 1024, i, s);
    wrong += cudaStreamDestroy(s) != cudaSuccess;
  }
  return (void *)wrong;
}

static void streams(void)
{
  cudaStream_t s = NULL;
  make_memory();
  PRINT(cudaStreamCreate(NULL));
  PRINT(cudaStreamCreateWithFlags(&s, 0x80));
  PRINT(cudaStreamDestroy(cudaStreamLegacy));
  PRINT(cudaGetLastError());
  streams_of_each_kind();
  streams_end_busy();
  streams_beside_the_default();
  streams_with_attributes();
  streams_of_two_devices();
  printf("threads %u\n", in_threads(churn_streams));
  printf("beside captures %u\n", in_threads(capture_or_make));
  PRINT(cudaDeviceReset());
  make_memory();
  streams_of_each_kind();
  in_child(make_and_end_event);
}

/* ---- made in loops, for the report ----------------------------------------------------------- */

static void event_loop(void)
{
  for (int i = 0; i < 40; i++) {
    cudaEvent_t e;
    if (cudaEventCreate(&e) || cudaEventRecord(e, NULL) || cudaEventSynchronize(e) ||
        cudaEventDestroy(e))
      printf("failed\n");
  }
  printf("done\n");
}

static void stream_loop(void)
{
  for (int i = 0; i < 40; i++) {
    cudaStream_t s;
    if (cudaStreamCreate(&s) || cudaStreamSynchronize(s) || cudaStreamDestroy(s))
      printf("failed\n");
  }
  printf("done\n");
}

const trap trap_fixes[] = {{"properties", properties},   {"events", events},
                           {"streams", streams},         {"event_loop", event_loop},
                           {"stream_loop", stream_loop}, {NULL, NULL}};

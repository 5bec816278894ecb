/* worker.c: a program that does what its arguments say, in order: copies and graphs by the driver
 * API, forks, exits, and a CUPTI client of its own, which prints what it was given. Built twice: as
 * it is it opens CUPTI by dlopen, with WORKER_LINKED it is linked with it. */
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, BUFFER = 1 << 16 };

static CUdeviceptr device_memory;
static unsigned char host_memory[BYTES];

static void require_success(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)printf("%s: %d\n", what, (int)r);
  exit(97);
}
#define CHECK(call) require_success(call, #call)

static void use_device(void)
{
  static CUcontext context;
  CUdevice device;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  if (!context) CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  if (!device_memory) CHECK(cuMemAlloc(&device_memory, BYTES));
}

/* N times a copy there, a memset, a copy back. */
static void copy_there_and_back(long n)
{
  use_device();
  for (long i = 0; i < n; i++) {
    memset(host_memory, (int)i, BYTES);
    CHECK(cuMemcpyHtoD(device_memory, host_memory, BYTES));
    CHECK(cuMemsetD8(device_memory, (unsigned char)(i + 1), BYTES / 2));
    CHECK(cuMemcpyDtoH(host_memory, device_memory, BYTES));
  }
  (void)printf("copies: %d %d\n", host_memory[0], host_memory[BYTES - 1]);
}

static void copy_and_leave(long n)
{
  use_device();
  for (long i = 0; i < n; i++)
    CHECK(cuMemcpyHtoDAsync(device_memory, host_memory, BYTES, NULL));
}

static void *copy_in_thread(void *n)
{
  unsigned char host[256];
  CUdeviceptr device;
  use_device();
  CHECK(cuMemAlloc(&device, sizeof host));
  for (long i = 0; i < *(long *)n; i++)
    CHECK(cuMemcpyHtoD(device, host, sizeof host));
  CHECK(cuMemFree(device));
  return NULL;
}

static void copy_in_threads(long n)
{
  pthread_t threads[4];
  use_device();
  for (int i = 0; i < 4; i++)
    (void)pthread_create(&threads[i], NULL, copy_in_thread, &n);
  for (int i = 0; i < 4; i++)
    (void)pthread_join(threads[i], NULL);
}

/* A graph of three nodes, launched n times. */
static void launch_graphs(long n)
{
  CUstream stream;
  CUgraph graph;
  CUgraphExec exec;
  use_device();
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK(cuMemcpyHtoDAsync(device_memory, host_memory, BYTES, stream));
  CHECK(cuMemsetD8Async(device_memory, 1, BYTES, stream));
  CHECK(cuMemcpyDtoHAsync(host_memory, device_memory, BYTES, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  for (long i = 0; i < n; i++)
    CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  (void)printf("graphs: %d\n", host_memory[0]);
}

static void fork_child(void)
{
  (void)fflush(stdout);
  pid_t pid = fork();
  int status = -1;
  if (!pid) exit(5);
  if (pid > 0) (void)waitpid(pid, &status, 0);
  (void)printf("child: %d\n", WEXITSTATUS(status));
}

/* Whether there is a mapping of a library of CUPTI's. */
static void look_for_cupti(void)
{
  char line[4096];
  bool found = false;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f))
    found |= strstr(line, "libcupti") != NULL;
  if (f) (void)fclose(f);
  (void)printf("cupti: %s\n", found ? "mapped" : "not mapped");
}

static void await_writer(const char *fifo)
{
  char c;
  (void)fflush(stdout);
  int fd = open(fifo, O_RDONLY);
  while (fd >= 0 && read(fd, &c, 1) > 0)
    continue;
  (void)close(fd);
}

/* ---- a client of CUPTI's --------------------------------------------------------------------- */

static void *find_function(const char *name)
{
  void *library = dlopen("libcupti.so.13", RTLD_NOW), *p = library ? dlsym(library, name) : NULL;
  if (p) return p;
  (void)printf("%s\n", dlerror());
  exit(96);
}
#ifdef WORKER_LINKED
#define CUPTI(name) name
#else
#define CUPTI(name) ((__typeof__(&name))(uintptr_t)find_function(#name))
#endif

static unsigned long records, record_bytes, calls;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
  *buffer = aligned_alloc(8, BUFFER);
  *size = *buffer ? BUFFER : 0;
  *most = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
  CUpti_Activity *r = NULL;
  (void)context, (void)stream, (void)size;
  (void)pthread_mutex_lock(&counting);
  while (valid && CUPTI(cuptiActivityGetNextRecord)(buffer, valid, &r) == CUPTI_SUCCESS) {
    if (r->kind != CUPTI_ACTIVITY_KIND_MEMCPY) continue;
    records++;
    record_bytes += ((CUpti_ActivityMemcpy6 *)(void *)r)->bytes;
  }
  (void)pthread_mutex_unlock(&counting);
  free(buffer);
}

static void CUPTIAPI count_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void *data)
{
  const CUpti_CallbackData *call = data;
  (void)unused, (void)domain, (void)id;
  calls += call->callbackSite == CUPTI_API_ENTER && !strncmp(call->functionName, "cuMemcpy", 8);
}

static CUpti_SubscriberHandle subscriber;

static void begin_client(void)
{
  use_device();
  int a = CUPTI(cuptiSubscribe)(&subscriber, count_call, NULL);
  int b = CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  int c = CUPTI(cuptiActivityRegisterCallbacks)(give_buffer, take_buffer);
  int d = CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMCPY);
  (void)printf("client begins: %d %d %d %d\n", a, b, c, d);
}

static void end_client(void)
{
  int a = CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_MEMCPY);
  int b = CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  int c = CUPTI(cuptiUnsubscribe)(subscriber);
  (void)printf("client ends: %d %d %d: %lu records, %lu bytes, %lu copies\n", a, b, c, records,
               record_bytes, calls);
}

/* The same client later: it has set its functions before. */
static void activity_again(void)
{
  int a = CUPTI(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy_there_and_back(2);
  int b = CUPTI(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_MEMCPY);
  int c = CUPTI(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  (void)printf("again: %d %d %d: %lu records\n", a, b, c, records);
}

/* ---- one that allows others, by functions of 13.2 that headers before have not --------------- */

#define BY_NAME(name, parameters) ((int(*) parameters)(uintptr_t)find_function(#name))

static void take_buffer_v2(uint8_t *buffer, size_t size, size_t valid, void *info)
{
  (void)info;
  take_buffer(NULL, 0, buffer, size, valid);
}

static void give_buffer_v2(uint8_t **buffer, size_t *size, size_t *most, void *info)
{
  (void)info;
  give_buffer(buffer, size, most);
}

static void begin_beside(void)
{
  typedef void (*request)(uint8_t **, size_t *, size_t *, void *);
  typedef void (*complete)(uint8_t *, size_t, size_t, void *);
  struct {
    size_t bytes;
    const char *name;
    void *other[2];
    uint8_t allows_others, padding[7];
  } params = {sizeof params, "worker", {NULL, NULL}, 1, {0}};
  int a = CUPTI(cuptiSubscribe_v2)(&subscriber, count_call, NULL, (void *)&params);
  int b = CUPTI(cuptiEnableDomain)(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  int c = BY_NAME(cuptiActivityRegisterCallbacks_v2, (CUpti_SubscriberHandle, request, complete))(
      subscriber, give_buffer_v2, take_buffer_v2);
  int d = BY_NAME(cuptiActivityEnable_v2, (CUpti_SubscriberHandle, int, void *))(
      subscriber, CUPTI_ACTIVITY_KIND_MEMCPY, NULL);
  (void)printf("client begins beside: %d %d %d %d\n", a, b, c, d);
}

static void end_beside(void)
{
  int a = CUPTI(cuptiActivityFlushAll)(0);
  int b = BY_NAME(cuptiActivityDisable_v2, (CUpti_SubscriberHandle, int, void *))(
      subscriber, CUPTI_ACTIVITY_KIND_MEMCPY, NULL);
  int c = CUPTI(cuptiUnsubscribe)(subscriber);
  (void)printf("client ends: %d %d %d: %lu records, %lu bytes, %lu copies\n", a, b, c, records,
               record_bytes, calls);
}

static uint64_t clock_of_client(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Before it subscribes, as some profilers do. */
static void set_clock(void)
{
  (void)printf("clock: %d\n", CUPTI(cuptiActivityRegisterTimestampCallback)(clock_of_client));
}

static void finalize(void)
{
  (void)printf("finalize: %d\n", CUPTI(cuptiFinalize)());
}

/* No more address space than there is. */
static void limit_memory(void)
{
  char text[64] = "";
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fgets(text, sizeof text, f)) {
    rlim_t now = strtoul(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE);
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){now, RLIM_INFINITY});
  }
  if (f) (void)fclose(f);
}

/* Large, from memory that is not page-locked. */
static void copy_large(long n)
{
  enum { LARGE = 8 << 20 };
  unsigned char *host = calloc(1, LARGE);
  CUdeviceptr device;
  use_device();
  CHECK(cuMemAlloc(&device, LARGE));
  for (long i = 0; host && i < n; i++)
    CHECK(cuMemcpyHtoD(device, host, LARGE));
  free(host);
}

static void copy_there(long n)
{
  (void)copy_in_thread(&n);
  (void)printf("copied\n");
}

/* The main thread ends; the process does when the other one has. */
static void leave_main_thread(long n)
{
  static long copies;
  pthread_t thread;
  copies = n;
  use_device();
  (void)pthread_create(&thread, NULL, copy_in_thread, &copies);
  pthread_exit(NULL);
}

/* A child that has our memory, and ends in it. */
static void end_vfork_child(void)
{
  int status = -1;
  pid_t pid = vfork();
  if (!pid) _exit(6);
  (void)waitpid(pid, &status, 0);
  (void)printf("child: %d\n", WEXITSTATUS(status));
}

/* The same program once more, which exits. */
static void run_again(void)
{
  (void)fflush(stdout);
  (void)execl("/no/such/program", "none", (char *)NULL);
  (void)execl("/proc/self/exe", "worker", "exit", "8", (char *)NULL);
}

static void end_by_signal(void)
{
  (void)raise(SIGKILL);
}

/* Ends of a process that run none of atexit()'s handlers. */
static void end_at_once(long status)
{
  (void)fflush(stdout);
  _exit((int)status);
}

static void end_at_once_too(long status)
{
  (void)fflush(stdout);
  _Exit((int)status);
}

static void end_quickly(long status)
{
  (void)fflush(stdout);
  quick_exit((int)status);
}

/* Waits until no thread of Weir's is there. */
static void await_alone(void)
{
  char path[64], name[32];
  for (bool found = true; found; (void)usleep(10000)) {
    DIR *tasks = opendir("/proc/self/task");
    found = false;
    for (struct dirent *d; tasks && (d = readdir(tasks));) {
      (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", d->d_name);
      FILE *f = fopen(path, "r");
      found |= f && fgets(name, sizeof name, f) && !strcmp(name, "weir\n");
      if (f) (void)fclose(f);
    }
    if (tasks) (void)closedir(tasks);
  }
}

static const struct {
  const char *word;
  void (*run)(void);
} plain[] = {
    {"device", use_device},         {"vfork", end_vfork_child}, {"exec", run_again},
    {"kill", end_by_signal},        {"limit", limit_memory},    {"await-alone", await_alone},
    {"fork", fork_child},           {"maps", look_for_cupti},   {"begin-client", begin_client},
    {"end-client", end_client},     {"again", activity_again},  {"finalize", finalize},
    {"begin-beside", begin_beside}, {"end-beside", end_beside}, {"set-clock", set_clock}};

static const struct {
  const char *word;
  void (*run)(long);
} counted[] = {{"copies", copy_there_and_back}, {"leave", copy_and_leave},
               {"threads", copy_in_threads},    {"graphs", launch_graphs},
               {"there", copy_there},           {"_exit", end_at_once},
               {"_Exit", end_at_once_too},      {"quick_exit", end_quickly},
               {"large", copy_large},           {"last", leave_main_thread}};

static void load_library(const char *path)
{
  if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) (void)printf("%s\n", dlerror());
}

static void do_word(char **word)
{
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (!strcmp(*word, plain[i].word)) plain[i].run();
  for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
    if (!strcmp(*word, counted[i].word) && word[1]) counted[i].run(strtol(word[1], NULL, 10));
  if (!strcmp(*word, "await") && word[1]) await_writer(word[1]);
  if (!strcmp(*word, "load") && word[1]) load_library(word[1]);
  if (!strcmp(*word, "exit") && word[1]) exit((int)strtol(word[1], NULL, 10));
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    do_word(&argv[i]);
  return 0;
}

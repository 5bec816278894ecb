/* cupti_count.c: a second witness. The driver loads this library into a program at cuInit
 * (CUDA_INJECTION64_PATH) and CUPTI calls it at every CUDA API call, however it was linked:
 * NVIDIA's static runtime too. At exit it writes what it counted to $CUPTI_COUNT_FILE, a line each:
 *
 *   outer NAME CALLS     calls of NAME that no other CUDA call was around
 *   driver NAME CALLS    calls of a driver function that no other driver call was around
 *
 * Runtime names come from CUPTI with a version behind (cudaMalloc_v3020), which is cut off. */
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048 };

typedef struct counted {
  char name[80];
  uint64_t outer, driver;
} counted;

static counted rows[ROWS]; /* open addressing by hash */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth, driver_depth;

int InitializeInjection(void);

static void cut_version(char *name)
{
  char *v = strrchr(name, '_');
  if (v && v[1] == 'v' && strlen(v) > 5 && strspn(v + 2, "0123456789") == strlen(v + 2)) *v = 0;
}

static counted *find_function_row(const char *function)
{
  char name[80];
  uint32_t hash = 2166136261u;
  (void)snprintf(name, sizeof name, "%s", function);
  if (!strncmp(name, "cuda", 4)) cut_version(name);
  for (const char *c = name; *c; c++)
    hash = (hash ^ (unsigned char)*c) * 16777619u;
  for (uint32_t i = 0; i < ROWS; i++) {
    counted *r = &rows[(hash + i) % ROWS];
    if (!r->name[0]) memcpy(r->name, name, sizeof name);
    if (!strcmp(r->name, name)) return r;
  }
  return &rows[0];
}

static void CUPTIAPI on_call(void *context, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data)
{
  const CUpti_CallbackData *call = data;
  int driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  (void)context, (void)id;
  if (call->callbackSite == CUPTI_API_ENTER) {
    (void)pthread_mutex_lock(&lock);
    counted *r = find_function_row(call->functionName);
    r->outer += depth == 0;
    r->driver += driver && driver_depth == 0;
    (void)pthread_mutex_unlock(&lock);
    depth++;
    driver_depth += driver;
  } else {
    depth--;
    driver_depth -= driver;
  }
}

static void write_counts(void)
{
  const char *path = getenv("CUPTI_COUNT_FILE");
  FILE *f = path ? fopen(path, "a") : NULL;
  if (!f) return;
  for (int i = 0; i < ROWS; i++) {
    if (rows[i].outer)
      (void)fprintf(f, "outer %s %llu\n", rows[i].name, (unsigned long long)rows[i].outer);
    if (rows[i].driver)
      (void)fprintf(f, "driver %s %llu\n", rows[i].name, (unsigned long long)rows[i].driver);
  }
  (void)fclose(f);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
  CUpti_SubscriberHandle subscriber;
  if (cuptiSubscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS ||
      cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS ||
      cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) != CUPTI_SUCCESS)
    return 0;
  return atexit(write_counts) == 0;
}

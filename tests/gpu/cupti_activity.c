/* cupti_activity.c: when copies and kernels ran on the device, by CUPTI's activity records. The
 * driver loads this library into a program at cuInit (CUDA_INJECTION64_PATH), as cupti_count.c. At
 * exit it writes to $CUPTI_ACTIVITY_FILE, a line each, times in ns of CUPTI's clock:
 *
 *   kernel START END STREAM NAME
 *   HtoD|DtoH|DtoD START END STREAM BYTES
 */
#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER = 8 << 20 };

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif

static FILE *file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int InitializeInjection(void);

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *bytes, size_t *records)
{
  *buffer = aligned_alloc(8, BUFFER);
  *bytes = *buffer ? BUFFER : 0;
  *records = 0;
}

static void write_one(const CUpti_Activity *record)
{
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const kernel_record *k = (const void *)record;
    (void)fprintf(file, "kernel %llu %llu %u %s\n", (unsigned long long)k->start,
                  (unsigned long long)k->end, k->streamId, k->name ? k->name : "?");
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const copy_record *c = (const void *)record;
    const char *name = c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "HtoD"
                       : c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "DtoH"
                                                                        : "DtoD";
    (void)fprintf(file, "%s %llu %llu %u %llu\n", name, (unsigned long long)c->start,
                  (unsigned long long)c->end, c->streamId, (unsigned long long)c->bytes);
  }
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t bytes, size_t valid)
{
  CUpti_Activity *record = NULL;
  (void)context, (void)stream, (void)bytes;
  (void)pthread_mutex_lock(&lock);
  while (file && valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    write_one(record);
  (void)pthread_mutex_unlock(&lock);
  free(buffer);
}

static void at_end(void)
{
  (void)cuptiActivityFlushAll(1);
  (void)pthread_mutex_lock(&lock);
  if (file) (void)fclose(file);
  file = NULL;
  (void)pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
  const char *path = getenv("CUPTI_ACTIVITY_FILE");
  file = path ? fopen(path, "w") : NULL;
  if (!file ||
      cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) != CUPTI_SUCCESS)
    return 0;
  return atexit(at_end) == 0;
}

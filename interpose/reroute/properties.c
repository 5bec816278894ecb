/* properties.c: cudaGetDeviceProperties() answered from memory, where the user asks for it
 * (REROUTE_PROPERTIES). The runtime asks the driver for each of some hundred fields, some of which
 * the driver asks the device for: a millisecond and more a call.
 *
 * What a device is stays, but for its compute mode and whether it has a limit of run time, which
 * another process can set: these two are asked again for each answer, and one that has changed ends
 * what is known. So do the end of a context, a reset, and the unloading of a library.
 *
 * The size of cudaDeviceProp is another in each major version, and no version tells it. So which
 * bytes an original fills is found by having it fill two buffers of different content. The first
 * call of a program is the original's alone: what is asked once costs nothing more. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/record/context.h"
#include "interpose/record/hash_table.h"
#include "interpose/reroute/places.h"
#include "interpose/reroute/reroute.h"

enum {
  PROPERTIES_MOST = 2048, /* bytes of a cudaDeviceProp of any version */
  PROPERTIES_KEPT = 256,  /* answers that are ever kept, by all originals, devices and changes */
  PROPERTIES_DEVICES = 256
};

typedef struct properties_now { /* what can change */
  int compute_mode;
  int limited; /* its kernels have a limit of run time */
} properties_now;

/* An answer; never changed once it can be found. */
typedef struct properties_answer {
  uint32_t age; /* context_age when it was asked for */
  properties_now now;
  uint8_t filled[PROPERTIES_MOST]; /* 255: the original fills this byte; else 0 */
  uint8_t value[PROPERTIES_MOST];
} properties_answer;

/* By original and device: an answer, or NULL after the first call. */
static hash_table properties_answers;
static _Atomic unsigned properties_kept;

static bool ask_now(properties_now *now, int device)
{
  PFN_cuDeviceGetAttribute_v2000 ask = WEIR_HELPER(cuDeviceGetAttribute);
  return ask && ask(&now->compute_mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device) == CUDA_SUCCESS &&
         ask(&now->limited, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, device) == CUDA_SUCCESS;
}

static bool same_now(const properties_now *a, const properties_now *b)
{
  return a->compute_mode == b->compute_mode && a->limited == b->limited;
}

static bool still_holds(const properties_answer *k, int device)
{
  properties_now now;
  return k->age == atomic_load_explicit(&context_age, memory_order_relaxed) &&
         ask_now(&now, device) && same_now(&k->now, &now);
}

static void copy_filled(void *to, const properties_answer *k)
{
  uint8_t *out = to;
  for (unsigned i = 0; i < PROPERTIES_MOST; i++)
    if (k->filled[i]) out[i] = k->value[i];
}

/* Which bytes two answers to buffers of PATTERN and of its complement have in common. False: one
 * that was filled differs, so that there is something else that changes. */
enum { PATTERN = 0x55 };
static bool compare_filled(properties_answer *k, const uint8_t *one, const uint8_t *other)
{
  for (unsigned i = 0; i < PROPERTIES_MOST; i++) {
    bool kept = one[i] == PATTERN && other[i] == (uint8_t)~PATTERN;
    if (!kept && one[i] != other[i]) return false;
    k->filled[i] = kept ? 0 : 255;
    k->value[i] = one[i];
  }
  return true;
}

typedef cudaError_t (*properties_original)(struct cudaDeviceProp *, int);

/* What the original answers, twice the same. NULL: it fails, or nothing can be kept. */
static properties_answer *learn_properties(properties_original real, int device)
{
  union {
    uint8_t byte[PROPERTIES_MOST];
    struct cudaDeviceProp as;
  } one, other;
  properties_now after;
  if (atomic_fetch_add(&properties_kept, 1) >= PROPERTIES_KEPT) return NULL;
  properties_answer *k =
      mmap(NULL, sizeof *k, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (k == MAP_FAILED) return NULL;
  memset(&one, PATTERN, sizeof one);
  memset(&other, (uint8_t)~PATTERN, sizeof other);
  k->age = atomic_load(&context_age);
  if (ask_now(&k->now, device) && real(&one.as, device) == cudaSuccess &&
      real(&other.as, device) == cudaSuccess && ask_now(&after, device) &&
      same_now(&k->now, &after) && compare_filled(k, one.byte, other.byte))
    return k;
  munmap(k, sizeof *k);
  return NULL;
}

static uint64_t properties_key(properties_original real, int device)
{
  return (uint64_t)(uintptr_t)real << 8 | (unsigned)device;
}

cudaError_t reroute_cudaGetDeviceProperties(hook_call *c, properties_original real,
                                            struct cudaDeviceProp *out, int device)
{
  if (!out || device < 0 || device >= PROPERTIES_DEVICES || reroute_context_broken() ||
      !reroute_applies(c, REROUTE_PROPERTIES))
    return real(out, device);
  uint64_t key = properties_key(real, device);
  hash_entry *e = hash_table_find(&properties_answers, key);
  if (!e) {
    cudaError_t r = real(out, device);
    if (r == cudaSuccess) (void)hash_table_put(&properties_answers, key, 0, 1);
    return r;
  }
  const properties_answer *k = (properties_answer *)(uintptr_t)atomic_load(&e->x);
  bool known = k && still_holds(k, device);
  if (!known) k = learn_properties(real, device);
  if (!k) return real(out, device);
  if (!known) atomic_store(&e->x, (uint64_t)(uintptr_t)k);
  copy_filled(out, k);
  if (known) c->flags |= WEIR_EVF_CACHED;
  return cudaSuccess;
}

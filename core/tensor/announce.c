/* announce.c: see announce.h; and where in its modules a thread is.
 *
 * The path is kept as the names themselves, borrowed, and only put together when somebody listens.
 * Memory of somebody else's (STORAGE_OVER) is not announced: it is not ours to count. */
#include "core/tensor/announce.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir/trace.h"

enum { LEVELS = 32 };

typedef struct place {
  int depth; /* may be more than LEVELS */
  const char *name[LEVELS];
} place;

/* On the heap, from a thread's first module on: the library's thread-local memory is to be little,
 * for a program that opens it late has little left (glibc: about 1.6 KiB for all libraries). */
static __thread place *path;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watched; /* there is a key */

static void end_announcing_thread(void *of_thread)
{
  free(of_thread);
  path = NULL;
}

static void prepare_announcing(void)
{
  watched = !pthread_key_create(&key, end_announcing_thread);
}

/* Without memory the thread is in no module, as far as reports know. */
static __attribute__((cold)) void begin_path(void)
{
  (void)pthread_once(&once, prepare_announcing);
  place *p = watched ? calloc(1, sizeof *p) : NULL;
  if (p && !pthread_setspecific(key, p))
    path = p;
  else
    free(p);
}

void weir_module_path_push(const char *name)
{
  if (!path) begin_path();
  if (!path) return;
  if (path->depth < LEVELS) path->name[path->depth] = name;
  path->depth++;
}

void weir_module_path_pop(void)
{
  if (path && path->depth) path->depth--;
}

/* "net.conv1"; names that are NULL or empty are left out. */
void module_path_text(char out[WEIR_TENSOR_TEXT])
{
  size_t at = 0;
  for (int i = 0; path && i < path->depth && i < LEVELS; i++) {
    size_t n = path->name[i] ? strlen(path->name[i]) : 0;
    if (!n || at + n + 2 > WEIR_TENSOR_TEXT) continue;
    if (at) out[at++] = '.';
    memcpy(out + at, path->name[i], n);
    at += n;
  }
  out[at] = 0;
}

__attribute__((cold)) void announce_tensor(enum tensor_fact_kind fact, const tensor_storage *s,
                                           const weir_tensor *t)
{
  const engine_listener *l = __atomic_load_n(&active_listener, __ATOMIC_ACQUIRE);
  char module[WEIR_TENSOR_TEXT];
  if (!l || s->kind == STORAGE_OVER) return;
  bool host = s->device.type == WEIR_DEVICE_CPU;
  tensor_notice what = {.fact = fact,
                        .storage = (uint64_t)(uintptr_t)s,
                        .mem = !host       ? WEIR_MEM_DEVICE
                               : s->pinned ? WEIR_MEM_PINNED
                                           : WEIR_MEM_PAGEABLE,
                        .device = weir_device_index(s->device)};
  if (fact == WEIR_TENSOR_MADE) {
    module_path_text(module);
    what.module = module;
    what.address = (uint64_t)(uintptr_t)s->data;
    what.bytes = s->bytes;
    what.dtype = t->dtype;
    what.dims = t->dims;
    what.size = t->size;
  }
  if (fact == WEIR_TENSOR_NAMED) what.name = t->name;
  l->tensor(&what);
}

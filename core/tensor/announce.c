/* announce.c: see announce.h; and where in its modules a thread is.
 *
 * The path is kept as the names themselves, borrowed, and only put together when somebody listens.
 * Memory of somebody else's (STORAGE_OVER) is not told of: it is not ours to count.
 */
#include "core/tensor/announce.h"

#include <string.h>
#include "core/weir/trace.h"

enum { LEVELS = 32 };

static __thread struct {
  int depth; /* may be more than LEVELS */
  const char *name[LEVELS];
} path;

void weir_module_path_push(const char *name)
{
  if (path.depth < LEVELS) path.name[path.depth] = name;
  path.depth++;
}

void weir_module_path_pop(void)
{
  if (path.depth) path.depth--;
}

/* "net.conv1"; names that are NULL or empty are left out. */
void weir_module_path_text(char out[WEIR_TENSOR_TEXT])
{
  size_t at = 0;
  for (int i = 0; i < path.depth && i < LEVELS; i++) {
    size_t n = path.name[i] ? strlen(path.name[i]) : 0;
    if (!n || at + n + 2 > WEIR_TENSOR_TEXT) continue;
    if (at) out[at++] = '.';
    memcpy(out + at, path.name[i], n);
    at += n;
  }
  out[at] = 0;
}

__attribute__((cold)) void weir_announce_tensor(enum weir_tensor_fact fact, const weir_storage *s,
                                                const weir_tensor *t)
{
  const weir_listener *l = __atomic_load_n(&weir_listening, __ATOMIC_ACQUIRE);
  char module[WEIR_TENSOR_TEXT];
  if (!l || s->kind == STORAGE_OVER) return;
  bool host = s->device.type == WEIR_DEVICE_CPU;
  weir_told_tensor what = {.fact = fact,
                           .storage = (uint64_t)(uintptr_t)s,
                           .mem = !host       ? WEIR_MEM_DEVICE
                                  : s->pinned ? WEIR_MEM_PINNED
                                              : WEIR_MEM_PAGEABLE,
                           .device = host ? -1 : s->device.index};
  if (fact == WEIR_TENSOR_MADE) {
    weir_module_path_text(module);
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

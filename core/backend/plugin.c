/* plugin.c: opening CUDA at its first use, and what there is.
 *
 * libweir-cuda.so is looked for next to the file this code is in, then by the loader. The outcome,
 * good or bad, is kept for the process: `state` is stored last, so that who reads it needs no lock.
 * The library is never unloaded: the driver's threads and the allocator's pointers stay. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/lock.h"
#include "core/backend/plugin.h"
#include "core/trace/notify.h"
#include "core/weir.h"

enum { UNTRIED, TRYING, OPEN, MISSING };

static struct {
  _Atomic int state;
  const cuda_plugin *plugin; /* OPEN */
  int devices;               /* OPEN: how many the driver has */
  weir_status st;            /* MISSING */
  char why[512];             /* MISSING: the sentence */
} cuda;

static cuda_core core = {.fail = weir_fail};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;
void (*device_on_fork)(void);

/* ---- fork -------------------------------------------------------------------------------------
 * A child inherits our memory but not the driver's state ("fork() ... not supported", CUDA C++
 * Programming Guide), nor the threads that may hold our locks. */

static void fork_child_of_plugin(void)
{
  int state = atomic_load(&cuda.state);
  pthread_mutex_init(&lock, NULL);
  if (state != OPEN && state != TRYING) return;
  atomic_store(&forked, true);
  if (device_on_fork) device_on_fork();
}

static void watch_forks_of_plugin(void)
{
  (void)pthread_atfork(NULL, NULL, fork_child_of_plugin);
}

bool device_forked(void)
{
  if (!atomic_load_explicit(&forked, memory_order_relaxed)) return false;
  (void)weir_fail(WEIR_ECUDA,
                  "Cannot re-initialize CUDA in forked subprocess: process %ld is the child of a "
                  "process that had opened CUDA; fork before the first CUDA call, or exec",
                  (long)getpid());
  return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* "DIR/libweir-cuda.so", DIR being ours; "" where it is not known. */
static void path_beside(char *path, size_t room)
{
  Dl_info self;
  path[0] = 0;
  if (!dladdr((void *)&cuda, &self) || !self.dli_fname) return;
  const char *slash = strrchr(self.dli_fname, '/');
  int length = slash ? (int)(slash - self.dli_fname) : 0;
  int n = snprintf(path, room, "%.*s/" WEIR_CUDA_PLUGIN, length, self.dli_fname);
  if (!slash || n < 0 || (size_t)n >= room) path[0] = 0;
}

static void *load_plugin(void)
{
  char path[PATH_MAX];
  path_beside(path, sizeof path);
  int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  bool beside = path[0] && access(path, F_OK) == 0;
  void *library = dlopen(beside ? path : WEIR_CUDA_PLUGIN, how);
  if (!library) {
    const char *reason = dlerror();
    (void)fail_unsupported(
        "CUDA is not available: " WEIR_CUDA_PLUGIN
        ", looked for beside libweir (%s) and by the loader, cannot be opened: %s",
        path[0] ? path : "unknown place", reason ? reason : "no reason given");
  }
  return library;
}

static weir_status find_plugin(const cuda_plugin **out)
{
  void *library = load_plugin();
  if (!library) return WEIR_ENOTSUP;
  cuda_plugin_open_fn entry;
  *(void **)&entry = dlsym(library, WEIR_CUDA_PLUGIN_OPEN);
  if (!entry)
    return weir_fail(WEIR_EVERSION, WEIR_CUDA_PLUGIN " has no " WEIR_CUDA_PLUGIN_OPEN
                                                     ": it is not Weir's, or of another version");
  *out = entry();
  if (strcmp((*out)->version, weir_version()) != 0)
    return weir_fail(WEIR_EVERSION, WEIR_CUDA_PLUGIN " is of version %s, libweir of %s",
                     (*out)->version, weir_version());
  return WEIR_OK;
}

static weir_status start_plugin(void)
{
  notify_start();
  core.listener = notify_preload();
  weir_status st = find_plugin(&cuda.plugin);
  atomic_store(&cuda.state, TRYING); /* from here on the driver may be awake */
  if (!st) st = cuda.plugin->start(&core, &cuda.devices);
  if (st) {
    cuda.st = st;
    (void)snprintf(cuda.why, sizeof cuda.why, "%s", weir_error_message());
  }
  atomic_store(&cuda.state, st ? MISSING : OPEN);
  return st;
}

static weir_status available(void)
{
  if (device_forked()) return WEIR_ECUDA;
  int state = atomic_load(&cuda.state);
  if (state == OPEN) return WEIR_OK;
  if (state == MISSING) return weir_fail(cuda.st, "%s", cuda.why);
  (void)pthread_once(&once, watch_forks_of_plugin);
  HOLD_LOCK(&lock);
  state = atomic_load(&cuda.state);
  weir_status st = state == OPEN      ? WEIR_OK
                   : state == MISSING ? weir_fail(cuda.st, "%s", cuda.why)
                                      : start_plugin();
  return st;
}

static weir_status check_present(int index)
{
  weir_status st = available();
  if (!st && (index < 0 || index >= cuda.devices))
    st = fail_invalid("invalid device ordinal: cuda:%d was asked for, there %s %d", index,
                      cuda.devices == 1 ? "is" : "are", cuda.devices);
  return st;
}

/* ---- for all --------------------------------------------------------------------------------- */

bool weir_cuda_is_available(void)
{
  return available() == WEIR_OK;
}

weir_device weir_device_select(bool disable_cuda)
{
  return !disable_cuda && weir_cuda_is_available() ? WEIR_CUDA : WEIR_CPU;
}

weir_status weir_cuda_device_count(int *out)
{
  WEIR_REQUIRE(out);
  *out = 0;
  if (device_forked()) return WEIR_ECUDA;
  if (!available()) *out = cuda.devices;
  return WEIR_OK;
}

weir_status weir_cuda_init(void)
{
  return available();
}

bool weir_cuda_is_initialized(void)
{
  return atomic_load(&cuda.state) == OPEN && !atomic_load(&forked);
}

weir_status device_reach(int index, int peer, bool *can)
{
  weir_status st = check_present(index);
  if (!st) st = check_present(peer);
  return st ? st : cuda.plugin->can_reach(index, peer, can);
}

weir_status weir_cuda_get_device_properties(weir_cuda_device_properties *out, int index)
{
  WEIR_REQUIRE(out);
  weir_status st = check_present(index);
  return st ? st : cuda.plugin->properties(index, out);
}

weir_status device_open(int index, const weir_backend **out)
{
  weir_status st = check_present(index);
  return st ? st : cuda.plugin->open(index, out);
}

weir_status device_close(int index)
{
  weir_status st = check_present(index);
  return st ? st : cuda.plugin->close(index);
}

void device_workspace(weir_status (*allocate)(void **, uint64_t, int, void *),
                      weir_status (*release)(void *))
{
  core.release = release;
  core.allocate = allocate;
}

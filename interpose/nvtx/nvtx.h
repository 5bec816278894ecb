/* nvtx.h: what the files of this folder share.
 *
 * Words: instance: one copy of NVTX in the process, the program's or a library's, with a table of
 * function pointers of its own. Next: the tool that NVTX_INJECTION64_PATH named before us; a
 * function of it, NULL where it has none. */
#ifndef WEIR_INTERPOSE_NVTX_H
#define WEIR_INTERPOSE_NVTX_H

#define NVTX_NO_IMPL 1
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/event.h"
#include "interpose/process/thread.h"

enum { NVTX_MOST_TEXT = 1024 /* bytes of a text that are kept */ };

/* A domain or a registered string: its text, for ever. */
typedef struct nvtx_text {
  uint32_t number; /* of it, from 1 */
  uint32_t bytes;
  char text[];
} nvtx_text;

/* One function of a table that is replaced. */
typedef struct nvtx_hook {
  uint8_t module;                    /* NvtxCallbackModule */
  uint8_t id;                        /* in the module's table */
  NvtxFunctionPointer function;      /* ours */
  _Atomic(NvtxFunctionPointer) next; /* the next tool's, or NULL */
} nvtx_hook;

/* The hooks of a file, ended by module 0. */
extern nvtx_hook nvtx_range_hooks[], nvtx_name_hooks[];

/* The next tool's function after a hook, as that function's type. */
#define NVTX_NEXT(hook, type) ((type)atomic_load_explicit(&(hook).next, memory_order_relaxed))

/* There is a next tool, and it has taken this program. What it has no function for is then answered
 * as without any tool, since what it answers goes to its other functions: handles, numbers. */
extern _Atomic bool nvtx_next_is_there;

/* What NVTX gives for a text: its bytes, wide characters, or a registered string. */
typedef struct nvtx_message {
  int32_t type; /* nvtxMessageType_t; NVTX_MESSAGE_UNKNOWN: none */
  nvtxMessageValue_t value;
} nvtx_message;

/* What is kept for a thread (ranges.c), made at its first range, empty in a forked child. */
enum { NVTX_MOST_OPEN = 256, NVTX_KNOWN = 512, NVTX_MOST_KNOWN = NVTX_KNOWN << 7 };
typedef struct nvtx_known {
  uint64_t hash; /* 0: free */
  uint32_t name;
} nvtx_known;
typedef struct nvtx_thread {
  uint32_t epoch;  /* of the process whose records it is in */
  uint32_t open;   /* ranges pushed and not popped, of all domains */
  uint32_t deeper; /* pushed beyond NVTX_MOST_OPEN, and not recorded */
  uint32_t names;  /* numbered so far */
  uint64_t pushes; /* recorded so far: the number of the last */
  struct {
    uint64_t push;   /* number of the range */
    uint32_t domain; /* its number, 0: none */
    bool opens;      /* a window in which all calls are recorded (process/recording.h) */
  } stack[NVTX_MOST_OPEN];
  nvtx_known known[NVTX_KNOWN];
  nvtx_known *more;   /* mapped, in its place once there are too many; NULL: not yet */
  uint32_t more_mask; /* of its places */
} nvtx_thread;

/* The name of a range: the number of a RANGE_NAME record of this thread, written where it is new
 * (text.c). 0: it could not be written. */
uint32_t nvtx_name_of(nvtx_thread *n, spool_writer *w, nvtxDomainHandle_t domain,
                      const nvtx_message *message, uint32_t category, uint32_t color);

/* What the thread has mapped for names is given back. */
void nvtx_forget_names(nvtx_thread *n);

/* A NAME record: `kind` is a name_kind, `bytes` of a heap, else 0. `domain` goes in front of the
 * name, with a zero between, where a kind of name is a domain's. */
void nvtx_write_name(unsigned kind, uint64_t handle, uint64_t bytes, const nvtx_text *domain,
                     const nvtx_message *message);

/* Puts our functions in front of a tool's into an extension's module (nvtxExtModuleInfo_t), where
 * it is the memory extension's; true then. `empty`: what is in its slots does not count. */
bool nvtx_take_memory_names(void *module, bool empty);

/* A message as UTF-8 in `out`, at most NVTX_MOST_TEXT bytes, cut between two characters. Returns
 * the bytes. */
size_t nvtx_utf8(char out[NVTX_MOST_TEXT], const nvtx_message *message);

/* The domain or registered string of a handle; NULL: the default domain, or an unknown one. */
const nvtx_text *nvtx_domain_of(nvtxDomainHandle_t handle);
const nvtx_text *nvtx_string_of(nvtxStringHandle_t handle);

/* Goes up when the next tool may give an old handle a new meaning. */
extern _Atomic uint32_t nvtx_handles_age;

static inline nvtx_message nvtx_ascii(const char *text)
{
  return (nvtx_message){NVTX_MESSAGE_TYPE_ASCII, {.ascii = text}};
}

static inline nvtx_message nvtx_unicode(const wchar_t *text)
{
  return (nvtx_message){NVTX_MESSAGE_TYPE_UNICODE, {.unicode = text}};
}

/* Begins and ends a record of this thread: false within a CUDA call or a record, and where nothing
 * is recorded. A signal's handler in between finds a call under way. Both keep errno. */
static inline bool nvtx_record_begin(thread_state *t)
{
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (__builtin_expect(t->depth != 0, 0) && (here < t->outermost || !call_was_abandoned(t)))
    return false;
  if (!thread_ready(t)) return false;
  t->depth = 1;
  t->outermost = here;
  return true;
}

static inline void nvtx_record_end(thread_state *t)
{
  t->depth = 0;
}

#endif

/* internal.h: the inside of the software device's driver.
 *
 * An exported function (generated, entry.gen.c) passes the gate (sim_enter) and calls its
 * implementation sim_cuX(), which is found by its name. Nothing inside calls an exported function.
 *
 * Objects of handles (contexts, streams, events, modules ...) live in arenas whose memory is
 * never given back, so that a stale or foreign handle is recognised by address and magic without a
 * fault.
 *
 * Order of locks: the lock of graphs and captures (graph.h) < context.lock (who enqueues when,
 * which streams exist) < stream.lock (one queue) < sim_memory_lock (allocations). A worker holds no
 * lock while it runs an operation.
 *
 * Words: operation (op): one piece of work on a stream. Ticket: (stream, sequence number), done
 * when the stream's `done` has reached the number; a dependency is a ticket an op waits for. Mark:
 * what one cuEventRecord left. Range: one allocation or registration. Twin: see twin.h. */
#ifndef WEIR_SIM_INTERNAL_H
#define WEIR_SIM_INTERNAL_H

#define __CUDA_API_VERSION_INTERNAL                                                                \
  1 /* declare old ABIs and stream variants by their own names                                     \
     */
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "api.gen.h"
#include "cuda/sim/control.h"
#include "cuda/sim/twin.h"
#include "cuda/sim/watch.h"

#define SIM_DRIVER_VERSION 13000
#define SIM_MAX_DEVICES    32
#define SIM_GRANULE        ((size_t)2 << 20)  /* never shared by two devices, nor with the host */
#define SIM_UNIT           ((size_t)512)      /* smallest piece of device memory */
#define SIM_EXPORTS_BYTES  ((size_t)64 << 10) /* of a device's file, at its end; memory/ipc.c */

/* An implementation that is one expression, of cuX's parameters by cuda.h's names, and of
 * `default_stream` where cuX takes no stream. */
#define SIM_ENTRY(name, ...)                                                                       \
  CUresult sim_##name SIM_PARAMS_##name                                                            \
  {                                                                                                \
    return __VA_ARGS__;                                                                            \
  }

/* The same after checks, statements that return an error; and one that then gives something a value
 * and succeeds. */
#define SIM_CHECKED(name, checks, ...)                                                             \
  CUresult sim_##name SIM_PARAMS_##name                                                            \
  {                                                                                                \
    checks;                                                                                        \
    return __VA_ARGS__;                                                                            \
  }
#define SIM_ASSIGN(name, checks, place, ...)                                                       \
  CUresult sim_##name SIM_PARAMS_##name                                                            \
  {                                                                                                \
    checks;                                                                                        \
    place = __VA_ARGS__;                                                                           \
    return CUDA_SUCCESS;                                                                           \
  }
#define SIM_NEED(sound)                                                                            \
  if (!(sound)) return CUDA_ERROR_INVALID_VALUE
#define SIM_NEED_HANDLE(arena, handle)                                                             \
  if (!sim_arena_has(&(arena), handle)) return CUDA_ERROR_INVALID_HANDLE
#define SIM_NEED_DEVICE(ordinal)                                                                   \
  if (!sim_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE

/* Holds the lock until the function ends, what it returns worked out. */
#define SIM_HOLD(mutex)                                                                            \
  pthread_mutex_t *lock_held __attribute__((cleanup(sim_let_go_lock), unused)) = &(mutex);         \
  pthread_mutex_lock(lock_held)

static inline void sim_let_go_lock(pthread_mutex_t **held)
{
  pthread_mutex_unlock(*held);
}

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- gate and threads (driver/gate.c, device/thread.c) --------------------------------------- */

enum sim_level {                 /* what stops a call at the gate */
                 SIM_NORMAL,     /* not initialised, forked, sticky error, destroyed context */
                 SIM_NO_CONTEXT, /* not initialised, forked, sticky error */
                 SIM_ANY_ERROR,  /* not initialised, forked */
                 SIM_STATELESS   /* nothing */
};

enum {                             /* bits of sim_gate, for all threads, and of sim_thread.gate */
       SIM_GATE_UNINITIALISED = 1, /* before a successful cuInit() */
       SIM_GATE_FORKED = 2,        /* child of a process that had initialised */
       SIM_GATE_FAIL = 4,          /* fault injection is on */
       SIM_GATE_CALLBACK = 8       /* this thread runs a host function: no API calls */
};

struct sim_thread {
  struct sim_thread *next, **link;       /* all threads, under sim_threads_lock */
  CUcontext current;                     /* top of the stack, NULL when empty */
  CUcontext *stack;                      /* context stack, bottom first; holds references */
  uint32_t depth, room;                  /* entries used and allocated */
  uint32_t gate;                         /* SIM_GATE_CALLBACK or 0 */
  void (*leave)(struct sim_thread *);    /* gives up contexts and streams as the thread ends */
  CUstream *streams;                     /* per-thread default streams, one a context */
  uint32_t stream_count;                 /* entries of `streams` */
  void *fault_stack;                     /* of a worker: to handle faults on */
  CUstreamCaptureMode capture_mode;      /* of cuThreadExchangeStreamCaptureMode */
  uint64_t number;                       /* of the thread, never used again */
  uint32_t correlation;                  /* of the call that is made, if watched; 0: none */
  bool in_watcher;                       /* runs a function of the watcher */
  _Atomic uint64_t calls[SIM_API_COUNT]; /* from outside, written by this thread only */
};

extern __thread struct sim_thread *sim_self __attribute__((tls_model("initial-exec")));
extern _Atomic uint32_t sim_gate;

struct sim_thread *sim_thread_start(void);
CUresult sim_enter_slow(struct sim_thread *t, unsigned api, enum sim_level level);

/* ---- arenas (device/arena.c) ----------------------------------------------------------------- */

enum sim_magic { /* first word of every object; 0 while its slot is free */
                 SIM_CONTEXT = 0x77c0001,
                 SIM_STREAM = 0x77c0002,
                 SIM_EVENT = 0x77c0003,
                 SIM_MODULE = 0x77c0004,
                 SIM_FUNCTION = 0x77c0005,
                 SIM_LIBRARY = 0x77c0006,
                 SIM_KERNEL = 0x77c0007,
                 SIM_ARRAY = 0x77c0008,
                 SIM_POOL = 0x77c0009,
                 SIM_PHYSICAL = 0x77c000a,
                 SIM_GRAPH = 0x77c000b,
                 SIM_GRAPH_NODE = 0x77c000c,
                 SIM_GRAPH_EXEC = 0x77c000d,
                 SIM_USER_OBJECT = 0x77c000e,
                 SIM_TEXTURE = 0x77c000f,
                 SIM_SURFACE = 0x77c0010,
                 SIM_CONDITION = 0x77c0011
};

struct sim_arena {
  const size_t size;    /* bytes of an object, a multiple of 64 */
  const uint32_t magic; /* of its live objects */
  char *base;           /* reserved once, never returned */
  size_t used;          /* bytes handed out at least once */
  size_t registered;    /* bytes that a leak checker reads */
  void *free, *last;    /* freed objects, oldest first, linked through their second word */
  uint32_t freed;       /* how many */
  pthread_mutex_t lock;
};

#define SIM_ARENA(type, m)                                                                         \
  {                                                                                                \
    .size = (sizeof(type) + 63) / 64 * 64, .magic = (m), .lock = PTHREAD_MUTEX_INITIALIZER         \
  }
#define SIM_ARENA_BYTES ((size_t)256 << 20) /* of address space, an arena */

void *sim_arena_new(struct sim_arena *arena); /* zeroed but for the magic; NULL: no memory */
void sim_arena_free(struct sim_arena *arena, void *object);

/* The object is live and of this arena's type. */
static inline bool sim_arena_has(const struct sim_arena *arena, const void *object)
{
  const char *base = __atomic_load_n(&arena->base, __ATOMIC_ACQUIRE);
  size_t at = (size_t)((const char *)object - base);
  return base && at < __atomic_load_n(&arena->used, __ATOMIC_ACQUIRE) && at % arena->size == 0 &&
         __atomic_load_n((const uint32_t *)object, __ATOMIC_ACQUIRE) == arena->magic;
}

extern struct sim_arena sim_contexts, sim_streams, sim_events, sim_modules, sim_functions,
    sim_libraries, sim_kernels, sim_arrays, sim_pools;

/* ---- devices (device/device.c) --------------------------------------------------------------- */

struct sim_link {
  double bytes_per_ns; /* 0: as fast as the machine copies */
  uint64_t latency_ns;
};

enum sim_direction {
  SIM_H2D,
  SIM_D2H,
  SIM_D2D,
  SIM_P2P,
  SIM_H2H,
  SIM_PAGEABLE, /* not a link: the host's own copy between pageable memory and a buffer */
  SIM_DIRECTIONS
};

/* A span of address space cut into runs of equal units (memory/heap.c). */
struct sim_runs {
  struct sim_unit **chunk; /* units by number >> shift; NULL where no run begins or ends */
  uint32_t shift;          /* log2 of units a chunk; a run never crosses a chunk */
  uint32_t bin[33];        /* first free run of 2^k..2^(k+1)-1 units, +1; 0: none */
};

struct sim_device {
  int ordinal; /* as the program sees it */
  int index;   /* before CUDA_VISIBLE_DEVICES */
  CUuuid uuid;
  char *base;                /* device address range, a multiple of the granule */
  char *home;                /* where byte 0 of the file is mapped, less than a granule below */
  int file;                  /* memory of the range; -1: private memory */
  ino_t inode;               /* of it: programs close what is not theirs */
  _Atomic uint64_t *exports; /* at the file's end: ids of exported allocations; or NULL */
  size_t span;               /* bytes of the range */
  _Atomic size_t capacity;   /* bytes a program may hold */
  size_t used;               /* bytes of it in use, in granules; sim_memory_lock */
  size_t peak;               /* most that ever were; sim_memory_lock */
  size_t module_takes;       /* of it, by each module in addition to its variables */
  size_t context_takes;      /* and by each context */
  struct sim_runs granules;  /* the range in granules */
  struct sim_runs small;     /* granules given to small allocations, in units */
  uint32_t *small_used;      /* units in use, by granule; 0: not a small block */
  uint32_t spare;            /* one empty small granule kept, +1; 0: none */
  CUcontext primary;         /* its primary context; the handle lives as long as the process */
  uint32_t primary_refs;     /* retains; sim_devices_lock */
  unsigned primary_flags;    /* cuDevicePrimaryCtxSetFlags */
  CUmemoryPool default_pool, pool;        /* pool: cuDeviceSetMemPool */
  pthread_mutex_t engine[SIM_DIRECTIONS]; /* a slowed link carries one copy at a time */
};

extern struct sim_device sim_devices[SIM_MAX_DEVICES];
extern int sim_device_count;
extern pthread_mutex_t sim_devices_lock; /* primary contexts */

int sim_devices_find(void); /* those that are visible, without their memory; how many */
static inline struct sim_device *sim_device(CUdevice ordinal)
{
  return ordinal >= 0 && ordinal < sim_device_count ? &sim_devices[ordinal] : NULL;
}
int sim_device_attribute(const struct sim_device *device, CUdevice_attribute attribute);
/* Of all devices, from now on. False: too many were set. */
bool sim_device_set_attribute(int attribute, int value);

/* ---- contexts (device/context.c) ------------------------------------------------------------- */

struct sim_ticket {
  CUstream stream;
  uint64_t seq;
};

struct CUctx_st {
  _Atomic uint32_t magic;
  _Atomic int error;     /* sticky CUresult; CONTEXT_IS_DESTROYED when it is; 0: fine */
  _Atomic uint32_t refs; /* handle, thread stacks, streams, ranges */
  struct sim_device *device;
  unsigned flags;       /* CU_CTX_* */
  unsigned api_version; /* cuCtxGetApiVersion */
  uint64_t id;          /* cuCtxGetId */
  bool primary;
  uint32_t peers; /* bit a device: access enabled; lock */
  CUfunc_cache cache;
  CUsharedconfig shared;
  size_t limits[CU_LIMIT_MAX];
  pthread_mutex_t lock;      /* order of enqueueing in this context, list of streams */
  CUstream streams;          /* all, legacy included, until drained */
  CUstream legacy;           /* legacy default stream */
  _Atomic uint32_t captures; /* blocking streams that are captured: legacy cannot be used */
  struct sim_ticket barrier; /* all later work waits for it; stream NULL: none */
  CUstream recorder;         /* where cuCtxRecordEvent's marks are; NULL: none yet; lock */
  struct sim_range *ranges;  /* sim_memory_lock */
  CUmodule modules;          /* sim_modules_lock */
};

/* The calling thread's context, or NULL. */
static inline CUcontext sim_current(void)
{
  return sim_self->current;
}
#define SIM_NEED_CONTEXT(c)                                                                        \
  CUcontext c = sim_current();                                                                     \
  if (!c) return CUDA_ERROR_INVALID_CONTEXT
#define SIM_NEED_CURRENT()                                                                         \
  if (!sim_current()) return CUDA_ERROR_INVALID_CONTEXT

CUresult sim_context_check(CUcontext context); /* 0, INVALID_CONTEXT or CONTEXT_IS_DESTROYED */
void sim_context_ref(CUcontext context);
void sim_context_unref(CUcontext context);
/* Makes an error of the sticky class stay with the context. */
void sim_context_fail(CUcontext context, CUresult error);
bool sim_error_sticks(CUresult error);

/* ---- streams (stream/stream.c: the queue; stream/stream_api.c: the functions) ---------------- */

struct sim_op {
  struct sim_op *next;
  void (*run)(struct sim_op *op, CUstream stream); /* NULL: only order */
  void (*drop)(struct sim_op *op);                 /* frees what the op owns; NULL: nothing */
  CUresult (*park)(struct sim_op *op);             /* before it is queued; NULL: nothing to do */
  void (*numbered)(struct sim_op *op, CUstream);   /* it has its place in the stream; or NULL */
  uint64_t seq;
  bool always; /* runs after a sticky error too */
  /* What the work is, done now; NULL: none of the device's. */
  void (*describe)(const struct sim_op *op, CUstream stream, struct weir_watch_work *work);
  uint32_t watched;             /* WEIR_WATCH_..., when it was queued */
  uint32_t correlation;         /* of the call that queued it */
  uint32_t graph_id;            /* of the executable graph it is of; 0: none */
  uint64_t node_id;             /* of its node; 0: none */
  uint64_t queued_ns, began_ns; /* by the watcher's clock */
  uint32_t deps, dep_room;
  struct sim_ticket *dep;         /* what it waits for; holds references */
  struct sim_ticket near_deps[2]; /* place for the usual few */
};

struct CUstream_st {
  _Atomic uint32_t magic;
  _Atomic uint32_t refs; /* handle, context's list, worker, marks, dependencies */
  CUcontext context;
  CUstream next, *link; /* streams of the context; context.lock */
  unsigned flags;       /* CU_STREAM_NON_BLOCKING or 0 */
  int priority;
  uint64_t id;                /* cuStreamGetId */
  bool is_default;            /* legacy or per-thread: not the program's to destroy */
  bool listed;                /* in the context's list; context.lock */
  uint64_t legacy_seen;       /* last legacy ticket it waits for; context.lock */
  _Atomic uint64_t queued;    /* last number given; written under context.lock */
  _Atomic uint64_t done;      /* last number finished; written under lock */
  _Atomic uint64_t appended;  /* last number that went into the queue; written under lock */
  pthread_mutex_t lock;       /* below: */
  pthread_cond_t work;        /* the worker waits */
  pthread_cond_t progress;    /* hosts and other workers wait */
  uint32_t waiters;           /* of progress */
  uint64_t awaited;           /* the least number that one of them waits for */
  struct sim_op *head, *tail; /* queue */
  struct sim_op *running;     /* taken from the queue */
  bool worker;                /* has a thread */
  bool closing;               /* destroyed: the worker ends when drained */
  uint64_t holds, released;   /* weir_sim_hold() and _release() so far */
  uint64_t holds_met;         /* holds the worker has reached */
  CUlaunchAttributeValue attributes[CU_LAUNCH_ATTRIBUTE_MAX]; /* cuStreamSetAttribute */
  _Atomic(struct sim_capture *) capture; /* it is part of; written under sim_graph_lock */
  struct sim_place *place;               /* what it is there; sim_graph_lock */
};

enum sim_how {
  SIM_QUEUE,   /* the worker runs it */
  SIM_AT_ONCE, /* here if the stream is idle, else the worker; for what takes no time */
  SIM_AND_WAIT /* here if the stream is idle, else the worker; returns when done */
};

CUstream sim_stream_new(CUcontext context, unsigned flags, int priority, bool is_default);
void sim_stream_close(CUstream stream);
/* A handle as a program passes it, 0 and the default streams' constants included. */
CUresult sim_stream_find(CUstream handle, CUstream *stream);
#define SIM_FIND_STREAM(s, handle)                                                                 \
  CUstream s;                                                                                      \
  CUresult error = sim_stream_find(handle, &s);                                                    \
  if (error) return error
void sim_stream_ref(CUstream stream);
void sim_stream_unref(CUstream stream);
/* An op of `bytes` (its struct begins with struct sim_op), zeroed; NULL: no memory. */
void *sim_op_new(size_t bytes, void (*run)(struct sim_op *, CUstream));
void sim_op_free(struct sim_op *op);
/* The op shall wait for the ticket; done ones are dropped. */
CUresult sim_op_after(struct sim_op *op, CUstream stream, uint64_t seq);
/* All work queued in `context` so far; the calling thread holds no lock. */
CUresult sim_op_after_context(struct sim_op *op, CUcontext context);
/* Queues the op, which it owns from now on, also on failure. `ticket` may be NULL. */
CUresult sim_submit(CUstream stream, struct sim_op *op, enum sim_how how, uint64_t *ticket);
/* Queues the ops, linked by `next`, with nothing between them; they wait for `after`, if it has a
 * stream. */
CUresult sim_submit_all(CUstream stream, struct sim_op *first, const struct sim_ticket *after,
                        uint64_t *ticket);
/* Waits for a ticket; the stream's context's sticky error. */
CUresult sim_wait(CUstream stream, uint64_t seq);
static inline bool sim_is_done(CUstream stream, uint64_t seq)
{
  return atomic_load_explicit(&stream->done, memory_order_acquire) >= seq;
}
/* What a stream's query or synchronisation covers: itself and, for the legacy default stream, the
 * blocking streams. Each ticket is waited for, or asked when `ask`: NOT_READY. */
CUresult sim_stream_settle(CUstream stream, bool ask);
/* Waits for all work of the context; its sticky error. */
CUresult sim_context_wait(CUcontext context);
/* For the work of every context of the process. */
void sim_wait_all(void);

void sim_run_watched(struct sim_op *op, CUstream stream); /* device/watch.c */
/* Runs it, on the thread that has its turn. */
static inline void sim_run_op(struct sim_op *op, CUstream s)
{
  if (unlikely(op->watched && op->describe))
    sim_run_watched(op, s);
  else if (op->run)
    op->run(op, s);
}

/* What a node of a graph does: event.c, stream_api.c. */
struct sim_op *sim_host_node_op(const CUDA_HOST_NODE_PARAMS_v2 *p);
struct sim_op *sim_record_op(CUevent event, CUresult *error);
struct sim_op *sim_wait_op(CUevent event, CUresult *error);

/* ---- what is watched (device/watch.c; watch.h) ----------------------------------------------- */

#define SIM_WATCH_WORK                                                                             \
  ((uint32_t)(WEIR_WATCH_COPIES | WEIR_WATCH_PEERS | WEIR_WATCH_FILLS | WEIR_WATCH_KERNELS))

extern _Atomic uint32_t sim_watched_kinds;

struct sim_watched { /* one call */
  struct weir_watch_call call;
  bool outermost; /* not within another */
  bool calls;     /* the watcher asked for calls when it began */
};

bool sim_watch_call_slow(struct sim_watched *w, const char *name, const void *params);
CUresult sim_watch_call_end(struct sim_watched *w, CUresult result);
void sim_watch_op(struct sim_op *op, uint32_t kinds);
void sim_watch_resource_slow(const struct weir_watch_resource *resource);
/* The device begins with it only now; else it does when it is run. */
void sim_op_begins(struct sim_op *op);
/* The same name at an address that stays; NULL: no memory. */
const char *sim_watch_name(const char *name);

static inline uint32_t sim_watches(uint32_t kinds)
{
  return atomic_load_explicit(&sim_watched_kinds, memory_order_relaxed) & kinds;
}

/* A call begins; true: sim_watch_call_end() has to be called. */
static inline bool sim_watch_call(struct sim_watched *w, const char *name, const void *params)
{
  return unlikely(sim_watches(UINT32_MAX)) && sim_watch_call_slow(w, name, params);
}

#define sim_watch_resource(...)                                                                    \
  do {                                                                                             \
    if (unlikely(sim_watches(WEIR_WATCH_RESOURCES)))                                               \
      sim_watch_resource_slow(&(struct weir_watch_resource){__VA_ARGS__});                         \
  } while (0)

/* ---- capture ------------------------------------------------------------------------------------
 *
 * What is queued asks here first. Captures are made in graph/capture.c, which stands above and
 * states what they do when it is loaded. */

struct sim_capture; /* a capture sequence */
struct sim_place;   /* a stream's part in one */
struct sim_taken;   /* what an event took of one */

struct sim_capture_ops {
  CUresult (*bar)(CUstream stream);
  CUresult (*unsafe)(void);
  CUresult (*bar_record)(CUcontext context); /* no recording of all that it does */
  void (*stream_ends)(CUstream stream);
  CUresult (*record)(CUstream stream, CUevent event, bool external);
  CUresult (*wait)(CUstream stream, CUevent event, bool external);
  void (*forget)(CUevent event);           /* it is not recorded in a capture any more */
  CUresult (*event_barred)(CUevent event); /* asked or waited for by the host */
  CUresult (*add)(CUstream stream, CUgraphNodeParams *params); /* a node */
};

extern const struct sim_capture_ops *sim_capture_ops;
extern _Atomic uint32_t sim_captures; /* sequences of the process that have not ended */

/* The stream is captured: what would be queued becomes a node. */
static inline bool sim_capturing(CUstream s)
{
  return atomic_load_explicit(&s->capture, memory_order_relaxed) != NULL;
}
static inline CUresult sim_capture_add(CUstream s, CUgraphNodeParams *params)
{
  return sim_capture_ops->add(s, params);
}
/* Nothing can be queued in a stream that is captured, nor in the legacy default stream during one:
 * the error, and the capture is spoiled. Callers have dealt with what can be captured. */
static inline CUresult sim_queue_barred(CUstream s)
{
  if (likely(!atomic_load_explicit(&sim_captures, memory_order_relaxed))) return CUDA_SUCCESS;
  return sim_capture_ops->bar(s);
}
/* For "potentially unsafe API calls" (cuThreadExchangeStreamCaptureMode). */
static inline CUresult sim_unsafe(void)
{
  if (likely(!atomic_load_explicit(&sim_captures, memory_order_relaxed))) return CUDA_SUCCESS;
  return sim_capture_ops->unsafe();
}
#define SIM_SAFE()                                                                                 \
  do {                                                                                             \
    CUresult unsafe = sim_unsafe();                                                                \
    if (unlikely(unsafe)) return unsafe;                                                           \
  } while (0)
CUresult sim_capture_bar_context(CUcontext context); /* no waiting for a context with a capture */

/* ---- memory (memory/) ------------------------------------------------------------------------ */

enum sim_kind {
  SIM_DEVICE, /* cuMemAlloc, pools, globals */
  SIM_MANAGED,
  SIM_PINNED,     /* cuMemHostAlloc */
  SIM_REGISTERED, /* cuMemHostRegister */
  SIM_MAPPED,     /* cuMemMap */
  SIM_IMPORTED    /* cuIpcOpenMemHandle */
};

struct sim_graph_memory;
struct sim_import;      /* memory of another process; memory/ipc.c */
struct sim_physical;    /* memory of cuMemCreate; vmm.c */
struct sim_reservation; /* addresses of cuMemAddressReserve */

struct sim_range {
  uintptr_t start; /* address the program holds */
  size_t bytes;    /* asked for */
  size_t reserved; /* bytes after it */
  enum sim_kind kind;
  struct sim_device *device;      /* of the memory, or of the context it was made in */
  CUcontext context;              /* it dies with; referenced; NULL: a mapping */
  struct sim_range *next, **link; /* ranges of the context */
  unsigned flags;                 /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
  uint64_t id;                    /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
  bool sync_memops;               /* cuPointerSetAttribute */
  bool hidden;                    /* a module's variable: cuMemFree refuses it */
  CUmemoryPool pool;              /* NULL: not from a pool */
  struct sim_graph_memory *graph; /* of an allocation node; NULL: not of a graph */
  bool absent;                    /* of such: not allocated now */
  struct sim_import *import;      /* of another process's memory */
  uint32_t exported;              /* place among the device's exports + 1; 0: never exported */
  struct sim_physical *physical;  /* of a mapping */
  struct sim_reservation *within; /* of a mapping */
  uint32_t readers, writers;      /* of a mapping: bit a device that may */
};

extern pthread_mutex_t sim_memory_lock;

/* Device memory, raw: 0 when the capacity does not allow it. sim_memory_lock held. */
uintptr_t sim_heap_alloc(struct sim_device *device, size_t bytes, size_t *reserved);
void sim_heap_free(struct sim_device *device, uintptr_t start, size_t reserved);
CUresult sim_heap_start(struct sim_device *device, size_t capacity);
/* Whole granules without an address of their own: where in the device's range they can be found,
 * inaccessible there; NULL when the capacity does not allow it. sim_memory_lock held. */
char *sim_heap_take(struct sim_device *device, size_t bytes);
void sim_heap_give(struct sim_device *device, char *home, size_t bytes);
/* Addresses of a device's range that have no memory. Lock held. */
uintptr_t sim_heap_addresses(struct sim_device *device, size_t bytes);
void sim_heap_addresses_end(struct sim_device *device, uintptr_t start, size_t bytes);
/* Counts memory that is kept elsewhere; false when the capacity does not allow it. Lock held. */
bool sim_heap_charge(struct sim_device *device, size_t bytes);
/* Takes the lock itself: the same for code and contexts, and its end. */
bool sim_overhead_take(struct sim_device *device, size_t bytes);
void sim_overhead_give(struct sim_device *device, size_t bytes);

/* The range that holds [address, address + bytes), NULL when none does wholly. Lock held. */
struct sim_range *sim_range_at(uintptr_t address, size_t bytes);
/* The same, but adjacent mappings count as one; *readers and *writers are the devices that may
 * reach all of it (every device, for what is not a mapping). Lock held. */
struct sim_range *sim_range_reach(uintptr_t address, size_t bytes, uint32_t *readers,
                                  uint32_t *writers);
/* The first range that touches it. Lock held. */
struct sim_range *sim_range_touching(uintptr_t address, size_t bytes);
/* A new device range; *error: why it is NULL. */
struct sim_range *sim_range_device(CUcontext context, size_t bytes, CUresult *error);
/* A record, not yet anywhere; `context` may be NULL. NULL: no memory. */
struct sim_range *sim_range_new(enum sim_kind kind, CUcontext context, struct sim_device *device,
                                size_t bytes);
bool sim_range_add(struct sim_range *range); /* lock held; into the tree and its context's list */
void sim_range_detach(struct sim_range *range); /* lock held; the record ends, the memory stays */
void sim_range_remove(struct sim_range *range); /* lock held; gives the memory back */
void sim_ranges_free_of(CUcontext context);

/* The addresses that are reserved around p; false: none. Lock held. */
bool sim_reserved_at(uintptr_t p, uintptr_t *start, size_t *bytes);
unsigned sim_physical_handle_types(const struct sim_physical *physical);

/* What allocation nodes have: graph/graph_memory.c, which stands above and reports it when
 * loaded. */
struct sim_graph_memory_ops {
  CUresult (*free)(uintptr_t start); /* cuMemFree */
  /* cuMemFreeAsync; false: it is none of theirs. */
  bool (*free_in)(uintptr_t start, CUstream stream, CUresult *error);
  bool (*trim)(struct sim_device *device); /* lock held; true: freed something */
};
extern const struct sim_graph_memory_ops *sim_graph_memory_ops;

CUresult sim_pools_start(struct sim_device *device);
unsigned sim_pool_handle_types(CUmemoryPool pool);
void sim_pool_forget(CUmemoryPool pool, size_t reserved); /* lock held */
/* Takes back what a pool keeps for later; lock held; true if that freed something. */
bool sim_pools_shrink(struct sim_device *device);
/* Or of what graphs keep. */
bool sim_memory_shrink(struct sim_device *device);

/* A copy of pointers or arrays, checked; `now`: its source is read before the call returns. Its
 * queueing, which owns it. */
CUresult sim_copy_op(const CUDA_MEMCPY3D *p, CUstream stream, bool now, struct sim_op **op);
CUresult sim_copy_submit(struct sim_op *op, CUstream stream);
/* What a node of a graph does; `planned`: only whether it could. */
CUresult sim_copy_node_op(const CUDA_MEMCPY_NODE_PARAMS *p, bool planned, struct sim_op **op);
CUresult sim_fill_node_op(const CUDA_MEMSET_NODE_PARAMS_v2 *p, bool planned, struct sim_op **op);

/* ---- events, modules, launches --------------------------------------------------------------- */

struct sim_mark {           /* one recording of an event */
  _Atomic uint32_t refs;    /* event, op, askers */
  struct sim_ticket at;     /* holds a reference to the stream */
  _Atomic uint64_t time_ns; /* CLOCK_MONOTONIC when it was reached */
};

struct CUevent_st {
  _Atomic uint32_t magic;
  unsigned flags;    /* CU_EVENT_* */
  CUcontext context; /* referenced */
  pthread_mutex_t lock;
  struct sim_mark *mark;     /* last recording; NULL: none, or in a capture; lock */
  struct sim_taken *taken;   /* last recording was in a capture; sim_graph_lock */
  struct sim_shared *shared; /* its recordings, known to other processes; NULL: not interprocess */
};

void sim_modules_free_of(CUcontext context);

struct CUarray_st {
  _Atomic uint32_t magic;
  CUcontext context; /* referenced */
  CUarray next;      /* of the context is not kept: freed by its owner */
  CUDA_ARRAY3D_DESCRIPTOR shape;
  size_t element;             /* bytes */
  size_t pitch, rows, slices; /* bytes a row; at least 1 each */
  uintptr_t start;            /* device memory */
  size_t reserved;            /* bytes */
};

/* ---- the rest -------------------------------------------------------------------------------- */

struct sim_proc { /* one row of cuGetProcAddress */
  const char *name;
  int version;
  int per_thread;
  void (*function)(void);
};
#define SIM_PROC(f) (void (*)(void)) f
extern const struct sim_proc
    sim_procs[]; /* sorted by name, then version within legacy, per thread */
extern const unsigned sim_proc_count;
extern const char *const sim_api_names[SIM_API_COUNT];
struct sim_error_name {
  int value;
  const char *name;
};
extern const struct sim_error_name sim_error_names[];

/* What the environment says: driver/control.c, device/link.c. */
extern uint64_t sim_queue_room;  /* WEIR_SIM_QUEUE; 0: no limit */
extern bool sim_launch_blocking; /* CUDA_LAUNCH_BLOCKING=1 */
void sim_control_start(void);
CUresult sim_control_fail(unsigned api); /* the error to inject into this call, or 0 */
extern _Atomic bool sim_link_slow;
struct sim_link sim_link_of(enum sim_direction direction);

/* What calls cost on the card whose costs the device has (device/card.c); without one, nothing. */
enum sim_cost {
  SIM_COST_ALLOC,
  SIM_COST_FREE,
  SIM_COST_LAUNCH,
  SIM_COST_GRAPH,       /* a launch of it */
  SIM_COST_ACCESS,      /* to a mapping */
  SIM_COST_RECORD,      /* of an event without times */
  SIM_COST_RECORD_TIME, /* of one with */
  SIM_COST_PIN,         /* of bytes */
  SIM_COST_UNPIN,       /* of bytes */
  SIM_COSTS
};
extern _Atomic bool sim_has_card;
struct sim_link sim_card_link(enum sim_direction direction);
uint64_t sim_card_kernel_ns(void);          /* a kernel takes this long at least */
uint64_t sim_card_fill_ns(size_t bytes);    /* and a memset */
void sim_wait_until(uint64_t monotonic_ns); /* never less */
void sim_spend_slow(enum sim_cost what, size_t bytes);
void sim_spend_since(enum sim_cost what, size_t bytes, uint64_t monotonic_ns); /* from then on */
/* The caller takes the time that it costs. */
static inline void sim_spend(enum sim_cost what, size_t bytes)
{
  if (unlikely(atomic_load_explicit(&sim_has_card, memory_order_relaxed)))
    sim_spend_slow(what, bytes);
}
size_t sim_parse_bytes(const char *text, size_t otherwise);

/* A worker's way out of a fault, while it runs a twin or a copy. */
struct sim_guard {
  sigjmp_buf out;
  volatile CUresult error;
};
extern __thread struct sim_guard *sim_guard __attribute__((tls_model("initial-exec")));
void sim_guard_stack(void);   /* gives a worker a stack of its own to handle faults on ... */
void sim_guard_unstack(void); /* ... and takes it back */
bool sim_guard_run(void (*f)(void *), void *argument, CUresult *error);

uint64_t sim_now_ns(void);
void sim_print_once(_Atomic bool *reported, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* On stderr and, under Weir, in the trace; true: there is a trace. */
bool sim_print_and_note(const char *text);
/* Answers CUDA_ERROR_NOT_SUPPORTED, and reports it once a function; `done`: it does other
 * things. */
CUresult sim_not_supported(unsigned api, bool done);

/* ---- the gate -------------------------------------------------------------------------------- */

/* What the current context's error states to a call of this level. */
static inline CUresult sim_enter_context(const struct sim_thread *t, enum sim_level level)
{
  if (level > SIM_NO_CONTEXT || !t->current) return CUDA_SUCCESS;
  CUresult error = (CUresult)atomic_load_explicit(&t->current->error, memory_order_acquire);
  bool passes = level == SIM_NO_CONTEXT && error == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return passes ? CUDA_SUCCESS : error;
}

static inline CUresult sim_enter(unsigned api, enum sim_level level)
{
  struct sim_thread *t = sim_self;
  if (unlikely(!t)) {
    t = sim_thread_start();
    if (!t) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  uint64_t n = atomic_load_explicit(&t->calls[api], memory_order_relaxed);
  atomic_store_explicit(&t->calls[api], n + 1, memory_order_relaxed);
  uint32_t gate = atomic_load_explicit(&sim_gate, memory_order_relaxed) | t->gate;
  if (unlikely(gate)) return sim_enter_slow(t, api, level);
  return sim_enter_context(t, level);
}

/* The result of a call from outside. */
static inline CUresult sim_answer(unsigned api, CUresult result)
{
  return likely(result != CUDA_ERROR_NOT_SUPPORTED) ? result : sim_not_supported(api, true);
}

#endif

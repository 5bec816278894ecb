/* event.h: the one record everything is written as.
 *
 * An event is one fact (an allocation, a copy, a wait) in 64 bytes: one cache line, one slot of a
 * spool chunk. Facts that do not fit a slot (a stack, a module, a name) take an *extended* record:
 * a head slot of the same shape followed by `extra` raw slots of payload.
 *
 * A slot exists for a reader once its commit word is right. The commit word is stored last, with
 * release order, and mixes the slot's place, the chunk's generation and all the other words: a slot
 * left from an earlier use of the chunk, a torn slot and a damaged slot all fail the check.
 *
 * Words: the *detail* of an event is its byte whose enumeration depends on the kind: the direction
 * of a copy, what a wait waits for. A device is its ordinal as the program sees it,
 * WEIR_DEVICE_NONE for host or unknown. A pointer or a handle is the value that the program holds;
 * no reader dereferences it. */
#ifndef WEIR_TRACE_EVENT_H
#define WEIR_TRACE_EVENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* What `a`, `b`, `bytes` and the detail hold, by kind; `mem`, `device`, `src_device` and `stream`
 * hold what they are named for, where a kind has them.
 *
 * kind          a                        b                        bytes            detail
 * ALLOC         address                  pitch, or 0              size             reason
 * FREE          address                  rerouted: ticks waited   rerouted: size   reason
 *                                                                 cached
 * COPY          destination              source                   size             copy_kind
 * MEMSET        destination              value                    size
 * SYNC          event handle             polls: ticks from first  polls: how many  sync_type
 *                                        call to last return      after the first
 * LAUNCH        function or host stub    grid, packed             threads          access set
 * STREAM        1 created, 0 destroyed   flags
 * EVENT         handle                   flags
 * CONTEXT       context or device
 * RESET         context; of a device     0                        0 device,
 *               its primary's number                              1 context
 * HOSTREG       address                  flags                    size; 0: end
 * CALL          by its line of hooks.tsv, as are b and bytes
 * CACHE         see cache_fact                                                     cache_fact
 * RANGE         number of the name       payload                  of the range     range_fact
 * STACK         id
 * MODULE        1 loaded, 0 gone
 * NAME          handle                   name_kind
 * TENSOR        storage
 * CORRELATION   number of device work    start of its event
 * DEVICE_FACT   device_fact              a count
 * RANGE_NAME    number in the thread
 * GRAPH         executable graph         see graph_fact                            graph_fact
 * COPY_HASH     number, or 0             start of its event                        hash_outcome
 * ASKED         start of its event, or 0
 * ACCESS        number of the set        parameters + 1; 0                        access_fact
 *                                        not known
 * RECORDING     spool_recording          calls that were not
 *               from here on             recorded, up to here
 * PYTHON_FRAME  number
 *
 * Polls (cudaStreamQuery in a loop) are one event: its duration is that of all of them together.
 * `mem` of a COPY_HASH is 1 where all bytes that were hashed are equal.
 *
 * Extended records (from STACK on): `bytes` is the payload's length, of a STACK in addresses. The
 * payload of a STACK is u64 return addresses, the innermost first; of an ACCESS what its detail
 * says (access_fact); of a DEVICE_WORK one or more device_operation; of a GRAPH
 * graph_node_info; of a NAME, NOTE, THREAD or DEVICE_FACT the text; of the other kinds the struct
 * below that is named for the kind, and what follows it there. */

/* One row a kind: identifier, value, name in traces, extended (1) or one slot (0). Append only. */
#define WEIR_EVENT_KIND_MAP(X)                                                                     \
  X(ALLOC, 1, "alloc", 0)                                                                          \
  X(FREE, 2, "free", 0)                                                                            \
  X(COPY, 3, "copy", 0)                                                                            \
  X(MEMSET, 4, "memset", 0)                                                                        \
  X(SYNC, 5, "sync", 0)                                                                            \
  X(LAUNCH, 6, "launch", 0)                                                                        \
  X(STREAM, 7, "stream", 0)                                                                        \
  X(EVENT, 8, "event", 0)                                                                          \
  X(CONTEXT, 9, "context", 0)                                                                      \
  X(RESET, 10, "reset", 0)                                                                         \
  X(HOSTREG, 11, "hostreg", 0)                                                                     \
  X(CALL, 12, "call", 0)                                                                           \
  X(CACHE, 13, "cache", 0)                                                                         \
  X(RANGE, 14, "range", 0)                                                                         \
  X(STACK, 32, "stack", 1)                                                                         \
  X(MODULE, 33, "module", 1)                                                                       \
  X(NAME, 34, "name", 1)                                                                           \
  X(NOTE, 35, "note", 1)                                                                           \
  X(THREAD, 36, "thread", 1)                                                                       \
  X(TENSOR, 37, "tensor", 1)                                                                       \
  X(CORRELATION, 38, "correlation", 1)                                                             \
  X(DEVICE_WORK, 39, "device_work", 1)                                                             \
  X(DEVICE_FACT, 40, "device_fact", 1)                                                             \
  X(RANGE_NAME, 41, "range_name", 1)                                                               \
  X(GRAPH, 42, "graph", 1)                                                                         \
  X(COPY_HASH, 43, "copy_hash", 1)                                                                 \
  X(ASKED, 44, "asked", 1)                                                                         \
  X(ACCESS, 45, "access", 1)                                                                       \
  X(RECORDING, 46, "recording", 1)                                                                 \
  X(PYTHON_FRAME, 48, "python_frame", 1)

typedef enum event_kind {
  WEIR_EV_NONE = 0,
#define WEIR_EVENT_KIND_ENUM(id, value, name, ext) WEIR_EV_##id = value,
  WEIR_EVENT_KIND_MAP(WEIR_EVENT_KIND_ENUM)
#undef WEIR_EVENT_KIND_ENUM
} event_kind;

/* What a pointer points to. Values are 4 bits. */
typedef enum memory_kind {
  WEIR_MEM_UNKNOWN = 0,
  WEIR_MEM_PAGEABLE = 1, /* host memory that CUDA does not know of */
  WEIR_MEM_PINNED = 2,   /* page-locked host memory, allocated or registered */
  WEIR_MEM_DEVICE = 3,
  WEIR_MEM_MANAGED = 4,
  WEIR_MEM_ARRAY = 5,
  WEIR_MEM_HOST = 6,     /* host, pageable or pinned not known */
  WEIR_MEM_PHYSICAL = 7, /* a device's, without an address (cuMemCreate): a handle; once mapped, it
                            is device memory */
  WEIR_MEM_IMPORTED = 8, /* a device's, made by another process or API: in no sum of the device */
  WEIR_MEM_CODE = 9,     /* what loading code took of a device; in a TAKEN fact only */
  WEIR_MEM_CONTEXT = 10  /* what making a context took of a device; in a TAKEN fact only */
} memory_kind;

/* Detail of a COPY: its direction. Values are CUPTI's copyKind: Nsight-named views need no map. */
typedef enum copy_kind {
  WEIR_COPY_UNKNOWN = 0,
  WEIR_COPY_HTOD = 1,
  WEIR_COPY_DTOH = 2,
  WEIR_COPY_DTOD = 8,
  WEIR_COPY_HTOH = 9,
  WEIR_COPY_PTOP = 10
} copy_kind;

/* Detail of a SYNC: what it waits for. 1-4 are CUPTI's. */
typedef enum sync_type {
  WEIR_SYNC_EVENT = 1,       /* host waits for an event */
  WEIR_SYNC_STREAM_WAIT = 2, /* a stream waits for an event; the host does not */
  WEIR_SYNC_STREAM = 3,      /* host waits for a stream */
  WEIR_SYNC_CONTEXT = 4,     /* host waits for a device or context */
  WEIR_SYNC_QUERY = 5        /* cudaStreamQuery, cudaEventQuery: asks, never waits */
} sync_type;

/* Detail of a rerouted ALLOC or FREE, and `b` of a CACHE fact: why memory did or did not take the
 * way through a cache. One row a reason: identifier, value, name. Append only. */
#define WEIR_REASON_MAP(X)                                                                         \
  /* an allocation missed; given-back memory has one of the last three, too */                     \
  X(FIRST, 1, "first_of_size") /* none of its size was ever there */                               \
  X(IN_USE, 2, "in_use")       /* the program holds all there are */                               \
  X(WAITING, 3, "waiting")     /* one was freed, and its work was not complete */                  \
  X(LIMIT, 4, "limit")         /* given back: more was cached than may be */                       \
  X(DECAY, 5, "decay")         /* given back: idle for too long */                                 \
  X(TRIM, 6, "out_of_memory")  /* given back: the device had no memory left */                     \
  /* a call was left to the driver */                                                              \
  X(CAPTURE, 7, "capture")      /* a stream capture was live */                                    \
  X(ERROR, 8, "error")          /* the context has an error that stays */                          \
  X(NO_CACHE, 9, "no_cache")    /* no context was current, or a cache could not be had */          \
  X(NO_MEMORY, 10, "no_memory") /* none, even after all idle memory was given back */              \
  X(ORDERED, 11, "ordered")     /* freed in stream order */                                        \
  /* a free was left to the driver: others share the memory */                                     \
  X(GRAPH, 12, "graph")         /* a graph may use it */                                           \
  X(IPC, 13, "ipc")             /* another process may use it */                                   \
  X(HANDLE, 14, "handle")       /* exported as a handle of the operating system */                 \
  X(TOKEN, 15, "token")         /* the program has its peer-to-peer tokens */                      \
  X(ATTRIBUTE, 16, "attribute") /* the program has set an attribute of it */                       \
  X(PEER, 19, "peer")           /* work of another context may use it */                           \
  /* a free was kept */                                                                            \
  X(PENDING, 17, "pending") /* with work under way, which it did not wait for */                   \
  /* left to the driver by the user's own rules */                                                 \
  X(RULE, 18, "rule")

typedef enum reroute_reason {
  WEIR_WHY_NONE = 0,
#define WEIR_REASON_ENUM(id, value, name) WEIR_WHY_##id = value,
  WEIR_REASON_MAP(WEIR_REASON_ENUM)
#undef WEIR_REASON_ENUM
} reroute_reason;

/* Detail of a CACHE event, which is no call: api is 0. Its duration is the time that it took. */
typedef enum cache_fact {
  WEIR_CACHE_GIVEN_BACK = 1, /* block a of `bytes` went back to the driver; b: reason; mem */
  WEIR_CACHE_TAINTED = 2,    /* block a (0: all live ones) will not be cached; b: reason */
  WEIR_CACHE_STAGING = 3,    /* a: copy kind; b: driver's time in % of staging's; bytes measured,
                                0: as an earlier program measured */
  WEIR_CACHE_UNWRITTEN = 4,  /* a copy to the host brought back `bytes` that nobody had written,
                                the first of them b bytes into block a; stack: the copy's */
  WEIR_CACHE_RESERVED = 5,   /* after a change: libweir has `bytes` in all from the driver, of the
                               device's memory or of page-locked memory (mem) */
  WEIR_CACHE_POOL = 6,       /* the driver's memory pool a has `bytes` reserved, b of them in use;
                               stream: its release threshold; src_device: the device of which it
                               is the default pool, else NONE: the program made it */
  WEIR_CACHE_POOL_PEAK = 7,  /* follows a POOL: the most it ever had, `bytes` reserved, b in use */
  WEIR_CACHE_POOL_ENDED = 8, /* the program destroyed pool a; another may get its handle */
  WEIR_CACHE_DEVICE = 9,  /* the device has `bytes` in all, b of them free, whoever has the rest */
  WEIR_CACHE_GRAPHS = 10, /* the driver has `bytes` of the device reserved for this process's
                             graphs, b of them in use */
  WEIR_CACHE_TAKEN = 11   /* a call that loaded or unloaded code or made a context (b: taken_by;
                             a: its handle) took `bytes` of the device during the event; negative:
                             it gave them back */
} cache_fact;

/* `b` of a TAKEN fact. */
typedef enum taken_by {
  WEIR_TAKEN_CODE = 1,
  WEIR_TAKEN_CONTEXT = 2,
} taken_by;

typedef enum name_kind {
  WEIR_NAME_KERNEL = 1, /* a: CUfunction, CUkernel or host stub address */
  WEIR_NAME_DEVICE = 2, /* a: ordinal; payload: product name */
  WEIR_NAME_API = 3,    /* a: api number; for functions the reader's table may lack */
  /* names that the program gave through NVTX */
  WEIR_NAME_CATEGORY = 4,   /* a: category; payload: domain, a zero, the name */
  WEIR_NAME_OS_THREAD = 5,  /* a: the kernel's id of the thread */
  WEIR_NAME_CU_DEVICE = 6,  /* a: ordinal */
  WEIR_NAME_STREAM = 7,     /* a: handle */
  WEIR_NAME_EVENT = 8,      /* a: handle */
  WEIR_NAME_CONTEXT = 9,    /* a: handle */
  WEIR_NAME_RESOURCE = 10,  /* a: pointer or handle of something that is not CUDA's */
  WEIR_NAME_HEAP = 11,      /* a: its address; stream: bytes */
  WEIR_NAME_REGION = 12,    /* a: its address */
  WEIR_NAME_DEVICE_BUS = 13 /* a: ordinal; payload: its PCI bus id, as the driver writes it */
} name_kind;

/* Detail of a RANGE, which is NVTX's and no call. Its `mem` is the payload's nvtxPayloadType_t (0:
 * none). Its `bytes` numbers the range: within the thread for a push and its pop, within the
 * process for a start and its end. An end and a pop have no name. `stream` of a push and a pop is
 * the number of the domain in the process. */
typedef enum range_fact {
  WEIR_RANGE_PUSH = 1,
  WEIR_RANGE_POP = 2,
  WEIR_RANGE_START = 3,
  WEIR_RANGE_END = 4,
  WEIR_RANGE_MARK = 5
} range_fact;

/* Payload head of a RANGE_NAME. After it come domain_bytes of the domain's name, then text_bytes of
 * text, UTF-8. */
typedef struct range_name {
  uint32_t category; /* 0: none */
  uint32_t color;    /* ARGB, 0: none */
  uint16_t domain_bytes, text_bytes;
  uint32_t pad;
} range_name;

enum {
  WEIR_EVF_ASYNC = 1,         /* the call is the asynchronous form */
  WEIR_EVF_IMPLICIT_SYNC = 2, /* by the documentation, this call may wait for the device */
  WEIR_EVF_PTDS = 4,          /* per-thread default stream variant */
  WEIR_EVF_RUNTIME = 8,       /* runtime layer (cuda*); clear: driver layer (cu*) */
  WEIR_EVF_CAPTURE = 16,      /* queued into a stream capture, not run */
  WEIR_EVF_BATCH = 32,        /* part of a batched call: not the first of its events */
  WEIR_EVF_CACHED = 64,       /* rerouted: an allocation from a cache, a free into one */
  WEIR_EVF_STAGED = 128,      /* rerouted: a copy through Weir's page-locked memory */
  WEIR_EVF_PAUSED = 128 /* of a QUERY that succeeded: its thread slept or yielded for nearly all of
                           the time since its last one */
};

#define WEIR_DEVICE_NONE 255u
#define WEIR_STACK_NONE  0u
/* The legacy and per-thread default streams as they are stored, whatever variant was called. */
#define WEIR_STREAM_LEGACY     UINT64_C(1)
#define WEIR_STREAM_PER_THREAD UINT64_C(2)

typedef struct trace_event {
  _Atomic uint32_t commit; /* check word, stored last (release); see event_check() */
  uint8_t kind;            /* event_kind */
  uint8_t flags;           /* WEIR_EVF_* */
  uint16_t api;            /* row of core/trace/api.def, 0 for extended records */
  uint64_t start;          /* clock_ticks() at entry */
  uint32_t duration_lo; /* ticks in the call, low 32 of 48 bits; extended: event_payload_check() */
  uint16_t duration_hi; /* high 16 bits */
  uint16_t status;      /* the CUresult or cudaError_t returned; extended records: extra slots */
  uint32_t stack;       /* low 24 bits: id of a STACK record of the thread; top 8: context number */
  uint8_t device;       /* of the destination, allocation, stream or launch */
  uint8_t src_device;   /* of a copy's source */
  union {               /* the detail; which name is valid follows from the kind */
    uint8_t detail;     /* of any kind, for a reader that treats all alike; 0: none */
    uint8_t copy_kind;  /* COPY: enum copy_kind */
    uint8_t sync_type;  /* SYNC: enum sync_type */
    uint8_t reason;     /* ALLOC, FREE: enum reroute_reason */
    uint8_t cache_fact; /* CACHE: enum cache_fact */
    uint8_t range_fact; /* RANGE: enum range_fact */
    uint8_t graph_fact; /* GRAPH: enum graph_fact */
    uint8_t hash_outcome; /* COPY_HASH: enum hash_outcome */
    uint8_t access_fact;  /* ACCESS: enum access_fact */
  };
  uint8_t mem;     /* memory_kind of a (low 4 bits) and of b (high 4 bits) */
  uint64_t a;      /* by kind, see the table above */
  uint64_t b;      /* by kind */
  uint64_t bytes;  /* by kind */
  uint64_t stream; /* handle, default streams normalised (WEIR_STREAM_*) */
} trace_event;

_Static_assert(sizeof(trace_event) == 64, "an event is one cache line");

/* The number of a LAUNCH's access set, 24 bits in the bytes that a launch has no other use for; 0:
 * it is not known what it is handed. The same holds for the bytes of a kernel's graph_node_info,
 * where `copy` is the detail. */
static inline uint32_t event_access_number(uint8_t detail, uint8_t mem, uint8_t src_device)
{
  return detail | (uint32_t)mem << 8 | (uint32_t)(src_device ^ WEIR_DEVICE_NONE) << 16;
}

#define WEIR_ACCESS_MOST UINT32_C(0xffffff)

/* Detail of an ACCESS. */
typedef enum access_fact {
  WEIR_ACCESS_SET = 0,   /* payload: access_word, ascending by word, then by parameter */
  WEIR_ACCESS_VARIES = 1 /* payload: u64 handle of a kernel, which was handed the set before with
                            parameters of other bytes; once for both */
} access_fact;

/* A word that pointed into a block, and where it is in the parameters. */
typedef struct access_word {
  uint64_t word;
  uint16_t parameter, part; /* number of the parameter, of the word in it; where it is not known
                               how many parameters there are, of the word in a buffer alone */
  uint32_t zero;
} access_word;

static inline uint64_t event_duration(const trace_event *e)
{
  return (uint64_t)e->duration_hi << 32 | e->duration_lo;
}

static inline void event_set_duration(trace_event *e, uint64_t ticks)
{
  if (ticks >> 48) ticks = (UINT64_C(1) << 48) - 1;
  e->duration_lo = (uint32_t)ticks;
  e->duration_hi = (uint16_t)(ticks >> 32);
}

typedef uint64_t __attribute__((__may_alias__)) event_word;

/* Returns event_check() of a record given as its eight words; the low half of w[0] does not count.
 * A writer that has the words in registers need not read back what it has just stored in pieces. */
static inline uint32_t event_words_check(const event_word w[8], uint64_t place)
{
  uint64_t x = (w[0] >> 32) * UINT64_C(0x9e3779b97f4a7c15) ^ place * UINT64_C(0xbf58476d1ce4e5b9);
  x ^= w[1] + (w[2] << 7 | w[2] >> 57);
  x ^= w[3] + (w[4] << 13 | w[4] >> 51);
  x ^= w[5] + (w[6] << 29 | w[6] >> 35) + (w[7] << 41 | w[7] >> 23);
  x *= UINT64_C(0xd6e8feb86659fd93);
  return (uint32_t)(x >> 32) | 1u;
}

/* Returns the commit word that a slot must hold: never 0. `place` is generation << 16 | slot
 * index. */
static inline uint32_t event_check(const trace_event *e, uint64_t place)
{
  return event_words_check((const event_word *)(const void *)e, place);
}

/* Returns the check of an extended record's payload, over whole slots. */
static inline uint32_t event_payload_check(const void *payload, uint32_t slots)
{
  typedef uint64_t __attribute__((__may_alias__)) word;
  const word *w = (const word *)payload;
  uint64_t a = slots, b = UINT64_C(0x9fb21c651e98df25), c = ~b, d = b << 1;
  for (const word *end = w + slots * 8u; w < end; w += 4) {
    a = (a ^ w[0]) * UINT64_C(0x9fb21c651e98df25);
    b = (b ^ w[1]) * UINT64_C(0x9e3779b97f4a7c15);
    c = (c ^ w[2]) * UINT64_C(0xd6e8feb86659fd93);
    d = (d ^ w[3]) * UINT64_C(0xbf58476d1ce4e5b9);
  }
  a ^= (b << 17 | b >> 47) ^ (c << 31 | c >> 33) ^ (d << 47 | d >> 17);
  return (uint32_t)((a ^ a >> 32) * UINT64_C(0x9fb21c651e98df25) >> 32);
}

/* Payload head of a MODULE record; of a module that is gone only base is set. After it come
 * build_id_bytes of build-id, then path_bytes of path. */
typedef struct module_info {
  uint64_t base;           /* load bias: file address + base = run-time address */
  uint64_t start, end;     /* run-time address range of its executable segments */
  uint32_t build_id_bytes; /* 0: none */
  uint32_t path_bytes;     /* 0: unknown */
} module_info;

/* Follows the path of a loaded module whose file could be looked at: without a build-id, it shows
 * that the file has changed since. */
typedef struct module_stamp {
  uint64_t bytes;
  int64_t mtime_ns; /* CLOCK_REALTIME of its last change */
} module_stamp;

/* What a device did in an operation of a DEVICE_WORK record. Append only. */
typedef enum device_operation_kind {
  WEIR_DEVICE_COPY = 1,
  WEIR_DEVICE_MEMSET = 2,
  WEIR_DEVICE_KERNEL = 3,
  WEIR_DEVICE_GRAPH = 4,   /* a launch of a whole graph */
  WEIR_DEVICE_OVERHEAD = 5 /* host time that observing the device took */
} device_operation_kind;

/* One operation of a device. Its times are of CLOCK_MONOTONIC; `correlation` is the number of the
 * CORRELATION record that the calling thread writes before the call's event. */
typedef struct device_operation {
  uint64_t start, end;      /* ns; 0, or end < start: not known */
  uint64_t queued;          /* ns, 0: not known */
  uint64_t bytes;           /* of a copy or memset */
  uint64_t graph_node;      /* 0: of no graph */
  uint32_t correlation;     /* 0: none */
  uint32_t context, stream; /* CUPTI's ids */
  uint8_t kind;             /* device_operation_kind */
  uint8_t device;           /* ordinal */
  uint8_t copy;             /* copy_kind, of a copy */
  uint8_t pad[9];
} device_operation;

_Static_assert(sizeof(device_operation) == 64, "an operation is one slot");

/* What became of the hash of a copy: identifier, value, name in traces. Append only. */
#define WEIR_HASH_OUTCOME_MAP(X)                                                                   \
  X(HASHED, 1, "hashed")                                                                           \
  X(PENDING, 2, "pending")          /* another record with its number will give its end */         \
  X(TOO_LONG, 3, "too_long")        /* longer than the user wants hashed */                        \
  X(UNREADABLE, 4, "unreadable")    /* the memory could not be read */                             \
  X(SHAPE, 5, "shape")              /* of three dimensions */                                      \
  X(UNORDERED, 6, "unordered")      /* pending work may write the memory */                        \
  X(UNSEEN, 7, "end_unseen")        /* the program may learn its end in a way not watched */       \
  X(OVERWRITTEN, 8, "overwritten")  /* written again before its end was seen */                    \
  X(GONE, 9, "memory_gone")         /* freed before its end was seen */                            \
  X(TOO_MANY, 10, "too_many")       /* more copies were under way than are kept */                 \
  X(SLOW_MEMORY, 11, "slow_memory") /* write-combined or managed: not worth reading */             \
  X(LEFT, 12, "left")   /* by --hash=auto: some pieces of a large one are as none before it */     \
  X(ALIKE, 13, "alike") /* they are as those of an earlier one; reading all of it costs too much */

typedef enum hash_outcome {
#define WEIR_HASH_OUTCOME_ENUM(id, value, name) WEIR_HASH_##id = value,
  WEIR_HASH_OUTCOME_MAP(WEIR_HASH_OUTCOME_ENUM)
#undef WEIR_HASH_OUTCOME_ENUM
      WEIR_HASH_OUTCOMES /* one more than the last */
} hash_outcome;

/* Payload of a COPY_HASH. A record with `b` comes before the copy's event, in the same thread; one
 * without belongs to the copy that was PENDING with the same number, and may be any thread's. The
 * hash is XXH3's of 128 bits, of the copy's bytes in the host's memory. What follows the addresses
 * older writers do not have: of an upload, what it has in common with the last one of its place to
 * its destination that was looked at, by hashes of 33 to 64 parts of it, or of some bytes of 17 to
 * 32 parts, where it was not hashed. */
typedef struct copy_hash_info {
  uint64_t hash[2];  /* low, high */
  uint64_t bytes;    /* hashed */
  uint64_t ticks;    /* host time spent on hashing */
  uint64_t dst, src; /* as in the event */
  uint64_t before;   /* bytes of the copy that it was compared with; 0: none */
  uint64_t same;     /* bytes in parts that are equal in both */
  uint64_t tail;     /* bytes at its end that are all `last`; 0: not known */
  uint32_t changed;  /* runs of parts that are not equal */
  uint8_t last, pad[3];
} copy_hash_info;

#define COPY_HASH_LEAST offsetof(copy_hash_info, before) /* bytes of an older one */

/* Payload of an ASKED record: calls that ask, of one thread, function and return address, since the
 * record before it that has the same. The first comes right after its event, that of one of them,
 * which has the stack. */
typedef struct asked_info {
  uint64_t from;     /* return address; 0: of all places for which there was no room */
  uint64_t calls;    /* how many */
  uint64_t launches; /* that the thread made between them */
  uint64_t ticks;    /* that the timed ones of them took, */
  uint64_t typical;  /* and one of these: the median of the last ones */
  uint32_t timed;    /* how many were timed */
  uint32_t followed; /* timed ones with a launch between them and the timed one before */
  uint16_t api;      /* core/trace/api.def; 0: of several functions */
  uint8_t pad[6];
} asked_info;

/* Events in the observation of devices: identifier, value, name in traces. Append only. */
#define WEIR_DEVICE_FACT_MAP(X)                                                                    \
  X(OBSERVED, 1, "observed")       /* from here on; text: what is observed, by which library */    \
  X(YIELDED, 2, "yielded")         /* to a client in the program, until observed again */          \
  X(DROPPED, 3, "dropped")         /* `count` operations were lost */                              \
  X(UNTIMED, 4, "untimed")         /* `count` operations had no usable times */                    \
  X(UNAVAILABLE, 5, "unavailable") /* not observed; text: the cause */                             \
  X(ENDED, 6, "ended")             /* the program ends, and all its operations are recorded */     \
  X(INCOMPLETE, 7, "incomplete")   /* the program ends, and its last operations are missing */

typedef enum device_fact {
#define WEIR_DEVICE_FACT_ENUM(id, value, name) WEIR_DEVICE_FACT_##id = value,
  WEIR_DEVICE_FACT_MAP(WEIR_DEVICE_FACT_ENUM)
#undef WEIR_DEVICE_FACT_ENUM
} device_fact;

/* Payload head of a PYTHON_FRAME record, whose number stands in a STACK in place of a return
 * address where the frame is a Python program's. After it come function_bytes of the function's
 * qualified name, then file_bytes of its file's name. Numbers are the process's, from
 * WEIR_PYTHON_FRAME_FIRST on. */
typedef struct python_frame_info {
  uint32_t line; /* the line that ran; 0: unknown */
  uint16_t function_bytes, file_bytes;
} python_frame_info;

#define WEIR_PYTHON_FRAME_FIRST UINT64_C(0x5059000000000000) /* "PY"; no address of a program */

/* What happened to the tensor of a TENSOR record. Append only. */
typedef enum tensor_fact_kind {
  WEIR_TENSOR_MADE = 1,
  WEIR_TENSOR_NAMED = 2,
  WEIR_TENSOR_GONE = 3
} tensor_fact_kind;

enum { WEIR_TENSOR_DIMS = 8, WEIR_TENSOR_TEXT = 256 /* most bytes of a name or a module path */ };

/* Payload head of a TENSOR record. After it come name_bytes of name, then module_bytes of the
 * path of the modules that the thread was in. */
typedef struct tensor_info {
  uint64_t address, bytes; /* of the elements; MADE only */
  int64_t size[WEIR_TENSOR_DIMS];
  uint8_t fact;  /* tensor_fact_kind */
  uint8_t dtype; /* weir_dtype */
  uint8_t dims;
  uint8_t pad;
  uint16_t name_bytes, module_bytes;
} tensor_info;

/* Detail of a GRAPH record: what a call did to an executable graph. It follows the call's event.
 * `b` is the graph that was read, in a MORE record the index of its first node among all of them;
 * `mem` is 1 in the last record of a fact. Append only. */
typedef enum graph_fact {
  WEIR_GRAPH_MADE = 1,    /* instantiated: these are its nodes */
  WEIR_GRAPH_UPDATED = 2, /* its nodes became these, in the same order */
  WEIR_GRAPH_SET = 3, /* one node became the first of these; the others are all that is within it */
  WEIR_GRAPH_ENABLED = 4, /* node b runs again */
  WEIR_GRAPH_DISABLED = 5,
  WEIR_GRAPH_MORE = 6 /* nodes that had no room in the record before */
} graph_fact;

/* A node of a graph, in the fields of an event of its kind. */
typedef struct graph_node_info {
  uint64_t node;   /* its handle in the graph that was read */
  uint64_t parent; /* the node whose child graph or body it is in; 0: none */
  uint64_t a, b;  /* copy: destination, source; memset, allocation, free: address; kernel: handle */
  uint64_t bytes; /* copy, memset, allocation; kernel: threads */
  uint8_t type;   /* CUgraphNodeType */
  uint8_t copy;   /* copy_kind; kernel: see event_access_number() */
  uint8_t mem;    /* as in an event */
  uint8_t device; /* as in an event */
  uint8_t src_device;  /* as in an event */
  uint8_t conditional; /* 1: in the body of a conditional node: it runs any number of times */
  uint8_t pad[2];
} graph_node_info;

#endif

/* listener.h: how the engine reports to the preload library, where both are in one process, what
 * it does.
 *
 * The engine's blocks are what the program allocates; the memory they are cut from is the
 * engine's. So that one trace counts both once, a call of the program's into the engine is one
 * event, as a call of CUDA's is, with nothing below it; around the engine's own calls into the
 * driver the preload library is suspended, so that they are neither events nor served from its
 * caches; and what the engine took from the driver is recorded as what it is.
 *
 * The preload library exports one function without a version, which libweir.so knows as a weak
 * symbol: without that library its address is NULL, and a call costs the engine one branch. */
#ifndef WEIR_TRACE_LISTENER_H
#define WEIR_TRACE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/event.h"

#define WEIR_LISTENER_VERSION 2u

/* The functions of the engine that a trace names. Rows of api.def; gen.py lists them as well. */
enum notice_api {
  WEIR_NOTICE_MALLOC,
  WEIR_NOTICE_FREE,
  WEIR_NOTICE_PINNED_MALLOC,
  WEIR_NOTICE_PINNED_FREE,
  WEIR_NOTICE_APIS
};

typedef struct engine_notice { /* one call, on its thread's stack; the listener's own */
  uint64_t room[12];
  uint64_t start; /* ticks, where the library itself writes them down */
  bool passed_on; /* the preload library's begin() returned true */
} engine_notice;

typedef struct block_notice {
  enum notice_api api;
  unsigned status;  /* a cudaError_t's number: 0, 1 invalid value, 2 out of memory, 999 unknown */
  uint64_t address; /* 0: none */
  uint64_t bytes;   /* as asked for; 0 of a free */
  uint64_t stream;  /* of an allocation: native handle, 0 the legacy default one */
  int device;       /* of an allocation: ordinal; -1: host memory */
  uint64_t freed;   /* of a free: the bytes that were asked for */
} block_notice;

/* What happens to a tensor's storage, made, named, gone: of views there are no such calls. */
typedef struct tensor_notice {
  enum tensor_fact_kind fact;
  uint64_t storage;     /* which: an address that no other storage has meanwhile */
  uint64_t address;     /* of the elements; MADE only, as all that follows but the name */
  uint64_t bytes;       /* of memory */
  memory_kind mem;      /* pageable, pinned or device */
  int device;           /* ordinal; -1: host memory */
  unsigned dtype, dims; /* weir_dtype */
  const int64_t *size;  /* borrowed; dims of them */
  const char *name;     /* borrowed; NAMED; else NULL */
  const char *module;   /* borrowed: where in the modules the thread is, "" nowhere */
} tensor_notice;

typedef struct engine_listener {
  /* Around a call of the program's into the engine. False: nobody listens, end() is not called. */
  bool (*begin)(engine_notice *call);
  void (*end)(engine_notice *call, const block_notice *what);
  /* Around the engine's own calls into the driver, which are made by functions called from the one
   * that has `scope` on its stack. True: resume() must follow. */
  bool (*suspend)(const void *scope);
  void (*resume)(void);
  /* The driver has no memory left: true when caches gave some back, so that a try is worth it. */
  bool (*relieve)(void);
  /* The range is the engine's, of the thread's current context; or about to be so no more. */
  void (*mapped)(uint64_t address, uint64_t bytes, memory_kind mem, int device);
  void (*unmapped)(uint64_t address);
  /* Bytes that the engine has from the driver of a device's memory, or of page-locked memory
   * (`device` is then the one it was locked for), in all, after a change. */
  void (*reserved)(int device, memory_kind mem, uint64_t bytes);
  /* A storage was made, named, or is about to go. */
  void (*tensor)(const tensor_notice *what);
} engine_listener;

/* Returns the preload library's listener, a constant of it. NULL: it is of another version, or
 * must not be called (set-uid programs). */
const engine_listener *weir_note_engine(uint32_t version) __attribute__((visibility("default")));

#endif

/* fake.h: a device that is all script: the backend of the allocator's tests and of its benchmark.
 *
 * Memory is real address space (untouched it costs nothing); what is not mapped cannot be touched,
 * and a page that is mapped in two places is the same memory in both.
 * A stream is a queue of work. It runs as soon as it may: a held stream does not run, and one that
 * waits for an event runs when the event's record has run. fake_release() lets a stream go on; a
 * host sync runs whatever it has to wait for, held or not, and is counted. */
#ifndef WEIR_TESTS_MEMORY_FAKE_H
#define WEIR_TESTS_MEMORY_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/backend/backend.h"

enum { FAKE_STREAMS = 80 };

typedef void (*fake_work)(void *argument);

typedef struct fake_op {
  int kind;        /* WORK, RECORD, WAIT: fake.c */
  fake_work run;   /* WORK */
  void *argument;  /* WORK */
  void *event;     /* RECORD, WAIT */
  uint64_t number; /* which record of the event */
} fake_op;

typedef struct fake_stream {
  struct fake *fake;
  fake_op *ops; /* owned; ops[head..tail) are pending */
  size_t head, tail, room;
  bool made; /* by stream_create */
  bool held, running, capturing;
} fake_stream;

typedef struct fake_range {
  uint64_t address, bytes;
  unsigned flags;
  bool made; /* by host_alloc; else registered */
} fake_range;

typedef struct fake {
  weir_backend backend;
  fake_stream streams[FAKE_STREAMS];
  pthread_mutex_t lock;
  uint64_t capacity;         /* bytes */
  uint64_t used;             /* bytes of pages and segments */
  uint64_t pages, next_page; /* pages created and not destroyed; the last number given */
  uint64_t mapped;           /* bytes mapped; a page that is mapped twice counts twice */
  int memory;                /* sparse file of all pages, -1: no VMM */
  uint64_t reserved;         /* bytes of address space reserved, segments included */
  fake_range *pinned;        /* owned; registered, and made by host_alloc */
  size_t pinned_count, pinned_room;
  uint64_t pinned_bytes;    /* of them */
  uint64_t pinned_capacity; /* most pinned_bytes, 0: no bound */
  /* Called without the lock, before host_register and host_unregister; tests wait there. */
  void (*on_register)(struct fake *f, uint64_t bytes),
      (*on_unregister)(struct fake *f, uint64_t bytes);
  uint64_t registrations; /* host_register calls that succeeded */
  int node;               /* of memory, -1: not known */
  uint64_t space_limit;   /* bytes; a larger reserve finds no address space. 0: no limit */
  uint64_t calls;         /* source and event calls, host_commit excluded */
  uint64_t operations;    /* the same, host_commit included: what fail_at counts */
  uint64_t fail_at;       /* this operation fails (1: the next from a reset), 0: none */
  bool fail_after;        /* and all after it */
  weir_status fail_with;
  uint64_t syncs, waits, records, queries; /* event calls by kind */
  int64_t events;                          /* events created and not destroyed */
  struct fake_event *live_events;          /* those; owned, they go with the device */
  uint64_t offences;                       /* calls that would have broken a capture */
} fake;

/* page_bytes 0: no VMM. */
void fake_init(fake *f, uint64_t capacity, uint64_t page_bytes);
/* Fails the test (false) when memory, pages or events were left, or a capture was broken. */
bool fake_clean(fake *f);
void fake_fini(fake *f);

/* Stream i as the handle the backend takes. */
void *fake_handle(fake *f, int i);
void fake_submit(fake *f, int i, fake_work run, void *argument);
void fake_hold(fake *f, int i);
void fake_release(fake *f, int i);
/* Runs one pending operation of a held stream; false: none could run. */
bool fake_step(fake *f, int i);
/* Makes stream `waiter` wait for what stream `waited` has now, as a program does by an event. */
void fake_depend(fake *f, int waiter, int waited);
/* Whether all of the memory is in one registration, or in one piece of host_alloc. */
bool fake_pinned(fake *f, const void *memory, uint64_t bytes);
/* The nth operation from now fails with `status`; 0: none. */
void fake_fail(fake *f, uint64_t nth, bool and_after, weir_status status);

#endif

/* spool.h: the per-process binary log a program writes and the collector drains.
 *
 * A spool is one file: a fixed part and a directory, then chunks of 16 KiB to 1 MiB. The program
 * maps it MAP_SHARED; each thread owns a ring of chunks and is the only writer of the chunk it
 * fills, so a record costs stores and no lock. A killed program loses nothing it had committed.
 * Blocks are reserved with fallocate before they are touched: a full disk is an error code here,
 * never a SIGBUS, and recording stops with its drops counted. What is not reserved is a hole: a
 * process that records little has 16 KiB of header and one chunk of 16 KiB. No descriptor is kept
 * open (programs close what is not theirs); the path is opened again on the rare growth.
 *
 * Life of a chunk, in its directory entry: FREE -> OWNED (writer) -> FULL (writer handed it over)
 * -> FREE (reader has drained it), or -> BARE, when the reader has given its blocks back to the
 * system too: they must be reserved again before use. The generation goes up at every FREE or BARE
 * -> OWNED. On the way it is TAKEN for a moment, while the entry's other fields are filled; a chunk
 * TAKEN holds nothing. Any thread may take any FREE chunk, those of finished threads included; its
 * own it tries first. The next chunk is taken before the last is handed over: of a thread's chunks
 * all but the newest are complete. A chunk handed over before it was full ends with a record of
 * kind NONE. Where a chunk lies and how long it is never changes once it is placed.
 *
 * The budget. All spools of a folder share one, in the file `budget` next to them: programs add up
 * there what they reserve, headers included, the collector what was given back or belonged to
 * processes that are gone. Chunks are had only while the difference stays below the limit. A header
 * is had even then: a process without one could not count what it dropped.
 *
 * Steering. A few words of the header are the collector's to write, by pwrite, while the program
 * runs: what is recorded, and whether stacks are to be written anew (spool_steering). The program
 * reads them at each call, and writes the first itself where it watches for the begin of a window.
 *
 * Everything a reader gets from a file is hostile until checked: the reader side uses pread only,
 * bounds every length, and reports a damaged chunk and skips it. */
#ifndef WEIR_TRACE_SPOOL_H
#define WEIR_TRACE_SPOOL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/trace/event.h"
#include "core/trace/spool_request.h"

#define WEIR_SPOOL_MAGIC      "WEIRSPL\1"
#define WEIR_SPOOL_VERSION    3u
#define WEIR_SPOOL_DIRECTORY  16384u                   /* where the directory begins */
#define WEIR_SPOOL_HEADER     262144u                  /* bytes before the first chunk */
#define WEIR_SPOOL_BLOCKS     20480u                   /* of these reserved in every spool */
#define WEIR_SPOOL_UNIT       16384u                   /* bytes of the smallest chunk */
#define WEIR_SPOOL_CHUNK      (1u << 20)               /* bytes of the largest */
#define WEIR_SPOOL_SLOTS      (WEIR_SPOOL_CHUNK / 64u) /* slots of the largest */
#define WEIR_SPOOL_MAX_CHUNKS 8192u                    /* directory size */
#define WEIR_SPOOL_MAX_UNITS  (1u << 18)               /* a file ends there at the latest */
#define WEIR_SPOOL_MAX_APIS   4096u                    /* coverage bytes */
#define WEIR_SPOOL_MAX_EXTRA  1024u                    /* raw slots after one head */
#define WEIR_SPOOL_SUFFIX     ".spool"
#define WEIR_SPOOL_UNBORN     ".unfinished" /* suffix while the header is being made */
/* About the folder, not spools: no `*` and no `ls` shows them. */
#define WEIR_SPOOL_BUDGET    ".budget"
#define WEIR_SPOOL_COLLECTOR ".collector" /* locked by the collector; holds the trace's path */
#define WEIR_SPOOL_REPORTED  ".said"      /* a process has reported that the collector is gone */

enum chunk_state {
  WEIR_CHUNK_FREE = 0,
  WEIR_CHUNK_OWNED = 1,
  WEIR_CHUNK_FULL = 2,
  WEIR_CHUNK_TAKEN = 3, /* between FREE and OWNED: the entry is being filled */
  WEIR_CHUNK_BARE = 4   /* FREE, and without blocks */
};
enum { WEIR_CHUNK_STATE_BITS = 3, WEIR_CHUNK_STATE_MASK = 7 };

/* Directory entry of one chunk. */
typedef struct chunk_entry {
  _Atomic uint32_t state; /* generation << WEIR_CHUNK_STATE_BITS | chunk_state */
  uint32_t tid;           /* kernel thread id of the owner */
  uint32_t thread;   /* serial of the owner in this process, from 1; tids are reused, these not */
  uint32_t sequence; /* n-th chunk filled by that thread, from 0: the order to read them in */
  uint32_t place;    /* of its first byte in the file, in units; 0: not placed yet */
  uint32_t units;    /* its size, a power of two up to WEIR_SPOOL_CHUNK; 0: not placed yet */
} chunk_entry;

enum { WEIR_SPOOL_ANNOUNCED = 960 };

/* What a program records. A number that is none of these, of a damaged file, is taken for the
 * first. */
typedef enum spool_recording {
  WEIR_RECORD_ALL = 0,
  WEIR_RECORD_MEMORY = 1 /* what the live set needs; other calls are counted */
} spool_recording;

/* Words that are read at every call. */
typedef struct spool_steering {
  _Atomic uint32_t recording;   /* spool_recording */
  _Atomic uint32_t stacks_anew; /* changes when each thread's stacks are to be written once more */
} spool_steering;

/* The file WEIR_SPOOL_BUDGET: what the programs of a folder share. `taken` and `returned` are
 * bytes; their difference is what the folder's spools take up. */
typedef struct spool_budget {
  _Atomic uint64_t taken;    /* reserved, by all programs ever */
  _Atomic uint64_t returned; /* given back; by the collector */
  /* Forked children without a spool, who may still open one; 0: free. The collector takes those out
   * that are gone. */
  _Atomic uint32_t announced[WEIR_SPOOL_ANNOUNCED];
} spool_budget;

/* How far a function was seen, bits of coverage[api]. */
enum {
  WEIR_COVER_LOOKED_UP = 1, /* a look-up of it was answered with our wrapper */
  WEIR_COVER_PASSED = 2,    /* looked up, known, and not wrapped (not in the hook table) */
  WEIR_COVER_CALLED = 4     /* an outermost call was recorded */
};

#define WEIR_SPOOL_UNSEEN 24u /* different images */

enum { WEIR_UNSEEN_FREE = 0, WEIR_UNSEEN_FILLING = 1, WEIR_UNSEEN_THERE = 2 };

/* An image that ran without Weir, started from this one (core/base/image.h). Written without a
 * lock, by a vfork()ed child too. */
typedef struct unseen_entry {
  _Atomic uint32_t state;
  uint32_t why;           /* unseen_reason */
  _Atomic uint32_t count; /* times it was started; 0: none worked */
  char path[244];         /* cut */
} unseen_entry;

typedef struct spool_header {
  char magic[8];               /* WEIR_SPOOL_MAGIC */
  uint32_t version;            /* WEIR_SPOOL_VERSION */
  uint32_t header_bytes;       /* WEIR_SPOOL_HEADER */
  uint32_t chunk_bytes;        /* WEIR_SPOOL_CHUNK */
  uint32_t api_count;          /* rows of the writer's function table */
  uint64_t api_hash;           /* hash of the writer's function names up to api_count */
  uint32_t pid, ppid;          /* of the writer, in its pid namespace */
  uint64_t start_time;         /* field 22 of /proc/self/stat: distinguishes a reused pid */
  uint64_t pid_namespace;      /* of `pid`: inode of /proc/self/ns/pid, 0: not known */
  uint64_t realtime_ns;        /* CLOCK_REALTIME at opening */
  uint8_t boot_id[16];         /* /proc/sys/kernel/random/boot_id */
  uint32_t clock_kind;         /* clock_source */
  uint32_t mode;               /* 0 observe, 1 strict, 2 relaxed */
  uint64_t clock_hint_hz;      /* clock_read_hint_hz() */
  clock_pair clock_first;      /* at opening */
  _Atomic uint64_t last_ticks; /* a later pair, of slow paths; 0: being written, or none */
  _Atomic uint64_t last_mono_ns;
  _Atomic uint32_t chunks;  /* directory entries in use */
  _Atomic uint32_t closed;  /* 1: the process ended by exit, 2: by exec, or it forked away */
  _Atomic uint32_t threads; /* thread serials given out */
  _Atomic uint32_t forks_begun;
  _Atomic uint32_t forks_done;  /* a child counts itself here once it is announced */
  _Atomic uint32_t deep_ranges; /* NVTX ranges pushed deeper than a thread keeps: not recorded */
  _Atomic uint64_t dropped;     /* events not recorded: limit, disk full, no memory */
  _Atomic uint64_t drop_errno;  /* the first reason; ENOBUFS: the limit */
  _Atomic uint64_t torn;        /* unused by writers; readers count here in their copy */
  _Atomic uint64_t unknown_lookups;  /* cu* look-ups whose name or version we do not know */
  _Atomic uint64_t dropped_extended; /* stacks, modules, names not recorded: tried again later */
  _Atomic uint64_t taken;            /* bytes reserved, ever */
  _Atomic uint64_t returned;         /* of these given back to the system, by the reader */
  spool_steering steering;
  _Atomic uint64_t unrecorded;       /* calls that were seen and counted, and not recorded */
  _Atomic uint64_t unrecorded_spans; /* times that the program began not to record all calls */
  char unknown_name[64];             /* the first of them */
  char exe[1024];                    /* /proc/self/exe, NUL-terminated, cut */
  char cmdline[4096]; /* arguments, each NUL-terminated, cut; cmdline_bytes of them */
  uint32_t cmdline_bytes;
  uint32_t
      rank; /* of a launch of several processes, by its launcher's environment, and 1; 0: none */
  _Atomic uint8_t coverage[WEIR_SPOOL_MAX_APIS]; /* WEIR_COVER_* by api number */
  unseen_entry unseen[WEIR_SPOOL_UNSEEN];
  _Atomic uint32_t unseen_more; /* starts of images there was no entry left for */
  _Atomic uint64_t nested;      /* calls made within another by a signal handler or a callback: no
                                   events */
  uint8_t key[SPOOL_KEY];       /* of this spool alone (spool_request.h); zeros: it has none */
  _Atomic uint64_t load_known;  /* 1: the two below are of the process's end */
  _Atomic uint64_t preempted;   /* times the system took a processor from a thread that ran */
  _Atomic uint64_t starved_ns;  /* that threads which were there at the end had waited for one */
} spool_header;

_Static_assert(sizeof(spool_header) <= WEIR_SPOOL_DIRECTORY &&
                   WEIR_SPOOL_DIRECTORY + WEIR_SPOOL_MAX_CHUNKS * sizeof(chunk_entry) <=
                       WEIR_SPOOL_HEADER,
               "header and directory fit their room");

/* Why events were dropped: drop_errno in words. */
static inline const char *spool_drop_reason(int drop_errno)
{
  switch (drop_errno) {
  case 0:
    return "unknown reason";
  case ENOBUFS:
    return "the spools reached their limit, WEIR_SPOOL_LIMIT";
  case ECANCELED:
    return "threads were cancelled in a call";
  case EINTR:
    return "calls were left without a return";
  default:
    return strerror(drop_errno);
  }
}

/* The directory of a mapped spool. */
static inline chunk_entry *spool_directory(spool_header *h)
{
  return (chunk_entry *)(void *)((char *)h + WEIR_SPOOL_DIRECTORY);
}

/* ---- writer: runs inside the traced program; libc only, no malloc ---------------------------- */

/* One thread's pen. Lives in TLS or in mapped memory; zero-initialised means "no chunk yet". */
typedef struct spool_writer {
  trace_event *next; /* slot to fill */
  trace_event *end;  /* past the last slot of the chunk; next == end: roll */
  uint64_t place;    /* generation << 16 | index of `next` */
  uint32_t chunk;    /* its directory index */
  uint32_t thread;   /* serial, 0: none yet */
  uint32_t sequence; /* chunks begun */
  uint32_t epoch;    /* of the process's spool; a fork makes it stale */
  uint32_t ring[64]; /* directory indices this thread has mapped, to be reused when FREE */
  uint32_t ring_size;
  uint32_t ring_at;      /* the entry to give up next when the ring is full */
  uint32_t starved;      /* records refused since a chunk was last to be had; 0: not starved */
  uint32_t grade;        /* size it fills chunks of: units, as a power of two */
  uint64_t begun;        /* CLOCK_MONOTONIC ns of its chunk's beginning, 0: none so far */
  trace_event *held_end; /* what `end` is without the record that is held (held.h); NULL: none is */
  uint32_t held_turn;    /* which of its two slots has it */
} spool_writer;

typedef struct spool_options {
  const char *directory; /* absolute; borrowed during the call */
  uint64_t limit_bytes;  /* of all spools in the folder together, 0: 1 GiB */
  uint64_t keep_bytes;   /* a recorder keeps so many of this spool, 0: none does; see below */
  uint32_t mode;
  uint32_t api_count;
  uint64_t api_hash;
  spool_recording recording; /* what the program begins with */
  bool alone;   /* nobody else writes in the folder: no budget is shared, no file of it made */
  bool redact;  /* of the command line only the first word is kept */
  bool chunk;   /* an event follows: the first chunk is made with the header, where there is room */
  uint32_t pid; /* whose it is, 0: the caller's: a vfork()ed child opens its parent's */
} spool_options;

/* With keep_bytes the spool takes up as much and two chunks more for each thread that writes, at
 * the most, whatever others in the folder do; limit_bytes counts too where it is given. Chunks are
 * small then against what is kept. */

/* Creates PID-N.spool in the directory, mode 0600, O_EXCL|O_NOFOLLOW, header reserved and mapped.
 * The name appears when the header is whole. One spool a process: a second call (after fork)
 * forgets the first and unmaps it, so a writer that was used with it must have been zeroed or never
 * used again. Errors: EINVAL, ENOSPC, EIO, ENOENT. */
weir_status spool_open(const spool_options *options);

/* The mapped header of this process's spool, NULL while there is none. */
spool_header *spool_current(void);

/* The words that steer this process, never NULL: its spool's; while there is none, some of its own.
 * A forked child's begin as its parent's were. */
extern _Atomic(spool_steering *) spool_steering_words;

static inline spool_steering *spool_steering_now(void)
{
  return atomic_load_explicit(&spool_steering_words, memory_order_acquire);
}

/* Goes up with every spool_open() and spool_after_fork(); what was made under another
 * epoch (a writer, a recorded module map) is stale. Never 0 once a spool was opened. */
extern _Atomic uint32_t spool_epoch;

static inline uint32_t spool_fork_epoch(void)
{
  return atomic_load_explicit(&spool_epoch, memory_order_relaxed);
}

/* When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0: it is gone. */
uint64_t spool_start_time(uint32_t pid);

/* Marks the spool closed and takes a last clock pair. The mapping stays, for late threads. */
void spool_close(void);

/* In a forked child, before anything else: forgets the parent's spool. Private memory takes the
 * place of its mappings, so that a stale writer still in use reaches nobody's records; the next
 * spool_open() unmaps it. */
void spool_after_fork(void);

/* In a forked child, after spool_after_fork(): it may open a spool later on, so whoever
 * collects the parent's is to wait for it. Writes its pid where the parent's spools are. False:
 * there is no room. */
bool spool_announce(void);

/* Hands the thread's chunk over (thread exit). The writer is usable again afterwards. */
void spool_writer_release(spool_writer *w);

/* Slow path of spool_writer_slots(): rolls to a chunk with `slots` free. NULL: dropped, counted as
 * one event. Keeps errno. */
trace_event *spool_writer_roll(spool_writer *w, uint32_t slots);

/* The next slot with room for `slots` (head and payload) in one chunk, or NULL. Uncommitted. */
static inline trace_event *spool_writer_slots(spool_writer *w, uint32_t slots)
{
  if (__builtin_expect((size_t)(w->end - w->next) < slots, 0)) return spool_writer_roll(w, slots);
  return w->next;
}

/* Commits the head at w->next, `slots` in all. Payload slots of an extended record are raw. */
static inline void spool_writer_commit(spool_writer *w, uint32_t slots)
{
  trace_event *e = w->next;
  atomic_store_explicit(&e->commit, event_check(e, w->place), memory_order_release);
  w->next += slots;
  w->place += slots;
}

/* Writes an extended record whole: head filled by the caller except kind, status, duration, bytes
 * and commit; `bytes` becomes the payload's size (for a STACK in addresses); the payload is copied.
 * Returns false when it was dropped, which counts in dropped_extended. Keeps errno. */
bool spool_writer_extended(spool_writer *w, event_kind kind, const trace_event *head,
                           const void *payload, size_t payload_bytes);

/* Counts events that could not be recorded, with the reason. Before a spool is open the count is
 * kept and goes into the first one. */
void spool_drop(uint64_t events, int errno_value);

/* ---- reader: collector, import, report; never in the traced program -------------------------- */

typedef struct spool_reader spool_reader;

/* What drain() calls. Any may be NULL. `thread` is the serial, `tid` the kernel's. Pointers are
 * borrowed for the call. A non-OK return stops the drain and is returned from it; the record it was
 * returned for is delivered again by the next drain. */
typedef struct spool_visitor {
  void *context;
  weir_status (*event)(void *context, uint32_t thread, uint32_t tid, const trace_event *e);
  weir_status (*extended)(void *context, uint32_t thread, uint32_t tid, const trace_event *head,
                          const void *payload, size_t payload_bytes);
} spool_visitor;

typedef struct spool_damage {
  uint64_t chunks; /* chunks skipped, or with a hole, because their contents made no sense */
  uint64_t torn;   /* slots begun and never committed at the end of a dead thread's chunk; at most
                      one a chunk; in a recycled chunk an old payload there may count as one */
  uint64_t bytes_cut; /* bytes the file should have had and has not */
} spool_damage;

/* Opens a spool for reading (*out new). `live`: it is still being written and drained chunks are to
 * be handed back (opened read-write); one live reader a spool. Without it the file is left as it
 * is. Errors: ENOENT, EIO, ECORRUPT, EVERSION, ENOMEM. */
weir_status spool_reader_open(spool_reader **out, const char *path, bool live);
void spool_reader_close(spool_reader *r);

/* Delivers everything committed and not delivered yet; within a thread in order, between threads in
 * none. `final`: the writer is gone, take partial chunks to their end and count torn slots. */
weir_status spool_drain(spool_reader *r, const spool_visitor *v, bool final);

/* The same, threads side by side for a reader that wants time to ascend: in turns of at most
 * WEIR_SPOOL_TURN slots, each of the thread that is behind all others. Before each turn
 * `until` is called with the visitor's context: what began before `ticks` and was committed when
 * the drain began has been delivered. A later call may have a smaller number, where a thread wrote
 * a record after one that began later (a fact within a call, before the call). */
#define WEIR_SPOOL_TURN 2048u
weir_status spool_drain_by_time(spool_reader *r, const spool_visitor *v,
                                weir_status (*until)(void *context, uint64_t ticks), bool final);

/* For a reader whose deliveries are not safe yet when drain() returns: from now on drained chunks
 * stay until spool_hand_back() is called, after they are. Somebody who kills the reader in
 * between loses nothing: the next one finds the chunks. */
void spool_reader_hold(spool_reader *r);
void spool_hand_back(spool_reader *r);

/* Returns the position of each thread whose position has changed since the last call: sequence of
 * a chunk << 32 | its first slot that was not delivered. Chunks before it were delivered whole. */
weir_status spool_reader_positions(spool_reader *r,
                                   weir_status (*tell)(void *context, uint32_t thread,
                                                       uint64_t position),
                                   void *context);

/* Before the first drain: what comes before this position of a thread is not delivered. */
weir_status spool_reader_resume(spool_reader *r, uint32_t thread, uint64_t position);

/* Sets what the program records from its next calls on; asks it to write the stack of each call once
 * more, under a new number, before it uses it. Nothing happens by a reader that is not live. Errors:
 * EIO. */
weir_status spool_reader_steer(spool_reader *r, spool_recording recording);
weir_status spool_reader_renew_stacks(spool_reader *r);

/* The writer is gone and the file is about to be removed: what it still has of the budget. That
 * goes back by spool_reader_repay(), for all spools of a folder that ended in one call. */
uint64_t spool_reader_owes(spool_reader *r);
void spool_reader_repay(spool_reader *r, uint64_t bytes);

/* A fresh copy of the header (borrowed from r, until the next drain or close). Strings are
 * NUL-terminated, counts are clamped to their arrays. Coverage and unseen images are as they were
 * at the opening or at the last spool_reader_coverage(). */
const spool_header *spool_reader_header(spool_reader *r);
const spool_header *spool_reader_coverage(spool_reader *r);

/* CLOCK_MONOTONIC ns of the spool's opening, by the reader's clock where the two can be compared: a
 * program's own may be faked, or of another time namespace. The same at every call. */
uint64_t spool_reader_opening(spool_reader *r);

/* Ticks to that clock's ns for this spool, by the best pairs known (own boot: taken now). */
clock_map spool_reader_clock(spool_reader *r);

/* Records not delivered yet, at the most, as of the last drain. */
uint64_t spool_reader_left(const spool_reader *r);
spool_damage spool_reader_damage(const spool_reader *r);

/* Bytes of the chunks that were handed over and are not delivered whole, as of the last drain's
 * beginning; while it goes on, less those that it has delivered since. */
uint64_t spool_reader_kept(const spool_reader *r);

/* Bytes of the chunks that the next spool_hand_back() hands back. */
uint64_t spool_reader_due(const spool_reader *r);

/* Whether a chunk was handed back to the program before now, so that records are gone. */
bool spool_reader_reused(spool_reader *r);

#endif

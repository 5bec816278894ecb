/* importer.h: what the importer's files share. import.c drives, take.c turns records into rows,
 * finish.c completes the trace; all of them stand on importer.c, and none calls up.
 *
 * Identity. A process, a thread, a stack, a frame and a module get their row ids here, when a
 * record first shows them; the ids are part of the in-memory state, which a failed transaction
 * doesn't touch, since its rows stay queued (batch.h).
 *
 * Time. Every row holds ns since `origin`, the opening of the earliest spool that was added before
 * the first poll. A later spool that opened earlier makes negative times; finish() then shifts all
 * rows. Spools of another boot are placed by their wall clock. */
#ifndef WEIR_REPORTS_IMPORTER_H
#define WEIR_REPORTS_IMPORTER_H

#include "core/base/clock.h"
#include "core/base/map.h"
#include "core/trace/spool.h"
#include "reports/import/batch.h"
#include "reports/import/import.h"
#include "reports/import/lifetime.h"
#include "reports/import/template.h"
#include "reports/import/trace_file.h"
#include "reports/base/util.h"

typedef struct wr_hash { /* a COPY_HASH record */
  uint64_t start;        /* ticks: of the event that comes next; 0: of none */
  uint64_t number;
  unsigned outcome; /* hash_outcome */
  unsigned uniform;
  int64_t time, range; /* when it was made, ns; row of the thread's innermost range then, 0 none */
  copy_hash_info info;
} wr_hash;

typedef struct wr_thread {
  struct wr_open_range *open; /* ranges pushed and not popped, the innermost last (range.c) */
  size_t open_count, open_capacity;
  int64_t id;            /* row of thread */
  int64_t last_end;      /* ns, of its last event */
  int64_t last_call;     /* row of its last event that began a call */
  uint64_t last_start;   /* ticks, of that one */
  uint64_t correlated;   /* ticks: start of the event that `correlation` is of */
  uint32_t *correlation; /* numbers of device work of its next event (device_work.c) */
  size_t correlations, correlation_capacity;
  wr_hash hash;                      /* of its next event (copy_hash.c) */
  int64_t graph_change, graph_nodes; /* row that further nodes belong to, 0: none; those it has */
} wr_thread;

enum { WR_PIECES = 256 };

typedef struct wr_piece { /* of a timeline */
  int64_t from;           /* ticks since the base; holds for later ones */
  double ns;              /* there, since the base */
  double slope;           /* ns a tick, from the base on */
} wr_piece;

typedef struct wr_timeline { /* timeline.c */
  clock_pair base;           /* the clock at the spool's opening */
  int64_t asked;             /* latest tick since the base that has a place */
  size_t count;
  wr_piece piece[WR_PIECES]; /* ascending */
} wr_timeline;

/* A row of `resume` that waits for the flush; no value: the row goes. */
typedef struct wr_resume_row {
  int what;
  uint64_t key, value;
  bool gone;
} wr_resume_row;

/* Which event a number of device work is of. */
typedef struct wr_device_call {
  uint32_t number; /* 0: none */
  int64_t event;
} wr_device_call;

typedef struct wr_spool {
  trace_importer *im;
  spool_reader *reader;
  char *path;
  int64_t process;                  /* row of process, from 1 */
  bool live;                        /* its process may still write: it is on this machine */
  uint64_t opening;                 /* spool_reader_opening(), of the spool's boot */
  int64_t boot_shift;               /* ns to add to bring its boot's clock onto the first spool's */
  wr_timeline line;                 /* its clock */
  int64_t asked_kept, asked_ns;     /* of the line: the tick last kept in the trace, and its ns */
  int64_t frames_from, stacks_from; /* rows up to these are of modules since unloaded */
  int64_t hashing;                  /* row of the stack that is read again; its hash so far */
  uint64_t hash;
  hash_map threads; /* serial -> index into thread */
  wr_thread *thread;
  size_t thread_count, thread_capacity;
  hash_map local_stacks; /* thread serial << 32 | id -> row of stack */
  hash_map stacks;       /* hash of the frames -> row of stack */
  hash_map frames;       /* hash of epoch and address -> row of frame */
  hash_map modules;      /* those loaded now, by base: row of module; identity */
  hash_map range_names;  /* thread serial << 32 | number -> row of range_name */
  hash_map spans;        /* ranges started or ended, by number: row, or ~ the time of its end */
  wr_device_call *calls; /* the last numbers, each at its place; NULL: none so far */
  uint64_t unloads;      /* modules gone so far: addresses may mean something else since */
  wr_resume_row *resume; /* since the last flush: where the spool ends before the next, nobody's */
  size_t resume_count, resume_capacity;
  uint64_t events;
  uint64_t seen_losses; /* sum of the loss counts last written */
  uint64_t seen_unseen; /* starts of programs without Weir last written */
  importer_end_reason reason;
  int detail;
  bool started;       /* its process row is written */
  bool drained;       /* final drain done */
  bool kept;          /* a recorder kept the last records alone (window.h), */
  bool begun;         /* and what came before is taken, */
  bool failed_window; /* or could not be */
} wr_spool;

struct trace_importer {
  wr_db db;
  wr_trace_file file;
  char *command;
  importer_options options;
  void (*read_too)(void *context); /* before chunks are handed back; NULL: nobody */
  void *read_too_context;
  wr_batch batch;
  wr_templates templates;
  wr_memory_log memory; /* events taken by this importer */
  wr_spool **spools;    /* by number; NULL: its end is written */
  size_t spool_count, spool_capacity;
  size_t spools_ended; /* so many from the first on are NULL: a program may start thousands */
  bool origin_known;
  bool clock_known;         /* how long a read of it takes */
  uint64_t origin;          /* CLOCK_MONOTONIC ns of the first spool's boot */
  uint64_t origin_realtime; /* CLOCK_REALTIME ns at `origin` */
  uint8_t boot_id[16];      /* of the first spool */
  bool boot_kept;           /* and it is in the trace */
  bool merging;             /* the trace was there */
  bool unfinished;          /* and what finish() had done to it is taken back */
  int64_t processes, threads, stacks, frames, modules, strings, events; /* last row ids given out */
  int64_t graph_changes, ranges, range_names, domains;                  /* the same */
  hash_map range_texts;  /* hash of what a range_name holds -> its row; of a domain -> its number */
  int64_t least, latest; /* times of the rows so far, ns; 0 at first */
  int64_t duration_written; /* ns, last written to meta */
  uint64_t written;         /* events committed */
  hash_map odd_apis;        /* function numbers our table lacks */
  hash_map texts;           /* hash of a text -> its row of StringIds */
  uint32_t api_count;       /* of functions, of the spool added last */
  uint64_t api_hash;        /* of the first so many of our table */
  bool finished;
  bool reached;         /* a call succeeded that needs a device */
  uint16_t refused_api; /* the first call that was answered that there is no device, 0: none */
  uint16_t refused;     /* what it returned */
  char *no_driver;      /* the caller's, or NULL */
  struct {
    char *reason;      /* owned; NULL: not known */
    int64_t from, end; /* ns: all that began after `from` is here; the end */
    uint64_t end_mono; /* the same, CLOCK_MONOTONIC */
    bool has_end, any; /* the end is known; a spool is of a recorder */
  } window;
};

static inline weir_status wr_out_of_memory(const trace_importer *im)
{
  return weir_fail(WEIR_ENOMEM, "importing into %s: out of host memory", im->file.path);
}

/* What is known of the clock at a poll; before the first use of what follows. */
void wr_timeline_poll(wr_timeline *line, const clock_map *now);

/* ns since the trace's origin of a tick value of spool `s`: of a later one never less, whenever
 * they are asked for. */
int64_t wr_time(wr_spool *s, uint64_t ticks);

/* Ticks as ns; 0 where that is no length a program can have had. */
double wr_length(const wr_spool *s, uint64_t ticks);
int64_t wr_time_of_mono(const wr_spool *s, uint64_t mono_ns);

/* ns since the trace's origin of an opening in another boot, by the wall clock; 0 where that gives
 * what cannot be. */
int64_t wr_between_boots(const trace_importer *im, uint64_t realtime_ns);

/* ns since the line's base of a tick since it. */
double wr_timeline_at(const wr_timeline *line, int64_t ticks);

/* Keys of wr_spool.frames and of wr_spool.stacks, the latter to be mixed with the addresses. */
static inline uint64_t wr_frame_key(const wr_spool *s, uint64_t address)
{
  return hash_mix(hash_mix(1, s->unloads), address);
}

static inline uint64_t wr_stack_seed(const wr_spool *s)
{
  return hash_mix(2, s->unloads);
}

/* Widens the trace's span. */
static inline void wr_span(trace_importer *im, int64_t start, int64_t end)
{
  if (start < im->least) im->least = start;
  if (end > im->latest) im->latest = end;
}

/* The visitor that turns records into rows; its context is a wr_spool. */
extern const spool_visitor wr_take_visitor;

/* Ranges (range.c): records of them; before a flush, those that are open and not yet in the trace;
 * when a trace and a spool are gone on with, what they have of them. */
weir_status wr_take_range(wr_spool *s, uint32_t serial, wr_thread *t, const trace_event *e);
weir_status wr_take_range_name(wr_spool *s, uint32_t serial, const trace_event *head,
                               const void *payload, size_t bytes);
weir_status wr_take_category(wr_spool *s, const trace_event *head, const void *payload,
                             size_t bytes);
weir_status wr_range_keep_open(trace_importer *im);
weir_status wr_range_resume_names(trace_importer *im);
weir_status wr_range_resume(wr_spool *s);

/* The thread's innermost range, 0: none. */
int64_t wr_range_innermost(const wr_thread *t);

/* Device work (device_work.c): the records of it; and the event `id` that began at tick `start`
 * has been taken. */
weir_status wr_take_correlation(wr_spool *s, wr_thread *t, const trace_event *head);
weir_status wr_take_device_work(wr_spool *s, const void *payload, size_t bytes);
weir_status wr_take_device_fact(wr_spool *s, const trace_event *head, const void *payload,
                                size_t bytes);
void wr_correlate(wr_spool *s, wr_thread *t, uint64_t start, int64_t id);

/* Counts of calls that ask (asked.c). */
weir_status wr_take_asked(wr_spool *s, wr_thread *t, const trace_event *head, const void *payload,
                          size_t bytes);

/* The words of an access set (access.c). */
weir_status wr_take_access(wr_spool *s, const trace_event *head, const void *payload, size_t bytes);

/* Hashes of copies (copy_hash.c): a record of one; the event `id` has been taken; and which copy
 * each is of, which needs the whole trace. */
weir_status wr_take_copy_hash(wr_spool *s, wr_thread *t, const trace_event *head,
                              const void *payload, size_t bytes);
void wr_copy_hashed(wr_spool *s, wr_thread *t, const trace_event *e, int64_t id);
weir_status wr_finish_copy_hashes(const wr_db *db);

/* Which event each operation is of; needs the whole trace. */
weir_status wr_finish_device_work(const wr_db *db);

/* Writes what waits, then calls the progress callback. */
weir_status wr_importer_flush(trace_importer *im);

/* Everything that needs the whole trace: shifted times, modules of frames, lifetimes. */
weir_status wr_finish(trace_importer *im);

#endif

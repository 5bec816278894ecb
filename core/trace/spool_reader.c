/* spool_reader.c: everything committed in a spool, delivered once, whatever the file holds.
 *
 * The file is hostile: it may be cut or damaged anywhere, and change while it is read. So it is
 * never mapped (a cut file would be SIGBUS): every look at it is a pread into memory of ours, and
 * what was read is checked there, after which nobody can change it. A slot counts once its commit
 * word fits its contents, its place and the chunk's generation. A chunk is handed back by writing
 * the one byte of its state that differs between FULL and FREE, which no system can tear.
 *
 * Giving back. What the program needed once, while we were late, it need not keep: of its FREE
 * chunks KEEP_BYTES stay mapped, and the blocks of others are punched out of the file, which takes
 * them from the program's memory too, before their state is BARE.
 *
 * Where a chunk lies is in its entry. Places are taken once, the first time they are seen, and
 * no two chunks may overlap: so the file is read once, however its directory lies.
 *
 * Order. Chunks of a thread are delivered by sequence. The directory is copied while it changes, so
 * a copy may hold sequence n + 1 and miss n. A second copy, begun after the first was complete,
 * has n: it was there before n + 1. What is still missing then was drained by somebody before, or
 * is lost. The second may miss another that came meanwhile: there is a third then, until a copy
 * shows no gap that is new. Of a thread's chunks in one copy all but the last were complete when
 * the copy was made.
 *
 * Cost. A poll is one read of the directory in use and one small read a chunk in use; reads grow
 * while they find records. An idle thread costs one pread of 256 bytes. */
#include "core/trace/held.h"
#include "core/trace/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/map.h"

#define MS         INT64_C(1000000) /* ns */
#define SECOND     INT64_C(1000000000)
#define KEEP_BYTES (UINT64_C(8) << 20) /* FREE chunks' that stay the program's */

enum {
  SLOT = sizeof(trace_event),
  STEP_IDLE = 4,      /* slots read where nothing may be new */
  STEP_MOST = 4096,   /* slots read where much is; more than 1 + WEIR_SPOOL_MAX_EXTRA */
  STEP_TURN = 1000,   /* slots a thread has delivered before others with older records */
  LOOKS_AHEAD = 64,   /* records that are passed over before the next with a time */
  MOST_COPIES = 1000, /* of the directory a drain: who rolls on purpose does not hold it up */
  STATE_BITS = WEIR_CHUNK_STATE_BITS,
  STATE_MASK = WEIR_CHUNK_STATE_MASK,
  UNIT_SLOTS = WEIR_SPOOL_UNIT / 64
};

_Static_assert(STEP_MOST > WEIR_SPOOL_MAX_EXTRA, "an extended record fits the buffer");
_Static_assert(STEP_TURN + 1 + WEIR_SPOOL_MAX_EXTRA <= WEIR_SPOOL_TURN,
               "a turn that ends with the longest record is no longer than promised");

/* What is known of one chunk of the file. */
typedef struct chunk {
  uint32_t state; /* as copied last: generation and chunk_state */
  uint32_t tid, thread, sequence;
  uint32_t place, units; /* in units; 0: not placed as far as we know */
  uint32_t next;         /* slot to deliver next */
  bool known;            /* the fields above belong to the state's generation */
  bool done;             /* this generation is delivered whole */
  bool damaged;          /* and counted as such */
  bool misplaced;        /* its place makes no sense: counted, never read */
  bool behind_gap;       /* an earlier copy held it and not the one before it */
} chunk;

struct spool_reader {
  int fd;
  bool live;      /* chunks are handed back */
  bool holding;   /* but not by drain() */
  char path[256]; /* for messages, cut */
  spool_damage damage;
  hash_map expected;   /* thread serial -> sequence to come */
  hash_map resumed;    /* thread serial -> position that was given */
  hash_map told;       /* thread serial -> position last returned */
  trace_event *buffer; /* STEP_MOST slots, 64-byte aligned; during a drain */
  chunk *chunks;       /* by index */
  uint32_t *order;     /* chunks to deliver, by thread and sequence */
  uint32_t used, room; /* of chunks: entries known, and room for; order has as much */
  uint32_t order_count;
  uint64_t start; /* ticks: of the last event that was delivered */
  uint8_t *taken; /* bit i: unit i of the file belongs to a chunk */
  size_t taken_bytes;
  uint64_t whole;      /* bytes the file must have for what the directory lists */
  spool_header header; /* the copy handed out */
  uint64_t opening;    /* spool_reader_opening(), once known */
  bool opening_known;
  char full_path[]; /* whole */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Up to `bytes` at `offset`; what the file does not have is not read. Returns bytes read. */
static size_t read_at(spool_reader *r, void *out, size_t bytes, uint64_t offset)
{
  size_t done = 0;
  while (done < bytes) {
    ssize_t n = pread(r->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += (size_t)n;
  }
  return done;
}

static uint32_t slots_of(const spool_reader *r, uint32_t index)
{
  return r->chunks[index].units * UNIT_SLOTS;
}

static uint64_t slot_offset(const spool_reader *r, uint32_t index, uint32_t slot)
{
  return (uint64_t)r->chunks[index].place * WEIR_SPOOL_UNIT + (uint64_t)slot * SLOT;
}

static uint64_t entry_offset(uint32_t index)
{
  return WEIR_SPOOL_DIRECTORY + (uint64_t)index * sizeof(chunk_entry);
}

/* Slots read into the buffer, at most `count`. */
static uint32_t read_slots(spool_reader *r, uint32_t index, uint32_t slot, uint32_t count)
{
  if (count > slots_of(r, index) - slot) count = slots_of(r, index) - slot;
  if (count > STEP_MOST) count = STEP_MOST;
  return (uint32_t)(read_at(r, r->buffer, (size_t)count * SLOT, slot_offset(r, index, slot)) /
                    SLOT);
}

static uint32_t read_state(spool_reader *r, uint32_t index)
{
  uint32_t state = 0;
  if (read_at(r, &state, sizeof state, entry_offset(index)) < sizeof state) return 0;
  return state;
}

/* ---- opening --------------------------------------------------------------------------------- */

static weir_status check_header(spool_reader *r)
{
  spool_header *h = &r->header;
  struct stat file;
  if (fstat(r->fd, &file)) return weir_fail_errno(WEIR_EIO, errno, "cannot examine %s", r->path);
  if (!S_ISREG(file.st_mode)) return weir_fail(WEIR_ECORRUPT, "%s is not a file", r->path);
  size_t got = read_at(r, h, sizeof *h, 0);
  if (got < sizeof h->magic || memcmp(h->magic, WEIR_SPOOL_MAGIC, sizeof h->magic) != 0)
    return weir_fail(WEIR_ECORRUPT, "%s is not a spool", r->path);
  if (got < sizeof *h)
    return weir_fail(WEIR_ECORRUPT, "%s is cut short in its header: %lld bytes", r->path,
                     (long long)file.st_size);
  if (h->version != WEIR_SPOOL_VERSION)
    return weir_fail(WEIR_EVERSION, "%s has spool version %u; this Weir reads version %u", r->path,
                     h->version, WEIR_SPOOL_VERSION);
  if (h->header_bytes != WEIR_SPOOL_HEADER || h->chunk_bytes != WEIR_SPOOL_CHUNK)
    return weir_fail(WEIR_ECORRUPT, "%s has a damaged header: %u header bytes, %u chunk bytes",
                     r->path, h->header_bytes, h->chunk_bytes);
  return WEIR_OK;
}

weir_status spool_reader_open(spool_reader **out, const char *path, bool live)
{
  int fd = open(path, (live ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno, "cannot open %s", path);
  size_t path_bytes = strlen(path) + 1;
  spool_reader *r = calloc(1, sizeof *r + path_bytes);
  if (!r) {
    close(fd);
    return weir_fail(WEIR_ENOMEM, "no memory to read %s", path);
  }
  r->fd = fd;
  r->live = live;
  memcpy(r->full_path, path, path_bytes);
  (void)snprintf(r->path, sizeof r->path, "%s", path);
  weir_status st = check_header(r);
  if (st) {
    spool_reader_close(r);
    return st;
  }
  *out = r;
  return WEIR_OK;
}

void spool_reader_close(spool_reader *r)
{
  if (!r) return;
  close(r->fd);
  hash_map_free(&r->expected);
  hash_map_free(&r->resumed);
  hash_map_free(&r->told);
  free(r->chunks);
  free(r->order);
  free(r->taken);
  free(r);
}

const spool_header *spool_reader_coverage(spool_reader *r)
{
  const size_t at = offsetof(spool_header, coverage);
  read_at(r, (char *)&r->header + at, sizeof r->header - at, at);
  return spool_reader_header(r);
}

/* What is in front of the program's name changes, the rest does not but for what is after
 * its arguments. */
const spool_header *spool_reader_header(spool_reader *r)
{
  spool_header *h = &r->header;
  read_at(r, h, offsetof(spool_header, exe), 0); /* a cut file leaves the older copy's end */
  h->exe[sizeof h->exe - 1] = 0;
  for (unsigned i = 0; i < WEIR_SPOOL_UNSEEN; i++)
    h->unseen[i].path[sizeof h->unseen[i].path - 1] = 0;
  h->cmdline[sizeof h->cmdline - 1] = 0;
  h->unknown_name[sizeof h->unknown_name - 1] = 0;
  if (h->cmdline_bytes >= sizeof h->cmdline) h->cmdline_bytes = sizeof h->cmdline - 1;
  h->cmdline[h->cmdline_bytes] = 0;
  if (h->api_count > WEIR_SPOOL_MAX_APIS) h->api_count = WEIR_SPOOL_MAX_APIS;
  if (atomic_load(&h->chunks) > WEIR_SPOOL_MAX_CHUNKS)
    atomic_store(&h->chunks, WEIR_SPOOL_MAX_CHUNKS);
  if (h->clock_kind > WEIR_CLOCK_CNTVCT) h->clock_kind = WEIR_CLOCK_MONOTONIC;
  atomic_store(&h->torn, r->damage.torn);
  return h;
}

spool_damage spool_reader_damage(const spool_reader *r)
{
  return r->damage;
}

/* ---- the directory --------------------------------------------------------------------------- */

static void count_damage(spool_reader *r, chunk *c)
{
  if (!c->damaged) r->damage.chunks++;
  c->damaged = true;
}

/* Room for `count` entries. */
static weir_status make_entry_room(spool_reader *r, uint32_t count)
{
  if (count <= r->room) return WEIR_OK;
  uint32_t room = r->room ? r->room : 4;
  while (room < count)
    room *= 2;
  chunk *chunks = realloc(r->chunks, room * sizeof *chunks);
  if (chunks) r->chunks = chunks;
  uint32_t *order = realloc(r->order, room * sizeof *order);
  if (order) r->order = order;
  if (!chunks || !order) return weir_fail(WEIR_ENOMEM, "no memory to read %s", r->path);
  memset(chunks + r->room, 0, (room - r->room) * sizeof *chunks);
  r->room = room;
  return WEIR_OK;
}

/* Marks units [place, place + units) as a chunk's. False: some were another's, or no memory. */
static bool occupy(spool_reader *r, uint32_t place, uint32_t units)
{
  size_t bytes = (place + units + 7) / 8;
  if (bytes > r->taken_bytes) {
    size_t more = bytes + bytes / 2;
    uint8_t *taken = realloc(r->taken, more);
    if (!taken) return false;
    memset(taken + r->taken_bytes, 0, more - r->taken_bytes);
    r->taken = taken;
    r->taken_bytes = more;
  }
  for (uint32_t u = place; u < place + units; u++)
    if (r->taken[u / 8] >> u % 8 & 1) return false;
  for (uint32_t u = place; u < place + units; u++)
    r->taken[u / 8] |= (uint8_t)(1u << u % 8);
  return true;
}

/* The place an entry gives its chunk, which must make sense and never change. */
static bool placed(spool_reader *r, chunk *c, const chunk_entry *e)
{
  const uint32_t most = WEIR_SPOOL_CHUNK / WEIR_SPOOL_UNIT;
  if (c->units) return c->place == e->place && c->units == e->units;
  if (!e->units || e->units > most || e->units & (e->units - 1) ||
      e->place < WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT || e->place > WEIR_SPOOL_MAX_UNITS - e->units)
    return false;
  if (!occupy(r, e->place, e->units)) return false;
  c->place = e->place;
  c->units = e->units;
  uint64_t end = ((uint64_t)c->place + c->units) * WEIR_SPOOL_UNIT;
  if (r->whole < end) r->whole = end;
  return true;
}

/* A chunk that was met again: what another reader of it had delivered is not delivered anew. */
static void skip_delivered(spool_reader *r, uint32_t index)
{
  chunk *c = &r->chunks[index];
  const uint64_t *position = hash_map_get(&r->resumed, c->thread);
  if (!position) return;
  uint32_t sequence = (uint32_t)(*position >> 32), slot = (uint32_t)*position;
  if (c->sequence < sequence) c->done = true;
  if (c->sequence == sequence) c->next = slot < slots_of(r, index) ? slot : slots_of(r, index);
}

/* Adopts a directory entry that a copy showed. Its fields are read again where the state is new:
 * they were stored before the state, so a read begun after it was seen has them right. */
static void adopt_entry(spool_reader *r, uint32_t index, uint32_t state)
{
  chunk *c = &r->chunks[index];
  chunk_entry entry;
  if (state >> STATE_BITS != c->state >> STATE_BITS)
    *c = (chunk){.state = state, .place = c->place, .units = c->units, .misplaced = c->misplaced};
  c->state = state;
  uint32_t kind = state & STATE_MASK;
  if (c->known || (kind != WEIR_CHUNK_OWNED && kind != WEIR_CHUNK_FULL)) return;
  if (read_at(r, &entry, sizeof entry, entry_offset(index)) < sizeof entry) return;
  if (atomic_load(&entry.state) >> STATE_BITS != state >> STATE_BITS) return;
  if (c->misplaced || !placed(r, c, &entry)) {
    r->damage.chunks += !c->misplaced;
    c->misplaced = true;
    return;
  }
  c->tid = entry.tid;
  c->thread = entry.thread;
  c->sequence = entry.sequence;
  c->known = true;
  skip_delivered(r, index);
}

/* Copies the directory. Notes how much of the file is missing. */
static weir_status copy_directory(spool_reader *r)
{
  chunk_entry part[256];
  struct stat file;
  uint32_t used = 0;
  uint64_t size = fstat(r->fd, &file) ? 0 : (uint64_t)file.st_size;
  if (read_at(r, &used, sizeof used, offsetof(spool_header, chunks)) < sizeof used) used = 0;
  if (used > WEIR_SPOOL_MAX_CHUNKS) used = WEIR_SPOOL_MAX_CHUNKS;
  weir_status st = make_entry_room(r, used);
  if (st) return st;
  if (r->used < used) r->used = used;
  if (r->whole < WEIR_SPOOL_HEADER) r->whole = WEIR_SPOOL_HEADER;
  for (uint32_t at = 0; at < used;) {
    uint32_t n = used - at < 256 ? used - at : 256;
    n = (uint32_t)(read_at(r, part, n * sizeof *part, entry_offset(at)) / sizeof *part);
    if (!n) break;
    for (uint32_t i = 0; i < n; i++)
      adopt_entry(r, at + i, atomic_load(&part[i].state));
    at += n;
  }
  if (size < r->whole && r->whole - size > r->damage.bytes_cut)
    r->damage.bytes_cut = r->whole - size;
  return WEIR_OK;
}

static bool deliverable(const chunk *c)
{
  uint32_t kind = c->state & STATE_MASK;
  return c->known && !c->done && (kind == WEIR_CHUNK_OWNED || kind == WEIR_CHUNK_FULL);
}

static int by_thread_and_sequence(const void *left, const void *right, void *chunks)
{
  const chunk *a = (const chunk *)chunks + *(const uint32_t *)left;
  const chunk *b = (const chunk *)chunks + *(const uint32_t *)right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
  return 0;
}

/* Copies the directory and lists what is to deliver. */
static weir_status take_stock(spool_reader *r)
{
  weir_status st = copy_directory(r);
  r->order_count = 0;
  for (uint32_t i = 0; i < r->used; i++)
    if (deliverable(&r->chunks[i])) r->order[r->order_count++] = i;
  if (r->order_count)
    qsort_r(r->order, r->order_count, sizeof *r->order, by_thread_and_sequence, r->chunks);
  return st;
}

/* Whether chunk i of the order has a predecessor that is neither there nor delivered. *known:
 * chunks of this thread were delivered before. */
static bool gap_before(const spool_reader *r, uint32_t i, bool *known)
{
  const chunk *c = &r->chunks[r->order[i]];
  const chunk *before = i ? &r->chunks[r->order[i - 1]] : NULL;
  const uint64_t *expected = hash_map_get(&r->expected, c->thread);
  *known = expected != NULL;
  if (before && before->thread == c->thread) {
    *known = true;
    return c->sequence > (uint64_t)before->sequence + 1;
  }
  return c->sequence > (expected ? *expected : 0);
}

/* Whether the last copy shows a gap that no copy before it did; from now on they are known. */
static bool has_new_gap(spool_reader *r)
{
  bool new_gap = false, known;
  for (uint32_t i = 0; i < r->order_count; i++) {
    chunk *c = &r->chunks[r->order[i]];
    if (c->behind_gap || !gap_before(r, i, &known)) continue;
    c->behind_gap = new_gap = true;
  }
  return new_gap;
}

/* The list, complete in the sense of the essay. Gaps that remain in threads we know are damage. */
static weir_status list_chunks(spool_reader *r)
{
  bool known;
  weir_status st = take_stock(r);
  for (int copies = 1; !st && has_new_gap(r) && copies < MOST_COPIES; copies++)
    st = take_stock(r);
  for (uint32_t i = 0; i < r->order_count && !st; i++) {
    const chunk *c = &r->chunks[r->order[i]];
    if (!gap_before(r, i, &known)) continue;
    if (known) r->damage.chunks++;
    st = hash_map_put(&r->expected, c->thread, c->sequence);
  }
  return st;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool committed(const trace_event *e, uint32_t state, uint32_t slot)
{
  uint64_t place = (uint64_t)(state >> STATE_BITS) << 16 | slot;
  return atomic_load_explicit(&e->commit, memory_order_relaxed) == event_check(e, place);
}

enum { SINGLE = 0, EXTENDED = 1, END = 2, UNKNOWN = 3 };

static int shape_of_kind(uint8_t kind)
{
  static const uint8_t shapes[256] = {
#define SHAPE(id, value, name, extended) [value] = 1 + extended,
      WEIR_EVENT_KIND_MAP(SHAPE)
#undef SHAPE
  };
  if (kind == WEIR_EV_NONE) return END;
  return shapes[kind] ? shapes[kind] - 1 : UNKNOWN;
}

/* Payload bytes of an extended record, which must be what its slots were needed for; SIZE_MAX:
 * wrong. */
static size_t payload_size(const trace_event *head)
{
  uint64_t unit = head->kind == WEIR_EV_STACK ? sizeof(uint64_t) : 1;
  if (head->bytes > (uint64_t)WEIR_SPOOL_MAX_EXTRA * SLOT / unit) return SIZE_MAX;
  size_t bytes = (size_t)(head->bytes * unit);
  return (bytes + SLOT - 1) / SLOT == head->status ? bytes : SIZE_MAX;
}

static bool module_sound(const void *payload, size_t bytes)
{
  module_info info;
  if (bytes < sizeof info) return false;
  memcpy(&info, payload, sizeof info);
  return info.build_id_bytes <= bytes - sizeof info &&
         info.path_bytes <= bytes - sizeof info - info.build_id_bytes;
}

/* Delivers an extended record whose slots are all in the buffer, or counts it as damage. */
static weir_status deliver_extended(spool_reader *r, chunk *c, const spool_visitor *v,
                                    const trace_event *head)
{
  size_t bytes = payload_size(head);
  const void *payload = head + 1;
  if (bytes == SIZE_MAX || head->duration_lo != event_payload_check(payload, head->status) ||
      (head->kind == WEIR_EV_MODULE && !module_sound(payload, bytes))) {
    count_damage(r, c);
    return WEIR_OK;
  }
  return v->extended ? v->extended(v->context, c->thread, c->tid, head, payload, bytes) : WEIR_OK;
}

/* What stopped the delivery of a run of slots. */
enum stop { RAN_OUT, NEED_MORE, UNCOMMITTED, ENDED };

typedef struct run {
  uint32_t index; /* chunk */
  uint32_t got;   /* slots in the buffer, the first is the chunk's `next` */
  uint32_t need;  /* NEED_MORE: slots the next record needs */
  bool changing;  /* the chunk may be written while it is read */
} run;

/* An extended record at slot i of the buffer: payload that was copied before its head's commit word
 * was seen may be old, so in a changing chunk it is read again. */
static weir_status extended_at(spool_reader *r, const spool_visitor *v, const run *u, uint32_t i)
{
  chunk *c = &r->chunks[u->index];
  trace_event *head = &r->buffer[i];
  if (u->changing && head->status) {
    size_t bytes = (size_t)head->status * SLOT;
    if (read_at(r, head + 1, bytes, slot_offset(r, u->index, c->next + 1)) < bytes) {
      count_damage(r, c); /* cut off since */
      return WEIR_OK;
    }
  }
  return deliver_extended(r, c, v, head);
}

/* Delivers the committed records in the buffer; c->next moves with each. */
static weir_status deliver_run(spool_reader *r, const spool_visitor *v, run *u, enum stop *stop)
{
  chunk *c = &r->chunks[u->index];
  const uint32_t first = c->next;
  weir_status st = WEIR_OK;
  *stop = RAN_OUT;
  while (c->next - first < u->got) {
    const uint32_t i = c->next - first;
    const trace_event *e = &r->buffer[i];
    uint32_t slots = 1;
    if (!committed(e, c->state, c->next)) {
      *stop = UNCOMMITTED;
      break;
    }
    int shape = shape_of_kind(e->kind);
    if (shape == SINGLE) {
      r->start = e->start;
      if (v->event) st = v->event(v->context, c->thread, c->tid, e);
    } else if (shape == END) {
      *stop = ENDED;
      break;
    } else if (shape == UNKNOWN || e->status > WEIR_SPOOL_MAX_EXTRA ||
               e->status >= slots_of(r, u->index) - c->next) {
      count_damage(r, c);
    } else {
      slots = 1u + e->status;
      if (slots > u->got - i) {
        *stop = NEED_MORE;
        u->need = slots;
        break;
      }
      st = extended_at(r, v, u, i);
    }
    if (st) return st;
    c->next += slots;
  }
  return WEIR_OK;
}

/* The next committed slot after c->next, the chunk's end when there is none: where reading goes on
 * after a hole. */
static uint32_t behind_hole(spool_reader *r, uint32_t index)
{
  chunk *c = &r->chunks[index];
  const uint32_t end = slots_of(r, index);
  uint32_t step = STEP_IDLE; /* small first: a chunk may be all holes */
  for (uint32_t at = c->next + 1; at < end;) {
    uint32_t got = read_slots(r, index, at, step);
    if (!got) break;
    for (uint32_t i = 0; i < got; i++)
      if (committed(&r->buffer[i], c->state, at + i)) return at + i;
    at += got;
    if (step < STEP_MOST) step *= 4;
  }
  return end;
}

static bool untouched(const trace_event *e)
{
  const event_word *w = (const event_word *)(const void *)e;
  return !(w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]);
}

/* Whether the slot at c->next was begun: it is neither untouched nor left from an earlier use. */
static bool slot_begun(spool_reader *r, uint32_t index)
{
  chunk *c = &r->chunks[index];
  uint32_t generation = c->state >> STATE_BITS; /* the first is 1 */
  if (!generation || read_slots(r, index, c->next, 1) < 1 || untouched(r->buffer)) return false;
  for (uint32_t g = generation, tries = 64; --g && tries--;)
    if (committed(r->buffer, g << STATE_BITS, c->next)) return false;
  return true;
}

/* An uncommitted slot in a chunk nobody writes any more. Returns whether to read on, after it. */
static bool skip_hole(spool_reader *r, uint32_t index, bool full)
{
  chunk *c = &r->chunks[index];
  bool torn = slot_begun(r, index);
  uint32_t next = behind_hole(r, index), end = slots_of(r, index);
  if (next < end || full)
    count_damage(r, c);
  else if (torn)
    r->damage.torn++;
  if (next >= end) return false;
  c->next = next;
  return true;
}

/* A record that its writer still held (held.h), at the end of what it wrote. *there: it was, and is
 * delivered: nothing else is in its slots. */
static weir_status deliver_held(spool_reader *r, const spool_visitor *v, uint32_t index,
                                bool *there)
{
  chunk *c = &r->chunks[index];
  const trace_event *newest = NULL;
  uint64_t place = (uint64_t)(c->state >> STATE_BITS) << 16 | c->next;
  uint32_t got = read_slots(r, index, c->next, HELD_SLOTS);
  for (uint32_t i = 0; i < got; i++) {
    const trace_event *e = &r->buffer[i];
    if (!held_at(e, place + i) || shape_of_kind(e->kind) != SINGLE) continue;
    if (!newest || e->bytes > newest->bytes) newest = e;
  }
  *there = newest != NULL;
  weir_status st = newest && v->event ? v->event(v->context, c->thread, c->tid, newest) : WEIR_OK;
  if (newest && !st) c->next += got;
  return st;
}

/* ---- draining -------------------------------------------------------------------------------- */

/* The chunk is delivered whole: its successor is due, and its writer may have it again. */
static weir_status complete(spool_reader *r, uint32_t index)
{
  chunk *c = &r->chunks[index];
  const uint64_t *expected = hash_map_get(&r->expected, c->thread);
  uint64_t next = (uint64_t)c->sequence + 1;
  c->done = true;
  return expected && *expected >= next ? WEIR_OK : hash_map_put(&r->expected, c->thread, next);
}

/* One byte, which no system can tear: the state is its low bits. */
static void hand_back(spool_reader *r, uint32_t index, uint32_t to)
{
  chunk *c = &r->chunks[index];
  uint8_t byte = (uint8_t)((c->state & ~(uint32_t)STATE_MASK) | to);
  __sync_synchronize(); /* what was read is read before the writer may overwrite it */
  while (pwrite(r->fd, &byte, 1, (off_t)entry_offset(index)) < 0 && errno == EINTR)
    continue;
}

/* Takes a chunk's blocks out of the file, and so out of the program's memory. */
static bool punch(spool_reader *r, uint32_t index)
{
  return !fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)slot_offset(r, index, 0),
                    (off_t)r->chunks[index].units * WEIR_SPOOL_UNIT);
}

static bool read_header_word(int fd, size_t offset, uint64_t *out)
{
  return pread(fd, out, sizeof *out, (off_t)offset) == (ssize_t)sizeof *out;
}

static void add_number(int fd, size_t offset, uint64_t more)
{
  uint64_t value;
  if (!read_header_word(fd, offset, &value)) return;
  value += more;
  (void)!pwrite(fd, &value, sizeof value, (off_t)offset);
}

static weir_status write_header_word(spool_reader *r, size_t offset, uint32_t value)
{
  ssize_t n;
  if (!r->live) return WEIR_OK;
  while ((n = pwrite(r->fd, &value, sizeof value, (off_t)offset)) < 0 && errno == EINTR)
    continue;
  if (n == (ssize_t)sizeof value) return WEIR_OK;
  return weir_fail_errno(WEIR_EIO, n < 0 ? errno : EIO, "cannot write to %s", r->path);
}

weir_status spool_reader_steer(spool_reader *r, spool_recording recording)
{
  return write_header_word(r, offsetof(spool_header, steering.recording), recording);
}

/* The program compares the number with the one that it saw last, so any other will do. */
weir_status spool_reader_renew_stacks(spool_reader *r)
{
  const size_t at = offsetof(spool_header, steering.stacks_anew);
  uint32_t value = 0;
  if (read_at(r, &value, sizeof value, at) < sizeof value)
    return weir_fail(WEIR_EIO, "cannot read the header of %s", r->path);
  return write_header_word(r, at, value + 1);
}

/* Nobody but the one live reader of a folder writes these numbers. */
void spool_reader_repay(spool_reader *r, uint64_t bytes)
{
  const char *slash = strrchr(r->full_path, '/');
  char *path = NULL;
  if (!bytes || asprintf(&path, "%.*s" WEIR_SPOOL_BUDGET,
                         slash ? (int)(slash + 1 - r->full_path) : 0, r->full_path) < 0)
    return;
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) {
    add_number(fd, offsetof(spool_budget, returned), bytes);
    close(fd);
  }
  free(path);
}

/* Bytes that the program has no more are in the budget again. */
static void give_back(spool_reader *r, uint64_t bytes)
{
  add_number(r->fd, offsetof(spool_header, returned), bytes);
  spool_reader_repay(r, bytes);
}

/* The buffer of a drain: one for all readers, as long as only one drains at a time. */
static _Atomic(trace_event *) spare_buffer;

static bool take_buffer(spool_reader *r)
{
  r->buffer = atomic_exchange(&spare_buffer, NULL);
  if (!r->buffer) r->buffer = aligned_alloc(SLOT, (size_t)STEP_MOST * SLOT);
  return r->buffer != NULL;
}

static void leave_buffer(spool_reader *r)
{
  free(atomic_exchange(&spare_buffer, r->buffer));
  r->buffer = NULL;
}

/* Delivers what chunk `index` has, or, *more, about `most` slots of it. */
static weir_status drain_chunk(spool_reader *r, const spool_visitor *v, uint32_t index, bool final,
                               uint32_t most, bool *more)
{
  chunk *c = &r->chunks[index];
  const bool full = (c->state & STATE_MASK) == WEIR_CHUNK_FULL;
  const bool still = full || final;
  const uint32_t from = c->next;
  run u = {.index = index, .changing = !still};
  enum stop stop = RAN_OUT;
  uint32_t step = still ? most : STEP_IDLE;
  while (c->next < slots_of(r, index)) {
    *more = c->next - from >= most;
    if (*more) return WEIR_OK;
    u.got = read_slots(r, index, c->next, step);
    if (!u.got || (stop == NEED_MORE && u.got < u.need)) break; /* cut here: in bytes_cut */
    weir_status st = deliver_run(r, v, &u, &stop);
    if (st) return st;
    if (stop == ENDED) break;
    if (stop == UNCOMMITTED) {
      if (!still) return WEIR_OK;
      if (read_state(r, index) != c->state)
        return WEIR_OK; /* another reader gave it back meanwhile */
      bool held = false;
      if (!full && (st = deliver_held(r, v, index, &held))) return st;
      if (!held && !skip_hole(r, index, full)) break;
      step = STEP_IDLE;
    }
    step = step * 4 < most ? step * 4 : most;
    if (stop == NEED_MORE && step < u.need) step = u.need;
  }
  return still ? complete(r, index) : WEIR_OK;
}

weir_status spool_drain(spool_reader *r, const spool_visitor *v, bool final)
{
  if (!take_buffer(r)) return weir_fail(WEIR_ENOMEM, "no memory to read %s", r->path);
  weir_status st = list_chunks(r);
  for (uint32_t i = 0; i < r->order_count && !st;) {
    bool more = false;
    st = drain_chunk(r, v, r->order[i], final, STEP_MOST, &more);
    i += !more;
  }
  leave_buffer(r);
  if (!final && !r->holding) spool_hand_back(r);
  return st;
}

/* ---- threads side by side -------------------------------------------------------------------- */

/* The chunks of a thread that are to be delivered. */
typedef struct lane {
  uint32_t at, end; /* in r->order: the chunk whose turn it is, past its last */
  uint64_t head;    /* ticks: its next record began no earlier */
} lane;

/* What is of no time: events after it refer to it. */
static bool is_timeless(uint8_t kind)
{
  return kind == WEIR_EV_STACK || kind == WEIR_EV_NAME || kind == WEIR_EV_RANGE_NAME ||
         kind == WEIR_EV_PYTHON_FRAME;
}

/* When a thread's next record with a time began; 0: none is near, or what comes first has none. */
static uint64_t first_start(spool_reader *r, const lane *l)
{
  const uint32_t index = r->order[l->at];
  const chunk *c = &r->chunks[index];
  uint32_t slot = c->next;
  for (int looks = 0; looks < LOOKS_AHEAD && slot < slots_of(r, index); looks++) {
    if (!read_slots(r, index, slot, 1) || !committed(r->buffer, c->state, slot)) return 0;
    if (shape_of_kind(r->buffer->kind) == SINGLE) return r->buffer->start;
    if (!is_timeless(r->buffer->kind)) return 0;
    slot += 1u + r->buffer->status;
  }
  return 0;
}

/* A lane a thread (new), *count of them. NULL: out of memory. */
static lane *make_lanes(spool_reader *r, uint32_t *count)
{
  lane *lanes = calloc(r->order_count + 1, sizeof *lanes);
  *count = 0;
  if (!lanes) return NULL;
  for (uint32_t i = 0; i < r->order_count; i++) {
    bool same = i && r->chunks[r->order[i]].thread == r->chunks[r->order[i - 1]].thread;
    if (!same) lanes[(*count)++] = (lane){.at = i};
    lanes[*count - 1].end = i + 1;
  }
  for (uint32_t i = 0; i < *count; i++)
    lanes[i].head = first_start(r, &lanes[i]);
  return lanes;
}

static lane *oldest_lane(lane *lanes, uint32_t count)
{
  lane *oldest = NULL;
  for (lane *l = lanes; l < lanes + count; l++)
    if (l->at < l->end && (!oldest || l->head < oldest->head)) oldest = l;
  return oldest;
}

static weir_status drain_lanes(spool_reader *r, const spool_visitor *v,
                               weir_status (*until)(void *context, uint64_t ticks), bool final)
{
  uint32_t count;
  lane *lanes = make_lanes(r, &count);
  if (!lanes) return weir_fail(WEIR_ENOMEM, "no memory to read %s", r->path);
  weir_status st = WEIR_OK;
  for (lane *l; !st && (l = oldest_lane(lanes, count));) {
    bool more = false;
    r->start = l->head;
    st = until(v->context, l->head);
    if (!st) st = drain_chunk(r, v, r->order[l->at], final, STEP_TURN, &more);
    if (!more) l->at++;
    l->head = r->start;
    if (!l->head && l->at < l->end) l->head = first_start(r, l); /* the chunk had no more */
  }
  free(lanes);
  return st;
}

weir_status spool_drain_by_time(spool_reader *r, const spool_visitor *v,
                                weir_status (*until)(void *context, uint64_t ticks), bool final)
{
  if (!take_buffer(r)) return weir_fail(WEIR_ENOMEM, "no memory to read %s", r->path);
  weir_status st = list_chunks(r);
  if (!st) st = drain_lanes(r, v, until, final);
  leave_buffer(r);
  if (!final && !r->holding) spool_hand_back(r);
  return st;
}

weir_status spool_reader_positions(spool_reader *r,
                                   weir_status (*tell)(void *context, uint32_t thread,
                                                       uint64_t position),
                                   void *context)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < r->order_count && !st; i++) {
    const chunk *c = &r->chunks[r->order[i]];
    const uint64_t *told = hash_map_get(&r->told, c->thread);
    bool whole = c->done && (c->state & STATE_MASK) == WEIR_CHUNK_FULL;
    uint64_t at = whole ? ((uint64_t)c->sequence + 1) << 32 : (uint64_t)c->sequence << 32 | c->next;
    if ((!c->next && !whole) || (told && *told >= at)) continue;
    st = tell(context, c->thread, at);
    if (!st) st = hash_map_put(&r->told, c->thread, at);
  }
  return st;
}

weir_status spool_reader_resume(spool_reader *r, uint32_t thread, uint64_t position)
{
  weir_status st = hash_map_put(&r->resumed, thread, position);
  if (!st) st = hash_map_put(&r->told, thread, position);
  return st ? st : hash_map_put(&r->expected, thread, position >> 32);
}

void spool_reader_hold(spool_reader *r)
{
  r->holding = true;
}

void spool_hand_back(spool_reader *r)
{
  uint64_t free_bytes = 0, punched = 0;
  if (!r->live) return;
  for (uint32_t i = 0; i < r->used; i++)
    if ((r->chunks[i].state & STATE_MASK) == WEIR_CHUNK_FREE)
      free_bytes += (uint64_t)r->chunks[i].units * WEIR_SPOOL_UNIT;
  for (uint32_t i = 0; i < r->used; i++) {
    chunk *c = &r->chunks[i];
    if (!c->done || (c->state & STATE_MASK) != WEIR_CHUNK_FULL) continue;
    uint64_t bytes = (uint64_t)c->units * WEIR_SPOOL_UNIT;
    bool keep = free_bytes + bytes <= KEEP_BYTES || !punch(r, i);
    hand_back(r, i, keep ? WEIR_CHUNK_FREE : WEIR_CHUNK_BARE);
    *(keep ? &free_bytes : &punched) += bytes;
  }
  if (punched) give_back(r, punched);
}

uint64_t spool_reader_owes(spool_reader *r)
{
  uint64_t taken, returned;
  struct stat file;
  if (!r->live || fstat(r->fd, &file) ||
      !read_header_word(r->fd, offsetof(spool_header, taken), &taken) ||
      !read_header_word(r->fd, offsetof(spool_header, returned), &returned) || taken <= returned)
    return 0;
  uint64_t most = (uint64_t)file.st_blocks * 512; /* whatever the header has */
  return taken - returned < most ? taken - returned : most;
}

uint64_t spool_reader_left(const spool_reader *r)
{
  uint64_t left = 0;
  for (uint32_t i = 0; i < r->used; i++)
    if (deliverable(&r->chunks[i])) left += slots_of(r, i) - r->chunks[i].next;
  return left;
}

uint64_t spool_reader_kept(const spool_reader *r)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < r->used; i++)
    if (deliverable(&r->chunks[i]) && (r->chunks[i].state & STATE_MASK) == WEIR_CHUNK_FULL)
      bytes += (uint64_t)r->chunks[i].units * WEIR_SPOOL_UNIT;
  return bytes;
}

uint64_t spool_reader_due(const spool_reader *r)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < r->used; i++)
    if (r->chunks[i].done && (r->chunks[i].state & STATE_MASK) == WEIR_CHUNK_FULL)
      bytes += (uint64_t)r->chunks[i].units * WEIR_SPOOL_UNIT;
  return bytes;
}

/* A first use has generation 1; a chunk that is free was never used or was handed back. */
bool spool_reader_reused(spool_reader *r)
{
  if (copy_directory(r)) return true;
  for (uint32_t i = 0; i < r->used; i++) {
    const uint32_t generation = r->chunks[i].state >> STATE_BITS,
                   kind = r->chunks[i].state & STATE_MASK;
    if (generation > 1 || (generation && (kind == WEIR_CHUNK_FREE || kind == WEIR_CHUNK_BARE)))
      return true;
  }
  return false;
}

/* ---- the clock ------------------------------------------------------------------------------- */

/* The boot id of this machine, read once; all zeros: not known. */
static const uint8_t *own_boot_id(void)
{
  static uint8_t id[16];
  static bool known;
  char text[64];
  int digits = 0, fd = known ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return id;
  ssize_t got = read(fd, text, sizeof text);
  close(fd);
  for (ssize_t i = 0; i < got && digits < 32; i++) {
    char c = text[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) continue;
    id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
    digits++;
  }
  known = digits == 32;
  if (!known) memset(id, 0, sizeof id);
  return id;
}

static bool same_boot(const spool_header *h)
{
  static const uint8_t none[16];
  const uint8_t *own = own_boot_id();
  return memcmp(own, none, sizeof none) != 0 && !memcmp(own, h->boot_id, sizeof none);
}

/* The writer's later pair, {0, 0} while it is being stored. */
static clock_pair later_pair(spool_reader *r)
{
  clock_pair none = {0, 0};
  for (int i = 0; i < 4; i++) {
    uint64_t ticks[2] = {0, 0}, mono = 0;
    read_at(r, &ticks[0], 8, offsetof(spool_header, last_ticks));
    read_at(r, &mono, 8, offsetof(spool_header, last_mono_ns));
    read_at(r, &ticks[1], 8, offsetof(spool_header, last_ticks));
    if (ticks[0] && ticks[0] == ticks[1]) return (clock_pair){ticks[0], mono};
  }
  return none;
}

/* The rate of the ticks by our own clock alone, ns a tick. */
static double own_rate(clock_pair now)
{
  static clock_pair first;
  if (!first.ticks) first = now;
  if (now.mono_ns - first.mono_ns < MS) {
    struct timespec wait = {.tv_nsec = MS};
    (void)nanosleep(&wait, NULL);
    now = clock_now();
  }
  return clock_map_make(first, now, 0).ns_per_tick;
}

/* Whether our clock can give the times of the spool's ticks. */
static bool shares_ticks(const spool_header *h, clock_pair now)
{
  return (int)h->clock_kind == clock_source_in_use && h->clock_kind != WEIR_CLOCK_MONOTONIC &&
         now.ticks > h->clock_first.ticks && same_boot(h);
}

/* Its opening by our CLOCK_MONOTONIC. The program's was the same, unless something stands in for
 * its clock or it is in a time namespace; ticks are the machine's. A time in the future, or longer
 * ago than the ticks have it, was never ours. One that is nearer may be, as the machine may have
 * slept since, but not when this is asked while the program runs. */
static uint64_t opening_by_ticks(const spool_header *h, clock_pair now)
{
  double rate = own_rate(now);
  int64_t by_ticks = (int64_t)((double)(now.ticks - h->clock_first.ticks) * rate);
  int64_t said = (int64_t)(now.mono_ns - h->clock_first.mono_ns),
          tolerance = SECOND + by_ticks / 100;
  bool far = said < -SECOND || said - by_ticks > tolerance;
  if (by_ticks < 60 * SECOND) far |= by_ticks - said > tolerance;
  return far ? now.mono_ns - (uint64_t)by_ticks : h->clock_first.mono_ns;
}

uint64_t spool_reader_opening(spool_reader *r)
{
  if (r->opening_known) return r->opening;
  const spool_header *h = spool_reader_header(r);
  clock_init();
  clock_pair now = clock_now();
  r->opening = shares_ticks(h, now) ? opening_by_ticks(h, now) : h->clock_first.mono_ns;
  r->opening_known = true;
  return r->opening;
}

clock_map spool_reader_clock(spool_reader *r)
{
  clock_pair first = {0, spool_reader_opening(r)}, last = later_pair(r);
  const spool_header *h = spool_reader_header(r);
  clock_pair now = clock_now();
  first.ticks = h->clock_first.ticks;
  last.mono_ns += first.mono_ns - h->clock_first.mono_ns;
  bool same_kind = (int)h->clock_kind == clock_source_in_use && same_boot(h);
  clock_map map = clock_map_make(first, same_kind ? now : last, h->clock_hint_hz);
  if (!shares_ticks(h, now)) return map;
  double rate = own_rate(now);
  if (map.ns_per_tick > rate * 1.05 || map.ns_per_tick < rate * 0.95) map.ns_per_tick = rate;
  return map;
}

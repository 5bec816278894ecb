/* snapshot.c: the state of memory, and its history, as torch.cuda.memory._snapshot() has them.
 *
 * Under the pool's lock all is copied into a picture; names are looked up and text is written after
 * it. Structure: PyTorch's documentation, "Understanding CUDA Memory Usage", Snapshot API Reference
 * (TypedDicts Snapshot, Segment, Block, Frame, TraceEntry), and what torch/utils/viz/MemoryViz.js
 * reads. That one goes back through the trace from the final state, so the two must fit: whatever
 * was freed and waits is in a segment as active_pending_free (its name for what the documentation
 * calls active_awaiting_free), and pages, which all streams share, are of stream 0, so that what is
 * mapped and unmapped in pieces can be joined. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/dump.h"
#include "core/base/map.h"
#include "core/memory/devices.h"
#include "core/memory/history.h"
#include "core/memory/tags.h"

typedef struct piece { /* a block */
  uint64_t address, bytes, requested, stream;
  uint32_t stack, pool_id;
  uint8_t state, tag;
} piece;

typedef struct range { /* a segment */
  uint64_t address, stream, total, allocated, active, requested;
  uint32_t stack, pool_id;
  size_t first, pieces; /* of the picture's */
} range;

typedef struct picture {
  const mem_pool *pool;   /* for what never changes */
  range *ranges;          /* owned */
  piece *pieces;          /* owned */
  history_entry *entries; /* owned, the oldest first */
  history_note *notes;    /* owned */
  size_t range_count, piece_count, entry_count, note_count;
  uint64_t reserved, unmapped, overwritten, lost;
} picture;

/* ---- taking it ------------------------------------------------------------------------------- */

/* No memory of its own. */
static bool is_hole(const mem_block *b)
{
  return block_state(b) == BLOCK_HOLE || block_state(b) == BLOCK_AWAY;
}

typedef struct counting {
  size_t ranges, pieces;
  bool in_range;
} counting;

static void picture_count(void *user, const mem_block *b)
{
  counting *c = user;
  bool hole = is_hole(b);
  if (!b->left) c->in_range = false;
  c->ranges += !hole && !c->in_range;
  c->pieces += !hole;
  c->in_range = !hole;
}

static void add_piece(picture *pic, const mem_block *b)
{
  const mem_heap *h = heap_table[b->heap];
  block_id id = (block_id)(b - block_records);
  range *r = &pic->ranges[pic->range_count - 1];
  piece *at = &pic->pieces[pic->piece_count++];
  uint8_t state = block_state(b);
  bool live = state == BLOCK_LIVE, active = live || state == BLOCK_PENDING;
  *at = (piece){.address = b->address,
                .bytes = b->bytes,
                .requested = active ? b->requested : 0,
                .stream = (uint64_t)(uintptr_t)h->stream,
                .pool_id = history_pool_id(h),
                .stack = active ? history_block_stack(pic->pool, id) : 0,
                .tag = active ? (uint8_t)b->when : 0,
                .state = state};
  if (at->pool_id != r->pool_id) r->pool_id = 0;
  r->pieces++;
  r->total += b->bytes;
  r->allocated += live ? b->bytes : 0;
  r->active += active ? b->bytes : 0;
  r->requested += live ? b->requested : 0;
}

static void picture_add(void *user, const mem_block *b)
{
  picture *pic = user;
  const mem_block *before = b->left ? block(b->left) : NULL;
  if (is_hole(b)) return;
  if (!before || is_hole(before)) {
    const mem_heap *h = heap_table[b->heap];
    pic->ranges[pic->range_count++] =
        (range){.address = b->address,
                .stream = pic->pool->space ? 0 : (uint64_t)(uintptr_t)h->stream,
                .stack = history_segment_stack(pic->pool, (block_id)(b - block_records)),
                .pool_id = history_pool_id(h),
                .first = pic->piece_count};
  }
  add_piece(pic, b);
}

static bool take_history(picture *pic, mem_pool *p)
{
  const pool_history *h = p->history;
  if (!h) return true;
  pic->entries = malloc((h->entries.count + 1) * sizeof *pic->entries);
  pic->notes = malloc((h->notes.count + 1) * sizeof *pic->notes);
  if (!pic->entries || !pic->notes) return false;
  for (; pic->entry_count < h->entries.count; pic->entry_count++)
    memcpy(&pic->entries[pic->entry_count], history_ring_at(&h->entries, pic->entry_count),
           sizeof *pic->entries);
  for (; pic->note_count < h->notes.count; pic->note_count++)
    memcpy(&pic->notes[pic->note_count], history_ring_at(&h->notes, pic->note_count),
           sizeof *pic->notes);
  pic->overwritten = h->entries.overwritten;
  pic->lost = h->entries.lost;
  return true;
}

/* Lock held, thread caches frozen. */
static bool take_locked(picture *pic, mem_pool *p)
{
  counting c = {0};
  pool_walk(p, picture_count, &c);
  pic->pool = p;
  pic->ranges = malloc((c.ranges + 1) * sizeof *pic->ranges);
  pic->pieces = malloc((c.pieces + 1) * sizeof *pic->pieces);
  if (!pic->ranges || !pic->pieces || !take_history(pic, p)) return false;
  pool_walk(p, picture_add, pic);
  pic->reserved = p->reserved;
  pic->unmapped = p->reserved;
  uint64_t active = 0;
  for (size_t i = 0; i < pic->range_count; i++) {
    pic->unmapped -= pic->ranges[i].total;
    active += pic->ranges[i].active;
  }
  if (p->history) history_put(p, ACTION_SNAPSHOT, 0, active, NULL);
  return true;
}

static weir_status take_picture(picture *pic, mem_pool *p)
{
  uint64_t before = history_enter(p, false);
  pthread_mutex_lock(&p->lock);
  tcache_freeze(p);
  bool done = take_locked(pic, p);
  tcache_thaw(p);
  pthread_mutex_unlock(&p->lock);
  history_leave(before);
  return done ? WEIR_OK : fail_memory("the snapshot");
}

static void drop_picture(picture *pic)
{
  free(pic->ranges);
  free(pic->pieces);
  free(pic->entries);
  free(pic->notes);
}

/* ---- frames ---------------------------------------------------------------------------------- */

typedef struct writer {
  dump_writer d;
  code_names *names; /* owned */
  hash_map written;  /* owned; what can be recalled: stacks' numbers and frames' keys to ids */
} writer;

/* Without host memory to remember it, it is written again the next time. */
static void remember_stack(writer *w, uint64_t key)
{
  uint32_t id = dump_remember(&w->d);
  uint64_t *at = id ? hash_map_place(&w->written, key, NULL) : NULL;
  if (at) *at = id;
}

static bool again(writer *w, uint64_t key)
{
  const uint64_t *id = hash_map_get(&w->written, key);
  if (id) dump_recall(&w->d, (uint32_t)*id);
  return id != NULL;
}

static void put_snapshot_frame(writer *w, uint64_t address)
{
  uint64_t key = address | UINT64_C(1) << 63;
  if (again(w, key)) return;
  code_name n = names_find(w->names, address);
  dump_begin(&w->d, '{');
  dump_key_text(&w->d, "name", n.function);
  dump_key_text(&w->d, "filename", n.object);
  dump_key_unsigned(&w->d, "line", n.offset);
  dump_end(&w->d, '}');
  remember_stack(w, key);
}

static void put_snapshot_frames(writer *w, uint32_t stack)
{
  const uint64_t *frames = NULL;
  unsigned frame_count = callers_frames(stack, &frames);
  dump_key(&w->d, "frames");
  if (frame_count && again(w, stack)) return;
  dump_begin(&w->d, '[');
  for (unsigned i = frame_count ? callers_own(stack, w->names) : 0; i < frame_count; i++)
    put_snapshot_frame(w, frames[i]);
  dump_end(&w->d, ']');
  if (frame_count) remember_stack(w, stack);
}

/* ---- segments -------------------------------------------------------------------------------- */

static const char *const state_names[] = {[BLOCK_FREE] = "inactive",
                                          [BLOCK_LIVE] = "active_allocated",
                                          [BLOCK_CACHED] = "inactive",
                                          [BLOCK_REMOTE] = "inactive",
                                          [BLOCK_PENDING] = "active_pending_free"};

static void put_pool(writer *w, const char *name, uint32_t pool_id)
{
  dump_key(&w->d, name);
  dump_pair(&w->d, 0, pool_id);
}

static void put_tag(writer *w, uint8_t tag)
{
  dump_key_text(&w->d, "user_metadata", tag ? tag_name(tag) : "");
}

static void put_block(writer *w, const piece *b)
{
  dump_writer *d = &w->d;
  dump_begin(d, '{');
  dump_key_unsigned(d, "address", b->address);
  dump_key_unsigned(d, "size", b->bytes);
  dump_key_unsigned(d, "requested_size", b->requested);
  dump_key_text(d, "state", state_names[b->state]);
  dump_key_unsigned(d, "stream", b->stream);
  put_pool(w, "pool_id", b->pool_id);
  put_tag(w, b->tag);
  put_snapshot_frames(w, b->stack);
  dump_end(d, '}');
}

static void put_segment(writer *w, const picture *pic, const range *r)
{
  dump_writer *d = &w->d;
  dump_begin(d, '{');
  dump_key_unsigned(d, "device", (uint64_t)pic->pool->backend->index);
  dump_key_unsigned(d, "address", r->address);
  dump_key_unsigned(d, "total_size", r->total);
  dump_key_unsigned(d, "allocated_size", r->allocated);
  dump_key_unsigned(d, "active_size", r->active);
  dump_key_unsigned(d, "requested_size", r->requested);
  dump_key_unsigned(d, "stream", r->stream);
  dump_key_text(d, "segment_type", "large");
  put_pool(w, "segment_pool_id", r->pool_id);
  dump_key_bool(d, "is_expandable", pic->pool->space != 0);
  put_snapshot_frames(w, r->stack);
  dump_key(d, "blocks");
  dump_begin(d, '[');
  for (size_t i = 0; i < r->pieces; i++)
    put_block(w, &pic->pieces[r->first + i]);
  dump_end(d, ']');
  dump_end(d, '}');
}

/* ---- history --------------------------------------------------------------------------------- */

static const char *const action_names[] = {
#define NAME(id, name) name,
    WEIR_ACTIONS(NAME)
#undef NAME
};

static void put_entry(writer *w, const picture *pic, const history_entry *e)
{
  dump_writer *d = &w->d;
  dump_begin(d, '{');
  dump_key_text(d, "action", action_names[e->action]);
  dump_key_unsigned(d, e->action == ACTION_OOM ? "device_free" : "addr", e->address);
  dump_key_unsigned(d, "size", e->bytes);
  dump_key_unsigned(d, "stream", e->stream);
  dump_key_unsigned(d, "device", (uint64_t)pic->pool->backend->index);
  dump_key_unsigned(d, "time_us", e->time);
  put_pool(w, "pool_id", e->pool_id);
  dump_key_text(d, "compile_context", "N/A");
  put_tag(w, e->tag);
  put_snapshot_frames(w, e->stack);
  dump_end(d, '}');
}

/* A list a device, by index. */
static void put_traces(writer *w, const picture *pics, size_t pic_count)
{
  int index = 0;
  dump_key(&w->d, "device_traces");
  dump_begin(&w->d, '[');
  for (size_t i = 0; i < pic_count; i++, index++) {
    for (; index < pics[i].pool->backend->index; index++) {
      dump_begin(&w->d, '[');
      dump_end(&w->d, ']');
    }
    dump_begin(&w->d, '[');
    for (size_t k = 0; k < pics[i].entry_count; k++)
      put_entry(w, &pics[i], &pics[i].entries[k]);
    dump_end(&w->d, ']');
  }
  dump_end(&w->d, ']');
}

static void put_notes(writer *w, const picture *pics, size_t pic_count)
{
  dump_writer *d = &w->d;
  dump_key(d, "external_annotations");
  dump_begin(d, '[');
  for (size_t i = 0; i < pic_count; i++)
    for (size_t k = 0; k < pics[i].note_count; k++) {
      const history_note *n = &pics[i].notes[k];
      dump_begin(d, '{');
      dump_key_text(d, "stage", n->begin ? "START" : "END");
      dump_key_text(d, "name", n->name);
      dump_key_unsigned(d, "device", (uint64_t)pics[i].pool->backend->index);
      dump_key_unsigned(d, "time_us", n->time);
      dump_end(d, '}');
    }
  dump_end(d, ']');
}

/* ---- settings -------------------------------------------------------------------------------- */

/* PyTorch's keys first; what concerns pinned memory is at its defaults. */
static void put_settings(writer *w, const mem_pool *p)
{
  dump_writer *d = &w->d;
  const pool_config *c = &p->config;
  const char *text = getenv("WEIR_ALLOC_CONF");
  dump_key(d, "allocator_settings");
  dump_begin(d, '{');
  dump_key_text(d, "PYTORCH_CUDA_ALLOC_CONF", "");
  dump_key_text(d, "WEIR_ALLOC_CONF", text ? text : "");
  dump_key(d, "max_split_size");
  dump_signed(d, (int64_t)c->max_split_bytes);
  dump_key(d, "garbage_collection_threshold");
  dump_real(d, c->gc_threshold);
  dump_key_bool(d, "expandable_segments", p->space != 0);
  dump_key_unsigned(d, "pinned_num_register_threads", 1);
  dump_key_bool(d, "release_lock_on_cudamalloc", false);
  dump_key_bool(d, "pinned_use_cuda_host_register", false);
  dump_key(d, "roundup_power2_divisions");
  dump_begin(d, '{');
  for (int i = 0; i < 16; i++) { /* by size, 1 MiB to 32 GiB: ours is one for all */
    char key[16];
    (void)snprintf(key, sizeof key, "%d", 1 << i);
    dump_key_unsigned(d, key, c->roundup_divisions);
  }
  dump_end(d, '}');
  dump_key_bool(d, "whole_block", c->whole_block);
  dump_key_unsigned(d, "decay_ms", c->decay_ms);
  dump_key_unsigned(d, "soft_limit_bytes", c->soft_limit_bytes);
  dump_key_unsigned(d, "limit_bytes", c->limit_bytes);
  dump_end(d, '}');
}

static void put_own(writer *w, const picture *pics, size_t pic_count)
{
  dump_writer *d = &w->d;
  callers_figures c = callers_count();
  dump_key(d, "weir");
  dump_begin(d, '{');
  dump_key_text(d, "unwinder", c.unwinder);
  dump_key_unsigned(d, "stacks_lost", c.lost);
  dump_key(d, "devices");
  dump_begin(d, '[');
  for (size_t i = 0; i < pic_count; i++) {
    dump_begin(d, '{');
    dump_key_unsigned(d, "device", (uint64_t)pics[i].pool->backend->index);
    dump_key_unsigned(d, "reserved_bytes", pics[i].reserved);
    dump_key_unsigned(d, "unmapped_bytes", pics[i].unmapped);
    dump_key_unsigned(d, "entries_overwritten", pics[i].overwritten);
    dump_key_unsigned(d, "entries_lost", pics[i].lost);
    dump_end(d, '}');
  }
  dump_end(d, ']');
  dump_end(d, '}');
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status write_snapshot(FILE *f, bool pickle, const picture *pics, size_t pic_count)
{
  writer w = {.names = names_new()};
  if (!w.names) return fail_memory("the names of functions");
  dump_start(&w.d, f, pickle);
  dump_begin(&w.d, '{');
  dump_key(&w.d, "segments");
  dump_begin(&w.d, '[');
  for (size_t i = 0; i < pic_count; i++)
    for (size_t k = 0; k < pics[i].range_count; k++)
      put_segment(&w, &pics[i], &pics[i].ranges[k]);
  dump_end(&w.d, ']');
  put_traces(&w, pics, pic_count);
  if (pic_count) put_settings(&w, pics[0].pool);
  put_notes(&w, pics, pic_count);
  put_own(&w, pics, pic_count);
  dump_end(&w.d, '}');
  dump_finish(&w.d);
  names_free(w.names);
  hash_map_free(&w.written);
  return WEIR_OK;
}

weir_status weir_memory_snapshot(char **out, weir_device device)
{
  WEIR_REQUIRE(out);
  picture pic = {0};
  FIND_POOL(p, pool_of_device(device, &p));
  size_t bytes;
  FILE *f = open_memstream(out, &bytes);
  if (!f) return fail_memory("the snapshot");
  callers_hold(); /* stack numbers stay what they are until all is written */
  weir_status st = take_picture(&pic, p);
  if (!st) st = write_snapshot(f, false, &pic, 1);
  callers_release();
  drop_picture(&pic);
  if (fclose(f) && !st) st = fail_memory("the snapshot");
  if (!st) return WEIR_OK;
  free(*out);
  *out = NULL;
  return st;
}

static weir_status take_all(picture *pics, size_t *pic_count)
{
  weir_status st = WEIR_OK;
  for (unsigned i = 0; i < WEIR_DEVICES && !st; i++) {
    mem_pool *p = atomic_load(&attached_devices[i].pool);
    if (p && !(st = take_picture(&pics[*pic_count], p))) ++*pic_count;
  }
  return st;
}

static weir_status dump(FILE *f, picture *pics)
{
  size_t pic_count = 0;
  callers_hold();
  weir_status st = take_all(pics, &pic_count);
  if (!st) st = write_snapshot(f, true, pics, pic_count);
  callers_release();
  return st;
}

weir_status weir_memory_dump_snapshot(const char *path)
{
  WEIR_REQUIRE(path);
  struct stat how;
  picture *pics = calloc(WEIR_DEVICES, sizeof *pics);
  if (!pics) return fail_memory("the snapshot");
  FILE *f = fopen(path, "wbe");
  if (!f) {
    free(pics);
    return weir_fail_errno(WEIR_EIO, errno, "cannot open %s", path);
  }
  weir_status st = dump(f, pics);
  for (size_t i = 0; i < WEIR_DEVICES; i++)
    drop_picture(&pics[i]);
  free(pics);
  bool bad = ferror(f), plain = !fstat(fileno(f), &how) && S_ISREG(how.st_mode);
  if ((fclose(f) || bad) && !st) st = weir_fail_errno(WEIR_EIO, errno, "cannot write %s", path);
  if (st && plain) (void)unlink(path);
  return st;
}

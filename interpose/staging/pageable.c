/* pageable.c: see staging.h.
 *
 * A context has a ring for each direction: SLOTS slots of page-locked memory, an event each. A slot
 * is busy from the moment the device may touch it until its event is complete. One copy uses a ring
 * at a time; another that finds it taken is left to the driver. The driver's own functions are
 * called, never a wrapper.
 *
 * Whether a direction is worth it is measured at its first use, on memory of our own, and kept for
 * the next program on this machine (calibration.h). */
#include "interpose/staging/staging.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/staging/calibration.h"

enum { SLOTS = 6, SLOT_BYTES = 2 << 20, RINGS = 256, TRIAL_BYTES = 16 << 20 };

typedef struct slot {
  char *memory;    /* SLOT_BYTES, page-locked; owned */
  CUevent done;    /* of the last copy */
  CUstream stream; /* of it */
  bool busy;
} slot;

typedef struct ring {
  _Atomic bool taken; /* by the copy that uses it */
  slot slots[SLOTS];
  bool made, failed; /* failed: the driver gave no memory, nothing is staged here */
} ring;

enum verdict { UNKNOWN, TRYING, WORTH, NOT_WORTH };

static ring rings[RINGS][2];               /* by number of context; to the device, from it */
static _Atomic uint8_t verdicts[RINGS][2]; /* by device; enum verdict */

void staging_start(const staging_choice *o)
{
  staging_options = *o;
}

/* That copy on the host. Asked for at the first copy: most programs that start never make one. */
static unsigned copy_threads(void)
{
  static _Atomic unsigned known;
  unsigned n = atomic_load_explicit(&known, memory_order_relaxed);
  if (n) return n;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  n = staging_options.threads ? staging_options.threads
      : cores > 4             ? 4
      : cores > 1             ? (unsigned)cores
                              : 1;
  atomic_store_explicit(&known, n, memory_order_relaxed);
  return n;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static bool driver_has_all(void)
{
  static const enum driver_helper needed[] = {
      WEIR_H_cuMemHostAlloc,       WEIR_H_cuMemFreeHost,      WEIR_H_cuMemcpyHtoDAsync_v2,
      WEIR_H_cuMemcpyDtoHAsync_v2, WEIR_H_cuMemcpy2DAsync_v2, WEIR_H_cuEventCreate,
      WEIR_H_cuEventRecord,        WEIR_H_cuEventSynchronize, WEIR_H_cuEventDestroy_v2};
  return weir_helpers_there(needed, sizeof needed / sizeof *needed);
}

static CUresult wait_slot(slot *s)
{
  CUresult r = CUDA_SUCCESS;
  if (s->busy) r = WEIR_HELPER(cuEventSynchronize)(s->done);
  if (r == CUDA_SUCCESS) s->busy = false;
  return r;
}

static bool ring_make(ring *g)
{
  PFN_cuMemHostAlloc_v2020 get = WEIR_HELPER(cuMemHostAlloc);
  PFN_cuEventCreate_v2000 create = WEIR_HELPER(cuEventCreate);
  if (g->made || g->failed) return g->made;
  for (int i = 0; i < SLOTS; i++) {
    slot *s = &g->slots[i];
    g->failed = get((void **)&s->memory, SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS ||
                create(&s->done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS;
    if (!g->failed) continue;
    for (int j = 0; j <= i; j++) {
      slot *t = &g->slots[j];
      if (t->done) (void)WEIR_HELPER(cuEventDestroy_v2)(t->done);
      if (t->memory) (void)WEIR_HELPER(cuMemFreeHost)(t->memory);
      memset(t, 0, sizeof *t);
    }
    return false;
  }
  return g->made = true;
}

void staging_context_gone(unsigned number)
{
  if (number >= RINGS) return;
  staging_peer_context_gone(number);
  for (int d = 0; d < 2; d++) {
    ring *g = &rings[number][d];
    memset(g->slots, 0, sizeof g->slots);
    g->made = g->failed = false;
  }
}

/* ---- one copy: pieces that fit a slot -------------------------------------------------------- */

typedef struct piece {
  size_t row, rows;     /* of a copy in two dimensions */
  size_t offset, bytes; /* of one in one dimension, and packed bytes in the slot */
} piece;

static bool is_linear(const staging_copy *c)
{
  return c->rows == 1;
}

static size_t piece_count(const staging_copy *c)
{
  if (is_linear(c)) return (c->width + SLOT_BYTES - 1) / SLOT_BYTES;
  size_t fit = SLOT_BYTES / c->width;
  return (c->rows + fit - 1) / fit;
}

static piece piece_at(const staging_copy *c, size_t i)
{
  if (is_linear(c)) {
    size_t at = i * SLOT_BYTES, n = c->width - at;
    return (piece){0, 1, at, n < SLOT_BYTES ? n : SLOT_BYTES};
  }
  size_t fit = SLOT_BYTES / c->width, row = i * fit, rows = c->rows - row;
  if (rows > fit) rows = fit;
  return (piece){row, rows, 0, rows * c->width};
}

/* Between the program's memory and the slot. */
static void move_piece(const staging_copy *c, const piece *p, char *memory)
{
  if (is_linear(c)) {
    char *host = c->host + p->offset;
    staging_memcpy(c->to_device ? memory : host, c->to_device ? host : memory, p->bytes,
                   copy_threads());
    return;
  }
  for (size_t i = 0; i < p->rows; i++) {
    char *host = c->host + (p->row + i) * c->host_pitch, *packed = memory + i * c->width;
    memcpy(c->to_device ? packed : host, c->to_device ? host : packed, c->width);
  }
}

static CUresult submit_rows(const staging_copy *c, const piece *p, char *memory)
{
  CUdeviceptr device = c->device + p->row * c->device_pitch;
  CUDA_MEMCPY2D d = {.WidthInBytes = c->width, .Height = p->rows};
  if (c->to_device) {
    d.srcMemoryType = CU_MEMORYTYPE_HOST, d.srcHost = memory, d.srcPitch = c->width;
    d.dstMemoryType = CU_MEMORYTYPE_DEVICE, d.dstDevice = device, d.dstPitch = c->device_pitch;
  } else {
    d.dstMemoryType = CU_MEMORYTYPE_HOST, d.dstHost = memory, d.dstPitch = c->width;
    d.srcMemoryType = CU_MEMORYTYPE_DEVICE, d.srcDevice = device, d.srcPitch = c->device_pitch;
  }
  return WEIR_HELPER(cuMemcpy2DAsync_v2)(&d, c->stream);
}

/* Between the slot and the device, and the event after it. */
static CUresult submit_pieces(const staging_copy *c, const piece *p, slot *s)
{
  CUresult r;
  if (!is_linear(c))
    r = submit_rows(c, p, s->memory);
  else if (c->to_device)
    r = WEIR_HELPER(cuMemcpyHtoDAsync_v2)(c->device + p->offset, s->memory, p->bytes, c->stream);
  else
    r = WEIR_HELPER(cuMemcpyDtoHAsync_v2)(s->memory, c->device + p->offset, p->bytes, c->stream);
  if (r != CUDA_SUCCESS) return r;
  s->stream = c->stream;
  s->busy = true;
  r = WEIR_HELPER(cuEventRecord)(s->done, c->stream);
  if (r == CUDA_SUCCESS) return r;
  /* The copy is on its way and no event shows its end. */
  (void)WEIR_HELPER(cuStreamSynchronize)(c->stream);
  s->busy = false;
  return r;
}

static CUresult to_device(ring *g, const staging_copy *c)
{
  size_t n = piece_count(c);
  CUresult r = CUDA_SUCCESS;
  for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
    slot *s = &g->slots[i % SLOTS];
    piece p = piece_at(c, i);
    if ((r = wait_slot(s)) != CUDA_SUCCESS) break;
    move_piece(c, &p, s->memory);
    r = submit_pieces(c, &p, s);
  }
  if (r == CUDA_SUCCESS && c->wait) r = wait_slot(&g->slots[(n - 1) % SLOTS]);
  return r;
}

static CUresult from_device(ring *g, const staging_copy *c)
{
  size_t n = piece_count(c), sent = 0;
  CUresult r = CUDA_SUCCESS;
  for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
    for (; sent < n && sent < i + SLOTS && r == CUDA_SUCCESS; sent++) {
      piece p = piece_at(c, sent);
      r = submit_pieces(c, &p, &g->slots[sent % SLOTS]);
    }
    if (r != CUDA_SUCCESS || (r = wait_slot(&g->slots[i % SLOTS])) != CUDA_SUCCESS) break;
    piece p = piece_at(c, i);
    move_piece(c, &p, g->slots[i % SLOTS].memory);
  }
  return r;
}

/* Whether all slots are over, or under way in the copy's own stream, for which it has to wait
 * anyway. Another stream may be held up by something that only this thread can do. */
static bool slots_ready(ring *g, const staging_copy *c)
{
  PFN_cuEventQuery_v2000 query = WEIR_HELPER(cuEventQuery);
  for (int i = 0; i < SLOTS; i++) {
    slot *s = &g->slots[i];
    if (!s->busy || (s->stream == c->stream && c->to_device)) continue;
    if (query(s->done) != CUDA_SUCCESS) return false;
    s->busy = false;
  }
  return true;
}

/* ---- is the memory there? -------------------------------------------------------------------- */

enum { PAGE = 4096, POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* MADV_POPULATE_*, Linux 5.14 */

static bool populate(const void *at, int how)
{
  return madvise((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, how) == 0;
}

/* Whether the page can be loaded from (`store`: stored into), by the kernel, which answers where a
 * load would be a fault. A kernel that knows no such question has no page that passes. */
static bool is_open(const char *at, bool store)
{
  int saved = errno;
  bool open = populate(at, store ? POPULATE_WRITE : POPULATE_READ) || errno == EAGAIN ||
              !populate(&saved, POPULATE_READ);
  errno = saved;
  return open;
}

/* What a copy of memory that is not there ends with is the driver's affair. Its ends are looked
 * at, 0.4 us: all its pages would take as long as the copy. A fault between them is one of the
 * program's memory, whose handler may mend it (threads.c). */
static bool ends_are_open(const staging_copy *c)
{
  return is_open(c->host, !c->to_device) &&
         is_open(c->host + (c->rows - 1) * c->host_pitch + c->width - 1, !c->to_device);
}

/* False: the ring is taken or cannot be had. */
static bool run_staged(const staging_copy *c, unsigned number, CUresult *result)
{
  ring *g = &rings[number][!c->to_device];
  if (atomic_exchange_explicit(&g->taken, true, memory_order_acquire)) return false;
  bool now = ring_make(g) && slots_ready(g, c);
  if (now) *result = c->to_device ? to_device(g, c) : from_device(g, c);
  atomic_store_explicit(&g->taken, false, memory_order_release);
  return now;
}

/* ---- is it worth it? ------------------------------------------------------------------------- */

typedef struct trial { /* a copy that is measured */
  staging_copy copy;
  unsigned number, device; /* of the context */
} trial;

static bool time_driver_copy(void *of)
{
  const staging_copy *c = &((const trial *)of)->copy;
  CUresult r = c->to_device
                   ? WEIR_HELPER(cuMemcpyHtoDAsync_v2)(c->device, c->host, c->width, c->stream)
                   : WEIR_HELPER(cuMemcpyDtoHAsync_v2)(c->host, c->device, c->width, c->stream);
  return r == CUDA_SUCCESS && WEIR_HELPER(cuStreamSynchronize)(c->stream) == CUDA_SUCCESS;
}

static bool time_staged_copy(void *of)
{
  const trial *t = of;
  CUresult r = CUDA_SUCCESS;
  return run_staged(&t->copy, t->number, &r) && r == CUDA_SUCCESS;
}

static unsigned measure_on(trial *t, char *host)
{
  staging_trial device;
  if (!staging_trial_alloc(&device, t->device, TRIAL_BYTES, t->copy.stream)) return 0;
  t->copy.host = host;
  t->copy.device = device.at;
  unsigned percent = staging_race(time_driver_copy, time_staged_copy, t);
  staging_trial_free(&device, t->copy.stream);
  return percent;
}

/* In a stream that waits for no other: the program's may be held up by what this thread does next.
 */
static unsigned measure_pageable_copy(void *of)
{
  trial *t = of;
  unsigned percent = 0;
  PFN_cuStreamCreate_v2000 create = WEIR_HELPER(cuStreamCreate);
  PFN_cuStreamDestroy_v4000 destroy = WEIR_HELPER(cuStreamDestroy_v2);
  if (!create || !destroy) return 0;
  if (create(&t->copy.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 0;
  char *host = mmap(NULL, TRIAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (host != MAP_FAILED) {
    memset(host, 1, TRIAL_BYTES);
    percent = measure_on(t, host);
    (void)munmap(host, TRIAL_BYTES);
  }
  (void)destroy(t->copy.stream);
  return percent;
}

static bool is_worth(unsigned number, unsigned device, bool to)
{
  char key[CALIBRATION_KEY_ROOM];
  _Atomic uint8_t *v = &verdicts[device][!to];
  uint8_t now = atomic_load_explicit(v, memory_order_acquire);
  if (staging_options.use != WEIR_STAGE_AUTO) return staging_options.use == WEIR_STAGE_ON;
  if (now != UNKNOWN) return now == WORTH;
  if (!atomic_compare_exchange_strong(v, &now, TRYING)) return false;
  trial t = {.number = number,
             .device = device,
             .copy = {.to_device = to, .wait = true, .width = TRIAL_BYTES, .rows = 1}};
  const staging_question q = {.key = calibration_key(key, device, copy_threads()) ? key : NULL,
                              .which = !to,
                              .device = device,
                              .kind = to ? WEIR_COPY_HTOD : WEIR_COPY_DTOH,
                              .bytes = TRIAL_BYTES,
                              .measure = measure_pageable_copy,
                              .of = &t};
  bool worth = staging_is_worth(&q);
  atomic_store(v, worth ? WORTH : NOT_WORTH);
  return worth;
}

bool staging_run(const staging_copy *c, unsigned number, unsigned device, CUresult *result)
{
  if ((staging_options.use == WEIR_STAGE_OFF && !c->always) || c->width == 0 || c->rows == 0)
    return false;
  if (!is_linear(c) && c->width > SLOT_BYTES) return false;
  if (!number || number >= RINGS - 1 || device >= RINGS || !driver_has_all()) return false;
  if (!ends_are_open(c)) return false;
  capture_relaxed mode = capture_relax();
  bool staged =
      (c->always || is_worth(number, device, c->to_device)) && run_staged(c, number, result);
  capture_relax_end(&mode);
  return staged;
}

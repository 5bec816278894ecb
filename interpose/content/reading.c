/* reading.c: see reading.h. */
#define XXH_INLINE_ALL
#include "interpose/content/reading.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

enum { PIECE_BYTES = 65536, SMALL_PIECE_BYTES = 4096, PIECES = 8 };

/* Room for pieces: of the threads that hash now. One too many makes do with some of its stack. */
static _Alignas(64) unsigned char pieces[PIECES][PIECE_BYTES];
static _Atomic bool pieces_taken[PIECES];

typedef struct content_reader {
  unsigned char *piece;
  size_t room;         /* bytes of the piece */
  int slot;            /* of `pieces`, -1: none */
  int file;            /* in memory, -1: not needed so far */
  bool mapped;         /* as of the region */
  bool begun, uniform; /* a byte was read; all were equal to `first` */
  unsigned char first;
  uint64_t at; /* bytes read so far */
  XXH3_state_t *state;
  content_spans *spans; /* NULL: it is not cut */
} content_reader;

static void take_piece(content_reader *r, unsigned char *small)
{
  r->piece = small;
  r->room = SMALL_PIECE_BYTES;
  r->slot = -1;
  for (int i = 0; i < PIECES && r->slot < 0; i++) {
    if (atomic_exchange_explicit(&pieces_taken[i], true, memory_order_acquire)) continue;
    r->slot = i;
    r->piece = pieces[i];
    r->room = PIECE_BYTES;
  }
}

static void end_reader(content_reader *r)
{
  if (r->slot >= 0) atomic_store_explicit(&pieces_taken[r->slot], false, memory_order_release);
  if (r->file >= 0) (void)syscall(SYS_close, r->file);
}

void content_reading_forked(void)
{
  for (int i = 0; i < PIECES; i++)
    atomic_store_explicit(&pieces_taken[i], false, memory_order_relaxed);
}

/* The kernel copies from the address as from any buffer of a write, whoever has mapped it. */
static bool read_by_file(content_reader *r, uint64_t at, size_t bytes)
{
  if (r->file < 0) r->file = (int)syscall(SYS_memfd_create, "weir", MFD_CLOEXEC);
  if (r->file < 0) return false;
  long went = syscall(SYS_pwrite64, r->file, at, bytes, 0L);
  return went == (long)bytes && syscall(SYS_pread64, r->file, r->piece, bytes, 0L) == went;
}

static bool read_copied_piece(content_reader *r, uint64_t at, size_t bytes)
{
  struct iovec to = {r->piece, bytes}, from = {(void *)(uintptr_t)at, bytes};
  if (r->file < 0) {
    long went = syscall(SYS_process_vm_readv, (long)getpid(), &to, 1L, &from, 1L, 0L);
    if (went == (long)bytes) return true;
    if (!r->mapped && (went >= 0 || errno == EFAULT)) return false;
  }
  return read_by_file(r, at, bytes);
}

static bool is_uniform(const unsigned char *piece, size_t bytes, unsigned char byte)
{
  const uint64_t all = byte * UINT64_C(0x0101010101010101);
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
    uint64_t word[8], other = 0;
    memcpy(word, piece + i, sizeof word);
    for (int n = 0; n < 8; n++)
      other |= word[n] ^ all;
    if (other) return false;
  }
  for (; i < bytes; i++)
    if (piece[i] != byte) return false;
  return true;
}

/* A span of more bytes than a piece has is hashed piece by piece. */
static void cut_piece(content_reader *r, size_t bytes)
{
  const uint64_t span = UINT64_C(1) << r->spans->shift;
  for (size_t from = 0, now; from < bytes; from += now) {
    size_t left = (size_t)(span - (r->at + from) % span);
    uint32_t *hash = &r->spans->hash[(r->at + from) >> r->spans->shift];
    now = left < bytes - from ? left : bytes - from;
    *hash = *hash * 31 + (uint32_t)XXH3_64bits(r->piece + from, now);
  }
  spans_end_with(r->spans, r->piece, r->at, bytes);
}

static void look_at_piece(content_reader *r, size_t bytes)
{
  const unsigned char *piece = r->piece;
  if (!r->begun) {
    r->begun = r->uniform = true;
    r->first = piece[0];
  }
  if (r->uniform) r->uniform = is_uniform(piece, bytes, r->first);
  (void)XXH3_128bits_update(r->state, piece, bytes);
  if (r->spans) cut_piece(r, bytes);
  r->at += bytes;
}

static bool hash_row(content_reader *r, uint64_t at, uint64_t bytes)
{
  while (bytes) {
    size_t now = bytes < r->room ? (size_t)bytes : r->room;
    if (!read_copied_piece(r, at, now)) return false;
    look_at_piece(r, now);
    at += now;
    bytes -= now;
  }
  return true;
}

static void begin_reader(content_reader *r, const content_region *region, XXH3_state_t *state,
                         unsigned char *small)
{
  *r = (content_reader){.file = -1, .mapped = region->mapped, .state = state};
  XXH3_INITSTATE(state);
  (void)XXH3_128bits_reset(state);
  take_piece(r, small);
}

/* Pieces have to be of one length in all copies. */
static void begin_spans(content_reader *r, content_spans *spans, uint64_t bytes)
{
  if (r->slot < 0 || bytes < SPANS_LEAST) return;
  spans_begin(spans, bytes, false);
  r->spans = spans;
}

bool content_digest_of(const content_region *region, content_digest *out, content_spans *spans)
{
  unsigned char small[SMALL_PIECE_BYTES];
  _Alignas(64) XXH3_state_t state;
  content_reader r;
  bool whole = region->height == 1 || region->pitch == region->width;
  uint64_t rows = whole ? 1 : region->height;
  uint64_t width = whole ? region->width * region->height : region->width;
  bool good = true;
  begin_reader(&r, region, &state, small);
  if (spans) spans->bytes = 0;
  if (spans && whole) begin_spans(&r, spans, width);
  for (uint64_t i = 0; good && i < rows; i++)
    good = hash_row(&r, region->at + i * region->pitch, width);
  end_reader(&r);
  if (!good) return false;
  XXH128_hash_t h = XXH3_128bits_digest(&state);
  *out = (content_digest){{h.low64, h.high64}, r.uniform};
  return true;
}

/* A piece ends with its row. Returns its bytes, which are in r->piece; 0: it cannot be read. */
static size_t hash_piece(content_reader *r, const content_region *region, uint64_t from)
{
  uint64_t row = from / region->width, column = from % region->width;
  uint64_t left = region->width - column;
  size_t bytes = left < CONTENT_PRINT_PIECE ? (size_t)left : CONTENT_PRINT_PIECE;
  return hash_row(r, region->at + row * region->pitch + column, bytes) ? bytes : 0;
}

bool content_print_of(const content_region *region, uint64_t *out, content_spans *spans)
{
  unsigned char small[SMALL_PIECE_BYTES];
  _Alignas(64) XXH3_state_t state;
  content_reader r;
  uint64_t bytes = region->width * region->height;
  uint64_t last = bytes < CONTENT_PRINT_PIECE ? bytes : CONTENT_PRINT_PIECE;
  size_t read = 1;
  if (region->width < last) last = region->width;
  begin_reader(&r, region, &state, small);
  spans_begin(spans, bytes, true);
  for (unsigned i = 0; read && i < spans_count(spans); i++) {
    uint64_t from = (uint64_t)i << spans->shift;
    read = hash_piece(&r, region, from);
    if (!read) break;
    spans->hash[i] = (uint32_t)XXH3_64bits(r.piece, read);
    spans_end_with(spans, r.piece, from, read);
  }
  if (read) read = hash_piece(&r, region, bytes - last);
  if (read) spans_end_with(spans, r.piece, bytes - last, read);
  if (read) *out = XXH3_128bits_digest(&state).low64;
  if (!read || (region->height > 1 && region->pitch != region->width)) spans->bytes = 0;
  end_reader(&r);
  return read;
}

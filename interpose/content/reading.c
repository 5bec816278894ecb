/* reading.c: see reading.h. */
#define XXH_INLINE_ALL
#include "interpose/content/reading.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
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
  bool begun, uniform; /* a byte was read; all were equal to `first` */
  unsigned char first;
  XXH3_state_t *state;
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
  if (r->file >= 0) close(r->file);
}

/* The kernel copies from the address as from any buffer of a write, whoever has mapped it. */
static bool read_by_file(content_reader *r, uint64_t at, size_t bytes)
{
  if (r->file < 0) r->file = memfd_create("weir", MFD_CLOEXEC);
  if (r->file < 0) return false;
  ssize_t went = pwrite(r->file, (const void *)(uintptr_t)at, bytes, 0);
  return went == (ssize_t)bytes && pread(r->file, r->piece, bytes, 0) == went;
}

static bool read_copied_piece(content_reader *r, uint64_t at, size_t bytes)
{
  struct iovec to = {r->piece, bytes}, from = {(void *)(uintptr_t)at, bytes};
  if (r->file < 0 && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes) return true;
  return read_by_file(r, at, bytes);
}

static void look_at_piece(content_reader *r, size_t bytes)
{
  const unsigned char *piece = r->piece;
  if (!r->begun) {
    r->begun = r->uniform = true;
    r->first = piece[0];
  }
  if (r->uniform) r->uniform = piece[0] == r->first && !memcmp(piece, piece + 1, bytes - 1);
  (void)XXH3_128bits_update(r->state, piece, bytes);
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

bool content_digest_of(const content_region *region, content_digest *out)
{
  unsigned char small[SMALL_PIECE_BYTES];
  _Alignas(64) XXH3_state_t state;
  content_reader r = {.file = -1, .state = &state};
  bool whole = region->height == 1 || region->pitch == region->width;
  uint64_t rows = whole ? 1 : region->height;
  uint64_t width = whole ? region->width * region->height : region->width;
  bool good = true;
  XXH3_INITSTATE(&state);
  (void)XXH3_128bits_reset(&state);
  take_piece(&r, small);
  for (uint64_t i = 0; good && i < rows; i++)
    good = hash_row(&r, region->at + i * region->pitch, width);
  end_reader(&r);
  if (!good) return false;
  XXH128_hash_t h = XXH3_128bits_digest(&state);
  *out = (content_digest){{h.low64, h.high64}, r.uniform};
  return true;
}

/* zip.c: see zip.h.
 *
 * The directory at the file's end is what counts; of local headers only where the bytes begin is
 * read. Entries lie before the directory, and all together have no more bytes than lie there, so
 * that a small file cannot stand for much: what is inflated is bounded by what deflate can do. */
#include "core/io/zip.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"
#include "core/io/inflate.h"

enum {
  END_BYTES = 22,
  END64_BYTES = 56,
  LOCATOR_BYTES = 20,
  ENTRY_BYTES = 46,
  LOCAL_BYTES = 30,
  COMMENT_MOST = 65535,
  DIRECTORY_MOST = 256 << 20,
  PIECE_BYTES = 1 << 20,
  STORED = 0,
  DEFLATED = 8
};

static uint64_t little(const unsigned char *p, int bytes)
{
  uint64_t v = 0;
  for (int i = bytes - 1; i >= 0; i--)
    v = v << 8 | p[i];
  return v;
}

static weir_status wrong_zip(const zip_archive *z, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: %s", z->file->path, what);
}

static weir_status no_zip_memory(uint64_t bytes)
{
  return weir_fail(WEIR_ENOMEM, "no host memory left for %llu bytes of a zip file",
                   (unsigned long long)bytes);
}

/* ---- the directory --------------------------------------------------------------------------- */

typedef struct zip_end {
  uint64_t entries, bytes, at; /* of the directory */
} zip_end;

/* Where the end's record states otherwise, in the larger record before it. */
static weir_status read_end64(const zip_archive *z, zip_end *end, uint64_t end_at)
{
  unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
  if (end_at < LOCATOR_BYTES) return WEIR_OK;
  weir_status st = file_read(z->file, locator, end_at - LOCATOR_BYTES, LOCATOR_BYTES);
  if (st || memcmp(locator, "PK\6\7", 4) != 0) return st;
  uint64_t at = little(locator + 8, 8), most = end_at - LOCATOR_BYTES;
  if (at > most || most - at < END64_BYTES)
    return wrong_zip(z, "the end of the zip file is not where its locator says");
  st = file_read(z->file, record, at, END64_BYTES);
  if (!st && memcmp(record, "PK\6\6", 4) != 0)
    st = wrong_zip(z, "the end of the zip file is not where its locator says");
  *end = (zip_end){little(record + 32, 8), little(record + 40, 8), little(record + 48, 8)};
  return st;
}

static weir_status find_end(const zip_archive *z, zip_end *end)
{
  uint64_t bytes = z->file->bytes, most = END_BYTES + COMMENT_MOST;
  size_t n = (size_t)(bytes < most ? bytes : most);
  unsigned char *tail = malloc(n + 1);
  if (!tail) return no_zip_memory(n);
  weir_status st = file_read(z->file, tail, bytes - n, n);
  size_t at = n < END_BYTES ? 0 : n - END_BYTES + 1;
  while (!st && at--)
    if (!memcmp(tail + at, "PK\5\6", 4) && at + END_BYTES + little(tail + at + 20, 2) == n) break;
  if (!st && (n < END_BYTES || at == SIZE_MAX)) st = wrong_zip(z, "not a zip file, or cut");
  if (!st) {
    *end =
        (zip_end){little(tail + at + 10, 2), little(tail + at + 12, 4), little(tail + at + 16, 4)};
    uint64_t end_at = bytes - n + at;
    st = read_end64(z, end, end_at);
    if (!st && (end->at > end_at || end->bytes > end_at - end->at || end->bytes > DIRECTORY_MOST ||
                end->entries > end->bytes / ENTRY_BYTES))
      st = wrong_zip(z, "the zip file's directory goes beyond its end");
  }
  free(tail);
  return st;
}

/* Sizes that did not fit where they should stand are in the field that is called 1. */
static weir_status read_extra(const zip_archive *z, zip_entry *e, const unsigned char *at,
                              size_t bytes)
{
  uint64_t *const wide[] = {&e->bytes, &e->kept, &e->at};
  while (bytes >= 4) {
    size_t n = (size_t)little(at + 2, 2);
    if (n > bytes - 4) break;
    const unsigned char *field = at + 4, *end = field + n;
    for (int i = 0; i < 3 && little(at, 2) == 1; i++) {
      if (*wide[i] != UINT32_MAX) continue;
      if (end - field < 8) return wrong_zip(z, "a zip64 field lacks a size");
      *wide[i] = little(field, 8);
      field += 8;
    }
    at += 4 + n;
    bytes -= 4 + n;
  }
  return WEIR_OK;
}

static weir_status add_entry(zip_archive *z, zip_entry *e, const unsigned char *p, size_t length)
{
  char *name = strndup((const char *)p, length);
  if (!name) return no_zip_memory(length);
  weir_status st = WEIR_OK;
  if (strlen(name) != length || !utf8_valid(name, length))
    st = wrong_zip(z, "an entry's name is not UTF-8");
  else if (named_find(&z->names, name))
    st = weir_fail(WEIR_ECORRUPT, "%s: '%.100s' is there twice", z->file->path, name);
  else
    st = named_add(&z->names, name, e);
  free(name);
  return st;
}

/* One entry of the directory; *used: its bytes. */
static weir_status read_entry(zip_archive *z, zip_entry *e, const unsigned char *p, size_t left,
                              size_t *used)
{
  if (left < ENTRY_BYTES || memcmp(p, "PK\1\2", 4) != 0)
    return wrong_zip(z, "the zip file's directory is damaged");
  size_t name = (size_t)little(p + 28, 2), extra = (size_t)little(p + 30, 2);
  *used = ENTRY_BYTES + name + extra + (size_t)little(p + 32, 2);
  if (*used > left) return wrong_zip(z, "the zip file's directory is damaged");
  if (p[8] & 1) return fail_unsupported("%s is encrypted", z->file->path);
  *e = (zip_entry){little(p + 42, 4), little(p + 20, 4), little(p + 24, 4),
                   (uint32_t)little(p + 16, 4), (uint16_t)little(p + 10, 2)};
  weir_status st = read_extra(z, e, p + ENTRY_BYTES + name, extra);
  if (!st && (e->at > z->directory || e->kept > z->directory - e->at))
    st = wrong_zip(z, "an entry of the zip file goes beyond its end");
  return st ? st : add_entry(z, e, p + ENTRY_BYTES, name);
}

static weir_status read_directory(zip_archive *z, const zip_end *end)
{
  unsigned char *text = malloc(end->bytes + 1);
  z->entries = calloc(end->entries + 1, sizeof *z->entries);
  weir_status st = text && z->entries ? WEIR_OK : no_zip_memory(end->bytes);
  if (!st) st = file_read(z->file, text, end->at, end->bytes);
  size_t at = 0, used = 0;
  uint64_t kept = 0;
  for (uint64_t i = 0; !st && i < end->entries; i++, at += used) {
    st = read_entry(z, &z->entries[i], text + at, end->bytes - at, &used);
    if (st) break;
    kept += z->entries[i].kept; /* each is less than the file has, and there are not 2^32 */
    if (kept > z->directory) st = wrong_zip(z, "entries of the zip file overlap");
  }
  free(text);
  return st;
}

weir_status zip_open(zip_archive *out, const tensor_file *file)
{
  zip_end end = {0};
  *out = (zip_archive){.file = file};
  weir_status st = find_end(out, &end);
  out->directory = end.at;
  return st ? st : read_directory(out, &end);
}

void zip_close(zip_archive *z)
{
  named_free(&z->names);
  free(z->entries);
  z->entries = NULL;
}

/* ---- entries --------------------------------------------------------------------------------- */

static weir_status wrong_zip_entry(const zip_archive *z, const char *name, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: '%.100s' %s", z->file->path, name, what);
}

/* Where its bytes begin. */
static weir_status find_bytes(const zip_archive *z, const zip_entry *e, const char *name,
                              uint64_t *at)
{
  unsigned char local[LOCAL_BYTES];
  uint64_t room = z->directory - e->at;
  if (room < LOCAL_BYTES) return wrong_zip_entry(z, name, "goes beyond the end");
  TRY(file_read(z->file, local, e->at, LOCAL_BYTES));
  if (memcmp(local, "PK\3\4", 4) != 0)
    return wrong_zip_entry(z, name, "is not where the directory says");
  uint64_t head = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
  if (head > room || e->kept > room - head) return wrong_zip_entry(z, name, "goes beyond the end");
  *at = e->at + head;
  return WEIR_OK;
}

static weir_status check_window_sum(const zip_archive *z, const tensor_file *window,
                                    const zip_entry *e, const char *name)
{
  unsigned char *piece = malloc(PIECE_BYTES);
  weir_status st = piece ? WEIR_OK : no_zip_memory(PIECE_BYTES);
  uint32_t crc = 0;
  for (uint64_t at = 0, n; !st && at < window->bytes; at += n) {
    n = window->bytes - at < PIECE_BYTES ? window->bytes - at : PIECE_BYTES;
    st = file_read(window, piece, at, n);
    if (!st) crc = crc32_of(crc, piece, n);
  }
  free(piece);
  if (!st && crc != e->crc)
    st = wrong_zip_entry(z, name, "does not have the sum that it should have");
  return st;
}

static weir_status inflate_entry(void **out, const zip_archive *z, const zip_entry *e,
                                 const char *name, uint64_t at)
{
  if (e->bytes / INFLATE_MOST > e->kept)
    return wrong_zip_entry(z, name, "is longer than deflate can make it");
  unsigned char *kept = malloc(e->kept + 1), *whole = malloc(e->bytes + 1);
  weir_status st = kept && whole ? WEIR_OK : no_zip_memory(e->kept + e->bytes);
  if (!st) st = file_read(z->file, kept, at, e->kept);
  if (!st && !inflate_all(whole, e->bytes, kept, e->kept))
    st = wrong_zip_entry(z, name, "cannot be inflated");
  free(kept);
  if (st)
    free(whole);
  else
    *out = whole;
  return st;
}

weir_status zip_window(tensor_file *out, void **owned, const zip_archive *z, const char *name,
                       bool check)
{
  const named_item *item = named_find(&z->names, name);
  uint64_t at = 0;
  *owned = NULL;
  if (!item) return wrong_zip_entry(z, name, "is not there");
  const zip_entry *e = item->value;
  weir_status st = find_bytes(z, e, name, &at);
  if (st) return st;
  *out = (tensor_file){.fd = z->file->fd,
                       .path = z->file->path,
                       .base = z->file->base + at,
                       .bytes = e->bytes,
                       .memory = NULL};
  if (e->method == DEFLATED) {
    st = inflate_entry(owned, z, e, name, at);
    out->memory = *owned;
    out->base = 0;
  } else if (e->method != STORED) {
    st = fail_unsupported("%s: '%.100s' is compressed by method %d: only deflate is read",
                          z->file->path, name, e->method);
  } else if (e->kept != e->bytes) {
    st = wrong_zip_entry(z, name, "is stored, in two different sizes");
  }
  if (!st && check) st = check_window_sum(z, out, e, name);
  if (st) {
    free(*owned);
    *owned = NULL;
  }
  return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

static char *put_zip_number(char *p, uint64_t v, int bytes)
{
  for (int i = 0; i < bytes; i++)
    *p++ = (char)(v >> 8 * i & 0xff);
  return p;
}

static char *put_bytes(char *p, const char *from, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    *p++ = from[i];
  return p;
}

static uint64_t narrow(uint64_t v)
{
  return v < UINT32_MAX ? v : UINT32_MAX;
}

/* What the local header and the directory state alike, from the version to the length of the
 * name. */
static char *put_common(char *p, uint32_t crc, uint64_t bytes, size_t name, bool wide)
{
  p = put_zip_number(p, wide ? 45 : 20, 2); /* version needed */
  p = put_zip_number(p, 1 << 11, 2);        /* names are UTF-8 */
  p = put_zip_number(p, STORED, 2);
  p = put_zip_number(p, 0, 2);          /* midnight */
  p = put_zip_number(p, 1 << 5 | 1, 2); /* of 1980-01-01: the same tensors are the same file */
  p = put_zip_number(p, crc, 4);
  p = put_zip_number(p, wide ? UINT32_MAX : bytes, 4);
  p = put_zip_number(p, wide ? UINT32_MAX : bytes, 4);
  return put_zip_number(p, name, 2);
}

static weir_status directory_room(zip_writer *w, size_t more)
{
  if (w->room - w->bytes >= more) return WEIR_OK;
  size_t room = (w->room + more) * 2;
  char *directory = realloc(w->directory, room);
  if (!directory) return no_zip_memory(room);
  w->directory = directory;
  w->room = room;
  return WEIR_OK;
}

static weir_status put_in_directory(zip_writer *w, const char *name, uint64_t at, uint32_t crc,
                                    uint64_t bytes)
{
  size_t length = strlen(name);
  bool wide = bytes >= UINT32_MAX || at >= UINT32_MAX;
  TRY(directory_room(w, ENTRY_BYTES + length + 28));
  char *start = w->directory + w->bytes, *p = start;
  p = put_bytes(p, "PK\1\2", 4);
  p = put_zip_number(p, 3 << 8 | 45, 2); /* made on a Unix */
  p = put_common(p, crc, bytes, length, wide);
  p = put_zip_number(p, wide ? 28 : 0, 2);
  p = put_zip_number(p, 0, 6);                       /* no comment; the first part; no attributes */
  p = put_zip_number(p, UINT64_C(0100600) << 16, 4); /* -rw------- */
  p = put_zip_number(p, wide ? UINT32_MAX : at, 4);
  p = put_bytes(p, name, length);
  if (wide) {
    p = put_zip_number(put_zip_number(p, 1, 2), 24, 2);
    p = put_zip_number(put_zip_number(put_zip_number(p, bytes, 8), bytes, 8), at, 8);
  }
  w->bytes += (size_t)(p - start);
  w->count++;
  return WEIR_OK;
}

weir_status zip_put(zip_writer *w, const char *name, const void *head, size_t head_bytes,
                    const void *data, uint64_t data_bytes)
{
  char local[LOCAL_BYTES + 20];
  size_t length = strlen(name);
  uint64_t at = w->file->bytes, bytes = head_bytes + data_bytes;
  bool wide = bytes >= UINT32_MAX;
  if (length > UINT16_MAX)
    return fail_invalid("a name of %zu bytes is too long for a zip file", length);
  uint32_t crc = crc32_of(crc32_of(0, head, head_bytes), data, data_bytes);
  TRY(put_in_directory(w, name, at, crc, bytes));
  char *p = put_bytes(local, "PK\3\4", 4);
  p = put_zip_number(put_common(p, crc, bytes, length, wide), wide ? 20 : 0, 2);
  weir_status st = file_write(w->file, local, (uint64_t)(p - local));
  if (!st) st = file_write(w->file, name, length);
  if (!st && wide) {
    p = put_zip_number(put_zip_number(local, 1, 2), 16, 2);
    p = put_zip_number(put_zip_number(p, bytes, 8), bytes, 8);
    st = file_write(w->file, local, (uint64_t)(p - local));
  }
  if (!st) st = file_write(w->file, head, head_bytes);
  return st ? st : file_write(w->file, data, data_bytes);
}

weir_status zip_finish(zip_writer *w, weir_status st)
{
  char end[END64_BYTES + LOCATOR_BYTES + END_BYTES], *p = end;
  uint64_t at = w->file->bytes, count = w->count;
  if (!st) st = file_write(w->file, w->directory, w->bytes);
  if (at >= UINT32_MAX || count >= UINT16_MAX || w->bytes >= UINT32_MAX) {
    p = put_bytes(p, "PK\6\6", 4);
    p = put_zip_number(p, END64_BYTES - 12, 8);
    p = put_zip_number(put_zip_number(p, 3 << 8 | 45, 2), 45, 2);
    p = put_zip_number(p, 0, 8);
    p = put_zip_number(put_zip_number(p, count, 8), count, 8);
    p = put_zip_number(put_zip_number(p, w->bytes, 8), at, 8);
    p = put_bytes(p, "PK\6\7", 4);
    p = put_zip_number(put_zip_number(p, 0, 4), at + w->bytes, 8);
    p = put_zip_number(p, 1, 4);
  }
  p = put_bytes(p, "PK\5\6", 4);
  p = put_zip_number(p, 0, 4);
  uint64_t few = count < UINT16_MAX ? count : UINT16_MAX;
  p = put_zip_number(put_zip_number(p, few, 2), few, 2);
  p = put_zip_number(put_zip_number(p, narrow(w->bytes), 4), narrow(at), 4);
  p = put_zip_number(p, 0, 2);
  if (!st) st = file_write(w->file, end, (uint64_t)(p - end));
  free(w->directory);
  w->directory = NULL;
  return st;
}

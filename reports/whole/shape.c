/* shape.c: see shape.h. */
#include "reports/whole/shape.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/util.h"

enum { DEEPEST = 16 /* structs in structs */ };

static void *member_at(const void *object, size_t offset)
{
  return (char *)(uintptr_t)object + offset;
}

static void *pointer_at(const void *object, size_t offset)
{
  void *p;
  memcpy(&p, member_at(object, offset), sizeof(p));
  return p;
}

static void put_pointer(void *object, size_t offset, const void *p)
{
  memcpy(member_at(object, offset), &p, sizeof(p));
}

/* A number of that width; the bits above it are those of its sign. */
static uint64_t number_at(const void *at, size_t bytes, bool sign)
{
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;
  switch (bytes) {
  case 1:
    memcpy(&u8, at, 1);
    return sign ? (uint64_t)(int64_t)(int8_t)u8 : u8;
  case 2:
    memcpy(&u16, at, 2);
    return sign ? (uint64_t)(int64_t)(int16_t)u16 : u16;
  case 4:
    memcpy(&u32, at, 4);
    return sign ? (uint64_t)(int64_t)(int32_t)u32 : u32;
  default:
    memcpy(&u64, at, 8);
    return u64;
  }
}

static void put_number(void *at, size_t bytes, uint64_t n)
{
  const uint8_t u8 = (uint8_t)n;
  const uint16_t u16 = (uint16_t)n;
  const uint32_t u32 = (uint32_t)n;
  memcpy(at,
         bytes == 1   ? (const void *)&u8
         : bytes == 2 ? (const void *)&u16
         : bytes == 4 ? (const void *)&u32
                      : &n,
         bytes);
}

/* How many elements a list, or an array of which some are filled, has. */
static uint64_t many_of(const wr_member *f, const void *object)
{
  return f->many ? number_at(member_at(object, f->many - 1), f->many_bytes, false) : f->count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_bytes(wr_shape_bytes *out, const void *bytes, size_t count)
{
  if (out->failed) return;
  out->failed = (out->most && out->count + count > out->most) ||
                !wr_grow(&out->data, &out->capacity, out->count + count, 1);
  if (out->failed || !count) return;
  memcpy(out->data + out->count, bytes, count);
  out->count += count;
}

static void put_varint(wr_shape_bytes *out, uint64_t n)
{
  unsigned char bytes[10];
  size_t count = 0;
  for (; n > 127; n >>= 7)
    bytes[count++] = (unsigned char)(n & 127) | 128;
  bytes[count++] = (unsigned char)n;
  put_bytes(out, bytes, count);
}

static void put_text(wr_shape_bytes *out, const char *text)
{
  size_t bytes = strlen(text);
  put_varint(out, bytes);
  put_bytes(out, text, bytes);
}

/* 0: NULL; else its place in the set, from 1. */
static void put_word(wr_shape_bytes *out, const wr_member *f, const char *word)
{
  size_t i = 0;
  const char *known = NULL;
  while (word && (known = f->word(i)) && strcmp(known, word) != 0)
    i++;
  out->failed |= word && !known;
  put_varint(out, word ? i + 1 : 0);
}

static void put_one_of(wr_shape_bytes *out, const wr_member *f, const void *root, const char *p)
{
  const char *list = pointer_at(root, f->root_list);
  uint64_t all = number_at(member_at(root, f->root_count), sizeof(size_t), false);
  size_t i = 0;
  while (i < all && list + i * f->element != p)
    i++;
  out->failed |= i == all;
  put_varint(out, i);
}

static void put_struct(wr_shape_bytes *out, const wr_shape *shape, const void *object,
                       const void *root);

static void put_numbers(wr_shape_bytes *out, const wr_member *f, const void *at)
{
  for (size_t i = 0; i < f->count; i++) {
    uint64_t n = number_at((const char *)at + i * f->bytes, f->bytes, f->sign);
    put_varint(out, f->sign ? n << 1 ^ (uint64_t)((int64_t)n >> 63) : n);
  }
}

static bool is_zero(const char *object, size_t bytes)
{
  return !object[0] && !memcmp(object, object + 1, bytes - 1);
}

/* Each that is not all zero after how many that are, plus 1; 0 ends them. */
static void put_sparse(wr_shape_bytes *out, const wr_member *f, const char *list, const void *root)
{
  size_t before = 0;
  for (size_t i = 0; list && i < f->count; i++) {
    const char *at = list + i * f->of->bytes;
    if (is_zero(at, f->of->bytes)) continue;
    put_varint(out, i - before + 1);
    put_struct(out, f->of, at, root);
    before = i + 1;
  }
  put_varint(out, 0);
}

static void put_structs(wr_shape_bytes *out, const wr_member *f, const void *object,
                        const char *first, const void *root)
{
  uint64_t many = many_of(f, object);
  out->failed |= (f->kind == WR_MEMBER_STRUCT && many > f->count) || (f->many && many < f->least);
  if (f->many) put_varint(out, many);
  if (many) many += f->extra;
  for (uint64_t i = 0; i < many && !out->failed; i++)
    put_struct(out, f->of, first + i * f->of->bytes, root);
}

static void put_member(wr_shape_bytes *out, const wr_member *f, const void *object,
                       const void *root)
{
  void *at = member_at(object, f->offset);
  if (f->kind == WR_MEMBER_APART) return;
  if (f->kind == WR_MEMBER_NUMBER) {
    put_numbers(out, f, at);
    return;
  }
  if (f->kind == WR_MEMBER_SHARE) {
    put_bytes(out, at, f->bytes);
    return;
  }
  if (f->kind == WR_MEMBER_STRUCT) {
    put_structs(out, f, object, at, root);
    return;
  }
  const char *p = pointer_at(object, f->offset);
  if (f->kind == WR_MEMBER_LIST) put_structs(out, f, object, p, root);
  if (f->kind == WR_MEMBER_SPARSE) put_sparse(out, f, p, root);
  if (f->kind == WR_MEMBER_WORD) put_word(out, f, p);
  if (f->kind == WR_MEMBER_ONE_OF) put_one_of(out, f, root, p);
  bool needed = f->kind == WR_MEMBER_TEXT || f->kind == WR_MEMBER_POOLED;
  out->failed |= needed && !p;
  if (f->kind == WR_MEMBER_MARK || f->kind == WR_MEMBER_POINTER || f->kind == WR_MEMBER_MAYBE)
    put_varint(out, p != NULL);
  if (p && (needed || f->kind == WR_MEMBER_MAYBE)) put_text(out, p);
  if (p && f->kind == WR_MEMBER_POINTER) put_struct(out, f->of, p, root);
}

static void put_struct(wr_shape_bytes *out, const wr_shape *shape, const void *object,
                       const void *root)
{
  for (size_t i = 0; i < shape->count && !out->failed; i++)
    put_member(out, &shape->member[i], object, root);
}

void wr_shape_write(wr_shape_bytes *out, const wr_shape *shape, const void *root)
{
  put_struct(out, shape, root, root);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct reader {
  const unsigned char *at, *end;
  void *root;
  size_t pool_room; /* of the root's list of texts */
  int depth;
  bool bad;
} reader;

static uint64_t take_varint(reader *r)
{
  uint64_t n = 0;
  for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
    unsigned char byte = *r->at++;
    if (shift == 63 && byte > 1) break;
    n |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return n;
  }
  r->bad = true;
  return 0;
}

static uint64_t take_below(reader *r, uint64_t most)
{
  uint64_t n = take_varint(r);
  r->bad |= n > most;
  return r->bad ? 0 : n;
}

/* A text (new), or NULL. */
static char *take_text(reader *r)
{
  uint64_t bytes = take_below(r, (uint64_t)(r->end - r->at));
  if (r->bad || bytes > (uint64_t)(r->end - r->at)) {
    r->bad = true;
    return NULL;
  }
  char *text = wr_text((const char *)r->at, bytes, true);
  r->bad = !text || strlen(text) != bytes || memcmp(text, r->at, bytes) != 0;
  r->at += bytes;
  if (!r->bad) return text;
  free(text);
  return NULL;
}

static uint64_t count_at(const void *object, size_t offset)
{
  return number_at(member_at(object, offset), sizeof(size_t), false);
}

/* What a number of that member may be at most. */
static uint64_t greatest(const reader *r, const wr_member *f, const void *object, bool *none)
{
  uint64_t width = f->bytes == 8 ? UINT64_MAX : (UINT64_C(1) << f->bytes * 8) - 1;
  uint64_t most = f->most                    ? f->most
                  : f->sign && f->bytes == 8 ? WR_SHAPE_MOST
                  : f->sign                  ? width >> 2
                                             : width;
  if (f->below) {
    uint64_t all = count_at(r->root, f->below - 1);
    *none = !all;
    most = all ? all - 1 : 0;
  }
  if (f->up_to) most = count_at(r->root, f->up_to - 1);
  if (f->up_to_own) most = number_at(member_at(object, f->up_to_own - 1), f->many_bytes, false);
  return most;
}

static void take_numbers(reader *r, const wr_member *f, void *object)
{
  bool none = false;
  const uint64_t most = greatest(r, f, object, &none);
  r->bad |= none;
  for (size_t i = 0; i < f->count && !r->bad; i++) {
    uint64_t n = take_varint(r), size = n;
    if (f->sign) n = n >> 1 ^ (0 - (n & 1));
    if (f->sign) size = n >> 63 ? 0 - n : n;
    r->bad |= size > most;
    if (!r->bad) put_number(member_at(object, f->offset + i * f->bytes), f->bytes, n);
  }
}

/* What is 0 of 0 is no number, and is taken, too. */
static void take_share(reader *r, const wr_member *f, void *object)
{
  double share = 0;
  r->bad |= (size_t)(r->end - r->at) < sizeof(share) || f->bytes != sizeof(share);
  if (r->bad) return;
  memcpy(&share, r->at, sizeof(share));
  r->at += sizeof(share);
  r->bad |= share < 0 || share > 1;
  if (!r->bad) memcpy(member_at(object, f->offset), &share, sizeof(share));
}

static void take_pooled(reader *r, const wr_member *f, void *object)
{
  char **list = pointer_at(r->root, f->root_list), *text = take_text(r);
  size_t count = (size_t)count_at(r->root, f->root_count);
  if (!text || !wr_grow(&list, &r->pool_room, count + 1, sizeof(*list))) {
    free(text);
    r->bad = true;
    return;
  }
  list[count++] = text;
  put_pointer(r->root, f->root_list, list);
  put_number(member_at(r->root, f->root_count), sizeof(size_t), count);
  put_pointer(object, f->offset, text);
}

static void take_word(reader *r, const wr_member *f, void *object)
{
  uint64_t number = take_varint(r);
  const char *word = NULL;
  for (uint64_t i = 0; i < number && !r->bad; i++) {
    word = f->word(i);
    r->bad |= !word;
  }
  put_pointer(object, f->offset, word);
}

static void take_struct(reader *r, const wr_shape *shape, void *object);

/* Bytes that one has at least. */
static size_t least_bytes(const wr_shape *shape)
{
  size_t bytes = 0;
  for (size_t i = 0; i < shape->count; i++) {
    const wr_member *f = &shape->member[i];
    if (f->kind == WR_MEMBER_NUMBER)
      bytes += f->count;
    else if (f->kind == WR_MEMBER_STRUCT && !f->many)
      bytes += f->count * least_bytes(f->of);
    else if (f->kind != WR_MEMBER_APART)
      bytes++;
  }
  return bytes ? bytes : 1;
}

static void take_list(reader *r, const wr_member *f, void *object)
{
  uint64_t many = take_varint(r), room = (uint64_t)(r->end - r->at) / least_bytes(f->of);
  r->bad |= many > room || many >> (f->many_bytes * 8 - 1) || many < f->least;
  if (r->bad) return;
  char *list = calloc(many + f->extra + 1, f->of->bytes);
  r->bad = !list;
  if (r->bad) return;
  put_pointer(object, f->offset, list);
  put_number(member_at(object, f->many - 1), f->many_bytes, many);
  if (f->room) put_number(member_at(object, f->room - 1), sizeof(size_t), many);
  if (many) many += f->extra;
  for (uint64_t i = 0; i < many && !r->bad; i++)
    take_struct(r, f->of, list + i * f->of->bytes);
}

static void take_sparse(reader *r, const wr_member *f, void *object)
{
  char *list = calloc(f->count, f->of->bytes);
  r->bad |= !list;
  put_pointer(object, f->offset, list);
  uint64_t at = 0;
  while (!r->bad) {
    uint64_t more = take_below(r, f->count - at);
    if (!more) return;
    at += more;
    take_struct(r, f->of, list + (at - 1) * f->of->bytes);
  }
}

static void take_structs(reader *r, const wr_member *f, void *object)
{
  uint64_t many = f->many ? take_below(r, f->count) : f->count;
  r->bad |= f->many && many < f->least;
  if (f->many && !r->bad) put_number(member_at(object, f->many - 1), f->many_bytes, many);
  for (uint64_t i = 0; i < many && !r->bad; i++)
    take_struct(r, f->of, member_at(object, f->offset + i * f->of->bytes));
}

static void take_one_of(reader *r, const wr_member *f, void *object)
{
  uint64_t all = count_at(r->root, f->root_count), at = take_varint(r);
  r->bad |= at >= all;
  if (!r->bad)
    put_pointer(object, f->offset, (char *)pointer_at(r->root, f->root_list) + at * f->element);
}

static void take_pointer(reader *r, const wr_member *f, void *object)
{
  bool there = take_below(r, 1) != 0;
  if (!there || r->bad) return;
  if (f->kind == WR_MEMBER_MARK) {
    put_pointer(object, f->offset, "");
  } else if (f->kind == WR_MEMBER_MAYBE) {
    put_pointer(object, f->offset, take_text(r));
  } else {
    void *one = calloc(1, f->of->bytes);
    r->bad = !one;
    put_pointer(object, f->offset, one);
    if (one) take_struct(r, f->of, one);
  }
}

static void take_member(reader *r, const wr_member *f, void *object)
{
  switch (f->kind) {
  case WR_MEMBER_NUMBER:
    take_numbers(r, f, object);
    break;
  case WR_MEMBER_SHARE:
    take_share(r, f, object);
    break;
  case WR_MEMBER_TEXT:
    put_pointer(object, f->offset, take_text(r));
    break;
  case WR_MEMBER_POOLED:
    take_pooled(r, f, object);
    break;
  case WR_MEMBER_WORD:
    take_word(r, f, object);
    break;
  case WR_MEMBER_ONE_OF:
    take_one_of(r, f, object);
    break;
  case WR_MEMBER_STRUCT:
    take_structs(r, f, object);
    break;
  case WR_MEMBER_LIST:
    take_list(r, f, object);
    break;
  case WR_MEMBER_SPARSE:
    take_sparse(r, f, object);
    break;
  case WR_MEMBER_MARK:
  case WR_MEMBER_MAYBE:
  case WR_MEMBER_POINTER:
    take_pointer(r, f, object);
    break;
  case WR_MEMBER_APART:
    break;
  }
}

static void take_struct(reader *r, const wr_shape *shape, void *object)
{
  r->bad |= ++r->depth > DEEPEST;
  for (size_t i = 0; i < shape->count && !r->bad; i++)
    take_member(r, &shape->member[i], object);
  r->depth--;
}

bool wr_shape_read(const void *bytes, size_t count, const wr_shape *shape, void *root)
{
  reader r = {.at = bytes, .end = (const unsigned char *)bytes + count, .root = root};
  take_struct(&r, shape, root);
  return !r.bad && r.at == r.end;
}

/* ---- what it is ------------------------------------------------------------------------------ */

uint64_t wr_shape_hash(uint64_t hash, const wr_shape *shape)
{
  hash = hash_mix(wr_hash_text(hash, shape->name), shape->bytes);
  for (size_t i = 0; i < shape->count; i++) {
    const wr_member *f = &shape->member[i];
    const uint64_t numbers[] = {(uint64_t)f->kind, f->offset,    f->bytes,      f->count,
                                f->sign,           f->most,      f->many,       f->least,
                                f->extra,          f->room,      f->below,      f->up_to,
                                f->up_to_own,      f->root_list, f->root_count, f->element};
    hash = wr_hash_text(hash, f->name);
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
      hash = hash_mix(hash, numbers[k]);
    for (size_t k = 0; f->word && f->word(k); k++)
      hash = wr_hash_text(hash, f->word(k));
    if (f->of) hash = wr_shape_hash(hash, f->of);
  }
  return hash;
}

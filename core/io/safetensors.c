/* safetensors.c: .safetensors files. The format is that of its documentation ("Format", as of
 * version 0.5): the length of the header (8 bytes, least significant first), the header (JSON), the
 * tensors' bytes. The header has a key a tensor, with dtype, shape and data_offsets ([begin, end)
 * from the header's end), and __metadata__, text by key.
 *
 * What the format demands is checked before a byte of a tensor is read: at most 100 MB of header,
 * which begins with {; no key twice; offsets that follow from dtype and shape, and together cover
 * all bytes to the end of the file, with neither hole nor overlap. As the format's own reader does,
 * unknown keys within a tensor's entry are skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/stream/async_error.h"
#include "core/base/dump.h"
#include "core/base/json.h"
#include "core/io/foreign.h"
#include "core/io/named.h"
#include "core/io/safetensors.h"

enum { HEADER_MOST = 100000000 };

#define METADATA "__metadata__"

static const char *const codes[WEIR_DTYPES] = {
    [WEIR_UINT8] = "U8",    [WEIR_INT8] = "I8",      [WEIR_INT16] = "I16",
    [WEIR_INT32] = "I32",   [WEIR_INT64] = "I64",    [WEIR_FLOAT16] = "F16",
    [WEIR_FLOAT32] = "F32", [WEIR_FLOAT64] = "F64",  [WEIR_COMPLEX64] = "C64",
    [WEIR_BOOL] = "BOOL",   [WEIR_BFLOAT16] = "BF16"};

/* ---- the header, read ------------------------------------------------------------------------ */

static weir_status wrong_entry(const st_header *h, const st_entry *e, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: tensor '%.100s' %s", h->file->path, e->name, what);
}

static weir_status read_dtype(json_reader *j, st_entry *e)
{
  TRY(json_reader_string(j, &e->code));
  for (int i = 1; i < WEIR_DTYPES; i++)
    if (!strcmp(e->code, codes[i])) e->dtype = (weir_dtype)i;
  if (e->dtype) return WEIR_OK;
  e->foreign = (uint8_t)foreign_find(FOREIGN_IN_SAFETENSORS, e->code);
  if (!e->foreign) e->foreign = FOREIGN_OTHER;
  return WEIR_OK;
}

static weir_status read_shape(const st_header *h, json_reader *j, st_entry *e)
{
  bool more;
  uint64_t size;
  weir_status st = json_reader_open(j, '[');
  while (!st && !(st = json_reader_next(j, ']', &more)) && more) {
    if (e->shape.count == WEIR_MAX_DIMS)
      return fail_unsupported("%s: tensor '%.100s' has more than %d dimensions", h->file->path,
                              e->name, WEIR_MAX_DIMS);
    st = json_reader_unsigned(j, &size);
    if (!st && size > INT64_MAX) st = wrong_entry(h, e, "has a size that is too large");
    if (!st) e->shape.size[e->shape.count++] = (int64_t)size;
  }
  return st;
}

static weir_status read_offsets(const st_header *h, json_reader *j, st_entry *e)
{
  uint64_t offsets[2] = {0, 0};
  int n = 0;
  bool more;
  weir_status st = json_reader_open(j, '[');
  while (!st && !(st = json_reader_next(j, ']', &more)) && more)
    st = n < 2 ? json_reader_unsigned(j, &offsets[n++])
               : wrong_entry(h, e, "has more than two data_offsets");
  if (!st && n != 2) st = wrong_entry(h, e, "has less than two data_offsets");
  e->begin = offsets[0];
  e->end = offsets[1];
  return st;
}

/* What follows from dtype and shape. */
static weir_status check_entry(const st_header *h, st_entry *e)
{
  int64_t numel;
  if (shape_numel(&numel, e->shape, e->dtype ? e->dtype : WEIR_INT64))
    return wrong_entry(h, e, "has a shape that overflows");
  size_t item = e->dtype ? itemsize(e->dtype) : foreign_size(e->foreign);
  uint64_t bytes = (uint64_t)numel * item, data = h->file->bytes - 8 - h->bytes;
  if (!item) bytes = e->end - e->begin; /* of elements of unknown size */
  if (e->begin > e->end || e->end > data || e->end - e->begin != bytes)
    return weir_fail(
        WEIR_ECORRUPT,
        "%s: tensor '%.100s' needs %llu bytes and has data_offsets [%llu, %llu] of %llu",
        h->file->path, e->name, (unsigned long long)bytes, (unsigned long long)e->begin,
        (unsigned long long)e->end, (unsigned long long)data);
  return WEIR_OK;
}

static weir_status read_entry(const st_header *h, json_reader *j, st_entry *e)
{
  static const char *const keys[] = {"dtype", "shape", "data_offsets"};
  unsigned seen = 0;
  bool more;
  char *key;
  weir_status st = json_reader_open(j, '{');
  while (!st && !(st = json_reader_next(j, '}', &more)) && more) {
    int k = 0;
    if ((st = json_reader_key(j, &key))) return st;
    while (k < 3 && strcmp(key, keys[k]) != 0)
      k++;
    if (k < 3 && seen >> k & 1) return wrong_entry(h, e, "has a key twice");
    seen |= 1u << k;
    st = k == 0   ? read_dtype(j, e)
         : k == 1 ? read_shape(h, j, e)
         : k == 2 ? read_offsets(h, j, e)
                  : json_reader_skip(j);
  }
  if (!st && (seen & 7) != 7) st = wrong_entry(h, e, "lacks dtype, shape or data_offsets");
  return st ? st : check_entry(h, e);
}

static weir_status read_metadata(const st_header *h, json_reader *j)
{
  bool more;
  char *key, *text;
  weir_status st = json_reader_open(j, '{');
  while (!st && !(st = json_reader_next(j, '}', &more)) && more) {
    if ((st = json_reader_key(j, &key)) || (st = json_reader_string(j, &text))) return st;
    if (weir_tensors_metadata(h->set, key))
      return weir_fail(WEIR_ECORRUPT, "%s: the key '%.100s' of the metadata is there twice",
                       h->file->path, key);
    st = weir_tensors_set_metadata(h->set, key, text);
  }
  return st;
}

static weir_status new_entry(st_header *h, st_entry **out)
{
  if (h->count == h->room) {
    size_t room = h->room ? h->room * 2 : 64;
    st_entry *more = realloc(h->entries, room * sizeof *more);
    if (!more) return weir_fail(WEIR_ENOMEM, "no host memory left for %zu tensors", room);
    h->entries = more;
    h->room = room;
  }
  *out = &h->entries[h->count++];
  **out = (st_entry){.name = NULL};
  return WEIR_OK;
}

static weir_status parse_header(st_header *h)
{
  json_reader j = json_reader_of(h->text, h->bytes);
  bool more, metadata = false;
  if (!h->bytes || *h->text != '{')
    return weir_fail(WEIR_ECORRUPT, "%s: the header does not begin with {", h->file->path);
  weir_status st = json_reader_open(&j, '{');
  while (!st && !(st = json_reader_next(&j, '}', &more)) && more) {
    char *name;
    st_entry *e = NULL;
    if ((st = json_reader_key(&j, &name))) break;
    if (strcmp(name, METADATA) != 0) {
      st = new_entry(h, &e);
      if (e) {
        e->name = name;
        st = read_entry(h, &j, e);
      }
    } else {
      if (metadata)
        return weir_fail(WEIR_ECORRUPT, "%s: " METADATA " is there twice", h->file->path);
      metadata = true;
      st = read_metadata(h, &j);
    }
  }
  return st ? st : json_reader_finish(&j);
}

/* ---- the header as a whole ------------------------------------------------------------------- */

static int by_file_place(const void *a, const void *b)
{
  const st_entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const st_entry *)a)->name, ((const st_entry *)b)->name);
}

/* No name twice; the entries are then in the order of their bytes, without hole or overlap. */
static weir_status check_all(const st_header *h)
{
  if (h->count) qsort(h->entries, h->count, sizeof *h->entries, by_name);
  for (size_t i = 1; i < h->count; i++)
    if (!by_name(&h->entries[i - 1], &h->entries[i]))
      return wrong_entry(h, &h->entries[i], "is there twice");
  if (h->count) qsort(h->entries, h->count, sizeof *h->entries, by_file_place);
  uint64_t at = 0, data = h->file->bytes - 8 - h->bytes;
  for (size_t i = 0; i < h->count; at = h->entries[i++].end)
    if (h->entries[i].begin != at)
      return wrong_entry(h, &h->entries[i],
                         h->entries[i].begin < at ? "overlaps with another"
                                                  : "begins behind a hole");
  if (at != data)
    return weir_fail(WEIR_ECORRUPT, "%s: no tensor has the last %llu bytes", h->file->path,
                     (unsigned long long)(data - at));
  return WEIR_OK;
}

weir_status st_header_read(st_header *h)
{
  unsigned char length[8];
  const tensor_file *f = h->file;
  if (f->bytes < sizeof length)
    return weir_fail(WEIR_ECORRUPT, "%s is not a .safetensors file: it has %llu bytes", f->path,
                     (unsigned long long)f->bytes);
  TRY(file_read(f, length, 0, sizeof length));
  for (int i = 7; i >= 0; i--)
    h->bytes = h->bytes << 8 | length[i];
  if (h->bytes > HEADER_MOST || h->bytes > f->bytes - sizeof length)
    return weir_fail(
        WEIR_ECORRUPT,
        "%s is not a .safetensors file, or damaged: a header of %llu bytes in a file of "
        "%llu (%d are the most)",
        f->path, (unsigned long long)h->bytes, (unsigned long long)f->bytes, HEADER_MOST);
  h->text = malloc(h->bytes + 1);
  if (!h->text)
    return weir_fail(WEIR_ENOMEM, "no host memory left for a header of %llu bytes",
                     (unsigned long long)h->bytes);
  weir_status st = file_read(f, h->text, sizeof length, h->bytes);
  if (!st) st = parse_header(h);
  return st ? st : check_all(h);
}

void st_header_free(st_header *h)
{
  free(h->entries);
  free(h->text);
  h->entries = NULL;
  h->text = NULL;
  h->count = 0;
}

file_array st_array(const st_header *h, const st_entry *e)
{
  file_array a = {.dtype = e->dtype,
                  .shape = e->shape,
                  .at = sizeof(uint64_t) + h->bytes + e->begin,
                  .foreign = e->foreign,
                  .item = foreign_size(e->foreign)};
  int64_t numel = 0;
  if (e->foreign != FOREIGN_OTHER || shape_numel(&numel, e->shape, WEIR_UINT8)) return a;
  uint64_t bytes = e->end - e->begin;
  if (numel && bytes && bytes % (uint64_t)numel == 0) {
    a.item = bytes / (uint64_t)numel;
  } else { /* several in a byte, or none */
    a.item = 1;
    a.shape = weir_shape((int64_t)bytes);
  }
  return a;
}

/* ---- writing ----------------------------------------------------------------------------------
 * Tensors of larger elements first, as the format's own writer orders them: each is aligned then.
 */

typedef struct place {
  const named_item *item; /* borrowed: the set's */
} place;

static int by_element_size(const void *a, const void *b)
{
  const named_item *x = ((const place *)a)->item, *y = ((const place *)b)->item;
  size_t m = itemsize(((weir_tensor *)x->value)->dtype);
  size_t n = itemsize(((weir_tensor *)y->value)->dtype);
  return m != n ? (m > n ? -1 : 1) : strcmp(x->name, y->name);
}

static void dump_entry(dump_writer *d, const weir_tensor *t, uint64_t *at)
{
  dump_begin(d, '{');
  dump_key_text(d, "dtype", codes[t->dtype]);
  dump_key(d, "shape");
  dump_begin(d, '[');
  for (int i = 0; i < t->dims; i++)
    dump_unsigned(d, (uint64_t)t->size[i]);
  dump_end(d, ']');
  dump_key(d, "data_offsets");
  dump_begin(d, '[');
  dump_unsigned(d, *at);
  *at += (uint64_t)t->numel * itemsize(t->dtype);
  dump_unsigned(d, *at);
  dump_end(d, ']');
  dump_end(d, '}');
}

static void dump_header(FILE *to, const weir_tensors *set, const place *order)
{
  dump_writer d;
  uint64_t at = 0;
  dump_start(&d, to, false);
  dump_begin(&d, '{');
  if (set->metadata.count) {
    dump_key(&d, METADATA);
    dump_begin(&d, '{');
    for (size_t i = 0; i < set->metadata.count; i++)
      dump_key_text(&d, set->metadata.items[i].name, set->metadata.items[i].value);
    dump_end(&d, '}');
  }
  for (size_t i = 0; i < set->tensors.count; i++) {
    dump_key(&d, order[i].item->name);
    dump_entry(&d, order[i].item->value, &at);
  }
  dump_end(&d, '}');
}

/* *out is new: the length and the header, padded so that the elements are aligned. */
static weir_status make_safetensors_header(char **out, size_t *bytes, const weir_tensors *set,
                                           const place *order)
{
  static const char room[8] = {0};
  *out = NULL;
  FILE *to = open_memstream(out, bytes);
  bool good = to && fwrite(room, 1, sizeof room, to) == sizeof room;
  if (good) {
    dump_header(to, set, order);
    long at = ftell(to);
    good = at > 0;
    for (; good && at % 8; at++)
      good = fputc(' ', to) != EOF;
    good = good && !ferror(to);
  }
  if (to && fclose(to)) good = false;
  if (!good) return weir_fail(WEIR_ENOMEM, "no host memory left for the header");
  if (*bytes - 8 > HEADER_MOST)
    return fail_invalid("the header would have %zu bytes; %d are the most", *bytes - 8,
                        HEADER_MOST);
  for (int i = 0; i < 8; i++)
    (*out)[i] = (char)((*bytes - 8) >> 8 * i);
  return WEIR_OK;
}

weir_status weir_safetensors_save(const char *path, const weir_tensors *set)
{
  WEIR_OP_ON(path, set);
  tensor_file f;
  char *head = NULL;
  size_t bytes = 0;
  size_t count = set->tensors.count;
  if (weir_tensors_get(set, METADATA)) return fail_invalid("no tensor can have the name " METADATA);
  place *order = calloc(count + 1, sizeof *order);
  if (!order) return weir_fail(WEIR_ENOMEM, "no host memory left for %zu names", count);
  for (size_t i = 0; i < count; i++)
    order[i].item = &set->tensors.items[i];
  if (count) qsort(order, count, sizeof *order, by_element_size);
  weir_status st = make_safetensors_header(&head, &bytes, set, order);
  if (!st && !(st = file_begin(&f, path))) {
    st = file_write(&f, head, bytes);
    for (size_t i = 0; !st && i < count; i++)
      st = file_put(&f, order[i].item->value, false);
    st = file_end(&f, st);
  }
  free(head);
  free(order);
  return st;
}

/* npy.c: .npy files. The format is that of NumPy's documentation, "numpy.lib.format" (versions 1.0,
 * 2.0 and 3.0): a magic string, the version, the length of a header, the header, the elements.
 *
 * The header is a Python literal, a dict with three keys: descr, fortran_order and shape. Only that
 * is read, not Python: what does not look like it is an error that names the byte. Structured and
 * object types, and numbers that no tensor has, are distinguished from damage by WEIR_ENOTSUP. */
#include "core/stream/async_error.h"
#include "core/io/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 6, HEADER_MOST = 1 << 20, ALIGN = 64, TEXT = NPY_KIND };

static const char magic[MAGIC] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};

/* NumPy's letter and size for each dtype, as it writes them, and what it takes for the same: a
 * letter alone, a name. bfloat16 has none. */
static const struct kind {
  const char *code, *letter, *name;
  weir_dtype dtype;
} kinds[] = {{"b1", "?", "bool", WEIR_BOOL},          {"i1", "b", "int8", WEIR_INT8},
             {"u1", "B", "uint8", WEIR_UINT8},        {"i2", "h", "int16", WEIR_INT16},
             {"i4", "i", "int32", WEIR_INT32},        {"i8", "q", "int64", WEIR_INT64},
             {"i8", "l", "int64", WEIR_INT64},        {"f2", "e", "float16", WEIR_FLOAT16},
             {"f4", "f", "float32", WEIR_FLOAT32},    {"f8", "d", "float64", WEIR_FLOAT64},
             {"c8", "F", "complex64", WEIR_COMPLEX64}};

/* ---- the header ------------------------------------------------------------------------------ */

typedef struct literal {
  const char *start, *at, *end; /* borrowed; a NUL stands at the end */
  const char *path;             /* borrowed */
  char *kind;                   /* borrowed, NPY_KIND bytes: what no tensor is of, once found */
} literal;

static weir_status wrong_literal(const literal *l, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: the .npy header, byte %zu: %s", l->path,
                   (size_t)(l->at - l->start), what);
}

static void skip_literal_space(literal *l)
{
  while (l->at < l->end && (*l->at == ' ' || *l->at == '\n' || *l->at == '\t' || *l->at == '\r'))
    l->at++;
}

static bool accept_literal_mark(literal *l, char c)
{
  skip_literal_space(l);
  if (l->at == l->end || *l->at != c) return false;
  l->at++;
  return true;
}

/* A string of either quotes, without escapes; Python 2's may be marked as text. */
static weir_status parse_string(literal *l, char out[TEXT])
{
  skip_literal_space(l);
  if (l->end - l->at > 1 && *l->at == 'u' && (l->at[1] == '\'' || l->at[1] == '"')) l->at++;
  char quote = accept_literal_mark(l, '\'') ? '\'' : accept_literal_mark(l, '"') ? '"' : 0;
  size_t n = 0;
  if (!quote) return wrong_literal(l, "a string is expected");
  for (; l->at < l->end && *l->at != quote && n < TEXT - 1; l->at++) {
    if (*l->at == '\\' || (unsigned char)*l->at < ' ')
      return wrong_literal(l, "no such character is expected");
    out[n++] = *l->at;
  }
  out[n] = 0;
  return accept_literal_mark(l, quote) ? WEIR_OK : wrong_literal(l, "the string does not end");
}

static weir_status no_tensor(const literal *l, const char *kind)
{
  (void)snprintf(l->kind, NPY_KIND, "%s", kind);
  return WEIR_ENOTSUP;
}

static bool is_code(const char *code, bool order, const struct kind *k)
{
  return !strcmp(code, k->code) || !strcmp(code, k->letter) || (!order && !strcmp(code, k->name));
}

static enum foreign_kind find_foreign(const char *code, bool order)
{
  static const char letters[] = "HILQ";
  static const enum foreign_kind of_letter[] = {FOREIGN_UINT16, FOREIGN_UINT32, FOREIGN_UINT64,
                                                FOREIGN_UINT64};
  const char *letter = *code && !code[1] ? strchr(letters, *code) : NULL;
  if (letter) return of_letter[letter - letters];
  enum foreign_kind named = order ? FOREIGN_NONE : foreign_find(FOREIGN_IN_PT, code);
  return named ? named : foreign_find(FOREIGN_IN_NPY, code);
}

static weir_status descr(literal *l, file_array *array)
{
  char name[TEXT] = "";
  skip_literal_space(l);
  if (l->at < l->end && (*l->at == '[' || *l->at == '(' || *l->at == '{')) {
    (void)fail_unsupported("%s holds an array of structures", l->path);
    return no_tensor(l, "structures");
  }
  TRY(parse_string(l, name));
  bool order = *name && strchr("<>=|", *name);
  const char *code = name + order;
  array->swapped = *name == '>';
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (is_code(code, order, &kinds[i])) {
      array->dtype = kinds[i].dtype;
      return WEIR_OK;
    }
  array->foreign = (uint8_t)find_foreign(code, order);
  array->item = foreign_size(array->foreign);
  (void)snprintf(l->kind, NPY_KIND, "%s", name);
  if (array->foreign) return WEIR_OK;
  (void)fail_unsupported("%s holds an array of type '%s', which no tensor has", l->path, name);
  return WEIR_ENOTSUP;
}

static weir_status truth(literal *l, bool *out)
{
  skip_literal_space(l);
  size_t left = (size_t)(l->end - l->at);
  *out = left >= 4 && !memcmp(l->at, "True", 4);
  if (!*out && !(left >= 5 && !memcmp(l->at, "False", 5)))
    return wrong_literal(l, "True or False is expected");
  l->at += *out ? 4 : 5;
  return WEIR_OK;
}

static weir_status npy_number(literal *l, int64_t *out)
{
  *out = 0;
  skip_literal_space(l);
  if (l->at == l->end || *l->at < '0' || *l->at > '9')
    return wrong_literal(l, "a size is expected");
  for (; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
    int64_t d = *l->at - '0';
    if (*out > (INT64_MAX - d) / 10) return wrong_literal(l, "the size is too large");
    *out = *out * 10 + d;
  }
  if (l->at < l->end && *l->at == 'L') l->at++; /* Python 2 */
  return WEIR_OK;
}

/* A tuple: of one element only with its comma. */
static weir_status tuple(literal *l, weir_shape *shape)
{
  bool comma = true;
  *shape = (weir_shape){0};
  if (!accept_literal_mark(l, '(')) return wrong_literal(l, "a tuple is expected");
  while (!accept_literal_mark(l, ')')) {
    if (!comma) return wrong_literal(l, "a comma is expected");
    if (shape->count == WEIR_MAX_DIMS) {
      (void)fail_unsupported("%s holds an array of more than %d dimensions", l->path,
                             WEIR_MAX_DIMS);
      return no_tensor(l, "too many dimensions");
    }
    TRY(npy_number(l, &shape->size[shape->count]));
    shape->count++;
    comma = accept_literal_mark(l, ',');
  }
  return shape->count == 1 && !comma ? wrong_literal(l, "a number, where a tuple is expected")
                                     : WEIR_OK;
}

static weir_status parse_dict(literal *l, file_array *array)
{
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  unsigned seen = 0;
  bool comma = true;
  if (!accept_literal_mark(l, '{')) return wrong_literal(l, "a dict is expected");
  while (!accept_literal_mark(l, '}')) {
    char key[TEXT] = "";
    int k = 0;
    if (!comma) return wrong_literal(l, "a comma is expected");
    TRY(parse_string(l, key));
    while (k < 3 && strcmp(key, keys[k]) != 0)
      k++;
    if (k == 3 || seen >> k & 1) return wrong_literal(l, k == 3 ? "an unknown key" : "a key twice");
    if (!accept_literal_mark(l, ':')) return wrong_literal(l, "a colon is expected");
    seen |= 1u << k;
    TRY(k == 0 ? descr(l, array) : k == 1 ? truth(l, &array->fortran) : tuple(l, &array->shape));
    comma = accept_literal_mark(l, ',');
  }
  if (seen != 7)
    return wrong_literal(l, "a key is missing: descr, fortran_order and shape are needed");
  skip_literal_space(l);
  return l->at == l->end ? WEIR_OK : wrong_literal(l, "nothing more is expected");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where the header is, and how long. */
static weir_status find_header(const tensor_file *f, uint64_t *at, uint64_t *bytes)
{
  unsigned char head[12] = {0};
  uint64_t there = f->bytes < sizeof head ? f->bytes : sizeof head;
  TRY(file_read(f, head, 0, there));
  if (there < MAGIC + 4 || memcmp(head, magic, MAGIC) != 0)
    return weir_fail(WEIR_ECORRUPT, "%s is not an .npy file", f->path);
  if (head[6] < 1 || head[6] > 3 || head[7])
    return weir_fail(WEIR_EVERSION,
                     "%s is an .npy file of version %d.%d; known are 1.0, 2.0 and 3.0", f->path,
                     head[6], head[7]);
  *at = head[6] == 1 ? 10 : 12;
  *bytes = head[8] | (uint64_t)head[9] << 8;
  if (head[6] > 1) *bytes |= (uint64_t)head[10] << 16 | (uint64_t)head[11] << 24;
  if (*at > f->bytes || *bytes > f->bytes - *at)
    return weir_fail(WEIR_ECORRUPT, "%s: the .npy header of %llu bytes goes beyond the end",
                     f->path, (unsigned long long)*bytes);
  if (*bytes > HEADER_MOST)
    return weir_fail(WEIR_ECORRUPT, "%s: the .npy header has %llu bytes, more than any array needs",
                     f->path, (unsigned long long)*bytes);
  return WEIR_OK;
}

static weir_status read_header(const tensor_file *f, file_array *array, char kind[NPY_KIND])
{
  uint64_t at = 0, bytes = 0;
  TRY(find_header(f, &at, &bytes));
  char *header = malloc(bytes + 1);
  if (!header)
    return weir_fail(WEIR_ENOMEM, "no host memory left for a header of %llu bytes",
                     (unsigned long long)bytes);
  header[bytes] = 0;
  weir_status st = file_read(f, header, at, bytes);
  literal l = {header, header, header + bytes, f->path, kind};
  if (!st) st = parse_dict(&l, array);
  free(header);
  array->at = at + bytes;
  return st;
}

weir_status npy_read_file(weir_tensor **out, const tensor_file *f, const weir_options *options,
                          char kind[NPY_KIND])
{
  file_array array = {.dtype = WEIR_DTYPE_NONE};
  int64_t numel = 0;
  *kind = 0;
  weir_status st = read_header(f, &array, kind);
  if (st && st != WEIR_ENOTSUP) *kind = 0; /* damage comes first */
  if (!st && shape_numel(&numel, array.shape, array.foreign ? WEIR_INT64 : array.dtype))
    st = WEIR_ECORRUPT;
  if (st) return st;
  uint64_t bytes = (uint64_t)numel * (array.foreign ? array.item : itemsize(array.dtype));
  uint64_t left = f->bytes - array.at;
  if (bytes > left)
    st = weir_fail(WEIR_ECORRUPT, "%s holds %llu bytes of elements, its header says %llu", f->path,
                   (unsigned long long)left, (unsigned long long)bytes);
  if (st) return st;
  if (!array.foreign) return file_tensor(out, f, &array, options);
  if (!foreign_asked(array.foreign, options)) return foreign_refused(array.foreign, f->path, kind);
  *kind = 0;
  return foreign_tensor(out, f, &array, options);
}

weir_status weir_npy_read(weir_tensor **out, const char *path, const weir_options *options)
{
  WEIR_OP(out, path);
  tensor_file f;
  TRY(file_open(&f, path));
  char kind[NPY_KIND];
  return file_end(&f, npy_read_file(out, &f, options, kind));
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Dense with the first dimension innermost, and not both ways. */
static bool is_fortran(const weir_tensor *t)
{
  int64_t next = 1;
  if (t->dense) return false;
  for (int i = 0; i < t->dims; i++) {
    if (t->size[i] != 1 && t->stride[i] != next) return false;
    next *= t->size[i];
  }
  return true;
}

/* The header of version 1.0 for t, its length. */
static size_t make_npy_header(char *out, size_t room, const weir_tensor *t, const char *code)
{
  char order = itemsize(t->dtype) == 1 ? '|' : '<';
  int n = snprintf(out + 10, room - 10, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (", order,
                   code, is_fortran(t) ? "True" : "False");
  size_t at = 10 + (size_t)n;
  for (int i = 0; i < t->dims; i++)
    at += (size_t)snprintf(out + at, room - at, i ? ", %lld" : "%lld", (long long)t->size[i]);
  at += (size_t)snprintf(out + at, room - at, "%s), }", t->dims == 1 ? "," : "");
  while ((at + 1) % ALIGN)
    out[at++] = ' ';
  out[at++] = '\n';
  memcpy(out, magic, MAGIC);
  out[6] = 1;
  out[7] = 0;
  out[8] = (char)((at - 10) & 0xff);
  out[9] = (char)((at - 10) >> 8);
  return at;
}

weir_status npy_header(char out[NPY_HEADER], size_t *bytes, bool *fortran, const weir_tensor *t)
{
  const char *code = NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].dtype == t->dtype) code = kinds[i].code;
  if (!code)
    return fail_invalid("the .npy format has no %s: convert the tensor first",
                        weir_dtype_name(t->dtype));
  *bytes = make_npy_header(out, NPY_HEADER, t, code);
  *fortran = is_fortran(t);
  return WEIR_OK;
}

weir_status weir_npy_write(const char *path, const weir_tensor *t)
{
  WEIR_OP_ON(path, t);
  char header[NPY_HEADER];
  size_t bytes;
  bool fortran;
  tensor_file f;
  TRY(npy_header(header, &bytes, &fortran, t));
  TRY(file_begin(&f, path));
  weir_status st = file_write(&f, header, bytes);
  if (!st) st = file_put(&f, t, fortran);
  return file_end(&f, st);
}

/* pt.c: PyTorch's files, for the tensors in them (see core/weir/checkpoint.h).
 *
 * Such a file is a zip file with one folder: data.pkl, a pickle; data/0, data/1, ...: storages, to
 * which the pickle refers; byteorder. The pickle is read by pickle.c, which runs nothing; what it
 * makes tensors is the table here; of everything else the name alone is kept, and what would have
 * been made of it is skipped and listed.
 *
 * A storage is read when the first tensor of it is made. Tensors keep their strides and offsets,
 * which must stay within the storage. As PyTorch's own reader, this one does not ask for the sums
 * of the zip file, which PyTorch can leave out. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"
#include "core/io/foreign.h"
#include "core/io/pickle.h"
#include "core/io/zip.h"
#include "core/stream/async_error.h"

enum { PICKLE_MOST = 64 << 20, PATH_BYTES = 1024, DEPTH_MOST = 64, VISITS_MOST = 1 << 23 };

/* What a pickle may name. */
enum pt_name {
  PT_STORAGE = 1, /* with the dtype of its elements */
  PT_DICT,
  PT_TENSOR,
  PT_PARAMETER,
  PT_SIZE,
  PT_DEVICE,
  PT_DTYPE,
  PT_TENSOR_OF, /* its dtype comes as an argument */
  PT_FROM_TYPE, /* what else is called, and for what class */
  PT_FOREIGN,   /* a dtype that no tensor of Weir's has */
  PT_UNKNOWN
};

static const struct pt_known {
  const char *module, *name;
  enum pt_name what;
  weir_dtype dtype;
} known[] = {
    {"collections", "OrderedDict", PT_DICT, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_tensor_v2", PT_TENSOR, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_tensor_v3", PT_TENSOR_OF, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_parameter", PT_PARAMETER, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_parameter_with_state", PT_PARAMETER, WEIR_DTYPE_NONE},
    {"torch._tensor", "_rebuild_from_type_v2", PT_FROM_TYPE, WEIR_DTYPE_NONE},
    {"torch.storage", "UntypedStorage", PT_STORAGE, WEIR_UINT8},
    {"torch", "Size", PT_SIZE, WEIR_DTYPE_NONE},
    {"torch", "device", PT_DEVICE, WEIR_DTYPE_NONE},
    {"torch", "FloatStorage", PT_STORAGE, WEIR_FLOAT32},
    {"torch", "DoubleStorage", PT_STORAGE, WEIR_FLOAT64},
    {"torch", "HalfStorage", PT_STORAGE, WEIR_FLOAT16},
    {"torch", "BFloat16Storage", PT_STORAGE, WEIR_BFLOAT16},
    {"torch", "LongStorage", PT_STORAGE, WEIR_INT64},
    {"torch", "IntStorage", PT_STORAGE, WEIR_INT32},
    {"torch", "ShortStorage", PT_STORAGE, WEIR_INT16},
    {"torch", "CharStorage", PT_STORAGE, WEIR_INT8},
    {"torch", "ByteStorage", PT_STORAGE, WEIR_UINT8},
    {"torch", "BoolStorage", PT_STORAGE, WEIR_BOOL},
    {"torch", "ComplexFloatStorage", PT_STORAGE, WEIR_COMPLEX64},
};

/* What OBJECTs are: `which` of a pickle_value. */
enum pt_object { PT_IS_STORAGE = 1, PT_IS_TENSOR };

typedef struct pt_storage {
  tensor_storage *memory; /* a count; NULL: not read yet */
  const char *key;        /* borrowed: the table's */
  weir_dtype dtype;       /* it was first named with */
  uint64_t bytes;
} pt_storage;

typedef struct pt_reader {
  const zip_archive *zip; /* borrowed */
  char *prefix;           /* owned: "archive/" */
  bool swapped;           /* most significant byte first */
  weir_options options;
  named_list storages; /* each has its pt_storage, owned */
  named_list unknown;  /* names of what makes no tensor, by their place */
  weir_tensors *set;   /* borrowed: gets the tensors */
  size_t visits;
  const char *path; /* borrowed */
} pt_reader;

static weir_status no_pt_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "no host memory left for a checkpoint");
}

static weir_status wrong_pt(const pt_reader *r, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: %s", r->path, what);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The place of a name among those that make no tensor. */
static weir_status unknown_place(pt_reader *r, const char *module, const char *name, size_t *place)
{
  char *full;
  if (asprintf(&full, "%s.%s", module, name) < 0) return no_pt_memory();
  const named_item *there = named_find(&r->unknown, full);
  *place = there ? (size_t)(there - r->unknown.items) : r->unknown.count;
  weir_status st = there ? WEIR_OK : named_add(&r->unknown, full, NULL);
  free(full);
  return st;
}

static void make_unknown(pickle_value *made, size_t place)
{
  made->kind = PICKLE_UNKNOWN;
  made->which = (int)place;
}

static weir_status pt_global(void *user, const char *module, const char *name, pickle_value *out)
{
  pt_reader *r = user;
  out->kind = PICKLE_GLOBAL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].module, module) && !strcmp(known[i].name, name)) {
      out->which = known[i].what;
      out->object = (void *)(uintptr_t)&known[i];
      return WEIR_OK;
    }
  for (int i = 1; i < WEIR_DTYPES && !strcmp(module, "torch"); i++)
    if (!strcmp(weir_dtype_name((weir_dtype)i), name)) {
      out->which = PT_DTYPE;
      out->object = (void *)(uintptr_t)i;
      return WEIR_OK;
    }
  enum foreign_kind kind =
      !strcmp(module, "torch") ? foreign_find(FOREIGN_IN_PT, name) : FOREIGN_NONE;
  out->which = kind ? PT_FOREIGN : PT_UNKNOWN;
  out->object = (void *)(uintptr_t)kind;
  return unknown_place(r, module, name, &out->count);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* Text of a pickle with a NUL after it (new). NULL: no memory, or a NUL within. */
static char *text_of(const pickle_value *v)
{
  return memchr(v->text, 0, v->count) || !utf8_valid(v->text, v->count)
             ? NULL
             : strndup(v->text, v->count);
}

static bool is_pickled_text(const pickle_value *v, const char *text)
{
  return v->kind == PICKLE_TEXT && v->count == strlen(text) && !memcmp(v->text, text, v->count);
}

static weir_status storage_by_key(pt_reader *r, pt_storage **out, const char *key, weir_dtype dtype,
                                  uint64_t bytes)
{
  const named_item *there = named_find(&r->storages, key);
  if (there) {
    *out = there->value;
    return (*out)->bytes == bytes ? WEIR_OK : wrong_pt(r, "a storage has two sizes");
  }
  pt_storage *s = malloc(sizeof *s);
  if (!s) return no_pt_memory();
  weir_status st = named_add(&r->storages, key, s);
  if (st) {
    free(s);
    return st;
  }
  *s = (pt_storage){NULL, named_find(&r->storages, key)->name, dtype, bytes};
  *out = s;
  return WEIR_OK;
}

/* ('storage', torch.FloatStorage, '0', 'cpu', 12) */
static weir_status pt_refer(void *user, const pickle_value *id, pickle_value *out)
{
  pt_reader *r = user;
  pt_storage *s = NULL;
  if (id->kind != PICKLE_TUPLE || id->count != 5 || !is_pickled_text(id->item[0], "storage") ||
      id->item[1]->kind != PICKLE_GLOBAL || id->item[2]->kind != PICKLE_TEXT ||
      id->item[4]->kind != PICKLE_INT)
    return wrong_pt(r, "what the pickle refers to is no storage");
  if (id->item[1]->which == PT_UNKNOWN) {
    make_unknown(out, id->item[1]->count);
    return WEIR_OK;
  }
  if (id->item[1]->which != PT_STORAGE)
    return wrong_pt(r, "what the pickle refers to is no storage");
  const struct pt_known *k = id->item[1]->object;
  uint64_t count = (uint64_t)id->item[4]->i, bytes;
  if (id->item[4]->i < 0 || __builtin_mul_overflow(count, itemsize(k->dtype), &bytes))
    return wrong_pt(r, "a storage's size overflows");
  char *key = text_of(id->item[2]);
  if (!key) return wrong_pt(r, "a storage's key is no name");
  weir_status st = storage_by_key(r, &s, key, k->dtype, bytes);
  free(key);
  if (st) return st;
  out->kind = PICKLE_OBJECT;
  out->which = PT_IS_STORAGE;
  out->object = s;
  out->count = k->dtype; /* this reference's */
  return WEIR_OK;
}

static weir_status read_storage(pt_reader *r, pt_storage *s)
{
  tensor_file window;
  void *owned = NULL;
  weir_tensor *t = NULL;
  char *name;
  if (s->memory) return WEIR_OK;
  if (asprintf(&name, "%sdata/%s", r->prefix, s->key) < 0) return no_pt_memory();
  weir_status st = zip_window(&window, &owned, r->zip, name, false);
  free(name);
  if (!st && window.bytes != s->bytes)
    st = weir_fail(WEIR_ECORRUPT, "%s: storage '%.100s' has %llu bytes, the pickle says %llu",
                   r->path, s->key, (unsigned long long)window.bytes, (unsigned long long)s->bytes);
  weir_options o = r->options;
  o.dtype = WEIR_DTYPE_NONE;
  file_array array = {.dtype = s->dtype,
                      .shape = weir_shape((int64_t)(s->bytes / itemsize(s->dtype))),
                      .swapped = r->swapped};
  if (!st) st = file_tensor(&t, &window, &array, &o);
  free(owned);
  if (st) return st;
  s->memory = t->storage;
  atomic_fetch_add_explicit(&s->memory->refs, 1, memory_order_relaxed);
  weir_tensor_release(t);
  return WEIR_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static weir_status int_list(const pt_reader *r, const pickle_value *v, weir_shape *out)
{
  if (v->kind != PICKLE_TUPLE && v->kind != PICKLE_LIST) return wrong_pt(r, "a size is no tuple");
  if (v->count > WEIR_MAX_DIMS)
    return fail_unsupported("%s: a tensor has more than %d dimensions", r->path, WEIR_MAX_DIMS);
  out->count = (int)v->count;
  for (size_t i = 0; i < v->count; i++) {
    if (v->item[i]->kind != PICKLE_INT || v->item[i]->i < 0)
      return wrong_pt(r, "a size or a stride is no integer of at least 0");
    out->size[i] = v->item[i]->i;
  }
  return WEIR_OK;
}

/* Whether all elements lie within the storage. */
static bool is_within(weir_shape size, weir_shape stride, int64_t offset, uint64_t elements)
{
  int64_t last = offset, step;
  for (int i = 0; i < size.count; i++) {
    if (!size.size[i]) return true;
    if (__builtin_mul_overflow(size.size[i] - 1, stride.size[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return (uint64_t)last < elements;
}

static weir_status check_reinterpreted(const pt_reader *r, const pt_storage *s, weir_dtype dtype)
{
  if (s->dtype == dtype) return WEIR_OK;
  if (r->swapped || s->dtype == WEIR_BOOL || dtype == WEIR_BOOL)
    return fail_unsupported("%s: storage '%.100s' is used as %s and as %s", r->path, s->key,
                            weir_dtype_name(s->dtype), weir_dtype_name(dtype));
  return WEIR_OK;
}

/* What a tensor's elements are: a dtype, or a foreign kind. */
typedef struct pt_elements {
  weir_dtype dtype; /* of foreign ones uint8 */
  enum foreign_kind foreign;
  size_t bytes; /* of one */
} pt_elements;

/* Elements become bytes, in one more dimension where there are several. */
static weir_status to_bytes(const pt_reader *r, const pt_elements *e, weir_shape *size,
                            weir_shape *stride, int64_t *offset)
{
  int64_t bytes = (int64_t)e->bytes;
  bool fits = !__builtin_mul_overflow(*offset, bytes, offset);
  if (bytes == 1) return WEIR_OK;
  if (r->swapped) return fail_unsupported("%s: elements of this byte order", r->path);
  for (int i = 0; i < size->count; i++)
    fits = fits && !__builtin_mul_overflow(stride->size[i], bytes, &stride->size[i]);
  if (!fits) return wrong_pt(r, "a stride overflows");
  if (size->count == WEIR_MAX_DIMS)
    return fail_unsupported("%s: a tensor of %d dimensions has no room for its bytes", r->path,
                            WEIR_MAX_DIMS);
  size->size[size->count++] = bytes;
  stride->size[stride->count++] = 1;
  return WEIR_OK;
}

/* (storage, offset, size, stride, requires_grad, hooks[, ...]) */
static weir_status rebuild_tensor(pt_reader *r, const pickle_value *args, const pt_elements *e,
                                  pickle_value *made)
{
  weir_shape size = {0}, stride = {0};
  int64_t numel = 0;
  weir_tensor *t;
  pt_storage *s = args->item[0]->object;
  int64_t offset = args->item[1]->i;
  weir_status st = int_list(r, args->item[2], &size);
  if (!st) st = int_list(r, args->item[3], &stride);
  if (!st && (size.count != stride.count || offset < 0 || shape_numel(&numel, size, WEIR_INT64) ||
              !is_within(size, stride, offset, s->bytes / e->bytes)))
    st = wrong_pt(r, "a tensor goes beyond its storage");
  if (!st) st = check_reinterpreted(r, s, e->dtype);
  if (!st && e->foreign) st = to_bytes(r, e, &size, &stride, &offset);
  if (!st) st = read_storage(r, s);
  if (st) return st;
  atomic_fetch_add_explicit(&s->memory->refs, 1, memory_order_relaxed);
  TRY(tensor_make(&t, s->memory, e->dtype, size, stride.size, numel ? offset : 0));
  made->kind = PICKLE_OBJECT;
  made->which = PT_IS_TENSOR;
  made->object = t;
  made->count = e->foreign;
  return WEIR_OK;
}

/* With the dtype of its storage; `typed`: with the seventh argument's. */
static weir_status make_tensor(pt_reader *r, const pickle_value *args, bool typed,
                               pickle_value *made)
{
  const pickle_value *first = args->count ? args->item[0] : NULL;
  const pickle_value *type = typed && args->count > 6 ? args->item[6] : NULL;
  if (first && first->kind == PICKLE_UNKNOWN) {
    make_unknown(made, (size_t)first->which);
    return WEIR_OK;
  }
  if (!first || args->count < 4 || first->kind != PICKLE_OBJECT || first->which != PT_IS_STORAGE ||
      args->item[1]->kind != PICKLE_INT || (typed && (!type || type->kind != PICKLE_GLOBAL)))
    return wrong_pt(r, "a tensor is made of something else than a storage");
  pt_elements e = {.dtype = (weir_dtype)first->count};
  if (type && type->which == PT_DTYPE) e.dtype = (weir_dtype)(uintptr_t)type->object;
  if (type && type->which == PT_FOREIGN) {
    e.dtype = WEIR_UINT8;
    e.foreign = (enum foreign_kind)(uintptr_t)type->object;
  }
  if (type && ((e.foreign && !foreign_asked(e.foreign, &r->options)) ||
               (type->which != PT_DTYPE && type->which != PT_FOREIGN))) {
    if (type->which != PT_FOREIGN && type->which != PT_UNKNOWN)
      return wrong_pt(r, "a tensor's dtype is none");
    make_unknown(made, type->count);
    return WEIR_OK;
  }
  e.bytes = e.foreign ? foreign_size(e.foreign) : itemsize(e.dtype);
  return rebuild_tensor(r, args, &e, made);
}

static weir_status pt_call(void *user, const pickle_value *call, const pickle_value *args,
                           pickle_value *made, pickle_value **out);

/* (what to call, the class, its arguments, the state of the tensor): a tensor with attributes. */
static weir_status make_from_type(pt_reader *r, const pickle_value *args, pickle_value *made,
                                  pickle_value **out)
{
  const pickle_value *call = args->count > 2 ? args->item[0] : NULL;
  if (!call || call->kind != PICKLE_GLOBAL || call->which == PT_FROM_TYPE ||
      args->item[2]->kind != PICKLE_TUPLE)
    return wrong_pt(r, "a tensor with attributes is made of something else than a tensor");
  return pt_call(r, call, args->item[2], made, out);
}

/* An object of what makes no tensor, by its class's name where that is the argument. */
static void make_object(const pt_reader *r, const pickle_value *call, const pickle_value *args,
                        pickle_value *made)
{
  const char *name = r->unknown.items[call->count].name;
  const pickle_value *class = args->count ? args->item[0] : NULL;
  bool helper = !strcmp(name, "copyreg._reconstructor") || !strcmp(name, "copy_reg._reconstructor");
  if (helper && class && class->kind == PICKLE_GLOBAL && class->which == PT_UNKNOWN) call = class;
  make_unknown(made, call->count);
}

static weir_status pt_call(void *user, const pickle_value *call, const pickle_value *args,
                           pickle_value *made, pickle_value **out)
{
  pt_reader *r = user;
  pickle_value *first = args->count ? args->item[0] : NULL;
  switch (call->which) {
  case PT_DICT:
    if (first) return fail_unsupported("%s: an OrderedDict made of a list", r->path);
    made->kind = PICKLE_DICT;
    return WEIR_OK;
  case PT_TENSOR:
  case PT_TENSOR_OF:
    return make_tensor(r, args, call->which == PT_TENSOR_OF, made);
  case PT_FROM_TYPE:
    return make_from_type(r, args, made, out);
  case PT_UNKNOWN:
  case PT_FOREIGN:
    make_object(r, call, args, made);
    return WEIR_OK;
  case PT_PARAMETER:
    if (first && first->kind == PICKLE_UNKNOWN) {
      *out = first;
      return WEIR_OK;
    }
    if (!first || first->kind != PICKLE_OBJECT || first->which != PT_IS_TENSOR)
      return wrong_pt(r, "a parameter is made of something else than a tensor");
    *out = first;
    return WEIR_OK;
  case PT_SIZE:
  case PT_DEVICE:
    if (!first) return wrong_pt(r, "a size or a device is made of nothing");
    *out = first;
    return WEIR_OK;
  default:
    return wrong_pt(r, "what is no function is called");
  }
}

static void pt_end(void *user, pickle_value *v)
{
  (void)user;
  if (v->which == PT_IS_TENSOR) weir_tensor_release(v->object);
}

/* ---- what the file states -------------------------------------------------------------------- */

/* As Python prints it: the fewest digits that are this number. */
static void print_float(char *out, size_t room, double f)
{
  int digits = 1;
  if (!isfinite(f)) {
    (void)snprintf(out, room, "%s", isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
    return;
  }
  for (; digits < 17; digits++) {
    (void)snprintf(out, room, "%.*e", digits - 1, f);
    if (strtod(out, NULL) == f) break;
  }
  (void)snprintf(out, room, "%.*e", digits - 1, f);
  int exponent = atoi(strchr(out, 'e') + 1), decimals = digits - 1 - exponent;
  if (exponent >= -4 && exponent < 16)
    (void)snprintf(out, room, "%.*f", decimals < 1 ? 1 : decimals, f);
}

/* What a value is that becomes neither a tensor nor text. */
static const char *kind_of_storage(const pt_reader *r, const pickle_value *v)
{
  switch (v->kind) {
  case PICKLE_UNKNOWN:
    return r->unknown.items[v->which].name;
  case PICKLE_GLOBAL:
    if (v->which == PT_UNKNOWN || v->which == PT_FOREIGN) return r->unknown.items[v->count].name;
    return "a class or a function of PyTorch's";
  case PICKLE_BIG:
    return "an integer of more than 64 bits";
  case PICKLE_BYTES:
    return "bytes";
  case PICKLE_TEXT:
    return "text that is not UTF-8";
  case PICKLE_SET:
    return "a set";
  default:
    return "a storage";
  }
}

/* What is left where it is. Where it is all there is, and made by a call, that is an error. */
static weir_status skip_value(const pt_reader *r, const char *path, const pickle_value *v,
                              bool alone)
{
  const char *what = kind_of_storage(r, v);
  if (!alone || (v->kind != PICKLE_UNKNOWN && v->kind != PICKLE_GLOBAL))
    return tensors_skip(r->set, path, what);
  return fail_unsupported("%s: the pickle calls %.200s, which makes no tensor", r->path, what);
}

static weir_status put_metadata(pt_reader *r, const char *path, const pickle_value *v, bool alone)
{
  char number[64];
  char *text = NULL;
  const char *shown = number;
  switch (v->kind) {
  case PICKLE_NONE:
    shown = "None";
    break;
  case PICKLE_BOOL:
    shown = v->i ? "True" : "False";
    break;
  case PICKLE_INT:
    (void)snprintf(number, sizeof number, "%lld", (long long)v->i);
    break;
  case PICKLE_FLOAT:
    print_float(number, sizeof number, v->f);
    break;
  case PICKLE_TEXT:
    if (!(text = text_of(v))) return skip_value(r, path, v, alone);
    shown = text;
    break;
  case PICKLE_GLOBAL:
    if (v->which != PT_DTYPE) return skip_value(r, path, v, alone);
    (void)snprintf(number, sizeof number, "torch.%s",
                   weir_dtype_name((weir_dtype)(uintptr_t)v->object));
    break;
  default:
    return skip_value(r, path, v, alone);
  }
  weir_status st = weir_tensors_set_metadata(r->set, path, shown);
  free(text);
  return st;
}

static weir_status put_tensor(pt_reader *r, const char *path, const pickle_value *v)
{
  weir_tensor *own = NULL, *t = v->object;
  if (weir_tensors_get(r->set, path))
    return fail_unsupported("%s: two tensors are called '%.100s'", r->path, path);
  weir_dtype asked = r->options.dtype;
  weir_status st = asked && v->count ? foreign_convert(&own, t, v->count, &r->options)
                   : asked && asked != t->dtype
                       ? weir_to_dtype(&own, t, asked)
                       : tensor_part(&own, t, t->dims, t->size, t->stride, 0);
  if (!st) st = weir_tensor_set_name(own, path);
  if (!st) st = weir_tensors_put(r->set, path, own);
  weir_tensor_release(own);
  return st;
}

/* The path of an item after `length` bytes of the one it is in; its length, 0: its key is neither
 * text nor a number. */
static weir_status extend_path(const pt_reader *r, char *path, size_t length,
                               const pickle_value *key, size_t *out)
{
  char number[32];
  const char *text = number;
  size_t bytes;
  if (key->kind == PICKLE_INT || key->kind == PICKLE_BOOL) {
    bytes = (size_t)snprintf(number, sizeof number, "%lld", (long long)key->i);
  } else if (key->kind == PICKLE_TEXT) {
    text = key->text;
    bytes = key->count;
    if (memchr(text, 0, bytes) || !utf8_valid(text, bytes))
      return wrong_pt(r, "a key is not UTF-8");
  } else {
    *out = 0;
    return WEIR_OK;
  }
  if (bytes > PATH_BYTES - length - 2)
    return fail_unsupported("%s: a name of more than %d bytes", r->path, PATH_BYTES - 2);
  if (length) path[length++] = '.';
  memcpy(path + length, text, bytes);
  path[length + bytes] = 0;
  *out = length + bytes;
  return WEIR_OK;
}

static weir_status visit_value(pt_reader *r, char *path, size_t length, const pickle_value *v,
                               int depth);

static weir_status visit_items(pt_reader *r, char *path, size_t length, const pickle_value *v,
                               int depth)
{
  size_t step = v->kind == PICKLE_DICT || v->holds == PICKLE_DICT ? 2 : 1, longer = 0;
  weir_status st = WEIR_OK;
  if (depth == DEPTH_MOST)
    return fail_unsupported("%s: values are nested more than %d deep", r->path, DEPTH_MOST);
  for (size_t i = 0; !st && i + step <= v->count; i += step) {
    pickle_value place = {.kind = PICKLE_INT, .i = (int64_t)i};
    st = extend_path(r, path, length, step == 2 ? v->item[i] : &place, &longer);
    if (!st && !longer && v->item[i]->kind != PICKLE_TEXT)
      st = tensors_skip(r->set, path, "an item whose key is neither text nor a number");
    else if (!st)
      st = visit_value(r, path, longer, v->item[i + step - 1], depth + 1);
    path[length] = 0;
  }
  return st;
}

static weir_status visit_value(pt_reader *r, char *path, size_t length, const pickle_value *v,
                               int depth)
{
  if (++r->visits > VISITS_MOST)
    return fail_unsupported("%s: more than %d values", r->path, VISITS_MOST);
  if (v->kind == PICKLE_DICT || v->kind == PICKLE_LIST || v->kind == PICKLE_TUPLE ||
      (v->kind == PICKLE_UNKNOWN && v->holds))
    return visit_items(r, path, length, v, depth);
  if (v->kind == PICKLE_OBJECT && v->which == PT_IS_TENSOR) return put_tensor(r, path, v);
  return put_metadata(r, path, v, depth == 0);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The folder of the file's records: that of the one data.pkl. */
static weir_status find_prefix(pt_reader *r)
{
  static const char pkl[] = "data.pkl";
  for (size_t i = 0; i < r->zip->names.count; i++) {
    const char *name = r->zip->names.items[i].name, *slash = strchr(name, '/');
    if (!slash || strcmp(slash + 1, pkl) != 0) continue;
    r->prefix = strndup(name, (size_t)(slash - name) + 1);
    return r->prefix ? WEIR_OK : no_pt_memory();
  }
  return fail_unsupported("%s is a zip file without data.pkl: not one of torch.save()", r->path);
}

/* All bytes of a record (new). */
static weir_status read_record(char **out, size_t *bytes, const pt_reader *r, const char *record,
                               uint64_t most)
{
  char *name;
  tensor_file window = {.fd = -1};
  void *owned = NULL;
  *out = NULL;
  if (asprintf(&name, "%s%s", r->prefix, record) < 0) return no_pt_memory();
  weir_status st = zip_window(&window, &owned, r->zip, name, false);
  free(name);
  if (!st && window.bytes > most)
    st = fail_unsupported("%s: %s has %llu bytes; %llu are the most", r->path, record,
                          (unsigned long long)window.bytes, (unsigned long long)most);
  char *text = st ? NULL : malloc(window.bytes + 1);
  if (!st && !text) st = no_pt_memory();
  if (text) st = file_read(&window, text, 0, window.bytes);
  free(owned);
  if (st || !text) {
    free(text);
    return st;
  }
  text[window.bytes] = 0;
  *bytes = (size_t)window.bytes;
  *out = text;
  return WEIR_OK;
}

/* Files of before 2.1 have none: least significant byte first. */
static weir_status read_byte_order(pt_reader *r)
{
  char *name, *text;
  size_t bytes;
  if (asprintf(&name, "%sbyteorder", r->prefix) < 0) return no_pt_memory();
  bool there = named_find(&r->zip->names, name);
  free(name);
  weir_status st = there ? read_record(&text, &bytes, r, "byteorder", 16) : WEIR_OK;
  if (st || !there) return st;
  r->swapped = !strcmp(text, "big");
  if (!r->swapped && strcmp(text, "little") != 0) st = wrong_pt(r, "its byteorder is unknown");
  free(text);
  return st;
}

static weir_status read_pickle(pt_reader *r)
{
  char *text, path[PATH_BYTES] = "";
  size_t bytes = 0;
  pickle p;
  pickle_value *root;
  pickle_calls calls = {pt_global, pt_call, pt_refer, pt_end, r, r->path, 0};
  TRY(read_record(&text, &bytes, r, "data.pkl", PICKLE_MOST));
  weir_status st = pickle_read(&p, &calls, text, bytes, &root);
  if (!st) st = visit_value(r, path, 0, root, 0);
  pickle_free(&p);
  free(text);
  return st;
}

static void pt_reader_free(pt_reader *r)
{
  for (size_t i = 0; i < r->storages.count; i++) {
    pt_storage *s = r->storages.items[i].value;
    storage_release(s->memory);
    free(s);
  }
  named_free(&r->storages);
  named_free(&r->unknown);
  free(r->prefix);
}

/* Before zip files there was a pickle at the start, of protocol 2 and a long number. */
static weir_status check_no_legacy(const tensor_file *f)
{
  unsigned char head[4] = {0};
  weir_status st = f->bytes < sizeof head ? WEIR_OK : file_read(f, head, 0, sizeof head);
  if (!st && !memcmp(head, "\x80\x02\x8a\x0a", 4))
    st = fail_unsupported("%s was written by PyTorch before 1.6, or without its zip format: load "
                          "and save it again with PyTorch",
                          f->path);
  return st;
}

weir_status weir_pt_load(weir_tensors **out, const char *path, const weir_options *options)
{
  WEIR_OP(out, path);
  tensor_file f;
  zip_archive z = {.entries = NULL};
  pt_reader r = {.zip = &z, .path = path};
  TRY(file_open(&f, path));
  if (options) r.options = *options;
  weir_status st = check_no_legacy(&f);
  if (!st) st = zip_open(&z, &f);
  if (!st) st = weir_tensors_create(&r.set);
  if (!st) st = find_prefix(&r);
  if (!st) st = read_byte_order(&r);
  if (!st) st = read_pickle(&r);
  pt_reader_free(&r);
  zip_close(&z);
  (void)file_end(&f, WEIR_OK);
  if (st)
    weir_tensors_release(r.set);
  else
    *out = r.set;
  return st;
}

/* ---- any file -------------------------------------------------------------------------------- */

static weir_status load_npy(weir_tensors **out, const char *path, const weir_options *options)
{
  weir_tensor *t = NULL;
  weir_tensors *set = NULL;
  weir_status st = weir_npy_read(&t, path, options);
  if (!st) st = weir_tensors_create(&set);
  if (!st) st = weir_tensors_put(set, "", t);
  weir_tensor_release(t);
  if (st)
    weir_tensors_release(set);
  else
    *out = set;
  return st;
}

/* A zip file of PyTorch's has data.pkl in its folder, an .npz file arrays. */
static weir_status is_pt(bool *out, const tensor_file *f)
{
  zip_archive z;
  pt_reader r = {.zip = &z, .path = f->path};
  weir_status st = zip_open(&z, f);
  *out = !st && !find_prefix(&r);
  free(r.prefix);
  zip_close(&z);
  return st;
}

weir_status weir_tensors_load(weir_tensors **out, const char *path, const weir_options *options)
{
  WEIR_OP(out, path);
  char head[6] = "";
  bool pt = false;
  tensor_file f;
  if (file_open(&f, path)) return weir_safetensors_load(out, path, options);
  weir_status st = file_read(&f, head, 0, f.bytes < sizeof head ? f.bytes : sizeof head);
  bool zip = !memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4);
  if (!st && zip) st = is_pt(&pt, &f);
  if (!st && !zip) pt = !memcmp(head, "\x80\x02", 2);
  (void)file_end(&f, WEIR_OK);
  if (st) return st;
  if (pt) return weir_pt_load(out, path, options);
  if (zip) return weir_npz_load(out, path, options);
  if (!memcmp(head, "\x93NUMPY", 6)) return load_npy(out, path, options);
  return weir_safetensors_load(out, path, options);
}

/* pt.c: PyTorch's files, for the tensors in them (see core/weir/checkpoint.h).
 *
 * Such a file is a zip file with one folder: data.pkl, a pickle; data/0, data/1, ...: storages, to
 * which the pickle refers; byteorder. The pickle is read by pickle.c, which runs nothing; what it
 * may name is the table here, and everything else ends the reading with an error that names it.
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
#include "core/base/require.h"
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
  PT_DTYPE
};

static const struct pt_known {
  const char *module, *name;
  enum pt_name what;
  weir_dtype dtype;
} known[] = {
    {"collections", "OrderedDict", PT_DICT, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_tensor_v2", PT_TENSOR, WEIR_DTYPE_NONE},
    {"torch._utils", "_rebuild_parameter", PT_PARAMETER, WEIR_DTYPE_NONE},
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

static weir_status pt_global(void *user, const char *module, const char *name, pickle_value *out)
{
  const pt_reader *r = user;
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
      out->object = NULL;
      return WEIR_OK;
    }
  return weir_fail(WEIR_ENOTSUP, "%s: the pickle calls %.100s.%.100s, which makes no tensor",
                   r->path, module, name);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* Text of a pickle with a NUL behind it (new). NULL: no memory, or a NUL within. */
static char *text_of(const pickle_value *v)
{
  return memchr(v->text, 0, v->count) || !utf8_valid(v->text, v->count)
             ? NULL
             : strndup(v->text, v->count);
}

static bool is_text(const pickle_value *v, const char *text)
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
  if (id->kind != PICKLE_TUPLE || id->count != 5 || !is_text(id->item[0], "storage") ||
      id->item[1]->kind != PICKLE_GLOBAL || id->item[1]->which != PT_STORAGE ||
      id->item[2]->kind != PICKLE_TEXT || id->item[4]->kind != PICKLE_INT)
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
    return weir_fail(WEIR_ENOTSUP, "%s: a tensor has more than %d dimensions", r->path,
                     WEIR_MAX_DIMS);
  out->count = (int)v->count;
  for (size_t i = 0; i < v->count; i++) {
    if (v->item[i]->kind != PICKLE_INT || v->item[i]->i < 0)
      return wrong_pt(r, "a size or a stride is no integer of at least 0");
    out->size[i] = v->item[i]->i;
  }
  return WEIR_OK;
}

/* Whether all elements lie within the storage. */
static bool is_within(weir_shape size, weir_shape stride, int64_t offset, uint64_t bytes,
                      weir_dtype dtype)
{
  int64_t last = offset, step;
  for (int i = 0; i < size.count; i++) {
    if (!size.size[i]) return true;
    if (__builtin_mul_overflow(size.size[i] - 1, stride.size[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return (uint64_t)last < bytes / itemsize(dtype);
}

static weir_status check_reinterpreted(const pt_reader *r, const pt_storage *s, weir_dtype dtype)
{
  if (s->dtype == dtype) return WEIR_OK;
  if (r->swapped || s->dtype == WEIR_BOOL || dtype == WEIR_BOOL)
    return weir_fail(WEIR_ENOTSUP, "%s: storage '%.100s' is used as %s and as %s", r->path, s->key,
                     weir_dtype_name(s->dtype), weir_dtype_name(dtype));
  return WEIR_OK;
}

/* (storage, offset, size, stride, requires_grad, hooks[, metadata]) */
static weir_status rebuild_tensor(pt_reader *r, const pickle_value *args, pickle_value *made)
{
  weir_shape size = {0}, stride = {0};
  int64_t numel = 0;
  weir_tensor *t;
  if (args->count < 4 || args->item[0]->kind != PICKLE_OBJECT ||
      args->item[0]->which != PT_IS_STORAGE || args->item[1]->kind != PICKLE_INT)
    return wrong_pt(r, "a tensor is made of something else than a storage");
  pt_storage *s = args->item[0]->object;
  weir_dtype dtype = (weir_dtype)args->item[0]->count;
  int64_t offset = args->item[1]->i;
  weir_status st = int_list(r, args->item[2], &size);
  if (!st) st = int_list(r, args->item[3], &stride);
  if (!st && (size.count != stride.count || offset < 0 || shape_numel(&numel, size, dtype) ||
              !is_within(size, stride, offset, s->bytes, dtype)))
    st = wrong_pt(r, "a tensor goes beyond its storage");
  if (!st) st = check_reinterpreted(r, s, dtype);
  if (!st) st = read_storage(r, s);
  if (st) return st;
  atomic_fetch_add_explicit(&s->memory->refs, 1, memory_order_relaxed);
  st = tensor_make(&t, s->memory, dtype, size, stride.size, numel ? offset : 0);
  if (st) return st;
  made->kind = PICKLE_OBJECT;
  made->which = PT_IS_TENSOR;
  made->object = t;
  return WEIR_OK;
}

static weir_status pt_call(void *user, const pickle_value *call, const pickle_value *args,
                           pickle_value *made, pickle_value **out)
{
  pt_reader *r = user;
  pickle_value *first = args->count ? args->item[0] : NULL;
  switch (call->which) {
  case PT_DICT:
    if (first) return weir_fail(WEIR_ENOTSUP, "%s: an OrderedDict made of a list", r->path);
    made->kind = PICKLE_DICT;
    return WEIR_OK;
  case PT_TENSOR:
    return rebuild_tensor(r, args, made);
  case PT_PARAMETER:
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

/* ---- what the file says ---------------------------------------------------------------------- */

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
  int exponent = atoi(strchr(out, 'e') + 1), behind = digits - 1 - exponent;
  if (exponent >= -4 && exponent < 16)
    (void)snprintf(out, room, "%.*f", behind < 1 ? 1 : behind, f);
}

static weir_status put_metadata(pt_reader *r, const char *path, const pickle_value *v)
{
  char number[64];
  char *text = NULL;
  const char *said = number;
  switch (v->kind) {
  case PICKLE_NONE:
    said = "None";
    break;
  case PICKLE_BOOL:
    said = v->i ? "True" : "False";
    break;
  case PICKLE_INT:
    (void)snprintf(number, sizeof number, "%lld", (long long)v->i);
    break;
  case PICKLE_FLOAT:
    print_float(number, sizeof number, v->f);
    break;
  case PICKLE_TEXT:
    if (!(text = text_of(v))) return WEIR_OK;
    said = text;
    break;
  default:
    return WEIR_OK;
  }
  weir_status st = weir_tensors_set_metadata(r->set, path, said);
  free(text);
  return st;
}

static weir_status put_tensor(pt_reader *r, const char *path, weir_tensor *t)
{
  weir_tensor *own = NULL;
  if (weir_tensors_get(r->set, path))
    return weir_fail(WEIR_ENOTSUP, "%s: two tensors are called '%.100s'", r->path, path);
  bool other = r->options.dtype && r->options.dtype != (weir_dtype)t->dtype;
  weir_status st = other ? weir_to_dtype(&own, t, r->options.dtype)
                         : tensor_part(&own, t, t->dims, t->size, t->stride, 0);
  if (!st) st = weir_tensor_set_name(own, path);
  if (!st) st = weir_tensors_put(r->set, path, own);
  weir_tensor_release(own);
  return st;
}

/* The path of an item behind `length` bytes of the one it is in; its length. */
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
    return weir_fail(WEIR_ENOTSUP, "%s: a key of '%.100s' is neither text nor a number", r->path,
                     path);
  }
  if (bytes > PATH_BYTES - length - 2)
    return weir_fail(WEIR_ENOTSUP, "%s: a name of more than %d bytes", r->path, PATH_BYTES - 2);
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
  size_t step = v->kind == PICKLE_DICT ? 2 : 1, longer = 0;
  weir_status st = WEIR_OK;
  if (depth == DEPTH_MOST)
    return weir_fail(WEIR_ENOTSUP, "%s: values are nested more than %d deep", r->path, DEPTH_MOST);
  for (size_t i = 0; !st && i + step <= v->count; i += step) {
    pickle_value place = {.kind = PICKLE_INT, .i = (int64_t)i};
    st = extend_path(r, path, length, step == 2 ? v->item[i] : &place, &longer);
    if (!st) st = visit_value(r, path, longer, v->item[i + step - 1], depth + 1);
    path[length] = 0;
  }
  return st;
}

static weir_status visit_value(pt_reader *r, char *path, size_t length, const pickle_value *v,
                               int depth)
{
  if (++r->visits > VISITS_MOST)
    return weir_fail(WEIR_ENOTSUP, "%s: more than %d values", r->path, VISITS_MOST);
  if (v->kind == PICKLE_DICT || v->kind == PICKLE_LIST || v->kind == PICKLE_TUPLE)
    return visit_items(r, path, length, v, depth);
  if (v->kind == PICKLE_OBJECT && v->which == PT_IS_TENSOR) return put_tensor(r, path, v->object);
  return put_metadata(r, path, v);
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
  return weir_fail(WEIR_ENOTSUP, "%s is a zip file without data.pkl: not one of torch.save()",
                   r->path);
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
    st = weir_fail(WEIR_ENOTSUP, "%s: %s has %llu bytes; %llu are the most", r->path, record,
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
  weir_status st = read_record(&text, &bytes, r, "data.pkl", PICKLE_MOST);
  if (st) return st;
  st = pickle_read(&p, &calls, text, bytes, &root);
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
  free(r->prefix);
}

/* Before zip files there was a pickle at the start, of protocol 2 and a long number. */
static weir_status check_no_legacy(const tensor_file *f)
{
  unsigned char head[4] = {0};
  weir_status st = f->bytes < sizeof head ? WEIR_OK : file_read(f, head, 0, sizeof head);
  if (!st && !memcmp(head, "\x80\x02\x8a\x0a", 4))
    st = weir_fail(WEIR_ENOTSUP,
                   "%s was written by PyTorch before 1.6, or without its zip format: load and save "
                   "it again with PyTorch",
                   f->path);
  return st;
}

weir_status weir_pt_load(weir_tensors **out, const char *path, const weir_options *options)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, path);
  tensor_file f;
  zip_archive z = {.entries = NULL};
  pt_reader r = {.zip = &z, .path = path};
  weir_status st = file_open(&f, path);
  if (st) return st;
  if (options) r.options = *options;
  st = check_no_legacy(&f);
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, path);
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

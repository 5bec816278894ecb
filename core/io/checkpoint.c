/* checkpoint.c: .safetensors files that are opened, one or the shards of an index (see
 * core/weir/checkpoint.h).
 *
 * Opening reads headers alone. Each file is mapped at once, which takes addresses and no memory,
 * privately, so that what is written to a tensor goes into pages of its own; the mapping is counted
 * by the tensors over it and by the opened file. Where a mapping cannot be had, mapping reports it
 * and reading still works.
 *
 * Words. shard: one of the files. index: the JSON text that states which tensor is in which shard
 * (its weight_map). found: a tensor of the index, and where it is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "core/base/json.h"
#include "core/io/foreign.h"
#include "core/io/named.h"
#include "core/io/safetensors.h"
#include "core/stream/async_error.h"

enum { INDEX_MOST = 100000000 };

#define INDEX_NAME  "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

typedef struct file_mapping {
  _Atomic uint32_t refs; /* the shard's, and one for each tensor over it */
  char *at;
  size_t bytes;
} file_mapping;

typedef struct st_shard {
  char *path; /* owned */
  tensor_file file;
  st_header header;
  weir_tensors *set; /* owned: its metadata */
  file_mapping *map; /* a count; NULL: it could not be mapped */
} st_shard;

typedef struct st_found {
  const st_shard *shard; /* borrowed */
  const st_entry *entry; /* borrowed: the shard's */
} st_found;

struct weir_safetensors {
  st_shard *shard; /* owned */
  size_t shards;
  st_found *found;  /* owned: as many as there are names */
  named_list names; /* each has its st_found; in the order of shards and of bytes */
};

static weir_status no_checkpoint_memory(size_t count)
{
  return weir_fail(WEIR_ENOMEM, "no host memory left for a checkpoint of %zu tensors", count);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static void mapping_release(void *context)
{
  file_mapping *m = context;
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  (void)munmap(m->at, m->bytes);
  free(m);
}

/* NULL: it cannot be mapped. */
static file_mapping *map_file(const tensor_file *f)
{
  if (!f->bytes || f->bytes > SIZE_MAX) return NULL;
  file_mapping *m = malloc(sizeof *m);
  if (!m) return NULL;
  *m = (file_mapping){.refs = 1, .bytes = (size_t)f->bytes};
  m->at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, f->fd, 0);
  if (m->at != MAP_FAILED) return m;
  free(m);
  return NULL;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* `path` is stolen, also on failure. */
static weir_status open_shard(st_shard *s, char *path)
{
  *s = (st_shard){.path = path, .file = {.fd = -1}};
  weir_status st = file_open(&s->file, path);
  if (!st) st = weir_tensors_create(&s->set);
  s->header = (st_header){.file = &s->file, .set = s->set};
  if (!st) st = st_header_read(&s->header);
  if (!st) s->map = map_file(&s->file);
  return st;
}

static void close_shard(st_shard *s)
{
  mapping_release(s->map);
  st_header_free(&s->header);
  weir_tensors_release(s->set);
  (void)file_end(&s->file, WEIR_OK);
  free(s->path);
}

void weir_safetensors_close(weir_safetensors *f)
{
  if (!f) return;
  for (size_t i = 0; i < f->shards; i++)
    close_shard(&f->shard[i]);
  named_free(&f->names);
  free(f->shard);
  free(f->found);
  free(f);
}

static weir_status add_found(weir_safetensors *f, const st_shard *s, const st_entry *e)
{
  st_found *found = f->found ? &f->found[f->names.count] : NULL; /* there by whoever opens */
  if (!found) return weir_fail(WEIR_EINTERNAL, "no room for what was found");
  *found = (st_found){s, e};
  return named_add(&f->names, e->name, found);
}

/* `path` is stolen, also on failure. */
static weir_status open_single(weir_safetensors *f, char *path)
{
  f->shard = calloc(1, sizeof *f->shard);
  if (!f->shard) {
    free(path);
    return no_checkpoint_memory(1);
  }
  f->shards = 1;
  weir_status st = open_shard(f->shard, path);
  const st_header *h = &f->shard->header;
  if (!st && !(f->found = calloc(h->count + 1, sizeof *f->found)))
    st = no_checkpoint_memory(h->count);
  for (size_t i = 0; !st && i < h->count; i++)
    st = add_found(f, f->shard, &h->entries[i]);
  return st;
}

/* ---- the index ------------------------------------------------------------------------------- */

typedef struct shard_index {
  const char *path;   /* borrowed */
  char *text;         /* owned */
  named_list tensors; /* each has its shard's name, borrowed: text's */
  named_list files;   /* by name: NULL */
} shard_index;

static void shard_index_free(shard_index *x)
{
  named_free(&x->tensors);
  named_free(&x->files);
  free(x->text);
}

static weir_status add_to_index(shard_index *x, const char *name, char *file)
{
  if (named_find(&x->tensors, name))
    return weir_fail(WEIR_ECORRUPT, "%s: tensor '%.100s' is there twice", x->path, name);
  if (!*file || strchr(file, '/') || *file == '.')
    return weir_fail(WEIR_ECORRUPT, "%s: '%.100s' is no name of a file in the index's folder",
                     x->path, file);
  weir_status st = named_add(&x->tensors, name, file);
  if (!st && !named_find(&x->files, file)) st = named_add(&x->files, file, NULL);
  return st;
}

static weir_status read_weight_map(shard_index *x, json_reader *j)
{
  bool more;
  char *name, *file;
  weir_status st = json_reader_open(j, '{');
  while (!st && !(st = json_reader_next(j, '}', &more)) && more) {
    if ((st = json_reader_key(j, &name)) || (st = json_reader_string(j, &file))) return st;
    st = add_to_index(x, name, file);
  }
  return st;
}

static weir_status parse_index(shard_index *x, size_t bytes)
{
  json_reader j = json_reader_of(x->text, bytes);
  bool more, seen = false;
  char *key;
  weir_status st = json_reader_open(&j, '{');
  while (!st && !(st = json_reader_next(&j, '}', &more)) && more) {
    if ((st = json_reader_key(&j, &key))) return st;
    if (strcmp(key, "weight_map") != 0) {
      st = json_reader_skip(&j);
    } else {
      if (seen) return weir_fail(WEIR_ECORRUPT, "%s: weight_map is there twice", x->path);
      seen = true;
      st = read_weight_map(x, &j);
    }
  }
  if (!st) st = json_reader_finish(&j);
  if (!st && !seen)
    st = weir_fail(WEIR_ECORRUPT, "%s is no index of shards: it has no weight_map", x->path);
  return st;
}

static weir_status read_index(shard_index *x)
{
  tensor_file f;
  weir_status st = file_open(&f, x->path);
  if (st) return st;
  if (f.bytes > INDEX_MOST)
    st = weir_fail(WEIR_ECORRUPT, "%s: an index of %llu bytes; %d are the most", x->path,
                   (unsigned long long)f.bytes, INDEX_MOST);
  if (!st && !(x->text = malloc(f.bytes + 1)))
    st = weir_fail(WEIR_ENOMEM, "no host memory left for an index of %llu bytes",
                   (unsigned long long)f.bytes);
  if (!st) st = file_read(&f, x->text, 0, f.bytes);
  if (!st) st = parse_index(x, f.bytes);
  (void)file_end(&f, WEIR_OK);
  return st;
}

/* ---- shards by the index --------------------------------------------------------------------- */

/* A file next to the index (new). NULL: no memory. */
static char *path_beside(const char *index, const char *name)
{
  const char *slash = strrchr(index, '/');
  int folder = slash ? (int)(slash - index) + 1 : 0;
  char *out;
  return asprintf(&out, "%.*s%s", folder, index, name) < 0 ? NULL : out;
}

/* All that are missing are named at once. */
static weir_status check_shards_there(const shard_index *x)
{
  char missing[400] = "";
  size_t count = 0, at = 0;
  for (size_t i = 0; i < x->files.count; i++) {
    struct stat s;
    const char *name = x->files.items[i].name;
    char *path = path_beside(x->path, name);
    if (!path) return no_checkpoint_memory(x->tensors.count);
    bool there = stat(path, &s) == 0;
    free(path);
    if (there) continue;
    if (at < sizeof missing)
      at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", count ? ", " : "", name);
    count++;
  }
  if (!count) return WEIR_OK;
  return weir_fail(WEIR_ENOENT, "%s names %zu files, of which %zu %s not there: %s%s", x->path,
                   x->files.count, count, count == 1 ? "is" : "are", missing,
                   at < sizeof missing ? "" : "...");
}

/* The tensors of shard `i` that the index states are there. */
static weir_status find_in_shard(weir_safetensors *f, const shard_index *x, size_t i)
{
  const st_header *h = &f->shard[i].header;
  weir_status st = WEIR_OK;
  for (size_t k = 0; !st && k < h->count; k++) {
    const named_item *item = named_find(&x->tensors, h->entries[k].name);
    if (item && !strcmp(item->value, x->files.items[i].name))
      st = add_found(f, &f->shard[i], &h->entries[k]);
  }
  return st;
}

static weir_status check_all_found(const weir_safetensors *f, const shard_index *x)
{
  for (size_t i = 0; i < x->tensors.count; i++) {
    const named_item *t = &x->tensors.items[i];
    if (!named_find(&f->names, t->name))
      return weir_fail(WEIR_ECORRUPT, "%s says that tensor '%.100s' is in %.100s, which has it not",
                       x->path, t->name, (const char *)t->value);
  }
  return WEIR_OK;
}

static weir_status open_by_index(weir_safetensors *f, shard_index *x)
{
  weir_status st = read_index(x);
  if (!st) st = check_shards_there(x);
  if (st) return st;
  f->shard = calloc(x->files.count + 1, sizeof *f->shard);
  f->found = calloc(x->tensors.count + 1, sizeof *f->found);
  if (!f->shard || !f->found) return no_checkpoint_memory(x->tensors.count);
  for (size_t i = 0; !st && i < x->files.count; i++) {
    char *path = path_beside(x->path, x->files.items[i].name);
    if (!path) return no_checkpoint_memory(x->tensors.count);
    f->shards++;
    st = open_shard(&f->shard[i], path);
    if (!st) st = find_in_shard(f, x, i);
  }
  return st ? st : check_all_found(f, x);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The file that a path means (new): of a folder, what it holds. */
static weir_status checkpoint_path(char **out, const char *path)
{
  static const char *const names[] = {INDEX_NAME, SINGLE_NAME};
  struct stat s;
  *out = NULL;
  if (stat(path, &s) || !S_ISDIR(s.st_mode))
    return (*out = strdup(path)) ? WEIR_OK : no_checkpoint_memory(0);
  for (int i = 0; i < 2; i++) {
    if (asprintf(out, "%s/%s", path, names[i]) < 0) {
      *out = NULL;
      return no_checkpoint_memory(0);
    }
    if (!stat(*out, &s)) return WEIR_OK;
    free(*out);
    *out = NULL;
  }
  return weir_fail(WEIR_ENOENT, "%s has neither " INDEX_NAME " nor " SINGLE_NAME, path);
}

weir_status weir_safetensors_open(weir_safetensors **out, const char *path)
{
  WEIR_OP(out, path);
  char *target;
  weir_status st = checkpoint_path(&target, path);
  if (st) return st;
  weir_safetensors *f = calloc(1, sizeof *f);
  size_t length = strlen(target);
  if (!f) {
    free(target);
    return no_checkpoint_memory(0);
  }
  if (length > 5 && !strcmp(target + length - 5, ".json")) {
    shard_index x = {.path = target};
    st = open_by_index(f, &x);
    shard_index_free(&x);
    free(target);
  } else {
    st = open_single(f, target);
  }
  if (st)
    weir_safetensors_close(f);
  else
    *out = f;
  return st;
}

/* ---- what is there --------------------------------------------------------------------------- */

size_t weir_safetensors_count(const weir_safetensors *f)
{
  return f ? f->names.count : 0;
}

const char *weir_safetensors_name(const weir_safetensors *f, size_t place)
{
  return place < weir_safetensors_count(f) ? f->names.items[place].name : NULL;
}

static const st_found *found_by(const weir_safetensors *f, const char *name)
{
  const named_item *i = f ? named_find(&f->names, name) : NULL;
  return i ? i->value : NULL;
}

weir_dtype weir_safetensors_dtype(const weir_safetensors *f, const char *name)
{
  const st_found *found = found_by(f, name);
  return found ? found->entry->dtype : WEIR_DTYPE_NONE;
}

const char *weir_safetensors_dtype_name(const weir_safetensors *f, const char *name)
{
  const st_found *found = found_by(f, name);
  return found ? found->entry->code : NULL;
}

weir_shape weir_safetensors_shape(const weir_safetensors *f, const char *name)
{
  const st_found *found = found_by(f, name);
  return found ? found->entry->shape : (weir_shape){-1, {0}};
}

const char *weir_safetensors_metadata(const weir_safetensors *f, const char *key)
{
  return f && f->shards ? weir_tensors_metadata(f->shard->set, key) : NULL;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static weir_status find_named(const st_found **out, const weir_safetensors *f, const char *name)
{
  *out = found_by(f, name);
  return *out ? WEIR_OK : fail_invalid("no tensor is called '%.100s'", name);
}

/* Whether a tensor can be made of it as the options state. */
static bool can_be_read(const st_found *found, const weir_options *options)
{
  return found->entry->dtype || foreign_asked(found->entry->foreign, options);
}

static weir_status refuse_foreign(const st_found *found)
{
  char what[512];
  (void)snprintf(what, sizeof what, "%.300s: tensor '%.100s'", found->shard->path,
                 found->entry->name);
  return foreign_refused(found->entry->foreign, what, found->entry->code);
}

static weir_status read_found(weir_tensor **out, const st_found *found, const weir_options *options)
{
  file_array array = st_array(&found->shard->header, found->entry);
  if (!can_be_read(found, options)) return refuse_foreign(found);
  weir_status st =
      (array.foreign ? foreign_tensor : file_tensor)(out, &found->shard->file, &array, options);
  if (!st) st = weir_tensor_set_name(*out, found->entry->name);
  if (st) weir_tensor_drop(out);
  return st;
}

static weir_status map_found(weir_tensor **out, const st_found *found)
{
  const st_entry *e = found->entry;
  file_mapping *m = found->shard->map;
  weir_options o = {.dtype = e->dtype, .device = WEIR_CPU};
  file_array array = st_array(&found->shard->header, e);
  if (!e->dtype) return refuse_foreign(found);
  if (e->dtype == WEIR_BOOL || e->begin == e->end || array.at % host_alignment(e->dtype))
    return read_found(out, found, &o);
  if (!m) return weir_fail(WEIR_ENOMEM, "%s cannot be mapped", found->shard->path);
  TRY(weir_tensor_over(out, m->at + array.at, e->shape, NULL, &o, mapping_release, m));
  atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  weir_status st = weir_tensor_set_name(*out, e->name);
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_safetensors_read(weir_tensor **out, const weir_safetensors *f, const char *name,
                                  const weir_options *options)
{
  WEIR_OP(out, f, name);
  const st_found *found;
  weir_status st = find_named(&found, f, name);
  return st ? st : read_found(out, found, options);
}

weir_status weir_safetensors_map(weir_tensor **out, const weir_safetensors *f, const char *name)
{
  WEIR_OP(out, f, name);
  const st_found *found;
  weir_status st = find_named(&found, f, name);
  return st ? st : map_found(out, found);
}

static weir_status copy_metadata(weir_tensors *to, const weir_safetensors *f)
{
  const weir_tensors *from = f->shards ? f->shard->set : NULL;
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < weir_tensors_metadata_count(from); i++) {
    const char *key = weir_tensors_metadata_key(from, i);
    st = weir_tensors_set_metadata(to, key, weir_tensors_metadata(from, key));
  }
  return st;
}

/* options NULL and `mapped`: mapped. */
static weir_status load_tensors(weir_tensors **out, const char *path, const weir_options *options,
                                bool mapped)
{
  weir_safetensors *f;
  weir_tensors *set = NULL;
  TRY(weir_safetensors_open(&f, path));
  weir_status st = weir_tensors_create(&set);
  if (!st) st = copy_metadata(set, f);
  for (size_t i = 0; !st && i < f->names.count; i++) {
    weir_tensor *t = NULL;
    const named_item *item = &f->names.items[i];
    const st_found *found = item->value;
    if (!can_be_read(found, options)) {
      st = tensors_skip(set, item->name, found->entry->code);
      continue;
    }
    st = mapped ? map_found(&t, item->value) : read_found(&t, item->value, options);
    if (!st) st = weir_tensors_put(set, item->name, t);
    weir_tensor_release(t);
  }
  weir_safetensors_close(f);
  if (st)
    weir_tensors_release(set);
  else
    *out = set;
  return st;
}

weir_status weir_safetensors_map_all(weir_tensors **out, const char *path)
{
  WEIR_OP(out, path);
  return load_tensors(out, path, NULL, true);
}

weir_status weir_safetensors_load(weir_tensors **out, const char *path, const weir_options *options)
{
  WEIR_OP(out, path);
  return load_tensors(out, path, options, false);
}

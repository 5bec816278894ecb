/* autocast.c: see autocast.h, and core/weir/amp.h for what the program sees.
 *
 * Casts of parameters are kept by the thread from its first scope to its last: a map from a
 * parameter to its cast, which counts both, so that an address is never another tensor's. A cast
 * serves while it is of the dtype that is asked for and the parameter's elements have not changed,
 * and, where recording is on, if it was recorded: one that was made without would give the
 * parameter no gradient. What has no memory for the map is cast each time. */
#include <stdlib.h>
#include "core/base/map.h"
#include "core/tensor/autocast.h"
#include "core/tensor/loop.h"
#include "core/tensor/record.h"

__thread autocast_state thread_autocast __attribute__((tls_model("initial-exec")));

enum autocast_way { AS_IS, LOWER, SINGLE, WIDEST };

static const uint8_t ways[AUTOCAST_ROWS][2] = {
#define WAYS(row, cpu, cuda) [AUTOCAST_##row] = {cpu, cuda},
    WEIR_AUTOCAST_MAP(WAYS)
#undef WAYS
};

/* 0: the cpu, 1: CUDA. */
static int kind_of_device(weir_device_type type)
{
  return type == WEIR_DEVICE_CUDA;
}

static weir_dtype lower_of(int kind)
{
  if (thread_autocast.dtype[kind]) return (weir_dtype)thread_autocast.dtype[kind];
  return kind ? WEIR_FLOAT16 : WEIR_BFLOAT16;
}

bool autocast_is_on(const weir_tensor *t)
{
  return thread_autocast.on >> kind_of_device(device_of_tensor(t).type) & 1;
}

/* ---- casts that are kept --------------------------------------------------------------------- */

typedef struct kept_cast {
  weir_tensor *weight, *cast; /* a count each */
  uint32_t version;           /* of the weight, when it was cast */
} kept_cast;

struct autocast_cache {
  hash_map at; /* a weight's address -> its place */
  kept_cast *all;
  size_t count, room;
};

static uint32_t version_of(const weir_tensor *t)
{
  return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

/* NULL: it has none that serves. Borrowed. */
static weir_tensor *kept_of(const weir_tensor *t, weir_dtype to)
{
  const struct autocast_cache *c = thread_autocast.kept;
  const uint64_t *place = c ? hash_map_get(&c->at, (uintptr_t)t) : NULL;
  if (!place) return NULL;
  const kept_cast *k = &c->all[*place];
  bool serves =
      k->cast->dtype == to && k->version == version_of(t) && (thread_grad_off || k->cast->node);
  return serves ? k->cast : NULL;
}

static bool make_cast_room(struct autocast_cache *c)
{
  if (c->count < c->room) return true;
  size_t room = c->room ? 2 * c->room : 64;
  kept_cast *all = realloc(c->all, room * sizeof *all);
  if (!all) return false;
  c->all = all;
  c->room = room;
  return true;
}

static void keep_cast(const weir_tensor *t, weir_tensor *cast)
{
  bool added = false;
  struct autocast_cache *c = thread_autocast.kept;
  if (!c) c = thread_autocast.kept = calloc(1, sizeof *c);
  if (!c || !make_cast_room(c)) return;
  uint64_t *place = hash_map_place(&c->at, (uintptr_t)t, &added);
  if (!place) return;
  if (added) {
    *place = c->count++;
    c->all[*place] = (kept_cast){.weight = weir_tensor_retain((weir_tensor *)t)};
  }
  kept_cast *k = &c->all[*place];
  weir_tensor_release(k->cast);
  k->cast = weir_tensor_retain(cast);
  k->version = version_of(t);
}

void weir_clear_autocast_cache(void)
{
  struct autocast_cache *c = thread_autocast.kept;
  thread_autocast.kept = NULL;
  if (!c) return;
  for (size_t i = 0; i < c->count; i++) {
    weir_tensor_release(c->all[i].weight);
    weir_tensor_release(c->all[i].cast);
  }
  hash_map_free(&c->at);
  free(c->all);
  free(c);
}

/* ---- casting --------------------------------------------------------------------------------- */

static weir_status cast_tensor(weir_tensor **out, const weir_tensor *t, weir_dtype to)
{
  bool keeps = !thread_autocast.uncached && t->node && t->dtype == WEIR_FLOAT32 &&
               to != WEIR_FLOAT32 && tensor_recorder->is_leaf(t);
  weir_tensor *kept = keeps ? kept_of(t, to) : NULL;
  if (kept) {
    *out = weir_tensor_retain(kept);
    return WEIR_OK;
  }
  weir_status st = weir_to_dtype(out, t, to);
  if (!st && keeps) keep_cast(t, *out);
  return st;
}

/* Whether autocast states which dtype t has; float64 is never changed. */
static bool is_eligible(const weir_tensor *t)
{
  return t && dtype_is_floating(t->dtype) && t->dtype != WEIR_FLOAT64 && autocast_is_on(t);
}

static weir_status widest_of(weir_dtype *out, const weir_tensor *const *list, int count, int kind)
{
  weir_dtype lower = lower_of(kind);
  *out = lower;
  for (int i = 0; i < count; i++) {
    if (!is_eligible(list[i]) || kind_of_device(device_of_tensor(list[i]).type) != kind) continue;
    weir_dtype d = list[i]->dtype;
    if (d == WEIR_FLOAT32) *out = d;
    if (*out != WEIR_FLOAT32 && d != lower)
      return fail_invalid("Unexpected floating ScalarType in at::autocast::prioritize");
  }
  return WEIR_OK;
}

/* What list[i] is to be; its own where it stays. */
static weir_status wanted_dtype(weir_dtype *out, enum autocast_row row,
                                const weir_tensor *const *list, int count, int i)
{
  int kind = kind_of_device(device_of_tensor(list[i]).type);
  enum autocast_way way = (enum autocast_way)ways[row][kind];
  *out = way == LOWER ? lower_of(kind) : way == SINGLE ? WEIR_FLOAT32 : list[i]->dtype;
  return way == WIDEST ? widest_of(out, list, count, kind) : WEIR_OK;
}

/* torch has no row for some of these on the cpu, but for the products that they come to: einsum has
 * none of one operand, the others refuse operands of different dtypes before. */
static enum autocast_row row_here(enum autocast_row row, const weir_tensor *const *list, int count)
{
  bool products = row == AUTOCAST_TENSORDOT || row == AUTOCAST_MULTI_DOT;
  if (!(products || row == AUTOCAST_EINSUM) || !count || !list[0] ||
      device_of_tensor(list[0]).type != WEIR_DEVICE_CPU)
    return row;
  if (!products) return count == 1 ? AUTOCAST_NONE : row;
  for (int i = 1; i < count; i++)
    if (!list[i] || list[i]->dtype != list[0]->dtype) return AUTOCAST_NONE;
  return row;
}

/* held->cast has room for all of them. */
static weir_status cast_all(autocast_held *held, enum autocast_row row, const weir_tensor **list,
                            int count)
{
  weir_status st = WEIR_OK;
  row = row_here(row, list, count);
  for (int i = 0; i < count && !st; i++) {
    weir_dtype want;
    weir_tensor *cast = NULL;
    if (!is_eligible(list[i])) continue;
    st = wanted_dtype(&want, row, list, count, i);
    if (st || list[i]->dtype == want) continue;
    st = cast_tensor(&cast, list[i], want);
    if (st) break;
    list[i] = held->cast[held->count++] = cast;
  }
  return st;
}

weir_status autocast_operands(autocast_held *held, enum autocast_row row, const weir_tensor **list,
                              int count)
{
  held->cast = held->here;
  held->list = NULL;
  return cast_all(held, row, list, count);
}

weir_status autocast_list(autocast_held *held, enum autocast_row row,
                          const weir_tensor *const **list, int count)
{
  bool any = false;
  for (int i = 0; i < count; i++)
    any |= is_eligible((*list)[i]);
  if (!any) return WEIR_OK;
  const weir_tensor **other = malloc(2 * (size_t)count * sizeof(void *));
  if (!other) return fail_memory("%d tensors", count);
  for (int i = 0; i < count; i++)
    other[i] = (*list)[i];
  held->list = other;
  held->cast = (weir_tensor **)(other + count);
  weir_status st = cast_all(held, row, other, count);
  if (held->count)
    *list = other;
  else
    free(other);
  return st;
}

void autocast_release(autocast_held *held)
{
  for (int i = 0; i < held->count; i++)
    weir_tensor_release(held->cast[i]);
  free(held->list);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static weir_status check_scope(weir_device_type type, weir_dtype dtype)
{
  if (type != WEIR_DEVICE_CPU && type != WEIR_DEVICE_CUDA)
    return fail_invalid("User specified an unsupported autocast device_type %d", (int)type);
  if (dtype == WEIR_DTYPE_NONE || dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16) return WEIR_OK;
  bool cuda = type == WEIR_DEVICE_CUDA;
  return fail_invalid("In %s autocast, but the target dtype is not supported. %s Autocast only "
                      "supports dtype of weir.bfloat16, weir.float16 currently.",
                      cuda ? "CUDA" : "CPU", cuda ? "CUDA" : "CPU");
}

weir_status weir_autocast_enter(weir_autocast *out, weir_device_type device_type,
                                const weir_autocast_options *options)
{
  static const weir_autocast_options none;
  const weir_autocast_options *o = options ? options : &none;
  autocast_state *now = &thread_autocast;
  WEIR_REQUIRE(out);
  out->open = false;
  TRY(check_scope(device_type, o->dtype));
  for (int i = 0; i < 2; i++) {
    out->enabled[i] = now->on >> i & 1;
    out->dtype[i] = now->dtype[i];
  }
  out->uncached = now->uncached;
  out->open = true;
  int kind = kind_of_device(device_type);
  now->on = (uint8_t)((now->on & ~(1u << kind)) | (unsigned)!o->disabled << kind);
  if (o->dtype) now->dtype[kind] = (uint8_t)o->dtype;
  now->uncached |= o->uncached;
  now->scopes++;
  return WEIR_OK;
}

void weir_autocast_exit(weir_autocast *scope)
{
  autocast_state *now = &thread_autocast;
  if (!scope || !scope->open) return;
  scope->open = false;
  now->on = (uint8_t)(scope->enabled[0] | scope->enabled[1] << 1);
  for (int i = 0; i < 2; i++)
    now->dtype[i] = (uint8_t)scope->dtype[i];
  now->uncached = scope->uncached;
  if (!--now->scopes) weir_clear_autocast_cache();
}

autocast_state autocast_adopt(const autocast_state *other)
{
  autocast_state before = thread_autocast;
  thread_autocast = *other;
  thread_autocast.kept = NULL;
  return before;
}

void autocast_back(const autocast_state *before)
{
  weir_clear_autocast_cache();
  thread_autocast = *before;
}

bool weir_is_autocast_enabled(weir_device_type device_type)
{
  return thread_autocast.on >> kind_of_device(device_type) & 1;
}

weir_dtype weir_get_autocast_dtype(weir_device_type device_type)
{
  return lower_of(kind_of_device(device_type));
}

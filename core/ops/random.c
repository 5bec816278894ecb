/* random.c: generators, and tensors filled from them.
 *
 * A generator counts the blocks of its stream that are used up; a call takes the next ones with one
 * atomic addition, so that threads that share a generator never get the same numbers. Default
 * generators are there from the start, one a device, with the seed of the process until they are
 * seeded themselves.
 *
 * Graphs. Captured work counts the blocks that one replay uses, and reads the generator's seed and
 * place from memory of the graph's, written before each replay: a replay takes the generator's
 * next blocks, as the same calls would without a graph. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/stream/capture.h"
#include "core/backend/philox.h"
#include "core/memory/devices.h"
#include "core/ops/ops.h"

struct weir_generator {
  _Atomic uint64_t seed;   /* of a default one: xor FIRST_SEED, so that 0 is that seed */
  _Atomic uint64_t offset; /* blocks used up */
  bool owned;              /* not a default one */
  _Atomic unsigned refs;   /* of an owned one: the program's, and a graph's each */
  weir_device device;      /* not set in default ones */
};

static const uint64_t FIRST_SEED = 67280421310721; /* torch's */
static weir_generator defaults[1 + WEIR_DEVICES];  /* the cpu's, then cuda's */

/* ---- generators ------------------------------------------------------------------------------ */

static uint64_t mask(const weir_generator *g)
{
  return g->owned ? 0 : FIRST_SEED;
}

weir_status weir_default_generator(weir_generator **out, weir_device device)
{
  WEIR_REQUIRE(out);
  device = device_resolve(device);
  bool cuda = device.type == WEIR_DEVICE_CUDA;
  *out = NULL;
  if (device.index.plus_1 > (cuda ? WEIR_DEVICES : 0))
    return fail_invalid("invalid device ordinal: %s:%d", cuda ? "cuda" : "cpu",
                        weir_device_index(device));
  *out = &defaults[cuda ? device.index.plus_1 : 0];
  return WEIR_OK;
}

weir_status weir_generator_new(weir_generator **out, weir_device device)
{
  WEIR_REQUIRE_OUT(out);
  weir_generator *of;
  TRY(weir_default_generator(&of, device));
  weir_generator *g = calloc(1, sizeof *g);
  if (!g) return fail_memory("a generator");
  g->owned = true;
  atomic_store(&g->refs, 1);
  g->device = device_resolve(device);
  atomic_store(&g->seed, FIRST_SEED);
  *out = g;
  return WEIR_OK;
}

void weir_generator_release(weir_generator *g)
{
  if (g && g->owned && atomic_fetch_sub(&g->refs, 1) == 1) free(g);
}

void weir_generator_manual_seed(weir_generator *g, uint64_t seed)
{
  if (!g) return;
  weir_generator_set_state(g, (weir_generator_state){seed, 0});
}

uint64_t weir_generator_initial_seed(const weir_generator *g)
{
  if (!g) return 0;
  return atomic_load(&g->seed) ^ mask(g);
}

weir_device weir_generator_device(const weir_generator *g)
{
  if (!g) return (weir_device){WEIR_DEVICE_UNSET, {0}};
  if (g->owned) return g->device;
  return g == defaults ? WEIR_CPU : WEIR_CUDA_AT((int)(g - defaults) - 1);
}

weir_generator_state weir_generator_get_state(const weir_generator *g)
{
  if (!g) return (weir_generator_state){0, 0};
  return (weir_generator_state){atomic_load(&g->seed) ^ mask(g), atomic_load(&g->offset)};
}

void weir_generator_set_state(weir_generator *g, weir_generator_state state)
{
  if (!g) return;
  atomic_store(&g->seed, state.seed ^ mask(g));
  atomic_store(&g->offset, state.offset);
}

void weir_manual_seed(uint64_t seed)
{
  for (int i = 0; i <= WEIR_DEVICES; i++)
    weir_generator_manual_seed(&defaults[i], seed);
}

weir_status weir_manual_seed_device(weir_device device, uint64_t seed)
{
  weir_generator *g = NULL;
  weir_status st = weir_default_generator(&g, device);
  if (g) weir_generator_manual_seed(g, seed);
  return st;
}

weir_status reserve_numbers(weir_generator_state *out, weir_device device, uint64_t blocks)
{
  weir_generator *g = NULL;
  TRY(weir_default_generator(&g, device));
  *out =
      (weir_generator_state){weir_generator_initial_seed(g), atomic_fetch_add(&g->offset, blocks)};
  return WEIR_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A generator's part of a graph. */
typedef struct drawn {
  graph_part part;
  weir_generator *generator; /* a reference of its own */
  weir_tensor *at[2];        /* int64, one element each, neighbours: weir_random.base */
  _Atomic uint64_t blocks;   /* that a replay uses */
  uint64_t seed;             /* that at[0] holds, */
  bool seeded;               /* if it holds one */
} drawn;

static void drop_drawn(graph_part *part)
{
  drawn *d = (drawn *)part;
  weir_tensor_release(d->at[0]);
  weir_tensor_release(d->at[1]);
  weir_generator_release(d->generator);
  free(d);
}

static weir_status write_place(graph_part *part)
{
  drawn *d = (drawn *)part;
  weir_generator *g = d->generator;
  uint64_t seed = weir_generator_initial_seed(g),
           offset = atomic_fetch_add(&g->offset, atomic_load(&d->blocks));
  weir_status st = WEIR_OK;
  if (!d->seeded || d->seed != seed) st = weir_fill_(d->at[0], weir_int((int64_t)seed));
  if (st) return st;
  d->seed = seed;
  d->seeded = true;
  return weir_fill_(d->at[1], weir_int((int64_t)offset));
}

/* Its memory is had in the capture, from the graph's pool. */
static weir_status make_drawn(graph_part **out, void *key)
{
  weir_generator *g = key;
  CALC(c);
  drawn *d = calloc(1, sizeof *d);
  if (!d) return fail_memory("a generator's part of a graph");
  weir_tensor *both =
      c_call(c, tensor_new, WEIR_INT64, weir_generator_device(g), false, weir_shape(2));
  for (int i = 0; i < 2 && !c->st; i++)
    c->st = weir_slice(&d->at[i], both, 0, i, i + 1, 1);
  if (g->owned) atomic_fetch_add(&g->refs, 1);
  d->generator = g;
  d->part.replay = write_place;
  d->part.drop = drop_drawn;
  if (c->st)
    drop_drawn(&d->part);
  else
    *out = &d->part;
  return c->st;
}

/* Takes r->used blocks of g, now or, where `stream` is being captured, at every replay. */
static weir_status draw_blocks(weir_random *r, weir_generator *g, weir_stream *stream)
{
  graph_part *part = NULL;
  TRY(stream ? graph_part_of(&part, stream, g, make_drawn) : WEIR_OK);
  if (part) {
    drawn *d = (drawn *)part;
    r->base = (const uint64_t *)(const void *)d->at[0]->data;
    r->offset = atomic_fetch_add(&d->blocks, r->used);
  } else {
    r->offset = atomic_fetch_add(&g->offset, r->used);
    r->seed = weir_generator_initial_seed(g);
  }
  return WEIR_OK;
}

/* ---- filling --------------------------------------------------------------------------------- */

/* NULL: the default one. */
static weir_status generator_for(weir_generator **g, const weir_tensor *t)
{
  char one[WEIR_DEVICE_TEXT], two[WEIR_DEVICE_TEXT];
  weir_device device = device_of_tensor(t);
  if (!*g) return weir_default_generator(g, device);
  weir_device of = weir_generator_device(*g);
  if (of.type != device.type)
    return fail_invalid("Expected a '%s' device type for generator but found '%s'",
                        device.type == WEIR_DEVICE_CUDA ? "cuda" : "cpu",
                        of.type == WEIR_DEVICE_CUDA ? "cuda" : "cpu");
  return weir_device_equal(of, device)
             ? WEIR_OK
             : fail_invalid("Expected a '%s' generator device but found '%s'",
                            device_format(one, device), device_format(two, of));
}

/* Into dense memory, elements in their order. */
static weir_status run_random(weir_random *r, const weir_tensor *t, weir_generator *g)
{
  compute_target target;
  bool pairs = t->dtype == WEIR_COMPLEX64; /* real and imaginary parts, each a number */
  r->out = t->data;
  r->dtype = pairs ? WEIR_FLOAT32 : t->dtype;
  r->count = pairs ? 2 * t->numel : t->numel;
  TRY(compute_target_of(&target, device_of_tensor(t)));
  if (!target.compute->random) return compute_target_lacks(&target, "random");
  r->used = philox_blocks(r->count);
  TRY(draw_blocks(r, g, target.place.stream));
  return compute_target_done(&target, target.compute->random(target.self, target.stream, r),
                             "random");
}

static weir_status draw_into(weir_random *r, weir_tensor *t, weir_generator *g)
{
  CALC(c);
  weir_tensor *dense = NULL;
  bool copy;
  c->st = generator_for(&g, t);
  c_do(c, overlap_check(&copy, t, NULL));
  if (c->st || !g || !t->numel) return c->st;
  if (t->dense) return run_random(r, t, g);
  dense = c_call(c, tensor_new_beside, t, shape_of_tensor(t));
  c_do(c, run_random(r, dense, g));
  return c->st ? c->st : loop_copy(t, dense);
}

static weir_status fill_tensor(weir_random *r, weir_tensor *t, weir_generator *g)
{
  grad_node *node = NULL;
  bool records = recorded(t);
  weir_status st = WEIR_OK;
  if (records) {
    record q = {.kind = RECORD_FILL, .in_place = true, .inputs = 1, .out = {t}};
    q.in = (const weir_tensor *[]){t};
    st = tensor_recorder->before(&node, &q);
  }
  if (st) return st;
  st = draw_into(r, t, g);
  if (!st) tensor_changes(t);
  if (records) tensor_recorder->after(node, t, !st);
  return st;
}

weir_status weir_normal_(weir_tensor *t, double mean, double std, weir_generator *g)
{
  WEIR_OP_ON(t);
  weir_random r = {.kind = WEIR_RANDOM_NORMAL, .a = mean, .b = std};
  if (!(std >= 0)) return fail_invalid("normal expects std >= 0.0, but found std %g", std);
  if (dtype_is_integral_or_bool(t->dtype))
    return not_implemented("normal_kernel_%s", device_of_tensor(t), t->dtype);
  if (t->dtype == WEIR_COMPLEX64) r.b *= sqrt(0.5); /* of each part */
  return fill_tensor(&r, t, g);
}

static double largest(weir_dtype d)
{
  double low, high;
  dtype_range(d, &low, &high);
  return high;
}

weir_status weir_uniform_(weir_tensor *t, double from, double to, weir_generator *g)
{
  WEIR_OP_ON(t);
  weir_random r = {.kind = WEIR_RANDOM_UNIFORM, .a = from, .b = to};
  weir_dtype d = t->dtype;
  if (dtype_is_integral_or_bool(d))
    return not_implemented("check_uniform_bounds", device_of_tensor(t), d);
  const char *name = dtype_cxx(d == WEIR_COMPLEX64 ? WEIR_FLOAT32 : d);
  if (!(fabs(from) <= largest(d))) return fail_invalid("from is out of bounds for %s", name);
  if (!(fabs(to) <= largest(d))) return fail_invalid("to is out of bounds for %s", name);
  if (from > to)
    return fail_invalid("uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                        from, to);
  if (to - from > largest(d))
    return fail_invalid("uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found "
                        "to=%g and from=%g which result in to-from to exceed the limit",
                        dtype_title(d), to, from);
  return fill_tensor(&r, t, g);
}

static weir_status check_range(weir_dtype d, int64_t from, int64_t to)
{
  double low, high;
  const int64_t exact = INT64_C(1) << 53;
  if (from >= to)
    return fail_invalid("random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                        (long long)from, (long long)to);
  if (d == WEIR_COMPLEX64)
    return fail_unsupported(
        "check_random_bounds handles only integral, floating-point and boolean types");
  dtype_range(d, &low, &high);
  if ((double)from < low || (double)from > high)
    return fail_invalid("from is out of bounds for %s", dtype_cxx(d));
  if ((double)(to - 1) < low || (double)(to - 1) > high)
    return fail_invalid("to - 1 is out of bounds for %s", dtype_cxx(d));
  if (from < -exact || to > exact)
    return fail_unsupported(
        "random_ draws integers from -2^53 to 2^53, but got from=%lld and to=%lld", (long long)from,
        (long long)to);
  return WEIR_OK;
}

weir_status weir_random_(weir_tensor *t, int64_t from, int64_t to, weir_generator *g)
{
  WEIR_OP_ON(t);
  weir_random r = {.kind = WEIR_RANDOM_INTEGER, .a = (double)from, .b = (double)to};
  weir_status st = check_range(t->dtype, from, to);
  return st ? st : fill_tensor(&r, t, g);
}

weir_status weir_bernoulli_(weir_tensor *t, double p, weir_generator *g)
{
  WEIR_OP_ON(t);
  weir_random r = {.kind = WEIR_RANDOM_BERNOULLI, .a = p};
  if (!(p >= 0 && p <= 1))
    return fail_invalid("bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  if (t->dtype == WEIR_COMPLEX64)
    return not_implemented("bernoulli_scalar_%s_", device_of_tensor(t), WEIR_COMPLEX64);
  return fill_tensor(&r, t, g);
}

/* ---- new tensors ----------------------------------------------------------------------------- */

typedef weir_status (*filler)(weir_tensor *t, double a, double b, weir_generator *g);

static weir_status fill_new(weir_tensor **out, weir_status st, filler draw, double a, double b)
{
  if (!st && (st = draw(*out, a, b, NULL))) weir_tensor_drop(out);
  return st;
}

#define DRAWN(name, draw)                                                                          \
  weir_status weir_##name(weir_tensor **out, weir_shape shape, const weir_options *options)        \
  {                                                                                                \
    WEIR_OP_ON(out);                                                                               \
    return fill_new(out, weir_empty(out, shape, options), draw, 0, 1);                             \
  }                                                                                                \
  weir_status weir_##name##_like(weir_tensor **out, const weir_tensor *like,                       \
                                 const weir_options *options)                                      \
  {                                                                                                \
    WEIR_OP(out, like);                                                                            \
    return fill_new(out, weir_empty_like(out, like, options), draw, 0, 1);                         \
  }
DRAWN(rand, weir_uniform_)
DRAWN(randn, weir_normal_)

weir_status weir_randint(weir_tensor **out, int64_t low, int64_t high, weir_shape shape,
                         const weir_options *options)
{
  WEIR_OP_ON(out);
  weir_options integers = options ? *options : (weir_options){0};
  if (!integers.dtype) integers.dtype = WEIR_INT64;
  weir_status st = weir_empty(out, shape, &integers);
  if (!st && (st = weir_random_(*out, low, high, NULL))) weir_tensor_drop(out);
  return st;
}

/* ---- permutations ---------------------------------------------------------------------------- */

static weir_status check_permutation(int64_t n, weir_dtype d)
{
  weir_scalar last;
  if (d == WEIR_BOOL || d == WEIR_COMPLEX64) return not_implemented("randperm", WEIR_CPU, d);
  if (n && dtype_is_integral(d)) {
    TRY(scalar_for(&last, weir_int(n - 1), d));
  }
  if (d == WEIR_FLOAT16 && n > 2049)
    return fail_invalid("n cannot be greater than 2049 for Half type.");
  if (d == WEIR_BFLOAT16 && n > 257)
    return fail_invalid("n cannot be greater than 257 for BFloat16 type.");
  if (d == WEIR_FLOAT32 && n > (1 << 24) + 1)
    return fail_invalid("n cannot be greater than 2^24+1 for Float type.");
  if (n > INT64_C(1) << 53)
    return fail_invalid("n cannot be greater than 2^53 for %s type.", dtype_title(d));
  return WEIR_OK;
}

weir_status weir_randperm(weir_tensor **out, int64_t n, const weir_options *options)
{
  WEIR_OP_ON(out);
  weir_options integers = options ? *options : (weir_options){0};
  weir_random r = {.kind = WEIR_RANDOM_PERMUTATION, .a = (double)n, .b = 1};
  *out = NULL;
  if (n < 0)
    return fail_invalid("Trying to create tensor with negative dimension %lld: [%lld]",
                        (long long)n, (long long)n);
  if (!integers.dtype) integers.dtype = WEIR_INT64;
  weir_status st = check_permutation(n, integers.dtype);
  if (!st) st = weir_empty(out, weir_shape(n), &integers);
  while (r.b < 62 && INT64_C(1) << (int)r.b < n)
    r.b++;
  if (!st && (st = fill_tensor(&r, *out, NULL))) weir_tensor_drop(out);
  return st;
}

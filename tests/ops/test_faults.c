/* test_faults.c: every Nth allocation and every Nth call of the driver failing under operations: an
 * error that is worded, no result, nothing lost, operands whole, and the next try succeeds.
 *
 * A step is one operation, or a few that belong together. It is tried by itself: the fault is given
 * to its first allocation (or call), then to its second, until there is none that it meets. The
 * linker puts wrapped functions in the place of the C library's allocation functions in all objects
 * of the engine (rules.mk: --wrap). */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include "core/tensor/slots.h"
#include "tests/tensor/rig.h"

static unsigned fail_at; /* the Nth allocation from now fails; 0: none */
static bool met;
static bool wrong; /* a failure left a result; Check allocates, too, so that it is asked later */
static _Atomic int64_t live; /* allocations not freed */

/* Not hidden: the linker takes what sanitizers' libraries ask of malloc for requests of these. */
#pragma GCC visibility push(default)
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
void __wrap_free(void *memory);
#pragma GCC visibility pop

static bool allocation_fails(void)
{
  bool now = fail_at && !--fail_at;
  met |= now;
  return now;
}

static void *count_live_memory(void *memory)
{
  live += memory != NULL;
  return memory;
}

void *__wrap_malloc(size_t bytes)
{
  return count_live_memory(allocation_fails() ? NULL : __real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
  return count_live_memory(allocation_fails() ? NULL : __real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
  if (allocation_fails()) return NULL;
  void *out = __real_realloc(memory, bytes);
  live += out && !memory;
  return out;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
  return count_live_memory(allocation_fails() ? NULL : __real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
  if (allocation_fails()) return ENOMEM;
  int bad = __real_posix_memalign(out, alignment, bytes);
  live += !bad;
  return bad;
}

void __wrap_free(void *memory)
{
  live -= memory != NULL;
  __real_free(memory);
}

/* ---- what is tried --------------------------------------------------------------------------- */

/* CPU_ONLY: the cpu alone, for valgrind, which has no room for the software device's memory. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = 2 };
#endif

enum { LONG = 1 << 16 }; /* elements that a device sums in two launches */

typedef struct operands {
  weir_device device;
  weir_tensor *a, *b, *turned;        /* 3 x 4, 3 x 4, 4 x 3 */
  weir_tensor *whole;                 /* 3 x 4, int32, no 0 */
  weir_tensor *truth;                 /* 3 x 4 */
  weir_tensor *batch;                 /* 2 x 4 x 3, steps of 2 in the last dimension */
  weir_tensor *half, *complex;        /* 3 x 4 */
  weir_tensor *image, *kernel, *bias; /* 2 x 2 x 5 x 5, 4 x 1 x 3 x 3, 4 */
  weir_tensor *many;                  /* LONG */
  weir_tensor *row, *number;          /* 3; without dimensions, on the cpu */
} operands;

static operands o;
static weir_tensor **const of_operands[] = {&o.a,     &o.b,    &o.turned,  &o.whole, &o.truth,
                                            &o.batch, &o.half, &o.complex, &o.image, &o.kernel,
                                            &o.bias,  &o.many, &o.row,     &o.number};
enum { OPERANDS = sizeof of_operands / sizeof *of_operands };

/* What a step made; released by whoever ran it. */
typedef struct result {
  weir_tensor *t[2];
} result;

#define STEP(name) static weir_status name(__attribute__((unused)) result *r)
#define OUT        (&r->t[0])

STEP(add)
{
  return weir_add(OUT, o.a, o.b);
}
STEP(add_strided)
{
  return weir_add_alpha(OUT, o.turned, o.row, weir_float(2));
}
STEP(add_number_on_the_cpu)
{
  return weir_add(OUT, o.a, o.number);
}
STEP(add_promoted)
{
  return weir_mul(OUT, o.half, o.whole);
}
STEP(add_in_place)
{
  return weir_add_(o.a, o.b);
}
STEP(exp_in_place)
{
  return weir_exp_(o.a);
}
STEP(divide_in_place)
{
  return weir_floor_divide_(o.whole, o.whole);
}
STEP(tanh_of_complex)
{
  return weir_tanh(OUT, o.complex);
}
STEP(compare)
{
  return weir_lt_scalar(OUT, o.a, weir_float(3));
}
STEP(where)
{
  return weir_where(OUT, o.truth, o.a, o.whole);
}
STEP(isclose)
{
  return weir_isclose(OUT, o.a, o.b, 1e-5, 1e-8, true);
}
STEP(cast)
{
  return weir_to_dtype(OUT, o.turned, WEIR_BFLOAT16);
}
STEP(contiguous)
{
  return weir_contiguous(OUT, o.turned);
}
STEP(fill_in_place)
{
  return weir_fill_(o.turned, weir_float(7));
}
STEP(sum)
{
  return weir_sum(OUT, o.many);
}
STEP(mean_dims)
{
  return weir_mean_dims(OUT, o.batch, (const int[]){0, 2}, 2, true);
}
STEP(places)
{
  return weir_argmax_dim(OUT, o.turned, 1, false);
}
STEP(values_and_places)
{
  return weir_max_dim(&r->t[0], &r->t[1], o.batch, 1, false);
}
STEP(mm)
{
  return weir_mm(OUT, o.a, o.turned);
}
STEP(mm_of_halves)
{
  WEIR_TENSOR t = NULL;
  weir_status st = weir_t(&t, o.half);
  return st ? st : weir_mm(OUT, o.half, t);
}
STEP(mm_of_complex)
{
  WEIR_TENSOR t = NULL;
  weir_status st = weir_t(&t, o.complex);
  return st ? st : weir_mm(OUT, o.complex, t);
}
STEP(matmul_of_batches)
{
  return weir_matmul(OUT, o.a, o.batch);
}
STEP(addmm)
{
  return weir_addmm(OUT, o.bias, o.turned, o.b, 2, 3);
}
STEP(linear)
{
  return weir_linear(OUT, o.b, o.a, o.row);
}
STEP(einsum)
{
  return weir_einsum(OUT, "ij,jk,bij->b", (const weir_tensor *[]){o.turned, o.a, o.batch}, 3);
}
STEP(contractions)
{
  weir_status st = weir_multi_dot(OUT, (const weir_tensor *[]){o.a, o.turned, o.b}, 3);
  if (!st) st = weir_tensordot(&r->t[1], o.a, o.batch, 0);
  if (st) weir_tensor_drop(OUT);
  return st;
}
STEP(baddbmm)
{
  WEIR_TENSOR rows = NULL;
  weir_status st = weir_expand(&rows, o.a, weir_shape(2, 3, 4));
  return st ? st : weir_baddbmm(OUT, o.row, rows, o.batch, 2, 3);
}
STEP(distances)
{
  weir_status st = weir_cdist(OUT, o.a, o.b, 1);
  if (!st) st = weir_vander(&r->t[1], o.row, 3, false);
  if (st) weir_tensor_drop(OUT);
  return st;
}
STEP(attention)
{
  weir_attention_options options = {.is_causal = true, .dropout = 0.5};
  return weir_scaled_dot_product_attention(OUT, o.a, o.b, o.b, &options);
}
STEP(multihead)
{
  WEIR_MODULE m = NULL;
  weir_multihead_attention_options options = {.tensor = on(o.device)};
  weir_multihead_options how = {.is_causal = true};
  weir_status st = weir_module_multihead_attention(&m, 4, 2, &options);
  return st ? st : weir_multihead_attention(&r->t[0], &r->t[1], m, o.a, o.b, o.b, &how);
}
STEP(recurrent)
{
  WEIR_MODULE m = NULL;
  WEIR_TENSOR out = NULL;
  weir_recurrent_options options = {
      .tensor = on(o.device), .num_layers = 2, .bidirectional = true, .dropout = 0.5};
  weir_status st = weir_module_lstm(&m, 4, 2, &options);
  return st ? st : weir_recurrent(&out, &r->t[0], &r->t[1], m, o.a, NULL, NULL);
}
STEP(recurrent_cell)
{
  WEIR_MODULE m = NULL;
  weir_recurrent_options options = {.tensor = on(o.device)};
  weir_status st = weir_module_gru_cell(&m, 4, 3, &options);
  return st ? st : weir_recurrent(&r->t[0], &r->t[1], NULL, m, o.bias, o.row, NULL);
}
/* What a module made by `st` gives of `count` tensors; m is stolen. */
static weir_status called(weir_tensor **out, weir_status st, weir_module *m, weir_tensor *const *in,
                          int count)
{
  if (!st) st = weir_module_call_many(out, m, in, count);
  weir_module_release(m);
  return st;
}
STEP(loss_layer)
{
  WEIR_TENSOR target = NULL;
  weir_module *m = NULL;
  weir_class_options classes = {.weight = o.bias, .label_smoothing = 0.1};
  weir_options options = as(WEIR_INT64, o.device);
  weir_status st = weir_zeros(&target, weir_shape(3), &options);
  if (!st) st = weir_module_cross_entropy_loss(&m, &classes);
  return called(OUT, st, m, (weir_tensor *[]){o.a, target}, 2);
}
STEP(losses_of_pairs)
{
  weir_module *m = NULL;
  weir_status st = weir_module_bce_with_logits_loss(&m, o.bias, o.bias, WEIR_REDUCTION_MEAN);
  st = called(&r->t[0], st, m, (weir_tensor *[]){o.a, o.b}, 2);
  m = NULL;
  if (!st) st = weir_module_triplet_margin_loss(&m, 1, 2, WEIR_REDUCTION_SUM);
  if (!st) st = called(&r->t[1], st, m, (weir_tensor *[]){o.a, o.b, o.b}, 3);
  if (st) weir_tensor_drop(OUT);
  return st;
}
STEP(resized)
{
  weir_module *m = NULL;
  weir_interpolate_options half = {.scale = {0.5}, .mode = WEIR_INTERPOLATE_BILINEAR};
  weir_status st = weir_module_reflection_pad2d(&m, (const int64_t[]){1, 2, 2, 1});
  st = called(&r->t[0], st, m, &o.image, 1);
  m = NULL;
  if (!st) st = weir_module_upsample(&m, &half);
  if (!st) st = called(&r->t[1], st, m, &o.image, 1);
  if (st) weir_tensor_drop(OUT);
  return st;
}
/* Linear, a norm, GELU, Dropout. */
static weir_status small_network(weir_module **out)
{
  weir_module *part[4] = {NULL};
  weir_layer_options linear = {.tensor = on(o.device)};
  weir_norm_layer_options norm = {.tensor = on(o.device)};
  weir_status st = weir_module_linear(&part[0], 4, 4, &linear);
  if (!st) st = weir_module_layer_norm(&part[1], weir_shape(4), &norm);
  if (!st) st = weir_module_gelu(&part[2], "tanh");
  if (!st) st = weir_module_dropout(&part[3], 0.5);
  if (!st) return weir_module_sequential(out, part, 4);
  for (int i = 0; i < 4; i++)
    weir_module_release(part[i]);
  return st;
}
STEP(network)
{
  weir_module *m = NULL;
  weir_status st = small_network(&m);
  return called(OUT, st, m, &o.a, 1);
}
STEP(embedding_layers)
{
  WEIR_TENSOR index = NULL;
  weir_module *m = NULL;
  weir_options options = as(WEIR_INT64, o.device);
  weir_embedding_bag_layer_options bag = {.tensor = on(o.device)};
  weir_embedding_options rows = {.tensor = on(o.device), .has_padding = true};
  weir_status st = weir_zeros(&index, weir_shape(2, 2), &options);
  if (!st) st = weir_module_embedding_bag(&m, 4, 3, &bag);
  st = called(&r->t[0], st, m, &index, 1);
  m = NULL;
  if (!st) st = weir_module_embedding(&m, 4, 3, &rows);
  if (!st) st = called(&r->t[1], st, m, &index, 1);
  if (st) weir_tensor_drop(OUT);
  return st;
}
STEP(decoder)
{
  WEIR_MODULE m = NULL;
  weir_transformer_options options = {
      .tensor = on(o.device), .dim_feedforward = 3, .no_dropout = true};
  weir_transformer_decode_options how = {.tgt_is_causal = true};
  weir_status st = weir_module_transformer_decoder_layer(&m, 4, 2, &options);
  return st ? st : weir_transformer_decode(OUT, m, o.a, o.b, &how);
}
/* Of the cpu alone, for its many parts. */
STEP(transformer)
{
  WEIR_MODULE m = NULL;
  weir_transformer_options options = {.dim_feedforward = 3, .no_dropout = true};
  if (o.device.type != WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_module_transformer(&m, 4, 2, 2, 1, &options);
  return st ? st : weir_transformer(OUT, m, o.a, o.b, NULL, NULL);
}
/* A copy of o.a that requires a gradient. */
static weir_status trained_copy(weir_tensor **out)
{
  weir_status st = weir_clone(out, o.a);
  if (!st && (st = weir_requires_grad_(*out, true))) weir_tensor_drop(out);
  return st;
}
/* Where memory is short nothing of p has changed. */
static weir_status whole_or(weir_status st, const weir_tensor *p)
{
  char said[256];
  bool same = true;
  if (st != WEIR_ENOMEM && st != WEIR_EOOM) return st;
  (void)snprintf(said, sizeof said, "%s", weir_error_message());
  weir_status asked = weir_equal(&same, p, o.a);
  if (asked || !same) return weir_fail(WEIR_EINVAL, "a parameter has changed");
  return weir_fail(st, "%s", said);
}
STEP(back_through_a_network)
{
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR sum = NULL;
  weir_status st = small_network(&m);
  if (!st) st = trained_copy(&x);
  if (!st) st = weir_module_call(&y, m, x);
  if (!st) st = weir_sum(&sum, y);
  if (!st) st = weir_backward(sum, NULL, false);
  return x ? whole_or(st, x) : st;
}
static weir_status keep_gradient(weir_module *m, weir_tensor **in, int count, weir_tensor **out,
                                 void *user)
{
  (void)m;
  (void)out;
  (void)user;
  return count && in[0] ? weir_mul_scalar(in, in[0], weir_float(2)) : WEIR_OK;
}
STEP(hooked)
{
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR sum = NULL;
  weir_status st = weir_module_tanh(&m);
  for (int i = WEIR_HOOK_FORWARD_PRE; i <= WEIR_HOOK_BACKWARD && !st; i += WEIR_HOOK_BACKWARD)
    st = weir_module_register_hook(NULL, m, (weir_module_hook_kind)i, keep_gradient, NULL, NULL);
  if (!st) st = trained_copy(&x);
  if (!st) st = weir_module_call(&y, m, x);
  if (!st) st = weir_sum(&sum, y);
  return st ? st : weir_backward(sum, NULL, false);
}
static weir_status optimizer_step(weir_optim kind)
{
  WEIR_OPTIMIZER optimizer = NULL;
  WEIR_TENSOR p = NULL;
  weir_optim_options options = weir_optim_defaults(kind);
  if (kind == WEIR_SGD) options.momentum = 0.9;
  weir_status st = trained_copy(&p);
  if (!st) st = weir_tensor_set_grad(p, o.b);
  if (!st) st = weir_optimizer_create(&optimizer, kind, &p, 1, &options);
  if (!st) st = weir_optimizer_step(optimizer);
  return p ? whole_or(st, p) : st;
}
STEP(sgd)
{
  return optimizer_step(WEIR_SGD);
}
STEP(adam)
{
  return optimizer_step(WEIR_ADAM);
}
STEP(adamw)
{
  return optimizer_step(WEIR_ADAMW);
}
STEP(rmsprop)
{
  return optimizer_step(WEIR_RMSPROP);
}
STEP(adagrad)
{
  return optimizer_step(WEIR_ADAGRAD);
}
/* Of the cpu alone. */
STEP(solution)
{
  WEIR_TENSOR square = NULL;
  if (o.device.type != WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_eye(&square, 4, 4, NULL);
  return st ? st : weir_solve(OUT, square, o.bias);
}
STEP(factorisations)
{
  if (o.device.type != WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_qr(&r->t[0], &r->t[1], o.a, "complete");
  weir_tensor_drop(&r->t[0]);
  weir_tensor_drop(&r->t[1]);
  if (!st) st = weir_pinv(OUT, o.a, -1);
  return st;
}
STEP(matrix_norms)
{
  WEIR_TENSOR u = NULL;
  if (o.device.type != WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_svd(&u, &r->t[0], &r->t[1], o.a, true);
  weir_tensor_drop(&r->t[0]);
  weir_tensor_drop(&r->t[1]);
  return st ? st : weir_matrix_norm(OUT, o.turned, "nuc", NULL, true);
}
STEP(conv2d)
{
  weir_conv2d_options options = {.padding = {1, 1}, .stride = {2, 1}, .groups = 2};
  return weir_conv2d(OUT, o.image, o.kernel, o.bias, &options);
}
STEP(max_pool2d)
{
  weir_pool2d_options options = {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}};
  return weir_max_pool2d(OUT, o.image, &options);
}
STEP(softmax)
{
  return weir_log_softmax(OUT, o.half, 0);
}
STEP(var_mean)
{
  return weir_var_mean_dim(&r->t[0], &r->t[1], o.turned, 0, 1, false);
}
STEP(var_of_complex)
{
  return weir_std_mean(&r->t[0], &r->t[1], o.complex, 1);
}
STEP(norm_of_many)
{
  return weir_norm(OUT, o.many, 3);
}
STEP(largest_norm)
{
  return weir_norm_dim(OUT, o.complex, (double)INFINITY, 0, true);
}
STEP(count_nonzero)
{
  return weir_count_nonzero_dim(OUT, o.batch, 1);
}
STEP(nansum)
{
  return weir_nansum(OUT, o.half);
}
STEP(aminmax)
{
  return weir_aminmax(&r->t[0], &r->t[1], o.batch);
}
STEP(logsumexp)
{
  return weir_logsumexp(OUT, o.half, 1, false);
}
STEP(cumsum)
{
  return weir_cumsum(OUT, o.whole, 0);
}
STEP(cummax)
{
  return weir_cummax(&r->t[0], &r->t[1], o.batch, 1);
}
STEP(sort)
{
  return weir_sort(&r->t[0], &r->t[1], o.many, 0, true);
}
STEP(topk)
{
  return weir_topk(&r->t[0], &r->t[1], o.half, 1, -1, true);
}
STEP(median)
{
  return weir_nanmedian_dim(&r->t[0], &r->t[1], o.batch, 1, false);
}
STEP(quantile)
{
  return weir_quantile(OUT, o.batch, 0.3);
}
STEP(unique)
{
  return weir_unique(&r->t[0], &r->t[1], NULL, o.batch);
}
STEP(mode)
{
  return weir_mode(&r->t[0], &r->t[1], o.batch, 1, false);
}
STEP(histc)
{
  return weir_histc(OUT, o.half, 4, 0, 0);
}
STEP(isin)
{
  return weir_isin(OUT, o.a, o.whole, true);
}
STEP(index_put_masked)
{
  WEIR_TENSOR mask = NULL;
  WEIR_TENSOR one = NULL;
  weir_options options = as(WEIR_FLOAT32, o.device);
  weir_status st = weir_gt_scalar(&mask, o.a, weir_int(1));
  if (!st) st = weir_ones(&one, weir_shape(1), &options);
  return st ? st : weir_index_put(OUT, o.a, (const weir_tensor *[]){mask}, 1, one, true);
}
STEP(scatter_mean)
{
  WEIR_TENSOR index = NULL;
  weir_options options = as(WEIR_INT64, o.device);
  weir_status st = weir_zeros(&index, weir_shape(1, 2), &options);
  return st ? st : weir_scatter_reduce_(o.a, 0, index, o.b, WEIR_SCATTER_MEAN, false);
}
STEP(masked)
{
  WEIR_TENSOR mask = NULL;
  weir_status st = weir_gt_scalar(&mask, o.turned, weir_int(1));
  WEIR_TENSOR some = NULL;
  if (!st) st = weir_masked_select(&some, o.turned, mask);
  if (!st) st = weir_masked_scatter_(o.turned, mask, some);
  return st ? st : weir_nonzero(OUT, o.turned);
}
STEP(bag)
{
  WEIR_TENSOR index = NULL;
  weir_options options = as(WEIR_INT64, o.device);
  weir_status st = weir_zeros(&index, weir_shape(2, 2), &options);
  return st ? st : weir_embedding_bag(OUT, index, o.a, NULL, NULL, NULL);
}
STEP(clamp)
{
  weir_scalar low = weir_float(1.5), high = weir_int(4);
  return weir_clamp(OUT, o.whole, &low, &high);
}
STEP(cat)
{
  return weir_cat(OUT, (const weir_tensor *[]){o.a, o.whole, o.half}, 3, 1);
}
STEP(stack)
{
  return weir_stack(OUT, (const weir_tensor *[]){o.a, o.b}, 2, 2);
}
STEP(parts)
{
  WEIR_TENSOR part = NULL;
  WEIR_TENSOR row = NULL;
  weir_status st = weir_slice(&part, o.turned, 0, 1, 4, 2);
  if (!st) st = weir_select(&row, part, 1, 0);
  if (!st) st = weir_unsqueeze(OUT, row, 0);
  return st;
}
STEP(rand_new)
{
  weir_options options = on(o.device);
  return weir_rand(OUT, weir_shape(3, 5), &options);
}
STEP(arange)
{
  weir_options options = on(o.device);
  return weir_arange(OUT, weir_int(1), weir_float(9), weir_float(0.5), &options);
}
STEP(normal_in_place)
{
  return weir_normal_(o.a, 0, 1, NULL);
}
STEP(uniform_strided)
{
  return weir_uniform_(o.turned, 0, 1, NULL);
}
STEP(random_with_a_generator)
{
  weir_generator *g;
  weir_status st = weir_generator_new(&g, o.device);
  if (!st) st = weir_random_(o.whole, 1, 9, g);
  weir_generator_release(g);
  return st;
}
/* Not on the cpu, which has no graphs. */
STEP(random_in_a_graph)
{
  static weir_stream *side;
  weir_graph *graph;
  weir_status st = WEIR_OK;
  if (o.device.type == WEIR_DEVICE_CPU) return WEIR_OK;
  if (!side) st = weir_stream_new(&side, o.device, 0);
  if (!st) st = weir_graph_new(&graph);
  if (st) return st;
  WEIR_WITH_STREAM(side)
  {
    st = weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL);
    if (!st) st = weir_normal_(o.a, 0, 1, NULL);
    if (!st) st = weir_graph_capture_end(graph);
  }
  if (!st) st = weir_graph_replay(graph);
  weir_graph_release(graph);
  return st;
}
STEP(more_than_is_cached)
{
  WEIR_TENSOR wide = NULL;
  weir_status st = weir_expand(&wide, o.many, weir_shape(32, LONG));
  return st ? st : weir_contiguous(OUT, wide);
}
/* Not on the cpu: its page-locked memory is a device's. */
STEP(page_locked)
{
  WEIR_TENSOR host = NULL;
  weir_options options = {.device = cpu, .non_blocking = true};
  if (o.device.type == WEIR_DEVICE_CPU) return WEIR_OK;
  weir_status st = weir_cpu(&host, o.b);
  if (!st) st = weir_pin_memory(OUT, host);
  if (!st) st = weir_to(&r->t[1], o.many, &options);
  if (st) weir_tensor_drop(OUT);
  return st;
}
STEP(from_the_host)
{
  weir_options options = as(WEIR_FLOAT64, o.device);
  return weir_tensor_from(OUT, (const float[]){1, 2}, WEIR_FLOAT32, weir_shape(2), &options);
}
STEP(copy_of_all)
{
  return weir_clone(OUT, o.a);
}
STEP(equal)
{
  bool same;
  return weir_equal(&same, o.a, o.b);
}
STEP(allclose)
{
  bool close;
  return weir_allclose(&close, o.half, o.half, 1e-3, 1e-3, false);
}
STEP(item)
{
  WEIR_TENSOR last = NULL;
  weir_scalar v;
  weir_status st = weir_narrow(&last, o.many, 0, LONG - 1, 1);
  return st ? st : weir_item(&v, last);
}
STEP(join_rows)
{
  return weir_vstack(OUT, (const weir_tensor *[]){o.a, o.bias}, 2);
}
STEP(flip)
{
  return weir_rot90(OUT, o.a, 1, 0, 1);
}
STEP(roll)
{
  return weir_roll(OUT, o.turned, (const int64_t[]){1, 2}, (const int[]){0, 1}, 2);
}
STEP(repeat)
{
  return weir_tile(OUT, o.half, weir_shape(2, 3));
}
STEP(pad)
{
  return weir_pad(OUT, o.image, (const int64_t[]){1, 2, 2, 1}, 4, WEIR_PAD_REFLECT, weir_int(0));
}
STEP(pad_constant)
{
  return weir_pad(OUT, o.whole, (const int64_t[]){1, -1}, 2, WEIR_PAD_CONSTANT, weir_int(3));
}
STEP(triangle_in_place)
{
  return weir_tril_(o.a, 0);
}
STEP(diagonals)
{
  WEIR_TENSOR embedded = NULL;
  weir_status st = weir_diag_embed(&embedded, o.a, 1, 0, 2);
  return st ? st : weir_diag(OUT, o.row, -1);
}
STEP(spaces)
{
  weir_options options = on(o.device);
  return weir_logspace(OUT, weir_int(0), weir_int(3), 5, 10, &options);
}
STEP(split_up)
{
  int count;
  return weir_unbind(r->t, &count, 2, o.batch, 0);
}
STEP(grid)
{
  return weir_meshgrid(r->t, (const weir_tensor *[]){o.row, o.bias}, 2, true);
}

/* says: how an error of a launch begins; NULL: there is none, or it is one of several operations'.
 */
static const struct step {
  const char *name;
  weir_status (*run)(result *r);
  const char *says;
} steps[] = {{"add", add, "add: "},
             {"add, strided", add_strided, "add: "},
             {"add, a number on the cpu", add_number_on_the_cpu, "add: "},
             {"mul, promoted", add_promoted, "mul: "},
             {"add_", add_in_place, "add: "},
             {"exp_", exp_in_place, "exp: "},
             {"floor_divide_", divide_in_place, "floor_divide: "},
             {"tanh", tanh_of_complex, "tanh: "},
             {"lt", compare, "lt: "},
             {"where", where, "where: "},
             {"isclose", isclose, "isclose: "},
             {"to_dtype", cast, "copy_: "},
             {"contiguous", contiguous, "copy_: "},
             {"fill_", fill_in_place, "copy_: "},
             {"sum", sum, "sum: "},
             {"mean_dims", mean_dims, "mean: "},
             {"argmax", places, "argmax: "},
             {"max_dim", values_and_places, "max: "},
             {"mm", mm, "matmul: "},
             {"mm of halves", mm_of_halves, "matmul: "},
             {"mm of complex", mm_of_complex, "matmul: "},
             {"matmul", matmul_of_batches, NULL},
             {"addmm", addmm, NULL},
             {"linear", linear, NULL},
             {"einsum", einsum, NULL},
             {"multi_dot, tensordot", contractions, NULL},
             {"baddbmm", baddbmm, NULL},
             {"cdist, vander", distances, NULL},
             {"scaled_dot_product_attention", attention, NULL},
             {"MultiheadAttention", multihead, NULL},
             {"LSTM", recurrent, NULL},
             {"GRUCell", recurrent_cell, NULL},
             {"CrossEntropyLoss", loss_layer, NULL},
             {"BCEWithLogitsLoss, TripletMarginLoss", losses_of_pairs, NULL},
             {"ReflectionPad2d, Upsample", resized, NULL},
             {"Linear, LayerNorm, GELU, Dropout", network, NULL},
             {"EmbeddingBag, Embedding", embedding_layers, NULL},
             {"TransformerDecoderLayer", decoder, NULL},
             {"Transformer", transformer, NULL},
             {"backward", back_through_a_network, NULL},
             {"hooks", hooked, NULL},
             {"SGD", sgd, NULL},
             {"Adam", adam, NULL},
             {"AdamW", adamw, NULL},
             {"RMSprop", rmsprop, NULL},
             {"Adagrad", adagrad, NULL},
             {"solve", solution, NULL},
             {"qr, pinv", factorisations, NULL},
             {"svd, matrix_norm", matrix_norms, NULL},
             {"conv2d", conv2d, NULL},
             {"max_pool2d", max_pool2d, NULL},
             {"log_softmax", softmax, NULL},
             {"var_mean", var_mean, "var: "},
             {"std_mean of complex", var_of_complex, NULL},
             {"norm", norm_of_many, NULL},
             {"norm, the largest", largest_norm, NULL},
             {"count_nonzero", count_nonzero, "count_nonzero: "},
             {"nansum", nansum, "nansum: "},
             {"aminmax", aminmax, NULL},
             {"logsumexp", logsumexp, NULL},
             {"cumsum", cumsum, NULL},
             {"cummax", cummax, NULL},
             {"sort", sort, NULL},
             {"topk", topk, NULL},
             {"nanmedian", median, NULL},
             {"quantile", quantile, NULL},
             {"isin", isin, NULL},
             {"unique", unique, NULL},
             {"mode", mode, NULL},
             {"histc", histc, NULL},
             {"index_put by a mask", index_put_masked, NULL},
             {"scatter_reduce_, mean", scatter_mean, NULL},
             {"masked_select, masked_scatter_, nonzero", masked, NULL},
             {"embedding_bag", bag, NULL},
             {"clamp", clamp, NULL},
             {"cat", cat, "copy_: "},
             {"stack", stack, "copy_: "},
             {"slice, select, unsqueeze", parts, NULL},
             {"rand", rand_new, "random: "},
             {"arange", arange, "arange: "},
             {"normal_", normal_in_place, "random: "},
             {"uniform_, strided", uniform_strided, NULL},
             {"random_", random_with_a_generator, "random: "},
             {"normal_ in a graph", random_in_a_graph, NULL},
             {"contiguous, large", more_than_is_cached, NULL},
             {"pin_memory, to the host", page_locked, NULL},
             {"tensor_from", from_the_host, NULL},
             {"clone", copy_of_all, NULL},
             {"equal", equal, NULL},
             {"allclose", allclose, NULL},
             {"item", item, NULL},
             {"vstack", join_rows, NULL},
             {"rot90", flip, NULL},
             {"roll", roll, NULL},
             {"tile", repeat, NULL},
             {"pad, reflect", pad, NULL},
             {"pad, constant", pad_constant, NULL},
             {"tril_", triangle_in_place, NULL},
             {"diag, diag_embed", diagonals, NULL},
             {"logspace", spaces, NULL},
             {"unbind", split_up, NULL},
             {"meshgrid", grid, NULL}};
enum { STEPS = sizeof steps / sizeof *steps };

static weir_status run_fault_step(const struct step *s)
{
  result r = {{NULL, NULL}};
  weir_status st = s->run(&r);
  wrong |= st && (r.t[0] || r.t[1]);
  weir_tensor_release(r.t[0]);
  weir_tensor_release(r.t[1]);
  if (o.device.type == WEIR_DEVICE_CUDA) (void)weir_synchronize(o.device);
  return st;
}

/* ---- operands, and whether they are whole ---------------------------------------------------- */

static void *kept[OPERANDS]; /* their elements, each in its own dtype */

static size_t bytes_of(const weir_tensor *t)
{
  return (size_t)weir_tensor_numel(t) * weir_dtype_size(weir_tensor_dtype(t));
}

static void keep_operands(void)
{
  for (int i = 0; i < OPERANDS; i++) {
    weir_tensor *t = *of_operands[i];
    if (!kept[i]) kept[i] = __real_malloc(bytes_of(t));
    weir_ok(weir_tensor_read(kept[i], bytes_of(t), weir_tensor_dtype(t), t));
  }
}

static void operands_are_whole(const struct step *s, unsigned n)
{
  for (int i = 0; i < OPERANDS; i++) {
    const weir_tensor *t = *of_operands[i];
    void *now = __real_malloc(bytes_of(t));
    weir_ok(weir_tensor_read(now, bytes_of(t), weir_tensor_dtype(t), t));
    ck_assert_msg(memcmp(now, kept[i], bytes_of(t)) == 0, "%s changed operand %d when %u failed",
                  s->name, i, n);
    __real_free(now);
  }
}

static weir_tensor *turned_of(weir_tensor *t)
{
  weir_tensor *out;
  weir_ok(weir_transpose(&out, t, -1, -2));
  weir_tensor_release(t);
  return out;
}

static void make_fault_operands(weir_device d)
{
  devices(2);
  slot_list_most = 0; /* every tensor is an allocation */
  weir_ok(weir_set_num_threads(1));
  weir_ok(weir_set_blas(WEIR_BLAS_BUILTIN)); /* the vendor's own allocations are its own affair */
  WEIR_TENSOR wide = counting(weir_shape(2, 4, 6), WEIR_FLOAT32, d);
  o.device = d;
  o.a = counting(weir_shape(3, 4), WEIR_FLOAT32, d);
  o.b = counting(weir_shape(3, 4), WEIR_FLOAT32, d);
  o.turned = turned_of(counting(weir_shape(3, 4), WEIR_FLOAT32, d));
  o.whole = counting(weir_shape(3, 4), WEIR_INT32, d);
  weir_ok(weir_add_scalar_(o.whole, weir_int(1)));
  o.truth = counting(weir_shape(3, 4), WEIR_BOOL, d);
  weir_ok(weir_slice(&o.batch, wide, 2, 0, 6, 2));
  o.half = counting(weir_shape(3, 4), WEIR_FLOAT16, d);
  o.complex = counting(weir_shape(3, 4), WEIR_COMPLEX64, d);
  o.image = counting(weir_shape(2, 2, 5, 5), WEIR_FLOAT32, d);
  o.kernel = counting(weir_shape(4, 1, 3, 3), WEIR_FLOAT32, d);
  o.row = counting(weir_shape(3), WEIR_FLOAT32, d);
  o.bias = counting(weir_shape(4), WEIR_FLOAT32, d);
  o.many = counting(weir_shape(LONG), WEIR_FLOAT32, d);
  o.number = counting(weir_shape_of(0, NULL), WEIR_FLOAT32, cpu);
}

static void run_all(void)
{
  for (int i = 0; i < STEPS; i++)
    ck_assert_msg(run_fault_step(&steps[i]) == WEIR_OK, "%s: %s", steps[i].name,
                  weir_error_message());
}

static uint64_t allocated_by_operands(void)
{
  weir_pinned_stats pinned = {0};
  if (o.device.type == WEIR_DEVICE_CPU) return 0;
  weir_ok(weir_pinned_get_stats(&pinned));
  return weir_memory_allocated(o.device) + (uint64_t)(pinned.active_bytes - pinned.pending_bytes);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static unsigned try_allocations(const struct step *s)
{
  uint64_t bytes = allocated_by_operands();
  int64_t blocks = live;
  unsigned n = 0;
  do {
    met = false;
    fail_at = ++n;
    weir_status st = run_fault_step(s);
    fail_at = 0;
    ck_assert_msg(!wrong, "%s failed and left a result", s->name);
    ck_assert_msg(!st || (st == WEIR_ENOMEM && met), "%s, %u: %s", s->name, n,
                  weir_error_message());
    if (st)
      operands_are_whole(s, n);
    else
      keep_operands(); /* they are what the step made of them */
    ck_assert_uint_eq(allocated_by_operands(), bytes);
    ck_assert_msg(live <= blocks, "%s lost %d allocations when %u failed", s->name,
                  (int)(live - blocks), n);
  } while (met);
  return n - 1;
}

START_TEST(every_host_allocation_fails_once)
{
  unsigned all = 0;
  make_fault_operands(device(_i));
  run_all(); /* pools, streams and kernels are there now */
  run_all();
  keep_operands();
  for (int i = 0; i < STEPS; i++)
    all += try_allocations(&steps[i]);
  ck_assert_uint_gt(all, 100);
}
END_TEST

#ifndef CPU_ONLY
/* A device of somebody else's: the first one's, with functions missing. */
START_TEST(what_a_device_cannot_do_is_refused)
{
  static weir_backend lacking;
  static weir_compute only_map;
  const weir_backend *real;
  weir_tensor *none = NULL;
  devices(2);
  weir_ok(device_open(0, &real));
  lacking = *real;
  only_map.map = real->compute->map;
  lacking.compute = &only_map;
  weir_ok(weir_memory_attach(&lacking, NULL));
  WEIR_TENSOR a = counting(weir_shape(2, 2), WEIR_FLOAT32, cuda0);
  WEIR_TENSOR image = counting(weir_shape(1, 1, 3, 3), WEIR_FLOAT32, cuda0);
  WEIR_TENSOR kernel = counting(weir_shape(1, 1, 2, 2), WEIR_FLOAT32, cuda0);
  WEIR_TENSOR sum = NULL;
  weir_ok(weir_add(&sum, a, a));
  EXPECT(sum, 0, 2, 4, 6);
  refused(WEIR_ENOTSUP, "matmul: the cuda backend of device 0 cannot do it", weir_mm(&none, a, a));
  refused(WEIR_ENOTSUP, "sum: the cuda backend of device 0 cannot do it", weir_sum(&none, a));
  refused(WEIR_ENOTSUP, "random: the cuda backend of device 0 cannot do it",
          weir_normal_(a, 0, 1, NULL));
  refused(WEIR_ENOTSUP, "conv2d: the cuda backend of device 0 cannot do it",
          weir_conv2d(&none, image, kernel, NULL, NULL));
  ck_assert_ptr_null(none);
  EXPECT(a, 0, 1, 2, 3);
}
END_TEST

/* ---- calls of the driver --------------------------------------------------------------------- */

static const char *const calls[] = {
    "cuLaunchKernel",       "cuMemCreate",          "cuMemMap",
    "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
    "cuStreamSynchronize",  "cuMemHostRegister_v2", "cuLibraryLoadData",
    "cuLibraryGetKernel"};
enum { CALLS = sizeof calls / sizeof *calls };

static void give_back_what_is_cached(void)
{
  weir_ok(weir_memory_empty_cache(o.device));
  weir_ok(weir_pinned_empty_cache());
}

/* The Nth call answers `error`; true: there was one. */
static bool try_call(const struct step *s, const char *name, unsigned n, int error)
{
  char list[64];
  uint64_t bytes = allocated_by_operands();
  give_back_what_is_cached();
  uint64_t before = rig_calls(name);
  (void)snprintf(list, sizeof list, "%s:%u=%d", name, n, error);
  rig_fail(list);
  weir_status st = run_fault_step(s);
  bool reached = rig_calls(name) - before >= n;
  rig_fail(NULL);
  ck_assert_msg(!wrong, "%s failed and left a result", s->name);
  ck_assert_msg(!st || st == WEIR_EOOM || st == WEIR_ECUDA, "%s, %s %u: %s", s->name, name, n,
                weir_error_message());
  ck_assert_msg(!st || reached, "%s: %s", s->name, weir_error_message());
  if (st && name == calls[0] && s->says)
    ck_assert_msg(strncmp(weir_error_message(), s->says, strlen(s->says)) == 0, "%s: %s", s->name,
                  weir_error_message());
  if (st && name == calls[0])
    ck_assert_ptr_nonnull(strstr(weir_error_message(), ": cuLaunchKernel of weir_"));
  if (st)
    operands_are_whole(s, n);
  else
    keep_operands();
  ck_assert_uint_eq(allocated_by_operands(), bytes);
  return reached;
}

START_TEST(every_call_of_the_driver_fails_once)
{
  const char *name = calls[_i];
  unsigned all = 0;
  make_fault_operands(cuda0);
  if (!rig_simulated()) return;
  keep_operands();
  if (_i < CALLS - 2) run_all(); /* not yet loaded, for those that load kernels */
  keep_operands();
  for (int i = 0; i < STEPS; i++)
    for (unsigned n = 1; try_call(&steps[i], name, n, 2); n++)
      all++;
  run_all();
  ck_assert_msg(all > 0, "nothing calls %s", name);
}
END_TEST

static int of_the_device(void)
{
  const TTest *const each[] = {every_call_of_the_driver_fails_once, NULL};
  const TTest *const once[] = {what_a_device_cannot_do_is_refused, NULL};
  int failed = rig_run("ops/a device that lacks functions", once, 1);
  return rig_run("ops/faults of the device", each, CALLS) || failed;
}
#else
static int of_the_device(void)
{
  return 0;
}
#endif

int main(void)
{
  const TTest *const once[] = {every_host_allocation_fails_once, NULL};
  int failed = rig_run("ops/faults of the host", once, TRIED);
  return of_the_device() || failed;
}

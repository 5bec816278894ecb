/* test_sequence.c: attention, recurrent layers and cells, beside plain loops in double. */
#include <math.h>
#include <stdlib.h>
#include "tests/tensor/rig.h"

enum { MOST = 4096 };

/* Numbers that repeat late, in [-1, 1). */
static double some_number(int i)
{
  return (double)((i * 7919 + 13) % 101) / 50.5 - 1;
}

static weir_tensor *some(weir_shape shape, int seed, weir_dtype dtype, weir_device d)
{
  double values[MOST];
  int64_t n = 1;
  weir_tensor *t;
  weir_options o = as(dtype, d);
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  ck_assert_int_le(n, MOST);
  for (int i = 0; i < n; i++)
    values[i] = some_number(i + seed);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}

static void read_numbers(double *out, int count, const weir_tensor *t)
{
  ck_assert_int_eq(weir_tensor_numel(t), count);
  weir_ok(weir_tensor_read(out, (size_t)count * sizeof *out, WEIR_FLOAT64, t));
}

static void numbers_are_near(const weir_tensor *t, int count, const double *values, double by)
{
  double got[MOST];
  read_numbers(got, count, t);
  for (int i = 0; i < count; i++)
    ck_assert_msg(fabs(got[i] - values[i]) <= by, "element %d is %.9g, not %.9g", i, got[i],
                  values[i]);
}

static void same_numbers(const weir_tensor *a, const weir_tensor *b, int count, double by)
{
  double values[MOST];
  read_numbers(values, count, b);
  numbers_are_near(a, count, values, by);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* One head: q (l, e), k (s, e), v (s, w); sees(i, j): whether row i sees key j. */
static void attend_plainly(double *out, const double *q, const double *k, const double *v, int l,
                           int s, int e, int w, bool (*sees)(int i, int j))
{
  for (int i = 0; i < l; i++) {
    double weight[64], sum = 0;
    for (int j = 0; j < s; j++) {
      double product = 0;
      for (int x = 0; x < e; x++)
        product += q[i * e + x] * k[j * e + x];
      weight[j] = sees(i, j) ? exp(product / sqrt(e)) : 0;
      sum += weight[j];
    }
    for (int x = 0; x < w; x++) {
      out[i * w + x] = 0;
      for (int j = 0; j < s && sum > 0; j++)
        out[i * w + x] += weight[j] / sum * v[j * w + x];
    }
  }
}

static bool all_of_them(int i, int j)
{
  return i >= 0 && j >= 0;
}
static bool those_before(int i, int j)
{
  return j <= i;
}
static bool even_ones_but_for_row_2(int i, int j)
{
  return j % 2 == 0 && i != 2;
}

enum { HEADS = 4, L = 5, S = 6, E = 3, W = 2 };

static void attention_is(const weir_tensor *t, bool (*sees)(int i, int j), double by)
{
  double q[HEADS * L * E], k[HEADS * S * E], v[HEADS * S * W], out[HEADS * L * W];
  for (int i = 0; i < HEADS * S * E; i++) {
    if (i < HEADS * L * E) q[i] = some_number(i + 1);
    k[i] = some_number(i + 2);
    if (i < HEADS * S * W) v[i] = some_number(i + 3);
  }
  for (int h = 0; h < HEADS; h++)
    attend_plainly(out + h * L * W, q + h * L * E, k + h * S * E, v + h * S * W, L, S, E, W, sees);
  numbers_are_near(t, HEADS * L * W, out, by);
}

START_TEST(values_are_weighed_by_the_softmax_of_products)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR q = some(weir_shape(2, 2, L, E), 1, WEIR_FLOAT32, d);
  WEIR_TENSOR k = some(weir_shape(2, 2, S, E), 2, WEIR_FLOAT32, d);
  WEIR_TENSOR v = some(weir_shape(2, 2, S, W), 3, WEIR_FLOAT32, d);
  WEIR_TENSOR plain = NULL;
  WEIR_TENSOR causal = NULL;
  WEIR_TENSOR masked = NULL;
  WEIR_TENSOR mask = NULL;
  bool seen[L * S];
  weir_options on_it = on(d);
  for (int i = 0; i < L * S; i++)
    seen[i] = even_ones_but_for_row_2(i / S, i % S);
  weir_ok(weir_scaled_dot_product_attention(&plain, q, k, v, NULL));
  shape_is(plain, weir_shape(2, 2, L, W));
  is_on(plain, d);
  attention_is(plain, all_of_them, 1e-6);
  weir_attention_options o = {.is_causal = true};
  weir_ok(weir_scaled_dot_product_attention(&causal, q, k, v, &o));
  attention_is(causal, those_before, 1e-6);
  weir_ok(weir_tensor_from(&mask, seen, WEIR_BOOL, weir_shape(L, S), &on_it));
  o = (weir_attention_options){.mask = mask};
  weir_ok(weir_scaled_dot_product_attention(&masked, q, k, v, &o));
  attention_is(masked, even_ones_but_for_row_2, 1e-6);
}
END_TEST

/* More rows than a block has: those of a block by itself. */
START_TEST(rows_in_blocks_are_rows_by_themselves)
{
  enum { ROWS = 600, KEYS = 4000, FROM = 590 };
  devices(2);
  weir_options o = on(device(_i));
  for (int causal = 0; causal < 2; causal++) {
    WEIR_TENSOR q = NULL;
    WEIR_TENSOR k = NULL;
    WEIR_TENSOR v = NULL;
    WEIR_TENSOR all = NULL;
    WEIR_TENSOR some_rows = NULL;
    WEIR_TENSOR alone = NULL;
    WEIR_TENSOR expected = NULL;
    WEIR_TENSOR k_seen = NULL;
    WEIR_TENSOR v_seen = NULL;
    weir_manual_seed(1);
    weir_ok(weir_randn(&q, weir_shape(ROWS, 4), &o));
    weir_ok(weir_randn(&k, weir_shape(KEYS, 4), &o));
    weir_ok(weir_randn(&v, weir_shape(KEYS, 2), &o));
    weir_attention_options how = {.is_causal = causal};
    weir_ok(weir_scaled_dot_product_attention(&all, q, k, v, &how));
    weir_ok(weir_narrow(&some_rows, q, 0, FROM, 1));
    weir_ok(weir_narrow(&k_seen, k, 0, 0, causal ? FROM + 1 : KEYS));
    weir_ok(weir_narrow(&v_seen, v, 0, 0, causal ? FROM + 1 : KEYS));
    weir_ok(weir_scaled_dot_product_attention(&alone, some_rows, k_seen, v_seen, NULL));
    weir_ok(weir_narrow(&expected, all, 0, FROM, 1));
    same_numbers(alone, expected, 2, 1e-6);
  }
}
END_TEST

START_TEST(fewer_heads_of_keys_are_repeated)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR q = some(weir_shape(1, 4, 3, 2), 1, WEIR_FLOAT64, d);
  WEIR_TENSOR k = some(weir_shape(1, 2, 3, 2), 2, WEIR_FLOAT64, d);
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR repeated = NULL;
  WEIR_TENSOR grouped = NULL;
  WEIR_TENSOR whole = NULL;
  weir_attention_options o = {.enable_gqa = true};
  weir_ok(weir_scaled_dot_product_attention(&grouped, q, k, k, &o));
  weir_ok(weir_unsqueeze(&each, k, 2));
  weir_ok(weir_expand(&wide, each, weir_shape(1, 2, 2, 3, 2)));
  weir_ok(weir_reshape(&repeated, wide, weir_shape(1, 4, 3, 2)));
  weir_ok(weir_scaled_dot_product_attention(&whole, q, repeated, repeated, NULL));
  same_numbers(grouped, whole, 24, 0);
  weir_tensor *none = NULL;
  refused(WEIR_EINVAL,
          "The size of tensor a (4) must match the size of tensor b (2) at "
          "non-singleton dimension 1",
          weir_scaled_dot_product_attention(&none, q, k, k, NULL));
}
END_TEST

START_TEST(dropped_weights_are_0_and_the_others_scaled)
{
  devices(2);
  weir_options o = on(device(_i));
  WEIR_TENSOR q = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR none = NULL;
  double got[400], sum = 0;
  weir_ok(weir_zeros(&q, weir_shape(400, 1), &o));
  weir_ok(weir_ones(&one, weir_shape(400, 1), &o));
  weir_attention_options how = {.dropout = 0.5};
  weir_ok(weir_scaled_dot_product_attention(&out, q, q, one, &how));
  read_numbers(got, 400, out);
  for (int i = 0; i < 400; i++)
    sum += got[i];
  ck_assert_double_eq_tol(sum / 400, 1, 0.02);
  how.dropout = 1;
  weir_ok(weir_scaled_dot_product_attention(&none, q, q, one, &how));
  read_numbers(got, 400, none);
  for (int i = 0; i < 400; i++)
    ck_assert_double_eq(got[i], 0);
}
END_TEST

START_TEST(attention_refuses_what_torchs_does)
{
  devices(2);
  WEIR_TENSOR q = counting(weir_shape(2, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR wide = counting(weir_shape(2, 3), WEIR_FLOAT64, device(_i));
  WEIR_TENSOR row = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR whole = counting(weir_shape(2, 2), WEIR_INT64, device(_i));
  weir_tensor *out = q;
  refused(WEIR_EINVAL,
          "Expected query, key, and value to have the same dtype, but got query.dtype: float "
          "key.dtype: float and value.dtype: double instead.",
          weir_scaled_dot_product_attention(&out, q, q, wide, NULL));
  ck_assert_ptr_null(out);
  refused(WEIR_EINVAL,
          "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 2 "
          "key.dim: 1 and value.dim: 2 instead.",
          weir_scaled_dot_product_attention(&out, q, row, q, NULL));
  weir_attention_options o = {.mask = whole};
  refused(WEIR_EINVAL,
          "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
          "attn_mask.dtype: long int and  query.dtype: float instead.",
          weir_scaled_dot_product_attention(&out, q, q, q, &o));
  o.is_causal = true;
  refused(WEIR_EINVAL,
          "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
          weir_scaled_dot_product_attention(&out, q, q, q, &o));
  o = (weir_attention_options){.dropout = 1.5};
  refused(WEIR_EINVAL, "dropout probability has to be between 0 and 1, but got 1.5",
          weir_scaled_dot_product_attention(&out, q, q, q, &o));
}
END_TEST

/* ---- MultiheadAttention ---------------------------------------------------------------------- */

START_TEST(heads_attend_by_themselves_and_their_weights_are_averaged)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = some(weir_shape(3, 2, 4), 5, WEIR_FLOAT32, d);
  WEIR_TENSOR key = some(weir_shape(5, 2, 4), 6, WEIR_FLOAT32, d);
  WEIR_TENSOR self = NULL;
  WEIR_TENSOR same = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR mean = NULL;
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR of_each = NULL;
  WEIR_TENSOR sums = NULL;
  weir_multihead_attention_options o = {.tensor = on(d)};
  weir_ok(weir_module_multihead_attention(&m, 4, 2, &o));
  weir_ok(weir_module_call(&self, m, x));
  weir_ok(weir_multihead_attention(&same, NULL, m, x, x, x, NULL));
  same_numbers(self, same, 24, 0);
  weir_ok(weir_multihead_attention(&out, &mean, m, x, key, key, NULL));
  shape_is(out, weir_shape(3, 2, 4));
  shape_is(mean, weir_shape(2, 3, 5));
  weir_ok(weir_sum_dim(&sums, mean, -1, false));
  numbers_are_near(sums, 6, (const double[]){1, 1, 1, 1, 1, 1}, 1e-6);
  weir_tensor_drop(&out);
  weir_multihead_options how = {.each_head = true};
  weir_ok(weir_multihead_attention(&out, &each, m, x, key, key, &how));
  shape_is(each, weir_shape(2, 2, 3, 5));
  weir_ok(weir_mean_dim(&of_each, each, 1, false));
  same_numbers(of_each, mean, 30, 1e-7);
}
END_TEST

START_TEST(padded_keys_and_later_places_have_no_weight)
{
  static const bool padded[] = {false, false, true, false, true, true};
  devices(2);
  weir_device d = device(_i);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = some(weir_shape(2, 3, 4), 5, WEIR_FLOAT32, d);
  WEIR_TENSOR mask = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR weights = NULL;
  double got[18];
  weir_options on_it = on(d);
  weir_multihead_attention_options o = {.tensor = on(d), .batch_first = true};
  weir_ok(weir_module_multihead_attention(&m, 4, 2, &o));
  weir_ok(weir_tensor_from(&mask, padded, WEIR_BOOL, weir_shape(2, 3), &on_it));
  weir_multihead_options how = {.key_padding_mask = mask, .is_causal = true};
  weir_ok(weir_multihead_attention(&out, &weights, m, x, x, x, &how));
  read_numbers(got, 18, weights);
  for (int i = 0; i < 18; i++)
    if (padded[i / 9 * 3 + i % 3] || i % 3 > i / 3 % 3)
      ck_assert_double_eq(got[i], 0);
    else
      ck_assert_double_gt(got[i], 0);
}
END_TEST

START_TEST(multihead_attention_has_torchs_parameters_and_refusals)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_MODULE m = NULL;
  WEIR_MODULE apart = NULL;
  WEIR_TENSOR x = some(weir_shape(3, 2, 4), 5, WEIR_FLOAT32, d);
  WEIR_TENSOR five = some(weir_shape(3, 2, 5), 5, WEIR_FLOAT32, d);
  WEIR_TENSOR mask = some(weir_shape(3, 4), 5, WEIR_FLOAT32, d);
  weir_tensor *out = NULL;
  weir_module *none = NULL;
  weir_multihead_attention_options o = {.tensor = on(d)};
  weir_ok(weir_module_multihead_attention(&m, 4, 2, &o));
  shape_is(weir_module_parameter(m, "in_proj_weight"), weir_shape(12, 4));
  shape_is(weir_module_parameter(m, "in_proj_bias"), weir_shape(12));
  shape_is(weir_module_parameter(m, "out_proj.weight"), weir_shape(4, 4));
  o.kdim = 5;
  weir_ok(weir_module_multihead_attention(&apart, 4, 2, &o));
  ck_assert_ptr_null(weir_module_parameter(apart, "in_proj_weight"));
  shape_is(weir_module_parameter(apart, "k_proj_weight"), weir_shape(4, 5));
  refused(WEIR_EINVAL, "embed_dim must be divisible by num_heads",
          weir_module_multihead_attention(&none, 5, 2, NULL));
  refused(WEIR_EINVAL, "was expecting embedding dimension of 4, but got 5",
          weir_module_call(&out, m, five));
  weir_multihead_options how = {.attn_mask = mask};
  refused(WEIR_EINVAL, "The shape of the 2D attn_mask is weir.Size([3, 4]), but should be (3, 3).",
          weir_multihead_attention(&out, NULL, m, x, x, x, &how));
  ck_assert_ptr_null(out);
}
END_TEST

/* ---- recurrent layers ------------------------------------------------------------------------ */

static double sigmoid(double x)
{
  return 1 / (1 + exp(-x));
}

/* A layer's parameters, and a step of it, in double. */
typedef struct plain_layer {
  int gates, inputs, hidden;
  double w_ih[MOST], w_hh[MOST], b_ih[64], b_hh[64];
} plain_layer;

static void read_layer(plain_layer *p, const weir_module *m, const char *behind)
{
  static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
  double *const to[] = {p->w_ih, p->w_hh, p->b_ih, p->b_hh};
  int rows = p->gates * p->hidden;
  const int count[] = {rows * p->inputs, rows * p->hidden, rows, rows};
  for (int i = 0; i < 4; i++) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s", names[i], behind);
    const weir_tensor *t = weir_module_parameter(m, name);
    ck_assert_msg(t != NULL, "no parameter %s", name);
    read_numbers(to[i], count[i], t);
  }
}

/* Row r of w x + b. */
static double plain_row(const double *w, const double *x, int n, const double *b, int r)
{
  double sum = b[r];
  for (int i = 0; i < n; i++)
    sum += w[r * n + i] * x[i];
  return sum;
}

/* h and c become the next ones. */
static void plain_step(const plain_layer *p, const double *x, double *h, double *c)
{
  double in[64], by_h[64];
  int n = p->hidden;
  for (int r = 0; r < p->gates * n; r++) {
    in[r] = plain_row(p->w_ih, x, p->inputs, p->b_ih, r);
    by_h[r] = plain_row(p->w_hh, h, n, p->b_hh, r);
  }
  for (int i = 0; i < n; i++) {
    if (p->gates == 1) h[i] = tanh(in[i] + by_h[i]);
    if (p->gates == 3) {
      double reset = sigmoid(in[i] + by_h[i]), update = sigmoid(in[n + i] + by_h[n + i]);
      double new = tanh(in[2 * n + i] + reset * by_h[2 * n + i]);
      h[i] = (1 - update) * new + update *h[i];
    }
    if (p->gates == 4) {
      c[i] = sigmoid(in[n + i] + by_h[n + i]) * c[i] +
             sigmoid(in[i] + by_h[i]) * tanh(in[2 * n + i] + by_h[2 * n + i]);
      h[i] = sigmoid(in[3 * n + i] + by_h[3 * n + i]) * tanh(c[i]);
    }
  }
}

static const struct {
  int gates;
  weir_status (*layer)(weir_module **, int64_t, int64_t, const weir_recurrent_options *);
  weir_status (*cell)(weir_module **, int64_t, int64_t, const weir_recurrent_options *);
} recurrent_kinds[] = {{4, weir_module_lstm, weir_module_lstm_cell},
                       {3, weir_module_gru, weir_module_gru_cell},
                       {1, weir_module_rnn, weir_module_rnn_cell}};

START_TEST(layers_walk_along_the_sequence_in_both_directions)
{
  enum { STEPS = 4, IN = 3, HIDDEN = 2 };
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR x = some(weir_shape(STEPS, 1, IN), 9, WEIR_FLOAT32, d);
  double in[STEPS * IN];
  read_numbers(in, STEPS * IN, x);
  for (int k = 0; k < 3; k++) {
    WEIR_MODULE m = NULL;
    WEIR_TENSOR out = NULL;
    WEIR_TENSOR h_n = NULL;
    WEIR_TENSOR c_n = NULL;
    plain_layer p = {.gates = recurrent_kinds[k].gates, .inputs = IN, .hidden = HIDDEN};
    double is[STEPS * 2 * HIDDEN], last[2 * HIDDEN];
    weir_recurrent_options o = {.tensor = on(d), .bidirectional = true};
    weir_ok(recurrent_kinds[k].layer(&m, IN, HIDDEN, &o));
    for (int side = 0; side < 2; side++) {
      double h[HIDDEN] = {0}, c[HIDDEN] = {0};
      read_layer(&p, m, side ? "_l0_reverse" : "_l0");
      for (int s = 0; s < STEPS; s++) {
        int t = side ? STEPS - 1 - s : s;
        plain_step(&p, in + t * IN, h, c);
        memcpy(is + t * 2 * HIDDEN + side * HIDDEN, h, sizeof h);
      }
      memcpy(last + side * HIDDEN, h, sizeof h);
    }
    weir_ok(weir_recurrent(&out, &h_n, k ? NULL : &c_n, m, x, NULL, NULL));
    shape_is(out, weir_shape(STEPS, 1, 2 * HIDDEN));
    numbers_are_near(out, STEPS * 2 * HIDDEN, is, 1e-6);
    shape_is(h_n, weir_shape(2, 1, HIDDEN));
    numbers_are_near(h_n, 2 * HIDDEN, last, 1e-6);
  }
}
END_TEST

START_TEST(a_sequence_in_two_parts_goes_on_where_the_first_ended)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR x = some(weir_shape(2, 6, 3), 9, WEIR_FLOAT32, d);
  WEIR_TENSOR first = NULL;
  WEIR_TENSOR rest = NULL;
  weir_ok(weir_narrow(&first, x, 1, 0, 4));
  weir_ok(weir_narrow(&rest, x, 1, 4, 2));
  for (int k = 0; k < 3; k++) {
    WEIR_MODULE m = NULL;
    WEIR_TENSOR whole = NULL;
    WEIR_TENSOR begun = NULL;
    WEIR_TENSOR ended = NULL;
    WEIR_TENSOR h = NULL;
    WEIR_TENSOR c = NULL;
    WEIR_TENSOR expected = NULL;
    weir_recurrent_options o = {.tensor = on(d), .num_layers = 2, .batch_first = true};
    weir_ok(recurrent_kinds[k].layer(&m, 3, 2, &o));
    weir_ok(weir_module_call(&whole, m, x));
    weir_ok(weir_recurrent(&begun, &h, k ? NULL : &c, m, first, NULL, NULL));
    weir_ok(weir_recurrent(&ended, NULL, NULL, m, rest, h, c));
    weir_ok(weir_narrow(&expected, whole, 1, 4, 2));
    same_numbers(ended, expected, 8, 1e-6);
  }
}
END_TEST

START_TEST(a_cell_is_one_step_of_its_layer)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR x = some(weir_shape(3), 9, WEIR_FLOAT64, d);
  double in[3];
  read_numbers(in, 3, x);
  for (int k = 0; k < 3; k++) {
    WEIR_MODULE m = NULL;
    WEIR_TENSOR h = NULL;
    WEIR_TENSOR c = NULL;
    WEIR_TENSOR h_2 = NULL;
    plain_layer p = {.gates = recurrent_kinds[k].gates, .inputs = 3, .hidden = 2};
    double is[2] = {0}, kept[2] = {0};
    weir_recurrent_options o = {.tensor = as(WEIR_FLOAT64, d)};
    weir_ok(recurrent_kinds[k].cell(&m, 3, 2, &o));
    read_layer(&p, m, "");
    plain_step(&p, in, is, kept);
    weir_ok(weir_recurrent(&h, NULL, k ? NULL : &c, m, x, NULL, NULL));
    shape_is(h, weir_shape(2));
    numbers_are_near(h, 2, is, 1e-12);
    if (!k) numbers_are_near(c, 2, kept, 1e-12);
    plain_step(&p, in, is, kept);
    weir_ok(weir_recurrent(&h_2, NULL, NULL, m, x, h, c));
    numbers_are_near(h_2, 2, is, 1e-12);
  }
}
END_TEST

START_TEST(an_lstms_output_may_be_projected)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR x = some(weir_shape(5, 2, 3), 9, WEIR_FLOAT32, d);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR h = NULL;
  WEIR_TENSOR c = NULL;
  weir_recurrent_options o = {.tensor = on(d), .num_layers = 2, .proj_size = 2};
  weir_ok(weir_module_lstm(&m, 3, 4, &o));
  shape_is(weir_module_parameter(m, "weight_hr_l0"), weir_shape(2, 4));
  shape_is(weir_module_parameter(m, "weight_ih_l1"), weir_shape(16, 2));
  weir_ok(weir_recurrent(&out, &h, &c, m, x, NULL, NULL));
  shape_is(out, weir_shape(5, 2, 2));
  shape_is(h, weir_shape(2, 2, 2));
  shape_is(c, weir_shape(2, 2, 4));
}
END_TEST

START_TEST(recurrent_layers_refuse_what_torchs_do)
{
  devices(2);
  weir_device d = device(_i);
  WEIR_TENSOR x = some(weir_shape(5, 2, 3), 9, WEIR_FLOAT32, d);
  WEIR_TENSOR wrong = some(weir_shape(5, 2, 4), 9, WEIR_FLOAT32, d);
  WEIR_TENSOR wide = some(weir_shape(5, 2, 3), 9, WEIR_FLOAT64, d);
  WEIR_TENSOR h = some(weir_shape(1, 3, 4), 9, WEIR_FLOAT32, d);
  WEIR_TENSOR flat = some(weir_shape(2, 4), 9, WEIR_FLOAT32, d);
  WEIR_MODULE gru = NULL;
  WEIR_MODULE cell = NULL;
  weir_tensor *out = NULL;
  weir_module *none = NULL;
  weir_recurrent_options o = {.tensor = on(d), .proj_size = 2};
  refused(WEIR_EINVAL, "proj_size argument is only supported for LSTM, not RNN or GRU",
          weir_module_gru(&none, 3, 4, &o));
  refused(WEIR_EINVAL, "hidden_size must be greater than zero",
          weir_module_lstm(&none, 3, 0, NULL));
  o.proj_size = 0;
  weir_ok(weir_module_gru(&gru, 3, 4, &o));
  weir_ok(weir_module_gru_cell(&cell, 3, 4, &o));
  refused(WEIR_EINVAL, "input.size(-1) must be equal to input_size. Expected 3, got 4",
          weir_module_call(&out, gru, wrong));
  refused(WEIR_EINVAL, "Expected hidden size (1, 2, 4), got [1, 3, 4]",
          weir_recurrent(&out, NULL, NULL, gru, x, h, NULL));
  refused(WEIR_EINVAL, "For batched 3-D input, hx should also be 3-D but got 2-D tensor",
          weir_recurrent(&out, NULL, NULL, gru, x, flat, NULL));
  refused_with(WEIR_EINVAL,
               "RNN input dtype (weir.float64) does not match weight dtype (weir.float32).",
               weir_module_call(&out, gru, wide));
  refused(WEIR_EINVAL, "input has inconsistent input_size: got 4 expected 3",
          weir_module_call(&out, cell, flat));
  ck_assert_ptr_null(out);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {values_are_weighed_by_the_softmax_of_products,
                                rows_in_blocks_are_rows_by_themselves,
                                fewer_heads_of_keys_are_repeated,
                                dropped_weights_are_0_and_the_others_scaled,
                                attention_refuses_what_torchs_does,
                                heads_attend_by_themselves_and_their_weights_are_averaged,
                                padded_keys_and_later_places_have_no_weight,
                                multihead_attention_has_torchs_parameters_and_refusals,
                                layers_walk_along_the_sequence_in_both_directions,
                                a_sequence_in_two_parts_goes_on_where_the_first_ended,
                                a_cell_is_one_step_of_its_layer,
                                an_lstms_output_may_be_projected,
                                recurrent_layers_refuse_what_torchs_do,
                                NULL};
  return rig_run("ops/sequence", tests, DEVICES_TRIED);
}

/* recurrent.c: LSTM, GRU and RNN, as layers and as cells.
 *
 * What a gate takes from the inputs is one product for all steps of a layer; a step adds what it
 * takes from the state. Outputs of steps are put together at the end. All is made of public
 * operations. Parameters of a layer and a direction are SLOTS slots in torch's order; those that
 * are not there are NULL. What a call takes and gives in addition to tensors goes by the thread,
 * since a module's forward has room for one output.
 *
 * Words. walk: one direction of one layer. state: h, and c of an LSTM. */
#include "core/nn/module.h"
#include "core/ops/ops.h"
#include "core/tensor/calc.h"
#include "core/tensor/autocast.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { W_IH, W_HH, B_IH, B_HH, W_HR, SLOTS };

typedef enum recurrent_kind { LSTM, GRU, RNN } recurrent_kind;

static const int gates_of_kind[] = {4, 3, 1};

/* A recurrent module's data. */
typedef struct recurrent {
  recurrent_kind kind;
  bool cell, batch_first, relu, bias;
  int64_t inputs, hidden, outputs; /* features; outputs: of h */
  int layers, directions;
  double dropout;
} recurrent;

typedef struct state {
  weir_tensor *h, *c; /* each a count of its own; c NULL but of an LSTM */
} state;

static void drop_state(state *s)
{
  weir_tensor_drop(&s->h);
  weir_tensor_drop(&s->c);
}

/* Where a call's last state goes. */
typedef struct state_wanted {
  weir_tensor **h, **c; /* NULL: not asked for */
} state_wanted;

static __thread const state_wanted *wanted_of_call;

/* ---- a step ---------------------------------------------------------------------------------- */

/* Gate number `at` of what is (N, gates hidden), `count` gates wide. */
static weir_status gates_of(weir_tensor **out, const weir_tensor *t, const recurrent *r, int at,
                            int count)
{
  return weir_narrow(out, t, -1, at * r->hidden, count * r->hidden);
}

static weir_status sigmoid_gates(weir_tensor **out, const weir_tensor *t, const recurrent *r,
                                 int at, int count)
{
  CALC(c);
  return calc_give(c, out, c_sigmoid(c, c_call(c, gates_of, t, r, at, count)));
}

/* c' = f c + i g; h' = o tanh(c'). gates: (N, 4 hidden): i, f, g, o. */
static weir_status lstm_gates(state *next, const weir_tensor *gates, const state *now,
                              const recurrent *r)
{
  CALC(c);
  weir_tensor *both = c_call(c, sigmoid_gates, gates, r, 0, 2);
  weir_tensor *in = c_call(c, gates_of, both, r, 0, 1);
  weir_tensor *forget = c_call(c, gates_of, both, r, 1, 1);
  weir_tensor *new = c_tanh(c, c_call(c, gates_of, gates, r, 2, 1));
  weir_tensor *out = c_call(c, sigmoid_gates, gates, r, 3, 1);
  weir_tensor *kept = c_mul(c, forget, now->c);
  weir_tensor *added = c_mul(c, in, new);
  c_do(c, weir_add(&next->c, kept, added));
  weir_tensor *shown = c_call(c, weir_tanh, next->c);
  return c->st ? c->st : weir_mul(&next->h, out, shown);
}

/* What h gives the gates, of a walk. */
typedef struct recurrent_weights {
  weir_tensor *const *slot[SLOTS]; /* borrowed, in the module; what they point to may be NULL */
  weir_tensor *turned;             /* owned: w_hh, transposed */
} recurrent_weights;

static weir_status lstm_step(state *next, const weir_tensor *in, const state *now,
                             const recurrent *r, const recurrent_weights *w)
{
  CALC(c);
  weir_tensor *projected = NULL;
  weir_tensor *gates = c_call(c, weir_addmm, in, now->h, w->turned, 1, 1);
  c_do(c, lstm_gates(next, gates, now, r));
  if (c->st || !*w->slot[W_HR]) return c->st;
  c->st = weir_linear(&projected, next->h, *w->slot[W_HR], NULL);
  weir_tensor_release(next->h);
  next->h = projected;
  return c->st;
}

/* r, z = sigmoid(in + h); n = tanh(in + r h); h' = n + z (h - n). */
static weir_status gru_step(state *next, const weir_tensor *in, const state *now,
                            const recurrent *r, const recurrent_weights *w)
{
  CALC(c);
  weir_tensor *by_h = c_call(c, weir_linear, now->h, *w->slot[W_HH], *w->slot[B_HH]);
  weir_tensor *in_two = c_call(c, gates_of, in, r, 0, 2);
  weir_tensor *both = c_sigmoid(c, c_add(c, in_two, c_call(c, gates_of, by_h, r, 0, 2)));
  weir_tensor *reset = c_call(c, gates_of, both, r, 0, 1);
  weir_tensor *update = c_call(c, gates_of, both, r, 1, 1);
  if (c->st) return c->st;
  weir_tensor *in_new = c_call(c, gates_of, in, r, 2, 1);
  weir_tensor *sum = c_add(c, in_new, c_mul(c, reset, c_call(c, gates_of, by_h, r, 2, 1)));
  weir_tensor *new = c_tanh(c, sum);
  weir_tensor *kept = c_mul(c, c_sub(c, now->h, new), update);
  return c->st ? c->st : weir_add(&next->h, kept, new);
}

static weir_status rnn_step(state *next, const weir_tensor *in, const state *now,
                            const recurrent *r, const recurrent_weights *w)
{
  CALC(c);
  weir_tensor *sum = c_call(c, weir_addmm, in, now->h, w->turned, 1, 1);
  return c->st ? c->st : r->relu ? weir_relu(&next->h, sum) : weir_tanh(&next->h, sum);
}

static weir_status run_step(state *next, const weir_tensor *in, const state *now,
                            const recurrent *r, const recurrent_weights *w)
{
  weir_status st = r->kind == LSTM  ? lstm_step(next, in, now, r, w)
                   : r->kind == GRU ? gru_step(next, in, now, r, w)
                                    : rnn_step(next, in, now, r, w);
  if (st) drop_state(next);
  return st;
}

/* ---- a walk ---------------------------------------------------------------------------------- */

/* What the inputs give the gates; but of a GRU with both biases. */
static weir_status input_gates(weir_tensor **out, recurrent_weights *w, const weir_tensor *in,
                               const weir_module *m, int at)
{
  const recurrent *r = m->data;
  CALC(c);
  for (int i = 0; i < SLOTS; i++)
    w->slot[i] = &m->slot[at * SLOTS + i].t;
  c->st = weir_t(&w->turned, *w->slot[W_HH]);
  weir_tensor *bias = !c->st && r->kind != GRU && *w->slot[B_IH]
                          ? c_call(c, weir_add, *w->slot[B_IH], *w->slot[B_HH])
                          : NULL;
  return c->st ? c->st : weir_linear(out, in, *w->slot[W_IH], bias ? bias : *w->slot[B_IH]);
}

/* All steps from `first`, which is exchanged for the last state; part[t]: the output of step t. */
static weir_status walk_steps(weir_tensor **part, state *first, const weir_tensor *gates,
                              const recurrent *r, const recurrent_weights *w, bool backwards)
{
  weir_status st = WEIR_OK;
  for (int64_t i = 0, count = gates->size[0]; i < count && !st; i++) {
    WEIR_TENSOR in = NULL;
    state next = {NULL, NULL};
    int64_t t = backwards ? count - 1 - i : i;
    st = weir_select(&in, gates, 0, t);
    if (!st) st = run_step(&next, in, first, r, w);
    if (st) continue;
    drop_state(first);
    *first = next;
    part[t] = weir_tensor_retain(next.h);
  }
  return st;
}

/* in (L, N, features), out (L, N, outputs); s is exchanged for the last state. */
static weir_status run_walk(weir_tensor **out, state *s, const weir_tensor *in,
                            const weir_module *m, int at)
{
  const recurrent *r = m->data;
  recurrent_weights w = {.turned = NULL};
  CALC(c);
  int64_t count = in->size[0];
  weir_tensor **part = count > INT32_MAX ? NULL : calloc((size_t)count, sizeof(weir_tensor *));
  if (!part) return fail_memory("the steps of a %s", m->kind->name);
  weir_tensor *gates = c_call(c, input_gates, &w, in, m, at);
  c_do(c, walk_steps(part, s, gates, r, &w, r->directions == 2 && at % 2));
  c_do(c, weir_stack(out, (const weir_tensor *const *)part, (int)count, 0));
  for (int64_t i = 0; i < count; i++)
    weir_tensor_release(part[i]);
  free(part);
  weir_tensor_release(w.turned);
  return c->st;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static weir_status zero_state(weir_tensor **out, const weir_tensor *like, int64_t rows,
                              int64_t features)
{
  return weir_zeros(out, weir_shape(rows, features), OPTIONS_ON(like, like->dtype));
}

/* The state that walk number `at` begins with. */
static weir_status first_state(state *s, const recurrent *r, const weir_tensor *in,
                               const weir_tensor *h, const weir_tensor *c, int at)
{
  int64_t rows = in->size[1];
  *s = (state){NULL, NULL};
  weir_status st = h ? weir_select(&s->h, h, 0, at) : zero_state(&s->h, in, rows, r->outputs);
  if (!st && r->kind == LSTM)
    st = c ? weir_select(&s->c, c, 0, at) : zero_state(&s->c, in, rows, r->hidden);
  if (st) drop_state(s);
  return st;
}

/* All directions of a layer; last[]: their last states. */
static weir_status run_layer(weir_tensor **out, state *last, const weir_tensor *in,
                             const weir_module *m, const weir_tensor *h, const weir_tensor *c,
                             int layer)
{
  const recurrent *r = m->data;
  weir_tensor *side[2] = {NULL, NULL};
  weir_status st = WEIR_OK;
  for (int d = 0; d < r->directions && !st; d++) {
    int at = layer * r->directions + d;
    st = first_state(&last[at], r, in, h, c, at);
    if (!st) st = run_walk(&side[d], &last[at], in, m, at);
  }
  if (!st && r->directions == 2) {
    st = weir_cat(out, (const weir_tensor *const *)side, 2, -1);
  } else if (!st) {
    *out = weir_tensor_retain(side[0]);
  }
  weir_tensor_release(side[0]);
  weir_tensor_release(side[1]);
  return st;
}

static weir_status run_layers(weir_tensor **out, state *last, const weir_tensor *in,
                              const weir_module *m, const weir_tensor *h, const weir_tensor *c)
{
  const recurrent *r = m->data;
  weir_tensor *x = weir_tensor_retain((weir_tensor *)in);
  weir_status st = WEIR_OK;
  for (int layer = 0; layer < r->layers && !st; layer++) {
    weir_tensor *y = NULL;
    st = run_layer(&y, last, x, m, h, c, layer);
    weir_tensor_release(x);
    x = y;
    if (!st && m->training && layer + 1 < r->layers) st = drop_elements(&x, r->dropout);
  }
  if (st)
    weir_tensor_release(x);
  else
    *out = x;
  return st;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_input(const weir_module *m, const weir_tensor *in)
{
  const recurrent *r = m->data;
  const weir_tensor *w = m->slot[W_IH].t;
  int least = r->cell ? 1 : 2;
  if (in->dims != least && in->dims != least + 1)
    return fail_invalid("%s: Expected input to be %dD or %dD, got %dD%s instead", m->kind->name,
                        least, least + 1, (int)in->dims,
                        r->kind == RNN && !r->cell ? " tensor" : "");
  if (!r->cell && in->dtype != w->dtype && !thread_autocast.on) {
    const char *is = weir_dtype_name(in->dtype);
    const char *wants = weir_dtype_name(w->dtype);
    return fail_invalid("RNN input dtype (weir.%s) does not match weight dtype (weir.%s). Convert "
                        "input: input.to(weir.%s), or convert model: model.to(weir.%s)",
                        is, wants, wants, is);
  }
  return WEIR_OK;
}

static weir_status check_state_rank(const recurrent *r, const weir_tensor *in, const weir_tensor *h,
                                    const weir_tensor *c)
{
  const char *batched = in->dims == 3 ? "batched 3-D" : "unbatched 2-D";
  if (h && r->kind == LSTM && (h->dims != in->dims || c->dims != in->dims))
    return fail_invalid("For %s input, hx and cx should also be %d-D but got (%d-D, %d-D) tensors",
                        batched, (int)in->dims, (int)h->dims, (int)c->dims);
  if (h && r->kind != LSTM && h->dims != in->dims)
    return fail_invalid("For %s input, hx should also be %d-D but got %d-D tensor", batched,
                        (int)in->dims, (int)h->dims);
  return WEIR_OK;
}

static weir_status check_state_size(const recurrent *r, const weir_tensor *t, int64_t rows,
                                    int64_t features, const char *name)
{
  text_buffer b;
  int64_t walks = (int64_t)r->layers * r->directions;
  if (!t || (t->size[0] == walks && t->size[1] == rows && t->size[2] == features)) return WEIR_OK;
  return fail_invalid("Expected %s size (%" PRId64 ", %" PRId64 ", %" PRId64 "), got %s", name,
                      walks, rows, features, shape_format(&b, shape_of_tensor(t)));
}

/* Of what is (L, N, features) now. */
static weir_status check_recurrent_sizes(const recurrent *r, const weir_tensor *in,
                                         const weir_tensor *h, const weir_tensor *c)
{
  bool lstm = r->kind == LSTM;
  if (in->size[2] != r->inputs)
    return fail_invalid("input.size(-1) must be equal to input_size. Expected %" PRId64
                        ", got %" PRId64,
                        r->inputs, in->size[2]);
  weir_status st = check_state_size(r, h, in->size[1], r->outputs, lstm ? "hidden[0]" : "hidden");
  if (!st) st = check_state_size(r, c, in->size[1], r->hidden, "hidden[1]");
  if (!st && !in->size[0]) st = fail_invalid("Expected sequence length to be larger than 0 in RNN");
  return st;
}

static weir_status check_cell_state(const weir_tensor *t, const weir_tensor *in, int64_t features,
                                    int number)
{
  if (!t) return WEIR_OK;
  if (t->dims != in->dims)
    return fail_invalid(in->dims == 2
                            ? "Expected 2D hidden%d (batch x hidden_size), but got %dD tensor"
                            : "Expected 1D hidden%d (hidden_size), but got %dD tensor",
                        number, (int)t->dims);
  if (in->dims == 2 && t->size[0] != in->size[0])
    return fail_invalid("Input batch size %" PRId64 " doesn't match hidden%d batch size %" PRId64,
                        in->size[0], number, t->size[0]);
  if (t->size[t->dims - 1] != features)
    return fail_invalid("hidden%d has inconsistent hidden_size: got %" PRId64 ", expected %" PRId64,
                        number, t->size[t->dims - 1], features);
  return WEIR_OK;
}

static weir_status check_cell(const recurrent *r, const weir_tensor *in, const weir_tensor *h,
                              const weir_tensor *c)
{
  int64_t features = in->size[in->dims - 1];
  if (features != r->inputs)
    return fail_invalid("input has inconsistent input_size: got %" PRId64 " expected %" PRId64,
                        features, r->inputs);
  weir_status st = check_cell_state(h, in, r->hidden, 0);
  return st ? st : check_cell_state(c, in, r->hidden, 1);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* t with a dimension `dim` of 1 put in, `add`; else itself. NULL is NULL. */
static weir_status with_dim(weir_tensor **out, const weir_tensor *t, bool add, int dim)
{
  if (t && add) return weir_unsqueeze(out, t, dim);
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

/* One tensor of all last states' h, or c: (walks, N, features), or without N. */
static weir_status join_states(weir_tensor **out, const state *last, int count, bool cell_state,
                               bool batched)
{
  CALC(c);
  const weir_tensor **part = malloc((size_t)count * sizeof(weir_tensor *));
  if (!part) return fail_memory("%d states", count);
  for (int i = 0; i < count; i++)
    part[i] = cell_state ? last[i].c : last[i].h;
  weir_tensor *joined = c_call(c, weir_stack, part, count, 0);
  free(part);
  if (c->st || !batched) return c->st ? c->st : weir_squeeze(out, joined, 1);
  *out = weir_tensor_retain(joined);
  return WEIR_OK;
}

static weir_status give_states(const state_wanted *want, const state *last, const recurrent *r,
                               bool batched)
{
  int count = r->layers * r->directions;
  weir_status st = want->h ? join_states(want->h, last, count, false, batched) : WEIR_OK;
  if (!st && want->c && r->kind == LSTM) {
    st = join_states(want->c, last, count, true, batched);
    if (st && want->h) weir_tensor_drop(want->h);
  }
  return st;
}

/* in (L, N, features); the output in the order of the input, which had, or had not, a batch. */
static weir_status call_layers(weir_tensor **out, const weir_module *m, const weir_tensor *in,
                               const weir_tensor *h, const weir_tensor *c, bool batched,
                               const state_wanted *want)
{
  const recurrent *r = m->data;
  CALC(k);
  size_t walks = (size_t)r->layers * (size_t)r->directions;
  state *last = calloc(walks, sizeof *last);
  if (!last) return fail_memory("the states of a %s", m->kind->name);
  weir_tensor *y = c_call(k, run_layers, last, in, m, h, c);
  if (!batched)
    c_do(k, weir_squeeze(out, y, 1));
  else if (r->batch_first)
    c_do(k, weir_transpose(out, y, 0, 1));
  else if (!k->st)
    *out = weir_tensor_retain(y);
  if (want) c_do(k, give_states(want, last, r, batched));
  if (k->st) weir_tensor_drop(out);
  for (size_t i = 0; i < walks; i++)
    drop_state(&last[i]);
  free(last);
  return k->st;
}

static weir_status layers_forward(weir_tensor **out, const weir_module *m, const weir_tensor *in,
                                  const weir_tensor *h, const weir_tensor *c,
                                  const state_wanted *want)
{
  const recurrent *r = m->data;
  CALC(k);
  WEIR_TENSOR first = NULL;
  bool batched = in->dims == 3;
  k->st = check_input(m, in);
  c_do(k, check_state_rank(r, in, h, c));
  weir_tensor *x = c_call(k, with_dim, in, !batched, 1);
  if (batched && r->batch_first)
    c_do(k, weir_transpose(&first, x, 0, 1));
  else if (!k->st)
    first = weir_tensor_retain(x);
  weir_tensor *h_first = c_call(k, with_dim, h, !batched, 1);
  weir_tensor *c_first = c_call(k, with_dim, c, !batched, 1);
  c_do(k, check_recurrent_sizes(r, first, h_first, c_first));
  return k->st ? k->st : call_layers(out, m, first, h_first, c_first, batched, want);
}

/* One step of x (N, features). */
static weir_status run_cell(state *next, const weir_module *m, const weir_tensor *x,
                            const state *now)
{
  recurrent_weights w = {.turned = NULL};
  CALC(c);
  weir_tensor *gates = c_call(c, input_gates, &w, x, m, 0);
  c_do(c, run_step(next, gates, now, m->data, &w));
  weir_tensor_release(w.turned);
  return c->st;
}

static weir_status cell_forward(weir_tensor **out, const weir_module *m, const weir_tensor *in,
                                const weir_tensor *h, const weir_tensor *c,
                                const state_wanted *want)
{
  const recurrent *r = m->data;
  CALC(k);
  WEIR_TENSOR kept = NULL;
  state now = {NULL, NULL}, next = {NULL, NULL};
  bool one = in->dims == 1;
  k->st = check_input(m, in);
  c_do(k, check_cell(r, in, h, c));
  weir_tensor *x = c_call(k, with_dim, in, one, 0);
  c_do(k, h ? with_dim(&now.h, h, one, 0) : zero_state(&now.h, x, x->size[0], r->hidden));
  if (r->kind == LSTM)
    c_do(k, c ? with_dim(&now.c, c, one, 0) : zero_state(&now.c, x, x->size[0], r->hidden));
  c_do(k, run_cell(&next, m, x, &now));
  weir_tensor *shown =
      one ? c_call(k, weir_squeeze, next.h, 0) : c_call(k, with_dim, next.h, false, 0);
  if (!k->st && next.c)
    k->st = one ? weir_squeeze(&kept, next.c, 0) : with_dim(&kept, next.c, false, 0);
  if (!k->st) *out = weir_tensor_retain(shown);
  if (!k->st && want && want->h) *want->h = weir_tensor_retain(shown);
  if (!k->st && want && want->c) *want->c = weir_tensor_retain(kept);
  drop_state(&now);
  drop_state(&next);
  return k->st;
}

static weir_status recurrent_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                     int count)
{
  const recurrent *r = m->data;
  const state_wanted *want = wanted_of_call;
  wanted_of_call = NULL;
  int states = r->kind == LSTM ? 2 : 1;
  if (count != 1 && count != 1 + states)
    return fail_invalid("%s.forward() takes 1 or %d tensors but %d were passed", m->kind->name,
                        1 + states, count);
  const weir_tensor *of[] = {in[0], count > 1 ? in[1] : NULL, count > 2 ? in[2] : NULL};
  autocast_held held __attribute__((cleanup(autocast_end))) = {0};
  weir_status st = WEIR_OK;
  if (__builtin_expect(thread_autocast.on, 0)) {
    bool lstm = r->kind == LSTM && !r->cell && r->outputs == r->hidden;
    st = autocast_operands(&held, lstm ? AUTOCAST_LSTM : AUTOCAST_RECURRENT, of, 3);
  }
  if (st) return st;
  return r->cell ? cell_forward(out, m, of[0], of[1], of[2], want)
                 : layers_forward(out, m, of[0], of[1], of[2], want);
}

/* ---- making ---------------------------------------------------------------------------------- */

static weir_status copy_recurrent(void **out, const void *data)
{
  *out = malloc(sizeof(recurrent));
  if (!*out) return fail_memory("a recurrent module");
  memcpy(*out, data, sizeof(recurrent));
  return WEIR_OK;
}

static void describe_recurrent(char *out, size_t room, const weir_module *m)
{
  const recurrent *r = m->data;
  char projected[40] = "", layers[40] = "", dropout[40] = "";
  if (r->outputs != r->hidden)
    (void)snprintf(projected, sizeof projected, ", proj_size=%" PRId64, r->outputs);
  if (r->layers != 1) (void)snprintf(layers, sizeof layers, ", num_layers=%d", r->layers);
  if (r->dropout != 0) (void)snprintf(dropout, sizeof dropout, ", dropout=%g", r->dropout);
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 "%s%s%s%s%s%s%s", r->inputs, r->hidden,
                 projected, layers, r->bias ? "" : ", bias=False",
                 r->batch_first ? ", batch_first=True" : "", dropout,
                 r->directions == 2 ? ", bidirectional=True" : "",
                 r->cell && r->relu ? ", nonlinearity=relu" : "");
}

static const weir_module_class classes[2][3] = {
#define CLASS(label)                                                                               \
  {                                                                                                \
    .name = (label), .forward = recurrent_forward, .destroy = free, .clone = copy_recurrent,       \
    .describe = describe_recurrent                                                                 \
  }
    {CLASS("LSTM"), CLASS("GRU"), CLASS("RNN")},
    {CLASS("LSTMCell"), CLASS("GRUCell"), CLASS("RNNCell")}};
#undef CLASS

/* The parameters of one walk, uniform in [-bound, bound). */
static weir_status add_walk(weir_module *m, const recurrent *r, int at, const weir_options *o)
{
  static const char *const names[SLOTS] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                           "weight_hr"};
  int layer = at / r->directions;
  int64_t gates = gates_of_kind[r->kind] * r->hidden;
  int64_t inputs = layer ? r->outputs * r->directions : r->inputs;
  weir_shape shape[SLOTS] = {weir_shape(gates, inputs), weir_shape(gates, r->outputs),
                             weir_shape(gates), weir_shape(gates),
                             weir_shape(r->outputs, r->hidden)};
  bool there[SLOTS] = {true, true, r->bias, r->bias, r->outputs != r->hidden};
  double bound = 1 / sqrt((double)r->hidden);
  weir_status st = WEIR_OK;
  for (int i = 0; i < SLOTS && !st; i++) {
    char name[64];
    weir_tensor *t = NULL;
    if (r->cell)
      (void)snprintf(name, sizeof name, "%s", names[i]);
    else
      (void)snprintf(name, sizeof name, "%s_l%d%s", names[i], layer,
                     at % r->directions ? "_reverse" : "");
    st = there[i] ? weir_empty(&t, shape[i], o) : WEIR_OK;
    if (!st && t && t->numel) st = weir_uniform_(t, -bound, bound, NULL);
    if (st)
      weir_tensor_release(t);
    else
      st = weir_module_add_parameter(m, name, t);
  }
  return st;
}

static weir_status check_recurrent(const recurrent *r, const weir_recurrent_options *o)
{
  if (!(o->dropout >= 0 && o->dropout <= 1))
    return fail_invalid("dropout should be a number in range [0, 1] representing the probability "
                        "of an element being zeroed");
  if (r->inputs < 0)
    return fail_invalid("input_size must not be negative, got %" PRId64, r->inputs);
  if (r->hidden <= 0) return fail_invalid("hidden_size must be greater than zero");
  if (o->num_layers < 0 || o->num_layers > INT16_MAX)
    return fail_invalid("num_layers must be greater than zero");
  if (o->proj_size < 0)
    return fail_invalid("proj_size should be a positive integer or zero to disable projections");
  if (o->proj_size >= r->hidden)
    return fail_invalid("proj_size has to be smaller than hidden_size");
  if (o->proj_size && (r->kind != LSTM || r->cell))
    return fail_invalid("proj_size argument is only supported for LSTM, not RNN or GRU");
  return WEIR_OK;
}

static weir_status make_recurrent(weir_module **out, recurrent_kind kind, bool cell, int64_t inputs,
                                  int64_t hidden, const weir_recurrent_options *options)
{
  static const weir_recurrent_options none = {0};
  const weir_recurrent_options *o = options ? options : &none;
  recurrent r = {.kind = kind, .cell = cell, .inputs = inputs, .hidden = hidden};
  void *data = NULL;
  weir_module *m = NULL;
  TRY(check_recurrent(&r, o));
  r.batch_first = o->batch_first && !cell;
  r.relu = o->relu;
  r.bias = !o->no_bias;
  r.outputs = o->proj_size ? o->proj_size : hidden;
  r.layers = cell || !o->num_layers ? 1 : (int)o->num_layers;
  r.directions = o->bidirectional && !cell ? 2 : 1;
  r.dropout = cell ? 0 : o->dropout;
  weir_status st = copy_recurrent(&data, &r);
  if (!st) st = weir_module_new(&m, &classes[cell][kind], data);
  for (int i = 0; i < r.layers * r.directions && !st; i++)
    st = add_walk(m, &r, i, &o->tensor);
  if (st)
    weir_module_release(m);
  else
    *out = m;
  return st;
}

#define RECURRENT(name, kind, cell)                                                                \
  weir_status weir_module_##name(weir_module **out, int64_t input_size, int64_t hidden_size,       \
                                 const weir_recurrent_options *options)                            \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    return make_recurrent(out, kind, cell, input_size, hidden_size, options);                      \
  }
RECURRENT(lstm, LSTM, false)
RECURRENT(gru, GRU, false)
RECURRENT(rnn, RNN, false)
RECURRENT(lstm_cell, LSTM, true)
RECURRENT(gru_cell, GRU, true)
RECURRENT(rnn_cell, RNN, true)

weir_status weir_recurrent(weir_tensor **out, weir_tensor **h_n, weir_tensor **c_n, weir_module *m,
                           weir_tensor *in, weir_tensor *h_0, weir_tensor *c_0)
{
  if (h_n) *h_n = NULL;
  if (c_n) *c_n = NULL;
  WEIR_REQUIRE_OUT(out, m, in);
  if (m->kind->forward != recurrent_forward)
    return fail_invalid("weir_recurrent: a %s is no recurrent module", m->kind->name);
  const recurrent *r = m->data;
  if ((h_0 == NULL) != (c_0 == NULL) && (r->kind == LSTM || !h_0))
    return fail_invalid("weir_recurrent: of a %s, h_0 and c_0 are %s", m->kind->name,
                        r->kind == LSTM ? "both there, or neither" : "one state, h_0");
  state_wanted want = {h_n, c_n};
  wanted_of_call = &want;
  weir_status st = weir_module_call_many(out, m, (weir_tensor *[]){in, h_0, c_0},
                                         !h_0              ? 1
                                         : r->kind == LSTM ? 3
                                                           : 2);
  wanted_of_call = NULL;
  return st;
}

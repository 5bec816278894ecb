/* test_graphs.c: random numbers in captured graphs: a replay draws what the same calls would draw
 * without a graph, from the generator as it is then. */
#include <pthread.h>
#include "tests/tensor/rig.h"

enum { N = 501, KINDS = 4, ROUNDS = 3 };

static weir_stream *side, *other;

static void open_side_streams(void)
{
  devices(2);
  weir_ok(weir_stream_new(&side, cuda0, 0));
  weir_ok(weir_stream_new(&other, cuda0, 0));
}

static weir_tensor *room(weir_dtype dtype)
{
  weir_tensor *t;
  weir_options o = as(dtype, cuda0);
  weir_ok(weir_zeros(&t, weir_shape(N), &o));
  return t;
}

static void fill_with_distribution(int kind, weir_tensor *t, weir_generator *g)
{
  weir_ok(kind == 0   ? weir_normal_(t, 1, 2, g)
          : kind == 1 ? weir_uniform_(t, -1, 3, g)
          : kind == 2 ? weir_random_(t, -5, 5000, g)
                      : weir_bernoulli_(t, 0.25, g));
}

static void read_into(double *out, const weir_tensor *t)
{
  weir_ok(weir_tensor_read(out, N * sizeof *out, WEIR_FLOAT64, t));
}

/* A graph of one draw from g in the side stream. */
static weir_graph *graph_of(int kind, weir_tensor *t, weir_generator *g, weir_graph_pool *pool)
{
  weir_graph *graph;
  weir_ok(weir_graph_new(&graph));
  weir_ok(weir_stream_wait_stream(side, NULL));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, pool, WEIR_CAPTURE_GLOBAL));
    fill_with_distribution(kind, t, g);
    weir_ok(weir_graph_capture_end(graph));
  }
  return graph;
}

/* Whether a replay gives what the same draw gives eagerly, from the state that g has now; both
 * leave g in the same state. NULL: the default generator. */
static void replays_as_drawn(weir_graph *graph, int kind, weir_tensor *t, weir_generator *g)
{
  double drawn[N], replayed[N];
  weir_generator *of = g;
  if (!g) weir_ok(weir_default_generator(&of, cuda0));
  weir_generator_state before = weir_generator_get_state(of), after;
  fill_with_distribution(kind, t, g);
  read_into(drawn, t);
  after = weir_generator_get_state(of);
  weir_generator_set_state(of, before);
  weir_ok(weir_zero_(t));
  weir_ok(weir_graph_replay(graph));
  read_into(replayed, t);
  ck_assert_mem_eq(drawn, replayed, sizeof drawn);
  before = weir_generator_get_state(of);
  ck_assert_uint_eq(before.offset, after.offset);
  ck_assert_uint_eq(before.seed, after.seed);
}

START_TEST(replays_go_on_where_the_generator_is)
{
  double drawn[ROUNDS][KINDS][N], replayed[N];
  weir_tensor *t[KINDS];
  weir_graph *graph;
  weir_generator *g;
  open_side_streams();
  weir_ok(weir_default_generator(&g, cuda0));
  for (int k = 0; k < KINDS; k++)
    t[k] = room(k == 1 ? WEIR_FLOAT64 : k == 2 ? WEIR_INT32 : WEIR_FLOAT32);
  weir_manual_seed(UINT64_C(0xfedcba9876543210)); /* more than a number of doubles holds */
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 0; k < KINDS; k++) {
      fill_with_distribution(k, t[k], NULL);
      read_into(drawn[i][k], t[k]);
    }
  weir_generator_state end = weir_generator_get_state(g);
  weir_manual_seed(UINT64_C(0xfedcba9876543210));
  weir_ok(weir_graph_new(&graph));
  weir_ok(weir_stream_wait_stream(side, NULL));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL));
    for (int k = 0; k < KINDS; k++)
      fill_with_distribution(k, t[k], NULL);
    weir_ok(weir_graph_capture_end(graph));
  }
  ck_assert_uint_eq(weir_generator_get_state(g).offset, 0); /* the capture took none */
  for (int i = 0; i < ROUNDS; i++) {
    if (i == 1) { /* drawn between two replays */
      for (int k = 0; k < KINDS; k++) {
        fill_with_distribution(k, t[k], NULL);
        read_into(replayed, t[k]);
        ck_assert_mem_eq(drawn[i][k], replayed, sizeof replayed);
      }
      continue;
    }
    weir_ok(weir_graph_replay(graph));
    for (int k = 0; k < KINDS; k++) {
      read_into(replayed, t[k]);
      ck_assert_mem_eq(drawn[i][k], replayed, sizeof replayed);
    }
  }
  ck_assert_uint_eq(weir_generator_get_state(g).offset, end.offset);
  weir_graph_release(graph);
  for (int k = 0; k < KINDS; k++)
    weir_tensor_release(t[k]);
}
END_TEST

START_TEST(a_new_seed_or_place_holds_from_the_next_replay_on)
{
  open_side_streams();
  WEIR_TENSOR t = room(WEIR_FLOAT32);
  weir_generator *g;
  weir_ok(weir_default_generator(&g, cuda0));
  weir_graph *graph = graph_of(0, t, NULL, NULL);
  replays_as_drawn(graph, 0, t, NULL);
  weir_manual_seed(7);
  replays_as_drawn(graph, 0, t, NULL);
  weir_generator_set_state(g, (weir_generator_state){3, UINT64_MAX - 5}); /* it wraps */
  replays_as_drawn(graph, 0, t, NULL);
  replays_as_drawn(graph, 0, t, NULL);
  weir_graph_release(graph);
}
END_TEST

START_TEST(a_graph_keeps_the_generators_that_it_draws_from)
{
  weir_generator *one, *two;
  double eager[2][N], replayed[N];
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  WEIR_TENSOR b = room(WEIR_FLOAT32);
  weir_ok(weir_generator_new(&one, cuda0));
  weir_ok(weir_generator_new(&two, cuda0));
  weir_generator_manual_seed(one, 11);
  weir_generator_manual_seed(two, 22);
  fill_with_distribution(0, a, one);
  fill_with_distribution(0, b, two);
  read_into(eager[0], a);
  read_into(eager[1], b);
  weir_generator_manual_seed(one, 11);
  weir_generator_manual_seed(two, 22);
  weir_graph *graph;
  weir_ok(weir_graph_new(&graph));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_RELAXED));
    fill_with_distribution(0, a, one);
    fill_with_distribution(0, b, two);
    weir_ok(weir_graph_capture_end(graph));
  }
  weir_generator_release(one);
  weir_generator_release(two);
  weir_ok(weir_graph_replay(graph));
  read_into(replayed, a);
  ck_assert_mem_eq(eager[0], replayed, sizeof replayed);
  read_into(replayed, b);
  ck_assert_mem_eq(eager[1], replayed, sizeof replayed);
  weir_ok(weir_graph_replay(graph));
  read_into(replayed, a);
  ck_assert_mem_ne(eager[0], replayed, sizeof replayed);
  weir_graph_release(graph);
}
END_TEST

START_TEST(streams_that_join_draw_for_the_same_graph)
{
  weir_generator *g;
  double eager[2][N], replayed[N];
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  WEIR_TENSOR b = room(WEIR_FLOAT32);
  weir_ok(weir_default_generator(&g, cuda0));
  weir_manual_seed(5);
  fill_with_distribution(0, a, NULL);
  fill_with_distribution(1, b, NULL);
  read_into(eager[0], a);
  read_into(eager[1], b);
  weir_manual_seed(5);
  weir_graph *graph;
  weir_ok(weir_graph_new(&graph));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL));
    fill_with_distribution(0, a, NULL);
    weir_ok(weir_stream_wait_stream(other, side));
    WEIR_WITH_STREAM(other) fill_with_distribution(1, b, NULL);
    weir_ok(weir_stream_wait_stream(side, other));
    weir_ok(weir_graph_capture_end(graph));
  }
  ck_assert_uint_eq(weir_generator_get_state(g).offset, 0);
  weir_ok(weir_graph_replay(graph));
  read_into(replayed, a);
  ck_assert_mem_eq(eager[0], replayed, sizeof replayed);
  read_into(replayed, b);
  ck_assert_mem_eq(eager[1], replayed, sizeof replayed);
  weir_graph_release(graph);
}
END_TEST

START_TEST(graphs_of_one_pool_draw_each_for_itself)
{
  weir_graph_pool *pool;
  double first[N], second[N];
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  WEIR_TENSOR b = room(WEIR_FLOAT32);
  weir_graph *one = graph_of(0, a, NULL, NULL);
  weir_ok(weir_graph_memory(&pool, one));
  weir_graph *two = graph_of(0, b, NULL, pool);
  weir_manual_seed(1);
  weir_ok(weir_graph_replay(one));
  weir_ok(weir_graph_replay(two));
  read_into(first, a);
  read_into(second, b);
  ck_assert_mem_ne(first, second, sizeof first);
  replays_as_drawn(one, 0, a, NULL);
  weir_graph_release(one);
  replays_as_drawn(two, 0, b, NULL);
  weir_ok(weir_graph_reset(two)); /* and captures anew */
  weir_graph_release(two);
  two = graph_of(3, b, NULL, NULL);
  replays_as_drawn(two, 3, b, NULL);
  weir_graph_release(two);
}
END_TEST

START_TEST(what_is_drawn_outside_a_capture_is_not_the_graphs)
{
  weir_generator *g;
  double here[N], there[N];
  weir_graph *graph;
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  WEIR_TENSOR b = room(WEIR_FLOAT32);
  WEIR_TENSOR host = NULL;
  weir_ok(weir_default_generator(&g, cuda0));
  weir_ok(weir_empty(&host, weir_shape(N), NULL));
  weir_ok(weir_synchronize(cuda0)); /* `other` waits for nothing */
  weir_manual_seed(9);
  weir_ok(weir_graph_new(&graph));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_RELAXED));
    fill_with_distribution(0, a, NULL);
    WEIR_WITH_STREAM(other) fill_with_distribution(0, b, NULL); /* done at once */
    fill_with_distribution(0, host, NULL);
    weir_ok(weir_graph_capture_end(graph));
  }
  weir_ok(weir_synchronize(cuda0));
  read_into(here, b);
  read_into(there, host);
  ck_assert_mem_eq(here, there, sizeof here); /* each device's first numbers of the seed */
  ck_assert_uint_gt(weir_generator_get_state(g).offset, 0);
  replays_as_drawn(graph, 0, a, NULL);
  weir_graph_release(graph);
}
END_TEST

static void *release(void *graph)
{
  weir_graph_release(graph);
  return NULL;
}

START_TEST(a_second_graph_of_a_captured_stream_is_refused_in_its_words)
{
  weir_graph *graph, *second;
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  weir_ok(weir_graph_new(&graph));
  weir_ok(weir_graph_new(&second));
  WEIR_WITH_STREAM(side)
  {
    WEIR_TENSOR warm = room(WEIR_FLOAT32); /* freed in the capture: there is something to mark */
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL));
    weir_tensor_drop(&warm);
    refused(WEIR_EINVAL, "the stream allocates to a private pool already",
            weir_graph_capture_begin(second, NULL, WEIR_CAPTURE_GLOBAL));
    fill_with_distribution(0, a, NULL);
    weir_ok(weir_graph_capture_end(graph));
  }
  replays_as_drawn(graph, 0, a, NULL);
  weir_graph_release(graph);
  weir_graph_release(second);
}
END_TEST

/* Another thread cannot end the capture: it goes on without the graph, and what is drawn then is
 * an argument like others. */
START_TEST(a_graph_may_go_while_its_capture_goes_on)
{
  pthread_t thread;
  weir_graph *graph;
  CUgraph native = NULL;
  void *stream;
  open_side_streams();
  WEIR_TENSOR a = room(WEIR_FLOAT32);
  weir_ok(weir_graph_new(&graph));
  weir_ok(weir_stream_native(&stream, side));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(graph, NULL, WEIR_CAPTURE_GLOBAL));
    fill_with_distribution(0, a, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, release, graph), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    fill_with_distribution(0, a, NULL);
  }
  ok(cuStreamEndCapture(stream, &native));
  ck_assert_ptr_nonnull(native);
  ok(cuGraphDestroy(native));
  graph = graph_of(0, a, NULL, NULL);
  replays_as_drawn(graph, 0, a, NULL);
  weir_graph_release(graph);
}
END_TEST

int main(void)
{
  static const TTest *tests[9];
  int n = 0;
  tests[n++] = replays_go_on_where_the_generator_is;
  tests[n++] = a_new_seed_or_place_holds_from_the_next_replay_on;
  tests[n++] = a_graph_keeps_the_generators_that_it_draws_from;
  tests[n++] = streams_that_join_draw_for_the_same_graph;
  tests[n++] = graphs_of_one_pool_draw_each_for_itself;
  tests[n++] = a_second_graph_of_a_captured_stream_is_refused_in_its_words;
  tests[n++] = a_graph_may_go_while_its_capture_goes_on;
  tests[n] = what_is_drawn_outside_a_capture_is_not_the_graphs;
  return rig_run("ops/graphs", tests, 1);
}

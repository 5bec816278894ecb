/* generate.c: writes the corpus: traces of allocations as real models make them (see README.md).
 *
 * A model here is the list of tensors it makes and drops, in order: what matters to an allocator.
 * Shapes are those of the papers and of the reference implementations; fp16 tensors have two bytes
 * an element, optimiser states four. A kept tensor is dropped in the backward pass, a temporary one
 * when the operation that reads it is done. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

/* ---- operations ------------------------------------------------------------------------------ */

typedef struct tensor {
  uint64_t address, bytes;
} tensor;

static FILE *out;
static uint64_t next_address; /* a name: never used twice */
static uint64_t now;          /* us */
static uint64_t stream;       /* of what follows */
static unsigned thread;       /* of what follows */
static uint64_t seed;

static uint64_t xorshift_below(uint64_t below) /* xorshift64* */
{
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return (seed * UINT64_C(0x2545f4914f6cdd1d) >> 11) % below;
}

static void write_log_line(const char *action, tensor t)
{
  uint64_t s = now / 1000000;
  (void)fprintf(out, "%u,%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n", thread,
                (unsigned)(s / 3600), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
                (unsigned)(now % 1000000), action, t.address, t.bytes, stream);
  now += 10;
}

static tensor allocate_tensor(uint64_t bytes)
{
  tensor t = {next_address, bytes};
  next_address += (bytes + 511) / 512 * 512;
  write_log_line("allocate", t);
  return t;
}

static void free_tensor(tensor t)
{
  write_log_line("free", t);
}

/* A tensor that lives for one operation. */
static void pass(uint64_t bytes)
{
  free_tensor(allocate_tensor(bytes));
}

/* A stack of tensors kept for the backward pass. */
typedef struct stack {
  tensor t[4096];
  size_t count;
} stack;

static void push_new_tensor(stack *s, uint64_t bytes)
{
  if (s->count == sizeof s->t / sizeof *s->t) abort();
  s->t[s->count++] = allocate_tensor(bytes);
}

static void drop_to(stack *s, size_t count)
{
  while (s->count > count)
    free_tensor(s->t[--s->count]);
}

/* ---- transformers ---------------------------------------------------------------------------- */

typedef struct gpt {
  uint64_t layers, d, heads, vocabulary, batch, length;
} gpt;

/* Forward of one layer: what autograd keeps, and what is gone at once. */
static void layer_forward(const gpt *g, stack *kept)
{
  uint64_t x = g->batch * g->length * g->d * 2;
  uint64_t scores = g->batch * g->heads * g->length * g->length * 2;
  push_new_tensor(kept, x);                            /* layer norm */
  push_new_tensor(kept, g->batch * g->length * 2 * 4); /* its mean and deviation, fp32 */
  push_new_tensor(kept, 3 * x);                        /* q, k, v */
  pass(scores);                                        /* before the softmax */
  push_new_tensor(kept, scores);                       /* the softmax */
  push_new_tensor(kept, scores / 2);                   /* dropout's mask, a byte an element */
  push_new_tensor(kept, x);                            /* attention */
  push_new_tensor(kept, x);                            /* projection and residual */
  push_new_tensor(kept, x);                            /* second layer norm */
  push_new_tensor(kept, g->batch * g->length * 2 * 4);
  push_new_tensor(kept, 4 * x); /* feed forward */
  push_new_tensor(kept, 4 * x); /* GELU */
  pass(x);
  push_new_tensor(kept, x); /* out, residual */
}

/* Backward of one layer: gradients of what was kept, which goes. Parameter gradients, where they
 * are not there yet, stay. */
static void layer_backward(const gpt *g, stack *kept, size_t from, stack *gradients)
{
  uint64_t x = g->batch * g->length * g->d * 2;
  tensor incoming = allocate_tensor(x);
  while (kept->count > from) {
    tensor t = kept->t[kept->count - 1];
    tensor gradient = allocate_tensor(t.bytes);
    drop_to(kept, kept->count - 1);
    free_tensor(incoming);
    incoming = gradient;
  }
  if (gradients) {
    push_new_tensor(gradients, 3 * g->d * g->d * 2);
    push_new_tensor(gradients, 3 * g->d * 2);
    push_new_tensor(gradients, g->d * g->d * 2);
    push_new_tensor(gradients, g->d * 2);
    push_new_tensor(gradients, 4 * g->d * g->d * 2);
    push_new_tensor(gradients, 4 * g->d * 2);
    push_new_tensor(gradients, 4 * g->d * g->d * 2);
    push_new_tensor(gradients, g->d * 2);
  }
  free_tensor(incoming);
}

static uint64_t layer_parameters(const gpt *g)
{
  return 12 * g->d * g->d + 13 * g->d;
}

/* Weights, and AdamW's master copy and two moments of them in fp32. */
static void make_weights(const gpt *g, stack *all, uint64_t shards)
{
  const uint64_t d = g->d;
  const uint64_t shapes[] = {3 * d * d, 3 * d, d * d, d, 4 * d * d, 4 * d,
                             4 * d * d, d,     d,     d, d,         d};
  push_new_tensor(all, g->vocabulary * d * 2 / shards);
  push_new_tensor(all, g->length * d * 2 / shards);
  for (uint64_t l = 0; l < g->layers; l++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      push_new_tensor(all, shapes[i] * 2 / shards);
}

static void make_states(stack *all, size_t weights)
{
  for (size_t copy = 0; copy < 3; copy++)
    for (size_t i = 0; i < weights; i++)
      push_new_tensor(all, all->t[i].bytes * 2);
}

static void head(const gpt *g, stack *gradients)
{
  uint64_t logits = g->batch * g->length * g->vocabulary * 2;
  tensor out_logits = allocate_tensor(logits), loss = allocate_tensor(512),
         softmax = allocate_tensor(logits);
  tensor gradient = allocate_tensor(logits);
  free_tensor(softmax);
  free_tensor(loss);
  free_tensor(out_logits);
  push_new_tensor(gradients, g->vocabulary * g->d * 2);
  free_tensor(gradient);
}

static void evaluate(void)
{
  static stack side;
  uint64_t before = stream;
  stream = 0x55550010;
  for (int i = 0; i < 32; i++)
    push_new_tensor(&side, 64 * MIB);
  drop_to(&side, 0);
  stream = before;
}

static void train(const gpt *g, int steps, bool side_stream)
{
  static stack weights, kept, gradients;
  weights.count = kept.count = gradients.count = 0;
  make_weights(g, &weights, 1);
  size_t count = weights.count;
  for (int step = 0; step < steps; step++) {
    size_t from[64];
    tensor tokens = allocate_tensor(g->batch * g->length * 8);
    push_new_tensor(&kept, g->batch * g->length * g->d * 2); /* embedding */
    for (uint64_t l = 0; l < g->layers; l++) {
      from[l] = kept.count;
      layer_forward(g, &kept);
    }
    head(g, &gradients);
    for (uint64_t l = g->layers; l-- > 0;)
      layer_backward(g, &kept, from[l], &gradients);
    drop_to(&kept, 0);
    if (step == 0) make_states(&weights, count);
    for (size_t i = 0; i < gradients.count; i++)
      pass(gradients.t[i].bytes * 2); /* the update, fp32 */
    drop_to(&gradients, 0);
    free_tensor(tokens);
    if (side_stream && step == 1) evaluate();
  }
  drop_to(&weights, 0);
}

static void transformer(void)
{
  train(&(gpt){12, 768, 12, 50257, 8, 1024}, 6, false);
}

static void side_stream(void)
{
  train(&(gpt){12, 768, 12, 50257, 8, 1024}, 6, true);
}

static void checkpoint(void)
{
  static stack weights, inputs, kept, gradients;
  const gpt g = {24, 1024, 16, 50257, 8, 1024};
  uint64_t x = g.batch * g.length * g.d * 2;
  make_weights(&g, &weights, 1);
  size_t count = weights.count;
  for (int step = 0; step < 4; step++) {
    for (uint64_t l = 0; l < g.layers; l++) { /* only a layer's input outlives it */
      push_new_tensor(&inputs, x);
      layer_forward(&g, &kept);
      drop_to(&kept, 0);
    }
    head(&g, &gradients);
    for (uint64_t l = g.layers; l-- > 0;) {
      layer_forward(&g, &kept);
      layer_backward(&g, &kept, 0, &gradients);
      drop_to(&inputs, l);
    }
    if (step == 0) make_states(&weights, count);
    drop_to(&gradients, 0);
  }
  drop_to(&weights, 0);
}

/* The parameters of a layer from all ranks, on the stream of communication. */
static tensor gather(const gpt *g)
{
  stream = 0x55550020;
  tensor whole = allocate_tensor(layer_parameters(g) * 2);
  stream = 0;
  return whole;
}

static void reduce(const gpt *g, uint64_t ranks, stack *gradients)
{
  tensor whole = allocate_tensor(layer_parameters(g) * 2);
  push_new_tensor(gradients, layer_parameters(g) * 2 / ranks);
  stream = 0x55550020; /* read last by the reduction */
  free_tensor(whole);
  stream = 0;
}

static void sharded(void)
{
  static stack weights, inputs, kept, gradients;
  const gpt g = {48, 1600, 25, 50257, 2, 1024};
  const uint64_t ranks = 8;
  make_weights(&g, &weights, ranks);
  size_t count = weights.count;
  for (int step = 0; step < 2; step++) {
    tensor ahead = gather(&g);
    for (uint64_t l = 0; l < g.layers; l++) { /* the next layer is fetched while this one runs */
      tensor now_used = ahead;
      if (l + 1 < g.layers) ahead = gather(&g);
      push_new_tensor(&inputs, g.batch * g.length * g.d * 2);
      layer_forward(&g, &kept);
      drop_to(&kept, 0);
      free_tensor(now_used);
    }
    head(&g, &gradients);
    for (uint64_t l = g.layers; l-- > 0;) {
      tensor whole = gather(&g);
      layer_forward(&g, &kept);
      layer_backward(&g, &kept, 0, NULL);
      reduce(&g, ranks, &gradients);
      free_tensor(whole);
      drop_to(&inputs, l);
    }
    if (step == 0) make_states(&weights, count);
    drop_to(&gradients, 0);
  }
  drop_to(&weights, 0);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* One convolution with batch norm and ReLU: kept are its output and the normalised one. */
static void convolution(stack *kept, uint64_t batch, uint64_t side, uint64_t channels)
{
  push_new_tensor(kept, batch * side * side * channels * 2);
  pass(8 * MIB + channels * KIB);          /* cuDNN's workspace */
  push_new_tensor(kept, channels * 2 * 4); /* mean and deviation */
  push_new_tensor(kept, batch * side * side * channels * 2);
}

static void resnet_step(stack *kept, uint64_t batch, uint64_t image)
{
  static const uint64_t blocks[] = {3, 4, 6, 3};
  uint64_t side = image / 2;
  push_new_tensor(kept, batch * image * image * 3 * 2);
  convolution(kept, batch, side, 64);
  side = (side + 1) / 2;
  push_new_tensor(kept, batch * side * side * 64 * 2); /* pooled */
  for (uint64_t stage = 0; stage < 4; stage++) {
    uint64_t width = UINT64_C(64) << stage;
    if (stage) side = (side + 1) / 2;
    for (uint64_t b = 0; b < blocks[stage]; b++) {
      convolution(kept, batch, side, width);
      convolution(kept, batch, side, width);
      convolution(kept, batch, side, 4 * width);
      if (b == 0) convolution(kept, batch, side, 4 * width); /* the short cut */
    }
  }
  push_new_tensor(kept, batch * 2048 * 2);
  push_new_tensor(kept, batch * 1000 * 2);
  while (kept->count) {
    tensor gradient = allocate_tensor(kept->t[kept->count - 1].bytes);
    drop_to(kept, kept->count - 1);
    free_tensor(gradient);
  }
}

static void images(void)
{
  static stack weights, kept;
  for (uint64_t i = 0; i < 4 * 161; i++) /* 25.6 M parameters: weight, gradient, two moments */
    push_new_tensor(&weights, 25600000 / 161 * 4);
  for (int step = 0; step < 24; step++)
    resnet_step(&kept, 32, 224 + 32 * xorshift_below(6));
  drop_to(&weights, 0);
}

/* ---- serving --------------------------------------------------------------------------------- */

enum { LAYERS = 32, SLOTS = 16, DIM = 4096 };

typedef struct request {
  tensor kv[LAYERS];
  uint64_t length, room, left; /* tokens: there, allocated for, to come */
} request;

static void decode_step(request *r)
{
  bool full = r->length == r->room;
  if (full) r->room += r->room / 4;
  for (int l = 0; full && l < LAYERS; l++) { /* grown by copying */
    tensor more = allocate_tensor(r->room * DIM * 2 * 2);
    free_tensor(r->kv[l]);
    r->kv[l] = more;
  }
  tensor hidden = allocate_tensor(DIM * 2);
  pass(r->length * 32 * 4); /* scores of one token */
  pass(11008 * 2);          /* feed forward */
  pass(32000 * 4);          /* logits */
  free_tensor(hidden);
  r->length++;
  r->left--;
}

static void prefill(request *r)
{
  r->length = 16 + xorshift_below(2032);
  r->room = r->length + 16;
  r->left = 1 + xorshift_below(384);
  for (int l = 0; l < LAYERS; l++) {
    tensor hidden = allocate_tensor(r->length * DIM * 2);
    r->kv[l] = allocate_tensor(r->room * DIM * 2 * 2);
    pass(r->length * DIM * 3 * 2);
    pass(r->length * 11008 * 2 * 2);
    free_tensor(hidden);
  }
}

static void finish(request *r)
{
  for (int l = 0; l < LAYERS; l++)
    free_tensor(r->kv[l]);
  *r = (request){0};
}

static void serving(void)
{
  static stack weights;
  static request slot[SLOTS];
  memset(slot, 0, sizeof slot);
  for (int l = 0; l < LAYERS; l++) {
    for (int i = 0; i < 4; i++)
      push_new_tensor(&weights, (uint64_t)DIM * DIM * 2);
    for (int i = 0; i < 3; i++)
      push_new_tensor(&weights, (uint64_t)DIM * 11008 * 2);
  }
  for (int step = 0; step < 1000; step++) {
    request *idle = NULL;
    for (int i = 0; i < SLOTS && !idle; i++)
      if (!slot[i].room) idle = &slot[i];
    if (idle && xorshift_below(8) == 0) prefill(idle);
    for (int i = 0; i < SLOTS; i++) {
      if (!slot[i].room) continue;
      decode_step(&slot[i]);
      if (!slot[i].left) finish(&slot[i]);
    }
  }
  for (int i = 0; i < SLOTS; i++)
    if (slot[i].room) finish(&slot[i]);
  drop_to(&weights, 0);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void graphs(void)
{
  static const uint64_t widths[] = {602, 256, 256, 41};
  static stack weights, kept;
  for (int i = 0; i < 3; i++)
    for (int copy = 0; copy < 4; copy++)
      push_new_tensor(&weights, widths[i] * widths[i + 1] * 2 * 4);
  for (int step = 0; step < 150; step++) {
    uint64_t nodes[4];
    nodes[3] = 1024;
    for (int hop = 3; hop-- > 0;) { /* neighbours meet again: fewer new ones at each hop */
      nodes[hop] = nodes[hop + 1] * (2 + xorshift_below(5)) + xorshift_below(1000);
      push_new_tensor(&kept, nodes[hop + 1] * 15 * 8 * 2); /* the edges */
    }
    push_new_tensor(&kept, nodes[0] * 602 * 4);
    for (int l = 0; l < 3; l++) {
      pass(nodes[l + 1] * 15 * widths[l] * 4); /* messages */
      push_new_tensor(&kept, nodes[l + 1] * widths[l] * 4);
      push_new_tensor(&kept, nodes[l + 1] * widths[l + 1] * 4);
    }
    while (kept.count) {
      tensor gradient = allocate_tensor(kept.t[kept.count - 1].bytes);
      drop_to(&kept, kept.count - 1);
      free_tensor(gradient);
    }
  }
  drop_to(&weights, 0);
}

/* ---- threads and streams --------------------------------------------------------------------- */

static uint64_t any_size(void) /* 512 B to 32 MiB, evenly by logarithm */
{
  uint64_t base = UINT64_C(512) << xorshift_below(16);
  return base + xorshift_below(base);
}

static void threads(void)
{
  enum { THREADS = 16, STREAMS = 16, HELD = 4 };
  static tensor held[THREADS][STREAMS][HELD];
  memset(held, 0, sizeof held);
  for (int i = 0; i < 40000; i++) {
    uint64_t t = xorshift_below(THREADS), s = xorshift_below(STREAMS);
    tensor *one = &held[t][s][xorshift_below(HELD)];
    thread = (unsigned)t + 1;
    stream = 0x10000 + t * 256 + s * 16;
    if (one->bytes) free_tensor(*one);
    *one = one->bytes ? (tensor){0} : allocate_tensor(any_size());
  }
  for (uint64_t t = 0; t < THREADS; t++)
    for (uint64_t s = 0; s < STREAMS; s++)
      for (int i = 0; i < HELD; i++) {
        thread = (unsigned)t + 1;
        stream = 0x10000 + t * 256 + s * 16;
        if (held[t][s][i].bytes) free_tensor(held[t][s][i]);
      }
}

static void pipeline(void)
{
  enum { DEPTH = 8 };
  tensor queue[DEPTH] = {{0, 0}};
  for (uint64_t i = 0; i < 6000; i++) {
    tensor *slot = &queue[i % DEPTH];
    if (slot->bytes) { /* the consumer: works on it, and is the last to use it */
      thread = 9;
      stream = 0x20090;
      tensor work = allocate_tensor(slot->bytes / 2);
      free_tensor(*slot);
      free_tensor(work);
    }
    thread = (unsigned)(1 + i % 3); /* one of three producers */
    stream = 0x20000 + thread * 16;
    *slot = allocate_tensor(MIB + xorshift_below(16 * MIB));
  }
  thread = 9;
  stream = 0x20090;
  for (int i = 0; i < DEPTH; i++)
    free_tensor(queue[i]);
}

/* ---- the corpus ------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  void (*write)(void);
} traces[] = {{"transformer", transformer}, {"checkpoint", checkpoint}, {"sharded", sharded},
              {"images", images},           {"serving", serving},       {"graphs", graphs},
              {"side-stream", side_stream}, {"threads", threads},       {"pipeline", pipeline}};

int main(int argc, char **argv)
{
  if (argc != 2) {
    (void)fprintf(stderr, "usage: generate DIR\n");
    return 2;
  }
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.csv", argv[1], traces[i].name);
    out = fopen(path, "w");
    if (!out) {
      perror(path);
      return 1;
    }
    next_address = UINT64_C(0x7f0000000000);
    now = stream = thread = 0;
    seed = UINT64_C(0x9e3779b97f4a7c15) + i;
    (void)fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
    traces[i].write();
    if (ferror(out) | fclose(out)) {
      perror(path);
      return 1;
    }
  }
  return 0;
}

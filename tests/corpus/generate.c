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

static uint64_t draw(uint64_t below) /* xorshift64* */
{
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return (seed * UINT64_C(0x2545f4914f6cdd1d) >> 11) % below;
}

static void line(const char *action, tensor t)
{
  uint64_t s = now / 1000000;
  (void)fprintf(out, "%u,%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n", thread,
                (unsigned)(s / 3600), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
                (unsigned)(now % 1000000), action, t.address, t.bytes, stream);
  now += 10;
}

static tensor make(uint64_t bytes)
{
  tensor t = {next_address, bytes};
  next_address += (bytes + 511) / 512 * 512;
  line("allocate", t);
  return t;
}

static void drop(tensor t)
{
  line("free", t);
}

/* A tensor that lives for one operation. */
static void pass(uint64_t bytes)
{
  drop(make(bytes));
}

/* A stack of tensors kept for the backward pass. */
typedef struct stack {
  tensor t[4096];
  size_t count;
} stack;

static void keep(stack *s, uint64_t bytes)
{
  if (s->count == sizeof s->t / sizeof *s->t) abort();
  s->t[s->count++] = make(bytes);
}

static void drop_to(stack *s, size_t count)
{
  while (s->count > count)
    drop(s->t[--s->count]);
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
  keep(kept, x);                            /* layer norm */
  keep(kept, g->batch * g->length * 2 * 4); /* its mean and deviation, fp32 */
  keep(kept, 3 * x);                        /* q, k, v */
  pass(scores);                             /* before the softmax */
  keep(kept, scores);                       /* the softmax */
  keep(kept, scores / 2);                   /* dropout's mask, a byte an element */
  keep(kept, x);                            /* attention */
  keep(kept, x);                            /* projection and residual */
  keep(kept, x);                            /* second layer norm */
  keep(kept, g->batch * g->length * 2 * 4);
  keep(kept, 4 * x); /* feed forward */
  keep(kept, 4 * x); /* GELU */
  pass(x);
  keep(kept, x); /* out, residual */
}

/* Backward of one layer: gradients of what was kept, which goes. Parameter gradients, where they
 * are not there yet, stay. */
static void layer_backward(const gpt *g, stack *kept, size_t from, stack *gradients)
{
  uint64_t x = g->batch * g->length * g->d * 2;
  tensor incoming = make(x);
  while (kept->count > from) {
    tensor t = kept->t[kept->count - 1];
    tensor gradient = make(t.bytes);
    drop_to(kept, kept->count - 1);
    drop(incoming);
    incoming = gradient;
  }
  if (gradients) {
    keep(gradients, 3 * g->d * g->d * 2);
    keep(gradients, 3 * g->d * 2);
    keep(gradients, g->d * g->d * 2);
    keep(gradients, g->d * 2);
    keep(gradients, 4 * g->d * g->d * 2);
    keep(gradients, 4 * g->d * 2);
    keep(gradients, 4 * g->d * g->d * 2);
    keep(gradients, g->d * 2);
  }
  drop(incoming);
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
  keep(all, g->vocabulary * d * 2 / shards);
  keep(all, g->length * d * 2 / shards);
  for (uint64_t l = 0; l < g->layers; l++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      keep(all, shapes[i] * 2 / shards);
}

static void make_states(stack *all, size_t weights)
{
  for (size_t copy = 0; copy < 3; copy++)
    for (size_t i = 0; i < weights; i++)
      keep(all, all->t[i].bytes * 2);
}

static void head(const gpt *g, stack *gradients)
{
  uint64_t logits = g->batch * g->length * g->vocabulary * 2;
  tensor out_logits = make(logits), loss = make(512), softmax = make(logits);
  tensor gradient = make(logits);
  drop(softmax);
  drop(loss);
  drop(out_logits);
  keep(gradients, g->vocabulary * g->d * 2);
  drop(gradient);
}

static void evaluate(void)
{
  static stack side;
  uint64_t before = stream;
  stream = 0x55550010;
  for (int i = 0; i < 32; i++)
    keep(&side, 64 * MIB);
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
    tensor tokens = make(g->batch * g->length * 8);
    keep(&kept, g->batch * g->length * g->d * 2); /* embedding */
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
    drop(tokens);
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
      keep(&inputs, x);
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
  tensor whole = make(layer_parameters(g) * 2);
  stream = 0;
  return whole;
}

static void reduce(const gpt *g, uint64_t ranks, stack *gradients)
{
  tensor whole = make(layer_parameters(g) * 2);
  keep(gradients, layer_parameters(g) * 2 / ranks);
  stream = 0x55550020; /* read last by the reduction */
  drop(whole);
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
      keep(&inputs, g.batch * g.length * g.d * 2);
      layer_forward(&g, &kept);
      drop_to(&kept, 0);
      drop(now_used);
    }
    head(&g, &gradients);
    for (uint64_t l = g.layers; l-- > 0;) {
      tensor whole = gather(&g);
      layer_forward(&g, &kept);
      layer_backward(&g, &kept, 0, NULL);
      reduce(&g, ranks, &gradients);
      drop(whole);
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
  keep(kept, batch * side * side * channels * 2);
  pass(8 * MIB + channels * KIB); /* cuDNN's workspace */
  keep(kept, channels * 2 * 4);   /* mean and deviation */
  keep(kept, batch * side * side * channels * 2);
}

static void resnet_step(stack *kept, uint64_t batch, uint64_t image)
{
  static const uint64_t blocks[] = {3, 4, 6, 3};
  uint64_t side = image / 2;
  keep(kept, batch * image * image * 3 * 2);
  convolution(kept, batch, side, 64);
  side = (side + 1) / 2;
  keep(kept, batch * side * side * 64 * 2); /* pooled */
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
  keep(kept, batch * 2048 * 2);
  keep(kept, batch * 1000 * 2);
  while (kept->count) {
    tensor gradient = make(kept->t[kept->count - 1].bytes);
    drop_to(kept, kept->count - 1);
    drop(gradient);
  }
}

static void images(void)
{
  static stack weights, kept;
  for (uint64_t i = 0; i < 4 * 161; i++) /* 25.6 M parameters: weight, gradient, two moments */
    keep(&weights, 25600000 / 161 * 4);
  for (int step = 0; step < 24; step++)
    resnet_step(&kept, 32, 224 + 32 * draw(6));
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
    tensor more = make(r->room * DIM * 2 * 2);
    drop(r->kv[l]);
    r->kv[l] = more;
  }
  tensor hidden = make(DIM * 2);
  pass(r->length * 32 * 4); /* scores of one token */
  pass(11008 * 2);          /* feed forward */
  pass(32000 * 4);          /* logits */
  drop(hidden);
  r->length++;
  r->left--;
}

static void prefill(request *r)
{
  r->length = 16 + draw(2032);
  r->room = r->length + 16;
  r->left = 1 + draw(384);
  for (int l = 0; l < LAYERS; l++) {
    tensor hidden = make(r->length * DIM * 2);
    r->kv[l] = make(r->room * DIM * 2 * 2);
    pass(r->length * DIM * 3 * 2);
    pass(r->length * 11008 * 2 * 2);
    drop(hidden);
  }
}

static void finish(request *r)
{
  for (int l = 0; l < LAYERS; l++)
    drop(r->kv[l]);
  *r = (request){0};
}

static void serving(void)
{
  static stack weights;
  static request slot[SLOTS];
  memset(slot, 0, sizeof slot);
  for (int l = 0; l < LAYERS; l++) {
    for (int i = 0; i < 4; i++)
      keep(&weights, (uint64_t)DIM * DIM * 2);
    for (int i = 0; i < 3; i++)
      keep(&weights, (uint64_t)DIM * 11008 * 2);
  }
  for (int step = 0; step < 1000; step++) {
    request *idle = NULL;
    for (int i = 0; i < SLOTS && !idle; i++)
      if (!slot[i].room) idle = &slot[i];
    if (idle && draw(8) == 0) prefill(idle);
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
      keep(&weights, widths[i] * widths[i + 1] * 2 * 4);
  for (int step = 0; step < 150; step++) {
    uint64_t nodes[4];
    nodes[3] = 1024;
    for (int hop = 3; hop-- > 0;) { /* neighbours meet again: fewer new ones at each hop */
      nodes[hop] = nodes[hop + 1] * (2 + draw(5)) + draw(1000);
      keep(&kept, nodes[hop + 1] * 15 * 8 * 2); /* the edges */
    }
    keep(&kept, nodes[0] * 602 * 4);
    for (int l = 0; l < 3; l++) {
      pass(nodes[l + 1] * 15 * widths[l] * 4); /* messages */
      keep(&kept, nodes[l + 1] * widths[l] * 4);
      keep(&kept, nodes[l + 1] * widths[l + 1] * 4);
    }
    while (kept.count) {
      tensor gradient = make(kept.t[kept.count - 1].bytes);
      drop_to(&kept, kept.count - 1);
      drop(gradient);
    }
  }
  drop_to(&weights, 0);
}

/* ---- threads and streams --------------------------------------------------------------------- */

static uint64_t any_size(void) /* 512 B to 32 MiB, evenly by logarithm */
{
  uint64_t base = UINT64_C(512) << draw(16);
  return base + draw(base);
}

static void threads(void)
{
  enum { THREADS = 16, STREAMS = 16, HELD = 4 };
  static tensor held[THREADS][STREAMS][HELD];
  memset(held, 0, sizeof held);
  for (int i = 0; i < 40000; i++) {
    uint64_t t = draw(THREADS), s = draw(STREAMS);
    tensor *one = &held[t][s][draw(HELD)];
    thread = (unsigned)t + 1;
    stream = 0x10000 + t * 256 + s * 16;
    if (one->bytes) drop(*one);
    *one = one->bytes ? (tensor){0} : make(any_size());
  }
  for (uint64_t t = 0; t < THREADS; t++)
    for (uint64_t s = 0; s < STREAMS; s++)
      for (int i = 0; i < HELD; i++) {
        thread = (unsigned)t + 1;
        stream = 0x10000 + t * 256 + s * 16;
        if (held[t][s][i].bytes) drop(held[t][s][i]);
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
      tensor work = make(slot->bytes / 2);
      drop(*slot);
      drop(work);
    }
    thread = (unsigned)(1 + i % 3); /* one of three producers */
    stream = 0x20000 + thread * 16;
    *slot = make(MIB + draw(16 * MIB));
  }
  thread = 9;
  stream = 0x20090;
  for (int i = 0; i < DEPTH; i++)
    drop(queue[i]);
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

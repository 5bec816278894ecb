/* train_text.c: trains a small transformer (two layers of decoder.h's, as GPT-2) to predict the
 * next byte of a text, as one would in PyTorch: AdamW, a learning rate that falls along a cosine,
 * gradients clipped.
 *   train_text [--text FILE] [--device NAME] [--devices N] [--weights FILE] [--losses FILE.npy]
 *              [--memory]
 * Without --text it learns the poem below. Other arguments, the loop and a step stand in
 * training.h.
 * cc train_text.c $(pkg-config --cflags --libs weir), with decoder.h, transformer.h, training.h,
 * try.h */
#include "decoder.h"
#include "training.h"

enum { LENGTH = 16, BATCH = 8, MOST_TEXT = 1 << 20 };

/* vocabulary: the bytes that the text has. */
static model_size small = {.layers = 2, .features = 24, .heads = 4, .places = LENGTH};

/* ---- data ------------------------------------------------------------------------------------ */

/* Lewis Carroll: "Through the looking-glass", 1871. */
static const char poem[] = "'Twas brillig, and the slithy toves\n"
                           "Did gyre and gimble in the wabe;\n"
                           "All mimsy were the borogoves,\n"
                           "And the mome raths outgrabe.\n"
                           "\n"
                           "'Beware the Jabberwock, my son!\n"
                           "The jaws that bite, the claws that catch!\n"
                           "Beware the Jubjub bird, and shun\n"
                           "The frumious Bandersnatch!'\n"
                           "\n"
                           "He took his vorpal sword in hand:\n"
                           "Long time the manxome foe he sought--\n"
                           "So rested he by the Tumtum tree,\n"
                           "And stood awhile in thought.\n"
                           "\n"
                           "And as in uffish thought he stood,\n"
                           "The Jabberwock, with eyes of flame,\n"
                           "Came whiffling through the tulgey wood,\n"
                           "And burbled as it came!\n"
                           "\n"
                           "One, two! One, two! And through and through\n"
                           "The vorpal blade went snicker-snack!\n"
                           "He left it dead, and with its head\n"
                           "He went galumphing back.\n";

/* The text's first bytes, at most `room`; *count of them. */
static weir_status read_text(unsigned char *out, size_t room, size_t *count, const char *path)
{
  FILE *f = path ? fopen(path, "rb") : NULL;
  if (!path) {
    *count = sizeof poem - 1;
    memcpy(out, poem, *count);
    return WEIR_OK;
  }
  if (!f) return weir_fail(WEIR_EINVAL, "%s cannot be opened", path);
  *count = fread(out, 1, room, f);
  bool bad = ferror(f);
  (void)fclose(f);
  return bad ? weir_fail(WEIR_EINVAL, "%s cannot be read", path) : WEIR_OK;
}

/* Writes of each byte the how-manieth it is of those that the text has; how many there are. */
static int64_t number_bytes(int64_t *token, const unsigned char *text, size_t count)
{
  bool seen[256] = {false};
  int64_t number[256], symbols = 0;
  for (size_t i = 0; i < count; i++)
    seen[text[i]] = true;
  for (int b = 0; b < 256; b++) {
    number[b] = symbols;
    symbols += seen[b];
  }
  for (size_t i = 0; i < count; i++)
    token[i] = number[text[i]];
  return symbols;
}

/* x (items, LENGTH): the text, cut; y the same, a byte later. Rows that fill no batch are left
 * out. */
static weir_status make_data(weir_tensor **x, weir_tensor **y, const training_arguments *a)
{
  static unsigned char text[MOST_TEXT];
  static int64_t token[MOST_TEXT];
  weir_options there = {.device = a->device};
  size_t count = 0;
  TRY(read_text(text, sizeof text, &count, a->text));
  int64_t items = count ? (int64_t)(count - 1) / (LENGTH * BATCH) * BATCH : 0;
  if (!items)
    return weir_fail(WEIR_EINVAL, "a text needs %d bytes, not %zu", LENGTH * BATCH + 1, count);
  small.vocabulary = number_bytes(token, text, count);
  TRY(weir_tensor_from(x, token, WEIR_INT64, weir_shape(items, LENGTH), &there));
  return weir_tensor_from(y, token + 1, WEIR_INT64, weir_shape(items, LENGTH), &there);
}

/* ---- what is trained, how -------------------------------------------------------------------- */

/* As GPT-2's: embeddings small, as their rows are the output's, too. */
static weir_status make_language_model(weir_module **out)
{
  static const char *const embeddings[] = {"wte.weight", "wpe.weight"};
  WEIR_MODULE m = NULL;
  TRY(make_gpt(&m, &small));
  WEIR_NO_GRAD
  {
    for (int i = 0; i < 2; i++)
      TRY(weir_normal_(weir_module_parameter(m, embeddings[i]), 0, 0.02, NULL));
  }
  *out = weir_module_retain(m);
  return WEIR_OK;
}

static weir_status make_optimizer(weir_optimizer **out, weir_schedule **schedule,
                                  weir_tensor *const *parameters, int count,
                                  const training_arguments *a)
{
  weir_optim_options o = weir_optim_defaults(WEIR_ADAMW);
  weir_schedule_options fall = weir_schedule_defaults(WEIR_COSINE_LR);
  (void)a;
  o.lr = 0.005;
  fall.t_max = STEPS;
  TRY(weir_optimizer_create(out, WEIR_ADAMW, parameters, count, &o));
  return weir_schedule_create(schedule, *out, WEIR_COSINE_LR, &fall);
}

/* Of all places of all rows. */
static weir_status next_byte_loss(weir_tensor **out, const weir_tensor *result,
                                  const weir_tensor *wanted)
{
  WEIR_TENSOR logits = NULL;
  WEIR_TENSOR bytes = NULL;
  TRY(weir_reshape(&logits, result, weir_shape(-1, small.vocabulary)));
  TRY(weir_reshape(&bytes, wanted, weir_shape(-1)));
  return weir_cross_entropy(out, logits, bytes, NULL);
}

int main(int argc, char **argv)
{
  static const trainee transformer = {.name = "train_text",
                                      .own = {"--text"},
                                      .batch = BATCH,
                                      .max_norm = 1,
                                      .learned = 0.5,
                                      .data = make_data,
                                      .model = make_language_model,
                                      .optimizer = make_optimizer,
                                      .loss = next_byte_loss};
  return run_training(&transformer, argc, argv);
}

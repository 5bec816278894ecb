/* einsum.c: sums of products by an equation.
 *
 * The equation is read once into labels for each operand, and into a place for each label: those of
 * the output first, in its order, then those that are summed over. Every operand is turned into a
 * view that has one dimension a place (of size 1 where it lacks the label; a diagonal where it has
 * it twice). Two operands at a time become one: by a batched product of matrices, whose batch are
 * the places both have and the result keeps, or element by element where nothing is summed. A place
 * is summed as soon as one operand alone has it.
 *
 * Words. label: a letter's number, or ELLIPSIS. place: a dimension of the aligned operands. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "core/ops/ops.h"

enum { LETTERS = 52, ELLIPSIS = LETTERS, MOST_LABELS = 64 };

/* An operand's labels. */
typedef struct subscripts {
  uint8_t label[MOST_LABELS];
  int count;
  bool ellipsis;
} subscripts;

typedef struct equation {
  const char *text; /* borrowed */
  const weir_tensor *const *tensor;
  int operands;
  subscripts *of;      /* owned, one an operand */
  int seen[LETTERS];   /* how often a letter stands on the left */
  int place[LETTERS];  /* -1: none */
  int places, outputs; /* all; those of the output, which come first */
  int ellipsis_dims;   /* the most dimensions that an ellipsis covers */
  int ellipsis_place;
  int64_t size[LETTERS], ellipsis_size[WEIR_DIMS];
  int with[4 * MOST_LABELS]; /* operands that have a place with a size other than 1 */
} equation;

static int label_of(char c)
{
  return c >= 'A' && c <= 'Z' ? c - 'A' : c - 'a' + 26;
}

static char letter_of(int label)
{
  return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

static weir_status bad_letter(size_t at)
{
  return fail_invalid("einsum(): invalid subscript given at index %zu in the equation string, "
                      "subscripts must be in [a-zA-Z]",
                      at);
}

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- the left side --------------------------------------------------------------------------- */

/* One character of an operand's; *i is moved on over an ellipsis. */
static weir_status read_subscript(subscripts *s, int operand, const char *left, size_t length,
                                  size_t *i)
{
  char c = left[*i];
  if (c == ' ') return WEIR_OK;
  if (c == '.') {
    if (s->ellipsis)
      return fail_invalid(
          "einsum(): found '.' for operand %d for which an ellipsis was already found", operand);
    if (*i + 2 >= length || left[*i + 1] != '.' || left[*i + 2] != '.')
      return fail_invalid("einsum(): found '.' for operand %d that is not part of any ellipsis",
                          operand);
    *i += 2;
    s->ellipsis = true;
  } else if (!is_letter(c)) {
    return bad_letter(*i);
  }
  if (s->count == MOST_LABELS)
    return fail_invalid("einsum(): more than %d subscripts for operand %d", MOST_LABELS, operand);
  s->label[s->count++] = (uint8_t)(c == '.' ? ELLIPSIS : label_of(c));
  return WEIR_OK;
}

static weir_status read_left(equation *e, size_t length)
{
  int operand = 0;
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < length && !st; i++) {
    if (e->text[i] != ',')
      st = read_subscript(&e->of[operand], operand, e->text, length, &i);
    else if (++operand == e->operands)
      st = fail_invalid("einsum(): fewer operands were provided than specified in the equation");
  }
  if (!st && operand != e->operands - 1)
    st = fail_invalid("einsum(): more operands were provided than specified in the equation");
  return st;
}

/* Letters are counted, and dimensions compared with them. */
static weir_status count_labels(equation *e)
{
  for (int i = 0; i < e->operands; i++) {
    const subscripts *s = &e->of[i];
    int dims = e->tensor[i]->dims, letters = s->count - s->ellipsis;
    for (int k = 0; k < s->count; k++)
      if (s->label[k] != ELLIPSIS) e->seen[s->label[k]]++;
    if (s->ellipsis && dims - letters > e->ellipsis_dims) e->ellipsis_dims = dims - letters;
    if (s->ellipsis ? letters > dims : letters != dims)
      return fail_invalid("einsum(): the number of subscripts in the equation (%d%sthe number of "
                          "dimensions (%d) for operand %d%s",
                          letters, s->ellipsis ? ") is more than " : ") does not match ", dims, i,
                          s->ellipsis ? "" : " and no ellipsis was given");
  }
  return WEIR_OK;
}

/* ---- the output ------------------------------------------------------------------------------ */

/* A letter of the output, at `at` of the equation. */
static weir_status read_output(equation *e, size_t at)
{
  char c = e->text[at];
  if (!is_letter(c)) return bad_letter(at);
  int label = label_of(c);
  if (e->place[label] >= 0)
    return fail_invalid("einsum(): output subscript %c appears more than once in the output", c);
  if (!e->seen[label])
    return fail_invalid(
        "einsum(): output subscript %c does not appear in the equation for any input operand", c);
  e->place[label] = e->places++;
  return WEIR_OK;
}

static weir_status read_right(equation *e, size_t from, bool *ellipsis)
{
  size_t length = strlen(e->text);
  weir_status st = WEIR_OK;
  for (size_t i = from; i < length && !st; i++) {
    char c = e->text[i];
    if (c == ' ') continue;
    if (c != '.') {
      st = read_output(e, i);
      continue;
    }
    if (*ellipsis)
      return fail_invalid("einsum(): found '.' for output but an ellipsis (...) was already found");
    if (i + 2 >= length || e->text[i + 1] != '.' || e->text[i + 2] != '.')
      return fail_invalid("einsum(): found '.' for output that is not part of any ellipsis (...)");
    i += 2;
    e->ellipsis_place = e->places;
    e->places += e->ellipsis_dims;
    *ellipsis = true;
  }
  return st;
}

/* Where every label goes. */
static weir_status place_labels(equation *e, const char *arrow)
{
  bool ellipsis = !arrow;
  weir_status st = WEIR_OK;
  for (int k = 0; k < LETTERS; k++)
    e->place[k] = -1;
  if (arrow) {
    st = read_right(e, (size_t)(arrow - e->text) + 2, &ellipsis);
  } else {
    e->places = e->ellipsis_dims;
    for (int k = 0; k < LETTERS; k++)
      if (e->seen[k] == 1) e->place[k] = e->places++;
  }
  e->outputs = e->places;
  if (!ellipsis) {
    e->ellipsis_place = e->places;
    e->places += e->ellipsis_dims;
  }
  for (int k = 0; k < LETTERS; k++)
    if (e->seen[k] && e->place[k] < 0) e->place[k] = e->places++;
  if (!st && e->places > WEIR_DIMS)
    st = fail_unsupported("einsum(): %d different dimensions, and a tensor has 0 to %d", e->places,
                          WEIR_DIMS);
  return st;
}

/* ---- operands, aligned ----------------------------------------------------------------------- */

/* An operand on its way: at[p] is the dimension of `t` that goes to place p; -1: none yet. */
typedef struct aligned {
  weir_tensor *t; /* owned */
  int at[WEIR_DIMS], dim, number;
} aligned;

static void exchange_operands(weir_tensor **t, weir_tensor *by)
{
  weir_tensor_release(*t);
  *t = by;
}

static weir_status take_ellipsis(equation *e, aligned *a)
{
  const subscripts *s = &e->of[a->number];
  int covered = e->tensor[a->number]->dims - (s->count - 1);
  for (int j = e->ellipsis_dims - covered; j < e->ellipsis_dims; j++, a->dim++) {
    int64_t size = a->t->size[a->dim];
    if (size != 1) {
      if (e->ellipsis_size[j] != 1 && e->ellipsis_size[j] != size)
        return fail_invalid(
            "einsum(): dimension %d covered by ellipsis in operand %dhas size %lld which does not "
            "broadcast with previously seen ellipsis with size %lld for the respective dimension",
            a->dim, a->number, (long long)size, (long long)e->ellipsis_size[j]);
      e->ellipsis_size[j] = size;
      e->with[e->ellipsis_place + j]++;
    }
    a->at[e->ellipsis_place + j] = a->dim;
  }
  return WEIR_OK;
}

/* A letter for the second time: the diagonal of both dimensions, where the first was. */
static weir_status take_repeated(aligned *a, int label, int first)
{
  CALC(c);
  weir_tensor *moved = NULL;
  int64_t size = a->t->size[a->dim], before = a->t->size[first];
  static const int last = -1;
  if (size != before)
    return fail_invalid(
        "einsum(): subscript %c is repeated for operand %d but the sizes don't match, %lld != %lld",
        letter_of(label), a->number, (long long)size, (long long)before);
  weir_tensor *diagonal = c_call(c, weir_diagonal, a->t, 0, first, a->dim);
  c_do(c, weir_movedim(&moved, diagonal, &last, &first, 1));
  if (!c->st) exchange_operands(&a->t, moved);
  return c->st;
}

static weir_status take_letter(equation *e, aligned *a, int label)
{
  int place = e->place[label];
  int64_t size = a->t->size[a->dim];
  if (a->at[place] >= 0) return take_repeated(a, label, a->at[place]);
  if (size != 1) {
    if (e->size[label] != 1 && e->size[label] != size)
      return fail_invalid("einsum(): subscript %c has size %lld for operand %d which does not "
                          "broadcast with previously seen size %lld",
                          letter_of(label), (long long)size, a->number, (long long)e->size[label]);
    e->size[label] = size;
    e->with[place]++;
  }
  a->at[place] = a->dim++;
  return WEIR_OK;
}

/* Dimensions of 1 for the places that it lacks, and all in their order. */
static weir_status finish_aligned(const equation *e, aligned *a)
{
  weir_status st = WEIR_OK;
  weir_tensor *next = NULL;
  for (int p = 0; p < e->places && !st; p++) {
    if (a->at[p] >= 0) continue;
    st = weir_unsqueeze(&next, a->t, a->dim);
    if (!st) exchange_operands(&a->t, next);
    a->at[p] = a->dim++;
  }
  if (!st) st = weir_permute(&next, a->t, a->at);
  if (!st) exchange_operands(&a->t, next);
  return st;
}

static weir_status align_operand(weir_tensor **out, equation *e, int number)
{
  aligned a = {.t = weir_tensor_retain((weir_tensor *)e->tensor[number]), .number = number};
  weir_status st = WEIR_OK;
  for (int p = 0; p < WEIR_DIMS; p++)
    a.at[p] = -1;
  for (int k = 0; k < e->of[number].count && !st; k++) {
    int label = e->of[number].label[k];
    st = label == ELLIPSIS ? take_ellipsis(e, &a) : take_letter(e, &a, label);
  }
  if (!st) st = finish_aligned(e, &a);
  if (st)
    weir_tensor_release(a.t);
  else
    *out = a.t;
  return st;
}

/* ---- two become one -------------------------------------------------------------------------- */

/* What a place is in a product of two. */
enum { BATCH, LEFT, SUMMED, RIGHT, KINDS };

typedef struct sum_of_two {
  int kind[WEIR_DIMS], count[KINDS], places;
  int64_t size[KINDS]; /* products */
} sum_of_two;

static void sort_places(sum_of_two *s, const weir_tensor *a, const weir_tensor *b, uint32_t summed)
{
  *s = (sum_of_two){.places = a->dims, .size = {1, 1, 1, 1}};
  for (int p = 0; p < a->dims; p++) {
    bool in_a = a->size[p] != 1, in_b = b->size[p] != 1;
    s->kind[p] = summed >> p & 1 ? SUMMED : in_a && in_b ? BATCH : in_a ? LEFT : RIGHT;
    s->count[s->kind[p]]++;
    s->size[s->kind[p]] *= in_a ? a->size[p] : b->size[p];
  }
}

/* Places of these kinds, one kind after the other; all others after them. */
static void order_places(int *order, const sum_of_two *s, const int kinds[KINDS])
{
  int n = 0;
  for (int k = 0; k < KINDS; k++)
    for (int p = 0; p < s->places; p++)
      if (s->kind[p] == kinds[k]) order[n++] = p;
}

static weir_status as_batch(weir_tensor **out, const weir_tensor *t, const sum_of_two *s,
                            const int kinds[KINDS])
{
  CALC(c);
  int order[WEIR_DIMS];
  order_places(order, s, kinds);
  weir_tensor *turned = c_permute(c, t, order);
  return c->st ? c->st
               : weir_reshape(out, turned,
                              weir_shape(s->size[kinds[0]], s->size[kinds[1]], s->size[kinds[2]]));
}

static weir_status multiply_two(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                uint32_t summed)
{
  static const int as_left[] = {BATCH, LEFT, SUMMED, RIGHT},
                   as_right[] = {BATCH, SUMMED, RIGHT, LEFT};
  CALC(c);
  sum_of_two s;
  int order[WEIR_DIMS], back[WEIR_DIMS];
  weir_shape shape = {a->dims, {0}};
  if (!summed) return weir_mul(out, a, b);
  sort_places(&s, a, b, summed);
  weir_tensor *left = c_call(c, as_batch, a, &s, as_left);
  weir_tensor *right = c_call(c, as_batch, b, &s, as_right);
  weir_tensor *product = c_call(c, weir_bmm, left, right);
  if (c->st) return c->st;
  order_places(order, &s, as_left);
  for (int i = 0; i < s.places; i++) {
    int p = order[i], kind = s.kind[p];
    shape.size[i] = kind == SUMMED ? 1 : kind == RIGHT ? b->size[p] : a->size[p];
    back[p] = i;
  }
  return calc_give(c, out, c_permute(c, c_call(c, weir_view, product, shape), back));
}

/* Sums over the places of `mask`, which stay with size 1. */
static weir_status sum_places(weir_tensor **t, uint32_t mask)
{
  int dims[WEIR_DIMS], count = 0;
  weir_tensor *sum = NULL;
  for (int p = 0; p < (*t)->dims; p++)
    if (mask >> p & 1) dims[count++] = p;
  if (!count) return WEIR_OK;
  weir_status st = weir_sum_dims(&sum, *t, dims, count, true);
  if (!st) exchange_operands(t, sum);
  return st;
}

/* *a becomes the product of both, as far as it can be summed now. */
static weir_status join_two(equation *e, weir_tensor **a, weir_tensor **b)
{
  uint32_t both = 0, only_a = 0, only_b = 0;
  weir_tensor *product = NULL;
  for (int p = e->outputs; p < e->places; p++) {
    bool in_a = (*a)->size[p] != 1, in_b = (*b)->size[p] != 1;
    if (in_a && in_b) {
      if (--e->with[p] > 1) continue;
      both |= 1u << p;
    } else if (e->with[p] == 1 && (in_a || in_b)) {
      *(in_a ? &only_a : &only_b) |= 1u << p;
    } else {
      continue;
    }
    e->with[p] = 0;
  }
  weir_status st = sum_places(a, only_a);
  if (!st) st = sum_places(b, only_b);
  if (!st) st = multiply_two(&product, *a, *b, both);
  if (!st) exchange_operands(a, product);
  return st;
}

static weir_status finish_sum(weir_tensor **out, const equation *e, const weir_tensor *t)
{
  int dims[WEIR_DIMS];
  if (e->places == e->outputs) {
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  if (e->operands > 1) return weir_view(out, t, weir_shape_of(e->outputs, t->size));
  for (int p = e->outputs; p < e->places; p++)
    dims[p - e->outputs] = p;
  return weir_sum_dims(out, t, dims, e->places - e->outputs, false);
}

static weir_status contract_all(weir_tensor **out, equation *e)
{
  weir_tensor **t = calloc((size_t)e->operands, sizeof(weir_tensor *));
  if (!t) return fail_memory("%d operands", e->operands);
  weir_status st = WEIR_OK;
  for (int i = 0; i < e->operands && !st; i++)
    st = align_operand(&t[i], e, i);
  for (int i = 1; i < e->operands && !st; i++) {
    st = join_two(e, &t[0], &t[i]);
    weir_tensor_drop(&t[i]);
  }
  if (!st) st = finish_sum(out, e, t[0]);
  for (int i = 0; i < e->operands; i++)
    weir_tensor_release(t[i]);
  free(t);
  return st;
}

weir_status weir_einsum(weir_tensor **out, const char *equation_text,
                        const weir_tensor *const *tensors, int count)
{
  WEIR_OP(out, equation_text, tensors);
  if (count < 1) return fail_invalid("einsum(): must provide at least one operand");
  for (int i = 0; i < count; i++)
    if (!tensors[i]) return fail_invalid("%s: tensors[%d] is NULL", __func__, i);
  WEIR_CASTS_LIST(EINSUM, tensors, count);
  equation e = {.text = equation_text, .tensor = tensors, .operands = count};
  const char *arrow = strstr(equation_text, "->");
  for (int k = 0; k < LETTERS; k++)
    e.size[k] = 1;
  for (int k = 0; k < WEIR_DIMS; k++)
    e.ellipsis_size[k] = 1;
  e.of = calloc((size_t)count, sizeof *e.of);
  if (!e.of) return fail_memory("%d operands", count);
  weir_status st = read_left(&e, arrow ? (size_t)(arrow - equation_text) : strlen(equation_text));
  if (!st) st = count_labels(&e);
  if (!st) st = place_labels(&e, arrow);
  if (!st) st = contract_all(out, &e);
  free(e.of);
  return st;
}

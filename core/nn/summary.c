/* summary.c: a model as a table: its layers, the shapes of what they calculate, their parameters.
 *
 * Shapes come from one call of the model, whose modules state what they made to the watcher of the
 * calling thread (module.h). The call is made as in evaluation, so that no layer learns from it;
 * each module is as it was afterwards. */
#include "core/nn/module.h"
#include "core/tensor/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 128, GAP = 2 };

typedef struct summary_row {
  const walk_item *item;   /* borrowed: the walk's */
  bool training;           /* as it was before */
  bool called;             /* in the call */
  bool tensor;             /* of its own: the row has parameters */
  weir_shape made;         /* by the latest call */
  int64_t parameters;      /* elements of its own */
  char name[TEXT_BYTES];   /* indented */
  char shape[TEXT_BYTES];  /* "-" where it was not called */
  char number[TEXT_BYTES]; /* of parameters; "-": none */
} summary_row;

typedef struct summary {
  module_walk walk;
  summary_row *row;  /* owned: as many as the walk has items */
  pointer_memo rows; /* by module: its row */
  uint64_t made;     /* bytes of what modules without children made */
} summary;

static weir_status no_summary_memory(const weir_module *m)
{
  return fail_memory("a summary of %s", m->kind->name);
}

/* 1234567 as "1,234,567". */
static void print_number(char out[TEXT_BYTES], int64_t n)
{
  char digits[32];
  int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = 0;
}

/* ---- the call -------------------------------------------------------------------------------- */

static void note_output(void *user, const weir_module *m, const weir_tensor *out)
{
  summary *s = user;
  summary_row *row = pointer_memo_get(&s->rows, m);
  if (!row) return; /* made within the call */
  row->called = true;
  row->made = weir_tensor_shape(out);
  if (!m->children) s->made += (uint64_t)out->numel * itemsize(out->dtype);
}

static weir_status call_watched(summary *s, weir_module *m, weir_tensor *const *in, int count)
{
  weir_tensor *out = NULL;
  module_watcher watcher = {note_output, s}, *before = module_watched;
  WEIR_UNRECORDED;
  weir_module_train(m, false);
  module_watched = &watcher;
  weir_status st = weir_module_call_many(&out, m, in, count);
  module_watched = before;
  for (size_t i = 0; i < s->walk.count; i++)
    atomic_store(&s->row[i].item->module->training, s->row[i].training);
  weir_tensor_release(out);
  return st;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static void describe_row(summary_row *row)
{
  const char *path = row->item->path, *dot = strrchr(path, '.');
  const weir_module *m = row->item->module;
  int depth = *path != 0;
  text_buffer shape;
  for (const char *at = path; *at; at++)
    depth += *at == '.';
  if (*path)
    (void)snprintf(row->name, sizeof row->name, "%*s%s: %s", depth * GAP, "", dot ? dot + 1 : path,
                   m->kind->name);
  else
    (void)snprintf(row->name, sizeof row->name, "%s", m->kind->name);
  (void)snprintf(row->shape, sizeof row->shape, "%s",
                 row->called ? shape_format(&shape, row->made) : "-");
  if (row->tensor)
    print_number(row->number, row->parameters);
  else
    (void)snprintf(row->number, sizeof row->number, "-");
}

static void count_own(summary_row *row)
{
  const weir_module *m = row->item->module;
  for (size_t i = 0; i < m->slots; i++)
    if (m->slot[i].t && m->slot[i].what == WEIR_PARAMETERS) {
      row->parameters += m->slot[i].t->numel;
      row->tensor = true;
    }
}

static weir_status begin_summary(summary *s, const weir_module *m)
{
  weir_status st = module_walk_list(&s->walk, m, WALK_MODULES | WALK_MODULES_ONCE);
  if (st) return st;
  s->row = calloc(s->walk.count + 1, sizeof *s->row);
  if (!s->row) return no_summary_memory(m);
  for (size_t i = 0; !st && i < s->walk.count; i++) {
    summary_row *row = &s->row[i];
    row->item = &s->walk.item[i];
    row->training = atomic_load(&row->item->module->training);
    count_own(row);
    st = pointer_memo_put(&s->rows, row->item->module, row);
  }
  return st;
}

static void end_summary(summary *s)
{
  module_walk_free(&s->walk);
  hash_map_free(&s->rows);
  free(s->row);
}

/* ---- the text -------------------------------------------------------------------------------- */

typedef struct summary_total {
  int64_t elements, bytes;
} summary_total;

static weir_status add_total(void *user, const char *path, weir_tensor *t)
{
  summary_total *total = user;
  (void)path;
  total->elements += t->numel;
  total->bytes += t->numel * (int64_t)itemsize(t->dtype);
  return WEIR_OK;
}

static int widest(int width, const char *text)
{
  int length = (int)strlen(text);
  return length > width ? length : width;
}

static void print_layer_line(FILE *f, int width)
{
  for (int i = 0; i < width; i++)
    (void)fputc('=', f);
  (void)fputc('\n', f);
}

static void print_rows(FILE *f, const summary *s, bool called)
{
  static const char *const titles[] = {"Layer", "Output shape", "Parameters"};
  int name = widest(0, titles[0]), shape = widest(0, titles[1]), number = widest(0, titles[2]);
  for (size_t i = 0; i < s->walk.count; i++) {
    name = widest(name, s->row[i].name);
    shape = widest(shape, s->row[i].shape);
    number = widest(number, s->row[i].number);
  }
  if (!called) shape = -GAP;
  int width = name + shape + number + 2 * GAP;
  for (size_t i = 0; i <= s->walk.count; i++) {
    const summary_row *row = i ? &s->row[i - 1] : NULL;
    if (i < 2) print_layer_line(f, width);
    (void)fprintf(f, "%-*s", name + GAP, row ? row->name : titles[0]);
    if (called) (void)fprintf(f, "%-*s", shape + GAP, row ? row->shape : titles[1]);
    (void)fprintf(f, "%*s\n", number, row ? row->number : titles[2]);
  }
  print_layer_line(f, width);
}

static void print_total(FILE *f, const char *what, const summary_total *t)
{
  char elements[TEXT_BYTES], bytes[TEXT_BYTES];
  print_number(elements, t->elements);
  print_number(bytes, t->bytes);
  (void)fprintf(f, "%s: %s (%s bytes)\n", what, elements, bytes);
}

static weir_status print_summary(FILE *f, const summary *s, const weir_module *m, bool called)
{
  summary_total parameters = {0}, buffers = {0};
  char bytes[TEXT_BYTES];
  TRY(weir_module_visit(m, WEIR_PARAMETERS, add_total, &parameters));
  TRY(weir_module_visit(m, WEIR_BUFFERS, add_total, &buffers));
  print_rows(f, s, called);
  print_total(f, "Parameters", &parameters);
  if (buffers.elements) print_total(f, "Buffers", &buffers);
  print_number(bytes, (int64_t)s->made);
  if (called) (void)fprintf(f, "Outputs of layers: %s bytes\n", bytes);
  return WEIR_OK;
}

weir_status weir_summary(char **out, weir_module *m, weir_tensor *const *in, int count)
{
  WEIR_REQUIRE_OUT(out, m);
  if (count > 0) WEIR_REQUIRE(in);
  summary s = {.row = NULL};
  size_t bytes;
  weir_status st = begin_summary(&s, m);
  if (!st && count > 0) st = call_watched(&s, m, in, count);
  for (size_t i = 0; !st && i < s.walk.count; i++)
    describe_row(&s.row[i]);
  FILE *f = st ? NULL : open_memstream(out, &bytes);
  if (!st && !f) st = no_summary_memory(m);
  if (!st) st = print_summary(f, &s, m, count > 0);
  bool wrong = f && ferror(f);
  if (f && (fclose(f) || wrong) && !st) st = no_summary_memory(m);
  end_summary(&s);
  if (st) {
    free(*out);
    *out = NULL;
  }
  return st;
}

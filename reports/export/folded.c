/* folded.c: see formats.h. The signs of the format in a name become others: ';' is ':', and what a
 * terminal would obey '?'. */
#include "reports/export/formats.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

typedef struct folding {
  FILE *out;
  profile_weight weight;
} folding;

/* False: out of memory. */
static bool put_folded_name(FILE *out, const char *name)
{
  char *text = name ? wr_text(name, strlen(name), true) : NULL;
  for (char *c = text; c && *c; c++)
    (void)putc(*c == ';' ? ':' : *c, out);
  free(text);
  return text != NULL;
}

static weir_status fold_sample(void *context, const profile_sample *x)
{
  folding *f = context;
  if (!x->weight[f->weight]) return WEIR_OK;
  for (size_t i = x->count; i-- > 0;) {
    char *name = export_frame_name(&x->frames[i]);
    bool good = put_folded_name(f->out, name);
    free(name);
    if (!good) return export_out_of_memory();
    (void)putc(';', f->out);
  }
  if (!put_folded_name(f->out, x->function)) return export_out_of_memory();
  (void)fprintf(f->out, " %" PRId64 "\n", x->weight[f->weight]);
  return export_written(f->out);
}

weir_status folded_export(FILE *out, const char *trace, profile_weight weight)
{
  profile p;
  folding f = {out, weight};
  weir_status st = profile_open(&p, trace);
  if (!st) st = profile_each(&p, fold_sample, &f);
  profile_close(&p);
  return st;
}

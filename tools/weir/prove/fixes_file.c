/* fixes_file.c: files of fixes (core/base/rules.h), as weir prove writes them: one for each way
 * that is tried, and one for the user, with what was proven. */
#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include "tools/weir/base/cmd.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/prove/prove.h"

char *fixes_word(const char *text)
{
  char *out = cmd_format("%.200s", text && *text ? text : "?");
  for (char *at = out; *at; at++)
    if (!isgraph((unsigned char)*at) || *at == '#') *at = '_';
  return out;
}

typedef struct fixes_text {
  const proving *p;
  const proof *const *list;
  bool proven;
  const prove_line *written[WEIR_RULES_MAX]; /* each place and action once */
  unsigned count;
} fixes_text;

static bool is_written(const fixes_text *t, const prove_line *l)
{
  for (unsigned i = 0; i < t->count; i++) {
    const prove_line *w = t->written[i];
    if (w->action == l->action && w->at->frames == l->at->frames &&
        rule_frames_same(w->at->frame, l->at->frame, l->at->frames))
      return true;
  }
  return t->count == WEIR_RULES_MAX;
}

static void write_line(FILE *f, const prove_line *l)
{
  char *function = fixes_word(l->at->function), *module = fixes_word(l->at->module);
  (void)fprintf(f, "# %s in %s", l->at->api ? l->at->api : "a call", function);
  if (l->at->file) (void)fprintf(f, ", %s:%d", l->at->file, l->at->line);
  (void)fprintf(f, "\nfix %s module=%s function=%s at=", prove_action_word(l->action), module,
                function);
  for (unsigned i = 0; i < l->at->frames; i++) {
    const rule_frame *r = &l->at->frame[i];
    if (i) (void)fputc(',', f);
    for (unsigned k = 0; k < r->id_bytes; k++)
      (void)fprintf(f, "%02x", r->id[k]);
    (void)fprintf(f, "+0x%llx", (unsigned long long)r->offset);
  }
  (void)fputc('\n', f);
  free(function), free(module);
}

static void write_proof(FILE *f, const fixes_text *t, const proof *x)
{
  const proving *p = t->p;
  const interval *g = proof_gain(x);
  char date[32];
  time_t now = time(NULL);
  struct tm day;
  if (!t->proven || !gmtime_r(&now, &day) || !strftime(date, sizeof date, "%Y-%m-%d", &day)) {
    (void)fprintf(f, "proof\n");
    return;
  }
  (void)fprintf(f, "\n# %s: %s (of all runs: %u pairs, others had %.0f %% of the processors)\n",
                x->rule->id, x->rule->title, x->pairs, p->r.others > 0 ? p->r.others * 100 : 0);
  (void)fprintf(f, "proof gain=%.3fms..%.3fms pairs=%u", g->low / 1e6, g->high / 1e6, x->pairs);
  if (p->driver) (void)fprintf(f, " driver=%d.%d", p->driver / 1000, p->driver % 1000 / 10);
  (void)fprintf(f, " date=%s", date);
  if (p->places.card) (void)fprintf(f, " card=%.120s", p->places.card);
  (void)fputc('\n', f);
}

static weir_status write_fixes(FILE *f, const void *context)
{
  fixes_text t = *(const fixes_text *)context;
  if (t.proven)
    (void)fprintf(f, "# Fixes that weir prove has proven%s: 'weir run --apply' does them.\n",
                  t.p->simulated ? " on a simulated device" : "");
  for (unsigned i = 0; t.list[i]; i++) {
    const proof *x = t.list[i];
    bool headed = false;
    for (unsigned k = 0; k < x->lines; k++) {
      if (is_written(&t, &x->line[k]) || (t.proven && !proof_line_is_done(&x->line[k]))) continue;
      if (!headed) write_proof(f, &t, x);
      headed = true;
      write_line(f, &x->line[k]);
      t.written[t.count++] = &x->line[k];
    }
  }
  (void)fprintf(f, "end\n");
  return WEIR_OK;
}

bool fixes_write(const char *path, const proving *p, const proof *const *list, bool proven)
{
  const fixes_text t = {.p = p, .list = list, .proven = proven};
  if (output_write(path, 0666, write_fixes, &t) == WEIR_OK) return true;
  cmd_message("%s.", weir_error_message());
  return false;
}

/* figures.h: a trace as values of metrics, by subject.
 *
 * The values are the model's and the findings', which `weir report` prints, sorted by subject: the
 * run; its devices; its *sites*, each a function of the program and the file it is in, whatever
 * lines the calls are on; its ranges. A site without a file is a function and its module. */
#ifndef WEIR_REPORTS_FIGURES_H
#define WEIR_REPORTS_FIGURES_H

#include "reports/diff/metrics.h"
#include "reports/findings/findings.h"

typedef struct wr_lines { /* of a site, in its file; ascending, each once */
  int *line;              /* owned */
  size_t count, capacity;
} wr_lines;

/* What the lines of a site are of. */
typedef enum wr_lines_of {
  WR_LINES_PEAK,
  WR_LINES_LEAKS,
  WR_LINES_COPIES,
  WR_LINES_WAITS,
  WR_LINES_ALLOCS,
  WR_LINES_LISTS
} wr_lines_of;

typedef struct wr_subject {
  int of;                         /* WR_OF_* */
  int device;                     /* of WR_OF_DEVICE */
  char *name;                     /* owned: a site's function, a range's text, else "" */
  char *domain;                   /* owned: of a range, "" the default one; else NULL */
  char *file, *module;            /* owned, of a site; file NULL: not known */
  bool known;                     /* of a site: the function has a name, it is not "module+0x12" */
  wr_lines lines[WR_LINES_LISTS]; /* of a site */
  uint64_t value[WR_METRICS];     /* 0 where it is none of this subject */
} wr_subject;

/* Findings of one rule and one site, which may be several: a line each. */
typedef struct wr_wasted {
  const wr_rule *rule;
  wr_certainty certainty; /* the highest of them */
  char *function, *file;  /* owned; of several small places together "" */
  wr_lines lines;
  uint64_t cost_ns, saving_ns, saving_bytes, count, findings;
} wr_wasted;

typedef struct wr_figures {
  char *path, *command; /* owned, fit to print */
  bool finished;        /* the trace is complete */
  wr_subject *subject;  /* owned; the run first, then devices, sites, ranges */
  size_t count, capacity;
  size_t nameless;                 /* sites of modules whose names are not known */
  const char *unknown[WR_METRICS]; /* why a metric is not known, NULL: it is */
  bool judged;                     /* findings were looked for */
  wr_findings findings;
  wr_wasted *wasted; /* owned; as the findings are ordered */
  size_t wasted_count, wasted_capacity;
} wr_figures;

typedef struct wr_figures_settings {
  const char *symbols; /* absolute; folder in which symbols are looked for first, or NULL */
  const char *rules;   /* folder of the user's own, or NULL */
  bool findings;       /* look for them */
  bool anew;           /* of the events, whatever of them is kept (reports/whole/whole.h) */
  wr_min_cost min;     /* all 0: WR_MIN_COST */
} wr_figures_settings;

/* Errors: those of wr_input_open(), wr_model_load() and wr_findings_load(). */
weir_status wr_figures_load(wr_figures *f, const char *path, const wr_figures_settings *settings);
void wr_figures_free(wr_figures *f);

/* Whether `name` means this site: its function, with or without its parameters; or its file, the
 * whole path or the end of it behind a '/'. Or this range: its text, or "domain/text". */
bool wr_subject_is(const wr_subject *x, const char *name);

#endif

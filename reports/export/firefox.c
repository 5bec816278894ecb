/* firefox.c: see formats.h. The format is Firefox Profiler's "processed profile", version 48,
 * which later ones of it upgrade as they read.
 *
 * Samples are sums, not moments: those of a thread have weights in one unit, and stand one ms
 * after the other in the order in which stacks came. Each thread is a process of its own: the
 * front end then shows all. Tables are columns, so they are made in memory first: strings,
 * functions (a name in a file), frames (a line of one), stacks (a frame and the stack that called
 * it), which all threads share, and each has a copy of. */
#include "reports/export/formats.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"
#include "reports/export/profile.h"

enum { PROGRAM = 1, CUDA = 2 }; /* categories; 0: other */

typedef struct firefox_function {
  uint64_t name, file; /* of strings, from 1 on; file 0: not known */
} firefox_function;

typedef struct firefox_frame {
  uint64_t function;
  int line, category;
} firefox_frame;

typedef struct firefox_stack {
  uint64_t prefix, frame; /* prefix 0: none */
} firefox_stack;

typedef struct firefox_sample {
  uint64_t stack;
  int64_t weight[PROFILE_WEIGHTS];
} firefox_sample;

/* Numbers count from 1 on here, and from 0 in the file. */
typedef struct firefox {
  FILE *out;
  profile p;
  hash_map strings, functions, frames, stacks; /* key -> number */
  char **string;                               /* owned, by number less 1, as the next three */
  firefox_function *function;
  firefox_frame *frame;
  firefox_stack *stack;
  firefox_sample *sample; /* owned */
  size_t string_room, function_room, frame_room, stack_room, sample_room, samples;
} firefox;

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t string_of(firefox *x, const char *text)
{
  bool added;
  uint64_t number = export_number(&x->strings, export_text_key(1, text), &added);
  if (!number || !added) return number;
  if (!wr_grow(&x->string, &x->string_room, number, sizeof *x->string)) return 0;
  x->string[number - 1] = strdup(text);
  return x->string[number - 1] ? number : 0;
}

static uint64_t place_of_function(firefox *x, const char *name, const char *file)
{
  bool added;
  firefox_function f = {.name = string_of(x, name), .file = file ? string_of(x, file) : 0};
  if (!f.name || (file && !f.file)) return 0;
  uint64_t number = export_number(&x->functions, hash_mix(hash_mix(2, f.name), f.file), &added);
  if (!number || !added) return number;
  if (!wr_grow(&x->function, &x->function_room, number, sizeof f)) return 0;
  x->function[number - 1] = f;
  return number;
}

static uint64_t frame_of(firefox *x, uint64_t function, int line, int category)
{
  bool added;
  uint64_t key = hash_mix(hash_mix(hash_mix(3, function), (uint64_t)line), (uint64_t)category);
  uint64_t number = function ? export_number(&x->frames, key, &added) : 0;
  if (!number || !added) return number;
  if (!wr_grow(&x->frame, &x->frame_room, number, sizeof *x->frame)) return 0;
  x->frame[number - 1] = (firefox_frame){function, line, category};
  return number;
}

static uint64_t stack_of(firefox *x, uint64_t prefix, uint64_t frame)
{
  bool added;
  uint64_t key = hash_mix(hash_mix(4, prefix), frame);
  uint64_t number = frame ? export_number(&x->stacks, key, &added) : 0;
  if (!number || !added) return number;
  if (!wr_grow(&x->stack, &x->stack_room, number, sizeof *x->stack)) return 0;
  x->stack[number - 1] = (firefox_stack){prefix, frame};
  return number;
}

static uint64_t program_frame(firefox *x, const wr_frame *f)
{
  char *name = export_frame_name(f);
  uint64_t function = name ? place_of_function(x, name, f->file) : 0;
  free(name);
  return frame_of(x, function, f->file && f->line > 0 ? f->line : 0, PROGRAM);
}

static weir_status take_sample(void *context, const profile_sample *sample)
{
  firefox *x = context;
  uint64_t stack = 0;
  for (size_t i = sample->count; i-- > 0;) {
    stack = stack_of(x, stack, program_frame(x, &sample->frames[i]));
    if (!stack) return export_out_of_memory();
  }
  stack = stack_of(x, stack, frame_of(x, place_of_function(x, sample->function, NULL), 0, CUDA));
  if (!stack || !wr_grow(&x->sample, &x->sample_room, x->samples + 1, sizeof *x->sample))
    return export_out_of_memory();
  firefox_sample *s = &x->sample[x->samples++];
  s->stack = stack;
  memcpy(s->weight, sample->weight, sizeof s->weight);
  return WEIR_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* "name":[...], of `count` values; 0 of `from_one` is null. */
#define COLUMN(x, name, count, from_one, value)                                                    \
  do {                                                                                             \
    (void)fprintf((x)->out, ",\"%s\":[", name);                                                    \
    for (size_t i = 0; i < (count); i++)                                                           \
      put_table_index(x, i, (int64_t)(value), from_one);                                           \
    (void)putc(']', (x)->out);                                                                     \
  } while (0)

static void put_table_index(const firefox *x, size_t place, int64_t value, bool from_one)
{
  if (place) (void)putc(',', x->out);
  if (from_one && !value)
    (void)fputs("null", x->out);
  else
    (void)fprintf(x->out, "%" PRId64, value - from_one);
}

static void put_same(const firefox *x, const char *name, size_t count, const char *value)
{
  (void)fprintf(x->out, ",\"%s\":[", name);
  for (size_t i = 0; i < count; i++)
    (void)fprintf(x->out, "%s%s", i ? "," : "", value);
  (void)putc(']', x->out);
}

static void put_strings(const firefox *x)
{
  (void)fputs(",\n\"stringArray\":[", x->out);
  for (size_t i = 0; i < x->strings.count; i++) {
    if (i) (void)putc(',', x->out);
    wr_put_json_text(x->out, x->string[i]);
  }
  (void)putc(']', x->out);
}

static void put_functions(const firefox *x)
{
  size_t n = x->functions.count;
  (void)fprintf(x->out, ",\n\"funcTable\":{\"length\":%zu", n);
  COLUMN(x, "name", n, true, x->function[i].name);
  COLUMN(x, "fileName", n, true, x->function[i].file);
  put_same(x, "isJS", n, "false");
  put_same(x, "relevantForJS", n, "false");
  put_same(x, "resource", n, "-1");
  put_same(x, "lineNumber", n, "null");
  put_same(x, "columnNumber", n, "null");
  (void)putc('}', x->out);
}

static void put_frame_table(const firefox *x)
{
  size_t n = x->frames.count;
  (void)fprintf(x->out, ",\n\"frameTable\":{\"length\":%zu", n);
  COLUMN(x, "func", n, true, x->frame[i].function);
  COLUMN(x, "category", n, false, x->frame[i].category);
  COLUMN(x, "line", n, true, x->frame[i].line ? (int64_t)x->frame[i].line + 1 : 0);
  put_same(x, "subcategory", n, "0");
  put_same(x, "address", n, "-1");
  put_same(x, "inlineDepth", n, "0");
  put_same(x, "nativeSymbol", n, "null");
  put_same(x, "innerWindowID", n, "0");
  put_same(x, "implementation", n, "null");
  put_same(x, "column", n, "null");
  (void)putc('}', x->out);
}

static void put_stack_table(const firefox *x)
{
  size_t n = x->stacks.count;
  (void)fprintf(x->out, ",\n\"stackTable\":{\"length\":%zu", n);
  COLUMN(x, "prefix", n, true, x->stack[i].prefix);
  COLUMN(x, "frame", n, true, x->stack[i].frame);
  COLUMN(x, "category", n, false, x->frame[x->stack[i].frame - 1].category);
  put_same(x, "subcategory", n, "0");
  (void)putc('}', x->out);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Times in ms, with all their ns. */
static void put_weight(const firefox *x, int64_t weight, const char *unit)
{
  if (unit[0] == 'n')
    (void)fprintf(x->out, "%" PRId64 ".%06" PRId64, weight / 1000000, weight % 1000000);
  else
    (void)fprintf(x->out, "%" PRId64, weight);
}

static void put_samples(const firefox *x, profile_weight of)
{
  const char *unit = profile_weights[of].unit;
  const char *type = unit[0] == 'n' ? "tracing-ms" : unit[0] == 'b' ? "bytes" : "samples";
  size_t count = 0;
  (void)fputs(",\n\"samples\":{\"stack\":[", x->out);
  for (size_t i = 0; i < x->samples; i++)
    if (x->sample[i].weight[of]) put_table_index(x, count++, (int64_t)x->sample[i].stack, true);
  (void)fprintf(x->out, "],\"length\":%zu,\"weightType\":\"%s\"", count, type);
  COLUMN(x, "time", count, false, i);
  (void)fputs(",\"weight\":[", x->out);
  bool first = true;
  for (size_t i = 0; i < x->samples; i++) {
    if (!x->sample[i].weight[of]) continue;
    if (!first) (void)putc(',', x->out);
    put_weight(x, x->sample[i].weight[of], unit);
    first = false;
  }
  (void)fputs("]}", x->out);
}

static weir_status put_thread(const firefox *x, profile_weight of)
{
  (void)fprintf(x->out,
                "%s\n{\"name\":\"%s\",\"processName\":\"%s\",\"processType\":\"default\","
                "\"isMainThread\":true,\"pid\":\"%d\",\"tid\":%d,\"processStartupTime\":0,"
                "\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
                "\"pausedRanges\":[]",
                of ? "," : "", profile_weights[of].name, profile_weights[of].name, (int)of + 1,
                (int)of + 1);
  put_samples(x, of);
  (void)fputs(
      ",\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],"
      "\"phase\":[],\"category\":[]},\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],"
      "\"host\":[],\"type\":[]},\"nativeSymbols\":{\"length\":0,\"libIndex\":[],"
      "\"address\":[],\"name\":[],\"functionSize\":[]}",
      x->out);
  put_stack_table(x);
  put_frame_table(x);
  put_functions(x);
  put_strings(x);
  (void)putc('}', x->out);
  return export_written(x->out);
}

static weir_status put_profile(firefox *x, const char *trace)
{
  (void)fprintf(x->out,
                "{\"meta\":{\"preprocessedProfileVersion\":48,\"version\":29,\"interval\":1,"
                "\"startTime\":%" PRId64 ".%03d,\"processType\":0,\"stackwalk\":1,"
                "\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
                "\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
                "\"markerSchema\":[],\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
                "\"threadCPUDelta\":\"ns\"},\"categories\":["
                "{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
                "{\"name\":\"Program\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
                "{\"name\":\"CUDA\",\"color\":\"green\",\"subcategories\":[\"Other\"]}],"
                "\"product\":",
                x->p.began / 1000000, (int)(x->p.began < 0 ? 0 : x->p.began / 1000 % 1000));
  wr_put_json_text(x->out, trace);
  (void)fputs("},\"libs\":[],\"pages\":[],\"threads\":[", x->out);
  weir_status st = WEIR_OK;
  for (int i = 0; i < PROFILE_WEIGHTS && !st; i++)
    st = put_thread(x, (profile_weight)i);
  (void)fputs("]}\n", x->out);
  return st ? st : export_written(x->out);
}

weir_status firefox_export(FILE *out, const char *trace)
{
  firefox x = {.out = out};
  weir_status st = profile_open(&x.p, trace);
  if (!st) st = profile_each(&x.p, take_sample, &x);
  if (!st) st = put_profile(&x, trace);
  profile_close(&x.p);
  for (size_t i = 0; i < x.strings.count && i < x.string_room; i++)
    free(x.string[i]);
  hash_map *const maps[] = {&x.strings, &x.functions, &x.frames, &x.stacks};
  for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++)
    hash_map_free(maps[i]);
  free(x.string);
  free(x.function);
  free(x.frame);
  free(x.stack);
  free(x.sample);
  return st;
}

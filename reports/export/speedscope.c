/* speedscope.c: see formats.h. The format is speedscope's file-format-schema.json. Frames are
 * shared by all profiles and are written as they are met; then every profile has its samples,
 * outermost frame first, and their weights, in the same order. */
#include "reports/export/formats.h"
#include <inttypes.h>
#include <stdlib.h>
#include "reports/base/escape.h"
#include "reports/export/profile.h"

typedef struct speedscope {
  FILE *out;
  profile p;
  hash_map frames;       /* key of a frame -> its number, from 1 on */
  profile_weight weight; /* of the profile that is written */
  bool first;            /* of the list that is written */
  int64_t total;         /* of the weights */
} speedscope;

static void put_comma(speedscope *x)
{
  if (!x->first) (void)putc(',', x->out);
  x->first = false;
}

static uint64_t function_key(const char *function)
{
  return export_text_key(3, function);
}

static weir_status put_function(speedscope *x, const char *function)
{
  bool added;
  if (!export_number(&x->frames, function_key(function), &added)) return export_out_of_memory();
  if (!added) return WEIR_OK;
  put_comma(x);
  (void)fputs("\n{\"name\":", x->out);
  wr_put_json_text(x->out, function);
  (void)putc('}', x->out);
  return WEIR_OK;
}

static weir_status put_speedscope_frame(speedscope *x, const wr_frame *f)
{
  bool added;
  if (!export_number(&x->frames, export_frame_key(f), &added)) return export_out_of_memory();
  if (!added) return WEIR_OK;
  char *name = export_frame_name(f);
  if (!name) return export_out_of_memory();
  put_comma(x);
  (void)fputs("\n{\"name\":", x->out);
  wr_put_json_text(x->out, name);
  free(name);
  if (f->file) {
    (void)fputs(",\"file\":", x->out);
    wr_put_json_text(x->out, f->file);
    if (f->line > 0) (void)fprintf(x->out, ",\"line\":%d", f->line);
  }
  (void)putc('}', x->out);
  return WEIR_OK;
}

static weir_status put_sample_frames(void *context, const profile_sample *sample)
{
  speedscope *x = context;
  weir_status st = put_function(x, sample->function);
  for (size_t i = 0; i < sample->count && !st; i++)
    st = put_speedscope_frame(x, &sample->frames[i]);
  return st ? st : export_written(x->out);
}

/* In a list of frames they count from 0. */
static uint64_t place_of_key(const speedscope *x, uint64_t key)
{
  const uint64_t *number = hash_map_get(&x->frames, key);
  return number ? *number - 1 : 0;
}

static weir_status put_sample(void *context, const profile_sample *sample)
{
  speedscope *x = context;
  if (!sample->weight[x->weight]) return WEIR_OK;
  put_comma(x);
  (void)fputs("\n[", x->out);
  for (size_t i = sample->count; i-- > 0;)
    (void)fprintf(x->out, "%" PRIu64 ",", place_of_key(x, export_frame_key(&sample->frames[i])));
  (void)fprintf(x->out, "%" PRIu64 "]", place_of_key(x, function_key(sample->function)));
  return export_written(x->out);
}

static weir_status put_weight(void *context, const profile_sample *sample)
{
  speedscope *x = context;
  int64_t weight = sample->weight[x->weight];
  if (!weight) return WEIR_OK;
  put_comma(x);
  (void)fprintf(x->out, "%" PRId64, weight);
  if (__builtin_add_overflow(x->total, weight, &x->total)) x->total = INT64_MAX;
  return WEIR_OK;
}

static weir_status put_profile(speedscope *x, profile_weight weight)
{
  const char *unit = profile_weights[weight].unit;
  x->weight = weight;
  x->first = true;
  x->total = 0;
  (void)fprintf(x->out,
                "%s\n{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"%s\",\"startValue\":0,"
                "\"samples\":[",
                weight ? "," : "", profile_weights[weight].name, unit[0] == 'c' ? "none" : unit);
  weir_status st = profile_each(&x->p, put_sample, x);
  (void)fputs("],\n\"weights\":[", x->out);
  x->first = true;
  if (!st) st = profile_each(&x->p, put_weight, x);
  (void)fprintf(x->out, "],\"endValue\":%" PRId64 "}", x->total);
  return st ? st : export_written(x->out);
}

static weir_status put_speedscope(speedscope *x, const char *trace)
{
  x->first = true;
  (void)fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
              "\"exporter\":\"Weir\",\"activeProfileIndex\":1,\"name\":",
              x->out);
  wr_put_json_text(x->out, trace);
  (void)fputs(",\n\"shared\":{\"frames\":[", x->out);
  weir_status st = profile_each(&x->p, put_sample_frames, x);
  (void)fputs("]},\n\"profiles\":[", x->out);
  for (int i = 0; i < PROFILE_WEIGHTS && !st; i++)
    st = put_profile(x, (profile_weight)i);
  (void)fputs("]}\n", x->out);
  return st ? st : export_written(x->out);
}

weir_status speedscope_export(FILE *out, const char *trace)
{
  speedscope x = {.out = out};
  weir_status st = profile_open(&x.p, trace);
  if (!st) st = put_speedscope(&x, trace);
  hash_map_free(&x.frames);
  profile_close(&x.p);
  return st;
}

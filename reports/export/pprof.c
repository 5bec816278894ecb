/* pprof.c: see formats.h. The message is pprof's profile.proto. Its lists can come in any order and
 * in parts, so that texts, functions and places are written where they are first needed, before
 * the sample that names them. */
#include "reports/export/formats.h"
#include <stdlib.h>
#include "reports/export/gzip.h"
#include "reports/export/profile.h"
#include "reports/export/proto.h"

/* profile.proto: field numbers. */
enum {
  PROFILE_SAMPLE_TYPE = 1,
  PROFILE_SAMPLE = 2,
  PROFILE_MAPPING = 3,
  PROFILE_LOCATION = 4,
  PROFILE_FUNCTION = 5,
  PROFILE_STRING_TABLE = 6,
  PROFILE_TIME_NANOS = 9,
  PROFILE_DURATION_NANOS = 10,
  PROFILE_DEFAULT_SAMPLE_TYPE = 14,
  VALUE_TYPE = 1,
  VALUE_UNIT = 2,
  SAMPLE_LOCATION_ID = 1,
  SAMPLE_VALUE = 2,
  MAPPING_ID = 1,
  MAPPING_FILENAME = 5,
  MAPPING_HAS_FUNCTIONS = 7,
  MAPPING_HAS_FILENAMES = 8,
  MAPPING_HAS_LINE_NUMBERS = 9,
  LOCATION_ID = 1,
  LOCATION_MAPPING_ID = 2,
  LOCATION_ADDRESS = 3,
  LOCATION_LINE = 4,
  LINE_FUNCTION_ID = 1,
  LINE_LINE = 2,
  FUNCTION_ID = 1,
  FUNCTION_NAME = 2,
  FUNCTION_FILENAME = 4
};

typedef struct pprof {
  gzip *to;                                      /* owned */
  hash_map strings, mappings, functions, places; /* key -> number, from 1 on */
  proto message, line, field, list;              /* in the making */
} pprof;

/* Writes `message` as a field of the profile, and empties it. */
static weir_status put_profile_field(pprof *x, unsigned field, proto *message)
{
  proto_clear(&x->field);
  proto_message(&x->field, field, message);
  proto_clear(message);
  if (x->field.failed) return export_out_of_memory();
  gzip_write(x->to, x->field.bytes, x->field.count);
  return export_written(x->to->out);
}

static weir_status put_profile_bytes(pprof *x)
{
  if (x->field.failed) return export_out_of_memory();
  gzip_write(x->to, x->field.bytes, x->field.count);
  return export_written(x->to->out);
}

/* The number of a text in the table, whose first, 0, is "". */
static weir_status string_number(pprof *x, const char *text, uint64_t *number)
{
  bool added;
  *number = 0;
  if (!text || !*text) return WEIR_OK;
  *number = export_number(&x->strings, export_text_key(1, text), &added);
  if (!*number) return export_out_of_memory();
  if (!added) return WEIR_OK;
  proto_clear(&x->field);
  proto_text(&x->field, PROFILE_STRING_TABLE, text);
  return put_profile_bytes(x);
}

static weir_status mapping_number(pprof *x, const char *path, uint64_t *number)
{
  bool added;
  uint64_t name;
  *number = 0;
  if (!*path) return WEIR_OK;
  weir_status st = string_number(x, path, &name);
  if (st) return st;
  *number = export_number(&x->mappings, name, &added);
  if (!*number) return export_out_of_memory();
  if (!added) return WEIR_OK;
  proto_number(&x->message, MAPPING_ID, *number);
  proto_number(&x->message, MAPPING_FILENAME, name);
  proto_number(&x->message, MAPPING_HAS_FUNCTIONS, 1);
  proto_number(&x->message, MAPPING_HAS_FILENAMES, 1);
  proto_number(&x->message, MAPPING_HAS_LINE_NUMBERS, 1);
  return put_profile_field(x, PROFILE_MAPPING, &x->message);
}

static weir_status function_number(pprof *x, const char *name, const char *file, uint64_t *number)
{
  bool added;
  uint64_t name_number, file_number;
  weir_status st = string_number(x, name, &name_number);
  if (!st) st = string_number(x, file, &file_number);
  if (st) return st;
  *number = export_number(&x->functions, hash_mix(hash_mix(2, name_number), file_number), &added);
  if (!*number) return export_out_of_memory();
  if (!added) return WEIR_OK;
  proto_number(&x->message, FUNCTION_ID, *number);
  proto_number(&x->message, FUNCTION_NAME, name_number);
  if (file_number) proto_number(&x->message, FUNCTION_FILENAME, file_number);
  return put_profile_field(x, PROFILE_FUNCTION, &x->message);
}

/* f: NULL for a function of CUDA's */
static weir_status put_location(pprof *x, uint64_t number, const char *name, const wr_frame *f)
{
  uint64_t function = 0, mapping = 0;
  weir_status st = function_number(x, name, f ? f->file : NULL, &function);
  if (!st && f) st = mapping_number(x, f->module, &mapping);
  if (st) return st;
  proto_clear(&x->line);
  proto_number(&x->line, LINE_FUNCTION_ID, function);
  if (f && f->line > 0) proto_number(&x->line, LINE_LINE, (uint64_t)f->line);
  proto_number(&x->message, LOCATION_ID, number);
  if (mapping) proto_number(&x->message, LOCATION_MAPPING_ID, mapping);
  if (f) proto_number(&x->message, LOCATION_ADDRESS, f->offset);
  proto_message(&x->message, LOCATION_LINE, &x->line);
  return put_profile_field(x, PROFILE_LOCATION, &x->message);
}

static weir_status add_place(pprof *x, uint64_t key, const char *function, const wr_frame *f)
{
  bool added;
  uint64_t number = export_number(&x->places, key, &added);
  if (!number) return export_out_of_memory();
  proto_varint(&x->list, number);
  if (!added) return WEIR_OK;
  char *name = f ? export_frame_name(f) : NULL;
  weir_status st =
      f && !name ? export_out_of_memory() : put_location(x, number, f ? name : function, f);
  free(name);
  return st;
}

static weir_status put_pprof_sample(void *context, const profile_sample *sample)
{
  pprof *x = context;
  proto_clear(&x->list);
  weir_status st = add_place(x, export_text_key(3, sample->function), sample->function, NULL);
  for (size_t i = 0; i < sample->count && !st; i++)
    st = add_place(x, export_frame_key(&sample->frames[i]), NULL, &sample->frames[i]);
  if (st) return st;
  proto_message(&x->message, SAMPLE_LOCATION_ID, &x->list);
  proto_clear(&x->list);
  for (int i = 0; i < PROFILE_WEIGHTS; i++)
    proto_varint(&x->list, (uint64_t)sample->weight[i]);
  proto_message(&x->message, SAMPLE_VALUE, &x->list);
  return put_profile_field(x, PROFILE_SAMPLE, &x->message);
}

static weir_status put_sample_types(pprof *x, const profile *p)
{
  uint64_t name = 0, unit = 0, shown = 0;
  proto_text(&x->field, PROFILE_STRING_TABLE, "");
  weir_status st = put_profile_bytes(x);
  for (int i = 0; i < PROFILE_WEIGHTS && !st; i++) {
    st = string_number(x, profile_weights[i].name, &name);
    if (!st) st = string_number(x, profile_weights[i].unit, &unit);
    if (st) break;
    if (i == PROFILE_HOST_TIME) shown = name;
    proto_number(&x->message, VALUE_TYPE, name);
    proto_number(&x->message, VALUE_UNIT, unit);
    st = put_profile_field(x, PROFILE_SAMPLE_TYPE, &x->message);
  }
  if (st) return st;
  proto_clear(&x->field);
  proto_number(&x->field, PROFILE_TIME_NANOS, (uint64_t)p->began);
  proto_number(&x->field, PROFILE_DURATION_NANOS, (uint64_t)p->duration);
  proto_number(&x->field, PROFILE_DEFAULT_SAMPLE_TYPE, shown);
  return put_profile_bytes(x);
}

static void pprof_free(pprof *x)
{
  hash_map_free(&x->strings);
  hash_map_free(&x->mappings);
  hash_map_free(&x->functions);
  hash_map_free(&x->places);
  proto_free(&x->message);
  proto_free(&x->line);
  proto_free(&x->field);
  proto_free(&x->list);
  free(x->to);
}

weir_status pprof_export(FILE *out, const char *trace)
{
  profile p;
  pprof x = {.to = malloc(sizeof(gzip))};
  weir_status st = profile_open(&p, trace);
  if (!st && !x.to) st = export_out_of_memory();
  if (!st) {
    gzip_begin(x.to, out);
    st = put_sample_types(&x, &p);
    if (!st) st = profile_each(&p, put_pprof_sample, &x);
    gzip_end(x.to);
  }
  pprof_free(&x);
  profile_close(&p);
  return st ? st : export_written(out);
}

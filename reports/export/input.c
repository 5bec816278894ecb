/* input.c: see input.h. */
#include "reports/export/input.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/import/graph.h"
#include "reports/import/lifetime.h"
#include "reports/model/sites.h"

weir_status export_input_open(export_input *x, const char *trace)
{
  int64_t finished = 0;
  *x = (export_input){0};
  weir_status st = wr_input_open(&x->in, trace);
  if (st) return st;
  const wr_db *db = &x->in.db;
  st = wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!st && finished != 1 && wr_schema_graph_memory(db)) st = wr_graph_launches_temporary(db);
  if (!st && finished != 1) st = wr_lifetimes_temporary(db);
  return st ? st : wr_symbols_open(&x->symbols, db);
}

void export_input_close(export_input *x)
{
  if (x->symbols) wr_symbols_close(x->symbols);
  if (x->in.db.handle) wr_input_close(&x->in);
  *x = (export_input){0};
}

weir_status export_frames(export_input *x, int64_t stack, const wr_frame **frames, size_t *count)
{
  *frames = NULL;
  *count = 0;
  weir_status st = stack ? wr_symbols_stack(x->symbols, stack, frames, count) : WEIR_OK;
  if (st || !*count) return st;
  size_t at = wr_site_at(*frames, *count);
  *frames += at;
  *count -= at;
  return WEIR_OK;
}

char *export_frame_name(const wr_frame *f)
{
  const char *slash = strrchr(f->module, '/');
  unsigned long long offset = (unsigned long long)f->offset;
  if (f->function) return strdup(f->function);
  if (!f->module[0]) return wr_format("0x%llx", offset);
  return wr_format("%s+0x%llx", slash ? slash + 1 : f->module, offset);
}

uint64_t export_text_key(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, 0x100);
}

uint64_t export_frame_key(const wr_frame *f)
{
  uint64_t key =
      export_text_key(export_text_key(export_text_key(7, f->function), f->file), f->module);
  return hash_mix(key, f->file ? (uint64_t)f->line : f->function ? 0 : f->offset);
}

uint64_t export_number(hash_map *numbers, uint64_t key, bool *added)
{
  uint64_t *number = hash_map_place(numbers, key, added);
  if (!number) return 0;
  if (*added) *number = numbers->count;
  return *number;
}

weir_status export_out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
}

weir_status export_written(FILE *out)
{
  return ferror(out) ? weir_fail_errno(WEIR_EIO, errno, "writing the export") : WEIR_OK;
}

/* index.c: see index.h. Every text goes through wr_put_json_text(); '<', which in JSON can be in a text
 * only, is written as an escape, so that nothing in the index ends the script it is in. */
#include "reports/page/index.h"
#include <stdlib.h>
#include "reports/base/escape.h"
#include "reports/render/findings_render.h"

static void put_text(FILE *to, const char *text)
{
  if (text)
    wr_put_json_text(to, text);
  else
    (void)fputs("null", to);
}

static void put_devices(FILE *to, const wr_model *m)
{
  const char *comma = "";
  (void)fputs("\"devices\":[", to);
  for (int i = 0; i < WR_HOST; i++) {
    const wr_device *d = &m->devices[i];
    if (!d->seen) continue;
    const wr_in_use *u = &d->in_use[WR_BY_DRIVER];
    (void)fprintf(to, "%s{\"ordinal\":%d,\"name\":", comma, i);
    put_text(to, d->name);
    if (u->samples)
      (void)fprintf(to, ",\"capacity_bytes\":%llu}", (unsigned long long)u->total);
    else
      (void)fputs(",\"capacity_bytes\":null}", to);
    comma = ",";
  }
  (void)fputc(']', to);
}

static void put_processes(FILE *to, const wr_model *m)
{
  (void)fputs(",\"processes\":[", to);
  for (size_t i = 0; i < m->process_count; i++) {
    (void)fprintf(to, "%s{\"pid\":%lld,\"name\":", i ? "," : "", (long long)m->processes[i].pid);
    put_text(to, m->processes[i].exe);
    (void)fputc('}', to);
  }
  (void)fputc(']', to);
}

static bool has_device_times(const wr_model *m)
{
  for (size_t i = 0; i < m->device_times.count; i++)
    if (m->device_times.device[i].span_ns) return true;
  return false;
}

static const char *mode_of(const wr_model *m)
{
  return m->cache.mode ? m->cache.mode : m->process_count ? m->processes[0].mode : "";
}

static void put_run(FILE *to, const wr_model *m)
{
  bool times = has_device_times(m);
  (void)fputs("\"run\":{\"command\":", to);
  put_text(to, m->command);
  (void)fputs(",\"weir\":", to);
  put_text(to, m->version);
  (void)fprintf(to, ",\"start_ms\":%lld,\"duration_ns\":%lld,\"mode\":",
                (long long)(m->start_realtime_ns / 1000000),
                (long long)(m->duration_ns > 0 ? m->duration_ns : 0));
  put_text(to, mode_of(m));
  (void)fprintf(to, ",\"finished\":%s,\"device_times\":%s,\"host_times_only_note\":",
                m->finished ? "true" : "false", times ? "true" : "false");
  put_text(to, times ? NULL
                     : "Times are the host's, of its calls: the run has no device times "
                       "(weir run --device-times).");
  (void)fputc(',', to);
  put_devices(to, m);
  put_processes(to, m);
  (void)fputs(",\"notes\":[", to);
  for (size_t i = 0; i < m->note_count; i++) {
    (void)fputs(i ? "," : "", to);
    put_text(to, m->notes[i]);
  }
  (void)fputs("]}", to);
}

static void put_totals(FILE *to, const wr_totals *t)
{
  const char *comma = "";
  (void)fputs(",\n\"totals\":{", to);
#define TOTAL(name)                                                                                \
  (void)fprintf(to, "%s\"" #name "\":%lld", comma, (long long)t->name);                            \
  comma = ",";
  WR_TOTAL_MAP(TOTAL)
#undef TOTAL
  (void)fputc('}', to);
}

static weir_status put_findings(FILE *to, const wr_findings *f)
{
  (void)fputs(",\n\"findings\":", to);
  if (!f || f->unavailable) {
    (void)fputs("null", to);
    return WEIR_OK;
  }
  json_t *o = wr_findings_json(f);
  if (!o) return weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  (void)json_dumpf(o, to, JSON_COMPACT);
  json_decref(o);
  return WEIR_OK;
}

static weir_status put_index(FILE *to, const page_parts *p)
{
  (void)fputs("{\"schema\":\"weir-page/1\",\n", to);
  put_run(to, p->model);
  put_totals(to, &p->model->total);
  (void)fprintf(to, ",\n\"bins\":{\"count\":%u,\"width_ns\":%lld}", p->bins->count,
                (long long)p->bins->width_ns);
  weir_status s = put_findings(to, p->findings);
  (void)fputs(",\n\"columns\":", to);
  page_columns_describe(to, p->columns);
  (void)fputs("}\n", to);
  return s;
}

weir_status page_index_write(FILE *out, const page_parts *parts)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  weir_status s = to ? put_index(to, parts) : WEIR_OK;
  bool failed = !to || ferror(to);
  if (to && fclose(to)) failed = true;
  if (!s && failed) s = weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  for (size_t i = 0; !s && i < bytes; i++)
    text[i] == '<' ? (void)fputs("\\u003c", out) : (void)fputc(text[i], out);
  free(text);
  return s;
}

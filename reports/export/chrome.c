/* chrome.c: see formats.h. The format is "Trace Event Format", as an object. It knows processes and
 * threads alone: a device is a process, whose number no program has, and a stream a thread of it;
 * ranges are threads of their process, whose numbers no thread has. Times are us, here with their
 * ns after the point. Frames come last: which there are is known then. */
#include "reports/export/formats.h"
#include <inttypes.h>
#include <stdlib.h>
#include "reports/base/escape.h"
#include "reports/export/timeline.h"

#define DEVICE_PID INT64_C(1000000000) /* of device 0; pids have 22 bits */
#define RANGES_TID INT64_C(1000000000)

typedef struct chrome {
  FILE *out;
  export_input input;
  hash_map stacks; /* of calls that are written */
  bool begun;      /* the list has something */
} chrome;

/* An event of the list: what all have, up to its arguments. */
static void begin_event(chrome *x, const char *phase, int64_t pid, int64_t tid)
{
  (void)fprintf(x->out, "%s\n{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64,
                x->begun ? "," : "", phase, pid, tid);
  x->begun = true;
}

static void put_time(chrome *x, const char *key, int64_t ns)
{
  (void)fprintf(x->out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void put_chrome_text(chrome *x, const char *key, const char *text)
{
  (void)fprintf(x->out, ",\"%s\":", key);
  wr_put_json_text(x->out, text ? text : "?");
}

static int64_t pid_of(const timeline_item *item)
{
  bool device = item->kind == TIMELINE_WORK || item->kind == TIMELINE_STREAM ||
                item->kind == TIMELINE_DEVICE || item->kind == TIMELINE_LIVE;
  return device ? DEVICE_PID + (item->device & 0xffffff) : item->pid;
}

/* Of a stream, of ranges: by the number of the track. */
static int64_t tid_of(const timeline_item *item)
{
  bool stream = item->kind == TIMELINE_WORK || item->kind == TIMELINE_STREAM;
  bool range = item->kind == TIMELINE_RANGE || item->kind == TIMELINE_RANGES;
  int64_t number = (int64_t)(item->track >> 3);
  return range ? RANGES_TID + number : stream ? number : item->tid;
}

static void put_named(chrome *x, const timeline_item *item, const char *what, const char *name)
{
  begin_event(x, "M", pid_of(item), tid_of(item));
  (void)fprintf(x->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
  wr_put_json_text(x->out, name);
  (void)fputs("}}", x->out);
}

static void put_track(chrome *x, const timeline_item *item)
{
  char name[80] = "Device not known";
  if (item->kind == TIMELINE_PROCESS && item->name)
    put_named(x, item, "process_name", item->name);
  else if (item->kind == TIMELINE_THREAD && item->name)
    put_named(x, item, "thread_name", item->name);
  if (item->kind == TIMELINE_DEVICE) {
    if (item->device >= 0) (void)snprintf(name, sizeof name, "Device %" PRId64, item->device);
    put_named(x, item, "process_name", name);
  } else if (item->kind == TIMELINE_STREAM) {
    (void)snprintf(name, sizeof name, "Stream %" PRId64 " (context %" PRId64 ")", item->stream,
                   item->context);
    put_named(x, item, "thread_name", name);
  } else if (item->kind == TIMELINE_RANGES) {
    (void)snprintf(name, sizeof name, "Ranges of thread %" PRId64, item->tid);
    put_named(x, item, "thread_name", name);
  }
}

static void put_arguments(chrome *x, const timeline_item *item)
{
  const char *comma = "";
  (void)fputs(",\"args\":{", x->out);
  if (item->sized) {
    (void)fprintf(x->out, "\"bytes\":%" PRId64, item->bytes);
    comma = ",";
  }
  if (item->status) {
    (void)fprintf(x->out, "%s\"status\":%" PRId64, comma, item->status);
    comma = ",";
  }
  if (item->kernel) {
    (void)fprintf(x->out, "%s\"kernel\":", comma);
    wr_put_json_text(x->out, item->kernel);
  }
  (void)fputs("}}", x->out);
}

/* From a call to the work, by the call's number. */
static void put_arrow(chrome *x, const timeline_item *item)
{
  bool end = item->kind == TIMELINE_WORK;
  if (end ? !item->call : !item->works) return;
  begin_event(x, end ? "f" : "s", pid_of(item), tid_of(item));
  put_time(x, "ts", item->start);
  (void)fprintf(x->out, ",\"id\":%" PRId64 ",\"name\":\"work\",\"cat\":\"flow\"%s}", item->call,
                end ? ",\"bp\":\"e\"" : "");
}

static weir_status put_duration(chrome *x, const timeline_item *item)
{
  if (item->stack && !hash_map_place(&x->stacks, (uint64_t)item->stack, NULL))
    return export_out_of_memory();
  begin_event(x, "X", pid_of(item), tid_of(item));
  put_time(x, "ts", item->start);
  put_time(x, "dur", item->end - item->start);
  put_chrome_text(x, "name", item->name);
  put_chrome_text(x, "cat", item->category);
  if (item->stack) (void)fprintf(x->out, ",\"sf\":\"%" PRId64 ".0\"", item->stack);
  put_arguments(x, item);
  put_arrow(x, item);
  return WEIR_OK;
}

static weir_status put_chrome_item(void *context, const timeline_item *item)
{
  chrome *x = context;
  weir_status st = WEIR_OK;
  if (item->kind == TIMELINE_CALL || item->kind == TIMELINE_WORK || item->kind == TIMELINE_RANGE)
    st = put_duration(x, item);
  else if (item->kind == TIMELINE_LIVE) {
    begin_event(x, "C", pid_of(item), 0);
    put_time(x, "ts", item->start);
    (void)fprintf(x->out, ",\"name\":\"Live memory\",\"args\":{\"bytes\":%" PRId64 "}}",
                  item->bytes);
  } else
    put_track(x, item);
  return st ? st : export_written(x->out);
}

/* Each frame of a stack names the one that called it. */
static weir_status put_stack(chrome *x, int64_t stack, bool first)
{
  const wr_frame *frames;
  size_t count;
  weir_status st = export_frames(&x->input, stack, &frames, &count);
  if (st) return st;
  if (!count)
    (void)fprintf(x->out, "%s\n\"%" PRId64 ".0\":{\"name\":\"?\"}", first ? "" : ",", stack);
  for (size_t i = 0; i < count; i++) {
    char *name = export_frame_name(&frames[i]);
    if (!name) return export_out_of_memory();
    (void)fprintf(x->out, "%s\n\"%" PRId64 ".%zu\":{\"name\":", first && !i ? "" : ",", stack, i);
    wr_put_json_text(x->out, name);
    free(name);
    put_chrome_text(x, "category", frames[i].file ? frames[i].file : frames[i].module);
    if (i + 1 < count) (void)fprintf(x->out, ",\"parent\":\"%" PRId64 ".%zu\"", stack, i + 1);
    (void)putc('}', x->out);
  }
  return export_written(x->out);
}

static weir_status put_chrome(chrome *x)
{
  uint64_t stack, *value;
  bool first = true;
  (void)fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", x->out);
  weir_status st = timeline_walk(&x->input.in.db, put_chrome_item, x);
  (void)fputs("],\n\"stackFrames\":{", x->out);
  for (size_t at = 0; !st && hash_map_next(&x->stacks, &at, &stack, &value); first = false)
    st = put_stack(x, (int64_t)stack, first);
  (void)fputs("}}\n", x->out);
  return st ? st : export_written(x->out);
}

weir_status chrome_export(FILE *out, const char *trace)
{
  chrome x = {.out = out};
  weir_status st = export_input_open(&x.input, trace);
  if (!st) st = put_chrome(&x);
  hash_map_free(&x.stacks);
  export_input_close(&x.input);
  return st;
}

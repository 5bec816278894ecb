/* read.c: which reader a file is for, and the trace's. */
#include "tools/replay/read.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/model/sites.h"
#include "reports/model/open.h"
#include "reports/symbols/symbolize.h"

/* ---- a trace --------------------------------------------------------------------------------- */

typedef struct from_trace {
  rp_ops *ops;
  bool finished;
  wr_symbols *symbols; /* NULL: stacks are not wanted */
  hash_map place_of;   /* row of stack -> its place in the list */
  rp_op *request; /* owned: allocations that failed, by time; not yet in the list from `next` */
  size_t requests, request_capacity, next;
} from_trace;

static weir_status take_finished(void *context, sqlite3_stmt *q)
{
  from_trace *t = context;
  t->finished = sqlite3_column_int(q, 0) == 1;
  return WEIR_OK;
}

static weir_status read_out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "reading a trace: out of host memory");
}

static weir_status add_frame(rp_ops *ops, const wr_frame *f)
{
  const char *file = f->file ? f->file : f->module;
  if (!wr_grow(&ops->frame, &ops->frame_capacity, ops->frame_count + 1, sizeof *ops->frame))
    return read_out_of_memory();
  rp_frame *out = &ops->frame[ops->frame_count++];
  *out = (rp_frame){.file = wr_text(file, strlen(file), true), .line = f->file ? f->line : 0};
  out->name = f->function ? wr_text(f->function, strlen(f->function), true)
                          : wr_format("0x%llx", (unsigned long long)f->offset);
  return out->name && out->file ? WEIR_OK : read_out_of_memory();
}

/* The place of a trace's stack in the list, taken in at first sight. */
static weir_status place_stack(from_trace *t, int64_t row, uint32_t *place)
{
  const wr_frame *frames = NULL;
  size_t count = 0;
  bool added;
  rp_ops *ops = t->ops;
  uint64_t *known = hash_map_place(&t->place_of, (uint64_t)row, &added);
  if (!known) return read_out_of_memory();
  if (!added) {
    *place = (uint32_t)*known;
    return WEIR_OK;
  }
  weir_status st = wr_symbols_stack(t->symbols, row, &frames, &count);
  if (st) return st;
  if (!ops->stack_count) ops->stack_count = 1; /* 0 is none */
  if (!wr_grow(&ops->stack, &ops->stack_capacity, ops->stack_count + 1, sizeof *ops->stack))
    return read_out_of_memory();
  *known = *place = (uint32_t)ops->stack_count;
  ops->stack[ops->stack_count++] = (rp_stack){ops->frame_count, count, wr_site_at(frames, count)};
  for (size_t i = 0; i < count && !st; i++)
    st = add_frame(ops, &frames[i]);
  return st;
}

static bool is_wanted(sqlite3_stmt *q)
{
  int mem = sqlite3_column_int(q, 2);
  return wr_mem_device_side(mem) && mem != WEIR_MEM_ARRAY;
}

/* Columns: 0 process, 1 device, 2 mem, 3 free?, 4 time, 5 pointer, 6 bytes, 7 thread, 8 stream, 10
 * stack. */
static weir_status read_op(from_trace *t, sqlite3_stmt *q, rp_op *op)
{
  uint64_t stream = (uint64_t)sqlite3_column_int64(q, 8);
  int64_t time = sqlite3_column_int64(q, 4);
  *op = (rp_op){.time = time > 0 ? (uint64_t)time : 0,
                .address = (uint64_t)sqlite3_column_int64(q, 5),
                .bytes = (uint64_t)sqlite3_column_int64(q, 6),
                .thread = (uint32_t)sqlite3_column_int64(q, 7),
                .stream = stream == WEIR_STREAM_LEGACY ? 0 : stream};
  uint64_t key = (uint64_t)sqlite3_column_int64(q, 0) << 16 | (sqlite3_column_int64(q, 1) & 0xffff);
  weir_status st = rp_ops_heap(t->ops, key, &op->heap);
  if (!st && t->symbols && sqlite3_column_int64(q, 10))
    st = place_stack(t, sqlite3_column_int64(q, 10), &op->stack);
  return st;
}

static weir_status take_request(void *context, sqlite3_stmt *q)
{
  from_trace *t = context;
  if (!is_wanted(q)) return WEIR_OK;
  if (!wr_grow(&t->request, &t->request_capacity, t->requests + 1, sizeof *t->request))
    return read_out_of_memory();
  return read_op(t, q, &t->request[t->requests++]);
}

/* The requests up to a time, between blocks that are older and younger. */
static weir_status append_requests(from_trace *t, uint64_t until)
{
  weir_status st = WEIR_OK;
  while (!st && t->next < t->requests && t->request[t->next].time <= until)
    st = rp_ops_request(t->ops, t->request[t->next++]);
  return st;
}

static weir_status take_op_row(void *context, sqlite3_stmt *q)
{
  from_trace *t = context;
  rp_op op;
  if (!is_wanted(q)) return WEIR_OK;
  weir_status st = read_op(t, q, &op);
  if (!st) st = append_requests(t, op.time);
  if (st) return st;
  return sqlite3_column_int(q, 3) ? rp_ops_free(t->ops, op) : rp_ops_alloc(t->ops, op);
}

static weir_status rp_read_trace(rp_ops *ops, const char *path)
{
  /* born and died number the memory operations in the order in which the program saw them */
  static const char sql[] =
      "SELECT b.process, b.device, b.mem, 0, b.start, b.pointer, b.bytes, e.thread, e.stream,"
      " b.born AS place, b.stack FROM block b JOIN event e ON e.id = b.alloc"
      " WHERE NOT b.registered UNION ALL "
      "SELECT b.process, b.device, b.mem, 1, b.\"end\", b.pointer, b.bytes, e.thread, e.stream,"
      " b.died, e.stack FROM block b JOIN event e ON e.id = b.free"
      " WHERE NOT b.registered AND b.how <> 0 AND b.died IS NOT NULL UNION ALL "
      "SELECT process, device, mem, 1, \"end\", pointer, bytes, NULL, NULL, died, NULL FROM block"
      " WHERE NOT registered AND how <> 0 AND died IS NOT NULL AND free IS NULL"
      " ORDER BY place, 4 DESC";
  static const char requests[] =
      "SELECT process, device, mem, 0, start + duration AS time, 0, bytes, thread, stream, NULL,"
      " stack FROM event WHERE kind = 1 AND status = 2 ORDER BY time, id";
  wr_input in;
  from_trace t = {.ops = ops};
  weir_status st = wr_input_open(&in, path);
  if (st) return st;
  st = wr_db_each(&in.db, "SELECT value FROM meta WHERE key = 'finished'", take_finished, &t);
  if (!st && !t.finished) st = wr_lifetimes_temporary(&in.db);
  if (!st && ops->want_stacks) st = wr_symbols_open(&t.symbols, &in.db);
  if (!st) st = wr_db_each(&in.db, requests, take_request, &t);
  if (!st) st = wr_db_each(&in.db, sql, take_op_row, &t);
  if (!st) st = append_requests(&t, UINT64_MAX);
  free(t.request);
  wr_symbols_close(t.symbols);
  hash_map_free(&t.place_of);
  wr_input_close(&in);
  return st;
}

/* ---- any file -------------------------------------------------------------------------------- */

static weir_status read_other_file(rp_ops *ops, const char *path)
{
  char head[64] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
  if (!in) {
    weir_status st = weir_fail_errno(WEIR_EIO, errno, "cannot open %s", path);
    if (fd >= 0) close(fd);
    return st;
  }
  weir_status st = WEIR_OK;
  if (fstat(fd, &info) || !S_ISREG(info.st_mode))
    st = weir_fail(WEIR_ECORRUPT, "%s is not a regular file", path);
  ssize_t n = st ? 0 : pread(fd, head, sizeof head - 1, 0);
  const char *text = head + strspn(head, " \t\r\n");
  if (st) {
  } else if (n >= 2 && head[0] == '\x80') {
    st = rp_read_pytorch_pickle(ops, in, path);
  } else if (*text == '{') {
    st = rp_read_pytorch(ops, in, path);
  } else if (!strncmp(head, "Thread,", 7)) {
    st = rp_read_rmm(ops, in, path);
  } else {
    st = weir_fail(WEIR_ECORRUPT,
                   "%s is no trace, no spool, no log of RMM's and no snapshot of PyTorch's", path);
  }
  (void)fclose(in);
  return st;
}

weir_status rp_read(rp_ops *ops, const char *path)
{
  wr_file_kind kind = WR_FILE_OTHER;
  weir_status st = wr_file_look(path, &kind);
  if (!st) st = kind == WR_FILE_OTHER ? read_other_file(ops, path) : rp_read_trace(ops, path);
  if (!st) st = rp_ops_finish(ops);
  if (st) rp_ops_clear(ops);
  return st;
}

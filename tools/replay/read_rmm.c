/* read_rmm.c: RMM's log.
 *
 * Source of the format: RMM's documentation ("Logging") and its logging_resource_adaptor: the head
 * line "Thread,Time,Action,Pointer,Size,Stream", then a line an operation: a decimal thread, a time
 * of day HH:MM:SS.ffffff (":" before the fraction in old versions), allocate, allocate failure or
 * free, an address in hexadecimal, bytes, a stream handle. The time of day starts
 * again at midnight. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/replay/read.h"

#define DAY    (UINT64_C(86400) * 1000000000)
#define FIELDS 16

enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, KNOWN };

typedef struct reader {
  int column[KNOWN]; /* place of each in a line */
  uint64_t days;     /* ns to add */
  uint64_t last;     /* time of day before, ns */
} reader;

static int split_fields(char *line, char *field[FIELDS])
{
  int count = 0;
  line[strcspn(line, "\r\n")] = 0;
  for (char *at = line; at && count < FIELDS;) {
    field[count++] = at;
    at = strchr(at, ',');
    if (at) *at++ = 0;
  }
  return count;
}

static bool read_head(reader *r, char *line)
{
  static const char *const names[] = {"Thread", "Time", "Action", "Pointer", "Size", "Stream"};
  char *field[FIELDS];
  int count = split_fields(line, field);
  for (int k = 0; k < KNOWN; k++) {
    r->column[k] = -1;
    for (int i = 0; i < count; i++)
      if (!strcmp(field[i], names[k])) r->column[k] = i;
    if (r->column[k] < 0) return false;
  }
  return true;
}

static bool read_field_number(const char *text, int base, uint64_t *out)
{
  char *end;
  while (*text == ' ')
    text++;
  if (!strcmp(text, "(nil)") || !strcmp(text, "nullptr")) return !(*out = 0);
  if (*text == '-' || *text == '+' || !*text) return false;
  errno = 0;
  *out = strtoull(text, &end, base);
  return !errno && !*end;
}

static bool read_time(reader *r, const char *text, uint64_t *out)
{
  char *at;
  uint64_t part[3], fraction = 0, unit = 100000000;
  for (int i = 0; i < 3; i++) {
    if (*text < '0' || *text > '9') return false;
    part[i] = strtoul(text, &at, 10);
    if (part[i] > 60 || (i < 2 && *at != ':')) return false;
    text = at + (i < 2);
  }
  if (*text == '.' || *text == ':')
    for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
      fraction += (uint64_t)(*text - '0') * unit;
  if (*text) return false;
  *out = ((part[0] * 60 + part[1]) * 60 + part[2]) * 1000000000 + fraction;
  if (*out + DAY / 2 < r->last) r->days += DAY;
  r->last = *out;
  *out += r->days;
  return true;
}

static weir_status take_log_line(rp_ops *ops, reader *r, char *line, size_t number,
                                 const char *path)
{
  char *field[FIELDS], *known[KNOWN];
  uint64_t thread;
  rp_op op = {0};
  int count = split_fields(line, field);
  if (count == 1 && !*field[0]) return WEIR_OK;
  for (int k = 0; k < KNOWN; k++) {
    if (r->column[k] >= count)
      return weir_fail(WEIR_ECORRUPT, "%s: line %zu has %d fields", path, number, count);
    known[k] = field[r->column[k]];
  }
  weir_status (*append)(rp_ops *, rp_op) = !strcmp(known[ACTION], "allocate") ? rp_ops_alloc
                                           : !strcmp(known[ACTION], "allocate failure")
                                               ? rp_ops_request
                                           : !strcmp(known[ACTION], "free") ? rp_ops_free
                                                                            : NULL;
  if (!append) return WEIR_OK;
  if (!read_field_number(known[THREAD], 10, &thread) || !read_time(r, known[TIME], &op.time) ||
      !read_field_number(known[POINTER], 16, &op.address) ||
      !read_field_number(known[SIZE], 10, &op.bytes) ||
      !read_field_number(known[STREAM], 0, &op.stream))
    return weir_fail(WEIR_ECORRUPT, "%s: line %zu makes no sense", path, number);
  op.thread = (uint32_t)thread;
  if (op.stream == 1) op.stream = 0; /* cudaStreamLegacy is the default stream */
  weir_status st = rp_ops_heap(ops, 0, &op.heap);
  if (st) return st;
  if (append == rp_ops_request) op.address = 0; /* what was free is unknown */
  return append(ops, op);
}

weir_status rp_read_rmm(rp_ops *ops, FILE *in, const char *path)
{
  reader r = {0};
  char line[1024];
  size_t number = 1;
  weir_status st = WEIR_OK;
  if (!fgets(line, sizeof line, in) || !read_head(&r, line))
    return weir_fail(WEIR_ECORRUPT, "%s: the first line is not that of a log of RMM's", path);
  while (!st && fgets(line, sizeof line, in)) {
    number++;
    if (strlen(line) == sizeof line - 1)
      st = weir_fail(WEIR_ECORRUPT, "%s: line %zu is longer than any of RMM's", path, number);
    else
      st = take_log_line(ops, &r, line, number, path);
  }
  if (!st && ferror(in)) st = weir_fail_errno(WEIR_EIO, errno, "reading %s", path);
  return st;
}

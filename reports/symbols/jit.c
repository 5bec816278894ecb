/* jit.c: see jit.h.
 *
 * A map is lines of text, "START BYTES NAME", hexadecimal. A dump is binary, in the byte order of
 * the machine that wrote it: a head, and records with their size first, of which those that load a
 * function (0) and move one (1) are read. The lines that others give are left: what wrote them
 * does not agree on whether their addresses are of the code or of the ELF file that perf makes of
 * it.
 *
 * Anybody can write anything there: no record is believed about its size beyond the file's,
 * nothing is read that the file has not. */
#include "reports/symbols/jit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/map.h"
#include "reports/base/util.h"

#define FILE_MOST_BYTES (UINT64_C(256) << 20)

enum { NAME_ROOM = 4096, SYMBOLS_MOST = 1 << 22 };

/* ---- files ----------------------------------------------------------------------------------- */

static FILE *open_perf_map(const char *path, int64_t uid)
{
  struct stat link, file;
  if (lstat(path, &link) || !S_ISREG(link.st_mode)) return NULL;
  int fd = wr_open_regular(path, FILE_MOST_BYTES, &file);
  if (fd < 0) return NULL;
  uid_t user = uid < 0 ? geteuid() : (uid_t)uid;
  bool same = file.st_dev == link.st_dev && file.st_ino == link.st_ino;
  FILE *f = same && (file.st_uid == user || file.st_uid == 0) ? fdopen(fd, "r") : NULL;
  if (!f) close(fd);
  return f;
}

static FILE *find_file(const char *folder, const char *kind, int64_t pid, const char *ending,
                       int64_t uid)
{
  const char *places[] = {folder, "/tmp"};
  FILE *f = NULL;
  for (int i = 0; !f && i < 2; i++) {
    if (!places[i]) continue;
    char *path = wr_format("%s/%s-%lld.%s", places[i], kind, (long long)pid, ending);
    if (path) f = open_perf_map(path, uid);
    free(path);
  }
  return f;
}

/* Takes `name`. False: out of memory, no more are taken, or there is no name. */
static bool add_symbol(jit_symbols *j, uint64_t start, uint64_t bytes, char *name, bool moved)
{
  if (name && j->count < SYMBOLS_MOST &&
      wr_grow(&j->symbols, &j->capacity, j->count + 1, sizeof(jit_symbol))) {
    j->symbols[j->count] = (jit_symbol){start, bytes, j->count, name, moved};
    j->count++;
    return true;
  }
  if (!moved) free(name);
  return false;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void read_map(jit_symbols *j, FILE *f)
{
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, f) > 0) {
    unsigned long long start, bytes;
    int name = 0;
    if (sscanf(line, "%llx %llx %n", &start, &bytes, &name) < 2 || !name) continue;
    line[name + (int)strcspn(line + name, "\r\n")] = '\0';
    if (!add_symbol(j, start, bytes, wr_text(line + name, strlen(line + name), true), false)) break;
  }
  free(line);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

#define DUMP_MAGIC 0x4A695444u

enum { RECORD_LOAD = 0, RECORD_MOVE = 1, HEAD_MOST = 4096 };

typedef struct dump_head {
  uint32_t magic, version, bytes, machine, padding, pid;
  uint64_t time, flags;
} dump_head;

typedef struct record_head {
  uint32_t kind, bytes;
  uint64_t time;
} record_head;

typedef struct load_record { /* after it: its name, and the code */
  uint32_t pid, thread;
  uint64_t place, start, bytes, index;
} load_record;

typedef struct move_record {
  uint32_t pid, thread;
  uint64_t place, from, start, bytes, index;
} move_record;

typedef struct dump {
  jit_symbols *symbols;
  FILE *file;
  hash_map by_index; /* of code -> place in symbols */
} dump;

static bool read_load(dump *d, size_t left)
{
  load_record r;
  char name[NAME_ROOM];
  if (left < sizeof r || fread(&r, sizeof r, 1, d->file) != 1) return false;
  left -= sizeof r;
  size_t n = fread(name, 1, left < sizeof name ? left : sizeof name, d->file);
  if (n < sizeof name && !memchr(name, 0, n)) return false; /* cut off */
  if (hash_map_put(&d->by_index, r.index, d->symbols->count)) return false;
  return add_symbol(d->symbols, r.start, r.bytes, wr_text(name, n, true), false);
}

static bool read_move(dump *d, size_t left)
{
  move_record r;
  if (left < sizeof r || fread(&r, sizeof r, 1, d->file) != 1) return false;
  const uint64_t *at = hash_map_get(&d->by_index, r.index);
  return !at || add_symbol(d->symbols, r.start, r.bytes, d->symbols->symbols[*at].name, true);
}

static void read_dump(dump *d)
{
  dump_head head;
  record_head r;
  if (fread(&head, sizeof head, 1, d->file) != 1 || head.magic != DUMP_MAGIC) return;
  if (head.bytes < sizeof head || head.bytes > HEAD_MOST) return;
  long at = (long)head.bytes;
  while (!fseek(d->file, at, SEEK_SET) && fread(&r, sizeof r, 1, d->file) == 1) {
    if (r.bytes < sizeof r) return;
    if (r.kind == RECORD_LOAD && !read_load(d, r.bytes - sizeof r)) return;
    if (r.kind == RECORD_MOVE && !read_move(d, r.bytes - sizeof r)) return;
    at += (long)r.bytes;
  }
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int by_symbol_start(const void *left, const void *right)
{
  const jit_symbol *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return (a->order > b->order) - (a->order < b->order);
}

void jit_symbols_read(jit_symbols *j, int64_t pid, int64_t uid, const char *folder)
{
  FILE *map = find_file(folder, "perf", pid, "map", uid);
  dump d = {.symbols = j, .file = find_file(folder, "jit", pid, "dump", uid)};
  if (map) {
    read_map(j, map);
    (void)fclose(map);
  }
  if (d.file) {
    read_dump(&d);
    (void)fclose(d.file);
  }
  hash_map_free(&d.by_index);
  if (j->count) qsort(j->symbols, j->count, sizeof(jit_symbol), by_symbol_start);
}

const char *jit_symbols_find(const jit_symbols *j, uint64_t address)
{
  size_t low = 0, high = j->count;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (j->symbols[mid].start <= address)
      low = mid + 1;
    else
      high = mid;
  }
  if (!low || address - j->symbols[low - 1].start >= j->symbols[low - 1].bytes) return NULL;
  return j->symbols[low - 1].name;
}

void jit_symbols_free(jit_symbols *j)
{
  for (size_t i = 0; i < j->count; i++)
    if (!j->symbols[i].moved) free(j->symbols[i].name);
  free(j->symbols);
  *j = (jit_symbols){0};
}

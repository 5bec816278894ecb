/* file.c: the state as a file: a head, then each table's entries, in the order of WR_TALLY_TABLES
 * and WR_TALLY_ARRAYS, each padded to 8 bytes.
 *
 * What is read is not trusted: the file is copied first; its head has to be of this version and
 * this spool, its check word right; keys have to be unlike, and pieces of arrays within them and no
 * more than they have in all. Whatever else it holds is only numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"
#include "reports/tally/private.h"

#define STATE_MAGIC   "WEIRTLY\1"
#define STATE_VERSION 4u
#define STATE_MOST    (UINT64_C(1) << 32) /* bytes of a state */

enum { MOST_OPEN = 4096 /* ranges of a thread */ };

enum table_number {
#define NUMBER(name, type) NUMBER_##name,
  WR_TALLY_TABLES(NUMBER) WR_TALLY_ARRAYS(NUMBER) TABLES
#undef NUMBER
};

enum {
#define COUNT_ONE(name, type) +1
  KEYED = 0 WR_TALLY_TABLES(COUNT_ONE) /* tables with keys; they come first */
#undef COUNT_ONE
};

typedef struct state_head {
  char magic[8];
  uint32_t version, head_bytes;
  uint64_t bytes; /* of the file */
  uint64_t check; /* of what comes after this word */
  wr_tally_owner owner;
  struct {
    uint32_t count, size;
  } table[TABLES];
} state_head;

static void list_tables(wr_tally *t, wr_table *out[TABLES])
{
#define LIST(name, type) out[NUMBER_##name] = &t->s.name;
  WR_TALLY_TABLES(LIST) WR_TALLY_ARRAYS(LIST)
#undef LIST
}

static uint64_t entry_bytes(const wr_table *x)
{
  return (uint64_t)x->count * x->size;
}

static uint64_t padded(uint64_t bytes)
{
  return (bytes + 7) / 8 * 8;
}

/* ---- the check word -------------------------------------------------------------------------- */

static uint64_t check_words(uint64_t check, const char *bytes, uint64_t count)
{
  const uint64_t prime = UINT64_C(0x9fb21c651e98df25);
  uint64_t a = check ^ count, b = ~count, word[2];
  for (; count >= sizeof word; count -= sizeof word, bytes += sizeof word) {
    memcpy(word, bytes, sizeof word);
    a = (a ^ word[0]) * prime;
    b = (b ^ word[1]) * prime;
    a ^= a >> 29, b ^= b >> 31;
  }
  memset(word, 0, sizeof word);
  if (count) memcpy(word, bytes, count);
  return hash_mix(hash_mix(hash_mix(hash_mix(a, word[0]), b), word[1]), check);
}

static uint64_t check_head(const state_head *head)
{
  const size_t from = offsetof(state_head, owner);
  return check_words(head->bytes, (const char *)head + from, sizeof *head - from);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_whole(int fd, const void *bytes, uint64_t count)
{
  const char *at = bytes;
  while (count) {
    ssize_t n = write(fd, at, count < (1u << 30) ? count : 1u << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    count -= (uint64_t)n;
  }
  return true;
}

static void fill_head(state_head *head, const wr_tally *t, wr_table *const tables[TABLES])
{
  memset(head, 0, sizeof *head);
  memcpy(head->magic, STATE_MAGIC, sizeof head->magic);
  head->version = STATE_VERSION;
  head->head_bytes = sizeof *head;
  head->owner = t->owner;
  head->bytes = sizeof *head;
  for (int i = 0; i < TABLES; i++) {
    head->table[i].count = tables[i]->count;
    head->table[i].size = tables[i]->size;
    head->bytes += padded(entry_bytes(tables[i]));
  }
  head->check = check_head(head);
  for (int i = 0; i < TABLES; i++)
    head->check = check_words(head->check, tables[i]->entry, entry_bytes(tables[i]));
}

static void tell_step(const wr_tally *t, wr_tally_step step)
{
  if (t->options.step) t->options.step(t->options.step_context, step);
}

static bool write_state(wr_tally *t, int fd)
{
  static const char zeros[8];
  wr_table *tables[TABLES];
  state_head head;
  list_tables(t, tables);
  fill_head(&head, t, tables);
  bool good = write_whole(fd, &head, sizeof head);
  for (int i = 0; i < TABLES && good; i++) {
    const uint64_t bytes = entry_bytes(tables[i]);
    if (i == TABLES / 2) tell_step(t, WR_TALLY_HALF);
    good =
        write_whole(fd, tables[i]->entry, bytes) && write_whole(fd, zeros, padded(bytes) - bytes);
  }
  return good;
}

/* Nobody else writes in the folder; what is there under the name is of a collector that was killed.
 */
weir_status wr_tally_save(wr_tally *t)
{
  tell_step(t, WR_TALLY_BEGUN);
  (void)unlink(t->fresh);
  int fd = open(t->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool good = fd >= 0 && write_state(t, fd);
  int why = errno;
  if (fd >= 0 && close(fd) && good) good = false, why = errno;
  if (good) tell_step(t, WR_TALLY_WRITTEN);
  if (good && rename(t->fresh, t->path)) good = false, why = errno;
  if (good) {
    tell_step(t, WR_TALLY_RENAMED);
    return WEIR_OK;
  }
  (void)unlink(t->fresh);
  return weir_fail_errno(why == ENOSPC ? WEIR_ENOSPC : WEIR_EIO, why, "cannot write the tally %s",
                         t->path);
}

/* ---- reading --------------------------------------------------------------------------------- */

static weir_status refuse(const wr_tally *t, const char *why)
{
  return weir_fail(WEIR_ECORRUPT, "%s is no state of this tally: %s", t->path, why);
}

static weir_status check_state_head(const wr_tally *t, const state_head *head, uint64_t bytes,
                                    wr_table *const tables[TABLES])
{
  uint64_t whole = sizeof *head;
  if (bytes < sizeof *head || memcmp(head->magic, STATE_MAGIC, sizeof head->magic) != 0)
    return refuse(t, "it does not begin as one");
  if (head->version != STATE_VERSION || head->head_bytes != sizeof *head)
    return weir_fail(WEIR_EVERSION, "%s has version %u; this Weir reads version %u", t->path,
                     head->version, STATE_VERSION);
  if (memcmp(&head->owner, &t->owner, sizeof t->owner) != 0)
    return refuse(t, "it is of another process");
  for (int i = 0; i < TABLES; i++) {
    if (head->table[i].size != tables[i]->size || head->table[i].count > 1u << 30)
      return refuse(t, "its tables are not those of this version");
    whole += padded((uint64_t)head->table[i].count * head->table[i].size);
  }
  if (head->bytes != whole || bytes != whole) return refuse(t, "it is cut, or too long");
  return WEIR_OK;
}

static bool all_zeros(const char *bytes, uint64_t count)
{
  char any = 0;
  for (uint64_t i = 0; i < count; i++)
    any |= bytes[i];
  return !any;
}

static weir_status copy_tables(wr_tally *t, const char *file, wr_table *const tables[TABLES])
{
  state_head head;
  memcpy(&head, file, sizeof head);
  uint64_t check = check_head(&head);
  const char *at = file + sizeof head;
  bool right = true;
  for (int i = 0; i < TABLES; i++) {
    const uint64_t bytes = (uint64_t)head.table[i].count * head.table[i].size;
    wr_table_free(tables[i]);
    if (!wr_array_room(tables[i], head.table[i].count)) return wr_tally_no_memory(t);
    if (bytes) memcpy(tables[i]->entry, at, bytes);
    tables[i]->count = head.table[i].count;
    check = check_words(check, at, bytes);
    right = right && all_zeros(at + bytes, padded(bytes) - bytes);
    at += padded(bytes);
  }
  if (!right || check != head.check)
    return refuse(t, "its check word is wrong: it was torn or changed");
  for (int i = 0; i < KEYED; i++)
    if (!wr_table_index(tables[i])) return refuse(t, "two entries have the same key");
  return WEIR_OK;
}

void wr_tally_seal(void *file, uint64_t bytes)
{
  state_head head;
  uint64_t at = sizeof head;
  if (bytes < sizeof head) return;
  memcpy(&head, file, sizeof head);
  head.check = check_head(&head);
  for (int i = 0; i < TABLES; i++) {
    uint64_t more = (uint64_t)head.table[i].count * head.table[i].size;
    if (more > bytes - at || padded(more) > bytes - at) return;
    head.check = check_words(head.check, (const char *)file + at, more);
    at += padded(more);
  }
  memcpy(file, &head, sizeof head);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

typedef struct pieces {
  const wr_table *array;
  uint64_t sum;
  bool wrong;
} pieces;

static void add_piece(pieces *p, uint32_t first, uint32_t count)
{
  p->sum += count;
  p->wrong |= first > p->array->count || count > p->array->count - first;
}

static void add_text(pieces *p, wr_piece_of_text text)
{
  add_piece(p, text.at, text.bytes);
}

static bool pieces_fit(const pieces *p)
{
  return !p->wrong && p->sum <= p->array->count;
}

static bool texts_fit(const wr_tally *t)
{
  pieces p = {.array = &t->s.text};
  for (uint32_t i = 0; i < t->s.thread.count; i++)
    add_text(&p, ((wr_tally_thread *)wr_table_at(&t->s.thread, i))->name);
  for (uint32_t i = 0; i < t->s.module.count; i++) {
    const wr_tally_module *m = wr_table_at(&t->s.module, i);
    add_text(&p, m->build_id);
    add_text(&p, m->path);
  }
  for (uint32_t i = 0; i < t->s.name.count; i++) {
    const wr_tally_name *n = wr_table_at(&t->s.name, i);
    add_text(&p, n->domain);
    add_text(&p, n->text);
  }
  for (uint32_t i = 0; i < t->s.python.count; i++) {
    const wr_python_frame *f = wr_table_at(&t->s.python, i);
    add_text(&p, f->function);
    add_text(&p, f->file);
  }
  return pieces_fit(&p);
}

static bool numbers_fit(const wr_tally *t)
{
  pieces frames = {.array = &t->s.frame}, nodes = {.array = &t->s.node};
  for (uint32_t i = 0; i < t->s.stack.count; i++) {
    const wr_tally_stack *x = wr_table_at(&t->s.stack, i);
    add_piece(&frames, x->first, x->depth);
  }
  for (uint32_t i = 0; i < t->s.graph.count; i++) {
    const wr_tally_graph *x = wr_table_at(&t->s.graph, i);
    add_piece(&nodes, x->first, x->count);
  }
  for (uint32_t i = 0; i < t->s.pending.count; i++) {
    const wr_pending *x = wr_table_at(&t->s.pending, i);
    add_piece(&nodes, x->first, x->count);
  }
  return pieces_fit(&frames) && pieces_fit(&nodes);
}

/* The lists of pending events by thread are made anew. */
static bool link_pending(wr_tally *t)
{
  for (uint32_t i = 0; i < t->s.thread.count; i++) {
    wr_tally_thread *x = wr_table_at(&t->s.thread, i);
    x->first = x->newest = 0;
    if (x->open > MOST_OPEN) return false;
  }
  for (uint32_t i = 0; i < t->s.pending.count; i++) {
    wr_pending *p = wr_table_at(&t->s.pending, i);
    wr_tally_thread *x = wr_table_find(&t->s.thread, wr_key_of_one(WR_OF_THREAD, p->thread));
    if (!x) return false;
    p->before = x->newest;
    p->after = 0;
    if (p->before) ((wr_pending *)wr_table_at(&t->s.pending, p->before - 1))->after = i + 1;
    if (!x->first) x->first = i + 1;
    x->newest = i + 1;
  }
  t->waiting = t->s.pending.count;
  return true;
}

static weir_status use_state(wr_tally *t, const char *file, uint64_t bytes)
{
  wr_table *tables[TABLES];
  list_tables(t, tables);
  weir_status st = check_state_head(t, (const state_head *)(const void *)file, bytes, tables);
  if (!st) st = copy_tables(t, file, tables);
  if (st) return st;
  if (t->s.facts.count != 1) return refuse(t, "it has no facts");
  if (!texts_fit(t) || !numbers_fit(t)) return refuse(t, "pieces of it lie outside of it");
  return link_pending(t) ? WEIR_OK : refuse(t, "what waits in it is of no thread");
}

static bool read_whole(int fd, char *to, uint64_t bytes)
{
  while (bytes) {
    ssize_t n = read(fd, to, bytes < (1u << 30) ? bytes : 1u << 30);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= (uint64_t)n;
  }
  return true;
}

weir_status wr_tally_load(wr_tally *t)
{
  struct stat file;
  if (!lstat(t->path, &file) && S_ISLNK(file.st_mode)) return refuse(t, "it is a link");
  int fd = wr_open_regular(t->path, STATE_MOST, &file);
  if (fd < 0 && errno == ENOENT) return WEIR_ENOENT;
  if (fd < 0) return weir_fail_errno(WEIR_ECORRUPT, errno, "%s is no state of a tally", t->path);
  weir_status st = WEIR_OK;
  char *bytes = NULL;
  if (file.st_uid != geteuid())
    st = refuse(t, "it is another user's");
  else if (!(bytes = malloc((size_t)file.st_size)))
    st = wr_tally_no_memory(t);
  else if (!read_whole(fd, bytes, (uint64_t)file.st_size))
    st = refuse(t, "it cannot be read to its end");
  else
    st = use_state(t, bytes, (uint64_t)file.st_size);
  close(fd);
  free(bytes);
  return st;
}

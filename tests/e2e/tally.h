/* tally.h: how a victim counts for itself what it asked CUDA to do.
 *
 * A victim adds up, with no help from Weir, every call by exported name, and every byte by
 * direction, and lists every copy and memset; at its end it writes the sums as JSON. The tests hold
 * them against `weir report --format json` of the same run, and the list against what the device
 * did by the trace: they must agree exactly. */
#ifndef WEIR_TESTS_TALLY_H
#define WEIR_TESTS_TALLY_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums that are compared with the report's totals of the same names. */
#define TALLY_SUMS(X)                                                                              \
  X(alloc_calls)                                                                                   \
  X(alloc_bytes)                                                                                   \
  X(free_calls)                                                                                    \
  X(live_at_exit_bytes)                                                                            \
  X(imported_calls)                                                                                \
  X(imported_bytes)                                                                                \
  X(h2d_calls)                                                                                     \
  X(h2d_bytes)                                                                                     \
  X(d2h_calls)                                                                                     \
  X(d2h_bytes)                                                                                     \
  X(d2d_calls)                                                                                     \
  X(d2d_bytes)                                                                                     \
  X(p2p_calls)                                                                                     \
  X(p2p_bytes)                                                                                     \
  X(h2h_calls)                                                                                     \
  X(h2h_bytes)                                                                                     \
  X(memset_calls)                                                                                  \
  X(memset_bytes)                                                                                  \
  X(sync_explicit_calls)                                                                           \
  X(launches)

enum { TALLY_NAMES = 1024 };

typedef struct tally_name {
  char name[64];   /* exported symbol, variant suffix included */
  uint64_t calls;  /* all */
  uint64_t errors; /* of these, nonzero status */
} tally_name;

typedef struct tally_move {
  const char *way; /* of the sums above, without _calls: a literal */
  uint64_t bytes;
} tally_move;

typedef struct tally {
#define TALLY_FIELD(f) uint64_t f;
  TALLY_SUMS(TALLY_FIELD)
#undef TALLY_FIELD
  tally_name names[TALLY_NAMES]; /* open addressing by name */
  tally_move *moves;             /* copies and memsets that have bytes */
  size_t move_count, move_room;
} tally;

static inline void tally_move_add(tally *t, tally_move m)
{
  if (!m.bytes) return;
  if (t->move_count == t->move_room) {
    t->move_room = t->move_room ? 2 * t->move_room : 256;
    t->moves = (tally_move *)realloc(t->moves, t->move_room * sizeof *t->moves);
    if (!t->moves) abort();
  }
  t->moves[t->move_count++] = m;
}

/* A copy or memset of `n` bytes that a device does. */
#define TALLY_MOVED(t, way, n)                                                                     \
  ((t)->way##_calls++, (t)->way##_bytes += (n), tally_move_add(t, (tally_move){#way, (n)}))

static inline tally_name *tally_slot(tally *t, const char *name)
{
  uint32_t h = 2166136261u;
  for (const char *p = name; *p; p++)
    h = (h ^ (unsigned char)*p) * 16777619u;
  for (uint32_t i = h % TALLY_NAMES;; i = (i + 1) % TALLY_NAMES) {
    if (!t->names[i].name[0]) strncpy(t->names[i].name, name, sizeof t->names[i].name - 1);
    if (strcmp(t->names[i].name, name) == 0) return &t->names[i];
  }
}

/* Counts one call and passes its status through. */
static inline int tally_call(tally *t, const char *name, int status)
{
  tally_name *n = tally_slot(t, name);
  n->calls++;
  if (status) n->errors++;
  return status;
}

static inline void tally_add(tally *to, const tally *from)
{
#define TALLY_PLUS(f) to->f += from->f;
  TALLY_SUMS(TALLY_PLUS)
#undef TALLY_PLUS
  for (int i = 0; i < TALLY_NAMES; i++) {
    if (!from->names[i].calls) continue;
    tally_name *n = tally_slot(to, from->names[i].name);
    n->calls += from->names[i].calls;
    n->errors += from->names[i].errors;
  }
  for (size_t i = 0; i < from->move_count; i++)
    tally_move_add(to, from->moves[i]);
}

/* Writes {"totals":{...},"apis":[{"name","calls","errors"}...],"moves":["WAY BYTES"...]}.
 * Returns 0, or -1 and says why. */
static inline int tally_write(const tally *t, const char *path)
{
  FILE *f = fopen(path, "w");
  if (!f) return perror(path), -1;
  const char *comma = "";
  (void)fputs("{\"totals\":{", f);
#define TALLY_PRINT(x)                                                                             \
  (void)fprintf(f, "%s\"" #x "\":%llu", comma, (unsigned long long)t->x), comma = ",";
  TALLY_SUMS(TALLY_PRINT)
#undef TALLY_PRINT
  (void)fputs("},\"apis\":[", f);
  comma = "";
  for (int i = 0; i < TALLY_NAMES; i++) {
    if (!t->names[i].calls) continue;
    (void)fprintf(f, "%s{\"name\":\"%s\",\"calls\":%llu,\"errors\":%llu}", comma, t->names[i].name,
                  (unsigned long long)t->names[i].calls, (unsigned long long)t->names[i].errors);
    comma = ",";
  }
  (void)fputs("],\"moves\":[", f);
  for (size_t i = 0; i < t->move_count; i++)
    (void)fprintf(f, "%s\"%s %llu\"", i ? "," : "", t->moves[i].way,
                  (unsigned long long)t->moves[i].bytes);
  (void)fputs("]}\n", f);
  if (fclose(f) != 0) return perror(path), -1;
  return 0;
}

#endif

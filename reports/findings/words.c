/* words.c: see words.h. */
#include "reports/findings/words.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/queues/queues.h"

static const struct {
  const char *name;
  int value;
} words[] = {
    /* template.kind */
    {"ALLOC", WEIR_EV_ALLOC},
    {"FREE", WEIR_EV_FREE},
    {"COPY", WEIR_EV_COPY},
    {"MEMSET", WEIR_EV_MEMSET},
    {"WAIT", WEIR_EV_SYNC},
    {"LAUNCH", WEIR_EV_LAUNCH},
    {"STREAM", WEIR_EV_STREAM},
    {"EVENT", WEIR_EV_EVENT},
    {"CONTEXT", WEIR_EV_CONTEXT},
    {"RESET", WEIR_EV_RESET},
    {"HOSTREG", WEIR_EV_HOSTREG},
    {"CALL", WEIR_EV_CALL},
    {"CACHE", WEIR_EV_CACHE},
    {"RANGE", WEIR_EV_RANGE},
    /* template.copy of a copy */
    {"H2D", WEIR_COPY_HTOD},
    {"D2H", WEIR_COPY_DTOH},
    {"D2D", WEIR_COPY_DTOD},
    {"H2H", WEIR_COPY_HTOH},
    {"P2P", WEIR_COPY_PTOP},
    /* template.copy of a wait */
    {"FOR_EVENT", WEIR_SYNC_EVENT},
    {"STREAM_WAITS", WEIR_SYNC_STREAM_WAIT},
    {"FOR_STREAM", WEIR_SYNC_STREAM},
    {"FOR_CONTEXT", WEIR_SYNC_CONTEXT},
    {"QUERY", WEIR_SYNC_QUERY},
    /* template.copy of a cache's fact */
    {"POOL_HAS", WEIR_CACHE_POOL},
    {"DEVICE_HAS", WEIR_CACHE_DEVICE},
    /* template.mem and .src_mem */
    {"PAGEABLE", WEIR_MEM_PAGEABLE},
    {"PINNED", WEIR_MEM_PINNED},
    {"DEVICE", WEIR_MEM_DEVICE},
    {"MANAGED", WEIR_MEM_MANAGED},
    {"ARRAY", WEIR_MEM_ARRAY},
    {"HOST", WEIR_MEM_HOST},
    {"PHYSICAL", WEIR_MEM_PHYSICAL},
    {"IMPORTED", WEIR_MEM_IMPORTED},
    /* template.flags: a sum of these */
    {"ASYNC", WEIR_EVF_ASYNC},
    {"MAY_WAIT", WEIR_EVF_IMPLICIT_SYNC},
    {"PTDS", WEIR_EVF_PTDS},
    {"RUNTIME", WEIR_EVF_RUNTIME},
    {"CAPTURED", WEIR_EVF_CAPTURE},
    {"BATCH", WEIR_EVF_BATCH},
    {"CACHED", WEIR_EVF_CACHED},
    {"STAGED", WEIR_EVF_STAGED},
    {"PAUSED", WEIR_EVF_PAUSED},
    /* template.status */
    {"SUCCESS", 0},
    {"OUT_OF_MEMORY", 2},
    /* block.how */
    {"LIVE", WR_BLOCK_LIVE},
    {"FREED", WR_BLOCK_FREED},
    {"ENDED_BY_RESET", WR_BLOCK_RESET},
    /* copy_hash.outcome */
    {"HASHED", WEIR_HASH_HASHED},
    {"ALIKE", WEIR_HASH_ALIKE},
    /* device_work.kind */
    {"DEVICE_COPY", WEIR_DEVICE_COPY},
    {"DEVICE_MEMSET", WEIR_DEVICE_MEMSET},
    {"DEVICE_KERNEL", WEIR_DEVICE_KERNEL},
    {"DEVICE_GRAPH", WEIR_DEVICE_GRAPH},
    /* graph_change.fact */
    {"GRAPH_MADE", WEIR_GRAPH_MADE},
    {"GRAPH_UPDATED", WEIR_GRAPH_UPDATED},
    /* wait_detail.host: a sum of these */
    {"HOST_READS", WR_HOST_RESULT},
    {"HOST_WRITES", WR_HOST_SOURCE},
    /* template.stream and wait_detail.stream */
    {"LEGACY", WEIR_STREAM_LEGACY},
    {"PER_THREAD", WEIR_STREAM_PER_THREAD}};

static int find_word(const char *name, size_t bytes)
{
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strlen(words[i].name) == bytes && !memcmp(words[i].name, name, bytes)) return (int)i;
  return -1;
}

/* Bytes from there on that are no place for a word: a comment, or what is quoted; 0: it is neither. */
static size_t skipped(const char *at)
{
  if (at[0] == '-' && at[1] == '-') return strcspn(at, "\n");
  if (at[0] == '/' && at[1] == '*') {
    const char *end = strstr(at + 2, "*/");
    return end ? (size_t)(end + 2 - at) : strlen(at);
  }
  const char *pair = strchr("''\"\"``[]", at[0]);
  if (!at[0] || !pair || at[0] == ']') return 0;
  const char *end = strchr(at + 1, pair[1]);
  return end ? (size_t)(end + 1 - at) : strlen(at);
}

static int line_at(const char *text, const char *at, int line)
{
  for (; text < at; text++)
    line += *text == '\n';
  return line;
}

weir_status wr_words_put(char **out, const char *sql, const char *rule, int line)
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  size_t most = strlen(sql) + 1; /* a number is shorter than its word */
  char *text = *out = malloc(most);
  if (!text) return weir_fail(WEIR_ENOMEM, "reading rules: out of host memory");
  for (const char *at = sql; *at;) {
    size_t plain = strcspn(at, "$-/'\"`[");
    memcpy(text, at, plain);
    at += plain, text += plain;
    size_t bytes = skipped(at);
    size_t name = !bytes && *at == '$' ? strspn(at + 1, letters) : 0;
    int word = name ? find_word(at + 1, name) : -1;
    if (name && word < 0) {
      free(*out);
      *out = NULL;
      return weir_fail(WEIR_EINVAL, "%s: line %d: $%.*s is no word for a kind or a flag", rule,
                       line_at(sql, at, line), (int)(name < 64 ? name : 64), at + 1);
    }
    if (name) {
      text += snprintf(text, most - (size_t)(text - *out), "%d", words[word].value);
      at += 1 + name;
      continue;
    }
    bytes += !bytes && *at;
    memcpy(text, at, bytes);
    at += bytes, text += bytes;
  }
  *text = '\0';
  return WEIR_OK;
}

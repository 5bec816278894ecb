/* tags.c: see tags.h. */
#include "core/memory/tags.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "core/memory/pool.h"

__thread uint32_t tag_now __attribute__((tls_model("initial-exec")));

static pthread_mutex_t tags_lock = PTHREAD_MUTEX_INITIALIZER;
static char tags[WEIR_TAGS][32] = {"untagged"};
static unsigned tag_count = 1;

const char *tag_name(unsigned tag)
{
  return tags[tag % WEIR_TAGS];
}

unsigned tag_number(const char *name)
{
  pthread_mutex_lock(&tags_lock);
  unsigned i = 0;
  while (i < tag_count && strncmp(tags[i], name, sizeof tags[i] - 1) != 0)
    i++;
  if (i == tag_count) i = WEIR_TAGS;
  pthread_mutex_unlock(&tags_lock);
  return i;
}

weir_status weir_memory_set_tag(const char *tag)
{
  weir_status st = WEIR_OK;
  unsigned i = 0;
  if (!tag) {
    tag_now = 0;
    return WEIR_OK;
  }
  pthread_mutex_lock(&tags_lock);
  for (i = 1; i < tag_count && strncmp(tags[i], tag, sizeof tags[i] - 1) != 0; i++)
    ;
  if (i == WEIR_TAGS)
    st = weir_fail(WEIR_ELIMIT, "there are %d tags already, the most there can be", WEIR_TAGS - 1);
  else if (i == tag_count)
    (void)snprintf(tags[tag_count++], sizeof tags[0], "%s", tag);
  pthread_mutex_unlock(&tags_lock);
  if (!st) tag_now = i;
  return st;
}

void tags_forget(void)
{
  pthread_mutex_init(&tags_lock, NULL);
}

/* tags.c: see tags.h. */
#include "core/memory/tags.h"
#include "core/base/lock.h"

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

/* The place of a name from `first` on; tag_count: it has none. Lock held. */
static unsigned find_tag(unsigned first, const char *name)
{
  unsigned i = first;
  while (i < tag_count && strncmp(tags[i], name, sizeof tags[i] - 1) != 0)
    i++;
  return i;
}

unsigned tag_number(const char *name)
{
  HOLD_LOCK(&tags_lock);
  unsigned i = find_tag(0, name);
  return i == tag_count ? WEIR_TAGS : i;
}

weir_status weir_memory_set_tag(const char *tag)
{
  HOLD_LOCK(&tags_lock);
  unsigned i = tag ? find_tag(1, tag) : 0;
  if (i == WEIR_TAGS)
    return weir_fail(WEIR_ELIMIT, "there are %d tags already, the most there can be",
                     WEIR_TAGS - 1);
  if (i == tag_count) (void)snprintf(tags[tag_count++], sizeof tags[0], "%s", tag);
  tag_now = i;
  return WEIR_OK;
}

void tags_forget(void)
{
  pthread_mutex_init(&tags_lock, NULL);
}

/* config.c: WEIR_ALLOC_CONF. One table row a key. */
#include "core/memory/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/options.h"

const pool_config pool_config_default = {.max_split_bytes = UINT64_MAX,
                                         .expandable = true,
                                         .decay_ms = 10000,
                                         .pinned_register = true,
                                         .pinned_ahead = true};

enum kind { MEBIBYTES, NUMBER, SHARE, SWITCH };

static const struct key {
  const char *name;
  enum kind kind;
  size_t offset;     /* in pool_config */
  uint64_t min, max; /* MEBIBYTES, NUMBER */
} keys[] = {
#define ROW(name, kind, field, min, max)                                                           \
  {                                                                                                \
    name, kind, offsetof(pool_config, field), min, max                                             \
  }
    ROW("max_split_size_mb", MEBIBYTES, max_split_bytes, 20, 1 << 24),
    ROW("roundup_power2_divisions", NUMBER, roundup_divisions, 1, 64),
    ROW("garbage_collection_threshold", SHARE, gc_threshold, 0, 1),
    ROW("expandable_segments", SWITCH, expandable, 0, 1),
    ROW("whole_block", SWITCH, whole_block, 0, 1),
    ROW("decay_ms", NUMBER, decay_ms, 0, 1 << 30),
    ROW("soft_limit_mb", MEBIBYTES, soft_limit_bytes, 1, 1 << 24),
    ROW("limit_mb", MEBIBYTES, limit_bytes, 1, 1 << 24),
    ROW("pinned_limit_mb", MEBIBYTES, pinned_limit_bytes, 1, 1 << 24),
    ROW("pinned_num_register_threads", NUMBER, pinned_threads, 1, 64),
    ROW("pinned_use_cuda_host_register", SWITCH, pinned_register, 0, 1),
    ROW("pinned_ahead", SWITCH, pinned_ahead, 0, 1),
#undef ROW
};

enum { KEYS = sizeof keys / sizeof *keys };

static weir_status unknown(const char *name, const char *key)
{
  char valid[512];
  size_t used = 0;
  for (int i = 0; i < KEYS; i++)
    used +=
        (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "", keys[i].name);
  return fail_invalid("%s: the key %s is not known; valid: %s", name, key, valid);
}

static weir_status parse_share(double *out, const char *name, const char *text)
{
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value > 0 && value < 1))
    return fail_invalid("%s=%s is not a share; valid: above 0.0 and below 1.0", name, text);
  *out = value;
  return WEIR_OK;
}

static weir_status apply_setting(pool_config *config, const struct key *k, const char *name,
                                 const char *text)
{
  void *field = (char *)config + k->offset;
  char full[128];
  uint64_t number;
  weir_status st;
  (void)snprintf(full, sizeof full, "%s: %s", name, k->name);
  switch (k->kind) {
  case SWITCH:
    return option_bool(field, full, text);
  case SHARE:
    return parse_share(field, full, text);
  default:
    if ((st = option_number(&number, full, text, k->min, k->max))) return st;
    *(uint64_t *)field = k->kind == MEBIBYTES ? number << 20 : number;
    return WEIR_OK;
  }
}

static weir_status parse_item(pool_config *config, const char *name, char *item)
{
  char *value = strchr(item, ':');
  if (!value) return fail_invalid("%s: '%s' is not key:value; as in decay_ms:10000", name, item);
  *value++ = 0;
  for (int i = 0; i < KEYS; i++)
    if (!strcmp(keys[i].name, item)) return apply_setting(config, &keys[i], name, value);
  return unknown(name, item);
}

weir_status pool_config_parse(pool_config *config, const char *name, const char *text)
{
  pool_config next = *config;
  char copy[1024], *rest = copy, *item;
  if (!text || !*text) return WEIR_OK;
  if (strlen(text) >= sizeof copy)
    return fail_invalid("%s has %zu bytes; the most is %zu", name, strlen(text), sizeof copy - 1);
  (void)snprintf(copy, sizeof copy, "%s", text);
  while ((item = strsep(&rest, ","))) {
    TRY(parse_item(&next, name, item));
  }
  uint64_t n = next.roundup_divisions;
  if (n & (n - 1))
    return fail_invalid("%s: roundup_power2_divisions is %llu; valid: a power of two", name,
                        (unsigned long long)n);
  *config = next;
  return WEIR_OK;
}

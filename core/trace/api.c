/* api.c: the table of CUDA functions (api.def), and the hash two processes compare theirs by. */
#include "core/trace/api.h"

#include <stddef.h>
#include <string.h>

static const api_info rows[] = {
    {"", 0, WEIR_API_NONE, 0},
#define WEIR_API(number, name, layer, category, how) [number] = {name, layer, category, how},
#include "core/trace/api.def"
#undef WEIR_API
};

const uint32_t api_total = sizeof rows / sizeof *rows;

const api_info *api_row(uint32_t api)
{
  return api < api_total ? &rows[api] : NULL;
}

uint32_t api_find_name(const char *name)
{
  for (uint32_t i = 1; i < api_total; i++)
    if (rows[i].name && !strcmp(rows[i].name, name)) return i;
  return 0;
}

uint64_t api_table_hash(uint32_t count)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (uint32_t i = 1; i < count && i < api_total; i++) {
    const char *p = rows[i].name ? rows[i].name : "";
    do
      hash = (hash ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    while (*p++);
  }
  return hash;
}

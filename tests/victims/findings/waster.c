/* waster.c: a program that commits one waste, or its twin, which looks like it and commits none.
 *
 *   waster ID [twin]      ID: of the rule that finds it
 *   waster list           prints the ids
 */
#include "tests/victims/findings/waster.h"

static const waster *const tables[] = {content_wasters, copy_wasters, wait_wasters, memory_wasters};

int main(int argc, char **argv)
{
  const char *id = argc > 1 ? argv[1] : "";
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
    for (const waster *w = tables[t]; w->id; w++) {
      if (!strcmp(id, "list")) (void)puts(w->id);
      if (strcmp(id, w->id) != 0) continue;
      (argc > 2 && !strcmp(argv[2], "twin") ? w->twin : w->waste)();
      return 0;
    }
  return strcmp(id, "list") != 0;
}

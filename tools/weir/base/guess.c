/* guess.c: see guess.h. An edit is a letter too many, too few or wrong, or two that have changed
 * places. A third of a word's letters may be wrong, and a word may be cut short. */
#include "tools/weir/base/guess.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static unsigned fewer_edits(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Returns how many edits lead from one word to the other. UINT_MAX: one of them is too long to be a
 * name. */
static unsigned count_edits(const char *a, const char *b)
{
  unsigned at[GUESS_MOST][GUESS_MOST];
  size_t n = strlen(a), m = strlen(b);
  if (n >= GUESS_MOST || m >= GUESS_MOST) return UINT_MAX;
  for (unsigned i = 0; i <= n; i++)
    at[i][0] = i;
  for (unsigned j = 0; j <= m; j++)
    at[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    for (size_t j = 1; j <= m; j++) {
      at[i][j] = fewer_edits(fewer_edits(at[i - 1][j], at[i][j - 1]) + 1,
                             at[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at[i][j] = fewer_edits(at[i][j], at[i - 2][j - 2] + 1);
    }
  }
  return at[n][m];
}

void guess_offer(guess *g, const char *name)
{
  enum { CUT_SHORT = 3 };
  size_t n = strlen(g->word);
  unsigned edits = count_edits(g->word, name);
  bool near = edits <= (n + 1) / 3 && edits < n;
  if (n >= CUT_SHORT && strncmp(g->word, name, n) == 0) near = true, edits = 1;
  if (!near || (g->best && g->edits <= edits)) return;
  g->best = name;
  g->edits = edits;
}

void guess_offer_words(guess *g, const char *words, char *buffer)
{
  for (const char *at = words; *at;) {
    char name[GUESS_MOST];
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '-')
      n++;
    if (n && n < sizeof name) {
      memcpy(name, at, n);
      name[n] = 0;
      guess_offer(g, name);
    }
    if (g->best == name) g->best = memcpy(buffer, name, n + 1);
    at += n + (n == 0);
  }
}

char *guess_hint(const guess *g, const char *before)
{
  return g->best ? cmd_format(": did you mean '%s%s'?", before, g->best) : cmd_format("%s", "");
}

int guess_refuse(const cmd *c, const guess *g, const char *what, const char *otherwise)
{
  char *hint = guess_hint(g, "");
  cmd_usage(c, "there is no %s '%s'%s", what, g->word, g->best ? hint : otherwise);
  free(hint);
  return CMD_USAGE;
}

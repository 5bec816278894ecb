/* guess.h: the name that a mistyped word most likely means. */
#ifndef WEIR_TOOLS_WEIR_BASE_GUESS_H
#define WEIR_TOOLS_WEIR_BASE_GUESS_H

#include "tools/weir/base/cmd.h"

typedef struct guess {
  const char *word; /* borrowed, as are the names */
  const char *best; /* the nearest of the names so far; NULL: none is near */
  unsigned edits;   /* from `word` to `best` */
} guess;

/* Offers a name that `word` may mean. */
void guess_offer(guess *g, const char *name);

/* Offers the words of a text, with anything but letters, digits and '-' between them. The best of
 * them is copied to `buffer`, of GUESS_MOST bytes. */
enum { GUESS_MOST = 32 };
void guess_offer_words(guess *g, const char *words, char *buffer);

/* Returns ": did you mean 'BEFOREname'?", or "" where no name is near. New. */
char *guess_hint(const guess *g, const char *before);

/* Prints "there is no WHAT 'WORD'", with the nearest name or, where none is near, with `otherwise`.
 * Returns CMD_USAGE. */
int guess_refuse(const cmd *c, const guess *g, const char *what, const char *otherwise);

#endif

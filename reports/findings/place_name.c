/* place_name.c: see place_name.h. What begins with '<' without a name in front of it is no list of arguments: Python's
 * "<module>", Rust's "<T as U>::f". An operator's sign is part of its name. */
#include "reports/findings/place_name.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char operator_word[] = "operator", unnamed[] = "(anonymous namespace)",
                  signs[] = "<>=!+-*/%^&|~,[]";

static bool is_of_a_name(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of an operator's name at `at`, as of "operator<<"; 0: none begins there. */
static size_t operator_bytes(const char *function, const char *at)
{
  const size_t word = sizeof(operator_word) - 1;
  if (strncmp(at, operator_word, word) != 0 || (at > function && is_of_a_name(at[-1]))) return 0;
  if (!strncmp(at + word, "()", 2)) return word + 2;
  return word + strspn(at + word, signs);
}

/* Behind the bracket that closes the one at `at`; NULL: none does. */
static const char *end_of_brackets(const char *at)
{
  const char open = *at, close = open == '<' ? '>' : ')';
  size_t depth = 0;
  for (; *at; at++) {
    if (*at == open) depth++;
    if (*at == close && at[-1] != '-' && !--depth) return at + 1;
  }
  return NULL;
}

/* How many bytes at `at` are no part of the stem, which so far ends with `last`; SIZE_MAX: a bracket is not closed. */
static size_t dropped_bytes(const char *at, char last)
{
  const bool apart = last && !strncmp(at, " <", 2) && strchr(signs, last); /* "operator<< <int>" */
  const bool arguments = apart || (*at == '<' && is_of_a_name(last));
  const bool parameters = *at == '(' && last && strncmp(at, unnamed, sizeof(unnamed) - 1) != 0;
  if (!arguments && !parameters) return 0;
  const char *end = end_of_brackets(at + apart);
  return end ? (size_t)(end - at) : SIZE_MAX;
}

char *wr_place_stem(const char *function)
{
  char *stem = strdup(function), *to = stem;
  const char *at = function;
  while (stem && *at) {
    size_t dropped = dropped_bytes(at, to > stem ? to[-1] : 0), kept = operator_bytes(function, at);
    if (!kept && !dropped) kept = 1;
    if (!kept && dropped == SIZE_MAX) return memcpy(stem, function, strlen(function) + 1);
    if (kept) memcpy(to, at, kept), to += kept;
    at += kept ? kept : dropped;
  }
  if (stem) *to = 0;
  return stem;
}

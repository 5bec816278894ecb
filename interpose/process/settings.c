/* settings.c: see settings.h. */
#include "interpose/process/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "interpose/process/process.h"

void process_bad_option(const char *name, weir_status status)
{
  if (status == WEIR_OK) return;
  process_say("%s; the default is used.", weir_error_message());
  unsetenv(name);
}

bool process_flag_option(const char *name)
{
  bool on = false;
  const char *text = getenv(name);
  if (text) process_bad_option(name, option_bool(&on, name, text));
  return on;
}

bool process_choice_option(unsigned *choice, const char *name, const char *const *words)
{
  const char *text = getenv(name);
  if (!text) return false;
  weir_status st = option_choice(choice, name, text, words);
  process_bad_option(name, st);
  return st == WEIR_OK;
}

bool process_absolute_path(char out[PATH_MAX], const char *text)
{
  char cwd[PATH_MAX];
  int n;

  if (text[0] == '/')
    n = snprintf(out, PATH_MAX, "%s", text);
  else
    n = getcwd(cwd, sizeof cwd) ? snprintf(out, PATH_MAX, "%s/%s", cwd, text) : PATH_MAX;
  if (n >= 0 && n < PATH_MAX) return true;
  out[0] = 0;
  return false;
}

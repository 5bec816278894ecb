/* options.c: what of the recorder the user decides by the environment. */
#include <stdlib.h>
#include "interpose/process/part.h"
#include "interpose/process/settings.h"
#include "interpose/record/access.h"

static void read_options(void)
{
  static const char name[] = "WEIR_ACCESS";
  const char *text = getenv(name);
  bool on = true;
  if (text) process_bad_option(name, option_bool(&on, name, text));
  access_wanted = on && !process_unrecorded;
}

static const process_part options_part = {.start = read_options};
PROCESS_PART(options_part);

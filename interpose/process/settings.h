/* settings.h: how the folders read their options from the environment, at the start. A bad one is
 * reported, once a process tree, and its default serves. */
#ifndef WEIR_INTERPOSE_SETTINGS_H
#define WEIR_INTERPOSE_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include "core/base/options.h"

/* Says what is wrong with the option that was read with this status, if anything is. */
void process_bad_option(const char *name, weir_status status);

/* Whether it is there and set. */
bool process_flag_option(const char *name);

/* Which of `words` (ended by NULL) it is, into *choice. False: none, or it is not there. */
bool process_choice_option(unsigned *choice, const char *name, const char *const *words);

/* Makes `text` absolute, with the folder the process started in. False: it can't be. */
bool process_absolute_path(char out[PATH_MAX], const char *text);

#endif

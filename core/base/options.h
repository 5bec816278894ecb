/* options.h: the one place where text from an environment variable or a command line becomes a
 * value.
 *
 * Every parser takes the option's name as the user wrote it ("WEIR_STACKS", "--mode"), so that its
 * message states which option is wrong, what was given, and what would be right. On failure *out is
 * untouched and WEIR_EINVAL is returned. Leading or trailing blanks are errors, as is "". */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/require.h"

/* Bytes: a decimal number and an optional K, M, G or T (powers of 1024; "64M", "64MB", "64MiB";
 * either case). At least `min`, which the message states. */
weir_status option_size(uint64_t *out, const char *name, const char *text, uint64_t min);

/* A time, in ns: a decimal number and ms, s, min or h; not 0. */
weir_status option_time(uint64_t *out, const char *name, const char *text);

/* on|off, yes|no, true|false, 1|0; either case. */
weir_status option_bool(bool *out, const char *name, const char *text);

/* A decimal number from min to max. */
weir_status option_number(uint64_t *out, const char *name, const char *text, uint64_t min,
                          uint64_t max);

/* "off" (0 is stored) or a number from 1 to max. */
weir_status option_off_or_number(uint64_t *out, const char *name, const char *text, uint64_t max);

/* One of `choices` (NULL ends them), exact; *out is its index. */
weir_status option_choice(unsigned *out, const char *name, const char *text,
                          const char *const *choices);

/* Some of `choices` (NULL ends them; 32 at most), with commas between; *out has bit i for
 * choices[i]. "none" is no bit. */
weir_status option_choices(unsigned *out, const char *name, const char *text,
                           const char *const *choices);

#endif

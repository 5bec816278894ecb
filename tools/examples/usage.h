/* usage.h: what a program does first with its arguments: it answers --help, and refuses options
 * that it lacks. */
#ifndef WEIR_TOOLS_EXAMPLES_USAGE_H
#define WEIR_TOOLS_EXAMPLES_USAGE_H

#include <stdio.h>
#include <string.h>
#include <weir.h>

enum { GO_ON = -1 };

/* Whether `argument` is that option or, of one that ends with "=", begins with it. */
static inline int is_option(const char *argument, const char *option)
{
  size_t length = strlen(option);
  return option[length - 1] == '=' ? !strncmp(argument, option, length) : !strcmp(argument, option);
}

/* GO_ON, or what main() returns at once. arguments: what may follow the program's name; options:
 * those there are, to a NULL; what begins with no "-" is none. */
static inline int answer_usage(int argc, char **argv, const char *name, const char *arguments,
                               const char *const *options)
{
  for (int i = 1; i < argc; i++) {
    int known = argv[i][0] != '-';
    if (!strcmp(argv[i], "--help")) {
      printf("usage: %s%s%s\n", name, *arguments ? " " : "", arguments);
      return 0;
    }
    for (const char *const *o = options; *o && !known; o++)
      known = is_option(argv[i], *o);
    if (known) continue;
    (void)fprintf(stderr, "%s: there is no option %s; usage: %s%s%s\n", name, argv[i], name,
                  *arguments ? " " : "", arguments);
    return 2;
  }
  return GO_ON;
}

/* main() of an example whose one option is --disable-cuda: `run` has the device, the GPU where
 * there is one. */
static inline int run_example(int argc, char **argv, const char *name,
                              weir_status (*run)(weir_device device))
{
  static const char *const options[] = {"--disable-cuda", NULL};
  int usage = answer_usage(argc, argv, name, "[--disable-cuda]", options);
  if (usage != GO_ON) return usage;
  weir_status st = run(weir_device_select(argc > 1 && !strcmp(argv[1], "--disable-cuda")));
  if (st) (void)fprintf(stderr, "%s: %s\n", name, weir_error_message());
  return st != WEIR_OK;
}

#endif

/*
 * The main of a program that holds several suites. Suites that link the same objects are one file
 * with a name for each: linked one by one, a hundred copies of the engine took 1.6 GB, and 4 GB
 * under a sanitizer. Each suite's own main has been renamed to suite_NAME (tests/rules.mk), and the
 * name under which the program is started says which of them runs.
 *
 * SUITES, from the make rule, is S(NAME) for every suite.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifndef SUITES /* a linter's look at this file alone */
#define SUITES S(none)
#endif

#define S(name) int suite_##name(int argc, char **argv, char **environment);
SUITES
#undef S

typedef int suite_main(int argc, char **argv, char **environment);

static const struct {
  const char *name; /* of the suite and of its link to this program */
  suite_main *run;  /* its main */
} suites[] = {
#define S(name) {#name, suite_##name},
    SUITES
#undef S
};

int main(int argc, char **argv, char **environment)
{
  for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
    if (!strcmp(suites[i].name, program_invocation_short_name))
      return suites[i].run(argc, argv, environment);
  (void)fprintf(
      stderr, "%s: no suite of that name in this program; it has:", program_invocation_short_name);
  for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++)
    (void)fprintf(stderr, " %s", suites[i].name);
  (void)fputc('\n', stderr);
  return 2;
}

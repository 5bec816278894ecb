/* test_surface.c: every entry point of NVIDIA's runtime exists in the stand-in, by name and
 * version, in both forms of it, and what is not done says so and is listed.
 *
 * Environment (the runner's): WEIR_BUILD the build folder, CUDA_HOME the Toolkit. */
#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1000, NOT_SUPPORTED = 801, INSUFFICIENT_DRIVER = 35 };

static const char *self; /* this program */

struct names {
  char *name[MOST];
  int count;
};

static const char *environment(const char *name)
{
  const char *value = getenv(name);
  ck_assert_msg(value && *value, "%s is not set", name);
  return value;
}

static char *format(const char *form, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *form, ...)
{
  char *s = NULL;
  va_list list;
  va_start(list, form);
  ck_assert_int_ge(vasprintf(&s, form, list), 0);
  va_end(list);
  return s;
}

/* The lines a command prints; frees the command. */
static struct names lines(char *command)
{
  struct names n = {.count = 0};
  char *line = NULL;
  size_t room = 0;
  FILE *f = popen(command, "r");
  ck_assert_ptr_nonnull(f);
  free(command);
  while (n.count < MOST && getline(&line, &room, f) > 0) {
    line[strcspn(line, "\n")] = 0;
    n.name[n.count++] = strdup(line);
  }
  free(line);
  pclose(f);
  return n;
}

static void forget(struct names *n)
{
  for (int i = 0; i < n->count; i++)
    free(n->name[i]);
}

static void check_equal(struct names a, struct names b)
{
  ck_assert_int_gt(a.count, 400);
  for (int i = 0; i < a.count && i < b.count; i++)
    ck_assert_str_eq(a.name[i], b.name[i]);
  ck_assert_int_eq(a.count, b.count);
  forget(&a);
  forget(&b);
}

/* Function names of a shared library, versions and all. */
static struct names exported(const char *folder, const char *library)
{
  return lines(
      format("nm -D --defined-only '%s/%s' | awk '$2 == \"T\" { print $3 }' | LC_ALL=C sort",
             folder, library));
}

START_TEST(the_shared_library_exports_what_nvidias_does)
{
  check_equal(exported(environment("CUDA_HOME"), "lib64/libcudart.so.13"),
              exported(environment("WEIR_BUILD"), "lib/sim/libcudart.so.13"));
}
END_TEST

START_TEST(the_archive_has_the_same_functions)
{
  const char *build = environment("WEIR_BUILD");
  check_equal(
      exported(build, "lib/sim/libcudart.so.13"),
      lines(format("nm -g --defined-only '%s/lib/sim/libweir_sim_cudart_static.a' | "
                   "awk '$2 == \"T\" && $3 ~ /^(__)?cuda/ { print $3 \"@@libcudart.so.13\" }' "
                   "| LC_ALL=C sort",
                   build)));
}
END_TEST

/* Arguments of any type: an entry point that is not done looks at none, here or in the driver. */
struct zeros {
  char on_the_stack[256];
};
typedef int entry_point(long, long, long, long, long, long, struct zeros);

START_TEST(what_is_listed_as_unsupported_says_so)
{
  struct names listed =
      lines(format("cat '%s/lib/sim/unsupported-runtime.txt'", environment("WEIR_BUILD")));
  void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
  ck_assert_msg(runtime != NULL, "%s", dlerror());
  int (*last)(void) = (int (*)(void))(uintptr_t)dlsym(runtime, "cudaGetLastError");
  ck_assert_int_gt(listed.count, 0);
  int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(quiet, STDERR_FILENO); /* each says so once */
  for (int i = 0; i < listed.count; i++) {
    entry_point *f = (entry_point *)(uintptr_t)dlsym(runtime, listed.name[i]);
    ck_assert_msg(f != NULL, "%s is listed and does not exist", listed.name[i]);
    int error = f(0, 0, 0, 0, 0, 0, (struct zeros){{0}});
    ck_assert_msg(error == NOT_SUPPORTED, "%s answers %d", listed.name[i], error);
    ck_assert_int_eq(last(), NOT_SUPPORTED);
  }
  forget(&listed);
}
END_TEST

/* Programs that are linked against CUPTI load; what it does not do answers so, once by name. */
START_TEST(a_program_with_cupti_loads_and_learns_what_is_not_done)
{
  const char *home = environment("CUDA_HOME");
  void *cupti = dlopen("libcupti.so.13", RTLD_NOW);
  ck_assert_msg(cupti != NULL, "%s", dlerror());
  int (*version)(unsigned *) = (int (*)(unsigned *))(uintptr_t)dlsym(cupti, "cuptiGetVersion");
  int (*name)(int, const char **) =
      (int (*)(int, const char **))(uintptr_t)dlsym(cupti, "cuptiGetResultString");
  int (*metric)(void *, void *, void *) =
      (int (*)(void *, void *, void *))(uintptr_t)dlsym(cupti, "cuptiMetricGetIdFromName");
  unsigned v = 0;
  const char *text = NULL;
  ck_assert_int_eq(version(&v), 0);
  ck_assert_uint_eq(v, 130001);
  ck_assert_int_eq(version(NULL), 1);
  ck_assert_int_eq(name(27, &text), 0);
  ck_assert_str_eq(text, "CUPTI_ERROR_NOT_SUPPORTED");
  ck_assert_int_eq(name(9999, &text), 1);
  int out[2];
  ck_assert_int_eq(pipe(out), 0);
  dup2(out[1], STDERR_FILENO);
  ck_assert_int_eq(metric(NULL, NULL, NULL), 27);
  ck_assert_int_eq(metric(NULL, NULL, NULL), 27);
  char said[400];
  ssize_t n = read(out[0], said, sizeof said - 1);
  said[n < 0 ? 0 : n] = 0;
  ck_assert_str_eq(said, "weir sim: cuptiMetricGetIdFromName is not done by the software device: "
                         "answers 27 (CUPTI_ERROR_NOT_SUPPORTED)\n");
  struct names documented = /* none where the Toolkit has no CUPTI */
      lines(
          format("cat '%s'/include/cupti*.h 2>/dev/null | grep -oE 'CUPTIAPI +cupti[A-Za-z0-9_]+' "
                 "| awk '{ print $2 }' | grep -v Checkpoint | LC_ALL=C sort -u",
                 home));
  for (int i = 0; i < documented.count; i++)
    ck_assert_msg(dlsym(cupti, documented.name[i]) != NULL, "no %s", documented.name[i]);
  forget(&documented);
}
END_TEST

/* Without a driver the runtime still loads, counts and explains. `without_driver` runs this program
 * again with a copy of the library as the only one to be found. */
static int without_driver(void)
{
  void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (!runtime || dlopen("libcuda.so.1", RTLD_NOW)) return 77; /* a real driver: nothing to show */
  int (*count)(int *) = (int (*)(int *))(uintptr_t)dlsym(runtime, "cudaGetDeviceCount");
  int (*version)(int *) = (int (*)(int *))(uintptr_t)dlsym(runtime, "cudaDriverGetVersion");
  int n = 7, v = 7;
  if (count(&n) != INSUFFICIENT_DRIVER || n != 0) return 1;
  if (version(&v) != 0 || v != 0) return 2;
  return 0;
}

START_TEST(no_driver_is_said_as_documented)
{
  char *command =
      format("d=$(mktemp -d) && cp '%s/lib/sim/libcudart.so.13' $d && cp '%s' $d/self && "
             "LD_LIBRARY_PATH=$d $d/self without-driver; r=$?; rm -r $d; exit $r",
             environment("WEIR_BUILD"), self);
  int status = system(command);
  free(command);
  ck_assert_msg(WIFEXITED(status), "status %d", status);
  ck_assert_msg(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77, "it ended with %d",
                WEXITSTATUS(status));
}
END_TEST

int main(int argc, char **argv)
{
  self = argv[0];
  if (argc > 1 && strcmp(argv[1], "without-driver") == 0) return without_driver();
  Suite *suite = suite_create("runtime stand-in's surface");
  TCase *c = tcase_create("all");
  tcase_add_test(c, the_shared_library_exports_what_nvidias_does);
  tcase_add_test(c, the_archive_has_the_same_functions);
  tcase_add_test(c, what_is_listed_as_unsupported_says_so);
  tcase_add_test(c, a_program_with_cupti_loads_and_learns_what_is_not_done);
  tcase_add_test(c, no_driver_is_said_as_documented);
  tcase_set_timeout(c, 60);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

/* test_examples.c: the example programs on the software device, with one device and with two, on
 * the shared runtime and on the static archive: each finds its own result right, prints the same in
 * each case, and would have noticed a wrong one.
 *
 * Environment (the runner's): WEIR_BUILD, the build folder. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Programs built on the runtime; sizes small enough for a slow machine. */
static const struct example {
  const char *name, *argument;
  int devices; /* how many it can use: with more it divides its work otherwise */
} examples[] = {{"train", "3", 1}, {"pipeline", "8", 1}, {"stencil", "30", 2}};
enum { EXAMPLES = sizeof examples / sizeof examples[0] };

struct outcome {
  int status;        /* as exit() was told; -1: ended by a signal */
  char output[4096]; /* of stdout */
};

static const char *required_build_folder(void)
{
  const char *folder = getenv("WEIR_BUILD");
  ck_assert_msg(folder && *folder, "WEIR_BUILD is not set");
  return folder;
}

/* Runs a program of the build folder on the software device with more environment. (What an example
 * leaks is its own affair, also where the stand-in has a leak checker in it.) */
static struct outcome run_example(const char *environment, const char *program,
                                  const char *argument)
{
  struct outcome o = {.status = -1};
  char command[2048];
  (void)snprintf(
      command, sizeof command,
      "LD_LIBRARY_PATH='%s/lib/sim' ASAN_OPTIONS=detect_leaks=0 %s '%s/%s' %s 2>/dev/null",
      required_build_folder(), environment, required_build_folder(), program, argument);
  FILE *f = popen(command, "r");
  ck_assert_ptr_nonnull(f);
  size_t n = fread(o.output, 1, sizeof o.output - 1, f);
  o.output[n] = 0;
  int status = pclose(f);
  if (WIFEXITED(status)) o.status = WEXITSTATUS(status);
  return o;
}

static void check_right(struct outcome o, const char *name)
{
  char good[64];
  (void)snprintf(good, sizeof good, "%s: ok\n", name);
  ck_assert_msg(o.status == 0, "%s ended with %d and said: %s", name, o.status, o.output);
  ck_assert_msg(strstr(o.output, good) != NULL, "%s said: %s", name, o.output);
}

START_TEST(an_example_is_right_with_one_device_and_two_shared_and_static)
{
  const struct example *e = &examples[_i];
  char path[64], first[4096];
  (void)snprintf(path, sizeof path, "examples/%s", e->name);
  struct outcome o = run_example("WEIR_SIM_DEVICES=1", path, e->argument);
  check_right(o, e->name);
  memcpy(first, o.output, sizeof first);
  o = run_example("WEIR_SIM_DEVICES=2", path, e->argument);
  check_right(o, e->name);
  ck_assert_str_eq(o.output, first);
  (void)snprintf(path, sizeof path, "examples/sim_static/%s", e->name);
  for (int devices = 1; devices <= 2; devices++) {
    o = run_example(devices == 1 ? "WEIR_SIM_DEVICES=1" : "WEIR_SIM_DEVICES=2", path, e->argument);
    check_right(o, e->name);
    ck_assert_str_eq(o.output, first);
  }
}
END_TEST

/* The driver sees the same calls whether the runtime is shared or in the program. */
START_TEST(a_static_program_makes_the_driver_calls_of_a_shared_one)
{
  const struct example *e = &examples[_i];
  char counts[2][128], path[64], environment[256], command[512];
  for (int i = 0; i < 2; i++) {
    strcpy(counts[i], "/tmp/weir-examples-XXXXXX");
    int fd = mkstemp(counts[i]);
    ck_assert_int_ge(fd, 0);
    (void)snprintf(environment, sizeof environment, "WEIR_SIM_DEVICES=2 WEIR_SIM_COUNTS=%s",
                   counts[i]);
    (void)snprintf(path, sizeof path, "examples/%s%s", i ? "sim_static/" : "", e->name);
    check_right(run_example(environment, path, e->argument), e->name);
  }
  (void)snprintf(command, sizeof command, "test -s %s && diff %s %s >&2", counts[0], counts[0],
                 counts[1]);
  int status = system(command);
  (void)remove(counts[0]);
  (void)remove(counts[1]);
  ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(an_example_notices_a_wrong_result)
{
  const struct example *e = &examples[_i];
  char path[64];
  (void)snprintf(path, sizeof path, "tests/examples/no_twins/%s",
                 e->name); /* its kernels do nothing */
  struct outcome o = run_example("WEIR_SIM_DEVICES=1", path, e->argument);
  ck_assert_int_eq(o.status, 1);
  ck_assert_ptr_null(strstr(o.output, ": ok"));
}
END_TEST

START_TEST(an_example_stops_at_an_error)
{
  const struct example *e = &examples[_i];
  char path[64];
  (void)snprintf(path, sizeof path, "examples/%s", e->name);
  struct outcome o = run_example("WEIR_SIM_FAIL=cuMemAlloc_v2:2=2", path, e->argument);
  ck_assert_int_eq(o.status, 2);
}
END_TEST

START_TEST(the_driver_example_is_right_with_one_device_and_two)
{
  struct outcome o = run_example("WEIR_SIM_DEVICES=1", "examples/driver", "96");
  check_right(o, "driver");
  o = run_example("WEIR_SIM_DEVICES=2", "examples/driver", "");
  check_right(o, "driver");
  ck_assert_int_eq(run_example("WEIR_SIM_FAIL=cuLaunchKernel:1=1", "examples/driver", "16").status,
                   2);
}
END_TEST

/* Random weights of one seed: the model, and the largest of its outputs. */
START_TEST(a_transformer_gives_on_a_device_what_it_gives_on_the_cpu)
{
  static const char *const paths[] = {"examples/encoder", "examples/decoder"};
  struct outcome cpu = run_example("", paths[_i], "--size=2,16,4,31,8 --disable-cuda");
  struct outcome device = run_example("WEIR_SIM_DEVICES=1", paths[_i], "--size=2,16,4,31,8");
  ck_assert_int_eq(cpu.status, 0);
  ck_assert_int_eq(device.status, 0);
  ck_assert_ptr_nonnull(strstr(cpu.output, "for each of 4 tokens, the largest "));
  ck_assert_str_eq(device.output, cpu.output);
  ck_assert_int_eq(run_example("", paths[_i], "--size=2,16,4,31").status, 2);
  ck_assert_int_eq(run_example("", paths[_i], "--size=1,8,2,9,8 no-file no-file none").status, 1);
}
END_TEST

START_TEST(the_allocator_example_runs_and_says_what_is_missing)
{
  const char *wanted = "as it should be: CUDA out of memory.\n0 MiB live, 64 MiB cached\n";
  struct outcome o = run_example("", "examples/memory", "");
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.output, wanted);
  ck_assert_int_eq(run_example("WEIR_SIM_DEVICES=0", "examples/memory", "").status, 1);
  ck_assert_int_eq(run_example("WEIR_SIM_FAIL=cuMemCreate:9=999", "examples/memory", "").status, 1);
}
END_TEST

/* Programs on Weir's own library (those that are told to do without CUDA by an argument, first). */
static const char *const engine[] = {"infer",    "linear",    "loader",    "streams",
                                     "parallel", "train_mlp", "train_cnn", "train_text"};
enum { ENGINE = sizeof engine / sizeof engine[0], WITH_SWITCH = 4 };

/* The same output every way: no device, all hidden, the switch. */
START_TEST(an_engine_example_is_right_without_a_device)
{
  char path[64], first[4096];
  (void)snprintf(path, sizeof path, "examples/%s", engine[_i]);
  struct outcome o = run_example("WEIR_SIM_DEVICES=0", path, "");
  ck_assert_msg(o.status == 0, "%s ended with %d and said: %s", path, o.status, o.output);
  ck_assert_uint_gt(strlen(o.output), 10);
  memcpy(first, o.output, sizeof first);
  o = run_example("WEIR_SIM_DEVICES=2 CUDA_VISIBLE_DEVICES=", path, "");
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.output, first);
  if (_i >= WITH_SWITCH) return;
  o = run_example("WEIR_SIM_FAIL='cuInit:*=999'", path, "--disable-cuda");
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.output, first);
}
END_TEST

static const char *const answering[] = {"infer",    "linear",    "loader",    "streams",
                                        "parallel", "train_mlp", "train_cnn", "train_text",
                                        "memory",   "resnet18",  "encoder",   "decoder"};
enum { ANSWERING = sizeof answering / sizeof answering[0] };

START_TEST(an_engine_example_has_a_usage)
{
  char path[64];
  (void)snprintf(path, sizeof path, "examples/%s", answering[_i]);
  struct outcome o = run_example("WEIR_SIM_DEVICES=0", path, "--help");
  ck_assert_int_eq(o.status, 0);
  ck_assert(!strncmp(o.output, "usage: ", 7) && strstr(o.output, answering[_i]));
  o = run_example("WEIR_SIM_DEVICES=0", path, "--nonsense 2>&1 #");
  ck_assert_int_eq(o.status, 2);
  ck_assert_ptr_nonnull(strstr(o.output, ": there is no option --nonsense; usage: "));
}
END_TEST

/* Training takes long, and takes one device of however many: it is tried with one number. */
START_TEST(an_engine_example_says_the_same_with_any_number_of_devices)
{
  static const char *const devices[] = {"WEIR_SIM_DEVICES=1", "WEIR_SIM_DEVICES=2",
                                        "WEIR_SIM_DEVICES=8"};
  char path[64];
  (void)snprintf(path, sizeof path, "examples/%s", engine[_i]);
  struct outcome first = run_example("WEIR_SIM_DEVICES=0", path, "");
  bool trains = strncmp(engine[_i], "train_", 6) == 0;
  for (size_t i = trains; i < (trains ? 2 : sizeof devices / sizeof devices[0]); i++) {
    struct outcome o = run_example(devices[i], path, "");
    ck_assert_msg(o.status == 0, "%s ended with %d and said: %s", path, o.status, o.output);
    ck_assert_str_eq(o.output, first.output);
  }
}
END_TEST

START_TEST(an_engine_example_uses_the_device_where_there_is_one)
{
  char path[64];
  (void)snprintf(path, sizeof path, "examples/%s", engine[_i]);
  ck_assert_int_eq(
      run_example("WEIR_SIM_MEMORY=64M WEIR_SIM_FAIL='cuMemCreate:*=2,cuMemAlloc_v2:*=2'", path, "")
          .status,
      1);
}
END_TEST

/* Those that train, with a module of each, as a report calls it, and what it has made or been
 * named. */
static const struct trained {
  const char *name, *modules[3];
} trained[] = {
    {"train_mlp", {"0", "2", "Sequential.1"}},
    {"train_cnn", {"3", "Sequential.1", "Sequential.2"}},
    {"train_text", {"wte", "Gpt.h.0.attn.c_attn", "Gpt.h.1.mlp.gelu"}},
};
enum { TRAINED = sizeof trained / sizeof trained[0] };

START_TEST(training_divides_batches_among_devices)
{
  char path[64];
  (void)snprintf(path, sizeof path, "examples/%s", trained[_i].name);
  check_right(run_example("WEIR_SIM_DEVICES=2", path, "--devices 2"), trained[_i].name);
  ck_assert_int_eq(run_example("WEIR_SIM_DEVICES=2", path, "--devices 3").status, 1);
  ck_assert_int_eq(run_example("WEIR_SIM_DEVICES=2", path, "--devices none").status, 1);
  ck_assert_int_eq(run_example("WEIR_SIM_DEVICES=2", path, "--weights none").status, 1);
}
END_TEST

START_TEST(training_says_its_modules_in_the_report)
{
  const struct trained *t = &trained[_i];
  char trace[] = "/tmp/weir-examples-XXXXXX", command[512], report[1 << 15], wanted[64];
  int fd = mkstemp(trace);
  ck_assert_int_ge(fd, 0);
  (void)snprintf(command, sizeof command,
                 "'%s/bin/weir' run --force --sim=1 -o %s -- '%s/examples/%s' >/dev/null 2>&1 && "
                 "'%s/bin/weir' report -f json %s",
                 required_build_folder(), trace, required_build_folder(), t->name,
                 required_build_folder(), trace);
  FILE *f = popen(command, "r");
  ck_assert_ptr_nonnull(f);
  bool found[3] = {false};
  while (fgets(report, sizeof report, f))
    for (int i = 0; i < 3; i++) {
      (void)snprintf(wanted, sizeof wanted, "\"module\": \"%s\"", t->modules[i]);
      found[i] = found[i] || strstr(report, wanted);
    }
  ck_assert_int_eq(pclose(f), 0);
  (void)remove(trace);
  for (int i = 0; i < 3; i++)
    ck_assert_msg(found[i], "%s: no %s in its report", t->name, t->modules[i]);
}
END_TEST

START_TEST(a_transformer_learns_a_text_of_ones_own)
{
  char file[] = "/tmp/weir-examples-XXXXXX", argument[64];
  int fd = mkstemp(file);
  ck_assert_int_ge(fd, 0);
  FILE *f = fdopen(fd, "w");
  ck_assert_ptr_nonnull(f);
  (void)snprintf(argument, sizeof argument, "--device cpu --text %s", file);
  for (int i = 0; i < 128; i++)
    (void)fputc("abcde"[i % 5], f);
  (void)fflush(f);
  ck_assert_int_eq(run_example("", "examples/train_text", argument).status, 1); /* too short */
  (void)fputc('d', f);
  (void)fclose(f);
  check_right(run_example("", "examples/train_text", argument), "train_text");
  ck_assert_int_eq(run_example("", "examples/train_text", "--text /no/file").status, 1);
  (void)remove(file);
}
END_TEST

/* A sanitized library cannot be loaded into a python that is not. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WITH_PYTHON
START_TEST(the_python_examples_are_right_with_one_device_and_two)
{
  const char *wanted = "pageable: ok\npinned: ok\nmemset: ok\n";
  for (int devices = 1; devices <= 2; devices++) {
    struct outcome o = run_example(devices == 1 ? "WEIR_SIM_DEVICES=1" : "WEIR_SIM_DEVICES=2",
                                   "examples/ctypes_vector.py", "20000");
    ck_assert_msg(o.status == 0, "it ended with %d and said: %s", o.status, o.output);
    ck_assert_str_eq(o.output, wanted);
  }
  ck_assert_int_ne(
      run_example("WEIR_SIM_FAIL=cuMemAlloc_v2:1=2", "examples/ctypes_vector.py", "").status, 0);
  struct outcome o = run_example("", "examples/ranges.py", "5");
  check_right(o, "ranges");
  ck_assert_int_ne(run_example("WEIR_SIM_FAIL=cuMemAlloc_v2:3=2", "examples/ranges.py", "5").status,
                   0);
}
END_TEST
#endif

int main(void)
{
  Suite *suite = suite_create("examples");
  TCase *c = tcase_create("all");
  tcase_add_loop_test(c, an_example_is_right_with_one_device_and_two_shared_and_static, 0,
                      EXAMPLES);
  tcase_add_loop_test(c, a_static_program_makes_the_driver_calls_of_a_shared_one, 0, EXAMPLES);
  tcase_add_loop_test(c, an_example_notices_a_wrong_result, 0, EXAMPLES);
  tcase_add_loop_test(c, an_example_stops_at_an_error, 0, EXAMPLES);
  tcase_add_test(c, the_driver_example_is_right_with_one_device_and_two);
  tcase_add_test(c, the_allocator_example_runs_and_says_what_is_missing);
  tcase_add_loop_test(c, a_transformer_gives_on_a_device_what_it_gives_on_the_cpu, 0, 2);
  tcase_add_loop_test(c, an_engine_example_is_right_without_a_device, 0, ENGINE);
  tcase_add_loop_test(c, an_engine_example_has_a_usage, 0, ANSWERING);
  tcase_add_loop_test(c, an_engine_example_says_the_same_with_any_number_of_devices, 0, ENGINE);
  tcase_add_loop_test(c, an_engine_example_uses_the_device_where_there_is_one, 0, ENGINE);
  tcase_add_loop_test(c, training_divides_batches_among_devices, 0, TRAINED);
  tcase_add_loop_test(c, training_says_its_modules_in_the_report, 0, TRAINED);
  tcase_add_test(c, a_transformer_learns_a_text_of_ones_own);
#ifdef WITH_PYTHON
  tcase_add_test(c, the_python_examples_are_right_with_one_device_and_two);
#endif
  tcase_set_timeout(c, 300);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

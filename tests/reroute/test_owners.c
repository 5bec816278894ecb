/* test_owners.c: another library in the process has functions of CUDA's names (owner.c): it is
 * called as often as without us, refuses what it would refuse, and the trace says what is left
 * to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#define PREPARE                                                                                    \
  "T=$BUILD/tests/reroute W=$BUILD/lib/libweir-preload.so; mkdir -m 700 spools\n"                  \
  "export WEIR_STAGING=on\n"                                                                       \
  "bare() { LD_LIBRARY_PATH=$BUILD/lib/sim:$T LD_PRELOAD=$1 $T/$P $A >bare; }\n"                   \
  "with() { WEIR_SPOOL_DIR=$PWD/spools LD_LIBRARY_PATH=$BUILD/lib/sim:$T LD_PRELOAD=\"$1\" "       \
  "$T/$P $A >with; }\n"                                                                            \
  "same() { cmp -s bare with || { echo $*; diff bare with; }; }\n"

static const char *const modes[] = {"observe", "strict", "relaxed"};
static const char *const libraries[] = {"runtime", "host", "copies", "driver", "lookups", "hidden"};
enum { MODES = 3, LIBRARIES = sizeof libraries / sizeof *libraries };

/* Preloaded after us and before us, and by way of --sim. */
START_TEST(a_preloaded_library_is_called_as_without_us)
{
  const outcome *o = sh_status(
      0,
      PREPARE
      "export WEIR_MODE=%s; L=$T/libowner-%s.so P=owned\n"
      "bare $L; grep -q ' [0-9]*$' bare || echo nothing was counted\n"
      "with \"$W $L\"; same after\n"
      "with \"$L $W\"; same before\n"
      "LD_LIBRARY_PATH=$T LD_PRELOAD=$L $WEIR run -o t.db --sim --mode=$WEIR_MODE -- $T/owned "
      ">with; same sim\n"
      "A=driver; [ $WEIR_MODE = strict ] || exit 0\n"
      "bare $L; with \"$W $L\"; same after, with a context of the driver\n"
      "with \"$L $W\"; same before, with a context of the driver",
      modes[_i / LIBRARIES], libraries[_i % LIBRARIES]);
  ck_assert_str_eq(o->out, "");
}
END_TEST

/* Its name comes before the runtime's in the program, whose own references have no version. */
START_TEST(a_library_that_the_program_is_linked_with_is_called_as_without_us)
{
  const outcome *o =
      sh_status(0,
                PREPARE "export WEIR_MODE=%s; P=owned-linked\n"
                        "bare; with $W; same linked\n"
                        "grep -q 'cudaMalloc [1-9]' bare || echo nothing was counted",
                modes[_i]);
  ck_assert_str_eq(o->out, "");
}
END_TEST

static const struct said {
  const char *library, *what, *one;
} all_said[] = {
    {"runtime", "device memory", "cudaFree"},
    {"host", "pinned memory", "cudaFreeHost"},
    {"copies", "pageable copies, copies between devices", "cudaMemcpy"},
    {"driver", "device memory, pinned memory, pageable copies, copies between devices",
     "cuMemAlloc_v2"},
};

START_TEST(what_is_left_to_another_library_is_said_and_the_rest_is_rerouted)
{
  const struct said *s = &all_said[_i];
  char query[256];
  const outcome *o = sh_status(0,
                               "T=$BUILD/tests/reroute; export WEIR_STAGING=on\n"
                               "LD_LIBRARY_PATH=$T LD_PRELOAD=$T/libowner-%s.so $WEIR run -o t.db "
                               "--sim --mode=strict -- $T/owned >out; $WEIR report t.db",
                               s->library);
  (void)snprintf(query, sizeof query, "note: not rerouted: %s: libowner-%s.so has a %s of its own",
                 s->what, s->library, s->one);
  ck_assert_msg(strstr(o->out, query), "%s in\n%s", query, o->out);
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 1);
  long long device = ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64 AND"
                                 " mem = 3"),
            pinned = ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64 AND"
                                 " mem = 2");
  ck_assert_int_eq(device > 0, !strstr(s->what, "device memory"));
  ck_assert_int_eq(pinned > 0, !strstr(s->what, "pinned memory"));
}
END_TEST

START_TEST(who_only_observes_is_told_of_no_library)
{
  sh_status(0, "T=$BUILD/tests/reroute; LD_LIBRARY_PATH=$T LD_PRELOAD=$T/libowner-runtime.so "
               "$WEIR run -o t.db --sim --mode=observe -- $T/owned");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 0);
}
END_TEST

/* ---- memory that another library keeps ------------------------------------------------------- */

static const struct saver {
  const char *library, *layer;
  long long peak_mib, left_mib;
} savers[] = {
    {"runtime", "runtime", 96, 0},
    {"driver", "driver", 96, 0},
    {"arena", "runtime", 128, 128},
};
enum { SAVERS = sizeof savers / sizeof *savers };

static long long total_mib(const char *report, const char *name)
{
  char member[64];
  (void)snprintf(member, sizeof member, "\"%s\": ", name);
  const char *at = strstr(report, member);
  ck_assert_msg(at != NULL, "no %s in\n%s", name, report);
  return strtoll(at + strlen(member), NULL, 10) >> 20;
}

/* The library's mappings and its arena are the memory that there is; what it hands out lies
 * within. */
START_TEST(a_block_within_another_librarys_memory_counts_once)
{
  const struct saver *s = &savers[_i % SAVERS];
  const outcome *o = sh_status(
      0,
      "T=$BUILD/tests/reroute; export LD_PRELOAD=$T/libsaver-%s.so; env -u WEIR_MODE "
      "LD_LIBRARY_PATH=$BUILD/lib/sim $T/saved %s >bare; $WEIR run -o t.db --sim --mode=%s -- "
      "$T/saved %s >with; unset LD_PRELOAD; cmp bare with; ! grep -v ' [0123]$' bare && "
      "$WEIR report --format json t.db",
      s->library, s->layer, modes[_i / SAVERS], s->layer);
  ck_assert_int_eq((int)total_mib(o->out, "peak_bytes"), (int)s->peak_mib);
  ck_assert_int_eq((int)total_mib(o->out, "live_at_exit_bytes"), (int)s->left_mib);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event e JOIN api a ON a.id = e.api"
                               " WHERE a.name IN ('cudaMalloc', 'cuMemAlloc_v2') AND status = 0"),
                   4 + (strcmp(s->library, "arena") == 0));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/owners");
  TCase *c = tcase_create("owners");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_preloaded_library_is_called_as_without_us, 0, MODES * LIBRARIES);
  tcase_add_loop_test(c, a_library_that_the_program_is_linked_with_is_called_as_without_us, 0,
                      MODES);
  tcase_add_loop_test(c, what_is_left_to_another_library_is_said_and_the_rest_is_rerouted, 0,
                      sizeof all_said / sizeof *all_said);
  tcase_add_test(c, who_only_observes_is_told_of_no_library);
  tcase_add_loop_test(c, a_block_within_another_librarys_memory_counts_once, 0, MODES * SAVERS);
  suite_add_tcase(s, c);
  return run_suite(s);
}

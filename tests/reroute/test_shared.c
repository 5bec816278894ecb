/* test_shared.c: memory and events shared between two processes of which each runs bare, observed,
 * strict or relaxed: what they print, in lockstep, is what two bare ones print. (trap_shared.c) */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

static const char *const traps[] = {"ipc_memory", "ipc_events"};
static const char *const modes[] = {"bare", "observe", "strict", "relaxed"};
enum { TRAPS = 2, MODES = 4 };

static char bare[65536];

static outcome *run_shared_trap(const char *trap, const char *mode, const char *other)
{
  bool plain = strcmp(mode, "bare") == 0;
  return sh("mkdir -p -m 700 spools\n"
            "export LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_SIM_DEVICES=2 WEIR_STAGING=on "
            "WEIR_SPOOL_DIR=$PWD/spools WEIR_MODE=%s TRAP_OTHER=%s "
            "TRAP_PRELOAD=$BUILD/lib/libweir-preload.so\n"
            "%s $BUILD/tests/reroute/trap %s",
            plain ? "observe" : mode, other, plain ? "" : "LD_PRELOAD=$TRAP_PRELOAD", trap);
}

START_TEST(two_processes_share_as_two_bare_ones_do)
{
  const char *trap = traps[_i / MODES], *mode = modes[_i % MODES];
  outcome *o = run_shared_trap(trap, "bare", "bare");
  ck_assert_msg(o->status == 0, "%s ended with %x: %s", trap, o->status, o->err);
  memcpy(bare, o->out, sizeof bare);
  ck_assert_ptr_nonnull(strstr(bare, "the other ended with 0"));
  for (int m = 0; m < MODES; m++) {
    o = run_shared_trap(trap, mode, modes[m]);
    ck_assert_msg(o->status == 0, "%s, %s with %s, ended with %x: %s", trap, mode, modes[m],
                  o->status, o->err);
    ck_assert_msg(strcmp(o->out, bare) == 0, "%s, bare:\n%s\n%s with %s:\n%s", trap, bare, mode,
                  modes[m], o->out);
    /* each image that called CUDA under Weir has left a spool: this one and the other, or instead
     * of a bare other the child that says that Weir is not in it */
    int spools = strcmp(mode, "bare") ? 2 : m != 0;
    o = sh("ls spools/*.spool | wc -l; rm -rf spools");
    ck_assert_int_eq(o->out[0] - '0', spools);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/shared");
  TCase *c = tcase_create("shared");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, two_processes_share_as_two_bare_ones_do, 0, TRAPS * MODES);
  suite_add_tcase(s, c);
  return run_suite(s);
}

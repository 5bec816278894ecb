/* test_loader_quiet.c: programs without CUDA do under us, byte for byte, what they do without; and
 * the library itself needs and shows no more than it should. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/loader_run.h"

static outcome run_shell_with(enum preload how, const char *command, const char *const *env)
{
  const char *const argv[] = {"sh", "-c", command, NULL};

  return run(how, argv, env);
}

/* Each writes all it makes to stdout. WORK is the scratch folder, BUILT the build folder. */
static const char *const commands[] = {
    "python3 -X importtime -c 'pass' >/dev/null 2>&1; python3 -c '"
    "import asyncio, ctypes, decimal, hashlib, json, multiprocessing, random, re, socket, ssl, "
    "sqlite3, "
    "subprocess, threading, unittest, zlib, xml.dom.minidom\n"
    "print(hashlib.sha256(json.dumps(list(range(1000))).encode()).hexdigest())\n"
    "print(subprocess.run([\"echo\", \"child\"], capture_output=True).stdout)\n"
    "print(sum(multiprocessing.get_context(\"fork\").Pool(2).map(abs, range(-5, 5))))'",
    "\"$BUILT/tests/victims/loader/throw\"",
    "LD_BIND_NOW=1 \"$BUILT/tests/victims/loader/throw\"",
    "sqlite3 :memory: 'create table t(a,b); with recursive n(i) as (select 1 union all select i+1 "
    "from n "
    "where i<1000) insert into t select i, i*i from n; select sum(b), count(*) from t; select "
    "nothing;'",
    "echo 'int twice(int a) { return a + a; } int main(void) { return twice(4); }' >\"$WORK/a.c\"; "
    "cd \"$WORK\" && gcc -O2 -S -o - a.c && gcc -O2 -o a.out a.c && ./a.out; echo $?; gcc -c "
    "nothing.c",
    "ls / | sort | tr a-z A-Z | grep -c .; env | grep -v "
    "'^LD_PRELOAD=\\|^WEIR_SPOOL_DIR=\\|^NVTX_INJ' | sort; "
    "umask; pwd",
    "bash -c 'for i in 1 2 3; do (echo $i; exit $i); echo $?; done; trap \"echo trapped\" TERM; "
    "kill $$; "
    "sleep 0 & wait; ulimit -n'",
    "cd \"$WORK\" && echo 'int main(void) { char *p = __builtin_malloc(9); p[1] = 7; "
    "__builtin_printf(\"%d\\n\", p[1]); __builtin_free(p); return 3; }' >s.c && for s in address "
    "thread undefined; do gcc -fsanitize=$s -o s.out s.c && ./s.out; echo $s $?; done",
};

static const char *const *quiet_env(void)
{
  static char work[256], build[1024];
  static const char *const env[] = {work, build, NULL};

  (void)snprintf(work, sizeof work, "WORK=%s", scratch(""));
  (void)snprintf(build, sizeof build, "BUILT=%s", getenv("WEIR_BUILD"));
  return env;
}

START_TEST(test_a_program_without_cuda_does_as_without_us)
{
  outcome plain = run_shell_with(WITHOUT, commands[_i], quiet_env());
  outcome watched = run_shell_with(WITH, commands[_i], quiet_env());
  tally t = count_spools("cudaMalloc");

  ck_assert_int_eq(plain.status, watched.status);
  ck_assert_uint_eq(plain.out_bytes, watched.out_bytes);
  ck_assert_mem_eq(plain.out, watched.out, plain.out_bytes);
  ck_assert_str_eq(plain.err, watched.err);
  ck_assert_uint_gt(plain.out_bytes, 0);
  ck_assert_uint_ge(t.spools, 1);
  ck_assert_uint_eq(t.events + t.other + t.threads + t.dropped + t.damage, 0);
}
END_TEST

START_TEST(test_what_we_need_is_libc_alone)
{
  outcome o = run_shell_with(WITHOUT,
                             "readelf -dW \"$BUILT/lib/libweir-preload.so\" | sed -n "
                             "'s/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p' | "
                             "grep -v '^ld-linux' | tr '\\n' ' '",
                             quiet_env());

  ck_assert_str_eq(o.out, "libc.so.6 ");
}
END_TEST

/* Exactly: dlsym, its kin, exec and its kin, libc's functions that pause, weir_note and weir_note_engine without a version,
 * CUDA's names under the six nodes, and the nodes themselves. What CUDA names there are is the
 * table's business. */
START_TEST(test_what_we_export_is_our_hooks_and_nothing_else)
{
  static const char list[] =
      "nm -D --defined-only \"$BUILT/lib/libweir-preload.so\" | cut -d' ' -f2- | ";
  char command[1024];
  outcome o;

  (void)snprintf(command, sizeof command, "%s%s", list,
                 "grep -v ' _*cu[A-Z_a-z0-9]*@[^@]' | sort | tr '\\n' ' '");
  o = run_shell_with(WITHOUT, command, quiet_env());
  ck_assert_str_eq(
      o.out, "A libcudart.so.11.0 A libcudart.so.12 A libcudart.so.13 "
             "A libcupti.so.12 A libcupti.so.13 A weir_driver "
             "T InitializeInjectionNvtx2 T InitializeInjectionNvtxExtension "
             "T _Exit T __asan_default_options T _exit T clock_nanosleep "
             "T dlclose T dlmopen T dlopen T dlsym T dlvsym "
             "T execl T execle T execlp T execv T execve T execvp T execvpe "
             "T fexecve T nanosleep T posix_spawn T posix_spawnp T sched_yield T select T usleep "
             "T weir_note T weir_note_engine ");
  (void)snprintf(command, sizeof command, "%s%s", list,
                 "grep ' _*cu' | grep -cv '^T "
                 "\\(cu[A-Z][A-Za-z0-9_]*@weir_driver\\|\\(__\\)\\?cuda[A-Z][A-Za-z0-9_]*"
                 "@libcudart.so.1\\(1.0\\|2\\|3\\)\\|"
                 "cupti[A-Z][A-Za-z0-9_]*@libcupti.so.1\\(2\\|3\\)\\)$'");
  o = run_shell_with(WITHOUT, command, quiet_env());
  ck_assert_str_eq(o.out, "0\n");
  (void)snprintf(command, sizeof command, "%s%s", list,
                 "grep -c '^T cudaMalloc@libcudart.so\\|^T cuInit@weir'");
  o = run_shell_with(WITHOUT, command, quiet_env());
  ck_assert_str_eq(o.out, "4\n");
}
END_TEST

START_TEST(test_our_thread_storage_is_small)
{
  outcome o = run_shell_with(
      WITHOUT,
      "readelf -lW \"$BUILT/lib/libweir-preload.so\" | while read -r type _ _ _ _ size _; do "
      "[ \"$type\" = TLS ] && echo $((size < 2048)); done",
      quiet_env());

  ck_assert_str_eq(o.out, "1\n");
}
END_TEST

static Suite *loader_quiet_suite(void)
{
  Suite *s = suite_create("loader: quiet");
  TCase *t = tcase_create("quiet");

  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_loop_test(t, test_a_program_without_cuda_does_as_without_us, 0,
                      sizeof commands / sizeof *commands);
  tcase_add_test(t, test_what_we_need_is_libc_alone);
  tcase_add_test(t, test_what_we_export_is_our_hooks_and_nothing_else);
  tcase_add_test(t, test_our_thread_storage_is_small);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(loader_quiet_suite());
  int failed;

  srunner_run_all(r, CK_ENV);
  failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

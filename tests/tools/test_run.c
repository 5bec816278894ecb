/* test_run.c: weir run and weir collect: what the program's user sees, and what is in the trace. */
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/rank.h"
#include "tests/tools/command.h"

#define RUN    "$WEIR run --sim --force -o t.db "
#define ALLOCS "SELECT count(*) FROM event WHERE kind = 1"
#define PROCESSES                                                                                  \
  "SELECT count(DISTINCT process) FROM event" /* a shell has a row, but no events                  \
                                               */

/* The spool folders that are there now, for "nothing is left behind". Other suites run beside this
 * one, so a test looks only at a folder of its own: TMPDIR, with /dev/shm out of the way, is not
 * possible; instead the program tells its WEIR_SPOOL_DIR. */
#define TELL_DIR "sh -c 'echo $WEIR_SPOOL_DIR >dir; exec \"$@\"' sh "

static void nothing_is_left(void)
{
  sh_status(0, "test -n \"$(cat dir)\" && test ! -e \"$(cat dir)\"");
}

/* ---- status, streams ------------------------------------------------------------------------- */

START_TEST(exit_status_is_the_programs)
{
  static const int statuses[] = {0, 1, 2, 7, 125, 126, 127, 128, 255};
  for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++)
    sh_status(statuses[i], RUN "-- $VICTIM exit %d", statuses[i]);
}
END_TEST

START_TEST(death_by_signal_is_the_programs)
{
  static const int signals[] = {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGINT, SIGHUP, SIGPIPE};
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
    outcome *o =
        sh("export ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0; ulimit -c unlimited; exec " RUN
           "-- $VICTIM call raise %d",
           signals[i]);
    ck_assert_msg(WIFSIGNALED(o->status) && WTERMSIG(o->status) == signals[i], "%#x: %s",
                  (unsigned)o->status, o->err);
    ck_assert_msg(!WCOREDUMP(o->status), "weir dumped core of its own");
    ck_assert_int_eq(ask("t.db", ALLOCS), 1);
    ck_assert_int_eq(ask("t.db", "SELECT end_detail FROM process"), signals[i]);
  }
}
END_TEST

START_TEST(a_program_that_cannot_run_is_127_or_126)
{
  outcome *o = sh_status(127, RUN "-- ./nothing");
  ck_assert_str_eq(o->err, "weir: cannot run './nothing': No such file or directory.\n");
  sh_status(127, RUN "-- nothing-of-this-name");
  o = sh_status(126, ": >file; " RUN "-- ./file");
  ck_assert_str_eq(o->err, "weir: cannot run './file': Permission denied.\n");
  sh_status(126, RUN "-- .");
  /* exec finds out what looking it up did not: an interpreter that is not there */
  sh_status(127, "printf '#!/no/such/interpreter\\n' >script; chmod +x script; " RUN "-- ./script");
  sh_status(0, "test ! -e t.db"); /* and no trace is left of what never ran */
}
END_TEST

/* A copy of a program whose header names the other processor of the two that Weir is built for. */
#define FOREIGN "x86_64:183:aarch64 aarch64:62:x86_64"
#define MAKE_FOREIGN                                                                               \
  "cp $VICTIM foreign; for i in " FOREIGN "; do case $i in $(uname -m):*) o=${i#*:};; esac; done;" \
  " printf \"\\\\$(printf %%o ${o%%:*})\" | dd of=foreign bs=1 seek=18 conv=notrunc 2>&-; "

START_TEST(a_program_for_another_processor_is_126_and_not_fed_to_the_shell)
{
  outcome *o = sh_status(0, MAKE_FOREIGN "if ./foreign 2>&-; then echo runs; fi; echo ${o#*:}");
  if (strstr(o->out, "runs")) return; /* by an emulator */
  char expected[128];
  (void)snprintf(expected, sizeof expected, "weir: cannot run './foreign': it is built for %.*s,",
                 (int)strcspn(o->out, "\n"), o->out);
  o = sh_status(126, RUN "-- ./foreign");
  ck_assert_msg(!strncmp(o->err, expected, strlen(expected)), "%s", o->err);
  o = sh_status(126, "PATH=.:$PATH " RUN "-- foreign");
  ck_assert_msg(strstr(o->err, "it is built for "), "%s", o->err);
  ck_assert_str_eq(o->out, "");
  sh_status(0, "test ! -e t.db");
  o = sh("$WEIR compare --sim --runs 1 -- ./foreign");
  ck_assert_msg(strstr(o->err, "it is built for "), "%s", o->err);
}
END_TEST

START_TEST(a_script_without_an_interpreter_runs_by_the_shell)
{
  outcome *o =
      sh_status(7, "printf 'echo \"$0 $1\"; $VICTIM call; exit 7' >script; chmod +x script; " RUN
                   "-- ./script a");
  ck_assert_str_eq(o->out, "./script a\n");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen"), 0);
}
END_TEST

/* And nothing else does. */
START_TEST(a_terminal_hears_the_traces_name_its_events_and_the_next_command)
{
  if (!has_terminals()) return;
  outcome *o =
      sh_status(0, "python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' " RUN "-- $VICTIM call");
  ck_assert_str_eq(o->out, "weir: t.db: 6 events; see 'weir report t.db'.\r\n");
  ck_assert_str_eq(sh_status(0, RUN "-- $VICTIM call")->err, "");
}
END_TEST

START_TEST(streams_are_untouched)
{
  outcome *plain = sh_status(0, "head -c 30000 /dev/urandom | base64 | tee in |"
                                " $VICTIM out $'a\\tb' err 'some error' cat err last");
  outcome *under = sh_status(0, "<in " RUN "-- $VICTIM out $'a\\tb' err 'some error' cat err last");
  ck_assert_str_eq(under->out, plain->out);
  ck_assert_str_eq(under->err, plain->err);
  ck_assert_int_gt(strlen(plain->out), 30000);
  ck_assert_str_eq(sh_status(0, RUN "-- ls /proc/self/fd")->out,
                   sh_status(0, "ls /proc/self/fd")->out);
}
END_TEST

#define SECRET "hunter2-of-the-arguments"

START_TEST(arguments_stay_out_of_a_redacted_trace)
{
  sh_status(0, RUN "-- sh -c '$VICTIM call; : " SECRET "'");
  sh_status(0, "grep -aq " SECRET " t.db");
  sh_status(0, "rm t.db; " RUN "--redact -- sh -c '$VICTIM call; : " SECRET "'");
  sh_status(1, "cat t.db* | grep -aq " SECRET);
  sh_status(1, "rm t.db; WEIR_REDACT=1 " RUN "-- sh -c '$VICTIM call; : " SECRET "';"
               " cat t.db* | grep -aq " SECRET);
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE command LIKE '% %'"), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM meta WHERE key = 'command' AND value = 'sh'"),
                   1);
}
END_TEST

START_TEST(the_launchers_rank_is_in_the_trace)
{
  sh_status(0, "PMI_RANK=3 " RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE rank = 3"), 1);
  ck_assert_ptr_nonnull(
      strstr(sh_status(0, "$WEIR report memory --by rank --format csv t.db")->out, "rank 3"));
  sh_status(0, "rm t.db; env -u RANK -u SLURM_PROCID " RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE rank IS NULL"), 1);
}
END_TEST

START_TEST(what_is_no_answer_redacts)
{
  outcome *o = sh_status(0, "WEIR_REDACT=perhaps " RUN "-- sh -c '$VICTIM call; : " SECRET "'");
  ck_assert_ptr_nonnull(strstr(o->err, "arguments are left out of the trace"));
  sh_status(1, "cat t.db* | grep -aq " SECRET);
}
END_TEST

START_TEST(the_default_trace_is_named_after_the_program)
{
  sh_status(0, "$WEIR run --sim -- sh -c 'echo $$ >pid; exec $VICTIM call'");
  sh_status(0, "test -f weir.$(cat pid).db");
}
END_TEST

START_TEST(a_program_without_cuda_leaves_a_trace_without_events)
{
  outcome *o = sh_status(0, "$WEIR run --force -o t.db -- true");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event"), 0);
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_msg(strstr(o->out, "no CUDA calls") || strstr(o->out, "No CUDA calls"), "%s", o->out);
}
END_TEST

START_TEST(without_a_gpu_the_report_names_the_software_device)
{
  sh_status(0, "mkdir none; : >none/libcuda.so.1"); /* a driver that no machine can load */
  outcome *o = sh_status(99, "LD_LIBRARY_PATH=$PWD/none $WEIR run --force -o t.db -- $VICTIM call");
  ck_assert_ptr_null(strstr(o->err, "--sim"));
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_msg(strstr(o->out, "No GPU was found; `weir run --sim -- PROGRAM`"), "%s", o->out);
  o = sh_status(0, "$WEIR report --format json t.db");
  ck_assert_msg(strstr(o->out, "\"no_gpu\": \""), "%s", o->out);
  sh_status(98, "CUDA_VISIBLE_DEVICES= LD_LIBRARY_PATH=$BUILD/lib/sim"
                " $WEIR run --force -o t.db -- $VICTIM call");
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_msg(strstr(o->out, "cuInit returned 100"), "%s", o->out);
  sh_status(0, RUN "-- $VICTIM call");
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_null(strstr(o->out, "No GPU"));
}
END_TEST

/* What is started without the library is known by its file, the reason and how often. */
START_TEST(a_program_that_weir_is_not_in_is_said)
{
  sh_status(0, RUN "-- sh -c 'env LD_PRELOAD= $VICTIM call; env LD_PRELOAD= $VICTIM; $VICTIM call;"
                   " $BUILD/tests/tools/static_program; ./none; true'");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  ck_assert_int_eq(ask("t.db", "SELECT sum(count) FROM unseen WHERE why = 'LD_PRELOAD was changed'"
                               " AND path LIKE '%/victim'"),
                   2);
  ck_assert_int_eq(ask("t.db", "SELECT sum(count) FROM unseen WHERE why = 'statically linked'"
                               " AND path LIKE '%/static_program'"),
                   1);
  ck_assert_int_eq(ask("t.db", "SELECT sum(count) FROM unseen"), 3);
  outcome *o = sh_status(0, "$WEIR report t.db");
  ck_assert_msg(strstr(o->out, "2 programs ran without Weir"), "%s", o->out);
  o = sh_status(0, "$WEIR report --format json t.db");
  ck_assert_msg(strstr(o->out, "\"why\": \"statically linked\""), "%s", o->out);
  o = sh_status(0, RUN "-- $BUILD/tests/tools/static_program");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen WHERE process IS NULL"
                               " AND why = 'statically linked'"),
                   1);
  sh_status(0, RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen"), 0);
}
END_TEST

START_TEST(each_way_to_start_a_program_is_watched)
{
  static const char *const ways[] = {"execve",  "execv",       "execvp",      "execvpe",
                                     "fexecve", "fork",        "execl",       "execlp",
                                     "execle",  "posix_spawn", "posix_spawnp"};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    sh_status(0, RUN "-- $BUILD/tests/tools/starter %s $BUILD/tests/tools/static_program", ways[i]);
    ck_assert_msg(ask("t.db", "SELECT sum(count) FROM unseen WHERE why = 'statically linked'") == 1,
                  "%s", ways[i]);
    sh_status(0, RUN "-- $BUILD/tests/tools/starter %s $VICTIM", ways[i]);
    ck_assert_msg(ask("t.db", "SELECT count(*) FROM unseen") == 0, "%s", ways[i]);
    sh_status(127, RUN "-- $BUILD/tests/tools/starter %s-bare ./none", ways[i]);
    ck_assert_msg(ask("t.db", "SELECT sum(count) IS NOT NULL AND sum(count) <> 0 FROM unseen") == 0,
                  "%s", ways[i]);
  }
  sh_status(0, RUN "-- $BUILD/tests/tools/starter posix_spawn-bare $VICTIM");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen WHERE why = 'LD_PRELOAD was changed'"),
                   1);
}
END_TEST

START_TEST(a_set_uid_program_is_said)
{
  if (geteuid() != 0) return; /* only root can give a file to another */
  const outcome *o = sh("cp $BUILD/tests/tools/starter other; chown 4711 other");
  if (o->status) return; /* nor can every root */
  sh_status(0, "chmod 4755 other; chmod 711 .; " RUN "-- sh -c './other; :'");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen WHERE why LIKE 'set-uid%'"), 1);
}
END_TEST

START_TEST(a_program_that_was_changed_since_gives_no_lines)
{
  sh_status(0, "objcopy --remove-section=.note.gnu.build-id $VICTIM v; " RUN "-- ./v call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM module WHERE path LIKE '%/v' AND bytes > 0"
                               " AND mtime > 0 AND build_id IS NULL"),
                   1);
  outcome *o = sh_status(0, "$WEIR report --format json t.db");
  ck_assert_ptr_null(strstr(o->out, "changed since"));
  sh_status(0, "mkdir s; cp v s; touch -d 2001-01-01 v");
  o = sh_status(0, "$WEIR report --format json t.db");
  ck_assert_msg(strstr(o->out, "\"why\": \"changed since\"") && strstr(o->out, "(changed since)"),
                "%s", o->out);
  o = sh_status(0, "$WEIR report --symbols s --format json t.db");
  ck_assert_ptr_null(strstr(o->out, "changed since"));
  sh_status(2, "$WEIR report --symbols none t.db");
}
END_TEST

START_TEST(a_trace_has_what_a_read_of_its_clock_takes)
{
  sh_status(0, RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM meta WHERE key = 'clock_ns'"
                               " AND typeof(value) = 'integer' AND value BETWEEN 1 AND 9999"),
                   1);
}
END_TEST

START_TEST(a_clock_that_tells_another_time_is_not_the_trace_s)
{
  sh_status(0, RUN "-- sh -c 'LD_PRELOAD=$LD_PRELOAD:$BUILD/tests/tools/libother_clock.so"
                   " $VICTIM call; $VICTIM call'");
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
  ck_assert_int_lt(ask("t.db", "SELECT value FROM meta WHERE key = 'duration_ns'"), 3600000000000);
  ck_assert_int_eq(ask("t.db",
                       "SELECT abs(value - strftime('%s', 'now') * 1000000000) < 3600000000000"
                       " FROM meta WHERE key = 'start_realtime_ns'"),
                   1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event e JOIN process p ON p.id = e.process"
                               " WHERE e.start < p.start OR e.end > p.end"),
                   0);
}
END_TEST

START_TEST(output_replaces_nothing_but_a_trace_by_force)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  outcome *o = sh_status(125, "$WEIR run --sim -o t.db -- touch ran");
  ck_assert_str_eq(o->err, "weir: t.db is there already: --force replaces it; t-2.db is free.\n");
  ck_assert_int_eq(ask("t.db", ALLOCS), 3);
  sh_status(0, RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(0, "touch empty && $WEIR run --sim -o empty -- $VICTIM call");
  ck_assert_int_eq(ask("empty", ALLOCS), 1);
  o = sh_status(125, "echo precious >file; $WEIR run -o file -- touch ran");
  ck_assert_ptr_nonnull(strstr(o->err, "not replaced"));
  sh_status(125, "$WEIR run --force -o file -- touch ran");
  sh_status(125, "$WEIR run -o no/such/folder/t.db -- touch ran");
  sh_status(0, "test ! -e ran && test $(cat file) = precious");
}
END_TEST

/* The first run writes while the second and the third want its file. */
START_TEST(a_trace_that_is_being_written_is_not_taken_away)
{
  int status;
  ck_assert_int_eq(mkfifo("up", 0600), 0);
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, -1, "exec " RUN "-- sh -c 'echo >up; exec $VICTIM repeat 5 await go call'");
  sh_status(0, "cat up");
  outcome *o = sh_status(125, "$WEIR run --sim -o t.db -- touch ran");
  ck_assert_str_eq(o->err, "weir: t.db is being written by another run; t-2.db is free.\n");
  sh_status(125, RUN "-- touch ran");
  sh_status(1, "$WEIR import --force -o t.db .");
  sh_status(0, "test ! -e ran; $WEIR report t.db"); /* who reads is not kept waiting */
  (void)close(open("go", O_WRONLY));
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ask("t.db", ALLOCS), 6);
  ck_assert_int_eq(ask("t.db", "SELECT value FROM meta WHERE key = 'finished'"), 1);
}
END_TEST

static const char *const rank_variables[] = {RANK_VARIABLES};

/* All of a launch are given one name. The first is held until the others have ended. */
START_TEST(processes_that_are_launched_together_have_traces_of_their_own)
{
  int status;
  const char *rank = rank_variables[_i];
  ck_assert_int_eq(mkfifo("up", 0600), 0);
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, -1,
                    "exec env %s=2 $WEIR run --sim -o t.db -- sh -c 'echo >up; exec $VICTIM "
                    "repeat 5 await go call'",
                    rank);
  sh_status(0, "cat up");
  const outcome *o =
      sh_status(0,
                "%s=0 $WEIR run --sim -o t.db -- $VICTIM call && %s=13 $WEIR run --sim "
                "--force -o t.db -- $VICTIM repeat 2",
                rank, rank);
  ck_assert_str_eq(o->err, "");
  (void)close(open("go", O_WRONLY));
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ask("t.db", ALLOCS), 6);
  ck_assert_int_eq(ask("t.0.db", ALLOCS), 1);
  ck_assert_int_eq(ask("t.13.db", ALLOCS), 2);
  ck_assert_int_eq(ask("t.13.db", "SELECT rank FROM process"), 13);
  o = sh_status(125, "%s=13 $WEIR run --sim -o t.db -- touch ran", rank);
  ck_assert_str_eq(o->err,
                   "weir: t.13.db is there already: --force replaces it; t.13-2.db is free.\n");
  o = sh_status(125, "$WEIR run --sim -o t.db -- touch ran");
  ck_assert_str_eq(o->err, "weir: t.db is there already: --force replaces it; t-2.db is free.\n");
  sh_status(125, "echo precious >file; %s=1 $WEIR run --sim --force -o file -- touch ran", rank);
  sh_status(0, "test ! -e ran && test $(cat file) = precious");
}
END_TEST

START_TEST(a_trace_is_named_by_placeholders)
{
  sh_status(0, "WEIR_RANK=3 WEIR_JOB=77 DAY=mon $WEIR run --sim -o '%%j.%%r.%%q{DAY}.%%n.db' -- "
               "$VICTIM call");
  ck_assert_int_eq(ask("77.3.mon.1.db", ALLOCS), 1);
  ck_assert_int_eq(ask("77.3.mon.1.db", "SELECT rank FROM process"), 3);
  sh_status(0, "$WEIR run --sim -o 'n%%n.db' -- $VICTIM call && $WEIR run --sim -o 'n%%n.db' -- "
               "$VICTIM repeat 2");
  ck_assert_int_eq(ask("n2.db", ALLOCS), 2);
  sh_status(0,
            "$WEIR run --sim -o 'p.%%p.db' -- sh -c 'echo $$ >pid; exec $VICTIM call' && test -s "
            "p.$(cat pid).db");
  const outcome *o = sh_status(2, "$WEIR run --sim -o 'x%%z.db' -- touch ran");
  ck_assert_ptr_nonnull(strstr(o->err, "'%z' in the name of the trace is not known"));
  o = sh_status(2, "$WEIR run --sim -o 'x%%r.db' -- touch ran");
  ck_assert_ptr_nonnull(strstr(o->err, "no launcher has given this process a rank"));
  sh_status(0, "test ! -e ran");
}
END_TEST

/* No one of them replaces what another has just written. */
START_TEST(of_a_launch_only_the_first_replaces_a_trace_by_force)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(0, "PMI_RANK=1 " RUN "-- $VICTIM repeat 2");
  ck_assert_int_eq(ask("t.db", ALLOCS), 3);
  ck_assert_int_eq(ask("t.1.db", ALLOCS), 2);
  sh_status(0, "PMI_RANK=0 " RUN "-- $VICTIM call");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(0, "for r in 0 1 2 3 4 5; do PMI_RANK=$r $WEIR run --sim -o u.db -- $VICTIM call & "
               "all=\"$all $!\"; done; for p in $all; do wait $p || exit; done");
  ck_assert_str_eq(sh_status(0, "ls u.db u.*.db | wc -l")->out, "6\n");
}
END_TEST

START_TEST(a_trace_is_for_its_owner_alone)
{
  sh_status(0, "umask 0; " RUN "-- sh -c 'stat -c %%a t.db t.db-wal t.db-shm >modes'");
  ck_assert_str_eq(sh_status(0, "cat modes; stat -c %%a t.db")->out, "600\n600\n600\n600\n");
}
END_TEST

/* In a folder that everybody may write in: a neighbour guessed the name. */
START_TEST(what_a_neighbour_has_put_in_place_is_refused)
{
  static const char *const ends[] = {"-wal", "-shm", "-journal"};
  sh_status(0, "mkdir -m 1777 shared; echo precious >mine");
  for (unsigned i = 0; i < 3; i++) {
    outcome *o = sh_status(
        125, "ln -s ../mine shared/t.db%s; $WEIR run -o shared/t.db -- touch ran", ends[i]);
    ck_assert_msg(strstr(o->err, ends[i]) && strstr(o->err, "in the way"), "%s", o->err);
    sh_status(0, "test ! -e ran && test ! -e shared/t.db && rm shared/t.db%s", ends[i]);
    if (sh("touch shared/t.db%s && chown 1 shared/t.db%s", ends[i], ends[i])->status != 0) continue;
    o = sh_status(125, "$WEIR run -o shared/t.db -- touch ran");
    ck_assert_msg(strstr(o->err, ends[i]) && strstr(o->err, "in the way"), "%s", o->err);
    sh_status(0, "test -f shared/t.db%s && rm shared/t.db%s", ends[i], ends[i]);
  }
  sh_status(125, "ln -s ../mine shared/t.db; $WEIR run -o shared/t.db -- touch ran");
  sh_status(0, "test ! -e ran && test $(cat mine) = precious && rm shared/t.db");
  if (sh("touch shared/t.db && chown 1 shared/t.db")->status != 0) return;
  sh_status(125, "$WEIR run -o shared/t.db -- touch ran");
  sh_status(125, "$WEIR run --force -o shared/t.db -- touch ran");
  sh_status(0, "test ! -e ran && test ! -s shared/t.db");
}
END_TEST

START_TEST(the_environment_tells_the_program_only_what_it_must_know)
{
  outcome *plain =
      sh_status(0, "WEIR_BLAS=builtin env | grep -v '^_=' | sort"); /* as --sim sets it */
  outcome *under = sh_status(
      0, RUN "-- env | grep -v '^_=' | grep -v '^WEIR_SPOOL_DIR=\\|^WEIR_CUPTI=\\|^NVTX_INJ' |"
             " grep -vE '^LD_(PRELOAD|LIBRARY_PATH)=' | sort");
  ck_assert_str_eq(under->out, plain->out);
  sh_status(0,
            "LD_PRELOAD=libc.so.6 " RUN "-- sh -c 'case $LD_PRELOAD in "
            "/*/lib/libweir-preload.so:libc.so.6:/*/lib/sim/libcudart.so.13) ;; *) exit 1; esac'");
  sh_status(0, "LD_LIBRARY_PATH=/x:/y " RUN "-- sh -c 'case $LD_LIBRARY_PATH in "
               "/*/lib/sim:/x:/y) ;; *) exit 1; esac'");
  sh_status(0,
            "$WEIR run --force --sim=3 --stacks=off -o t.db -- sh -c "
            "'test $WEIR_SIM_DEVICES = 3 && test $WEIR_STACKS = off && test $WEIR_BLAS = builtin'");
  sh_status(0, "$WEIR run --sim --device-times=copies -o v.db -- sh -c"
               " 'test $WEIR_DEVICE_TIMES = copies'");
  sh_status(2, "$WEIR run --sim --device-times=some -o w.db -- touch ran");
  sh_status(0, "WEIR_BLAS=auto $WEIR run --sim -o u.db -- sh -c 'test $WEIR_BLAS = auto'");
}
END_TEST

/* As PyTorch's wheels do: an RPATH, which the loader looks at before LD_LIBRARY_PATH, leads to a
 * libcudart of the program's own. */
START_TEST(a_program_with_a_runtime_of_its_own_gets_the_software_devices)
{
  outcome *o = sh_status(9, "$BUILD/tests/tools/own_runtime");
  ck_assert_str_eq(o->out, "99 devices\n");
  o = sh_status(0, "$WEIR run --force --sim=3 -o t.db -- $BUILD/tests/tools/own_runtime");
  ck_assert_str_eq(o->out, "3 devices\n");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(
      0,
      "$WEIR run --force --sim=3 -o t.db -- $WEIR run --sim=3 -o u.db -- sh -c 'echo $LD_PRELOAD | "
      "tr : \"\\n\" | sort | uniq -d | grep -q . && exit 1; exec "
      "$BUILD/tests/tools/own_runtime'");
}
END_TEST

START_TEST(the_software_device_lists_what_it_lacks)
{
  outcome *o = sh_status(0, "$WEIR run --sim --list-unsupported");
  ck_assert_str_eq(o->err, "");
  for (char *line = strtok(o->out, "\n"); line; line = strtok(NULL, "\n"))
    ck_assert_msg((!strncmp(line, "cu", 2) || !strncmp(line, "__cuda", 6)) && !strchr(line, ' '),
                  "%s", line);
}
END_TEST

/* ---- signals --------------------------------------------------------------------------------- */

START_TEST(a_signal_sent_to_weir_reaches_the_program)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
    int out[2], status;
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_eq(mkfifo("never", 0600) & 0, 0);
    pid_t pid = start(-1, out[1], "exec " RUN "-- $VICTIM call out ready await never");
    (void)close(out[1]);
    read_until(out[0], "ready");
    ck_assert_int_eq(kill(pid, signals[i]), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == signals[i], "%#x", (unsigned)status);
    ck_assert_int_eq(ask("t.db", ALLOCS), 1);
    (void)close(out[0]);
  }
}
END_TEST

/* What a shell does for a job on a terminal: a group of its own, in the foreground, before the
 * job's first instruction (weir stops with its program only where a shell has it in the
 * foreground). Returns the wait status of `line` run by it; *stops: how often it was seen stopped
 * (and continued). */
static int as_a_job(const char *line, unsigned *stops)
{
  int status;
  pid_t job = fork();
  if (job == 0) {
    (void)setpgid(0, 0);
    (void)signal(SIGTTOU, SIG_IGN);
    (void)tcsetpgrp(0, getpid());
    (void)signal(SIGTTOU, SIG_DFL);
    (void)close(0);
    if (open("/dev/null", O_RDONLY) == 0) execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  for (*stops = 0; waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status); ++*stops)
    (void)kill(-job, SIGCONT);
  return status;
}

/* Runs as_a_job() on a new pseudo-terminal; the calling side gets its master. */
static pid_t on_a_terminal(const char *line, int *master)
{
  struct termios settings;
  pid_t pid = forkpty(master, NULL, NULL, NULL);
  ck_assert_int_ge(pid, 0);
  if (pid) return pid;
  set_names();
  (void)tcgetattr(0, &settings);
  settings.c_oflag &= ~(tcflag_t)OPOST;
  settings.c_lflag &= ~(tcflag_t)ECHO;
  (void)tcsetattr(0, TCSANOW, &settings);
  unsigned stops;
  int status = as_a_job(line, &stops);
  printf("stops=%u status=%d\n", stops, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  (void)fflush(stdout);
  _exit(0);
}

START_TEST(an_interrupt_from_the_terminal_arrives_once)
{
  int master;
  if (!has_terminals()) return;
  pid_t pid = on_a_terminal("sleep 0; exec " RUN
                            "-- sh -c 'echo $PPID >weir; exec $VICTIM call count' </dev/tty",
                            &master);
  read_until(master, "ready");
  ck_assert_int_eq(write(master, "\003", 1), 1);
  read_until(master, "interrupt\n");
  sh_status(0, "kill -USR1 $(cat weir)");
  read_until(master, "interrupts=1\n");
  read_until(master, "t.db: "); /* stderr is a terminal: a line at the end */
  read_until(master, "stops=0 status=0");
  ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
}
END_TEST

START_TEST(reports_longer_than_the_terminal_are_paged)
{
  static const struct {
    const char *line, *shown;
  } cases[] = {
      {"stty rows 5 </dev/tty; exec env PAGER=\"sed -n '1s/^/paged: /p'\" $WEIR report coverage "
       "t.db",
       "paged: weir report coverage"},
      {"stty rows 500 </dev/tty; exec env PAGER='echo paged' $WEIR report coverage t.db; echo \"\"",
       "Programs that ran without Weir"},
      {"stty rows 5 </dev/tty; exec env PAGER='echo paged' $WEIR report coverage --no-pager t.db",
       "Programs that ran without Weir"},
      {"stty rows 5 </dev/tty; exec env PAGER=/none/such $WEIR report coverage t.db",
       "Programs that ran without Weir"},
      {"stty rows 5 </dev/tty; exec env PAGER=true $WEIR report coverage t.db",
       "stops=0 status=0"}};
  if (!has_terminals()) return;
  sh_status(0, RUN "-- $VICTIM call");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int master;
    pid_t pid = on_a_terminal(cases[i].line, &master);
    read_until(master, cases[i].shown);
    (void)close(master);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
  }
}
END_TEST

START_TEST(stopping_the_program_stops_the_job)
{
  int master;
  if (!has_terminals()) return;
  pid_t pid = on_a_terminal("exec " RUN "-- $VICTIM call raise 20 call", &master); /* SIGTSTP */
  read_until(master, "stops=1 status=0");
  ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
}
END_TEST

/* ---- trees ----------------------------------------------------------------------------------- */

START_TEST(the_whole_tree_is_in_one_trace)
{
  sh_status(0, RUN "-- " TELL_DIR "sh -c '$VICTIM call & $VICTIM repeat 2 & $VICTIM fork call fork "
                   "exec call exit 0; wait'");
  ck_assert_int_eq(ask("t.db", PROCESSES), 4);
  ck_assert_int_eq(ask("t.db", ALLOCS), 5);
  nothing_is_left();
}
END_TEST

START_TEST(exec_gives_the_process_a_second_spool)
{
  sh_status(3, RUN "-- " TELL_DIR "$VICTIM call exec repeat 2 exit 3");
  ck_assert_int_eq(ask("t.db", PROCESSES), 2);
  ck_assert_int_eq(ask("t.db", "SELECT count(DISTINCT pid) FROM process"), 1);
  ck_assert_int_eq(ask("t.db", ALLOCS), 3);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM process WHERE end_reason = 'exec' AND events > 0"), 1);
  ck_assert_int_eq(ask("t.db", "SELECT end_detail FROM process WHERE end_reason = 'exit'"), 3);
  nothing_is_left();
}
END_TEST

/* What waits for a forked child stays known for a while after its spool has left the folder; so it
 * is after a fork() that failed. The third image then takes the first one's name. */
START_TEST(an_image_may_have_the_name_of_an_earlier_ones_spool)
{
  const outcome *o = sh(RUN "-- $VICTIM call fail_fork exec await_drained exec repeat 5");
  if (WIFEXITED(o->status) && WEXITSTATUS(o->status) == 93) return; /* no seccomp filters here */
  ck_assert_int_eq(o->status, 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process"), 3);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1"), 6);
}
END_TEST

START_TEST(a_daemon_is_waited_for)
{
  int status;
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, -1,
                    "exec " RUN "-- " TELL_DIR
                    "sh -c '$VICTIM call; $VICTIM daemon call await go call exit 9'");
  int go = open("go", O_WRONLY); /* until the daemon reads */
  ck_assert_int_ge(go, 0);
  ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0);
  (void)close(go);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0); /* the program's, not the daemon's */
  ck_assert_int_eq(ask("t.db", ALLOCS), 3);
  ck_assert_int_eq(ask("t.db", PROCESSES), 2);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM process WHERE end_reason = 'exit' AND end_detail = 9"), 1);
  nothing_is_left();
}
END_TEST

START_TEST(no_wait_finishes_with_the_program)
{
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  sh_status(
      0,
      "$WEIR run --force --sim --no-wait -o t.db -- sh -c '$VICTIM await go call >/dev/null 2>&1 "
      "& $VICTIM call'");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  (void)close(open("go", O_WRONLY));
}
END_TEST

START_TEST(an_interrupt_after_the_program_finishes_without_the_rest)
{
  int status, out[2];
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, out[1],
                    "exec " RUN "-- sh -c 'echo $$ >program; "
                    "(echo up; exec $VICTIM await go) & $VICTIM call; exit 4'");
  (void)close(out[1]);
  read_until(out[0], "up\n");
  sh_status(0,
            "while kill -0 $(cat program) 2>/dev/null; do :; done"); /* gone: weir has reaped it */
  ck_assert_int_eq(kill(pid, SIGINT), 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 4, "%#x", (unsigned)status);
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(0, "echo >go");
}
END_TEST

/* ---- when things go wrong -------------------------------------------------------------------- */

START_TEST(a_killed_collector_leaves_the_spools)
{
  int status;
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  adopt_collectors();
  pid_t pid = start(-1, -1, "exec " RUN "-- " TELL_DIR "$VICTIM repeat 5 await go repeat 5 exit 6");
  int go = open("go", O_WRONLY);
  ck_assert_int_eq(kill(pid, SIGKILL), 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  (void)close(go);
  ck_assert_int_gt(waitpid(-1, &status, 0), 0); /* the program, which goes on and is ours now */
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 6, "%#x", (unsigned)status);
  sh_status(0, "$WEIR import $(cat dir) -o rest.db && $WEIR import $(cat dir) -o t.db &&"
               " rm -r $(cat dir)");
  ck_assert_int_eq(ask("rest.db", ALLOCS), 10); /* nothing had filled a chunk and been recycled */
  ck_assert_int_eq(ask("t.db", ALLOCS), 10);    /* its own trace has what it had taken, too */
  ck_assert_int_eq(ask("t.db", "SELECT value FROM meta WHERE key = 'finished'"), 1);
}
END_TEST

START_TEST(a_full_disk_costs_the_trace_and_not_the_program)
{
  if (sh("unshare -Urm true")->status != 0) return; /* no private mounts here */
  outcome *o = sh_status(5, "mkdir small; cat >full.sh <<'EOF'\n"
                            "mount -t tmpfs -o size=1m none small || exit 77\n"
                            "$WEIR run --sim --stacks=off -o small/t.db -- " TELL_DIR
                            "$VICTIM repeat 20000 exit 5\n"
                            "EOF\n"
                            "exec unshare -Urm sh full.sh");
  ck_assert_msg(strstr(o->err, "incomplete") != NULL, "%s", o->err);
  ck_assert_msg(strstr(o->err, "weir import") != NULL, "%s", o->err);
  sh_status(0, "$WEIR import $(cat dir) -o t.db && rm -r $(cat dir)");
  ck_assert_int_gt(ask("t.db", ALLOCS), 0);
}
END_TEST

/* A limit that would have ended weir by SIGXFSZ, and the program's parent with it. */
START_TEST(a_limit_of_file_sizes_costs_the_trace_and_not_the_program)
{
  outcome *o =
      sh_status(5, "ulimit -f 4200; $WEIR run --force --sim --stacks=off -o t.db -- " TELL_DIR
                   "$VICTIM repeat 40000 exit 5");
  ck_assert_msg(strstr(o->err, "weir import") != NULL, "%s", o->err);
  sh_status(0, "$WEIR import $(cat dir) -o u.db && rm -r $(cat dir)");
  ck_assert_int_gt(ask("u.db", ALLOCS), 0);
}
END_TEST

/* More live processes than weir has descriptors for: those that end make room for the next. */
START_TEST(too_few_descriptors_lose_nothing)
{
  sh_status(0, "mkfifo came go; cat >many.sh <<'EOF'\n"
               "echo $WEIR_SPOOL_DIR >dir; exec 3<>go\n"
               "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n"
               "  $VICTIM call out x cat call exit 0 <go >came 3>&- & done\n"
               "head -c 20 came; exec 3>&-; wait\n"
               "EOF\n"
               "ulimit -n 30; " RUN "-- sh many.sh");
  ck_assert_int_eq(ask("t.db", ALLOCS), 40);
  nothing_is_left();
}
END_TEST

START_TEST(a_spool_that_was_never_finished_is_cleared_away)
{
  sh_status(0, RUN "-- sh -c 'echo $WEIR_SPOOL_DIR >dir; >$WEIR_SPOOL_DIR/1-0.unfinished'");
  nothing_is_left();
}
END_TEST

/* ---- plain LD_PRELOAD ------------------------------------------------------------------------ */

#define PRELOADED "LD_PRELOAD=$BUILD/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim "

START_TEST(a_preloaded_program_leaves_a_trace)
{
  adopt_collectors();
  outcome *o =
      sh_status(8, PRELOADED "sh -c 'echo $$ >pid; exec $VICTIM repeat 4 out hello exit 8'");
  ck_assert_str_eq(o->out, "hello");
  ck_assert_str_eq(o->err, "");
  wait_for_collectors();
  sh_status(0, "mv weir.$(cat pid).db t.db && test ! -e weir.*.log");
  ck_assert_int_eq(ask("t.db", ALLOCS), 4);
}
END_TEST

START_TEST(a_preloaded_tree_leaves_one_trace)
{
  adopt_collectors();
  sh_status(0, PRELOADED "$VICTIM fork repeat 2 fork exec repeat 3 exit 0");
  wait_for_collectors();
  sh_status(0, "mv weir.*.db t.db");
  ck_assert_int_eq(ask("t.db", PROCESSES), 2);
  ck_assert_int_eq(ask("t.db", ALLOCS), 5);
}
END_TEST

/* Nothing of the tree has a spool any more when the child makes its first call. */
START_TEST(a_preloaded_childs_first_call_may_be_late)
{
  adopt_collectors();
  sh_status(0,
            "mkdir place; mkfifo go; export WEIR_OUTPUT=t.db WEIR_SPOOL_ROOT=$PWD/place; " PRELOADED
            "$VICTIM call out x daemon await go call >out 2>err & wait $!; "
            "while ls place/*/$!-*.spool >/dev/null 2>&1; do :; done; : >go");
  wait_for_collectors();
  ck_assert_int_eq(ask("t.db", PROCESSES), 2);
}
END_TEST

START_TEST(a_preloaded_programs_trace_replaces_nothing)
{
  adopt_collectors();
  outcome *o =
      sh_status(0, "echo precious >t.db; export WEIR_OUTPUT=t.db; " PRELOADED "$VICTIM call");
  ck_assert_ptr_nonnull(strstr(o->err, "t.db is there already: the trace is written to "));
  ck_assert_ptr_nonnull(strstr(o->err, "/t-2.db.\n"));
  wait_for_collectors();
  sh_status(0, "export WEIR_OUTPUT=t.db; " PRELOADED "$VICTIM repeat 2");
  wait_for_collectors();
  ck_assert_str_eq(sh_status(0, "cat t.db")->out, "precious\n");
  ck_assert_int_eq(ask("t-2.db", ALLOCS), 1);
  ck_assert_int_eq(ask("t-3.db", ALLOCS), 2);
}
END_TEST

START_TEST(a_folder_of_spools_cannot_be_guessed)
{
  sh_status(0, "for i in 1 2; do " PRELOADED "sh -c 'echo ${WEIR_SPOOL_DIR##*/}' >>names; done;"
               " test $(grep -cE '^weir-[0-9]+-[0-9]+-[0-9]+-[0-9a-f]{16}$' names) = 2;"
               " test $(sed 's/.*-//' names | sort -u | wc -l) = 2");
}
END_TEST

START_TEST(a_log_is_written_to_no_file_of_anothers)
{
  sh_status(0, "echo precious >mine; ln -s mine t.db.log");
  sh_status(1, "$WEIR collect --spool-dir /nonexistent -o t.db");
  sh_status(0, "test \"$(cat mine)\" = precious && rm t.db.log && ln mine t.db.log");
  sh_status(1, "$WEIR collect --spool-dir /nonexistent -o t.db");
  sh_status(0, "test \"$(cat mine)\" = precious && rm t.db.log");
  sh_status(1, "$WEIR collect --spool-dir /nonexistent -o t.db");
  sh_status(0, "grep -q 'no folder of spools' t.db.log && test $(stat -c %%a t.db.log) = 600");
}
END_TEST

/* Batch systems send SIGTERM to all of a job, and give the program time to end. */
START_TEST(a_terminated_job_leaves_a_whole_trace)
{
  int status;
  long other;
  adopt_collectors();
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid =
      start(-1, -1, "export WEIR_OUTPUT=t.db; " PRELOADED "exec $VICTIM call await go call exit 4");
  int go = open("go", O_WRONLY); /* the collector is started by then, and a child of ours */
  FILE *f = fopen("/proc/thread-self/children", "r");
  ck_assert_ptr_nonnull(f);
  while (fscanf(f, "%ld", &other) == 1)
    if (other != pid) ck_assert_int_eq(kill((pid_t)other, SIGTERM), 0);
  (void)fclose(f);
  (void)close(go);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(WEXITSTATUS(status), 4);
  wait_for_collectors();
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
}
END_TEST

static TCase *tests(Suite *s, const char *name)
{
  TCase *t = tcase_create(name);
  tcase_set_timeout(t, 120); /* names the test that hangs */
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  suite_add_tcase(s, t);
  return t;
}

int main(void)
{
  Suite *s = suite_create("tools/run");
  TCase *t = tests(s, "streams");
  tcase_add_test(t, exit_status_is_the_programs);
  tcase_add_test(t, death_by_signal_is_the_programs);
  tcase_add_test(t, a_program_that_cannot_run_is_127_or_126);
  tcase_add_test(t, a_program_for_another_processor_is_126_and_not_fed_to_the_shell);
  tcase_add_test(t, a_script_without_an_interpreter_runs_by_the_shell);
  tcase_add_test(t, a_terminal_hears_the_traces_name_its_events_and_the_next_command);
  tcase_add_test(t, streams_are_untouched);
  tcase_add_test(t, arguments_stay_out_of_a_redacted_trace);
  tcase_add_test(t, the_launchers_rank_is_in_the_trace);
  tcase_add_test(t, what_is_no_answer_redacts);
  tcase_add_test(t, the_default_trace_is_named_after_the_program);
  tcase_add_test(t, a_program_without_cuda_leaves_a_trace_without_events);
  tcase_add_test(t, without_a_gpu_the_report_names_the_software_device);
  tcase_add_test(t, a_program_that_weir_is_not_in_is_said);
  tcase_add_test(t, each_way_to_start_a_program_is_watched);
  tcase_add_test(t, a_set_uid_program_is_said);
  tcase_add_test(t, a_program_that_was_changed_since_gives_no_lines);
  tcase_add_test(t, a_trace_has_what_a_read_of_its_clock_takes);
  tcase_add_test(t, a_clock_that_tells_another_time_is_not_the_trace_s);
  tcase_add_test(t, output_replaces_nothing_but_a_trace_by_force);
  tcase_add_test(t, a_trace_that_is_being_written_is_not_taken_away);
  tcase_add_loop_test(t, processes_that_are_launched_together_have_traces_of_their_own, 0,
                      sizeof rank_variables / sizeof *rank_variables);
  tcase_add_test(t, a_trace_is_named_by_placeholders);
  tcase_add_test(t, of_a_launch_only_the_first_replaces_a_trace_by_force);
  tcase_add_test(t, a_trace_is_for_its_owner_alone);
  tcase_add_test(t, what_a_neighbour_has_put_in_place_is_refused);
  tcase_add_test(t, the_environment_tells_the_program_only_what_it_must_know);
  tcase_add_test(t, a_program_with_a_runtime_of_its_own_gets_the_software_devices);
  tcase_add_test(t, the_software_device_lists_what_it_lacks);
  t = tests(s, "signals");
  tcase_add_test(t, a_signal_sent_to_weir_reaches_the_program);
  tcase_add_test(t, an_interrupt_from_the_terminal_arrives_once);
  tcase_add_test(t, stopping_the_program_stops_the_job);
  tcase_add_test(t, reports_longer_than_the_terminal_are_paged);
  t = tests(s, "trees");
  tcase_add_test(t, the_whole_tree_is_in_one_trace);
  tcase_add_test(t, exec_gives_the_process_a_second_spool);
  tcase_add_test(t, an_image_may_have_the_name_of_an_earlier_ones_spool);
  tcase_add_test(t, a_daemon_is_waited_for);
  tcase_add_test(t, no_wait_finishes_with_the_program);
  tcase_add_test(t, an_interrupt_after_the_program_finishes_without_the_rest);
  t = tests(s, "trouble");
  tcase_add_test(t, a_killed_collector_leaves_the_spools);
  tcase_add_test(t, a_full_disk_costs_the_trace_and_not_the_program);
  tcase_add_test(t, a_limit_of_file_sizes_costs_the_trace_and_not_the_program);
  tcase_add_test(t, too_few_descriptors_lose_nothing);
  tcase_add_test(t, a_spool_that_was_never_finished_is_cleared_away);
  t = tests(s, "preloaded");
  tcase_add_test(t, a_preloaded_program_leaves_a_trace);
  tcase_add_test(t, a_preloaded_tree_leaves_one_trace);
  tcase_add_test(t, a_preloaded_childs_first_call_may_be_late);
  tcase_add_test(t, a_preloaded_programs_trace_replaces_nothing);
  tcase_add_test(t, a_folder_of_spools_cannot_be_guessed);
  tcase_add_test(t, a_log_is_written_to_no_file_of_anothers);
  tcase_add_test(t, a_terminated_job_leaves_a_whole_trace);
  return run_suite(s);
}

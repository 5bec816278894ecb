/* test_command.c: the weir command line: right and wrong use, help, the manual, report and import.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

static unsigned lines_of(const char *text)
{
  unsigned n = 0;
  for (; *text; text++)
    n += *text == '\n';
  return n;
}

/* ---- use ------------------------------------------------------------------------------------- */

static const struct {
  const char *args;
  const char *says; /* part of the sentence */
} wrong[] = {
    {"", "a command is missing"},
    {"frobnicate", "no command 'frobnicate'"},
    {"help frobnicate", "no command 'frobnicate'"},
    {"help run report", "one command"},
    {"version now", "no argument"},
    {"run", "PROGRAM is missing"},
    {"run --", "PROGRAM is missing"},
    {"run --frobnicate -- true", "no option '--frobnicate'"},
    {"run -x -- true", "no option '-x'"},
    {"run -o", "needs a value"},
    {"run --mode=stern -- true", "no mode 'stern'"},
    {"run --sim=0 -- true", "1 to 32"},
    {"run --sim=33 -- true", "1 to 32"},
    {"run --sim=two -- true", "1 to 32"},
    {"run --sim=2,v100 -- true", "of a100 and h100, not of 'v100'"},
    {"run --sim=33,h100 -- true", "1 to 32, not '33'"},
    {"run --sim=,h100 -- true", "1 to 32"},
    {"run --stacks=0 -- true", "1 to 128"},
    {"run --stacks=129 -- true", "1 to 128"},
    {"run --stacks=-1 -- true", "1 to 128"},
    {"run --no-wait=1 -- true", "takes no value"},
    {"run --list-unsupported", "goes with --sim"},
    {"report", "FILE is missing"},
    {"report a.db b", "one trace"},
    {"report --format xml a", "no format 'xml'"},
    {"report --top 0 a", "1 to 1000"},
    {"report --top a", "1 to 1000"},
    {"report --depth 65 a", "0 to 64"},
    {"report --width wide a", "0 to 100000"},
    {"trace", "FILE is missing"},
    {"trace a b", "one trace"},
    {"trace --format xml a", "no format 'xml': text, csv or jsonl"},
    {"trace --kind copy,banana a", "no kind 'banana': alloc, free, copy"},
    {"trace --kind stack a", "no kind 'stack'"},
    {"trace --device gpu a", "--device takes a number from 0 on"},
    {"trace --thread 0 a", "--thread takes a number from 1 on"},
    {"trace --process -1 a", "--process takes a number from 1 on"},
    {"trace --stream main a", "legacy, per-thread or a handle"},
    {"trace --stream 0x a", "legacy, per-thread or a handle"},
    {"trace --min-bytes big a", "--min-bytes takes bytes"},
    {"trace --min-ns 3h a", "--min-ns takes a time"},
    {"trace --from -5 a", "--from takes a time"},
    {"trace --to 1e9 a", "--to takes a time"},
    {"trace --to 99999999999999s a", "--to takes a time"},
    {"resolve", "TRACE is missing"},
    {"resolve a b", "one trace"},
    {"resolve --symbols /no/such a", "takes a folder"},
    {"compare", "PROGRAM is missing"},
    {"prove", "PROGRAM' is missing"},
    {"compare --runs 0 true", "1 to 1000"},
    {"compare --format xml true", "no format 'xml'"},
    {"compare --sim=0 true", "1 to 32"},
    {"compare --sim=1,x true", "of a100 and h100"},
    {"import", "SPOOL is missing"},
    {"import a.spool", "-o FILE is missing"},
    {"import -o t.db", "SPOOL is missing"},
    {"replay", "FILE is missing"},
    {"replay a b", "one file"},
    {"replay --policy best a",
     "no policy 'best': weir, weir-segments, pytorch, pytorch-expandable, rmm-pool, malloc, all"},
    {"replay --capacity lots a", "--capacity takes bytes"},
    {"replay --capacity 0 a", "--capacity takes bytes"},
    {"replay --set size=1 a", "no setting 'size=1'"},
    {"replay --set max_split_size a", "max_split_size takes bytes"},
    {"replay --set garbage_collection_threshold=1.5 a", "between 0 and 1"},
    {"replay --format xml a", "no format 'xml'"},
    {"report lost a", "no report 'lost': summary, findings, transfers, waits, memory, leaks,"},
    {"report leakes a", "no report 'leakes': did you mean 'leaks'?"},
    {"report coverge a", "no report 'coverge': did you mean 'coverage'?"},
    {"report --hmtl a", "no option '--hmtl': did you mean '--html'?"},
    {"run --mod=observe -- a", "no option '--mod=observe': did you mean '--mode'?"},
    {"run --device-tmies all -- a", "did you mean '--device-times'?"},
    {"diff --fialon x a b", "did you mean '--fail-on'?"},
    {"run --hlep", "did you mean '--help'?"},
    {"help rnu", "no command 'rnu': did you mean 'run'?"},
    {"rep a", "no command 'rep': did you mean 'report'?"},
    {"dif a b", "no command 'dif': did you mean 'diff'?"},
    {"colect", "no command 'colect' (see"}, /* which is not for people */
    {"stats cuda_api_smu a", "no report 'cuda_api_smu': did you mean 'cuda_api_sum'?"},
    {"prove pageble-async -- a", "no finding 'pageble-async': did you mean 'pageable-async'?"},
    {"explain pageble-async", "no rule 'pageble-async': did you mean 'pageable-async'?"},
    {"explain 99", "no rule '99'; 'weir explain' lists them"},
    {"explain --format xml", "no format 'xml': text or markdown"},
    {"diff --min-cost 1parsec a b", "--min-cost takes a cost"},
    {"check --budget x --min-cost -1ms a", "--min-cost takes a cost"},
    {"stats -r cuda_api_sum,nothing a", "no report 'nothing'"},
    {"stats cuda_api_sum:base a", "no argument 'base': rows=N"},
    {"stats -r cuda_gpu_kern_sum:nvtx a", "base, mangled or rows=N"},
    {"stats -r , a", "no report ''"},
    {"export -o x a", "--format FORMAT is missing"},
    {"export --format rmm-csv a", "-o FILE is missing"},
    {"export --format rmm-csv -o x", "FILE is missing"},
    {"export --format rmm-csv -o x a b", "one file"},
    {"export --format parquet -o x a", "no format 'parquet'"},
    {"collect", "--spool-dir is missing"},
    {"collect --spool-dir /x", "--output or --pid"},
    {"collect --pid 0", "process id"},
};

START_TEST(wrong_use_is_one_sentence_and_exit_2)
{
  outcome *o = sh_status(2, "$WEIR %s", wrong[_i].args);
  ck_assert_str_eq(o->out, "");
  ck_assert_uint_eq(lines_of(o->err), 1);
  ck_assert_msg(!strncmp(o->err, "weir: ", 6), "%s", o->err);
  ck_assert_msg(strstr(o->err, wrong[_i].says) != NULL, "%s", o->err);
  ck_assert_msg(strstr(o->err, "(see 'weir help") != NULL, "%s", o->err);
}
END_TEST

START_TEST(help_lists_every_command_for_people_and_explains_each)
{
  static const char *const names[] = {
      "run",  "report", "trace", "resolve",    "compare", "prove",   "import", "replay", "export",
      "diff", "check",  "stats", "completion", "version", "recover", "help",   "explain"};
  outcome *all = sh_status(0, "$WEIR help");
  ck_assert_str_eq(sh_status(0, "$WEIR --help")->out, all->out);
  ck_assert_str_eq(sh_status(0, "$WEIR -h")->out, all->out);
  ck_assert_ptr_null(strstr(all->out, "  collect "));
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    char row[32], usage[32];
    (void)snprintf(row, sizeof row, "\n  %-10s  ", names[i]);
    (void)snprintf(usage, sizeof usage, "usage: weir %s", names[i]);
    ck_assert_msg(strstr(all->out, row) != NULL, "%s", names[i]);
    outcome *one = sh_status(0, "$WEIR help %s", names[i]);
    ck_assert_msg(!strncmp(one->out, usage, strlen(usage)), "%s", one->out);
    ck_assert_str_eq(sh_status(0, "$WEIR %s --help", names[i])->out, one->out);
    ck_assert_str_eq(sh_status(0, "$WEIR %s -h", names[i])->out, one->out);
  }
}
END_TEST

START_TEST(version_names_what_weir_is_built_on)
{
  outcome *o = sh_status(0, "$WEIR version");
  ck_assert_str_eq(sh_status(0, "$WEIR --version")->out, o->out);
  ck_assert_ptr_nonnull(strstr(o->out, "weir 0."));
  ck_assert_ptr_nonnull(strstr(o->out, "SQLite 3."));
  ck_assert_ptr_nonnull(strstr(o->out, "elfutils"));
  ck_assert_ptr_nonnull(strstr(o->out, "jansson"));
}
END_TEST

START_TEST(a_full_stdout_is_a_failure)
{
  if (access("/dev/full", W_OK) == 0) sh_status(1, "$WEIR help >/dev/full");
}
END_TEST

/* ---- the manual ------------------------------------------------------------------------------ */

/* The long options of a command, sorted, one a line: from its help, and from its part of weir(1).
 */
START_TEST(manual_and_help_have_the_same_options)
{
  static const char *const names[] = {
      "run",    "report", "trace",   "compare", "prove", "import",  "diff",    "check",  "replay",
      "export", "stats",  "resolve", "version", "help",  "collect", "recover", "explain"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    outcome *help = sh_status(0,
                              "$WEIR help %s | sed -n 's/^  \\(-., "
                              "\\)\\{0,1\\}--\\([a-z-]*\\).*/\\2/p' | grep -v '^help$' | sort",
                              names[i]);
    outcome *page = sh_status(0,
                              "awk -v c='%s' '/^\\.S[sh] / { in_it = ($2 == \"weir\" && $3 == c) "
                              "} in_it && /^\\.It Fl/' $WEIR_SOURCE/tools/man/weir.1 |"
                              " grep -o 'Fl -[a-z-]*' | sed 's/Fl -//' | sort",
                              names[i]);
    ck_assert_msg(!strcmp(help->out, page->out), "weir %s: help has\n%sthe manual has\n%s",
                  names[i], help->out, page->out);
  }
}
END_TEST

START_TEST(help_fits_eighty_columns)
{
  outcome *o = sh_status(0, "for c in '' $($WEIR help | sed -n 's/^  \\([a-z][a-z]*\\)  .*/\\1/p')"
                            " collect; do $WEIR help $c 2>/dev/null; done >all;"
                            " test $(grep -c ^usage: all) -ge 17 && awk 'length($0) > 80' all");
  ck_assert_str_eq(o->out, "");
}
END_TEST

/* man -l follows no request for another page. */
START_TEST(pages_of_the_manual_are_whole)
{
  sh_status(0, "test -e $BUILD/man/weir_to.3 && ! grep -l '^[.]so ' $BUILD/man/*");
}
END_TEST

START_TEST(manual_names_every_command)
{
  outcome *o = sh_status(
      0, "sed -n 's/^\\.Ss weir //p' $WEIR_SOURCE/tools/man/weir.1 | sort | tr '\\n' ' '");
  ck_assert_str_eq(o->out,
                   "check collect compare completion diff dump explain export help import prove "
                   "ps recover replay report "
                   "resolve run start stats stop top trace version ");
}
END_TEST

/* ---- report and import ----------------------------------------------------------------------- */

START_TEST(report_of_no_trace_is_one_sentence)
{
  outcome *o = sh_status(1, "$WEIR report nothing.db");
  ck_assert_uint_eq(lines_of(o->err), 1);
  ck_assert_ptr_nonnull(strstr(o->err, "nothing.db"));
  o = sh_status(1, "echo 'some text' >text; $WEIR report text");
  ck_assert_uint_eq(lines_of(o->err), 1);
  ck_assert_str_eq(o->out, "");
}
END_TEST

/* Reports of their own head their page with the path. */
START_TEST(a_path_with_control_characters_is_cleaned_in_every_report)
{
  static const char *const reports[] = {"findings", "cache", "transfers", "coverage"};
  sh_status(
      0, "$WEIR run --force --sim -o t.db -- $VICTIM call; mv t.db \"$(printf 'a\\033[31mb.db')\"");
  for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
    outcome *o = sh_status(0, "$WEIR report %s \"$(printf 'a\\033[31mb.db')\"", reports[i]);
    ck_assert_msg(!strchr(o->out, 033), "%s: %s", reports[i], o->out);
    ck_assert_msg(strstr(o->out, "a?[31mb.db"), "%s: %s", reports[i], o->out);
  }
}
END_TEST

START_TEST(sim_takes_a_number_of_devices_and_a_card_with_its_costs)
{
  static const char *const asked[][2] = {{"--sim=2,h100", "2 h100"},
                                         {"--sim=a100", "- a100"},
                                         {"--sim=3", "3 -"},
                                         {"--sim=h100 --sim=4", "4 -"}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    outcome *o =
        sh_status(0,
                  "unset WEIR_SIM_DEVICES WEIR_SIM_CARD; $WEIR run --force -o t.db %s -- sh "
                  "-c 'echo ${WEIR_SIM_DEVICES:--} ${WEIR_SIM_CARD:--} && $VICTIM call'",
                  asked[i][0]);
    ck_assert_msg(strncmp(o->out, asked[i][1], strlen(asked[i][1])) == 0, "%s", o->out);
  }
}
END_TEST

START_TEST(report_is_plain_text_off_a_terminal_and_json_on_request)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM call");
  outcome *text = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_null(strchr(text->out, 033));
  ck_assert_str_eq(sh_status(0, "$WEIR report summary t.db")->out, text->out);
  sh_status(0, "$WEIR report --format json t.db | python3 -c '"
               "import json, sys; r = json.load(sys.stdin); t = r[\"totals\"];"
               "assert r[\"schema\"] == \"weir-report/2\", r;"
               "assert t[\"alloc_calls\"] == 1 and t[\"alloc_bytes\"] == 4096, t;"
               "made = [a[\"function\"] for a in r[\"functions\"] if a[\"init_calls\"]];"
               "assert sorted(made) == [\"cuDevicePrimaryCtxRetain\", \"cuInit\"], made'");
  sh_status(0, "python3 $WEIR_SOURCE/tests/reports/shape.py t.db $WEIR");
}
END_TEST

/* The longest line, in columns. */
#define LONGEST "python3 -X utf8 -c 'import sys; print(max(len(l.rstrip()) for l in sys.stdin))'"
#define ON_A_TERMINAL                                                                              \
  "python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' env NO_COLOR=1"

START_TEST(a_report_is_as_wide_as_its_terminal_or_as_asked_and_whole_in_a_pipe)
{
  char name[201];
  memset(name, 'v', 200);
  name[200] = '\0';
  sh_status(0, "cp $VICTIM %s && $WEIR run --force --sim -o t.db -- ./%s call", name, name);
  const char *whole = sh_status(0, "$WEIR report t.db")->out;
  ck_assert_ptr_nonnull(strstr(whole, name));
  ck_assert_ptr_null(strstr(whole, "…"));
  ck_assert_str_eq(sh_status(0, "COLUMNS=50 $WEIR report t.db")->out, whole);
  ck_assert_int_eq(atoi(sh_status(0, "$WEIR report -w 70 t.db | " LONGEST)->out), 70);
  ck_assert_int_ge(atoi(sh_status(0, "$WEIR report -w 0 t.db | " LONGEST)->out), 200);
  if (!has_terminals()) return;
  ck_assert_int_eq(
      atoi(sh_status(0, "COLUMNS=90 " ON_A_TERMINAL " $WEIR report t.db | " LONGEST)->out), 90);
  ck_assert_int_eq(
      atoi(sh_status(0, "COLUMNS=120 " ON_A_TERMINAL " $WEIR report --width 66 t.db | " LONGEST)
               ->out),
      66);
}
END_TEST

/* Leaves spools of two processes in ./spools, as a killed collector does. */
static void make_spools(void)
{
  sh_status(0, "mkdir -m 700 spools && for n in 1 2; do WEIR_SPOOL_DIR=$PWD/spools "
               "LD_PRELOAD=$BUILD/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim "
               "$VICTIM repeat 3 || exit; done");
  ck_assert_str_eq(sh_status(0, "ls spools/*.spool | wc -l")->out, "2\n");
}

START_TEST(spools_and_folders_of_them_are_imported_into_one_trace)
{
  make_spools();
  outcome *o = sh_status(0, "$WEIR import spools/*.spool -o files.db");
  ck_assert_str_eq(o->out, "");
  ck_assert_str_eq(o->err, "");
  sh_status(0, "$WEIR import spools -o folder.db");
  for (int i = 0; i < 2; i++) {
    const char *trace = i ? "files.db" : "folder.db";
    ck_assert_int_eq(ask(trace, "SELECT count(*) FROM process"), 2);
    ck_assert_int_eq(ask(trace, "SELECT count(*) FROM event WHERE kind = 1"), 6);
    ck_assert_int_eq(ask(trace, "SELECT count(*) FROM event WHERE kind = 2"), 6);
  }
  ck_assert_str_eq(sh_status(0, "ls spools/*.spool | wc -l")->out,
                   "2\n"); /* import takes nothing away */
}
END_TEST

START_TEST(a_spool_is_reported_without_import)
{
  make_spools();
  outcome *o = sh_status(0, "for s in spools/*.spool; do $WEIR report --format json $s | "
                            "python3 -c 'import json, sys; "
                            "print(json.load(sys.stdin)[\"totals\"][\"alloc_calls\"])'; done");
  ck_assert_str_eq(o->out, "3\n3\n");
}
END_TEST

START_TEST(a_bad_spool_is_named_and_the_others_are_imported)
{
  make_spools();
  outcome *o = sh_status(1, "echo nonsense >bad.spool; $WEIR import bad.spool spools -o t.db");
  ck_assert_uint_eq(lines_of(o->err), 1);
  ck_assert_ptr_nonnull(strstr(o->err, "bad.spool"));
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1"), 6);
  o = sh_status(1, "mkdir empty; $WEIR import empty -o e.db");
  ck_assert_ptr_nonnull(strstr(o->err, "empty"));
}
END_TEST

#define EVENTS_IN "SELECT count(*) FROM event"

START_TEST(an_import_of_nothing_touches_no_trace)
{
  make_spools();
  sh_status(0, "$WEIR import spools -o t.db && cp t.db before && mkdir empty && echo x >bad.spool");
  sh_status(1, "$WEIR import empty -o t.db");
  sh_status(1, "$WEIR import --force empty -o t.db");
  sh_status(1, "$WEIR import --force bad.spool nothing -o t.db");
  sh_status(0, "cmp t.db before");
  sh_status(1, "$WEIR import empty -o new.db");
  sh_status(0, "test ! -e new.db");
}
END_TEST

START_TEST(an_import_adds_what_a_trace_lacks_and_nothing_twice)
{
  make_spools();
  sh_status(0, "$WEIR import spools -o whole.db");
  sh_status(0, "$WEIR import $(ls spools/*.spool | head -1) -o t.db");
  long long part = ask("t.db", EVENTS_IN), whole = ask("whole.db", EVENTS_IN);
  ck_assert_int_lt(part, whole);
  sh_status(0, "$WEIR import $PWD/spools -o t.db");
  ck_assert_int_eq(ask("t.db", EVENTS_IN), whole);
  sh_status(0, "$WEIR import spools -o t.db && $WEIR import spools/*.spool -o t.db");
  ck_assert_int_eq(ask("t.db", EVENTS_IN), whole);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block"),
                   ask("whole.db", "SELECT count(*) FROM block"));
  ck_assert_int_eq(ask("t.db", "SELECT value FROM meta WHERE key = 'finished'"), 1);
}
END_TEST

START_TEST(an_import_into_another_runs_trace_is_refused)
{
  make_spools();
  sh_status(0, "$WEIR run --sim -o other.db -- $VICTIM repeat 3 && cp other.db before");
  outcome *o = sh_status(1, "$WEIR import spools -o other.db");
  ck_assert_str_eq(o->err, "weir: other.db holds another run: --force replaces it; other-2.db is"
                           " free.\n");
  sh_status(0, "cmp other.db before && $WEIR import --force spools -o other.db");
}
END_TEST

START_TEST(only_a_trace_or_an_empty_file_is_replaced)
{
  make_spools();
  outcome *o = sh_status(1, "echo precious >file; $WEIR import spools -o file");
  ck_assert_ptr_nonnull(strstr(o->err, "not replaced"));
  ck_assert_str_eq(sh_status(0, "cat file")->out, "precious\n");
  sh_status(0, "sqlite3 other.db 'CREATE TABLE meta(x)'");
  sh_status(1, "$WEIR import spools -o other.db");
  sh_status(1, "$WEIR import spools -o .");
  sh_status(1, "$WEIR import spools -o nowhere/t.db");
  sh_status(0, ": >empty; $WEIR import spools -o empty");
  sh_status(0, "$WEIR import spools/*-0.spool --force -o empty");
  ck_assert_int_gt(ask("empty", "SELECT count(*) FROM event"), 0);
  ck_assert_int_le(ask("empty", "SELECT count(*) FROM event WHERE kind = 1"), 6);
}
END_TEST

/* ---- replay and export ----------------------------------------------------------------------- */

START_TEST(replay_prints_a_row_a_policy_and_json_on_request)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM repeat 3");
  outcome *text = sh_status(0, "$WEIR replay t.db");
  ck_assert_uint_eq(lines_of(text->out), 7);
  ck_assert_str_eq(text->err, "");
  sh_status(0, "$WEIR replay --format json --policy malloc t.db | python3 -c '"
               "import json, sys; r = json.load(sys.stdin);"
               "assert r[\"policy\"] == \"malloc\" and r[\"operations\"] == 6, r;"
               "assert r[\"segment_calls\"] == 6 and r[\"syncs\"] == 3, r'");
  sh_status(0, "$WEIR replay --format json --policy all t.db | python3 -c '"
               "import json, sys; assert len(json.load(sys.stdin)) == 6'");
}
END_TEST

START_TEST(replay_draws_well_formed_svg)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM repeat 3");
  sh_status(0, "$WEIR replay --svg t.svg t.db && python3 -c '"
               "import xml.dom.minidom as x; d = x.parse(\"t.svg\").documentElement;"
               "assert d.tagName == \"svg\";"
               "assert len(d.getElementsByTagName(\"path\")) == 7'");
  ck_assert_ptr_nonnull(strstr(sh_status(1, "$WEIR replay --svg nowhere/x t.db")->err, "nowhere"));
}
END_TEST

START_TEST(replay_of_what_it_cannot_read_is_one_sentence)
{
  outcome *o = sh_status(1, "echo hello >text; $WEIR replay text");
  ck_assert_uint_eq(lines_of(o->err), 1);
  ck_assert_ptr_nonnull(strstr(o->err, "text is no trace"));
  o = sh_status(1, "echo Thread,Time,Action,Pointer,Size,Stream >log; $WEIR replay log");
  ck_assert_ptr_nonnull(strstr(o->err, "holds no allocation"));
  o = sh_status(1, "$WEIR replay --set max_split_size=1M $BUILD/corpus/pipeline.csv");
  ck_assert_ptr_nonnull(strstr(o->err, "more than 20 MiB"));
}
END_TEST

/* Tables that can be altered, with what the views of the trace have. */
START_TEST(an_nsys_export_has_tables_of_what_the_views_say)
{
  static const char *const same[] = {
      "CUPTI_ACTIVITY_KIND_RUNTIME",         "CUPTI_ACTIVITY_KIND_MEMCPY",
      "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUDA_CALLCHAINS",
      "CUDA_GPU_MEMORY_USAGE_EVENTS",        "ENUM_CUPTI_SYNC_TYPE"};
  char sql[128];
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM repeat 3");
  sh_status(0, "$WEIR export --format nsys -o nsys.sqlite t.db");
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", same[i]);
    ck_assert_int_eq(ask("nsys.sqlite", sql), ask("t.db", sql));
  }
  ck_assert_int_gt(ask("nsys.sqlite", "SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"), 0);
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) - count(DISTINCT id) FROM StringIds"), 0);
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) FROM sqlite_schema WHERE type = 'view'"), 0);
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 0);
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r"
                                      " JOIN StringIds s ON s.id = r.nameId WHERE r.rowid > 0"
                                      " AND s.value = 'cudaMalloc'"),
                   ask("t.db", "SELECT count(*) FROM allocation WHERE function = 'cudaMalloc'"));
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) FROM StringIds WHERE value GLOB '__cuda*'"),
                   0);
  sh_status(0, "sqlite3 nsys.sqlite 'ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY ADD COLUMN x'");
  sh_status(1, "$WEIR export --format nsys -o nowhere/x t.db");
  sh_status(1, "echo text >text; $WEIR export --format nsys -o y text");
  ck_assert_str_eq(sh_status(0, "ls | grep -c part; true")->out, "0\n");
}
END_TEST

/* What CUPTI saw, graphs' own included, with kernels by the names that their source has. */
START_TEST(an_nsys_export_has_kernels_that_the_device_was_seen_running)
{
  sh_status(0, "$WEIR run --force --sim --device-times=all -o t.db -- "
               "$BUILD/tests/e2e/graph_caller explicit; "
               "sqlite3 t.db \"UPDATE name SET string = (SELECT min(id) FROM StringIds);"
               " UPDATE StringIds SET value = '_ZN1a1bIiEEvPf' WHERE id ="
               " (SELECT min(string) FROM name)\"; "
               "$WEIR export --format nsys -o nsys.sqlite t.db");
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 12);
  ck_assert_int_eq(ask("nsys.sqlite",
                       "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k"
                       " JOIN StringIds d ON d.id = k.demangledName"
                       " JOIN StringIds s ON s.id = k.shortName"
                       " JOIN StringIds m ON m.id = k.mangledName"
                       " WHERE d.value = 'void a::b<int>(float*)' AND s.value = 'b'"
                       " AND m.value = '_ZN1a1bIiEEvPf' AND graphNodeId > 0 AND \"end\" > start"),
                   12);
  ck_assert_int_eq(ask("nsys.sqlite", "SELECT sum(copyCount) FROM CUPTI_ACTIVITY_KIND_MEMCPY"
                                      " WHERE graphNodeId > 0"),
                   12);
}
END_TEST

/* Statements as those of Nsight Systems' documentation: tables are altered, filled from others
 * by id, and asked, with "end" unquoted. */
START_TEST(an_nsys_export_answers_what_nsight_s_documentation_asks)
{
  static const char *const statements =
      "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN name TEXT;"
      "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN kernelName TEXT;"
      "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET kernelName = (SELECT value FROM StringIds"
      " JOIN CUPTI_ACTIVITY_KIND_KERNEL AS gpu ON gpu.shortName = StringIds.id"
      " AND CUPTI_ACTIVITY_KIND_RUNTIME.correlationId = gpu.correlationId);"
      "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET name ="
      " (SELECT value FROM StringIds WHERE nameId = StringIds.id);"
      "ALTER TABLE CUDA_CALLCHAINS ADD COLUMN symbolName TEXT;"
      "UPDATE CUDA_CALLCHAINS SET symbolName ="
      " (SELECT value FROM StringIds WHERE symbol = StringIds.id);"
      "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE rowid IN (SELECT cuda.rowid FROM"
      " PROFILER_OVERHEAD AS o JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS cuda"
      " ON cuda.start BETWEEN o.start AND o.end AND cuda.end < o.start);";
  sh_status(0, "$WEIR run --force --sim --device-times=all -o t.db -- "
               "$BUILD/tests/e2e/graph_caller explicit; $WEIR export --format nsys -o n.db t.db");
  sh_status(0, "sqlite3 n.db '%s'", statements);
  ck_assert_int_gt(ask("n.db", "SELECT count(*) FROM (SELECT name, kernelName, start, end FROM"
                               " CUPTI_ACTIVITY_KIND_RUNTIME WHERE kernelName IS NOT NULL"
                               " ORDER BY end - start LIMIT 10)"),
                   0);
  ck_assert_int_eq(ask("n.db", "SELECT count(DISTINCT globalTid / 0x1000000 % 0x1000000) FROM"
                               " CUPTI_ACTIVITY_KIND_RUNTIME"),
                   ask("t.db", "SELECT count(*) FROM process"));
  ck_assert_int_eq(
      ask("n.db", "SELECT max(globalTid % 0x1000000) FROM CUPTI_ACTIVITY_KIND_RUNTIME"),
      ask("t.db", "SELECT max(tid) FROM thread WHERE id IN (SELECT thread FROM call)"));
  ck_assert_int_eq(ask("n.db", "SELECT count(DISTINCT r.rowid) FROM CUPTI_ACTIVITY_KIND_RUNTIME r"
                               " JOIN CUDA_CALLCHAINS c ON c.id = r.callchainId"
                               " WHERE c.symbolName = 'main' AND NOT c.unresolved"),
                   ask("t.db", "SELECT count(*) FROM call"));
}
END_TEST

/* Ranges around calls, found by time on the same thread. */
START_TEST(an_nsys_export_has_ranges_that_calls_are_found_in)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $BUILD/tests/victims/nvtx/nests 3 3 500;"
               " $WEIR export --format nsys -o n.db t.db");
  sh_status(0,
            "sqlite3 n.db 'ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN nvtxRange TEXT;"
            " CREATE INDEX nvtx_start ON NVTX_EVENTS(start); UPDATE CUPTI_ACTIVITY_KIND_RUNTIME"
            " SET nvtxRange = (SELECT NVTX_EVENTS.text FROM NVTX_EVENTS JOIN ENUM_NSYS_EVENT_TYPE"
            " ON NVTX_EVENTS.eventType == ENUM_NSYS_EVENT_TYPE.id WHERE ENUM_NSYS_EVENT_TYPE.name"
            " == \"NvtxPushPopRange\" AND NVTX_EVENTS.globalTid =="
            " CUPTI_ACTIVITY_KIND_RUNTIME.globalTid AND NVTX_EVENTS.start <="
            " CUPTI_ACTIVITY_KIND_RUNTIME.start AND NVTX_EVENTS.end >="
            " CUPTI_ACTIVITY_KIND_RUNTIME.end ORDER BY NVTX_EVENTS.start DESC LIMIT 1)'");
  ck_assert_int_gt(ask("n.db", "SELECT count(nvtxRange) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 0);
  ck_assert_int_eq(ask("n.db", "SELECT count(nvtxRange) FROM CUPTI_ACTIVITY_KIND_RUNTIME"),
                   ask("t.db",
                       "SELECT count(*) FROM call c WHERE EXISTS(SELECT 1 FROM range r WHERE"
                       " r.kind = 'push_pop' AND r.thread = c.thread AND r.start_ns <="
                       " c.start_ns AND r.end_ns >= c.start_ns + c.duration_ns)"));
}
END_TEST

/* A trace of an older Weir's lacks what is newer, and has the rest. */
START_TEST(an_nsys_export_of_an_older_trace_has_what_that_has)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM repeat 3;"
               " sqlite3 t.db 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY' >copies;"
               " for v in $(sqlite3 t.db \"SELECT name FROM sqlite_schema WHERE type = 'view'\");"
               " do sqlite3 t.db \"DROP VIEW $v\"; done; sqlite3 t.db 'DROP TABLE device_work;"
               " DROP TABLE graph_work; DROP TABLE graph_launch; DROP TABLE range_row;"
               " DROP INDEX name_by_handle; ALTER TABLE name DROP COLUMN string';"
               " $WEIR export --format nsys -o nsys.sqlite t.db; sqlite3 nsys.sqlite"
               " 'SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY' | cmp - copies");
}
END_TEST

START_TEST(exports_agree_and_python_reads_them)
{
  sh_status(0, "for f in rmm-csv pytorch-snapshot pytorch-pickle; do "
               "$WEIR export --format $f -o $f $BUILD/corpus/pipeline.csv || exit; done");
  sh_status(0, "$WEIR replay pytorch-snapshot >a && $WEIR replay rmm-csv | "
               "cut -c 1-65 >b; $WEIR replay $BUILD/corpus/pipeline.csv | cut -c 1-65 >c; "
               "cmp b c");
  sh_status(0, "python3 -c '"
               "import json, pickle; j = json.load(open(\"pytorch-snapshot\"));"
               "p = pickle.load(open(\"pytorch-pickle\", \"rb\"));"
               "assert j == p and len(p[\"device_traces\"][0]) > 10000'");
  sh_status(0, "$WEIR replay pytorch-pickle | cut -c 1-65 >d && cut -c 1-65 a | cmp - d");
  sh_status(1, "$WEIR export --format rmm-csv -o nowhere/x rmm-csv");
  ck_assert_str_eq(sh_status(0, "ls | grep -c part; true")->out, "0\n");
}
END_TEST

/* An exported snapshot leads back to the program's lines, in JSON and in the pickle. */
START_TEST(a_snapshot_of_a_trace_has_frames)
{
  sh_status(0, "$WEIR run --force --sim -o t.db -- $VICTIM repeat 3;"
               " for f in snapshot pickle; do $WEIR export --format pytorch-$f -o $f t.db; done");
  sh_status(0, "python3 -c '"
               "import json, pickle; j = json.load(open(\"snapshot\"));"
               "assert j == pickle.load(open(\"pickle\", \"rb\"));"
               "e = j[\"device_traces\"][0];"
               "assert len(e) == 9 and all(x[\"frames\"] for x in e), len(e);"
               "f = [y for y in e[0][\"frames\"] if y[\"name\"] == \"allocate_and_free_once\"];"
               "assert f and f[0][\"filename\"].endswith(\"victim.c\") and f[0][\"line\"] > 0, f'");
}
END_TEST

START_TEST(a_log_of_rmm_s_is_one_a_device)
{
  sh_status(0, "$WEIR run --force --sim=2 -o t.db -- $VICTIM call on 1 call call");
  outcome *o = sh_status(0, "$WEIR export --format rmm-csv -o log.csv t.db");
  ck_assert_str_eq(o->out, "log.dev0.csv\nlog.dev1.csv\n");
  sh_status(0, "test ! -e log.csv && test $(grep -c allocate log.dev0.csv) = 1 &&"
               " test $(grep -c allocate log.dev1.csv) = 2 && $WEIR replay log.dev1.csv");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/command");
  TCase *use = tcase_create("use"), *traces = tcase_create("traces");
  tcase_set_timeout(use, 0);
  tcase_set_timeout(traces, 0);
  tcase_add_checked_fixture(use, enter_scratch, leave_scratch);
  tcase_add_checked_fixture(traces, enter_scratch, leave_scratch);
  tcase_add_loop_test(use, wrong_use_is_one_sentence_and_exit_2, 0, sizeof wrong / sizeof *wrong);
  tcase_add_test(use, help_lists_every_command_for_people_and_explains_each);
  tcase_add_test(use, version_names_what_weir_is_built_on);
  tcase_add_test(use, a_full_stdout_is_a_failure);
  tcase_add_test(use, manual_and_help_have_the_same_options);
  tcase_add_test(use, help_fits_eighty_columns);
  tcase_add_test(use, pages_of_the_manual_are_whole);
  tcase_add_test(use, manual_names_every_command);
  tcase_add_test(traces, report_of_no_trace_is_one_sentence);
  tcase_add_test(traces, a_path_with_control_characters_is_cleaned_in_every_report);
  tcase_add_test(traces, a_report_is_as_wide_as_its_terminal_or_as_asked_and_whole_in_a_pipe);
  tcase_add_test(traces, sim_takes_a_number_of_devices_and_a_card_with_its_costs);
  tcase_add_test(traces, report_is_plain_text_off_a_terminal_and_json_on_request);
  tcase_add_test(traces, spools_and_folders_of_them_are_imported_into_one_trace);
  tcase_add_test(traces, a_spool_is_reported_without_import);
  tcase_add_test(traces, a_bad_spool_is_named_and_the_others_are_imported);
  tcase_add_test(traces, an_import_of_nothing_touches_no_trace);
  tcase_add_test(traces, an_import_adds_what_a_trace_lacks_and_nothing_twice);
  tcase_add_test(traces, an_import_into_another_runs_trace_is_refused);
  tcase_add_test(traces, only_a_trace_or_an_empty_file_is_replaced);
  tcase_add_test(traces, replay_prints_a_row_a_policy_and_json_on_request);
  tcase_add_test(traces, replay_draws_well_formed_svg);
  tcase_add_test(traces, replay_of_what_it_cannot_read_is_one_sentence);
  tcase_add_test(traces, an_nsys_export_has_tables_of_what_the_views_say);
  tcase_add_test(traces, an_nsys_export_has_kernels_that_the_device_was_seen_running);
  tcase_add_test(traces, an_nsys_export_answers_what_nsight_s_documentation_asks);
  tcase_add_test(traces, an_nsys_export_has_ranges_that_calls_are_found_in);
  tcase_add_test(traces, an_nsys_export_of_an_older_trace_has_what_that_has);
  tcase_add_test(traces, exports_agree_and_python_reads_them);
  tcase_add_test(traces, a_snapshot_of_a_trace_has_frames);
  tcase_add_test(traces, a_log_of_rmm_s_is_one_a_device);
  suite_add_tcase(s, use);
  suite_add_tcase(s, traces);
  return run_suite(s);
}

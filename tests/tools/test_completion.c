/* test_completion.c: what the shells complete of weir's command lines. The scripts are read by the
 * shells themselves: bash is asked for its answers; zsh and fish, where they are there, parse
 * theirs, and fish answers too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"

/* Calls bash's function as readline does: the words of the line, split at "=" too, the last of them
 * being completed. */
static const char ask_bash[] =
    "cat >ask.sh <<'END'\n"
    "eval \"$($WEIR completion bash)\" || exit 1\n"
    "COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _weir; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    "END\n";

static const struct {
  const char *line, *answer;
} asked[] = {
    {"weir rep", "report\nreplay\n"},
    {"weir report tra", "transfers\n"},
    {"weir report --format ''", "text\njson\ncsv\nmarkdown\njson/1\n"},
    {"weir report --format = j", "json\njson/1\n"},
    {"weir report -f m", "markdown\n"},
    {"weir report --format =", "text\njson\ncsv\nmarkdown\njson/1\n"},
    {"weir report --by s", "site\nstack\nstream\n"},
    {"weir report one", "one.db\n"},
    {"weir run --device", "--device-times\n"},
    {"weir run --mode r", "relaxed\n"},
    {"weir run -o on", "one.db\n"},
    {"weir run -- ./on", "./one.db\n"},
    {"weir run -- ./prog on", "one.db\n"},
    {"weir compare --runs ''", "\n"},
    {"weir completion f", "fish\n"},
    {"weir run --sim = a", "a100\n"},
    {"weir run --reroute pi", "pinned\n"},
    {"weir run --cache-rules on", "one.db\n"},
    {"weir trace --kind mems", "memset\n"},
    {"weir stats --timeunit m", "msec\n"},
    {"weir stats -r nvtx_p", "nvtx_pushpop_sum\n"},
    {"weir stats nvtx_p", "nvtx_pushpop_sum\n"},
    {"weir replay -p weir-", "weir-segments\n"},
    {"weir prove pinned-c", "pinned-churn\n"},
    {"weir explain launch-s", "launch-storm\n"},
    {"weir trace --kind copy,mems", "copy,memset\n"},
    {"weir stats -f csv,json,t", "csv,json,table\ncsv,json,tsv\n"},
    {"weir run --sim = 2,h", "2,h100\n"},
    {"weir run -o a,on", "\n"},
    {"weir replay --set max_s", "max_split_size=\n"},
};

START_TEST(bash_completes_commands_options_values_files)
{
  outcome *o = sh_status(0, "touch one.db; %s bash ask.sh %s", ask_bash, asked[_i].line);
  ck_assert_msg(!strcmp(o->out, asked[_i].answer), "%s: %s", asked[_i].line, o->out);
}
END_TEST

/* An option that help shows is in each script, and a word that a script offers is in the help or
 * in weir(1). */
START_TEST(scripts_hold_each_option_and_no_word_that_help_has_not)
{
  outcome *o = sh_status(
      0,
      "set -e; for s in bash zsh fish; do $WEIR completion $s >$s.out; done\n"
      "$WEIR help | sed -n 's/^  \\([a-z][a-z]*\\)  .*/\\1/p' | grep -v '^weir$' >commands\n"
      "while read c; do\n"
      "  $WEIR help $c >help.out\n"
      "  grep -q \"'$c:\" zsh.out; grep -q -- \"-a $c \" fish.out\n"
      "  sed -n 's/^  \\(-., \\)\\{0,1\\}--\\([a-z-]*\\).*/\\2/p' help.out >options\n"
      "  while read o; do\n"
      "    grep -q \"^ *$c) echo '.*--$o[ ']\" bash.out || echo \"bash lacks $c --$o\"\n"
      "    awk \"/^    $c\\)/ { in_it = 1; next } /;;/ { if (in_it) print; in_it = 0 } in_it\" "
      "zsh.out |"
      " grep -q -- \"--$o[=[}]\" || echo \"zsh lacks $c --$o\"\n"
      "    [ $o = help ] || grep -q \"from $c' -l $o \" fish.out || echo \"fish lacks $c --$o\"\n"
      "  done <options\n"
      "  sed -n \"s/^ *$c\\.--[^)]*) echo '\\(.*\\)' ;;/\\1/p\" bash.out | tr ' ' '\\n' |"
      " grep -v '^<' | while read w; do\n"
      "    grep -q -- \"${w%%=}\" help.out $WEIR_SOURCE/tools/man/weir.1 || echo \"$c has no $w\"\n"
      "  done\n"
      "done <commands\n"
      "wc -l <commands");
  ck_assert_msg(strchr(o->out, '\n') && !strchr(strchr(o->out, '\n') + 1, '\n'), "%s", o->out);
  ck_assert_int_ge(atoi(o->out), 12);
}
END_TEST

START_TEST(zsh_parses_its_script)
{
  sh_status(0, "if command -v zsh; then $WEIR completion zsh >_weir && zsh -n _weir; fi");
}
END_TEST

START_TEST(fish_completes_by_its_script)
{
  outcome *o = sh_status(0, "command -v fish >/dev/null || { echo transfers; exit; }\n"
                            "$WEIR completion fish >weir.fish; "
                            "fish -c \"source weir.fish; complete -C 'weir report tra'\"");
  ck_assert_msg(!strncmp(o->out, "transfers", 9), "%s", o->out);
}
END_TEST

START_TEST(a_shell_without_a_script_is_one_sentence)
{
  ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR completion csh")->err, "'csh'"));
  ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR completion")->err, "one shell"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/completion");
  TCase *t = tcase_create("completion");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, bash_completes_commands_options_values_files, 0,
                      sizeof asked / sizeof *asked);
  tcase_add_test(t, scripts_hold_each_option_and_no_word_that_help_has_not);
  tcase_add_test(t, zsh_parses_its_script);
  tcase_add_test(t, fish_completes_by_its_script);
  tcase_add_test(t, a_shell_without_a_script_is_one_sentence);
  suite_add_tcase(s, t);
  return run_suite(s);
}

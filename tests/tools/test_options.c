/* test_options.c: every row of tools/weir/base/options.def is parsed, in the help, in weir(1)
 * and in what each shell completes, of each command that takes it; and these have no option that
 * no row has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"
#include "tools/weir/base/options.h"

typedef struct row {
  unsigned commands;
  cmd_kind kind;
  const char *name;
  char letter;
  const char *value, *words;
} row;

#define FLAG(in, id, name, letter, help)        {in, CMD_FLAG, name, letter, NULL, NULL},
#define TEXT(in, id, name, letter, value, help) {in, CMD_TEXT, name, letter, value, NULL},
#define NUMBER(in, id, name, letter, value, least, most, help)                                     \
  {in, CMD_NUMBER, name, letter, value, #least},
#define WORD(in, id, name, letter, value, words, wrong, help)                                      \
  {in, CMD_WORD, name, letter, value, words},
#define READ(in, id, name, letter, value, words, help)  {in, CMD_READ, name, letter, value, words},
#define MAYBE(in, id, name, letter, value, words, help) {in, CMD_MAYBE, name, letter, value, words},
#define FORMER(in, id, name, letter, words)             {in, CMD_FORMER, name, letter, NULL, words},
static const row rows[] = {
#include "tools/weir/base/options.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* By bit: IN_RUN is 1 << 0. */
static const char *const commands[] = {"run",    "report", "trace",   "stats",  "resolve",
                                       "diff",   "check",  "compare", "prove",  "import",
                                       "replay", "export", "collect", "explain"};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* A value that the option takes, by the row or by the value's name. */
static const char *good_value(const row *r)
{
  static const char *const values[][2] = {{"TIME", "1s"},
                                          {"COST", "2ms"},
                                          {"BYTES", "1M"},
                                          {"LIST", "device"},
                                          {"N", "5"},
                                          {"PID", "7"},
                                          {"UNIT", "ms"},
                                          {"NAME[,NAME]...", "cuda_api_sum"},
                                          {"KIND[,KIND]...", "copy,sync"},
                                          {"STREAM", "legacy"},
                                          {"N[,CARD]", "2,h100"},
                                          {"MAX", "1M"},
                                          {"NAME=VALUE", "max_split_size=1M"},
                                          {"NAME", "malloc"},
                                          {"BOOL", "true"},
                                          {"WINDOWS", "profiler"},
                                          {"WHERE", "auto"},
                                          {"SIZE|TIME", "30s"},
                                          {"USE|exit", "exit"},
                                          {"FORMAT[,FORMAT]...", "csv"},
                                          {"FORMAT", "csv"}};
  static char word[64];
  if (r->kind == CMD_WORD || r->kind == CMD_NUMBER) {
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(r->words, " "), r->words);
    return word;
  }
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (r->value && !strcmp(values[i][0], r->value)) return values[i][1];
  return "x";
}

/* What is printed on stderr for a command line that ends with an option that nothing has: it was
 * parsed up to there. */
static const char *parsed(const char *command, const char *option)
{
  return sh_status(2, "$WEIR %s %s --no-such-option", command, option)->err;
}

static bool is_parsed(const char *command, const char *option)
{
  char text[128];
  (void)snprintf(text, sizeof text, "weir: weir %s has no option '--no-such-option' (", command);
  return !strncmp(parsed(command, option), text, strlen(text));
}

static void check_parsing(const row *r, const char *command)
{
  char text[256], option[128];
  const char *value = good_value(r);
  (void)snprintf(option, sizeof option, "--%s%s%s", r->name, r->kind == CMD_FLAG ? "" : "=",
                 r->kind == CMD_FLAG ? "" : value);
  ck_assert_msg(is_parsed(command, option), "%s %s", command, option);
  if (r->kind != CMD_FLAG && r->kind != CMD_MAYBE) {
    (void)snprintf(text, sizeof text, "--%s %s", r->name, value);
    ck_assert_msg(is_parsed(command, text), "%s %s", command, text);
    (void)snprintf(text, sizeof text, "option '--%s' needs a value: %s", r->name, r->value);
    ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR %s --%s", command, r->name)->err, text));
  }
  if (r->letter) {
    (void)snprintf(text, sizeof text, "-%c %s", r->letter, r->kind == CMD_FLAG ? "" : value);
    ck_assert_msg(is_parsed(command, text), "%s %s", command, text);
  }
  (void)snprintf(text, sizeof text, "--%s=@%%", r->name);
  bool any = r->kind == CMD_TEXT || !strcmp(r->name, "output") || !strncmp(r->name, "force-", 6);
  ck_assert_msg(is_parsed(command, text) == any, "%s %s", command, text);
}

static void check_help(const row *r, const char *command)
{
  char line[128], letter[8] = "";
  if (r->letter) (void)snprintf(letter, sizeof letter, "-%c, ", r->letter);
  (void)snprintf(line, sizeof line, "\n  %s--%s%s%s%s", letter, r->name,
                 r->kind == CMD_MAYBE ? "[=" : " ", r->value ? r->value : "",
                 r->kind == CMD_MAYBE ? "]" : "");
  ck_assert_msg(strstr(sh_status(0, "$WEIR help %s", command)->out, line) != NULL, "%s:%s", command,
                line);
}

/* weir(1) has it once, in the command's part, with its letter. */
static void check_manual(const row *r, const char *command)
{
  char letter[16] = "";
  if (r->letter) (void)snprintf(letter, sizeof letter, "Fl %c\\( .*\\|\\)", r->letter);
  outcome *o = sh_status(0,
                         "awk -v c='%s' '/^\\.S[sh] / { in_it = ($2 == \"weir\" && $3 == c) } "
                         "in_it && /^\\.It Fl/' $WEIR_SOURCE/tools/man/weir.1 |"
                         " grep -c -- '%s *Fl -%s\\( \\|$\\)'; :",
                         command, letter, r->name);
  ck_assert_msg(!strcmp(o->out, "1\n"), "%s --%s: %s", command, r->name, o->out);
}

static void check_completion(const row *r, const char *command)
{
  if (!strcmp(command, "collect")) return; /* not for people */
  sh_status(0, "$WEIR completion bash | grep -q \"^    %s) echo '.*--%s[ ']\"", command, r->name);
  sh_status(0,
            "$WEIR completion zsh | awk '/^    %s\\)/ { in_it = 1 } in_it; /;;/ { in_it = 0 }' |"
            " grep -q -- \"--%s[=[}]\"",
            command, r->name);
  sh_status(0, "$WEIR completion fish | grep -q -- \"from %s' -l %s %s\"", command, r->name,
            r->letter ? (char[]){'-', 's', ' ', r->letter, ' ', 0} : "-");
  if (r->kind == CMD_FLAG) return;
  outcome *o = sh_status(
      0, "$WEIR completion bash | sed -n \"s/^    %s\\.--%s[|)].*echo '\\(.*\\)' ;;/\\1/p\"",
      command, r->name);
  bool file = r->value && (strstr(r->value, "FILE") || strstr(r->value, "DIR"));
  bool listed = r->words && r->kind != CMD_NUMBER;
  if (!listed)
    ck_assert_str_eq(o->out, file ? "<file>\n" : "<value>\n");
  else if (*r->words == '@')
    ck_assert_msg(*o->out != '<' && *o->out != '@', "%s", o->out);
  else
    ck_assert_msg(!strncmp(o->out, r->words, strlen(r->words)), "%s", o->out);
  if (!listed || *r->words == '@') return;
  sh_status(0, "$WEIR completion zsh | grep -q -- '--%s=.*:(%s)'", r->name, r->words);
  sh_status(0, "$WEIR completion fish | grep -q -- \"from %s' -l %s .*-a '%s' -d\"", command,
            r->name, r->words);
}

START_TEST(an_option_is_parsed_explained_listed_and_completed)
{
  const row *r = &rows[_i];
  if (r->kind == CMD_FORMER) return;
  ck_assert_uint_ne(r->commands, 0);
  for (unsigned i = 0; i < COMMANDS; i++) {
    if (!(r->commands & 1U << i)) continue;
    check_parsing(r, commands[i]);
    check_help(r, commands[i]);
    check_manual(r, commands[i]);
    check_completion(r, commands[i]);
  }
}
END_TEST

/* Every word that is offered for a value is taken: of lists that other tables hold, too. */
START_TEST(each_word_that_is_offered_is_taken)
{
  const row *r = &rows[_i];
  if (r->kind == CMD_FORMER || r->kind == CMD_NUMBER || !r->words) return;
  for (unsigned i = 0; i < COMMANDS; i++) {
    if (!(r->commands & 1U << i) || !strcmp(commands[i], "collect")) continue;
    outcome *o = sh_status(
        0,
        "$WEIR completion bash | sed -n \"s/^    %s\\.--%s[|)].*echo '\\(.*\\)' ;;/\\1/p\" |"
        " tr ' ' '\\n' | while read w; do case $w in *=) continue ;; esac;"
        " $WEIR %s --%s=$w --no-such-option 2>&1 | grep -q \"'--no-such-option'\" || echo $w;"
        " done",
        commands[i], r->name, commands[i], r->name);
    ck_assert_str_eq(o->out, "");
  }
}
END_TEST

/* A spelling of before means what it did, warns once, and is nowhere offered. */
START_TEST(a_former_spelling_works_with_one_warning)
{
  const row *r = &rows[_i];
  if (r->kind != CMD_FORMER) return;
  unsigned i = 0;
  while (r->commands >> i != 1)
    i++;
  char spelling[64], warning[128];
  bool valued = strchr(r->words, ' ') == NULL;
  const char *value = !valued                      ? ""
                      : strstr(r->words, "rules")  ? " x"
                      : strstr(r->words, "weight") ? " copied"
                                                   : " 3";
  if (r->name)
    (void)snprintf(spelling, sizeof spelling, "--%s", r->name);
  else
    (void)snprintf(spelling, sizeof spelling, "-%c", r->letter);
  (void)snprintf(warning, sizeof warning, "weir: %s is a former spelling of weir %s's %s.\n",
                 spelling, commands[i], r->words);
  outcome *o = sh("$WEIR %s %s%s %s%s", commands[i], spelling, value, spelling, value);
  ck_assert_msg(!strncmp(o->err, warning, strlen(warning)), "%s", o->err);
  ck_assert_ptr_null(strstr(o->err + strlen(warning), "former"));
  if (valued) {
    outcome *bad = sh_status(2, "$WEIR %s %s", commands[i], spelling);
    ck_assert_ptr_nonnull(strstr(bad->err, "needs a value"));
  }
  if (!r->name) return;
  sh_status(1, "$WEIR help %s | grep -q -- '^  --%s '", commands[i], r->name);
  sh_status(1, "$WEIR completion bash | grep -q -- '^    %s).*--%s[ '\\'']'", commands[i], r->name);
}
END_TEST

/* And nothing is explained or completed that no row has. */
START_TEST(help_and_completion_have_no_other_option)
{
  for (unsigned i = 0; i < COMMANDS; i++) {
    unsigned count = 1; /* --help */
    for (unsigned k = 0; k < ROWS; k++)
      count += rows[k].kind != CMD_FORMER && (rows[k].commands & 1U << i);
    outcome *o =
        sh_status(0, "$WEIR help %s | grep -c '^  \\(-., \\)\\{0,1\\}--[a-z]'", commands[i]);
    ck_assert_int_eq(atoi(o->out), (int)count);
    if (!strcmp(commands[i], "collect")) continue;
    o = sh_status(
        0, "$WEIR completion bash | sed -n \"s/^    %s) echo '\\(--.*\\)' ;;/\\1/p\" | wc -w",
        commands[i]);
    ck_assert_int_eq(atoi(o->out), (int)count);
  }
}
END_TEST

/* -n: how many rows, -w: how wide, --rules: a folder of rules for findings. */
START_TEST(a_spelling_means_one_thing)
{
  for (int i = 0; i < ROWS; i++)
    if (rows[i].kind != CMD_FORMER) {
      if (rows[i].letter == 'n')
        ck_assert(!strcmp(rows[i].name, "top") || !strcmp(rows[i].name, "rows"));
      if (rows[i].letter == 'w') ck_assert_str_eq(rows[i].name, "width");
      if (!strcmp(rows[i].name, "rules")) ck_assert_str_eq(rows[i].value, "DIR");
    }
}
END_TEST

START_TEST(the_lists_of_the_manual_are_made_of_the_table)
{
  sh_status(0, "$WEIR_SOURCE/tools/scripts/options.py --check");
}
END_TEST

/* options.py names a row that the page lacks, and an option of the page that has no row. */
START_TEST(a_missing_row_or_list_item_is_found)
{
  sh_status(0,
            "mkdir -p x/tools/weir/base x/tools/man x/tools/scripts && cp "
            "$WEIR_SOURCE/tools/scripts/options.py "
            "x/tools/scripts && cp $WEIR_SOURCE/tools/weir/base/options.def x/tools/weir/base &&"
            " cp $WEIR_SOURCE/tools/man/weir.1 x/tools/man && x/tools/scripts/options.py --check");
  outcome *o = sh_status(1, "sed -i '/^FLAG(IN_RUN, ZERO/d' x/tools/weir/base/options.def; "
                            "x/tools/scripts/options.py --check");
  ck_assert_str_eq(o->err, "tools/man/weir.1: weir run has no option --zero\n");
  o = sh_status(
      1, "cp $WEIR_SOURCE/tools/weir/base/options.def x/tools/weir/base;"
         " sed -i '/^\\.It Fl -redact/d' x/tools/man/weir.1; x/tools/scripts/options.py --check");
  ck_assert_str_eq(o->err, "tools/man/weir.1: weir run --redact is missing\n");
}
END_TEST

START_TEST(each_format_of_an_export_has_a_writer)
{
  sh_status(
      0, "$WEIR completion bash | sed -n \"s/^    export\\.--format|.*echo '\\(.*\\)' ;;/\\1/p\" |"
         " tr ' ' '\\n' >words && test $(wc -l <words) -ge 11 && while read w; do"
         " $WEIR export --format $w -o out nothing.db 2>err; [ $? = 1 ] || exit; done <words");
}
END_TEST

/* The walk of an option in tools/README.md is held by this; a name that a file only uses is no
 * step. */
START_TEST(a_step_that_leads_nowhere_is_found)
{
  sh_status(0, "$WEIR_SOURCE/tools/scripts/check-walks.py tools/README.md .github/CONTRIBUTING.md");
  outcome *o = sh_status(
      1,
      "printf '1. `tools/weir/base/options.c:cmd_parse` is there\\n"
      "2. `tools/weir/main.c:cmd_parse` only used\\n3. `tools/weir/none.c:x` nowhere\\n' >page.md;"
      " $WEIR_SOURCE/tools/scripts/check-walks.py $PWD/page.md 2>&1 >/dev/null | sed "
      "'s/.*page/page/'; "
      "exit 1");
  ck_assert_str_eq(o->out, "page.md:2: tools/weir/main.c does not define cmd_parse\n"
                           "page.md:3: tools/weir/none.c: there is no such file\n");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/options");
  TCase *t = tcase_create("options");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, an_option_is_parsed_explained_listed_and_completed, 0, ROWS);
  tcase_add_loop_test(t, each_word_that_is_offered_is_taken, 0, ROWS);
  tcase_add_loop_test(t, a_former_spelling_works_with_one_warning, 0, ROWS);
  tcase_add_test(t, help_and_completion_have_no_other_option);
  tcase_add_test(t, a_spelling_means_one_thing);
  tcase_add_test(t, the_lists_of_the_manual_are_made_of_the_table);
  tcase_add_test(t, a_missing_row_or_list_item_is_found);
  tcase_add_test(t, each_format_of_an_export_has_a_writer);
  tcase_add_test(t, a_step_that_leads_nowhere_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}

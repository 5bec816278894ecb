/* completion.c: weir completion: what a shell needs to complete weir's command lines.
 *
 * All three scripts are made from the tables of commands (main.c) and options
 * (base/options.def): the words of values and of first operands are theirs, or of another table
 * that they name. Where a value's name is a file's or a folder's, files are completed; where a
 * command runs a program, what follows is completed as a command line of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/findings/rule.h"
#include "reports/listing/listing.h"
#include "reports/stats/stats.h"
#include "tools/replay/policy.h"
#include "tools/weir/base/commands.h"

/* ---- words ----------------------------------------------------------------------------------- */

static char *append_word(char *words, const char *word)
{
  char *longer = cmd_format("%s%s%s", words, *words ? " " : "", word);
  free(words);
  return longer;
}

/* Returns the kinds of events, "alloc free" for "alloc, free". New. */
static char *list_kinds(void)
{
  char *words = cmd_format("%s", listing_kinds()), *to = words;
  for (const char *at = words; *at; at++)
    if (*at != ',') *to++ = *at;
  *to = 0;
  return words;
}

static char *list_policies(void)
{
  char *words = cmd_format("%s", "");
  for (const rp_policy *const *p = rp_policies; *p; p++)
    words = append_word(words, (*p)->name);
  return append_word(words, "all");
}

static char *list_reports(void)
{
  char *words = cmd_format("%s", "");
  for (const stats_report *r = stats_reports; r->name; r++)
    if (r->needs < STATS_NEVER) words = append_word(words, r->name);
  return words;
}

static char *list_findings(void)
{
  char *words = cmd_format("%s", "");
  wr_rules rules;
  if (wr_rules_load(&rules, NULL) == WEIR_OK)
    for (size_t i = 0; i < rules.count; i++)
      words = append_word(words, rules.rule[i].id);
  wr_rules_free(&rules);
  return words;
}

/* Returns the words of a row (new), those of another table in place of its name; NULL: none. */
static char *list_words(const char *words)
{
  static const struct {
    const char *name;
    char *(*list)(void);
  } tables[] = {{"@kinds", list_kinds},
                {"@policies", list_policies},
                {"@reports", list_reports},
                {"@findings", list_findings}};
  for (size_t i = 0; words && i < sizeof tables / sizeof *tables; i++)
    if (!strcmp(words, tables[i].name)) return tables[i].list();
  return words ? cmd_format("%s", words) : NULL;
}

/* ---- what is completed ----------------------------------------------------------------------- */

static bool runs_a_program(const cmd *c)
{
  return strstr(c->synopsis, "PROGRAM") != NULL;
}

static bool takes_files(const cmd *c)
{
  return strstr(c->synopsis, "FILE") || strstr(c->synopsis, "TRACE") ||
         strstr(c->synopsis, "SPOOL");
}

static bool is_file(const cmd_option *o)
{
  return o->value && (strstr(o->value, "FILE") || strstr(o->value, "DIR"));
}

static const cmd *next_command(const cmd *c)
{
  while (c->name && c->hidden)
    c++;
  return c->name ? c : NULL;
}

/* Prints text, with a backslash before each of the characters in `escaped`. */
static void put_escaped(const char *text, const char *escaped)
{
  for (; *text; text++)
    printf(strchr(escaped, *text) ? "\\%c" : "%c", *text);
}

/* Prints the names of all commands, a blank before each. */
static void put_command_names(void)
{
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1))
    printf(" %s", c->name);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void put_bash_options(const cmd *c)
{
  printf("    %s) echo '--help", c->name);
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o))
    printf(" --%s", o->name);
  printf("' ;;\n");
}

static void put_bash_values(const cmd *c)
{
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o)) {
    if (o->kind == CMD_FLAG) continue;
    char *words = list_words(o->words);
    printf("    %s.--%s", c->name, o->name);
    if (o->letter) printf("|%s.-%c", c->name, o->letter);
    printf(") echo '%s' ;;\n", words ? words : is_file(o) ? "<file>" : "<value>");
    free(words);
  }
}

static void put_bash_operands(const cmd *c)
{
  char *words = list_words(c->operands);
  printf("    %s) echo '%s%s%s' ;;\n", c->name, words ? words : "",
         words && takes_files(c) ? " " : "",
         words && runs_a_program(c) ? "" /* it follows "--" */
         : runs_a_program(c)        ? "<program>"
         : takes_files(c)           ? "<file>"
                                    : "");
  free(words);
}

static const char *const bash_head =
    "# Completion of weir's command lines in bash. Printed by `weir completion bash`.\n\n";

/* bash cuts words at "=": an option's value follows it as a word of its own. */
static const char *const bash_tail =
    "_weir() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
    "command=${COMP_WORDS[1]}\n"
    "  local words i before=\n"
    "  COMPREPLY=()\n"
    "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "    COMPREPLY=($(compgen -W \"$(_weir_commands)\" -- \"$cur\"))\n"
    "    return\n"
    "  fi\n"
    "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "    [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
    "    if [ $((i + 1)) -eq \"$COMP_CWORD\" ]; then\n"
    "      COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
    "    else\n"
    "      COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "    fi\n"
    "    return\n"
    "  done\n"
    "  if [ \"$cur\" = = ]; then\n"
    "    cur=\n"
    "  elif [ \"$prev\" = = ]; then\n"
    "    prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  fi\n"
    "  words=$(_weir_values \"$command.$prev\")\n"
    "  case $words,$cur in\n"
    "    ,* | '<'*) ;;\n"
    "    *,*,*) before=${cur%,*}, cur=${cur##*,} ;; # the next of a list\n"
    "  esac\n"
    "  if [ -z \"$words\" ]; then\n"
    "    case $cur in\n"
    "      -*) words=$(_weir_options \"$command\") ;;\n"
    "      *) words=$(_weir_operands \"$command\") ;;\n"
    "    esac\n"
    "  fi\n"
    "  case $words in\n"
    "    *'<file>') COMPREPLY=($(compgen -W \"${words%<file>}\" -- \"$cur\") $(compgen -f -- "
    "\"$cur\")) ;;\n"
    "    '<value>') ;;\n"
    "    '<program>') COMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\")) ;;\n"
    "    *) COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$cur\")) ;;\n"
    "  esac\n"
    "  if [ \"${#COMPREPLY[@]}\" -eq 1 ] && [ \"${COMPREPLY[0]%=}\" != \"${COMPREPLY[0]}\" ]; "
    "then\n"
    "    compopt -o nospace 2>/dev/null # a value follows NAME=\n"
    "  fi\n"
    "}\n\n"
    "complete -o filenames -F _weir weir\n";

static void put_bash_case(const char *function, void (*put)(const cmd *c))
{
  printf("%s() {\n  case $1 in\n", function);
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1))
    put(c);
  printf("  esac\n}\n\n");
}

static void put_bash(void)
{
  printf("%s_weir_commands() {\n  echo '", bash_head);
  put_command_names();
  printf("'\n}\n\n");
  put_bash_case("_weir_options", put_bash_options);
  put_bash_case("_weir_values", put_bash_values);
  put_bash_case("_weir_operands", put_bash_operands);
  printf("%s", bash_tail);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Prints text for single quotes, with what _arguments and _describe read otherwise escaped. */
static void put_zsh_text(const char *text)
{
  for (; *text; text++)
    printf(*text == '\'' ? "'\\''" : strchr("[]:", *text) ? "\\%c" : "%c", *text);
}

/* Prints the part of a specification of _arguments that describes a value: ":NAME:(words)". */
static void put_zsh_value(const cmd_option *o)
{
  if (o->kind == CMD_FLAG) return;
  char *words = list_words(o->words);
  printf("%s:", o->kind == CMD_MAYBE ? ":" : "");
  put_zsh_text(o->value);
  printf(":%s%s%s",
         words        ? "("
         : is_file(o) ? "_files"
                      : " ",
         words ? words : "", words ? ")" : "");
  free(words);
}

/* Prints "(-o --output)"{-o+,--output=}"[help]:FILE:_files", in quotes that the texts do not
 * hold. */
static void put_zsh_option(const cmd_option *o)
{
  const char *end = o->kind == CMD_FLAG ? "" : o->kind == CMD_MAYBE ? "=-" : "=";
  printf("        ");
  if (o->letter)
    printf("'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
           o->kind == CMD_FLAG ? "" : "+", o->name, end);
  else
    printf("'--%s%s[", o->name, end);
  put_zsh_text(o->help);
  printf("]");
  put_zsh_value(o);
  printf("' \\\n");
}

static void put_zsh_command(const cmd *c)
{
  char *words = list_words(c->operands);
  printf("    %s)\n      _arguments -s \\\n", c->name);
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o))
    put_zsh_option(o);
  if (words) printf("        '1:what:(%s)' \\\n", words);
  printf("        '--help[print how it is used]'");
  if (runs_a_program(c))
    printf(" \\\n        '*::program:_normal'");
  else if (takes_files(c))
    printf(" \\\n        '*:file:_files'");
  printf(" ;;\n");
  free(words);
}

static void put_zsh(void)
{
  printf("#compdef weir\n"
         "# Completion of weir's command lines in zsh. Printed by `weir completion zsh`.\n\n"
         "_weir() {\n  local -a commands\n  commands=(\n");
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1)) {
    printf("    '%s:", c->name);
    put_zsh_text(c->summary);
    printf("'\n");
  }
  printf("  )\n"
         "  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n");
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1))
    put_zsh_command(c);
  printf(
      "  esac\n}\n\n"
      "if [ \"$funcstack[1]\" = _weir ]; then\n  _weir \"$@\"\nelse\n  compdef _weir weir\nfi\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void put_fish_option(const cmd *c, const cmd_option *o)
{
  char *words = list_words(o->words);
  printf("complete -c weir -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
  if (o->letter) printf(" -s %c", o->letter);
  if (o->kind != CMD_FLAG && o->kind != CMD_MAYBE) printf(is_file(o) ? " -r -F" : " -x");
  if (words) printf(" -a '%s'", words);
  printf(" -d '");
  put_escaped(o->help, "'\\");
  printf("'\n");
  free(words);
}

static void put_fish_command(const cmd *c)
{
  char *words = list_words(c->operands);
  printf("complete -c weir -n __fish_use_subcommand -f -a %s -d '", c->name);
  put_escaped(c->summary, "'\\");
  printf("'\n");
  for (const cmd_option *o = cmd_next_option(c, NULL); o; o = cmd_next_option(c, o))
    put_fish_option(c, o);
  if (words)
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name, words);
  if (!runs_a_program(c) && !takes_files(c))
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -f\n", c->name);
  if (runs_a_program(c))
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_command)'\n",
           c->name);
  free(words);
}

static void put_fish(void)
{
  printf("# Completion of weir's command lines in fish. Printed by `weir completion fish`.\n\n");
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1))
    put_fish_command(c);
}

/* ---- the command ----------------------------------------------------------------------------- */

int completion_main(const cmd *c, int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*put)(void);
  } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at != 1) return cmd_usage(c, "weir completion takes one shell: bash, zsh or fish");
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
    if (strcmp(argv[at], shells[i].name) != 0) continue;
    shells[i].put();
    return 0;
  }
  return cmd_usage(c, "there is no completion for '%s', only for bash, zsh, fish", argv[at]);
}

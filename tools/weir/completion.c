/* completion.c: weir completion: what a shell needs to complete weir's command lines.
 *
 * All three scripts are made from the tables that parse and explain the commands (cmd.h), so that an
 * option cannot be had and not be completed. Which words an option or an operand takes is the one
 * thing that those do not say: `words_of` does. Where a value's name is a file's or a folder's, files
 * are completed; where a command runs a program, what follows is completed as a command line of its
 * own. */
#include <stdio.h>
#include <string.h>

#include "tools/weir/base/commands.h"

static const struct {
  const char *command, *option; /* NULL: its first operand */
  const char *words;
} words_of[] = {
    {"run", "mode", "observe strict relaxed"},
    {"run", "stacks", "off"},
    {"run", "device-times", "off copies all"},
    {"report", NULL,
     "summary memory transfers waits cache findings leaks oom idle devices coverage"},
    {"report", "format", "text json csv markdown"},
    {"report", "by", "site stack module range stream device thread process rank function"},
    {"report", "sources", "own on off"},
    {"trace", "format", "text csv jsonl"},
    {"trace", "kind", "alloc free copy sync launch"},
    {"stats", "format", "column table csv tsv json"},
    {"diff", "format", "text markdown json"},
    {"compare", "format", "text json"},
    {"prove", "format", "text json"},
    {"replay", "format", "text json"},
    {"replay", "policy", "pytorch pytorch-expandable rmm-pool malloc"},
    {"export", "format",
     "perfetto chrome folded speedscope pprof firefox csv nsys pytorch-snapshot pytorch-pickle "
     "rmm-csv"},
    {"export", "weight", "calls host-time allocated copied live-at-peak"},
    {"completion", NULL, "bash zsh fish"},
};

/* The words of a command's option, or of its operand; NULL: there are none to choose from. */
static const char *find_words(const cmd *c, const char *option)
{
  for (size_t i = 0; i < sizeof words_of / sizeof *words_of; i++)
    if (!strcmp(words_of[i].command, c->name) &&
        (option ? words_of[i].option && !strcmp(words_of[i].option, option) : !words_of[i].option))
      return words_of[i].words;
  return NULL;
}

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

/* Text, each of the characters in `escaped` behind a backslash. */
static void put_escaped(const char *text, const char *escaped)
{
  for (; *text; text++)
    printf(strchr(escaped, *text) ? "\\%c" : "%c", *text);
}

/* The names of all commands, behind a blank each. */
static void put_command_names(void)
{
  for (const cmd *c = next_command(weir_commands); c; c = next_command(c + 1))
    printf(" %s", c->name);
}

static const char *operands_of(const cmd *c)
{
  return find_words(c, NULL);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void put_bash_options(const cmd *c)
{
  printf("    %s) echo '--help", c->name);
  for (const cmd_option *o = c->options; o && o->name; o++)
    printf(" --%s", o->name);
  printf("' ;;\n");
}

static void put_bash_values(const cmd *c)
{
  for (const cmd_option *o = c->options; o && o->name; o++) {
    const char *words = find_words(c, o->name);
    if (o->arg == CMD_ARG_NONE) continue;
    printf("    %s.--%s", c->name, o->name);
    if (o->letter) printf("|%s.-%c", c->name, o->letter);
    printf(") echo '%s' ;;\n", words ? words : is_file(o) ? "<file>" : "<value>");
  }
}

static void put_bash_operands(const cmd *c)
{
  const char *words = operands_of(c);
  printf("    %s) echo '%s%s%s' ;;\n", c->name, words ? words : "",
         words && takes_files(c) ? " " : "",
         runs_a_program(c) ? "<program>"
         : takes_files(c)  ? "<file>"
                           : "");
}

static const char *const bash_head =
    "# Completion of weir's command lines in bash. Printed by `weir completion bash`.\n\n";

/* bash cuts words at "=": an option's value stands behind it as a word of its own. */
static const char *const bash_tail =
    "_weir() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
    "command=${COMP_WORDS[1]}\n"
    "  local words i\n"
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
    "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
    "  esac\n"
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

/* Text within single quotes, with what _arguments and _describe read otherwise escaped. */
static void put_zsh_text(const char *text)
{
  for (; *text; text++)
    printf(*text == '\'' ? "'\\''" : strchr("[]:", *text) ? "\\%c" : "%c", *text);
}

/* What a specification of _arguments says of a value: ":NAME:(words)". */
static void put_zsh_value(const cmd *c, const cmd_option *o)
{
  const char *words = find_words(c, o->name);
  if (o->arg == CMD_ARG_NONE) return;
  printf("%s:", o->arg == CMD_ARG_OPTIONAL ? ":" : "");
  put_zsh_text(o->value);
  printf(":%s%s%s",
         words        ? "("
         : is_file(o) ? "_files"
                      : " ",
         words ? words : "", words ? ")" : "");
}

/* "(-o --output)"{-o+,--output=}"[help]:FILE:_files", in quotes that the texts do not hold. */
static void put_zsh_option(const cmd *c, const cmd_option *o)
{
  const char *end = o->arg == CMD_ARG_NONE ? "" : o->arg == CMD_ARG_OPTIONAL ? "=-" : "=";
  printf("        ");
  if (o->letter)
    printf("'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
           o->arg == CMD_ARG_NONE ? "" : "+", o->name, end);
  else
    printf("'--%s%s[", o->name, end);
  put_zsh_text(o->help);
  printf("]");
  put_zsh_value(c, o);
  printf("' \\\n");
}

static void put_zsh_command(const cmd *c)
{
  const char *words = operands_of(c);
  printf("    %s)\n      _arguments -s \\\n", c->name);
  for (const cmd_option *o = c->options; o && o->name; o++)
    put_zsh_option(c, o);
  if (words) printf("        '1:what:(%s)' \\\n", words);
  printf("        '--help[print how it is used]'");
  if (runs_a_program(c))
    printf(" \\\n        '*::program:_normal'");
  else if (takes_files(c))
    printf(" \\\n        '*:file:_files'");
  printf(" ;;\n");
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
  const char *words = find_words(c, o->name);
  printf("complete -c weir -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
  if (o->letter) printf(" -s %c", o->letter);
  if (o->arg == CMD_ARG_REQUIRED) printf(is_file(o) ? " -r -F" : " -x");
  if (words) printf(" -a '%s'", words);
  printf(" -d '");
  put_escaped(o->help, "'\\");
  printf("'\n");
}

static void put_fish_command(const cmd *c)
{
  const char *words = operands_of(c);
  printf("complete -c weir -n __fish_use_subcommand -f -a %s -d '", c->name);
  put_escaped(c->summary, "'\\");
  printf("'\n");
  for (const cmd_option *o = c->options; o && o->name; o++)
    put_fish_option(c, o);
  if (words)
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name, words);
  if (!runs_a_program(c) && !takes_files(c))
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -f\n", c->name);
  if (runs_a_program(c))
    printf("complete -c weir -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_command)'\n",
           c->name);
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
  int at = cmd_parse(c, argc, argv, false, NULL, NULL);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at != 1) return cmd_usage(c, "weir completion takes one shell: bash, zsh or fish");
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
    if (strcmp(argv[at], shells[i].name) != 0) continue;
    shells[i].put();
    return 0;
  }
  return cmd_usage(c, "there is no completion for '%s', only for bash, zsh, fish", argv[at]);
}

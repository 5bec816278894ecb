/* main.c: weir SUBCOMMAND ...: the table of subcommands, and help. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reports/base/escape.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/guess.h"

const cmd weir_commands[] = {
    {"run",
     "[-o FILE] [--force] [--sim[=N[,CARD]]] [--mode=observe] [--stacks=off|N] [--no-wait] -- "
     "PROGRAM "
     "[ARG]...",
     "Run a CUDA program and write what it does with memory to a trace",
     "The exit status is the program's; its stdin, stdout and stderr are untouched. The trace "
     "holds\n"
     "every process the program starts, and is complete when the last of them has ended. 125: "
     "weir\n"
     "could not start; 126: the program cannot be run; 127: there is no such program.",
     IN_RUN, NULL, false, run_main},
    {"report",
     "[WHAT] [--format text|json|csv|markdown] [--by WHAT] [--top N] [--depth N] [--width N]\n"
     "[--table NAME] [--from TIME] [--to TIME] [--process PID] [--range NAME] [--symbols DIR]\n"
     "[--min-cost COST] [--possible] [--rules DIR] [--sources WHEN] [--sites WHOSE]\n"
     "[--anew] [--html -o PAGE] FILE",
     "Print what a trace says about memory, transfers and waits",
     "FILE is a trace, or a spool that was left without a collector. WHAT is 'summary' (the\n"
     "default), 'findings': what the run wastes, where, and what to do; 'transfers', 'waits',\n"
     "'memory', 'leaks', 'oom': who had the memory when it ran out, 'devices', 'idle', "
     "'coverage';\n"
     "or 'cache': what the caches of a run with --mode=strict or relaxed did. On a terminal, names "
     "that are too long for a line are cut in\n"
     "the middle, and what is longer than it goes through PAGER; in a file or a pipe nothing is.",
     IN_REPORT, "summary findings transfers waits memory leaks oom devices idle coverage cache",
     false, report_main},
    {"explain", "[--format text|markdown] [--width N] [RULE]...",
     "Print what a finding means, what to do about it, when to leave it",
     "RULE is the name or number of a rule; 'weir report findings' ends with the names of those\n"
     "it has. Without one, all rules are listed, or, with --format markdown, all pages are "
     "printed\n"
     "as one document.",
     IN_EXPLAIN, "@findings", false, explain_main},
    {"trace", "[--format text|csv|jsonl] [-o FILE] [FILTER]... FILE",
     "List the events of a trace in the order of time",
     "FILE is a trace, complete or not, or a spool. Without a FILTER all events are listed; with\n"
     "several, those that pass every one. TIME is of the trace, from its begin, in ns, or with a\n"
     "unit: 1.5s, 200ms, 30us. The page weir(1) says what the columns are.",
     IN_TRACE, NULL, false, trace_main},
    {"stats",
     "[--format column|table|csv|tsv|json] [--rows N] [-o FILE] [--report NAME,...] [NAME] [FILE]",
     "Print a report that nsys stats has, or a rule of nsys analyze, by the same name",
     "FILE is a trace, complete or not, or a spool. Without a FILE the reports are listed; without "
     "a\n"
     "NAME the usual ones are printed. Headings, units and order are Nsight Systems', so that "
     "scripts\n"
     "that read those read these; so are --report, --output BASE and --format.",
     IN_STATS, "@reports", false, stats_main},
    {"ps", "[--json]", "List what runs under Weir on this machine",
     "Of each process of yours that is being recorded: pid, rank, events a second, bytes of its\n"
     "spool, events dropped, program and trace. --json: a JSON object a line.",
     IN_PS, NULL, false, ps_main},
    {"top", "[--sort WHAT] [--interval SECONDS] [--samples N] [--plain|--json] [PID|TRACE]",
     "Show what programs under Weir hold and do, once a second",
     "Live memory by device, kind and place, copies and waits a second, caches, what Weir takes\n"
     "itself. PID is a program's or a collector's, TRACE what is being written; without one, all\n"
     "of yours are shown. Keys: l, p, c, w, e, i sort by live, peak, copied, waits, events, pid;\n"
     "q ends. Figures are of whole runs where these have --metrics, else since the first top.",
     IN_TOP, NULL, false, top_main},
    {"resolve", "[--symbols DIR] [--figures=later] TRACE",
     "Store in a trace which functions, files and lines its calls came from",
     "Run it where the programs and libraries of the run still are: from then on 'weir report' "
     "names\n"
     "them anywhere, and queries have the columns caller, file and line. What could not be named\n"
     "then can be later. The trace must be complete; whoever reads it meanwhile is not disturbed.",
     IN_RESOLVE, NULL, false, resolve_main},
    {"diff",
     "[--format text|markdown|json] [--fail-on CONDITIONS] [--top N] [--width N]\n"
     "[--symbols DIR] [--rules DIR] [--min-cost COST] [--anew] TRACE_A TRACE_B",
     "Put two traces side by side: memory, transfers, waits, findings, by site",
     "A is before, B after. Sites are the same where function and file are, whatever the line.\n"
     "CONDITIONS, with commas between them, are on B: peak>12GiB, or, with a sign, on what it has\n"
     "more than A: peak>+5%,leaks>0,finding:certain>0,transfers.h2d.bytes>+10MiB,waits.count>+0.\n"
     "0: none holds; 1: one does, or it is not known; 2: there is no answer. weir(1) has the "
     "metrics.",
     IN_DIFF, NULL, false, diff_main},
    {"check",
     "--budget FILE [--junit FILE] [--markdown FILE] [--width N] [--symbols DIR] "
     "[--rules DIR] [--min-cost COST] [--anew] TRACE",
     "Hold a trace against a budget: limits of memory, transfers, waits, findings",
     "A budget has a limit a line: peak <= 12 GiB; device 0: peak <= 8 GiB; leaks.bytes == 0;\n"
     "site \"load_weights\": transfers.h2d.bytes <= 1 GiB; range \"step\": waits.count == 0; "
     "finding\n"
     "certain == 0. 0: all are kept; 1: one is not, or it is not known; 2: there is no answer.\n"
     "With 'weir run --sim' it needs no GPU. The page weir(1) has the metrics.",
     IN_CHECK, NULL, false, check_main},
    {"compare", "[--runs N] [--sim[=N[,CARD]]] [--format text|json] -- PROGRAM [ARG]...",
     "Run a program in each mode in turn, and say what that changes",
     "Runs observe, strict and relaxed, N times each, one after the other. stdin is empty. 0: the\n"
     "runs agree in stdout and exit status; 1: they do not, or it did not work; 125 to 127: as\n"
     "'weir run' has them.",
     IN_COMPARE, NULL, false, compare_main},
    {"prove",
     "[FINDING]... [--pairs N] [--sim[=N[,CARD]]] [--rules DIR] [--format text|json] -- PROGRAM\n"
     "[ARG]...",
     "Run a program with and without each fix that Weir can make; measure the gain",
     "FINDING is a name that 'weir report findings' has; without one, all that the program has "
     "are\n"
     "taken. Each fix is made alone, N times, in turn with the program as it is. stdin is empty. "
     "0:\n"
     "the runs were made, and stdout and exit status are the same in all; 1: they are not, or it\n"
     "did not work; 125 to 127: as 'weir run' has them.",
     IN_PROVE, "@findings", false, prove_main},
    {"import", "SPOOL... [--force] [--figures=later] -o FILE",
     "Make a trace from spools that were left without a collector",
     "SPOOL is a spool file, or a folder of them. All of them go into one trace. A trace of the "
     "same\n"
     "run that is there is added to: what it lacks of each spool, and nothing twice.\n"
     "What a recorder left ('weir run --keep') is a window of the run, with what was live\n"
     "when it began: it goes into a trace of its own.",
     IN_IMPORT, NULL, false, import_main},
    {"dump", "PID", "Have what is kept of a program that runs written as a trace, now",
     "PID is that of a program under 'weir run --keep', or that of 'weir run'.\n"
     "Prints the name of the trace once it is complete. The program goes on meanwhile.",
     0, NULL, false, dump_main},
    {"start", "PID|TRACE", "Have a program that runs record all calls from now on",
     "PID is a program's, and it alone is meant; or that of 'weir run', or the TRACE that is "
     "being\n"
     "written: then all of its programs are. Started with 'weir run --dormant' a program records\n"
     "only allocations and frees until then. As often as is wanted.",
     0, NULL, false, start_main},
    {"stop", "PID|TRACE", "Have a program that runs record only allocations and frees",
     "PID and TRACE are those of 'weir start', which has it record all calls again. What is live,\n"
     "and who allocated it, is known at any time; other calls are counted. Findings need all "
     "calls,\n"
     "so that a trace from which some were left out has none.",
     0, NULL, false, start_main},
    {"recover", "[--figures=later] [DIR]...",
     "Complete the traces of runs whose collector was killed",
     "Without a DIR the folders of spools are listed that lie where Weir makes them; what each "
     "DIR\n"
     "holds goes into the trace that its collector wrote, or, where that is gone, into\n"
     "weir.PID.recovered.db beside it. Folders whose collector or program lives are left alone.",
     IN_RECOVER, NULL, false, recover_main},
    {"replay",
     "[--policy NAME] [--capacity BYTES] [--set NAME=VALUE]... [--format text|json] [--svg FILE] "
     "FILE",
     "Run a program's allocations through models of allocators",
     "FILE is a trace, a spool, a log of RMM's (CSV) or a snapshot of PyTorch's (pickle, JSON).\n"
     "Policies: pytorch, pytorch-expandable, rmm-pool, malloc. Settings: max_split_size and\n"
     "garbage_collection_threshold of pytorch; initial_pool_size and maximum_pool_size of "
     "rmm-pool.",
     IN_REPLAY, NULL, false, replay_main},
    {"export", "--format FORMAT [--weight WEIGHT] -o FILE TRACE",
     "Write a trace, or its allocations, in another program's format",
     "perfetto and chrome are a timeline; folded, speedscope, pprof and firefox what calls cost "
     "by\n"
     "stack; csv is all calls; nsys what Nsight Systems exports to SQLite. The others are\n"
     "allocations, and TRACE is whatever weir replay reads. memory_viz opens the snapshot; older\n"
     "copies of it want a pickle, which pytorch-pickle is.",
     IN_EXPORT, NULL, false, export_main},
    {"completion", "bash|zsh|fish", "Print a script that completes weir's command lines in a shell",
     "bash: source <(weir completion bash); zsh: weir completion zsh > DIR/_weir, DIR of $fpath;\n"
     "fish: weir completion fish > ~/.config/fish/completions/weir.fish. 'make install' does so.",
     0, "bash zsh fish", false, completion_main},
    {"version", "", "Print the versions of weir and of what it is built on", NULL, 0, NULL, false,
     version_main},
    {"help", "[COMMAND]", "Print this list, or how a command is used", NULL, 0, NULL, false,
     help_main},
    {"collect", "--spool-dir DIR [--output FILE] [--pid PID] [--figures=later]",
     "Collect the spools of a folder into a trace until their programs have ended",
     "Started by the preload library of a program that runs without 'weir run'.", IN_COLLECT, NULL,
     true, collect_main},
    {0},
};

/* Returns the row of a name. NULL: there is none. */
static const cmd *find_command(const char *name)
{
  for (const cmd *c = weir_commands; c->name; c++)
    if (!strcmp(c->name, name)) return c;
  return NULL;
}

static int no_such_command(const char *name)
{
  guess g = {.word = name};
  for (const cmd *c = weir_commands; c->name; c++)
    if (!c->hidden) guess_offer(&g, c->name);
  return guess_refuse(NULL, &g, "command", "");
}

/* The order in which a newcomer meets the commands; the last group has those of no other. */
static const struct {
  const char *title, *names[8];
} groups[] = {
    {"See what a program does, and what it wastes", {"run", "report", "explain", "diff", "prove"}},
    {"Hold it to limits", {"check", "compare"}},
    {"Look closer", {"trace", "stats", "resolve", "replay"}},
    {"See what runs now", {"ps", "top", "dump"}},
    {"Traces, and other programs", {"export", "import", "recover"}},
    {"Weir itself", {NULL}}};
enum { GROUPS = sizeof groups / sizeof *groups };

static int help_group_of(const char *name)
{
  for (int i = 0; i < GROUPS - 1; i++)
    for (const char *const *n = groups[i].names; *n; n++)
      if (!strcmp(*n, name)) return i;
  return GROUPS - 1;
}

static void print_command(const cmd *c)
{
  int columns = printf("  %-10s  ", c->name);
  cmd_print_folded((size_t)columns, (size_t)columns, c->summary);
}

static void print_commands(void)
{
  printf("usage: weir COMMAND [ARG]...\n\n"
         "Weir shows where a CUDA program's memory and transfers go, and what it wastes.\n\n"
         "First steps:\n"
         "  weir run -o a.db -- ./program         run it; a.db is the trace of what it did\n"
         "  weir report a.db                      what is wasted, where, and what to do\n"
         "  weir report --html -o page.html a.db  the same as one page for a browser\n"
         "  weir prove -- ./program               what each fix that Weir can make gains\n"
         "  weir diff a.db b.db                   what has changed, b.db being a later run\n");
  for (int i = 0; i < GROUPS; i++) {
    printf("\n%s:\n", groups[i].title);
    for (const char *const *n = groups[i].names; *n; n++)
      print_command(find_command(*n));
    for (const cmd *c = weir_commands; i == GROUPS - 1 && c->name; c++)
      if (!c->hidden && help_group_of(c->name) == i) print_command(c);
  }
  printf("\n'weir help COMMAND' has a command's options; weir(1) has everything.\n");
}

int help_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at > 1) return cmd_usage(c, "weir help takes one command, not %d", argc - at);
  if (argc - at == 0) {
    print_commands();
    return 0;
  }
  const cmd *asked = find_command(argv[at]);
  if (!asked) return no_such_command(argv[at]);
  cmd_print_help(asked);
  return 0;
}

/* A report or a help text that did not reach its reader is a failure, not a success. */
static int flushed(int status)
{
  if (fflush(stdout) != 0 || ferror(stdout)) {
    cmd_message("cannot write to stdout.");
    return status ? status : CMD_FAILED;
  }
  return status;
}

int main(int argc, char **argv)
{
  if (argc < 2) {
    cmd_usage(NULL, "a command is missing");
    return CMD_USAGE;
  }
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
  if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
  const cmd *c = find_command(name);
  if (!c) return no_such_command(name);
  /* A terminal would obey characters in a trace's texts that change the order of others. */
  FILE *terminal = stdout, *shown = isatty(STDOUT_FILENO) ? wr_show_unseen_in(stdout) : NULL;
  if (shown) (void)setvbuf(shown, NULL, _IOLBF, BUFSIZ);
  if (shown) stdout = shown;
  int status = flushed(c->run(c, argc - 1, argv + 1));
  stdout = terminal;
  if (shown) (void)fclose(shown);
  return status;
}

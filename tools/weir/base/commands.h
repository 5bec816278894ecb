/* commands.h: the commands' entry points, one a file. */
#ifndef WEIR_TOOLS_WEIR_BASE_COMMANDS_H
#define WEIR_TOOLS_WEIR_BASE_COMMANDS_H

#include "tools/weir/base/options.h"

extern const cmd weir_commands[]; /* main.c; a row without a name ends it */

int run_main(const cmd *c, int argc, char **argv);
int collect_main(const cmd *c, int argc, char **argv);
int import_main(const cmd *c, int argc, char **argv);
int start_main(const cmd *c, int argc, char **argv);
int dump_main(const cmd *c, int argc, char **argv);
int recover_main(const cmd *c, int argc, char **argv);
int ps_main(const cmd *c, int argc, char **argv);
int top_main(const cmd *c, int argc, char **argv);
int report_main(const cmd *c, int argc, char **argv);
int resolve_main(const cmd *c, int argc, char **argv);
int trace_main(const cmd *c, int argc, char **argv);
int stats_main(const cmd *c, int argc, char **argv);
int explain_main(const cmd *c, int argc, char **argv);
int diff_main(const cmd *c, int argc, char **argv);
int check_main(const cmd *c, int argc, char **argv);
int compare_main(const cmd *c, int argc, char **argv);
int prove_main(const cmd *c, int argc, char **argv);
int replay_main(const cmd *c, int argc, char **argv);
int export_main(const cmd *c, int argc, char **argv);
int completion_main(const cmd *c, int argc, char **argv);
int version_main(const cmd *c, int argc, char **argv);
int help_main(const cmd *c, int argc, char **argv);

#endif

/* tools.h: other tools in the program's process that watch its memory: compute-sanitizer,
 * cuda-memcheck, cuda-gdb. What they report of a program's allocations must be true of the program,
 * not of our caches: with one of them everything is observed only, and that is reported. */
#ifndef WEIR_INTERPOSE_TOOLS_H
#define WEIR_INTERPOSE_TOOLS_H

/* The tool this process was started under, by the environment; NULL: none. A string constant.
 */
const char *tool_at_start(void);

/* "cuda-gdb" when a debugger has announced itself to the driver or traces this process; NULL: none.
 * Asks /proc: for programs that do use the device. Keeps errno. */
const char *tool_at_work(void);

/* Says on stderr and in the trace that `tool` was found and what that means. */
void tool_report(const char *tool);

#endif

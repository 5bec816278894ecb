/* recover.h: what runs of this user left behind whose collector was killed. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_RECOVER_H
#define WEIR_TOOLS_WEIR_COLLECT_RECOVER_H

/* Looks where folders of spools are made for those that have no collector and no process any more.
 * What was to be a trace in the folder of `trace`, a run's own that is complete, becomes part of it,
 * or a trace of its own there, weir.PID.recovered.db; a line a folder tells. The others stay as they
 * are: a terminal is told of each once. Nothing with WEIR_RECOVER=off. */
void recover_left_behind(const char *trace);

#endif

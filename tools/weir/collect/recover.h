/* recover.h: spools of runs of this user whose collector was killed. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_RECOVER_H
#define WEIR_TOOLS_WEIR_COLLECT_RECOVER_H

/* Looks where folders of spools are made for those that have no collector and no process any more.
 * What was to be a trace in the folder of `trace`, a run's own that is complete, becomes part of
 * it, or a trace of its own there, weir.PID.recovered.db; there is a message for each folder. The
 * others stay as they are, with one message each on a terminal. Nothing with WEIR_RECOVER=off. */
void recover_left(const char *trace);

#endif

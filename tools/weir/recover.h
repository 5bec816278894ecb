/* recover.h: what runs of this user left behind whose collector was killed. */
#ifndef WEIR_TOOLS_RECOVER_H
#define WEIR_TOOLS_RECOVER_H

/* Looks where folders of spools are made for those that have no collector and no process any more,
 * and makes them part of their trace, or a trace of their own: weir.PID.recovered.db in the working
 * directory. Says so, a line a folder. Nothing with WEIR_RECOVER=off. */
void recover_left_behind(void);

#endif

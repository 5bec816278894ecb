/* driver.h: is there a CUDA driver on this machine? */
#ifndef WEIR_TOOLS_WEIR_COLLECT_DRIVER_H
#define WEIR_TOOLS_WEIR_COLLECT_DRIVER_H

/* Why a program that is started as we were can't load the driver (new), or NULL: it can. Asked once
 * a run, and only of one that reached no device. */
char *driver_missing(void);

#endif

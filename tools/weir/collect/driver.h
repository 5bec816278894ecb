/* driver.h: is there a CUDA driver on this machine? */
#ifndef WEIR_TOOLS_WEIR_COLLECT_DRIVER_H
#define WEIR_TOOLS_WEIR_COLLECT_DRIVER_H

/* Returns why a program that is started as weir was cannot load the driver (new). NULL: it can.
 * Asked once a run, and only where a program reached no device. */
char *driver_missing(void);

#endif

/* clients.h: the program as a client of CUPTI. */
#ifndef WEIR_INTERPOSE_ACTIVITY_CLIENTS_H
#define WEIR_INTERPOSE_ACTIVITY_CLIENTS_H

#include <stdbool.h>

/* No client of the program's is there, and CUPTI has nothing that is still to go to one. */
bool clients_are_gone(void);

/* CUPTI has our callbacks for buffers in place of the program's. */
void clients_note_replaced(void);

/* In a forked child: CUPTI's own state is of no use there. */
void clients_forget(void);

#endif

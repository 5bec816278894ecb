/* clients.h: the program as a client of CUPTI. */
#ifndef WEIR_INTERPOSE_ACTIVITY_CLIENTS_H
#define WEIR_INTERPOSE_ACTIVITY_CLIENTS_H

#include <stdbool.h>
#include "interpose/activity/session.h"

/* No client of the program's that must be alone is there, and CUPTI has nothing that is still to go
 * to one. */
bool clients_are_gone(void);

/* Subscribers of the program's are there that allow others. */
bool clients_share(void);

/* With whom ours may be: functions without a subscriber and those with one do not go together in a
 * process, so who has used the former is not to meet the latter. */
session_company clients_company(void);

/* CUPTI has our callbacks for buffers in place of the program's. */
void clients_note_replaced(void);

/* In a forked child: CUPTI's own state is of no use there. */
void clients_forget(void);

#endif

/* fix.h: what a finding advises, in the functions that the program itself calls. Rules name the
 * runtime's; a finding whose calls are all the driver's gets the driver's in their place. */
#ifndef WEIR_REPORTS_FIX_H
#define WEIR_REPORTS_FIX_H

/* `fix` with the driver's name for each name of the runtime's (new); NULL: out of memory. A name
 * that has none stays. */
char *wr_fix_for_driver(const char *fix);

#endif

/* imported.h: what lasts between the calls that open memory of others (extract_import.c). */
#ifndef WEIR_INTERPOSE_IMPORTED_H
#define WEIR_INTERPOSE_IMPORTED_H

/* In a forked child: nobody holds the lock. */
void imported_forked(void);

#endif

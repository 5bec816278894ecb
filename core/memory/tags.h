/* tags.h: names of what a thread allocates for, as small numbers. */
#ifndef WEIR_MEMORY_TAGS_H
#define WEIR_MEMORY_TAGS_H

enum { WEIR_TAGS = 32 }; /* 0: none */

/* The name of a tag (borrowed, static). */
const char *tag_name(unsigned tag);
/* The number of the tag called so; WEIR_TAGS: no thread ever set it. */
unsigned tag_number(const char *name);
void tags_forget(void); /* in a forked child: nobody holds the lock */

#endif

/* follow.h: where a name leads, by no link of another user's. */
#ifndef WEIR_REPORTS_FOLLOW_H
#define WEIR_REPORTS_FOLLOW_H

#include <limits.h>
#include <stdbool.h>

typedef struct wr_followed {
  int folder; /* open (O_PATH), the caller's to close; -1 after a failure */
  char name[NAME_MAX +
            1]; /* in it, whether there is such a file or not: no link, unless `process` */
  bool process; /* a link of /proc's that stands for what a process has open */
  bool foreign; /* after a failure: the link of another user is why */
} wr_followed;

/* Follows `path` to its last name. A link on the way must be the caller's or root's: in a folder
 * that others may write in, it leads wherever who made it likes. -1: errno (EPERM where
 * `foreign`). */
int wr_follow(const char *path, wr_followed *f);

#endif

/* log.h: what Weir reports in addition to its results: warnings, to a function of the program's.
 * Included by weir.h.
 *
 * The library never prints: a warning goes to the callback the program has set, and where it has
 * set none, nowhere. */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_log_level {
  WEIR_LOG_INFO = 1,
  WEIR_LOG_WARNING = 2 /* the program goes on, otherwise than was asked for */
} weir_log_level;

/* Called with a sentence (borrowed, for the call; at most 511 bytes) on the thread that has
 * something to report, without locks of Weir's. It may be called from many threads at once. */
typedef void (*weir_log_callback)(weir_log_level level, const char *text, void *user);

/* Of the process; NULL, as at first: nobody is notified. A thread that is just telling the former
 * callback may still be in it when this returns. */
WEIR_PUBLIC void weir_set_log_callback(weir_log_callback callback, void *user);

#ifdef __cplusplus
}
#endif

#endif

/* log.c: the process's log callback. The function and its argument belong together, so both are
 * read under one lock, which is free again when the callback runs: it may set another. */
#include "core/nn/log.h"
#include "core/base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
  pthread_mutex_t lock;
  weir_log_callback callback; /* NULL: nobody listens */
  void *user;                 /* its owner's */
} to = {.lock = PTHREAD_MUTEX_INITIALIZER};

void weir_set_log_callback(weir_log_callback callback, void *user)
{
  HOLD_LOCK(&to.lock);
  to.callback = callback;
  to.user = user;
}

void log_message(weir_log_level level, const char *format, ...)
{
  int saved = errno;
  char text[512];
  pthread_mutex_lock(&to.lock);
  weir_log_callback callback = to.callback;
  void *user = to.user;
  pthread_mutex_unlock(&to.lock);
  if (callback) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    callback(level, text, user);
  }
  errno = saved;
}

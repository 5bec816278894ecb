/* status.c: the thread's failure message.
 *
 * One fixed buffer a thread, so that wording a failure needs no memory and no lock. Formatting
 * keeps errno: the caller may still want it. */
#include "core/base/require.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 512 };

static __thread char message[MESSAGE_BYTES]; /* "" until the thread's first failure */

const char *weir_status_string(weir_status status)
{
  switch (status) {
#define STATUS_CASE(name, value, text)                                                             \
  case WEIR_##name:                                                                                \
    return text;
    WEIR_STATUS_MAP(STATUS_CASE)
#undef STATUS_CASE
  }
  return "unknown status";
}

const char *weir_error_message(void)
{
  return message;
}

/* Takes a formatted sentence over; its length. Sentences are formatted into a buffer of the
 * caller's first, since their arguments may point into the message. */
static size_t set_message(const char *text, int formatted)
{
  size_t length = formatted < 0 ? 0 : strlen(text);
  memcpy(message, text, length);
  message[length] = 0;
  return length;
}

weir_status weir_fail(weir_status status, const char *format, ...)
{
  int saved = errno;
  char text[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  set_message(text, vsnprintf(text, sizeof text, format, arguments));
  va_end(arguments);
  errno = saved;
  return status;
}

weir_status weir_fail_errno(weir_status status, int errno_value, const char *format, ...)
{
  int saved = errno;
  char text[MESSAGE_BYTES], reason[128];
  va_list arguments;
  va_start(arguments, format);
  size_t length = set_message(text, vsnprintf(text, sizeof text, format, arguments));
  va_end(arguments);
  (void)snprintf(message + length, sizeof message - length, ": %s",
                 strerror_r(errno_value, reason, sizeof reason));
  errno = saved;
  return status;
}

weir_status fail_null(const char *function, const char *what)
{
  return weir_fail(WEIR_EINVAL, "%s: %s is NULL", function, what);
}

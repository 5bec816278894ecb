/* tsan.c: in a weir built with ThreadSanitizer. The sanitizer makes what it keeps a thread's
 * signals in at the thread's first blocking call; a signal that arrives meanwhile is kept in
 * what another call then replaces, and is lost (gcc 12). weir's first blocking call waits for
 * SIGCHLD. So one is made before main, when no signal can be under way. */
#include <poll.h>
#include <stddef.h>

__attribute__((constructor)) static void make_signal_context(void)
{
  (void)poll(NULL, 0, 0);
}

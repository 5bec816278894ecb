/* exits.c: _exit and _Exit, which end a process without its handlers, so that what other folders
 * have to do at an end is done before them (part.h). quick_exit() has handlers of its own kind. A
 * process that calls the system call itself, or that a signal ends, has the same end as by
 * SIGKILL.
 *
 * A signal's handler may call these in the middle of anything, and so may a vfork()ed child, in
 * its parent's memory: the parts look whose process it is, and wait for nothing for long. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/process/part.h"

static _Noreturn void exit_by_original(void (*real)(int), int status)
{
  process_parts_exits();
  if (real) real(status);
  for (;;)
    syscall(SYS_exit_group, status);
}

WEIR_BODY _Noreturn void our_exit(int status)
{
  loader_find();
  exit_by_original(real_exit._exit, status);
}
WEIR_ENTRY(_exit, our_exit);

WEIR_BODY _Noreturn void our_Exit(int status)
{
  loader_find();
  exit_by_original(real_exit._Exit, status);
}
WEIR_ENTRY(_Exit, our_Exit);

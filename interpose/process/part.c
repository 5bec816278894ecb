/* part.c: see part.h. */
#include "interpose/process/part.h"

/* Made by the linker around the section; weak: there may be no part. */
extern const process_part *const __start_process_parts[]
    __attribute__((weak, visibility("hidden")));
extern const process_part *const __stop_process_parts[] __attribute__((weak, visibility("hidden")));

#define EACH_PART(moment)                                                                          \
  void process_parts_##moment(void)                                                                \
  {                                                                                                \
    for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)      \
      if ((*p)->moment) (*p)->moment();                                                            \
  }

EACH_PART(start)
EACH_PART(first_event)
EACH_PART(context)
EACH_PART(thread_ends)
EACH_PART(forked)
EACH_PART(unrecorded)
EACH_PART(exits)
EACH_PART(execs)
EACH_PART(leaves_out)
EACH_PART(unloaded)

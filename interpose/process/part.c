/* part.c: see part.h. */
#include "interpose/process/part.h"

/* Made by the linker around the section; weak: there may be no part. */
extern const process_part *const __start_process_parts[]
    __attribute__((weak, visibility("hidden")));
extern const process_part *const __stop_process_parts[] __attribute__((weak, visibility("hidden")));

void process_parts_start(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->start) (*p)->start();
}

void process_parts_first_event(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->first_event) (*p)->first_event();
}

void process_parts_thread_ends(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->thread_ends) (*p)->thread_ends();
}

void process_parts_forked(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->forked) (*p)->forked();
}

void process_parts_unrecorded(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->unrecorded) (*p)->unrecorded();
}

void process_parts_unloaded(void)
{
  for (const process_part *const *p = __start_process_parts; p < __stop_process_parts; p++)
    if ((*p)->unloaded) (*p)->unloaded();
}

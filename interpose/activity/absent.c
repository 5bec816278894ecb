/* absent.c: in place of the rest of this folder where the CUDA Toolkit of the build has no headers
 * of CUPTI (interpose/rules.mk): device times cannot be had, and who asks for them gets a
 * message. */
#include "interpose/activity/activity.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"

void *activity_wrap(const char *name, void *real)
{
  (void)name;
  return real;
}

static void refuse_device_times(void)
{
  static const char *const words[] = {"off", "copies", "all", NULL};
  unsigned choice = 0;

  if (process_choice_option(&choice, "WEIR_DEVICE_TIMES", words) && choice)
    process_say("device times are not recorded: this Weir was built without CUPTI's headers.");
}

static const process_part part = {.start = refuse_device_times};
PROCESS_PART(part);

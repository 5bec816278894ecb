/* options.c: what the user has asked of the rerouter, and its part in the life of a process. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/process/tools.h"
#include "interpose/reroute/poison.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/cache_rules.h"
#include "interpose/reroute/places.h"

#define CACHE_DECAY_MS 2000

static reroute_options options = {.mode = WEIR_STRICT,
                                  .reroutes = REROUTE_DEFAULT,
                                  .keep_bytes = UINT64_MAX,
                                  .decay_ms = CACHE_DECAY_MS};
static const char *tool; /* because of which all is observed only, NULL: none */

static void read_fill(void)
{
  bool zero = process_flag_option("WEIR_ZERO"), poison = process_flag_option("WEIR_POISON");
  if (zero && poison) {
    process_say("WEIR_ZERO and WEIR_POISON exclude each other; neither is used.");
    unsetenv("WEIR_ZERO");
    unsetenv("WEIR_POISON");
    return;
  }
  options.fill = zero ? WEIR_FILL_ZERO : poison ? WEIR_FILL_POISON : WEIR_FILL_NONE;
}

/* The message about a bad line names file, line and what was expected; the program goes on. */
static void read_rules(void)
{
  static rule_list rules;
  char path[PATH_MAX];
  const char *text = getenv("WEIR_RULES");

  if (!text || !*text) return;
  if (rule_list_read(&rules, text)) {
    process_say("%s; no rules are used.", weir_error_message());
    unsetenv("WEIR_RULES");
    return;
  }
  options.rules = &rules;
  if (process_absolute_path(path, text)) setenv("WEIR_RULES", path, 1); /* for children elsewhere */
}

/* With fixes nothing is done but what they name, where they name it; if they cannot be read, nothing
 * is. */
static void read_fixes(void)
{
  static rule_list fixes;
  static char path[PATH_MAX];
  const char *text = getenv("WEIR_APPLY");

  if (!text || !*text) return;
  options.mode = WEIR_OBSERVE;
  options.rules = NULL;
  if (fix_list_read(&fixes, text)) {
    process_say("%s; no fixes are applied.", weir_error_message());
    return;
  }
  if (process_absolute_path(path, text)) setenv("WEIR_APPLY", path, 1); /* for children elsewhere */
  unsigned actions = reroute_places_start(&fixes, *path ? path : "WEIR_APPLY");
  options.mode = actions & REROUTE_RELAXED ? WEIR_RELAXED : WEIR_STRICT;
  options.reroutes = actions & REROUTE_ALL;
}

static void read_options(void)
{
  static const char *const modes[] = {"observe", "strict", "relaxed", NULL};
  static const char *const uses[] = {"auto", "off", "on", NULL};
  const char *text;
  unsigned choice;

  if (process_choice_option(&choice, "WEIR_MODE", modes)) options.mode = (enum process_mode)choice;
  if ((text = getenv("WEIR_REROUTE")))
    process_bad_option("WEIR_REROUTE", reroutes_read(&options.reroutes, "WEIR_REROUTE", text));
  if (process_choice_option(&choice, "WEIR_STAGING", uses))
    options.stage.use = (enum staging_use)choice;
  read_fill();
  read_rules();
  if ((text = getenv("WEIR_CACHE_LIMIT")))
    process_bad_option("WEIR_CACHE_LIMIT",
                       option_size(&options.keep_bytes, "WEIR_CACHE_LIMIT", text, 0));
  if ((text = getenv("WEIR_CACHE_DECAY_MS")))
    process_bad_option(
        "WEIR_CACHE_DECAY_MS",
        option_number(&options.decay_ms, "WEIR_CACHE_DECAY_MS", text, 0, UINT32_MAX));
  read_fixes();
}

/* ---- the rerouter's part (process/part.h) ---------------------------------------------------- */

/* With a tool that watches the program's memory nothing is rerouted. */
static void start_rerouting(void)
{
  read_options();
  if (options.mode != WEIR_OBSERVE && (tool = tool_at_start())) options.mode = WEIR_OBSERVE;
  reroute_start(&options);
}

/* Who looks at memory wants to know the pattern. */
static void first_event(void)
{
  char text[128];

  if (tool) tool_report(tool);
  if (options.mode != WEIR_OBSERVE) reroute_make_way();
  if (fill_in_use != WEIR_FILL_POISON) return;
  (void)snprintf(text, sizeof text,
                 "poison: fresh and recycled device memory repeats the word 0x%016llx",
                 (unsigned long long)fill_pattern());
  weir_note(text);
}

static const process_part part = {.start = start_rerouting,
                                  .first_event = first_event,
                                  .thread_ends = poison_flush,
                                  .forked = reroute_forked,
                                  .unrecorded = reroute_end,
                                  .unloaded = reroute_rules_forget};
PROCESS_PART(part);

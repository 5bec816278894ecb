/* places.c: see places.h. The frames that the file names have numbers, from 1, each once; what is
 * known of an address is its frame's number, in a table that is only ever filled: after a dlclose()
 * the same addresses go by other keys.
 *
 * What cannot be done is reported once a process, and only by one that uses CUDA: at its first
 * event the files that are another build than the one that fixes were proven on; with its first
 * context another card or driver; at its end the fixes whose place no call came by. */
#include "interpose/reroute/places.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/trace/unwind.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/objects.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/record/context.h"
#include "interpose/record/hash_table.h"

enum {
  FRAMES = WEIR_RULES_MAX * WEIR_RULE_FRAMES,
  SHOWN_LINES = 8, /* of fixes that are named in a message */
  WALKED = 24      /* frames looked for the call's site in, with those after it */
};

bool reroute_at_places;

static const rule_list *fixes;
static const char *file;
static const rule_frame *frames[FRAMES + 1]; /* by number */
static unsigned frame_count;
static uint16_t frame_of[WEIR_RULES_MAX][WEIR_RULE_FRAMES]; /* of each fix, as numbers */
static uint64_t first_of[FRAMES + 1]; /* fixes whose first frame it is, a bit each */
static _Atomic uint64_t met;          /* fixes whose place a call came by */

static hash_table addresses; /* return address, with the generation: y is its frame's number + 1 */
static _Atomic uint64_t generation;
static _Atomic pid_t user; /* this process, from its first event on */

/* ---- the file -------------------------------------------------------------------------------- */

static unsigned number_of_frame(const rule_frame *f)
{
  unsigned n = 1;
  while (n <= frame_count && !rule_frames_same(frames[n], f, 1))
    n++;
  if (n > frame_count) frames[++frame_count] = f;
  return n;
}

unsigned reroute_places_start(const rule_list *list, const char *name)
{
  unsigned actions = 0;
  fixes = list;
  file = name;
  for (unsigned i = 0; i < list->count; i++) {
    const rule_entry *r = &list->rule[i];
    for (unsigned k = 0; k < r->frames; k++)
      frame_of[i][k] = (uint16_t)number_of_frame(&r->frame[k]);
    first_of[frame_of[i][0]] |= UINT64_C(1) << i;
    actions |= r->fix;
  }
  reroute_at_places = true;
  return actions;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Returns the number of the frame with that return address; 0: the file has no such. */
static unsigned resolve_address(uint64_t address)
{
  elf_identity o;
  rule_frame f;
  if (!elf_identity_at(&o, (const void *)(uintptr_t)(address - 1)) ||
      o.build_id_bytes > sizeof f.id)
    return 0;
  f = (rule_frame){.id_bytes = o.build_id_bytes, .offset = address - o.base};
  memcpy(f.id, o.build_id, o.build_id_bytes);
  for (unsigned n = 1; n <= frame_count; n++)
    if (rule_frames_same(frames[n], &f, 1)) return n;
  return 0;
}

static unsigned frame_at(uint64_t address)
{
  uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
  uint64_t key = address ^ now << 48;
  if (!address) return 0;
  hash_entry *e = hash_table_find(&addresses, key);
  uint64_t known = e ? atomic_load_explicit(&e->y, memory_order_acquire) : 0;
  if (known) return (unsigned)known - 1;
  int saved = errno;
  unsigned n = resolve_address(address);
  (void)hash_table_put(&addresses, key, 0, n + 1u);
  errno = saved;
  return n;
}

void reroute_places_forget(void)
{
  atomic_fetch_add(&generation, 1);
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct walked_stack {
  uint64_t at[WALKED];
  unsigned count, first; /* first: the call's own site */
  bool walked;
} walked_stack;

static void walk_from(walked_stack *s, const void *site)
{
  s->walked = true;
  s->count = weir_unwind_told(s->at, WALKED);
  while (s->first < s->count && s->at[s->first] != (uint64_t)(uintptr_t)site)
    s->first++;
}

static bool fits_stack(unsigned fix, walked_stack *s, const void *site)
{
  unsigned count = fixes->rule[fix].frames;
  if (count > 1 && !s->walked) walk_from(s, site);
  for (unsigned k = 1; k < count; k++)
    if (s->first + k >= s->count || frame_at(s->at[s->first + k]) != frame_of[fix][k]) return false;
  return true;
}

/* Which of these fixes is one for the call; its stack is walked at most once. */
static __attribute__((noinline)) bool fits_any(const hook_call *c, unsigned action, uint64_t here)
{
  walked_stack s = {.walked = false};
  for (; here; here &= here - 1) {
    unsigned fix = (unsigned)__builtin_ctzll(here);
    uint64_t bit = UINT64_C(1) << fix;
    if (fixes->rule[fix].fix != action || !fits_stack(fix, &s, c->site)) continue;
    if (!(atomic_load_explicit(&met, memory_order_relaxed) & bit))
      atomic_fetch_or_explicit(&met, bit, memory_order_relaxed);
    return true;
  }
  return false;
}

bool reroute_place_has(const hook_call *c, unsigned action)
{
  uint64_t here = first_of[frame_at((uint64_t)(uintptr_t)c->site)];
  return __builtin_expect(here != 0, 0) && fits_any(c, action, here);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Lists the lines of fixes, a bit each, as "3, 7, ...". */
static void list_lines(char *out, size_t room, uint64_t which)
{
  size_t n = 0;
  unsigned shown = 0;
  *out = 0;
  for (; which && n < room; which &= which - 1) {
    if (shown++ == SHOWN_LINES) {
      (void)snprintf(out + n, room - n, ", ...");
      return;
    }
    n += (size_t)snprintf(out + n, room - n, "%s%u", n ? ", " : "",
                          fixes->rule[__builtin_ctzll(which)].line);
  }
}

typedef struct build_search {
  uint64_t there, other; /* fixes whose file is loaded: as it was, as another build */
  unsigned index;
} build_search;

static const char *file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int look_at_build(struct dl_phdr_info *info, size_t size, void *context)
{
  build_search *s = context;
  char program[4096] = "";
  const char *path = info->dlpi_name;
  elf_identity o;
  (void)size;
  if (!s->index++ && (!path || !*path) &&
      readlink("/proc/self/exe", program, sizeof program - 1) > 0)
    path = program;
  if (!path || !info->dlpi_phnum || !elf_identity_at(&o, info->dlpi_phdr)) return 0;
  for (unsigned i = 0; i < fixes->count; i++) {
    const rule_frame *f = &fixes->rule[i].frame[0];
    bool same = f->id_bytes == o.build_id_bytes && !memcmp(f->id, o.build_id, o.build_id_bytes);
    if (same) s->there |= UINT64_C(1) << i;
    if (!same && !strcmp(file_name(path), fixes->rule[i].module)) s->other |= UINT64_C(1) << i;
  }
  return 0;
}

/* At the first event, when what the program starts with is loaded. */
static void refuse_other_builds(void)
{
  build_search s = {0};
  char lines[128];
  if (!reroute_at_places) return;
  atomic_store(&user, getpid());
  objects_visit(look_at_build, &s);
  uint64_t other = s.other & ~s.there;
  if (!other) return;
  list_lines(lines, sizeof lines, other);
  process_say("%s: %s is not the build that its fixes were proven on: they are not applied (line "
              "%s). 'weir prove --apply' proves them again.",
              file, fixes->rule[__builtin_ctzll(other)].module, lines);
  atomic_fetch_or(&met, other);
}

/* Once: the first device that is used stands for the others. */
static void warn_of_other_device(void)
{
  static _Atomic bool warned;
  PFN_cuDeviceGetName_v2000 name = WEIR_HELPER(cuDeviceGetName);
  PFN_cuDriverGetVersion_v2020 version = WEIR_HELPER(cuDriverGetVersion);
  char card[WEIR_RULE_WORD] = "", driver[WEIR_RULE_WORD] = "";
  int v = 0;
  if (!reroute_at_places || atomic_exchange(&warned, true)) return;
  if (!name || name(card, sizeof card - 1, (CUdevice)thread_self.last_device) != CUDA_SUCCESS)
    *card = 0;
  if (version && version(&v) == CUDA_SUCCESS)
    (void)snprintf(driver, sizeof driver, "%d.%d", v / 1000, v % 1000 / 10);
  for (unsigned i = 0; i < fixes->proofs; i++) {
    const rule_proof *p = &fixes->proof[i];
    bool same_card = !*p->card || !*card || !strcmp(p->card, card);
    bool same_driver = !*p->driver || !*driver || !strcmp(p->driver, driver);
    if (same_card && same_driver) continue;
    process_say("%s: proven on %s, driver %s; this is %s, driver %s. The fixes are applied; 'weir "
                "prove --apply' shows what they gain here.",
                file, *p->card ? p->card : "an unknown card", *p->driver ? p->driver : "unknown",
                *card ? card : "an unknown card", *driver ? driver : "unknown");
    return;
  }
}

/* At the process's end; a forked child has nothing to add. */
static void report_unmet(void)
{
  static _Atomic bool reported;
  char lines[128];
  if (!reroute_at_places || atomic_load(&user) != getpid() || atomic_exchange(&reported, true))
    return;
  uint64_t all = fixes->count == 64 ? UINT64_MAX : (UINT64_C(1) << fixes->count) - 1;
  uint64_t unmet = all & ~atomic_load(&met);
  if (!unmet) return;
  list_lines(lines, sizeof lines, unmet);
  process_say("%s: %d of %u fixes met no call of this process (line %s): their places are gone, or "
              "were not come by.",
              file, __builtin_popcountll(unmet), fixes->count, lines);
}

__attribute__((destructor(102))) static void places_end(void)
{
  report_unmet();
}

static const process_part part = {.first_event = refuse_other_builds,
                                  .context = warn_of_other_device,
                                  .exits = report_unmet,
                                  .unloaded = reroute_places_forget};
PROCESS_PART(part);

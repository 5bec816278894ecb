/* hooks_rig.c: see hooks_rig.h. */
#include "tests/interpose/hooks_rig.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "core/trace/api.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/objects.h"
#include "interpose/reroute/owners.h"
#include "interpose/process/process.h"
#include "interpose/record/context.h"

__thread thread_state thread_self;
_Atomic bool process_recording;
_Atomic uint32_t process_epoch;
fake_state *rig_fake[WEIR_BANKS];
_Atomic uint8_t rig_covered[WEIR_SPOOL_MAX_APIS];
unsigned rig_unknown;
char rig_unknown_name[64];
bool rig_absent[WEIR_BANKS];
const char *rig_driver;

static void *library[WEIR_BANKS];
uintptr_t own_library_start, own_library_end; /* nothing is */
static char folder[256], spool[512];
static spool_reader *reader;
static rig_log *log_now;

/* ---- the loader's side ----------------------------------------------------------------------- */

bool thread_start(thread_state *t)
{
  memset(t, 0, sizeof *t);
  t->epoch = atomic_load(&process_epoch);
  return atomic_load(&process_recording);
}

bool elf_is_settled(int bank)
{
  (void)bank;
  return true;
}

void *elf_stand_in(const char *symbol)
{
  (void)symbol;
  return NULL;
}

void *elf_symbol(const char *soname, const char *symbol)
{
  for (int b = 0; b < WEIR_BANKS; b++)
    if (strcmp(soname, cuda_library_soname(b)) == 0)
      return rig_absent[b] ? NULL : dlsym(library[b], symbol);
  return NULL;
}

void *elf_symbol_cached(unsigned id, int bank, const char *symbol)
{
  (void)id;
  return elf_symbol(cuda_library_soname(bank), symbol);
}

bool elf_object_at(elf_object *o, const void *address)
{
  Dl_info info;
  if (!dladdr(address, &info)) return false;
  memset(o, 0, sizeof *o);
  o->base = (uintptr_t)info.dli_fbase;
  return true;
}

/* No other library has functions of CUDA's names. */
/* For fixes, of which the rig has none. */
bool elf_identity_at(elf_identity *out, const void *address)
{
  (void)out, (void)address;
  return false;
}

int objects_visit(object_visitor *visit, void *context)
{
  (void)visit, (void)context;
  return 0;
}

bool elf_is_the_one(int bank, const char *symbol, const void *address)
{
  (void)bank, (void)symbol, (void)address;
  return true;
}

void *elf_startup_shim(const char *function)
{
  (void)function;
  return NULL;
}

int cuda_library_of(const void *address)
{
  (void)address;
  return WEIR_BANK_DRIVER;
}

void *elf_object_symbol(const elf_object *o, const char *name, const char *version,
                        enum elf_fit fit)
{
  (void)o, (void)name, (void)version, (void)fit;
  return NULL;
}

void owners_find(void) {}

void owner_of_look_up(const char *name, const void *address)
{
  (void)name, (void)address;
}

bool elf_object_span(const void *address, uintptr_t *start, size_t *bytes, bool *bank)
{
  (void)address, (void)start, (void)bytes, (void)bank;
  return false;
}

bool call_was_abandoned(thread_state *t)
{
  return t->depth == 0;
}

void process_say(const char *format, ...)
{
  (void)format;
}

void weir_note(const char *text)
{
  (void)text;
}

void coverage_add(uint16_t api, uint8_t bits)
{
  atomic_fetch_or(&rig_covered[api], bits);
}

void coverage_add_unknown(const char *name)
{
  rig_unknown++;
  (void)snprintf(rig_unknown_name, sizeof rig_unknown_name, "%s", name);
}

/* ---- fixture --------------------------------------------------------------------------------- */

static void load_fake_library(int bank)
{
  const char *build = getenv("WEIR_BUILD");
  char path[512];
  (void)snprintf(path, sizeof path, "%s/tests/interpose/fake/%s", build ? build : "build",
                 cuda_library_soname(bank));
  if (!library[bank]) library[bank] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library[bank] != NULL, "%s", dlerror());
  rig_fake[bank] = dlsym(library[bank], "fake");
  memset(rig_fake[bank], 0, sizeof *rig_fake[bank]);
}

static void load_driver(void)
{
  library[WEIR_BANK_DRIVER] = dlopen(rig_driver, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library[WEIR_BANK_DRIVER] != NULL, "%s", dlerror());
  for (int b = WEIR_BANK_DRIVER + 1; b < WEIR_BANKS; b++)
    rig_absent[b] = true;
}

static void load_fakes(void)
{
  for (int b = 0; b < WEIR_BANKS; b++)
    load_fake_library(b);
  rig_fake[0]->context = 0xc0ffee00;
}

void rig_setup(void)
{
  clock_init();
  if (rig_driver)
    load_driver();
  else
    load_fakes();
  struct statvfs fs; /* containers may give 64 MiB */
  bool has_room = !statvfs("/dev/shm", &fs) && fs.f_bavail >= (UINT64_C(512) << 20) / fs.f_bsize;
  const char *place = getenv("WEIR_SPOOL_ROOT");
  if (!place) place = access("/dev/shm", W_OK) == 0 && has_room ? "/dev/shm" : "/tmp";
  (void)snprintf(folder, sizeof folder, "%s/weir-rig-XXXXXX", place);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  spool_options options = {.directory = folder, .api_count = api_total, .alone = true};
  ck_assert_int_eq(spool_open(&options), WEIR_OK);
  atomic_fetch_add(&process_epoch, 1);
  atomic_store(&process_recording, true);
  driver_initialised(0);
  glob_t g;
  char pattern[300];
  (void)snprintf(pattern, sizeof pattern, "%s/*" WEIR_SPOOL_SUFFIX, folder);
  ck_assert_int_eq(glob(pattern, 0, NULL, &g), 0);
  ck_assert_int_eq(spool_reader_open(&reader, g.gl_pathv[0], false), WEIR_OK);
  (void)snprintf(spool, sizeof spool, "%s", g.gl_pathv[0]);
  globfree(&g);
  log_now = calloc(1, sizeof *log_now);
}

void rig_teardown(void)
{
  spool_reader_close(reader);
  free(log_now);
  unlink(spool);
  rmdir(folder);
}

void *rig_original(int bank, const char *symbol)
{
  return dlsym(library[bank], symbol);
}

void *rig_wrapper(int bank, const char *symbol)
{
  const hook_row *row = hook_row_find(bank, symbol);
  ck_assert_msg(row != NULL, "%s is not wrapped", symbol);
  void *got = hook_row_bind(row, rig_original(bank, symbol));
  ck_assert_ptr_eq(got, row->wrapper);
  return got;
}

/* ---- reading back ---------------------------------------------------------------------------- */

static weir_status on_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  rig_log *l = context;
  (void)thread, (void)tid;
  ck_assert_uint_lt(l->events, RIG_EVENTS);
  memcpy(&l->event[l->events++], e, sizeof *e);
  return WEIR_OK;
}

static weir_status on_extended(void *context, uint32_t thread, uint32_t tid,
                               const trace_event *head, const void *payload, size_t bytes)
{
  rig_log *l = context;
  (void)thread, (void)tid;
  l->varying += head->kind == WEIR_EV_ACCESS && head->access_fact == WEIR_ACCESS_VARIES;
  if (head->kind == WEIR_EV_ACCESS && head->access_fact == WEIR_ACCESS_SET) {
    ck_assert_uint_lt(l->sets, RIG_SETS);
    rig_set *s = &l->set[l->sets++];
    *s = (rig_set){.number = head->a, .words = bytes / sizeof(access_word), .parameters = head->b};
    memcpy(s->word, payload, bytes < sizeof s->word ? bytes : sizeof s->word);
  }
  if (head->kind != WEIR_EV_NAME) return WEIR_OK;
  ck_assert_uint_lt(l->names, RIG_NAMES);
  rig_name *n = &l->name[l->names++];
  *n = (rig_name){head->a, head->b, head->stream, ""};
  memcpy(n->text, payload, bytes < sizeof n->text ? bytes : sizeof n->text - 1);
  return WEIR_OK;
}

rig_log *rig_read(void)
{
  spool_visitor v = {log_now, on_event, on_extended};
  memset(log_now, 0, sizeof *log_now);
  ck_assert_int_eq(spool_drain(reader, &v, false), WEIR_OK);
  return log_now;
}

const trace_event *rig_one(void)
{
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 1);
  return &l->event[0];
}

int rig_run(Suite *suite)
{
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

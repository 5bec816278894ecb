/* environment.c: what a program finds around it under weir run. */
#include "tools/weir/base/environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/options.h"
#include "core/base/rules.h"
#include "tools/weir/base/cmd.h"

/* Below so many free bytes /dev/shm is no place for spools: what many threads record while the
 * collector is slower than the program. In containers it is often 64 MiB in all. */
#define SHM      "/dev/shm"
#define SHM_ROOM (UINT64_C(256) << 20)

/* ---- siblings -------------------------------------------------------------------------------- */

/* Returns the path (new) of a file of lib/weir/, where Weir is installed, or of lib/, where it is
 * built. */
static char *sibling_path(const char *name, const char *what)
{
  char *relative = cmd_format("lib/weir/%s", name), *path = cmd_sibling(relative);
  if (path && access(path, R_OK) < 0) {
    free(path);
    free(relative);
    relative = cmd_format("lib/%s", name);
    path = cmd_sibling(relative);
  }
  if (!path || access(path, R_OK) < 0) {
    cmd_message("%s is missing: %s.", what, path ? path : relative);
    free(path);
    free(relative);
    return NULL;
  }
  free(relative);
  if (!strpbrk(path, " :")) return path; /* the loader splits its lists at both */
  cmd_message("%s cannot be loaded from %s: there is a blank or a colon in the path.", what, path);
  free(path);
  return NULL;
}

bool environment_siblings(environment *e)
{
  e->preload = sibling_path("libweir-preload.so", "the preload library");
  if (!e->preload) return false;
  if (!e->sim) return true;
  char *driver = sibling_path("sim/libcuda.so.1", "the software device");
  if (!driver) return false;
  e->sim_lib = driver;
  *strrchr(driver, '/') = 0;
  e->sim_cupti = cmd_format("%s/libcupti.so.13", e->sim_lib);
  e->sim_runtime = sibling_path("sim/libcudart.so.13", "the software device's runtime");
  return e->sim_runtime != NULL;
}

/* The stand-in for the driver exports the list of what it lacks. */
static bool list_driver(const environment *e)
{
  char *path = cmd_format("%s/libcuda.so.1", e->sim_lib);
  void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *const *(*list)(void) = NULL;
  free(path);
  if (driver) *(void **)&list = dlsym(driver, "weir_sim_unsupported");
  if (!list) {
    cmd_message("cannot ask the software device: %s.", dlerror());
    return false;
  }
  for (const char *const *name = list(); *name; name++)
    puts(*name);
  return true;
}

/* The list of the stand-in for the runtime lies in the same folder. */
static bool list_runtime(const environment *e)
{
  char line[256], *path = cmd_format("%s/unsupported-runtime.txt", e->sim_lib);
  FILE *f = fopen(path, "re");
  if (!f) cmd_message("cannot read %s: %s.", path, strerror(errno));
  free(path);
  if (!f) return false;
  while (fgets(line, sizeof line, f))
    (void)fputs(line, stdout);
  (void)fclose(f);
  return true;
}

int environment_list_unsupported(const environment *e)
{
  return list_driver(e) && list_runtime(e) ? 0 : CMD_RUN_FAILED;
}

bool environment_rules(environment *e)
{
  static rule_list rules;
  const char *path = e->rules ? e->rules : getenv("WEIR_RULES");
  if (!path || !*path) return true;
  if (rule_list_read(&rules, path)) {
    cmd_message("%s.", weir_error_message());
    return false;
  }
  e->rules_path = realpath(path, NULL);
  if (!e->rules_path) cmd_message("cannot find %s: %s.", path, strerror(errno));
  return e->rules_path != NULL;
}

int environment_driver_version(const environment *e)
{
  char *path = e->sim_lib ? cmd_format("%s/libcuda.so.1", e->sim_lib) : cmd_format("libcuda.so.1");
  void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*ask)(int *) = NULL, version = 0;
  free(path);
  if (driver) *(void **)&ask = dlsym(driver, "cuDriverGetVersion");
  return ask && ask(&version) == 0 ? version : 0;
}

void environment_fixes(environment *e)
{
  static rule_list fixes;
  if (!e->apply) return;
  if (fix_list_read(&fixes, e->apply))
    cmd_message("%s; the program runs without fixes.", weir_error_message());
  else if (!(e->apply_path = realpath(e->apply, NULL)))
    cmd_message("cannot find %s: %s; the program runs without fixes.", e->apply, strerror(errno));
  if (!e->apply_path) e->mode = "observe";
}

bool environment_redacts(void)
{
  bool on = false;
  const char *text = getenv("WEIR_REDACT");
  /* A value that is neither yes nor no counts as yes: the preload library reports it. */
  return text && (option_bool(&on, "WEIR_REDACT", text) != WEIR_OK || on);
}

/* ---- the spools' folder ---------------------------------------------------------------------- */

static char *make_in(const char *parent)
{
  char *dir = cmd_format("%s/weir-%u-XXXXXX", parent, (unsigned)geteuid());
  if (*parent == '/' && mkdtemp(dir)) return dir; /* mode 0700 */
  free(dir);
  return NULL;
}

static bool shm_has_room(uint64_t room)
{
  struct statvfs v;
  return statvfs(SHM, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize >= room;
}

size_t environment_spool_places(const char *places[ENVIRONMENT_SPOOL_PLACES])
{
  size_t n = 0;
  const char *root = getenv("WEIR_SPOOL_ROOT"), *tmpdir = getenv("TMPDIR");
  if (root && *root) {
    places[n++] = root;
    return n;
  }
  places[n++] = SHM;
  if (tmpdir && *tmpdir && strcmp(tmpdir, "/tmp") != 0) places[n++] = tmpdir;
  places[n++] = "/tmp";
  return n;
}

bool environment_spool_dir(environment *e)
{
  const char *places[ENVIRONMENT_SPOOL_PLACES];
  size_t count = environment_spool_places(places);
  const uint64_t room = e->keep_bytes ? 2 * e->keep_bytes : SHM_ROOM;
  for (size_t i = 0; i < count && !e->spool_dir; i++)
    if (strcmp(places[i], SHM) != 0 || shm_has_room(room)) e->spool_dir = make_in(places[i]);
  if (e->spool_dir) return true;
  cmd_message("cannot make a folder for spools in %s: %s.", places[count - 1],
              *places[count - 1] == '/' ? strerror(errno) : "it is no absolute path");
  return false;
}

void environment_clear(environment *e)
{
  free(e->rules_path);
  free(e->apply_path);
  free(e->preload);
  free(e->sim_lib);
  free(e->sim_runtime);
  free(e->sim_cupti);
  free(e->spool_dir);
}

/* ---- the software device --------------------------------------------------------------------- */

/* Cards whose costs the software device knows (cuda/sim/device/card.c). */
static bool is_card(const char *name)
{
  return strcmp(name, "a100") == 0 || strcmp(name, "h100") == 0;
}

bool environment_read_sim(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  environment *e = context;
  long n;
  (void)option;
  e->sim = true;
  e->sim_asked = value;
  e->sim_devices[0] = 0;
  e->sim_card = NULL;
  if (!value) return true;
  const char *comma = strchr(value, ',');
  bool card_alone = !comma && is_card(value);
  size_t digits = comma ? (size_t)(comma - value) : strlen(value);
  if (card_alone)
    e->sim_card = value;
  else if (comma)
    e->sim_card = comma + 1;
  if (e->sim_card && !is_card(e->sim_card)) {
    cmd_usage(c, "--sim knows the costs of a100 and h100, not of '%s'", e->sim_card);
    return false;
  }
  if (card_alone) return true;
  if (digits < sizeof e->sim_devices) {
    memcpy(e->sim_devices, value, digits);
    e->sim_devices[digits] = 0;
    if (cmd_number(e->sim_devices, 1, 32, &n)) return true;
  }
  cmd_usage(c, "--sim takes a number of devices from 1 to 32, not '%.*s'", (int)digits, value);
  return false;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Puts `first` in front of a colon-separated list, unless it is there already. */
static void prepend_path(const char *variable, const char *first)
{
  const char *old = getenv(variable);
  size_t n = strlen(first);
  if (!old || !*old) {
    (void)setenv(variable, first, 1);
  } else if (strncmp(old, first, n) != 0 || (old[n] && old[n] != ':')) {
    char *list = cmd_format("%s:%s", first, old);
    (void)setenv(variable, list, 1);
    free(list);
  }
}

/* Puts `last` at the end of a list of paths, unless it is in it. */
static void append_path(const char *variable, const char *last)
{
  const char *old = getenv(variable);
  size_t n = strlen(last);
  for (const char *at = old; at && *at; at += strcspn(at, " :"), at += strspn(at, " :"))
    if (strncmp(at, last, n) == 0 && (!at[n] || at[n] == ' ' || at[n] == ':')) return;
  char *list = old && *old ? cmd_format("%s:%s", old, last) : cmd_format("%s", last);
  (void)setenv(variable, list, 1);
  free(list);
}

static void set_variable(const char *variable, const char *value)
{
  if (value) (void)setenv(variable, value, 1);
}

/* The software device's runtime is preloaded as well: a program whose RPATH leads to a libcudart of
 * its own (PyTorch's wheels) finds that before LD_LIBRARY_PATH, but loads no second one of a
 * name. It comes after the libraries that the user preloads, as a runtime that the program
 * brings does. */
static void apply_sim(const environment *e)
{
  append_path("LD_PRELOAD", e->sim_runtime);
  prepend_path("LD_LIBRARY_PATH", e->sim_lib);
  set_variable("WEIR_SIM_DEVICES", e->sim_devices[0] ? e->sim_devices : NULL);
  set_variable("WEIR_SIM_CARD", e->sim_card);
  (void)setenv("WEIR_BLAS", "builtin", 0); /* the machine's cuBLAS takes seconds to refuse it */
}

void environment_apply_bare(const environment *e)
{
  if (e->sim) apply_sim(e);
}

void environment_apply(const environment *e)
{
  prepend_path("LD_PRELOAD", e->preload); /* hooks before what they hook */
  (void)unsetenv("WEIR_SPOOL_AUTO");      /* of a preloaded process above us: this folder is ours */
  if (!e->spool_dir) (void)unsetenv("WEIR_SPOOL_DIR"); /* nothing is recorded */
  if (!e->spool_dir) (void)unsetenv("WEIR_OUTPUT");
  set_variable("WEIR_SPOOL_DIR", e->spool_dir);
  set_variable("WEIR_MODE", e->mode);
  set_variable("WEIR_REROUTE", e->reroute);
  set_variable("WEIR_STACKS", e->stacks);
  set_variable("WEIR_DEVICE_TIMES", e->device_times);
  set_variable("WEIR_ACCESS", e->access);
  set_variable("WEIR_HASH", e->hash);
  set_variable("WEIR_RULES", e->rules_path);
  if (e->apply) (void)unsetenv("WEIR_APPLY");
  set_variable("WEIR_APPLY", e->apply_path);
  set_variable("WEIR_ZERO", e->zero ? "1" : NULL);
  set_variable("WEIR_POISON", e->poison ? "1" : NULL);
  set_variable("WEIR_REDACT", e->redact ? "1" : NULL);
  set_variable("WEIR_CAPTURE", e->capture);
  set_variable("WEIR_DORMANT", e->dormant ? "1" : NULL);
  set_variable("WEIR_PYTHON", e->python);
  set_variable("WEIR_KEEP", e->keep);
  if (!e->sim) return;
  apply_sim(e);
  (void)setenv("WEIR_CUPTI", e->sim_cupti, 1); /* a program's own is for another driver */
}

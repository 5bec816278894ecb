/* scheduler.c: processes under ptrace(2), each system call of theirs a stop.
 *
 * A task is a thread of the program's or of the collector's, which is known by its image; a process
 * that weir has forked is nobody's until its exec. A side that is *held* is not continued
 * at its next stop. Phases: the program goes to its step; the collector goes to its step; the
 * program goes on, the collector being held; then what is to be killed is, and all go on. In the
 * first three only one of the two goes on at a time.
 *
 * While it is the collector's turn its waits are cut short, so that no schedule takes time. */
#include "tests/tools/scheduler.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/ticker.h"
#include "tests/tools/command.h"

enum { MOST_TASKS = 512, WAITS_A_TURN = 2, WAITS_AT_MOST = 4 };

enum side { NOBODY, PROGRAM, COLLECTOR };

typedef struct task {
  pid_t pid;
  enum side side;
  unsigned process; /* of the program's, from 1 */
  bool known;       /* somebody has told us whose it is */
  bool stopped;     /* and not continued yet */
  bool started;     /* its first stop is behind it */
} task;

enum phase { TO_PROGRAM, TO_COLLECTOR, TO_TO, TO_PROGRAMS_END, AT_END };

static struct {
  const schedule *plan;
  walked *out;
  task tasks[MOST_TASKS];
  unsigned count, processes;
  enum phase phase;
  bool collectors_turn;                    /* on the way TO_PROGRAM, TO_PROGRAMS_END */
  unsigned program_steps, collector_steps; /* of this phase */
  unsigned waits;                          /* of the collector in this phase or turn */
  pid_t first, at;                         /* the first process; who made the last step */
} now;

/* ---- tasks ----------------------------------------------------------------------------------- */

static task *find_traced_task(pid_t pid)
{
  for (unsigned i = 0; i < now.count; i++)
    if (now.tasks[i].pid == pid) return &now.tasks[i];
  ck_assert_uint_lt(now.count, MOST_TASKS);
  now.tasks[now.count] = (task){.pid = pid};
  return &now.tasks[now.count++];
}

static void forget(pid_t pid)
{
  for (unsigned i = 0; i < now.count; i++)
    if (now.tasks[i].pid == pid) now.tasks[i--] = now.tasks[--now.count];
}

static unsigned alive(enum side side)
{
  unsigned n = 0;
  for (unsigned i = 0; i < now.count; i++)
    n += now.tasks[i].side == side;
  return n;
}

static bool side_is_held(enum side side)
{
  switch (now.phase) {
  case TO_PROGRAM:
  case TO_PROGRAMS_END:
    return side == PROGRAM     ? now.collectors_turn
           : side == COLLECTOR ? alive(PROGRAM) && !now.collectors_turn
                               : false;
  case TO_COLLECTOR:
    return side == PROGRAM;
  case TO_TO:
    return side == COLLECTOR;
  default:
    return false;
  }
}

static void let_go(task *t, int signal)
{
  t->stopped = false;
  (void)ptrace(PTRACE_SYSCALL, t->pid, NULL, signal); /* killed meanwhile: its end is reported */
}

static void let_all_go(void)
{
  for (unsigned i = 0; i < now.count; i++)
    if (now.tasks[i].stopped && now.tasks[i].known && !side_is_held(now.tasks[i].side))
      let_go(&now.tasks[i], 0);
}

static void look_whose(task *t)
{
  char link[64], path[4096];
  (void)snprintf(link, sizeof link, "/proc/%d/exe", (int)t->pid);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  const char *name = strrchr(path, '/');
  t->side = !name                      ? NOBODY
            : !strcmp(name, "/weir")   ? COLLECTOR
            : !strcmp(name, "/walker") ? PROGRAM
                                       : NOBODY;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool in_folder(const char *path)
{
  return strstr(path, "/place/") || strstr(path, ".spool") || path[0] == '.';
}

static bool names_folder(pid_t pid, uint64_t address)
{
  char path[256] = "";
  struct iovec to = {path, sizeof path - 1}, from = {(void *)(uintptr_t)address, to.iov_len};
  if (process_vm_readv(pid, &to, 1, &from, 1, 0) <= 0) {
    from.iov_len = to.iov_len = 4096 - (address & 4095) < 255 ? 4096 - (address & 4095) : 255;
    (void)process_vm_readv(pid, &to, 1, &from, 1, 0);
  }
  return in_folder(path);
}

static bool is_in_folder(pid_t pid, uint64_t fd)
{
  char link[64], path[512];
  (void)snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, (int)fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  return strstr(path, "/place/") != NULL;
}

static const struct call {
  long number;
  const char *name;
  char how;     /* 'a': always a step, 'p': where a path leads there, 'f': a descriptor */
  int argument; /* that says so */
} calls[] = {
    {SYS_openat, "openat", 'p', 1},
    {SYS_newfstatat, "fstatat", 'p', 1},
    {SYS_renameat2, "renameat2", 'p', 1},
    {SYS_unlinkat, "unlinkat", 'a', 0},
    {SYS_faccessat, "faccessat", 'p', 1},
    {SYS_fallocate, "fallocate", 'f', 0},
    {SYS_ftruncate, "ftruncate", 'f', 0},
    {SYS_getdents64, "getdents", 'f', 0},
    {SYS_pread64, "pread", 'f', 0},
    {SYS_pwrite64, "pwrite", 'f', 0},
    {SYS_mmap, "mmap", 'f', 4},
    {SYS_mremap, "mremap", 'a', 0},
    {SYS_clone, "clone", 'a', 0},
    {SYS_clone3, "clone3", 'a', 0},
    {SYS_execve, "execve", 'a', 0},
    {SYS_exit_group, "exit_group", 'a', 0},
    {SYS_wait4, "wait4", 'a', 0},
    {SYS_waitid, "waitid", 'a', 0},
    {SYS_pidfd_open, "pidfd_open", 'a', 0},
    {SYS_kill, "kill", 'a', 0},
    {SYS_tgkill, "tgkill", 'a', 0},
    {SYS_ppoll, "ppoll", 'a', 0},
    {SYS_flock, "flock", 'f', 0},
    {SYS_fstat, "fstat", 'f', 0},
#ifdef SYS_unlink
    {SYS_unlink, "unlink", 'p', 0},
    {SYS_rename, "rename", 'p', 0},
    {SYS_mkdir, "mkdir", 'p', 0},
    {SYS_rmdir, "rmdir", 'p', 0},
    {SYS_access, "access", 'p', 0},
    {SYS_poll, "poll", 'a', 0},
    {SYS_fork, "fork", 'a', 0},
    {SYS_vfork, "vfork", 'a', 0},
#else
    {SYS_mkdirat, "mkdirat", 'p', 1},
#endif
};

/* The step's name, NULL: it is none. */
static const char *step_of_syscall(pid_t pid, const struct __ptrace_syscall_info *info)
{
  for (const struct call *c = calls; c < calls + sizeof calls / sizeof *calls; c++) {
    if ((uint64_t)c->number != info->entry.nr) continue;
    uint64_t value = info->entry.args[c->argument];
    bool is =
        c->how == 'a' || (c->how == 'p' ? names_folder(pid, value) : is_in_folder(pid, value));
    return is ? c->name : NULL;
  }
  return NULL;
}

/* A wait that is about to be made ends at once. */
static void cut_wait(pid_t pid, const struct __ptrace_syscall_info *info)
{
#ifdef __x86_64__
  if (info->entry.nr == SYS_poll)
    (void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rdx), 0);
#else
  (void)pid, (void)info;
#endif
}

static void append_to_trail(const char *what)
{
  size_t used = strlen(now.out->trail);
  (void)snprintf(now.out->trail + used, sizeof now.out->trail - used, " %s", what);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void kill_some(void)
{
  for (unsigned i = 0; i < now.count; i++)
    if (now.tasks[i].side == PROGRAM && (now.plan->then == KILL_ALL || now.tasks[i].pid == now.at))
      (void)kill(now.tasks[i].pid, SIGKILL);
}

/* Phases without anything to wait for are passed over. */
static void enter_phase(enum phase phase)
{
  if (phase == TO_COLLECTOR && !now.plan->collector_at) phase = TO_TO;
  if (phase == TO_COLLECTOR && !alive(COLLECTOR)) phase = TO_PROGRAMS_END;
  if (phase == TO_TO && !now.plan->program_to) phase = TO_PROGRAMS_END;
  if (phase == TO_PROGRAMS_END && now.plan->then != GO_ON) kill_some();
  if (phase == TO_PROGRAMS_END && !now.plan->turns_after) phase = AT_END;
  now.phase = phase;
  now.collectors_turn = false;
  now.program_steps = now.collector_steps = now.waits = 0;
  let_all_go();
}

/* Whether the step that is about to be made ends its phase. */
static bool ends_phase(const task *t)
{
  const schedule *s = now.plan;
  bool program = t->side == PROGRAM;
  switch (now.phase) {
  case TO_PROGRAM:
    if (s->of && s->of != t->process) return false;
    return program && now.program_steps == s->program_at && (now.out->reached_program = true);
  case TO_COLLECTOR:
    if (program || now.collector_steps < s->collector_at) return false;
    return now.waits < WAITS_AT_MOST && (now.out->reached_collector = true);
  case TO_TO:
    return program && now.program_steps == s->program_to && (now.out->reached_to = true);
  default:
    return false;
  }
}

/* On the way TO_PROGRAM and TO_PROGRAMS_END: whether the turn goes to the other side now. */
static bool changes_turn(const task *t)
{
  if (!(now.phase == TO_PROGRAM && now.plan->turns_before) && now.phase != TO_PROGRAMS_END)
    return false;
  if (!alive(COLLECTOR)) return false;
  if (t->side == COLLECTOR ? now.waits < WAITS_A_TURN : now.collectors_turn) return false;
  now.waits = 0;
  now.collectors_turn = t->side == PROGRAM;
  return true;
}

/* A step is about to be made. True: not now. */
static bool at_step(task *t, const char *name)
{
  now.program_steps += t->side == PROGRAM && (!now.plan->of || now.plan->of == t->process);
  now.collector_steps += t->side == COLLECTOR;
  now.out->steps += now.phase == TO_PROGRAM && t->side == PROGRAM;
  now.waits += t->side == COLLECTOR && strstr(name, "poll") != NULL;
  t->stopped = true;
  if (ends_phase(t)) {
    if (t->side == PROGRAM) now.at = t->pid;
    append_to_trail(name);
    enter_phase(now.phase + 1);
  } else if (now.phase == TO_COLLECTOR && now.waits >= WAITS_AT_MOST) {
    enter_phase(TO_PROGRAMS_END);
  } else if (changes_turn(t)) {
    let_all_go();
  } else {
    t->stopped = false;
    return false;
  }
  return true;
}

/* The end of a side ends what waits for its steps. */
static void look_for_end(void)
{
  if (!alive(PROGRAM) && now.phase != AT_END) {
    now.out->reached_to = now.phase == TO_TO && now.plan->program_to == UNTIL_END;
    enter_phase(AT_END);
  } else if (!alive(COLLECTOR) && now.phase == TO_COLLECTOR) {
    enter_phase(TO_PROGRAMS_END);
  } else if (!alive(COLLECTOR) && now.collectors_turn) {
    now.collectors_turn = false;
    let_all_go();
  }
}

/* ---- stops ----------------------------------------------------------------------------------- */

static void on_call(task *t)
{
  struct __ptrace_syscall_info info;
  const char *name = NULL;
  long got = ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof info, &info);
  if (got > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY && t->side != NOBODY) {
    name = step_of_syscall(t->pid, &info);
    if (name && t->side == COLLECTOR && now.phase != AT_END) cut_wait(t->pid, &info);
  }
  if (name && at_step(t, name)) return;
  t->stopped = true;
  if (!side_is_held(t->side)) let_go(t, 0);
}

static void on_new_task(const task *parent, bool process)
{
  unsigned long pid = 0;
  (void)ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid);
  enum side side = parent->side;
  task *t = find_traced_task((pid_t)pid);
  t->known = true;
  t->side = side == COLLECTOR ? NOBODY : side;
  t->process = !process ? parent->process : side == PROGRAM ? ++now.processes : 0;
  if (t->stopped && !side_is_held(t->side)) let_go(t, 0);
}

static void on_exec(task *t)
{
  unsigned long former = 0;
  if (!ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &former) && (pid_t)former != t->pid)
    forget((pid_t)former);
  find_traced_task(t->pid)->known = true;
  t = find_traced_task(t->pid);
  look_whose(t);
  if (t->side == PROGRAM && !t->process) t->process = ++now.processes;
}

static void on_stop(pid_t pid, int status)
{
  int signal = WSTOPSIG(status), event = status >> 16;
  task *t = find_traced_task(pid);
  if (signal == (SIGTRAP | 0x80)) {
    on_call(t);
    return;
  }
  t->stopped = true;
  if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE)
    on_new_task(t, event != PTRACE_EVENT_CLONE);
  else if (event == PTRACE_EVENT_EXEC)
    on_exec(t);
  t = find_traced_task(pid);
  bool first = !t->started && signal == SIGSTOP;
  t->started = true;
  if (t->known && !side_is_held(t->side)) let_go(t, event || first ? 0 : signal);
}

static void follow(void)
{
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, __WALL)) > 0) {
    if (WIFSTOPPED(status)) {
      on_stop(pid, status);
      continue;
    }
    if (pid == now.first) now.out->status = status;
    bool sided = find_traced_task(pid)->side != NOBODY;
    forget(pid);
    if (sided) look_for_end();
  }
}

/* ---- a run ----------------------------------------------------------------------------------- */

static ticker_page *new_counters(void)
{
  int fd = open("counters", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(ftruncate(fd, 4096), 0);
  ticker_page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ck_assert_ptr_ne(p, MAP_FAILED);
  (void)close(fd);
  return p;
}

static void become_first(const schedule *plan)
{
  char line[512];
  (void)snprintf(line, sizeof line,
                 plan->preloaded
                     ? "exec env LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_OUTPUT=$PWD/t.db "
                       "LD_PRELOAD=$BUILD/lib/libweir-preload.so $BUILD/tests/tools/walker "
                       "counters %s 2>err"
                     : "exec $WEIR run --force -o t.db --sim -- $BUILD/tests/tools/walker "
                       "counters %s 2>err",
                 plan->steps);
  (void)setenv("WEIR_STACKS", "off", 1);
  (void)setenv("WEIR_MODE", "observe", 1);
  (void)setenv("WEIR_RECOVER", "off", 1);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(126);
  (void)raise(SIGSTOP);
  execl("/bin/sh", "sh", "-c", line, (char *)NULL);
  _exit(127);
}

static bool start_traced_program(const schedule *plan)
{
  int status;
  const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
  char root[4096];
  set_names();
  (void)mkdir("place", 0700);
  ck_assert_ptr_nonnull(realpath("place", root));
  (void)setenv("WEIR_SPOOL_ROOT", root, 1);
  now.first = fork();
  ck_assert_int_ge(now.first, 0);
  if (now.first == 0) become_first(plan);
  ck_assert_int_eq(waitpid(now.first, &status, 0), now.first);
  if (!WIFSTOPPED(status)) return false;
  ck_assert_int_eq(ptrace(PTRACE_SETOPTIONS, now.first, NULL, options), 0);
  *find_traced_task(now.first) =
      (task){.pid = now.first, .side = NOBODY, .known = true, .started = true};
  let_go(find_traced_task(now.first), 0);
  return true;
}

bool scheduler_run(const schedule *plan, walked *out)
{
  *out = (walked){.begun = 0};
  memset(&now, 0, sizeof now);
  now.plan = plan;
  now.out = out;
  ticker_page *p = new_counters();
  bool may = start_traced_program(plan);
  if (may) follow();
  out->begun = atomic_load(&p->begun);
  out->done = atomic_load(&p->done);
  (void)munmap(p, sizeof *p);
  return may;
}

/* victim.c: a program that does what its arguments say, in order, so that a test can write down a
 * life: CUDA calls, output, forks, execs, ends. Uses the driver API by dlopen, as many programs do.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts, done;

static void on_interrupt(int signal)
{
  (void)signal;
  interrupts++;
}

static void on_done(int signal)
{
  (void)signal;
  done = 1;
}

static void *require_symbol(void *p)
{
  if (p) return p;
  (void)fprintf(stderr, "victim: %s\n", dlerror());
  exit(99);
}

static int device; /* that allocate_and_free_once() uses */

/* One cuMemAlloc and one cuMemFree. */
static void allocate_and_free_once(void)
{
  static void *contexts[8];
  void **context = &contexts[device];
  unsigned long long pointer;
  void *cuda = require_symbol(dlopen("libcuda.so.1", RTLD_NOW));
  int (*init)(unsigned) = (int (*)(unsigned))require_symbol(dlsym(cuda, "cuInit"));
  int (*retain)(void **, int) =
      (int (*)(void **, int))require_symbol(dlsym(cuda, "cuDevicePrimaryCtxRetain"));
  int (*current)(void *) = (int (*)(void *))require_symbol(dlsym(cuda, "cuCtxSetCurrent"));
  int (*alloc)(unsigned long long *, size_t) =
      (int (*)(unsigned long long *, size_t))require_symbol(dlsym(cuda, "cuMemAlloc_v2"));
  int (*release)(unsigned long long) =
      (int (*)(unsigned long long))require_symbol(dlsym(cuda, "cuMemFree_v2"));
  if (init(0) || (!*context && retain(context, device)) || current(*context) ||
      alloc(&pointer, 4096) || release(pointer)) {
    (void)fprintf(stderr, "victim: a CUDA call failed\n");
    exit(98);
  }
}

static void copy_input_to_output(void)
{
  char text[4096];
  for (ssize_t n; (n = read(0, text, sizeof text)) > 0;)
    if (write(1, text, (size_t)n) != n) exit(97);
}

/* Until somebody has opened the fifo for writing and closed it again. */
static void await_fifo_closed(const char *fifo)
{
  char c;
  int fd = open(fifo, O_RDONLY);
  while (fd >= 0 && read(fd, &c, 1) > 0) {
  }
  (void)close(fd);
}

/* fork: the child lives on with the rest, the parent waits for it and ends likewise. */
static void fork_on(int wait)
{
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    if (!wait) (void)setsid();
    return;
  }
  if (!wait) _exit(0);
  (void)waitpid(pid, &status, 0);
  exit(WIFEXITED(status) ? WEXITSTATUS(status) : 96);
}

/* A fork() that fails, as where there are too many processes; so do all later ones, threads can be
 * made. */
static void fail_fork(void)
{
  static struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 11 /* EAGAIN */),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
    exit(93);
  if (fork() != -1) _exit(92);
}

/* Until this process's first spool has left its folder. */
static void await_drained(void)
{
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/%d-0.spool", getenv("WEIR_SPOOL_DIR"), (int)getpid());
  while (access(path, F_OK) == 0)
    (void)sched_yield();
}

/* Goes on as a user who is nobody else's. */
static void give_up_root(void)
{
  const gid_t other = 65534;
  if (setgroups(0, NULL) || setresgid(other, other, other) || setresuid(other, other, other))
    exit(91);
}

/* Says ready, counts SIGINTs until SIGUSR1 comes, and says how many there were. */
static void count_interrupts(void)
{
  sigset_t both, none;
  (void)sigemptyset(&both);
  (void)sigemptyset(&none);
  (void)sigaddset(&both, SIGINT);
  (void)sigaddset(&both, SIGUSR1);
  (void)sigprocmask(SIG_BLOCK, &both, NULL);
  (void)signal(SIGINT, on_interrupt);
  (void)signal(SIGUSR1, on_done);
  puts("ready");
  (void)fflush(stdout);
  while (!done) {
    int before = interrupts;
    (void)sigsuspend(&none);
    if (interrupts != before) puts("interrupt");
    (void)fflush(stdout);
  }
  printf("interrupts=%d\n", (int)interrupts);
}

static void perform_action(char **argv, int *at)
{
  const char *what = argv[(*at)++];
  if (!strcmp(what, "call")) return allocate_and_free_once();
  if (!strcmp(what, "cat")) return copy_input_to_output();
  if (!strcmp(what, "count")) return count_interrupts();
  if (!strcmp(what, "fork")) return fork_on(1);
  if (!strcmp(what, "daemon")) return fork_on(0);
  if (!strcmp(what, "fail_fork")) return fail_fork();
  if (!strcmp(what, "await_drained")) return await_drained();
  if (!strcmp(what, "drop")) return give_up_root();
  if (!strcmp(what, "exec")) {
    argv[*at - 1] = argv[0];
    (void)execv("/proc/self/exe", argv + *at - 1);
    exit(95);
  }
  const char *value = argv[(*at)++];
  if (!value) exit(94);
  if (!strcmp(what, "out")) (void)!write(1, value, strlen(value));
  if (!strcmp(what, "err")) (void)!write(2, value, strlen(value));
  if (!strcmp(what, "await")) await_fifo_closed(value);
  if (!strcmp(what, "on")) device = atoi(value) & 7;
  if (!strcmp(what, "raise")) (void)raise(atoi(value));
  if (!strcmp(what, "exit")) exit(atoi(value));
  if (!strcmp(what, "repeat"))
    for (int n = atoi(value); n > 0; n--)
      allocate_and_free_once();
}

int main(int argc, char **argv)
{
  for (int at = 1; at < argc;)
    perform_action(argv, &at);
  return 0;
}

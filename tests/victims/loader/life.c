/* life.c: a program linked with a runtime that lives and ends in every way a process can. `life
 * MODE`; what each mode calls is stated in test_loader_life.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaMalloc(void **p, size_t bytes);

static const char *own_path;

static void calls(int n)
{
  for (int i = 0; i < n; i++) {
    void *p = NULL;
    if (cudaMalloc(&p, 1) || p != (void *)0xd000001) abort();
  }
}

static int status_of(pid_t pid)
{
  int status;

  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int life_fork(void)
{
  pid_t pid;

  calls(2);
  pid = fork();
  if (pid == 0) {
    calls(3);
    pid = fork();
    if (pid == 0) {
      calls(4);
      exit(4);
    }
    exit(status_of(pid) == 4 ? 3 : 1);
  }
  calls(1);
  return status_of(pid) == 3 ? 0 : 1;
}

/* The child of a fork that libc does not know of. */
static int life_clone(void)
{
  pid_t pid;

  calls(2);
  pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    calls(3);
    _exit(3);
  }
  calls(1);
  return status_of(pid) == 3 ? 0 : 1;
}

/* No call before the fork. */
static int life_fork_first(void)
{
  pid_t pid = fork();

  calls(3);
  if (pid == 0) _exit(3);
  return status_of(pid) == 3 ? 0 : 1;
}

static int life_fork_exec(void)
{
  pid_t pid;

  calls(2);
  pid = fork();
  if (pid == 0) {
    calls(1);
    execl(own_path, "life", "five", (char *)NULL);
    _exit(99);
  }
  return status_of(pid) == 5 ? 0 : 1;
}

static int life_exec(void)
{
  calls(2);
  execl(own_path, "life", "five", (char *)NULL);
  return 99;
}

static int life_vfork(void)
{
  pid_t pid;

  calls(2);
  pid = vfork(); /* NOLINT: what is tried here */
  if (pid == 0) {
    execl(own_path, "life", "five", (char *)NULL);
    _exit(99);
  }
  calls(1);
  return status_of(pid) == 5 ? 0 : 1;
}

static int life_spawn(void)
{
  char *argv[] = {"life", "five", NULL};
  pid_t pid;

  calls(2);
  if (posix_spawn(&pid, own_path, NULL, NULL, argv, environ)) return 1;
  calls(1);
  return status_of(pid) == 5 ? 0 : 1;
}

/* As daemons do: two forks, a session, another folder, no descriptors. Descriptor 9 is inherited
 * from the test, which waits for its end. */
static int life_daemon(void)
{
  pid_t pid;

  calls(1);
  pid = fork();
  if (pid) return status_of(pid);
  setsid();
  if (fork()) _exit(0);
  if (chdir("/")) _exit(1);
  for (int fd = 0; fd < 9; fd++)
    close(fd);
  calls(2);
  syscall(SYS_close_range, 10, ~0u, 0);
  calls(20000); /* more than one chunk of events */
  _exit(0);
}

static int life_exit_now(void)
{
  calls(3);
  _exit(7);
}

static int life_abort(void)
{
  calls(3);
  (void)signal(SIGABRT, SIG_DFL);
  abort();
}

static int life_killed(void)
{
  calls(3);
  (void)raise(SIGKILL);
  return 1;
}

static void *thread_that_exits(void *n)
{
  calls(*(int *)n);
  exit(6);
}

static int life_exit_in_thread(void)
{
  pthread_t t;
  int n = 4;

  calls(1);
  pthread_create(&t, NULL, thread_that_exits, &n);
  pthread_join(t, NULL);
  return 1;
}

static void *thread(void *n)
{
  calls(*(int *)n);
  return NULL;
}

/* The main thread ends first. */
static void *thread_that_stays(void *main_thread)
{
  pthread_join(*(pthread_t *)main_thread, NULL);
  calls(5);
  return NULL;
}

static int life_thread_exit(void)
{
  static pthread_t main_thread;
  pthread_t t;

  main_thread = pthread_self();
  calls(2);
  pthread_create(&t, NULL, thread_that_stays, &main_thread);
  pthread_exit(NULL);
}

/* 300 threads, one after another: what a thread leaves behind is used again. */
static int life_threads(void)
{
  int n = 2;

  for (int i = 0; i < 300; i++) {
    pthread_t t;
    if (pthread_create(&t, NULL, thread, &n)) return 1;
    pthread_join(t, NULL);
  }
  return 0;
}

/* Calls from a thread's destructors, at exit, and from a destructor function. */
static pthread_key_t first_key, second_key;

static void call_again(void *left)
{
  calls(1);
  if (left) pthread_setspecific(second_key, NULL);
}

static void call_and_rearm(void *unused)
{
  static __thread int rounds;

  calls(1);
  if (++rounds < 3) pthread_setspecific(first_key, unused);
}

static void *thread_with_keys(void *unused)
{
  pthread_setspecific(first_key, &first_key);
  pthread_setspecific(second_key, &second_key);
  calls(1);
  return unused;
}

static void call_at_exit(void)
{
  calls(1);
}

static int is_late;

__attribute__((destructor)) static void call_at_end(void)
{
  if (is_late) calls(1);
}

static int life_late(void)
{
  pthread_t t;

  is_late = 1;
  pthread_key_create(&first_key, call_and_rearm);
  pthread_key_create(&second_key, call_again);
  pthread_create(&t, NULL, thread_with_keys, NULL);
  pthread_join(t, NULL);
  (void)atexit(call_at_exit);
  return 0;
}

static int life_clean_environment(void)
{
  clearenv();
  calls(3);
  return 0;
}

static int life_closes_all(void)
{
  syscall(SYS_close_range, 3, ~0u, 0);
  calls(3);
  syscall(SYS_close_range, 3, ~0u, 0);
  calls(20000);
  return 0;
}

/* 64 threads whose first calls come at once. */
static pthread_barrier_t all_there;

static void *thread_of_a_crowd(void *n)
{
  pthread_barrier_wait(&all_there);
  calls(*(int *)n);
  return NULL;
}

static int life_crowd(void)
{
  enum { THREADS = 64 };
  pthread_t t[THREADS];
  int n = 10;

  pthread_barrier_init(&all_there, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, thread_of_a_crowd, &n)) return 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(t[i], NULL);
  return 0;
}

/* 20 forks while 8 threads begin and call. */
static int life_fork_storm(void)
{
  enum { THREADS = 8, FORKS = 20 };
  pthread_t t[THREADS];
  int n = 2000, failed = 0;

  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&t[i], NULL, thread, &n)) return 1;
  for (int i = 0; i < FORKS; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      calls(3);
      _exit(3);
    }
    failed += status_of(pid) != 3;
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(t[i], NULL);
  return failed;
}

/* A thread that stays in a walk over the loaded objects, with the loader's lock, while its process
 * forks. */
static sem_t in_walk, leave_walk;

static int stay_in_walk(struct dl_phdr_info *info, size_t size, void *context)
{
  (void)info, (void)size, (void)context;
  sem_post(&in_walk);
  while (sem_wait(&leave_walk))
    continue;
  return 1;
}

static void *walking_thread(void *unused)
{
  dl_iterate_phdr(stay_in_walk, NULL);
  return unused;
}

/* A child, and a child of it, that call CUDA for the first time. */
static int life_fork_amid_walk(void)
{
  pthread_t walker;

  sem_init(&in_walk, 0, 0);
  sem_init(&leave_walk, 0, 0);
  if (pthread_create(&walker, NULL, walking_thread, NULL)) return 1;
  sem_wait(&in_walk);
  pid_t pid = fork();
  if (pid == 0) {
    pid_t second = fork();
    calls(second ? 3 : 2);
    _exit(second ? status_of(second) : 3);
  }
  int status = status_of(pid);
  sem_post(&leave_walk);
  pthread_join(walker, NULL);
  calls(5);
  return status;
}

/* The spool's path leads nowhere from here on. */
static int life_chroot(void)
{
  calls(3);
  if (chroot("/proc") || chdir("/")) return 9;
  calls(40000);
  return 0;
}

/* The spool belongs to somebody else from here on. */
static int life_setuid(void)
{
  calls(3);
  if (setresuid(65534, 65534, 65534)) return 9;
  calls(40000);
  return 0;
}

static volatile sig_atomic_t children_seen;

static void count_child(int n)
{
  (void)n;
  children_seen++;
}

/* What this program can see of the collector that its first call starts, while that runs. */
static int life_waits(int as_subreaper)
{
  struct sigaction count = {.sa_handler = count_child};
  sigset_t before = {0}, after = {0}; /* the kernel fills a part */
  int status, now = 0;
  pid_t pid;

  if (as_subreaper) prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigaction(SIGCHLD, &count, NULL);
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  calls(3);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  prctl(PR_GET_CHILD_SUBREAPER, &now);
  pid = waitpid(-1, &status, WNOHANG);
  printf("children: %d, errno %d, signals %d, subreaper %d, mask %d\n", (int)pid, errno,
         (int)children_seen, now, memcmp(&before, &after, sizeof before));
  return 0;
}

static int life_waits_plainly(void)
{
  return life_waits(0);
}
static int life_waits_as_reaper(void)
{
  return life_waits(1);
}

static int life_five(void)
{
  calls(5);
  return 5;
}

/* Out of a call by longjmp(), as interpreters leave what takes too long. */
static sigjmp_buf out_of_call;

static void jump(int n)
{
  siglongjmp(out_of_call, n);
}

static __attribute__((noinline)) int call_that_faults(void)
{
  volatile char room[4096] = {0};
  return cudaMalloc((void **)16, 1) + room[1];
}

static int life_jump(void)
{
  (void)signal(SIGSEGV, jump);
  calls(2);
  if (sigsetjmp(out_of_call, 1) == 0) return call_that_faults();
  calls(3);
  return 0;
}

/* Cancelled before its first call, and not there yet at a point where that shows. */
static void *thread_cancelled(void *n)
{
  pthread_cancel(pthread_self());
  calls(*(int *)n);
  pthread_testcancel();
  return NULL;
}

static int life_cancel(void)
{
  pthread_t t;
  void *result;
  int n = 4;

  pthread_create(&t, NULL, thread_cancelled, &n);
  pthread_join(t, &result);
  calls(2);
  return result != PTHREAD_CANCELED;
}

/* Descriptor 2 becomes a pipe of this program's. */
static int life_own_stderr(void)
{
  int ends[2];
  char text[256];

  if (pipe2(ends, O_NONBLOCK) || dup2(ends[1], 2) != 2) return 1;
  calls(3);
  printf("%d\n", (int)read(ends[0], text, sizeof text));
  return 0;
}

static int life_none(void)
{
  return 0;
}

static int life_errno(void)
{
  int at_start = errno;

  errno = 77;
  calls(1);
  printf("errno %d %d\n", at_start, errno);
  return 0;
}

/* The program's own remark, by the name it would look for. */
extern void weir_note(const char *) __attribute__((weak));

static int life_note(void)
{
  if (weir_note) weir_note("epoch 1 begins");
  return weir_note ? 0 : 1;
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    int (*run)(void);
  } modes[] = {{"fork", life_fork},
               {"clone", life_clone},
               {"fork-first", life_fork_first},
               {"fork-exec", life_fork_exec},
               {"exec", life_exec},
               {"vfork", life_vfork},
               {"spawn", life_spawn},
               {"daemon", life_daemon},
               {"_exit", life_exit_now},
               {"abort", life_abort},
               {"killed", life_killed},
               {"exit-in-thread", life_exit_in_thread},
               {"thread-exit", life_thread_exit},
               {"threads", life_threads},
               {"late", life_late},
               {"clean-environment", life_clean_environment},
               {"closes-all", life_closes_all},
               {"crowd", life_crowd},
               {"fork-storm", life_fork_storm},
               {"fork-amid-walk", life_fork_amid_walk},
               {"chroot", life_chroot},
               {"setuid", life_setuid},
               {"waits", life_waits_plainly},
               {"waits-as-reaper", life_waits_as_reaper},
               {"jump", life_jump},
               {"cancel", life_cancel},
               {"own-stderr", life_own_stderr},
               {"five", life_five},
               {"none", life_none},
               {"errno", life_errno},
               {"note", life_note}};

  own_path = argv[0];
  for (unsigned i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
    if (strcmp(argv[1], modes[i].name) == 0) return modes[i].run();
  return 2;
}

/* killed.h: a program under weir that is killed at a random moment, and what it had done by then.
 *
 * The moment is a number of calls: no clock decides when the program dies. */
#ifndef WEIR_TESTS_E2E_KILLED_H
#define WEIR_TESTS_E2E_KILLED_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/e2e/ticker.h"
#include "tests/tools/command.h"

/* A new file "counters", mapped. */
static inline ticker_page *new_counters(void)
{
  int fd = open("counters", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(ftruncate(fd, 4096), 0);
  ticker_page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ck_assert_ptr_ne(p, MAP_FAILED);
  (void)close(fd);
  return p;
}

/* Runs `program` of tests/e2e, which counts in the file "counters", its trace t.db,
 * and kills it after some of its calls, `most` at the most. What it had begun and done goes to
 * *at_end. */
static inline void kill_at_random(const char *program, bool stacks, uint64_t most,
                                  ticker_page *at_end)
{
  ticker_page *p = new_counters();
  int status = 0;
  pid_t weir = start(-1, -1,
                     "exec $WEIR run --force -o t.db --sim --stacks=%s -- sh -c "
                     "'echo $$ > pid; exec $BUILD/tests/e2e/%s'",
                     stacks ? "8" : "off", program);
  uint64_t calls = 1 + (uint64_t)rand() % most;
  while (atomic_load(&p->done) < calls) {
    ck_assert_int_eq(waitpid(weir, NULL, WNOHANG), 0);
    (void)sched_yield();
  }
  (void)sh_status(0, "kill -KILL $(cat pid)");
  ck_assert_int_eq(waitpid(weir, &status, 0), weir);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "weir ended with %x", status);
  at_end->begun = atomic_load(&p->begun);
  at_end->done = atomic_load(&p->done);
  (void)munmap(p, sizeof *p);
}

/* The trace of a killed program holds what it finished, less `lost` at the most, and no more than
 * it began. */
static inline void check_held(int round, const ticker_page *of, uint64_t held, uint64_t lost)
{
  ck_assert_msg(held + lost >= of->done && held <= of->begun,
                "kill %d: the program finished %llu of %llu calls, the trace holds %llu", round,
                (unsigned long long)of->done, (unsigned long long)of->begun,
                (unsigned long long)held);
}

#endif

/* tracer.c: `tracer NAME PROGRAM [ARGUMENT...]` runs a program as a debugger called NAME does:
 * traced from its first instruction, and let go on whenever it stops. Ends as the program ends. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  int status;
  if (argc < 3 || prctl(PR_SET_NAME, argv[1])) return 2;
  pid_t child = fork();
  if (!child) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) (void)execv(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (ptrace(PTRACE_CONT, child, NULL, (void *)(long)signal)) return 3;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

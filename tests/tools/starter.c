/* starter.c: HOW PROGRAM: starts PROGRAM without arguments by the function HOW and waits for it:
 * each exec in a child of vfork() (fork() for "fork"), with the environment as it is, or, where HOW
 * ends in "-bare", without any. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *nothing[] = {NULL};

static void become(const char *how, char *program, char **env)
{
  char *argv[] = {program, NULL};
  if (!strcmp(how, "execve") || !strcmp(how, "fork")) execve(program, argv, env);
  if (!strcmp(how, "execv")) execv(program, argv);
  if (!strcmp(how, "execvp")) execvp(program, argv);
  if (!strcmp(how, "execvpe")) execvpe(program, argv, env);
  if (!strcmp(how, "fexecve")) fexecve(open(program, O_RDONLY | O_CLOEXEC), argv, env);
  if (!strcmp(how, "execl")) execl(program, program, (char *)NULL);
  if (!strcmp(how, "execlp")) execlp(program, program, (char *)NULL);
  if (!strcmp(how, "execle")) execle(program, program, (char *)NULL, env);
  _exit(127);
}

int main(int argc, char **argv)
{
  char how[32] = "";
  int status = -1;
  pid_t pid = -1;
  if (argc != 3) return 2;
  (void)snprintf(how, sizeof how, "%s", argv[1]);
  char *bare = strstr(how, "-bare"), **env = bare ? nothing : environ;
  char *child[] = {argv[2], NULL};
  if (bare) *bare = 0;
  if (!strcmp(how, "posix_spawn")) {
    if (posix_spawn(&pid, argv[2], NULL, NULL, child, env)) return 127;
  } else if (!strcmp(how, "posix_spawnp")) {
    if (posix_spawnp(&pid, argv[2], NULL, NULL, child, env)) return 127;
  } else {
    pid = !strcmp(how, "fork") ? fork() : vfork();
    if (!pid) become(how, argv[2], env);
  }
  if (waitpid(pid, &status, 0) != pid) return 3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

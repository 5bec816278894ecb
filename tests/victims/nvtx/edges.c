/* edges.c MODE: what a program may do with ranges that is odd. Each ends with status 0. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

static void *push_and_end(void *unused)
{
  nvtxRangePushA("left open");
  return unused;
}

static void *pop_only(void *unused)
{
  nvtxRangePop();
  return unused;
}

static void in_thread(void *(*f)(void *))
{
  pthread_t t;
  pthread_create(&t, NULL, f, NULL);
  pthread_join(t, NULL);
}

static void name_resource(nvtxDomainHandle_t domain, int type, const char *name)
{
  nvtxResourceAttributes_t a = {.version = NVTX_VERSION,
                                .size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE,
                                .identifierType = type,
                                .identifier.ullValue = 77,
                                .messageType =
                                    name ? NVTX_MESSAGE_TYPE_ASCII : NVTX_MESSAGE_UNKNOWN,
                                .message.ascii = name};
  printf("%d\n", nvtxDomainResourceCreate(domain, &a) != NULL);
}

static int call_bare(void)
{
  int push = nvtxRangePushA("a"), pop = nvtxRangePop(), more = nvtxRangePop();
  printf("%d %d %d\n", push, pop, more);
  return 0;
}

static int pop_too_often(void)
{
  nvtxRangePop();
  nvtxRangePushA("a");
  nvtxRangePop();
  nvtxRangePop();
  return 0;
}

static int push_in_threads(void)
{
  nvtxRangePushA("main's");
  in_thread(pop_only);
  in_thread(push_and_end);
  nvtxRangePop();
  return 0;
}

static int push_in_fork(void)
{
  nvtxRangePushA("parent's");
  pid_t child = fork();
  if (!child) {
    nvtxRangePop();
    nvtxRangePushA("child's");
    nvtxRangePop();
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  nvtxRangePop();
  return WEXITSTATUS(status);
}

static int push_deep(void)
{
  for (int i = 0; i < 5000; i++)
    nvtxRangePushA("deep");
  for (int i = 0; i < 5000; i++)
    nvtxRangePop();
  nvtxRangePushA("after");
  nvtxRangePop();
  return 0;
}

static int choose_own_tool(void)
{
  setenv("NVTX_INJECTION64_PATH", "/nonexistent/tool.so", 1);
  nvtxRangePushA("unseen");
  nvtxRangePop();
  return 0;
}

static int mark_odd_texts(void)
{
  static char big[5000];
  nvtxEventAttributes_t none = {0};
  memset(big, 'x', sizeof big - 1);
  big[1023] = (char)0xc3; /* a character that does not fit whole */
  big[1024] = (char)0xa9;
  nvtxMarkA(big);
  nvtxMarkA(NULL);
  nvtxMarkW(NULL);
  nvtxMarkEx(NULL);
  nvtxMarkEx(&none);
  nvtxMarkW(L"\U0010ffff");
  nvtxDomainMarkEx(NULL, NULL);
  return 0;
}

static int push_many_texts(void)
{
  char text[32];
  for (int i = 0; i < 3000; i++) {
    (void)snprintf(text, sizeof text, "step %d", i % 1500);
    nvtxRangePushA(text);
    nvtxRangePop();
  }
  return 0;
}

static int push_endless_texts(void)
{
  enum { TEXT = 4096 };
  char *text = mmap(NULL, 2 * TEXT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(text + TEXT, TEXT, PROT_NONE);
  for (int i = 0; i < 20; i++) {
    memset(text, 'y' + i % 2, TEXT);
    nvtxRangePushA(text);
    nvtxRangePop();
  }
  return 0;
}

static int name_resources(void)
{
  nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  name_resource(domain, NVTX_RESOURCE_TYPE_CUDA_STREAM, "a stream");
  name_resource(domain, NVTX_RESOURCE_TYPE_CUDART_STREAM, "another");
  name_resource(NULL, NVTX_RESOURCE_TYPE_CUDA_CONTEXT, "a context");
  name_resource(domain, NVTX_RESOURCE_TYPE_GENERIC_POINTER, "a lock");
  name_resource(domain, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE, "a thread");
  name_resource(domain, 77, NULL);
  nvtxDomainResourceCreate(domain, NULL);
  return 0;
}

/* Without us, but with what we set. */
static int run_again(void)
{
  unsetenv("LD_PRELOAD");
  execl("/proc/self/exe", "edges", "pops", (char *)NULL);
  return 1;
}

static int print_environment(void)
{
  const char *now = getenv("NVTX_INJECTION64_PATH");
  printf("%s\n", now ? now : "none");
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void); /* returns the exit status */
} modes[] = {{"bare", call_bare},
             {"pops", pop_too_often},
             {"threads", push_in_threads},
             {"fork", push_in_fork},
             {"deep", push_deep},
             {"own-choice", choose_own_tool},
             {"odd-text", mark_odd_texts},
             {"many-texts", push_many_texts},
             {"endless-text", push_endless_texts},
             {"resources", name_resources},
             {"exec", run_again},
             {"environment", print_environment}};

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(mode, modes[i].name)) return modes[i].run();
  return 0;
}

/* look.c: a program that looks its functions up, every way there is. `look MODE` prints what it
 * finds; what it prints must not depend on who is preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int malloc_function(void **, size_t);

static void *open_or_die(const char *file, int mode)
{
  void *h = dlopen(file, mode);

  if (h) return h;
  printf("%s\n", dlerror());
  exit(1);
}

/* Calls what was found, or prints why it was not. */
static void call_found_malloc(const char *what, void *found)
{
  void *p = NULL;

  if (!found) {
    printf("%s: %s\n", what, dlerror());
    return;
  }
  printf("%s: %d", what, ((malloc_function *)found)(&p, 16));
  printf(" %p\n", p);
}

static void look_handle(void)
{
  void *h = open_or_die("libcudart.so.13", RTLD_NOW | RTLD_LOCAL), *d;
  int (*itself)(void) = (int (*)(void))dlsym(h, "cudaFakeFindsItself");

  call_found_malloc("handle", dlsym(h, "cudaMalloc"));
  call_found_malloc("again", dlsym(h, "cudaMalloc"));
  call_found_malloc("missing", dlsym(h, "cudaNoSuchThing"));
  call_found_malloc("elsewhere", dlsym(h, "cuMemAlloc_v2"));
  d = open_or_die("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  call_found_malloc("driver", dlsym(d, "cuMemAlloc_v2"));
  printf("itself: %d\n", itself());
}

static void look_nothing(void)
{
  call_found_malloc("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
  call_found_malloc("default driver", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  call_found_malloc("program", dlsym(open_or_die(NULL, RTLD_NOW), "cudaMalloc"));
  call_found_malloc("program driver", dlsym(open_or_die(NULL, RTLD_NOW), "cuInit"));
  call_found_malloc("next", dlsym(RTLD_NEXT, "cudaMalloc"));
  call_found_malloc("next driver", dlsym(RTLD_NEXT, "cuInit"));
}

static void look_global(void)
{
  open_or_die("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);
  open_or_die("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  call_found_malloc("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
  call_found_malloc("default driver", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
  call_found_malloc("program", dlsym(open_or_die(NULL, RTLD_NOW), "cudaMalloc"));
}

/* What is loaded, but for somebody else, is not found by everybody. */
static void look_local(void)
{
  open_or_die("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  open_or_die("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  call_found_malloc("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
  call_found_malloc("default driver", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
}

static void look_both(void)
{
  void *h12 = open_or_die("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
  void *h13 = open_or_die("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);

  call_found_malloc("12", dlsym(h12, "cudaMalloc"));
  call_found_malloc("13", dlsym(h13, "cudaMalloc"));
  call_found_malloc("12", dlsym(h12, "cudaMalloc"));
}

static void look_version(void)
{
  void *h = open_or_die("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);

  call_found_malloc("right", dlvsym(h, "cudaMalloc", "libcudart.so.13"));
  call_found_malloc("wrong", dlvsym(h, "cudaMalloc", "libcudart.so.12"));
  call_found_malloc("default", dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.13"));
  printf("default wrong: %d", dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12") != NULL);
  printf("%s\n", strstr(dlerror(), ": undefined symbol")); /* whose, is ours to say */
  printf("program wrong: %d",
         dlvsym(open_or_die(NULL, RTLD_NOW), "cudaMalloc", "libcudart.so.12") != NULL);
  printf("%s\n", strstr(dlerror(), ": undefined symbol"));
  printf("ordinary: %d\n", dlvsym(RTLD_DEFAULT, "qsort", "GLIBC_2.2.5") != NULL);
}

/* dlsym found by dlsym, by handle and by default, finds as dlsym does. */
static void look_self(void)
{
  void *libc = open_or_die("libc.so.6", RTLD_NOW);
  void *h = open_or_die("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  void *(*a)(void *, const char *) = (void *(*)(void *, const char *))dlsym(libc, "dlsym");
  void *(*b)(void *, const char *) = (void *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "dlsym");
  void *(*c)(void *, const char *, const char *) =
      (void *(*)(void *, const char *, const char *))dlsym(libc, "dlvsym");

  call_found_malloc("by handle", a(h, "cudaMalloc"));
  call_found_malloc("by default", b(h, "cudaMalloc"));
  call_found_malloc("dlvsym", c(h, "cudaMalloc", "libcudart.so.13"));
}

static void look_odd(void)
{
  call_found_malloc("empty", dlsym(RTLD_DEFAULT, ""));
  call_found_malloc("c", dlsym(RTLD_DEFAULT, "c"));
  call_found_malloc("cu", dlsym(RTLD_DEFAULT, "cu"));
  call_found_malloc("cuda", dlsym(RTLD_DEFAULT, "cuda"));
  call_found_malloc("cublas", dlsym(RTLD_DEFAULT, "cublasCreate_v2"));
  call_found_malloc("underscores", dlsym(RTLD_DEFAULT, "__cudaNothing"));
  call_found_malloc("dl", dlsym(RTLD_DEFAULT, "dl"));
  call_found_malloc("not there", dlopen("libcudart.so.77", RTLD_NOW));
  printf("closing nothing: %d\n", dlerror() == NULL);
  errno = 77;
  printf("strlen: %d errno %d\n", dlsym(RTLD_DEFAULT, "strlen") != NULL, errno);
}

static void plugin(int mode)
{
  void *h = open_or_die(PLUGINS "/plugin.so", RTLD_NOW | mode);

  ((int (*)(void))dlsym(h, "plugin_run"))();
  dlclose(h);
}

static void look_plugin(void)
{
  plugin(RTLD_LOCAL);
}
static void look_deepbind(void)
{
  plugin(RTLD_LOCAL | RTLD_DEEPBIND);
}

/* The plug-in and its runtime go and come again, a page aside. */
static void look_reload(void)
{
  plugin(RTLD_LOCAL);
  printf("gone: %d\n", dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) == NULL);
  open_or_die("libembed.so", RTLD_NOW | RTLD_LOCAL);
  plugin(RTLD_LOCAL);
}

static void look_runpath(void)
{
  void *h = open_or_die(PLUGINS "/plugin.so", RTLD_NOW);

  printf("program: %d\n", dlopen("libdeep.so", RTLD_NOW) != NULL);
  ((int (*)(const char *))dlsym(h, "plugin_open"))("libdeep.so");
}

static void look_embed(void)
{
  void *h = open_or_die("libembed.so", RTLD_NOW | RTLD_GLOBAL);

  ((void (*)(void))dlsym(h, "embed_run"))();
  call_found_malloc("handle", dlsym(h, "cudaMalloc"));
  call_found_malloc("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
}

static void run_plugin(const char *path)
{
  ((int (*)(void))dlsym(open_or_die(path, RTLD_NOW | RTLD_LOCAL), "plugin_run"))();
}

/* A runtime packed under another soname, alone; then beside the one everybody knows. */
static void look_packed(void)
{
  run_plugin(PLUGINS "/packed.so");
}

static void look_copies(void)
{
  run_plugin(PLUGINS "/plugin.so");
  run_plugin(PLUGINS "/packed.so");
  run_plugin(PLUGINS "/plugin.so");
  call_found_malloc("handle", dlsym(open_or_die("libcudart-1a2b3c.so.13", RTLD_NOW), "cudaMalloc"));
  call_found_malloc("handle", dlsym(open_or_die("libcudart.so.13", RTLD_NOW), "cudaMalloc"));
}

/* Both in turn, often, and with the packed one gone and come again, elsewhere. */
static void look_copies_again(void)
{
  void *h = open_or_die(PLUGINS "/plugin.so", RTLD_NOW | RTLD_LOCAL);

  for (int round = 0; round < 3; round++) {
    void *packed = open_or_die(PLUGINS "/packed.so", RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < 4; i++) {
      ((int (*)(void))dlsym(packed, "plugin_run"))();
      ((int (*)(void))dlsym(h, "plugin_run"))();
    }
    dlclose(packed);
    ((int (*)(void))dlsym(h, "plugin_run"))();
    if (round == 1) open_or_die("libembed.so", RTLD_NOW | RTLD_LOCAL);
  }
}

/* A library that stands in for the driver until its first call. */
static void look_stub(void)
{
  run_plugin(PLUGINS "/stub.so");
}

/* A namespace of its own: nothing there is ours to see, and all of it works. */
static void look_namespace(void)
{
  void *h = dlmopen(LM_ID_NEWLM, "libcudart.so.13", RTLD_NOW | RTLD_LOCAL), *d;

  if (!h) printf("%s\n", dlerror());
  call_found_malloc("namespace", dlsym(h, "cudaMalloc"));
  d = dlmopen(LM_ID_BASE, "libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
  call_found_malloc("base", dlsym(d, "cudaMalloc"));
}

static pthread_barrier_t all_there;

static void *look_thread(void *h)
{
  unsigned long bad = 0;

  pthread_barrier_wait(&all_there);
  for (int i = 0; i < 500; i++) {
    void *p = NULL;
    malloc_function *f = (malloc_function *)dlsym(h, "cudaMalloc");
    char *error;
    bad += !f || f(&p, 16) || p != (void *)0xd000010;
    bad += dlsym(RTLD_DEFAULT, "strlen") == NULL;
    bad += dlsym(h, "cudaNoSuchThing") != NULL;
    error = dlerror();
    bad += !error || !strstr(error, "undefined symbol: cudaNoSuchThing");
  }
  return (void *)bad;
}

static void look_threads(void)
{
  enum { THREADS = 64 };
  pthread_t t[THREADS];
  void *h = open_or_die("libcudart.so.13", RTLD_NOW | RTLD_LOCAL), *bad;
  unsigned long sum = 0;

  pthread_barrier_init(&all_there, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&t[i], NULL, look_thread, h);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(t[i], &bad);
    sum += (unsigned long)bad;
  }
  printf("wrong: %lu\n", sum);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"handle", look_handle},
               {"nothing", look_nothing},
               {"global", look_global},
               {"local", look_local},
               {"both", look_both},
               {"version", look_version},
               {"self", look_self},
               {"odd", look_odd},
               {"plugin", look_plugin},
               {"reload", look_reload},
               {"deepbind", look_deepbind},
               {"runpath", look_runpath},
               {"namespace", look_namespace},
               {"packed", look_packed},
               {"copies", look_copies},
               {"embed", look_embed},
               {"threads", look_threads},
               {"stub", look_stub},
               {"copies_again", look_copies_again}};

  for (unsigned i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(argv[1], modes[i].name) != 0) continue;
    modes[i].run();
    return 0;
  }
  return 2;
}

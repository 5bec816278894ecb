/* engine.c: the engine's 35 rows on a real device: what each promises is tried on cuda:0, results
 * are compared with the cpu's, errors with their texts.
 *
 *   engine              all rows, a line each, and last "N passed, N failed"
 *   engine 11 16 ...    these rows
 *   engine -1 11        row 11 in this very process, for a debugger
 *
 * It is a program as users write them: libweir.so, its public header, and the driver opened at run
 * time to hold a stream. Each row has a process of its own, which opens CUDA anew: an error that
 * stays, a fork, a changed default disturb no other row, and one that hangs is ended after
 * WEIR_ROW_SECONDS (120). Without a device: one line, status 3.
 *
 * The suites below tests/ try far more, on the software device; this shows that a GPU does the
 * same. */
#include "tests/gpu/engine.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NO_GPU = 3, SAID = 1024 };

static const struct row {
  int number;
  void (*run)(void);
  const char *name;
} rows[] = {
#define ROW(number, function, name) {number, row_##function, name},
    ROWS(ROW)
#undef ROW
};

static int answer = STDOUT_FILENO; /* where a row's words go */

_Noreturn void fail_row(const char *file, int line, const char *format, ...)
{
  char text[SAID];
  va_list arguments;
  int length = snprintf(text, sizeof text, "%s:%d: ", file, line);
  va_start(arguments, format);
  (void)vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
  va_end(arguments);
  (void)!write(answer, text, strlen(text));
  _exit(1);
}

void note(const char *format, ...)
{
  char text[SAID];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  (void)!write(answer, text, strlen(text));
}

/* ---- tensors --------------------------------------------------------------------------------- */

int device_count(void)
{
  int n = 0;
  MUST(weir_cuda_device_count(&n));
  return n;
}

weir_tensor *numbers(weir_dtype dtype, weir_shape shape, unsigned seed)
{
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  double *v = calloc((size_t)n + 1, sizeof *v);
  weir_tensor *t = NULL;
  HOLDS(v);
  int real = weir_dtype_is_floating_point(dtype) || weir_dtype_is_complex(dtype);
  uint32_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    int k = 1 + (int)(state >> 16) % (real ? 16 : 9), below = state >> 31 && dtype != WEIR_UINT8;
    v[i] = (below ? -1 : 1) * (real ? k / 8.0 : k);
    if (dtype == WEIR_BOOL) v[i] = k & 1;
  }
  MUST(weir_tensor_from(&t, v, WEIR_FLOAT64, shape, AS(dtype, CPU)));
  free(v);
  return t;
}

weir_tensor *there(const weir_tensor *t)
{
  weir_tensor *out;
  MUST(weir_cuda(&out, t, CUDA, false));
  return out;
}

weir_tensor *full_of(double value, int64_t count)
{
  weir_tensor *out;
  MUST(weir_full(&out, weir_shape(count), weir_float(value), AS(WEIR_FLOAT32, CUDA)));
  return out;
}

double first(const weir_tensor *t)
{
  double v = 0;
  weir_tensor *flat, *one;
  MUST(weir_reshape(&flat, t, weir_shape(-1)));
  MUST(weir_narrow(&one, flat, 0, 0, 1));
  MUST(weir_tensor_read(&v, sizeof v, WEIR_FLOAT64, one));
  return v;
}

double tolerance(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT64    ? 1e-13
         : dtype == WEIR_FLOAT16  ? 0x1p-10
         : dtype == WEIR_BFLOAT16 ? 0x1p-7
                                  : 4e-6;
}

static int doubles_are_near(double x, double y, double relative, double absolute)
{
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (x == y) return 1;
  return isfinite(x) && isfinite(y) && fabs(x - y) <= relative * fmax(fabs(x), fabs(y)) + absolute;
}

/* Elements as pairs of doubles, the second 0 but for complex numbers. */
static double (*elements(const weir_tensor *t))[2]
{
  size_t n = (size_t)weir_tensor_numel(t);
  double(*out)[2] = calloc(n + 1, sizeof *out), *real = calloc(n + 1, sizeof *real);
  float(*both)[2] = calloc(n + 1, sizeof *both);
  HOLDS(out && real && both);
  if (weir_tensor_dtype(t) == WEIR_COMPLEX64)
    MUST(weir_tensor_read(both, n * sizeof *both, WEIR_COMPLEX64, t));
  else
    MUST(weir_tensor_read(real, n * sizeof *real, WEIR_FLOAT64, t));
  for (size_t i = 0; i < n; i++) {
    out[i][0] = real[i] + (double)both[i][0];
    out[i][1] = (double)both[i][1];
  }
  free(real);
  free(both);
  return out;
}

void alike(const char *what, const weir_tensor *a, const weir_tensor *b, double factor,
           double absolute)
{
  weir_shape x = weir_tensor_shape(a), y = weir_tensor_shape(b);
  weir_dtype t = weir_tensor_dtype(a);
  int exact = !weir_dtype_is_floating_point(t) && !weir_dtype_is_complex(t);
  double relative = exact ? 0 : factor * tolerance(t);
  if (t != weir_tensor_dtype(b) || x.count != y.count ||
      memcmp(x.size, y.size, (size_t)x.count * sizeof *x.size) != 0)
    fail_row(__FILE__, __LINE__, "%s: %s of %d dimensions, and %s of %d", what, weir_dtype_name(t),
             x.count, weir_dtype_name(weir_tensor_dtype(b)), y.count);
  double(*v)[2] = elements(a), (*w)[2] = elements(b);
  for (int64_t i = 0; i < weir_tensor_numel(a); i++) {
    double size = t == WEIR_COMPLEX64 ? hypot(v[i][0], v[i][1]) : 0;
    for (int part = 0; part < 2; part++)
      if (!doubles_are_near(v[i][part], w[i][part], relative,
                            exact ? 0 : absolute + relative * size))
        fail_row(__FILE__, __LINE__, "%s, %s: element %lld is %.9g and %.9g", what,
                 weir_dtype_name(t), (long long)i, v[i][part], w[i][part]);
  }
  free(v);
  free(w);
}

/* ---- holding a stream -------------------------------------------------------------------------
 * A host function that waits: the stream's work behind it starts when it returns
 * (cuLaunchHostFunc). */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t opened;
  int closed; /* lock */
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

void *driver(const char *name)
{
  static void *library;
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *out = library ? dlsym(library, name) : NULL;
  if (!out) fail_row(__FILE__, __LINE__, "the driver has no %s", name);
  return out;
}

int simulated(void)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library && dlsym(library, "weir_sim_hold") != NULL;
}

static void wait_at_gate(void *user)
{
  (void)user;
  (void)pthread_mutex_lock(&gate.lock);
  while (gate.closed)
    (void)pthread_cond_wait(&gate.opened, &gate.lock);
  (void)pthread_mutex_unlock(&gate.lock);
}

void enter_context(void)
{
  int (*retain)(void **, int), (*set)(void *);
  void *context = NULL;
  *(void **)&retain = driver("cuDevicePrimaryCtxRetain");
  *(void **)&set = driver("cuCtxSetCurrent");
  HOLDS(retain(&context, 0) == 0 && set(context) == 0);
}

void close_gate(weir_stream *stream)
{
  int (*launch)(void *, void (*)(void *), void *);
  void *native;
  *(void **)&launch = driver("cuLaunchHostFunc");
  MUST(weir_stream_native(&native, stream));
  enter_context();
  (void)pthread_mutex_lock(&gate.lock);
  gate.closed = 1;
  (void)pthread_mutex_unlock(&gate.lock);
  int r = launch(native, wait_at_gate, NULL);
  if (r) fail_row(__FILE__, __LINE__, "cuLaunchHostFunc: %d", r);
}

void open_gate(void)
{
  (void)pthread_mutex_lock(&gate.lock);
  gate.closed = 0;
  (void)pthread_cond_broadcast(&gate.opened);
  (void)pthread_mutex_unlock(&gate.lock);
}

int done(weir_stream *stream)
{
  bool out;
  MUST(weir_stream_query(&out, stream));
  return out;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double seconds(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the row's process says until it ends; 0: in time. */
static int listen_to(int from, char *said, double until)
{
  size_t length = 0;
  for (;;) {
    struct pollfd p = {.fd = from, .events = POLLIN};
    double left = until - seconds();
    if (left <= 0) return 1;
    if (poll(&p, 1, (int)(left * 1000) + 1) <= 0) continue;
    ssize_t n = read(from, said + length, SAID - 1 - length);
    if (n <= 0) return 0;
    length += (size_t)n;
    said[length] = 0;
  }
}

static int run_row(const struct row *row)
{
  const char *limit = getenv("WEIR_ROW_SECONDS");
  char said[SAID] = "";
  int ends[2], status = 0;
  double start = seconds(), most = limit ? strtod(limit, NULL) : 120;
  if (pipe(ends)) return 0;
  (void)fflush(stdout);
  pid_t child = fork();
  if (!child) {
    (void)close(ends[0]);
    answer = ends[1];
    row->run();
    _exit(0);
  }
  (void)close(ends[1]);
  int late = listen_to(ends[0], said, start + most);
  if (late) (void)kill(child, SIGKILL);
  (void)waitpid(child, &status, 0);
  (void)close(ends[0]);
  int good = !late && !status;
  printf("%-4s %2d %-38s %5.1f s%s%s", good ? "ok" : "FAIL", row->number, row->name,
         seconds() - start, *said ? "  " : "", said);
  if (late) printf("  (ended after %.0f s)", most);
  if (WIFSIGNALED(status) && !late) printf("  (ended by signal %d)", WTERMSIG(status));
  printf("\n");
  return good;
}

static int wanted(int number, int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (strtol(argv[i], NULL, 10) == number) return 1;
  return argc < 2;
}

static int run_one_row(const char *which)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].number == strtol(which, NULL, 10)) rows[i].run();
  return 0;
}

/* In a process of its own: this one must stay free of CUDA, for its children's sake. */
static void need_device(void)
{
  int status = 0;
  pid_t child = fork();
  if (!child) {
    if (weir_cuda_is_available()) _exit(0);
    (void)fprintf(stderr, "engine: no GPU: %s\n", weir_error_message());
    _exit(NO_GPU);
  }
  (void)waitpid(child, &status, 0);
  if (status) exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(int argc, char **argv)
{
  int passed = 0, failed = 0;
  /* a stream that is held must hold no other: each gets a queue of its own */
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  /* nor may loading a kernel's code wait for it, as the driver's lazy loading does */
  (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  (void)unsetenv("CUDA_LAUNCH_BLOCKING");
  if (argc == 3 && !strcmp(argv[1], "-1")) return run_one_row(argv[2]);
  need_device();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!wanted(rows[i].number, argc, argv)) continue;
    if (run_row(&rows[i]))
      passed++;
    else
      failed++;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

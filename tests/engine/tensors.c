/* tensors.c: a program with tensors by name and in modules: `tensors` or `tensors FILE`, which
 * writes a trace of its own. It leaves one tensor behind, and ends one in another thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/weir.h"

static void check_weir_call(weir_status st, const char *what)
{
  if (!st) return;
  (void)fprintf(stderr, "%s: %s\n", what, weir_error_message());
  exit(1);
}

static weir_tensor *make_named_tensor(int64_t rows, const char *name, const weir_options *options)
{
  weir_tensor *t;
  check_weir_call(weir_empty(&t, weir_shape(rows, 1024), options), "weir_empty");
  if (name) check_weir_call(weir_tensor_set_name(t, name), "weir_tensor_set_name");
  return t;
}

static void *end_there(void *t)
{
  weir_tensor_release(t);
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  weir_options cpu = {.device = WEIR_CPU}, gpu = {.device = WEIR_CUDA_AT(0)};
  if (argc > 1) check_weir_call(weir_trace_start(argv[1]), "weir_trace_start");
  weir_tensor *weight = make_named_tensor(256, "net.conv1.weight", &cpu), *view;
  check_weir_call(weir_t(&view, weight), "weir_t"); /* no memory of its own */
  weir_module_path_push("net");
  weir_module_path_push("fc");
  weir_tensor *a = make_named_tensor(64, NULL, &cpu), *b = make_named_tensor(64, NULL, &cpu);
  weir_module_path_pop();
  weir_module_path_pop();
  weir_module_path_pop(); /* one too many is nothing */
  weir_tensor_release(a);
  if (pthread_create(&thread, NULL, end_there, b)) return 1;
  (void)pthread_join(thread, NULL);
  if (weir_cuda_is_available()) weir_tensor_release(make_named_tensor(512, "batch", &gpu));
  weir_tensor_release(weight);
  if (argc <= 2) weir_tensor_release(view);
  if (argc > 1) check_weir_call(weir_trace_stop(), "weir_trace_stop");
  return 0;
}

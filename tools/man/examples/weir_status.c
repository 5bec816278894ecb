#include <stdio.h>
#include <string.h>
#include <weir.h>

static void on_message(weir_log_level level, const char *message, void *user)
{
  (void)user;
  (void)fprintf(stderr, "%d: %s\n", (int)level, message);
}

int main(void)
{
  weir_device device;
  weir_set_log_callback(on_message, NULL);
  weir_status st = weir_device_parse(&device, "cuda:01");
  printf("weir %s: %s: %s\n", weir_version(), weir_status_string(st), weir_error_message());
  return st == WEIR_EINVAL && strstr(weir_error_message(), "cuda:01") ? 0 : 1;
}

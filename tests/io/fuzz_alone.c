/* fuzz_alone.c: in the place of libFuzzer, where there is none: runs the files it is given. */
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
  static uint8_t data[1 << 20];
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return 1;
    size_t n = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, n);
  }
  return 0;
}

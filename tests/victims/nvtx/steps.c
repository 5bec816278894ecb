/* steps.c: a program with ranges of its own (NVTX), which takes a block and gives it back again and again. In each of
 * four epochs there are STEPS steps, of four layers each; what is taken is in the layers ("within"), or behind the
 * ranges ("outside"). It prints how many blocks there were.
 *
 * steps within|outside STEPS */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { EPOCHS = 4, LAYERS = 4, BYTES = 1 << 20 };

static int take_and_give(void)
{
  void *block;
  return !cudaMalloc(&block, BYTES) && !cudaFree(block);
}

static int do_step(int within)
{
  int blocks = 0;
  nvtxRangePushA("step");
  for (int i = 0; i < LAYERS; i++) {
    nvtxRangePushA("layer");
    if (within) blocks += take_and_give();
    nvtxRangePop();
  }
  nvtxRangePop();
  for (int i = 0; !within && i < LAYERS; i++)
    blocks += take_and_give();
  return blocks;
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  const int within = !strcmp(argv[1], "within"), steps = atoi(argv[2]);
  int blocks = 0;
  for (int e = 0; e < EPOCHS; e++) {
    if (within) nvtxRangePushA("epoch");
    for (int i = 0; i < steps; i++)
      blocks += do_step(within);
    if (within) nvtxRangePop();
  }
  printf("%d blocks\n", blocks);
  return 0;
}

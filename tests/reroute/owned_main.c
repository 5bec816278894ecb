/* owned_main.c: the program of owned.c. */
#include <stdbool.h>
#include "tests/reroute/owned.h"

int main(int argc, char **argv)
{
  (void)argv;
  owned_work(argc > 1);
  return 0;
}

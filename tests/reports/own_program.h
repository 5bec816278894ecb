/* own_program.h: the suite's own program as a module of a trace, whose addresses have names. */
#ifndef WEIR_TESTS_REPORTS_OWN_PROGRAM_H
#define WEIR_TESTS_REPORTS_OWN_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

extern struct own_program {
  uint64_t base, start, end; /* load bias, range of its code */
  unsigned char build_id[64];
  size_t build_id_bytes;
  char path[512];
} own_program;

void own_program_find(void);

#endif

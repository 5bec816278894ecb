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

/* Opens a spool in synth_dir(): the program, as if loaded from `path` with a build-id (0 bytes:
 * none), CUDA's runtime at 0x7000000, and an allocation of 4096 bytes from this stack. */
void own_program_record(const char *path, const void *id, size_t id_bytes, const uint64_t *frames,
                        size_t depth);

/* A shell command of two arguments, which must succeed. */
void run_shell_format(const char *format, const char *a, const char *b);

#endif

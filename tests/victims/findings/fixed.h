/* fixed.h: what the wastes with a fix share (waste_fixed*.c). */
#ifndef WEIR_TESTS_FIXED_H
#define WEIR_TESTS_FIXED_H

#include <stdint.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, BLOCKS = 8, ROWS = 256, ROW = 1 << 13, PIECE = 1024 };

/* Around the part that wastes: its end prints the ns that it took. */
void begin_part(void);
void end_part(void);

/* Work of the host's: it takes as long on any machine. */
void work_for(int64_t ns);

char *pageable_memory(size_t bytes, int uniform);
float *used_memory(size_t bytes); /* of the device, written by a kernel */

/* Each wastes so many rounds, or does the same work without the waste: tools/bench/savings.def has them. */
#define SAVING(work, ...) void work(int fixed, int times);
#include "tools/bench/savings.def"

#endif

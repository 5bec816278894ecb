/* damage.h: traces as they should not be: bytes of the file changed, and rows, columns and
 * tables of it, as SQL has them. Which, is drawn from a seed: the same seed makes the same file. */
#ifndef WEIR_TESTS_TOOLS_DAMAGE_H
#define WEIR_TESTS_TOOLS_DAMAGE_H

#include <stdint.h>

/* xorshift; *state is never 0. */
uint64_t damage_draw(uint64_t *state, uint64_t below);

/* Does one to six kinds of damage to the trace at `path`. In `what`: which, a line each; of
 * `room` bytes. */
void damage_trace(const char *path, uint64_t *state, char *what, unsigned room);

/* A table that no reader of a trace may write to: damage_trace() makes triggers that do. How
 * many rows it has; -1: no one can say. */
int64_t damage_written(const char *path);

#endif

/* buffers.h: room for CUPTI's records. It asks for a buffer in the program's own threads, so
 * buffers lie ready; it gives them back from any thread, and ours reads them later. */
#ifndef WEIR_INTERPOSE_ACTIVITY_BUFFERS_H
#define WEIR_INTERPOSE_ACTIVITY_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACTIVITY_BUFFER_BYTES = 1 << 20 };

/* Maps buffers until some are ready, and unmaps those beyond. Our thread, and at the start. */
void activity_buffers_prepare(void);

/* What CUPTI calls. NULL: there is none and nothing may be mapped here, or the limit is reached;
 * `must`: one is mapped in any case. */
uint8_t *activity_buffer_take(bool must);
uint8_t *activity_buffer_map(void); /* nobody's: for what is not read */
void activity_buffer_completed(uint8_t *buffer, size_t bytes);

/* The next completed one, NULL: none; and it has been read. */
uint8_t *activity_buffer_next(size_t *bytes);
void activity_buffer_free(uint8_t *buffer);

/* How many CUPTI has now. */
int activity_buffers_out(void);

#endif

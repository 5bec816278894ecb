/* sites.h: what happened, by place in the program.
 *
 * The pass over a trace sums by stack, since that is a number; afterwards every stack is resolved
 * to its *site*, the innermost frame that is the program's and not CUDA's or ours, and sums of
 * equal sites are added up, those of each whole stack beside them. Stacks are equal when a person
 * would read the same, in whatever process. Copies of one place are a site for each direction and
 * kind of memory. */
#ifndef WEIR_REPORTS_SITES_H
#define WEIR_REPORTS_SITES_H

#include "core/base/map.h"
#include "reports/model/model.h"
#include "reports/symbols/symbolize.h"

/* Sums of one stack, function and kind of copy. */
typedef struct wr_site_sum {
  int64_t stack; /* 0: none was taken */
  uint32_t api;
  uint32_t kind; /* of copies: WR_SITE_COPY(); else 0 */
  bool implicit;
  uint64_t calls, ns; /* all of the function, where `kind` is 0 */
  uint64_t alloc_calls, alloc_bytes, alloc_ns;
  uint64_t copy_calls, copy_bytes, copy_ns;
  uint64_t sync_calls, sync_ns; /* explicit and implicit */
  uint64_t redundant_calls, redundant_ns;
  uint64_t wider_calls, wider_ns;
  uint64_t asked_calls, asked_ns; /* counted, and no events (asked.c) */
} wr_site_sum;

/* Blocks of one stack that were live at a device's peak, or (device WR_HOST) at exit. */
typedef struct wr_block_sum {
  int64_t stack;
  int device;
  uint64_t blocks, bytes;
} wr_block_sum;

#define WR_SITE_COPY(direction, mem, src_mem)                                                      \
  (0x10000u | ((uint32_t)(direction)&255u) << 8 | ((uint32_t)(mem)&15u) << 4 |                     \
   ((uint32_t)(src_mem)&15u))

typedef struct wr_site_sums {
  hash_map index, block_index; /* hash -> place in the arrays */
  wr_site_sum *sum;
  size_t count, capacity;
  wr_block_sum *block;
  size_t block_count, block_capacity;
} wr_site_sums;

/* The sum of these, made when new; NULL: out of memory. Valid until the next call. */
wr_site_sum *wr_site_sum_of(wr_site_sums *s, int64_t stack, uint32_t api, uint32_t kind);

/* Adds one block. False: out of memory. */
bool wr_block_sum_add(wr_site_sums *s, int64_t stack, int device, uint64_t bytes);
void wr_site_sums_free(wr_site_sums *s);

/* Adds calls that ask to the sums, and marks their functions in m->apis. */
weir_status wr_asked_load(wr_model *m, wr_site_sums *sums, const wr_db *db);

/* Fills the model's lists of sites, `top` of each. m->apis must be there. */
weir_status wr_sites_make(wr_model *m, const wr_site_sums *sums, const wr_db *db, int top);
void wr_sites_free(wr_sites *s);

/* Leaves the first `top` of a list, as wr_sites_make() would have made it. */
void wr_sites_cut(wr_sites *s, int top);

/* Which of a stack's frames is its site; the outermost where none is the program's. */
size_t wr_site_at(const wr_frame *f, size_t count);

/* The same as the reader of that trace wants it: db->innermost_sites: the innermost that is not CUDA's. */
size_t wr_site_in(const wr_db *db, const wr_frame *f, size_t count);

/* Whether a module is an interpreter, or what one calls through, by its file's name. */
bool wr_is_interpreter(const char *name);

/* "h2d", "pageable": copy_kind, memory_kind in a word. */
const char *wr_direction_name(int copy);
const char *wr_mem_name(int mem);

/* The site of one stack (out's texts are new; "(no stack)" for 0). */
weir_status wr_site_place(wr_symbols *symbols, int64_t stack, wr_frame_name *out);

/* The same, and the user's place that called the site's function: `function` NULL where none is known, as of what is in
 * main() itself. */
weir_status wr_site_and_caller(wr_symbols *symbols, int64_t stack, wr_frame_name *site,
                               wr_frame_name *caller);
void wr_frame_name_free(wr_frame_name *name);

/* The site of one stack in words: "function  file:line", or as much of it as is known; new. */
weir_status wr_site_words(wr_symbols *symbols, int64_t stack, char **out);

#endif

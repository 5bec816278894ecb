/* extract.h: extractors, one a meaning of arguments. hooks.tsv says which a function uses; gen.py's
 * EXTRACTORS lists the order of the words, which must be the order here. A word is a 64-bit value:
 * a pointer, a handle or a number; out-pointers come already followed (0 after a failure or for
 * NULL). */
#ifndef WEIR_INTERPOSE_EXTRACT_H
#define WEIR_INTERPOSE_EXTRACT_H

#include "interpose/record/copy_args.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

typedef uint64_t weir_word;

void weir_x_alloc(weir_call *c, weir_word ptr, weir_word bytes, weir_word mem);
void weir_x_alloc_pitch(weir_call *c, weir_word ptr, weir_word pitch, weir_word rows,
                        weir_word width);
void weir_x_alloc_3d(weir_call *c, const struct cudaPitchedPtr *out, weir_word width,
                     weir_word rows);
void weir_x_alloc_async(weir_call *c, weir_word ptr, weir_word bytes, weir_word stream,
                        weir_word pool);
void weir_x_pool_trim(weir_call *c, weir_word pool, weir_word bytes);
void weir_x_pool_set(weir_call *c, weir_word pool, weir_word device);
void weir_x_pool_destroy_before(weir_call *c, weir_word pool);
void weir_x_pool_destroy(weir_call *c, weir_word pool);
void weir_x_alloc_host(weir_call *c, weir_word ptr, weir_word bytes, weir_word flags);
void weir_x_alloc_array(weir_call *c, weir_word handle, weir_word element, weir_word width,
                        weir_word height, weir_word depth, weir_word levels, weir_word flags);
void weir_x_free_before(weir_call *c, weir_word ptr);
void weir_x_free(weir_call *c, weir_word ptr);
void weir_x_free_async_before(weir_call *c, weir_word ptr);
void weir_x_free_async(weir_call *c, weir_word ptr, weir_word stream);
void weir_x_free_host_before(weir_call *c, weir_word ptr);
void weir_x_free_host(weir_call *c, weir_word ptr);
void weir_x_free_array_before(weir_call *c, weir_word ptr);
void weir_x_free_array(weir_call *c, weir_word ptr);
void weir_x_host_register(weir_call *c, weir_word ptr, weir_word bytes, weir_word flags);
void weir_x_host_unregister_before(weir_call *c, weir_word ptr);
void weir_x_host_unregister(weir_call *c, weir_word ptr);

void record_copy(weir_call *c, const copy_args *a);
void weir_x_copy_batch(weir_call *c, const CUdeviceptr *dsts, const CUdeviceptr *srcs,
                       const size_t *sizes, weir_word count, weir_word stream);
void weir_x_copy_3d_batch(weir_call *c, const CUDA_MEMCPY3D_BATCH_OP *list, weir_word count,
                          weir_word stream);
void weir_x_memset(weir_call *c, weir_word dst, weir_word bytes, weir_word value, weir_word stream);

void weir_x_sync(weir_call *c, weir_word type, weir_word event, weir_word context);
void weir_x_sync_stream(weir_call *c, weir_word type, weir_word stream, weir_word event);
void weir_x_stream_create(weir_call *c, weir_word stream, weir_word flags);
void weir_x_stream_destroy(weir_call *c, weir_word stream);
void weir_x_capture_begin(weir_call *c, weir_word stream, weir_word mode, weir_word graph);
void weir_x_capture_end(weir_call *c, weir_word stream, weir_word graph);
void weir_x_event(weir_call *c, weir_word event, weir_word b);
void weir_x_event_record(weir_call *c, weir_word event, weir_word stream, weir_word flags);

void weir_x_launch(weir_call *c, weir_word function, weir_word gx, weir_word gy, weir_word gz,
                   weir_word bx, weir_word by, weir_word bz, weir_word stream);
void weir_x_launch_old(weir_call *c, weir_word function, weir_word gx, weir_word gy,
                       weir_word stream);
void weir_x_launch_rt(weir_call *c, weir_word function, dim3 grid, dim3 block, weir_word stream);
void weir_x_launch_config(weir_call *c, weir_word function, const CUlaunchConfig *config);
void weir_x_launch_config_rt(weir_call *c, weir_word function, const cudaLaunchConfig_t *config);
void weir_x_launch_multi(weir_call *c, const CUDA_LAUNCH_PARAMS *list, weir_word count);
void weir_x_named(weir_call *c, weir_word handle, const char *name, weir_word owner);
void weir_x_named_like(weir_call *c, weir_word handle, weir_word like);
void weir_x_named_list(weir_call *c, const CUkernel *kernels, weir_word count, weir_word owner);

void weir_x_context(weir_call *c, weir_word a, weir_word device, weir_word b);
void weir_x_context_made(weir_call *c, weir_word context, weir_word device, weir_word b);
void weir_x_context_destroy(weir_call *c, weir_word context);
void weir_x_peer_access(weir_call *c, weir_word a, weir_word b);
void weir_x_primary_release(weir_call *c, weir_word device);
void weir_x_reset(weir_call *c, weir_word device);
void weir_x_reset_current_before(weir_call *c);
void weir_x_reset_current(weir_call *c);
/* A graph was made or changed. */
void weir_x_graph(weir_call *c, weir_word graph, weir_word other);
void weir_x_call(weir_call *c, weir_word a, weir_word b, weir_word bytes, weir_word stream);

/* Bytes an element of an array; 0 for formats with no such thing (block-compressed, planar). */
uint64_t weir_format_bytes(CUarray_format format, unsigned channels);

static inline uint64_t weir_desc_bytes(const struct cudaChannelFormatDesc *d)
{
  return d ? (uint64_t)(d->x + d->y + d->z + d->w) / 8 : 0;
}

#endif

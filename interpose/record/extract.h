/* extract.h: extractors, one a meaning of arguments. hooks.tsv has which one a function uses; their
 * prototypes are made from gen.py's EXTRACTORS. A word is a 64-bit value: a pointer, a handle or a
 * number; out-pointers come already followed (0 after a failure or for NULL). */
#ifndef WEIR_INTERPOSE_EXTRACT_H
#define WEIR_INTERPOSE_EXTRACT_H

#include "interpose/record/copy_args.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

typedef uint64_t extract_word;

#include "interpose/record/extractors.gen.h"

/* A copy, by what the wrapper has decoded. */
void record_copy(hook_call *c, const copy_args *a);

/* The driver's word on where a new block is. */
unsigned extract_device_of(const hook_call *c, uint64_t ptr);

/* Bytes an element of an array; 0 for formats with no such thing (block-compressed, planar). */
uint64_t extract_format_bytes(CUarray_format format, unsigned channels);

static inline uint64_t extract_desc_bytes(const struct cudaChannelFormatDesc *d)
{
  return d ? (uint64_t)(d->x + d->y + d->z + d->w) / 8 : 0;
}

/* Whether the program asks for peer-to-peer tokens of memory, with which another device may reach
 * it (GPUDirect). */
static inline bool extract_asks_tokens(unsigned count, const CUpointer_attribute *attributes)
{
  for (unsigned i = 0; attributes && i < count; i++)
    if (attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS) return true;
  return false;
}

/* The linear memory that a texture reads; 0: it reads an array. */
static inline uint64_t extract_texture_address(const CUDA_RESOURCE_DESC *resource)
{
  if (!resource) return 0;
  return resource->resType == CU_RESOURCE_TYPE_LINEAR    ? resource->res.linear.devPtr
         : resource->resType == CU_RESOURCE_TYPE_PITCH2D ? resource->res.pitch2D.devPtr
                                                         : 0;
}

#endif

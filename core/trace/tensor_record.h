/* tensor_record.h: a tensor's fact as a record of a spool, for the two that write one: the preload
 * library, and the library's own trace. */
#ifndef WEIR_TRACE_TENSOR_RECORD_H
#define WEIR_TRACE_TENSOR_RECORD_H

#include <string.h>
#include "core/trace/listener.h"
#include "core/trace/spool.h"

/* Copies as much of a text as a record has room for. Returns its bytes. */
static inline uint16_t tensor_text(char *to, const char *text)
{
  size_t n = text ? strnlen(text, WEIR_TENSOR_TEXT) : 0;
  if (n) memcpy(to, text, n);
  return (uint16_t)n;
}

/* `head` has start and context; false: dropped. */
static inline bool tensor_record(spool_writer *w, trace_event *head, const tensor_notice *what)
{
  struct {
    tensor_info info;
    char text[2 * WEIR_TENSOR_TEXT];
  } p;
  memset(&p.info, 0, sizeof p.info);
  p.info.address = what->address;
  p.info.bytes = what->bytes;
  p.info.fact = (uint8_t)what->fact;
  p.info.dtype = (uint8_t)what->dtype;
  p.info.dims = (uint8_t)(what->dims < WEIR_TENSOR_DIMS ? what->dims : WEIR_TENSOR_DIMS);
  if (what->size) memcpy(p.info.size, what->size, p.info.dims * sizeof *p.info.size);
  p.info.name_bytes = tensor_text(p.text, what->name);
  p.info.module_bytes = tensor_text(p.text + p.info.name_bytes, what->module);
  head->a = what->storage;
  head->device = what->device < 0 ? WEIR_DEVICE_NONE : (uint8_t)what->device;
  head->src_device = WEIR_DEVICE_NONE;
  head->mem = (uint8_t)what->mem;
  size_t bytes = sizeof p.info + p.info.name_bytes + p.info.module_bytes;
  return spool_writer_extended(w, WEIR_EV_TENSOR, head, &p, bytes);
}

#endif

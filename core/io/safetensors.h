/* safetensors.h: the header of a .safetensors file, read and checked: which tensors are where. */
#ifndef WEIR_IO_SAFETENSORS_H
#define WEIR_IO_SAFETENSORS_H

#include "core/io/file.h"

/* A tensor as the header states, checked on its own. */
typedef struct st_entry {
  char *name;       /* borrowed: the header's text */
  char *code;       /* borrowed: of its dtype */
  weir_dtype dtype; /* NONE: no tensor of Weir's has it */
  uint8_t foreign;  /* then: an enum foreign_kind */
  weir_shape shape;
  uint64_t begin, end; /* bytes from the end of the header */
} st_entry;

typedef struct st_header {
  const tensor_file *file; /* borrowed */
  char *text;              /* owned */
  uint64_t bytes;          /* of the text */
  st_entry *entries;       /* owned; in the order of their bytes */
  size_t count, room;
  weir_tensors *set; /* borrowed: gets the metadata */
} st_header;

/* h->file and h->set are there already; st_header_free() it, also on failure. Errors: ECORRUPT,
 * ENOTSUP, EIO, ENOMEM. */
weir_status st_header_read(st_header *h);
void st_header_free(st_header *h);
/* Where the elements are in the file. */
file_array st_array(const st_header *h, const st_entry *e);

#endif

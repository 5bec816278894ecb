/* zip.h: zip files (APPNOTE 6.3.10), read from somebody one does not trust, and written: what .npz
 * and PyTorch's files are made of. Stored and deflated entries, zip64; no encryption, no parts. */
#ifndef WEIR_IO_ZIP_H
#define WEIR_IO_ZIP_H

#include "core/io/file.h"
#include "core/io/named.h"

typedef struct zip_entry {
  uint64_t at;    /* of its local header, bytes */
  uint64_t kept;  /* bytes in the file */
  uint64_t bytes; /* when they are inflated */
  uint32_t crc;   /* of these */
  uint16_t method;
} zip_entry;

typedef struct zip_archive {
  const tensor_file *file; /* borrowed */
  uint64_t directory;      /* where it begins */
  zip_entry *entries;      /* owned */
  named_list names;        /* each has its zip_entry; in the directory's order */
} zip_archive;

/* *out must be given to zip_close(), also on failure. Errors: ECORRUPT, ENOTSUP, EIO, ENOMEM. */
weir_status zip_open(zip_archive *out, const tensor_file *file);
void zip_close(zip_archive *z);
/* The entry's bytes as a file of their own: a window of the archive, or memory. check: its sum must
 * be right. *owned (NULL: nothing) is to be freed after the last use of *out. */
weir_status zip_window(tensor_file *out, void **owned, const zip_archive *z, const char *name,
                       bool check);

/* Writing: entries one after the other, then the directory. */
typedef struct zip_writer {
  tensor_file *file; /* borrowed */
  char *directory;   /* owned: as it will be written */
  size_t bytes, room;
  uint64_t count;
} zip_writer;

/* One stored entry of two parts (borrowed). Errors: EINVAL (the name), ENOMEM, those of the file.
 */
weir_status zip_put(zip_writer *w, const char *name, const void *head, size_t head_bytes,
                    const void *data, uint64_t data_bytes);
/* The directory; frees what the writer has. `st`: what came before, which is returned if bad. */
weir_status zip_finish(zip_writer *w, weir_status st);

#endif

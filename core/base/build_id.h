/* build_id.h: the GNU build-id in a note segment of an ELF file, as it lies in memory. */
#ifndef WEIR_BASE_BUILD_ID_H
#define WEIR_BASE_BUILD_ID_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the id (borrowed) and its length; NULL: the segment has none, or one above `most` bytes. */
static inline const uint8_t *build_id_in_note(const uint8_t *note, size_t bytes, size_t most,
                                              uint32_t *length)
{
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    memcpy(&head, note, sizeof head);
    size_t name = (head.n_namesz + 3u) & ~(size_t)3, text = (head.n_descsz + 3u) & ~(size_t)3;
    size_t whole = sizeof head + name + text;
    if (whole > bytes) return NULL;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
        !memcmp(note + sizeof head, "GNU", 4) && head.n_descsz <= most) {
      *length = head.n_descsz;
      return note + sizeof head + name;
    }
    note += whole;
    bytes -= whole;
  }
  return NULL;
}

#endif

/* image.c: what can be known of the code a program loads, from its outside.
 *
 * An ELF file is read by the ELF standard (symbol names, sizes and data of its objects), PTX as the
 * text that it is. Of a fat binary only its header is read (magic, version, header size, size of
 * what follows, in that order); where its members are not compressed they are found inside it as
 * ELF and PTX. A compressed one keeps its names to itself, and every name is then believed. */
#include "cuda/sim/module/module.h"

#include <ctype.h>
#include <elf.h>
#include <fatbinary_section.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC UINT32_C(0xBA55ED50)

struct fatbin_header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes; /* after the header */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* `limit`: bytes that may be read, SIZE_MAX where nobody knows (an image in memory has no length).
 */
static size_t elf_bytes(const char *p, size_t limit)
{
  Elf64_Ehdr h;
  memcpy(&h, p, sizeof h);
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  size_t headers = (size_t)h.e_shnum * sizeof(Elf64_Shdr), end;
  if (h.e_shoff > limit || headers > limit - h.e_shoff) return 0;
  end = h.e_shoff + headers;
  for (unsigned i = 0; i < h.e_shnum; i++) {
    Elf64_Shdr s;
    memcpy(&s, p + h.e_shoff + i * sizeof s, sizeof s);
    if (s.sh_type != SHT_NOBITS && s.sh_offset + s.sh_size > end) end = s.sh_offset + s.sh_size;
  }
  return end;
}

static const char *skip_blank(const char *p)
{
  for (;;) {
    while (isspace((unsigned char)*p))
      p++;
    const char *end = NULL;
    if (p[0] == '/' && p[1] == '/') end = strchr(p, '\n');
    if (p[0] == '/' && p[1] == '*' && (end = strstr(p, "*/"))) end++;
    if (!end) return p;
    p = end + 1;
  }
}

/* Bytes of the code at p; 0: not recognised. A wrapper is followed to what it holds. */
static size_t measure_image(const char **p, size_t limit)
{
  uint32_t magic;
  memcpy(&magic, *p, sizeof magic);
  if (magic == FATBINC_MAGIC && limit == SIZE_MAX) {
    __fatBinC_Wrapper_t wrapper;
    memcpy(&wrapper, *p, sizeof wrapper);
    if (!wrapper.data) return 0;
    *p = (const char *)wrapper.data;
    memcpy(&magic, *p, sizeof magic);
  }
  if (magic == FATBIN_MAGIC) {
    struct fatbin_header h;
    memcpy(&h, *p, sizeof h);
    return h.header_bytes + h.bytes;
  }
  if (memcmp(*p, ELFMAG, SELFMAG) == 0) return elf_bytes(*p, limit);
  const char *text = skip_blank(*p);
  return strncmp(text, ".version", 8) == 0 ? strlen(*p) : 0;
}

CUresult sim_image_open(const void *code, struct sim_image **image)
{
  const char *p = code;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = measure_image(&p, SIZE_MAX);
  if (!bytes) return CUDA_ERROR_INVALID_IMAGE;
  struct sim_image *i = malloc(sizeof *i + bytes + 1);
  if (!i) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_init(&i->refs, 1);
  i->bytes = bytes;
  memcpy(i->data, p, bytes);
  i->data[bytes] = 0;
  i->elf = memmem(i->data, bytes, ELFMAG, SELFMAG) != NULL;
  i->ptx = memmem(i->data, bytes, ".version", 8) != NULL && memmem(i->data, bytes, ".target", 7);
  *image = i;
  return CUDA_SUCCESS;
}

CUresult sim_image_read(const char *path, struct sim_image **image)
{
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  FILE *f = fopen(path, "re");
  if (!f) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult error = CUDA_ERROR_INVALID_IMAGE;
  char *data = NULL;
  long bytes = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
  if (fseek(f, 0, SEEK_SET)) bytes = -1;
  if (bytes > 0) data = calloc(1, (size_t)bytes + sizeof(Elf64_Ehdr));
  if (data && fread(data, 1, (size_t)bytes, f) == (size_t)bytes) {
    const char *p = data;
    size_t measured = measure_image(&p, (size_t)bytes);
    if (measured && measured <= (size_t)bytes) error = sim_image_open(data, image);
  }
  free(data);
  (void)fclose(f);
  return error;
}

void sim_image_unref(struct sim_image *image)
{
  if (atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) == 1) free(image);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool in_identifier(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The next place of `name` at or after `from`; NULL: none. */
static const char *find_bytes(const struct sim_image *i, const char *from, const char *name,
                              size_t length)
{
  return memmem(from, (size_t)(i->data + i->bytes - from), name, length);
}

/* A string table has it after a NUL, a section name (.text.NAME) after a dot. */
static bool elf_has(const struct sim_image *i, const char *name, size_t length)
{
  for (const char *p = i->data; (p = find_bytes(i, p, name, length)); p++)
    if (p > i->data && (p[-1] == 0 || p[-1] == '.') && p[length] == 0) return true;
  return false;
}

static bool ptx_has(const struct sim_image *i, const char *name, size_t length)
{
  for (const char *p = i->data; (p = find_bytes(i, p, name, length)); p++) {
    if (in_identifier(p[length])) continue;
    const char *before = p;
    while (before > i->data && isspace((unsigned char)before[-1]))
      before--;
    if (before != p && before - i->data >= 6 && memcmp(before - 6, ".entry", 6) == 0) return true;
  }
  return false;
}

enum sim_found sim_image_has_kernel(const struct sim_image *i, const char *name)
{
  size_t length = strlen(name);
  if (!length) return SIM_ABSENT;
  if (!i->elf && !i->ptx) return SIM_CANNOT_TELL;
  return (i->elf && elf_has(i, name, length)) || (i->ptx && ptx_has(i, name, length)) ? SIM_PRESENT
                                                                                      : SIM_ABSENT;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Bytes [offset, offset + size) of the ELF file at `base`, if the image holds them. */
static const void *elf_part(const struct sim_image *i, const char *base, uint64_t offset,
                            uint64_t size)
{
  uint64_t left = (uint64_t)(i->data + i->bytes - base);
  return offset <= left && size <= left - offset ? base + offset : NULL;
}

static bool elf_symbol(const struct sim_image *i, const char *base, const Elf64_Shdr *sections,
                       unsigned count, const Elf64_Shdr *table, const char *name, size_t *bytes,
                       const void **initial)
{
  if (table->sh_link >= count) return false;
  const Elf64_Shdr *names = &sections[table->sh_link];
  const Elf64_Sym *symbols = elf_part(i, base, table->sh_offset, table->sh_size);
  const char *text = elf_part(i, base, names->sh_offset, names->sh_size);
  for (size_t n = 0; symbols && text && n < table->sh_size / sizeof *symbols; n++) {
    Elf64_Sym s;
    memcpy(&s, symbols + n, sizeof s);
    if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || !s.st_size || s.st_name >= names->sh_size)
      continue;
    if (strncmp(text + s.st_name, name, names->sh_size - s.st_name) != 0) continue;
    *bytes = s.st_size;
    *initial = NULL;
    if (s.st_shndx < count && sections[s.st_shndx].sh_type == SHT_PROGBITS)
      *initial = elf_part(i, base, sections[s.st_shndx].sh_offset + s.st_value, s.st_size);
    return true;
  }
  return false;
}

static bool elf_global(const struct sim_image *i, const char *base, const char *name, size_t *bytes,
                       const void **initial)
{
  Elf64_Ehdr h;
  const void *head = elf_part(i, base, 0, sizeof h);
  if (!head) return false;
  memcpy(&h, head, sizeof h);
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_shentsize != sizeof(Elf64_Shdr)) return false;
  size_t size = (size_t)h.e_shnum * sizeof(Elf64_Shdr);
  const void *at = elf_part(i, base, h.e_shoff, size);
  Elf64_Shdr *sections = at ? malloc(size + 1) : NULL;
  if (!sections) return false;
  memcpy(sections, at, size);
  bool found = false;
  for (unsigned n = 0; n < h.e_shnum && !found; n++)
    if (sections[n].sh_type == SHT_SYMTAB)
      found = elf_symbol(i, base, sections, h.e_shnum, &sections[n], name, bytes, initial);
  free(sections);
  return found;
}

/* Bytes of a PTX variable type: .f32 4, .b8 1, .pred is not for variables; 0: not a type. */
static size_t ptx_type_bytes(const char *p)
{
  static const char kinds[] = "busf";
  if (*p != '.' || !strchr(kinds, p[1])) return 0;
  unsigned long bits = strtoul(p + 2, NULL, 10);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

/* `.global .align 4 .f32 name[16];` or `.const`: the type is the word before the name. */
static bool ptx_global(const struct sim_image *i, const char *name, size_t *bytes)
{
  size_t length = strlen(name);
  for (const char *p = i->data; (p = find_bytes(i, p, name, length)); p++) {
    const char *word = p, *start = p;
    while (word > i->data && isspace((unsigned char)word[-1]))
      word--;
    if (word == p || in_identifier(p[length])) continue;
    while (word > i->data && !isspace((unsigned char)word[-1]))
      word--;
    while (start > i->data && start[-1] != ';' && start[-1] != '}' && start[-1] != '{')
      start--;
    size_t size = ptx_type_bytes(word), before = (size_t)(p - start);
    if (!size || (!memmem(start, before, ".global", 7) && !memmem(start, before, ".const", 6)))
      continue;
    for (p += length; *p == '['; p = strchr(p, ']') + 1) {
      size *= strtoul(p + 1, NULL, 10);
      if (!strchr(p, ']')) return false;
    }
    *bytes = size;
    return size != 0;
  }
  return false;
}

bool sim_image_global(const struct sim_image *i, const char *name, size_t *bytes,
                      const void **initial)
{
  *initial = NULL;
  for (const char *p = i->data; i->elf && (p = find_bytes(i, p, ELFMAG, SELFMAG)); p++)
    if (elf_global(i, p, name, bytes, initial)) return true;
  return i->ptx && *name && ptx_global(i, name, bytes);
}

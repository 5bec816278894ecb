/* kernel_stubs.c: see kernel_stubs.h. */
#include "reports/base/kernel_stubs.h"
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/elf_facts.h"
#include "reports/base/util.h"

enum { MOST_NAME = 1024 };

/* After a number; *n: it, at most MOST_NAME. NULL: there is none, or a larger one. */
static const char *read_length(const char *at, size_t *n)
{
  const char *begin = at;
  for (*n = 0; *at >= '0' && *at <= '9' && *n <= MOST_NAME; at++)
    *n = *n * 10 + (size_t)(*at - '0');
  return at > begin && *n && *n <= MOST_NAME ? at : NULL;
}

const char *wr_stub_plain_name(const char *name, size_t *length)
{
  if (strncmp(name, "_Z", 2) != 0) return NULL;
  const char *at = read_length(name + 2, length);
  return at && strnlen(at, *length + 1) > *length ? at : NULL;
}

/* The kernel's name in that of a symbol; false: it is no stub. */
static bool name_in(const char *symbol, char name[MOST_NAME + 1])
{
  static const char stub[] = "__device_stub_";
  size_t length;
  const char *at = wr_stub_plain_name(symbol, &length);
  if (!at || length <= sizeof(stub) - 1 || strncmp(at, stub, sizeof(stub) - 1) != 0) return false;
  length -= sizeof(stub) - 1;
  memcpy(name, at + sizeof(stub) - 1, length);
  name[length] = '\0';
  return !strncmp(name, "_Z", 2);
}

static weir_status read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                                wr_stub_fn take, void *context)
{
  char name[MOST_NAME + 1];
  weir_status st = WEIR_OK;
  Elf_Data *data = elf_getdata(section, NULL);
  if (!data || !header->sh_entsize) return st;
  for (size_t i = 0; !st && i < header->sh_size / header->sh_entsize; i++) {
    GElf_Sym symbol;
    if (!gelf_getsym(data, (int)i, &symbol)) break;
    if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const char *text = elf_strptr(elf, header->sh_link, symbol.st_name);
    if (text && name_in(text, name)) st = take(context, name);
  }
  return st;
}

static weir_status read_file(Elf *elf, wr_stub_fn take, void *context)
{
  weir_status st = WEIR_OK;
  if (elf_kind(elf) != ELF_K_ELF) return st;
  for (Elf_Scn *s = elf_nextscn(elf, NULL); s && !st; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) && header.sh_type == SHT_SYMTAB)
      st = read_symbols(elf, s, &header, take, context);
  }
  return st;
}

weir_status wr_kernel_stubs_each(const char *path, wr_stub_fn take, void *context)
{
  struct stat file;
  weir_status st = WEIR_OK;
  int fd = path && path[0] == '/' ? wr_open_regular(path, WR_ELF_MOST_BYTES, &file) : -1;
  if (fd < 0) return st;
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  if (elf) st = read_file(elf, take, context);
  elf_end(elf);
  close(fd);
  return st;
}

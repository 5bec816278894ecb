/* elf_facts.c: see elf_facts.h. */
#include "reports/base/elf_facts.h"
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"

static bool needs_cudart(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
  Elf_Data *data = elf_getdata(section, NULL);
  if (!data || !header->sh_entsize) return false;
  for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
    GElf_Dyn entry;
    if (!gelf_getdyn(data, (int)i, &entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_NEEDED) continue;
    const char *name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
    if (name && !strncmp(name, "libcudart.so", 12)) return true;
  }
  return false;
}

static void read_facts(Elf *elf, wr_elf_facts *facts)
{
  size_t names;
  if (elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names)) return;
  facts->readable = true;
  for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (!gelf_getshdr(s, &header)) continue;
    const char *name = elf_strptr(elf, names, header.sh_name);
    if (name && (!strcmp(name, ".nv_fatbin") || !strcmp(name, ".nvFatBinSegment")))
      facts->embeds_cuda = true;
    if (header.sh_type == SHT_DYNAMIC && needs_cudart(elf, s, &header)) facts->needs_cudart = true;
  }
}

wr_elf_facts wr_elf_facts_of(const char *path)
{
  wr_elf_facts facts = {0};
  struct stat file;
  int fd = path && path[0] == '/' ? wr_open_regular(path, WR_ELF_MOST_BYTES, &file) : -1;
  if (fd < 0) return facts;
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
  if (elf) read_facts(elf, &facts);
  elf_end(elf);
  close(fd);
  return facts;
}

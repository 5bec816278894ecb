/* debug_files.c: see debug_files.h.
 *
 * libdwfl has a search of its own, which opens whatever has the name it looks for, and waits for a
 * writer where that is a pipe. */
#include "reports/symbols/debug_files.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/elf_facts.h"
#include "reports/base/util.h"

int wr_elf_open(const char *path)
{
  struct stat file;
  char magic[SELFMAG];
  int fd = path[0] == '/' ? wr_open_regular(path, WR_ELF_MOST_BYTES, &file) : -1;
  if (fd < 0) return -1;
  if (pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG)) return fd;
  close(fd);
  return -1;
}

/* The CRC-32 that a .gnu_debuglink holds of the file it names. */
static bool has_crc(int fd, GElf_Word expected)
{
  unsigned char block[65536];
  uint32_t table[256], crc = UINT32_MAX;
  ssize_t n;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++)
      table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0xedb88320) : 0);
  }
  for (off_t at = 0; (n = pread(fd, block, sizeof(block), at)) > 0; at += n)
    for (ssize_t i = 0; i < n; i++)
      crc = table[(crc ^ block[i]) & 255] ^ crc >> 8;
  return n == 0 && ~crc == expected;
}

/* `path` is taken. 0 as CRC is that of a file which several share (dwz): known by its build-id. */
static int open_linked(char *path, GElf_Word crc, char **found)
{
  int fd = path ? wr_elf_open(path) : -1;
  if (fd >= 0 && crc && !has_crc(fd, crc)) {
    close(fd);
    fd = -1;
  }
  if (fd >= 0)
    *found = path;
  else
    free(path);
  return fd;
}

static int find_linked(const char *file, const char *link, GElf_Word crc, char **found)
{
  const char *slash = strrchr(file, '/');
  int folder = slash ? (int)(slash - file) : 0, fd;
  if (link[0] == '/') return open_linked(wr_format("%s", link), crc, found);
  fd = open_linked(wr_format("%.*s/%s", folder, file, link), crc, found);
  if (fd < 0) fd = open_linked(wr_format("%.*s/.debug/%s", folder, file, link), crc, found);
  if (fd < 0) fd = open_linked(wr_format("/usr/lib/debug%.*s/%s", folder, file, link), crc, found);
  return fd;
}

int wr_debuginfo_find(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **found)
{
  int fd = dwfl_build_id_find_debuginfo(module, user, name, base, file, link, crc, found);
  return fd >= 0 || !link || !file ? fd : find_linked(file, link, crc, found);
}

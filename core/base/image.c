/* image.c: see image.h. */
#include "core/base/image.h"
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

enum { MOST_SCRIPTS = 4, MOST_HEADERS = 256, LINE = 256 /* of a script, as the kernel reads it */ };

static long read_at(int fd, void *out, size_t bytes, uint64_t at)
{
  return syscall(SYS_pread64, fd, out, bytes, at);
}

/* What the kernel grants an image beyond its caller makes the dynamic linker forget LD_PRELOAD. */
static bool gains_privileges(int fd, const struct stat *file)
{
  const mode_t group = S_ISGID | S_IXGRP;
  if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
  if (file->st_mode & S_ISUID && file->st_uid != geteuid()) return true;
  if ((file->st_mode & group) == group && file->st_gid != getegid()) return true;
  return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* The dynamic linker is no static program: it may be called by its name, with one to load. */
static bool is_dynamic_linker(const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld.so", 5) || !strncmp(name, "ld-2.", 5);
}

static unseen_reason look_at_elf(int fd, bool linker, const unsigned char *start)
{
  Elf64_Ehdr e;
  if (start[EI_CLASS] != ELFCLASS64) return WEIR_UNSEEN_PROCESSOR;
  if (read_at(fd, &e, sizeof e, 0) != sizeof e) return WEIR_UNSEEN_NOT;
  if (e.e_machine != OUR_MACHINE) return WEIR_UNSEEN_PROCESSOR;
  if (e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phnum > MOST_HEADERS) return WEIR_UNSEEN_NOT;
  for (unsigned i = 0; i < e.e_phnum; i++) {
    Elf64_Phdr p;
    if (read_at(fd, &p, sizeof p, e.e_phoff + i * sizeof p) != sizeof p) return WEIR_UNSEEN_NOT;
    if (p.p_type == PT_INTERP) return WEIR_UNSEEN_NOT;
  }
  return linker ? WEIR_UNSEEN_NOT : WEIR_UNSEEN_STATIC;
}

/* "#! /bin/sh -e": its interpreter takes the line's place. */
static bool interpreter_of(char line[LINE])
{
  char *at = line + 2;
  while (*at == ' ' || *at == '\t')
    at++;
  size_t bytes = strcspn(at, " \t\r\n");
  if (!bytes) return false;
  memmove(line, at, bytes);
  line[bytes] = 0;
  return true;
}

static unseen_reason look_at_file(int fd, bool linker, char line[LINE], bool *script)
{
  struct stat file;
  long n;
  if (syscall(SYS_fstat, fd, &file) || !S_ISREG(file.st_mode)) return WEIR_UNSEEN_NOT;
  n = read_at(fd, line, LINE - 1, 0);
  line[n > 0 ? n : 0] = 0;
  *script = n > 2 && line[0] == '#' && line[1] == '!' && interpreter_of(line);
  if (*script || n < EI_NIDENT || memcmp(line, ELFMAG, SELFMAG) != 0) return WEIR_UNSEEN_NOT;
  if (gains_privileges(fd, &file)) return WEIR_UNSEEN_PRIVILEGED;
  return look_at_elf(fd, linker, (const unsigned char *)line);
}

unseen_reason image_look(const char *path)
{
  char line[LINE];
  unseen_reason why = WEIR_UNSEEN_NOT;
  bool script = true;
  for (int i = 0; i < MOST_SCRIPTS && script && !why; i++) {
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags);
    if (fd < 0) return WEIR_UNSEEN_NOT;
    script = false;
    why = look_at_file(fd, is_dynamic_linker(path), line, &script);
    syscall(SYS_close, fd);
    path = line; /* the interpreter of a script */
  }
  return why;
}

const char *image_processor(const char *path)
{
  static const struct {
    uint16_t machine;
    const char *name;
  } names[] = {{EM_X86_64, "x86_64"}, {EM_AARCH64, "aarch64"}, {EM_386, "i386"},  {EM_ARM, "arm"},
               {EM_PPC64, "ppc64"},   {EM_RISCV, "riscv"},     {EM_S390, "s390x"}};
  Elf64_Ehdr e; /* e_machine is where a 32-bit one has it */
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool got = fd >= 0 && read_at(fd, &e, sizeof(Elf32_Ehdr), 0) == sizeof(Elf32_Ehdr);
  if (fd >= 0) syscall(SYS_close, fd);
  if (!got || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  const uint16_t swapped = (uint16_t)(e.e_machine << 8 | e.e_machine >> 8);
  const uint16_t machine = e.e_ident[EI_DATA] == ELFDATA2MSB ? swapped : e.e_machine;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].machine == machine) return names[i].name;
  return "";
}

const char *unseen_words(unsigned reason)
{
  static const char *const words[] = {"unknown",
#define WEIR_UNSEEN_WORDS(id, value, text) [value] = text,
                                      WEIR_UNSEEN_MAP(WEIR_UNSEEN_WORDS)
#undef WEIR_UNSEEN_WORDS
  };
  return reason < sizeof words / sizeof *words ? words[reason] : words[0];
}

static bool join_image_path(char *out, unsigned room, const char *folder, size_t bytes,
                            const char *name)
{
  size_t length = strlen(name), slash = bytes && folder[bytes - 1] != '/';
  if (bytes + slash + length >= room) return false;
  memcpy(out, folder, bytes);
  if (slash) out[bytes] = '/';
  memcpy(out + bytes + slash, name, length + 1);
  return true;
}

bool image_find(char *out, unsigned room, const char *name, const char *search)
{
  if (!*name) return false;
  if (strchr(name, '/')) return join_image_path(out, room, "", 0, name);
  for (const char *at = search ? search : "/bin:/usr/bin"; at;) {
    size_t n = strcspn(at, ":");
    if (join_image_path(out, room, at, n, name) && !syscall(SYS_faccessat, AT_FDCWD, out, X_OK))
      return true;
    at = at[n] ? at + n + 1 : NULL;
  }
  return false;
}

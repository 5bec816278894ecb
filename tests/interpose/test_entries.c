/* test_entries.c: every function that libweir-preload.so exports begins as entry.h promises. The
 * file is read, symbol by symbol of its dynamic table, as it was built. */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/interpose/movable.h"

enum { LONGEST_PATCH = 16 };

typedef struct image {
  const unsigned char *bytes;
  size_t size;
  const Elf64_Shdr *sections;
  unsigned section_count;
} image;

static image library;

static void map_library(void)
{
  char path[1024];
  struct stat st;
  (void)snprintf(path, sizeof path, "%s/lib/libweir-preload.so", getenv("WEIR_BUILD"));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(fstat(fd, &st), 0);
  library.size = (size_t)st.st_size;
  library.bytes = mmap(NULL, library.size, PROT_READ, MAP_PRIVATE, fd, 0);
  ck_assert_ptr_ne(library.bytes, MAP_FAILED);
  (void)close(fd);
  const Elf64_Ehdr *head = (const void *)library.bytes;
  library.sections = (const void *)(library.bytes + head->e_shoff);
  library.section_count = head->e_shnum;
}

static void unmap_library(void)
{
  (void)munmap((void *)(uintptr_t)library.bytes, library.size);
}

static const Elf64_Shdr *dynamic_symbols(void)
{
  for (unsigned i = 0; i < library.section_count; i++)
    if (library.sections[i].sh_type == SHT_DYNSYM) return &library.sections[i];
  return NULL;
}

/* The symbol's first bytes, in the section that it lies in. */
static const unsigned char *code_of(const Elf64_Sym *symbol)
{
  const Elf64_Shdr *s = &library.sections[symbol->st_shndx];
  return library.bytes + s->sh_offset + (symbol->st_value - s->sh_addr);
}

static bool is_exported_function(const Elf64_Sym *symbol)
{
  return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx < SHN_LORESERVE &&
         ELF64_ST_TYPE(symbol->st_info) == STT_FUNC;
}

START_TEST(any_patcher_can_move_the_first_16_bytes_of_each_export)
{
  const Elf64_Shdr *table = dynamic_symbols();
  ck_assert_ptr_nonnull(table);
  const Elf64_Sym *symbols = (const void *)(library.bytes + table->sh_offset);
  const char *names = (const char *)library.bytes + library.sections[table->sh_link].sh_offset;
  unsigned found = 0;
  for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    const Elf64_Sym *s = &symbols[i];
    if (!is_exported_function(s)) continue;
    found++;
    size_t movable = movable_bytes(code_of(s), LONGEST_PATCH);
    ck_assert_msg(movable > 0, "%s begins with what a patcher does not know", names + s->st_name);
    ck_assert_msg(s->st_size > movable, "%s is said to be of %zu bytes", names + s->st_name,
                  (size_t)s->st_size);
    ck_assert_msg(s->st_value % LONGEST_PATCH == 0, "%s is not aligned", names + s->st_name);
  }
  ck_assert_uint_gt(found, 900);
}
END_TEST

/* A note that promised landing pads would make the processor ask for them. */
START_TEST(the_library_does_not_promise_landing_pads_that_entries_lack)
{
  for (unsigned i = 0; i < library.section_count; i++) {
    const Elf64_Shdr *s = &library.sections[i];
    if (s->sh_type != SHT_NOTE) continue;
    const uint32_t *words = (const void *)(library.bytes + s->sh_offset);
    if (s->sh_size < 28 || words[2] != 5 /* NT_GNU_PROPERTY_TYPE_0 */) continue;
    for (size_t at = 4; at + 2 < s->sh_size / 4; at += 2 + (words[at + 1] + 7) / 8 * 2) {
      bool features = words[at] == 0xc0000002 || words[at] == 0xc0000000; /* x86's, aarch64's */
      ck_assert_msg(!features || !(words[at + 2] & 1), "IBT or BTI is promised");
    }
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("interpose/entries");
  TCase *c = tcase_create("entries");
  tcase_add_checked_fixture(c, map_library, unmap_library);
  tcase_add_test(c, any_patcher_can_move_the_first_16_bytes_of_each_export);
  tcase_add_test(c, the_library_does_not_promise_landing_pads_that_entries_lack);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

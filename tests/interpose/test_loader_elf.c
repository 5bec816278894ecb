/* test_loader_elf.c: our look-up finds what the loader finds, for every symbol of what is loaded.
 */
#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/elf/elf.h"
#include "tests/interpose/loader_run.h"

static bool object_of(const char *soname, elf_object *o, void **handle)
{
  struct link_map *m;

  *handle = dlopen(soname, RTLD_NOW);
  if (!*handle || dlinfo(*handle, RTLD_DI_LINKMAP, &m)) return false;
  return elf_object_read(o, m->l_addr, m->l_ld);
}

/* Number of dynamic symbols, by the longest hash chain. */
static uint32_t symbol_count(const elf_object *o)
{
  const uint32_t *h = o->gnu_hash, *bucket, *chain;
  uint32_t last = 0;

  bucket = h + 4 + h[2] * (sizeof(ElfW(Addr)) / 4);
  chain = bucket + h[0];
  for (uint32_t i = 0; i < h[0]; i++)
    if (bucket[i] > last) last = bucket[i];
  while (last && !(chain[last - h[1]] & 1))
    last++;
  return last + 1;
}

static const char *const libraries[] = {"libc.so.6", "libm.so.6", "libstdc++.so.6"};

START_TEST(test_every_symbol_is_found_where_dlsym_finds_it)
{
  elf_object o;
  void *handle;
  unsigned compared = 0;

  ck_assert_msg(object_of(libraries[_i], &o, &handle), "%s", dlerror());
  ck_assert_ptr_nonnull(o.gnu_hash);
  ck_assert_str_eq(o.soname, libraries[_i]);
  for (uint32_t i = 1; i < symbol_count(&o); i++) {
    const ElfW(Sym) *s = &o.symbols[i];
    const char *name = o.strings + s->st_name;
    unsigned type = ELF64_ST_TYPE(s->st_info);
    void *found = elf_object_symbol(&o, name, NULL, WEIR_FIT_DEFAULT), *real;
    Dl_info where;
    if (type == STT_GNU_IFUNC) ck_assert_msg(!found, "%s is an IFUNC", name);
    if (!found || s->st_shndx == SHN_ABS) continue;
    real = dlsym(handle, name);
    if (!real) continue; /* only old versions of it, which dlsym does not give out */
    if (!dladdr(real, &where) || where.dli_fbase != (void *)o.base) continue; /* of a dependency */
    ck_assert_msg(found == real, "%s: %p, not %p", name, found, real);
    compared++;
  }
  ck_assert_uint_gt(compared, 20);
  dlclose(handle);
}
END_TEST

START_TEST(test_versions_are_told_apart)
{
  elf_object o;
  void *handle, *old, *new;

  ck_assert(object_of("libc.so.6", &o, &handle));
  old = elf_object_symbol(&o, "regexec", "GLIBC_2.2.5", WEIR_FIT_REFERENCE);
  new = elf_object_symbol(&o, "regexec", "GLIBC_2.3.4", WEIR_FIT_REFERENCE);
  ck_assert_ptr_nonnull(old);
  ck_assert_ptr_nonnull(new);
  ck_assert_ptr_ne(old, new);
  ck_assert_ptr_eq(old, dlvsym(handle, "regexec", "GLIBC_2.2.5"));
  ck_assert_ptr_eq(new, dlvsym(handle, "regexec", "GLIBC_2.3.4"));
  ck_assert_ptr_eq(elf_object_symbol(&o, "regexec", NULL, WEIR_FIT_DEFAULT), new);
  ck_assert_ptr_null(elf_object_symbol(&o, "regexec", "GLIBC_99", WEIR_FIT_REFERENCE));
  ck_assert_ptr_null(elf_object_symbol(&o, "no_such_function", NULL, WEIR_FIT_DEFAULT));
  ck_assert_ptr_null(elf_object_symbol(&o, "", NULL, WEIR_FIT_DEFAULT));
  dlclose(handle);
}
END_TEST

/* The older hash table, which some linkers still write alone: libc's symbols through a table of it
 * made here. */
START_TEST(test_the_old_hash_table_serves_too)
{
  elf_object o, old;
  void *handle;
  uint32_t count, *table;

  ck_assert(object_of("libm.so.6", &o, &handle));
  count = symbol_count(&o);
  table = calloc(2 + 1 + count, sizeof *table);
  table[0] = 1;
  table[1] = count;
  table[2] = count - 1;
  for (uint32_t i = 1; i < count; i++)
    table[3 + i] = i - 1;
  old = o;
  old.gnu_hash = NULL;
  old.sysv_hash = table;
  ck_assert_ptr_nonnull(elf_object_symbol(&o, "nan", NULL, WEIR_FIT_DEFAULT));
  ck_assert_ptr_eq(elf_object_symbol(&old, "nan", NULL, WEIR_FIT_DEFAULT),
                   elf_object_symbol(&o, "nan", NULL, WEIR_FIT_DEFAULT));
  ck_assert_ptr_null(elf_object_symbol(&old, "not_there", NULL, WEIR_FIT_DEFAULT));
  free(table);
  dlclose(handle);
}
END_TEST

START_TEST(test_an_address_leads_to_its_object)
{
  elf_object o;
  int local = 0;
  void *rt;

  ck_assert(elf_object_at(&o, dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  ck_assert_str_eq(o.soname, "libc.so.6");
  ck_assert(!elf_object_at(&o, &local));
  ck_assert(!elf_object_at(&o, NULL));
  ck_assert_int_eq(cuda_library_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")), -1);
  rt = dlopen(built("tests/victims/loader/libcudart.so.12"), RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(rt != NULL, "%s", dlerror());
  ck_assert_int_eq(cuda_library_of(dlsym(rt, "cudaMalloc")), WEIR_BANK_RT12);
  ck_assert_ptr_eq(elf_symbol("libcudart.so.12", "cudaMalloc"), dlsym(rt, "cudaMalloc"));
  ck_assert_ptr_null(elf_symbol("libcudart.so.13", "cudaMalloc"));
  ck_assert_ptr_null(elf_symbol("libcudart.so.12", "cudaNoSuchThing"));
  dlclose(rt);
  ck_assert_ptr_null(elf_symbol("libcudart.so.12", "cudaMalloc"));
}
END_TEST

START_TEST(test_the_loaders_functions_are_found)
{
  loader_find();
  ck_assert_ptr_eq(WEIR_CODE(real_dlopen), dlsym(RTLD_DEFAULT, "dlopen"));
  ck_assert_ptr_eq(WEIR_CODE(real_dlsym), dlsym(RTLD_DEFAULT, "dlsym"));
  ck_assert_ptr_eq(WEIR_CODE(real_dlvsym), dlsym(RTLD_DEFAULT, "dlvsym"));
  ck_assert_ptr_eq(WEIR_CODE(real_dlclose), dlsym(RTLD_DEFAULT, "dlclose"));
  ck_assert_uint_lt(own_library_start, (uintptr_t)&own_library_path);
  ck_assert_uint_gt(own_library_end, (uintptr_t)&own_library_path);
}
END_TEST

static Suite *loader_elf_suite(void)
{
  Suite *s = suite_create("loader: elf");
  TCase *t = tcase_create("elf");

  tcase_add_loop_test(t, test_every_symbol_is_found_where_dlsym_finds_it, 0,
                      sizeof libraries / sizeof *libraries);
  tcase_add_test(t, test_versions_are_told_apart);
  tcase_add_test(t, test_the_old_hash_table_serves_too);
  tcase_add_test(t, test_an_address_leads_to_its_object);
  tcase_add_test(t, test_the_loaders_functions_are_found);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(loader_elf_suite());
  int failed;

  srunner_run_all(r, CK_ENV);
  failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

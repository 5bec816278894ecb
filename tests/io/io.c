/* io.c: see io.h. */
#include "tests/io/io.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tests/core/support.h"

static char folder[256];

void enter_folder(void)
{
  make_folder(folder);
  ck_assert_int_eq(chdir(folder), 0);
}

void leave_folder(void)
{
  ck_assert_int_eq(chdir("/"), 0);
  remove_folder(folder);
}

void put_file(const char *name, const void *bytes, size_t count)
{
  FILE *f = fopen(name, "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
  ck_assert_int_eq(fclose(f), 0);
}

char *get_file(const char *name, size_t *count)
{
  FILE *f = fopen(name, "rb");
  ck_assert_ptr_nonnull(f);
  char *bytes = malloc(1 << 20);
  *count = fread(bytes, 1, 1 << 20, f);
  ck_assert_int_eq(fclose(f), 0);
  return bytes;
}

int files_there(void)
{
  int n = 0;
  DIR *d = opendir(".");
  for (struct dirent *e; (e = readdir(d));)
    n += e->d_name[0] != '.';
  (void)closedir(d);
  return n;
}

int run_io_suite(Suite *suite)
{
  SRunner *r = srunner_create(suite);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

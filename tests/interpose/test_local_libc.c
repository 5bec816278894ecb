/* test_local_libc.c: the library's own strlen, which reads words: every length from every place
 * in one, and texts that end where memory does. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONGEST = 40, WORD = 8 };

/* No builtin of the compiler's. */
static size_t (*volatile length_of)(const char *) = strlen;

static char *end_of_memory(void)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *m = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(m, MAP_FAILED);
  ck_assert_int_eq(mprotect(m + page, page, PROT_NONE), 0);
  return m + page;
}

START_TEST(a_text_has_its_length_wherever_it_begins)
{
  static const char fills[] = {'a', 1, (char)0x80, (char)0xff, (char)0x81};
  char *end = end_of_memory();
  for (size_t fill = 0; fill < sizeof fills; fill++)
    for (size_t behind = 1; behind <= 2 * WORD; behind++)
      for (size_t n = 0; n <= LONGEST; n++) {
        char *text = end - behind - n;
        memset(text - WORD, 0, WORD + n + behind); /* zeros ahead of it are not its end */
        memset(text, fills[fill], n);
        memset(text + n + 1, fills[fill], behind - 1);
        ck_assert_uint_eq(length_of(text), n);
      }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("interpose/local_libc");
  TCase *t = tcase_create("strlen");
  tcase_add_test(t, a_text_has_its_length_wherever_it_begins);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

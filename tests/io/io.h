/* io.h: what the suites of files share: a folder of their own, files made from bytes, and a word on
 * what a reader must say of them. */
#ifndef WEIR_TESTS_IO_IO_H
#define WEIR_TESTS_IO_IO_H

#include <check.h>
#include <stddef.h>
#include "core/weir.h"

/* A new folder, which is the working directory; removed afterwards. For fixtures. */
void enter_folder(void);
void leave_folder(void);

/* A file of these bytes. */
void put_file(const char *name, const void *bytes, size_t count);
/* Its bytes (new: free() them). */
char *get_file(const char *name, size_t *count);
/* Files in the folder. */
int files_there(void);

#define must(call) ck_assert_msg((call) == WEIR_OK, "%s: %s", #call, weir_error_message())
/* It fails with this status, and its sentence has these words. */
#define must_fail(call, status, words)                                                             \
  do {                                                                                             \
    weir_status came = (call);                                                                     \
    ck_assert_msg(came == (status), "%s: %d, not %d: %s", #call, came, status,                     \
                  weir_error_message());                                                           \
    ck_assert_msg(strstr(weir_error_message(), words) != NULL, "%s: \"%s\" says nothing of %s",    \
                  #call, weir_error_message(), words);                                             \
  } while (0)

/* Runs a suite of one case with the folder's fixture around each test; the exit status. */
int run_io_suite(Suite *suite);

#endif

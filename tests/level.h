/* level.h: how much of the same a suite tries. A suite whose checks repeat is built for each level
 * that its folder's rules.mk names: as test_NAME (make test), test_NAME_all (make test-all),
 * test_NAME_long (make test-long). What is checked is the same at each; only how often differs. */
#ifndef WEIR_TESTS_LEVEL_H
#define WEIR_TESTS_LEVEL_H

#ifndef TEST_LEVEL
#define TEST_LEVEL 0 /* 0 quick, 1 all, 2 long */
#endif

/* A constant of the suite's level. */
#define AT_LEVEL(quick, all, longer)                                                               \
  (TEST_LEVEL == 0 ? (quick) : TEST_LEVEL == 1 ? (all) : (longer))

#endif

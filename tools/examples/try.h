/* try.h: a call whose failure ends the function that makes it. */
#ifndef WEIR_TOOLS_EXAMPLES_TRY_H
#define WEIR_TOOLS_EXAMPLES_TRY_H

#define TRY(call)                                                                                  \
  do {                                                                                             \
    weir_status st_ = (call);                                                                      \
    if (st_) return st_;                                                                           \
  } while (0)

#endif

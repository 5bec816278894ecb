/* other_cupti.c: a CUPTI that is not the device's: of a version that is used, and ends the program
 * when it is. */
#include <stdint.h>
#include <stdlib.h>

int cuptiGetVersion(uint32_t *version);

int cuptiGetVersion(uint32_t *version)
{
  *version = 130200;
  return 0;
}

#define ENDS(name)                                                                                 \
  int name(void)                                                                                   \
  {                                                                                                \
    abort();                                                                                       \
  }
#define DECLARE(name) int name(void);
#define EACH(X)                                                                                    \
  X(cuptiGetTimestamp)                                                                             \
  X(cuptiSubscribe)                                                                                \
  X(cuptiSubscribe_v2)                                                                             \
  X(cuptiUnsubscribe)                                                                              \
  X(cuptiEnableCallback)                                                                           \
  X(cuptiActivityRegisterCallbacks)                                                                \
  X(cuptiActivityEnable)                                                                           \
  X(cuptiActivityDisable)                                                                          \
  X(cuptiActivityFlushAll)                                                                         \
  X(cuptiActivityGetNextRecord)                                                                    \
  X(cuptiActivityGetNumDroppedRecords)
EACH(DECLARE)
EACH(ENDS)

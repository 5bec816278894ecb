/* log.h: how the library reports in addition to its results (core/weir/log.h). */
#ifndef WEIR_NN_LOG_H
#define WEIR_NN_LOG_H

#include "core/weir/log.h"

/* Calls the program's callback. Not for hot paths (formats, where there is a callback). */
void log_message(weir_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

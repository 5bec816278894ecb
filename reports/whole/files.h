/* files.h: the files that names of places come from, as they are now. */
#ifndef WEIR_REPORTS_WHOLE_FILES_H
#define WEIR_REPORTS_WHOLE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include "reports/import/schema.h"

/* A hash of the path, size, time of change and whether it can be read of each file that the
 * symbolizer may look into for a trace: modules, files of their debug information in the places
 * where these are kept, what JIT compilers wrote. None is opened. False: the trace cannot be read,
 * or has too many. */
bool wr_module_files_hash(const wr_db *db, uint64_t *hash);

#endif

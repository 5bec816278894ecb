/* debug_files.h: the files that symbols are read from: a module's own, and the separate one with
 * its debug information.
 *
 * Their names come from a trace or from another file, so all are opened as wr_open_regular() does:
 * a pipe or a device of that name is no file. The network is never asked. */
#ifndef WEIR_REPORTS_DEBUG_FILES_H
#define WEIR_REPORTS_DEBUG_FILES_H

#include <elfutils/libdwfl.h>

/* Opens the file of a module for dwfl_report_offline(), which would also unpack compressed ones.
 * -1: it is no ELF file, or cannot be read. */
int wr_elf_open(const char *path);

/* libdwfl's find_debuginfo: by build-id in the system's folder, then by .gnu_debuglink next to the
 * module, in its .debug, and in /usr/lib/debug. */
int wr_debuginfo_find(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **found);

#endif

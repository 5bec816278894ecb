/* objects.h: the walk over all loaded objects, in a forked child too.
 *
 * dl_iterate_phdr() holds a lock of the loader's. A child forked while another thread was in it, or
 * in dlopen(), has that lock as held by a thread that it does not have, and glibc resets it in no
 * child: whoever takes it waits for ever. There the loader's list is read as it lies in memory:
 * nothing can change it any more, since who changes it must take the lock. */
#ifndef WEIR_INTERPOSE_OBJECTS_H
#define WEIR_INTERPOSE_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int object_visitor(struct dl_phdr_info *, size_t, void *);

/* glibc's struct dl_find_object as its manual documents it (2.35); our own name for it, so that we
 * build and run with older ones. */
typedef struct find_object_result {
  unsigned long long flags;
  void *map_start, *map_end;
  struct link_map *link_map;
  void *eh_frame;
  unsigned long long reserved[7];
} find_object_result;

/* glibc's own, whoever else defines them; NULL until objects_begin(), find_object before 2.35. */
typedef struct object_functions {
  int (*iterate_phdr)(object_visitor *, void *);
  int (*find_object)(void *, find_object_result *);
} object_functions;
extern object_functions objects;

/* Finds the lock in the loader's data (`data`: its _rtld_global, NULL unknown), at the start. */
void objects_begin(const void *data, size_t bytes);

/* As dl_iterate_phdr(). Where the lock cannot be had, dlpi_adds and what comes after it are not
 * there, as `size` gives it. Returns what the last visit returned, 0 before objects_begin(). */
int objects_visit(object_visitor *visit, void *context);

/* To be called in each forked child. Returns whether the lock is lost there: then nothing may be
 * called that takes it, dlopen() of something new and unwinders among that. */
bool objects_forked(void);

#endif

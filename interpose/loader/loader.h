/* loader.h: the loader's functions as the program calls them: trampolines (trampoline_*.S) and
 * their filters (lookup.c). */
#ifndef WEIR_INTERPOSE_LOADER_H
#define WEIR_INTERPOSE_LOADER_H

/* The exported trampolines, by names that can't be interposed. */
void *own_dlsym(void *handle, const char *name);
void *own_dlvsym(void *handle, const char *name, const char *version);
void *own_dlopen(const char *file, int mode);
void *own_dlmopen(long space, const char *file, int mode);
int own_dlclose(void *handle);

#endif

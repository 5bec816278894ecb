/* loader.h: the loader's functions as the program calls them: trampolines (trampoline_*.S) and
 * their filters (lookup.c). */
#ifndef WEIR_INTERPOSE_LOADER_H
#define WEIR_INTERPOSE_LOADER_H

/* The exported trampolines, by names that can't be interposed. */
void *weir_own_dlsym(void *handle, const char *name);
void *weir_own_dlvsym(void *handle, const char *name, const char *version);
void *weir_own_dlopen(const char *file, int mode);
void *weir_own_dlmopen(long space, const char *file, int mode);
int weir_own_dlclose(void *handle);

#endif

/* image.h: will a library that is preloaded (LD_PRELOAD) be in a program that is about to be
 * exec'd?
 *
 * The reason is in the file: it has no dynamic linker, it gains privileges, or it is another
 * processor's. Only system calls and the caller's stack: it may be asked in a vfork()ed child. */
#ifndef WEIR_BASE_IMAGE_H
#define WEIR_BASE_IMAGE_H

#include <stdbool.h>

/* Why an image runs without Weir. One row a reason: identifier, value, words. Append only. */
#define WEIR_UNSEEN_MAP(X)                                                                         \
  X(ENVIRONMENT, 1, "LD_PRELOAD was changed")                                                      \
  X(STATIC, 2, "statically linked")                                                                \
  X(PRIVILEGED, 3, "set-uid, set-gid or capabilities")                                             \
  X(PROCESSOR, 4, "for another processor")                                                         \
  X(UNREADABLE, 5, "its user may not read the preload library")                                    \
  X(USER, 6, "its user has no access to the spools")

typedef enum unseen_reason {
  WEIR_UNSEEN_NOT = 0, /* it is seen, or cannot be looked at */
#define WEIR_UNSEEN_ENUM(id, value, words) WEIR_UNSEEN_##id = value,
  WEIR_UNSEEN_MAP(WEIR_UNSEEN_ENUM)
#undef WEIR_UNSEEN_ENUM
} unseen_reason;

/* Looks at the file at `path`, of a script at its interpreter. Changes errno. */
unseen_reason image_look(const char *path);

/* A reason in words, "unknown" for a number that is none. */
const char *unseen_words(unsigned reason);

/* The processor that a program is built for, "" for one without a name here. NULL: the file at
 * `path` is no ELF image. */
const char *image_processor(const char *path);

/* Finds `name` as execvp() does, in `search` (a PATH, NULL: the default), in `room` bytes. False:
 * not there. */
bool image_find(char *out, unsigned room, const char *name, const char *search);

#endif

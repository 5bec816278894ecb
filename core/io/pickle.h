/* pickle.h: the values of a Python pickle (protocols 2 to 5), from somebody one does not trust.
 *
 * The machine makes numbers, text, lists, tuples and dicts. It knows no class and calls nothing:
 * names of Python's, calls of them and references to what lies outside are handed to the caller,
 * who refuses what it does not know, or makes an object of it that stands for nothing. */
#ifndef WEIR_IO_PICKLE_H
#define WEIR_IO_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

enum pickle_kind {
  PICKLE_NONE,
  PICKLE_BOOL,  /* i */
  PICKLE_INT,   /* i */
  PICKLE_BIG,   /* an integer of more than 64 bits: nothing is kept of it */
  PICKLE_FLOAT, /* f */
  PICKLE_TEXT,  /* text, count: its bytes; not ended by a NUL */
  PICKLE_BYTES, /* the same */
  PICKLE_TUPLE, /* item, count */
  PICKLE_LIST,
  PICKLE_DICT,   /* item: a key, its value, the next key, ... */
  PICKLE_SET,    /* nothing is kept of it */
  PICKLE_GLOBAL, /* which, object, count: the caller's */
  PICKLE_OBJECT, /* the same: what a call or a reference gave */
  PICKLE_UNKNOWN /* of a class that the caller has no use for. which: the caller's; item: what it
                    was given as a list or a dict is, `holds` states which; of its state nothing is
                    kept */
};

typedef struct pickle_value pickle_value;
struct pickle_value {
  uint8_t kind;  /* enum pickle_kind */
  uint8_t holds; /* UNKNOWN: PICKLE_LIST, PICKLE_DICT; 0: nothing yet */
  int which;     /* the caller's */
  size_t count, room;
  union {
    int64_t i;
    double f;
    const char *text;    /* borrowed: the pickle's */
    pickle_value **item; /* owned; the values are the machine's */
    void *object;        /* the caller's */
  };
};

/* What the caller does; each fills *out (kind NONE until then) or fails. */
typedef struct pickle_calls {
  weir_status (*global)(void *user, const char *module, const char *name, pickle_value *out);
  /* `call` is a GLOBAL, `args` a TUPLE: a function called, or an object made of a class. The result
   * is `made`, or *out where that is set to one of args' own values. */
  weir_status (*call)(void *user, const pickle_value *call, const pickle_value *args,
                      pickle_value *made, pickle_value **out);
  weir_status (*refer)(void *user, const pickle_value *id, pickle_value *out);
  /* An OBJECT ends. */
  void (*end)(void *user, pickle_value *v);
  void *user;         /* borrowed */
  const char *path;   /* borrowed; for messages */
  size_t values_most; /* more end the reading; 0: 4 Mi, of 32 bytes each */
} pickle_calls;

typedef struct pickle_chunk pickle_chunk;
typedef struct pickle {
  pickle_calls calls;
  const unsigned char *start, *at, *end; /* borrowed */
  pickle_chunk *chunk;                   /* owned: all values there are, latest chunk first */
  size_t values;
  pickle_value **stack; /* owned */
  size_t depth, room;
  size_t *mark; /* owned: depths at which a mark stands */
  size_t marks, mark_room;
  pickle_value **memo; /* owned */
  size_t memos, memo_room;
} pickle;

/* *root lives until pickle_free(), which must be called, also on failure. Errors: ECORRUPT, ENOTSUP
 * (what no tensor needs, named), ENOMEM, the caller's. */
weir_status pickle_read(pickle *p, const pickle_calls *calls, const void *bytes, size_t count,
                        pickle_value **root);
void pickle_free(pickle *p);

#endif

/* shape.h: structs as bytes and back, by tables of their fields.
 *
 * A *shape* is what is known of a struct: where its members lie, how wide they are, what they may
 * be. One writer and one reader walk over any of them. Numbers are of variable length, seven bits a
 * byte with the lowest first, signed ones folded so that small ones are short; a text is its length
 * and its bytes; a list its length and its elements.
 *
 * The bytes come out of a file that somebody else may have made. The reader takes no more of them
 * than there are, allocates no list of more elements than bytes are left for, and takes no number
 * that is outside of what its field may be: an enumeration, the number of an element of another
 * list, a signed number whose differences would overflow. Texts have to be printable. What it has
 * made when it gives up can be freed as what it makes in whole. */
#ifndef WEIR_REPORTS_WHOLE_SHAPE_H
#define WEIR_REPORTS_WHOLE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef enum wr_member_kind {
  WR_MEMBER_NUMBER, /* of any width; `count` of them in a row */
  WR_MEMBER_SHARE,  /* a double from 0 to 1 */
  WR_MEMBER_TEXT,   /* owned */
  WR_MEMBER_MAYBE,  /* the same, or NULL */
  WR_MEMBER_POOLED, /* a borrowed text: read, it is one more of the root's list of texts */
  WR_MEMBER_WORD,   /* a borrowed text of a fixed set, or NULL */
  WR_MEMBER_MARK,   /* a pointer: whether it is NULL; read, it is "" where it is not */
  WR_MEMBER_ONE_OF, /* a pointer to an element of the root's list */
  WR_MEMBER_STRUCT, /* `count` of them in a row, of which `many` are filled, where there is such a member */
  WR_MEMBER_POINTER, /* to one, owned, or NULL */
  WR_MEMBER_LIST,    /* owned array of `many` */
  WR_MEMBER_SPARSE,  /* owned array of `count`, of which most are all zero */
  WR_MEMBER_APART    /* not written: zero when it is read, and set by who reads it */
} wr_member_kind;

typedef struct wr_shape wr_shape;

typedef struct wr_member {
  const char *name;
  wr_member_kind kind;
  size_t offset, bytes; /* in its struct; of one of them */
  size_t count;
  bool sign;          /* NUMBER */
  uint64_t most;      /* NUMBER: the greatest, 0: any; of a signed one -most is the least */
  const wr_shape *of; /* STRUCT, POINTER, LIST, SPARSE */
  size_t many;        /* offset of the number of elements, plus 1; 0: none */
  size_t many_bytes;  /* and its width */
  size_t least;       /* and how many there are at least */
  size_t extra;       /* LIST: elements that the number does not count, where there are any */
  size_t room;        /* LIST: offset of the size_t that has its capacity, plus 1; 0: none */
  size_t below;       /* NUMBER: offset in the root of the size_t that it is below, plus 1 */
  size_t up_to;       /* NUMBER: the same, or equal to it */
  size_t up_to_own;   /* NUMBER: the same of a member of its own struct, of `many_bytes` */
  size_t root_list;   /* POOLED, ONE_OF: offset in the root of the list's pointer */
  size_t root_count;  /* and of its size_t */
  size_t element;     /* ONE_OF: bytes of an element */
  const char *(*word)(size_t i); /* WORD: the words of the set; NULL: no more */
} wr_member;

struct wr_shape {
  const char *name;
  size_t bytes;
  const wr_member *member;
  size_t count;
};

/* What is written so far. Zero-initialised is empty. */
typedef struct wr_shape_bytes {
  unsigned char *data; /* owned */
  size_t count, capacity;
  size_t most; /* bytes; 0: any */
  bool
      failed; /* out of memory, more than `most`, or a struct that has no bytes: nothing is written */
} wr_shape_bytes;

/* Appends *root, which is of that shape. */
void wr_shape_write(wr_shape_bytes *out, const wr_shape *shape, const void *root);

/* Fills *root, whose other members the caller has set and those of the shape are all zero. False: the
 * bytes are none of it, or memory was too little; what is filled can be freed. */
bool wr_shape_read(const void *bytes, size_t count, const wr_shape *shape, void *root);

/* Mixes a shape with all that are in it into a hash: another one is read as something else. */
uint64_t wr_shape_hash(uint64_t hash, const wr_shape *shape);

/* The greatest signed number that is taken, and with its sign changed the least. */
#define WR_SHAPE_MOST (UINT64_C(1) << 62)

/* ---- tables ---------------------------------------------------------------------------------- */

/* A table of a struct is between #define OF wr_thing and #undef OF. */
#define WR_AT(type, name)   .offset = offsetof(type, name), .bytes = sizeof(((type *)0)->name)
#define WR_SIGN(type, name) ((__typeof__(((type *)0)->name))-1 < (__typeof__(((type *)0)->name))1)
#define WR_HEAD(type, member_kind, member_name)                                                    \
  .name = #member_name, .kind = (member_kind), WR_AT(type, member_name), .count = 1
#define WR_POINTS(type, member_kind, member_name)                                                  \
  .name = #member_name, .kind = (member_kind), .offset = offsetof(type, member_name),              \
  .bytes = sizeof(void *), .count = 1
#define WR_WIDTH(type, member_name) sizeof(((type *)0)->member_name)

#define WR_NUMBER_OF(type, name, ...)                                                              \
  {                                                                                                \
    WR_HEAD(type, WR_MEMBER_NUMBER, name), .sign = WR_SIGN(type, name), __VA_ARGS__                \
  }
/* `first` up to `last`: uint64_t without another member between them. */
#define WR_NUMBERS_OF(type, first, last)                                                           \
  {                                                                                                \
    .name = #first, .kind = WR_MEMBER_NUMBER, .offset = offsetof(type, first),                     \
    .bytes = sizeof(uint64_t),                                                                     \
    .count = (offsetof(type, last) - offsetof(type, first)) / sizeof(uint64_t) + 1                 \
  }
/* An array of uint64_t in the struct. */
#define WR_ROW_OF(type, name_)                                                                     \
  {                                                                                                \
    .name = #name_, .kind = WR_MEMBER_NUMBER, .offset = offsetof(type, name_),                     \
    .bytes = sizeof(uint64_t), .count = WR_WIDTH(type, name_) / sizeof(uint64_t)                   \
  }
#define WR_STRUCT_OF(type, name, shape)                                                            \
  {                                                                                                \
    WR_HEAD(type, WR_MEMBER_STRUCT, name), .of = &(shape)                                          \
  }
#define WR_ARRAY_OF(type, name_, shape)                                                            \
  .name = #name_, .kind = WR_MEMBER_STRUCT, .offset = offsetof(type, name_),                       \
  .bytes = sizeof(((type *)0)->name_[0]),                                                          \
  .count = WR_WIDTH(type, name_) / sizeof(((type *)0)->name_[0]), .of = &(shape)
#define WR_MANY_OF(type, many_)                                                                    \
  .many = offsetof(type, many_) + 1, .many_bytes = WR_WIDTH(type, many_)
#define WR_LIST_OF(type, name, shape, many)                                                        \
  WR_POINTS(type, WR_MEMBER_LIST, name), .of = &(shape), WR_MANY_OF(type, many)

#define NUMBER(name)              WR_NUMBER_OF(OF, name, .most = 0)
#define NUMBER_TO(name, greatest) WR_NUMBER_OF(OF, name, .most = (greatest))
/* One that is never negative, whatever its type. */
#define NATURAL_TO(name_, greatest)                                                                \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_NUMBER, name_), .most = (greatest)                                       \
  }
#define NUMBERS(first, last)      WR_NUMBERS_OF(OF, first, last)
#define ROW(name)                 WR_ROW_OF(OF, name)
#define BELOW(name, root, member) WR_NUMBER_OF(OF, name, .below = offsetof(root, member) + 1)
#define UP_TO(name, root, member) WR_NUMBER_OF(OF, name, .up_to = offsetof(root, member) + 1)
#define UP_TO_OWN(name, other)                                                                     \
  WR_NUMBER_OF(OF, name, .up_to_own = offsetof(OF, other) + 1, .many_bytes = WR_WIDTH(OF, other))
#define SHARE(name)                                                                                \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_SHARE, name)                                                             \
  }
#define TEXT(name)                                                                                 \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_TEXT, name)                                                              \
  }
#define MAYBE_TEXT(name)                                                                           \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_MAYBE, name)                                                             \
  }
#define MARK(name)                                                                                 \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_MARK, name)                                                              \
  }
#define APART(name)                                                                                \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_APART, name)                                                             \
  }
#define WORD(name, words)                                                                          \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_WORD, name), .word = (words)                                             \
  }
#define STRUCT(name, shape) WR_STRUCT_OF(OF, name, shape)
#define ARRAY(name, shape)                                                                         \
  {                                                                                                \
    WR_ARRAY_OF(OF, name, shape)                                                                   \
  }
#define SOME(name, shape, many)                                                                    \
  {                                                                                                \
    WR_ARRAY_OF(OF, name, shape), WR_MANY_OF(OF, many)                                             \
  }
#define POINTER(name, shape)                                                                       \
  {                                                                                                \
    WR_POINTS(OF, WR_MEMBER_POINTER, name), .of = &(shape)                                         \
  }
#define LIST(name, shape, many)                                                                    \
  {                                                                                                \
    WR_LIST_OF(OF, name, shape, many)                                                              \
  }
/* With so many elements at least; with one that has no number, before the others. */
#define FILLED(name, shape, many, number)                                                          \
  {                                                                                                \
    WR_LIST_OF(OF, name, shape, many), .least = (number)                                           \
  }
#define FROM_ONE(name, shape, many)                                                                \
  {                                                                                                \
    WR_LIST_OF(OF, name, shape, many), .extra = 1                                                  \
  }
#define SOME_FILLED(name, shape, many, number)                                                     \
  {                                                                                                \
    WR_ARRAY_OF(OF, name, shape), WR_MANY_OF(OF, many), .least = (number)                          \
  }
#define GROWING(name, shape, many, capacity)                                                       \
  {                                                                                                \
    WR_LIST_OF(OF, name, shape, many), .room = offsetof(OF, capacity) + 1                          \
  }
#define SPARSE(name_, shape, all)                                                                  \
  {                                                                                                \
    .name = #name_, .kind = WR_MEMBER_SPARSE, .offset = offsetof(OF, name_),                       \
    .bytes = sizeof(void *), .count = (all), .of = &(shape)                                        \
  }
#define POOLED(name, root, list, many)                                                             \
  {                                                                                                \
    WR_HEAD(OF, WR_MEMBER_POOLED, name), .root_list = offsetof(root, list),                        \
                                         .root_count = offsetof(root, many)                        \
  }
#define ONE_OF(name, root, list, many)                                                             \
  {                                                                                                \
    WR_POINTS(OF, WR_MEMBER_ONE_OF, name), .root_list = offsetof(root, list),                      \
                                           .root_count = offsetof(root, many),                     \
                                           .element = sizeof(*((root *)0)->list)                   \
  }
#define SHAPE(type)                                                                                \
  {                                                                                                \
#type, sizeof(type), type##_members, sizeof(type##_members) / sizeof(wr_member)                \
  }

#endif

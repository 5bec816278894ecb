/* pickle.c: see pickle.h. Written from the description of the opcodes in Python's pickletools
 * module.
 *
 * Values are taken from chunks and all end together, so that lists may hold each other, or
 * themselves, without a count. Every opcode makes at most one value and their number is bounded; a
 * stack never sinks below the last mark; a memo's index is at most one beyond its end, as picklers
 * number them. */
#include "core/base/require.h"
#include "core/io/pickle.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 1 << 22, CHUNK_VALUES = 512, NAME_BYTES = 256 };

struct pickle_chunk {
  pickle_chunk *before; /* owned */
  size_t used;
  pickle_value value[CHUNK_VALUES];
};

static weir_status wrong_pickle(const pickle *p, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "%s: pickle, byte %zu: %s", p->calls.path,
                   (size_t)(p->at - p->start), what);
}

static weir_status no_pickle_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "no host memory left for a pickle");
}

/* ---- values, stack, memo --------------------------------------------------------------------- */

static weir_status new_value(pickle *p, pickle_value **out, enum pickle_kind kind)
{
  size_t most = p->calls.values_most ? p->calls.values_most : VALUES_MOST;
  *out = NULL;
  if (p->values == most)
    return fail_unsupported("%s: the pickle has more than %zu values", p->calls.path, most);
  if (!p->chunk || p->chunk->used == CHUNK_VALUES) {
    pickle_chunk *c = malloc(sizeof *c);
    if (!c) return no_pickle_memory();
    c->before = p->chunk;
    c->used = 0;
    p->chunk = c;
  }
  *out = &p->chunk->value[p->chunk->used++];
  **out = (pickle_value){.kind = (uint8_t)kind};
  p->values++;
  return WEIR_OK;
}

/* Room for one more in an array of `size` bytes each. */
static weir_status grow_room(void **array, size_t count, size_t *room, size_t size)
{
  if (count < *room) return WEIR_OK;
  size_t more = *room ? *room * 2 : 8;
  void *grown = realloc(*array, more * size);
  if (!grown) return no_pickle_memory();
  *array = grown;
  *room = more;
  return WEIR_OK;
}

static weir_status push_value(pickle *p, pickle_value *v)
{
  void *array = p->stack;
  weir_status st = grow_room(&array, p->depth, &p->room, sizeof(pickle_value *));
  p->stack = array;
  if (!st) p->stack[p->depth++] = v;
  return st;
}

static weir_status push_new(pickle *p, pickle_value **out, enum pickle_kind kind)
{
  weir_status st = new_value(p, out, kind);
  return st ? st : push_value(p, *out);
}

static weir_status push_int(pickle *p, enum pickle_kind kind, int64_t i)
{
  pickle_value *v;
  weir_status st = push_new(p, &v, kind);
  if (!st) v->i = i;
  return st;
}

static size_t floor_of_stack(const pickle *p)
{
  return p->marks ? p->mark[p->marks - 1] : 0;
}

/* The uppermost value, taken off; NULL: there is none above the mark. */
static pickle_value *pop_value(pickle *p)
{
  return p->depth > floor_of_stack(p) ? p->stack[--p->depth] : NULL;
}

static weir_status push_mark(pickle *p)
{
  void *array = p->mark;
  weir_status st = grow_room(&array, p->marks, &p->mark_room, sizeof *p->mark);
  p->mark = array;
  if (!st) p->mark[p->marks++] = p->depth;
  return st;
}

static weir_status add_item(pickle_value *to, pickle_value *item)
{
  void *array = to->item;
  weir_status st = grow_room(&array, to->count, &to->room, sizeof(pickle_value *));
  to->item = array;
  if (!st) to->item[to->count++] = item;
  return st;
}

/* All above `from` on the stack become items of `to`. */
static weir_status move_items(pickle *p, pickle_value *to, size_t from)
{
  weir_status st = WEIR_OK;
  for (size_t i = from; !st && i < p->depth; i++)
    st = add_item(to, p->stack[i]);
  p->depth = from;
  return st;
}

static weir_status put_memo(pickle *p, size_t index)
{
  pickle_value *v = p->depth > floor_of_stack(p) ? p->stack[p->depth - 1] : NULL;
  if (!v) return wrong_pickle(p, "nothing is there to be remembered");
  if (index > p->memos + 1) return wrong_pickle(p, "a memo's number is skipped");
  while (index >= p->memos) {
    void *array = p->memo;
    weir_status st = grow_room(&array, p->memos, &p->memo_room, sizeof(pickle_value *));
    p->memo = array;
    if (st) return st;
    p->memo[p->memos++] = NULL;
  }
  p->memo[index] = v;
  return WEIR_OK;
}

static weir_status get_memo(pickle *p, size_t index)
{
  if (index >= p->memos || !p->memo[index]) return wrong_pickle(p, "nothing was remembered there");
  return push_value(p, p->memo[index]);
}

/* ---- operands -------------------------------------------------------------------------------- */

static weir_status take_pickled_bytes(pickle *p, const unsigned char **out, uint64_t count)
{
  *out = p->at;
  if (count > (uint64_t)(p->end - p->at)) return wrong_pickle(p, "it ends too early");
  p->at += count;
  return WEIR_OK;
}

static weir_status take_unsigned(pickle *p, uint64_t *out, int bytes)
{
  const unsigned char *b;
  *out = 0;
  weir_status st = take_pickled_bytes(p, &b, (uint64_t)bytes);
  for (int i = bytes - 1; !st && i >= 0; i--)
    *out = *out << 8 | b[i];
  return st;
}

static weir_status push_text(pickle *p, enum pickle_kind kind, int length_bytes)
{
  uint64_t length;
  const unsigned char *text = NULL;
  pickle_value *v;
  TRY(take_unsigned(p, &length, length_bytes));
  TRY(take_pickled_bytes(p, &text, length));
  TRY(push_new(p, &v, kind));
  v->text = (const char *)text;
  v->count = (size_t)length;
  return WEIR_OK;
}

static weir_status push_long(pickle *p, int length_bytes)
{
  uint64_t length, bits = 0;
  const unsigned char *b = NULL;
  TRY(take_unsigned(p, &length, length_bytes));
  TRY(take_pickled_bytes(p, &b, length));
  if (length > sizeof bits) return push_int(p, PICKLE_BIG, 0);
  for (uint64_t i = length; i--;)
    bits = bits << 8 | b[i];
  if (length && length < sizeof bits && b[length - 1] & 0x80) bits |= ~UINT64_C(0) << 8 * length;
  return push_int(p, PICKLE_INT, (int64_t)bits);
}

static weir_status push_float(pickle *p)
{
  const unsigned char *b = NULL;
  uint64_t bits = 0;
  pickle_value *v;
  TRY(take_pickled_bytes(p, &b, sizeof bits));
  TRY(push_new(p, &v, PICKLE_FLOAT));
  for (size_t i = 0; i < sizeof bits; i++) /* most significant first */
    bits = bits << 8 | b[i];
  memcpy(&v->f, &bits, sizeof bits);
  return WEIR_OK;
}

/* ---- containers ------------------------------------------------------------------------------ */

static weir_status pop_mark(pickle *p, size_t *at)
{
  if (!p->marks) return wrong_pickle(p, "a mark is missing");
  *at = p->mark[--p->marks];
  return WEIR_OK;
}

static weir_status make_tuple(pickle *p, size_t from)
{
  pickle_value *v;
  weir_status st = new_value(p, &v, PICKLE_TUPLE);
  if (!st) st = move_items(p, v, from);
  return st ? st : push_value(p, v);
}

static weir_status make_short_tuple(pickle *p, size_t count)
{
  if (p->depth - floor_of_stack(p) < count) return wrong_pickle(p, "a tuple's values are missing");
  return make_tuple(p, p->depth - count);
}

static weir_status make_marked_tuple(pickle *p)
{
  size_t from = 0;
  weir_status st = pop_mark(p, &from);
  return st ? st : make_tuple(p, from);
}

/* What is above `from` goes into the container right below. */
static weir_status add_items(pickle *p, size_t from, enum pickle_kind kind)
{
  pickle_value *to = from > floor_of_stack(p) ? p->stack[from - 1] : NULL;
  if (!to || (to->kind != kind && to->kind != PICKLE_UNKNOWN))
    return wrong_pickle(p, kind == PICKLE_DICT ? "a dict is missing" : "a list is missing");
  if (kind == PICKLE_DICT && (p->depth - from) % 2) return wrong_pickle(p, "a key has no value");
  if (to->kind == PICKLE_UNKNOWN && to->holds && to->holds != kind) {
    p->depth = from; /* both a list and a dict: the first is kept */
    return WEIR_OK;
  }
  to->holds = (uint8_t)kind;
  return move_items(p, to, from);
}

static weir_status drop_marked(pickle *p)
{
  size_t from = 0;
  weir_status st = pop_mark(p, &from);
  if (!st) p->depth = from;
  return st;
}

static weir_status add_to_set(pickle *p)
{
  TRY(drop_marked(p));
  int kind = p->depth > floor_of_stack(p) ? p->stack[p->depth - 1]->kind : PICKLE_NONE;
  return kind == PICKLE_SET || kind == PICKLE_UNKNOWN ? WEIR_OK
                                                      : wrong_pickle(p, "a set is missing");
}

static weir_status make_frozen_set(pickle *p)
{
  pickle_value *v;
  weir_status st = drop_marked(p);
  return st ? st : push_new(p, &v, PICKLE_SET);
}

static weir_status push_again(pickle *p)
{
  if (p->depth <= floor_of_stack(p)) return wrong_pickle(p, "nothing is there to be doubled");
  return push_value(p, p->stack[p->depth - 1]);
}

static weir_status add_marked(pickle *p, enum pickle_kind kind)
{
  size_t from = 0;
  weir_status st = pop_mark(p, &from);
  return st ? st : add_items(p, from, kind);
}

static weir_status add_last(pickle *p, enum pickle_kind kind)
{
  size_t count = kind == PICKLE_DICT ? 2 : 1;
  if (p->depth - floor_of_stack(p) < count) return wrong_pickle(p, "an item is missing");
  return add_items(p, p->depth - count, kind);
}

/* ---- the caller's ---------------------------------------------------------------------------- */

static weir_status push_global(pickle *p, const char *module, const char *name)
{
  pickle_value *v;
  weir_status st = new_value(p, &v, PICKLE_NONE);
  if (!st) st = p->calls.global(p->calls.user, module, name, v);
  return st ? st : push_value(p, v);
}

/* A line of the pickle. */
static weir_status take_pickled_line(pickle *p, char out[NAME_BYTES])
{
  const unsigned char *end = memchr(p->at, '\n', (size_t)(p->end - p->at));
  if (!end || end - p->at >= NAME_BYTES) return wrong_pickle(p, "a name does not end");
  size_t n = (size_t)(end - p->at);
  memcpy(out, p->at, n);
  out[n] = 0;
  p->at = end + 1;
  return WEIR_OK;
}

static weir_status global_by_lines(pickle *p)
{
  char module[NAME_BYTES], name[NAME_BYTES];
  weir_status st = take_pickled_line(p, module);
  if (!st) st = take_pickled_line(p, name);
  return st ? st : push_global(p, module, name);
}

static weir_status global_by_stack(pickle *p)
{
  char text[2][NAME_BYTES];
  for (int i = 1; i >= 0; i--) {
    const pickle_value *v = pop_value(p);
    if (!v || v->kind != PICKLE_TEXT || v->count >= NAME_BYTES)
      return wrong_pickle(p, "a name is missing");
    memcpy(text[i], v->text, v->count);
    text[i][v->count] = 0;
  }
  return push_global(p, text[0], text[1]);
}

static weir_status reduce(pickle *p)
{
  const pickle_value *args = pop_value(p), *call = args ? pop_value(p) : NULL;
  pickle_value *made, *out = NULL;
  bool unknown = call && call->kind == PICKLE_UNKNOWN;
  if (!call || (call->kind != PICKLE_GLOBAL && !unknown) || args->kind != PICKLE_TUPLE)
    return wrong_pickle(p, "what is called is no name of Python's, or has no arguments");
  weir_status st = new_value(p, &made, unknown ? PICKLE_UNKNOWN : PICKLE_NONE);
  if (unknown && !st) made->which = call->which;
  if (!unknown && !st) st = p->calls.call(p->calls.user, call, args, made, &out);
  return st ? st : push_value(p, out ? out : made);
}

/* With arguments by name, which are let be. */
static weir_status reduce_named(pickle *p)
{
  return pop_value(p) ? reduce(p) : wrong_pickle(p, "arguments are missing");
}

static weir_status refer(pickle *p)
{
  const pickle_value *id = pop_value(p);
  pickle_value *made;
  if (!id) return wrong_pickle(p, "a reference is missing");
  weir_status st = new_value(p, &made, PICKLE_NONE);
  if (!st) st = p->calls.refer(p->calls.user, id, made);
  return st ? st : push_value(p, made);
}

/* Attributes that a dict is to have in addition to its items (a state_dict's _metadata), and the
 * state of what is unknown: let be. */
static weir_status build_object(pickle *p)
{
  if (!pop_value(p) || p->depth <= floor_of_stack(p)) return wrong_pickle(p, "a state is missing");
  int kind = p->stack[p->depth - 1]->kind;
  if (kind == PICKLE_DICT || kind == PICKLE_UNKNOWN) return WEIR_OK;
  return fail_unsupported("%s: the pickle sets the state of what has none", p->calls.path);
}

/* ---- opcodes --------------------------------------------------------------------------------- */

static weir_status unknown_opcode(const pickle *p, unsigned op)
{
  if (op == 'i' || op == 'o')
    return fail_unsupported("%s: the pickle makes an object of a class", p->calls.path);
  return fail_unsupported("%s: pickle, byte %zu: opcode 0x%02x, which no tensor needs",
                          p->calls.path, (size_t)(p->at - p->start) - 1, op);
}

static weir_status do_number(pickle *p, unsigned op)
{
  uint64_t n = 0;
  weir_status st = WEIR_OK;
  switch (op) {
  case 'K': /* BININT1 */
    st = take_unsigned(p, &n, 1);
    return st ? st : push_int(p, PICKLE_INT, (int64_t)n);
  case 'M': /* BININT2 */
    st = take_unsigned(p, &n, 2);
    return st ? st : push_int(p, PICKLE_INT, (int64_t)n);
  case 'J': /* BININT */
    st = take_unsigned(p, &n, 4);
    return st ? st : push_int(p, PICKLE_INT, (int32_t)n);
  case 0x8a: /* LONG1 */
    return push_long(p, 1);
  case 0x8b: /* LONG4 */
    return push_long(p, 4);
  case 'G': /* BINFLOAT */
    return push_float(p);
  default:
    return unknown_opcode(p, op);
  }
}

static weir_status do_container(pickle *p, unsigned op)
{
  pickle_value *v;
  switch (op) {
  case ']': /* EMPTY_LIST */
    return push_new(p, &v, PICKLE_LIST);
  case '}': /* EMPTY_DICT */
    return push_new(p, &v, PICKLE_DICT);
  case ')': /* EMPTY_TUPLE */
    return push_new(p, &v, PICKLE_TUPLE);
  case 't': /* TUPLE */
    return make_marked_tuple(p);
  case 0x85: /* TUPLE1 */
  case 0x86:
  case 0x87:
    return make_short_tuple(p, op - 0x84);
  case 'a': /* APPEND */
    return add_last(p, PICKLE_LIST);
  case 'e': /* APPENDS */
    return add_marked(p, PICKLE_LIST);
  case 's': /* SETITEM */
    return add_last(p, PICKLE_DICT);
  case 'u': /* SETITEMS */
    return add_marked(p, PICKLE_DICT);
  case 0x8f: /* EMPTY_SET */
    return push_new(p, &v, PICKLE_SET);
  case 0x90: /* ADDITEMS */
    return add_to_set(p);
  case 0x91: /* FROZENSET */
    return make_frozen_set(p);
  default:
    return do_number(p, op);
  }
}

static weir_status do_memo(pickle *p, unsigned op)
{
  uint64_t n = 0;
  bool wide = op == 'r' || op == 'j';
  if (op == 0x94) return put_memo(p, p->memos); /* MEMOIZE */
  TRY(take_unsigned(p, &n, wide ? 4 : 1));
  return op == 'q' || op == 'r' ? put_memo(p, (size_t)n) : get_memo(p, (size_t)n);
}

/* What the caller knows more of. */
static weir_status do_call(pickle *p, unsigned op)
{
  switch (op) {
  case 'c':
    return global_by_lines(p);
  case 0x93: /* STACK_GLOBAL */
    return global_by_stack(p);
  case 'R':  /* REDUCE */
  case 0x81: /* NEWOBJ */
    return reduce(p);
  case 0x92: /* NEWOBJ_EX */
    return reduce_named(p);
  case 'b':
    return build_object(p);
  case 'Q':
    return refer(p);
  default:
    return do_container(p, op);
  }
}

static weir_status do_text(pickle *p, unsigned op)
{
  switch (op) {
  case 'X': /* BINUNICODE */
    return push_text(p, PICKLE_TEXT, 4);
  case 0x8c: /* SHORT_BINUNICODE */
  case 'U':  /* SHORT_BINSTRING: Python 2's text */
    return push_text(p, PICKLE_TEXT, 1);
  case 0x8d: /* BINUNICODE8 */
    return push_text(p, PICKLE_TEXT, 8);
  case 'B': /* BINBYTES */
    return push_text(p, PICKLE_BYTES, 4);
  case 'C': /* SHORT_BINBYTES */
    return push_text(p, PICKLE_BYTES, 1);
  case 0x8e: /* BINBYTES8 */
  case 0x96: /* BYTEARRAY8 */
    return push_text(p, PICKLE_BYTES, 8);
  default:
    return do_call(p, op);
  }
}

static weir_status do_opcode(pickle *p, unsigned op)
{
  uint64_t n;
  switch (op) {
  case 0x80: /* PROTO */
    return take_unsigned(p, &n, 1);
  case 0x95: /* FRAME */
    return take_unsigned(p, &n, 8);
  case '(': /* MARK */
    return push_mark(p);
  case '0': /* POP */
    return pop_value(p) ? WEIR_OK : wrong_pickle(p, "nothing is there to be taken off");
  case '1': /* POP_MARK */
    return drop_marked(p);
  case '2': /* DUP */
    return push_again(p);
  case 'N':
    return push_int(p, PICKLE_NONE, 0);
  case 0x88: /* NEWTRUE */
  case 0x89: /* NEWFALSE */
    return push_int(p, PICKLE_BOOL, op == 0x88);
  case 'q':
  case 'r':
  case 'h':
  case 'j':
  case 0x94:
    return do_memo(p, op);
  default:
    return do_text(p, op);
  }
}

weir_status pickle_read(pickle *p, const pickle_calls *calls, const void *bytes, size_t count,
                        pickle_value **root)
{
  const unsigned char *start = bytes;
  *p = (pickle){.calls = *calls, .start = start, .at = start, .end = start + count};
  *root = NULL;
  weir_status st = WEIR_OK;
  while (!st) {
    if (p->at == p->end) return wrong_pickle(p, "it does not stop");
    unsigned op = *p->at++;
    if (op == '.') break;
    st = do_opcode(p, op);
  }
  if (st) return st;
  if (p->depth != 1 || p->marks) return wrong_pickle(p, "it does not leave one value");
  *root = p->stack[0];
  return WEIR_OK;
}

static void end_value(const pickle *p, pickle_value *v)
{
  if (v->kind == PICKLE_TUPLE || v->kind == PICKLE_LIST || v->kind == PICKLE_DICT ||
      v->kind == PICKLE_UNKNOWN)
    free(v->item);
  else if (v->kind == PICKLE_OBJECT)
    p->calls.end(p->calls.user, v);
}

void pickle_free(pickle *p)
{
  while (p->chunk) {
    pickle_chunk *c = p->chunk;
    for (size_t i = 0; i < c->used; i++)
      end_value(p, &c->value[i]);
    p->chunk = c->before;
    free(c);
  }
  free(p->stack);
  free(p->mark);
  free(p->memo);
  *p = (pickle){.stack = NULL};
}

/* tape.h: what a recorded operation is, and what the parts of core/grad are to each other.
 *
 * A node is one recorded operation: its rule (how gradients of results become those of operands),
 * its arguments, an edge to the node of each operand that requires a gradient, and what the rule
 * needs of elements. A leaf's node has no rule: its gradient gathers in it. Edges count what they
 * point to, tensors count their node; nothing points the other way: results that a rule needs are
 * kept as aliases, tensors without a node.
 *
 * Words. edge: to one result of another node. meta: shape, dtype and device of an operand or
 * result. kept: elements that a rule needs; with the version they had. */
#ifndef WEIR_GRAD_TAPE_H
#define WEIR_GRAD_TAPE_H

#include <pthread.h>
#include <stdio.h>
#include "core/tensor/calc.h"
#include "core/tensor/record.h"

typedef struct grad_meta {
  weir_shape shape;
  weir_dtype dtype;
  weir_device device;
  bool turned; /* a matrix whose columns lie one after the other */
} grad_meta;

typedef struct grad_edge {
  grad_node *node; /* a count; NULL: no gradient is asked for */
  uint32_t output;
} grad_edge;

typedef struct grad_kept {
  weir_tensor *t;   /* a count; NULL: not kept */
  uint32_t version; /* of its storage */
} grad_kept;

typedef struct grad_hook {
  struct grad_hook *next;
  uint32_t output;
  uint64_t id;
  weir_grad_hook call;
  void *context;                  /* borrowed, unless: */
  void (*destroy)(void *context); /* ends it with the hook; NULL: nothing does */
} grad_hook;

typedef struct rule_run rule_run;

typedef struct grad_rule {
  const char *name;         /* "AddBackward0" */
  void (*run)(rule_run *k); /* NULL: operands have no gradient */
  uint16_t keeps[3];        /* for the gradient of operand i: KEEP_* */
  uint8_t complex;          /* whether it is one of complex numbers, too: rules.c */
} grad_rule;

/* Operands and results that are kept. */
enum {
  KEEP_A = 1,
  KEEP_B = 2,
  KEEP_C = 4,
  KEEP_D = 8,
  KEEP_OUT = 16,
  KEEP_OTHER = 32,
  KEEP_THIRD = 64,
  KEEP_OUTS = 4 /* where results begin, in bits */
};

struct grad_node {
  _Atomic uint32_t refs;
  bool kept_gone; /* what was kept has been given back */
  bool keeps;     /* something was */
  bool retains[RECORD_OUTS];
  const grad_rule *rule; /* NULL: a leaf */
  uint64_t sequence;     /* grows: operands' are smaller */
  int inputs, outputs;
  record r; /* without in and out */
  grad_meta meta[RECORD_OUTS];
  grad_meta *of;                  /* after the node: of the operands that are tensors */
  grad_edge *edge;                /* after the node, one an operand */
  grad_kept *kept;                /* after the node: operands, then results */
  uint32_t numbers;               /* bit i: operand i is none, or a number */
  weir_tensor *grad[RECORD_OUTS]; /* owned: of a leaf [0]; of results that retain it */
  grad_hook *hooks;               /* owned */
  grad_node *inner;               /* COPY_SLICES: a count: the operation on the part */
  struct grad_history *history;   /* COPY_SLICES: owned: for a memory that has none yet */
  grad_node *next;                /* while it is freed */
};

/* What a node of a view has after its own arguments: where the operand lies in memory that they
 * share. */
enum { VIEW_STRIDES = WEIR_MAX_DIMS, VIEW_OFFSET = 2 * WEIR_MAX_DIMS, VIEW_SHARES };
static inline bool is_view_node(const grad_node *n)
{
  return n->rule && n->r.kind >= RECORD_SHAPE && n->r.kind <= RECORD_DIAGONAL &&
         n->r.n[VIEW_SHARES];
}

/* ---- rules.c --------------------------------------------------------------------------------- */

/* The rule of an operation; NULL: it has no derivative; its run is NULL: results have none. */
const grad_rule *rule_of(const record *r);
/* Whether complex numbers are among its operands and result, and the rule is none of those. */
bool rule_lacks_complex(const grad_rule *rule, const record *r);

#define RULE(family, row, name, function, ...) void function(rule_run *k);
#define AGAIN(...)
#define NONE(...)
#include "core/grad/rules.def"
#undef RULE
#undef AGAIN
#undef NONE

static inline bool is_complex(const weir_tensor *t)
{
  return t && t->dtype == WEIR_COMPLEX64;
}
grad_meta meta_of(const weir_tensor *t);
weir_status node_new(grad_node **out, int inputs);
/* The node of an operation whose rule is known. */
weir_status node_of(grad_node **out, const record *r, const grad_rule *rule);
void node_release(grad_node *n);
static inline grad_node *node_retain(grad_node *n)
{
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  return n;
}
/* t is that result of n. */
void node_attach(weir_tensor *t, grad_node *n, int output);
/* Gives back what was kept. */
void node_forget(grad_node *n);
extern pthread_mutex_t grad_lock; /* over gradients and hooks of leaves */

/* weir_register_hook() of a context that is the hook's: destroy ends it, also where this fails. */
weir_status grad_hook_owned(weir_tensor *t, weir_grad_hook hook, void *context,
                            void (*destroy)(void *context));

/* ---- shared.c: changes in place of memory that tensors share --------------------------------- */

/* Whether a change in place of t is one of other tensors, too. */
bool memory_is_shared(const weir_tensor *t);
/* Before such a change; after it, where it was done. */
weir_status shared_change(grad_node **out, const record *r, const grad_rule *rule);
void shared_changed(grad_node *n, weir_tensor *self);
/* Whether it may be changed, as torch's views: it is to be, or, indirect, its base was. Errors:
 * EINVAL. */
weir_status check_created(const weir_tensor *t, bool indirect);
/* recorder's. */
weir_status history_refresh(weir_tensor *t);
void history_view_gone(weir_tensor *t);
void history_memory_gone(tensor_storage *s);
/* t's node is what its memory's history states. Errors: also EINVAL: t is one of several views, and
 * its base was changed. */
static inline weir_status node_current(const weir_tensor *t)
{
  if (t->created >= VIEW_OF_PARTS && t->node && t->seen != t->storage->version)
    return check_created(t, true);
  return t->storage->history ? history_refresh((weir_tensor *)t) : WEIR_OK;
}

/* ---- rule.c: what rules are made of ---------------------------------------------------------- */

struct rule_run {
  calc *c; /* borrowed: of this rule; after an error all that follows does nothing */
  const grad_node *n;
  const weir_tensor *g[RECORD_OUTS]; /* borrowed; NULL: that result has none */
  weir_tensor **out;                 /* one an operand, counted; NULL: none */
  const grad_node *as;               /* the node of its result, where it is not n; NULL: n */
  bool create_graph;
};

static inline bool wants_gradient(const rule_run *k, int i)
{
  return k->n->edge[i].node != NULL;
}
/* The gradient of operand i. */
void give(rule_run *k, int i, const weir_tensor *t);
/* A rule whose operand 0 has this expression as its gradient. */
#define GIVES(name, ...)                                                                           \
  void name##_back(rule_run *k)                                                                    \
  {                                                                                                \
    give(k, 0, __VA_ARGS__);                                                                       \
  }
/* The same of operands 0 and 1, each of which is asked for or not. */
#define GIVES_BOTH(name, first, second)                                                            \
  void name##_back(rule_run *k)                                                                    \
  {                                                                                                \
    if (wants_gradient(k, 0)) give(k, 0, first);                                                   \
    if (wants_gradient(k, 1)) give(k, 1, second);                                                  \
  }
/* The gradient of operand 1, which was written somewhere: in its shape, which may have more than
 * was read. */
void give_written(rule_run *k, const weir_tensor *t);
/* What was kept of operand i, of result i. Errors: EINVAL: it was changed, or given back. */
const weir_tensor *operand(rule_run *k, int i);
const weir_tensor *outcome(rule_run *k, int i);
static inline bool is_number(const rule_run *k, int i)
{
  return k->n->numbers >> i & 1;
}

/* The conjugate of complex numbers; of others t itself. */
const weir_tensor *c_conj(calc *c, const weir_tensor *t);
/* Operand i, which may have been a number: then one element of the gradient's dtype. */
const weir_tensor *operand_or_number(rule_run *k, int i);
/* t where condition, else 0. */
const weir_tensor *c_masked(calc *c, const weir_tensor *condition, const weir_tensor *t);
const weir_tensor *c_sign(calc *c, const weir_tensor *t);
const weir_tensor *c_sum_mask(calc *c, const weir_tensor *t, uint32_t mask, bool keepdim);
/* Zeros of that shape, dtype and device; the caller may change them. */
weir_tensor *zeros_of(rule_run *k, const grad_meta *like);
/* Sums t to a shape that broadcasts to its own. */
const weir_tensor *c_sum_to(calc *c, const weir_tensor *t, const weir_shape *shape);

#endif

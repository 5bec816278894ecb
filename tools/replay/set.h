/* set.h: an ordered set whose members hold their own node: what the modelled allocators keep their
 * free blocks in.
 *
 * A treap: a search tree by the caller's order, a heap by priorities that are drawn from a counter,
 * so a run is repeatable and no order of insertion is a bad one. The order must be total and must
 * not change for a member while it is in the set. */
#ifndef WEIR_TOOLS_REPLAY_SET_H
#define WEIR_TOOLS_REPLAY_SET_H

#include <stddef.h>
#include <stdint.h>

typedef struct rp_node {
  struct rp_node *left, *right; /* borrowed */
  uint64_t priority;            /* larger is nearer the root */
} rp_node;

/* Negative, 0, positive: a before, same as, after b. */
typedef int (*rp_order)(const rp_node *a, const rp_node *b);

typedef struct rp_set {
  rp_node *root;
  rp_order order;
  uint64_t draws; /* priorities drawn so far */
} rp_set;

void rp_set_add(rp_set *set, rp_node *node);    /* not in the set before */
void rp_set_remove(rp_set *set, rp_node *node); /* in the set before */

rp_node *rp_set_first(const rp_set *set);                      /* NULL: empty */
rp_node *rp_set_from(const rp_set *set, const rp_node *key);   /* first that is not before key */
rp_node *rp_set_after(const rp_set *set, const rp_node *key);  /* first that is after key */
rp_node *rp_set_before(const rp_set *set, const rp_node *key); /* last that is before key */

/* The struct a node is a field of. */
#define RP_HOLDER(node, type, field) ((type *)(void *)((char *)(node)-offsetof(type, field)))

#endif

/* set.c: see set.h. */
#include "tools/replay/set.h"

/* Mixes a counter into a number without a pattern (splitmix64's finaliser, as published). */
static uint64_t mix_counter(uint64_t n)
{
  n *= UINT64_C(0x9e3779b97f4a7c15);
  n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
  return n ^ n >> 31;
}

void rp_set_add(rp_set *set, rp_node *node)
{
  rp_node **link = &set->root;
  node->priority = mix_counter(++set->draws);
  while (*link && (*link)->priority >= node->priority)
    link = set->order(node, *link) < 0 ? &(*link)->left : &(*link)->right;
  /* The tree below falls into what is before and what is after the new node. */
  rp_node *rest = *link, **before = &node->left, **after = &node->right;
  *link = node;
  while (rest) {
    if (set->order(rest, node) < 0) {
      *before = rest;
      before = &rest->right;
      rest = rest->right;
    } else {
      *after = rest;
      after = &rest->left;
      rest = rest->left;
    }
  }
  *before = *after = NULL;
}

void rp_set_remove(rp_set *set, rp_node *node)
{
  rp_node **link = &set->root;
  while (*link != node)
    link = set->order(node, *link) < 0 ? &(*link)->left : &(*link)->right;
  rp_node *left = node->left, *right = node->right;
  while (left && right) {
    if (left->priority > right->priority) {
      *link = left;
      link = &left->right;
      left = left->right;
    } else {
      *link = right;
      link = &right->left;
      right = right->left;
    }
  }
  *link = left ? left : right;
}

rp_node *rp_set_first(const rp_set *set)
{
  rp_node *at = set->root;
  while (at && at->left)
    at = at->left;
  return at;
}

/* The first whose order against the key is at least `least`. */
static rp_node *leftmost_of(const rp_set *set, const rp_node *key, int least)
{
  rp_node *found = NULL;
  for (rp_node *at = set->root; at;) {
    int order = set->order(at, key);
    if ((order > 0) - (order < 0) >= least) {
      found = at;
      at = at->left;
    } else {
      at = at->right;
    }
  }
  return found;
}

rp_node *rp_set_from(const rp_set *set, const rp_node *key)
{
  return leftmost_of(set, key, 0);
}

rp_node *rp_set_after(const rp_set *set, const rp_node *key)
{
  return leftmost_of(set, key, 1);
}

rp_node *rp_set_before(const rp_set *set, const rp_node *key)
{
  rp_node *found = NULL;
  for (rp_node *at = set->root; at;) {
    if (set->order(at, key) < 0) {
      found = at;
      at = at->right;
    } else {
      at = at->left;
    }
  }
  return found;
}

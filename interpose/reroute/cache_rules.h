/* cache_rules.h: the user's rules (core/base/rules.h) as the handlers ask them.
 *
 * At start the rules become sets: each rule a bit, and for each stretch of sizes between two bounds
 * the rules that it fits. A call asks for the set of its size, and where a rule in it names a
 * module or a function, for the set of its call site, which is found out once. No stack is walked:
 * the caller is the one that the hooked function returns to. */
#ifndef WEIR_INTERPOSE_CACHE_RULES_H
#define WEIR_INTERPOSE_CACHE_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/rules.h"

typedef enum reroute_rule_kind {
  WEIR_RULES_ALLOC,
  WEIR_RULES_COPY,
  WEIR_RULE_KINDS
} reroute_rule_kind;

extern bool reroute_rules_have[WEIR_RULE_KINDS]; /* set at start: there is a rule of the kind */

void reroute_rules_start(const rule_list *rules);

/* What the first rule that fits demands; NONE: none does. */
rule_action reroute_rules_match(reroute_rule_kind kind, const void *site, uint64_t bytes);

static inline rule_action reroute_rules_action(reroute_rule_kind kind, const void *site,
                                               uint64_t bytes)
{
  return __builtin_expect(reroute_rules_have[kind], 0) ? reroute_rules_match(kind, site, bytes)
                                                       : WEIR_RULE_NONE;
}

/* Objects have gone, and addresses may mean others from now on. */
void reroute_rules_forget(void);

#endif

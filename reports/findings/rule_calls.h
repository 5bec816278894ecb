/* rule_calls.h: whether a trace has calls that rules could find, by their conditions on templates
 * ("-- calls:").
 *
 * Thousands of templates differ in threads, stacks and streams alone, of which no condition of
 * Weir's rules depends: these are asked in one statement about the few kinds of call that are
 * left. */
#ifndef WEIR_REPORTS_FINDINGS_RULE_CALLS_H
#define WEIR_REPORTS_FINDINGS_RULE_CALLS_H

#include "reports/events/events.h"
#include "reports/findings/rule.h"

typedef enum wr_rule_calls { WR_CALLS_UNKNOWN, WR_CALLS_NONE, WR_CALLS_SOME } wr_rule_calls;

/* Finds of each of Weir's rules whether a template meets its condition, into `calls`, by rule.
 * UNKNOWN, of all of them, where it cannot be asked so, and of a user's rules. */
void wr_rule_calls_find(const wr_events *events, const wr_rules *rules, wr_rule_calls *calls);

#endif

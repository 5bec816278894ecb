/* findings_shape.c: the members of findings, struct by struct, as shape.h describes them. */
#include "reports/findings/findings.h"
#include "reports/whole/shapes.h"

#define RULE(name) ONE_OF(name, wr_findings, rules.rule, rules.count)

#define OF wr_finding_caller
static const wr_member wr_finding_caller_members[] = {TEXT(function), MAYBE_TEXT(file),
                                                      NUMBER(line), SHARE(share), NUMBER(count)};
static const wr_shape finding_caller_shape = SHAPE(wr_finding_caller);
#undef OF

/* Lines of source are not kept: a trace may be given away, and they are quoted of the files. */
#define OF wr_finding_site
static const wr_member wr_finding_site_members[] = {TEXT(function),
                                                    MAYBE_TEXT(file),
                                                    NUMBER(line),
                                                    NUMBER(built),
                                                    APART(source),
                                                    NUMBERS(cost_ns, count),
                                                    SOME(caller, finding_caller_shape, callers),
                                                    NUMBER(more_callers)};
static const wr_shape finding_site_shape = SHAPE(wr_finding_site);
#undef OF

/* `fix` follows from the rule and the fix for the driver; `decides` is the rule's, or NULL. */
#define OF wr_finding
static const wr_member wr_finding_members[] = {RULE(rule),
                                               APART(fix),
                                               MAYBE_TEXT(driver_fix),
                                               MARK(decides),
                                               NATURAL_TO(certainty, WR_POSSIBLE),
                                               NUMBERS(cost_ns, later_ns),
                                               NUMBER_TO(least, 1),
                                               NUMBERS(added_ns, added_later_ns),
                                               NUMBER_TO(spread, 1),
                                               NUMBERS(low_ns, high_ns),
                                               NUMBER(made),
                                               UP_TO(under, wr_findings, count),
                                               SOME_FILLED(site, finding_site_shape, sites, 1),
                                               NUMBER(more_sites),
                                               MAYBE_TEXT(range),
                                               NUMBER(device),
                                               SOME(kernel, wr_text_shape, kernels),
                                               NUMBER(more_kernels)};
static const wr_shape finding_shape = SHAPE(wr_finding);
#undef OF

#define OF wr_small_finding
static const wr_member wr_small_finding_members[] = {
    RULE(rule),   TEXT(function),          MAYBE_TEXT(file),
    NUMBER(line), NUMBERS(cost_ns, count), NUMBER_TO(several, 1)};
static const wr_shape small_finding_shape = SHAPE(wr_small_finding);
#undef OF

#define OF wr_unjudged_rule
static const wr_member wr_unjudged_rule_members[] = {RULE(rule), TEXT(why)};
static const wr_shape unjudged_rule_shape = SHAPE(wr_unjudged_rule);
#undef OF

#define OF wr_findings
static const wr_member wr_findings_members[] = {
    APART(rules),
    GROWING(finding, finding_shape, count, capacity),
    GROWING(removed, finding_shape, removed_count, removed_capacity),
    GROWING(unjudged, unjudged_rule_shape, unjudged_count, unjudged_capacity),
    APART(late),
    GROWING(small, small_finding_shape, small_count, small_capacity),
    NUMBERS(saving_ns, preempted),
    NUMBER_TO(interpreters, 1),
    APART(unavailable),
    APART(min)};
const wr_shape wr_findings_shape = SHAPE(wr_findings);
#undef OF

/* found.h: what weir finds in runs of waster (tests/victims/findings), read from its JSON. */
#ifndef WEIR_TESTS_FINDINGS_FOUND_H
#define WEIR_TESTS_FINDINGS_FOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A build without libxxhash's header hashes nothing (interpose/rules.mk). */
#if __has_include(<xxhash.h>)
enum { FOUND_CAN_HASH = 1 };
#else
enum { FOUND_CAN_HASH = 0 };
#endif

enum { FOUND_IDS = 96 };

/* The ids of all wastes, and the options of weir run that each needs; how many there are. What needs
 * no hashes is run without: its buffers hold what is at hand, and that is a waste of its own. */
int found_list(char ids[FOUND_IDS][64], char options[FOUND_IDS][64]);

/* Whether line `n` of a file of source says "WASTE ID". */
bool found_says_waste(const char *file, long n, const char *id);

/* A run takes long and little work: all of a suite are made side by side, before its first test,
 * in a folder of their own (enter_scratch()). Each is begun with found_begin(), any number of
 * found_run(), and found_make(), which leaves NAME.db, and its findings of any cost in
 * NAME.json. */
FILE *found_begin(void);
/* `words` are waster's, `options` those of weir run. */
void found_run(FILE *runs, const char *name, const char *words, const char *options);
void found_make(FILE *runs);

/* Returns the findings in NAME.json (new). */
json_t *found_read(const char *name);

/* Returns the first finding of a rule (borrowed); NULL: there is none. */
const json_t *found_of(const json_t *all, const char *id);

/* Returns members of a finding (borrowed). */
const char *found_text(const json_t *finding, const char *member);
long long found_number(const json_t *finding, const char *member);

/* Goes over the findings of a run. */
#define FOUND_EACH(all, i, finding) json_array_foreach(json_object_get(all, "findings"), i, finding)

#endif

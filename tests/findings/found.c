/* found.c: runs of waster side by side, and what is found in them. */
#include "tests/findings/found.h"

#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

int found_list(char ids[FOUND_IDS][64], char options[FOUND_IDS][64])
{
  int count = 0;
  char line[64], command[8192]; /* the runtime may be nowhere but next to the software device */
  int n = snprintf(command, sizeof command, "LD_LIBRARY_PATH='%s' ", built("lib/sim"));
  (void)snprintf(command + n, sizeof command - (size_t)n, "'%s' list",
                 built("tests/findings/waster"));
  FILE *f = popen(command, "r");
  for (; f && count < FOUND_IDS && fgets(line, sizeof line, f); count++) {
    size_t end = strcspn(line, " \n");
    (void)snprintf(ids[count], 64, "%.*s", (int)end, line);
    const char *own = strstr(line, "--hash") ? "" : " --hash=off";
    (void)snprintf(options[count], 64, "%.*s%s", (int)strcspn(line + end, "\n"), line + end, own);
  }
  if (f) (void)pclose(f);
  return count;
}

bool found_says_waste(const char *file, long n, const char *id)
{
  char line[512] = "", mark[96], path[1024];
  (void)snprintf(path, sizeof path, "%s/%s", *file == '/' ? "" : getenv("WEIR_SOURCE"), file);
  FILE *f = fopen(path, "r");
  (void)snprintf(mark, sizeof mark, "WASTE %s ", id);
  while (f && n-- > 0 && fgets(line, sizeof line, f))
    ;
  if (f) (void)fclose(f);
  return n < 0 && strstr(line, mark);
}

FILE *found_begin(void)
{
  enter_scratch();
  FILE *runs = fopen("runs", "w");
  ck_assert_ptr_nonnull(runs);
  return runs;
}

void found_run(FILE *runs, const char *name, const char *words, const char *options)
{
  ck_assert_int_gt(fprintf(runs, "%s %s %s\n", name, words, options), 0);
}

void found_make(FILE *runs)
{
  ck_assert_int_eq(fclose(runs), 0);
  sh_status(0,
            "xargs -P 6 -L 1 sh -c 'first=$1 second=$2; shift 2; $WEIR run --force -o $0.db \"$@\""
            " -- ${WASTER:-$BUILD/tests/findings/waster} $first $second && $WEIR report findings"
            " --format json --min-cost 0ns $0.db >$0.json' <runs");
}

json_t *found_read(const char *name)
{
  json_error_t e;
  char path[128];
  (void)snprintf(path, sizeof path, "%s.json", name);
  json_t *o = json_load_file(path, 0, &e);
  ck_assert_msg(o != NULL, "%s: %s", path, e.text);
  ck_assert_str_eq(json_string_value(json_object_get(o, "schema")), "weir-report/2");
  return o;
}

const char *found_text(const json_t *finding, const char *member)
{
  return json_string_value(json_object_get(finding, member));
}

long long found_number(const json_t *finding, const char *member)
{
  return json_integer_value(json_object_get(finding, member));
}

const json_t *found_of(const json_t *all, const char *id)
{
  const json_t *f;
  size_t i;
  FOUND_EACH(all, i, f)
  {
    if (!strcmp(found_text(f, "id"), id)) return f;
  }
  return NULL;
}

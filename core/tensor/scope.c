/* scope.c: see core/weir/scope.h.
 *
 * Open scopes are a list from the innermost outwards, in the stacks of the functions that opened
 * them; the thread knows the innermost. What is kept is a count of its own in addition to the
 * scope's, so that keeping looks for nothing. The first failure's sentence is copied: calls that
 * fail after it, and releasing, may word others. */
#include <stdlib.h>
#include <string.h>
#include "core/tensor/tensor.h"

enum { ITEMS_HERE = sizeof((weir_scope *)0)->here / sizeof(weir_scope_item) };

static __thread weir_scope *innermost_scope; /* borrowed; NULL: none is open */

void weir_scope_enter(weir_scope *out, weir_status *status)
{
  if (!out) return;
  out->todo = true;
  out->around = innermost_scope;
  out->status = status;
  out->failed = WEIR_OK;
  out->said = NULL;
  out->item = out->here;
  out->count = 0;
  out->room = ITEMS_HERE;
  if (status) *status = WEIR_OK;
  innermost_scope = out;
}

/* What is kept goes to its place, or is released with the rest. */
static void end_items(weir_scope *s)
{
  for (size_t i = s->count; i--;) {
    weir_scope_item *item = &s->item[i];
    if (item->out && !s->failed)
      *item->out = item->t;
    else
      weir_tensor_release(item->t);
  }
  if (s->item != s->here) free(s->item);
}

void weir_scope_leave(weir_scope *scope)
{
  if (!scope || scope != innermost_scope) return;
  innermost_scope = scope->around;
  end_items(scope);
  if (scope->failed && scope->said) (void)weir_fail(scope->failed, "%s", scope->said);
  if (scope->status) *scope->status = scope->failed;
  free(scope->said);
}

bool weir_scope_ok(void)
{
  return innermost_scope && !innermost_scope->failed;
}

weir_status weir_scope_check(weir_status st)
{
  weir_scope *s = innermost_scope;
  if (!st || !s || s->failed) return st;
  s->failed = st;
  s->said = strdup(weir_error_message()); /* NULL: the sentence is the last one then */
  return st;
}

static weir_status add_item(weir_scope *s, weir_tensor *t, weir_tensor **out)
{
  if (s->count == s->room) {
    size_t room = s->room * 2;
    weir_scope_item *more = malloc(room * sizeof *more);
    if (!more) return weir_scope_check(fail_memory("a scope of %zu", room));
    memcpy(more, s->item, s->count * sizeof *more);
    if (s->item != s->here) free(s->item);
    s->item = more;
    s->room = room;
  }
  s->item[s->count++] = (weir_scope_item){t, out};
  return WEIR_OK;
}

static weir_status no_scope(void)
{
  return fail_invalid("no WEIR_SCOPE is open in this thread");
}

weir_tensor *weir_scope_take(weir_tensor *t)
{
  weir_scope *s = innermost_scope;
  if (!s) (void)no_scope();
  if (t && s && !s->failed && !add_item(s, t, NULL)) return t;
  weir_tensor_release(t);
  return NULL;
}

weir_tensor *weir_scope_made(weir_tensor **made, weir_status st)
{
  if (!made) return NULL;
  weir_tensor *t = *made;
  *made = NULL;
  (void)weir_scope_check(st);
  return weir_scope_take(t);
}

weir_status weir_keep(weir_tensor **out, weir_tensor *t)
{
  weir_scope *s = innermost_scope;
  if (out) *out = NULL;
  if (s && s->failed) return s->failed;
  if (!out || !t) return weir_scope_check(fail_null(__func__, out ? "t" : "out"));
  if (!s) return no_scope();
  weir_status st = add_item(s, weir_tensor_retain(t), out);
  if (st) weir_tensor_release(t);
  return st;
}

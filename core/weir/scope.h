/* scope.h: expressions in one line: what is made within a block is released at its end. Included by
 * weir.h.
 *
 *   weir_status st;
 *   WEIR_SCOPE(st) {
 *     weir_tensor *h = weir_expr(relu, weir_expr(linear, x, w1, b1));
 *     weir_keep(out, weir_expr(softmax, weir_expr(linear, h, w2, b2), -1));
 *   }
 *   return st;
 *
 * weir_expr(relu, a) is weir_relu(&made, a), and has `made` as its value: the scope's, so that it
 * can be an argument of another. Nothing is tested on the way: the first call that fails is the
 * scope's failure, nothing more is called until the block ends, and st and weir_error_message() are
 * that failure's then. Calls that are not written this way are as everywhere: what they make is the
 * caller's, and costs nothing more.
 *
 * A scope is the thread's: it nests, and functions called within may have their own. */
#ifndef WEIR_SCOPE_H
#define WEIR_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/status.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a scope releases, or gives out. */
typedef struct weir_scope_item {
  weir_tensor *t;    /* a count */
  weir_tensor **out; /* NULL: released at the end */
} weir_scope_item;

/* One that is open. All fields are Weir's own. */
typedef struct weir_scope {
  bool todo;                 /* the macro's loop has yet to run */
  struct weir_scope *around; /* borrowed: the one that was open before */
  weir_status *status;       /* borrowed: gets `failed` at the end; NULL: not asked for */
  weir_status failed;        /* the first failure */
  char *said;                /* owned: its sentence */
  weir_scope_item *item;     /* `here`, or owned */
  size_t count, room;
  weir_scope_item here[16];
} weir_scope;

/* Opens a scope for the thread, and closes the latest: what WEIR_SCOPE does. status (may be NULL)
 * is borrowed until it is closed, and WEIR_OK until then. */
WEIR_PUBLIC void weir_scope_enter(weir_scope *out, weir_status *status);
WEIR_PUBLIC void weir_scope_leave(weir_scope *scope);
/* Whether a scope is open and nothing has failed in it. */
WEIR_PUBLIC bool weir_scope_ok(void);
/* `st`, if it is a failure, becomes the scope's unless it has one. Returns st. */
WEIR_PUBLIC weir_status weir_scope_check(weir_status st);
/* t (stolen) becomes the scope's. Returns t, borrowed until the scope ends; NULL where the scope
 * has failed, or none is open. */
WEIR_PUBLIC weir_tensor *weir_scope_take(weir_tensor *t);
/* weir_scope_take() of what a call that returned `st` made: what weir_call() does. */
WEIR_PUBLIC weir_tensor *weir_scope_made(weir_tensor **made, weir_status st);
/* At the end of the scope *out is t, with a count of the caller's, if nothing has failed, else
 * NULL; until then it is NULL. Errors: EINVAL (t is NULL, no scope is open), ENOMEM: the scope's,
 * too. */
WEIR_PUBLIC weir_status weir_keep(weir_tensor **out, weir_tensor *t);

#define WEIR_SCOPE_JOIN_(a, b)    a##b
#define WEIR_SCOPE_NAME_(line)    WEIR_SCOPE_JOIN_(weir_scope_at_, line)
#define WEIR_SCOPE_ENTERED_(line) WEIR_SCOPE_JOIN_(weir_scope_entered_at_, line)
#define WEIR_SCOPE_LOOP_(name, entered, st)                                                        \
  for (weir_scope name __attribute__((cleanup(weir_scope_leave))),                                 \
       *entered = (weir_scope_enter(&name, &(st)), &name);                                         \
       (entered)->todo; (entered)->todo = false)

/* WEIR_SCOPE(st) { ... }: however the block is left (its end, break, return, goto), what is the
 * scope's is released; st, a weir_status, is WEIR_OK or the first failure. */
#define WEIR_SCOPE(st)                                                                             \
  WEIR_SCOPE_LOOP_(WEIR_SCOPE_NAME_(__LINE__), WEIR_SCOPE_ENTERED_(__LINE__), st)

#define WEIR_CALL_NAMED_(n, function, ...)                                                         \
  __extension__({                                                                                  \
    weir_tensor *weir_made_##n = NULL;                                                             \
    weir_status weir_said_##n =                                                                    \
        weir_scope_ok() ? (function)(&weir_made_##n, __VA_ARGS__) : WEIR_EINVAL;                   \
    weir_scope_made(&weir_made_##n, weir_said_##n);                                                \
  })
#define WEIR_CALL_(n, ...) WEIR_CALL_NAMED_(n, __VA_ARGS__)

/* The tensor that function(&made, ...) makes, the scope's; NULL where anything has failed. */
#define weir_call(...) WEIR_CALL_(__COUNTER__, __VA_ARGS__)
/* weir_call(weir_NAME, ...). */
#define weir_expr(name, ...) WEIR_CALL_(__COUNTER__, weir_##name, __VA_ARGS__)
/* A call that makes no tensor, within a scope: weir_do(weir_add_(a, b)). It is not made where
 * something has failed; its status is the scope's, too. */
#define weir_do(call) (weir_scope_ok() ? weir_scope_check(call) : WEIR_EINVAL)

#ifdef __cplusplus
}
#endif

#endif

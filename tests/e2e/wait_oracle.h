/* wait_oracle.h: which waits have nothing to wait for, by CUDA's documentation alone.
 *
 * A second account, which shares nothing with Weir's: a graph of what was queued. A *node* is an
 * action in a stream: work, or a mark (an event recorded, a stream made to wait). It has an edge to
 * each node that the documentation makes it wait for; a *weak* edge where it leaves open whether it
 * does. What a wait is for is all that can be reached from its nodes. What it has said to be
 * complete is what can be reached without weak edges. */
#ifndef WEIR_TESTS_E2E_WAIT_ORACLE_H
#define WEIR_TESTS_E2E_WAIT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

enum { ORACLE_STREAMS = 256, ORACLE_NODES = 4096, ORACLE_EDGES = 65536, NO_NODE = -1 };

typedef enum stream_sort { LEGACY, BLOCKING, NON_BLOCKING } stream_sort;

typedef struct oracle_stream {
  int context;
  stream_sort sort;
  int last;      /* node, or NO_NODE */
  void *held;    /* handle of the stream while its work is held back; NULL: it runs */
  int held_from; /* node: its work before that may run */
} oracle_stream;

/* What a wait is for. */
typedef struct oracle_answer {
  int works, streams;
  long bytes;
} oracle_answer;

void oracle_reset(void);
int oracle_stream_new(int context, stream_sort sort);
oracle_stream *oracle_stream_at(int stream);
void oracle_hold(int stream, void *handle); /* what comes now */

/* A new action; `weak`: it may be none. `bytes` -1: a mark, no work. `event`: node that it waits
 * for besides, or NO_NODE. */
int oracle_act(int stream, long bytes, int event, bool weak);

/* Begins a question: what is reached from the nodes that are named next. */
void oracle_ask(void);
void oracle_ask_node(int node, bool weak);
void oracle_ask_stream(int stream);
void oracle_ask_context(int context);

oracle_answer oracle_pending(void); /* what of it is not known to be complete */
int oracle_next_held(void);         /* a stream that holds some of it back, -1: none */
bool oracle_is_held(void);          /* surely some of it is held back */
void oracle_complete(void);         /* all that is surely of it is complete */

#endif

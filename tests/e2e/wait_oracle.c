/* wait_oracle.c: see wait_oracle.h. The documents are the CUDA runtime and driver manuals: "Stream
 * synchronization behavior", "API synchronization behavior", and the pages of the functions. */
#include "tests/e2e/wait_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
  int stream;
  long bytes; /* of work; -1: a mark */
  bool complete;
  int first_edge, edges;
} node;

typedef struct edge {
  int to;
  bool weak;
} edge;

enum { UNREACHED, WEAKLY, SURELY };

static oracle_stream streams[ORACLE_STREAMS];
static node nodes[ORACLE_NODES];
static edge edges[ORACLE_EDGES];
static int stream_count, node_count, edge_count;
static char reached[ORACLE_NODES];

static void need_room(int count, int most)
{
  if (count < most) return;
  (void)fprintf(stderr, "the oracle is too small\n");
  exit(1);
}

void oracle_reset(void)
{
  stream_count = node_count = edge_count = 0;
}

int oracle_stream_new(int context, stream_sort sort)
{
  need_room(stream_count, ORACLE_STREAMS);
  streams[stream_count] = (oracle_stream){context, sort, NO_NODE, NULL, 0};
  return stream_count++;
}

oracle_stream *oracle_stream_at(int stream)
{
  return &streams[stream];
}

void oracle_hold(int stream, void *handle)
{
  streams[stream].held = handle;
  streams[stream].held_from = node_count;
}

static void add_edge(node *from, int to, bool weak)
{
  if (to == NO_NODE) return;
  need_room(edge_count, ORACLE_EDGES);
  edges[edge_count++] = (edge){to, weak};
  from->edges++;
}

/* "When an action is taken in the legacy stream ..., the legacy stream first waits on all blocking
 * streams, the action is queued in the legacy stream, and then all blocking streams wait on the
 * legacy stream." */
static void add_default_edges(node *n, int stream, bool weak)
{
  const oracle_stream *s = &streams[stream];
  if (s->sort == NON_BLOCKING) return;
  for (int i = 0; i < stream_count; i++) {
    bool other_side = s->sort == LEGACY ? streams[i].sort == BLOCKING : streams[i].sort == LEGACY;
    if (other_side && streams[i].context == s->context) add_edge(n, streams[i].last, weak);
  }
}

int oracle_act(int stream, long bytes, int event, bool weak)
{
  need_room(node_count, ORACLE_NODES);
  node *n = &nodes[node_count];
  *n = (node){.stream = stream, .bytes = bytes, .first_edge = edge_count};
  add_edge(n, streams[stream].last, false);
  add_default_edges(n, stream, weak);
  add_edge(n, event, false);
  streams[stream].last = node_count;
  return node_count++;
}

/* ---- questions ------------------------------------------------------------------------------- */

void oracle_ask(void)
{
  memset(reached, UNREACHED, sizeof reached);
}

void oracle_ask_node(int at, bool weak)
{
  char how = weak ? WEAKLY : SURELY;
  if (at != NO_NODE && reached[at] < how) reached[at] = how;
}

/* What a stream's own actions do not carry, a wait for it may be for all the same: a blocking
 * stream's for the legacy stream, and the other way round. */
void oracle_ask_stream(int stream)
{
  const oracle_stream *s = &streams[stream];
  oracle_ask_node(s->last, false);
  if (s->sort == NON_BLOCKING) return;
  for (int i = 0; i < stream_count; i++) {
    bool other_side = s->sort == LEGACY ? streams[i].sort == BLOCKING : streams[i].sort == LEGACY;
    if (other_side && streams[i].context == s->context) oracle_ask_node(streams[i].last, true);
  }
}

void oracle_ask_context(int context)
{
  for (int i = 0; i < stream_count; i++)
    if (streams[i].context == context) oracle_ask_node(streams[i].last, false);
}

/* Edges lead to earlier nodes only. */
static void follow_edges(void)
{
  for (int i = node_count - 1; i >= 0; i--) {
    if (!reached[i]) continue;
    for (int k = 0; k < nodes[i].edges; k++) {
      const edge *e = &edges[nodes[i].first_edge + k];
      oracle_ask_node(e->to, e->weak || reached[i] == WEAKLY);
    }
  }
}

oracle_answer oracle_pending(void)
{
  bool seen[ORACLE_STREAMS] = {false};
  oracle_answer a = {0};
  follow_edges();
  for (int i = 0; i < node_count; i++) {
    const node *n = &nodes[i];
    if (!reached[i] || n->complete || n->bytes < 0) continue;
    a.works++;
    a.bytes += n->bytes;
    a.streams += !seen[n->stream];
    seen[n->stream] = true;
  }
  return a;
}

static bool held_back(int at)
{
  const oracle_stream *s = &streams[nodes[at].stream];
  return s->held && at >= s->held_from;
}

int oracle_next_held(void)
{
  follow_edges();
  for (int i = 0; i < node_count; i++)
    if (reached[i] && held_back(i)) return nodes[i].stream;
  return -1;
}

bool oracle_is_held(void)
{
  follow_edges();
  for (int i = 0; i < node_count; i++)
    if (reached[i] == SURELY && held_back(i)) return true;
  return false;
}

void oracle_complete(void)
{
  follow_edges();
  for (int i = 0; i < node_count; i++)
    if (reached[i] == SURELY) nodes[i].complete = true;
}

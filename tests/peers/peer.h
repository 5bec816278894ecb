/* peer.h: what one real allocator is to the comparison: one struct of functions, one shared object.
 *
 * The program (peers.c) is C; a peer's client code may be C++, because that is the language of the
 * peer's headers, and is a shared object so that the peer's libraries stay out of the program's
 * way. A stream is a cudaStream_t of the current device, as void pointer; NULL is the default
 * stream. */
#ifndef WEIR_TESTS_PEERS_PEER_H
#define WEIR_TESTS_PEERS_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peer {
  const char *name;

  int (*open)(void); /* begins on device 0; 0, or -1 with a sentence on stderr */

  /* NULL: it did not fit. */
  void *(*alloc)(uint64_t bytes, void *stream);

  /* `bytes` as asked for; `used` is the stream that used the block last. */
  void (*free)(void *block, uint64_t bytes, void *stream, void *used);

  uint64_t (*peak)(void); /* bytes held of the device, the most since open() */
} peer;

/* The one symbol a peer's shared object exports. */
typedef const peer *(*peer_get)(void);
#ifdef __cplusplus
#define PEER_EXPORT extern "C" __attribute__((visibility("default"))) const peer *
#else
#define PEER_EXPORT __attribute__((visibility("default"))) const peer *
#endif
PEER_EXPORT weir_peer(void);

#ifdef __cplusplus
}
#endif

#endif

/* fake_cuda.h: what a test tells a fake library, and asks it. Found by dlsym as "fake". */
#ifndef WEIR_TESTS_FAKE_CUDA_H
#define WEIR_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_state {
  uint64_t calls;       /* of functions that are wrapped */
  uint64_t asked;       /* of questions the hooks ask for themselves */
  const char *last;     /* the function called last */
  int status;           /* what they return */
  void (*inside)(void); /* called from inside each, NULL: nothing */
  uint64_t give;        /* what out-pointers get on success */
  size_t pitch;
  size_t free, total;                    /* what cuMemGetInfo answers; total 0: it is not told */
  uint64_t graphs_reserved;              /* by graphs, half of it in use */
  size_t range;                          /* bytes of what is asked for by cuMemGetAddressRange */
  uint64_t context;                      /* current context */
  int device;                            /* and its device */
  uint64_t ask_low, ask_high;            /* addresses the driver knows */
  int ask_type, ask_managed, ask_device; /* and what it says of them */
  uint64_t capturing;                    /* the stream that is captured */
  int active;                            /* primary context */
  const char *function_name;
  size_t param_bytes[8]; /* of the parameters of every kernel; 0: there are no more */
  int param_status;      /* what a question about one of them returns; 0: that it is there */
  uint64_t param_asks;   /* how often they were asked for */
  uint64_t registered;   /* the stub that a runtime knows the function of, which is `give` */
  int last_error;        /* of a runtime */
  void *(*resolve)(const char *name, int version, uint64_t flags);
} fake_state;

typedef struct fake_descriptor {
  size_t width, height, depth;
  int format;
  unsigned channels, flags;
} fake_descriptor;

/* Counts a call; what the function returns. Inside the fakes. */
int fake_answer(const char *name);

#endif

/* part.h: what the other folders have to do in the life of a process, and which process.c does not
 * know: each names its functions in a part. The linker gathers the parts, since the first call of a
 * program may come before any constructor of ours, which could register them.
 */
#ifndef WEIR_INTERPOSE_PART_H
#define WEIR_INTERPOSE_PART_H

typedef struct process_part { /* NULL: nothing to do */
  void (*start)(void);        /* once, before everything below; reads its options (settings.h) */
  void (*first_event)(void);  /* once, in the thread that records it: remarks for the trace */
  void (*context)(void);      /* a context was met for the first time, by a call in this thread */
  void (*thread_ends)(void);  /* of that thread; and when the process ends */
  void (*forked)(void);       /* in a child, before its first event */
  void (*unrecorded)(void);   /* nothing is recorded from here on */
  void (*exits)(void);        /* the process ends now, and no handler of its own runs */
  void (*execs)(void);        /* it becomes another program now, unless that fails */
  void (*leaves_out)(void);   /* from here on not all calls are recorded (recording.h) */
  void (*unloaded)(void);     /* objects have gone, and addresses may mean others from now on */
} process_part;

#define PROCESS_PART(part)                                                                         \
  static const process_part *const part##_entry __attribute__((used, section("process_parts"))) =  \
      &(part)

void process_parts_start(void);
void process_parts_first_event(void);
void process_parts_context(void);
void process_parts_thread_ends(void);
void process_parts_forked(void);
void process_parts_unrecorded(void);
void process_parts_exits(void);
void process_parts_execs(void);
void process_parts_leaves_out(void);
void process_parts_unloaded(void);

#endif

/* innocent_streams.c: innocent programs whose streams wait for events of others, and need to (innocent.c). All that keeps a copy
 * waiting here would be gained, if it could go on. */
#include "tests/victims/findings/waster.h"

enum { STEPS = 24, PART = 1 << 20, STAGES = 3 };

/* A stream, an event of it, and its memory. */
typedef struct stage {
  cudaStream_t stream;
  cudaEvent_t done;
  char *own, *host; /* host: page-locked */
} stage;

static void make_stages(stage s[], int count)
{
  for (int k = 0; k < count; k++) {
    CHECK(cudaStreamCreateWithFlags(&s[k].stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&s[k].done, cudaEventDisableTiming));
    s[k].own = device_memory(PART), s[k].host = pinned_memory(PART);
  }
  set_link("h2d:1G,d2h:1G,d2d:1G");
}

static void end_stages(stage s[], int count)
{
  CHECK(cudaDeviceSynchronize());
  for (int k = 0; k < count; k++) {
    CHECK(cudaStreamDestroy(s[k].stream));
    CHECK(cudaEventDestroy(s[k].done));
    CHECK(cudaFree(s[k].own));
    CHECK(cudaFreeHost(s[k].host));
  }
}

static void copy_up(const stage *s, char *to)
{
  CHECK(cudaMemcpyAsync(to, s->host, PART, cudaMemcpyHostToDevice, s->stream));
}

static void copy_back(const stage *s, const char *from)
{
  CHECK(cudaMemcpyAsync(s->host, from, PART, cudaMemcpyDeviceToHost, s->stream));
}

static void touch(const stage *s, char *p)
{
  launch(s->stream, (float *)(void *)p, 64);
}

static void record_done(const stage *s)
{
  CHECK(cudaEventRecord(s->done, s->stream));
}

static void wait_for(const stage *s, const stage *of)
{
  CHECK(cudaStreamWaitEvent(s->stream, of->done, 0));
}

/* Uploads, kernels and results of one buffer in turn, each in a stream of its own. */
void order_of_a_pipeline(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    wait_for(&s[0], &s[2]);
    copy_up(&s[0], s[0].own);
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    touch(&s[1], s[0].own);
    record_done(&s[1]);
    wait_for(&s[2], &s[1]);
    copy_back(&s[2], s[0].own);
    record_done(&s[2]);
  }
  end_stages(s, STAGES);
}

/* Two buffers: what is copied to one waits for the kernel that has used it, two steps before. */
void order_of_two_buffers(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    char *p = s[i % 2].own;
    wait_for(&s[0], &s[1]); /* of the last step's kernel, and so of the one before */
    copy_up(&s[0], p);
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    touch(&s[1], p);
    copy_back(&s[1], p);
    record_done(&s[1]);
  }
  end_stages(s, STAGES);
}

/* A cache gives memory of one stream to the next, once an event has been waited for. */
void order_of_a_cache(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    const stage *own = &s[i % STAGES], *last = &s[(i + STAGES - 1) % STAGES];
    if (i) wait_for(own, last);
    copy_up(own, s[0].own);
    touch(own, s[0].own);
    record_done(own);
  }
  end_stages(s, STAGES);
}

/* Each takes what its neighbour has, and adds to it. */
void order_of_a_ring(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int k = 0; k < STAGES; k++)
    record_done(&s[k]);
  for (int i = 0; i < STEPS; i++)
    for (int k = 0; k < STAGES; k++) {
      const stage *own = &s[k], *last = &s[(k + STAGES - 1) % STAGES];
      wait_for(own, last);
      CHECK(cudaMemcpyAsync(own->own, last->own, PART, cudaMemcpyDeviceToDevice, own->stream));
      touch(own, own->own);
      copy_back(own, own->own);
      record_done(own);
    }
  end_stages(s, STAGES);
}

/* Streams fork from one and join it: of its result alone the host knows that all is done. */
void order_of_a_join(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    touch(&s[0], s[0].own);
    record_done(&s[0]);
    for (int k = 1; k < STAGES; k++) {
      wait_for(&s[k], &s[0]);
      copy_up(&s[k], s[k].own);
      record_done(&s[k]);
    }
    for (int k = 1; k < STAGES; k++)
      wait_for(&s[0], &s[k]);
    copy_back(&s[0], s[0].own);
    CHECK(cudaStreamSynchronize(s[0].stream));
    for (int k = 1; k < STAGES; k++)
      s[k].host[i]++;
  }
  end_stages(s, STAGES);
}

static void take_note(void *number)
{
  ++*(int *)number;
}

/* A host function tells another part of the program that both are done. */
void order_of_a_host_function(void)
{
  static int noted;
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    copy_up(&s[0], s[0].own);
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    copy_back(&s[1], s[1].own);
    CHECK(cudaLaunchHostFunc(s[1].stream, take_note, &noted));
    CHECK(cudaDeviceSynchronize());
  }
  end_stages(s, STAGES);
}

/* The kernel of the second stream reaches what the first copies by a table of pointers. */
void order_of_a_table(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  CHECK(cudaMemcpy(s[2].own, &s[0].own, sizeof(s[0].own), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize()); /* cudaMemcpy() may return before the table is there */
  for (int i = 0; i < STEPS; i++) {
    copy_up(&s[0], s[0].own);
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    CHECK((cudaError_t)victim_follow_launch(s[1].stream, (float *const *)(void *)s[2].own, 64));
    copy_back(&s[1], s[1].own);
    CHECK(cudaDeviceSynchronize());
  }
  end_stages(s, STAGES);
}

/* Memory that is taken and given back in stream order. */
void order_of_a_pool(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    char *p;
    CHECK(cudaMallocAsync((void **)&p, PART, s[0].stream));
    copy_up(&s[0], p);
    CHECK(cudaFreeAsync(p, s[0].stream));
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    CHECK(cudaMallocAsync((void **)&p, PART, s[1].stream));
    touch(&s[1], p);
    copy_back(&s[1], p);
    CHECK(cudaFreeAsync(p, s[1].stream));
    CHECK(cudaDeviceSynchronize());
  }
  end_stages(s, STAGES);
}

/* At one line the order is needed in one step of four, and in the others not. */
void order_now_and_then(void)
{
  stage s[STAGES];
  make_stages(s, STAGES);
  for (int i = 0; i < STEPS; i++) {
    copy_up(&s[0], s[0].own);
    touch(&s[0], s[0].own);
    record_done(&s[0]);
    wait_for(&s[1], &s[0]);
    copy_back(&s[1], i % 4 ? s[1].own : s[0].own);
    CHECK(cudaDeviceSynchronize());
  }
  end_stages(s, STAGES);
}

/* Chunks in two streams, each of them by itself. */
void chunks_in_streams(void)
{
  stage s[2];
  make_stages(s, 2);
  for (int i = 0; i < STEPS; i++) {
    const stage *own = &s[i % 2];
    CHECK(cudaStreamSynchronize(own->stream));
    own->host[i]++;
    copy_up(own, own->own);
    touch(own, own->own);
    copy_back(own, own->own);
  }
  end_stages(s, 2);
}

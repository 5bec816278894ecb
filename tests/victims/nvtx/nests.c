/* nests.c: ranges in random nests, made by a seed, in several threads, with calls of cudaMalloc in
 * between; at the end it prints how many there were of each, by an account of its own.
 *
 * nests SEED THREADS STEPS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <nvtx3/nvToolsExt.h>

#define LONG_TEXT "a text that is longer than the words it is hashed by"

int cudaMalloc(void **pointer, size_t bytes);

enum { DOMAINS = 3, TEXTS = 6, DEEP = 100, MOST_THREADS = 16 };

static const char *const domain_names[DOMAINS] = {"", "alpha", "b\xc3\xa9ta"};
static const char *const texts[TEXTS] = {"one",        "gro\xc3\x9f",           "three words here",
                                         "registered", "wide \xf0\x9f\x8c\x8a", LONG_TEXT};
static nvtxDomainHandle_t domains[DOMAINS];
static nvtxStringHandle_t registered[DOMAINS];

typedef struct account {
  unsigned ranges[DOMAINS][TEXTS], spans[DOMAINS][TEXTS], marks[DOMAINS][TEXTS];
  unsigned calls[DOMAINS][TEXTS], left_open[DOMAINS][TEXTS], bare_calls;
} account;

typedef struct worker {
  pthread_t thread;
  unsigned seed, steps;
  account sum;
  struct {
    int domain, text;
  } open[DEEP];
  int depth;
} worker;

static unsigned next(unsigned *seed, unsigned below)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

/* Attributes that say text `text`, in one of the ways there are. */
static nvtxEventAttributes_t words(int domain, int text, char *buffer)
{
  nvtxEventAttributes_t a = {0};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.colorType = NVTX_COLOR_ARGB;
  a.color = 0xff000000u + (unsigned)text;
  a.category = (unsigned)domain + 1;
  a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  a.payload.ullValue = (unsigned long long)text * 1000;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = strcpy(buffer, texts[text]); /* the same buffer for all of them */
  if (text == 3) {
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = registered[domain];
  } else if (text == 4) {
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"wide \U0001f30a";
  }
  return a;
}

static void push_random(worker *w, int domain, int text, char *buffer)
{
  nvtxEventAttributes_t a = words(domain, text, buffer);
  if (w->depth == DEEP) return;
  if (domain == 0 && text == 4)
    nvtxRangePushW(L"wide \U0001f30a");
  else if (domain == 0 && text != 3)
    nvtxRangePushA(a.message.ascii);
  else if (domain == 0)
    nvtxRangePushEx(&a);
  else
    nvtxDomainRangePushEx(domains[domain], &a);
  w->open[w->depth].domain = domain;
  w->open[w->depth++].text = text;
  w->sum.ranges[domain][text]++;
}

/* Also of a domain that has none open. */
static void pop_random(worker *w, int domain)
{
  int i = w->depth - 1;
  if (domain)
    nvtxDomainRangePop(domains[domain]);
  else
    nvtxRangePop();
  while (i >= 0 && w->open[i].domain != domain)
    i--;
  if (i < 0) return;
  memmove(&w->open[i], &w->open[i + 1], (size_t)(w->depth - i - 1) * sizeof w->open[0]);
  w->depth--;
}

static void call_cuda(worker *w)
{
  void *p;
  cudaMalloc(&p, 256);
  if (w->depth)
    w->sum.calls[w->open[w->depth - 1].domain][w->open[w->depth - 1].text]++;
  else
    w->sum.bare_calls++;
}

static void span(worker *w, int domain, int text, char *buffer)
{
  nvtxEventAttributes_t a = words(domain, text, buffer);
  nvtxRangeId_t id;
  w->sum.spans[domain][text]++;
  if (domain) {
    id = nvtxDomainRangeStartEx(domains[domain], &a);
    nvtxDomainRangeEnd(domains[domain], id);
  } else {
    id = nvtxRangeStartEx(&a);
    nvtxRangeEnd(id);
  }
}

static void mark_random(worker *w, int domain, int text, char *buffer)
{
  nvtxEventAttributes_t a = words(domain, text, buffer);
  w->sum.marks[domain][text]++;
  if (domain)
    nvtxDomainMarkEx(domains[domain], &a);
  else
    nvtxMarkEx(&a);
}

static void *work(void *self)
{
  worker *w = self;
  char buffer[64];
  for (unsigned i = 0; i < w->steps; i++) {
    unsigned what = next(&w->seed, 10);
    int domain = (int)next(&w->seed, DOMAINS), text = (int)next(&w->seed, TEXTS);
    if (what < 3)
      push_random(w, domain, text, buffer);
    else if (what < 6)
      pop_random(w, domain);
    else if (what < 8)
      call_cuda(w);
    else if (what < 9)
      span(w, domain, text, buffer);
    else
      mark_random(w, domain, text, buffer);
  }
  while (w->depth--)
    w->sum.left_open[w->open[w->depth].domain][w->open[w->depth].text]++;
  return NULL;
}

static void print(const char *what, unsigned counts[MOST_THREADS][DOMAINS][TEXTS], unsigned threads)
{
  for (int d = 0; d < DOMAINS; d++)
    for (int t = 0; t < TEXTS; t++) {
      unsigned sum = 0;
      for (unsigned i = 0; i < threads; i++)
        sum += counts[i][d][t];
      if (sum) printf("%s %s:%s %u\n", what, domain_names[d], texts[t], sum);
    }
}

int main(int argc, char **argv)
{
  static worker workers[MOST_THREADS];
  static unsigned counts[5][MOST_THREADS][DOMAINS][TEXTS];
  unsigned bare = 0, threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  domains[1] = nvtxDomainCreateA(domain_names[1]);
  domains[2] = nvtxDomainCreateW(L"b\u00e9ta");
  for (int d = 0; d < DOMAINS; d++)
    registered[d] = nvtxDomainRegisterStringA(domains[d], texts[3]);
  nvtxNameCategoryA(1, "first");
  nvtxDomainNameCategoryW(domains[1], 2, L"zw\u00f6lf");
  for (unsigned i = 0; i < threads; i++) {
    workers[i].seed = (unsigned)atoi(argv[1]) * 31u + i;
    workers[i].steps = (unsigned)atoi(argv[3]);
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  }
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(workers[i].thread, NULL);
    memcpy(counts[0][i], workers[i].sum.ranges, sizeof counts[0][i]);
    memcpy(counts[1][i], workers[i].sum.spans, sizeof counts[0][i]);
    memcpy(counts[2][i], workers[i].sum.marks, sizeof counts[0][i]);
    memcpy(counts[3][i], workers[i].sum.calls, sizeof counts[0][i]);
    memcpy(counts[4][i], workers[i].sum.left_open, sizeof counts[0][i]);
    bare += workers[i].sum.bare_calls;
  }
  print("range", counts[0], threads);
  print("span", counts[1], threads);
  print("mark", counts[2], threads);
  print("call", counts[3], threads);
  print("open", counts[4], threads);
  if (bare) printf("call none %u\n", bare);
  return 0;
}

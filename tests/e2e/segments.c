/* segments.c: a caching allocator's segments, made in one of two ways, by one list of sizes.
 *
 *   segments malloc|expandable SEED
 *
 * malloc: a segment is a cudaMalloc. expandable: it is pages of physical memory, 2 MiB or 20 MiB
 * each, mapped into a range of addresses reserved once, and shrunk from its end, as PyTorch's
 * expandable_segments do. Sizes are whole pages, so that both take the same of the device. Each
 * segment is written and read by copies. At the end one is left; what it counted is printed:
 * peak, live, copies' bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/e2e/driver.h"

enum { SEGMENTS = 12, STEPS = 60, PAGES = 64 };
#define PAGE ((size_t)2 << 20)

typedef struct segment {
  CUdeviceptr at; /* 0: none */
  size_t bytes;
  CUmemGenericAllocationHandle page[PAGES]; /* expandable */
  size_t page_bytes;
} segment;

static segment segments[SEGMENTS];
static size_t live, peak, copied;
static uint64_t rng;
static char host[4096];

static unsigned draw_number(unsigned n)
{
  rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(rng >> 33) % n;
}

static CUmemAllocationProp on_device(void)
{
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
}

static void map_page(segment *s, size_t i)
{
  CUmemAllocationProp prop = on_device();
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = s->at + i * s->page_bytes;
  CHECK(cuMemCreate(&s->page[i], s->page_bytes, &prop, 0));
  CHECK(cuMemMap(at, s->page_bytes, 0, s->page[i], 0));
  CHECK(cuMemSetAccess(at, s->page_bytes, &access, 1));
}

static void open_segment(segment *s, int expandable, size_t pages, size_t page_bytes)
{
  s->bytes = pages * page_bytes;
  s->page_bytes = page_bytes;
  if (!expandable) {
    CHECK(cuMemAlloc(&s->at, s->bytes));
  } else {
    CHECK(cuMemAddressReserve(&s->at, PAGES * page_bytes, 0, 0, 0));
    for (size_t i = 0; i < pages; i++)
      map_page(s, i);
  }
  live += s->bytes;
  if (live > peak) peak = live;
}

static void close_segment(segment *s, int expandable)
{
  size_t pages = s->bytes / s->page_bytes;
  if (!expandable) {
    CHECK(cuMemFree(s->at));
  } else {
    for (size_t i = pages; i-- > 0;) {
      CHECK(cuMemUnmap(s->at + i * s->page_bytes, s->page_bytes));
      CHECK(cuMemRelease(s->page[i]));
    }
    CHECK(cuMemAddressFree(s->at, PAGES * s->page_bytes));
  }
  live -= s->bytes;
  *s = (segment){0};
}

static void use_segment(const segment *s)
{
  CUdeviceptr last = s->at + s->bytes - sizeof host;
  CHECK(cuMemcpyHtoD(last, host, sizeof host));
  CHECK(cuMemcpyDtoH(host, last, sizeof host));
  copied += sizeof host;
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  int expandable = strcmp(argv[1], "expandable") == 0;
  rng = strtoull(argv[2], NULL, 10);
  begin_on_device();
  for (int i = 0; i < STEPS; i++) {
    segment *s = &segments[draw_number(SEGMENTS)];
    size_t pages = 1 + draw_number(3), page = draw_number(2) ? PAGE : 10 * PAGE;
    if (s->at) close_segment(s, expandable);
    if (draw_number(4) || i == STEPS - 1) {
      open_segment(s, expandable, pages, page);
      use_segment(s);
    }
  }
  (void)printf("%zu %zu %zu\n", peak, live, copied);
  return 0;
}

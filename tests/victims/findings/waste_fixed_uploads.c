/* waste_fixed_uploads.c: as waste_fixed.c: of uploads of which a part would do. */
#include "tests/victims/findings/fixed.h"

enum { USED = BYTES / 10 * 4, APPENDED = 4096, ENTRY = 64, ENTRIES = 3, APART = 4096 };

/* Changes bytes all over it. */
static void work_on_bytes(char *p, size_t bytes, int time)
{
  for (size_t at = 0; at < bytes; at += APART)
    p[at + (size_t)time % APART]++;
}

/* A batch whose last six tenths are zeros; fixed, the others are copied alone. */
static void upload_padded(char *host, int fixed, int times)
{
  float *p = used_memory(BYTES);
  memset(host + USED, 0, BYTES - USED);
  begin_part();
  for (int i = 0; i < times; i++) {
    work_on_bytes(host, USED - APART, i);
    CHECK(cudaMemcpy(p, host, fixed ? USED : BYTES, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
}

void padded_upload(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  upload_padded(host, fixed, times);
  free(host);
}

void padded_pinned(int fixed, int times)
{
  char *host = pinned_memory(BYTES);
  for (int i = 0; i < USED; i++)
    host[i] = (char)(i * 2654435761u >> 13);
  upload_padded(host, fixed, times);
  CHECK(cudaFreeHost(host));
}

/* A history that grows, and goes to the device as a whole, or what is new of it. */
void grown_history(int fixed, int times)
{
  size_t most = BYTES + (size_t)times * APPENDED, has = BYTES;
  char *host = pageable_memory(most, 0);
  char *p = (char *)used_memory(most);
  CHECK(cudaMemcpy(p, host, has, cudaMemcpyHostToDevice));
  begin_part();
  for (int i = 0; i < times; i++, has += APPENDED) {
    if (fixed)
      CHECK(cudaMemcpy(p + has, host + has, APPENDED, cudaMemcpyHostToDevice));
    else
      CHECK(cudaMemcpy(p, host, has + APPENDED, cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
  free(host);
}

/* A table of which in each round some entries change; fixed, these are copied. */
static void change_table(int bytes, int fixed, int times)
{
  char *host = pageable_memory(bytes, 0), *p = (char *)used_memory(bytes);
  CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < ENTRIES; k++) {
      size_t at = (size_t)(i * 7919 + k * (bytes / 3) + k * 91) * ENTRY % bytes;
      host[at]++;
      if (fixed) CHECK(cudaMemcpy(p + at, host + at, ENTRY, cudaMemcpyHostToDevice));
    }
    if (!fixed) CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
  free(host);
}

void changed_table(int fixed, int times)
{
  change_table(BYTES, fixed, times);
}

/* Of which pieces are looked at. */
void changed_large(int fixed, int times)
{
  change_table(8 * BYTES, fixed, times);
}

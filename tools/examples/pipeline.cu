/* pipeline.cu: video frames through several streams: upload, grey, blur, download, all at once.
 *
 * usage: pipeline [FRAMES]
 *
 * Four slots, each a stream with pinned buffers and device buffers of its own. While one slot's
 * frame is uploaded, another's is computed and a third's is downloaded. The host fills a slot again
 * when the event after its last frame has passed. Every frame is compared with what the host
 * computes; all arithmetic is in integers, so they are equal to the bit.
 *
 * Well built, but for two things marked WASTE.
 */
#include <cstdint>
#include <vector>
#include "check.h"
#include "cuda/sim/weir_kernel.h"

enum { WIDTH = 480, HEIGHT = 270, SLOTS = 4, TAPS = 5, PIXELS = WIDTH * HEIGHT };

/* ---- the filter: one body for the kernels and the reference ---------------------------------- */

__host__ __device__ static inline uint8_t grey_of(const uint8_t *rgb)
{
  return (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8);
}

__host__ __device__ static inline int clamp(int v, int limit)
{
  return v < 0 ? 0 : v >= limit ? limit - 1 : v;
}

/* A weighted mean of TAPS pixels around `at`, `step` apart in the image and `room` of them in a
 * line. */
__host__ __device__ static inline uint8_t blur_at(const uint8_t *line, int at, int room, int step,
                                                  const int *weight)
{
  int sum = 0, total = 0;
  for (int t = 0; t < TAPS; t++) {
    sum += weight[t] * line[clamp(at + t - TAPS / 2, room) * step];
    total += weight[t];
  }
  return (uint8_t)((sum + total / 2) / total);
}

WEIR_KERNEL(to_grey, const uint8_t *rgb, uint8_t *grey)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < PIXELS) grey[i] = grey_of(rgb + 3 * i);
}

WEIR_KERNEL(blur_rows, const uint8_t *in, uint8_t *out, const int *weight)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < WIDTH) out[y * WIDTH + x] = blur_at(in + y * WIDTH, x, WIDTH, 1, weight);
}

WEIR_KERNEL(blur_columns, const uint8_t *in, uint8_t *out, const int *weight)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < WIDTH) out[y * WIDTH + x] = blur_at(in + x, y, HEIGHT, WIDTH, weight);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static const int WEIGHT[TAPS] = {1, 4, 6, 4, 1};

/* What a decoder would deliver: a pattern that moves. */
static void decode(int frame, uint8_t *rgb)
{
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++, rgb += 3) {
      rgb[0] = (uint8_t)(x + 3 * frame);
      rgb[1] = (uint8_t)(y ^ (x + frame));
      rgb[2] = (uint8_t)((x * y) >> 6);
    }
}

static void reference(int frame, std::vector<uint8_t> &out)
{
  std::vector<uint8_t> rgb(3 * PIXELS), grey(PIXELS), rows(PIXELS);
  decode(frame, rgb.data());
  for (int i = 0; i < PIXELS; i++)
    grey[i] = grey_of(&rgb[3 * i]);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++)
      rows[y * WIDTH + x] = blur_at(&grey[y * WIDTH], x, WIDTH, 1, WEIGHT);
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++)
      out[y * WIDTH + x] = blur_at(&rows[x], y, HEIGHT, WIDTH, WEIGHT);
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

struct Slot {
  cudaStream_t stream;
  cudaEvent_t done;             /* the last frame's download has ended */
  uint8_t *host_rgb, *host_out; /* pinned */
  uint8_t *rgb, *grey, *rows, *out;
  int *weight;
  int frame; /* in flight; -1: none */
};

static Slot make_slot(void)
{
  Slot s = {};
  CHECK(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&s.done, cudaEventDisableTiming));
  CHECK(cudaMallocHost(&s.host_rgb, 3 * PIXELS));
  CHECK(cudaHostAlloc(&s.host_out, PIXELS, cudaHostAllocDefault));
  CHECK(cudaMalloc(&s.rgb, 3 * PIXELS));
  CHECK(cudaMalloc(&s.grey, PIXELS));
  CHECK(cudaMalloc(&s.rows, PIXELS));
  CHECK(cudaMalloc(&s.out, PIXELS));
  CHECK(cudaMalloc(&s.weight, sizeof WEIGHT));
  s.frame = -1;
  return s;
}

static void free_slot(const Slot &s)
{
  CHECK(cudaFree(s.weight));
  CHECK(cudaFree(s.out));
  CHECK(cudaFree(s.rows));
  CHECK(cudaFree(s.grey));
  CHECK(cudaFree(s.rgb));
  CHECK(cudaFreeHost(s.host_out));
  CHECK(cudaFreeHost(s.host_rgb));
  CHECK(cudaEventDestroy(s.done));
  CHECK(cudaStreamDestroy(s.stream));
}

static void submit_frame(Slot &s, int frame)
{
  const dim3 grid((WIDTH + 127) / 128, HEIGHT);
  s.frame = frame;
  decode(frame, s.host_rgb);
  CHECK(cudaMemcpyAsync(s.rgb, s.host_rgb, 3 * PIXELS, cudaMemcpyHostToDevice, s.stream));
  /* WASTE: the same 20 bytes for every frame. */
  CHECK(cudaMemcpyAsync(s.weight, WEIGHT, sizeof WEIGHT, cudaMemcpyHostToDevice, s.stream));
  /* WASTE: every pixel is written by the last kernel. */
  CHECK(cudaMemsetAsync(s.out, 0, PIXELS, s.stream));
  to_grey<<<(PIXELS + 127) / 128, 128, 0, s.stream>>>(s.rgb, s.grey);
  blur_rows<<<grid, 128, 0, s.stream>>>(s.grey, s.rows, s.weight);
  blur_columns<<<grid, 128, 0, s.stream>>>(s.rows, s.out, s.weight);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyAsync(s.host_out, s.out, PIXELS, cudaMemcpyDeviceToHost, s.stream));
  CHECK(cudaEventRecord(s.done, s.stream));
}

/* Takes the slot's frame out: waits for it, adds it to the checksum, counts the pixels that differ.
 */
static int collect(Slot &s, uint32_t *checksum)
{
  static std::vector<uint8_t> expected(PIXELS);
  int wrong = 0;
  if (s.frame < 0) return 0;
  CHECK(cudaEventSynchronize(s.done));
  reference(s.frame, expected);
  for (int i = 0; i < PIXELS; i++) {
    wrong += s.host_out[i] != expected[i];
    *checksum = *checksum * 31 + s.host_out[i];
  }
  s.frame = -1;
  return wrong;
}

int main(int argc, char **argv)
{
  int frames = argument(argc, argv, 96), wrong = 0;
  uint32_t checksum = 0;
  Slot slot[SLOTS];
  for (Slot &s : slot)
    s = make_slot();
  for (int f = 0; f < frames; f++) {
    wrong += collect(slot[f % SLOTS], &checksum);
    submit_frame(slot[f % SLOTS], f);
  }
  for (int f = frames; f < frames + SLOTS; f++)
    wrong += collect(slot[f % SLOTS], &checksum);
  for (const Slot &s : slot)
    free_slot(s);
  printf("%d frames, checksum %08x\n", frames, checksum);
  if (wrong) {
    fprintf(stderr, "pipeline: %d pixels are wrong\n", wrong);
    return 1;
  }
  puts("pipeline: ok");
  return 0;
}

/* stencil.cu: heat in a plate (Jacobi's method), the plate split over two devices.
 *
 * usage: stencil [ITERATIONS]
 *
 * Each device holds a band of rows and one *halo* row of each neighbour. An iteration computes the
 * band into a second buffer, then sends its outer rows into the neighbours' halos of that buffer.
 * Events order it: a device begins an iteration when its neighbours have ended the one before,
 * which means that their rows have arrived and that they read nothing it is about to overwrite.
 * With one device the band is the whole plate. The host computes the same; sums are in the same
 * order, so all cells are equal.
 *
 * WASTE: the host waits for all devices after each iteration, where the events already order the
 * work.
 */
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>
#include "check.h"
#include "cuda/sim/weir_kernel.h"

enum { WIDTH = 512, ROWS = 512, MOST = 2 }; /* the plate with its fixed border; devices used */

/* Rows 1..rows of a band; rows 0 and rows+1 are halos or the border. */
WEIR_KERNEL(relax, const float *in, float *out, int rows)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y + 1;
  if (x < 1 || x >= WIDTH - 1 || y > rows) return;
  const float *c = in + y * WIDTH + x;
  out[y * WIDTH + x] = 0.25f * (c[-WIDTH] + c[WIDTH] + c[-1] + c[1]);
}

struct Band {
  int device, first, rows; /* rows first .. first + rows - 1 of the plate are this band's own */
  float *now, *next;       /* rows + 2 rows each */
  cudaStream_t stream;
  cudaEvent_t done; /* the last iteration's rows have been computed and sent */
};

/* The top edge is hot, the others are cold. */
static std::vector<float> cold_plate(void)
{
  std::vector<float> plate(ROWS * WIDTH);
  for (int x = 0; x < WIDTH; x++)
    plate[x] = 100;
  return plate;
}

static Band make_band(int device, int first, int rows, const std::vector<float> &plate)
{
  Band b = {device, first, rows, NULL, NULL, NULL, NULL};
  size_t bytes = (size_t)(rows + 2) * WIDTH * sizeof(float);
  CHECK(cudaSetDevice(device));
  CHECK(cudaStreamCreate(&b.stream));
  CHECK(cudaEventCreateWithFlags(&b.done, cudaEventDisableTiming));
  CHECK(cudaMalloc(&b.now, bytes));
  CHECK(cudaMalloc(&b.next, bytes));
  CHECK(cudaMemcpy(b.now, &plate[(first - 1) * WIDTH], bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b.next, b.now, bytes, cudaMemcpyDeviceToDevice));
  CHECK(cudaDeviceSynchronize()); /* a neighbour's first rows must find it done */
  return b;
}

static void enable_peers(int devices)
{
  for (int a = 0; a < devices; a++)
    for (int b = 0; b < devices; b++) {
      int can = 0;
      if (a == b) continue;
      CHECK(cudaDeviceCanAccessPeer(&can, a, b));
      CHECK(cudaSetDevice(a));
      if (can) CHECK(cudaDeviceEnablePeerAccess(b, 0));
    }
}

/* Sends row `from` of band a's new rows into row `to` of band b's. */
static void send_row(const Band &a, int from, const Band &b, int to)
{
  CHECK(cudaMemcpyPeerAsync(b.next + (size_t)to * WIDTH, b.device, a.next + (size_t)from * WIDTH,
                            a.device, WIDTH * sizeof(float), a.stream));
}

static void iterate(std::vector<Band> &bands)
{
  int last = (int)bands.size() - 1;
  for (int i = 0; i <= last; i++) {
    Band &b = bands[i];
    CHECK(cudaSetDevice(b.device));
    if (i > 0) CHECK(cudaStreamWaitEvent(b.stream, bands[i - 1].done, 0));
    if (i < last) CHECK(cudaStreamWaitEvent(b.stream, bands[i + 1].done, 0));
    relax<<<dim3((WIDTH + 127) / 128, b.rows), 128, 0, b.stream>>>(b.now, b.next, b.rows);
    CHECK(cudaGetLastError());
    if (i > 0) send_row(b, 1, bands[i - 1], bands[i - 1].rows + 1);
    if (i < last) send_row(b, b.rows, bands[i + 1], 0);
  }
  for (Band &b : bands) {
    CHECK(cudaSetDevice(b.device));
    CHECK(cudaEventRecord(b.done, b.stream));
    std::swap(b.now, b.next);
  }
  for (Band &b : bands) { /* WASTE */
    CHECK(cudaSetDevice(b.device));
    CHECK(cudaDeviceSynchronize());
  }
}

static void fetch_band(Band &b, std::vector<float> &plate)
{
  CHECK(cudaSetDevice(b.device));
  CHECK(cudaMemcpy(&plate[b.first * WIDTH], b.now + WIDTH, (size_t)b.rows * WIDTH * sizeof(float),
                   cudaMemcpyDeviceToHost));
  CHECK(cudaFree(b.now));
  CHECK(cudaFree(b.next));
  CHECK(cudaEventDestroy(b.done));
  CHECK(cudaStreamDestroy(b.stream));
}

static std::vector<float> reference(int iterations)
{
  std::vector<float> now = cold_plate(), next = now;
  for (int n = 0; n < iterations; n++) {
    for (int y = 1; y < ROWS - 1; y++)
      for (int x = 1; x < WIDTH - 1; x++) {
        const float *c = &now[y * WIDTH + x];
        next[y * WIDTH + x] = 0.25f * (c[-WIDTH] + c[WIDTH] + c[-1] + c[1]);
      }
    std::swap(now, next);
  }
  return now;
}

int main(int argc, char **argv)
{
  int iterations = argument(argc, argv, 400), devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  devices = std::min<int>(devices, MOST);
  enable_peers(devices);

  std::vector<float> plate = cold_plate(), expected = reference(iterations);
  std::vector<Band> bands;
  for (int d = 0; d < devices; d++) {
    int first = 1 + (ROWS - 2) * d / devices, end = 1 + (ROWS - 2) * (d + 1) / devices;
    bands.push_back(make_band(d, first, end - first, plate));
  }
  for (int n = 0; n < iterations; n++)
    iterate(bands);
  for (Band &b : bands)
    fetch_band(b, plate);

  double heat = 0;
  float worst = 0;
  for (int i = 0; i < ROWS * WIDTH; i++) {
    heat += plate[i];
    worst = std::max(worst, fabsf(plate[i] - expected[i]));
  }
  printf("%d iterations, heat %.1f\n", iterations, heat);
  if (!(worst <= 1e-4f)) {
    fprintf(stderr, "stencil: wrong: a cell is off by %g\n", worst);
    return 1;
  }
  puts("stencil: ok");
  return 0;
}

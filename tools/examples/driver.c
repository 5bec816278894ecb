/* driver.c: a program on the driver API alone: contexts, modules and launches by hand.
 *
 * usage: driver [N]
 *
 * Multiplies two N x N matrices and sums the rows of the product. All values are small whole
 * numbers, so the result is exact in any order of additions, and the host computes the same.
 *
 * The kernels are in the program: an image that nvcc made of driver_kernels.cu (PTX, so that it
 * runs on every device from sm_75 up). WASTE: the module is loaded and the matrices go through
 * pageable memory each time; only the sums use pinned memory. */
#include <stdio.h>
#include <stdlib.h>
#include <cuda.h>

/* The image, from the file whose name the build gives. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "kernel_image:\n"
        ".incbin \"" WEIR_EXAMPLE_IMAGE "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char kernel_image[];

#define CHECK(call)                                                                                \
  do {                                                                                             \
    CUresult r_ = (call);                                                                          \
    if (r_ != CUDA_SUCCESS) {                                                                      \
      const char *s_ = "unknown error";                                                            \
      cuGetErrorString(r_, &s_);                                                                   \
      (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, s_);                     \
      exit(2);                                                                                     \
    }                                                                                              \
  } while (0)

/* Everything on the device, and how wide a row of the product lies there. */
struct work {
  CUdeviceptr a, b, c, sums;
  size_t pitch;
  CUfunction multiply, sum_rows;
  CUstream stream;
  CUevent begin, end;
};

static float *matrix(int n)
{
  float *m = calloc((size_t)n * (size_t)n, sizeof *m);
  if (!m) exit(2);
  return m;
}

static void fill_matrix(float *m, int n, int seed)
{
  for (int i = 0; i < n * n; i++)
    m[i] = (float)((i * 7 + seed) % 5 - 2);
}

static void set_up_driver(struct work *w, CUmodule module, int n)
{
  size_t bytes = (size_t)n * (size_t)n * sizeof(float);
  CHECK(cuModuleGetFunction(&w->multiply, module, "multiply"));
  CHECK(cuModuleGetFunction(&w->sum_rows, module, "sum_rows"));
  CHECK(cuMemAlloc(&w->a, bytes));
  CHECK(cuMemAlloc(&w->b, bytes));
  CHECK(cuMemAllocPitch(&w->c, &w->pitch, (size_t)n * sizeof(float), (size_t)n, sizeof(float)));
  CHECK(cuMemAlloc(&w->sums, (size_t)n * sizeof(float)));
  CHECK(cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&w->begin, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&w->end, CU_EVENT_DEFAULT));
}

static void run_round(struct work *w, int n, const float *a, const float *b, float *c, float *sums)
{
  size_t row = (size_t)n * sizeof(float);
  int pitch = (int)(w->pitch / sizeof(float));
  unsigned tiles = (unsigned)(n + 15) / 16;
  void *multiply[] = {&w->a, &w->b, &w->c, &n, &pitch}, *sum_rows[] = {&w->c, &n, &pitch, &w->sums};

  CHECK(cuMemcpyHtoD(w->a, a, row * (size_t)n)); /* returns when `a` has been read */
  CHECK(cuMemcpyHtoD(w->b, b, row * (size_t)n));
  CHECK(cuMemsetD2D32(w->c, w->pitch, 0, (size_t)n, (size_t)n));
  CHECK(cuCtxSynchronize()); /* our stream does not wait for the default stream's memset */
  CHECK(cuEventRecord(w->begin, w->stream));
  CHECK(cuLaunchKernel(w->multiply, tiles, tiles, 1, 16, 16, 1, 0, w->stream, multiply, NULL));
  CHECK(cuLaunchKernel(w->sum_rows, (unsigned)(n + 63) / 64, 1, 1, 64, 1, 1, 0, w->stream, sum_rows,
                       NULL));
  CHECK(cuEventRecord(w->end, w->stream));
  CHECK(cuMemcpyDtoHAsync(sums, w->sums, row, w->stream));
  CUDA_MEMCPY2D shape = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = w->c,
                         .srcPitch = w->pitch,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = c,
                         .dstPitch = row,
                         .WidthInBytes = row,
                         .Height = (size_t)n};
  CHECK(cuMemcpy2DAsync(&shape, w->stream));
  CHECK(cuStreamSynchronize(w->stream));
}

static void free_work(struct work *w)
{
  CHECK(cuEventDestroy(w->end));
  CHECK(cuEventDestroy(w->begin));
  CHECK(cuStreamDestroy(w->stream));
  CHECK(cuMemFree(w->sums));
  CHECK(cuMemFree(w->c));
  CHECK(cuMemFree(w->b));
  CHECK(cuMemFree(w->a));
}

/* The number of elements and sums that are not what the host computes. */
static int count_wrong(int n, const float *a, const float *b, const float *c, const float *sums)
{
  int wrong = 0;
  for (int i = 0; i < n; i++) {
    float total = 0;
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int k = 0; k < n; k++)
        sum += a[i * n + k] * b[k * n + j];
      wrong += c[i * n + j] != sum;
      total += sum;
    }
    wrong += sums[i] != total;
  }
  return wrong;
}

/* N, from 1 to 8192. */
static int matrix_size(int argc, char **argv)
{
  int n = argc > 1 ? atoi(argv[1]) : 0;
  return n < 1 ? 256 : n > 8192 ? 8192 : n;
}

int main(int argc, char **argv)
{
  int n = matrix_size(argc, argv), wrong;
  float *a = matrix(n), *b = matrix(n), *c = matrix(n), *sums;
  struct work work;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  float ms = -1, total = 0;

  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kernel_image));
  CHECK(cuMemHostAlloc((void **)&sums, (size_t)n * sizeof *sums, 0));

  fill_matrix(a, n, 1);
  fill_matrix(b, n, 3);
  set_up_driver(&work, module, n);
  run_round(&work, n, a, b, c, sums);
  CHECK(cuEventElapsedTime(&ms, work.begin, work.end));
  wrong = count_wrong(n, a, b, c, sums);
  for (int i = 0; i < n; i++)
    total += sums[i];

  free_work(&work);
  CHECK(cuMemFreeHost(sums));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  free(a);
  free(b);
  free(c);

  printf("%d x %d, sum %.0f\n", n, n, total);
  if (wrong || ms < 0) {
    (void)fprintf(stderr, "driver: %d values are wrong, kernels took %g ms\n", wrong, ms);
    return 1;
  }
  puts("driver: ok");
  return 0;
}

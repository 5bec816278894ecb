/* launch.c: the engine's own kernels: finding and launching them.
 *
 * They are in the library as fat binaries, machine code for some architectures and PTX for the
 * rest, one for each file of cuda/kernels. The driver takes one in (cuLibraryLoadData) when the
 * first of its kernels is launched, once for all devices; what failed is tried again at the next
 * launch. Unless CUDA_MODULE_LOADING=EAGER the driver looks at the code only "when a function is
 * needed for that context, such as a kernel launch" (cuLibraryLoadData; the default since CUDA
 * 12.2), so the launch may be what finds no code for a device. Taking in is the engine's own
 * business; the launch is the program's work, which the preload library sees. */
#include <pthread.h>
#include <stdint.h>
#include "core/backend/scalar_type.h"
#include "cuda/backend/launch.h"

/* Made by the build from what nvcc gave (cuda/rules.mk). */
#define IMAGE(name) extern const char weir_image_##name[];
WEIR_IMAGES(IMAGE)
#undef IMAGE

enum image {
#define IMAGE(name) IMAGE_##name,
  WEIR_IMAGES(IMAGE)
#undef IMAGE
      IMAGES
};

static const char *const images[IMAGES] = {
#define IMAGE(name) weir_image_##name,
    WEIR_IMAGES(IMAGE)
#undef IMAGE
};

static const struct kernel {
  const char *name;
  enum image image;
} kernels[WEIR_KERNEL_COUNT] = {
#define KERNEL(name, image) {"weir_" #name, IMAGE_##image},
    WEIR_KERNELS(KERNEL)
#undef KERNEL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary libraries[IMAGES];                /* lock */
static _Atomic(CUkernel) found[WEIR_KERNEL_COUNT]; /* NULL: not asked for yet */

/* Within the context. */
static CUresult find_kernel(enum kernel_id k, CUkernel *out)
{
  const struct kernel *kernel = &kernels[k];
  CUresult r = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  CUlibrary *library = &libraries[kernel->image];
  if (!*library)
    r = weir_cuda.cuLibraryLoadData(library, images[kernel->image], NULL, NULL, 0, NULL, NULL, 0);
  if (r) *library = NULL;
  if (!r) r = weir_cuda.cuLibraryGetKernel(out, *library, kernel->name);
  if (!r) atomic_store_explicit(&found[k], *out, memory_order_release);
  pthread_mutex_unlock(&lock);
  return r;
}

/* The driver is older than the compiler of the kernels. It takes in machine code of its own major
 * version, and PTX of its own version or an older one ("CUDA Compatibility", NVIDIA). */
static bool too_new(CUresult r, int *driver)
{
  bool unknown = r == CUDA_ERROR_INVALID_IMAGE || r == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                 r == CUDA_ERROR_INVALID_PTX || r == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  return unknown && !weir_cuda.cuDriverGetVersion(driver) && *driver < CUDA_VERSION;
}

static weir_status fail_too_new(const cuda_device_state *d, CUresult r, int driver,
                                const char *what)
{
  int major = CUDA_VERSION / 1000, minor = CUDA_VERSION % 1000 / 10;
  return cuda_fail_as(WEIR_ECUDA,
                      "%s: the kernels in libweir-cuda.so were compiled by CUDA %d.%d, and "
                      "the driver of cuda:%d is of CUDA %d.%d (error %d): it takes a driver "
                      "of CUDA %d.%d or newer, or Weir built with an older CUDA Toolkit",
                      what, major, minor, d->index, driver / 1000, driver % 1000 / 10, (int)r,
                      major, minor);
}

weir_status cuda_launch(cuda_device_state *d, void *stream, enum kernel_id kernel, launch_grid grid,
                        const void *argument, const char *what)
{
  CUkernel k = atomic_load_explicit(&found[kernel], memory_order_acquire);
  CUresult r = CUDA_SUCCESS;
  int driver = 0;
  if (!k) WEIR_CUDA_WITHIN(d, r, find_kernel(kernel, &k));
  if (r && too_new(r, &driver)) return fail_too_new(d, r, driver, what);
  if (r)
    return driver_fail(r, "%s: loading the kernel %s on cuda:%d", what, kernels[kernel].name,
                       d->index);
  void *arguments[] = {(void *)argument};
  WEIR_CUDA_SEEN(d, r,
                 weir_cuda.cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, WEIR_THREADS, 1, 1,
                                          0, stream, arguments, NULL));
  if (__builtin_expect(r != CUDA_SUCCESS, 0) && too_new(r, &driver))
    return fail_too_new(d, r, driver, what);
  return driver_fail(r, "%s: cuLaunchKernel of %s (%ux%ux%u blocks) on cuda:%d", what,
                     kernels[kernel].name, grid.x, grid.y, grid.z, d->index);
}

int cuda_processors(cuda_device_state *d)
{
  int n = atomic_load_explicit(&d->processors, memory_order_relaxed);
  if (n) return n;
  if (weir_cuda.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->device) ||
      n < 1)
    return 1;
  atomic_store_explicit(&d->processors, n, memory_order_relaxed);
  return n;
}

launch_grid cuda_blocks(cuda_device_state *d, int64_t count, int64_t each)
{
  int64_t blocks = (count + each - 1) / each, most = 32 * (int64_t)cuda_processors(d);
  if (blocks > most) blocks = most;
  return (launch_grid){(uint32_t)(blocks > 0 ? blocks : 1), 1, 1};
}

/* Granlund and Montgomery, "Division by invariant integers using multiplication" (PLDI 94), for
 * dividends below 2^31. */
k_divisor k_divisor_of(int64_t size)
{
  k_divisor d = {.size = (uint32_t)size};
  while (d.shift < 31 && UINT64_C(1) << d.shift < (uint64_t)size)
    d.shift++;
  uint64_t above = (UINT64_C(1) << d.shift) - (uint64_t)size;
  d.magic = (uint32_t)((above << 32) / (uint64_t)size + 1);
  return d;
}

static int64_t wrapped(int64_t i, weir_dtype dtype)
{
  switch (dtype) {
  case WEIR_BOOL:
    return i != 0;
  case WEIR_UINT8:
    return (uint8_t)i;
  case WEIR_INT8:
    return (int8_t)i;
  case WEIR_INT16:
    return (int16_t)i;
  case WEIR_INT32:
    return (int32_t)i;
  default:
    return i;
  }
}

k_number k_number_of(const weir_number *n, weir_dtype compute)
{
  bool whole = n->dtype == WEIR_INT64 || n->dtype == WEIR_BOOL;
  double real = whole ? (double)n->i : n->f;
  float imag = n->dtype == WEIR_COMPLEX64 ? (float)n->imag : 0.0F;
  if (compute == WEIR_COMPLEX64) return (k_number){.c = {(float)real, imag}};
  if (k_is_real(compute)) return (k_number){.d = real};
  if (compute == WEIR_BOOL && !whole) return (k_number){.i = n->f != 0 || imag != 0};
  return (k_number){.i = wrapped(whole ? n->i : (int64_t)n->f, compute)};
}

weir_status cuda_no_kernel(const char *what, weir_dtype dtype)
{
  const char *name = (unsigned)dtype < WEIR_DTYPES ? scalar_type(dtype) : NULL;
  return cuda_unsupported("\"%s\" not implemented for '%s'", what, name ? name : "unknown dtype");
}

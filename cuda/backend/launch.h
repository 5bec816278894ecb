/* launch.h: the engine's own kernels (cuda/kernels), and how the plug-in launches them. */
#ifndef WEIR_CUDA_BACKEND_LAUNCH_H
#define WEIR_CUDA_BACKEND_LAUNCH_H

#include "cuda/backend/device.h"
#include "cuda/kernels/args.h"

/* X(kernel's name without weir_, image that has it). */
#define WEIR_KERNELS(X)                                                                            \
  X(flat_int32, map)                                                                               \
  X(flat_int64, map)                                                                               \
  X(flat_float16, map)                                                                             \
  X(flat_bfloat16, map)                                                                            \
  X(flat_float32, map)                                                                             \
  X(flat_float64, map)                                                                             \
  X(flat_complex64, map)                                                                           \
  X(strided_integer, map)                                                                          \
  X(strided_float32, map)                                                                          \
  X(strided_float64, map)                                                                          \
  X(strided_complex64, map)                                                                        \
  X(copy_1, map)                                                                                   \
  X(copy_2, map)                                                                                   \
  X(copy_4, map)                                                                                   \
  X(copy_8, map)                                                                                   \
  X(turn_1, map)                                                                                   \
  X(turn_2, map)                                                                                   \
  X(turn_4, map)                                                                                   \
  X(turn_8, map)                                                                                   \
  X(function_integer, functions)                                                                   \
  X(function_float32, functions)                                                                   \
  X(function_float64, functions)                                                                   \
  X(function_complex64, functions)                                                                 \
  X(sum_integer, reduce)                                                                           \
  X(sum_float32, reduce)                                                                           \
  X(sum_float64, reduce)                                                                           \
  X(sum_complex64, reduce)                                                                         \
  X(product_integer, reduce)                                                                       \
  X(product_float32, reduce)                                                                       \
  X(product_float64, reduce)                                                                       \
  X(product_complex64, reduce)                                                                     \
  X(truth, reduce)                                                                                 \
  X(norm_float32, reduce)                                                                          \
  X(norm_float64, reduce)                                                                          \
  X(var_float32, reduce)                                                                           \
  X(var_float64, reduce)                                                                           \
  X(max_integer, reduce)                                                                           \
  X(max_float32, reduce)                                                                           \
  X(max_float64, reduce)                                                                           \
  X(min_integer, reduce)                                                                           \
  X(min_float32, reduce)                                                                           \
  X(min_float64, reduce)                                                                           \
  X(update_float16, update)                                                                        \
  X(update_bfloat16, update)                                                                       \
  X(update_float32, update)                                                                        \
  X(update_float64, update)                                                                        \
  X(softmax_float16, softmax)                                                                      \
  X(softmax_bfloat16, softmax)                                                                     \
  X(softmax_float32, softmax)                                                                      \
  X(softmax_float64, softmax)                                                                      \
  X(rows_norm_float16, norm)                                                                       \
  X(rows_norm_bfloat16, norm)                                                                      \
  X(rows_norm_float32, norm)                                                                       \
  X(rows_norm_float64, norm)                                                                       \
  X(gemm_float32, gemm)                                                                            \
  X(gemm_float16, gemm)                                                                            \
  X(gemm_bfloat16, gemm)                                                                           \
  X(gemm_small_float32, gemm)                                                                      \
  X(gemm_small_float16, gemm)                                                                      \
  X(gemm_small_bfloat16, gemm)                                                                     \
  X(gemm_float64, gemm)                                                                            \
  X(gemm_complex64, gemm)                                                                          \
  X(gemm_uint8, gemm)                                                                              \
  X(gemm_int8, gemm)                                                                               \
  X(gemm_int16, gemm)                                                                              \
  X(gemm_int32, gemm)                                                                              \
  X(gemm_int64, gemm)                                                                              \
  X(thin_float32, thin)                                                                            \
  X(thin_float16, thin)                                                                            \
  X(thin_bfloat16, thin)                                                                           \
  X(thin_float64, thin)                                                                            \
  X(thin_complex64, thin)                                                                          \
  X(scan_sum_integer, scan)                                                                        \
  X(scan_sum_real, scan)                                                                           \
  X(scan_sum_complex, scan)                                                                        \
  X(scan_product_integer, scan)                                                                    \
  X(scan_product_real, scan)                                                                       \
  X(scan_product_complex, scan)                                                                    \
  X(scan_log_sum_real, scan)                                                                       \
  X(scan_last_max_integer, scan)                                                                   \
  X(scan_last_max_real, scan)                                                                      \
  X(scan_last_min_integer, scan)                                                                   \
  X(scan_last_min_real, scan)                                                                      \
  X(sort_tiles_narrow, order)                                                                      \
  X(sort_tiles_wide, order)                                                                        \
  X(sort_merge_narrow, order)                                                                      \
  X(sort_merge_wide, order)                                                                        \
  X(sort_take_narrow, order)                                                                       \
  X(sort_take_wide, order)                                                                         \
  X(search_integer, order)                                                                         \
  X(search_real, order)                                                                            \
  X(index_read_1, index)                                                                           \
  X(index_read_2, index)                                                                           \
  X(index_read_4, index)                                                                           \
  X(index_read_8, index)                                                                           \
  X(index_set_1, index)                                                                            \
  X(index_set_2, index)                                                                            \
  X(index_set_4, index)                                                                            \
  X(index_set_8, index)                                                                            \
  X(index_add, index)                                                                              \
  X(index_mul, index)                                                                              \
  X(index_max, index)                                                                              \
  X(index_min, index)                                                                              \
  X(places_count, index)                                                                           \
  X(places_scan, index)                                                                            \
  X(places_write, index)                                                                           \
  X(random_any, others)                                                                            \
  X(im2col_1, others)                                                                              \
  X(im2col_2, others)                                                                              \
  X(im2col_4, others)                                                                              \
  X(im2col_8, others)                                                                              \
  X(pool_integer, window)                                                                          \
  X(pool_float16, window)                                                                          \
  X(pool_bfloat16, window)                                                                         \
  X(pool_float32, window)                                                                          \
  X(pool_float64, window)                                                                          \
  X(resample_uint8, window)                                                                        \
  X(resample_float16, window)                                                                      \
  X(resample_bfloat16, window)                                                                     \
  X(resample_float32, window)                                                                      \
  X(resample_float64, window)

/* The images, cuda/kernels/NAME.cu. */
#define WEIR_IMAGES(X)                                                                             \
  X(map)                                                                                           \
  X(functions)                                                                                     \
  X(reduce)                                                                                        \
  X(update)                                                                                        \
  X(softmax)                                                                                       \
  X(norm)                                                                                          \
  X(gemm)                                                                                          \
  X(thin)                                                                                          \
  X(scan)                                                                                          \
  X(order)                                                                                         \
  X(index)                                                                                         \
  X(others)                                                                                        \
  X(window)

enum kernel_id {
#define WEIR_KERNEL_ENUM(name, image) WEIR_KERNEL_##name,
  WEIR_KERNELS(WEIR_KERNEL_ENUM)
#undef WEIR_KERNEL_ENUM
      WEIR_KERNEL_COUNT
};

typedef struct launch_grid {
  uint32_t x, y, z; /* blocks */
} launch_grid;

/* Launches it with blocks of WEIR_THREADS and its one argument (copied). `what`: torch's name of
 * the operation, for the sentence of an error. Its image is loaded at its first use. */
weir_status cuda_launch(cuda_device_state *d, void *stream, enum kernel_id kernel, launch_grid grid,
                        const void *argument, const char *what);

int cuda_processors(cuda_device_state *d); /* multiprocessors; 1 where nobody can know */
/* Blocks for `count` elements, `each` a block: no more than keep the device busy. */
launch_grid cuda_blocks(cuda_device_state *d, int64_t count, int64_t each);

k_divisor k_divisor_of(int64_t size); /* 1 to 2^31 - 1 */
static inline bool k_is_real(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16 || dtype == WEIR_FLOAT32 ||
         dtype == WEIR_FLOAT64;
}
static inline int64_t k_bytes(weir_dtype dtype)
{
  static const uint8_t bytes[WEIR_DTYPES] = {
#define WEIR_K_BYTES(name, value, text, size, type) [value] = size,
      WEIR_DTYPE_MAP(WEIR_K_BYTES)
#undef WEIR_K_BYTES
  };
  return bytes[dtype];
}
/* dtype's of four kernels in a row: for float16, bfloat16, float32, float64; -1: it has none. */
static inline int k_float_kernel(enum kernel_id first, weir_dtype dtype)
{
  static const int8_t place[WEIR_DTYPES] = {
      [WEIR_FLOAT16] = 1, [WEIR_BFLOAT16] = 2, [WEIR_FLOAT32] = 3, [WEIR_FLOAT64] = 4};
  return place[dtype] ? (int)first + place[dtype] - 1 : -1;
}
/* A number as a kernel that calculates in `compute` takes it. */
k_number k_number_of(const weir_number *n, weir_dtype compute);
/* torch's words: "exp" not implemented for 'Int'. */
weir_status cuda_no_kernel(const char *what, weir_dtype dtype);

/* map.c, reduce.c, order.c, softmax.c, norm.c, gemm.c, index.c, compute.c, window.c: the functions
 * of weir_compute. */
weir_status cuda_map(void *self, void *stream, const weir_loop *l);
weir_status cuda_reduce(void *self, void *stream, const weir_reduce *r);
weir_status cuda_update(void *self, void *stream, const weir_update *u);
weir_status cuda_softmax(void *self, void *stream, const weir_softmax_request *s);
weir_status cuda_norm(void *self, void *stream, const weir_norm_request *q);
weir_status cuda_scan(void *self, void *stream, const weir_scan *s);
weir_status cuda_sort_rows(void *self, void *stream, const weir_sort_rows *s);
weir_status cuda_search(void *self, void *stream, const weir_search *s);
weir_status cuda_gemm(void *self, void *stream, const weir_gemm *g);
weir_status cuda_index(void *self, void *stream, const weir_indexing *r);
weir_status cuda_places(void *self, void *stream, const weir_places *p);
/* blas.c: by cuBLAS; *done false: not by it. */
weir_status cuda_blas(cuda_device_state *d, void *stream, const weir_gemm *g, bool *done);
weir_status cuda_blas_triangles(cuda_device_state *d, void *stream, const weir_factor *f);
void cuda_blas_close(const cuda_device_state *d);
/* solver.c: by cuSOLVER. Errors: ENOTSUP: there is none. */
weir_status cuda_factor(void *self, void *stream, const weir_factor *f);
bool cuda_factor_narrow(void *self, const weir_factor *f);
void cuda_solver_close(const cuda_device_state *d);
/* dnn.c: by cuDNN. */
bool cuda_convolves(void *self, const weir_convolution *c);
weir_status cuda_convolve(void *self, void *stream, const weir_convolution *c, bool *done);
void cuda_dnn_close(const cuda_device_state *d);
weir_status cuda_pool(void *self, void *stream, const weir_pool *p);
weir_status cuda_resample(void *self, void *stream, const weir_resample *r);
extern const weir_compute cuda_compute;

#endif

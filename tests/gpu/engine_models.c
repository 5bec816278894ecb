/* engine_models.c: rows 24 to 27, 30, and 32 to 34: data, modules, precision, and tensors in other
 * hands. */
#include "tests/gpu/engine.h"

#include <unistd.h>

enum { ITEMS = 37, WIDE = 10 };

/* ---- data ------------------------------------------------------------------------------------ */

/* The sum of all items an epoch gives, each batch where the options want it. */
static double sum_loader_epoch(const weir_loader_options *options, int pinned, weir_device where)
{
  weir_tensor *rows = numbers(WEIR_FLOAT32, weir_shape(ITEMS, WIDE), 3), *sum;
  weir_dataset set;
  weir_loader *loader;
  weir_loader_iter *it;
  weir_batch batch;
  double all = 0;
  MUST(weir_tensor_dataset(&set, &rows, 1));
  MUST(weir_loader_create(&loader, &set, options));
  MUST(weir_loader_begin(&it, loader));
  for (;;) {
    MUST(weir_loader_next(&batch, it));
    if (!batch.count) break;
    HOLDS(weir_tensor_is_pinned(batch.tensor[0]) == pinned);
    HOLDS(weir_tensor_device(batch.tensor[0]).type == where.type);
    MUST(weir_sum(&sum, batch.tensor[0]));
    all += first(sum);
    weir_batch_drop(&batch);
  }
  weir_loader_end(it);
  weir_loader_release(loader);
  return all;
}

void row_loader(void)
{
  weir_loader_options plain = {.batch_size = 8}, pinned = plain, far = plain;
  pinned.workers = 3, pinned.pin_memory = true, pinned.shuffle = true;
  far = pinned, far.device = CUDA;
  double expected = sum_loader_epoch(&plain, 0, CPU);
  HOLDS(sum_loader_epoch(&pinned, 1, CPU) == expected);
  HOLDS(sum_loader_epoch(&far, 0, CUDA) == expected);
}

/* ---- modules --------------------------------------------------------------------------------- */

static weir_module *two_convolutions(void)
{
  weir_module *all[5], *m;
  MUST(weir_module_conv2d(&all[0], 1, 20, 5, NULL));
  MUST(weir_module_relu(&all[1]));
  MUST(weir_module_conv2d(&all[2], 20, 20, 5, NULL));
  MUST(weir_module_relu(&all[3]));
  MUST(weir_module_flatten(&all[4], 1, -1));
  MUST(weir_module_sequential(&m, all, 5));
  return m;
}

void row_modules(void)
{
  weir_module *m;
  weir_tensor *in = numbers(WEIR_FLOAT32, weir_shape(4, WIDE), 5), *here, *far;
  char path[] = "/tmp/weir-module-XXXXXX";
  int fd = mkstemp(path);
  HOLDS(fd >= 0);
  MUST(weir_module_linear(&m, WIDE, 5, NULL));
  MUST(weir_module_add_buffer(m, "steps", numbers(WEIR_INT64, weir_shape(2), 1), true));
  MUST(weir_module_call(&here, m, in));
  MUST(weir_module_save(m, path));
  MUST(weir_module_cuda(m, CUDA));
  HOLDS(weir_tensor_is_cuda(weir_module_parameter(m, "weight")));
  HOLDS(weir_tensor_is_cuda(weir_module_buffer(m, "steps")));
  REFUSED(WEIR_EINVAL, "", weir_module_call(&far, m, in)); /* its input is on the cpu */
  MUST(weir_module_call(&far, m, there(in)));
  alike("linear", here, far, 2, 1e-6);
  WEIR_NO_GRAD MUST(weir_zero_(weir_module_parameter(m, "weight")));
  MUST(weir_module_load(m, path, true));
  MUST(weir_module_call(&far, m, there(in)));
  alike("linear, loaded", here, far, 2, 1e-6);
  MUST(weir_module_to(m, &(weir_options){.dtype = WEIR_FLOAT16}));
  HOLDS(weir_tensor_dtype(weir_module_parameter(m, "weight")) == WEIR_FLOAT16);
  HOLDS(weir_tensor_dtype(weir_module_buffer(m, "steps")) == WEIR_INT64);
  MUST(weir_module_cpu(m));
  HOLDS(!weir_tensor_is_cuda(weir_module_parameter(m, "weight")));
  (void)close(fd);
  (void)unlink(path);
}

void row_layers(void)
{
  weir_module *m = two_convolutions();
  weir_tensor *in = numbers(WEIR_FLOAT32, weir_shape(3, 1, 28, 28), 6), *here, *far, *w;
  MUST(weir_module_call(&here, m, in));
  MUST(weir_module_cuda(m, CUDA));
  MUST(weir_module_call(&far, m, there(in)));
  alike("two convolutions", here, far, 8, 1e-5); /* 25 and 500 terms */
  w = numbers(WEIR_FLOAT32, weir_shape(20, 1, 5, 5), 7);
  REFUSED(
      WEIR_EINVAL,
      "Input type (weir.cuda.FloatTensor) and weight type (weir.FloatTensor) should be the same",
      weir_conv2d(&far, there(in), w, NULL, NULL));
}

void row_data_parallel(void)
{
  int ids[64], devices = device_count();
  weir_module *m = two_convolutions(), *parallel;
  weir_tensor *in = numbers(WEIR_FLOAT32, weir_shape(9, 1, 28, 28), 8), *here, *far;
  MUST(weir_module_call(&here, m, in));
  for (int i = 0; i < devices && i < 64; i++)
    ids[i] = i;
  for (int n = 1; n <= devices && n <= 64; n++) {
    weir_parallel_options options = {.device_ids = ids, .devices = n};
    MUST(weir_module_cuda(m, CUDA));
    MUST(weir_data_parallel(&parallel, m, &options));
    MUST(weir_module_call(&far, parallel, there(in)));
    alike("data parallel", here, far, 8, 1e-5);
  }
  note("%d device%s", devices, devices == 1 ? "" : "s");
  if (devices < 2) return;
  MUST(weir_data_parallel(&parallel, m, &(weir_parallel_options){.device_ids = ids, .devices = 2}));
  MUST(weir_module_cpu(m));
  REFUSED(WEIR_EINVAL,
          "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found "
          "one of them on device: cpu",
          weir_module_call(&far, parallel, there(in)));
}

void row_agnostic(void)
{
  for (int disabled = 0; disabled < 2; disabled++) {
    weir_device d = weir_device_select(disabled);
    weir_tensor *t;
    HOLDS(d.type == (disabled ? WEIR_DEVICE_CPU : WEIR_DEVICE_CUDA));
    MUST(weir_ones(&t, weir_shape(3), ON(d)));
    HOLDS(weir_tensor_is_cuda(t) == !disabled && first(t) == 1);
  }
}

/* ---- precision ------------------------------------------------------------------------------- */

/* The largest difference from the product in float64, relative to the largest element. */
static double error_of(const weir_tensor *a, const weir_tensor *b, const weir_tensor *exact)
{
  weir_tensor *p, *wide, *difference, *size, *most, *largest;
  MUST(weir_matmul(&p, a, b));
  MUST(weir_to_dtype(&wide, p, WEIR_FLOAT64));
  MUST(weir_sub(&difference, wide, exact));
  MUST(weir_abs(&size, difference));
  MUST(weir_max(&most, size));
  MUST(weir_abs(&size, exact));
  MUST(weir_max(&largest, size));
  return first(most) / first(largest);
}

void row_precision(void)
{
  enum { SIDE = 512 };
  weir_tensor *a, *b, *p, *q, *exact, *wide[2];
  bool same;
  weir_manual_seed(5);
  MUST(weir_randn(&a, weir_shape(SIDE, SIDE), ON(CUDA)));
  MUST(weir_randn(&b, weir_shape(SIDE, SIDE), ON(CUDA)));
  MUST(weir_to_dtype(&wide[0], a, WEIR_FLOAT64));
  MUST(weir_to_dtype(&wide[1], b, WEIR_FLOAT64));
  MUST(weir_matmul(&exact, wide[0], wide[1]));
  HOLDS(!weir_get_allow_tf32());
  double full = error_of(a, b, exact);
  HOLDS(full < 5e-6);
  weir_set_allow_tf32(true);
  double rounded = error_of(a, b, exact);
  HOLDS(rounded < 5e-3);
  note("errors: float32 %.1e, TF32 allowed %.1e", full, rounded);
  weir_set_allow_tf32(false);
  weir_set_deterministic(true);
  MUST(weir_matmul(&p, a, b));
  MUST(weir_matmul(&q, a, b));
  MUST(weir_equal(&same, p, q));
  HOLDS(same);
  weir_set_allow_reduced_precision(false);
  HOLDS(!weir_get_allow_reduced_precision() && weir_get_deterministic());
}

/* ---- other hands ----------------------------------------------------------------------------- */

void row_dlpack(void)
{
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(6, 4), 2), *x = there(a), *t, *back;
  weir_dlpack *capsule;
  weir_dlpack_unversioned *old;
  MUST(weir_t(&t, x));
  MUST(weir_to_dlpack(&capsule, t, NULL));
  HOLDS(capsule->tensor.device.type == WEIR_DLPACK_CUDA && capsule->tensor.shape[0] == 4 &&
        capsule->tensor.strides[0] == 1 && capsule->tensor.data == weir_tensor_data(x));
  MUST(weir_from_dlpack(&back, capsule, NULL));
  HOLDS(weir_tensor_data(back) == weir_tensor_data(x));
  alike("DLPack", t, back, 0, 0);
  weir_tensor_release(back);
  MUST(weir_to_dlpack_unversioned(&old, x, NULL));
  MUST(weir_from_dlpack_unversioned(&back, old, NULL));
  alike("DLPack, unversioned", a, back, 0, 0);
}

void row_files(void)
{
  char folder[] = "/tmp/weir-files-XXXXXX", npy[64], tensors[64];
  weir_tensor *a = numbers(WEIR_FLOAT64, weir_shape(50, 7), 2), *x = there(a), *back;
  weir_tensors *set, *loaded;
  HOLDS(mkdtemp(folder) != NULL);
  (void)snprintf(npy, sizeof npy, "%s/a.npy", folder);
  (void)snprintf(tensors, sizeof tensors, "%s/a.safetensors", folder);
  MUST(weir_npy_write(npy, x));
  MUST(weir_npy_read(&back, npy, ON(CUDA)));
  HOLDS(weir_tensor_is_cuda(back));
  alike("npy", a, back, 0, 0);
  MUST(weir_tensors_create(&set));
  for (int k = 1; k < WEIR_DTYPES; k++) {
    if (k == WEIR_COMPLEX64) continue; /* the format has none */
    MUST(weir_tensors_put(set, weir_dtype_name((weir_dtype)k),
                          there(numbers((weir_dtype)k, weir_shape(33, 3), (unsigned)k))));
  }
  MUST(weir_safetensors_save(tensors, set));
  MUST(weir_safetensors_load(&loaded, tensors, ON(CUDA)));
  HOLDS(weir_tensors_count(loaded) == weir_tensors_count(set));
  for (size_t i = 0; i < weir_tensors_count(set); i++) {
    const char *name = weir_tensors_name(set, i);
    weir_tensor *t = weir_tensors_get(loaded, name);
    HOLDS(t && weir_tensor_is_cuda(t));
    alike(name, weir_tensors_get(set, name), t, 0, 0);
  }
  REFUSED(WEIR_ECORRUPT, "", weir_safetensors_load(&loaded, npy, ON(CUDA)));
  REFUSED(WEIR_ECORRUPT, "", weir_npy_read(&back, tensors, ON(CUDA)));
  (void)unlink(npy);
  (void)unlink(tensors);
  (void)rmdir(folder);
}

/* resnet18.c: torchvision's ResNet-18, with its names, so that its checkpoint loads:
 *   resnet18 CHECKPOINT.safetensors IMAGES.npy OUTPUT.npy [--disable-cuda]
 *   resnet18                        random weights and images: prints the model
 * (He, Zhang, Ren, Sun: "Deep residual learning for image recognition", CVPR 2016)
 * cc resnet18.c $(pkg-config --cflags --libs weir), with try.h, usage.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

/* The child `name` of m is called with *x, which becomes the result. */
static weir_status run_child(weir_module *m, const char *name, weir_tensor **x)
{
  weir_tensor *y;
  TRY(weir_module_call(&y, weir_module_child(m, name), *x));
  weir_tensor_release(*x);
  *x = y;
  return WEIR_OK;
}

static weir_status add_conv(weir_module *m, const char *name, int64_t in, int64_t out,
                            int64_t kernel, int64_t stride)
{
  weir_module *conv;
  weir_layer_options o = {.no_bias = true};
  o.conv = (weir_conv2d_options){{stride, stride}, {kernel / 2, kernel / 2}, {1, 1}, 1};
  TRY(weir_module_conv2d(&conv, in, out, kernel, &o));
  return weir_module_add(m, name, conv);
}

static weir_status add_norm(weir_module *m, const char *name, int64_t channels)
{
  weir_module *norm;
  TRY(weir_module_batch_norm2d(&norm, channels, NULL));
  return weir_module_add(m, name, norm);
}

/* ---- BasicBlock: relu(bn2(conv2(relu(bn1(conv1(x))))) + downsample(x)) ----------------------- */

static weir_status block_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                 int count)
{
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR shortcut = NULL;
  WEIR_TENSOR sum = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "BasicBlock takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  shortcut = weir_tensor_retain(in[0]);
  TRY(run_child(self, "conv1", &x));
  TRY(run_child(self, "bn1", &x));
  TRY(run_child(self, "relu", &x));
  TRY(run_child(self, "conv2", &x));
  TRY(run_child(self, "bn2", &x));
  if (weir_module_child(self, "downsample")) TRY(run_child(self, "downsample", &shortcut));
  TRY(weir_add(&sum, x, shortcut));
  return weir_module_call(out, weir_module_child(self, "relu"), sum);
}

static weir_status fill_block(weir_module *block, int64_t in, int64_t out, int64_t stride)
{
  weir_module *relu;
  TRY(add_conv(block, "conv1", in, out, 3, stride));
  TRY(add_norm(block, "bn1", out));
  TRY(weir_module_relu(&relu));
  TRY(weir_module_add(block, "relu", relu));
  TRY(add_conv(block, "conv2", out, out, 3, 1));
  TRY(add_norm(block, "bn2", out));
  if (in == out && stride == 1) return WEIR_OK;
  WEIR_MODULE down = NULL;
  TRY(weir_module_sequential(&down, NULL, 0));
  TRY(add_conv(down, "0", in, out, 1, stride));
  TRY(add_norm(down, "1", out));
  return weir_module_add(block, "downsample", weir_module_retain(down));
}

static weir_status add_layer(weir_module *m, const char *name, int64_t in, int64_t out,
                             int64_t stride)
{
  static const weir_module_class kind = {.name = "BasicBlock", .forward = block_forward};
  WEIR_MODULE layer = NULL;
  TRY(weir_module_sequential(&layer, NULL, 0));
  for (int i = 0; i < 2; i++) {
    WEIR_MODULE block = NULL;
    TRY(weir_module_new(&block, &kind, NULL));
    TRY(fill_block(block, i ? out : in, out, i ? 1 : stride));
    TRY(weir_module_append(layer, weir_module_retain(block)));
  }
  return weir_module_add(m, name, weir_module_retain(layer));
}

/* ---- ResNet ---------------------------------------------------------------------------------- */

static weir_status resnet_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                  int count)
{
  static const char *const steps[] = {"conv1",  "bn1",    "relu",   "maxpool", "layer1",
                                      "layer2", "layer3", "layer4", "avgpool"};
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR flat = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "ResNet takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    TRY(run_child(self, steps[i], &x));
  TRY(weir_flatten(&flat, x, 1, -1));
  return weir_module_call(out, weir_module_child(self, "fc"), flat);
}

static weir_status make_resnet18(weir_module **out)
{
  static const weir_module_class kind = {.name = "ResNet", .forward = resnet_forward};
  weir_pool2d_options pool = {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  WEIR_MODULE m = NULL;
  weir_module *child;
  TRY(weir_module_new(&m, &kind, NULL));
  TRY(add_conv(m, "conv1", 3, 64, 7, 2));
  TRY(add_norm(m, "bn1", 64));
  TRY(weir_module_relu(&child));
  TRY(weir_module_add(m, "relu", child));
  TRY(weir_module_max_pool2d(&child, &pool));
  TRY(weir_module_add(m, "maxpool", child));
  TRY(add_layer(m, "layer1", 64, 64, 1));
  TRY(add_layer(m, "layer2", 64, 128, 2));
  TRY(add_layer(m, "layer3", 128, 256, 2));
  TRY(add_layer(m, "layer4", 256, 512, 2));
  TRY(weir_module_adaptive_avg_pool2d(&child, (const int64_t[]){1, 1}));
  TRY(weir_module_add(m, "avgpool", child));
  TRY(weir_module_linear(&child, 512, 1000, NULL));
  TRY(weir_module_add(m, "fc", child));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

/* files: checkpoint, images, output; NULL: random ones. */
static weir_status classify(weir_device device, char **files)
{
  WEIR_MODULE model = NULL;
  WEIR_TENSOR images = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR back = NULL;
  char *text;
  weir_manual_seed(0);
  TRY(make_resnet18(&model));
  if (files) TRY(weir_module_load(model, files[0], true));
  TRY(weir_module_to(model, &(weir_options){.device = device}));
  weir_module_train(model, false);
  TRY(files ? weir_npy_read(&images, files[1], NULL)
            : weir_rand(&images, weir_shape(1, 3, 64, 64), NULL));
  TRY(weir_to(&x, images, &(weir_options){.device = device}));
  WEIR_NO_GRAD TRY(weir_module_call(&y, model, x));
  TRY(weir_cpu(&back, y));
  if (files) return weir_npy_write(files[2], back);
  TRY(weir_module_to_string(&text, model));
  printf("%s\n%lld classes\n", text, (long long)weir_tensor_size(back, 1));
  free(text);
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  static const char *const options[] = {"--disable-cuda", NULL};
  int usage =
      answer_usage(argc, argv, "resnet18", "[CHECKPOINT IMAGES OUTPUT] [--disable-cuda]", options);
  if (usage != GO_ON) return usage;
  bool no_cuda = argc > 1 && !strcmp(argv[argc - 1], "--disable-cuda");
  int count = argc - no_cuda;
  if (count != 1 && count != 4) {
    (void)fprintf(stderr, "usage: resnet18 [CHECKPOINT IMAGES OUTPUT] [--disable-cuda]\n");
    return 2;
  }
  weir_status st = classify(weir_device_select(no_cuda), count == 4 ? argv + 1 : NULL);
  if (st) (void)fprintf(stderr, "resnet18: %s\n", weir_error_message());
  return st != WEIR_OK;
}

// speed.cc: operations of Weir beside PyTorch's, on the cpu, in one process.
//
//     speed [--json FILE] [--threads LIST] [--ms N] [PATTERN...]
//
// A row is one call of each library with the same operands (the same memory). It runs with as many
// threads as --threads lists (default 1,2). Both are called from here, PyTorch by its C++ functions:
// the cost of Python is not in its times. First the results are compared: a row whose results are
// unlike measures nothing and fails. Then the two take turns, N milliseconds each (default 8), ROUNDS
// times; between turns nothing runs until threads that spin after their work, as OpenMP's, sleep,
// and a turn is taken twice, the first time to warm up. What
// counts is the least time of a call in a turn, which other programs on the machine disturb least
// (one thread's is the time it had a processor); the medians are in the JSON beside it. PATTERN: only rows whose name has one of them.
//
// The target: of all rows the geometric mean of Weir's time by PyTorch's at most MEAN, of each row at
// most MOST. Exit status 0 whether it is met or not; 1 where results are unlike or a call failed.
//
// A new row is one line in a function named *_rows; those that train are in speed_training.cc.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/api/include/torch/version.h>
#include "tests/peers/speed.h"

namespace
{
constexpr double MEAN = 0.8, MOST = 1.25;
constexpr int ROUNDS = 5;

// ---- rows --------------------------------------------------------------------------------------

struct figures {
  double least = HUGE_VAL, median = 0; // nanoseconds a call
};

struct result {
  std::string name;
  int threads;
  figures ours, theirs;
  double ratio() const { return ours.least / theirs.least; }
};

std::string sized(const char *name, at::ScalarType type, double elements)
{
  char text[96];
  const char *dtype = type == at::kFloat ? "" : c10::toString(type);
  (void)snprintf(text, sizeof text, "%s %s%s%g", name, dtype, *dtype ? " " : "", elements);
  return text;
}

#define UNARY(X)                                                                                   \
  X(neg), X(abs), X(relu), X(exp), X(log), X(sqrt), X(rsqrt), X(sin), X(cos), X(tanh), X(sigmoid), \
      X(silu), X(erf), X(logical_not), X(isfinite)
#define BINARY(X)                                                                                  \
  X(add), X(sub), X(mul), X(div), X(floor_divide), X(pow), X(maximum), X(minimum), X(eq), X(lt),   \
      X(ge), X(logical_and)

void unary_rows(rows &all, int64_t n, at::ScalarType type)
{
  operand a = uniform({n}, type);
#define ROW(op)                                                                                    \
  all.push_back({sized(#op, type, static_cast<double>(n)),                                         \
                 [=](weir_tensor **out) { return weir_##op(out, a.ours); },                        \
                 [=] { return at::op(a.theirs); }})
  UNARY(ROW);
#undef ROW
  all.push_back({sized("clone", type, static_cast<double>(n)),
                 [=](weir_tensor **out) { return weir_clone(out, a.ours); },
                 [=] { return a.theirs.clone(); }});
}

void binary_rows(rows &all, int64_t n, at::ScalarType type)
{
  operand a = uniform({n}, type), b = uniform({n}, type), c = uniform({n}, at::kBool);
#define ROW(op)                                                                                    \
  all.push_back({sized(#op, type, static_cast<double>(n)),                                         \
                 [=](weir_tensor **out) { return weir_##op(out, a.ours, b.ours); },                \
                 [=] { return at::op(a.theirs, b.theirs); }})
  BINARY(ROW);
#undef ROW
  all.push_back({sized("where", type, static_cast<double>(n)),
                 [=](weir_tensor **out) { return weir_where(out, c.ours, a.ours, b.ours); },
                 [=] { return at::where(c.theirs, a.theirs, b.theirs); }});
}

// With numbers and in place: what an optimizer and a loss do.
void number_rows(rows &all, int64_t n)
{
  operand a = uniform({n}), b = uniform({n});
  auto size = static_cast<double>(n);
  all.push_back({sized("mul number", at::kFloat, size),
                 [=](weir_tensor **out) { return weir_mul_scalar(out, a.ours, weir_float(1.5)); },
                 [=] { return at::mul(a.theirs, 1.5); }});
  all.push_back({sized("pow 2", at::kFloat, size),
                 [=](weir_tensor **out) { return weir_pow_scalar(out, a.ours, weir_int(2)); },
                 [=] { return at::pow(a.theirs, 2); }});
  all.push_back({sized("gt number", at::kFloat, size),
                 [=](weir_tensor **out) { return weir_gt_scalar(out, a.ours, weir_float(1)); },
                 [=] { return at::gt(a.theirs, 1.0); }});
  all.push_back({sized("clamp", at::kFloat, size),
                 [=](weir_tensor **out) {
                   weir_scalar low = weir_float(0.5), high = weir_float(1.5);
                   return weir_clamp(out, a.ours, &low, &high);
                 },
                 [=] { return at::clamp(a.theirs, 0.5, 1.5); }});
  operand x = uniform({n}), y = uniform({n}); // each library's own
  all.push_back({sized("add_ alpha", at::kFloat, size),
                 [=](weir_tensor **) { return weir_add_alpha_(x.ours, b.ours, weir_float(1e-9)); },
                 [=] { return at::Tensor(y.theirs).add_(b.theirs, 1e-9); }});
}

void gelu_row(rows &all, int64_t n, at::ScalarType type)
{
  operand a = uniform({n}, type);
  all.push_back({sized("gelu", type, static_cast<double>(n)),
                 [=](weir_tensor **out) { return weir_gelu(out, a.ours, "none"); },
                 [=] { return at::gelu(a.theirs); }});
}

// Float16 and bfloat16 with numbers, in place, and along dimensions.
void half_rows(rows &all, at::ScalarType type)
{
  operand a = uniform({1000000}, type), b = uniform({1000000}, type),
          m = uniform({1000, 1000}, type);
  all.push_back({sized("mul number", type, 1e6),
                 [=](weir_tensor **out) { return weir_mul_scalar(out, a.ours, weir_float(1.5)); },
                 [=] { return at::mul(a.theirs, 1.5); }});
  operand x = uniform({1000000}, type), y = uniform({1000000}, type); // each library's own
  all.push_back({sized("add_ alpha", type, 1e6),
                 [=](weir_tensor **) { return weir_add_alpha_(x.ours, b.ours, weir_float(1e-9)); },
                 [=] { return at::Tensor(y.theirs).add_(b.theirs, 1e-9); }});
  for (int dim : {0, 1})
    all.push_back({sized("sum dim", type, 1e6) + (dim ? " 1" : " 0"),
                   [=](weir_tensor **out) { return weir_sum_dim(out, m.ours, dim, false); },
                   [=] { return at::sum(m.theirs, dim); }});
}

void elementwise_rows(rows &all)
{
  for (int64_t n : {1000, 1000000, 25000000}) {
    unary_rows(all, n, at::kFloat);
    binary_rows(all, n, at::kFloat);
    number_rows(all, n);
    gelu_row(all, n, at::kFloat);
  }
  for (auto type : {at::kHalf, at::kBFloat16, at::kLong}) {
    operand a = uniform({1000000}, type), b = uniform({1000000}, type);
#define ROW(op)                                                                                    \
  all.push_back({sized(#op, type, 1e6),                                                            \
                 [=](weir_tensor **out) { return weir_##op(out, a.ours, b.ours); },                \
                 [=] { return at::op(a.theirs, b.theirs); }})
    ROW(add);
    ROW(mul);
    ROW(div);
    ROW(maximum);
    ROW(eq);
    ROW(lt);
    ROW(pow);
#undef ROW
#define ROW(op)                                                                                    \
  all.push_back({sized(#op, type, 1e6), [=](weir_tensor **out) { return weir_##op(out, a.ours); }, \
                 [=] { return at::op(a.theirs); }})
    ROW(neg);
    ROW(relu);
    ROW(exp);
    ROW(tanh);
    ROW(sigmoid);
    ROW(sum);
    ROW(amax);
    if (type == at::kLong) continue;
    ROW(log);
    ROW(sqrt);
    ROW(sin);
    ROW(silu);
#undef ROW
    gelu_row(all, 1000000, type);
    half_rows(all, type);
  }
}

void cast_rows(rows &all)
{
  const at::ScalarType pairs[][2] = {{at::kFloat, at::kHalf},     {at::kHalf, at::kFloat},
                                     {at::kFloat, at::kBFloat16}, {at::kBFloat16, at::kFloat},
                                     {at::kByte, at::kFloat},     {at::kFloat, at::kLong},
                                     {at::kLong, at::kFloat},     {at::kFloat, at::kDouble}};
  for (auto &pair : pairs) {
    operand a = uniform({1000000}, pair[0]);
    auto to = pair[1];
    std::string name =
        std::string("to ") + c10::toString(pair[0]) + " " + c10::toString(to) + " 1e6";
    all.push_back({name,
                   [=](weir_tensor **out) { return weir_to_dtype(out, a.ours, dtype_of(to)); },
                   [=] { return a.theirs.to(to); }});
  }
}

// Other strides, and operands that repeat.
void strided_rows(rows &all)
{
  auto dense = [&](const char *name, at::Tensor t) {
    operand a(std::move(t));
    all.push_back({name, [=](weir_tensor **out) { return weir_contiguous(out, a.ours); },
                   [=] { return a.theirs.contiguous(); }});
  };
  dense("contiguous 1000^2 transposed", at::rand({1000, 1000}).t());
  dense("contiguous 4096^2 transposed", at::rand({4096, 4096}).t());
  dense("contiguous 4096^2 transposed Byte", at::rand({4096, 4096}).mul(100).to(at::kByte).t());
  dense("contiguous 32x56^2x64 to 32x64x56^2", at::rand({32, 56, 56, 64}).permute({0, 3, 1, 2}));
  dense("contiguous 224^2x3 Byte to 3x224^2",
        at::rand({224, 224, 3}).mul(100).to(at::kByte).permute({2, 0, 1}));
  dense("contiguous 8x128x12x64 heads", at::rand({8, 128, 12, 64}).permute({0, 2, 1, 3}));
  dense("contiguous 2e6 step 2", at::rand({2000000}).as_strided({1000000}, {2}));
  dense("contiguous 1000 row to 1000^2", at::rand({1000}).expand({1000, 1000}));
  operand a = uniform({1000, 1000}), t(at::rand({1000, 1000}).t()), row = uniform({1000}),
          column = uniform({1000, 1}), image = uniform({32, 64, 56, 56}),
          channel = uniform({64, 1, 1});
  auto add = [&](const char *name, const operand &x, const operand &y) {
    all.push_back({name, [=](weir_tensor **out) { return weir_add(out, x.ours, y.ours); },
                   [=] { return at::add(x.theirs, y.theirs); }});
  };
  add("add 1000^2 transposed", a, t);
  add("add 1000^2 row", a, row);
  add("add 1000^2 column", a, column);
  add("add 32x64x56^2 channel", image, channel);
}

void reduce_rows(rows &all)
{
#define ROW(op)                                                                                    \
  all.push_back({sized(#op, at::kFloat, size),                                                     \
                 [=](weir_tensor **out) { return weir_##op(out, a.ours); },                        \
                 [=] { return at::op(a.theirs); }})
  for (int64_t n : {1000, 1000000, 25000000}) {
    operand a = uniform({n});
    auto size = static_cast<double>(n);
    ROW(sum);
    ROW(mean);
    ROW(amax);
    ROW(amin);
    ROW(prod);
    ROW(argmax);
    ROW(any);
    ROW(all);
    all.push_back({sized("var", at::kFloat, size),
                   [=](weir_tensor **out) { return weir_var(out, a.ours, 1); },
                   [=] { return at::var(a.theirs); }});
    all.push_back({sized("norm", at::kFloat, size),
                   [=](weir_tensor **out) { return weir_norm(out, a.ours, 2); },
                   [=] { return at::norm(a.theirs); }});
  }
#undef ROW
}

void reduce_dim_rows(rows &all)
{
  operand a = uniform({1000, 1000}), image = uniform({32, 64, 56, 56});
  for (int dim : {0, 1}) {
    std::string where = " 1000^2 dim " + std::to_string(dim);
#define ROW(op)                                                                                    \
  all.push_back({#op + where,                                                                      \
                 [=](weir_tensor **out) { return weir_##op##_dim(out, a.ours, dim, false); },      \
                 [=] { return at::op(a.theirs, dim); }})
    ROW(sum);
    ROW(mean);
    ROW(amax);
    ROW(argmax);
#undef ROW
    all.push_back({"var" + where,
                   [=](weir_tensor **out) { return weir_var_dim(out, a.ours, dim, 1, false); },
                   [=] { return at::var(a.theirs, at::IntArrayRef(dim), 1, false); }});
    all.push_back({"logsumexp" + where,
                   [=](weir_tensor **out) { return weir_logsumexp(out, a.ours, dim, false); },
                   [=] { return at::logsumexp(a.theirs, dim); }});
  }
  auto sums = [&](const char *name, const operand &x, std::vector<int> dims) {
    std::vector<int64_t> theirs(dims.begin(), dims.end());
    all.push_back({name,
                   [=](weir_tensor **out) {
                     return weir_mean_dims(out, x.ours, dims.data(), static_cast<int>(dims.size()),
                                           false);
                   },
                   [=] { return at::mean(x.theirs, theirs); }});
  };
  sums("mean 32x64x56^2 dims 0 2 3", image, {0, 2, 3});
  sums("mean 32x64x56^2 dims 2 3", image, {2, 3});
  sums("mean 32x64x56^2 dims 0 1", image, {0, 1});
  sums("mean 32x64x56^2 dims 1", image, {1});
}

void softmax_rows(rows &all)
{
  struct shape {
    const char *name;
    std::vector<int64_t> sizes;
    int dim;
  };
  const shape shapes[] = {{"1000", {1000}, 0},
                          {"1000x1000", {1000, 1000}, 1},
                          {"1000x1000 dim 0", {1000, 1000}, 0},
                          {"8x12x128x128", {8, 12, 128, 128}, 3},
                          {"64x50257", {64, 50257}, 1},
                          {"1e6", {1000000}, 0}};
  for (auto &s : shapes)
    for (auto type : {at::kFloat, at::kBFloat16}) {
      operand a = uniform(s.sizes, type);
      int dim = s.dim;
      std::string name = std::string(s.name) + (type == at::kFloat ? "" : " bfloat16");
      all.push_back({"softmax " + name,
                     [=](weir_tensor **out) { return weir_softmax(out, a.ours, dim); },
                     [=] { return at::softmax(a.theirs, dim); }});
      all.push_back({"log_softmax " + name,
                     [=](weir_tensor **out) { return weir_log_softmax(out, a.ours, dim); },
                     [=] { return at::log_softmax(a.theirs, dim); }});
    }
}

void product_rows(rows &all)
{
  auto product = [&](const std::string &name, const operand &a, const operand &b) {
    all.push_back({name, [=](weir_tensor **out) { return weir_matmul(out, a.ours, b.ours); },
                   [=] { return at::matmul(a.theirs, b.theirs); }});
  };
  for (int64_t n : {64, 128, 256, 512, 1024, 2048})
    product("mm " + std::to_string(n), uniform({n, n}), uniform({n, n}));
  product("mm 512 Double", uniform({512, 512}, at::kDouble), uniform({512, 512}, at::kDouble));
  product("mv 1000", uniform({1000, 1000}), uniform({1000}));
  product("mm 1x1024 by 1024^2", uniform({1, 1024}), uniform({1024, 1024}));
  product("mm 64x1024 by 1024x4096", uniform({64, 1024}), uniform({1024, 4096}));
  product("bmm 64 of 64", uniform({64, 64, 64}), uniform({64, 64, 64}));
  product("bmm 512 of 16", uniform({512, 16, 16}), uniform({512, 16, 16}));
  product("bmm 96 of 128x64x128", uniform({96, 128, 64}), uniform({96, 64, 128}));
  operand x = uniform({64, 784}), w = uniform({256, 784}), bias = uniform({256});
  all.push_back({"linear 64x784 by 256",
                 [=](weir_tensor **out) { return weir_linear(out, x.ours, w.ours, bias.ours); },
                 [=] { return at::linear(x.theirs, w.theirs, bias.theirs); }});
}

struct convolution {
  const char *name;
  std::vector<int64_t> in, weight;
  int64_t stride, padding, groups;
};

void conv_rows(rows &all)
{
  const convolution list[] = {
      {"1x3x224^2 7x7 by 64", {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1},
      {"32x64x56^2 3x3 by 64", {32, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {"1x64x56^2 3x3 by 64", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {"32x64x56^2 1x1 by 256", {32, 64, 56, 56}, {256, 64, 1, 1}, 1, 0, 1},
      {"32x64x56^2 1x1 by 128, 2", {32, 64, 56, 56}, {128, 64, 1, 1}, 2, 0, 1},
      {"32x64x56^2 3x3 depthwise", {32, 64, 56, 56}, {64, 1, 3, 3}, 1, 1, 64},
      {"32x128x28^2 5x5 depthwise, 2", {32, 128, 28, 28}, {128, 1, 5, 5}, 2, 2, 128},
      {"64x1x28^2 5x5 by 20", {64, 1, 28, 28}, {20, 1, 5, 5}, 1, 0, 1},
      {"8x512x7^2 3x3 by 512", {8, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1}};
  for (auto &c : list) {
    operand x = uniform(c.in), w = uniform(c.weight), bias = uniform({c.weight[0]});
    weir_conv2d_options o = {};
    o.stride[0] = o.stride[1] = c.stride;
    o.padding[0] = o.padding[1] = c.padding;
    o.groups = c.groups;
    all.push_back(
        {std::string("conv2d ") + c.name,
         [=](weir_tensor **out) { return weir_conv2d(out, x.ours, w.ours, bias.ours, &o); },
         [=] {
           return at::conv2d(x.theirs, w.theirs, bias.theirs, o.stride[0], o.padding[0], 1,
                             o.groups);
         }});
  }
}

void average_rows(rows &all)
{
  auto average = [&](const char *name, std::vector<int64_t> sizes, int64_t kernel, int64_t stride,
                     int64_t padding) {
    operand x = uniform(std::move(sizes));
    weir_pool_options o = {};
    o.kernel[0] = o.kernel[1] = kernel;
    o.stride[0] = o.stride[1] = stride;
    o.padding[0] = o.padding[1] = padding;
    all.push_back({std::string("avg_pool2d ") + name,
                   [=](weir_tensor **out) { return weir_avg_pool2d(out, x.ours, &o); },
                   [=] { return at::avg_pool2d(x.theirs, kernel, stride, padding); }});
  };
  average("32x64x56^2 3x3, 2", {32, 64, 56, 56}, 3, 2, 1);
  average("64x20x24^2 2x2", {64, 20, 24, 24}, 2, 2, 0);
  average("32x64x28^2 28x28", {32, 64, 28, 28}, 28, 28, 0);
  auto adaptive = [&](const char *name, std::vector<int64_t> sizes, int64_t side) {
    operand x = uniform(std::move(sizes));
    all.push_back({std::string("adaptive_avg_pool2d ") + name,
                   [=](weir_tensor **out) {
                     const int64_t size[] = {side, side};
                     return weir_adaptive_avg_pool2d(out, x.ours, size);
                   },
                   [=] {
                     return at::adaptive_avg_pool2d(x.theirs, {side, side});
                   }});
    all.push_back({std::string("adaptive_max_pool2d ") + name,
                   [=](weir_tensor **out) {
                     const int64_t size[] = {side, side};
                     return weir_adaptive_max_pool2d(out, x.ours, size);
                   },
                   [=] {
                     return std::get<0>(at::adaptive_max_pool2d(x.theirs, {side, side}));
                   }});
  };
  adaptive("32x512x7^2 to 1", {32, 512, 7, 7}, 1);
  adaptive("32x64x56^2 to 7", {32, 64, 56, 56}, 7);
}

void pool_rows(rows &all)
{
  auto pool = [&](const char *name, std::vector<int64_t> sizes, int64_t kernel, int64_t stride,
                  int64_t padding) {
    operand x = uniform(std::move(sizes));
    weir_pool2d_options o = {};
    o.kernel[0] = o.kernel[1] = kernel;
    o.stride[0] = o.stride[1] = stride;
    o.padding[0] = o.padding[1] = padding;
    all.push_back({std::string("max_pool2d ") + name,
                   [=](weir_tensor **out) { return weir_max_pool2d(out, x.ours, &o); },
                   [=] { return at::max_pool2d(x.theirs, kernel, stride, padding); }});
  };
  pool("32x64x112^2 3x3, 2", {32, 64, 112, 112}, 3, 2, 1);
  pool("64x20x24^2 2x2", {64, 20, 24, 24}, 2, 2, 0);
  pool("1x64x224^2 28x28", {1, 64, 224, 224}, 28, 28, 0);
  pool("32x64x28^2 28x28", {32, 64, 28, 28}, 28, 28, 0);
  average_rows(all);
}

// Mean, variance, and what follows from them.
void norm_rows(rows &all)
{
  struct shape {
    const char *name;
    std::vector<int64_t> sizes;
  };
  for (auto type : {at::kFloat, at::kBFloat16})
    for (auto &s : {shape{"16x128", {16, 128}}, shape{"1024x768", {1024, 768}},
                    shape{"64x8192", {64, 8192}}}) {
      int64_t n = s.sizes[1];
      operand x = uniform(s.sizes, type), w = uniform({n}, type), b = uniform({n}, type);
      std::string name = std::string(s.name) + (type == at::kFloat ? "" : " bfloat16");
      all.push_back({"layer_norm " + name,
                     [=](weir_tensor **out) {
                       return weir_layer_norm(out, x.ours, weir_shape(n), w.ours, b.ours, 1e-5);
                     },
                     [=] { return at::layer_norm(x.theirs, {n}, w.theirs, b.theirs); }});
      all.push_back(
          {"rms_norm " + name,
           [=](weir_tensor **out) { return weir_rms_norm(out, x.ours, weir_shape(n), w.ours, -1); },
           [=] { return at::rms_norm(x.theirs, {n}, w.theirs); }});
    }
  struct image {
    const char *name;
    std::vector<int64_t> sizes;
  };
  for (auto &s : {image{"32x64x56^2", {32, 64, 56, 56}}, image{"8x512x7^2", {8, 512, 7, 7}},
                  image{"128x256", {128, 256}}}) {
    int64_t n = s.sizes[1];
    operand x = uniform(s.sizes), w = uniform({n}), b = uniform({n}), mean = uniform({n}),
            var = uniform({n}), mean2 = uniform({n}), var2 = uniform({n});
    for (bool train : {false, true}) {
      // its own running statistics for each library where they change
      weir_batch_norm_options o = {train, 0.1, 1e-5};
      const operand &m = train ? mean2 : mean, &v = train ? var2 : var;
      all.push_back({std::string("batch_norm ") + s.name + (train ? " train" : " eval"),
                     [=](weir_tensor **out) {
                       return weir_batch_norm(out, x.ours, mean.ours, var.ours, w.ours, b.ours, &o);
                     },
                     [=] {
                       return at::batch_norm(x.theirs, w.theirs, b.theirs, m.theirs, v.theirs,
                                             train, 0.1, 1e-5, false);
                     }});
    }
    if (s.sizes.size() < 4) continue;
    all.push_back(
        {std::string("group_norm 32, ") + s.name,
         [=](weir_tensor **out) { return weir_group_norm(out, x.ours, 32, w.ours, b.ours, 1e-5); },
         [=] { return at::group_norm(x.theirs, 32, w.theirs, b.theirs); }});
  }
}

void attention_rows(rows &all)
{
  struct shape {
    const char *name;
    std::vector<int64_t> sizes;
    bool causal;
  };
  for (auto &s :
       {shape{"8x8x128x64", {8, 8, 128, 64}, false}, shape{"2x8x512x64", {2, 8, 512, 64}, false},
        shape{"2x8x512x64 causal", {2, 8, 512, 64}, true},
        shape{"1x12x1024x64 causal", {1, 12, 1024, 64}, true},
        shape{"2x4x16x32", {2, 4, 16, 32}, false}}) {
    operand q = uniform(s.sizes), k = uniform(s.sizes), v = uniform(s.sizes);
    weir_attention_options o = {};
    o.is_causal = s.causal;
    all.push_back({std::string("attention ") + s.name,
                   [=](weir_tensor **out) {
                     return weir_scaled_dot_product_attention(out, q.ours, k.ours, v.ours, &o);
                   },
                   [=] {
                     return at::scaled_dot_product_attention(q.theirs, k.theirs, v.theirs, {}, 0,
                                                             o.is_causal);
                   }});
  }
}

/* Of heads of 64 with a mask: of bool by keys, as padding is, of float by rows and keys. */
void masked_attention_rows(rows &all)
{
  std::vector<int64_t> sizes{2, 8, 512, 64};
  operand q = uniform(sizes), k = uniform(sizes), v = uniform(sizes);
  operand keys(at::rand({2, 1, 1, 512}).gt(.1)), places = uniform({512, 512});
  for (const auto &mask : {keys, places}) {
    std::string what = mask.theirs.dim() == 4 ? "bool 2x1x1x512" : "float 512x512";
    weir_attention_options o = {};
    o.mask = mask.ours;
    all.push_back({"attention mask " + what,
                   [=](weir_tensor **out) {
                     return weir_scaled_dot_product_attention(out, q.ours, k.ours, v.ours, &o);
                   },
                   [=] {
                     return at::scaled_dot_product_attention(q.theirs, k.theirs, v.theirs,
                                                             mask.theirs);
                   }});
  }
}

void loss_rows(rows &all)
{
  for (auto sizes : {std::vector<int64_t>{64, 1000}, {512, 50257}, {64, 10}}) {
    operand x = uniform(sizes), target(at::randint(sizes[1], {sizes[0]}, at::kLong));
    all.push_back(
        {"cross_entropy " + std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]),
         [=](weir_tensor **out) { return weir_cross_entropy(out, x.ours, target.ours, nullptr); },
         [=] { return at::cross_entropy_loss(x.theirs, target.theirs); }});
  }
  operand a = uniform({1000000}), b = uniform({1000000});
  all.push_back(
      {"mse_loss 1e6",
       [=](weir_tensor **out) { return weir_mse_loss(out, a.ours, b.ours, WEIR_REDUCTION_MEAN); },
       [=] { return at::mse_loss(a.theirs, b.theirs); }});
}

void join_rows(rows &all)
{
  auto cat = [&](const std::string &name, const operand &a, const operand &b, int dim) {
    all.push_back({name,
                   [=](weir_tensor **out) {
                     const weir_tensor *both[] = {a.ours, b.ours};
                     return weir_cat(out, both, 2, dim);
                   },
                   [=] {
                     return at::cat({a.theirs, b.theirs}, dim);
                   }});
  };
  cat("cat 2 of 500", uniform({500}), uniform({500}), 0);
  cat("cat 2 of 1000^2 dim 0", uniform({1000, 1000}), uniform({1000, 1000}), 0);
  cat("cat 2 of 1000^2 dim 1", uniform({1000, 1000}), uniform({1000, 1000}), 1);
  cat("cat 2 of 32x64x56^2 dim 1", uniform({32, 64, 56, 56}), uniform({32, 64, 56, 56}), 1);
  std::vector<operand> items;
  for (int i = 0; i < 64; i++)
    items.push_back(uniform({3, 32, 32}));
  all.push_back({"stack 64 of 3x32^2",
                 [=](weir_tensor **out) {
                   const weir_tensor *list[64];
                   for (size_t i = 0; i < items.size(); i++)
                     list[i] = items[i].ours;
                   return weir_stack(out, list, 64, 0);
                 },
                 [=] {
                   std::vector<at::Tensor> list;
                   list.reserve(items.size());
                   for (auto &item : items)
                     list.push_back(item.theirs);
                   return at::stack(list);
                 }});
}

// ---- measuring ---------------------------------------------------------------------------------

// Of this thread where it works alone: what other programs take does not count.
double now(int threads)
{
  timespec t;
  (void)clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Whether both give the same, to the rounding of long sums.
bool alike(const row &r)
{
  weir_tensor *out = nullptr;
  if (r.ours(&out)) {
    (void)fprintf(stderr, "speed: %s: %s\n", r.name.c_str(), weir_error_message());
    return false;
  }
  at::Tensor theirs = r.theirs();
  if (!out) return true;
  weir_shape shape = weir_tensor_shape(out);
  std::vector<int64_t> strides;
  for (int i = 0; i < shape.count; i++)
    strides.push_back(weir_tensor_stride(out, i));
  at::Tensor ours = at::from_blob(weir_tensor_data(out),
                                  at::IntArrayRef(shape.size, static_cast<size_t>(shape.count)),
                                  strides, at::TensorOptions(type_of(weir_tensor_dtype(out))));
  bool same = ours.scalar_type() == theirs.scalar_type() && ours.sizes() == theirs.sizes();
  double rough =
      theirs.scalar_type() == at::kHalf || theirs.scalar_type() == at::kBFloat16 ? 2e-2 : 1e-3;
  if (same) same = at::allclose(ours.to(at::kDouble), theirs.to(at::kDouble), rough, rough, true);
  weir_tensor_release(out);
  if (!same) (void)fprintf(stderr, "speed: %s: results are unlike\n", r.name.c_str());
  return same;
}

double time_of(const std::function<void()> &call, int64_t times, int threads)
{
  double begin = now(threads);
  for (int64_t i = 0; i < times; i++)
    call();
  return (now(threads) - begin) / static_cast<double>(times);
}

// Calls that fill `target` nanoseconds.
int64_t times_in(const std::function<void()> &call, double target, int threads)
{
  call();
  double once = time_of(call, 1, threads);
  if (once * 8 < target)
    once = time_of(call, 1 + static_cast<int64_t>(target / 8 / (once + 20)), threads);
  return 1 + static_cast<int64_t>(target / (once + 1));
}

figures figures_of(std::vector<double> &times)
{
  figures f;
  std::sort(times.begin(), times.end());
  f.least = times.front();
  f.median = times[times.size() / 2];
  return f;
}

// Waits until no thread of the process watches for work any more: OpenMP's do so for several
// milliseconds after theirs, and would take the processor that the other library's thread needs.
void settle()
{
  timespec t;
  double before, after = 0;
  for (int i = 0; i < 100; i++) {
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    before = static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    after = static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    if (after - before < 2e5) return;
  }
}

result measure(const row &r, int threads, double target)
{
  std::function<void()> calls[2] = {[&] {
                                      weir_tensor *out = nullptr;
                                      (void)r.ours(&out);
                                      weir_tensor_release(out);
                                    },
                                    [&] { (void)r.theirs(); }};
  std::vector<double> times[2];
  int64_t count[2];
  for (int side : {0, 1}) {
    if (threads > 1) settle();
    count[side] = times_in(calls[side], target, threads);
  }
  for (int round = 0; round < ROUNDS; round++)
    for (int side : {0, 1}) {
      if (threads > 1) {
        settle();
        (void)time_of(calls[side], count[side], threads); // caches and processors are cold
      }
      times[side].push_back(time_of(calls[side], count[side], threads));
    }
  return {r.name, threads, figures_of(times[0]), figures_of(times[1])};
}

// ---- what is printed ---------------------------------------------------------------------------

std::string duration(double ns)
{
  char text[32];
  double value = ns < 1e3 ? ns : ns < 1e6 ? ns / 1e3 : ns / 1e6;
  (void)snprintf(text, sizeof text, "%.*f %s",
                 value < 10    ? 2
                 : value < 100 ? 1
                               : 0,
                 value,
                 ns < 1e3   ? "ns"
                 : ns < 1e6 ? "us"
                            : "ms");
  return text;
}

void print(const result &r)
{
  (void)printf("%-38s %2d %10s %10s %6.2f  %s\n", r.name.c_str(), r.threads,
               duration(r.ours.least).c_str(), duration(r.theirs.least).c_str(), r.ratio(),
               r.ratio() <= MOST ? "met" : "not met");
  (void)fflush(stdout);
}

void summarise(const std::vector<result> &all, int threads)
{
  double sum = 0, worst = 0;
  int count = 0, met = 0;
  for (auto &r : all) {
    if (r.threads != threads) continue;
    sum += std::log(r.ratio());
    worst = std::max(worst, r.ratio());
    met += r.ratio() <= MOST;
    count++;
  }
  if (!count) return;
  double mean = std::exp(sum / count);
  (void)printf("%d thread%s: geometric mean %.2f (at most %.2f: %s), worst %.2f, %d of %d rows at "
               "most %.2f\n",
               threads, threads == 1 ? "" : "s", mean, MEAN, mean <= MEAN ? "met" : "not met",
               worst, met, count, MOST);
}

std::string cpu_model()
{
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

bool write_json(const char *path, const std::vector<result> &all)
{
  FILE *f = fopen(path, "w");
  if (!f) {
    perror(path);
    return false;
  }
  (void)fprintf(f, "{\"torch\": \"%s\", \"cpu\": \"%s\", \"blas\": \"%s\", \"rows\": [\n",
                TORCH_VERSION, cpu_model().c_str(),
                weir_cpu_blas_name() ? weir_cpu_blas_name() : "builtin");
  for (size_t i = 0; i < all.size(); i++) {
    const result &r = all[i];
    (void)fprintf(f,
                  "  {\"name\": \"%s\", \"threads\": %d, \"weir_ns\": %.1f, \"torch_ns\": %.1f, "
                  "\"weir_median_ns\": "
                  "%.1f, \"torch_median_ns\": %.1f, \"ratio\": %.4f}%s\n",
                  r.name.c_str(), r.threads, r.ours.least, r.theirs.least, r.ours.median,
                  r.theirs.median, r.ratio(), i + 1 < all.size() ? "," : "");
  }
  (void)fprintf(f, "]}\n");
  return !fclose(f);
}

struct arguments {
  const char *json = nullptr;
  std::vector<int> threads;
  double target = 8e6; // nanoseconds a turn
  std::vector<std::string> patterns;
};

std::vector<int> numbers(const char *list)
{
  std::vector<int> out;
  for (const char *at = list; *at;) {
    char *end;
    out.push_back(static_cast<int>(std::max(1L, strtol(at, &end, 10))));
    at = *end == ',' ? end + 1 : end + strlen(end);
  }
  return out;
}

arguments read_arguments(int argc, char **argv)
{
  arguments a;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    bool value = i + 1 < argc;
    if (word == "--json" && value)
      a.json = argv[++i];
    else if (word == "--threads" && value)
      a.threads = numbers(argv[++i]);
    else if (word == "--ms" && value)
      a.target = strtod(argv[++i], nullptr) * 1e6;
    else
      a.patterns.push_back(word);
  }
  if (a.threads.empty()) a.threads = {1, 2};
  return a;
}

bool wanted(const arguments &a, const std::string &name)
{
  if (a.patterns.empty()) return true;
  return std::any_of(a.patterns.begin(), a.patterns.end(),
                     [&](const std::string &p) { return name.find(p) != std::string::npos; });
}

int run(const arguments &a)
{
  std::vector<result> done;
  int unlike = 0;
  void (*const families[])(rows &) = {
      elementwise_rows, cast_rows,    strided_rows,   reduce_rows,
      reduce_dim_rows,  softmax_rows, product_rows,   conv_rows,
      pool_rows,        norm_rows,    attention_rows, masked_attention_rows,
      loss_rows,        join_rows,    training_rows,  loader_rows};
  (void)printf("Weir beside PyTorch %s; %s\n\n%-38s %2s %10s %10s %6s\n", TORCH_VERSION,
               cpu_model().c_str(), "row", "", "weir", "pytorch", "ratio");
  for (auto family : families) {
    rows all;
    family(all);
    for (auto &r : all) {
      if (!wanted(a, r.name)) continue;
      if (!alike(r)) {
        unlike++;
        continue;
      }
      for (int threads : a.threads) {
        at::set_num_threads(threads);
        (void)weir_set_num_threads(threads);
        done.push_back(measure(r, threads, a.target));
        print(done.back());
      }
    }
  }
  (void)printf("\n");
  for (int threads : a.threads)
    summarise(done, threads);
  if (unlike) (void)printf("%d rows are unlike\n", unlike);
  return (a.json && !write_json(a.json, done)) || unlike;
}
} // namespace

int main(int argc, char **argv)
try {
  at::InferenceMode guard;
  at::manual_seed(1);
  return run(read_arguments(argc, argv));
} catch (const std::exception &error) {
  (void)fprintf(stderr, "speed: %s\n", error.what());
  return 1;
}

// speed.h: what a row of speed.cc is, and its operands.
#ifndef WEIR_PEERS_SPEED_H
#define WEIR_PEERS_SPEED_H

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>
#include <ATen/ATen.h>
#include "core/weir.h"

// ---- operands ----------------------------------------------------------------------------------

inline weir_dtype dtype_of(at::ScalarType type)
{
  switch (type) {
  case at::kByte:
    return WEIR_UINT8;
  case at::kBool:
    return WEIR_BOOL;
  case at::kInt:
    return WEIR_INT32;
  case at::kLong:
    return WEIR_INT64;
  case at::kHalf:
    return WEIR_FLOAT16;
  case at::kBFloat16:
    return WEIR_BFLOAT16;
  case at::kDouble:
    return WEIR_FLOAT64;
  default:
    return WEIR_FLOAT32;
  }
}

inline at::ScalarType type_of(weir_dtype dtype)
{
  for (auto type :
       {at::kByte, at::kBool, at::kInt, at::kLong, at::kHalf, at::kBFloat16, at::kDouble})
    if (dtype_of(type) == dtype) return type;
  return at::kFloat;
}

// One tensor in both libraries' hands; the memory is PyTorch's.
struct operand {
  at::Tensor theirs;
  weir_tensor *ours = nullptr; // counted

  explicit operand(at::Tensor t) : theirs(std::move(t))
  {
    weir_options options = {};
    options.dtype = dtype_of(theirs.scalar_type());
    weir_shape shape = weir_shape_of(static_cast<int>(theirs.dim()), theirs.sizes().data());
    if (weir_tensor_over(&ours, theirs.data_ptr(), shape, theirs.strides().data(), &options,
                         nullptr, nullptr)) {
      (void)fprintf(stderr, "speed: %s\n", weir_error_message());
      exit(1);
    }
  }
  operand(const operand &o) : theirs(o.theirs), ours(weir_tensor_retain(o.ours)) {}
  operand &operator=(const operand &) = delete;
  ~operand() { weir_tensor_release(ours); }
};

inline operand uniform(std::vector<int64_t> sizes, at::ScalarType type = at::kFloat)
{
  at::Tensor t = at::rand(sizes) * 1.8 + 0.1;
  if (type == at::kLong || type == at::kInt || type == at::kByte) t = t * 50 + 1;
  if (type == at::kBool) t = t > 1;
  return operand(t.to(type));
}

// ---- rows --------------------------------------------------------------------------------------

struct row {
  std::string name;
  std::function<weir_status(weir_tensor **out)> ours; // *out is new, or NULL: in place
  std::function<at::Tensor()> theirs;
};

using rows = std::vector<row>;

// speed_training.cc: steps of training, and loading.
void training_rows(rows &all);
void loader_rows(rows &all);

#endif

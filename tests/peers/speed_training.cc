// speed_training.cc: rows of speed.cc that train: forward, backward, a step of AdamW, with the same
// first weights and the same batch each time; and a data loader's epoch.
//
// A network is written once, for both: `math` is PyTorch's functions, or Weir's.
#include <memory>
#include <stdexcept>
#include <c10/core/InferenceMode.h>
#include <torch/data.h>
#include <torch/optim/adamw.h>
#include "tests/peers/speed.h"

namespace
{
void must(weir_status st)
{
  if (st) throw std::runtime_error(weir_error_message());
}

// A tensor of Weir's, counted.
struct held {
  weir_tensor *t = nullptr;
  held() = default;
  explicit held(weir_tensor *owned) : t(owned) {}
  held(const held &o) : t(weir_tensor_retain(o.t)) {}
  held(held &&o) noexcept : t(o.t) { o.t = nullptr; }
  held &operator=(held o)
  {
    std::swap(t, o.t);
    return *this;
  }
  ~held() { weir_tensor_release(t); }
};

#define WEIR_CALL(name, ...)                                                                       \
  weir_tensor *out = nullptr;                                                                      \
  must(weir_##name(&out, __VA_ARGS__));                                                            \
  return held(out)

// What networks are made of, by Weir.
struct weir_math {
  using tensor = held;
  static held conv(const held &x, const held &w, const held &b)
  {
    weir_conv2d_options o = {};
    o.padding[0] = o.padding[1] = 1;
    WEIR_CALL(conv2d, x.t, w.t, b.t, &o);
  }
  static held batch_norm(const held &x, const held &w, const held &b)
  {
    weir_batch_norm_options o = {true, 0.1, 1e-5};
    WEIR_CALL(batch_norm, x.t, nullptr, nullptr, w.t, b.t, &o);
  }
  static held relu(const held &x) { WEIR_CALL(relu, x.t); }
  static held gelu(const held &x) { WEIR_CALL(gelu, x.t, "none"); }
  static held pool(const held &x)
  {
    weir_pool2d_options o = {};
    o.kernel[0] = o.kernel[1] = 2;
    WEIR_CALL(max_pool2d, x.t, &o);
  }
  static held flatten(const held &x) { WEIR_CALL(flatten, x.t, 1, -1); }
  static held linear(const held &x, const held &w, const held &b)
  {
    WEIR_CALL(linear, x.t, w.t, b.t);
  }
  static held layer_norm(const held &x, const held &w, const held &b)
  {
    WEIR_CALL(layer_norm, x.t, weir_tensor_shape(w.t), w.t, b.t, 1e-5);
  }
  static held add(const held &a, const held &b) { WEIR_CALL(add, a.t, b.t); }
  static held embedding(const held &w, const held &i) { WEIR_CALL(embedding, i.t, w.t); }
  // (batch, length, 3 width) as three of (batch, heads, length, width / heads)
  static held head(const held &x, int which, int64_t heads)
  {
    weir_shape s = weir_tensor_shape(x.t);
    int64_t width = s.size[2] / 3;
    weir_tensor *part = nullptr, *split = nullptr, *out = nullptr;
    must(weir_narrow(&part, x.t, 2, which * width, width));
    held a(part);
    must(weir_view(&split, a.t, weir_shape(s.size[0], s.size[1], heads, width / heads)));
    held b(split);
    must(weir_transpose(&out, b.t, 1, 2));
    return held(out);
  }
  static held attention(const held &q, const held &k, const held &v)
  {
    weir_attention_options o = {};
    o.is_causal = true;
    WEIR_CALL(scaled_dot_product_attention, q.t, k.t, v.t, &o);
  }
  static held heads_together(const held &x)
  {
    weir_shape s = weir_tensor_shape(x.t);
    weir_tensor *turned = nullptr;
    must(weir_transpose(&turned, x.t, 1, 2));
    held a(turned);
    WEIR_CALL(reshape, a.t, weir_shape(s.size[0], s.size[2], s.size[1] * s.size[3]));
  }
  static held cross_entropy(const held &x, const held &target)
  {
    weir_shape s = weir_tensor_shape(x.t);
    int64_t last = s.size[s.count - 1];
    weir_tensor *flat = nullptr;
    must(weir_reshape(&flat, x.t, weir_shape(-1, last)));
    held a(flat);
    WEIR_CALL(cross_entropy, a.t, target.t, nullptr);
  }
};

// The same by PyTorch.
struct torch_math {
  using tensor = at::Tensor;
  using T = const at::Tensor &;
  static tensor conv(T x, T w, T b) { return at::conv2d(x, w, b, 1, 1); }
  static tensor batch_norm(T x, T w, T b)
  {
    return at::batch_norm(x, w, b, {}, {}, true, 0.1, 1e-5, false);
  }
  static tensor relu(T x) { return at::relu(x); }
  static tensor gelu(T x) { return at::gelu(x); }
  static tensor pool(T x) { return at::max_pool2d(x, 2); }
  static tensor flatten(T x) { return at::flatten(x, 1); }
  static tensor linear(T x, T w, T b) { return at::linear(x, w, b); }
  static tensor layer_norm(T x, T w, T b) { return at::layer_norm(x, w.sizes(), w, b); }
  static tensor add(T a, T b) { return at::add(a, b); }
  static tensor embedding(T w, T i) { return at::embedding(w, i); }
  static tensor head(T x, int which, int64_t heads)
  {
    int64_t width = x.size(2) / 3;
    return x.narrow(2, which * width, width)
        .view({x.size(0), x.size(1), heads, width / heads})
        .transpose(1, 2);
  }
  static tensor attention(T q, T k, T v)
  {
    return at::scaled_dot_product_attention(q, k, v, {}, 0, true);
  }
  static tensor heads_together(T x)
  {
    return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
  }
  static tensor cross_entropy(T x, T target)
  {
    return at::cross_entropy_loss(x.reshape({-1, x.size(-1)}), target);
  }
};

// Two convolutions, each normalised, rectified and pooled, and a Linear.
struct cnn {
  static std::vector<std::vector<int64_t>> sizes()
  {
    return {{32, 3, 3, 3}, {32}, {32}, {32}, {64, 32, 3, 3}, {64}, {64}, {64}, {10, 4096}, {10}};
  }
  static at::Tensor input() { return at::rand({32, 3, 32, 32}); }
  static at::Tensor target() { return at::randint(10, {32}, at::kLong); }
  template <class M>
  static typename M::tensor loss(const std::vector<typename M::tensor> &p,
                                 const typename M::tensor &x, const typename M::tensor &target)
  {
    auto y = M::pool(M::relu(M::batch_norm(M::conv(x, p[0], p[1]), p[2], p[3])));
    y = M::pool(M::relu(M::batch_norm(M::conv(y, p[4], p[5]), p[6], p[7])));
    return M::cross_entropy(M::linear(M::flatten(y), p[8], p[9]), target);
  }
};

// A causal language model of two layers: 8 texts of 128 tokens, 128 wide.
struct transformer {
  static constexpr int64_t WIDTH = 128, HEADS = 4, LAYERS = 2, TOKENS = 256, EACH = 12;
  static std::vector<std::vector<int64_t>> sizes()
  {
    std::vector<std::vector<int64_t>> s = {{TOKENS, WIDTH}, {128, WIDTH}};
    for (int i = 0; i < LAYERS; i++)
      s.insert(s.end(), {{WIDTH},
                         {WIDTH},
                         {3 * WIDTH, WIDTH},
                         {3 * WIDTH},
                         {WIDTH, WIDTH},
                         {WIDTH},
                         {WIDTH},
                         {WIDTH},
                         {4 * WIDTH, WIDTH},
                         {4 * WIDTH},
                         {WIDTH, 4 * WIDTH},
                         {WIDTH}});
    s.insert(s.end(), {{WIDTH}, {WIDTH}, {TOKENS, WIDTH}, {TOKENS}});
    return s;
  }
  static at::Tensor input() { return at::randint(TOKENS, {8, 128}, at::kLong); }
  static at::Tensor target() { return at::randint(TOKENS, {8 * 128}, at::kLong); }
  template <class M>
  static typename M::tensor loss(const std::vector<typename M::tensor> &p,
                                 const typename M::tensor &x, const typename M::tensor &target)
  {
    auto y = M::add(M::embedding(p[0], x), p[1]);
    size_t at = 2;
    for (int i = 0; i < LAYERS; i++, at += EACH) {
      const auto *w = &p[at];
      auto qkv = M::linear(M::layer_norm(y, w[0], w[1]), w[2], w[3]);
      auto seen =
          M::attention(M::head(qkv, 0, HEADS), M::head(qkv, 1, HEADS), M::head(qkv, 2, HEADS));
      y = M::add(y, M::linear(M::heads_together(seen), w[4], w[5]));
      auto wide = M::gelu(M::linear(M::layer_norm(y, w[6], w[7]), w[8], w[9]));
      y = M::add(y, M::linear(wide, w[10], w[11]));
    }
    return M::cross_entropy(M::linear(M::layer_norm(y, p[at], p[at + 1]), p[at + 2], p[at + 3]),
                            target);
  }
};

// Both libraries' parameters, and what steps them.
struct training {
  std::vector<at::Tensor> theirs;
  std::vector<operand> memory; // of ours
  std::vector<held> ours;
  std::unique_ptr<torch::optim::AdamW> their_step;
  weir_optimizer *our_step = nullptr;
  operand x, target;

  training(const std::vector<std::vector<int64_t>> &sizes, at::Tensor in, at::Tensor wanted)
      : x(std::move(in)), target(std::move(wanted))
  {
    std::vector<weir_tensor *> list;
    for (auto &s : sizes) {
      at::Tensor first = (at::rand(s) - 0.5) * 0.1 + (s.size() == 1 ? 0.5 : 0);
      memory.emplace_back(first.clone());
      theirs.push_back(first.set_requires_grad(true));
      ours.emplace_back(weir_tensor_retain(memory.back().ours));
      must(weir_requires_grad_(ours.back().t, true));
      list.push_back(ours.back().t);
    }
    their_step = std::make_unique<torch::optim::AdamW>(theirs);
    must(weir_optimizer_create(&our_step, WEIR_ADAMW, list.data(), static_cast<int>(list.size()),
                               nullptr));
  }
  training(const training &) = delete;
  training &operator=(const training &) = delete;
  ~training() { weir_optimizer_release(our_step); }
};

template <class N> void training_row(rows &all, const char *name)
{
  c10::InferenceMode recorded(false);
  auto t = std::make_shared<training>(N::sizes(), N::input(), N::target());
  held x(weir_tensor_retain(t->x.ours)), target(weir_tensor_retain(t->target.ours));
  all.push_back({name,
                 [=](weir_tensor **out) {
                   weir_optimizer_zero_grad(t->our_step);
                   held loss = N::template loss<weir_math>(t->ours, x, target);
                   weir_status st = weir_backward(loss.t, nullptr, false);
                   if (!st) st = weir_optimizer_step(t->our_step);
                   return st ? st : weir_detach(out, loss.t);
                 },
                 [=] {
                   c10::InferenceMode here(false);
                   t->their_step->zero_grad();
                   at::Tensor loss =
                       N::template loss<torch_math>(t->theirs, t->x.theirs, t->target.theirs);
                   loss.backward();
                   t->their_step->step();
                   return loss.detach();
                 }});
}

// 4096 items of a TensorDataset, 64 a batch; every batch is looked at.
constexpr int64_t ITEMS = 4096, BATCH = 64;

weir_status our_epoch(weir_loader *loader)
{
  weir_loader_iter *it = nullptr;
  weir_status st = weir_loader_begin(&it, loader);
  while (!st) {
    weir_batch batch = {};
    st = weir_loader_next(&batch, it);
    if (!batch.count) break;
    weir_batch_drop(&batch);
  }
  weir_loader_end(it);
  return st;
}
} // namespace

void training_rows(rows &all)
{
  training_row<cnn>(all, "train cnn 32x3x32^2");
  training_row<transformer>(all, "train transformer 8x128x128");
}

void loader_rows(rows &all)
{
  for (int64_t side : {8, 64}) {
    c10::InferenceMode recorded(false);
    operand x = uniform({ITEMS, 3, side, side}), y(at::randint(10, {ITEMS}, at::kLong));
    weir_dataset items = {};
    weir_tensor *const both[] = {x.ours, y.ours};
    must(weir_tensor_dataset(&items, both, 2));
    weir_loader *loader = nullptr;
    weir_loader_options o = {};
    o.batch_size = BATCH;
    must(weir_loader_create(&loader, &items, &o));
    std::shared_ptr<weir_loader> ours(loader, weir_loader_release);
    using item = torch::data::Example<>;
    struct pairs : torch::data::datasets::Dataset<pairs> {
      at::Tensor x, y;
      pairs(at::Tensor a, at::Tensor b) : x(std::move(a)), y(std::move(b)) {}
      item get(size_t i) override
      {
        return {x[static_cast<int64_t>(i)], y[static_cast<int64_t>(i)]};
      }
      std::optional<size_t> size() const override { return static_cast<size_t>(x.size(0)); }
    };
    auto stacked =
        pairs(x.theirs, y.theirs).map(torch::data::transforms::Stack<torch::data::Example<>>());
    std::shared_ptr theirs =
        torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
            std::move(stacked), torch::data::DataLoaderOptions().batch_size(BATCH));
    all.push_back({"loader 64 batches of 64x3x" + std::to_string(side) + "^2",
                   [=](weir_tensor **) { return our_epoch(ours.get()); },
                   [=] {
                     at::Tensor last;
                     for (auto &batch : *theirs)
                       last = batch.data;
                     return last;
                   }});
  }
}

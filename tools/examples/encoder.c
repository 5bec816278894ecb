/* encoder.c: a transformer encoder of BERT's size (12 layers, 768 features, 12 heads), its
 * parameters by name from a checkpoint:
 *   encoder CHECKPOINT.safetensors TOKENS.npy OUTPUT.npy [--size=12,768,12,30522,512]
 *           [--disable-cuda]
 *   encoder [--size=...]            random weights, four tokens: prints the model
 * Tokens are (N, L) of int64, outputs (N, L, features). Names: word_embeddings,
 * position_embeddings, norm, encoder (torch's TransformerEncoder: batch_first, "gelu").
 * (Devlin, Chang, Lee, Toutanova: "BERT", NAACL 2019)
 * cc encoder.c $(pkg-config --cflags --libs weir), with transformer.h, try.h */
#include "transformer.h"

static weir_status bert_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                int count)
{
  WEIR_TENSOR x = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "Bert takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  TRY(run_child(self, "word_embeddings", &x));
  TRY(add_places(self, "position_embeddings", &x));
  TRY(run_child(self, "norm", &x));
  return weir_module_call(out, weir_module_child(self, "encoder"), x);
}

static weir_status make_bert(weir_module **out, const model_size *s)
{
  static const weir_module_class kind = {.name = "Bert", .forward = bert_forward};
  weir_transformer_options o = {.dim_feedforward = 4 * s->features,
                                .activation = "gelu",
                                .layer_norm_eps = 1e-12,
                                .batch_first = true};
  WEIR_MODULE m = NULL;
  weir_module *layer, *encoder;
  TRY(weir_module_new(&m, &kind, NULL));
  TRY(add_embedding(m, "word_embeddings", s->vocabulary, s->features));
  TRY(add_embedding(m, "position_embeddings", s->places, s->features));
  TRY(add_norm(m, "norm", s->features, 1e-12));
  TRY(weir_module_transformer_encoder_layer(&layer, s->features, s->heads, &o));
  TRY(weir_module_transformer_encoder(&encoder, layer, s->layers, NULL));
  TRY(weir_module_add(m, "encoder", encoder));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  return run_transformer(argc, argv, (model_size){12, 768, 12, 30522, 512}, make_bert);
}

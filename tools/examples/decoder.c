/* decoder.c: a transformer decoder of GPT-2's size (12 layers, 768 features, 12 heads), its
 * parameters by name from a checkpoint:
 *   decoder CHECKPOINT.safetensors TOKENS.npy OUTPUT.npy [--size=12,768,12,50257,1024]
 *           [--disable-cuda]
 *   decoder [--size=...]            random weights, four tokens: prints the model
 * Tokens are (N, L) of int64, outputs (N, L, vocabulary): the logits of the next one. The model and
 * the names of its parameters stand in decoder.h.
 * cc decoder.c $(pkg-config --cflags --libs weir), with decoder.h, transformer.h, try.h */
#include "decoder.h"

int main(int argc, char **argv)
{
  return run_transformer(argc, argv, (model_size){12, 768, 12, 50257, 1024}, make_gpt);
}

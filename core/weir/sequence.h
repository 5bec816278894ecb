/* sequence.h: attention, and layers that walk along sequences. Included by weir.h.
 *
 * Names, arguments, shapes, parameters and errors are those of torch.nn and torch.nn.functional.
 * All is made of public operations. Outputs are new; optional ones may be NULL and are then not
 * made. A function that failed leaves them NULL. */
#ifndef WEIR_SEQUENCE_H
#define WEIR_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/module.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attention ------------------------------------------------------------------------------- */

typedef struct weir_attention_options {
  const weir_tensor *mask; /* borrowed; bool: where true takes part; else added to the products;
                            * broadcasts to (..., L, S); NULL: none */
  bool is_causal;          /* place i sees places 0 to i; without a mask */
  double dropout;          /* probability; 0: none */
  double scale;            /* of the products; 0: 1 / sqrt(E) */
  bool enable_gqa;         /* key and value have fewer heads (dimension -3), which are repeated */
} weir_attention_options;

/* softmax(query key^T scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev),
 * out (..., L, Ev); a row that sees nothing is 0. options NULL: none. Rows are taken in blocks, so
 * that what lies between is never much more than a million elements on the cpu. Errors: "Expected
 * query, key, and value to have the same dtype, but got query.dtype: float key.dtype: float and
 * value.dtype: double instead."; "_scaled_dot_product_attention: Explicit attn_mask should not be
 * set when is_causal=True". */
WEIR_PUBLIC weir_status weir_scaled_dot_product_attention(weir_tensor **out,
                                                          const weir_tensor *query,
                                                          const weir_tensor *key,
                                                          const weir_tensor *value,
                                                          const weir_attention_options *options);

typedef struct weir_multihead_attention_options {
  weir_options tensor; /* dtype and device of the parameters */
  bool no_bias;        /* without biases */
  bool batch_first;    /* (N, L, E) in place of (L, N, E) */
  double dropout;      /* of the weights while training, a probability */
  int64_t kdim, vdim;  /* features of key and value; 0: embed_dim */
} weir_multihead_attention_options;

/* MultiheadAttention(embed_dim, num_heads): parameters in_proj_weight (3 E, E) or, with kdim or
 * vdim, q_proj_weight, k_proj_weight, v_proj_weight; in_proj_bias (3 E); out_proj, a Linear. Called
 * with one tensor (attention to itself) or query, key, value: gives what attends. options NULL:
 * none. Errors: EINVAL "embed_dim must be divisible by num_heads". */
WEIR_PUBLIC weir_status
weir_module_multihead_attention(weir_module **out, int64_t embed_dim, int64_t num_heads,
                                const weir_multihead_attention_options *options);

/* What a call of a MultiheadAttention takes in addition to its tensors. */
typedef struct weir_multihead_options {
  const weir_tensor
      *key_padding_mask;        /* borrowed; (N, S), bool: where true is left out; else added */
  const weir_tensor *attn_mask; /* borrowed; (L, S) or (N heads, L, S), as above */
  bool is_causal;               /* place i sees places 0 to i; torch wants a mask, too */
  bool each_head;               /* weights of each head, not their average */
} weir_multihead_options;

/* Calls m with all of it: query (L, N, E), key (S, N, kdim), value (S, N, vdim), or without N; out
 * (L, N, E); weights (N, L, S), of each head (N, heads, L, S), or NULL. Errors: "was expecting
 * embedding dimension of 4, but got 5"; "The shape of the 2D attn_mask is weir.Size([3, 4]), but
 * should be (3, 5)." */
WEIR_PUBLIC weir_status weir_multihead_attention(weir_tensor **out, weir_tensor **weights,
                                                 weir_module *m, weir_tensor *query,
                                                 weir_tensor *key, weir_tensor *value,
                                                 const weir_multihead_options *options);

/* ---- transformers ---------------------------------------------------------------------------- */

typedef struct weir_transformer_options {
  weir_options tensor;     /* dtype and device of the parameters */
  int64_t dim_feedforward; /* features between the two Linears; 0: 2048 */
  double dropout;          /* while training, a probability; 0: 0.1 */
  bool no_dropout;         /* dropout=0 */
  const char *activation;  /* "relu" or "gelu"; NULL: "relu" */
  double layer_norm_eps;   /* 0: 1e-5 */
  bool batch_first;        /* (N, L, d_model) in place of (L, N, d_model) */
  bool norm_first;         /* normalises before attention and Linears, not after their sums */
  bool no_bias;            /* without biases */
} weir_transformer_options;

/* TransformerEncoderLayer(d_model, nhead): self_attn, linear1, dropout, linear2, norm1, norm2,
 * dropout1, dropout2. options NULL: none. Errors: EINVAL "activation should be relu/gelu, not
 * tanh"; those of weir_module_multihead_attention(). */
WEIR_PUBLIC weir_status weir_module_transformer_encoder_layer(
    weir_module **out, int64_t d_model, int64_t nhead, const weir_transformer_options *options);
/* TransformerEncoder(layer, num_layers, norm): layers (a ModuleList of `layer` and copies of it)
 * and norm, after them (NULL: none). Steals layer and norm, also where it fails. Errors: EINVAL,
 * layer is no TransformerEncoderLayer. */
WEIR_PUBLIC weir_status weir_module_transformer_encoder(weir_module **out, weir_module *layer,
                                                        int64_t num_layers, weir_module *norm);

/* What a call of either takes in addition to src; masks as those of weir_multihead_options. */
typedef struct weir_transformer_encode_options {
  const weir_tensor *mask;                 /* borrowed; (L, L) or (N heads, L, L) */
  const weir_tensor *src_key_padding_mask; /* borrowed; (N, L) */
  bool is_causal;                          /* place i sees places 0 to i; torch wants a mask, too */
} weir_transformer_encode_options;

/* Calls m, a TransformerEncoder or a layer of one, with all of it: src and out (L, N, d_model).
 * Places that src_key_padding_mask leaves out are calculated, too (torch's
 * enable_nested_tensor=False). Errors: those of weir_multihead_attention(). */
WEIR_PUBLIC weir_status weir_transformer_encode(weir_tensor **out, weir_module *m, weir_tensor *src,
                                                const weir_transformer_encode_options *options);

/* TransformerDecoderLayer(d_model, nhead): self_attn, multihead_attn, linear1, dropout, linear2,
 * norm1 to norm3, dropout1 to dropout3; called with two tensors, tgt and memory. options and errors
 * as of an encoder's layer. */
WEIR_PUBLIC weir_status weir_module_transformer_decoder_layer(
    weir_module **out, int64_t d_model, int64_t nhead, const weir_transformer_options *options);
/* TransformerDecoder(layer, num_layers, norm): as weir_module_transformer_encoder(). Errors:
 * EINVAL, layer is no TransformerDecoderLayer. */
WEIR_PUBLIC weir_status weir_module_transformer_decoder(weir_module **out, weir_module *layer,
                                                        int64_t num_layers, weir_module *norm);

/* What a call of either takes in addition to tgt and memory; masks as those of
 * weir_multihead_options. */
typedef struct weir_transformer_decode_options {
  const weir_tensor *tgt_mask;                /* borrowed; (T, T) or (N heads, T, T) */
  const weir_tensor *memory_mask;             /* borrowed; (T, S) or (N heads, T, S) */
  const weir_tensor *tgt_key_padding_mask;    /* borrowed; (N, T) */
  const weir_tensor *memory_key_padding_mask; /* borrowed; (N, S) */
  bool tgt_is_causal, memory_is_causal; /* place i sees places 0 to i; torch wants a mask, too */
} weir_transformer_decode_options;

/* Calls m, a TransformerDecoder or a layer of one, with all of it: tgt and out (T, N, d_model),
 * memory (S, N, d_model). Errors: those of weir_multihead_attention(). */
WEIR_PUBLIC weir_status weir_transformer_decode(weir_tensor **out, weir_module *m, weir_tensor *tgt,
                                                weir_tensor *memory,
                                                const weir_transformer_decode_options *options);

/* Transformer(d_model, nhead, num_encoder_layers, num_decoder_layers): encoder and decoder, each
 * with a norm after its layers; all matrices are xavier_uniform_ at first. Called with two tensors,
 * src and tgt. torch's usual: 512, 8, 6, 6. options NULL: none. */
WEIR_PUBLIC weir_status weir_module_transformer(weir_module **out, int64_t d_model, int64_t nhead,
                                                int64_t num_encoder_layers,
                                                int64_t num_decoder_layers,
                                                const weir_transformer_options *options);
/* Calls m, a Transformer, with all of it (encode, decode: NULL: none): src (S, N, d_model), tgt and
 * out (T, N, d_model). Errors: "the batch number of src and tgt must be equal"; "the feature number
 * of src and tgt must be equal to d_model"; those of weir_multihead_attention(). */
WEIR_PUBLIC weir_status weir_transformer(weir_tensor **out, weir_module *m, weir_tensor *src,
                                         weir_tensor *tgt,
                                         const weir_transformer_encode_options *encode,
                                         const weir_transformer_decode_options *decode);
/* A mask (size, size) to be added: -infinity above the diagonal, else 0. options NULL: the default
 * dtype, the cpu. Transformer.generate_square_subsequent_mask(). */
WEIR_PUBLIC weir_status weir_generate_square_subsequent_mask(weir_tensor **out, int64_t size,
                                                             const weir_options *options);

/* ---- recurrent layers ------------------------------------------------------------------------ */

typedef struct weir_recurrent_options {
  weir_options tensor; /* dtype and device of the parameters */
  int64_t num_layers;  /* 0: 1 */
  bool no_bias;        /* without biases */
  bool batch_first;    /* (N, L, features) in place of (L, N, features) */
  bool bidirectional;
  bool relu;         /* of an RNN: in place of tanh */
  double dropout;    /* of each layer's output but the last's while training, a probability */
  int64_t proj_size; /* of an LSTM: features of its output; 0: hidden_size */
} weir_recurrent_options;

/* LSTM, GRU and RNN: parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0),
 * those of the other direction with _reverse at the end, layer by layer; gates in torch's order.
 * Uniform in [-b, b) at first, b = 1 / sqrt(hidden_size). Called with an input (L, N, features) or
 * (L, features), after it, or not, the state it begins with (h_0, and c_0 of an LSTM): gives the
 * last layer's outputs. options NULL: none. Errors: EINVAL "hidden_size must be greater than zero",
 * "proj_size has to be smaller than hidden_size". */
WEIR_PUBLIC weir_status weir_module_lstm(weir_module **out, int64_t input_size, int64_t hidden_size,
                                         const weir_recurrent_options *options);
WEIR_PUBLIC weir_status weir_module_gru(weir_module **out, int64_t input_size, int64_t hidden_size,
                                        const weir_recurrent_options *options);
WEIR_PUBLIC weir_status weir_module_rnn(weir_module **out, int64_t input_size, int64_t hidden_size,
                                        const weir_recurrent_options *options);
/* One step: input (N, features) or (features); of options tensor, no_bias and relu count.
 * Parameters weight_ih, weight_hh, bias_ih, bias_hh. Gives the new h. */
WEIR_PUBLIC weir_status weir_module_lstm_cell(weir_module **out, int64_t input_size,
                                              int64_t hidden_size,
                                              const weir_recurrent_options *options);
WEIR_PUBLIC weir_status weir_module_gru_cell(weir_module **out, int64_t input_size,
                                             int64_t hidden_size,
                                             const weir_recurrent_options *options);
WEIR_PUBLIC weir_status weir_module_rnn_cell(weir_module **out, int64_t input_size,
                                             int64_t hidden_size,
                                             const weir_recurrent_options *options);

/* Calls a recurrent layer or cell, for its last state, too: h_n (layers directions, N, features),
 * c_n (of an LSTM) the same; of a cell the new h (which is *out, too) and c. h_0, c_0 NULL: zeros.
 * Errors: "input.size(-1) must be equal to input_size. Expected 3, got 4"; "Expected hidden[0] size
 * (1, 2, 4), got [1, 3, 4]". */
WEIR_PUBLIC weir_status weir_recurrent(weir_tensor **out, weir_tensor **h_n, weir_tensor **c_n,
                                       weir_module *m, weir_tensor *in, weir_tensor *h_0,
                                       weir_tensor *c_0);

#ifdef __cplusplus
}
#endif

#endif

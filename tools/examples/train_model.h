/* train_model.h: what train.cu and fixed/train.cu have in common: the network's kernels, its data,
 * and the same training on the host.
 *
 * Two classes of points in 32 dimensions, one hidden layer of 8 rectified units, one logistic
 * output, plain stochastic gradient descent. The data set lies in a file. Both trainings must end
 * at the same loss, far below the first. The network is small, so that a step is what small models
 * are on any device: short kernels, and the time goes where the host spends it. */
#ifndef WEIR_TOOLS_EXAMPLES_TRAIN_MODEL_H
#define WEIR_TOOLS_EXAMPLES_TRAIN_MODEL_H

#include <cmath>
#include <cstring>
#include <vector>
#include "tools/examples/check.h"
#include "cuda/sim/weir_kernel.h"

enum { INPUTS = 32, HIDDEN = 8, BATCH = 32, BATCHES = 64, EPOCHS = 120 };
static const float RATE = 0.5f; /* of learning */

/* ---- the network on the device --------------------------------------------------------------- */

/* hidden = max(0, input * w1 + b1); a thread is one unit of one sample. */
WEIR_KERNEL(forward_hidden, const float *input, const float *w1, const float *b1, float *hidden)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= BATCH * HIDDEN) return;
  int sample = i / HIDDEN, unit = i % HIDDEN;
  float sum = b1[unit];
  for (int k = 0; k < INPUTS; k++)
    sum += input[sample * INPUTS + k] * w1[k * HIDDEN + unit];
  hidden[i] = sum > 0 ? sum : 0;
}

/* output = logistic(hidden * w2 + b2); the loss of each sample, and its slope before the logistic.
 */
WEIR_KERNEL(forward_output, const float *hidden, const float *w2, const float *b2,
            const float *label, float *loss, float *slope)
{
  int sample = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= BATCH) return;
  float sum = b2[0];
  for (int j = 0; j < HIDDEN; j++)
    sum += hidden[sample * HIDDEN + j] * w2[j];
  float p = 1 / (1 + expf(-sum));
  float right = label[sample] > 0.5f ? p : 1 - p;
  loss[sample] = -logf(fmaxf(right, 1e-12f));
  slope[sample] = (p - label[sample]) / BATCH;
}

/* The slope at each hidden unit of each sample. */
WEIR_KERNEL(backward_hidden, const float *slope, const float *w2, const float *hidden,
            float *hidden_slope)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= BATCH * HIDDEN) return;
  hidden_slope[i] = hidden[i] > 0 ? slope[i / HIDDEN] * w2[i % HIDDEN] : 0;
}

/* weight -= rate * (input transposed * slope); a thread is one weight, the last row are the biases.
 */
WEIR_KERNEL(update, const float *input, int inputs, const float *slope, int outputs, float rate,
            float *weight, float *bias)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (inputs + 1) * outputs) return;
  int k = i / outputs, j = i % outputs;
  float gradient = 0;
  for (int s = 0; s < BATCH; s++)
    gradient += (k < inputs ? input[s * inputs + k] : 1) * slope[s * outputs + j];
  if (k < inputs)
    weight[i] -= rate * gradient;
  else
    bias[j] -= rate * gradient;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* A sample lies around +centre or -centre; neighbours in the file are of both classes. */
static unsigned int state = 12345;

static float uniform(void) /* in [-1, 1) */
{
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / (1 << 23) - 1;
}

static FILE *write_data(void)
{
  FILE *f = tmpfile();
  float centre[INPUTS], row[INPUTS + 1];
  if (!f) return NULL;
  for (float &c : centre)
    c = 0.25f * uniform();
  for (int s = 0; s < BATCHES * BATCH; s++) {
    float side = s % 2 ? 1 : -1;
    row[0] = (float)(s % 2);
    for (int k = 0; k < INPUTS; k++)
      row[k + 1] = side * centre[k] + uniform();
    if (fwrite(row, sizeof row, 1, f) != 1) return NULL;
  }
  return f;
}

static bool read_batch(FILE *f, int batch, float *input, float *label)
{
  float row[INPUTS + 1];
  if (fseek(f, (long)batch * BATCH * (long)sizeof row, SEEK_SET) != 0) return false;
  for (int s = 0; s < BATCH; s++) {
    if (fread(row, sizeof row, 1, f) != 1) return false;
    label[s] = row[0];
    memcpy(input + s * INPUTS, row + 1, INPUTS * sizeof *input);
  }
  return true;
}

/* ---- the model on the host: where both trainings begin, and the reference -------------------- */

struct Model {
  std::vector<float> w1, b1, w2, b2;
};

static Model first_model(void)
{
  Model m = {std::vector<float>(INPUTS * HIDDEN), std::vector<float>(HIDDEN),
             std::vector<float>(HIDDEN), std::vector<float>(1)};
  for (float &w : m.w1)
    w = 0.1f * uniform();
  for (float &w : m.w2)
    w = 0.1f * uniform();
  return m;
}

static float reference_step(Model &m, const float *input, const float *label)
{
  std::vector<float> hidden(BATCH * HIDDEN), slope(BATCH), g1(INPUTS * HIDDEN), gb(HIDDEN),
      g2(HIDDEN);
  float loss = 0, g0 = 0;
  for (int s = 0; s < BATCH; s++) {
    float *h = &hidden[s * HIDDEN], sum = m.b2[0];
    for (int j = 0; j < HIDDEN; j++)
      h[j] = m.b1[j];
    for (int k = 0; k < INPUTS; k++)
      for (int j = 0; j < HIDDEN; j++)
        h[j] += input[s * INPUTS + k] * m.w1[k * HIDDEN + j];
    for (int j = 0; j < HIDDEN; j++)
      sum += (h[j] = fmaxf(h[j], 0)) * m.w2[j];
    float p = 1 / (1 + expf(-sum));
    loss -= logf(fmaxf(label[s] > 0.5f ? p : 1 - p, 1e-12f));
    slope[s] = (p - label[s]) / BATCH;
  }
  for (int s = 0; s < BATCH; s++) {
    float back[HIDDEN];
    for (int j = 0; j < HIDDEN; j++) {
      back[j] = hidden[s * HIDDEN + j] > 0 ? slope[s] * m.w2[j] : 0;
      g2[j] += hidden[s * HIDDEN + j] * slope[s];
      gb[j] += back[j];
    }
    g0 += slope[s];
    for (int k = 0; k < INPUTS; k++)
      for (int j = 0; j < HIDDEN; j++)
        g1[k * HIDDEN + j] += input[s * INPUTS + k] * back[j];
  }
  for (int i = 0; i < INPUTS * HIDDEN; i++)
    m.w1[i] -= RATE * g1[i];
  for (int j = 0; j < HIDDEN; j++)
    m.b1[j] -= RATE * gb[j], m.w2[j] -= RATE * g2[j];
  m.b2[0] -= RATE * g0;
  return loss / BATCH;
}

/* ---- both trainings -------------------------------------------------------------------------- */

/* Prints the loss of each twentieth epoch, and of each one of a short training. */
static void print_loss(int epoch, int epochs, float loss)
{
  if (epochs <= 12 || (epoch + 1) % 20 == 0) printf("epoch %d: loss %.3f\n", epoch + 1, loss);
}

static int blocks(int threads)
{
  return (threads + 127) / 128;
}

/* What main() returns: whether the device ends where the host does, and has learned. */
static int verdict(int epochs, float first, float loss, float expected)
{
  if (!(fabsf(loss - expected) <= 1e-3f + 0.01f * expected) || (epochs > 1 && !(loss < first))) {
    fprintf(stderr, "train: wrong: loss %g, reference %g, first %g\n", loss, expected, first);
    return 1;
  }
  puts("train: ok");
  return 0;
}

#endif

/* train.cu: trains a small neural network.
 *
 * usage: train [EPOCHS]
 *
 * Two classes of points in 64 dimensions, one hidden layer of 64 rectified units, one logistic
 * output, plain stochastic gradient descent. The data set lies in a file. The same training runs on
 * the host, and both must end at the same loss, far below the first.
 *
 * It is ../train.cu without its wastes: the data set is uploaded once, from page-locked memory, and
 * lies on the device; every buffer is allocated once and freed; a stream runs its work in order, so
 * that nothing waits between the kernels; the losses of an epoch are added up on the device, and
 * fetched once. `weir diff` puts the two side by side.
 */
#include <cmath>
#include <cstring>
#include <vector>
#include "tools/examples/check.h"
#include "cuda/sim/weir_kernel.h"

enum { INPUTS = 64, HIDDEN = 64, BATCH = 256, BATCHES = 16 };
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

/* total += the mean of the losses of one batch, in the order of the samples. */
WEIR_KERNEL(add_losses, const float *loss, float *total)
{
  if (blockIdx.x * blockDim.x + threadIdx.x) return;
  float sum = 0;
  for (int s = 0; s < BATCH; s++)
    sum += loss[s];
  *total += sum / BATCH;
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

static bool read_data(FILE *f, float *input, float *label)
{
  float row[INPUTS + 1];
  rewind(f);
  for (int s = 0; s < BATCHES * BATCH; s++) {
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

/* ---- training on the device ------------------------------------------------------------------ */

struct Device {
  float *w1, *b1, *w2, *b2;     /* the model */
  float *input, *label;         /* the data set */
  float *hidden, *hidden_slope; /* the activations of one batch, and their slopes */
  float *loss, *slope, *total;  /* of each sample; of the epoch */
};

static float *device_floats(size_t n)
{
  float *p;
  CHECK(cudaMalloc(&p, n * sizeof *p));
  return p;
}

static void upload(float *to, const float *from, size_t n)
{
  CHECK(cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyHostToDevice));
}

static Device set_up(void)
{
  return Device{device_floats(INPUTS * HIDDEN),
                device_floats(HIDDEN),
                device_floats(HIDDEN),
                device_floats(1),
                device_floats((size_t)BATCHES * BATCH * INPUTS),
                device_floats((size_t)BATCHES * BATCH),
                device_floats(BATCH * HIDDEN),
                device_floats(BATCH * HIDDEN),
                device_floats(BATCH),
                device_floats(BATCH),
                device_floats(1)};
}

static void tear_down(const Device &d)
{
  for (float *p : {d.w1, d.b1, d.w2, d.b2, d.input, d.label, d.hidden, d.hidden_slope, d.loss,
                   d.slope, d.total})
    CHECK(cudaFree(p));
}

static int blocks(int threads)
{
  return (threads + 127) / 128;
}

static void train_step(const Device &d, const float *input, const float *label)
{
  forward_hidden<<<blocks(BATCH * HIDDEN), 128>>>(input, d.w1, d.b1, d.hidden);
  forward_output<<<blocks(BATCH), 128>>>(d.hidden, d.w2, d.b2, label, d.loss, d.slope);
  backward_hidden<<<blocks(BATCH * HIDDEN), 128>>>(d.slope, d.w2, d.hidden, d.hidden_slope);
  update<<<blocks((INPUTS + 1) * HIDDEN), 128>>>(input, INPUTS, d.hidden_slope, HIDDEN, RATE, d.w1,
                                                 d.b1);
  update<<<blocks(HIDDEN + 1), 128>>>(d.hidden, HIDDEN, d.slope, 1, RATE, d.w2, d.b2);
  add_losses<<<1, 1>>>(d.loss, d.total);
}

/* The mean loss; the only wait of an epoch. */
static float train_epoch(const Device &d, float *total)
{
  CHECK(cudaMemsetAsync(d.total, 0, sizeof *d.total));
  for (int batch = 0; batch < BATCHES; batch++)
    train_step(d, d.input + (size_t)batch * BATCH * INPUTS, d.label + (size_t)batch * BATCH);
  CHECK(cudaMemcpyAsync(total, d.total, sizeof *total, cudaMemcpyDeviceToHost));
  CHECK(cudaStreamSynchronize(NULL));
  return *total / BATCHES;
}

static float reference_epoch(Model &m, const float *input, const float *label)
{
  float loss = 0;
  for (int batch = 0; batch < BATCHES; batch++)
    loss += reference_step(m, input + batch * BATCH * INPUTS, label + batch * BATCH) / BATCHES;
  return loss;
}

static Device upload_all(const Model &m, const float *input, const float *label)
{
  Device d = set_up();
  upload(d.w1, m.w1.data(), m.w1.size());
  upload(d.b1, m.b1.data(), m.b1.size());
  upload(d.w2, m.w2.data(), m.w2.size());
  upload(d.b2, m.b2.data(), m.b2.size());
  upload(d.input, input, (size_t)BATCHES * BATCH * INPUTS);
  upload(d.label, label, (size_t)BATCHES * BATCH);
  return d;
}

int main(int argc, char **argv)
{
  int epochs = argument(argc, argv, 12);
  FILE *file = write_data();
  float *data, *label, *total, first = 0, loss = 0, expected = 0;
  if (!file) {
    perror("train: cannot write the data set to a temporary file");
    return 2;
  }
  Model reference = first_model();
  CHECK(cudaMallocHost(&data, ((size_t)BATCHES * BATCH * (INPUTS + 1) + 1) * sizeof *data));
  label = data + (size_t)BATCHES * BATCH * INPUTS;
  total = label + (size_t)BATCHES * BATCH;
  if (!read_data(file, data, label)) return 2;
  fclose(file);
  Device device = upload_all(reference, data, label);

  for (int epoch = 0; epoch < epochs; epoch++) {
    loss = train_epoch(device, total);
    expected = reference_epoch(reference, data, label);
    if (epoch == 0) first = loss;
    printf("epoch %d: loss %.3f\n", epoch + 1, loss);
  }
  tear_down(device);
  CHECK(cudaFreeHost(data));

  if (!(fabsf(loss - expected) <= 1e-3f + 0.01f * expected) || (epochs > 1 && !(loss < first))) {
    fprintf(stderr, "train: wrong: loss %g, reference %g, first %g\n", loss, expected, first);
    return 1;
  }
  puts("train: ok");
  return 0;
}

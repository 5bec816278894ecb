/* train.cu: trains a small neural network, which stands in ../train_model.h.
 *
 * usage: train [EPOCHS]
 *
 * It is ../train.cu without its wastes: the data set is uploaded once, from page-locked memory, and
 * lies on the device; every buffer is allocated once and freed; a stream runs its work in order, so
 * that nothing waits between the kernels; the losses of an epoch are added up on the device, and
 * fetched once. `weir diff` puts the two side by side.
 */
#include "tools/examples/train_model.h"

/* total += the mean of the losses of one batch, in the order of the samples. */
WEIR_KERNEL(add_losses, const float *loss, float *total)
{
  if (blockIdx.x * blockDim.x + threadIdx.x) return;
  float sum = 0;
  for (int s = 0; s < BATCH; s++)
    sum += loss[s];
  *total += sum / BATCH;
}

struct Device {
  float *w1, *b1, *w2, *b2;     /* the model */
  float *input, *label;         /* the data set */
  float *hidden, *hidden_slope; /* the activations of one batch, and their slopes */
  float *loss, *slope, *total;  /* of each sample; of the epoch */
};

static void upload(float *to, const float *from, size_t n)
{
  CHECK(cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyHostToDevice));
}

static float *device_floats(size_t n)
{
  float *p;
  CHECK(cudaMalloc(&p, n * sizeof *p));
  return p;
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
  int epochs = argument(argc, argv, EPOCHS);
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
  for (int batch = 0; batch < BATCHES; batch++)
    if (!read_batch(file, batch, data + batch * BATCH * INPUTS, label + batch * BATCH)) return 2;
  fclose(file);
  Device device = upload_all(reference, data, label);

  for (int epoch = 0; epoch < epochs; epoch++) {
    loss = train_epoch(device, total);
    expected = reference_epoch(reference, data, label);
    if (epoch == 0) first = loss;
    print_loss(epoch, epochs, loss);
  }
  tear_down(device);
  CHECK(cudaFreeHost(data));

  return verdict(epochs, first, loss, expected);
}

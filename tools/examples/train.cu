/* train.cu: trains a small neural network, as a first version of such a program is often written.
 *
 * usage: train [EPOCHS]
 *
 * The network, its data and the training on the host that this one is compared with stand in
 * train_model.h. The data set is read from its file batch by batch.
 *
 * It is correct, and wasteful on purpose; `weir report` finds what is named at each place marked
 * WASTE: batches are uploaded again in every epoch, from pageable memory; two buffers are allocated
 * and freed in every step; the host waits after every kernel and fetches all losses in every step;
 * and one allocation is never freed. The first of these, Weir mends in the program as it is.
 */
#include "train_model.h"

struct Device {
  float *w1, *b1, *w2, *b2; /* the model */
  float *input, *label;     /* one batch */
  float *loss, *slope;      /* of each sample */
};

static float *upload(const std::vector<float> &v)
{
  float *p;
  CHECK(cudaMalloc(&p, v.size() * sizeof *p));
  CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof *p, cudaMemcpyHostToDevice));
  return p;
}

static float *device_floats(size_t n)
{
  float *p;
  CHECK(cudaMalloc(&p, n * sizeof *p));
  return p;
}

static Device set_up(const Model &m)
{
  return Device{upload(m.w1),
                upload(m.b1),
                upload(m.w2),
                upload(m.b2),
                device_floats(BATCH * INPUTS),
                device_floats(BATCH),
                device_floats(BATCH),
                device_floats(BATCH)};
}

static float train_step(const Device &d, const float *input, const float *label)
{
  static float loss[BATCH];
  float *hidden, *hidden_slope, sum = 0;

  /* WASTE: pageable memory, and the batch was here in the last epoch already. */
  CHECK(cudaMemcpy(d.input, input, BATCH * INPUTS * sizeof *input, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d.label, label, BATCH * sizeof *label, cudaMemcpyHostToDevice));

  /* WASTE: the same buffers in every step. Their cudaFree below waits for the device besides. */
  CHECK(cudaMalloc(&hidden, BATCH * HIDDEN * sizeof *hidden));
  CHECK(cudaMalloc(&hidden_slope, BATCH * HIDDEN * sizeof *hidden_slope));

  /* WASTE: a stream runs its work in order; none of these waits is needed. */
  forward_hidden<<<blocks(BATCH * HIDDEN), 128>>>(d.input, d.w1, d.b1, hidden);
  CHECK(cudaDeviceSynchronize());
  forward_output<<<blocks(BATCH), 128>>>(hidden, d.w2, d.b2, d.label, d.loss, d.slope);
  CHECK(cudaDeviceSynchronize());
  backward_hidden<<<blocks(BATCH * HIDDEN), 128>>>(d.slope, d.w2, hidden, hidden_slope);
  CHECK(cudaDeviceSynchronize());
  update<<<blocks((INPUTS + 1) * HIDDEN), 128>>>(d.input, INPUTS, hidden_slope, HIDDEN, RATE, d.w1,
                                                 d.b1);
  CHECK(cudaDeviceSynchronize());
  update<<<blocks(HIDDEN + 1), 128>>>(hidden, HIDDEN, d.slope, 1, RATE, d.w2, d.b2);
  CHECK(cudaDeviceSynchronize());

  /* WASTE: every loss, in every step, to print one number an epoch. */
  CHECK(cudaMemcpy(loss, d.loss, sizeof loss, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(hidden));
  CHECK(cudaFree(hidden_slope));
  for (float l : loss)
    sum += l;
  return sum / BATCH;
}

int main(int argc, char **argv)
{
  int epochs = argument(argc, argv, EPOCHS);
  FILE *file = write_data();
  if (!file) {
    perror("train: cannot write the data set to a temporary file");
    return 2;
  }
  Model reference = first_model();
  Device device = set_up(reference);
  std::vector<float> input(BATCH * INPUTS), label(BATCH);
  float first = 0, loss = 0, expected = 0;

  for (int epoch = 0; epoch < epochs; epoch++) {
    loss = expected = 0;
    for (int batch = 0; batch < BATCHES; batch++) {
      if (!read_batch(file, batch, input.data(), label.data())) return 2;
      loss += train_step(device, input.data(), label.data()) / BATCHES;
      expected += reference_step(reference, input.data(), label.data()) / BATCHES;
    }
    if (epoch == 0) first = loss;
    print_loss(epoch, epochs, loss);
  }
  fclose(file);

  CHECK(cudaFree(device.w1));
  CHECK(cudaFree(device.b1));
  CHECK(cudaFree(device.w2));
  CHECK(cudaFree(device.b2));
  CHECK(cudaFree(device.label));
  CHECK(cudaFree(device.loss));
  CHECK(cudaFree(device.slope));
  /* WASTE: device.input is never freed. */

  return verdict(epochs, first, loss, expected);
}

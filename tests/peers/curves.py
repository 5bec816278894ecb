"""Training beside PyTorch's: the same data, the same first weights, and what the losses of 200 steps are.

    python tests/peers/curves.py BUILD [SEED...]

Needs a torch for the cpu and numpy. The examples train_mlp and train_cnn (tools/examples) are run on the cpu and on
the software device from weights that PyTorch made and saved; PyTorch trains the same model with the same numbers, made
here as the examples make them. No loss may be off by more than 1e-4 from PyTorch's, or else from PyTorch's in double:
rounding alone makes those two differ by more at times (train_cnn, seed 1: by 3.7e-4). Exit status 1 where one is.
"""
import os
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

from models import save

STEPS, BATCH, MOST = 200, 32, 1e-4


class Numbers:
    """The examples' next_number()."""

    def __init__(self):
        self.state = 1

    def bits(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xffffffff
        return self.state >> 8 & 0xffff

    def __call__(self):
        return self.bits() / 32768 - 1


def mlp_data():
    number, x, y = Numbers(), [], []
    for _ in range(256):
        v = [number() for _ in range(8)]
        x.append(v)
        y.append([v[0] * v[1] + v[2] * v[2] - v[3] / 2])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def mlp():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def bright(kind, row, column):
    return [row % 3 == 0, column % 3 == 0, (row + column) % 3 == 0, row % 3 == 0 and column % 3 == 0][kind]


def cnn_data():
    number, x, y = Numbers(), [], []
    for _ in range(256):
        kind = number.bits() % 4
        x.append([[[number.bits() / 32768 + bright(kind, row, column) for column in range(12)] for row in range(12)]])
        y.append(kind)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(144, 4))


def train(model, x, y, measure, optimizer, schedule):
    losses = []
    for i in range(STEPS):
        first = i * BATCH % len(x)
        optimizer.zero_grad()
        loss = measure(model(x[first:first + BATCH]), y[first:first + BATCH])
        loss.backward()
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return numpy.array(losses)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=.05, momentum=.9), None


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=.003), None


def one_cycle(model):
    optimizer = torch.optim.AdamW(model.parameters())
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, .01, total_steps=STEPS)


# Name of the example, its arguments, model, data, loss, optimizer.
RUNS = [("train_mlp", [], mlp, mlp_data, nn.functional.mse_loss, sgd),
        ("train_mlp", ["--adam"], mlp, mlp_data, nn.functional.mse_loss, adam),
        ("train_cnn", [], cnn, cnn_data, nn.functional.cross_entropy, one_cycle)]


def compare(build, seed, run):
    example, arguments, make, data, measure, optimizer = run
    torch.manual_seed(seed)
    model, bad = make(), 0
    with tempfile.TemporaryDirectory() as folder:
        weights, losses = os.path.join(folder, "weights.safetensors"), os.path.join(folder, "losses.npy")
        save(weights, model.state_dict())
        x, y = data()
        wide = make().double()
        wide.load_state_dict(model.state_dict())
        theirs = [train(model, x, y, measure, *optimizer(model)),
                  train(wide, x.double(), y.double() if y.is_floating_point() else y, measure, *optimizer(wide))]
        for device, name in (("cpu", "cpu"), ("cuda:0", "software device")):
            environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/sim:{build}/lib", WEIR_SIM_DEVICES="1")
            subprocess.run([f"{build}/examples/{example}", *arguments, "--device", device, "--weights", weights, "--losses", losses],
                           check=True, env=environment, stdout=subprocess.DEVNULL)
            ours = numpy.load(losses)
            off = [float(abs(ours - t).max()) if len(ours) == STEPS else numpy.inf for t in theirs]
            print(f"{' '.join([example, *arguments])}, seed {seed}, {name}: {ours[0]:.4f} to {ours[-1]:.4f}, off by {off[0]:.2g}, of double {off[1]:.2g}")
            bad += not min(off) <= MOST
    return bad


def main():
    build, seeds = os.path.abspath(sys.argv[1]), [int(s) for s in sys.argv[2:]] or [1, 2]
    torch.set_num_threads(1)
    bad = sum(compare(build, s, run) for s in seeds for run in RUNS)
    print(f"{2 * len(seeds) * len(RUNS)} curves of {STEPS} losses, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

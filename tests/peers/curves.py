"""Training beside PyTorch's: the same data, the same first weights, and what the losses of 200 steps are.

    python tests/peers/curves.py BUILD [SEED...]

Needs a torch for the cpu and numpy. The examples train_mlp, train_cnn and train_text (tools/examples) are run on the cpu
and on one and two software devices from weights that PyTorch made and saved; PyTorch trains the same model with the same
numbers, made here as the examples make them. No loss may be off by more than 1e-4, unless rounding has decided where a gradient goes:
a curve may part from PyTorch's within five steps of one at which, in double, the two largest of a pool or a ReLU's
operand and 0 are less than 1e-6 apart. It says so then. Exit status 1 where one is off otherwise.
"""
import ast
import os
import re
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

from models import Gpt, save

STEPS, MOST, ROUNDING, TIE, SOON = 200, 1e-4, 3e-6, 1e-6, 5


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
        x.append([[[number.bits() / 32768 + bright(kind, row, column) for column in range(8)] for row in range(8)]])
        y.append(kind)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 4))


def text_data():
    """The poem as the example's source has it: symbols are numbered in the order of their bytes."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/examples/train_text.c")
    with open(source, encoding="ascii") as f:
        parts = re.search(r"char poem\[\] = (.*?);\n\n", f.read(), re.S)[1]
    text = "".join(ast.literal_eval(line.strip()) for line in parts.splitlines())
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    tokens = torch.tensor([number[c] for c in text])
    items = (len(text) - 1) // (16 * 8) * 8
    return tokens[:items * 16].view(items, 16), tokens[1:items * 16 + 1].view(items, 16)


def transformer():
    vocabulary = int(torch.cat(text_data()).max()) + 1
    model = Gpt(2, 24, 4, vocabulary, 16)
    for embedding in (model.wte, model.wpe):
        nn.init.normal_(embedding.weight, 0, .02)
    return model


def next_byte(logits, wanted):
    return nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


class Ties:
    """How near a model's ReLUs and pools come to a tie, step by step."""

    def __init__(self, model):
        self.steps = []
        for m in model.modules():
            if isinstance(m, nn.ReLU):
                m.register_forward_pre_hook(lambda _, given: self.note(given[0].abs().min()))
            elif isinstance(m, nn.MaxPool2d):
                m.register_forward_pre_hook(lambda _, given: self.note(self.apart(given[0])))

    @staticmethod
    def apart(x):
        two = x.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4).topk(2)[0]
        return (two[..., 0] - two[..., 1])[two[..., 0] > 0].min()

    def note(self, margin):
        self.steps[-1] = min(self.steps[-1], margin.item())


def train(model, x, y, batch, measure, optimizer, schedule, max_norm=None, ties=None, steps=STEPS, before=None):
    losses = []
    for i in range(steps):
        first = i * batch % len(x)
        if before:
            before()
        if ties:
            ties.steps.append(1.)
        optimizer.zero_grad()
        loss = measure(model(x[first:first + batch]), y[first:first + batch])
        loss.backward()
        if max_norm:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return numpy.array(losses)


def judge(ours, theirs, ties):
    """What is to be said, and whether it is as it should be."""
    if len(ours) != STEPS:
        return f"{len(ours)} losses", False
    off = abs(ours - theirs)
    if off.max() <= MOST:
        return f"off by {off.max():.2g}", True
    parts = int(numpy.argmax(off > ROUNDING))
    near = min(ties[max(0, parts - SOON):parts + 1])
    return f"off by {off[:parts].max():.2g} up to step {parts}, then by {off.max():.2g}; apart before: {near:.2g}", near < TIE


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=.05, momentum=.9), None, None


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=.003), None, None


def one_cycle(model):
    optimizer = torch.optim.AdamW(model.parameters())
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, .01, total_steps=STEPS), None


def cosine(model):
    optimizer = torch.optim.AdamW(model.parameters(), .005)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS), 1.


# Name of the example, its arguments, model, data, rows of a step, loss, optimizer.
RUNS = [("train_mlp", [], mlp, mlp_data, 32, nn.functional.mse_loss, sgd),
        ("train_mlp", ["--adam"], mlp, mlp_data, 32, nn.functional.mse_loss, adam),
        ("train_cnn", [], cnn, cnn_data, 16, nn.functional.cross_entropy, one_cycle),
        ("train_text", [], transformer, text_data, 8, next_byte, cosine)]
# Arguments of the example, how many devices there are, what is said of them.
PLACES = [(["--device", "cpu"], 1, "cpu"), (["--device", "cuda:0"], 1, "software device"),
          (["--devices", "2"], 2, "two software devices")]


def compare(build, seed, run):
    example, arguments, make, data, batch, measure, optimizer = run
    torch.manual_seed(seed)
    model, bad = make(), 0
    with tempfile.TemporaryDirectory() as folder:
        weights, losses = os.path.join(folder, "weights.safetensors"), os.path.join(folder, "losses.npy")
        save(weights, model.state_dict())
        x, y = data()
        wide = make().double()
        wide.load_state_dict(model.state_dict())
        ties = Ties(wide)
        train(wide, *(t.double() if t.is_floating_point() else t for t in (x, y)), batch, measure, *optimizer(wide), ties=ties)
        theirs = train(model, x, y, batch, measure, *optimizer(model))
        for where, devices, name in PLACES:
            environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/sim:{build}/lib", WEIR_SIM_DEVICES=str(devices))
            subprocess.run([f"{build}/examples/{example}", *arguments, *where, "--weights", weights, "--losses", losses],
                           check=True, env=environment, stdout=subprocess.DEVNULL)
            ours = numpy.load(losses)
            said, right = judge(ours, theirs, ties.steps)
            print(f"{' '.join([example, *arguments])}, seed {seed}, {name}: {ours[0]:.4f} to {ours[-1]:.4f}, {said}")
            bad += not right
    return bad


def main():
    build, seeds = os.path.abspath(sys.argv[1]), [int(s) for s in sys.argv[2:]] or [1, 2]
    torch.set_num_threads(1)
    bad = sum(compare(build, s, run) for s in seeds for run in RUNS)
    print(f"{len(PLACES) * len(seeds) * len(RUNS)} curves of {STEPS} losses, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

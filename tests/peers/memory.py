"""The most memory that tensors have in a step of training, beside PyTorch's.

    python tests/peers/memory.py BUILD

Needs a torch for the cpu and numpy. The examples train_mlp, train_cnn and train_text (tools/examples) say what the
caching allocator had at most in a step on the software device (--memory). PyTorch trains the same models by the same data
on the cpu, where torch.profiler says each block that comes and goes; blocks are counted as the allocators of both devices
give them out, in whole 512 bytes (oneDNN's own among them), but for the numbers of steps, which PyTorch has on the cpu. No step may have more than
5 % beyond PyTorch's. That of train_cnn's usual batch is said, not judged: what a convolution unfolds at a time, up to
256 KiB, is more than all else it has. Exit status 1 where one has more.
"""
import os
import re
import subprocess
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from curves import RUNS, train

UNIT, MOST, MARK = 512, 1.05, 1234567


def peak_of(run, batch, steps=3):
    """Bytes at the peak of the last step."""
    _, _, make, data, _, measure, optimizer = run
    torch.manual_seed(1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        x, y = (t.clone() for t in data())
        model = make()
        parts = optimizer(model)
        train(model, x, y, batch, measure, *parts, steps=steps,
              before=lambda: torch.empty(MARK, dtype=torch.uint8))
    now = most = 0
    for e in sorted((e for e in p.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        if abs(e.nbytes()) == MARK:  # a step begins
            most = now
            continue
        size = -(-abs(e.nbytes()) // UNIT) * UNIT
        now += size if e.nbytes() > 0 else -size
        most = max(most, now)
    return most - UNIT * sum("step" in state for state in parts[0].state.values())


def compare(build, run, batch):
    example, arguments = run[0], [*run[1], *(["--batch", str(batch)] if batch else [])]
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/sim:{build}/lib", WEIR_SIM_DEVICES="1")
    said = subprocess.run([f"{build}/examples/{example}", *arguments, "--device", "cuda:0", "--memory"], check=True,
                          env=environment, capture_output=True, text=True).stdout
    ours, theirs = int(re.search(r"at most (\d+) bytes", said)[1]), peak_of(run, batch or run[4])
    judged = example != "train_cnn" or batch
    right = ours <= MOST * theirs or not judged
    print(f"{' '.join([example, *arguments])}: {ours} bytes at the peak of a step, PyTorch {theirs}: {ours / theirs:.3f}"
          f"{'' if not judged else ', right' if right else ', too many'}")
    return not right


def main():
    build = os.path.abspath(sys.argv[1])
    torch.set_num_threads(1)
    cases = [(run, batch) for run in RUNS for batch in ([None, 256] if run[0] != "train_text" else [None, 40])]
    bad = sum(compare(build, *case) for case in cases)
    print(f"peaks of {len(cases)} trainings, {bad} more than {MOST} of torch {torch.__version__}'s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

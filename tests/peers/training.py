#!/usr/bin/env python3
"""training.py: a training loop of PyTorch with NVTX ranges; no kernel of PyTorch's is needed.
training.py profile: copies under torch.profiler, whose events are counted by device and name.
training.py check TRACE WEIR: what a trace of the loop must have: Python's functions and lines, the
ranges' counts.
"""
import json
import re
import subprocess
import sys

STEPS = 3


def loop():
    import torch

    class Model:
        def __init__(self, n):
            self.w = torch.empty(n, device="cuda")
            self.grad = torch.empty(n, device="cuda")

        def forward(self, x):
            with torch.cuda.nvtx.range("forward"):
                h = torch.empty(x.numel(), device="cuda")
                h.copy_(x)  # forward
                return h

        def backward(self, h):
            with torch.cuda.nvtx.range("backward"):
                self.grad.copy_(h)  # backward

    def step(model):
        h = model.forward(torch.ones(4096))  # in step
        model.backward(h)
        return h.cpu()  # step

    def train():
        model = Model(4096)
        for _ in range(STEPS):
            with torch.cuda.nvtx.range("step"):
                out = step(model)  # train
        return out

    out = train()
    torch.cuda.synchronize()
    print(float(out.sum()))


def profile():
    import collections

    import torch
    from torch.profiler import ProfilerActivity

    x, g = torch.ones(4096), torch.empty(4096, device="cuda")
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(5):
            g.copy_(x)
            g.cpu()
        torch.cuda.synchronize()
    counts = collections.Counter((str(e.device_type), e.name) for e in p.events())
    for (device, name), n in sorted(counts.items()):
        print(device, name, n)
    on_device = sum(n for (device, name), n in counts.items() if "CUDA" in device and name.startswith("Memcpy"))
    assert on_device == 10, on_device


def check(trace, weir):
    lines = {m[1]: i + 1 for i, x in enumerate(open(__file__)) if (m := re.search(r"  # ([a-z ]+)$", x))}
    report = json.loads(subprocess.run([weir, "report", "-f", "json", "-n", "500", trace], check=True, capture_output=True).stdout)
    stacks = ["\n".join(x["callers"]) for s in report["copy_places"] for x in s["stacks"]]

    def frame(function, place):
        return re.escape(f"loop.<locals>.{function}") + rf" \(\S*training.py:{lines[place]}\)"

    ways = [[("Model.forward", "forward"), ("step", "in step"), ("train", "train")],
            [("Model.backward", "backward")], [("step", "step"), ("train", "train")]]
    for way in ways:
        pattern = "\n".join(frame(*x) for x in way)
        assert any(re.search(pattern, x) for x in stacks), (pattern, stacks)
    counts = {r["text"]: r["ranges"] for r in report["ranges"]}
    assert counts == {"step": STEPS, "forward": STEPS, "backward": STEPS}, counts
    text = subprocess.run([weir, "report", trace], check=True, capture_output=True, text=True).stdout
    assert re.search(rf" loop.<locals>.Model.forward +\S*training.py:{lines['forward']}", text), text
    print(f"{len(stacks)} stacks of copies, {len(counts)} ranges")


if len(sys.argv) == 1:
    loop()
elif sys.argv[1] == "profile":
    profile()
else:
    check(*sys.argv[2:])

#!/usr/bin/env python3
"""peaks.py whole|any, peaks.py check TRACE OUTPUT: the most device memory that PyTorch had.

The first makes and drops tensors on device 0 and prints two accounts of their peak: its own, of the
tensors' bytes, and PyTorch's, of what its allocator had reserved. `whole`: sizes are whole pages of
expandable segments, and nothing is kept in the cache: the accounts are one, whichever way segments are
made. `any`: sizes as they come. The second holds them against a trace, with the way that it shows.
"""
import random
import sqlite3
import sys

PAGE = 20 << 20  # of an expandable segment's large tensors; cudaMalloc's segments are of 2 MiB


def run(what):
    import torch
    draw, tensors, live, peak = random.Random(7), [], 0, 0
    for _ in range(120):
        if tensors and (live > 40 * PAGE or draw.random() < 0.45):
            live -= tensors.pop(draw.randrange(len(tensors))).numel()
            if what == "whole" or draw.random() < 0.2:
                torch.cuda.empty_cache()
        else:
            size = PAGE * draw.randint(1, 4) if what == "whole" else int(2 ** draw.uniform(8, 26))
            tensors.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            live += size
            peak = max(peak, live)
    print("tensors", peak)
    print("reserved", torch.cuda.max_memory_reserved(0))
    return what == "whole" and peak != torch.cuda.max_memory_reserved(0)


def check(trace, output):
    with open(output, encoding="ascii") as lines:
        said = {name: int(value) for name, value in (line.split() for line in lines)}
    db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    (peak,) = db.execute("SELECT peak FROM memory WHERE mem IS NULL AND device = 0").fetchone()
    kinds = " and ".join(k for (k,) in db.execute(
        "SELECT name FROM memory JOIN mem_kind k ON k.id = mem WHERE device = 0 ORDER BY 1"))
    print(f"peak of {kinds} memory {peak}, PyTorch reserved {said['reserved']}, had tensors of {said['tensors']}")
    return peak != said["reserved"]


if __name__ == "__main__":
    sys.exit(check(*sys.argv[2:]) if sys.argv[1] == "check" else run(sys.argv[1]))

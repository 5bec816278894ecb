#!/usr/bin/env python3
"""figures.py OURS [THEIRS]: rows of a table in markdown from lines of "WHAT VALUE UNIT" (gpu_tensor,
torch_figures.py): Weir's figure, PyTorch's, and how many times as good ours is."""
import sys


def read(path):
    with open(path, encoding="ascii") as lines:
        return {f[0]: (float(f[1]), f[2]) for f in map(str.split, lines) if len(f) == 3}


ours, theirs = read(sys.argv[1]), read(sys.argv[2]) if len(sys.argv) > 2 else {}
for name, (value, unit) in ours.items():
    other = theirs.get(name.removesuffix("-builtin"))
    ratio = (other[0] / value if unit == "ns" else value / other[0]) if other and value and other[0] else None
    print(f"| {name} | {unit} | {value:g} | {f'{other[0]:g}' if other else ''} | {f'{ratio:.2f}' if ratio else ''} |")

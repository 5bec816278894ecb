#!/usr/bin/env python3
"""overlap.py NAME ACTIVITIES HOST: a row in markdown: how long copies and kernels were on the device at the same
time, us, by what cupti_activity.c wrote; and the host's times that overlap.c printed, ms. Exit status 1: pinned
copies overlapped with nothing.

Columns: us of kernels, of copies to the device, from it; us of these beside kernels, and beside each other."""
import sys

name, path, host = sys.argv[1:]
spans = {"kernel": [], "HtoD": [], "DtoH": []}
with open(path, encoding="utf-8", errors="replace") as lines:
    for line in lines:
        f = line.split(maxsplit=4)
        if f and f[0] in spans:
            spans[f[0]].append((int(f[1]), int(f[2])))


def merged(of):
    out = []
    for start, end in sorted(of):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def common(a, b):
    total, i, k = 0, 0, 0
    while i < len(a) and k < len(b):
        total += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return total


kernels, to, back = (merged(spans[k]) for k in ("kernel", "HtoD", "DtoH"))
lengths = [sum(e - s for s, e in x) / 1e3 for x in (kernels, to, back)]
beside = [common(to, kernels) / 1e3, common(back, kernels) / 1e3, common(to, back) / 1e3]
with open(host, encoding="ascii") as lines:
    said = {f[0]: f[1] for f in map(str.split, lines) if len(f) == 3}
print(f"| {name} | " + " | ".join(f"{v:.0f}" for v in lengths + beside) + " | " +
      " / ".join(said.get(k, "?") for k in ("products", "to-device", "from-device", "all")) + " |")
sys.exit(name == "pinned" and not (beside[0] > 0 and beside[1] > 0))

#!/usr/bin/env python3
"""modes.py NAME: a row of the table of modes, from what `weir compare --format json` says on stdin. Exit
status 1: the modes' outputs do not agree."""
import json
import sys

found = json.load(sys.stdin)["compare"]
by = {m["mode"]: m for m in found["modes"]}


def seconds(ns):
    return f"{ns / 1e9:.2f}"


times = " | ".join(seconds(m["median_ns"]) for m in found["modes"])
waits = " | ".join(f"{by[m]['waits']} / {seconds(by[m]['wait_ns'])}" for m in ("observe", "strict", "relaxed"))
peaks = " / ".join(f"{by[m]['peak_bytes'] / 2**20:.0f}" for m in ("observe", "strict", "relaxed"))
same = "yes" if found["agree"] and not found["varies"] else "varies by itself" if found["varies"] else "NO"
print(f"| {sys.argv[1]} | {same} | {times} | {waits} | {peaks} | {by['strict']['hits']} of "
      f"{by['strict']['hits'] + by['strict']['misses']} |")
sys.exit(0 if found["agree"] else 1)

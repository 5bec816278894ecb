#!/usr/bin/env python3
"""compare.py TRACE COUNTS LAYER: does the trace hold every call that CUPTI counted?

LAYER is what Weir can see of the program: `outer` (shared runtime: a runtime call and the driver calls
beneath it are one event) or `driver` (runtime linked in: the driver calls are the events). Only calls in
Weir's table are compared; cuInit is not, because CUPTI wakes up inside it.
Prints "EQUAL N calls of M functions" or "DIFFERENT ..." with the first differences; exit status 0 or 1.
"""
import collections
import sqlite3
import sys

trace, counts, layer = sys.argv[1:]
db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
hooked = {name for (name,) in db.execute("SELECT name FROM api WHERE hooked")}
seen = collections.Counter()
# a batched call is several events of one call
for name, calls in db.execute(
        "SELECT api.name, count(DISTINCT event.call) FROM event JOIN api ON api.id = event.api GROUP BY 1"):
    seen[name] += calls

cupti = collections.Counter()
with open(counts, encoding="ascii") as lines:
    for line in lines:
        kind, name, calls = line.split()
        if kind == layer and name in hooked:
            cupti[name] += int(calls)

names = sorted((set(cupti) | {n for n in seen if layer == "outer" or not n.startswith("cuda")}) - {"cuInit"})
wrong = [f"{n}: CUPTI {cupti[n]}, Weir {seen[n]}" for n in names if cupti[n] != seen[n]]
if wrong:
    print(f"DIFFERENT in {len(wrong)} of {len(names)} functions: " + "; ".join(wrong[:6]))
    sys.exit(1)
print(f"EQUAL {sum(cupti[n] for n in names)} calls of {len(names)} functions")

#!/usr/bin/env python3
"""times.py TRACE RECORDS: do the trace's device times agree with CUPTI's in a program of its own?

RECORDS is what cupti_activity.c wrote of another run of the same program, which does the same each time.
Of each kind of work on each device the operations must be as many, in the same order with the same bytes;
those of the trace must have times, and calls that they are of. How long they took is compared too, and
only printed: two runs differ. Prints "EQUAL ..." or "DIFFERENT ..."; exit status 0 or 1.
"""
import collections
import sqlite3
import statistics
import sys

trace, records = sys.argv[1:]
db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
names = {(1, 1): "HtoD", (1, 2): "DtoH", (1, 8): "DtoD", (3, None): "kernel"}
seen, cupti = collections.defaultdict(list), collections.defaultdict(list)
wrong = []
for kind, copy, size, start, end, event in db.execute(
        "SELECT kind, copy, bytes, start, \"end\", event FROM device_work WHERE kind IN (1, 3) ORDER BY start"):
    name = names.get((kind, copy))
    if name:
        seen[name].append((size if kind == 1 else 0, (end or 0) - (start or 0)))
    if start is None or event is None:
        wrong.append(f"a {name} without " + ("a time" if start is None else "a call"))
with open(records, encoding="utf-8") as lines:
    for line in sorted((l.split() for l in lines), key=lambda f: int(f[1])):
        size = int(line[4]) if line[0] != "kernel" else 0
        cupti[line[0]].append((size, int(line[2]) - int(line[1])))

said = []
for name in sorted(set(seen) | set(cupti)):
    ours, theirs = seen[name], cupti[name]
    if [n for n, _ in ours] != [n for n, _ in theirs]:
        wrong.append(f"{name}: {len(ours)} operations, CUPTI {len(theirs)}, or other bytes")
        continue
    ratio = statistics.median(t for _, t in ours) / max(1, statistics.median(t for _, t in theirs))
    said.append(f"{len(ours)} {name} (median time {ratio:.2f} of CUPTI's)")
if wrong or not said:
    print("DIFFERENT: " + "; ".join(wrong[:6] or ["nothing was recorded"]))
    sys.exit(1)
print("EQUAL " + ", ".join(said))

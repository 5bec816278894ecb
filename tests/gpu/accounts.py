#!/usr/bin/env python3
"""accounts.py WHAT ACCOUNT TRACE: what a program counted for itself, against its trace.

WHAT and whose account it is: memory (tests/e2e/keeper), graphs (graph_caller; TRACE is the report's JSON),
waits (waiter; of a resolved trace), polls (poller), ranges (tests/victims/nvtx/nests). Prints "EQUAL N ..."
or "DIFFERENT ..." with the first differences; exit status 0 or 1.
"""
import json
import sqlite3
import sys


def differences(what, want, got):
    """Of two dictionaries."""
    return [f"{what} {name}: the program {want.get(name, 0)}, Weir {got.get(name, 0)}"
            for name in sorted(set(want) | set(got)) if want.get(name, 0) != got.get(name, 0)]


def memory(lines, db):
    wrong, seen = [], 0
    for kind, device, *figures in (line.split() for line in lines):
        allocs, size, blocks, live, low, high = map(int, figures)
        row = db.execute(
            "SELECT allocs, bytes, live_blocks, live, peak FROM memory WHERE mem IS ? AND device IS ? AND registered = ?",
            (None if kind in "ST" else 2 if kind == "R" else int(kind), None if device == "-" else int(device),
             kind == "R")).fetchone()
        seen += 1
        if not row or row[:4] != (allocs, size, blocks, live) or not low <= row[4] <= high:
            wrong.append(f"kind {kind}, device {device}: the program {figures}, Weir {row}")
    return wrong, f"kinds and sums of memory, {allocs} allocations"


def graphs(lines, totals):
    want = dict((name, int(n)) for name, n in (line.split() for line in lines))
    return differences("total", want, {n: totals.get(n, 0) for n in want}), f"totals of {want['graph_launches']} launches"


def waits(lines, db):
    want = [tuple(map(int, line.split())) for line in lines]
    got = db.execute("SELECT d.pending, d.operations, d.bytes, d.streams FROM wait_detail d JOIN call c USING (id)"
                     " ORDER BY c.start_ns, c.id").fetchall()
    wrong = [f"wait {i}: the oracle {w}, Weir {g}" for i, (w, g) in enumerate(zip(want, got)) if w != g]
    if len(want) != len(got):
        wrong.append(f"{len(want)} waits, Weir {len(got)}")
    return wrong, f"{len(want)} waits, {sum(not w[0] for w in want)} with nothing to wait for"


def polls(lines, db):
    want = dict((name, int(n)) for name, n in (line.split() for line in lines))
    got = dict(db.execute("SELECT function, sum(count) FROM call WHERE function IN ('cudaEventQuery', 'cudaStreamQuery')"
                          " GROUP BY 1"))
    (rows,) = db.execute("SELECT count(*) FROM wait WHERE waits_for = 'query'").fetchone()
    return differences("calls of", want, got), f"{sum(want.values())} polls, {rows} events"


def ranges(lines, db):
    want = {what + " " + text: int(n) for what, text, n in ((*line.split(" ", 1)[:1], *line.split(" ", 1)[1].rsplit(" ", 1))
                                                            for line in lines)}
    got = {}
    for query in ("SELECT CASE kind WHEN 'push_pop' THEN 'range ' WHEN 'start_end' THEN 'span ' ELSE 'mark ' END || domain"
                  " || ':' || text, count(*) FROM range GROUP BY 1",
                  "SELECT 'open ' || domain || ':' || text, count(*) FROM range WHERE kind = 'push_pop' AND end_ns IS NULL"
                  " GROUP BY 1",
                  "SELECT 'call ' || coalesce(r.domain || ':' || r.text, 'none'), count(*) FROM call c LEFT JOIN"
                  " event_range e ON e.event = c.id LEFT JOIN range r ON r.id = e.range WHERE c.function = 'cudaMalloc'"
                  " GROUP BY 1"):
        got.update(db.execute(query))
    return differences("", want, got), f"{sum(want.values())} ranges, marks and calls within them"


def main():
    what, account, trace = sys.argv[1:]
    with open(account, encoding="utf-8") as f:
        lines = f.read().splitlines()
    if what == "graphs":
        with open(trace, encoding="utf-8") as f:
            wrong, said = graphs(lines, json.load(f)["totals"])
    else:
        db = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
        wrong, said = globals()[what](lines, db)
    if wrong or not lines:
        print("DIFFERENT: " + "; ".join(wrong[:6] or ["nothing was counted"]))
        return 1
    print("EQUAL " + said)
    return 0


sys.exit(main())

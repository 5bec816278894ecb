#!/usr/bin/env python3
"""Computes what weir stats prints, from the trace's own tables, and compares.

stats.py TRACE WEIR  every report of sums, as CSV and JSON, is what is computed here; rules and lists have the
                     rows that they must; prints a line "NAME ROWS" for each
"""
import csv
import io
import json
import sqlite3
import statistics
import subprocess
import sys

TIMES = ["Time (%)", "Total Time (ns)", None, "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
SIZES = ["Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)"]
ALL_FORMATS = ["cuda_api_sum", "cuda_gpu_trace", "cuda_gpu_mem_size_sum"]
ARRAYS = ["Host-to-Array", "Array-to-Host", "Array-to-Array", "Array-to-Device", "Device-to-Array"]
OPERATIONS = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host", 10: "Peer-to-Peer"}
OPERATIONS.update(enumerate(ARRAYS, 3))


def weir(name, form):
    ran = subprocess.run([sys.argv[2], "stats", name, sys.argv[1], "-f", form], capture_output=True, check=True)
    return ran.stdout.decode("utf-8")


def rows_of(name):
    rows = list(csv.reader(io.StringIO(weir(name, "csv"))))
    print(name, len(rows) - 1)
    if name not in ALL_FORMATS:
        return rows[0], rows[1:]
    objects = json.loads(weir(name, "json"))
    assert [list(o) for o in objects] == [rows[0]] * (len(rows) - 1), name
    for row, o in zip(rows[1:], objects):
        for text, value in zip(row, o.values()):
            assert text == str(value) or float(text) == value, (name, text, value)
    tabs = [line.split("\t") for line in weir(name, "tsv").splitlines()]
    assert tabs == rows, name
    return rows[0], rows[1:]


def times(values, total):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    whole = sum(values)
    return [
        100 * whole / total if total else 0,
        whole,
        len(values),
        whole / len(values),
        statistics.median(values),
        min(values),
        max(values),
        deviation,
    ]


def check_sum(name, count, labels, found):
    """found: labels -> values"""
    head, rows = rows_of(name)
    assert head == [h or count for h in TIMES] + labels, head
    total = sum(sum(v) for v in found.values())
    seen = {}
    for row in rows:
        seen[tuple(row[8:])] = [float(x) for x in row[:8]]
    assert set(seen) == set(found), (name, set(seen) ^ set(found))
    for label, values in found.items():
        for is_, must in zip(seen[label], times(values, total)):
            assert abs(is_ - must) <= 0.051 + abs(must) * 1e-9, (name, label, is_, must)
    totals = [int(row[1]) for row in rows]
    assert totals == sorted(totals, reverse=True)


def grouped(db, sql):
    found = {}
    for *label, value, count in db.execute(sql):
        found.setdefault(tuple(label), []).extend([value // count if value % count == 0 else value / count] * count)
    return found


def check_sizes(db):
    head, rows = rows_of("cuda_gpu_mem_size_sum")
    assert head == SIZES + ["Operation"]
    found = {}
    for sql, kind in ("SELECT direction, bytes, count FROM copy WHERE status = 0 AND NOT captured AND NOT conditional", 0), (
        "SELECT 0, bytes, count FROM memset WHERE status = 0 AND NOT captured AND NOT conditional",
        1,
    ):
        for direction, size, count in db.execute(sql):
            words = (direction or "").replace("_", " ").title().replace(" To ", "-to-") if not kind else ""
            name = "[CUDA memset]" if kind else f"[CUDA memcpy {words}]"
            found.setdefault(name, []).extend([size // count] * count)
    assert {row[-1] for row in rows} == set(found), (rows, found.keys())
    for row in rows:
        values = found[row[-1]]
        must = [sum(values), len(values) * 1e6, sum(values) / len(values), statistics.median(values), min(values), max(values)]
        for is_, m in zip(row, must):
            assert abs(float(is_) - m / 1e6) <= 0.00051, (row, must)
    return {row[-1]: row for row in rows}


def check_report(sizes):
    totals = json.loads(
        subprocess.run([sys.argv[2], "report", "-f", "json", sys.argv[1]], capture_output=True, check=True).stdout
    )["totals"]
    for key, words in ("h2d", "Host-to-Device"), ("d2h", "Device-to-Host"), ("d2d", "Device-to-Device"), ("p2p", "Peer-to-Peer"):
        row = sizes.get(f"[CUDA memcpy {words}]")
        assert abs(totals[key + "_bytes"] / 1e6 - (float(row[0]) if row else 0)) <= 0.00051, (key, row)


def devices(db):
    kernels, memory, both = {}, {}, {}
    names = {(p, h): n for p, h, n in db.execute("SELECT process, handle, name FROM name WHERE kind = 'kernel'")}
    sql = (
        "SELECT d.kind, d.copy, d.process, d.event, d.\"end\" - d.start FROM device_work d WHERE d.kind < 4"
        " AND start IS NOT NULL AND \"end\" >= start"
    )
    for kind, copy, process, event, ns in db.execute(sql).fetchall():
        if kind == 3:
            found = db.execute("SELECT kind, a FROM event WHERE id = ?", (event,)).fetchone()
            handle = found[1] if found and found[0] == 6 else None
            if found and found[0] == 12:
                handles = {
                    row[0]
                    for row in db.execute(
                        "SELECT w.kernel FROM graph_launch l JOIN graph_work w ON w.content = l.content AND w.type = 0"
                        " WHERE l.event = ?",
                        (event,),
                    )
                }
                handle = handles.pop() if len(handles) == 1 else None
            label = names.get((process, handle)) or "(kernel of a graph)"
            kernels.setdefault((label,), []).append(ns)
            both.setdefault(("CUDA_KERNEL", label), []).append(ns)
        else:
            label = f"[CUDA memcpy {OPERATIONS.get(copy, 'Unknown')}]" if kind == 1 else "[CUDA memset]"
            memory.setdefault((label,), []).append(ns)
            both.setdefault(("MEMORY_OPER", label), []).append(ns)
    return kernels, memory, both


def check_rule(db, name, view, kind, where):
    head, rows = rows_of(name)
    sql = (
        f'SELECT d."end" - d.start, d.start, function FROM device_work d JOIN {view} c ON c.id = d.event'
        f" WHERE d.kind = {kind} AND NOT by_graph AND {where} ORDER BY 1 DESC, 2 LIMIT 50"
    )
    assert [(int(r[0]), int(r[1]), r[-1]) for r in rows] == db.execute(sql).fetchall(), name


def check_devices(db, calls):
    kernels, memory, both = devices(db)
    check_sum("cuda_gpu_kern_sum", "Instances", ["Name"], kernels)
    check_sum("cuda_gpu_mem_time_sum", "Count", ["Operation"], memory)
    check_sum("cuda_gpu_sum", "Instances", ["Category", "Operation"], both)
    both.update({("CUDA_API", *name): values for name, values in calls.items()})
    check_sum("cuda_api_gpu_sum", "Instances", ["Category", "Operation"], both)
    head, rows = rows_of("cuda_gpu_trace")
    assert len(rows) == db.execute("SELECT count(*) FROM device_work WHERE kind BETWEEN 1 AND 4").fetchone()[0]
    starts = [int(row[0]) for row in rows]
    assert starts == sorted(starts)
    head, rows = rows_of("cuda_kern_exec_sum")
    assert head[:6] == ["PID", "TID", "DevId", "Count", "QCount", "TAvg (ns)"] and head[-2:] == ["API Name", "Kernel Name"]
    assert sum(int(row[3]) for row in rows) == db.execute(
        "SELECT count(event) FROM device_work WHERE kind = 3").fetchone()[0]
    assert all(int(row[4]) <= int(row[3]) for row in rows)
    pageable = "asynchronous AND 'pageable' IN (source_memory, destination_memory)"
    small = "(direction = 'host_to_device' AND d.bytes <= 65536)"
    of_memset = "memory IN ('pinned', 'managed') AND NOT asynchronous"
    check_rule(db, "cuda_memcpy_async", "copy", 1, pageable)
    check_rule(db, "cuda_memcpy_sync", "copy", 1, f"NOT asynchronous AND direction <> 'device_to_device' AND NOT {small}")
    check_rule(db, "cuda_memset_sync", "memset", 2, of_memset)
    rows_of("gpu_gaps")
    head, rows = rows_of("gpu_time_util")
    assert all(float(row[1]) < 50 for row in rows) and [row[0] for row in rows] == [str(i + 1) for i in range(len(rows))]
    uses = [float(row[1]) for row in rows]
    assert uses == sorted(uses)


def main():
    db = sqlite3.connect(sys.argv[1])
    plain = "CASE WHEN function GLOB '__cuda*' THEN substr(function, 3) ELSE function END"
    calls = grouped(db, f"SELECT {plain}, duration_ns, count FROM call")
    check_sum("cuda_api_sum", "Num Calls", ["Name"], calls)
    head, rows = rows_of("cuda_api_trace")
    assert head == "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name".split(",")
    assert [int(row[4]) for row in rows] == [r[0] for r in db.execute("SELECT id FROM call ORDER BY start_ns, id")]
    check_report(check_sizes(db))
    head, rows = rows_of("cuda_api_sync")
    waits = "SELECT count(*) FROM wait WHERE waits_for IN ('stream', 'context')"
    assert len(rows) == min(50, db.execute(waits).fetchone()[0])
    ranges = (
        "SELECT {}ifnull(domain, '') || ':' || ifnull(text, ''), coalesce(end_ns, p.\"end\") - start_ns, 1"
        " FROM range r JOIN process p ON p.id = r.process WHERE r.kind IN ({})"
    )
    style = "CASE r.kind WHEN 'push_pop' THEN 'PushPop' ELSE 'StartEnd' END, "
    check_sum("nvtx_sum", "Instances", ["Style", "Range"], grouped(db, ranges.format(style, "'push_pop', 'start_end'")))
    check_sum("nvtx_pushpop_sum", "Instances", ["Range"], grouped(db, ranges.format("", "'push_pop'")))
    check_sum("nvtx_startend_sum", "Instances", ["Range"], grouped(db, ranges.format("", "'start_end'")))
    if db.execute("SELECT count(*) FROM device_work WHERE kind < 5").fetchone()[0]:
        check_devices(db, calls)


if __name__ == "__main__":
    main()

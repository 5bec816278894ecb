#!/usr/bin/env python3
"""memory.py REPORT ACCOUNT SLACK: is what was in use of device 0 explained, by the driver's word and by NVML's?

REPORT is `weir report --format json` of a run of memory.c, ACCOUNT what that printed. The report's peak and live
bytes must be the program's own; blocks at the moment with the most in use too; and at no moment more than
SLACK bytes may be unexplained, either way. Prints a line "EQUAL ..." or "DIFFERENT ..."; exit status 0 or 1.
"""
import json
import sys

report, account, slack = sys.argv[1:]
with open(report, encoding="utf-8") as f:
    tables = json.load(f)
device = next(d for d in tables["devices"] if d["device"] == 0)
with open(account, encoding="utf-8") as f:
    levels = [(int(live), int(used)) for _, live, used in (line.split() for line in f if len(line.split()) == 3)]
wrong, said = [], []
peak = max(live for live, _ in levels)
if device["peak_bytes"] != peak:
    wrong.append(f"the peak is {device['peak_bytes']}, the program's {peak}")
if device["live_at_exit_bytes"] != 0:
    wrong.append(f"{device['live_at_exit_bytes']} bytes are live at exit")
for name, by in (("driver", "the driver"), ("NVML", "NVML")):
    of = {"device": 0, "by": name}.items()
    use = next((x for x in tables["usage"] if of <= {k: x[k] for k in ("device", "by")}.items()), None)
    moments = [x for x in tables.get("in_use", []) if of <= {k: x[k] for k in ("device", "by")}.items()]
    if not use:
        if name == "driver":
            wrong.append("the driver was not asked")
        said.append(f"no word of {by}")
        continue
    most = max(moments, key=lambda m: m["used_bytes"])
    if most["live_bytes"] != peak:
        wrong.append(f"by {by} most was in use with {most['live_bytes']} bytes of blocks")
    off = max((m["unexplained_bytes"] for m in moments), key=abs)
    if abs(off) > int(slack):
        wrong.append(f"{off} bytes that {by} says are in use are unexplained")
    said.append(f"{by}: at most {off / 2**20:.1f} MiB unexplained of {most['used_bytes'] / 2**20:.0f}, at "
                f"{len(moments)} moments, {use['before_bytes'] / 2**20:.0f} there before")
print("DIFFERENT: " + "; ".join(wrong) if wrong else "EQUAL: " + "; ".join(said))
sys.exit(bool(wrong))

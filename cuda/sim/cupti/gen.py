#!/usr/bin/env python3
"""Makes the tables of the software device's libcupti.so.13 from CUPTI's headers.

usage: gen.py OUTDIR INCLUDE... -- SOURCE.c...

INCLUDE are folders where CUPTI's headers may be (none: the tables are all but empty). A SOURCE that defines
`CUPTI_API CUptiResult CUPTIAPI cuptiX(` makes cuptiX real; every other function of the headers answers
CUPTI_ERROR_NOT_SUPPORTED. Written to OUTDIR:

  cupti.gen.h   R(result, number) a row a result code, N(name) a row a function that is not done
  cbid.gen.h    D(name, number, id) and T(name, number, id): functions of the driver and the runtime with
                the numbers that callbacks have for them, sorted by name
"""
import os
import re
import sys
from pathlib import Path


def without_comments(path):
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def results(text):
    rows = {"CUPTI_SUCCESS": 0, "CUPTI_ERROR_INVALID_PARAMETER": 1, "CUPTI_ERROR_NOT_SUPPORTED": 27}
    rows.update(re.findall(r"\b(CUPTI_(?:SUCCESS|ERROR_\w+))\s*=\s*(\w+)", text))
    return rows


def numbers(text, prefix):
    """{name without its version: (number, name)}: the newest version of each."""
    found = {}
    for name, number in re.findall(prefix + r"(cu\w+)\s*=\s*(\d+)", text):
        found[re.sub(r"_v\d{4,}$", "", name)] = (int(number), name)
    return found


def main():
    out, split = sys.argv[1], sys.argv.index("--")
    headers = [h for folder in sys.argv[2:split] for h in sorted(Path(folder).glob("cupti_*.h"))
               if h.name != "cupti_checkpoint.h"]  # which is of another library
    text = "".join(without_comments(h) for h in headers)
    done = set()
    for source in sys.argv[split + 1:]:
        done |= set(re.findall(r"^CUPTI_API (?:CUptiResult|int)(?: CUPTIAPI)?\s+(cupti\w+)\(",
                               Path(source).read_text(), re.M))
    names = set(re.findall(r"\bCUPTIAPI\s+(cupti\w+)\s*\(", text)) - done
    rows = [f"R({name}, {number})\n" for name, number in results(text).items()]
    rows += [f"N({name})\n" for name in sorted(names)]
    calls = []
    for letter, prefix in ("D", "CUPTI_DRIVER_TRACE_CBID_"), ("T", "CUPTI_RUNTIME_TRACE_CBID_"):
        calls += [f'{letter}("{name}", {number}, "{full}")\n'
                  for name, (number, full) in sorted(numbers(text, prefix).items())]
    head = "/* Made by cuda/sim/cupti/gen.py from CUPTI's headers. Not for editing. */\n"
    os.makedirs(out, exist_ok=True)
    Path(out, "cupti.gen.h").write_text(head + "".join(rows))
    Path(out, "cbid.gen.h").write_text(head + "".join(calls))


main()

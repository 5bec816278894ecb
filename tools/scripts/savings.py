#!/usr/bin/env python3
"""savings.py BENCH.json...: tools/doc/savings.tsv, of the rows saving-* that 'make savings' has measured, in one pass or several.

A line a waste of tools/bench/savings.def: what its rule predicts, the median of the passes; and what the same work takes less
without the waste: the least time with it of all passes, less the least without. A waste that was not measured has no line. The first
line has the commit that was measured, its date, and what else the machine did.
"""
import json
import os
import re
import statistics
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DEFINITIONS, DOCUMENT = 'tools/bench/savings.def', 'tools/doc/savings.tsv'


def passes(paths):
    """By row: (ms predicted, ms with the waste, ms without) of each pass."""
    found = {}
    for path in paths:
        with open(path, encoding='utf-8') as f:
            for row in json.load(f)['rows']:
                m = re.match(r'predicted (-?[\d.]+) ms, gained (-?[\d.]+) ms of (-?[\d.]+)', row['how'])
                if m:
                    predicted, gained, wasteful = map(float, m.groups())
                    found.setdefault(row['row'], []).append((predicted, wasteful, wasteful - gained))
    return found


def main():
    measured = passes(sys.argv[1:])
    os.chdir(TOP)
    with open(DEFINITIONS, encoding='utf-8') as f:
        works = re.findall(r'^SAVING\((\w+), "([\w-]+)"', f.read(), re.M)
    tree = subprocess.run(['git', 'log', '-1', '--format=%cs %h'], capture_output=True, text=True, check=True).stdout.strip()
    machine = f'{os.cpu_count()} processors, load {os.getloadavg()[2]:.0f}'
    lines = [f'# {tree}, {machine}: work, rule, ms predicted, ms gained\n']
    for work, rule in works:
        found = measured.get('saving-' + work)
        if found:
            predicted, wasteful, without = zip(*found)
            lines.append(f'{work}\t{rule}\t{statistics.median(predicted):.1f}\t{min(wasteful) - min(without):.1f}\n')
    with open(DOCUMENT, 'w', encoding='utf-8') as f:
        f.writelines(lines)
    return 0


if __name__ == '__main__':
    sys.exit(main())

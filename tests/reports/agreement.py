#!/usr/bin/env python3
"""agreement.py TRACE WEIR: whether what several outputs of weir print of a trace is one number: the
summary as text, JSON, CSV and Markdown, the reports in tables, diff, check, stats, the page, the export of calls
as CSV, the trace's views. Then each number that was read is made wrong in turn, which must be noticed. Prints what
is not so, one a line; exit status 1 if there was any."""
import html
import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys

TRACE, WEIR = sys.argv[1:3]
DIRECTIONS = {'host_to_device': 'h2d', 'device_to_host': 'd2h', 'device_to_device': 'd2d', 'peer_to_peer': 'p2p', 'host_to_host': 'h2h'}
METRICS = {'peak': ('peak_bytes', 'B'), 'peak.pinned': ('pinned_peak_bytes', 'B'), 'leaks.bytes': ('live_at_exit_bytes', 'B'),
           'leaks.count': ('live_at_exit_blocks', ''), 'allocations.count': ('alloc_calls', ''), 'allocations.bytes': ('alloc_bytes', 'B'),
           'memsets.count': ('memset_calls', ''), 'memsets.bytes': ('memset_bytes', 'B'), 'launches.count': ('launches', ''),
           'waits.explicit.count': ('sync_explicit_calls', ''), 'waits.explicit.time': ('sync_explicit_ns', 'ns'),
           'waits.implicit.count': ('sync_implicit_calls', ''), 'waits.implicit.time': ('sync_implicit_ns', 'ns'),
           'errors.count': ('failed_calls', ''), 'findings.count': ('findings', '')}
for d in DIRECTIONS.values():
    METRICS[f'transfers.{d}.count'] = d + '_calls', ''
    METRICS[f'transfers.{d}.bytes'] = d + '_bytes', 'B'
found = {}  # name -> output -> number


def weir(*args):
    return subprocess.run([WEIR, *args], stdout=subprocess.PIPE, check=True).stdout.decode('utf-8')


def take(output, name, value):
    found.setdefault(name, {})[output] = int(value)


def table(what, name):
    text = weir('report', what, '--table', name, '--top', '1000', '-f', 'csv', TRACE)
    rows = list(csv.reader(line for line in io.StringIO(text) if line.strip() and not line.startswith('# ')))
    return [dict(zip(rows[0], row)) for row in rows[1:]]


def add(sums, key, *values):
    sums[key] = [a + int(b) for a, b in zip(sums.get(key, [0] * len(values)), values)]


def take_copies(output, sums):
    for d in DIRECTIONS.values():
        calls, *sizes = sums.get(d, [0, 0])
        take(output, d + '_calls', calls)
        for size in sizes:
            take(output, d + '_bytes', size)


def summaries():
    report = json.loads(weir('report', '-f', 'json', TRACE))
    for name, value in report['totals'].items():
        take('JSON', name, value)
    for row in table('summary', 'totals'):
        take('CSV', row['total'], row['value'])
    for line in weir('report', 'summary', '--table', 'totals', '-f', 'markdown', TRACE).splitlines():
        cells = [html.unescape(cell.strip()) for cell in line.strip('|').split('|')]
        if len(cells) == 3 and cells[1].replace(',', '').isdigit():
            take('Markdown', cells[0], cells[1].replace(',', ''))
    text = weir('report', TRACE)
    sums = {}
    for a, b, calls in re.findall(r'^  (host|GPU \d+) → (host|GPU \d+) +([\d,]+)  ', text, re.M):
        way = {('h', 'G'): 'h2d', ('G', 'h'): 'd2h', ('h', 'h'): 'h2h'}.get((a[0], b[0]), 'd2d' if a == b else 'p2p')
        add(sums, way, calls.replace(',', ''))
    take_copies('text', {k: sums.get(k, [0]) for k in DIRECTIONS.values()})
    return report


def tables():
    sums = {}
    for row in table('transfers', 'transfers'):
        add(sums, row['direction'], row['calls'], row['bytes'])
    take_copies('report transfers', sums)
    for row in table('waits', 'waits'):
        for words, name in ('asked for', 'sync_explicit'), ('in calls that may wait', 'sync_implicit'):
            if row['what'] == words:
                take('report waits', name + '_calls', row['calls'])
                take('report waits', name + '_ns', row['host_ns'])
    row = table('memory', 'peaks')[0]
    for column, name in ('blocks', 'alloc_calls'), ('bytes', 'alloc_bytes'), ('peak_bytes', 'peak_bytes'), ('end_bytes', 'live_at_exit_bytes'):
        take('report memory', name, row[column])
    take('report memory', 'live_at_exit_blocks', row['end_blocks'])


def comparisons():
    take('report findings', 'findings', len(json.loads(weir('report', 'findings', '-f', 'json', TRACE))['findings']))
    diff = json.loads(weir('diff', '-f', 'json', TRACE, TRACE))
    for metric, (name, unit) in METRICS.items():
        take('diff, before', name, diff['run'][metric]['a'])
        take('diff, after', name, diff['run'][metric]['b'])
    for x in diff['sites'] + diff['findings']:
        if x.get('state', 'stays') != 'stays' or x.get('a', 1) != x.get('b', 1):
            found[f'{x} in diff'] = {'before': 0, 'after': 1}


def others():
    sums = {}
    words = {d.replace('_', '-').title().replace('-To-', '-to-'): short for d, short in DIRECTIONS.items()}
    for row in csv.DictReader(io.StringIO(weir('stats', 'cuda_gpu_mem_size_sum', '-f', 'csv', TRACE))):
        short = words.get(row['Operation'].removeprefix('[CUDA memcpy ').removesuffix(']'))
        if short:
            add(sums, short, row['Count'])
            found.setdefault(short + '_bytes in kB', {})['stats'] = round(float(row['Total (MB)']) * 1000)
            found[short + '_bytes in kB']['JSON'] = round(found[short + '_bytes']['JSON'] / 1000)
    take_copies('stats', {d: sums.get(d, [0]) for d in DIRECTIONS.values()})
    db = sqlite3.connect(TRACE)
    sums = {}
    for d, calls, size in db.execute("SELECT direction, sum(count), sum(bytes) FROM copy WHERE status = 0 AND NOT captured"
                                     " AND NOT conditional GROUP BY direction"):
        add(sums, DIRECTIONS.get(d), calls, size)
    take_copies('view copy', sums)
    count = "SELECT count(*) FROM launch WHERE status = 0 AND NOT captured"
    take('view launch', 'launches', db.execute(count).fetchone()[0])
    if not found['graph_launches']['JSON']:
        weir('export', '--format', 'csv', '-o', TRACE + '.csv', TRACE)
        sums = {}
        with open(TRACE + '.csv', encoding='utf-8') as f:
            for row in csv.DictReader(f):
                if row['kind'] == 'copy' and row['status'] == '0' and row['captured'] != '1':
                    add(sums, DIRECTIONS.get(row['direction']), row['count'] or 1, row['bytes'])
        take_copies('export', sums)
        os.unlink(TRACE + '.csv')


def budget(report):
    """Each limit is what the summary says, exactly."""
    with open(TRACE + '.budget', 'w', encoding='utf-8') as f:
        for metric, (name, unit) in METRICS.items():
            f.write(f'{metric} == {found[name]["diff, after"]} {unit}\n')
    ran = subprocess.run([WEIR, 'check', '--budget', TRACE + '.budget', TRACE], stdout=subprocess.PIPE, check=False)
    if ran.returncode:
        found['a budget of what diff says'] = {'check': ran.returncode, 'diff': 0}
        print(ran.stdout.decode())
    os.unlink(TRACE + '.budget')
    page, summary = TRACE + '.html', TRACE + '.json'
    weir('report', '--html', '-o', page, TRACE)
    with open(summary, 'w', encoding='utf-8') as f:
        json.dump(report, f)
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page.py')
    if subprocess.run([sys.executable, own, page, summary], check=False).returncode:
        found['the page'] = {'page': 1, 'JSON': 0}
    os.unlink(page)
    os.unlink(summary)


def wrong():
    return {name for name, by in found.items() if any(abs(v - w) > ('kB' in name) for v in by.values() for w in by.values())}


def main():
    report = summaries()
    tables()
    comparisons()
    others()
    budget(report)
    bad = wrong()
    for name in sorted(bad):
        print(name, found[name])
    for name, by in found.items():
        for output in by:
            by[output] += 2
            if name not in wrong():
                bad.add(name)
                print(f'{name}: {output} alone prints it')
            by[output] -= 2
    print(len(found), 'numbers', sum(len(by) for by in found.values()), 'printed')
    sys.exit(bool(bad))


main()

#!/usr/bin/env python3
"""agreement.py TRACE WEIR [COMPARED]: whether what several outputs of weir print of a trace is one number: the
summary as text, JSON, CSV and Markdown, the reports in tables, diff, check, stats, the page, the export of calls
as CSV, the trace's tables and views. Then each number that was read is made wrong in turn, which must be noticed. Prints
what is not so, one a line; exit status 1 if there was any.

What is compared is each figure that reports/SCHEMA.md lists of a report and of findings: figures() reads them off that page, so that
a new one that nothing here compares is a failure. COMPARED collects which were, over several traces;
`agreement.py --schema COMPARED` fails for those that were in none."""
import html
import csv
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

TRACE, WEIR, *MORE = sys.argv[1:]
OWN = os.path.dirname(os.path.abspath(__file__))
# Figures of SCHEMA.md that one output alone prints, and what holds them instead.
EXCUSED = {
    'devices.in_use_nvml': 'tests/e2e/test_memory.c: it needs a stand-in for NVML',
    'apis.places': 'tests/reports/test_sites.c',
    'graphs.graphs': 'tests/e2e/test_graphs.c', 'graphs.updates': 'tests/e2e/test_graphs.c',
    'named_memory': 'tests/e2e/test_named.c: not all headers of NVTX can name memory',
    'ranges.device_ns': 'tests/reports/test_range.c', 'ranges.ns': 'tests/reports/test_range.c', 'ranges.calls': 'tests/reports/test_range.c',
    'ranges.launches': 'tests/reports/test_range.c',
    'apis.place.calls': 'tests/reports/test_sites.c', 'apis.place.ns': 'tests/reports/test_sites.c',
    'device_observation.lost_calls': 'tests/reports/test_device_work.c',
}
# Figures whose sum over the members of a list is a total.
SUMS = {
    'apis': {'sync_calls': 'sync_explicit_calls', 'implicit_calls': 'sync_implicit_calls', 'init_calls': 'init_calls', 'init_ns': 'init_ns',
             'sync_ns': 'sync_explicit_ns', 'implicit_ns': 'sync_implicit_ns'},
    'graphs': {'launches': 'graph_launches', 'unknown': 'graph_launches_unknown', 'kernels': 'graph_kernels', 'copies': 'graph_copies',
               'copy_bytes': 'graph_copy_bytes', 'memsets': 'graph_memsets', 'may_have_run': 'graph_conditional_nodes'},
    'processes': {'events': 'events', 'dropped': 'dropped'},
}
# Members by which those of a list are told apart.
KEYS = {'devices': ('device',), 'device_times': ('device',), 'apis': ('layer', 'name'), 'matrix': ('src', 'dst'), 'host_memory': ('direction', 'memory'),
        'ranges': ('domain', 'text'), 'processes': ('pid',), 'tensors': ('device', 'pinned')}
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
    if value not in (None, ''):
        found.setdefault(name, {})[output] = round(float(value)) if isinstance(value, (str, float)) and '.' in str(value) else int(value)


@functools.cache
def listed():
    """The members that SCHEMA.md lists of a report, by section, and of a finding."""
    with open(os.path.join(OWN, '..', '..', 'reports', 'SCHEMA.md'), encoding='utf-8') as f:
        text = f.read()
    sections = {}
    for title, body in re.findall(r'^#### `(\w+)`$(.*?)(?=^#|\Z)', text, re.M | re.S):
        sections[title] = body
    sections['findings'] = text[text.index('\n## Findings'):text.index('\n## Reports in tables')]
    sections.pop('sites')  # lists of places, whose sums are compared below
    keys = {'findings': ('device',), **KEYS}  # which say what the others are of
    return {title: [name for cell in re.findall(r'^\| (`[^|]*) \|', body, re.M) for name in re.findall(r'`(\w+)`', cell) if name not in keys.get(title, ())]
            for title, body in sections.items() if '| member |' in body}


def numbers(value, name):
    """The figures in a member: itself, or those of an object."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield from numbers(v, f'{name}.{k}')
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, value


def full_name(section, member, row, index):
    """What a figure is called here: totals by their own names, members of lists with what tells them apart."""
    if section == 'totals':
        return member
    key = '' if row is None else f' of {[row.get(k) for k in KEYS[section]] if section in KEYS else index}'
    return f'{section}.{member}{key}'


def figures(output, report, only=None):
    """All figures that SCHEMA.md lists of a report; also as sums, where those are totals."""
    for section, members in listed().items():
        value = report.get(section)
        if value is None or (only and section not in only):
            continue
        rows = value if isinstance(value, list) else [value]
        for index, row in enumerate(rows):
            for member in members:
                for name, number in numbers(row.get(member), member):
                    take(output, full_name(section, name, row if isinstance(value, list) else None, index), number)
        for member, total in SUMS.get(section, {}).items():
            take(f'{section}, summed', total, sum(row[member] for row in rows))


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
    report = json.loads(weir('report', '-f', 'json/1', TRACE))
    figures('JSON', report)
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


def ordinal(text):
    return int(text.split()[-1]) if text.split()[-1].isdigit() else None


def rows_of(output, section, rows, key, renamed):
    """Columns of a table as the figures of a section: the members by `renamed`, else by their own name."""
    for row in rows:
        for column, cell in row.items():
            member = renamed.get(column, column)
            if member in listed()[section] and re.fullmatch(r'-?[\d.]+', cell):
                take(output, f'{section}.{member} of {key(row)}', cell)


def tables():
    sums, host = {}, {}
    for row in table('transfers', 'transfers'):
        add(sums, row['direction'], row['calls'], row['bytes'])
        memory = row['source_memory' if row['direction'] == 'h2d' else 'destination_memory']
        if row['direction'] in ('h2d', 'd2h'):
            add(host, (row['direction'], memory if memory in ('pageable', 'pinned', 'managed') else 'unknown'), row['calls'], row['bytes'], row['async_calls'])
    take_copies('report transfers', sums)
    for key, values in host.items():
        for member, value in zip(('calls', 'bytes', 'async_calls'), values):
            take('report transfers', f'host_memory.{member} of {list(key)}', value)
    take('kernels', 'launches', sum(int(row['launches']) for row in table('summary', 'kernels')))
    for row in table('waits', 'waits'):
        for words, name in (('asked for', 'sync_explicit'), ('in calls that may wait', 'sync_implicit'), ('asked for with nothing to wait for', 'waits.redundant'),
                            ('asked for of all streams where one had work', 'waits.wider')):
            if row['what'] == words:
                take('report waits', name + '_calls', row['calls'])
                take('report waits', name + '_ns', row['host_ns'])
    row = table('memory', 'peaks')[0]
    for column, name in ('blocks', 'alloc_calls'), ('bytes', 'alloc_bytes'), ('peak_bytes', 'peak_bytes'), ('end_bytes', 'live_at_exit_bytes'):
        take('report memory', name, row[column])
    take('report memory', 'live_at_exit_blocks', row['end_blocks'])
    take('report memory', 'peak_at_ns', row['peak_at_ns'])


def tables_of_sections(report):
    """Tables that have a row for each member of a section."""
    device = lambda row: [ordinal(row['device'])]
    for name in 'devices', 'device_copies', 'device_work', 'device_taken':
        rows_of('report devices', 'devices', table('devices', name), device, {'sync_explicit_host_ns': 'sync_explicit_ns'})
    rows_of('report summary', 'apis', table('summary', 'functions'), lambda row: [row['layer'], row['function']],
            {'host_ns': 'ns', 'longest_host_ns': 'max_ns', 'explicit_host_ns': 'sync_ns', 'implicit_host_ns': 'implicit_ns'})
    for row in table('summary', 'functions'):
        take('report summary', f'apis.place.line of {[row["layer"], row["function"]]}', row['place_line'])
    rows_of('report transfers', 'matrix', table('transfers', 'matrix'), lambda row: [ordinal(row['source']), ordinal(row['destination'])],
            {'waited_bytes_per_second': 'bytes_per_second'})
    for row in report['matrix']:
        if row['timed_ns']:
            name = f'{[row["src"], row["dst"]]}'
            take('its speed', f'matrix.timed_bytes of {name}', row['bytes_per_second'] * row['timed_ns'] / 1e9)
            take('its speed', f'matrix.timed_ns of {name}', row['timed_bytes'] / row['bytes_per_second'] * 1e9)
    if report['device_times']:
        rows_of('report devices', 'device_times', table('devices', 'busy'), device,
                {f'{x}_device_ns': f'{x}_ns' for x in ('span', 'busy', 'copy', 'kernel', 'overlap')})
    if any(d['in_use'] for d in report['devices']):
        for row in table('memory', 'in_use'):
            if row['by'] == 'driver':
                take('report memory', f'devices.in_use.before_bytes of {device(row)}', row['before_bytes'])
    if report['waits'] and report['waits']['divided']:
        for row, member in zip(table('waits', 'meanwhile'), ('working_ns', 'other_ns', 'idle_ns', 'unknown_ns')):
            take('report waits', 'waits.divided.' + member, row['host_ns'])
        take('its functions', 'waits.divided.calls', sum(f['calls'] for f in report['waits']['divided']['functions']))
    caches = json.loads(weir('report', 'cache', '-f', 'json/1', TRACE))
    figures('report cache', caches, ('cache',))
    for kind in 'alloc', 'copy', 'sync':
        of = {'alloc': ('alloc', 'pinned_alloc'), 'copy': (*DIRECTIONS.values(), 'other_copy')}.get(kind, ())
        whole = {k: sum(x[k] for x in report['sites'][kind]) + report['sites']['more'][kind][k] for k in ('calls', 'bytes', 'ns')}
        if kind == 'copy':
            for k in 'calls', 'bytes':
                take('sites', 'copies, ' + k, whole[k])
                take('totals', 'copies, ' + k, sum(report['totals'][f'{d}_{k}'] for d in of))
    for kind, member in ('redundant_waits', 'redundant'), ('wider_waits', 'wider'):
        if report['waits']:
            for k in 'calls', 'ns':
                take('sites', f'waits.{member}_{k}', sum(x[k] for x in report['sites'][kind]) + report['sites']['more'][kind][k])


def judged(report):
    """Findings as JSON and as a table, row by row."""
    found_here = json.loads(weir('report', 'findings', '-f', 'json/1', '--min-cost', '0ns', TRACE))
    figures('JSON', found_here, ('findings',))
    text = weir('report', 'findings', '--table', 'findings', '--top', '1000', '--min-cost', '0ns', '-f', 'csv', TRACE)
    rows = list(csv.DictReader(line for line in io.StringIO(text) if line.strip() and not line.startswith('# ')))
    newer = json.loads(weir('report', 'findings', '-f', 'json', '--min-cost', '0ns', TRACE))['findings']
    rules = {name.split('-', 1)[1][:-4]: int(name.split('-', 1)[0]) for name in os.listdir(os.path.join(OWN, '..', '..', 'reports', 'findings', 'rules'))}
    for i, (row, finding, other) in enumerate(zip(rows, found_here['findings'], newer)):
        for member in 'added', 'low', 'high':
            if finding[f'{member}_ns'] is not None:
                take('JSON 2', f'findings.{member}_ns of {i}', other[f'{member}_host_ns'])
        if finding['under'] is not None:
            take('JSON 2', f'findings.under of {i}', other['under'])
        take('JSON 2', f'findings.more_kernels of {i}', other['more_kernels'])
        for column, member in ('saving_host_ns', 'saving_ns'), ('cost_host_ns', 'cost_ns'), ('saving_bytes', 'saving_bytes'), ('count', 'count'):
            take('report findings', f'findings.{member} of {i}', row[column])
        take('rules', f'findings.rule of {i}', rules[row['id']])
        found.setdefault(f'findings.saving_share of {i}', {})['JSON'] = round(finding['saving_share'] * 1e6)
        found[f'findings.saving_share of {i}']['saving'] = round(finding['saving_ns'] / found_here['duration_ns'] * 1e6)
        take('sites', f'findings.more_sites of {i}', finding['more_sites'])
    take('report findings', 'findings of any cost', len(rows))
    take('JSON', 'findings of any cost', len(found_here['findings']))


def stored(report):
    """What the trace's own tables hold."""
    db = sqlite3.connect(TRACE)
    one = lambda query, *values: db.execute(query, values).fetchone()[0]
    for pid, *values in db.execute('SELECT pid, start, "end", end_detail, events, dropped FROM process'):
        for member, value in zip(('start_ns', 'end_ns', 'end_detail', 'events', 'dropped'), values):
            take('table process', f'processes.{member} of {[pid]}', value)
    for member, query in COVERAGE.items():
        take('table process', 'coverage.' + member, one(query))
    for member, fact in ('dropped', 'dropped'), ('untimed', 'untimed'):
        take('table device_fact', 'device_observation.' + member, one('SELECT coalesce(sum("count"), 0) FROM device_fact WHERE fact = ?', fact))
    take('table device_fact', 'device_observation.yields', one("SELECT count(*) FROM device_fact WHERE fact = 'yielded'"))
    take('table device_fact', 'device_observation.incomplete_processes', one("SELECT count(DISTINCT process) FROM device_fact WHERE fact = 'incomplete'"))
    if not one("SELECT count(*) FROM device_fact WHERE fact = 'yielded'"):
        take('table device_fact', 'device_observation.yielded_ns', 0)
    take('table device_work', 'device_observation.unmatched', one("SELECT count(*) FROM device_work WHERE event IS NULL AND kind <= 3"))
    for device in [d['device'] for d in report['devices'] if d['in_use']]:
        take('view device_memory_sample', f'devices.in_use.samples of {[device]}', one('SELECT count(*) FROM device_memory_sample WHERE device = ?', device))
        take('view device_memory_sample', f'devices.in_use.total_bytes of {[device]}', one('SELECT max(total_bytes) FROM device_memory_sample WHERE device = ?', device))
    operations(db)
    tensors(db)
    waits_resolved(report)
    work = {}
    for device, kind, copy, size in db.execute('SELECT w.device, o.name, w.copy, w.bytes FROM device_work w JOIN device_operation o ON o.id = w.kind'
                                                 " WHERE o.name <> 'overhead'"):
        name = {1: 'h2d', 2: 'd2h', 8: 'd2d', 10: 'p2p'}.get(copy, 'other_copy') if kind == 'copy' else kind
        add(work, (device, name), 1, size or 0)
    for (device, name), (count, size) in work.items():
        take('table device_work', f'device_times.work.{name}.operations of {[device]}', count)
        take('table device_work', f'device_times.work.{name}.bytes of {[device]}', size)
    for domain, text, count, still in db.execute("SELECT domain, text, count(*), sum(end_ns IS NULL) FROM range WHERE kind <> 'mark' GROUP BY 1, 2"):
        take('view range', f'ranges.ranges of {[domain, text]}', count)
        take('view range', f'ranges.open of {[domain, text]}', still)
    db.close()


def operations(db):
    """Operations with times, and the union of them, by device and kind."""
    spans = {}
    for device, kind, copy, size, start, end in db.execute('SELECT w.device, o.name, w.copy, w.bytes, w.start, w."end" FROM device_work w'
                                                           ' JOIN device_operation o ON o.id = w.kind WHERE w.start > 0 AND w."end" >= w.start'
                                                           " AND o.name <> 'overhead' ORDER BY w.start"):
        name = {1: 'h2d', 2: 'd2h', 8: 'd2d', 10: 'p2p'}.get(copy, 'other_copy') if kind == 'copy' else kind
        spans.setdefault((device, name), []).append((start, end, size or 0))
    for (device, name), list_of in spans.items():
        busy, until = 0, 0
        for start, end, _ in list_of:
            busy += max(end, until) - max(start, until)
            until = max(end, until)
        for member, value in ('timed_operations', len(list_of)), ('timed_bytes', sum(x[2] for x in list_of)), ('busy_ns', busy):
            take('table device_work', f'device_times.work.{name}.{member} of {[device]}', value)


def tensors(db):
    """What of libweir's tensors was live at once, by where it was."""
    places, live = {}, {}
    for process, time, fact, storage, size, mem, device in db.execute('SELECT process, time, fact, storage, bytes, mem, device FROM tensor ORDER BY time, id'):
        key = process, storage
        if fact == 1:
            live[key] = (device, mem == 2), size
            p = places.setdefault(live[key][0], dict.fromkeys(('made', 'made_bytes', 'bytes', 'tensors', 'peak_bytes', 'peak_tensors', 'peak_at_ns'), 0))
            for member, more in ('made', 1), ('made_bytes', size), ('tensors', 1), ('bytes', size):
                p[member] += more
            if p['bytes'] > p['peak_bytes']:
                p.update(peak_bytes=p['bytes'], peak_tensors=p['tensors'], peak_at_ns=time)
        elif fact == 3 and key in live:
            place, size = live.pop(key)
            places[place]['bytes'] -= size
            places[place]['tensors'] -= 1
    for place, p in places.items():
        for member in 'made', 'made_bytes', 'peak_bytes', 'peak_tensors', 'peak_at_ns':
            take('table tensor', f'tensors.{member} of {list(place)}', p[member])
        take('table tensor', f'tensors.live_at_exit_bytes of {list(place)}', p['bytes'])
        take('table tensor', f'tensors.live_at_exit_tensors of {list(place)}', p['tensors'])


def waits_resolved(report):
    """What only a resolved trace stores."""
    shutil.copy(TRACE, TRACE + '.resolved')
    weir('resolve', TRACE + '.resolved')
    with sqlite3.connect(TRACE + '.resolved') as db:
        if report['waits']:
            judged = dict(db.execute('SELECT d.pending IS NOT NULL, count(*) FROM wait_detail d JOIN wait w ON w.id = d.id'
                                     " WHERE w.waits_for IN ('event', 'stream', 'context') AND NOT (d.pending IS 0 AND d.covered_by IS NULL) GROUP BY 1"))
            take('table wait_detail', 'waits.judged_calls', judged.get(1, 0))
            take('table wait_detail', 'waits.unknown_calls', judged.get(0, 0))
        for d in report['device_times']:
            if d['queue_full_ns'] is not None:
                ns = db.execute('SELECT coalesce(sum(ns), 0) FROM queue_full WHERE device = ?', (d['device'],)).fetchone()[0]
                take('table queue_full', f'device_times.queue_full_ns of {[d["device"]]}', ns)
    os.unlink(TRACE + '.resolved')


COVERAGE = {
    'events_without_stack': 'SELECT count(*) FROM event WHERE stack IS NULL AND api > 0',
    'unrecorded_calls': 'SELECT sum(unrecorded_calls) FROM process', 'unrecorded_spans': 'SELECT sum(unrecorded_spans) FROM process',
    'nested_calls': 'SELECT sum(nested_calls) FROM process', 'deep_ranges': 'SELECT sum(deep_ranges) FROM process',
    'dropped_events': 'SELECT sum(dropped) FROM process', 'dropped_names_and_stacks': 'SELECT sum(dropped_extended) FROM process',
    'damaged_chunks': 'SELECT sum(damaged_chunks) FROM process', 'torn_records': 'SELECT sum(torn) FROM process',
    'bytes_cut': 'SELECT sum(bytes_cut) FROM process', 'unknown_lookups': 'SELECT sum(unknown_lookups) FROM process',
    'functions_called': 'SELECT count(DISTINCT api) FROM coverage WHERE called', 'functions_wrapped': 'SELECT count(DISTINCT api) FROM coverage WHERE looked_up',
    'functions_passed_through': 'SELECT count(DISTINCT c.api) FROM coverage c JOIN api a ON a.id = c.api WHERE c.passed AND (a.unrecorded IS NULL OR a.unrecorded = \'unreached\')',
}


def comparisons():
    take('report findings', 'findings', len(json.loads(weir('report', 'findings', '-f', 'json', TRACE))['findings']))
    diff = json.loads(weir('diff', '-f', 'json', TRACE, TRACE))
    metrics = {x['metric']: x for x in diff['metrics']}
    for metric, (name, unit) in METRICS.items():
        take('diff, before', name, metrics[metric]['a'])
        take('diff, after', name, metrics[metric]['b'])
    for x in diff['range_metrics']:
        metrics = {m['metric']: m for m in x['metrics']}
        for metric, member in (('peak', 'peak_bytes'), ('allocations.count', 'allocs'), ('allocations.bytes', 'alloc_bytes'), ('transfers.count', 'copies'),
                               ('transfers.bytes', 'copy_bytes'), ('waits.count', 'waits'), ('waits.time', 'wait_ns')):
            if metric in metrics:
                take('diff', f'ranges.{member} of {[x["domain"], x["text"]]}', metrics[metric]['b'])
    for x in diff['site_metrics'] + diff['finding_changes']:
        sides = [{name[:-2]: value for name, value in x.items() if name.endswith(end)} for end in ('_a', '_b')]
        lines = [[(y['of'], y['line']) for y in x['lines'] if y['trace'] == side] for side in 'ab']
        if x.get('state', 'stays') != 'stays' or sides[0] != sides[1] or lines[0] != lines[1]:
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
    """Each limit is what the summary says, exactly, by the metric's name and by the member's."""
    with open(TRACE + '.budget', 'w', encoding='utf-8') as f:
        for metric, (name, unit) in METRICS.items():
            f.write(f'{metric} == {found[name]["diff, after"]} {unit}\n')
            f.write(f'{name} == {found[name]["diff, after"]} {unit}\n')
    ran = subprocess.run([WEIR, 'check', '--budget', TRACE + '.budget', TRACE], stdout=subprocess.PIPE, check=False)
    if ran.returncode:
        found['a budget of what diff says'] = {'check': ran.returncode, 'diff': 0}
        print(ran.stdout.decode())
    os.unlink(TRACE + '.budget')
    page, summary = TRACE + '.html', TRACE + '.json'
    weir('report', '--html', '-o', page, TRACE)
    with open(summary, 'w', encoding='utf-8') as f:
        f.write(weir('report', '-f', 'json', TRACE))
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'page.py')
    if subprocess.run([sys.executable, own, page, summary], check=False).returncode:
        found['the page'] = {'page': 1, 'JSON': 0}
    os.unlink(page)
    os.unlink(summary)


def wrong_of(name):
    values = found[name].values()
    return {name} if max(values) - min(values) > ('kB' in name or 'timed' in name or 'share' in name) else set()


def wrong():
    return {name for name in found if wrong_of(name)}


def note_compared():
    """Which figures of SCHEMA.md two outputs or more have printed, and which one alone."""
    names = {}
    for name, by in found.items():
        bare = re.sub(r' of .*', '', name)
        names[bare] = max(names.get(bare, 0), len(by))
    for section, sums in SUMS.items():
        names.update({f'{section}.{member}': 2 for member in sums if f'{section}.{member}' in names})
    with open(MORE[0], 'a', encoding='utf-8') as f:
        json.dump(names, f)
        f.write('\n')


def check_schema(path):
    """Each member that SCHEMA.md lists was a figure of two outputs, or is excused, or is no number."""
    most, bad, count = {}, 0, 0
    with open(path, encoding='utf-8') as f:
        for line in f:
            for name, outputs in json.loads(line).items():
                most[name] = max(most.get(name, 0), outputs)
    excused = lambda name: any(name == e or name.startswith(e + '.') for e in EXCUSED)
    for name, outputs in most.items():
        section = name.split('.')[0]
        count += outputs > 1
        if outputs < 2 and not excused(name) and (section in listed() or name in listed()['totals']):
            bad += 1
            print(f'SCHEMA.md lists {name}, which one output alone prints, or nothing else here compares')
    for section in listed():
        if section not in EXCUSED and section != 'totals' and not any(name.startswith(section + '.') for name in most):
            bad += 1
            print(f'SCHEMA.md lists {section}, of which no trace here has any')
    print(count, 'figures')
    return bad


def main():
    if TRACE == '--schema':
        sys.exit(bool(check_schema(WEIR)))
    report = summaries()
    tables()
    tables_of_sections(report)
    judged(report)
    stored(report)
    comparisons()
    others()
    budget(report)
    bad = wrong()
    for name in sorted(bad):
        print(name, found[name])
    if not any(len(by) > 1 for by in found.values()):
        print('nothing was compared')
        bad.add('all')
    for name, by in found.items():
        for output in by if len(by) > 1 else ():
            by[output] += 3
            if name not in wrong_of(name):
                bad.add(name)
                print(f'{name}: {output} alone prints it')
            by[output] -= 3
    if MORE:
        note_compared()
    print(len(found), 'numbers', sum(len(by) for by in found.values()), 'printed')
    sys.exit(bool(bad))


main()

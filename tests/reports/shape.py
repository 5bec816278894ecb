#!/usr/bin/env python3
"""shape.py TRACE WEIR: whether what `weir report`, `diff` and `check` print with `--format json` of a trace is of its JSON Schema
(reports/schema/weir-report-2.schema.json), whatever report and options; whether a diff's numbers are those of json/1; whether each figure that the schema has is one number in
each report that has its table, and in CSV. Prints what is not so, one a line; exit status 1 if there was any.

What is compared is read off the outputs and the schema: a new table or column is compared by being there."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

TRACE, WEIR = sys.argv[1:]
OWN = os.path.dirname(os.path.abspath(__file__))
REPORTS = 'summary findings cache transfers waits memory leaks oom devices idle coverage'.split()
OPTIONS = [[], ['--top', '3'], ['--from', '20%', '--to', '70%']]
GROUPED = 'summary transfers waits memory leaks oom'.split()
KINDS = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool, 'null': type(None)}
bad = []


def answer(*args):
    """What a command prints whose exit status states what it found."""
    return subprocess.run([WEIR, *args], stdout=subprocess.PIPE, check=False).stdout.decode('utf-8')


def weir(*args):
    return subprocess.run([WEIR, 'report', *args, TRACE], stdout=subprocess.PIPE, check=True).stdout.decode('utf-8')


def is_a(value, kind):
    return isinstance(value, KINDS[kind]) and not (kind in ('integer', 'number') and isinstance(value, bool))


def mismatches(value, rule, schema, at):
    """What of a value is not as a rule has it: the words of JSON Schema that the schema uses."""
    if '$ref' in rule:
        target = schema
        for part in rule['$ref'].split('/')[1:]:
            target = target[part]
        yield from mismatches(value, target, schema, at)
    if 'anyOf' in rule:
        if all(list(mismatches(value, r, schema, at)) for r in rule['anyOf']):
            yield f'{at}: {value!r} is none of what it may be'
    kinds = rule.get('type', [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_a(value, kind) for kind in kinds):
        yield f'{at}: {value!r} is not {" or ".join(kinds)}'
        return
    if 'const' in rule and value != rule['const'] or 'enum' in rule and value not in rule['enum']:
        yield f'{at}: {value!r}'
    if 'minimum' in rule and value is not None and value < rule['minimum']:
        yield f'{at}: {value} is less than {rule["minimum"]}'
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from mismatches(item, rule.get('items', {}), schema, f'{at}[{i}]')
    if isinstance(value, dict):
        yield from (f'{at} has no {name}' for name in rule.get('required', []) if name not in value)
        for name, item in value.items():
            rules = [rule['properties'][name]] if name in rule.get('properties', {}) else []
            rules += [r for pattern, r in rule.get('patternProperties', {}).items() if re.search(pattern, name)]
            other = rule.get('additionalProperties', True)
            if not rules and other is False:
                yield f'{at}.{name} is not in the schema'
            for r in rules or ([other] if isinstance(other, dict) else []):
                yield from mismatches(item, r, schema, f'{at}.{name}')


def cells(row):
    """A row as CSV has it: places are three columns, lists none."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield name, value['function']
            yield name + '_file', value['file']
            yield name + '_line', value['line']
        elif not isinstance(value, list):
            yield name, value


def same(text, value):
    if value is None:
        return text == ''
    if isinstance(value, bool):
        return text == str(int(value))
    if isinstance(value, float):
        return float(text) == value
    return text.lstrip("'") in (str(value), f'device {value}')


def hold_csv(report, name, table):
    """Each cell of a table's CSV beside JSON's; of an object the only row, of numbers a row each."""
    asked = subprocess.run([WEIR, 'report', report, '--table', name, '-f', 'csv', TRACE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if asked.returncode and name == 'caches':  # of a run without, only JSON has them
        return 0
    rows = list(csv.DictReader(io.StringIO(asked.stdout.decode('utf-8'))))
    if isinstance(table, dict) and rows and 'value' in rows[0]:
        table, rows = [table], [{row['total']: row['value'] for row in rows}]
    elif isinstance(table, dict) and name == 'coverage':
        table, rows = [{str(i): n for i, n in enumerate(table.values())}], [{str(i): row['count'] for i, row in enumerate(rows)}]
    elif isinstance(table, dict):
        table = [table]
    if len(rows) != len(table):
        bad.append(f'{report} {name}: {len(table)} rows in JSON, {len(rows)} in CSV')
    compared = 0
    for i, (row, of) in enumerate(zip(rows, table)):
        of = dict(cells(of))
        for column in row:
            if column.endswith(('_file', '_line')) and of.get(column[:-5], 0) is None:
                of[column] = None
            if column not in of:
                bad.append(f'{report} {name}: CSV alone has {column}')
            elif not same(row[column], of[column]):
                bad.append(f'{report} {name}[{i}].{column}: {row[column]} in CSV, {of[column]} in JSON')
            compared += 1
    return compared


def hold_diff(schema):
    """A diff of the trace with itself, and a check of it, by the schema; each value of a metric beside what json/1 has of it."""
    limits = ['leaks.count > 1000000', 'peak <= 1 B', 'transfers.count > 0.5']
    args = ['--fail-on', ','.join(limits), TRACE, TRACE]
    diff, old = (json.loads(answer('diff', '-f', form, *args)) for form in ('json', 'json/1'))
    with tempfile.NamedTemporaryFile('w', suffix='.budget') as f:
        f.write('\n'.join(limits))
        f.flush()
        check = json.loads(answer('check', '--budget', f.name, '-f', 'json', TRACE))
    for name, got in ('diff', diff), ('check', check):
        bad.extend(f'{name}: {x}' for x in list(mismatches(got, schema, schema, '$'))[:5])
    by_metric = lambda rows: {x['metric']: {'a': x['a'], 'b': x['b']} for x in rows}
    pairs = [(by_metric(diff['metrics']), old['run'])]
    for table, was in ('device_metrics', 'devices'), ('site_metrics', 'sites'), ('range_metrics', 'ranges'):
        pairs.append((len(diff[table]), len(old[was])))
        pairs += [(by_metric(x['metrics']), y['metrics']) for x, y in zip(diff[table], old[was])]
    sides = [(x, y, side) for x, y in zip(diff['finding_changes'], old['findings']) for side in 'ab']
    pairs += [(x[f'saving_host_ns_{side}'], y[side] and y[side]['saving_ns']) for x, y, side in sides]
    pairs += [(len(x['lines']), sum(len(y[side]['lines']) for side in 'ab' if y[side])) for x, y in zip(diff['finding_changes'], old['findings'])]
    judged = lambda rows: [(x['metric'], x['met'], x['value'], x['limit']) for x in rows]
    pairs += [(judged(diff['conditions']), judged(old['conditions'])), (judged(check['conditions']), judged(diff['conditions']))]
    pairs.append(([x['line'] for x in check['conditions']], [1, 2, 3]))
    bad.extend(f'diff: {got} is not {want}' for got, want in pairs if got != want)
    return len(pairs)


def causes_in(value):
    """Each object `causes` in what json/1 prints: of a gap of a device, ns by cause."""
    if isinstance(value, dict):
        if isinstance(value.get('causes'), dict):
            yield value['causes']
        value = list(value.values())
    if isinstance(value, list):
        for x in value:
            yield from causes_in(x)


def main():
    with open(os.path.join(OWN, '..', '..', 'reports', 'schema', 'weir-report-2.schema.json'), encoding='utf-8') as f:
        schema = json.load(f)
    whole, compared = {}, 0
    for report in REPORTS:
        ways = OPTIONS + ([['--by', by] for by in ('device', 'function', 'stack')] if report in GROUPED else [])
        for options in ways:
            got = json.loads(weir(report, '-f', 'json', *options))
            bad.extend(f'{report} {" ".join(options)}: {x}' for x in list(mismatches(got, schema, schema, '$'))[:5])
            if not options:
                whole[report] = got
    meta = set(schema['required'])
    for report, got in whole.items():
        for name in set(got) - meta:
            compared += hold_csv(report, name, got[name])
            for other, beside in whole.items():
                if other > report and name in beside:
                    compared += 1
                    if beside[name] != got[name]:
                        bad.append(f'{name} of {report} is not that of {other}')
    compared += hold_diff(schema)
    gaps = [{cause['cause']: cause['idle_device_ns'] for cause in x['causes']} for x in whole['idle'].get('longest_idle', [])]
    former = list(causes_in(json.loads(weir('summary', '-f', 'json/1'))))
    bad.extend(f'json/1: {x} is no gap of the idle report' for x in former if any(not is_a(ns, 'integer') for ns in x.values()))
    bad.extend(f'json/1 has no gap {x}' for x in gaps if x not in former)
    if not compared:
        bad.append('nothing was compared')
    print(f'{compared} compared')
    print('\n'.join(bad[:40]))
    sys.exit(bool(bad))


main()

#!/usr/bin/env python3
"""report-schema.py [--check]: reports/schema/weir-report-2.schema.json, a JSON Schema (2020-12) of what `weir report --format json`,
and that of diff and check, prints: which tables and columns there are says reports/SCHEMA.md ("Reports in tables"), of which type
and title a column is the sources of reports/tables and reports/diff/data.c. --check: whether it is what is there; exit status 1 if not."""
import glob
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
OUT = os.path.join(ROOT, 'reports', 'schema', 'weir-report-2.schema.json')
REPORTS = 'summary findings cache transfers waits memory leaks oom devices idle coverage diff check'.split()
GROUPS = 'site stack module range stream device thread process rank function'.split()
WHOLE = {'type': ['integer', 'null'], 'minimum': 0}
SIGNED = {'type': ['integer', 'null']}
TYPES = {  # of a column -> what a value is, and its unit
    'TEXT': ({'type': ['string', 'integer', 'null']}, ''), 'PLACE': ({'$ref': '#/$defs/place'}, ''),
    'COUNT': (WHOLE, ''), 'ID': (SIGNED, 'a number that is a name'), 'BYTES': (WHOLE, 'bytes'),
    'CHANGE': (SIGNED, 'bytes, with a sign'), 'BALANCE': (SIGNED, 'bytes, with a sign'),
    'HOST_NS': (WHOLE, 'ns of the host\'s calls'), 'DEVICE_NS': (WHOLE, 'ns of devices'),
    'MOMENT': (SIGNED, 'ns since the run began'), 'SPEED': ({'type': ['number', 'null'], 'minimum': 0}, 'bytes per second'),
    'SHARE': ({'type': ['number', 'null'], 'minimum': 0}, '1: all'), 'NUMBER': (SIGNED, ''),
    'REAL': ({'type': ['number', 'null']}, ''),
    'TRUTH': ({'type': ['boolean', 'null']}, ''), 'TEXTS': ({'type': ['array', 'null'], 'items': {'type': 'string'}}, ''),
    'ROWS': ({'type': ['array', 'null'], 'items': {'type': 'object'}}, 'rows'),
}
MACROS = {'COUNT_OF': 'COUNT', 'BYTES_OF': 'BYTES', 'TIME_OF': 'HOST_NS', 'TEXT_OF': 'TEXT', 'TRUTH_OF': 'TRUTH'}
OBJECTS = 'run judged divided device_observation cache savings'.split()
NUMBERS = 'totals coverage'.split()


def columns_of_sources():
    """name -> {(type, title)}, of each column in reports/tables."""
    found = {}
    add = lambda name, kind, title: found.setdefault(name, {}).setdefault(kind, title)
    for path in [*sorted(glob.glob(os.path.join(ROOT, 'reports', 'tables', '*.c'))), os.path.join(ROOT, 'reports', 'diff', 'data.c')]:
        with open(path, encoding='utf-8') as f:
            text = re.sub(r'\s+', ' ', f.read())
        for name, title, kind in re.findall(r'"(\w+_)" letter, "([^"]*)" side, WR_COLUMN_([A-Z_]+)', text):
            add(name + 'a', kind, title + 'A')
            add(name + 'b', kind, title + 'B')
        for name, title, kind in re.findall(r'"(\w+)", "([^"]*)", (?:WR_COLUMN_)?([A-Z_]+)\b', text):
            if kind in TYPES:
                add(name, kind, title)
        for macro, name, title in re.findall(r'\b(\w+_OF)\(\w+, [\w.]+, "(\w+)", "([^"]*)"\)', text):
            if macro in MACROS:
                add(name, MACROS[macro], title)
        for macro, name, title in re.findall(r'\b(CALLS|SIZE)\((\w+), "([^"]*)"\)', text):
            add(name, {'CALLS': 'COUNT', 'SIZE': 'BYTES'}[macro], title)
        for name, title, kind in re.findall(r'\bOF_DEVICE\((\w+), "([^"]*)", WR_COLUMN_([A-Z_]+)', text):
            add(name, kind, title)
        for name, title in re.findall(r'\(wr_column\)\{"(\w+)", [\w>.-]+, WR_COLUMN_([A-Z_]+)', text):
            add(name, title, name)
    for name in GROUPS:
        add(name, 'TEXT', name)
    add('place', 'PLACE', 'in')
    return found


def tables_of_page():
    """Name of a table, or of all that end in _by_ and a group -> its columns, in order."""
    with open(os.path.join(ROOT, 'reports', 'SCHEMA.md'), encoding='utf-8') as f:
        text = f.read()
    text = text[text.index('\n## Reports in tables'):text.index('\n## The diff as JSON')]
    tables = {}
    for names, columns in re.findall(r'^\| (`[^|]*) \| (.*) \|$', text, re.M):
        listed = re.findall(r'`(\w+)`', columns)
        more = [c for name in re.findall(r'\bas `(\w+)`', columns) for c in tables.get(name, [])]
        for name in re.findall(r'`(\w+)`', names):
            base = re.sub(r'_by_\w+$', '_by_', name)
            tables.setdefault(base, [])
            tables[base] += [c for c in [*listed, *more] if c not in tables[base]]
    return tables


def undocumented(used):
    """Columns that JSON alone has, and that no table of SCHEMA.md lists."""
    for path in sorted(glob.glob(os.path.join(ROOT, 'reports', 'tables', '*.c'))):
        with open(path, encoding='utf-8') as f:
            text = re.sub(r'\s+', ' ', f.read())
        for name in re.findall(r'"(\w+)", "[^"]*", WR_COLUMN_\w+, WR_IN_JSON', text):
            if name not in used:
                yield f'error: {path}: no table of SCHEMA.md has {name}'


def column_schema(name, kinds):
    some = []
    for kind, title in sorted(kinds.items()):
        value, unit = TYPES[kind]
        some.append({**value, 'description': f'{title}{": " if title and unit else ""}{unit}'})
    return some[0] if len(some) == 1 else {'anyOf': some}


def schema():
    kinds = columns_of_sources()
    known = lambda names: {'type': 'object', 'additionalProperties': False,
                           'properties': {n: {'$ref': f'#/$defs/columns/{n}'} for n in names if n in kinds}}
    properties = {'schema': {'const': 'weir-report/2'}, 'report': {'enum': REPORTS}, 'trace': {'type': 'string'},
                  'only': {'type': ['string', 'null'], 'description': 'the filters in words'},
                  'unfiltered': {'type': 'array', 'items': {'type': 'string'}, 'description': 'tables that no filter applies to'},
                  'notes': {'type': 'array', 'items': {'type': 'string'}, 'description': 'what is not known'}}
    patterns = {}
    for name, columns in tables_of_page().items():
        if name.endswith('_by_'):
            patterns[f'^{name}({"|".join(GROUPS)})$'] = {'type': 'array', 'items': known([*columns, *GROUPS, 'place'])}
        elif name in NUMBERS:
            properties[name] = {'type': 'object', 'additionalProperties': {'type': 'integer', 'minimum': 0}}
        elif name in OBJECTS:
            properties[name] = known(columns)
        else:
            properties[name] = {'type': 'array', 'items': known([*columns, *([*GROUPS, 'place'] if name in ('owners', 'releases') else ())])}
    place = {'type': ['object', 'null'], 'required': ['function', 'file', 'line', 'module'], 'additionalProperties': False,
             'properties': {'function': {'type': 'string'}, 'file': {'type': ['string', 'null']},
                            'line': {'type': ['integer', 'null']}, 'module': {'type': ['string', 'null']}}}
    used = {c for t in [*properties.values(), *patterns.values()] for c in (t.get('items') or t).get('properties', {})}
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema', '$id': 'weir-report-2.schema.json', 'title': 'weir-report/2',
            'description': 'What weir report, weir diff and weir check print with --format json, whatever report it is; reports/SCHEMA.md says what the figures are.',
            'type': 'object', 'required': ['schema', 'report', 'trace', 'only', 'unfiltered', 'notes'], 'additionalProperties': False,
            'properties': properties, 'patternProperties': patterns,
            '$defs': {'place': place, 'columns': {n: column_schema(n, kinds[n]) for n in sorted(used)}}}


def main():
    line = lambda x: json.dumps(x, ensure_ascii=False)
    whole = schema()
    whole['$defs'] = {'place': whole['$defs']['place'], 'columns': '@columns'}
    columns = schema()['$defs']['columns']
    parts = []
    for key, value in whole.items():
        members = value if key in ('properties', 'patternProperties') else columns if key == '$defs' else None
        if members is None:
            parts.append(f' {line(key)}: {line(value)}')
            continue
        rows = ',\n'.join(f'  {line(n)}: {line(m)}' for n, m in members.items())
        parts.append(f' {line(key)}: {{\n{rows}\n }}' if key != '$defs' else
                     f' "$defs": {{\n "place": {line(value["place"])},\n "columns": {{\n{rows}\n }}}}')
    text = '{\n' + ',\n'.join(parts) + '\n}\n'
    if '--check' in sys.argv:
        with open(OUT, encoding='utf-8') as f:
            same = f.read() == text
        missing = list(undocumented(columns))
        if not same:
            print('error: reports/schema is not what the columns are: tools/scripts/report-schema.py')
        print('\n'.join(missing), end='\n' if missing else '')
        sys.exit(not same or bool(missing))
    with open(OUT, 'w', encoding='utf-8') as f:
        f.write(text)


main()

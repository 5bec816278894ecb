#!/usr/bin/env python3
"""page.py PAGE REPORT: whether a page is what its trace is: its data decode, and its sums are those of
`weir report --format json`. Prints what is not, one a line; exit status 1 if there was any."""
import base64
import gzip
import html.parser
import itertools
import json
import sys

PLACES = {'h2d': 1, 'd2h': 2, 'd2d': 3, 'p2p': 4, 'h2h': 5, 'other_copy': 6}
bad = []


def check(what, got, want):
    if got != want:
        bad.append(f'{what}: {got} in the page, {want} in the report')


class Scripts(html.parser.HTMLParser):
    """The text of each script by its id; and what a page that is all in one file has not."""
    def __init__(self):
        super().__init__()
        self.text, self.at, self.ids = {}, None, 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for name in ('src', 'href'):
            if name in attrs and not attrs[name].startswith('#'):
                bad.append(f'<{tag} {name}="{attrs[name]}">: a page has no other files')
        if tag == 'script':
            self.ids += 1
            self.at = attrs.get('id', str(self.ids))
            self.text[self.at] = ''

    def handle_endtag(self, tag):
        if tag == 'script':
            self.at = None

    def handle_data(self, data):
        if self.at is not None:
            self.text[self.at] += data


def column(blob, c):
    """The values of a column."""
    values, n, shift = [], 0, 0
    for byte in blob[c['offset']:c['offset'] + c['bytes']]:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(n)
            n = shift = 0
    check('bytes of a value', shift, 0)
    check('values of a column', len(values), c['count'])
    if c['encoding'] == 'zv':
        values = [(n >> 1) ^ -(n & 1) for n in values]
    if c['encoding'] == 'dv':
        values = list(itertools.accumulate(values[:1] + [(n >> 1) ^ -(n & 1) for n in values[1:]]))
    return values


def main():
    page_file, report_file = sys.argv[1:]
    with open(page_file, encoding='utf-8') as f:  # not UTF-8: an exception
        text = f.read()
    with open(report_file, encoding='utf-8') as f:
        report = json.load(f)
    scripts = Scripts()
    scripts.feed(text)
    scripts.close()
    index = json.loads(scripts.text['weir-index'])
    blob = gzip.decompress(base64.b64decode(scripts.text['weir-columns'], validate=True))
    columns = [column(blob, c) for c in index['columns']]
    table = lambda o, skip=(): {k: columns[v] for k, v in o.items() if k not in skip}
    total = report['totals']
    check('schema', index['schema'], 'weir-page/1')
    check('bytes of columns', sum(c['bytes'] for c in index['columns']), len(blob))
    for name, value in index['totals'].items():
        check('total ' + name, value, total[name])
    check('duration', index['run']['duration_ns'], max(report['run']['duration_ns'], 0))
    check('names of totals', list(index['totals']), list(total))
    bins = index['bins']

    # the cube
    cube = table(index['cube'])
    check('rows of the cube', len({len(c) for c in cube.values()}), 1)
    sums = {}
    routes = {}
    for b, site, of, direction, route, *numbers in zip(*(cube[k] for k in ('bin', 'site', 'class', 'direction', 'route', 'count', 'bytes', 'host_ns', 'device_ns'))):
        if b >= bins['count'] or site >= len(index['sites']['stack']):
            bad.append(f'cube: bin {b}, site {site}')
        for to in (sums.setdefault((index['classes'][of], direction), [0, 0, 0, 0]), routes.setdefault(route, [0, 0, 0, 0])):
            for i, n in enumerate(numbers):
                to[i] += n
    of = lambda name, direction=0: sums.get((name, direction), [0, 0, 0, 0])
    for name, direction in PLACES.items():
        check(name + '_calls', of('transfer', direction)[0], total[name + '_calls'])
        check(name + '_bytes', of('transfer', direction)[1], total[name + '_bytes'])
    for name, key, direction in (('allocation', 'alloc', 0), ('allocation', 'pinned_alloc', 7), ('allocation', 'imported', 8), ('allocation', 'register', 9), ('memset', 'memset', 0)):
        check(key + '_calls', of(name, direction)[0], total[key + '_calls'])
        check(key + '_bytes', of(name, direction)[1], total[key + '_bytes'])
    check('launches', of('launch')[0], total['launches'])
    check('graph launches', of('graph')[0], total['graph_launches'])
    for name, key in (('wait', 'sync_explicit'), ('implicit wait', 'sync_implicit'), ('initialisation', 'init')):
        check(key + '_calls', of(name)[0], total[key + '_calls'])
        check(key + '_ns', of(name)[2], total[key + '_ns'])

    # memory
    kinds = index['memory_kinds']
    for s in index['memory']:
        for k in ('min', 'max', 'end'):
            check('bins of memory', len(columns[s[k]]), bins['count'])
        check(f"peak of {kinds[s['kind']]} on {s['device']}", max(columns[s['max']]), s['peak_bytes'])
        if any(not low <= end <= high for low, end, high in zip(columns[s['min']], columns[s['end']], columns[s['max']])):
            bad.append('memory: min, end, max are not in order')
    peaks = {s['device']: s['peak_bytes'] for s in index['memory'] if kinds[s['kind']] == 'all'}
    check('peak of all devices', peaks.get(-1, 0), total['peak_bytes'])
    for d in report['devices']:
        check('peak of a device', peaks.get(d['device'], 0), d['peak_bytes'])
    for p in ([index['peak']] if index['peak'] else []) + index['other_peaks']:
        at = min(p['at_ns'] // bins['width_ns'], bins['count'] - 1)
        check(f"places at the peak of device {p['device']}", sum(columns[c][at] for c in p['columns'] + [p['rest']]), p['bytes'])
    if index['peak']:
        blocks = index['peak']['blocks']
        check('blocks', sum(columns[blocks['bytes']]) + blocks['bytes_left_out'] >= total['live_at_exit_bytes'], True)
        check('blocks kept', len(columns[blocks['start']]), blocks['count'])
        check('blocks left out', blocks['count'] < blocks['all'], blocks['bytes_left_out'] > 0)
    changes = table(index['changes'], ['bins'])
    live = {}
    for site, of, *numbers in zip(*(changes[k] for k in ('site', 'class', 'count', 'bytes'))):
        to = live.setdefault(site, [0, 0])
        for i, n in enumerate(numbers):
            to[i] += n if index['classes'][of] == 'allocation' else -n
    check('bytes live at the end', sum(v[1] for v in live.values()), total['live_at_exit_bytes'])
    check('blocks live at the end', sum(v[0] for v in live.values()), total['live_at_exit_blocks'])
    check('bins of changes', (changes['bin'] == sorted(changes['bin']), max(changes['bin'], default=0) < index['changes']['bins']['count']), (True, True))

    # stacks
    flames = {k: sum(v) for k, v in table(index['flames']).items()}
    copied = sum(total[name + '_bytes'] for name in PLACES)
    check('flames: peak_bytes', flames['peak_bytes'], total['peak_bytes'])
    check('flames: alloc_count', flames['alloc_count'], total['alloc_calls'])
    check('flames: alloc_bytes', flames['alloc_bytes'], total['alloc_bytes'])
    check('flames: wait_ns', flames['wait_ns'], total['sync_explicit_ns'] + total['sync_implicit_ns'])
    check('flames: transfer_bytes', flames['transfer_bytes'], copied)

    # transfers
    got, want = {}, {}
    for r in index['matrix']:
        if r['direction'] != 6:
            to = got.setdefault((r['src'], r['dst']), [0, 0])
            to[0] += r['count']
            to[1] += r['bytes']
    for r in report['routes']:
        want[r['source'], r['destination']] = [r['calls'], r['bytes']]
    check('matrix', got, want)
    for n, r in enumerate(index['matrix'], 1):
        check(f'route {n} of the cube', routes.get(n), [r['count'], r['bytes'], r['host_ns'], r['device_ns'] or 0])
    check('routes of the cube', set(routes) - {0}, set(range(1, len(index['matrix']) + 1)))
    check('bytes of the matrix', sum(r['bytes'] for r in index['matrix']), copied)

    # lanes
    ops, lanes = table(index['ops'], ('count', 'all', 'shortest_kept_ns')), table(index['lane_bins'])
    check('operations', len(ops['lane']), index['ops']['count'])
    check('operations by bin', sum(lanes['count']), index['ops']['all'])
    check('lanes in order', list(zip(ops['lane'], ops['start'])), sorted(zip(ops['lane'], ops['start'])))
    least = index['ops']['shortest_kept_ns']
    if index['ops']['count'] == index['ops']['all']:
        check('shortest', least, 0)
        inside = lambda a, n: min(a + n, bins['count'] * bins['width_ns']) - min(a, bins['count'] * bins['width_ns'])
        check('busy', sum(lanes['busy_ns']), sum(inside(a, n) for a, n in zip(ops['start'], ops['duration'])))
    for k in ('lane', 'class', 'site', 'name'):
        most = {'lane': index['lanes'], 'class': index['classes'], 'site': index['sites']['stack'], 'name': index['strings']}[k]
        if ops[k] and max(ops[k]) >= len(most):
            bad.append(f'operations: {k} {max(ops[k])} of {len(most)}')

    # places
    for key in ('function', 'file'):
        if index['frames'][key] and max(index['frames'][key]) >= len(index['strings']):
            bad.append('frames: a text that is none')
    for stack in index['stacks']:
        if stack and max(stack) >= len(index['frames']['line']):
            bad.append('stacks: a frame that is none')
    if index['sites']['stack'] and max(index['sites']['stack']) >= len(index['stacks']):
        bad.append('sites: a stack that is none')
    print('\n'.join(bad[:40]), end='\n' if bad else '')
    sys.exit(bool(bad))


main()

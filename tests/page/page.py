#!/usr/bin/env python3
"""page.py FOLDER: the page in Chromium; a line "ok NAME" or "FAILED NAME: why" for each thing that must hold.

FOLDER has made.html and hostile.html (sample.py), and real.html with real.json: what weir report --html and
--format json made of one trace, real.db; and random.html of random.db. WEIR names the program. "skipped: no Chromium" where there is none (WEIR_CHROMIUM names one). What tables
show is held against sums that are made here, from the page's own columns, by a decoder and formats of this file's own.
"""
import base64
import gzip
import json
import os
import re
import struct
import subprocess
import sys

import browser

ALL = ['findings', 'memory', 'peak', 'flame', 'timeline', 'tables', 'matrix-section', 'leaks']


# ---- the page's numbers, read again ---------------------------------------------------------------

def decode(data, encoding, count):
    if encoding in ('u8', 'u32', 'f64'):
        return list(struct.unpack_from(f'<{count}' + {'u8': 'B', 'u32': 'I', 'f64': 'd'}[encoding], data))
    values, at = [], 0
    for i in range(count):
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if encoding == 'zv' or (encoding == 'dv' and i):
            n = -(n + 1) // 2 if n % 2 else n // 2
        values.append(values[-1] + n if encoding == 'dv' and i else n)
    return values


class Data:
    def __init__(self, path):
        text = open(path, encoding='utf-8', errors='surrogateescape').read()
        tag = lambda kind, name: re.search(f'<script type="{kind}" id="{name}">(.*?)</script>', text, re.S).group(1)
        self.index = json.loads(tag('application/json', 'weir-index'))
        self.blob = gzip.decompress(base64.b64decode(tag('text/plain', 'weir-columns')))
        cube = {k: self.column(n) for k, n in self.index['cube'].items()}
        self.cube = list(zip(*(cube[k] for k in ('bin', 'site', 'class', 'direction', 'count', 'bytes', 'host_ns', 'device_ns'))))

    def column(self, n):
        c = self.index['columns'][n]
        return decode(self.blob[c['offset']:c['offset'] + c['bytes']], c['encoding'], c['count'])

    def bins(self, span):
        bins = self.index['bins']
        if span is None:
            return range(bins['count'])
        return range(int(span['from'] // bins['width_ns']), min(bins['count'], -int(-span['to'] // bins['width_ns'])))

    def sums(self, classes, span=None, frames=None):
        """[count, bytes, host time, device time] of rows of these classes."""
        within, wanted = self.bins(span), {self.index['classes'].index(c) for c in classes if c in self.index['classes']}
        rows = [r for r in self.cube if r[0] in within and r[2] in wanted and (frames is None or self.index['sites']['frame'][r[1]] in frames)]
        return [sum(r[i] for r in rows) for i in (4, 5, 6, 7)]


def significant(value, unit):
    return f'{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}'


def bytes_text(n):
    if n < 1024:
        return f'{n} B'
    n, unit = n / 1024, 0
    while n >= 1023.5:
        n, unit = n / 1024, unit + 1
    return significant(n, ('KiB', 'MiB', 'GiB', 'TiB')[unit])


def time_text(n):
    for limit, unit, by in ((999.5e3, 'µs', 1e3), (999.5e6, 'ms', 1e6), (600e9, 's', 1e9)):
        if n < 1000:
            return f'{n} ns'
        if n < limit:
            return significant(n / by, unit)
    return significant(n / 60e9, 'min')


# What each table is the sum of; "others" takes what no other does.
TABLES = {'transfers': ['transfer'], 'allocations': ['allocation'], 'waits': ['wait', 'implicit wait'], 'launches': ['launch', 'graph']}


# ---- the page, asked ------------------------------------------------------------------------------

class Page:
    def __init__(self, b, path):
        self.b = b
        b.open(path)
        b.js('weirPage.ready')
        b.js('weirPage.all()')
        self.data = Data(path)

    def table(self, name):
        """A table as [{heading: text}], the last one its sums; all rows."""
        return self.b.js(f'''(() => {{
          const table = document.getElementById('table-{name}'), box = table.closest('.table');
          const more = box.querySelector('.more');
          if (!more.hidden && more.textContent.startsWith('Show all')) more.click();
          const heads = [...table.tHead.rows[0].cells].map((c) => c.textContent);
          if (table.parentElement.hidden) return [];
          return [...table.tBodies[0].rows, ...table.tFoot.rows].map((r) => Object.fromEntries([...r.cells].map((c, i) => [heads[i], c.textContent])));
        }})()''')

    def chosen(self):
        return self.b.js('weirPage.chosen.span')

    def settle(self):
        self.b.js('weirPage.settled()')

    def until(self, condition):
        """Waits, frame by frame, at most some seconds."""
        held = self.b.js(f'new Promise((done) => {{ let n = 0; const look = () => (({condition}) || n++ > 600 ? done({condition}) : requestAnimationFrame(look)); look(); }})')
        assert held, condition

    def box(self, selector):
        self.b.js(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        return self.b.js(f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()")

    def click(self, selector, x=0.5, y=0.5):
        left, top, width, height = self.box(selector)
        self.b.click(left + width * x, top + height * y)
        self.settle()

    def focus(self, selector):
        self.b.js(f'document.querySelector({json.dumps(selector)}).focus()')

    def text(self, selector):
        return self.b.js(f'document.querySelector({json.dumps(selector)}).textContent')

    def check_tables(self, span, frames=None):
        named = sum(TABLES.values(), [])
        tables = {**TABLES, 'others': [c for c in self.data.index['classes'] if c not in named]}
        for name, classes in tables.items():
            count, size, host, device = self.data.sums(classes, span, frames)
            rows = self.table(name)
            assert bool(rows) == (count > 0), f'{name}: {count} calls, {len(rows)} rows'
            if not rows:
                continue
            *rows, total = rows
            assert total['Calls'] == f'{count:,}', f'{name}: {total} but {count} calls'
            assert sum(int(r['Calls'].replace(',', '')) for r in rows) == count, f'{name}: its rows'
            assert total['Host time'] == time_text(host), f'{name}: {total} but {host} ns'
            if 'Bytes' in total:
                assert total['Bytes'] == bytes_text(size), f'{name}: {total} but {size} bytes'
            if device and 'Device time' in total:
                assert total['Device time'] == time_text(device), f'{name}: {total} but {device} ns'

    def pixels(self):
        """Of every canvas: its section, how many dots are of a colour (axes and their text are grey), how many colours these are."""
        return self.b.js('''[...document.querySelectorAll('canvas')].map((c) => {
          const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
          let dots = 0;
          for (let i = 0; i < data.length; i += 4) {
            const [r, g, b, a] = data.slice(i, i + 4);
            if (a < 128 || Math.max(r, g, b) - Math.min(r, g, b) < 40) continue;
            seen.add(r << 16 | g << 8 | b);
            dots++;
          }
          return [c.closest('section').id, dots, seen.size];
        })''')


# ---- what must hold -------------------------------------------------------------------------------

def the_page_opens_without_an_error_or_a_request(b, folder):
    for name in ('made', 'real', 'hostile'):
        path = os.path.join(folder, f'{name}.html')
        Page(b, path)
        assert not b.errors, f'{name}: {b.errors}'
        assert b.requests == ['file://' + path], f'{name}: {[r[:100] for r in b.requests]}'
        assert b.js("document.getElementById('failed').hidden"), f'{name} says that it failed'
        assert b.js("[...document.querySelectorAll('main > section')].map((s) => s.id)") == ['totals'] + ALL, name
    refused = b.js("fetch('https://example.invalid/').then(() => 'sent', () => 'refused')")
    assert refused == 'refused' and any('Content Security Policy' in e for e in b.errors), f'{refused} {b.errors}'


def every_picture_has_marks(b, folder):
    for name in ('made', 'real'):
        found = Page(b, os.path.join(folder, f'{name}.html')).pixels()
        assert [section for section, *_ in found] == ['memory', 'peak', 'flame', 'timeline'], found
        assert all(dots > 300 and colors > 1 for _, dots, colors in found), (name, found)


def tables_are_sums_of_the_cube(b, folder):
    for name in ('made', 'real'):
        Page(b, os.path.join(folder, f'{name}.html')).check_tables(None)


def tables_agree_with_the_report(b, folder):
    page = Page(b, os.path.join(folder, 'real.html'))
    totals = json.load(open(os.path.join(folder, 'real.json')))['totals']
    sums = {name: rows[-1] for name in (*TABLES, 'others') if (rows := page.table(name))}
    copies = ('h2d', 'd2h', 'd2d', 'p2p', 'h2h', 'other_copy')
    assert sums['transfers']['Calls'] == f'{sum(totals[c + "_calls"] for c in copies):,}', sums['transfers']
    assert sums['transfers']['Bytes'] == bytes_text(sum(totals[c + '_bytes'] for c in copies)), sums['transfers']
    waits = [totals[f'sync_{k}_{what}'] for what in ('calls', 'ns') for k in ('explicit', 'implicit')]
    assert sums['waits']['Calls'] == f'{waits[0] + waits[1]:,}', (sums['waits'], waits)
    assert sums['waits']['Host time'] == time_text(waits[2] + waits[3]), (sums['waits'], waits)
    device = page.data.sums(['allocation'])
    assert device[0] >= totals['alloc_calls'] > 0
    launches = [int(r['Calls'].replace(',', '')) for r in page.table('launches') if r['Kind'] == 'launch']
    assert sum(launches) == totals['launches'] > 0, (launches, totals['launches'])


def a_brush_filters_every_table(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    left, top, width, height = page.box('#memory .u-over')
    b.drag([(left + width * 0.3, top + 40), (left + width * 0.4, top + 60), (left + width * 0.45, top + 60)])
    page.settle()
    span = page.chosen()
    assert span and 0.1 < (span['to'] - span['from']) / page.data.index['run']['duration_ns'] < 0.2, span
    assert time_text(round(span['to'] - span['from'])) in page.text('#choice'), page.text('#choice')
    page.check_tables(span)
    b.key('Escape')
    page.settle()
    assert page.chosen() is None
    page.check_tables(None)


def report_tables(folder, what, trace, span):
    """Tables of weir report WHAT of a span, as {name: [{column: value}]}."""
    times = ['--from', f'{span[0]}ns', '--to', f'{span[1]}ns'] if span else []
    text = subprocess.run([os.environ['WEIR'], 'report', what, '--format', 'json', '--top', '1000', *times, os.path.join(folder, trace)],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: rows for name, rows in json.loads(text).items() if isinstance(rows, list)}


def matrix_of(rows):
    cells, words = {}, lambda device: f'device {device}' if isinstance(device, int) else device
    for r in rows:
        cell = cells.setdefault((words(r['source']), words(r['destination'])), [0, 0])
        cell[0] += r['calls']
        cell[1] += r['bytes']
    return {k: f'{bytes_text(size)}{calls:,} ×' for k, (calls, size) in cells.items()}


def check_copies(page, report):
    """The square and the table of copies; how many there are."""
    square = page.b.js('''(() => {
      const [head, ...rows] = [...document.getElementById('matrix').rows].map((r) => [...r.cells].map((c) => c.textContent));
      return rows.flatMap((r) => r.slice(1).map((text, i) => [r[0], head[i + 1], text])).filter((c) => c[2] !== '–');
    })()''')
    assert {(a, z): text for a, z, text in square} == matrix_of(report['matrix']), (square, report['matrix'])
    kinds, rows = {}, page.table('matrix')
    for r in rows[:-1]:
        key = r['From'].split(', ')[1], r['To'].split(', ')[1]
        kinds[key] = kinds.get(key, 0) + int(r['Calls'].replace(',', ''))
    wanted = {}
    for r in report['transfers']:
        key = r['source_memory'], r['destination_memory']
        wanted[key] = wanted.get(key, 0) + r['calls']
    assert kinds == wanted, (kinds, wanted)
    if rows:
        assert rows[-1]['Bytes'] == bytes_text(sum(r['bytes'] for r in report['transfers'])), rows[-1]
        assert rows[-1]['Host time'] == time_text(sum(r['host_ns'] for r in report['transfers'])), rows[-1]
        device = sum(r['device_ns'] or 0 for r in report['transfers'])  # none where all copies are of no bytes
        assert rows[-1]['Device time'] == (time_text(device) if device else '–'), (rows[-1], device)
    return sum(wanted.values())


def check_leaks(page, report):
    size, blocks = (sum(r[k] for r in report['leaks_by_site']) for k in ('end_bytes', 'end_blocks'))
    rows = page.table('leaks')
    assert bool(rows) == (blocks > 0), (rows, blocks)
    if rows:
        assert (rows[-1]['Blocks'], rows[-1]['Bytes']) == (f'{blocks:,}', bytes_text(size)), (rows[-1], blocks, size)
        texts = sorted((r['Blocks'], r['Bytes']) for r in rows[:-1])
        assert texts == sorted((f"{r['end_blocks']:,}", bytes_text(r['end_bytes'])) for r in report['leaks_by_site']), texts
    return blocks


def copies_and_leaks_are_the_report_s_of_a_span(b, folder):
    for name in ('real', 'random'):
        page = Page(b, os.path.join(folder, f'{name}.html'))
        width, count = (page.data.index['bins'][k] for k in ('width_ns', 'count'))
        at = [row[0] for row, route in zip(page.data.cube, page.data.column(page.data.index['cube']['route'])) if route]
        third, half, last = at[len(at) // 3], at[len(at) // 2], at[-1]
        seen = []
        for part in (None, (0, third), (third, half + 1), (half, half + 1), (half + 1, last + 1), (last, count)):
            span = part and (part[0] * width, max(part[1], part[0] + 1) * width)
            b.js('weirPage.change({span: %s})' % (json.dumps({'from': span[0], 'to': span[1]}) if span else 'null'))
            page.settle()
            seen.append((check_copies(page, report_tables(folder, 'transfers', f'{name}.db', span)), check_leaks(page, report_tables(folder, 'leaks', f'{name}.db', span))))
            assert page.text('#leaks-title') == ('Not freed by the end of the span' if span else 'Never freed')
        assert min(seen[0]) > 0 and seen[3][0] > 0, seen


def copies_and_leaks_follow_a_drag_and_a_place(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    index = page.data.index
    routes = page.data.column(index['cube']['route'])
    changes = {k: page.data.column(n) for k, n in index['changes'].items() if k != 'bins'}

    def look(span, frames=None):
        bins = page.data.bins(span)
        of = lambda site: frames is None or index['sites']['frame'][site] in frames
        copied = [r for r, route in zip(page.data.cube, routes) if route and r[0] in bins and of(r[1])]
        assert (page.table('matrix') or [{'Calls': '0'}])[-1]['Calls'] == f'{sum(r[4] for r in copied):,}', span
        live = sum((-n if index['classes'][k] == 'free' else n) for at, site, k, n in zip(*(changes[c] for c in ('bin', 'site', 'class', 'bytes'))) if at < bins[-1] + 1 and of(site))
        assert (page.table('leaks') or [{'Bytes': '0 B'}])[-1]['Bytes'] == bytes_text(live), (span, live)
        return len(copied), live

    left, top, width, height = page.box('#memory .u-over')
    b.drag([(left + width * 0.3, top + 40), (left + width * 0.4, top + 60), (left + width * 0.45, top + 60)])
    page.settle()
    seen = [look(page.chosen())]
    page.click('#table-leaks .place')
    seen.append(look(page.chosen(), set(b.js('[...weirPage.chosen.place.frames]'))))
    b.key('Escape')
    page.settle()
    seen.append(look(None))
    assert seen[0] != seen[2] and 0 < seen[1][1] < seen[0][1], seen
    assert 0 < seen[0][0] < seen[2][0], seen


def the_brush_follows_the_keyboard(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    page.focus('.brush')
    spans = []
    for key, shift in (('ArrowRight', False), ('ArrowRight', False), ('ArrowRight', True), ('ArrowLeft', False), ('End', False)):
        b.key(key, shift)
        page.settle()
        spans.append(page.chosen())
    assert spans[1]['from'] > spans[0]['from'] and spans[1]['to'] > spans[0]['to'], spans
    assert spans[2]['from'] == spans[1]['from'] and spans[2]['to'] > spans[1]['to'], spans
    assert spans[3]['from'] < spans[2]['from'] and spans[4]['to'] >= page.data.index['run']['duration_ns'] * 0.999, spans
    page.check_tables(spans[4])
    said = b.js("document.querySelector('.brush').getAttribute('aria-valuetext')")
    assert time_text(round(spans[4]['to'] - spans[4]['from'])) in said, said
    page.click('#chosen .clear')
    assert page.chosen() is None and b.js("document.querySelector('.brush').getAttribute('aria-valuetext')") == 'the whole run'


def the_timeline_zooms_to_one_operation_with_its_stack(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    page.focus('#timeline canvas')
    b.key('ArrowDown')
    for _ in range(9):
        b.key('+')
        page.settle()
    span = page.chosen()
    assert abs((span['to'] - span['from']) * 512 / page.data.index['run']['duration_ns'] - 1) < 0.01, span
    page.check_tables(span)
    b.key('ArrowRight')
    b.key('Enter')
    page.settle()
    ops = {k: page.data.column(page.data.index['ops'][k]) for k in ('lane', 'start', 'duration', 'site', 'event')}
    event = int(re.search(r'event (\d+)', page.text('.operation')).group(1))
    at = ops['event'].index(event)
    assert ops['lane'][at] == 1 and ops['start'][at] < span['to'] and ops['start'][at] + ops['duration'][at] > span['from'], at
    assert time_text(ops['duration'][at]) in page.text('.operation'), page.text('.operation')
    index = page.data.index
    names = [index['strings'][index['frames']['function'][f]] for f in index['stacks'][index['sites']['stack'][ops['site'][at]]]]
    assert b.js("[...document.querySelectorAll('.operation .function')].map((e) => e.textContent)") == names
    page.click('#timeline button[aria-label="Zoom out"]')
    assert abs((page.chosen()['to'] - page.chosen()['from']) / (span['to'] - span['from']) - 2) < 0.01


def a_finding_leads_to_its_stacks(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    finding = page.data.index['findings']['findings'][1]
    page.click('#findings li:nth-child(2) .follow')
    b.js("new Promise((done) => { const look = () => document.activeElement.id === 'flame-title' ? done() : requestAnimationFrame(look); look(); })")
    frames, strings = page.data.index['frames'], page.data.index['strings']
    wanted = {f for f in range(len(frames['line'])) for s in finding['sites']
              if (strings[frames['function'][f]], frames['line'][f]) == (s['function'], s['line'])}
    assert len(wanted) == 2 and set(b.js('[...weirPage.chosen.place.frames]')) == wanted
    assert 'through the chosen place' in page.text('#flame .status'), page.text('#flame .status')
    page.check_tables(None, wanted)
    key = b.js("document.querySelector('input[name=flame-weight]:checked').value")
    assert key != 'peak_bytes' or 'nothing' not in page.text('#flame .status')
    page.click('#chosen .clear:not([hidden])')
    page.check_tables(None)


def headings_sort(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    for heading, expected in ((3, 'descending'), (3, 'ascending'), (0, 'ascending')):
        page.click(f'#table-transfers thead th:nth-child({heading + 1}) button')
        shown = b.js("document.querySelector('#table-transfers th[aria-sort]').getAttribute('aria-sort')")
        column = ['Place', 'Call', 'Direction', 'Calls'][heading]
        cells = [r[column] for r in page.table('transfers')][:-1]
        assert shown == expected, shown
        keys = [int(c.replace(',', '')) for c in cells] if heading else cells
        assert len(set(keys)) > 3 and keys == sorted(keys, key=(lambda k: k) if heading else str.lower, reverse=expected == 'descending'), keys
    assert b.js("document.querySelectorAll('#table-transfers th[aria-sort]').length") == 1


def the_peak_tells_its_places(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    page.focus('#peak canvas')
    b.key('ArrowUp')
    said = page.text('#peak [aria-live]')
    peak = page.data.index['peak']
    size = page.data.column(peak['columns'][1])[peak['at_ns'] // page.data.index['bins']['width_ns']]
    assert bytes_text(size) in said, (said, size)
    b.key('Enter')
    page.settle()
    site = peak['sites'][1]
    frame = page.data.index['sites']['frame'][site]
    assert b.js('[...weirPage.chosen.place.frames]') == [frame]
    page.check_tables(None, {frame})
    left, top, width, height = page.box('#peak canvas')
    x, y = left + 132 + (width - 146) * peak['at_ns'] / page.data.index['run']['duration_ns'], top + height - 26
    b.mouse('mouseMoved', x, y)
    assert not b.js("document.querySelector('#peak .tip').hidden") and ' live at ' in page.text('#peak .tip')
    b.click(x, y)
    page.settle()
    assert b.js('[...weirPage.chosen.place.frames]') == [page.data.index['sites']['frame'][peak['sites'][0]]]


def flame_graphs_search_and_zoom(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    page.click('input[value=transfer_bytes] + span')
    assert bytes_text(page.data.sums(['transfer'])[1]) in page.text('#flame .status'), page.text('#flame .status')
    b.js("(() => { const s = document.querySelector('#flame input[type=search]'); s.value = 'attention'; s.dispatchEvent(new Event('input')); })()")
    sites, strings, frames = page.data.index['sites'], page.data.index['strings'], page.data.index['frames']
    found = {f for f in range(len(frames['line'])) if 'attention' in strings[frames['function'][f]]}
    assert f'found: {bytes_text(page.data.sums(["transfer"], None, found)[1])}' in page.text('#flame .status'), page.text('#flame .status')
    before = page.pixels()
    page.click('#flame canvas', 0.02, 0.75)
    assert 'shown: ' in page.text('#flame .status'), page.text('#flame .status')
    page.focus('#flame canvas')
    b.key('ArrowDown')
    assert '%' in page.text('#flame [aria-live]:not(.status)')
    page.click('#flame .controls > button')
    b.js("document.activeElement.blur()")
    assert 'shown: ' not in page.text('#flame .status') and page.pixels() == before
    assert b.js("document.querySelector('#flame details').open = true, new Promise((done) => setTimeout(done))") is None
    assert b.js("document.querySelectorAll('#flame details tbody tr').length") > 3


def colours_follow_the_theme(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    paper = lambda: b.js('getComputedStyle(document.documentElement).backgroundColor')
    dots = lambda: b.js("[...document.querySelectorAll('canvas')].map((c) => c.toDataURL().length + c.toDataURL().slice(-400))")
    light, drawn = paper(), dots()
    page.click('#theme')
    assert paper() != light and all(x != y for x, y in zip(dots(), drawn)) and page.text('#theme') == 'Light'
    page.click('#theme')
    assert paper() == light
    b.theme('dark')
    try:
        page = Page(b, os.path.join(folder, 'made.html'))
        assert paper() != light
    finally:
        b.theme('light')


# Every text that is seen, with its colour and what lies behind it; and pairs of colours that pictures use.
CONTRAST = r'''(() => {
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); const f = c.startsWith('color(') ? 255 : 1; return [n[0] * f, n[1] * f, n[2] * f, n[3] ?? 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (e) => { let layers = []; for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor)); return layers.reverse().reduce((below, c) => over(c, below), [255, 255, 255, 1]); };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let t; (t = walker.nextNode());) {
    const e = t.parentElement;
    if (!t.data.trim() || e.closest('script, style, noscript, .unseen, [hidden], canvas') || !e.getClientRects().length || e.closest(':disabled')) continue;
    const back = behind(e), r = ratio(over(parse(getComputedStyle(e).color), back), back);
    seen++;
    if (r < 4.5) bad.push(`${e.className || e.tagName} "${t.data.trim().slice(0, 30)}" ${r.toFixed(2)}`);
  }
  const probe = document.createElement('span'); document.body.append(probe);
  const get = (v) => { probe.style.color = `var(--${v})`; return parse(getComputedStyle(probe).color); };
  const pairs = [['ink', 'paper'], ['muted', 'paper'], ['flame-found-ink', 'flame-found'], ...['flame0', 'flame1', 'flame2', 'flame3', 'flame-cuda0', 'flame-cuda1', 'flame-none'].map((f) => ['ink', f]),
    ...['transfer', 'launch', 'graph', 'wait', 'allocation', 'free', 'memset', 'other', 'initialisation'].map((c) => ['on-class', `class-${c}`])];
  for (const [a, b] of pairs) if (ratio(get(a), get(b)) < 4.5) bad.push(`${a} on ${b} ${ratio(get(a), get(b)).toFixed(2)}`);
  probe.remove();
  return { bad: bad.slice(0, 12), seen };
})()'''


def text_has_contrast(b, folder):
    for scheme in ('light', 'dark'):
        b.theme(scheme)
        try:
            page = Page(b, os.path.join(folder, 'made.html'))
            page.click('#table-waits .place')
            b.js("document.querySelectorAll('details').forEach((d) => { d.open = true; }), new Promise((done) => setTimeout(done))")
            result = b.js(CONTRAST)
            assert result['seen'] > 200 and not result['bad'], f'{scheme}: {result}'
        finally:
            b.theme('light')


OPEN_ALL = """(() => {
  document.querySelectorAll('details').forEach((d) => { d.open = true; });
  document.querySelectorAll('.more:not([hidden])').forEach((b) => b.click());
  return new Promise((done) => setTimeout(done));
})()"""


def show_operation(page):
    page.focus('#timeline canvas')
    for key in ('ArrowDown', '+', 'ArrowRight', 'Enter'):
        page.b.key(key)
        page.settle()


def the_accessibility_tree_names_everything(b, folder):
    for name in ('made', 'random'):
        page = Page(b, os.path.join(folder, f'{name}.html'))
        show_operation(page)
        b.js(OPEN_ALL)
        b.call('Accessibility.enable')
        nodes = [n for n in b.call('Accessibility.getFullAXTree')['nodes'] if not n.get('ignored')]
        b.call('Accessibility.disable')
        value = lambda n, key: str(n.get(key, {}).get('value', '')).strip()
        roles = {}
        for n in nodes:
            roles.setdefault(value(n, 'role'), []).append(value(n, 'name'))
        for role in ('button', 'link', 'checkbox', 'radio', 'searchbox', 'slider', 'application', 'table', 'region', 'navigation', 'columnheader', 'rowheader', 'heading'):
            assert all(roles.get(role, ['x'])), f'a {role} without a name: {roles[role]}'
        stops = [n for n in nodes if any(p['name'] == 'focusable' and p['value'].get('value') for p in n.get('properties', [])) and value(n, 'role') != 'RootWebArea']
        bare = [(value(n, 'role'), value(n, 'name')) for n in stops if value(n, 'role') in ('', 'generic', 'none') or not value(n, 'name')]
        assert len(stops) > 60 and not [s for s in bare if s[0] not in ('status', 'heading')], bare
        assert len(roles['application']) == 3 and len(roles['table']) >= 11 and not roles.get('image') and not roles.get('img'), (roles['application'], len(roles['table']))
        pictures = [n for n in nodes if value(n, 'role') == 'application']
        assert all(value(n, 'description') and any(p['name'] == 'roledescription' for p in n['properties']) for n in pictures), pictures
        for role in ('banner', 'main', 'navigation', 'contentinfo'):
            assert len(roles.get(role, [])) == 1, f'{role}: {roles.get(role)}'
        levels = b.js("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
        assert levels[0] == 1 and levels.count(1) == 1 and all(y <= x + 1 for x, y in zip(levels, levels[1:])), levels
        assert b.js("[...document.querySelectorAll('table')].every((t) => t.caption?.textContent && [...t.querySelectorAll('th')].every((h) => h.scope))")
        ids = b.js("[...document.querySelectorAll('[id]')].map((e) => e.id)")
        assert len(ids) == len(set(ids)), 'an id twice'
        assert b.js("document.documentElement.lang") == 'en'


# What takes the keyboard, in the order of the page; of radio buttons of a name the chosen one.
STOPS = """window.stops = [...document.querySelectorAll('a[href], button:not(:disabled), input, summary, [tabindex="0"]')].filter((e) =>
  e.getClientRects().length && !(e.type === 'radio' && !e.checked)), window.stops.length"""
SEEN_FOCUS = """(() => { const e = document.activeElement, by = e.type === 'radio' ? e.nextElementSibling : e;
  return [window.stops.indexOf(e), getComputedStyle(by).outlineStyle === 'solid' || e.className === 'skip']; })()"""


def all_is_reached_by_the_keyboard(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))
    show_operation(page)
    b.js(OPEN_ALL)
    b.js("document.activeElement.blur(), document.body.prepend(Object.assign(document.createElement('span'), {id: 'start', tabIndex: -1})), document.getElementById('start').focus()")
    assert b.js("[...document.querySelectorAll('canvas[role=application], .brush')].filter((e) => e.tabIndex === 0).length") == 4
    count = b.js(STOPS)
    reached = []
    for _ in range(count):
        b.key('Tab')
        reached.append(b.js(SEEN_FOCUS))
    assert count > 80 and [n for n, _ in reached] == list(range(count)), reached
    assert all(seen for _, seen in reached), b.js(f'window.stops[{[s for _, s in reached].index(False)}].outerHTML.slice(0, 200)')
    b.key('Tab', shift=True)
    assert b.js(SEEN_FOCUS)[0] == count - 2


def all_is_done_by_the_keyboard(b, folder):
    page = Page(b, os.path.join(folder, 'made.html'))

    def press(selector, key='Enter'):
        page.focus(selector)
        b.key(key)
        page.settle()
        return b.js("document.activeElement.matches(%s)" % json.dumps(selector))
    paper = lambda: b.js('getComputedStyle(document.documentElement).backgroundColor')
    light = paper()
    assert press('#theme') and paper() != light
    for details in range(b.js("document.querySelectorAll('summary').length")):
        b.js(f"document.querySelectorAll('summary').forEach((s, i) => {{ s.id = i === {details} ? 'now' : ''; }})")
        assert press('#now')
        page.until("document.getElementById('now').parentElement.open && document.getElementById('now').parentElement.children.length > 1")
    assert press('#memory input[type=checkbox]', ' ') and not b.js("document.querySelector('#memory input[type=checkbox]').checked")
    before = page.text('#flame .status')
    assert press('input[name=flame-weight]:checked', 'ArrowRight') and page.text('#flame .status') != before
    assert press('#table-waits th:nth-child(4) button') and b.js("document.querySelector('#table-waits th[aria-sort]').cellIndex") == 3
    assert press('#tables .more:not([hidden])') and b.js("document.querySelector('#tables .more:not([hidden])').textContent").startswith('Show the first')
    assert press('#table-waits .place') and b.js('weirPage.chosen.place !== null')
    assert not press('#chosen .clear:not([hidden])') and b.js('weirPage.chosen.place === null') and b.js('document.activeElement.id') == 'choice'
    press('#findings > .more')
    assert b.js("document.activeElement.closest('.finding') !== null && !document.querySelector('.finding[hidden]')")
    press('#flame canvas', 'ArrowDown')
    b.key('ArrowDown')
    b.key('Enter')
    assert 'shown: ' in page.text('#flame .status')
    b.key('Backspace')
    b.key('Backspace')
    assert 'shown: ' not in page.text('#flame .status')
    show_operation(page)
    assert press('.operation button') and b.js('weirPage.chosen.place !== null')
    b.mouse('mouseMoved', *[v + d for v, d in zip(page.box('#timeline canvas'), (300, 40))])
    assert not b.js("document.querySelector('#timeline .tip').hidden")
    assert press('#timeline canvas', 'Escape') and b.js("[...document.querySelectorAll('.tip')].every((t) => t.hidden)") and b.js('weirPage.chosen.place === null')
    press('.skip')
    page.until("location.hash === '#page'")


def what_scrolls_takes_the_keyboard(b, folder):
    try:
        for name, width in (('made', 400), ('made', 1600), ('hostile', 400), ('random', 800)):
            b.size(width, 900)
            page = Page(b, os.path.join(folder, f'{name}.html'))
            show_operation(page)
            b.js(OPEN_ALL)
            scrolls, bare = b.js("""(() => {
              const all = [...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length && e.clientWidth > 1 && !e.closest('.tip')
                && ((/auto|scroll/.test(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1) || (/auto|scroll/.test(getComputedStyle(e).overflowY) && e.scrollHeight > e.clientHeight + 1)));
              return [all.length, all.filter((e) => e.tabIndex !== 0 && !e.querySelector('a[href], button')).map((e) => e.outerHTML.slice(0, 100))];
            })()""")
            assert not bare and (scrolls > 3 or width > 400), (name, width, scrolls, bare)
    finally:
        b.size(1600, 1000)


def links_lead_to_their_sections(b, folder):
    for section in ('leaks', 'timeline', 'findings'):
        b.open(os.path.join(folder, 'made.html'))
        b.js('weirPage.ready')
        assert b.js("document.querySelectorAll('.coming').length") > 3, 'all was drawn at once'
        b.js(f"document.querySelector('#links a[href=\"#{section}\"]').click()")
        b.js('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
        top = b.js(f"document.getElementById('{section}-title').getBoundingClientRect().top")
        assert 0 < top < 1000, (section, top)


def names_of_any_kind_are_shown_as_text(b, folder):
    page = Page(b, os.path.join(folder, 'hostile.html'))
    for selector in ('#table-transfers .place', '#findings .follow'):
        page.click(selector)
    b.js('weirPage.all()')
    assert not b.errors and not b.dialogs, (b.errors, b.dialogs)
    assert b.js("document.querySelectorAll('body img, body iframe, body object, main script, body [onerror], a[href^=javascript]').length") == 0
    shown = b.js('document.body.innerText')
    assert '<img src=x onerror=alert(1)>' in shown and not re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]', shown)
    assert b.js('document.documentElement.scrollWidth <= innerWidth'), 'a long name makes the page wide'
    assert len(shown) < 200000


def a_damaged_page_says_so(b, folder):
    text = open(os.path.join(folder, 'made.html'), encoding='utf-8').read()
    columns = re.search('id="weir-columns">(.*?)</script>', text, re.S).group(1)
    damaged = {'short': text.replace(columns, columns[:len(columns) // 2 // 4 * 4]), 'no gzip': text.replace(columns, 'QUJD' * 900),
               'no base64': text.replace(columns, '(' + columns), 'empty': text.replace(columns, ''),
               'less': text.replace(columns, base64.b64encode(gzip.compress(b'less')).decode()), 'other': text.replace('"weir-page/1"', '"weir-page/7"')}
    path = os.path.join(folder, 'damaged.html')
    for what, content in damaged.items():
        with open(path, 'w', encoding='utf-8') as f:
            f.write(content)
        b.open(path)
        b.js('weirPage.ready')
        said = b.js("document.getElementById('failed').hidden ? '' : document.getElementById('failed').textContent")
        assert 'cannot be shown' in said, f'{what}: {said}'
        assert not b.errors, f'{what}: {b.errors}'


def without_decompression_the_page_says_so(b, folder):
    script = b.call('Page.addScriptToEvaluateOnNewDocument', source='delete globalThis.DecompressionStream')
    try:
        b.open(os.path.join(folder, 'made.html'))
        b.js('weirPage.ready')
        assert 'cannot unpack' in b.js("document.getElementById('failed').innerText")
        assert b.js("document.querySelectorAll('.finding').length") > 3
    finally:
        b.call('Page.removeScriptToEvaluateOnNewDocument', identifier=script['identifier'])


def every_width_fits(b, folder):
    try:
        for width in (400, 800, 1600):
            b.size(width, 900)
            page = Page(b, os.path.join(folder, 'made.html'))
            assert b.js('document.documentElement.scrollWidth') <= width, width
            wide = b.js('''[...document.querySelectorAll('main *')].filter((e) => e.getClientRects().length && !e.closest('.wide, .unseen, pre, .u-wrap') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className || e.tagName)''')
            assert not wide, (width, wide[:5])
            assert all(dots > 300 for _, dots, _ in page.pixels())
    finally:
        b.size(1600, 1000)


CASES = [the_page_opens_without_an_error_or_a_request, every_picture_has_marks, tables_are_sums_of_the_cube, tables_agree_with_the_report,
         a_brush_filters_every_table, copies_and_leaks_are_the_report_s_of_a_span, copies_and_leaks_follow_a_drag_and_a_place, the_brush_follows_the_keyboard, the_timeline_zooms_to_one_operation_with_its_stack, a_finding_leads_to_its_stacks,
         headings_sort, the_peak_tells_its_places, flame_graphs_search_and_zoom, colours_follow_the_theme, text_has_contrast,
         the_accessibility_tree_names_everything, all_is_reached_by_the_keyboard, all_is_done_by_the_keyboard, what_scrolls_takes_the_keyboard, links_lead_to_their_sections, names_of_any_kind_are_shown_as_text, a_damaged_page_says_so,
         without_decompression_the_page_says_so, every_width_fits]


def main():
    folder = os.path.realpath(sys.argv[1])
    program = browser.find()
    if not program:
        print('skipped: no Chromium')
        return
    b = browser.Browser(program)
    try:
        for case in CASES:
            if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
                continue
            try:
                case(b, folder)
                print('ok', case.__name__, flush=True)
            except (AssertionError, KeyError, IndexError, AttributeError, TypeError, ValueError, browser.Failed) as e:
                print(f'FAILED {case.__name__}: {type(e).__name__} line {e.__traceback__.tb_next.tb_lineno}: {str(e)[:700]!r}', flush=True)
    finally:
        b.close()


main()

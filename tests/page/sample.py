#!/usr/bin/env python3
"""sample.py PAGE OUT [SCALE [hostile]]: a page with made data, in place of what PAGE holds.

The data are of a run that never was: what every section can show, at SCALE times the size; `hostile`: its names are
markup, terminal escapes, directions of writing, and very long. PAGE is any page that weir report --html wrote, or
the page without its data (two halves with a NUL between).
"""
import base64
import gzip
import json
import random
import re
import struct
import sys

HOSTILE = ['<img src=x onerror=alert(1)>', '</script><script>alert(2)</script>', '\x1b[31mred\x07', '\u202egnp.exe', '"\'`;--&lt;',
           '{{7*7}}${7*7}', 'javascript:alert(3)', 'x' * 200000, '', '\ud7ff\ufffe', '<!--', ']]>']
CLASSES = ['allocation', 'free', 'transfer', 'memset', 'launch', 'wait', 'graph']
BINS = 2048
ROUTES = [(1, 'pageable', 'device', 'host', 0), (1, 'pinned', 'device', 'host', 1), (2, 'device', 'pageable', 0, 'host'), (4, 'device', 'device', 0, 1)]


def leb(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return out


class Columns:
    """What the page's columns become: add() gives a column's number."""

    def __init__(self):
        self.data, self.list = bytearray(), []

    def add(self, values, encoding='v'):
        at = len(self.data)
        if encoding == 'v':
            for v in values:
                self.data += leb(v)
        elif encoding == 'dv':
            before = None
            for v in values:
                d = v if before is None else v - before
                self.data += leb(d if before is None else d * 2 if d >= 0 else -d * 2 - 1)
                before = v
        elif encoding == 'u8':
            self.data += bytes(values)
        else:
            self.data += struct.pack(f'<{len(values)}{"I" if encoding == "u32" else "d"}', *values)
        self.list.append({'offset': at, 'bytes': len(self.data) - at, 'count': len(values), 'encoding': encoding})
        return len(self.list) - 1


def places(hostile):
    """Frames as (function, file, line), and stacks of them, innermost first, with the call and its class."""
    rng = random.Random(3)
    layers = ['attention', 'mlp', 'embedding', 'layer_norm', 'softmax', 'head', 'conv_stem', 'pool']
    calls = [('cudaMalloc', 0), ('cudaFree', 1), ('cudaMemcpy', 2), ('cudaMemcpyAsync', 2), ('cudaMemsetAsync', 3),
             ('cudaLaunchKernel', 4), ('cudaDeviceSynchronize', 5), ('cudaStreamSynchronize', 5)]
    frames, stacks = [], []

    def frame(*f):
        if f not in frames:
            frames.append(f)
        return frames.index(f)

    base = [frame('train_step', 'src/train/loop.cc', 88), frame('main', 'src/main.cc', 31), frame('__libc_start_main', None, 0)]
    for layer in layers:
        for name, kind in calls:
            if rng.random() < 0.3:
                continue
            function = f'{layer}_{rng.choice(["forward", "backward"])}'
            own = frame(function, f'src/model/{layer}.cu', rng.randint(20, 400))
            outer = frame(f'Model::{rng.choice(["forward", "backward", "step"])}', 'src/model/model.cc', rng.choice([52, 71, 96]))
            stacks.append(([frame(name, None, 0), own, outer] + base, own, name, kind))
    if hostile:
        for i, text in enumerate(HOSTILE):
            own = frame(text, text or None, i)
            stacks.append(([frame(calls[i % 8][0], None, 0), own] + base, own, text, calls[i % 8][1]))
    return frames, stacks


def make(scale=1, hostile=False):
    rng = random.Random(5)
    width = 1_500_000
    end = BINS * width - 700_000
    columns, strings = Columns(), [""]

    def string(text):
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    frames, stacks = places(hostile)
    sites = {'stack': list(range(len(stacks))), 'frame': [s[1] for s in stacks], 'api': [string(s[2]) for s in stacks]}
    by_class = {k: [i for i, s in enumerate(stacks) if s[3] == k] for k in range(7)}
    cube = []
    for b in range(BINS):
        rows = {}
        for _ in range(rng.randint(4, 10) * scale):
            k = rng.choices([0, 1, 2, 3, 4, 5], [2, 2, 4, 1, 8, 3])[0]
            site = rng.choice(by_class[k])
            route = 1 + site % len(ROUTES) if k == 2 else 0
            direction = ROUTES[route - 1][0] if route else 0
            row = rows.setdefault((site, k, direction, route), [0, 0, 0, 0])
            count = rng.randint(1, 6)
            size = count * rng.choice([4096, 65536, 1 << 20, 3 << 20]) if k in (0, 2, 3) else 0
            for i, v in enumerate((count, size, count * rng.randint(900, 90000), size // 20 if k == 2 else 0)):
                row[i] += v
        cube += [(b, *key, *row) for key, row in sorted(rows.items())]
    cube_columns = {name: columns.add([r[i] for r in cube], 'dv' if name == 'bin' else 'v')
                    for i, name in enumerate(('bin', 'site', 'class', 'direction', 'route', 'count', 'bytes', 'host_ns', 'device_ns'))}
    copied = [[sum(r[i] for r in cube if r[4] == n + 1) for i in range(5, 9)] for n in range(len(ROUTES))]

    # Memory: steps of a training loop, by site of allocation.
    holders = by_class[0][:9] or [0]
    blocks, live = [], [[0] * BINS for _ in holders]
    for n, site in enumerate(holders):
        at = rng.randint(0, 60) * width
        while at < end - 40 * width:
            size = rng.choice([1, 2, 3, 8]) << rng.randint(24, 27)
            life = width * (rng.randint(20, 80) if n > 2 else rng.randint(500, 1900))
            blocks.append((at, min(at + life, end), size, site))
            for b in range(at // width, min(BINS, (at + life) // width + 1)):
                live[n][b] += size
            at += life // 2 + width * rng.randint(1, 30)
    total = [sum(c) for c in zip(*live)]
    peak_bin = max(range(BINS), key=lambda b: total[b])
    order = sorted(range(len(holders)), key=lambda n: -live[n][peak_bin])
    rest = [rng.randint(0, 9) << 22 for _ in range(BINS)]
    blocks.sort()
    changes = {}
    for start, finish, size, site in blocks:
        for at, kind in ((start, 0), (finish, 1)):
            if at < end:
                row = changes.setdefault((at // width, site, kind), [0, 0])
                row[0] += 1
                row[1] += size
    changes = [(*key, *row) for key, row in sorted(changes.items())]
    total = [t + r for t, r in zip(total, rest)]
    memory = []
    for device, kind, share in ((0, 0, 1.0), (0, 1, 0.1), (0, 3, 1.1), (1, 0, 0.6), (-1, 2, 0.2), (-1, 3, 1.7)):
        most = [int(t * share) for t in total]
        least = [int(v * 0.8) for v in most]
        memory.append({'device': device, 'kind': kind, 'registered': False, 'min': columns.add(least), 'max': columns.add(most), 'end': columns.add(most),
                       'peak_bytes': max(most), 'peak_ns': peak_bin * width + 5})

    lanes, ops, lane_bins = [], [], []
    kernel = string(HOSTILE[0] if hostile else 'void gemm_kernel<float, 128>(float const*, float*)')
    for device in (0, 1):
        for stream in (7, 13, 21):
            lanes.append({'title': f'GPU {device} stream {stream}', 'kind': 'device', 'device': device, 'stream': stream, 'process': None, 'thread': None})
    for name in ('main', HOSTILE[0] if hostile else 'loader'):
        lanes.append({'title': f'thread {name}', 'kind': 'host', 'device': None, 'stream': None, 'process': 0, 'thread': len(lanes)})
    event = 0
    for n, lane in enumerate(lanes):
        at, sums = rng.randint(0, width), {}
        while at < end - 4 * width:
            k = rng.choices([2, 4, 3], [3, 6, 1])[0] if lane['kind'] == 'device' else rng.choices([0, 2, 4, 5], [1, 2, 5, 2])[0]
            duration = rng.choice([1500, 20000, 400_000, 1_200_000]) // (scale if scale > 1 else 1) + 1
            event += 1
            ops.append((n, at, duration, k, rng.choice([4096, 1 << 20]) if k in (0, 2, 3) else 0, rng.choice(by_class[k]), event, kernel if k == 4 and lane['kind'] == 'device' else 0))
            b = at // width
            before = sums.setdefault(b, [0, 0])
            before[0] += min(duration, width)
            before[1] += 1
            at += duration + rng.randint(500, 900_000 // scale)
        lane_bins += [(n, b, min(v[0], width), v[1]) for b, v in sorted(sums.items())]

    flames = [(i, *(rng.randint(0, 1 << 30) if s[3] == 0 else 0 for _ in range(1)), *((rng.randint(1, 90), rng.randint(1, 1 << 32)) if s[3] == 0 else (0, 0)),
               rng.randint(1, 10**9) if s[3] == 5 else 0, *((rng.randint(1, 1 << 33), rng.randint(1, 10**9)) if s[3] == 2 else (0, 0)))
              for i, s in enumerate(stacks)]
    named = [dict(zip(('function', 'file', 'line'), frames[s[1]])) for s in stacks]
    findings = [{'rule': 1 + i, 'id': f'rule-{i}', 'title': HOSTILE[i] if hostile and i < 4 else ['Upload the same bytes again', 'Wait for work whose results are not looked at', 'Repeated allocation of one size'][i % 3],
                 'certainty': ['certain', 'likely', 'possible'][i % 3], 'saving_ns': 900_000_000 // (i + 1), 'saving_bytes': 1 << 30 if i % 2 else 0, 'count': 400 >> i,
                 'sites': [named[(i * 7) % len(named)]] + ([named[(i * 5 + 1) % len(named)]] if i == 1 else []), 'range': 'epoch 3' if i == 2 else None, 'device': i % 2,
                 'fix': HOSTILE[1] if hostile else 'Upload it once, before the loop, and keep it on the device.'} for i in range(8)]
    totals = {'alloc_calls': 3120, 'alloc_bytes': 9 << 33, 'free_calls': 3100, 'peak_bytes': max(total), 'peak_at_ns': peak_bin * width, 'live_at_exit_bytes': 7 << 22,
              'live_at_exit_blocks': 20, 'pinned_alloc_calls': 12, 'pinned_peak_bytes': 5 << 26, 'h2d_calls': 4100, 'h2d_bytes': 11 << 30, 'd2h_calls': 990, 'd2h_bytes': 3 << 28,
              'd2d_calls': 0, 'd2d_bytes': 0, 'p2p_calls': 44, 'p2p_bytes': 1 << 30, 'sync_explicit_calls': 1200, 'sync_explicit_ns': 900_000_000, 'sync_implicit_calls': 320,
              'sync_implicit_ns': 41_000_000, 'thread_time_ns': 2 * end, 'launches': 20400, 'failed_calls': 0, 'dropped': 0}

    def column(rows, i, encoding='v'):
        return columns.add([r[i] for r in rows], encoding)

    index = {
        'schema': 'weir-page/1',
        'run': {'command': HOSTILE[0] + HOSTILE[2] if hostile else './train --layers 24 --batch 32 --data /data/corpus', 'weir': '0.2.0', 'start_ms': 1795444958360, 'duration_ns': end,
                'mode': 'observe', 'finished': True, 'device_times': True, 'host_times_only_note': None,
                'devices': [{'ordinal': 0, 'name': HOSTILE[1] if hostile else 'NVIDIA H100 80GB HBM3', 'capacity_bytes': 80 << 30}, {'ordinal': 1, 'name': 'NVIDIA H100 80GB HBM3', 'capacity_bytes': None}],
                'processes': [{'pid': 4711, 'name': 'train'}], 'notes': [HOSTILE[2]] if hostile else ['CUPTI saw no kernels of graphs.']},
        'totals': totals,
        'frames': {'function': [string(f[0]) for f in frames], 'file': [-1 if f[1] is None else string(f[1]) for f in frames], 'line': [f[2] for f in frames]},
        'stacks': [s[0] for s in stacks], 'sites': sites,
        'sources': [{'frame': s[1], 'text': '  CHECK(cudaMemcpy(dst, src, <b>n</b>, cudaMemcpyHostToDevice));'} for s in stacks[::2]],
        'classes': CLASSES, 'bins': {'count': BINS, 'width_ns': width}, 'memory_kinds': ['device', 'managed', 'pinned', 'all'], 'memory': memory,
        'peak': {'device': 0, 'at_ns': peak_bin * width + 5, 'sites': [holders[n] for n in order], 'columns': [columns.add(live[n]) for n in order], 'rest': columns.add(rest),
                 'blocks': {'start': column(blocks, 0, 'dv'), 'end': column(blocks, 1), 'bytes': column(blocks, 2), 'site': column(blocks, 3),
                            'device': columns.add([0] * len(blocks), 'u8'), 'count': len(blocks), 'all': len(blocks) + 90, 'bytes_left_out': 4 << 22}},
        'cube': cube_columns, 'lanes': lanes,
        'ops': {**{name: column(ops, i, 'v') for i, name in enumerate(('lane', 'start', 'duration', 'class', 'bytes', 'site', 'event', 'name'))}, 'count': len(ops), 'all': len(ops) * 3, 'shortest_kept_ns': 1500},
        'lane_bins': {name: column(lane_bins, i) for i, name in enumerate(('lane', 'bin', 'busy_ns', 'count'))},
        'flames': {name: column(flames, i) for i, name in enumerate(('stack', 'peak_bytes', 'alloc_count', 'alloc_bytes', 'wait_ns', 'transfer_bytes', 'transfer_ns'))},
        'matrix': [{'direction': d, 'src_memory': sm, 'dst_memory': dm, 'src': a, 'dst': b, 'count': c, 'bytes': n, 'host_ns': host, 'device_ns': device}
                   for (d, sm, dm, a, b), (c, n, host, device) in zip(ROUTES, copied)],
        'changes': {**{name: column(changes, i, 'dv' if name == 'bin' else 'v') for i, name in enumerate(('bin', 'site', 'class', 'count', 'bytes'))},
                    'bins': {'count': BINS, 'width_ns': width}},
        'findings': {'schema': 'weir-findings/1', 'findings': findings},
        'strings': strings, 'columns': columns.list,
    }
    return index, bytes(columns.data)


def data_tags(index, data):
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    text = json.dumps(index).replace('<', '\\u003c')
    return (f'<script type="application/json" id="weir-index">{text}</script>\n'
            f'<script type="text/plain" id="weir-columns">{packed}</script>\n')


def put(page, index, data):
    if b'\0' in page:
        before, after = page.split(b'\0')[:2]
        return before + data_tags(index, data).encode() + after
    pattern = re.compile(rb'<script type="application/json" id="weir-index">.*?</script>\s*<script type="text/plain" id="weir-columns">.*?</script>\s*', re.S)
    found = pattern.search(page)
    return page[:found.start()] + data_tags(index, data).encode() + page[found.end():]


if __name__ == '__main__':
    page = open(sys.argv[1], 'rb').read()
    with open(sys.argv[2], 'wb') as f:
        f.write(put(page, *make(int(sys.argv[3]) if len(sys.argv) > 3 else 1, 'hostile' in sys.argv[4:])))

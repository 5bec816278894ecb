#!/usr/bin/env python3
"""outputs.py [OPTION]... OLD NEW TRACE...: where what two builds of weir print or write of traces is not the same.

Every report in each format, grouping, part, width and table, the page's data, the listing, the exports, diff, check,
stats, replay, resolve, import: WAYS is the list. OLD and NEW are weir commands, or build folders that hold bin/weir;
a TRACE is a trace or a spool (make_traces.py makes some). Both commands run in folders of their own that hold the trace under
one name, so that neither finds what the other left.

  --all N     deal all ways out among the first N traces (20): each way is tried once
  --sample N  ways drawn for each trace beside (4); --seed N draws others
  --whole     all ways on all traces (hours)
  --only RE   only command lines in which RE is found
  --keep DIR  keep OLD's answers there: the next comparison with it takes half the time
  --jobs N    side by side (the processors)
  --show N    lines printed of each side of a difference (3)
  --allow F   the differences that are meant (outputs.json next to this file)

JSON is compared by value: a difference is a path, in which tables have their names. So is the page: its data is decoded. SQLite files are compared as
dumps, all else line by line. Exit statuses and stderr count. The file of what is allowed is JSON:

  {"commands": [{"match": RE, "old": RE, "new": TEXT, "why": TEXT}],      NEW gets another command line
   "names": [{"command": RE, "paths": {OLD: NEW}, "why": TEXT}],          members that have moved: a.b.c, or how they begin
   "additions": [{"command": RE, "text": RE, "why": TEXT}],               text of some lines that NEW has and OLD has not
   "differences": [{"command": RE, "line": RE, "why": TEXT},              lines of a difference that may be
                   {"command": RE, "order": RE, "why": TEXT}]}            the same lines in another order, but for what RE takes

A line begins with `- ` (OLD's) or `+ ` (NEW's). Expressions are searched for in OLD's command line, which ends in " 2>" for
stderr and in " > FILE" for a file that it wrote. Entries that nothing needed are printed at the end.

Exit status: 0 nothing differs but what is allowed, 1 something does, 2 wrong use."""
import argparse
import base64
import concurrent.futures
import difflib
import gzip
import hashlib
import json
import os
import pickle
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib

OWN = os.path.dirname(os.path.abspath(__file__))
TEXT = ('text', 'json', 'csv', 'markdown')
REPORTS = ('summary', 'findings', 'transfers', 'waits', 'memory', 'leaks', 'oom', 'devices', 'idle', 'coverage', 'cache')
GROUPS = ('site', 'stack', 'module', 'range', 'stream', 'device', 'thread', 'process', 'rank', 'function')
EXPORTS = {'perfetto': 'bin', 'chrome': 'json', 'folded': 'txt', 'speedscope': 'json', 'pprof': 'gz', 'firefox': 'json', 'csv': 'csv',
           'nsys': 'db', 'rmm-csv': 'csv', 'pytorch-snapshot': 'json', 'pytorch-pickle': 'bin'}
WEIGHTS = ('calls', 'host-time', 'allocated', 'copied', 'live-at-peak')
STATS = ('cuda_api_sum cuda_api_trace cuda_gpu_kern_sum cuda_gpu_mem_time_sum cuda_gpu_mem_size_sum cuda_gpu_sum cuda_api_gpu_sum '
         'cuda_gpu_trace cuda_kern_exec_sum nvtx_sum nvtx_pushpop_sum nvtx_startend_sum cuda_memcpy_async cuda_memcpy_sync '
         'cuda_memset_sync cuda_api_sync gpu_gaps gpu_time_util').split()
KINDS = 'alloc free copy memset sync launch register reset module stream event context'.split()


class Way:
    """A command line, with the files that it writes. @TRACE, @PARTNER, @RANGE0, @PROCESS0, @THREAD0 and @TABLE0 stand for
    what the trace has of them."""
    def __init__(self, words, *files):
        self.words, self.files = words.split(), files


def report_ways():
    for what in REPORTS:
        for form in TEXT:
            yield Way(f'report {what} -f {form} @TRACE')
            for by in GROUPS if form in ('text', 'json') else ('site', 'stack'):
                yield Way(f'report {what} -f {form} --by {by} @TRACE')
        for form in 'text', 'json':
            for more in ('--top 1', '--top 1000', '--depth 0', '--depth 9', '--from 30% --to 70%', '--from 1ms', '--to 50%', '--symbols .',
                         '--possible', '--min-cost 0ns', '--sources off', '--min-cost 0ns --possible --top 100'):
                yield Way(f'report {what} -f {form} {more} @TRACE')
            for n in '01':
                yield Way(f'report {what} -f {form} --range @RANGE{n} @TRACE')
                yield Way(f'report {what} -f {form} --process @PROCESS{n} @TRACE')
        for width in (0, 40, 80, 100, 120, 200):
            yield Way(f'report {what} --width {width} @TRACE')
            yield Way(f'report {what} --width {width} --min-cost 0ns --possible @TRACE')
            yield Way(f'report {what} --width {width} --by stack @TRACE')
        by = '--by site ' if what in ('summary', 'findings', 'cache') else ''
        for n in range(14):
            for form in 'text --top 1000 --width 0', 'csv', 'markdown', 'json':
                yield Way(f'report {what} {by}--table @TABLE{n} -f {form} @TRACE')
        yield Way(f'report {what} --table no_such_table @TRACE')
        yield Way(f'report {what} --rules own_rules --min-cost 0ns --possible @TRACE')
    for form in TEXT:
        yield Way(f'report -f {form} @TRACE')
    yield Way('report --html -o page.html @TRACE', 'page.html')
    yield Way('report --html -o page.html --min-cost 0ns --possible --sources off @TRACE', 'page.html')


def listing_ways():
    for form in 'text', 'csv', 'jsonl':
        yield Way(f'trace -f {form} @TRACE')
        yield Way(f'trace -f {form} -o list.txt @TRACE', 'list.txt')
        for kind in KINDS:
            yield Way(f'trace -f {form} -k {kind} @TRACE')
        for more in ('--function cuda*', '--function cuMem*', '--device 0', '--stream legacy', '--stream per-thread', '--min-bytes 4K', '--range @RANGE0',
                     '--process @PROCESS1', '--thread @THREAD1', '--min-ns 10us', '--from 1ms --to 20ms', '-k alloc,free,copy --min-bytes 64K'):
            yield Way(f'trace -f {form} {more} @TRACE')
    for form, ending in EXPORTS.items():
        yield Way(f'export -f {form} -o out.{ending} @TRACE', f'out.{ending}')
    for weight in WEIGHTS:
        yield Way(f'export -f folded -w {weight} -o out.txt @TRACE', 'out.txt')


def other_ways():
    for form in 'text', 'markdown', 'json':
        for more in ('', '--top 50', '--width 0', '--width 80', '--width 140', '--min-cost 0ns', '--rules own_rules --min-cost 0ns',
                     '--fail-on peak>+0%,leaks>0,waits.count>+0,finding:certain>0,transfers.h2d.bytes>+10MiB'):
            yield Way(f'diff -f {form} {more} @TRACE @PARTNER')
        yield Way(f'diff -f {form} @PARTNER @TRACE')
        yield Way(f'diff -f {form} @TRACE @TRACE')
    for budget in 'limits', 'floors':
        for more in '', '--width 80', '--min-cost 0ns':
            yield Way(f'check --budget {budget} {more} --junit junit.xml --markdown check.md @TRACE', 'junit.xml', 'check.md')
    for report in STATS:
        for form in 'column', 'table', 'csv', 'tsv', 'json':
            yield Way(f'stats {report} -f {form} @TRACE')
        for unit in 'usec', 'msec', 'seconds':
            yield Way(f'stats {report} -f csv --timeunit {unit} @TRACE')
        yield Way(f'stats {report} --rows 3 @TRACE')
    for suffix in 'nvtx-name', 'base', 'mangled':
        yield Way(f'stats cuda_gpu_kern_sum:{suffix} -f csv @TRACE')
    yield Way('stats @TRACE')
    for more in ('', '--capacity 1G', '--capacity 1M', '-s max_split_size=1M', '--policy pytorch'):
        for form in 'text', 'json':
            yield Way(f'replay {more} -f {form} @TRACE')
    yield Way('replay --svg out.svg @TRACE', 'out.svg')
    # What changes a trace is tried on a copy, and last.
    yield Way('resolve --symbols . copy.db', 'copy.db')
    yield Way('import --force -o made.db @TRACE', 'made.db')


WAYS = [*report_ways(), *listing_ways(), *other_ways()]


# ---- running -------------------------------------------------------------------------------------------------------

def run(weir, words, cwd):
    env = {k: v for k, v in os.environ.items() if not k.startswith('WEIR_')} | {'LC_ALL': 'C.UTF-8', 'TZ': 'UTC', 'COLUMNS': '100'}
    with subprocess.Popen([weir, *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        out, err = p.communicate()
    return p.returncode, out, err


def page_data(blob):
    """The index of a page with each column in it, and the text around."""
    text = blob.decode('utf-8', 'replace')
    scripts = dict(re.findall(r'<script[^>]*id="?(weir-[a-z]+)"?[^>]*>(.*?)</script>', text, re.S))
    index, packed = json.loads(scripts['weir-index']), gzip.decompress(base64.b64decode(scripts['weir-columns']))
    index['columns'] = [dict(c, values=column(packed, c)) for c in index['columns']]
    for c in index['columns']:
        c.pop('offset')
    return index


def column(packed, c):
    values, n, shift = [], 0, 0
    for byte in packed[c['offset']:c['offset'] + c['bytes']]:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(n)
            n = shift = 0
    return values


def dump(path):
    if not os.path.exists(path):
        return None
    with sqlite3.connect(path) as db:
        db.text_factory = lambda b: b.decode('utf-8', 'replace')
        tables = {}
        for name, kind, sql in db.execute('SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name'):
            tables[name] = {'sql': ' '.join(sql.split())}
            if kind == 'table' and not name.startswith('sqlite_'):
                tables[name]['rows'] = [list(row) for row in db.execute(f'SELECT * FROM "{name}"')]
        return tables


def readable(path, blob):
    """What is compared: a value for JSON, the page and SQLite, else lines."""
    try:
        if path.endswith('.html'):
            return page_data(blob)
        if path.endswith('.gz'):
            blob = gzip.decompress(blob)
        if blob[:1] in (b'{', b'['):
            return json.loads(blob)
    except (ValueError, KeyError, OSError):
        pass
    return blob.decode('utf-8', 'backslashreplace').split('\n')


def leaves(value, path=''):
    if isinstance(value, dict) and value:
        for k, v in value.items():
            yield from leaves(v, f'{path}.{k}' if path else k)
    elif isinstance(value, list) and value:
        for i, v in enumerate(value):
            yield from leaves(v, f'{path}.{v["name"]}' if path == 'tables' else f'{path}[{i}]')
    else:
        yield path, value


class Allowed:
    """The differences that are meant, and which of them there were."""
    def __init__(self, path):
        self.rules = {'commands': [], 'names': [], 'additions': [], 'differences': []}
        if path and os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                self.rules.update(json.load(f))
        self.used = set()

    def take(self, kind, command):
        for i, rule in enumerate(self.rules[kind]):
            if re.search(rule.get('command', rule.get('match', '')), command):
                yield (kind, i), rule

    def words_for_new(self, words):
        line = ' '.join(words)
        for key, rule in self.take('commands', line):
            line = re.sub(rule['old'], rule['new'], line)
            self.used.add(key)
        return line.split()

    def renamed(self, command, path):
        bare = re.sub(r'\[\d+\]', '', path)
        for key, rule in self.take('names', command):
            for old, new in rule['paths'].items():
                if bare == old or bare.startswith(old + '.'):
                    self.used.add(key)
                    return new + path[len(old):] if path.startswith(old) else rename_within(path, old, new)
        return path

    def cut(self, command, lines):
        """NEW's lines without those that OLD cannot have."""
        for key, rule in self.take('additions', command):
            text = re.sub(rule['text'], '', '\n'.join(lines))
            if text.split('\n') != lines:
                self.used.add(key)
            lines = text.split('\n')
        return lines

    def left(self, command, lines):
        """The lines that nothing allows."""
        for key, rule in self.take('differences', command):
            if 'line' in rule:
                rest = [line for line in lines if not re.search(rule['line'], line)]
            else:
                sides = [sorted(re.sub(rule['order'], '', line[1:]) for line in lines if line[0] == sign) for sign in '-+']
                rest = [] if sides[0] == sides[1] else lines
            if len(rest) < len(lines):
                self.used.add(key)
            lines = rest
        return lines


def rename_within(path, old, new):
    """a[3].b[1].c by a.b -> x.y: x[3].y[1].c. The numbers stay in their order."""
    steps = re.findall(r'([^.\[]+)((?:\[\d+\])*)', path)
    count, names = old.count('.') + 1, new.split('.')
    numbers = [steps[i][1] for i in range(count)]
    numbers = [''] * max(0, len(names) - count) + numbers if len(names) >= count else [''.join(numbers[:count - len(names) + 1])] + numbers[count - len(names) + 1:]
    kept = [n + i for n, i in zip(names, numbers)] + [n + i for n, i in steps[count:]]
    return '.'.join(kept)


NUMBER = re.compile(r'(\d[\d,]*(?:\.\d+)?)')


def near(old, new):
    """Whether two texts differ by no more than the last digit or two of numbers in them."""
    a, b = NUMBER.split(old), NUMBER.split(new)
    if len(a) != len(b) or a[::2] != b[::2]:
        return False
    pairs = [(float(x.replace(',', '')), float(y.replace(',', ''))) for x, y in zip(a[1::2], b[1::2])]
    return all(abs(x - y) <= 2 + 1e-4 * abs(x) for x, y in pairs)


def steadied(old, new):
    """New answers, with OLD's text where they are near."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [steadied(a, b) for a, b in zip(old, new)]
    if isinstance(old, dict) and isinstance(new, dict):
        return {k: steadied(old[k], v) if k in old else v for k, v in new.items()}
    return old if old != new and type(old) is type(new) and near(str(old), str(new)) else new


def differences(command, old, new, allowed):
    """Lines `- old` and `+ new` that nothing allows."""
    if isinstance(old, list) and isinstance(new, list) and all(isinstance(x, str) for x in [*old, *new]):
        lines = [x[0] + ' ' + x[1:] for x in difflib.unified_diff(old, allowed.cut(command, new), n=0, lineterm='') if x[:3] not in ('---', '+++') and x[:2] != '@@']
    elif type(old) is not type(new):
        lines = [f'- {str(old)[:200]}', f'+ {str(new)[:200]}']
    else:
        a = {allowed.renamed(command, k): v for k, v in leaves(old)}
        b = dict(leaves(new))
        lines = []
        for k in [k for k in a if k not in b or a[k] != b[k]] + [k for k in b if k not in a]:
            lines += [f'{sign} {k}: {json.dumps(side[k])}' for sign, side in (('-', a), ('+', b)) if k in side]
    return allowed.left(command, lines)


# ---- a trace -------------------------------------------------------------------------------------------------------

def place(source, folder, name):
    to = os.path.join(folder, name)
    shutil.copy2(source, to)
    for end in '-wal', '-shm':
        if os.path.exists(source + end):
            shutil.copy2(source + end, to + end)


# Rules as a user might have written them: on a view, on facts, on thresholds.
OWN_RULES = {
    'view': 'SELECT id AS event, duration_ns AS cost_ns, bytes FROM copy WHERE asynchronous AND status = 0',
    'facts': "SELECT event, duration AS cost_ns, bytes, 'certain' AS certainty FROM overwritten",
    'waits': 'SELECT event, gap AS cost_ns, gain AS saving_ns FROM wait_ahead',
    'rows': '-- threshold: least 3 rows\nSELECT id AS event, 7 AS cost_ns FROM event_row LIMIT :least',
    'blocks': '-- holds: bytes\nSELECT b.alloc AS event, b.bytes, 0 AS saving_ns FROM block b WHERE b.bytes > 65536',
}


def write_rules(folder):
    os.makedirs(folder)
    for name, select in OWN_RULES.items():
        with open(os.path.join(folder, name + '.sql'), 'w', encoding='utf-8') as f:
            f.write(f'-- id: own-{name}\n-- title: Found by {name}\n-- fix: Mend it.\n{select}\n')


def write_budget(diff, name, sign):
    """Limits of each metric of the run, of a device, of sites and ranges; half of them half of what there is."""
    lines = []

    def add(scope, metrics):
        for i, (metric, values) in enumerate(metrics.items()):
            value = values['b'] or 0
            lines.append(f'{scope}{metric} {sign} {int(value // 2 if i % 2 else value)}')
    add('', diff['run'])
    for d in diff['devices'][:2]:
        add(f'device {d["device"]}: ', d['metrics'])
    for key, word in ('sites', 'function'), ('ranges', 'text'):
        for x in [x for x in diff[key] if x[word] and '"' not in x[word]][:3]:
            add(f'{key[:-1]} "{x[word]}": ', x['metrics'])
    lines += [f'finding certain {sign} 0', f'finding likely {sign} 1']
    with open(name, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


class Place:
    """Two folders with a trace in each, and what of it command lines name; asked for when it is needed."""
    def __init__(self, work, source, partner, old):
        self.old, self.source, self.known = old, source, {}
        self.names = {'@TRACE': os.path.basename(source), '@PARTNER': 'partner-' + os.path.basename(partner)}
        self.scaled = source.endswith('.spool') or partner.endswith('.spool')
        self.folders = [os.path.join(work, side) for side in ('old', 'new')]
        for folder in self.folders:
            write_rules(os.path.join(folder, 'own_rules'))
            place(source, folder, self.names['@TRACE'])
            place(partner, folder, self.names['@PARTNER'])

    def ask(self, what, *words):
        """What OLD answers as JSON."""
        try:
            return json.loads(run(self.old, [*words, '-f', 'json', self.names['@TRACE']], self.folders[0])[1])
        except ValueError:
            return {}

    def facts_of(self, kind, words):
        if kind == 'TABLE':
            kind += words[1]
            if kind not in self.known:
                self.known[kind] = [t['name'] for t in self.ask('tables', *words[:words.index('--table')]).get('tables', [])]
        if kind not in self.known:
            query = {'RANGE': "SELECT text FROM range WHERE text NOT LIKE '% %' AND text <> '' GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 2",
                     'PROCESS': 'SELECT pid FROM process ORDER BY id LIMIT 2', 'THREAD': 'SELECT tid FROM thread ORDER BY id LIMIT 2'}[kind]
            try:
                with sqlite3.connect(f'file:{self.source}?mode=ro', uri=True) as db:
                    self.known[kind] = [str(row[0]) for row in db.execute(query)]
            except sqlite3.Error:
                self.known[kind] = []
        return self.known[kind]

    def words(self, way):
        """A way's words for this trace; None: it has no such thing."""
        words = []
        for word in way.words:
            found = re.fullmatch(r'@(RANGE|PROCESS|THREAD|TABLE)(\d+)', word)
            if found:
                known = self.facts_of(found[1], way.words)
                if int(found[2]) >= len(known):
                    return None
                word = known[int(found[2])]
            words.append(self.names.get(word, word))
        if 'limits' in words or 'floors' in words:
            self.make_budgets()
        if 'copy.db' in words:
            for folder in self.folders:
                place(self.source, folder, 'copy.db')
        return words

    def make_budgets(self):
        if 'budgets' in self.known:
            return
        self.known['budgets'] = True
        diff = {'run': {}, 'devices': [], 'sites': [], 'ranges': []}
        for form in ('json', 'json/1'):  # the second is what the first was before 0.3
            try:
                found = json.loads(run(self.old, ['diff', '-f', form, *[self.names['@TRACE']] * 2], self.folders[0])[1])
            except ValueError:
                continue
            if 'run' in found:
                diff.update(found)
        for folder in self.folders:
            write_budget(diff, os.path.join(folder, 'limits'), '<=')
            write_budget(diff, os.path.join(folder, 'floors'), '>')


def read_back(folder, name):
    """What a command wrote to a file; it is removed."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    if name.endswith('.db'):
        blob = dump(path)
    else:
        with open(path, 'rb') as f:
            blob = f.read()
    os.unlink(path)
    return blob


def answer(weir, words, folder, files):
    return (*run(weir, words, folder), [read_back(folder, f) for f in files])


def kept_answer(here, words, files, options):
    """OLD's; it is the same each time, so it can be kept."""
    old = command_of(options.old)
    if not options.keep:
        return answer(old, words, here.folders[0], files)
    stamp = [(p, os.stat(p).st_size, os.stat(p).st_mtime_ns) for p in (old, here.source)]
    path = os.path.join(options.keep, hashlib.sha256(repr((stamp, here.names, words)).encode()).hexdigest())
    try:
        with open(path, 'rb') as f:
            return pickle.loads(zlib.decompress(f.read()))
    except OSError:
        got = answer(old, words, here.folders[0], files)
    with tempfile.NamedTemporaryFile(dir=options.keep, delete=False) as f:
        f.write(zlib.compress(pickle.dumps(got), 1))
    os.replace(f.name, path)
    return got


def compare(way, here, allowed, options):
    """The differences of one command: (what, lines) of each output that has any; None: not tried, or OLD does not
    answer the same each time. Times of a spool are scaled by the clock of now, and of them the last digit does not count."""
    words = here.words(way)
    if words is None:
        return None
    old = kept_answer(here, words, way.files, options)
    new = answer(command_of(options.new), allowed.words_for_new(words), here.folders[1], way.files)
    if old == new:
        return []
    command, found = ' '.join(words), []
    pairs = [(command, [f'exit status {old[0]}'], [f'exit status {new[0]}']), (command + ' 2>', readable('', old[2]), readable('', new[2])),
             (command, readable('', old[1]), readable('', new[1]))]
    for name, a, b in zip(way.files, old[3], new[3]):
        pairs.append((f'{command} > {name}', *(readable(name, x) if isinstance(x, bytes) else x for x in (a, b))))
    for what, a, b in pairs:
        b = steadied(a, b) if here.scaled else b
        lines = differences(what, a, b, allowed) if a != b else []
        if lines:
            found.append((what, lines))
    return None if found and answer(command_of(options.old), words, here.folders[0], way.files) != old else found


def try_trace(task):
    number, source, partner, options, ways = task
    allowed, found, tried = Allowed(options.allow), [], 0
    with tempfile.TemporaryDirectory(prefix='outputs-') as work:
        here = Place(work, source, partner, command_of(options.old))
        for way in ways:
            differing = compare(way, here, allowed, options)
            tried += differing is not None
            found += [(source, *f) for f in differing or ()]
    return tried, found, allowed.used


def tasks(options):
    """All ways are dealt out among the first traces; each trace has some of its own, too."""
    ways = [w for w in WAYS if re.search(options.only, ' '.join(w.words))]
    many = min(options.all, len(options.traces))
    for number, source in enumerate(options.traces):
        partner = options.traces[(number + 1) % len(options.traces)]
        drawn = random.Random(f'{options.seed} {number}')
        own = drawn.sample(range(len(ways)), min(options.sample, len(ways)))
        mine = sorted({*own, *(i for i in range(len(ways)) if options.whole or (number < many and i % many == number))})
        for at in range(0, len(mine), 40):
            yield number, source, partner, options, [ways[i] for i in mine[at:at + 40]]


def command_of(path):
    path = os.path.abspath(path)
    return os.path.join(path, 'bin', 'weir') if os.path.isdir(path) else path


def arguments():
    parser = argparse.ArgumentParser(description='Compare what two builds of weir make of traces.')
    parser.add_argument('--all', type=int, default=20)
    parser.add_argument('--sample', type=int, default=4)
    parser.add_argument('--whole', action='store_true')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--show', type=int, default=3)
    parser.add_argument('--only', default='')
    parser.add_argument('--keep')
    parser.add_argument('--allow', default=os.path.join(OWN, 'outputs.json'))
    parser.add_argument('old')
    parser.add_argument('new')
    parser.add_argument('traces', nargs='+')
    options = parser.parse_args()
    options.traces = [t for t in map(os.path.abspath, options.traces) if not t.endswith(('-wal', '-shm'))]
    for build in options.old, options.new:
        if not os.access(command_of(build), os.X_OK):
            parser.error(f'there is no command {command_of(build)}')
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    return options


def main():
    options = arguments()
    tried, differing, used = 0, 0, set()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for count, found, rules in pool.map(try_trace, list(tasks(options))):
            tried += count
            used |= rules
            for source, command, lines in found:
                differing += 1
                print(f'{os.path.basename(source)}: weir {command}: {len(lines)} lines differ')
                for line in sorted(sum(([x for x in lines if x[0] == sign][:options.show] for sign in '-+'), []), key=lines.index):
                    print('   ', line[:300])
                sys.stdout.flush()
    for kind, rules in Allowed(options.allow).rules.items():
        for i, rule in enumerate(rules):
            if (kind, i) not in used:
                print(f'nothing needed {kind}: {json.dumps(rule)}')
    print(f'{len(options.traces)} traces, {tried} commands, {differing} outputs differ')
    return differing > 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""check-floors.py: which folder uses which, and whether it may.

    check-floors.py OBJECTS     OBJECTS: the folder of object files that a build of all has made
    check-floors.py --arrows F  also each include and symbol that makes the arrows out of folder F

An *arrow* from one folder to another is an #include line, or a symbol that an object of the one
leaves undefined and an object of the other defines (nm). A folder's README.md lists what it may use:

    May include: core/base core/trace interpose/elf

names folders (with what is below them) or single files; "nothing" is an answer too. A README without
such a line gives its folder no rule: its arrows are printed, and nothing is demanded of it. Fails on an arrow
that a rule does not allow, on a circle of folders that all have a rule, and where the files of a part
depend on each other in a larger circle than LIMITS allows. There a header is a file of its own: one
interface above several sources is no circle; sources that call each other are.

A README may show a walk through the code as a list whose lines begin "1. `folder/file`": each file is there and
in one line only, and no step goes up, to a folder that uses the one it comes from.

What is no arrow: weak references, which are there to be missing, and names that stand in for other
libraries' (CUDA's, the C library's): who links decides whose they are.
"""
import collections
import os
import re
import subprocess
import sys

PARTS = ('core', 'cuda', 'interpose', 'reports', 'tools')
# Most files of one circle, by part (the longest that fits). They may shrink, never grow: a commit that
# makes one smaller lowers its number.
LIMITS = {
    'core': 4,
    'cuda': 0,
    'cuda/sim': 5,
    'interpose': 4,
    'reports': 1,
    'tools': 2,
}
STAND_IN = re.compile(r'^(cu|cuda|cupti|nvml|nvtx)[A-Z]|^__cuda|^main$')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
STEP = re.compile(r'^(\d+)\. `([\w.-]+/[\w./-]+)`', re.M)
RULE = re.compile(r'^May include:\s*(.*(?:\n(?!\s*$).*)*)', re.M)


def sources():
    """The product's files, as git knows them; of an unpacked archive, as they lie there."""
    try:
        cmd = ['git', 'ls-files', '--cached', '--others', '--exclude-standard', *PARTS]
        names = subprocess.run(cmd, capture_output=True, text=True, check=True).stdout.split('\n')
    except (OSError, subprocess.CalledProcessError):
        names = [os.path.join(d, f) for p in PARTS for d, _, files in os.walk(p) for f in files]
    return sorted(n for n in names if re.search(r'\.(c|h|S|cc|cu|cuh|def|inc)$', n) and os.path.isfile(n))


def include_edges(files):
    known = set(files)
    for path in files:
        with open(path, encoding='utf-8', errors='replace') as f:
            for name in INCLUDE.findall(f.read()):
                sibling = os.path.join(os.path.dirname(path), name)
                for target in (name, sibling):
                    if target in known:
                        yield path, target, 'includes ' + os.path.basename(target)
                        break


def nm(objects):
    """(object, kind, symbol) of each global symbol."""
    out = subprocess.run(['nm', '-A', '-g', *objects], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        where, rest = line.split(':', 1)
        fields = rest.split()
        yield where, fields[-2], fields[-1].split('@')[0]


def libc_names():
    """What the C library defines: a name of that kind in our objects stands in for it."""
    cc = os.environ.get('CC', 'gcc').split()
    cmd = [*cc, '-print-file-name=libc.so.6']
    path = subprocess.run(cmd, capture_output=True, text=True, check=True).stdout.strip()
    out = subprocess.run(['nm', '-D', '--defined-only', path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split('@')[0] for line in out.splitlines()}


def symbol_edges(files, build):
    objects = {}
    for path in files:
        name = os.path.join(build, os.path.splitext(path)[0] + '.o')
        if not path.endswith(('.h', '.def')) and os.path.isfile(name):
            objects[name] = path
    missing = [p for p in files if p.endswith(('.c', '.S')) and p not in objects.values()]
    defined, wanted, libc = collections.defaultdict(set), [], libc_names()
    for where, kind, symbol in nm(sorted(objects)):
        if STAND_IN.match(symbol) or symbol in libc:
            continue
        if kind == 'U':
            wanted.append((objects[where], symbol))
        elif kind not in 'wv':
            defined[symbol].add(objects[where])
    edges = [(path, next(iter(defined[s])), s) for path, s in wanted if len(defined[s]) == 1]
    return edges, missing


def circles(graph):
    """Strongly connected components of more than one node (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for to in sorted(graph.get(node, ())):
            if to not in number:
                visit(to)
                low[node] = min(low[node], low[to])
            elif to in stack:
                low[node] = min(low[node], number[to])
        if low[node] == number[node]:
            part = [stack.pop()]
            while part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(2 * len(graph) + 1000)
    for root in sorted(graph):
        if root not in number:
            visit(root)
    return sorted(found, key=lambda c: (-len(c), c))


def rule_of(folder):
    """The names after "May include:", None where there is no such line."""
    path = os.path.join(folder, 'README.md')
    if not os.path.isfile(path):
        return None
    with open(path, encoding='utf-8') as f:
        match = RULE.search(f.read())
    return set(re.findall(r'[\w./-]*\w', match[1].replace('`', ' '))) - {'nothing'} if match else None


def allowed(rule, target):
    return any(target == name or target.startswith(name + '/') or os.path.dirname(target) == name for name in rule)


def part_of(path):
    return max((p for p in LIMITS if path == p or path.startswith(p + '/')), key=len)


def report_arrows(edges, folders):
    """Prints the table; the arrows that no rule allows, as lines."""
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    for source, target, why in edges:
        a, b = os.path.dirname(source), os.path.dirname(target)
        if a != b:
            table[a][b].append((source, target, why))
    errors = []
    width = max(map(len, folders))
    for folder in folders:
        rule = rule_of(folder)
        cells = []
        for to, list_ in sorted(table[folder].items()):
            bad = [e for e in list_ if rule is not None and not allowed(rule, e[1])]
            errors += [f'{s}: {w} of {t}, which {folder}/README.md does not allow' for s, t, w in bad]
            cells.append(f'{to} {len(list_)}{"!" if bad else ""}')
        print(f'  {folder:{width}}  {"" if rule is not None else "(no rule) "}{", ".join(cells) or "-"}')
    return errors, table


def report_circles(edges, table, folders):
    errors = []
    for circle in circles({f: set(table[f]) for f in folders}):
        free = [f for f in circle if rule_of(f) is None]
        text = 'circle of folders: ' + ', '.join(circle)
        print(f'  {text}{" (no rule: " + ", ".join(free) + ")" if free else ""}')
        if not free:
            errors.append(text)
    graph = collections.defaultdict(set)
    for source, target, _ in edges:
        graph[source].add(target)
    for part, limit in sorted(LIMITS.items()):
        inside = {n: {t for t in graph[n] if part_of(t) == part} for n in list(graph) if part_of(n) == part}
        found = circles(inside)
        sizes = ', '.join(str(len(c)) for c in found) or 'none'
        print(f'  {part}: circles of files: {sizes} (at most {limit})')
        for c in found:
            print('    ' + ' '.join(os.path.relpath(n, part) for n in c))
        if found and len(found[0]) > limit:
            errors.append(f'{part}: a circle of {len(found[0])} files, at most {limit} (LIMITS in {sys.argv[0]})')
    return errors


def reached(table, folder):
    seen, todo = set(), [folder]
    while todo:
        for to in table.get(todo.pop(), {}):
            if to not in seen:
                seen.add(to)
                todo.append(to)
    return seen


def check_walks(table, folders):
    errors = []
    for readme in sorted({f + '/README.md' for f in folders} | {p + '/README.md' for p in PARTS}):
        if not os.path.isfile(readme):
            continue
        with open(readme, encoding='utf-8') as f:
            steps = STEP.findall(f.read())
        for (_, before), (number, path) in zip([('', '')] + steps, steps):
            here, there = os.path.dirname(before), os.path.dirname(path)
            if not os.path.isfile(path):
                errors.append(f'{readme}: {path} is not there')
            if sum(p == path for _, p in steps) > 1:
                errors.append(f'{readme}: the walk comes to {path} twice')
            if number != '1' and here != there and here in reached(table, there):
                errors.append(f'{readme}: from {before} to {path} the walk goes up')
    return errors


def main():
    args = sys.argv[1:]
    detail = args.pop(args.index('--arrows') + 1) if '--arrows' in args else None
    args = [a for a in args if a != '--arrows']
    if len(args) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    files = sources()
    more, missing = symbol_edges(files, args[0])
    edges = sorted(set(include_edges(files)) | set(more))
    folders = sorted({os.path.dirname(f) for f in files})
    print('arrows (a folder, and how often it uses which others)')
    errors, table = report_arrows(edges, folders)
    errors += report_circles(edges, table, folders)
    errors += check_walks(table, folders)
    for target, list_ in sorted(table[detail].items()) if detail else ():
        print(f'{detail} -> {target}')
        for source, to, why in list_:
            print(f'    {source}: {why} of {to}')
    if missing:
        print(f'  ({len(missing)} sources without an object: only their includes were read)')
    for e in sorted(set(errors)):
        print('error: ' + e, file=sys.stderr)
    return 1 if errors else 0


if __name__ == '__main__':
    sys.exit(main())

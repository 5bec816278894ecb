#!/usr/bin/env python3
"""porting.py [--check]: tools/doc/porting.md, made from tools/doc/porting.tsv, the functions libweir exports and the
comparisons with PyTorch in tests/peers. --check writes nothing: exit status 1 where the page is not what would be made,
where a name of PyTorch's has neither a function nor a word on why, or a function that no comparison names without
its note has the reason ("no comparison: ..."). That each function works on what the name is of, tests/tools/porting_use.py tries."""
import os
import re
import subprocess
import sys

TABLE, PAGE = 'tools/doc/porting.tsv', 'tools/doc/porting.md'
PEERS = 'tests/peers'
# What is in tests/peers and compares no function of libweir's with PyTorch's.
OTHERS = {'axe', 'client', 'exports', 'peaks', 'random_list', 'training', 'pluggable'}
# How a function's other forms are called.
FORMS = re.compile(r'(?:_(?:dim|dims|scalar|tensor|tensors|alpha|rounding|at|with_indices|with_sizes|values|all|reduce|channel|weighted))*_?')


def text(path):
    with open(path) as f:
        return f.read()


def exported():
    names = set(subprocess.check_output(['tools/scripts/public-names.sh'], text=True).split())
    headers = ['core/weir/' + h for h in os.listdir('core/weir') if h.endswith('.h')]
    macros = set(re.findall(r'^#define (WEIR_\w+)', '\n'.join(text(h) for h in headers), re.M))
    return names, macros


def peers():
    """part -> its words: quoted names, attributes, exported names."""
    parts = {}
    for f in sorted(os.listdir(PEERS)):
        if f.endswith('.py') and f[:-3] not in OTHERS:
            parts[f[:-3]] = set(re.findall(r'\w+', text(os.path.join(PEERS, f))))
    parts['files'] = set(re.findall(r'\w+', text('tests/io/numpy_files.py')))
    return parts


def rows():
    """[(section, None)] and [(torch, functions, parts, note)], as the file has them."""
    for line in text(TABLE).splitlines():
        if line.startswith('#') or not line:
            continue
        if line.startswith('['):
            yield (line.strip('[]'),)
        else:
            cells = (line.split('\t') + ['', '', ''])[:4]
            yield tuple(cells)


class Page:
    def __init__(self):
        self.names, self.macros = exported()
        self.parts = peers()
        self.bad, self.count, self.there = [], 0, 0

    def functions(self, torch, cell):
        short = torch.rsplit('.', 1)[-1]
        wanted = ['weir_' + short] if cell == '=' else cell.split()
        return [n for n in wanted if n in self.names or n in self.macros]

    def forms(self, name):
        """name and its other forms, written short."""
        base = name[:-1] if name.endswith('_') else name
        found = sorted(n[len(base):] for n in self.names if n.startswith(base) and n != name and FORMS.fullmatch(n[len(base):]))
        scalar = 'weir_scalar_' + name[5:]
        also = ['`%s`' % scalar] if scalar in self.names else []
        return '`%s`' % name + ''.join(' `%s`' % f if f else ' `%s`' % base for f in found) + ''.join(' ' + a for a in also)

    def covered(self, torch, functions, cell):
        words = {torch.rsplit('.', 1)[-1]} | set(functions) | {f[5:] for f in functions} | {re.sub('^weir_module_', '', f) for f in functions}
        if cell == '=':
            return [p for p, there in self.parts.items() if words & there]
        for p in cell.split():
            if p not in self.parts:
                self.bad.append('%s: there is no part %s' % (torch, p))
            elif not words & self.parts[p]:
                self.bad.append('%s: part %s names none of %s' % (torch, p, ' '.join(sorted(words))))
        return cell.split()

    def row(self, torch, cell, part, note):
        functions = self.functions(torch, cell)
        self.count += 1
        if not functions:
            if not note:
                self.bad.append('%s: neither a function nor a word on why' % torch)
            return '| `%s` | - | | %s |' % (torch, note)
        self.there += 1
        parts = self.covered(torch, functions, part)
        if not parts and 'no comparison' not in note:
            self.bad.append('%s: no comparison names %s' % (torch, ' '.join(functions)))
        note = '' if note.startswith('not there') else note
        return '| `%s` | %s | %s | %s |' % (torch, ' '.join(self.forms(f) for f in functions), ', '.join(parts), note)

    def make(self):
        lines = []
        for r in rows():
            if len(r) == 1:
                lines += ['', '## ' + r[0][0].upper() + r[0][1:], '', '| PyTorch | Weir | compared by | |', '|---|---|---|---|']
            else:
                lines.append(self.row(*r))
        head = ['# From PyTorch\'s names to Weir\'s', '',
                'Made by `make porting` from [porting.tsv](porting.tsv): edit that. Of %d names of PyTorch\'s, %d are there. A function\'s other'
                % (self.count, self.there),
                'forms stand behind it by what is added to its name: `_` changes its first argument, `_scalar` takes a number, `_dim` and `_dims`',
                'go along one or several dimensions. "Compared by" is the part of [tests/peers](../../tests/peers/README.md) that makes random',
                'calls of both and compares them. What each does: `man weir_ops`, or the header it is declared in.']
        return '\n'.join(head + lines) + '\n'


def main():
    page = Page()
    made = page.make()
    if '--check' not in sys.argv:
        with open(PAGE, 'w') as f:
            f.write(made)
    elif not os.path.exists(PAGE) or text(PAGE) != made:
        page.bad.append('%s is not what would be made: run make porting' % PAGE)
    print('\n'.join(page.bad + ['%d names, %d there, %d faults' % (page.count, page.there, len(page.bad))]))
    return bool(page.bad)


if __name__ == '__main__':
    sys.exit(main())

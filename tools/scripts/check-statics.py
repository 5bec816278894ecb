#!/usr/bin/env python3
"""check-statics.py: names of static functions, over the whole tree, tests included.

    check-statics.py            prints the counts; fails where two files share a short name
    check-statics.py --list     also every name that more than one file defines, and where

A name of five letters or fewer is too short to mean two things: `take` in one file and `take` in another are
fine only where both are the same function, which is to say where their texts are equal but for comments
and white space. A longer name may be shared: it has its object in it, as `out_of_memory` does.

Read are the files of tools/scripts/sources.sh, from the top of the tree. A definition begins in column 0 with
"static", with attributes before it, or with a macro whose text holds "static".
"""
import collections
import os
import re
import subprocess
import sys

SHORT = 5
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
MACRO = re.compile(r'^\s*#\s*define\s+(\w+)\s+(?:[^\n]*\s)?static\b', re.M)
ATTRIBUTE = r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)\s*'


def blank(text, comments_only):
    """The text with comments as spaces, with strings too unless they are asked to stay; lines stay lines."""
    def space(m):
        keep = comments_only and m.group()[0] in '"\''
        return m.group() if keep else re.sub(r'[^\n]', ' ', m.group())
    return TOKEN.sub(space, text)


def end_of(text, at):
    """The place after the brace that closes the one at `at`."""
    depth = 0
    for m in re.compile(r'[{}]').finditer(text, at):
        depth += 1 if m.group() == '{' else -1
        if depth == 0:
            return m.end()
    return len(text)


def definitions(path, macros):
    """(name, text without comments and white space) of each static function."""
    with open(path, encoding='utf-8', errors='replace') as f:
        text = f.read()
    plain, code = blank(text, False), blank(text, True)
    begin = '|'.join(['static'] + sorted(macros))
    head = re.compile(rf'^(?:{ATTRIBUTE})?(?:{begin})\b(?:{ATTRIBUTE}|[^;={{}}()#])*?\b(?!__attribute__\b)(\w+)\s*\(([^;{{}}]*)\)\s*\{{', re.M)
    for m in head.finditer(plain):
        yield m.group(1), re.sub(r'\s+', ' ', code[m.start():end_of(plain, m.end() - 1)])


def main():
    listed = '--list' in sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    out = subprocess.run([os.path.join(here, 'sources.sh'), 'c'], capture_output=True, text=True, check=True).stdout
    files = out.split()
    macros = set()
    for path in files:
        with open(path, encoding='utf-8', errors='replace') as f:
            macros |= set(MACRO.findall(blank(f.read(), False)))
    found = collections.defaultdict(lambda: collections.defaultdict(set))  # name -> text -> files
    for path in files:
        for name, text in definitions(path, macros):
            found[name][text].add(path)
    where = {name: sorted(set().union(*texts.values())) for name, texts in found.items()}
    shared = {name for name, paths in where.items() if len(paths) > 1}
    short = {name for name in where if len(name) <= SHORT}
    alike = {name for name in shared & short if len(found[name]) == 1}
    bad = sorted(shared & short - alike)
    print(f'  {sum(map(len, where.values()))} static functions in {len(files)} files; {len(shared)} names defined more than once')
    print(f'  {len(short)} names of {SHORT} letters or fewer, {len(shared & short)} of them shared: '
          f'{len(alike)} with one meaning, {len(bad)} with several')
    if listed:
        for name in sorted(shared):
            print(f'    {name}: {" ".join(where[name])}')
    for name in bad:
        print(f'error: {name}() means {len(found[name])} things: {", ".join(where[name])}', file=sys.stderr)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""semantics.py ROOT SUITE...: the table in core/weir/README.md against the tree below ROOT. Every row from 1 to
35 is there once; every function it names is exported or a macro of a public header, every suite is one of those
given (what make test and make test-all run), and every test is in the suite its row names it with (one that is there
and not run does not compile). Says what is wrong; ends with 1 where something is.
"""
import os
import re
import subprocess
import sys

root, suites = sys.argv[1], set(sys.argv[2:])


def text(path):
    with open(os.path.join(root, path)) as f:
        return f.read()


def wrong_in(row, functions, tests):
    for f in re.findall(r'`([^`]+)`', functions):
        if f.endswith('.h'):
            if f not in headers:
                yield 'row %s: there is no core/weir/%s' % (row, f)
        elif f not in exported and f not in macros:
            yield 'row %s: %s is not exported' % (row, f)
    for part in tests.split('; '):
        named = re.findall(r'`([^`]+)`', part)
        if 'tests/' + named[0] not in suites:
            yield 'row %s: %s is not run' % (row, named[0])
            continue
        source = text('tests/%s.c' % named[0])
        for t in named[1:]:
            if 'START_TEST(%s)' % t not in source:
                yield 'row %s: %s has no test %s' % (row, named[0], t)
        if len(named) < 2:
            yield 'row %s: no test of %s is named' % (row, named[0])


headers = [h for h in os.listdir(os.path.join(root, 'core/weir')) if h.endswith('.h')]
exported = set(subprocess.check_output(['tools/scripts/public-names.sh'], cwd=root, text=True).split())
macros = {m for h in headers for m in re.findall(r'^#define (WEIR_\w+)', text('core/weir/' + h), re.M)}
rows = re.findall(r'^\| (\d+) \| .*? \| (.*?) \| (.*?) \|$', text('core/weir/README.md'), re.M)
problems = [p for row in rows for p in wrong_in(*row)]
if [int(row[0]) for row in rows] != list(range(1, 36)):
    problems.append('rows: ' + ' '.join(row[0] for row in rows))
print('\n'.join(problems))
sys.exit(bool(problems))

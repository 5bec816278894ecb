#!/usr/bin/env python3
"""test_memory.py: a memory and transfer test of a CUDA program that needs no GPU.

For pytest, or by itself. WEIR: the weir command; PROGRAM: what is tested, with its arguments.
"""
import functools
import json
import os
import subprocess
import sys
import tempfile

WEIR = os.environ.get('WEIR', 'weir')
PROGRAM = os.environ.get('PROGRAM', './train').split()
FOLDER = tempfile.TemporaryDirectory(prefix='weir-test-')
HERE = os.path.dirname(os.path.abspath(__file__))


@functools.lru_cache(maxsize=None)
def trace():
    """The program has run once, on the software device; the path of its trace."""
    path = os.path.join(FOLDER.name, 't.db')
    subprocess.run([WEIR, 'run', '--sim', '-o', path, '--', *PROGRAM], check=True, stdout=subprocess.DEVNULL)
    return path


def check(budget):
    """The verdict of `weir check` on a budget, which must be kept."""
    done = subprocess.run([WEIR, 'check', '--budget', budget, trace()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def keeps(limit):
    """One limit, as a line of a budget has it."""
    path = os.path.join(FOLDER.name, 'limit')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(limit + '\n')
    check(path)


def test_the_budget_is_kept():
    check(os.path.join(HERE, 'train.budget'))


def test_nothing_is_leaked():
    keeps('leaks == 0')


def test_a_step_does_not_wait():
    keeps('site "train_step": waits == 0')


def test_uploads_do_not_grow_with_the_epochs():
    """What has no limit is asked of the report."""
    done = subprocess.run([WEIR, 'report', '--format', 'json', trace()], capture_output=True, text=True, check=True)
    totals = json.loads(done.stdout)['totals']
    assert totals['h2d_calls'] <= 6, totals['h2d_calls']


def main():
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith('test_'):
            continue
        try:
            test()
            print('ok  ', name)
        except (AssertionError, subprocess.CalledProcessError) as e:
            failed += 1
            print('FAIL', name, e, sep='\n')
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())

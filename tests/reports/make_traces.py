#!/usr/bin/env python3
"""make_traces.py [--count N] [--also FILE] BUILD FOLDER: traces of many kinds for outputs.py, on the software device.

Each program of BUILD/tests and BUILD/examples that is good for it, in the modes, with and without stacks, device times and
hashes, of one and several processes, killed, resolved, cut short (no collector: spools; a killed one: a trace that is not
finished). N of them (200), spread evenly over the list, or all. FILE has further ones, one a line: NAME [OPTION]... -- COMMAND.
A run that makes no trace is named; exit status 1 if there was any."""
import argparse
import concurrent.futures
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODES = ('observe', 'strict', 'relaxed')
TIMES = ('off', 'copies', 'all')
HANGS = 600  # seconds


def recipes(build):
    """(name, how, options, command): how: run, resolve (resolved after), spool, unfinished."""
    e2e = f'{build}/tests/e2e'
    for seed in range(56):
        threads = (1, 2, 4, 16)[seed % 4]
        program = 'random_caller_static' if seed % 5 == 4 else 'random_caller'
        stacks, sim = ('--stacks=off', '--stacks=16', '--stacks=3')[seed % 3], 1 + seed // 2 % 2
        hashes = ['--hash=on'] if seed % 4 == 1 else []
        how = ('run', 'resolve', 'run', 'spool', 'run', 'run', 'unfinished')[seed % 7]
        yield (f'random-{seed}', how, [f'--sim={sim}', f'--mode={MODES[seed % 3]}', f'--device-times={TIMES[seed // 3 % 3]}', stacks, *hashes],
               [f'{e2e}/{program}', str(seed), str(threads), str((60, 120, 240, 900)[seed // 8 % 4] // threads), 'counts'])
    for seed in range(24):
        program = 'graph_caller_static' if seed % 6 == 5 else 'graph_caller'
        yield (f'graph-{seed}', ('run', 'resolve', 'spool')[seed % 5 if seed % 5 < 3 else 0], [f'--mode={MODES[seed % 3]}', f'--device-times={TIMES[seed // 3 % 3]}'],
               [f'{e2e}/{program}', 'random', str(seed)])
    for i, what in enumerate(('loop', 'explicit', 'memory', 'blocks 3', 'blocks 4', 'condition', 'large 300')):
        yield f'graphs-{what.replace(" ", "-")}', 'run', [f'--device-times={TIMES[i % 3]}', f'--mode={MODES[i % 3]}'], [f'{e2e}/graph_caller', *what.split()]
    yield from wastes(build)
    for i, (name, words) in enumerate((('waiter', 'waiter 1 20 w'), ('waiter-2', 'waiter 40 30 w'), ('idler-1', 'idler 1 known'), ('idler-7', 'idler 7 known'),
                                       ('keeper', 'keeper 3 4 200 each ends'), ('keeper-all', 'keeper 5 2 400 all ends'), ('segments', 'segments malloc 1'), ('expandable', 'segments expandable 3'),
                                       ('hasher', 'hasher random 4'), ('hasher-9', 'hasher random 9'), ('importer', 'importer x'), ('loader', 'loader 3'), ('loader-beside', 'loader 4 b'),
                                       ('poller', 'poller count 200'), ('namer', 'namer'), ('namer-keep', 'namer keep'))):
        options = ['--hash=on'] if 'hasher' in name else []
        yield name, ('run', 'resolve')[i % 2], ['--device-times=all' if 'idler' in name else '--device-times=copies', f'--mode={MODES[i % 3]}', *options], [f'{e2e}/{words.split()[0]}', *words.split()[1:]]
    small = {'WEIR_SIM_MEMORY': '300M'}
    for many in '60', '200', '400':
        yield f'shortage-{many}', 'run', [small], [f'{e2e}/shortage', many]
    yield 'shortage-kill', 'run', [small], [f'{e2e}/shortage', '1', 'kill']
    for name, words in (('nests', 'nests 3 3 500'), ('nests-deep', 'nests 2 5 200'), ('edges', 'edges deep'), ('extension', 'extension')):
        yield name, 'run', [], [f'{build}/tests/victims/nvtx/{words.split()[0]}', *words.split()[1:]]
    for i, words in enumerate(('train', 'fixed/train', 'pipeline', 'stencil', 'driver 96', 'memory', 'train_mlp', 'train_cnn', 'streams', 'parallel', 'resnet18', 'loader', 'infer',
                               'sim_static/train')):
        yield (f'example-{words.split()[0].replace("/", "-")}', ('run', 'resolve')[i % 2], [f'--device-times={TIMES[(i + 1) % 3]}', f'--mode={MODES[i % 3]}'],
               [f'{build}/examples/{words.split()[0]}', *words.split()[1:]])
    for i, script in enumerate(('ranges.py 7', 'ctypes_vector.py')):
        yield f'python-{i}', 'run', ['--python'], [sys.executable, f'{build}/examples/{script.split()[0]}', *script.split()[1:]]
    yield 'trial', 'resolve', ['--sim=2'], [f'{build}/tests/findings/trial']
    yield 'tensors', 'run', [], [f'{build}/tests/engine/tensors']
    caller = f'{e2e}/random_caller'
    for n in range(4):
        yield f'processes-{n}', 'run', ['--device-times=all' if n % 2 else '--stacks=8'], ['sh', '-c', ' & '.join(f'{caller} {100 + n * 8 + k} 2 60 c{k}' for k in range(2 + n)) + ' & wait']
    for n in range(6):
        yield f'killed-{n}', 'run', ['--stacks=off' if n % 2 else '--stacks=8'], ['sh', '-c', f'{caller} {200 + n} {1 + n % 3} 100000 c >/dev/null 2>&1 & sleep 0.{1 + n}; kill -KILL $!']
    yield 'quiet', 'run', [], ['true']
    yield 'failing', 'run', [], [caller]
    yield 'redacted', 'run', ['--redact'], [caller, '77', '2', '40', 'counts']
    yield 'poisoned', 'run', ['--poison'], [caller, '78', '2', '100', 'counts']
    yield 'zeroed', 'run', ['--zero', '--mode=relaxed', '--reroute=device,pinned,access,pool'], [caller, '79', '2', '100', 'counts']
    yield 'large', 'run', ['--device-times=copies'], [caller, '80', '4', '24000', 'counts']
    yield 'large-text', 'resolve', ['--stacks=6'], [f'{build}/examples/train_text']


def wastes(build):
    """Each victim of a rule, and its twin."""
    waster = f'{build}/tests/findings/waster'
    env = dict(os.environ, LD_LIBRARY_PATH=f'{build}/lib/sim')
    listed = subprocess.run([waster, 'list'], env=env, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    for i, line in enumerate(listed):
        name, *options = line.split()
        yield f'waste-{name}', ('resolve', 'run', 'spool' if i % 4 == 2 else 'run')[i % 3], ['--sim=2', f'--mode={MODES[i % 2]}', *options], [waster, name, 'waste']
        if i % 3 == 0:
            yield f'twin-{name}', 'run', ['--sim=2', '--mode=observe', *options], [waster, name, 'twin']
    for i, name in enumerate(('given-by-handle', 'look-at-pinned', 'refill', 'drain', 'copy-behind-work', 'refused-by-quota')):
        yield f'innocent-{name}', 'run', [f'--mode={MODES[i % 3]}'], [waster, 'innocent', name]


def run_to_end(command, env, quiet):
    """A program that waits for ever ends with what it started: its trace then is that of a killed one."""
    with subprocess.Popen(command, env=env, start_new_session=True, **quiet) as run:
        try:
            run.wait(HANGS)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)


def make(task):
    build, folder, name, how, options, command = task
    weir, path = f'{build}/bin/weir', os.path.join(folder, name)
    env = {k: v for k, v in os.environ.items() if not k.startswith('WEIR_')}
    for o in [o for o in options if isinstance(o, dict)]:
        env.update(o)
    options = [o for o in options if isinstance(o, str)]
    if not any(o.startswith('--sim') for o in options):
        options.append('--sim')
    with tempfile.TemporaryDirectory(prefix='make-traces-') as cwd:
        quiet = {'cwd': cwd, 'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
        env['WEIR_SPOOL_ROOT'] = cwd
        if how == 'spool':
            os.mkdir(f'{cwd}/spools')
            env.update(WEIR_SPOOL_DIR=f'{cwd}/spools', LD_PRELOAD=f'{build}/lib/libweir-preload.so', LD_LIBRARY_PATH=f'{build}/lib/sim', WEIR_SIM_DEVICES='2')
            run_to_end(command, env, quiet)
            for spool in glob.glob(f'{cwd}/spools/*.spool')[:1]:
                shutil.move(spool, path + '.spool')
            return name, os.path.exists(path + '.spool')
        if how == 'unfinished':
            with subprocess.Popen([weir, 'run', '--no-wait', '-o', f'{cwd}/t.db', *options, '--', 'sh', '-c', '"$@"; echo >done; exec sleep 60', 'sh', *command], env=env, start_new_session=True, **quiet) as run:
                while not os.path.exists(f'{cwd}/done') and run.poll() is None:
                    time.sleep(0.01)
                os.killpg(run.pid, signal.SIGKILL)
            for end in '', '-wal', '-shm':
                if os.path.exists(f'{cwd}/t.db{end}'):
                    shutil.move(f'{cwd}/t.db{end}', f'{path}.db{end}')
            return name, os.path.exists(path + '.db')
        run_to_end([weir, 'run', '--force', '-o', path + '.db', *options, '--', *command], env, quiet)
        if how == 'resolve':
            subprocess.run([weir, 'resolve', path + '.db'], check=False, **quiet)
    return name, os.path.exists(path + '.db')


def main():
    parser = argparse.ArgumentParser(description='Make traces of many kinds.')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--also')
    parser.add_argument('build')
    parser.add_argument('folder')
    o = parser.parse_args()
    o.build, o.folder = os.path.abspath(o.build), os.path.abspath(o.folder)
    listed = list(recipes(o.build))
    if o.also:
        with open(o.also, encoding='utf-8') as f:
            for words in (line.split() for line in f if line.strip()):
                at = words.index('--')
                listed.append((words[0], 'run', words[1:at], words[at + 1:]))
    chosen = listed if o.count >= len(listed) else [listed[i * len(listed) // o.count] for i in range(o.count)]
    os.makedirs(o.folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as pool:
        lost = [name for name, made in pool.map(make, [(o.build, o.folder, *r) for r in chosen]) if not made]
    print(f'{len(chosen) - len(lost)} traces' + (': none of ' + ', '.join(lost) if lost else ''))
    sys.exit(bool(lost))


main()

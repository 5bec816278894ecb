#!/usr/bin/env python3
"""porting_use.py LIBWEIR SOURCE: uses each row of tools/doc/porting.tsv. What a row names of Weir's must be called on what the
row's name is of in PyTorch: a method of Tensor takes a weir_tensor, one of Stream a weir_stream, a class makes one. Each
function is then called with good arguments (nulls.py), in a process of its own, and must succeed; each macro stands in a program
that is compiled and run. Prints what was not so, and how many rows there were."""
import importlib.util
import os
import signal
import subprocess
import sys

import nulls

# Of a method: what one argument must be. A name that ends with a dot is a beginning; the longest counts.
METHODS = {'Tensor.': 'weir_tensor *', 'Stream.': 'weir_stream *', 'Event.': 'weir_event *', 'CUDAGraph.': 'weir_graph *',
           'Module.': 'weir_module *', 'torch.nn.functional.': 'weir_tensor *', 'torch.linalg.': 'weir_tensor *',
           'torch.nn.utils.': 'weir_tensor **'}
# Of a class, or what opens a block: what its first argument must be.
CLASSES = {'torch.cuda.Stream': 'weir_stream **', 'torch.cuda.ExternalStream': 'weir_stream **', 'torch.cuda.Event': 'weir_event **',
           'torch.cuda.CUDAGraph': 'weir_graph **', 'torch.cuda.stream': 'weir_guard *', 'torch.cuda.device': 'weir_guard *',
           'torch.nn.Parameter': 'weir_module *', 'torch.nn.': 'weir_module **', 'torch.optim.lr_scheduler.': 'weir_schedule **',
           'torch.optim.': 'weir_optimizer **', 'torch.utils.data.DataLoader': 'weir_loader **', 'torch.save': 'char *'}
# In these sections whatever has no prefix of its own works on tensors.
OF_TENSORS = ('index and shape', 'elementwise', 'reductions', 'linear algebra', 'nn.functional')
NO_TENSOR = ('torch.tril_indices', 'torch.triu_indices')
MACROS = {
    'WEIR_NO_GRAD': 'WEIR_NO_GRAD { if (weir_is_grad_enabled()) return FAILED; } if (!weir_is_grad_enabled()) return FAILED;',
    'WEIR_WITH_STREAM': 'weir_stream *s, *before, *within = NULL, *after;'
                        ' if (weir_stream_create(&s, WEIR_CUDA) || weir_current_stream(&before, WEIR_CUDA)) return FAILED;'
                        ' WEIR_WITH_STREAM(s) (void)weir_current_stream(&within, WEIR_CUDA);'
                        ' if (weir_current_stream(&after, WEIR_CUDA) || within != s || after != before) return FAILED;',
    'WEIR_WITH_DEVICE': 'weir_device within = WEIR_CPU; WEIR_WITH_DEVICE(WEIR_CUDA_AT(0)) (void)weir_current_device(&within);'
                        ' if (weir_device_index(within) != 0) return FAILED;',
    'WEIR_AUTOCAST': 'weir_status st; bool within = false;'
                     ' WEIR_AUTOCAST(st, WEIR_DEVICE_CPU, WEIR_BFLOAT16) within = weir_is_autocast_enabled(WEIR_DEVICE_CPU);'
                     ' if (st || !within || weir_is_autocast_enabled(WEIR_DEVICE_CPU)) return FAILED;',
}


def table(source):
    """The script that makes the page, and its rows with their sections."""
    spec = importlib.util.spec_from_file_location('porting', os.path.join(source, 'tools/scripts/porting.py'))
    porting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(porting)
    os.chdir(source)
    rows, section = [], ''
    page = porting.Page()
    for row in porting.rows():
        if len(row) == 1:
            section = row[0]
        else:
            rows.append((section, row[0], page.functions(row[0], row[1])))
    return rows


def longest(prefixes, name):
    there = [p for p in prefixes if name == p or (p.endswith('.') and name.startswith(p))]
    return prefixes[max(there, key=len)] if there else None


def wrong_in(section, torch, function, types):
    """What the function must take and does not; None: it is right."""
    if section == 'torch.nn' and '.' not in torch:
        torch = 'torch.nn.' + torch
    method, made = longest(METHODS, torch), longest(CLASSES, torch)
    if not method and not made and section in OF_TENSORS and torch not in NO_TENSOR:
        method = 'weir_tensor *'
    if method and not any(t in (method, method[:-1] + '**') for t in types):
        return 'a %s' % method
    if made and not method and (not types or types[0] != made):
        return 'a %s first' % made
    return None


def use_macros(library, source, macros, bad):
    body = ''
    for number, macro in enumerate(macros):
        if macro not in MACROS:
            bad.append('%s: no use of it is known here' % macro)
            continue
        body += '#undef FAILED\n#define FAILED %d\n{ %s }\n' % (number + 1, MACROS[macro])
    program = '#include "core/weir.h"\nint main(void)\n{\n%sreturn 0;\n}\n' % body
    where = os.path.join(os.environ.get('SCRATCH', os.getcwd()), 'macros-%d' % os.getpid())
    built = subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-I' + source, '-x', 'c', '-', '-o', where, '-L' + os.path.dirname(library), '-lweir'],
                           input=program, text=True).returncode
    ended = built or subprocess.run([where], env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library) + ':' + os.environ.get('LD_LIBRARY_PATH', ''))).returncode
    if built or ended:
        bad.append('macros: %s' % ('they do not compile' if built else '%s ends with %d' % (macros[ended - 1] if ended > 0 else '?', ended)))
    if os.path.exists(where):
        os.remove(where)


def call_well(library, prototype):
    """Whether the function succeeds with good arguments."""
    pid = os.fork()
    if not pid:
        signal.alarm(600)  # ends what hangs
        os._exit(nulls.call(library, prototype, None))
    return os.waitpid(pid, 0)[1] == 0


def main():
    library, source = (os.path.abspath(a) for a in sys.argv[1:3])
    there = {p[1]: p for p in nulls.prototypes(source)}
    scratch, bad, called, macros, count = os.getcwd(), [], {}, [], 0
    rows = table(source)
    os.chdir(scratch)
    for section, torch, functions in rows:
        count += bool(functions)
        for f in functions:
            if f.startswith('WEIR_'):
                macros += [f] if f not in macros else []
                continue
            if f not in there:
                bad.append('%s: %s has no prototype that can be called' % (torch, f))
                continue
            wrong = wrong_in(section, torch, f, there[f][2])
            if wrong:
                bad.append('%s: %s takes no %s: it takes %s' % (torch, f, wrong[2:], ', '.join(there[f][2])))
            if f not in called:
                called[f] = f in nulls.NOT_GOOD or call_well(library, there[f])
            if not called[f]:
                bad.append('%s: %s fails with good arguments' % (torch, f))
    use_macros(library, source, macros, bad)
    print('\n'.join(bad + ['%d rows, %d functions, %d macros, %d bad' % (count, len(called), len(macros), len(bad))]))
    return len(bad) > 0


if __name__ == '__main__':
    sys.exit(main())

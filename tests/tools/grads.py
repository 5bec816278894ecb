#!/usr/bin/env python3
"""grads.py LIBWEIR SOURCE [FUNCTION]: calls every public function that takes tensors, with good arguments (nulls.py), once for
each of its tensors of floating point: that one alone requires a gradient. What the call makes of floating point must require
one, what it changes in place must have the change in its history, or the call must be refused: a result that silently
has no gradient is a fault. Prints the calls that were not so, and how many there were."""
import ctypes as C
import os
import re
import signal
import sys

from nulls import GOOD, OK, Device, Maker, Shape, State, prototypes

FLOATING = (6, 7, 8, 11)
# Functions whose results have no gradient, by a pattern of their names, and why.
WITHOUT = [
    ('\\w+_like|new_\\w+', 'of a tensor they have the shape alone'),
    ('detach', 'that is what it is for'),
    ('embedding_renorm_', 'a bound on what parameters are, under no_grad in torch, too'),
    ('histc', 'numbers of elements; torch gives it none either'),
]
# Results, by place, that are steps.
STEPS = {'weir_lu': (0,), 'weir_lu_unpack': (0,)}  # P, which is pivots
# Arguments, by place, that a result does not depend on, or by steps alone.
CONSTANT = {
    'weir_expand_as': (2,),  # its shape
    'weir_batch_norm': (2, 3), 'weir_instance_norm': (2, 3),  # running statistics, which are written
    'weir_cosine_embedding_loss': (3,), 'weir_hinge_embedding_loss': (2,),  # 1 or -1
    'weir_multihead_attention': (5,),  # the value, of the second result, which are weights
}


class Differentiable(Maker):
    """Tensors that nulls.py makes require a gradient while `wanted`; they are no leaves."""
    wanted = False

    def tensor(self, sizes=None):
        out = super().tensor(sizes)
        if not self.wanted:
            return out
        self.must(self.lib.weir_requires_grad_(out, True))
        return self.made(origin(self.function), out)

    def matrix(self):
        out = super().matrix()
        if not self.wanted:
            return out
        self.must(self.lib.weir_requires_grad_(out, True))
        return self.made(origin(self.function), out)


def origin(function):
    """What made the operands: no change in place makes the same node."""
    return 'weir_cos' if 'sin' in function else 'weir_sin'


def elements(argument, of):
    """The tensors of an argument."""
    if of == 'weir_tensor *':
        return [argument.value] if argument is not None and argument.value else []
    first = C.cast(argument, C.POINTER(C.c_void_p))[0] if argument is not None else None
    return [first] if first else []


def is_result(types, name, at):
    return types[at] == 'weir_tensor **' and at not in GOOD.get(name, ()) and all(t.endswith(('**', 'int *', 'int')) for t in types[:at])


def call(library, prototype, at):
    """In a child: 0: as it must be; 1: not; 2: the argument is none that could require a gradient."""
    result, name, types = prototype
    lib = C.CDLL(library)
    lib.weir_error_message.restype = C.c_char_p
    lib.weir_tensor_grad_fn.restype = C.c_char_p
    lib.weir_tensor_requires_grad.restype = C.c_bool
    make = Differentiable(lib, name)
    arguments = []
    for i, t in enumerate(types):
        make.wanted = i == at
        arguments.append(make.argument(t, i))
    make.wanted = False
    asked = elements(arguments[at], types[at])
    if not any(lib.weir_tensor_requires_grad(C.c_void_p(t)) for t in asked):
        return 2
    f = getattr(lib, name)
    f.restype = {'weir_shape': Shape, 'weir_generator_state': State, 'weir_device': Device}.get(result, C.c_int)
    before = [lib.weir_tensor_grad_fn(C.c_void_p(t)) for t in asked]
    status = f(*arguments)
    if result != 'weir_status':
        return 2
    if status != OK:
        said = lib.weir_error_message().decode()
        if re.search(r'^derivative for \w+ is not implemented$|derivative|in-place operation|in place|requires_grad|leaf', said):
            return 0
        print('%s: argument %d requires a gradient: status %d: %s' % (name, at + 1, status, said), flush=True)
        return 1
    made = [t for i in range(len(types)) if is_result(types, name, i) and i not in STEPS.get(name, ()) for t in elements(arguments[i], types[i])]
    made = [t for t in made if lib.weir_tensor_dtype(C.c_void_p(t)) in FLOATING]
    if any(not lib.weir_tensor_requires_grad(C.c_void_p(t)) for t in made):
        print('%s: argument %d requires a gradient: a result has none' % (name, at + 1), flush=True)
        return 1
    if not name.endswith('_'):
        return 0 if made else 2
    changed = next(i for i, t in enumerate(types) if t.startswith('weir_tensor *'))
    own = elements(arguments[changed], types[changed])
    if any(lib.weir_tensor_dtype(C.c_void_p(t)) in FLOATING and
           lib.weir_tensor_grad_fn(C.c_void_p(t)) in (before[0] if changed == at else b'', b'') for t in own):
        print('%s: argument %d requires a gradient: what is changed has no record of it' % (name, at + 1), flush=True)
        return 1
    return 0


def expected(name, at):
    return any(re.fullmatch('weir_(%s)' % pattern, name) for pattern, _ in WITHOUT) or at in CONSTANT.get(name, ())


def main():
    library, source = sys.argv[1:3]
    calls, bad = 0, 0
    _opened = C.CDLL(library)  # once, for all processes to come
    for p in prototypes(source):
        if len(sys.argv) > 3 and p[1] != sys.argv[3]:
            continue
        for at, t in enumerate(p[2]):
            if t not in ('weir_tensor *', 'weir_tensor **') or is_result(p[2], p[1], at) or expected(p[1], at):
                continue
            pid = os.fork()
            if not pid:
                signal.alarm(600)
                os._exit(call(library, p, at))
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                print('%s: argument %d requires a gradient: signal %d' % (p[1], at + 1, os.WTERMSIG(status)), flush=True)
            calls += status != 2 << 8
            bad += status not in (0, 2 << 8)
    print('%d calls, %d bad' % (calls, bad))
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""nulls.py LIBWEIR SOURCE [FUNCTION]: calls every public function with NULL for each of its pointers, one at a time, the
other arguments being good ones, each call in a process of its own. None may end by a signal, and a status that is not success must be EINVAL or ENOTSUP with a
sentence. Prints the calls that were not so, and how many there were. Prototypes are the headers' own, as the preprocessor
gives them."""
import ctypes as C
import os
import re
import signal
import subprocess
import sys

OK, EINVAL, ENOTSUP = 0, 1, 2


class Shape(C.Structure):
    _fields_ = [('count', C.c_int), ('size', C.c_int64 * 8)]


class Device(C.Structure):
    _fields_ = [('type', C.c_int), ('plus_1', C.c_int)]

    def __init__(self, type=0, index=-1):
        super().__init__(type, index + 1)

    @property
    def index(self):
        return self.plus_1 - 1


class Scalar(C.Structure):
    _fields_ = [('dtype', C.c_int), ('i', C.c_int64), ('f', C.c_double), ('imag', C.c_double)]


class Options(C.Structure):
    _fields_ = [('dtype', C.c_int), ('device', Device), ('flags', C.c_bool * 3)]


class State(C.Structure):
    _fields_ = [('seed', C.c_uint64), ('offset', C.c_uint64)]


# Their out is an array.
SEVERAL = ('weir_chunk', 'weir_split', 'weir_scatter', 'weir_replicate', 'weir_parallel_apply', 'weir_tensor_drop', 'weir_module_drop')
CPU, CUDA = Device(1, 0), Device(2, 0)
# What a tensor of a function must look like for its other checks to pass.
SHAPES = {'weir_conv2d': (1, 1, 2, 2), 'weir_max_pool2d': (1, 1, 2, 2), 'weir_bmm': (1, 2, 2), 'weir_dot': (2,), 'weir_item': ()}
VALUES = {'int': 1, 'unsigned': 1, '_Bool': False, 'int64_t': 1, 'uint64_t': 1, 'size_t': 64, 'ssize_t': 1, 'double': 1.0,
          'intptr_t': 1, 'weir_dtype': 7, 'weir_device_type': 1, 'weir_blas': 0, 'weir_status': 0}
CTYPES = {'int': C.c_int, 'unsigned': C.c_uint, '_Bool': C.c_bool, 'int64_t': C.c_int64, 'uint64_t': C.c_uint64,
          'size_t': C.c_size_t, 'ssize_t': C.c_ssize_t, 'double': C.c_double, 'intptr_t': C.c_ssize_t}
# NULL is good, and it is another argument of a call that cannot be made good here.
OTHERS = {('weir_from_dlpack', 2), ('weir_from_dlpack_unversioned', 2), ('weir_npy_read', 2), ('weir_safetensors_load', 2),
          ('weir_memory_last_oom', 0)}
SKIPPED = {('weir_memory_attach', 1)}  # NULL is good there, and its other argument a device


def prototypes(source):
    """[(result, name, [types])]; a type that is a function has the name 'function *'."""
    text = subprocess.run(['cc', '-E', '-P', '-I' + source, '-x', 'c', '-'], input='#include "core/weir.h"\n', text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    found = []
    for declaration in re.findall(r'__attribute__\(\(visibility\("default"\)\)\)([^;]*);', text):
        declaration = ' '.join(declaration.split())
        declaration = re.sub(r'__attribute__\(\(.*?\)\)\)? ?', '', declaration)
        m = re.match(r'(.*?[ *])(weir_\w+)\((.*)\)$', declaration)
        if not m or '...' in m.group(3):
            continue
        arguments = re.sub(r'\w+ \(\*\w+\)\([^)]*\)', 'function *f', m.group(3))
        types = []
        for argument in [] if arguments == 'void' else arguments.split(','):
            argument = re.sub(r'\[\w*\]', ' *', argument.strip())
            t = re.sub(r'\b(?!(?:int|unsigned|double|_Bool|void|char)\b)\w+( \*)?$', r'\1', argument).strip()
            types.append(re.sub(r'^const ', '', t.replace(' *', '*').replace('*', ' *').replace('* *', '**')).replace(' const', '').replace('* *', '**'))
        found.append((m.group(1).strip(), m.group(2), types))
    return found


class Maker:
    """Good arguments."""

    def __init__(self, lib, function):
        self.lib, self.function, self.keep = lib, function, []

    def tensor(self):
        sizes = SHAPES.get(self.function, (2, 2))
        out, values = C.c_void_p(), (C.c_float * 16)(*range(16))
        shape = Shape(len(sizes), (C.c_int64 * 8)(*sizes))
        if self.lib.weir_tensor_from(C.byref(out), values, 7, shape, None):
            raise SystemExit(self.lib.weir_error_message().decode())
        return out

    def made(self, name, *arguments):
        out = C.c_void_p()
        if getattr(self.lib, name)(C.byref(out), *arguments):
            raise SystemExit(self.lib.weir_error_message().decode())
        return out

    def handle(self, of):
        if of == 'weir_tensor *':
            return self.tensor()
        if of == 'weir_stream *':
            return self.made('weir_stream_create', CUDA)
        if of == 'weir_module *':
            return self.made('weir_module_relu')
        if of == 'weir_tensors *':
            return self.made('weir_tensors_create')
        if of == 'weir_event *':
            return self.made('weir_event_new', None)
        if of == 'weir_graph_pool *':
            return self.made('weir_graph_pool_create', CUDA)
        if of == 'weir_graph *':
            return self.made('weir_graph_new')
        if of == 'weir_generator *':
            return self.made('weir_generator_new', CPU)
        return None

    def argument(self, of):
        if of == 'weir_shape':
            return Shape(2, (C.c_int64 * 8)(2, 2))
        if of == 'weir_device':
            return CUDA if re.search('memory|pinned|stream|cuda|graph|peer|device', self.function) else CPU
        if of == 'weir_scalar':
            return Scalar(5, 1, 0, 0)
        if of == 'weir_generator_state':
            return State(1, 0)
        if of == 'char *':
            return C.c_char_p(b'x')
        if of == 'function *':
            self.keep.append(C.CFUNCTYPE(C.c_int)(lambda: 0))
            return self.keep[-1]
        if of in CTYPES:
            return CTYPES[of](VALUES[of])
        if not of.endswith('*'):
            return C.c_int(VALUES.get(of, 0))
        handle = self.handle(of)
        if handle is not None:
            return handle
        if of == 'weir_tensor **' or of == 'weir_tensor * *':
            room = (C.c_void_p * 8)(*([self.tensor().value] * 2) if self.function in ('weir_cat', 'weir_stack') else [])
        else:
            room = (C.c_char * 4096)(*b'\xa5' * (8 if of.endswith('**') else 0))
        self.keep.append(room)
        return C.cast(room, C.c_void_p)


def call(library, prototype, at):
    """In a child: the status, or what the function ended by."""
    result, name, types = prototype
    lib = C.CDLL(library)
    lib.weir_error_message.restype = C.c_char_p
    make = Maker(lib, name)
    arguments = [C.c_void_p(None) if i == at else make.argument(t) for i, t in enumerate(types)]
    f = getattr(lib, name)
    f.restype = {'weir_shape': Shape, 'weir_generator_state': State, 'weir_device': Device}.get(result, C.c_int)
    status = f(*arguments)
    if result != 'weir_status' or status == OK:
        return 0
    if (status not in (EINVAL, ENOTSUP) and (name, at) not in OTHERS) or not lib.weir_error_message():
        print('%s: argument %d NULL: status %d: %s' % (name, at + 1, status, lib.weir_error_message().decode()), flush=True)
        return 1
    if at and types[0] in ('weir_tensor **', 'weir_module **') and name not in SEVERAL:
        if C.cast(arguments[0], C.POINTER(C.c_void_p))[0]:
            print('%s: argument %d NULL: *out is not NULL after the failure' % (name, at + 1), flush=True)
            return 1
    return 0


def main():
    library, source = sys.argv[1:3]
    calls, bad = 0, 0
    for p in prototypes(source):
        if len(sys.argv) > 3 and p[1] != sys.argv[3]:
            continue
        for at, t in enumerate(p[2]):
            if not t.endswith('*') or (p[1], at) in SKIPPED:
                continue
            calls += 1
            pid = os.fork()
            if not pid:
                signal.alarm(20)
                os._exit(call(library, p, at))
            status = os.waitpid(pid, 0)[1]
            if os.WIFSIGNALED(status):
                print('%s: argument %d (%s) NULL: signal %d' % (p[1], at + 1, t, os.WTERMSIG(status)), flush=True)
            bad += status != 0
    print('%d calls of %d functions, %d bad' % (calls, len(prototypes(source)), bad))
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())

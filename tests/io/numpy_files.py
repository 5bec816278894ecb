#!/usr/bin/env python3
"""numpy_files.py LIBWEIR FOLDER: our files read by NumPy and, where it is there, by the safetensors package,
and theirs by us, through the library itself. Prints what it compared."""
import ctypes
import os
import sys

import numpy as np

weir = ctypes.CDLL(sys.argv[1])
os.chdir(sys.argv[2])
weir.weir_error_message.restype = ctypes.c_char_p
weir.weir_tensor_data.restype = ctypes.c_void_p
weir.weir_tensor_numel.restype = ctypes.c_int64
weir.weir_tensors_get.restype = ctypes.c_void_p
weir.weir_tensors_name.restype = ctypes.c_char_p
weir.weir_tensors_metadata.restype = ctypes.c_char_p
for name in ('weir_tensor_data', 'weir_tensor_numel', 'weir_tensor_release', 'weir_tensors_release'):
    getattr(weir, name).argtypes = [ctypes.c_void_p]
DTYPES = {'uint8': 1, 'int8': 2, 'int16': 3, 'int32': 4, 'int64': 5, 'float16': 6, 'float32': 7, 'float64': 8, 'complex64': 9, 'bool': 10}


class Shape(ctypes.Structure):
    _fields_ = [('count', ctypes.c_int), ('size', ctypes.c_int64 * 8)]


def must(status):
    if status:
        raise SystemExit(weir.weir_error_message().decode())


def shape_of(shape):
    return Shape(len(shape), (ctypes.c_int64 * 8)(*shape))


weir.weir_tensor_from.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, Shape, ctypes.c_void_p]
weir.weir_tensor_shape.restype = Shape
weir.weir_tensor_shape.argtypes = [ctypes.c_void_p]
weir.weir_tensor_dtype.argtypes = [ctypes.c_void_p]
weir.weir_tensor_read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
weir.weir_npy_write.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
weir.weir_npy_read.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
weir.weir_tensors_put.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
weir.weir_tensors_get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
weir.weir_tensors_set_metadata.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
weir.weir_safetensors_save.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
weir.weir_safetensors_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def to_weir(a):
    t, dense = ctypes.c_void_p(), np.ascontiguousarray(a).reshape(a.shape)
    must(weir.weir_tensor_from(ctypes.byref(t), dense.ctypes.data, DTYPES[a.dtype.name], shape_of(a.shape), None))
    return t


def from_weir(t):
    shape = weir.weir_tensor_shape(t)
    names = {v: k for k, v in DTYPES.items()}
    dtype = weir.weir_tensor_dtype(t)
    a = np.empty(tuple(shape.size[:shape.count]), names[dtype])
    must(weir.weir_tensor_read(a.ctypes.data, a.nbytes, dtype, t))
    return a


def same(a, b, what):
    if a.dtype.newbyteorder('=') != b.dtype or a.shape != b.shape or np.ascontiguousarray(a).astype(b.dtype).tobytes() != b.tobytes():
        raise SystemExit('%s differs:\n%r\n%r' % (what, a, b))


rng = np.random.default_rng(7)
shapes = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2)]
arrays = {}
for name in DTYPES:
    for shape in shapes:
        a = np.asarray(rng.integers(0, 2 if name == 'bool' else 100, size=shape)).astype(name)
        arrays['%s%s' % (name, 'x'.join(map(str, shape)))] = a

npy = 0
for key, a in arrays.items():
    t = to_weir(a)
    must(weir.weir_npy_write(b'ours.npy', t))
    weir.weir_tensor_release(t)
    same(np.load('ours.npy', allow_pickle=False), a, 'our ' + key)
    for other in (a, np.asfortranarray(a), a.astype(a.dtype.newbyteorder('>')), a.T, a[::2] if a.ndim else a):
        for version in (None, (2, 0), (3, 0)):
            with open('theirs.npy', 'wb') as f:
                np.lib.format.write_array(f, other, version=version, allow_pickle=False)
            t = ctypes.c_void_p()
            must(weir.weir_npy_read(ctypes.byref(t), b'theirs.npy', None))
            same(other, from_weir(t), 'their ' + key)
            weir.weir_tensor_release(t)
            npy += 1
print('npy: %d of ours, %d of theirs' % (len(arrays), npy))

try:
    from safetensors.numpy import load_file, save_file
    from safetensors import safe_open
except ImportError:
    print('safetensors: not installed')
    sys.exit()

usable = {k: a for k, a in arrays.items() if a.dtype != np.complex64}
everything = ctypes.c_void_p()
must(weir.weir_tensors_create(ctypes.byref(everything)))
for key, a in usable.items():
    t = to_weir(a)
    must(weir.weir_tensors_put(everything, key.encode(), t))
    weir.weir_tensor_release(t)
must(weir.weir_tensors_set_metadata(everything, 'é "key"\n'.encode(), 'text \U0001f600'.encode()))
must(weir.weir_safetensors_save(b'ours.safetensors', everything))
weir.weir_tensors_release(everything)
theirs = load_file('ours.safetensors')
if sorted(theirs) != sorted(usable):
    raise SystemExit('names differ')
for key, a in usable.items():
    same(theirs[key], a, 'our ' + key)
with safe_open('ours.safetensors', 'np') as f:
    if f.metadata() != {'é "key"\n': 'text \U0001f600'}:
        raise SystemExit('metadata differs: %r' % f.metadata())
save_file(usable, 'theirs.safetensors', metadata={'a': 'ü'})
back = ctypes.c_void_p()
must(weir.weir_safetensors_load(ctypes.byref(back), b'theirs.safetensors', None))
for key, a in usable.items():
    same(a, from_weir(weir.weir_tensors_get(back, key.encode())), 'their ' + key)
print('safetensors: %d tensors both ways' % len(usable))

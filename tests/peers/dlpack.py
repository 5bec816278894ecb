#!/usr/bin/env python3
"""dlpack.py LIBWEIR: tensors between Weir, NumPy and PyTorch's CPU side by DLPack, in capsules as Python's
__dlpack__ has them: the same memory, the same values, every deleter called once."""
import ctypes
import gc
import sys

import numpy as np
import torch

weir = ctypes.CDLL(sys.argv[1])
python = ctypes.pythonapi
P, S = ctypes.c_void_p, ctypes.c_char_p
weir.weir_error_message.restype = S
weir.weir_tensor_data.restype = P
for name in ('weir_tensor_data', 'weir_tensor_release', 'weir_tensor_is_contiguous'):
    getattr(weir, name).argtypes = [P]
for name in ('weir_to_dlpack', 'weir_to_dlpack_unversioned', 'weir_from_dlpack', 'weir_from_dlpack_unversioned'):
    getattr(weir, name).argtypes = [P, P, P]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [P, S, P]
python.PyCapsule_GetPointer.restype = P
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, S]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, S]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, S]
VERSIONED, PLAIN = b'dltensor_versioned', b'dltensor'
USED = {VERSIONED: b'used_dltensor_versioned', PLAIN: b'used_dltensor'}


class DlOptions(ctypes.Structure):
    _fields_ = [('stream', ctypes.c_ssize_t), ('copy', ctypes.c_bool), ('read_only', ctypes.c_bool)]


class Shape(ctypes.Structure):
    _fields_ = [('count', ctypes.c_int), ('size', ctypes.c_int64 * 8)]


weir.weir_tensor_from.argtypes = [P, P, ctypes.c_int, Shape, P]
weir.weir_tensor_read.argtypes = [P, ctypes.c_size_t, ctypes.c_int, P]
weir.weir_t.argtypes = [P, P]


def must(status):
    if status:
        raise SystemExit(weir.weir_error_message().decode())


class Ours:
    """A tensor of Weir's that other libraries may take by __dlpack__."""

    def __init__(self, handle, versioned=True):
        self.handle, self.versioned = handle, versioned

    def __del__(self):
        weir.weir_tensor_release(self.handle)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        d = P()
        versioned = self.versioned and max_version and max_version[0] >= 1
        options = DlOptions(0 if stream is None else stream, bool(copy), False)
        must((weir.weir_to_dlpack if versioned else weir.weir_to_dlpack_unversioned)(ctypes.byref(d), self.handle, ctypes.byref(options)))
        return python.PyCapsule_New(d, VERSIONED if versioned else PLAIN, None)


def make(a, dtype, versioned=True):
    t = P()
    must(weir.weir_tensor_from(ctypes.byref(t), a.ctypes.data, dtype, Shape(a.ndim, (ctypes.c_int64 * 8)(*a.shape)), None))
    return Ours(t, versioned)


def take(capsule, options=None):
    name = VERSIONED if python.PyCapsule_IsValid(capsule, VERSIONED) else PLAIN
    t = P()
    d = P(python.PyCapsule_GetPointer(capsule, name))
    must((weir.weir_from_dlpack if name == VERSIONED else weir.weir_from_dlpack_unversioned)(
        ctypes.byref(t), d, ctypes.byref(options) if options else None))
    python.PyCapsule_SetName(capsule, USED[name])
    return Ours(t), name


def check(what, good):
    if not good:
        raise SystemExit('dlpack: %s does not hold' % what)


DTYPES = {'uint8': 1, 'int8': 2, 'int16': 3, 'int32': 4, 'int64': 5, 'float16': 6, 'float32': 7, 'float64': 8, 'complex64': 9, 'bool': 10}
taken = 0
for name, dtype in DTYPES.items():
    a = (np.arange(6) % 2 if name == 'bool' else np.arange(6)).astype(name).reshape(2, 3)
    for versioned in (True, False):
        ours = make(a, dtype, versioned)
        n, t = np.from_dlpack(ours), torch.from_dlpack(ours)
        check(name + ' to numpy', n.dtype == a.dtype and n.tobytes() == a.tobytes() and n.ctypes.data == weir.weir_tensor_data(ours.handle))
        check(name + ' to torch', str(t.dtype) == 'torch.' + name and t.data_ptr() == n.ctypes.data and t.numpy().tobytes() == a.tobytes())
        view = P()
        must(weir.weir_t(ctypes.byref(view), ours.handle))
        check(name + ' transposed', np.from_dlpack(Ours(view, versioned)).tolist() == a.T.tolist())
        del ours
        gc.collect()
        check(name + ' stays', n.tobytes() == a.tobytes())
        for theirs in (np.ascontiguousarray(a), a.T, torch.from_numpy(a.copy()), torch.from_numpy(a.copy()).t()):
            asked = {'max_version': (1, 1)} if versioned else {}
            mine, kind = take(theirs.__dlpack__(**asked))
            where = theirs.ctypes.data if isinstance(theirs, np.ndarray) else theirs.data_ptr()
            check(name + ' shares', weir.weir_tensor_data(mine.handle) == where)
            out = np.empty(6, a.dtype)
            must(weir.weir_tensor_read(out.ctypes.data, out.nbytes, dtype, mine.handle))
            flat = np.ascontiguousarray(theirs if isinstance(theirs, np.ndarray) else theirs.numpy()).reshape(-1)
            check(name + ' values', out.tobytes() == flat.tobytes())
            taken += kind == VERSIONED

bf = torch.arange(4, dtype=torch.bfloat16)
mine, _ = take(bf.__dlpack__(max_version=(1, 1)))
check('bfloat16 both ways', torch.equal(torch.from_dlpack(mine), bf))

frozen = np.arange(3.0)
frozen.flags.writeable = False
capsule = frozen.__dlpack__(max_version=(1, 1))
t = P()
status = weir.weir_from_dlpack(ctypes.byref(t), P(python.PyCapsule_GetPointer(capsule, VERSIONED)), None)
check('read-only is refused', status == 1 and b'read-only' in weir.weir_error_message())
copy, _ = take(capsule, DlOptions(0, True, False))
check('a copy of read-only', weir.weir_tensor_data(copy.handle) != frozen.ctypes.data and np.from_dlpack(copy).tolist() == [0, 1, 2])

theirs = np.arange(10.0)
counts = sys.getrefcount(theirs)
mine, _ = take(theirs.__dlpack__(max_version=(1, 1)))
check('we hold theirs', sys.getrefcount(theirs) > counts)
del mine
gc.collect()
check('we give theirs back', sys.getrefcount(theirs) == counts)
print('dlpack: %d dtypes both ways with numpy %s and torch %s, %d versioned' % (len(DTYPES) + 1, np.__version__, torch.__version__, taken))

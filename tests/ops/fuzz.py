#!/usr/bin/env python3
"""fuzz.py LIBWEIR [--device cpu|cuda] [--cases N] [--seed S] [--case I]: random operations beside NumPy.

Each case draws an operation, dtypes, shapes that broadcast, and tensors that are turned, stepped, cut and repeated views
of larger ones; the library calculates, and NumPy does in a wider dtype (long double, complex128, int64). What NumPy
promotes to is not asked: dtypes of results are PyTorch's documented rules, written once more below. After an operation in
place all of the memory behind the view is looked at. A case that differs prints its number and how to run it alone.

Bounds. ulp: a unit in the last place of the result's dtype at the reference. n: elements that are combined.
  copies, casts, integers, bool, comparisons, extremes, places   equal
  + - * / sqrt neg abs of floating point                         1 ulp (they are rounded once: half would be exact)
  exp log sin cos tanh sigmoid rsqrt pow and of complex          a few (ULPS), of complex ones of the magnitude
  a + alpha b                                                    1 ulp at the largest of a, alpha b and the result
  sum, mean   1 ulp + 2 log2(n) eps sum |x|; prod   1 ulp + n eps |result|; eps: of float32 for float16 and bfloat16
  softmax     8 ulp + 2 log2(n) eps; its logarithm the same at the largest |x - max|
  products, convolution   1 ulp + (n + 2) eps (|a| |b|): the bound of any order of summation (Higham, Accuracy and
              Stability of Numerical Algorithms, 3.5); linear of float16 and bfloat16: an ulp of the product more
"""
import argparse
import ctypes as C
import itertools
import math
import sys
import warnings
from fractions import Fraction

import numpy as np

warnings.filterwarnings('ignore')
np.seterr(all='ignore')
LONG = np.longdouble

# ---- dtypes -----------------------------------------------------------------------------------

NUMBER = {'uint8': 1, 'int8': 2, 'int16': 3, 'int32': 4, 'int64': 5, 'float16': 6, 'float32': 7, 'float64': 8,
          'complex64': 9, 'bool': 10, 'bfloat16': 11}
NAME = {v: k for k, v in NUMBER.items()}
DTYPES = list(NUMBER)
INTS = ['uint8', 'int8', 'int16', 'int32', 'int64']
FLOATS = ['float16', 'bfloat16', 'float32', 'float64']
NARROW = ('float16', 'bfloat16')
# digits after the point, least exponent, largest number
FORMAT = {'float16': (10, -14, 65504.0), 'bfloat16': (7, -126, 2.0**128 - 2.0**120), 'float32': (23, -126, 2.0**128 - 2.0**104),
          'float64': (52, -1022, sys.float_info.max)}


def kind(d):
    return 0 if d == 'bool' else 1 if d in INTS else 2 if d in FLOATS else 3


class Refused(Exception):
    """What the library must refuse."""


def promote(a, b):
    """torch.promote_types, by the rules of its documentation."""
    if a == b or b is None:
        return a
    if a is None:
        return b
    if kind(a) != kind(b):
        low, high = sorted((a, b), key=kind)
        if high == 'complex64' and low == 'float64':
            raise Refused('complex128')
        return high
    if kind(a) == 1:
        signed = max((d for d in (a, b) if d != 'uint8'), key=INTS.index)
        return 'int16' if 'uint8' in (a, b) and signed == 'int8' else signed
    if {a, b} == set(NARROW):
        return 'float32'
    return max(a, b, key=FLOATS.index)


def number_dtype(v, default='float32'):
    return 'bool' if isinstance(v, bool) else 'int64' if isinstance(v, int) else default if isinstance(v, float) else 'complex64'


def beside(higher, lower):
    """A category beside one that matters only by its kind."""
    if higher is None or lower is None:
        return higher or lower
    if kind(lower) <= kind(higher):
        return higher
    if kind(higher) == 2 and kind(lower) == 3:  # toComplexType
        if higher != 'float32':
            raise Refused('complex32 or complex128')
        return 'complex64'
    return promote(higher, lower)


def result_type(*operands):
    """torch.result_type: tensors with dimensions, without, numbers."""
    of = [None, None, None]
    for o in operands:
        at = 2 if not isinstance(o, T) else 0 if o.a.ndim else 1
        of[at] = promote(of[at], o.dtype if isinstance(o, T) else number_dtype(o))
    return beside(beside(of[0], of[1]), of[2])


def bfloat16_bits(f):
    """float32 to nearest even."""
    u = np.ascontiguousarray(f, np.float32).view(np.uint32).astype(np.uint64)
    r = (u + 0x7fff + (u >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(f), 0x7fc0 | (u >> np.uint64(16) & np.uint64(0x8000)), r).astype(np.uint16).reshape(np.shape(f))


def bfloat16_values(bits):
    return (np.ascontiguousarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(np.shape(bits))


def whole(a):
    """Floating point to int64: cut; what is no int64 is the most negative one."""
    a = np.asarray(a, LONG)
    good = (a > -2.0**63) & (a < 2.0**63)
    return np.where(good, np.where(good, a, 0).astype(np.int64), np.int64(-2**63))


def wide_of(d):
    return {0: np.bool_, 1: np.int64, 2: LONG, 3: np.complex128}[kind(d)]


def cast(a, d):
    """Elements (wide) converted to dtype d, wide again. To the narrow ones by way of float32, as documented."""
    a = np.asarray(a)
    if d == 'bool':
        return a != 0
    if d == 'complex64':
        return a.astype(np.complex64).astype(np.complex128)
    if a.dtype.kind == 'c':
        a = a.real
    if kind(d) == 1:
        return (whole(a) if a.dtype.kind == 'f' else a).astype(d).astype(np.int64)
    if d in NARROW:
        a = a.astype(np.float32)
        return bfloat16_values(bfloat16_bits(a)).astype(LONG) if d == 'bfloat16' else a.astype(np.float16).astype(LONG)
    return a.astype(d).astype(LONG)


def encode(a, d):
    """Wide elements that d holds, as they lie in memory."""
    return bfloat16_bits(a.astype(np.float32)) if d == 'bfloat16' else np.ascontiguousarray(a.astype(d)).reshape(a.shape)


def decode(raw, d):
    return (bfloat16_values(raw) if d == 'bfloat16' else raw).astype(wide_of(d))


# ---- the library ------------------------------------------------------------------------------

class Shape(C.Structure):
    _fields_ = [('count', C.c_int), ('size', C.c_int64 * 8)]


class Device(C.Structure):
    _fields_ = [('type', C.c_int), ('plus_1', C.c_int)]

    def __init__(self, type=0, index=-1):
        super().__init__(type, index + 1)

    @property
    def index(self):
        return self.plus_1 - 1


class Options(C.Structure):
    _fields_ = [('dtype', C.c_int), ('device', Device), ('pin_memory', C.c_bool), ('non_blocking', C.c_bool), ('copy', C.c_bool)]


class Scalar(C.Structure):
    _fields_ = [('dtype', C.c_int), ('i', C.c_int64), ('f', C.c_double), ('imag', C.c_double)]


class Conv(C.Structure):
    _fields_ = [('stride', C.c_int64 * 2), ('padding', C.c_int64 * 2), ('dilation', C.c_int64 * 2), ('groups', C.c_int64)]


class Pool(C.Structure):
    _fields_ = [(n, C.c_int64 * 2) for n in ('kernel', 'stride', 'padding', 'dilation')]


def shape(sizes):
    return Shape(len(sizes), (C.c_int64 * 8)(*sizes))


def scalar(v):
    if isinstance(v, (bool, int)):
        return Scalar(10 if isinstance(v, bool) else 5, int(v), 0, 0)
    return Scalar(9, 0, v.real, v.imag) if isinstance(v, complex) else Scalar(8, 0, v, 0)


class Failed(Exception):
    """The library refused."""


class Weir:
    def __init__(self, path, device):
        self.lib = C.CDLL(path)
        self.device, self.cuda = Device(2 if device == 'cuda' else 1, 0), device == 'cuda'
        self.lib.weir_error_message.restype = C.c_char_p
        self.lib.weir_tensor_shape.restype = Shape
        self.lib.weir_tensor_device.restype = Device
        self.lib.weir_tensor_numel.restype = C.c_int64
        self.live = []

    def check(self, status):
        if status:
            raise Failed(self.lib.weir_error_message().decode())

    def call(self, name, *arguments):
        self.check(getattr(self.lib, 'weir_' + name)(*arguments))

    def new(self, name, *arguments):
        out = C.c_void_p()
        self.call(name, C.byref(out), *arguments)
        self.live.append(out)
        return out

    def of(self, a, d):
        raw = encode(a, d)
        return self.new('tensor_from', C.c_void_p(raw.ctypes.data), NUMBER[d], shape(a.shape), C.byref(Options(0, self.device)))

    def dtype(self, w):
        return NAME[self.lib.weir_tensor_dtype(w)]

    def read(self, w):
        s, d = self.lib.weir_tensor_shape(w), self.dtype(w)
        raw = np.empty(tuple(s.size[:s.count]), 'uint16' if d == 'bfloat16' else d)
        self.call('tensor_read', C.c_void_p(raw.ctypes.data), C.c_size_t(raw.nbytes), NUMBER[d], w)
        return decode(raw, d)

    def forget(self):
        while self.live:
            self.lib.weir_tensor_release(self.live.pop())


class T:
    """One tensor twice: w, the library's, and a, the same elements, wide. base_w is what w is a view of, and `others` are
    the base's elements that are not w's."""

    def __init__(self, w, a, dtype, base_w=None, base_a=None, others=None):
        self.w, self.a, self.dtype, self.base_w, self.base_a, self.others = w, a, dtype, base_w, base_a, others


# ---- judging ----------------------------------------------------------------------------------

class Differs(Exception):
    pass


def ulp(x, d):
    digits, least, _ = FORMAT[d]
    x = np.where(np.isfinite(x), np.abs(x), 0).astype(LONG)
    exponent = np.maximum(np.frexp(np.where(x == 0, LONG(2.0)**least, x))[1] - 1, least)
    return np.ldexp(LONG(1), exponent - digits)


def eps(d):
    """Of what is calculated in."""
    return LONG(2.0)**-(52 if d == 'float64' else 23)


def judge(what, got, dtype, ref, ulps=0.0, slack=0.0, sign=False, free=False):
    """got is ref (wide, not yet rounded) to `ulps` of dtype and an absolute `slack`; anything where `free`."""
    if got.shape != ref.shape:
        raise Differs('%s: shape %s, not %s' % (what, got.shape, ref.shape))
    if kind(dtype) < 2:
        bad = got != cast(ref, dtype)
    elif kind(dtype) == 3:
        ref = ref.astype(np.complex128)
        near = np.abs(got - ref) <= ulps * 2.0**-23 * np.abs(ref) + slack + 1e-44
        bad = ~(near | (got == cast(ref, dtype)) | (np.isnan(got) & np.isnan(ref)))
    else:
        ref = ref.astype(LONG)
        room = ulps * ulp(ref, dtype) + slack
        top = LONG(FORMAT[dtype][2])
        beyond = np.isinf(got) & (np.sign(got) == np.sign(ref)) & (np.abs(ref) + room >= top)
        near = np.isfinite(got) & (np.abs(got - ref) <= room)
        bad = ~((got == cast(ref, dtype)) | near | beyond | (np.isnan(got) & np.isnan(ref)))
        if sign:
            bad |= ~np.isnan(got) & (np.signbit(got) != np.signbit(ref)) & ((got == 0) | (ref == 0))
    bad &= ~np.asarray(free)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise Differs('%s: %s element %s is %r, not %r (%d of %d)' % (what, dtype, list(at), got[at], ref[at], bad.sum(), bad.size))


# ---- one case ---------------------------------------------------------------------------------

UNARY = 'neg abs relu exp log sqrt rsqrt sin cos tanh sigmoid logical_not isfinite'.split()
SMOOTH = 'exp log sqrt rsqrt sin cos tanh sigmoid'.split()
COMPARE = 'eq ne lt le gt ge'.split()
TRUTH = COMPARE + ['logical_and', 'logical_or', 'logical_not', 'isfinite']
BINARY = 'add sub mul div floor_divide pow maximum minimum'.split() + COMPARE + ['logical_and', 'logical_or']
REAL_ONLY = ['relu', 'floor_divide', 'maximum', 'minimum', 'lt', 'le', 'gt', 'ge']
NO_BOOL = ['neg', 'abs', 'relu', 'floor_divide', 'pow', 'sub']
SIGNED = ['neg', 'abs', 'mul', 'div', 'sqrt', 'sin', 'tanh']
# Units in the last place that are allowed: of the cpu, and of a device, whose functions are CUDA's (its documentation:
# at most 2 for these in float32; a sigmoid and 1 / sqrt are made of two).
ULPS = {'exp': 2, 'log': 2, 'sin': 2, 'cos': 2, 'tanh': 2, 'sigmoid': 4, 'rsqrt': 2, 'pow': 4, 'sqrt': 1, 'floor_divide': 1}
COMPLEX_ULPS = {'add': 2, 'sub': 2, 'mul': 4, 'neg': 0}


def floor_exact(x, y):
    """Of two floating-point numbers, as Python's // with an exact quotient."""
    if y == 0 or x != x or y != y or math.isinf(x):
        return x / y if y == 0 else LONG(math.nan)
    if math.isinf(y):
        return LONG(0 if x == 0 or (x < 0) == (y < 0) else -1)
    return LONG(int(math.floor(Fraction(float(x)) / Fraction(float(y)))))


def int_power(x, y):
    if y < 0:
        return 1 if x == 1 else (-1 if y & 1 else 1) if x == -1 else 0
    return (pow(int(x), int(y), 2**64) + 2**63) % 2**64 - 2**63


def unary_value(name, x):
    one = x.dtype.type(1)
    if name == 'relu':
        return np.where(x <= 0, x.dtype.type(0), x)
    if name == 'rsqrt':
        return one / np.sqrt(x)
    if name == 'sigmoid':
        return one / (one + np.exp(-x))
    f = {'neg': np.negative, 'abs': np.abs, 'logical_not': lambda v: v == 0}.get(name) or getattr(np, name)
    return np.asarray(f(x))


def binary_value(name, x, y):
    if name == 'floor_divide':
        if x.dtype.kind == 'f':
            return np.vectorize(floor_exact, otypes=[LONG])(x, y)
        return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y)))
    if name == 'pow':
        return np.vectorize(int_power, otypes=[np.int64])(x, y) if x.dtype.kind == 'i' else np.power(x, y)
    f = {'add': np.add, 'sub': np.subtract, 'mul': np.multiply, 'div': np.divide, 'eq': np.equal, 'ne': np.not_equal,
         'lt': np.less, 'le': np.less_equal, 'gt': np.greater, 'ge': np.greater_equal}.get(name) or getattr(np, name)
    return np.asarray(f(x, y))


class Case:
    def __init__(self, weir, seed, number):
        self.w, self.r = weir, np.random.default_rng([seed, number])
        self.large = self.r.random() < .01

    def choice(self, of):
        return of[int(self.r.integers(len(of)))]

    def chance(self, p):
        return self.r.random() < p

    # ---- operands

    def values(self, sizes, d, tame=False):
        r, k = self.r, kind(d)
        if k == 0:
            return r.random(sizes) < .5
        if k == 1:
            low, high = np.iinfo(d).min, np.iinfo(d).max
            a = r.integers(max(low, -6), 7, sizes)
            if not tame and self.chance(.3):
                a = np.where(r.random(sizes) < .5, a, r.integers(low, high, sizes, endpoint=True))
            return np.asarray(a, np.int64)
        if k == 3:
            return cast(r.uniform(-1.2, 1.2, sizes) + 1j * r.uniform(-1.2, 1.2, sizes), d)
        a = r.normal(size=sizes) if self.chance(.5) else r.integers(-8, 9, sizes) / 2
        if not tame:
            a = np.asarray(a * self.choice([1., 1., 1., .01, 30., 1e4]))
            if self.chance(.3):
                odd = np.array([0., -0., np.inf, -np.inf, np.nan, FORMAT[d][2], -FORMAT[d][2], 2.0**FORMAT[d][1], 1e-40, 1, -1])
                a = np.where(r.random(sizes) < .7, a, odd[r.integers(len(odd), size=sizes)])
        return cast(a, d)

    def sizes(self, most=4):
        if self.large:
            return [self.choice([1, 2, 3, 7]), int(self.r.integers(100, 400)), self.choice([64, 100, 257])]
        if most == 4 and self.chance(.06):  # as many as there can be
            return [self.choice([1, 2, 2, 3]) for _ in range(int(self.r.integers(5, 9)))]
        return [self.choice([0, 1, 1, 2, 3, 4, 5, 9, 17]) if self.chance(.9) else 33 for _ in range(int(self.r.integers(most + 1)))]

    def like(self, sizes):
        """Sizes that broadcast with these."""
        s = [v if self.chance(.8) else 1 for v in sizes[self.choice([0, 0, 0, len(sizes) // 2]):]]
        return [self.choice([1, 2])] + s if self.chance(.1) and len(s) == len(sizes) and len(s) < 5 else s

    def tensor(self, sizes, d, tame=False, expand=True):
        """A view with these sizes: turned, cut, stepped, repeated."""
        w, order = self.w, list(range(len(sizes)))
        repeat = [expand and self.chance(.06) for _ in sizes]
        real = [1 if again else v for v, again in zip(sizes, repeat)]
        if self.chance(.3):
            self.r.shuffle(order)
        cuts = [(int(self.r.integers(3)), self.choice([1, 1, 2, 3])) if self.chance(.2) else (0, 1) for _ in order]
        base = [(real[o] - 1) * step + 1 + start + int(self.r.integers(2)) * (start > 0) if real[o] else 0
                for o, (start, step) in zip(order, cuts)]
        base_a = np.array(self.values(base, d, tame))
        base_w = t = w.of(base_a, d)
        a, others = base_a, np.ones(base, bool)
        inside = others
        for at, (start, step) in enumerate(cuts):
            if (start, step) != (0, 1) and base[at]:
                end = start + (real[order[at]] - 1) * step + 1
                t = w.new('slice', t, at, C.c_int64(start), C.c_int64(end), C.c_int64(step))
                a, inside = (v[(slice(None),) * at + (slice(start, end, step),)] for v in (a, inside))
        if order != sorted(order):
            back = [order.index(i) for i in range(len(order))]
            t, a = w.new('permute', t, (C.c_int * 8)(*back)), a.transpose(back)
        if any(repeat):
            t, a = w.new('expand', t, shape(sizes)), np.broadcast_to(a, sizes)
        inside[...] = False
        return T(t, a, d, base_w, base_a, others)

    def dtypes(self, of=None):
        a = self.choice(of or DTYPES)
        return a, a if self.chance(.6) else self.choice(of or DTYPES)

    def number(self, d):
        return self.choice([0, 1, 2, 3, 0.5, 2.0, True, 100] + ([] if d == 'uint8' or d == 'bool' else [-1, -2, -1.5]) + [1 + .5j])

    # ---- calling

    def expect(self, what, names, refused, run):
        """run() gives tensors, or the library refuses, as `refused` says."""
        try:
            out = run()
        except Failed as e:
            if refused:
                return None
            raise Differs('%s: refused: %s' % (what, e)) from e
        if refused:
            raise Differs('%s: not refused (%s)' % (what, refused))
        for t, dtype in zip(out, names):
            if self.w.dtype(t) != dtype:
                raise Differs('%s: a result of %s, not %s' % (what, self.w.dtype(t), dtype))
            d = self.w.lib.weir_tensor_device(t)
            if (d.type, d.index) != (self.w.device.type, 0 if self.w.cuda else -1):
                raise Differs('%s: a result elsewhere' % what)
        return [self.w.read(t) for t in out]

    def text(self, t):
        return '%s%s' % (t.dtype, list(t.a.shape)) if isinstance(t, T) else repr(t)

    def in_place(self, what, self_t, refused, run, value, **bounds):
        """run() changes self_t, a part of its base, and nothing else of it."""
        done = self.expect(what, [], refused, lambda: run() or [])
        judge(what + ' (untouched memory)', self.w.read(self_t.base_w), self_t.dtype, self_t.base_a,
              free=done is not None and ~self_t.others)
        if done is not None:
            after = self.w.read(self_t.w)
            judge(what, after, self_t.dtype, np.broadcast_to(value, after.shape), **bounds)

    # ---- elementwise

    def elementwise(self, name, operands, alpha=None):
        """The common dtype, the result's dtype and elements, what is refused, and bounds."""
        try:
            common = result_type(*operands)
        except Refused as e:
            return dict(common='float32', dtype='float32', ref=None, refused=str(e), bounds={})
        refused, dtype = self.refusal(name, common, operands, alpha), common
        if (name in SMOOTH or name == 'div') and kind(common) < 2:
            common = dtype = 'float32'
        if name in TRUTH:
            dtype = 'bool'
        if name == 'abs' and common == 'complex64':
            dtype = 'float32'
        if refused:
            return dict(common=common, dtype=dtype, ref=None, refused=refused, bounds={})
        x = [cast(o.a if isinstance(o, T) else wide_number(o), common) for o in operands]
        return dict(common=common, dtype=dtype, refused=None, **self.value(name, common, dtype, x, alpha))

    def refusal(self, name, common, operands, alpha):
        if common == 'complex64' and name in REAL_ONLY:
            return 'complex'
        if common == 'bool' and name in NO_BOOL:
            return 'bool'
        of = [o.dtype if isinstance(o, T) else number_dtype(o) for o in operands]
        if name == 'sub' and 'bool' in of:
            return 'bool'
        if name in ('maximum', 'minimum') and 'complex64' in of:
            return 'complex'
        if alpha is not None and kind(number_dtype(alpha)) > max(kind(common), 1):
            return 'alpha'
        if name == 'pow' and kind(common) == 1 and not isinstance(operands[1], T) and operands[1] < 0:
            return 'negative power'
        if name == 'floor_divide' and kind(common) == 1 and not self.w.cuda:
            sizes = np.broadcast_shapes(*(np.shape(o.a) if isinstance(o, T) else () for o in operands))
            y = operands[1].a if isinstance(operands[1], T) else operands[1]
            if math.prod(sizes) and not np.all(y):
                return 'ZeroDivisionError'
        return None

    def value(self, name, common, dtype, x, alpha):
        slack, free = 0.0, False
        if alpha is not None:
            y = x[1] * (wide_of(common)(alpha) if common != 'bool' else bool(alpha))
            ref = binary_value(name, x[0], y)
            if kind(common) == 2:
                slack = np.fmax(ulp(x[0], dtype), ulp(cast(y, dtype), dtype))
            elif kind(common) == 3:
                slack = 4e-7 * (np.abs(x[0]) + np.abs(y))
        elif len(x) == 1:
            ref = unary_value(name, x[0])
        else:
            ref = binary_value(name, x[0], x[1])
        if common == 'complex64' and dtype != 'bool':
            ulps = COMPLEX_ULPS.get(name, 2)
            if name in ('pow', 'div'):  # of complex 0: torch's own devices differ
                free = (x[1] if name == 'div' else x[0]) == 0
            if name == 'pow':
                free = free | ~(np.abs(x[1] * np.log(x[0])) < 60) | ~np.isfinite(x[0])
        else:
            ulps = ULPS.get(name, 1)
            if name == 'sigmoid':  # below normal numbers a device may give 0: e^-x is infinite there
                slack = LONG(2.0)**FORMAT[dtype][1]
        return dict(ref=np.asarray(ref), bounds=dict(ulps=ulps, slack=slack, free=free, sign=name in SIGNED and alpha is None))

    def judged(self, what, e, run):
        got = self.expect(what, [e['dtype']], e['refused'], run)
        if got:
            nan_ok = e['ref']
            judge(what, got[0], e['dtype'], nan_ok, **e['bounds'])

    def changed(self, what, t, e, run):
        """In place: the result must also fit t."""
        refused = e['refused']
        if not refused and e['ref'].shape != t.a.shape:
            refused = 'shape'
        if not refused and e['dtype'] != t.dtype and e['common'] != t.dtype and not self.fits(e, t.dtype):
            refused = 'cast'
        if not refused and e['common'] == 'complex64' and what.startswith('abs_'):
            refused = 'complex'
        bounds = dict(e['bounds'])
        if kind(t.dtype) == 2 and not refused and e['dtype'] != t.dtype:
            bounds = dict(bounds, ulps=2, sign=False, slack=np.abs(e['ref']) * 4 * eps(e['dtype'] if kind(e['dtype']) == 2 else t.dtype) + bounds['slack'])
        self.in_place(what, t, refused, run, e['ref'], **bounds)

    @staticmethod
    def fits(e, to):
        """torch.can_cast; truth goes anywhere."""
        if e['dtype'] == 'bool':
            return e['common'] != 'bool' or True
        return kind(e['dtype']) <= kind(to)

    def unary(self):
        name, d = self.choice(UNARY), self.choice(DTYPES)
        t = self.tensor(self.sizes(), d)
        e = self.elementwise(name, [t])
        if name != 'isfinite' and self.chance(.25):
            t = self.tensor(self.sizes(), d, expand=False)
            e = self.elementwise(name, [t])
            return self.changed('%s_ %s' % (name, self.text(t)), t, e, lambda: self.w.call(name + '_', t.w))
        return self.judged('%s %s' % (name, self.text(t)), e, lambda: [self.w.new(name, t.w)])

    def binary(self):
        name, (da, db) = self.choice(BINARY), self.dtypes()
        sizes = self.sizes()
        a, b = self.tensor(sizes, da), self.tensor(self.like(sizes), db)
        if self.chance(.5):
            a, b = b, a
        what = '%s %s %s' % (name, self.text(a), self.text(b))
        self.judged(what, self.elementwise(name, [a, b]), lambda: [self.w.new(name, a.w, b.w)])

    def binary_number(self):
        name, d = self.choice(BINARY), self.choice(DTYPES)
        t, v = self.tensor(self.sizes(), d), self.number(d)
        way = self.choice(['right', 'left', 'in place'])
        if way == 'left':
            self.judged('%r %s %s' % (v, name, self.text(t)), self.elementwise(name, [v, t]),
                        lambda: [self.w.new('scalar_' + name, scalar(v), t.w)])
        elif way == 'right':
            self.judged('%s %s %r' % (self.text(t), name, v), self.elementwise(name, [t, v]),
                        lambda: [self.w.new(name + '_scalar', t.w, scalar(v))])
        else:
            t = self.tensor(self.sizes(), d, expand=False)
            self.changed('%s_ %s %r' % (name, self.text(t), v), t, self.elementwise(name, [t, v]),
                         lambda: self.w.call(name + '_scalar_', t.w, scalar(v)))

    def binary_in_place(self):
        name, (da, db) = self.choice(BINARY), self.dtypes()
        sizes = self.sizes()
        a, b = self.tensor(sizes, da, expand=False), self.tensor(self.like(sizes), db)
        self.changed('%s_ %s %s' % (name, self.text(a), self.text(b)), a, self.elementwise(name, [a, b]),
                     lambda: self.w.call(name + '_', a.w, b.w))

    def alpha(self):
        name, (da, db) = self.choice(['add', 'sub']), self.dtypes()
        sizes, v = self.sizes(), self.choice([2, 3, -1, 0.5, -2.5])
        a, b = self.tensor(sizes, da, tame=True), self.tensor(self.like(sizes), db, tame=True)
        if self.chance(.3):
            a = self.tensor(sizes, da, tame=True, expand=False)
            return self.changed('%s_alpha_ %s %s %r' % (name, self.text(a), self.text(b), v), a,
                                self.elementwise(name, [a, b], v), lambda: self.w.call(name + '_alpha_', a.w, b.w, scalar(v)))
        return self.judged('%s_alpha %s %s %r' % (name, self.text(a), self.text(b), v), self.elementwise(name, [a, b], v),
                           lambda: [self.w.new(name + '_alpha', a.w, b.w, scalar(v))])

    def where(self):
        da, db = self.dtypes()
        sizes = self.sizes()
        c, a, b = self.tensor(self.like(sizes), 'bool'), self.tensor(sizes, da), self.tensor(self.like(sizes), db)
        try:
            d, refused = result_type(a, b), None
        except Refused as e:
            d, refused = 'float32', str(e)
        what = 'where %s %s %s' % (self.text(c), self.text(a), self.text(b))
        got = self.expect(what, [d], refused, lambda: [self.w.new('where', c.w, a.w, b.w)])
        if got:
            judge(what, got[0], d, np.where(c.a, cast(a.a, d), cast(b.a, d)))

    def clamp(self):
        d = self.choice(INTS + FLOATS)
        t = self.tensor(self.sizes(), d)
        low, high = (self.choice([None, 0, 1, 0.5, 2]) for _ in 'ab')
        if low is None and high is None:
            low = 1
        to = result_type(t, *[v for v in (low, high) if v is not None])
        what = 'clamp %s %r %r' % (self.text(t), low, high)
        bound = [None if v is None else C.byref(scalar(v)) for v in (low, high)]
        got = self.expect(what, [to], None, lambda: [self.w.new('clamp', t.w, *bound)])
        ref = cast(t.a, to)
        if low is not None:
            ref = np.maximum(ref, ref.dtype.type(low))
        if high is not None:
            ref = np.minimum(ref, ref.dtype.type(high))
        judge(what, got[0], to, ref)

    def isclose(self):
        d = self.choice(DTYPES)
        sizes = self.sizes()
        a, b = self.tensor(sizes, d), self.tensor(self.like(sizes), d)
        rtol, atol, nan = self.choice([0., .5]), self.choice([0., 2.]), self.chance(.5)
        what = 'isclose %s %s %g %g %d' % (self.text(a), self.text(b), rtol, atol, nan)
        got = self.expect(what, ['bool'], None,
                          lambda: [self.w.new('isclose', a.w, b.w, C.c_double(rtol), C.c_double(atol), C.c_bool(nan))])
        x, y = (v.a.astype(LONG if kind(d) < 3 else np.complex128) for v in (a, b))
        if d == 'complex64' or d == 'int64':  # differences that are no doubles, and magnitudes, may fall on either side
            near = np.abs(np.abs(x - y) - atol - rtol * np.abs(y)) < 1e-6 + np.abs(x) * 1e-15
        else:
            near = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
        ref = (a.a == b.a) | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y)))
        if nan:
            ref = ref | (np.isnan(x) & np.isnan(y))
        judge(what, np.where(near, ref, got[0]), 'bool', ref)

    # ---- casts and copies

    def casts(self):
        da, db = self.choice(DTYPES), self.choice(DTYPES)
        t = self.tensor(self.sizes(), da)
        if self.chance(.4):
            sizes = list(t.a.shape)
            to = self.tensor(sizes, db, expand=False)
            src = self.tensor(self.like(sizes), da)
            if src.a.ndim > to.a.ndim or np.broadcast_shapes(src.a.shape, to.a.shape) != to.a.shape:
                src = t
            what = 'copy_ %s %s' % (self.text(to), self.text(src))
            return self.in_place(what, to, None, lambda: self.w.call('copy_', to.w, src.w, C.c_bool(self.chance(.5))),
                                 cast(src.a, db), sign=True)
        what = 'to_dtype %s %s' % (self.text(t), db)
        got = self.expect(what, [db], None, lambda: [self.w.new('to_dtype', t.w, NUMBER[db])])
        return judge(what, got[0], db, cast(t.a, db), sign=True)

    # ---- reductions

    def reduce(self):
        name, d = self.choice('sum mean prod amax amin all any'.split()), self.choice(DTYPES)
        t = self.tensor(self.sizes(), d, tame=name == 'prod' or self.chance(.5))
        n = t.a.ndim
        dims = [int(v) for v in self.r.permutation(n)[:int(self.r.integers(n + 1))]] if n and self.chance(.7) else []
        keep = bool(dims) and self.chance(.5)
        axis = tuple(dims) or None
        count = math.prod(t.a.shape[i] for i in dims) if dims else t.a.size
        dtype, refused = d, None
        if name in ('sum', 'prod') and kind(d) < 2:
            dtype = 'int64'
        if name in ('all', 'any'):
            dtype = 'uint8' if d == 'uint8' else 'bool'
        if name == 'mean' and kind(d) < 2:
            refused = 'mean of integers'
        if name in ('amax', 'amin'):
            if (not dims and not t.a.size) or any(not t.a.shape[i] for i in dims):
                refused = 'nothing'
            elif d == 'complex64' and t.a.size:
                refused = 'complex'
        signed = [i - n if self.chance(.3) else i for i in dims]
        what = '%s %s %s keepdim %d' % (name, self.text(t), signed, keep)
        if not dims:
            run = lambda: [self.w.new(name, t.w)]
        elif len(dims) == 1:
            run = lambda: [self.w.new(name + '_dim', t.w, signed[0], C.c_bool(keep))]
        else:
            run = lambda: [self.w.new(name + '_dims', t.w, (C.c_int * 8)(*signed), len(dims), C.c_bool(keep))]
        got = self.expect(what, [dtype], refused, run)
        if not got:
            return
        x = t.a if kind(d) > 1 or name in ('all', 'any') else t.a.astype(np.int64)
        f = {'amax': np.max, 'amin': np.min}.get(name) or getattr(np, name)
        ref = np.asarray(f(x, axis=axis, keepdims=keep) if name != 'mean' else np.sum(x, axis=axis, keepdims=keep) / LONG(count)
                         if count else np.full(got[0].shape, np.nan))
        bounds = {}
        if kind(dtype) > 1 and name in ('sum', 'mean'):
            total = np.sum(np.abs(x), axis=axis, keepdims=keep)
            finite = np.where(np.isfinite(total), total, 0) / (count or 1 if name == 'mean' else 1)
            bounds = dict(ulps=1, slack=2 * (math.log2(count + 1) + 1) * eps(dtype) * finite)
            if not np.all(total < FORMAT.get(dtype, FORMAT['float32'])[2] / 4):  # may overflow on the way, either way
                return
        elif kind(dtype) > 1 and name == 'prod':
            bounds = dict(ulps=1 + 2 * (count + 1) * float(eps(dtype)) * 2.0**(FORMAT[dtype][0] if kind(dtype) == 2 else 23), slack=1e-44)
            if np.abs(ref).max(initial=0) > 1e30 or count > 60:
                return
        judge(what, got[0], dtype, ref, **bounds)

    def places(self):
        name, d = self.choice('max min argmax argmin max_dim min_dim argmax_dim argmin_dim'.split()), self.choice(INTS + FLOATS)
        t = self.tensor(self.sizes(), d)
        if t.a.ndim == 0 and name.endswith('_dim'):
            name = name[:-4]
        best = np.max if 'max' in name else np.min
        arg = np.argmax if 'max' in name else np.argmin
        if not name.endswith('_dim'):
            dtype = 'int64' if name.startswith('arg') else d
            what = '%s %s' % (name, self.text(t))
            got = self.expect(what, [dtype], None if t.a.size else 'nothing', lambda: [self.w.new(name, t.w)])
            if got:
                judge(what, got[0], dtype, np.asarray((arg if name.startswith('arg') else best)(t.a)))
            return
        dim, keep = int(self.r.integers(t.a.ndim)), self.chance(.5)
        what = '%s %s %d keepdim %d' % (name, self.text(t), dim, keep)
        refused = None if t.a.shape[dim] else 'nothing'
        if name.startswith('arg'):
            got = self.expect(what, ['int64'], refused, lambda: [self.w.new(name, t.w, dim, C.c_bool(keep))])
        else:
            def run():
                index = C.c_void_p()
                values = self.w.new(name, C.byref(index), t.w, dim, C.c_bool(keep))
                self.w.live.append(index)
                return [values, index]
            got = self.expect(what, [d, 'int64'], refused, run)
            if got:
                judge(what, got.pop(0), d, best(t.a, axis=dim, keepdims=keep))
        if got:
            ref = arg(t.a, axis=dim) if t.a.size else np.zeros(np.delete(t.a.shape, dim), np.int64)
            judge(what + ' (places)', got[0], 'int64', np.expand_dims(ref, dim) if keep else np.asarray(ref))

    def softmax(self):
        d, log = self.choice(FLOATS), self.chance(.5)
        t = self.tensor(self.sizes(), d, tame=True)
        dim = int(self.r.integers(max(t.a.ndim, 1)))
        name = 'log_softmax' if log else 'softmax'
        what = '%s %s %d' % (name, self.text(t), dim)
        got = self.expect(what, [d], None, lambda: [self.w.new(name, t.w, dim)])
        if not t.a.size:
            return
        x = t.a if t.a.ndim else t.a.reshape(1)
        x = x - x.max(axis=dim, keepdims=True)
        total = np.exp(x).sum(axis=dim, keepdims=True)
        n = math.log2(x.shape[dim] + 1) + 1
        ref = (x - np.log(total) if log else np.exp(x) / total).reshape(t.a.shape)
        slack = 2 * n * eps(d) * ((np.abs(x) + np.log(total) + 1) if log else 1)
        judge(what, got[0], d, ref, ulps=8 if d not in NARROW else 1, slack=np.asarray(slack + 0 * x).reshape(t.a.shape))

    # ---- products

    def bounds_of(self, d, k, magnitude):
        return {} if kind(d) < 2 else dict(ulps=1, slack=(k + 2) * eps(d) * magnitude * (4 if kind(d) == 3 else 1))

    def product(self):
        d = self.choice(FLOATS * 3 + ['complex64'] + INTS)
        m, k, n = (self.choice([0, 1, 2, 3, 5, 8, 17, 40, 70]) for _ in 'mkn')
        name = self.choice(['matmul'] * 4 + ['mm', 'bmm', 'mv', 'dot', 'addmm', 'linear'])
        batch = [self.choice([1, 2, 3]) for _ in range(self.choice([0, 0, 1, 2]))]
        sa, sb = {'mm': ([m, k], [k, n]), 'bmm': ([2, m, k], [2, k, n]), 'mv': ([m, k], [k]), 'dot': ([k], [k]),
                  'addmm': ([m, k], [k, n]), 'linear': (batch + [m, k], [n, k])}.get(name) or self.choice(
                      [([m, k], [k, n]), ([k], [k, n]), ([m, k], [k]), ([k], [k]), (batch + [m, k], self.like(batch + [1, 1])[:-2] + [k, n]),
                       (batch + [m, k], [k]), ([k], batch + [k, n]), (batch + [m, k], [k, n])])
        if len(sb) < 2 and len(sa) > 1 and name == 'matmul' and sb == [n]:
            sb = [k]
        if len(sb) >= 2 and name == 'matmul':
            lead = self.like(batch)[-len(batch):] if batch and len(sa) > 2 and len(sb) > 2 else sb[:-2]
            sb = lead + sb[-2:]
        a, b = self.tensor(sa, d, tame=True), self.tensor(sb, d, tame=True)
        refused = 'integers on a device' if self.w.cuda and kind(d) == 1 else None
        what = '%s %s %s' % (name, self.text(a), self.text(b))
        x, y, extra, arguments = a.a, b.a if name != 'linear' else b.a.T, 0, [a.w, b.w]
        scale = 1
        if name == 'addmm':
            c = self.tensor(self.choice([[m, n], [n], [1, n], [], [m, 1]]), d, tame=True)
            scale, beta = self.choice([(1, 1), (2, 3), (1, 0)])
            extra, arguments = beta * c.a, [c.w, a.w, b.w, C.c_double(beta), C.c_double(scale)]
            what += ' + %s' % self.text(c)
        elif name == 'linear':
            bias = self.tensor([n], d, tame=True) if self.chance(.5) else None
            extra, arguments = (bias.a, [a.w, b.w, bias.w]) if bias else (0, [a.w, b.w, None])
        got = self.expect(what, [d], refused, lambda: [self.w.new(name, *arguments)])
        if not got:
            return
        ref = np.asarray(scale * np.matmul(x, y) + extra)
        size = np.asarray(scale * np.matmul(np.abs(x), np.abs(y)) + np.abs(extra))
        bounds = self.bounds_of(d, k, size)
        if name == 'linear' and d in NARROW:  # a bias may be added to what has been rounded
            bounds['slack'] = bounds['slack'] + ulp(np.matmul(x, y), d)
        judge(what, got[0], d, ref, **bounds)

    def image(self):
        r, d = self.r, self.choice(FLOATS * 3 + ['complex64', 'int64', 'int32', 'uint8'])
        g, n, c = self.choice([1, 1, 1, 2, 3]), int(r.integers(4)), int(r.integers(1, 4))
        h, w, kh, kw = (int(r.integers(1, v)) for v in (12, 12, 4, 4))
        outs = int(r.integers(1, 4)) * g
        stride, pad, dilation = ([self.choice(of) for _ in 'yx'] for of in ([1, 1, 2, 3], [0, 0, 1, 2], [1, 1, 2]))
        a = self.tensor([n, c * g, h, w] if self.chance(.8) else [c * g, h, w], d, tame=True)
        k = self.tensor([outs, c, kh, kw], d, tame=True)
        bias = self.tensor([outs], d, tame=True) if self.chance(.5) else None
        size = [(v + 2 * p - dl * (kk - 1) - 1) // s + 1 for v, p, dl, kk, s in zip((h, w), pad, dilation, (kh, kw), stride)]
        what = 'conv2d %s %s stride %s pad %s dilation %s groups %d bias %d' % (self.text(a), self.text(k), stride, pad, dilation, g, bias is not None)
        fits = all(v + 2 * p >= dl * (kk - 1) + 1 for v, p, dl, kk in zip((h, w), pad, dilation, (kh, kw)))
        refused = None if fits else 'kernel'
        if fits and kind(d) == 1 and self.w.cuda and a.a.size:
            refused = 'integers on a device'
        options = Conv((C.c_int64 * 2)(*stride), (C.c_int64 * 2)(*pad), (C.c_int64 * 2)(*dilation), g)
        got = self.expect(what, [d], refused, lambda: [self.w.new('conv2d', a.w, k.w, bias.w if bias else None, C.byref(options))])
        if not got:
            return
        parts = []
        for magnitude in (False, True):
            x, f = (np.abs(v) if magnitude else v for v in (a.a if a.a.ndim == 4 else a.a[None], k.a))
            x = np.pad(x, [(0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2])
            out = np.zeros((x.shape[0], outs, *size), np.result_type(x, f))
            for o, i, y, z in itertools.product(range(outs), range(c), range(kh), range(kw)):
                at = [slice(p * dl, p * dl + (v - 1) * s + 1, s) for p, dl, v, s in zip((y, z), dilation, size, stride)]
                out[:, o] += x[:, o // (outs // g) * c + i, at[0], at[1]] * f[o, i, y, z]
            if bias:
                out += (np.abs(bias.a) if magnitude else bias.a)[:, None, None]
            parts.append(out if a.a.ndim == 4 else out[0])
        judge(what, got[0], d, parts[0], **self.bounds_of(d, c * kh * kw, parts[1]))

    def pool(self):
        r, d = self.r, self.choice(FLOATS + INTS)
        h, w, kh, kw = (int(r.integers(1, v)) for v in (10, 10, 5, 5))
        pad, stride, dilation = [self.choice([0, kk // 2]) for kk in (kh, kw)], [self.choice([1, 2, 3]) for _ in 'yx'], [self.choice([1, 1, 2]) for _ in 'yx']
        t = self.tensor([2, h, w] if self.chance(.5) else [int(r.integers(3)), 2, h, w], d)
        size = [(v + 2 * p - dl * (kk - 1) - 1) // s + 1 for v, p, dl, kk, s in zip((h, w), pad, dilation, (kh, kw), stride)]
        what = 'max_pool2d %s kernel %s stride %s pad %s dilation %s' % (self.text(t), [kh, kw], stride, pad, dilation)
        options = Pool(*((C.c_int64 * 2)(*v) for v in ((kh, kw), stride, pad, dilation)))
        got = self.expect(what, [d], 'size' if min(size) < 1 else None, lambda: [self.w.new('max_pool2d', t.w, C.byref(options))])
        if not got:
            return
        low = -np.inf if kind(d) == 2 else np.iinfo(d).min
        x = np.pad(t.a, [(0, 0)] * (t.a.ndim - 2) + [(p, p) for p in pad], constant_values=low)
        ref = np.full((*t.a.shape[:-2], *size), low, x.dtype)
        for y, z in itertools.product(range(kh), range(kw)):
            at = [slice(p * dl, p * dl + (v - 1) * s + 1, s) for p, dl, v, s in zip((y, z), dilation, size, stride)]
            ref = np.maximum(ref, x[..., at[0], at[1]])
        judge(what, got[0], d, ref)

    def join(self):
        sizes = self.sizes(3) or [2]
        dim, name = int(self.r.integers(len(sizes))), self.choice(['cat', 'stack'])
        parts = []
        for _ in range(int(self.r.integers(1, 5))):
            s = list(sizes)
            if name == 'cat':
                s[dim] = int(self.r.integers(4))
            parts.append(self.tensor(s, self.choice(DTYPES) if self.chance(.4) else 'float32'))
        try:
            d, refused = result_type(*parts), None
        except Refused as e:
            d, refused = 'float32', str(e)
        what = '%s %s %d' % (name, [self.text(p) for p in parts], dim)
        list_of = (C.c_void_p * len(parts))(*[p.w.value for p in parts])
        got = self.expect(what, [d], refused, lambda: [self.w.new(name, list_of, len(parts), dim)])
        if got:
            f = np.concatenate if name == 'cat' else np.stack
            judge(what, got[0], d, f([cast(p.a, d) for p in parts if name == 'stack' or p.a.shape != (0,)] or [parts[0].a], axis=dim))

    def arange(self):
        d = self.choice(['int64', 'int32', 'float32', 'float64', 'float16'])
        start, step, n = int(self.r.integers(-9, 9)), self.choice([1, 2, -1, 3, 0.5, 0.25]), int(self.r.integers(40))
        if kind(d) == 1:
            step = int(step) or 1
        end = start + step * n
        what = 'arange %s %r %r %r' % (d, start, end, step)
        got = self.expect(what, [d], None, lambda: [self.w.new('arange', scalar(start), scalar(end), scalar(step), C.byref(Options(NUMBER[d], self.w.device)))])
        judge(what, got[0], d, (start + step * np.arange(n)).astype(wide_of(d)))

    def run(self):
        of = ([self.unary] * 15 + [self.binary] * 24 + [self.binary_number] * 10 + [self.binary_in_place] * 8 + [self.alpha] * 3 +
              [self.where] * 4 + [self.clamp] * 3 + [self.isclose] * 3 + [self.casts] * 10 + [self.reduce] * 11 + [self.places] * 5 +
              [self.softmax] * 3 + [self.product] * 10 + [self.image] * 6 + [self.pool] * 2 + [self.join] * 3 + [self.arange])
        self.choice(of)()


def wide_number(v):
    return np.asarray(v, np.bool_ if isinstance(v, bool) else np.int64 if isinstance(v, int) else LONG if isinstance(v, float) else np.complex128)


# ---- all of them ------------------------------------------------------------------------------

def promotions(weir):
    """Every pair of dtypes, as tensors with dimensions, without, and with numbers: weir_result_type."""
    count = 0
    bare = [T(None, np.zeros(s), d) for d in DTYPES for s in ((2,), ())]
    tensors = [T(weir.of(np.zeros(t.a.shape, wide_of(t.dtype)), t.dtype), t.a, t.dtype) for t in bare]
    for a in tensors:
        for b in tensors + [True, 1, 1.5, 1j]:
            out = C.c_int()
            number = b if not isinstance(b, T) else 0
            status = weir.lib.weir_result_type(C.byref(out), a.w, b.w if isinstance(b, T) else None, scalar(number))
            try:
                want = result_type(a, b)
            except Refused:
                want = None
            what = 'result_type %s[%d] %s' % (a.dtype, a.a.ndim, '%s[%d]' % (b.dtype, b.a.ndim) if isinstance(b, T) else b)
            if (status == 0) != (want is not None) or (want and NAME[out.value] != want):
                raise Differs('%s: %s, not %s' % (what, None if status else NAME[out.value], want))
            count += 1
    weir.forget()
    return count


def main():
    p = argparse.ArgumentParser()
    p.add_argument('library')
    p.add_argument('--device', choices=['cpu', 'cuda'], default='cpu')
    p.add_argument('--cases', type=int, default=5000)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--case', type=int, help='this one alone')
    o = p.parse_args()
    weir = Weir(o.library, o.device)
    types = bad = 0
    try:
        types = promotions(weir)
    except Differs as e:
        bad += 1
        print(e)
    for i in range(o.cases) if o.case is None else [o.case]:
        try:
            Case(weir, o.seed, i).run()
        except Differs as e:
            bad += 1
            print('%s\n    alone: tests/ops/fuzz.py %s --device %s --seed %d --case %d' % (e, o.library, o.device, o.seed, i))
        finally:
            weir.forget()
    print('%s: %d promotions and %d cases, %d differ' % (o.device, types, o.cases if o.case is None else 1, bad))
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())

"""What the engine must do, row by row (types, defaults, devices by name, creation, refusals, printing, loaders,
modules, layers, files), beside PyTorch's cpu.

    python tests/peers/rows.py LIBWEIR [SEED]

Needs a torch, numpy and safetensors; no device and no driver, which is some of what is compared. What one library
fails at the other must fail at, with the same sentence. Prints a line a row and ends with one that counts,
exit status 1 where anything differs.
"""
import ctypes as C
import math
import os
import re
import sys
import tempfile
import warnings

import numpy
import safetensors.torch
import torch

from ops import BINARY, NO_SCALAR, REDUCE, UNARY, Calls, Conv, Pool, pair
from tensors import DTYPES, NUMBERS, Device, Failed, Options, PrintOptions, Shape, Weir, printed, scalar, shape, types

warnings.filterwarnings("ignore")
nn, data = torch.nn, torch.utils.data
P = C.c_void_p
TYPES = {1: "cpu", 2: "cuda"}


class Scalar(C.Structure):
    _fields_ = [("dtype", C.c_int), ("i", C.c_int64), ("f", C.c_double), ("imag", C.c_double)]


class Batch(C.Structure):
    _fields_ = [("count", C.c_int), ("tensor", P * 8)]


GET = C.CFUNCTYPE(C.c_int, C.POINTER(Batch), P, C.c_int64)
LENGTH = C.CFUNCTYPE(C.c_int64, P)
NEXT = C.CFUNCTYPE(C.c_int, C.POINTER(C.c_int64), P)
VISIT = C.CFUNCTYPE(C.c_int, P, C.c_char_p, P)


class Dataset(C.Structure):
    _fields_ = [("length", LENGTH), ("get", GET), ("destroy", P), ("user", P)]


class Sampler(C.Structure):
    _fields_ = [("begin", P), ("next", NEXT), ("user", P)]


class Loader(C.Structure):
    _fields_ = [("batch_size", C.c_int64), ("drop_last", C.c_bool), ("shuffle", C.c_bool), ("seed", C.c_uint64),
                ("sampler", Sampler), ("collate", P), ("collate_user", P), ("workers", C.c_int),
                ("prefetch_factor", C.c_int), ("pin_memory", C.c_bool), ("device", Device)]


class Layer(C.Structure):
    _fields_ = [("tensor", Options), ("no_bias", C.c_bool), ("conv", Conv)]


class ModuleClass(C.Structure):
    _fields_ = [("name", C.c_char_p), ("forward", P), ("destroy", P), ("clone", P), ("describe", P)]


def number_of(s):
    return {10: bool(s.i), 5: s.i, 8: s.f, 9: complex(s.f, s.imag)}[s.dtype]


class Rows(Calls):
    """Calls with what rows need: facts that are compared, and what may differ in a sentence."""

    def __init__(self, weir, seed):
        super().__init__(weir, seed)
        lib = weir.lib
        for name in ("weir_dtype_name", "weir_device_name", "weir_tensor_type", "weir_tensors_name", "weir_module_name"):
            getattr(lib, name).restype = C.c_char_p
        for name in ("weir_tensors_get", "weir_tensors_at", "weir_module_parameter", "weir_module_buffer",
                     "weir_module_child", "weir_tensor_retain", "weir_module_retain", "weir_tensor_grad"):
            getattr(lib, name).restype = P
        for name in ("weir_tensor_type", "weir_tensor_retain", "weir_tensor_dtype", "weir_tensor_device",
                     "weir_tensors_count", "weir_tensors_release", "weir_module_release", "weir_module_retain",
                     "weir_module_is_training", "weir_module_zero_grad", "weir_tensor_grad", "weir_tensor_release", "weir_tensor_shape", "weir_tensor_numel",
                     "weir_tensor_dim", "weir_tensor_is_pinned"):
            getattr(lib, name).argtypes = [P]
        for name in ("weir_tensors_name", "weir_tensors_at"):
            getattr(lib, name).argtypes = [P, C.c_size_t]
        for name in ("weir_tensors_get", "weir_module_parameter", "weir_module_buffer", "weir_module_child"):
            getattr(lib, name).argtypes = [P, C.c_char_p]
        lib.weir_tensors_count.restype = C.c_size_t
        lib.weir_tensor_device.restype = lib.weir_device_select.restype = lib.weir_get_default_device.restype = Device
        for name in ("weir_tensor_is_pinned", "weir_cuda_is_available", "weir_module_is_training",
                     "weir_dtype_is_floating_point", "weir_dtype_is_complex", "weir_device_equal",
                     "weir_get_allow_tf32", "weir_get_allow_reduced_precision", "weir_get_deterministic"):
            getattr(lib, name).restype = C.c_bool
        self.rows = []

    def fact(self, what, theirs, ours):
        """One thing that both say, however they say that they cannot."""
        def tell(f):
            try:
                return f()
            except (RuntimeError, IndexError, ValueError, TypeError, KeyError, AssertionError, AttributeError) as e:
                return "refused: " + self.neutral(e.args[0] if isinstance(e, KeyError) else e)
            except Failed as e:
                return "refused: " + self.neutral(e)
        self.steps += 1
        a, b = tell(theirs), tell(ours)
        if isinstance(a, torch.dtype):
            a = NUMBERS.get(a, a)
        if a != b and not (a != a and b != b):
            self.complain(what, a, b)

    def neutral(self, text):
        """torch's sentence and Weir's, without what is said otherwise on purpose: whose name it is, what
        devices there are besides, threads for processes, and what torch adds about itself."""
        text = re.sub(r"torch(?=\.)", "weir", types(str(text).strip()))
        text = re.sub(r"one of cpu, cuda,.* device type", "one of cpu, cuda device type", text)
        text = re.sub(r"(num_workers=0 to) .*", r"\1", text)
        text = re.sub(r"multiprocessing\.\s*let", "multiprocessing. let", text)
        text = re.sub(r"(can't contain \"\.\").*", r"\1", text)
        text = re.sub(r".*(Found no NVIDIA driver on your system).*", r"\1", text, flags=re.S)
        text = re.sub(r".*(DefaultCPUAllocator: can't allocate memory: .* bytes).*", r"\1", text)
        text = re.sub(r"(Both events must be created with) .*", r"\1", text)
        text = re.sub(r"(value cannot be converted to type \S+) .*", r"\1", text)
        # torch names first what no module near the root has
        text = re.sub(r"(?<=Unexpected key\(s\) in state_dict: )(.*?)(?=\. *(\n|$))", lambda m: ", ".join(sorted(m[0].split(", "))), text)
        return re.sub(r"\s+", " ", text)

    def complain(self, what, theirs, ours):
        self.bad += 1
        if self.bad - self.rows[-1][2] <= 8:
            print(f"{what}\n  torch: {theirs}\n  weir:  {ours}")

    def row(self, name):
        self.rows.append((name, self.steps, self.bad))

    def tally(self):
        ends = self.rows[1:] + [("", self.steps, self.bad)]
        for (name, steps, bad), (_, to, worse) in zip(self.rows, ends):
            print(f"{name}: {to - steps} compared, {worse - bad} unlike")

    def hold(self, make):
        """Weir's tensors for the time of a call, by (dtype, sizes, values)."""
        return [self.w.of(t) for t in make]

    # ---- rows 1 to 3: types, defaults, devices by name

    def types(self):
        self.row("1 dtypes and tensor types")
        lib = self.w.lib
        short = {"float": "float32", "double": "float64", "half": "float16", "short": "int16", "int": "int32",
                 "long": "int64", "cfloat": "complex64"}
        for d, n in NUMBERS.items():
            name = str(d)[6:]
            self.fact(f"name of {d}", lambda: name, lambda: lib.weir_dtype_name(n).decode())
            self.fact(f"size of {d}", lambda: d.itemsize, lambda: lib.weir_dtype_size(n))
            self.fact(f"{d} is floating", lambda: d.is_floating_point, lambda: lib.weir_dtype_is_floating_point(n))
            self.fact(f"{d} is complex", lambda: d.is_complex, lambda: lib.weir_dtype_is_complex(n))
            t = torch.ones(2, dtype=d)
            w = self.w.of(t)
            self.fact(f"type of {d}", lambda: t.type().replace("torch.", "weir."), lambda: lib.weir_tensor_type(w).decode())
            for e, m in NUMBERS.items():
                of = torch.ones(2, dtype=e).type()
                def turned():
                    o = self.w.new("to_type", w, of.encode(), False)
                    out = (lib.weir_tensor_dtype(o), lib.weir_tensor_type(o).decode())
                    self.w.release(o)
                    return out
                if not (d.is_complex and not e.is_complex):
                    self.fact(f"{d} as {of}", lambda: (m, t.type(of).type().replace("torch.", "weir.")), turned)
            self.w.release(w)
        for alias, name in short.items():
            out = C.c_int()
            self.fact(f"dtype {alias}", lambda: NUMBERS[getattr(torch, alias)],
                      lambda: (self.w.check(lib.weir_dtype_parse(C.byref(out), alias.encode())), out.value)[1])
            self.fact(f"dtype {alias} is {name}", lambda: getattr(torch, alias) is getattr(torch, name),
                      lambda: out.value == NUMBERS[getattr(torch, name)])

    def defaults(self):
        self.row("2 default dtype and type")
        lib = self.w.lib
        for d, n in NUMBERS.items():
            def ours():
                self.w.check(lib.weir_set_default_dtype(n))
                return lib.weir_get_default_dtype()
            def theirs():
                torch.set_default_dtype(d)
                return NUMBERS[torch.get_default_dtype()]
            self.fact(f"default {d}", theirs, ours)
            name = torch.ones(0, dtype=d).type()
            if d.is_complex:
                continue  # torch has no such type
            def theirs_type():
                torch.set_default_tensor_type(name)
                return NUMBERS[torch.get_default_dtype()]
            def ours_type():
                self.w.check(lib.weir_set_default_tensor_type(name.encode()))
                return lib.weir_get_default_dtype()
            self.fact(f"default type {name}", theirs_type, ours_type)
            sizes = shape([2])
            for what, theirs, ours in (
                    ("empty", lambda: torch.empty(2), lambda: self.w.new("empty", sizes, None)),
                    ("zeros", lambda: torch.zeros(2), lambda: self.w.new("zeros", sizes, None)),
                    ("ones", lambda: torch.ones(2), lambda: self.w.new("ones", sizes, None)),
                    ("rand", lambda: torch.rand(2), lambda: self.w.new("rand", sizes, None)),
                    ("randn", lambda: torch.randn(2), lambda: self.w.new("randn", sizes, None)),
                    ("randint", lambda: torch.randint(0, 2, (2,)), lambda: self.w.new("randint", C.c_int64(0), C.c_int64(2), sizes, None)),
                    *((f"full {v}", lambda v=v: torch.full((2,), v), lambda v=v: self.w.new("full", sizes, scalar(v), None))
                      for v in (True, 1, 1.5)),
                    *((f"arange {v}", lambda v=v: torch.arange(v), lambda v=v: self.w.new("arange", scalar(0), scalar(v), scalar(1), None))
                      for v in (3, 2.5))):
                self.fact(f"dtype of {what} by default {name}", lambda: NUMBERS[theirs().dtype], lambda: self.dtype_of(ours()))
        torch.set_default_tensor_type("torch.FloatTensor")
        self.w.check(lib.weir_set_default_tensor_type(b"torch.FloatTensor"))

    def dtype_of(self, w):
        n = self.w.lib.weir_tensor_dtype(w)
        self.w.release(w)
        return n

    def names_of_devices(self):
        self.row("3 devices by name")
        lib, r = self.w.lib, self.r
        texts = ["", "cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", "cuda:01", "cuda:00", "x", "cuda:", "cuda:-1", "cuda:+1", "CUDA",
                 "cpu ", " cpu", "cuda:1:2", "cuda:a", "cuda:1a", "cuda 1", "gpu:0", ":", ":0", "cuda:7", "cuda:63", "cud", "cudaa", "cuda::1"]
        texts += ["".join(r.choice(["cpu", "cuda", "c", ":", "0", "1", "9", " ", "a"]) for _ in range(r.randint(1, 4))) for _ in range(400)]
        for text in texts:
            if re.fullmatch(r"cpu:[1-9]\d*|cuda:\d{3,}|cpu:\d{3,}|[^:]*:[^:]*:.*", text):
                continue  # torch takes a second cpu, and numbers beyond a byte
            out = Device()
            def ours():
                self.w.check(lib.weir_device_parse(C.byref(out), text.encode()))
                return TYPES[out.type], None if out.index < 0 else out.index
            def theirs():
                d = torch.device(text)
                return d.type, d.index
            self.fact(f"device '{text}'", theirs, ours)
        for a in ("cpu", "cpu:0", "cuda", "cuda:0", "cuda:1"):
            for b in ("cpu", "cpu:0", "cuda", "cuda:0", "cuda:1"):
                x, y = Device(), Device()
                lib.weir_device_parse(C.byref(x), a.encode())
                lib.weir_device_parse(C.byref(y), b.encode())
                self.fact(f"{a} == {b}", lambda: torch.device(a) == torch.device(b), lambda: lib.weir_device_equal(x, y))
            self.fact(f"name of {a}", lambda: str(torch.device(a)), lambda: lib.weir_device_name(x).decode())

    # ---- rows 8 and 9: creation, conversion, and what is refused

    def creation(self):
        self.row("8 creation")
        w = self.w
        for sizes in ([-1], [2, -3], [2**40, 2**40], [2**62], [2**31, 2**31, 2], [0, 2**62], [2**62, 0], [1] * 8, []):
            for d in DTYPES:
                if max(sizes, default=0) > 2**40 and 0 in sizes and d.itemsize > 1:
                    continue
                o = Options(dtype=NUMBERS[d])
                self.fact(f"empty {sizes} {d}", lambda: tuple(torch.empty(sizes, dtype=d).shape),
                          lambda: self.shape_of(w.new("empty", shape(sizes), C.byref(o))))
        for v in (True, 0, 1, -1, 255, 256, -129, 2**31, 2**62, 1.5, -0.0, 1e5, 1e60, float("inf"), float("nan"), 2j):
            for d in DTYPES:
                o = Options(dtype=NUMBERS[d])
                self.judge(f"full {v} {d}", lambda: torch.full((2,), v, dtype=d),
                           lambda: w.new("full", shape([2]), scalar(v), C.byref(o)))
        for d in DTYPES:
            t = torch.ones(2, 3, dtype=d)
            own = w.of(t)
            for name in ("zeros", "ones", "empty"):
                for e in [None] + DTYPES:
                    o = C.byref(Options(dtype=NUMBERS.get(e, 0)))
                    self.fact(f"{name}_like {d} as {e}", lambda: self.description(getattr(torch, name + "_like")(t, dtype=e)),
                              lambda: self.describe(w.new(name + "_like", own, o)))
                    self.fact(f"new_{name} {d} as {e}", lambda: self.description(getattr(t, "new_" + name)((4,), dtype=e)),
                              lambda: self.describe(w.new("new_" + name, own, shape([4]), o)))
            self.fact(f"full_like of {d}", lambda: self.description(torch.full_like(t, 1)),
                      lambda: self.describe(w.new("full_like", own, scalar(1), None)))
            self.fact(f"new_full of {d}", lambda: self.description(t.new_full((4,), 1)),
                      lambda: self.describe(w.new("new_full", own, shape([4]), scalar(1), None)))
            for name in ("rand_like", "randn_like"):
                self.fact(f"{name} of {d}", lambda: self.description(getattr(torch, name)(t)),
                          lambda: self.describe(w.new(name, own, None)))
            for name in ("rand", "randn"):
                o = C.byref(Options(dtype=NUMBERS[d]))
                self.fact(f"{name} {d}", lambda: self.description(getattr(torch, name)(2, dtype=d)),
                          lambda: self.describe(w.new(name, shape([2]), o)))
            for low, high in ((0, 2), (3, 3), (5, 3), (0, 300), (-5, 5), (0, 2**40)):
                o = C.byref(Options(dtype=NUMBERS[d]))
                self.fact(f"randint {low} {high} {d}", lambda: self.description(torch.randint(low, high, (2,), dtype=d)),
                          lambda: self.describe(w.new("randint", C.c_int64(low), C.c_int64(high), shape([2]), o)))
            w.release(own)

    def shape_of(self, w):
        s = self.w.shape(w)
        self.w.release(w)
        return s

    def describe(self, w):
        out = (self.w.shape(w), self.w.lib.weir_tensor_dtype(w), TYPES[self.w.lib.weir_tensor_device(w).type])
        self.w.release(w)
        return out

    def description(self, t):
        return tuple(t.shape), NUMBERS[t.dtype], t.device.type

    def conversion(self):
        self.row("9 conversion, 22 pinned memory and 29 CUDA, without a driver")
        w, lib = self.w, self.w.lib
        for d in DTYPES:
            t = torch.ones(3, dtype=d)
            own = w.of(t)
            for e in DTYPES:
                for copy in (False, True):
                    if d.is_complex and not e.is_complex:
                        continue
                    o = C.byref(Options(dtype=NUMBERS[e], copy=copy))
                    def ours():
                        out = w.new("to", own, o)
                        same = out.value == own.value
                        w.release(out)
                        return same
                    self.fact(f"{d} to {e} copy {copy} is the same", lambda: t.to(e, copy=copy) is t, ours)
            for what, theirs, ours in (
                    ("cpu()", lambda: t.cpu() is t, lambda: w.new("cpu", own)),
                    ("contiguous()", lambda: t.contiguous() is t, lambda: w.new("contiguous", own)),
                    ("clone()", lambda: t.clone() is t, lambda: w.new("clone", own)),
                    ("cuda()", lambda: t.cuda() is t, lambda: w.new("cuda", own, Device(0, -1), False)),
                    ("to cuda:1", lambda: t.to("cuda:1") is t, lambda: w.new("to", own, C.byref(Options(device=Device(2, 1))))),
                    ("pin_memory()", lambda: t.pin_memory() is t, lambda: w.new("pin_memory", own))):
                def same():
                    out = ours()
                    is_same = out.value == own.value
                    w.release(out)
                    return is_same
                self.fact(f"{what} of {d} is the same", theirs, same)
            self.fact(f"is_pinned {d}", lambda: t.is_pinned(), lambda: lib.weir_tensor_is_pinned(own))
            w.release(own)
        count = C.c_int(-1)
        self.fact("is_available", torch.cuda.is_available, lib.weir_cuda_is_available)
        self.fact("device_count", torch.cuda.device_count, lambda: (w.check(lib.weir_cuda_device_count(C.byref(count))), count.value)[1])
        self.fact("init", torch.cuda.init, lambda: w.check(lib.weir_cuda_init()))
        self.fact("is_initialized", torch.cuda.is_initialized, lambda: bool(C.c_bool(lib.weir_cuda_is_initialized())))
        self.fact("empty on cuda", lambda: torch.empty(1, device="cuda"),
                  lambda: w.new("empty", shape([1]), C.byref(Options(device=Device(2, -1)))))
        self.fact("empty, pinned", lambda: torch.empty(1, pin_memory=True), lambda: w.new("empty", shape([1]), C.byref(Options(pin_memory=True))))

    def items(self):
        self.row("9 one element as a number")
        for d in DTYPES:
            for sizes in ([], [1], [1, 1], [0], [3]):
                t = self.values(sizes, d)
                own = self.w.of(t)
                s = Scalar()
                def ours():
                    self.w.check(self.w.lib.weir_item(C.byref(s), own))
                    v = number_of(s)
                    return repr(v)
                self.fact(f"item of {tuple(sizes)} {d}", lambda: repr(t.item()), ours)
                self.w.release(own)

    # ---- row 11: promotion, by every operation

    def promotion(self):
        self.row("11 promotion, by every operation, pair of dtypes and category")
        w = self.w
        for default in (torch.float32, torch.float64):
            torch.set_default_dtype(default)
            w.check(w.lib.weir_set_default_dtype(NUMBERS[default]))
            kinds = [(d, n) for d in DTYPES for n in ((2,), ())]
            own = {k: (torch.ones(k[1], dtype=k[0]), None) for k in kinds}
            own = {k: (t, w.of(t)) for k, (t, _) in own.items()}
            self.own_strides = True
            for ka in kinds:
                a, wa = own[ka]
                for kb in kinds:
                    b, wb = own[kb]
                    self.pair(f"{ka} {kb} default {default}", a, wa, b, wb)
                for v in (True, 2, 1.5, 1 + 0j):
                    if not (default == torch.float64 and isinstance(v, complex)):
                        self.with_number(f"{ka} {v} default {default}", a, wa, v)
                for name in UNARY:
                    self.judge(f"{name} {ka} default {default}", lambda: getattr(torch, name)(a), lambda: w.new(name, wa), several=64)
                for name in REDUCE + ["max", "min", "argmax", "argmin"]:
                    self.judge(f"{name} {ka} default {default}", lambda: getattr(torch, name)(a), lambda: w.new(name, wa))
                for name in ("softmax", "log_softmax"):
                    self.judge(f"{name} {ka} default {default}", lambda: getattr(torch, name)(a, 0), lambda: w.new(name, wa, 0), several=8,
                               scale=torch.ones(()))
            for _, x in own.values():
                w.release(x)
        self.own_strides = False
        torch.set_default_dtype(torch.float32)
        w.check(w.lib.weir_set_default_dtype(NUMBERS[torch.float32]))

    def pair(self, what, a, wa, b, wb):
        w = self.w
        for name in BINARY:
            if name == "floor_divide" and torch.bool in (a.dtype, b.dtype):
                continue  # torch's cpu divides bytes of bools
            self.judge(f"{name} {what}", lambda: getattr(torch, name)(a, b), lambda: w.new(name, wa, wb), several=8)
            if name not in ("maximum", "minimum"):
                def ours():
                    c = w.new("clone", wa)
                    try:
                        w.check(getattr(w.lib, f"weir_{name}_")(c, wb))
                    except Failed:
                        w.release(c)
                        raise
                    return c
                self.judge(f"{name}_ {what}", lambda: getattr(a.clone(), name + "_")(b), ours, several=8)
        c = torch.tensor([True, False])
        wc = w.of(c)
        self.judge(f"where {what}", lambda: torch.where(c, a, b), lambda: w.new("where", wc, wa, wb))
        w.release(wc)
        both = (C.c_void_p * 2)(wa.value, wb.value)
        for name in ("cat", "stack"):
            self.judge(f"{name} {what}", lambda: getattr(torch, name)([a, b]), lambda: w.new(name, both, 2, 0))
        for name in ("matmul", "mm", "mv", "dot"):
            self.judge(f"{name} {what}", lambda: getattr(torch, name)(a, b), lambda: w.new(name, wa, wb))

    def with_number(self, what, a, wa, v):
        w = self.w
        for name in BINARY:
            if name in NO_SCALAR or (name == "floor_divide" and (a.dtype == torch.bool or v is True)):
                continue
            if name == "pow" and a.dtype == torch.bool and v is True:
                continue  # torch's cpu does without the power that it has not
            self.judge(f"{name} {what}", lambda: getattr(a, name)(v), lambda: w.new(name + "_scalar", wa, scalar(v)), several=8)
            if name in ("add", "sub", "mul", "div", "pow", "floor_divide"):
                theirs = {"add": lambda: v + a, "sub": lambda: v - a, "mul": lambda: v * a, "div": lambda: v / a,
                          "pow": lambda: torch.pow(v, a), "floor_divide": lambda: v // a}[name]
                if name != "div" and (a.dtype != torch.bool or name != "pow"):
                    self.judge(f"{name} {what} reversed", theirs, lambda: w.new("scalar_" + name, scalar(v), wa), several=8)

    # ---- row 12: printing

    def printing(self, count):
        self.row("12 printed form")
        for i in range(count):
            o = dict(precision=self.r.choice([4, 4, 4, 0, 1, 2, 3, 6, 10]), threshold=self.r.choice([1000, 1000, 100, 20, 5, 0]),
                     edgeitems=self.r.choice([3, 3, 1, 2, 5]), linewidth=self.r.choice([80, 80, 120, 40, 10, 1]))
            sci = self.r.choice([None, None, None, True, False])
            if i % 3 == 0:
                o, sci = dict(precision=4, threshold=1000, edgeitems=3, linewidth=80), None
            torch.set_printoptions(sci_mode=sci, **o)
            mine = PrintOptions(sci_mode={None: 0, True: 1, False: -1}[sci], **o)
            self.w.check(self.w.lib.weir_set_print_options(C.byref(mine)))
            t = self.to_print()
            w = self.w.of(t)
            if t.dim() > 1 and self.r.random() < .3:
                t, w = t.transpose(0, -1), self.moved(w, "transpose", 0, -1)
            self.steps += 1
            theirs, ours = printed(str(t)), printed(self.w.text(w))
            if theirs != ours:
                self.complain(f"printing {tuple(t.shape)} {t.dtype} {o} sci {sci}", "\n" + theirs, "\n" + ours)
            self.w.release(w)
        torch.set_printoptions(profile="default", sci_mode=None)
        self.w.check(self.w.lib.weir_set_print_options(None))

    def to_print(self):
        r = self.r
        d = r.choice(DTYPES)
        sizes = r.choice([lambda: [r.choice([0, 1, 2, 3, 4, 7, 9]) for _ in range(r.randint(0, 6))],
                          lambda: [r.choice([1, 5, 999, 1000, 1001, 3000])],
                          lambda: [r.randint(1, 60), r.randint(1, 60)], lambda: [r.randint(1, 15) for _ in range(3)]])()
        n = math.prod(sizes)
        if d == torch.bool:
            return (torch.rand(n) < .5).reshape(sizes)
        if not d.is_floating_point and not d.is_complex:
            i = torch.iinfo(d)
            return r.choice([lambda: torch.randint(max(i.min, -9), 10, (n,)), lambda: torch.randint(i.min, i.max, (n,)),
                             lambda: torch.full((n,), i.min), lambda: torch.full((n,), i.max)])().to(d).reshape(sizes)
        t = torch.randn(n, dtype=torch.float64)
        other = r.choice([lambda: t.flip(0), lambda: t * 0, lambda: torch.randn(n, dtype=torch.float64)])()
        t = r.choice([lambda: t, lambda: t.round(), lambda: t * 1e5, lambda: (t * 1e6).round(), lambda: t * 1e-5, lambda: t * 1e9,
                      lambda: t.round() * 1e9, lambda: t * 10 ** (torch.randn(n, dtype=torch.float64) * 3), lambda: t * 1e300,
                      lambda: t * 1e-310, lambda: t * 0, lambda: -t * 0, lambda: torch.full((n,), 65504.), lambda: t * 1e3, lambda: t * 1e4,
                      lambda: t.round() + .5, lambda: t.exp() * 1e7])()
        if n and r.random() < .3:
            for _ in range(r.choice([1, 3, n])):
                t[r.randrange(n)] = r.choice([float("nan"), float("inf"), -float("inf"), 0., -0., 1e-9, 99999.5])
        if d.is_complex:
            t = torch.complex(t.double(), other)
        return t.to(d).reshape(sizes)

    # ---- row 24: loaders

    def loaders(self, count):
        self.row("24 loaders")
        for n in range(count):
            self.one_loader()
        w, lib = self.w, self.w.lib
        theirs = data.TensorDataset(torch.arange(4))
        rows = w.of(torch.arange(4))
        def refusal(**o):
            def ours():
                d = self.dataset([rows])
                options = Loader(**{{"num_workers": "workers"}.get(k, k): v for k, v in o.items()})
                loader = w.new("loader_create", C.byref(d), C.byref(options))
                lib.weir_loader_release(loader)
            return ours
        for o in (dict(batch_size=-1), dict(batch_size=-7), dict(num_workers=-1), dict(num_workers=1, prefetch_factor=-1), dict(prefetch_factor=2)):
            self.fact(f"a loader of {o}", lambda: data.DataLoader(theirs, **o) and None, refusal(**o))
        again = NEXT(lambda out, user: 0)
        self.fact("sampler and shuffle", lambda: data.DataLoader(theirs, sampler=[1], shuffle=True),
                  refusal(sampler=Sampler(None, again, None), shuffle=True))
        self.fact("rows that are not as many", lambda: data.TensorDataset(torch.ones(2), torch.ones(3)),
                  lambda: self.dataset(self.hold([torch.ones(2), torch.ones(3)])))
        w.release(rows)
        self.ragged()

    def dataset(self, tensors):
        d = Dataset()
        self.w.check(self.w.lib.weir_tensor_dataset(C.byref(d), (P * len(tensors))(*[t.value for t in tensors]), len(tensors)))
        return d

    def batches(self, loader, refused=None):
        """An epoch of Weir's: lists of elements, one a batch."""
        w, lib = self.w, self.w.lib
        it, out, batch = w.new("loader_begin", loader), [], Batch()
        while True:
            try:
                w.check(lib.weir_loader_next(C.byref(batch), it))
            except Failed as e:
                out.append("refused: " + self.neutral(e))
                if len(out) > 100:
                    break
                continue
            if not batch.count:
                break
            tensors = [P(batch.tensor[i]) for i in range(batch.count)]
            out.append([(w.shape(t), self.elements_of(t)) for t in tensors])
            lib.weir_batch_drop(C.byref(batch))
        lib.weir_loader_end(it)
        return out

    def elements_of(self, t):
        back = {v: k for k, v in NUMBERS.items()}[self.w.lib.weir_tensor_dtype(t)]
        return self.w.elements(t, back).tolist()

    def one_loader(self):
        r, w, lib = self.r, self.w, self.w.lib
        n = r.choice([0, 1, 2, 5, 10, 13])
        parts = [torch.arange(n * 3.).reshape(n, 3), torch.arange(n), torch.randint(0, 9, (n, 2, 2), dtype=torch.uint8)][:r.randint(1, 3)]
        size, drop, workers = r.choice([1, 2, 3, 5, 20]), r.random() < .5, r.choice([0, 0, 1, 3])
        order = [r.randrange(n) for _ in range(r.randint(0, 8))] if n and r.random() < .3 else None
        own = self.hold(parts)
        d = self.dataset(own)
        o = Loader(batch_size=size, drop_last=drop, workers=workers)
        names = iter(order or [])
        @NEXT
        def sampled(out, user):
            out[0] = next(names, -1)
            return 0
        if order is not None:
            o.sampler = Sampler(None, sampled, None)
        loader = w.new("loader_create", C.byref(d), C.byref(o))
        theirs = data.DataLoader(data.TensorDataset(*parts), batch_size=size, drop_last=drop, sampler=order)
        what = f"loader of {n} by {size} drop_last {drop} workers {workers} sampler {order}"
        self.fact(what, lambda: [[(tuple(t.shape), t.reshape(-1).tolist()) for t in b] for b in theirs], lambda: self.batches(loader))
        length = C.c_int64()
        if order is None:
            self.fact(what + ": length", lambda: len(theirs),
                      lambda: (w.check(lib.weir_loader_length(C.byref(length), loader)), length.value)[1])
        lib.weir_loader_release(loader)
        if order is None and n:
            self.shuffled(what, n, size, drop, workers)
        for t in own:
            w.release(t)

    def shuffled(self, what, n, size, drop, workers):
        """Not torch's order, which follows from its generator, but what holds of it: of an epoch every item is
        there once, sizes of batches are those of an unshuffled one, a seed repeats, an epoch does not."""
        w, lib = self.w, self.w.lib
        rows = w.of(torch.arange(n))
        def epochs(kind):
            if kind == "torch":
                g = torch.Generator().manual_seed(self.seed + 7)
                loader = data.DataLoader(data.TensorDataset(torch.arange(n)), batch_size=size, drop_last=drop, shuffle=True, generator=g)
                return [[b[0].tolist() for b in loader] for _ in range(3)]
            d = self.dataset([rows])
            o = Loader(batch_size=size, drop_last=drop, workers=workers, shuffle=True, seed=self.seed + 7)
            loader = w.new("loader_create", C.byref(d), C.byref(o))
            out = [[b[0][1] for b in self.batches(loader)] for _ in range(3)]
            lib.weir_loader_release(loader)
            return out
        def holds(kind):
            first, again = epochs(kind), epochs(kind)
            flat = [sum(e, []) for e in first]
            whole = n - n % size if drop else n
            return (first == again, [[len(b) for b in e] for e in first],
                    [len(f) == whole and len(set(f)) == whole and set(f) <= set(range(n)) for f in flat],
                    whole < 10 or len({tuple(f) for f in flat}) == 3)
        self.fact(what + ", shuffled", lambda: holds("torch"), lambda: holds("weir"))
        w.release(rows)

    def ragged(self):
        """Items that make no batch, and a dataset that fails at one item."""
        w, lib = self.w, self.w.lib
        def items(make, fails=()):
            class Theirs(data.Dataset):
                def __len__(self):
                    return 4
                def __getitem__(self, i):
                    if i in fails:
                        raise ValueError(f"item {i} is bad")
                    return make(i)
            def theirs():
                out, it = [], iter(data.DataLoader(Theirs(), batch_size=2))
                while True:
                    try:
                        b = next(it)
                    except StopIteration:
                        return out
                    except (RuntimeError, ValueError) as e:
                        out.append("refused: " + self.neutral(e))
                        continue
                    b = b if isinstance(b, list) else [b]
                    out.append([(tuple(t.shape), t.reshape(-1).tolist()) for t in b])
            @GET
            def get(out, user, i):
                if i in fails:
                    return lib.weir_fail(1, b"%s", f"item {i} is bad".encode())
                made = make(i)
                made = made if isinstance(made, tuple) else (made,)
                out[0].count = len(made)
                for k, t in enumerate(made):
                    out[0].tensor[k] = w.of(t).value
                return 0
            def ours(workers):
                d = Dataset(LENGTH(lambda user: 4), get, None, None)
                loader = w.new("loader_create", C.byref(d), C.byref(Loader(batch_size=2, workers=workers)))
                out = self.batches(loader)
                lib.weir_loader_release(loader)
                return out
            for workers in (0, 2):
                self.fact(f"items of a dataset, {workers} workers", theirs, lambda: ours(workers))
        items(lambda i: torch.ones(i + 1))
        items(lambda i: (torch.ones(1),) * (i + 1))
        items(lambda i: torch.ones(2, 3), (1,))
        items(lambda i: torch.ones(2, 3), (0, 3))
        items(lambda i: (torch.full((2,), i), torch.tensor(float(i))))

    # ---- rows 25 and 26: modules and layers

    def layer(self, kind, *arguments, **o):
        """Weir's layer with torch's arguments."""
        options = Layer(no_bias=o.pop("no_bias", False))
        for k, v in o.items():
            setattr(options.conv, k, v)
        return self.w.new("module_" + kind, *arguments, C.byref(options))

    def linear(self, a, b, bias=True):
        return nn.Linear(a, b, bias=bias), lambda: self.layer("linear", C.c_int64(a), C.c_int64(b), no_bias=not bias)

    def conv(self, a, b, k, stride=1, padding=0, dilation=1, groups=1, bias=True):
        return (nn.Conv2d(a, b, k, stride, padding, dilation, groups, bias),
                lambda: self.layer("conv2d", C.c_int64(a), C.c_int64(b), C.c_int64(k), no_bias=not bias, stride=pair(stride, stride),
                                   padding=pair(padding, padding), dilation=pair(dilation, dilation), groups=groups))

    def relu(self):
        return nn.ReLU(), lambda: self.w.new("module_relu")

    def flatten(self, a=1, b=-1):
        return nn.Flatten(a, b), lambda: self.w.new("module_flatten", a, b)

    def max_pool(self, k, stride=None, padding=0, dilation=1):
        s = k if stride is None else stride
        pool = Pool(pair(k, k), pair(s, s), pair(padding, padding), pair(dilation, dilation))
        return nn.MaxPool2d(k, stride, padding, dilation), lambda: self.w.new("module_max_pool2d", C.byref(pool))

    def sequential(self, *layers):
        def ours():
            made = [make() for _, make in layers]
            return self.w.new("module_sequential", (P * len(made))(*[m.value for m in made]), C.c_size_t(len(made)))
        return nn.Sequential(*[t for t, _ in layers]), ours

    def some_models(self):
        r = self.r
        small = lambda: self.conv(*r.choice([(1, 20, 5), (2, 4, 3, 2, 1), (4, 8, 3, 1, 2, 2), (4, 6, 1, 1, 0, 1, 2), (1, 3, 2, 1, 0, 1, 1, False)]))
        return [self.linear(10, 5), self.linear(3, 1, False), small(), small(), self.relu(), self.flatten(), self.flatten(0, 1),
                self.max_pool(2), self.max_pool(3, 1, 1, 2), self.sequential(), self.sequential(self.linear(10, 7), self.relu(), self.linear(7, 5)),
                self.sequential(self.conv(1, 20, 5), self.relu(), self.conv(20, 20, 5), self.relu()),
                self.sequential(self.conv(1, 4, 3), self.sequential(self.relu(), self.max_pool(2)), self.flatten(), self.linear(36, 5, False))]

    def state_of(self, m):
        w, lib = self.w, self.w.lib
        state = w.new("module_state", m)
        out = [(lib.weir_tensors_name(state, i).decode(), w.shape(P(lib.weir_tensors_at(state, i))),
                lib.weir_tensor_dtype(P(lib.weir_tensors_at(state, i)))) for i in range(lib.weir_tensors_count(state))]
        lib.weir_tensors_release(state)
        return out

    def state_like(self, theirs):
        return [(k, tuple(v.shape), NUMBERS[v.dtype]) for k, v in theirs.state_dict().items()]

    def printed_module(self, m):
        out = C.c_char_p()
        self.w.check(self.w.lib.weir_module_to_string(C.byref(out), m))
        return out.value.decode()

    def modules(self, folder):
        self.row("25 modules, 26 layers, 34 a model's state by file")
        w, lib = self.w, self.w.lib
        for theirs, make in self.some_models():
            m = make()
            what = str(theirs).replace("\n", " ")
            self.fact(f"print({what})", lambda: str(theirs), lambda: self.printed_module(m))
            self.fact(f"state of {what}", lambda: self.state_like(theirs), lambda: self.state_of(m))
            count = C.c_int64()
            self.fact(f"parameters of {what}", lambda: sum(p.numel() for p in theirs.parameters()),
                      lambda: (w.check(lib.weir_module_count_parameters(C.byref(count), m)), count.value)[1])
            self.fact(f"modules of {what}", lambda: [n for n, _ in theirs.named_modules()], lambda: self.paths(m))
            self.first_values(what, theirs, m)
            self.results(what, theirs, m, folder)
            for d in DTYPES:
                before = self.state_of(m)
                def ours():
                    w.check(lib.weir_module_to(m, C.byref(Options(dtype=NUMBERS[d]))))
                    return self.state_of(m)
                def to():
                    theirs.to(d)
                    return self.state_like(theirs)
                self.fact(f"{what} to {d}", to, ours)
                if before and not d.is_floating_point and not d.is_complex:
                    self.fact(f"{what} stays after {d}", lambda: before, lambda: self.state_of(m))
                if d.is_complex:
                    w.check(lib.weir_module_to(m, C.byref(Options(dtype=7))))
                    theirs.to(torch.float32)
            lib.weir_module_release(m)
        self.own_modules()
        self.refused_modules()

    def paths(self, m):
        out = []
        @VISIT
        def visit(user, path, child):
            out.append(path.decode())
            return 0
        self.w.check(self.w.lib.weir_module_visit_modules(m, visit, None))
        return out

    def first_values(self, what, theirs, m):
        """Of both libraries' first parameters: within torch's bound, and as spread out."""
        for k, p in theirs.named_parameters():
            ours = self.w.elements(P(self.w.lib.weir_module_parameter(m, k.encode())), p.dtype)
            inner = dict(theirs.named_parameters())[k[:-4] + "weight" if k.endswith("bias") else k]
            bound = 1 / math.sqrt(inner[0].numel())
            self.fact(f"first {k} of {what}", lambda: (bool((p.abs() <= bound).all()), p.numel() < 40 or abs(float(p.detach().std()) / bound - 3**-.5) < .25),
                      lambda: (bool((ours.abs() <= bound).all()), p.numel() < 40 or abs(float(ours.std()) / bound - 3**-.5) < .25))

    def results(self, what, theirs, m, folder):
        """One's state into the other by a file, either way; then what they calculate."""
        w, lib = self.w, self.w.lib
        path = os.path.join(folder, "state.safetensors")
        for direction in ("torch to weir", "weir to torch"):
            def move():
                if direction == "torch to weir":
                    safetensors.torch.save_file(theirs.state_dict(), path)
                    w.check(lib.weir_module_load(m, path.encode(), True))
                else:
                    with torch.no_grad():
                        for p in theirs.parameters():
                            p.zero_()
                    w.check(lib.weir_module_save(m, path.encode()))
                    theirs.load_state_dict(safetensors.torch.load_file(path))
                return [w.elements(P(lib.weir_module_parameter(m, k.encode())), p.dtype).tolist() for k, p in theirs.named_parameters()]
            ours = move()
            self.fact(f"{what}: {direction}", lambda: [p.detach().reshape(-1).tolist() for p in theirs.parameters()], lambda: ours)
            for sizes in ([3, 10], [10], [2, 1, 12, 12], [1, 8, 8], [2, 2, 9, 7], [2, 4, 9, 9], [4, 3], [2, 3, 5, 5]):
                t = torch.randn(sizes)
                own = w.of(t)
                self.own_strides = True
                self.judge(f"{what} of {sizes}", lambda: theirs(t).detach(), lambda: w.new("module_call", m, own), several=64, scale=torch.ones(()) * 4)
                self.own_strides = False
                self.gradients(f"{what} of {sizes}", theirs, m, t, own)
                w.release(own)

    def gradients(self, what, theirs, m, t, own):
        """Of all parameters, from the sum of the squares of what the module makes."""
        w, lib = self.w, self.w.lib
        if not list(theirs.parameters()):
            return
        theirs.zero_grad()
        try:
            theirs(t).square().sum().backward()
        except (RuntimeError, ValueError, IndexError):
            return  # both refuse, as results() has found
        def ours():
            lib.weir_module_zero_grad(m)
            out = w.new("module_call", m, own)
            square = w.new("square", out)
            total = w.new("sum", square)
            w.check(lib.weir_backward(total, None, False))
            for made in (total, square, out):
                w.release(made)
            return True
        self.fact(f"backward of {what}", lambda: True, ours)
        for k, p in theirs.named_parameters():
            grad = lib.weir_tensor_grad(P(lib.weir_module_parameter(m, k.encode())))
            most = 1e-5 * float(p.grad.abs().max())
            far = float((w.elements(P(grad), p.dtype) - p.grad.reshape(-1)).abs().max()) if grad else math.inf
            self.fact(f"gradient of {k} of {what}", lambda: True, lambda: far <= most or f"off by {far}, of {most}")

    def own_modules(self):
        """Modules of the program's: nested, with buffers, with common tensors and children."""
        w, lib = self.w, self.w.lib
        kind = ModuleClass(name=b"Net")
        class Net(nn.Module):
            pass
        def both():
            return Net(), w.new("module_new", C.byref(kind), None)
        def tensor(t, *_):
            return w.of(t)
        a, wa = both()
        b, wb = both()
        common = torch.ones(2, 3)
        wcommon = w.of(common)
        par = nn.Parameter(common)
        a.register_parameter("weight", par)
        w.check(lib.weir_module_add_parameter(wa, b"weight", P(lib.weir_tensor_retain(wcommon))))
        for name, t, keep in (("count", torch.arange(3), True), ("mean", torch.zeros(4), True), ("scratch", torch.ones(1), False)):
            a.register_buffer(name, t, keep)
            w.check(lib.weir_module_add_buffer(wa, name.encode(), w.of(t), keep))
        a.register_parameter("none", None)
        w.check(lib.weir_module_add_parameter(wa, b"none", None))
        b.register_parameter("tied", par)
        w.check(lib.weir_module_add_parameter(wb, b"tied", P(lib.weir_tensor_retain(wcommon))))
        lin, wlin = self.linear(3, 2)
        wlin = wlin()
        for m, wm, name in ((b, wb, "one"), (a, wa, "two")):
            m.add_module(name, lin)
            w.check(lib.weir_module_add(wm, name.encode(), P(lib.weir_module_retain(wlin))))
        a.add_module("inner", b)
        w.check(lib.weir_module_add(wa, b"inner", P(lib.weir_module_retain(wb))))
        self.fact("state of nested modules", lambda: self.state_like(a), lambda: self.state_of(wa))
        self.fact("names of parameters, common ones once", lambda: [k for k, _ in a.named_parameters()], lambda: self.visited(wa, 1))
        self.fact("names of buffers", lambda: [k for k, _ in a.named_buffers()], lambda: self.visited(wa, 2))
        self.fact("names of modules", lambda: [k for k, _ in a.named_modules()], lambda: self.paths(wa))
        self.fact("printed", lambda: str(a), lambda: self.printed_module(wa))
        for d in (torch.float64, torch.float16, torch.bfloat16, torch.float32):
            a.to(d)
            w.check(lib.weir_module_to(wa, C.byref(Options(dtype=NUMBERS[d]))))
            self.fact(f"nested modules to {d}", lambda: self.state_like(a), lambda: self.state_of(wa))
        self.fact("common after moving", lambda: a.weight is a.inner.tied,
                  lambda: lib.weir_module_parameter(wa, b"weight") == lib.weir_module_parameter(wa, b"inner.tied"))
        for on in (False, True):
            a.train(on)
            lib.weir_module_train(wa, on)
            self.fact(f"train {on}", lambda: [m.training for m in a.modules()],
                      lambda: [lib.weir_module_is_training(P(lib.weir_module_child(wa, p.encode()))) for p in self.paths(wa)])
        for name in (b"", b"a.b", b"weight", b"count", b"two"):
            for add, theirs in (("parameter", lambda: a.register_parameter(name.decode(), nn.Parameter(torch.ones(1)))),
                                ("buffer", lambda: a.register_buffer(name.decode(), torch.ones(1)))):
                call = getattr(lib, "weir_module_add_" + add)
                more = (True,) if add == "buffer" else ()
                if name == b"weight" and add == "parameter" or name == b"count" and add == "buffer":
                    continue  # torch puts another in its place
                self.fact(f"{add} called '{name.decode()}'", theirs, lambda: w.check(call(wa, name, w.of(torch.ones(1)), *more)))
            if name != b"two":
                self.fact(f"module called '{name.decode()}'", lambda: a.add_module(name.decode(), nn.ReLU()),
                          lambda: w.check(lib.weir_module_add(wa, name, w.new("module_relu"))))
        x = w.of(torch.ones(1))
        self.fact("no forward", lambda: a(torch.ones(1)), lambda: w.new("module_call", wa, x))
        for v in (x, wcommon):
            w.release(v)
        for v in (wa, wb, wlin):
            lib.weir_module_release(v)

    def visited(self, m, what):
        out = []
        @VISIT
        def visit(user, path, t):
            out.append(path.decode())
            return 0
        self.w.check(self.w.lib.weir_module_visit(m, what, visit, None))
        return out

    def refused_modules(self):
        w, lib = self.w, self.w.lib
        for a, b, k, g in ((3, 4, 5, 2), (4, 3, 5, 2), (4, 4, 3, -1)):
            self.fact(f"Conv2d({a}, {b}, {k}, groups={g})", lambda: nn.Conv2d(a, b, k, groups=g) and None,
                      lambda: self.layer("conv2d", C.c_int64(a), C.c_int64(b), C.c_int64(k), groups=g) and None)
        theirs, make = self.sequential(self.linear(3, 2), self.sequential(self.linear(2, 2)))
        m = make()
        own = {"0.weight": torch.ones(2, 3), "0.bias": torch.ones(2), "1.0.weight": torch.ones(2, 2), "1.0.bias": torch.ones(2)}
        for n in range(60):
            state = dict(own)
            for _ in range(self.r.randint(0, 3)):
                k = self.r.choice(list(own))
                self.r.choice([lambda: state.pop(k, None), lambda: state.update({k: torch.ones(self.r.randint(1, 3), 2)}),
                               lambda: state.update({self.r.choice(["x", "0.x", "1.0.x", "2.weight"]): torch.ones(1)}),
                               lambda: state.update({k: torch.ones(())})])()
            strict = self.r.random() < .7
            tensors = w.new("tensors_create")
            for k, t in state.items():
                own_t = w.of(t)
                w.check(lib.weir_tensors_put(tensors, k.encode(), own_t))
                w.release(own_t)
            self.fact(f"load {[(k, tuple(t.shape)) for k, t in state.items()]} strict {strict}",
                      lambda: theirs.load_state_dict(state, strict=strict) and None,
                      lambda: w.check(lib.weir_module_load_state(m, tensors, strict)))
            lib.weir_tensors_release(tensors)
        lib.weir_module_release(m)

    # ---- row 32 and files

    def switches(self):
        self.row("32 switches of precision")
        lib = self.w.lib
        self.fact("tf32", lambda: torch.backends.cuda.matmul.allow_tf32, lib.weir_get_allow_tf32)
        self.fact("reduced precision", lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
                  lib.weir_get_allow_reduced_precision)
        self.fact("deterministic", torch.are_deterministic_algorithms_enabled, lib.weir_get_deterministic)

    def files(self, folder):
        self.row("34 .npy and .safetensors")
        w, lib = self.w, self.w.lib
        ours, theirs = (os.path.join(folder, n) for n in ("ours", "theirs"))
        for n in range(150):
            d = self.r.choice(DTYPES)
            t, own = self.tensor(self.sizes(), d)
            if d != torch.bfloat16:
                def back():
                    w.check(lib.weir_npy_write(ours.encode(), own))
                    with open(ours, "rb") as f:
                        a = numpy.load(f, allow_pickle=False)
                    return a.shape, str(a.dtype), a.tobytes()
                self.fact(f"npy of {tuple(t.shape)} {t.stride()} {d}", lambda: (tuple(t.shape), str(d)[6:], t.contiguous().numpy().tobytes()), back)
                with open(theirs, "wb") as f:
                    numpy.save(f, t.numpy())
                self.judge("npy of theirs", lambda: t.contiguous() if t.is_contiguous() else torch.from_numpy(numpy.load(theirs)),
                           lambda: w.new("npy_read", theirs.encode(), None))
            w.release(own)
        for n in range(60):
            tensors, names, state = w.new("tensors_create"), [f"{i}é.\"x\"" for i in range(self.r.randint(0, 6))], {}
            for name in names:
                d = self.r.choice(DTYPES)
                state[name], own = self.tensor(self.sizes(), d)
                w.check(lib.weir_tensors_put(tensors, name.encode(), own))
                w.release(own)
            def saved():
                w.check(lib.weir_safetensors_save(ours.encode(), tensors))
                return {k: (v.dtype, tuple(v.shape), v.contiguous().view(torch.uint8).tolist() if v.dim() else v.tolist())
                        for k, v in safetensors.torch.load_file(ours).items()}
            dense = {k: v.clone(memory_format=torch.contiguous_format).reshape(v.shape) for k, v in state.items()}
            expected = {k: (v.dtype, tuple(v.shape), v.view(torch.uint8).tolist() if v.dim() else v.tolist()) for k, v in dense.items()}
            self.fact("safetensors of ours", lambda: repr(expected), lambda: repr({k: saved_one for k, saved_one in sorted(saved().items())}))
            safetensors.torch.save_file(dense, theirs)
            read = w.new("safetensors_load", theirs.encode(), None)
            for k, v in dense.items():
                self.judge(f"safetensors of theirs {tuple(v.shape)} {v.dtype}", lambda: v,
                           lambda: P(lib.weir_tensor_retain(P(lib.weir_tensors_get(read, k.encode())))))
            lib.weir_tensors_release(read)
            lib.weir_tensors_release(tensors)


def main():
    weir = Weir(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.manual_seed(seed)
    run = Rows(weir, seed)
    with tempfile.TemporaryDirectory() as folder:
        for part in (run.types, run.defaults, run.names_of_devices, run.creation, run.conversion, run.items, run.promotion,
                     lambda: run.printing(1500), lambda: run.loaders(60), lambda: run.modules(folder), run.switches, lambda: run.files(folder)):
            part()
    run.tally()
    print(f"{run.steps} comparisons, {run.bad} unlike torch {torch.__version__}")
    sys.exit(run.bad > 0)


if __name__ == "__main__":
    main()

"""Tensors on the cpu beside PyTorch's: views, copies, casts, factories, printed form, and errors' texts.

    python tests/peers/tensors.py LIBWEIR [CASES [SEED]]

Needs a torch for the cpu (any build) and numpy. Random programs run through both libraries; after each step
shape, strides, dtype, elements and printed form must be equal, and where one fails the other must, with the same
sentence (torch. for weir.). Ends with a line that counts the steps, exit status 1 where they differ.
"""
import ctypes as C
import random
import re
import sys
import warnings

import torch

warnings.filterwarnings("ignore")

NUMBERS = {
    torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6,
    torch.float32: 7, torch.float64: 8, torch.complex64: 9, torch.bool: 10, torch.bfloat16: 11,
}
DTYPES = list(NUMBERS)


class Shape(C.Structure):
    _fields_ = [("count", C.c_int), ("size", C.c_int64 * 8)]


class Device(C.Structure):
    _fields_ = [("type", C.c_int), ("plus_1", C.c_int)]

    def __init__(self, type=0, index=-1):
        super().__init__(type, index + 1)

    @property
    def index(self):
        return self.plus_1 - 1


class Options(C.Structure):
    _fields_ = [("dtype", C.c_int), ("device", Device), ("pin_memory", C.c_bool), ("non_blocking", C.c_bool),
                ("copy", C.c_bool), ("memory_format", C.c_uint8), ("as_bytes", C.c_bool)]


class Scalar(C.Structure):
    _fields_ = [("dtype", C.c_int), ("i", C.c_int64), ("f", C.c_double), ("imag", C.c_double)]


class PrintOptions(C.Structure):
    _fields_ = [(n, C.c_int) for n in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")]


class Failed(Exception):
    pass


def shape(sizes):
    s = Shape(count=len(sizes))
    for i, v in enumerate(sizes):
        s.size[i] = v
    return s


def scalar(v):
    if isinstance(v, bool):
        return Scalar(10, int(v), 0, 0)
    if isinstance(v, int):
        return Scalar(5, v, 0, 0)
    if isinstance(v, complex):
        return Scalar(9, 0, v.real, v.imag)
    return Scalar(8, 0, v, 0)


class Weir:
    def __init__(self, path):
        self.lib = C.CDLL(path)
        self.lib.weir_error_message.restype = C.c_char_p
        self.lib.weir_tensor_shape.restype = Shape
        for name in ("size", "stride"):
            getattr(self.lib, "weir_tensor_" + name).restype = C.c_int64
        self.lib.weir_tensor_data.restype = C.c_void_p
        self.lib.weir_tensor_numel.restype = C.c_int64

    def check(self, status):
        if status:
            raise Failed(self.lib.weir_error_message().decode())

    def new(self, name, *arguments):
        out = C.c_void_p()
        self.check(getattr(self.lib, "weir_" + name)(C.byref(out), *arguments))
        return out

    def many(self, name, room, *arguments):
        out = (C.c_void_p * room)()
        count = C.c_int()
        self.check(getattr(self.lib, "weir_" + name)(out, C.byref(count), *arguments))
        return [C.c_void_p(v) for v in out[:count.value]]

    def release(self, t):
        self.lib.weir_tensor_release(t)

    def text(self, t):
        out = C.c_char_p()
        self.check(self.lib.weir_tensor_to_string(C.byref(out), t))
        return out.value.decode()

    def of(self, t):
        """t's elements in a tensor of Weir's, with t's strides where it has no holes."""
        dense = t.contiguous()
        return self.new("tensor_from", C.c_void_p(dense.data_ptr() or 8), NUMBERS[t.dtype], shape(list(t.shape)), None)

    def shape(self, t):
        s = self.lib.weir_tensor_shape(t)
        return tuple(s.size[:s.count])

    def stride(self, t):
        return tuple(self.lib.weir_tensor_stride(t, i) for i in range(self.lib.weir_tensor_dim(t)))

    def elements(self, t, dtype):
        n = self.lib.weir_tensor_numel(t)
        out = torch.empty(n, dtype=dtype)
        self.check(self.lib.weir_tensor_read(C.c_void_p(out.data_ptr()), C.c_size_t(n * out.element_size()),
                                             NUMBERS[dtype], t))
        return out


def plain(sentence):
    """What both say: torch's name of itself, and what it adds about kernels, apart."""
    sentence = str(sentence).splitlines()[0]
    return re.sub(r"\btorch\.", "weir.", types(sentence))


def types(sentence):
    return re.sub(r"CUDA(\w+)Type", r"weir.cuda.\1Tensor", re.sub(r"CPU(\w+)Type", r"weir.\1Tensor", sentence))


def printed(text):
    """weir.float64 is a character shorter than torch.float64: where dtype= goes onto a line of its own differs."""
    return re.sub(r",\s+dtype=\w+\.", ", dtype=", text)


def same_elements(a, b):
    if a.dtype.is_complex:
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    return torch.equal(torch.nan_to_num(a, nan=12345.) if a.is_floating_point() else a,
                       torch.nan_to_num(b, nan=12345.) if b.is_floating_point() else b)


class Run:
    def __init__(self, weir, seed):
        self.w = weir
        self.r = random.Random(seed)
        self.seed = seed
        self.steps = 0
        self.bad = 0

    def complain(self, what, theirs, ours):
        self.bad += 1
        if self.bad <= 20:
            print(f"seed {self.seed}: {what}\n  torch: {theirs}\n  weir:  {ours}")

    def sizes(self):
        return [self.r.choice([0, 1, 1, 2, 3, 4, 5, 7, 30] if self.r.random() < .3 else [1, 2, 3, 4, 5])
                for _ in range(self.r.randint(0, 4))]

    def values(self, sizes, dtype):
        n = 1
        for s in sizes:
            n *= s
        kind = self.r.randint(0, 6)
        if dtype == torch.bool:
            t = torch.rand(n) < .5
        elif not dtype.is_floating_point and not dtype.is_complex:
            t = torch.randint(-5, 5, (n,)) if kind < 4 else torch.randint(-2**60, 2**60, (n,))
        else:
            t = torch.randn(n, dtype=torch.float64) * self.r.choice([1, 10, 1e3, 1e-3, 1e6, 1e-6])
            if kind == 1:
                t = t.round()
            if kind == 2:
                t = t * 10 ** (torch.randn(n, dtype=torch.float64) * 3)
            if kind == 3 and n:
                for _ in range(3):
                    t[self.r.randrange(n)] = self.r.choice([float("nan"), float("inf"), -float("inf"), 0., -0.])
            if kind == 4:
                t = t * 0
            if dtype.is_complex:
                t = torch.complex(t, t.flip(0))
        return t.to(dtype).reshape(sizes)

    def both(self, what, theirs, ours):
        """Runs both; their results, or None where both failed alike."""
        self.steps += 1
        try:
            a, wrong = theirs(), None
        except (RuntimeError, IndexError, ValueError, TypeError) as e:
            a, wrong = None, e
        try:
            b, sentence = ours(), None
        except Failed as e:
            b, sentence = None, str(e)
        if (wrong is None) != (sentence is None):
            self.complain(what + ": one fails", plain(wrong) if wrong else a, sentence)
            return None
        if wrong is not None:
            if plain(wrong) != sentence:
                self.complain(what, plain(wrong), sentence)
            return None
        return a, b

    def compare(self, what, t, w, elements=True):
        if tuple(t.shape) != self.w.shape(w):
            return self.complain(what + ": shape", tuple(t.shape), self.w.shape(w))
        if t.numel() and any(a != b for a, b, n in zip(t.stride(), self.w.stride(w), t.shape) if n > 1):
            return self.complain(what + ": strides", t.stride(), self.w.stride(w))
        ours = self.w.elements(w, t.dtype)
        if what.startswith("arange") and t.is_floating_point():  # torch's vector steps round twice
            near = 2 * torch.finfo(t.dtype).eps * float(t.abs().max()) if t.numel() else 0
            return None if torch.allclose(t.double(), ours.double(), rtol=0, atol=near) else self.complain(what, t, ours)
        if elements and not same_elements(t.reshape(-1), ours):
            return self.complain(what + ": elements", t, self.w.text(w))
        return None

    def print_one(self, t, w):
        self.steps += 1
        theirs, ours = printed(str(t)), printed(self.w.text(w))
        if theirs != ours:
            self.complain(f"printing {tuple(t.shape)} {t.dtype}", "\n" + theirs, "\n" + ours)

    # ---- steps

    def view_dim(self, t):
        return self.r.randint(-t.dim() - 1, t.dim())

    def view_step(self, t, w):
        r, n = self.r, self.w.new
        kind = r.randrange(14)
        d = self.view_dim(t)
        a, b = r.randint(-7, 7), r.randint(-7, 7)
        if kind == 0:
            e = self.view_dim(t)
            return f"transpose {d} {e}", lambda: t.transpose(d, e), lambda: n("transpose", w, d, e)
        if kind == 1:
            return "t", lambda: t.t(), lambda: n("t", w)
        if kind == 2:
            order = list(range(t.dim()))
            r.shuffle(order)
            if order and r.random() < .2:
                order[0] = r.randint(-t.dim() - 1, t.dim())
            return f"permute {order}", lambda: t.permute(order), lambda: n(
                "permute", w, (C.c_int * 8)(*order))
        if kind == 3:
            step = r.choice([1, 1, 2, 3, 100, 0, -1])
            return (f"slice {d} {a} {b} {step}", lambda: torch.ops.aten.slice(t, d, a, b, step),
                    lambda: n("slice", w, d, C.c_int64(a), C.c_int64(b), C.c_int64(step)))
        if kind == 4:
            return f"narrow {d} {a} {b}", lambda: t.narrow(d, a, b), lambda: n(
                "narrow", w, d, C.c_int64(a), C.c_int64(b))
        if kind == 5:
            return f"select {d} {a}", lambda: t.select(d, a), lambda: n("select", w, d, C.c_int64(a))
        if kind == 6:
            return f"squeeze {d}", lambda: t.squeeze(d), lambda: n("squeeze", w, d)
        if kind == 7:
            if t.dim() == 8:
                return None
            return f"unsqueeze {d}", lambda: t.unsqueeze(d), lambda: n("unsqueeze", w, d)
        if kind == 8:
            s = list(t.shape)
            s = [r.choice([v, v, -1, 3 if v == 1 else v]) for v in s]
            if r.random() < .3:
                s = [r.choice([1, 2, -1])] + s
            if r.random() < .1 and s:
                s.pop()
            if len(s) > 8 or t.numel() > 5000 or (t.dim() == 0 and -1 in s):
                return None
            return f"expand {s}", lambda: t.expand(s), lambda: n("expand", w, shape(s))
        if kind in (9, 10):
            s = self.factors(t.numel())
            name = "view" if kind == 9 else "reshape"
            return f"{name} {s}", lambda: getattr(t, name)(s), lambda: n(name, w, shape(s))
        if kind == 11:
            e = self.view_dim(t)
            return f"flatten {d} {e}", lambda: t.flatten(d, e), lambda: n("flatten", w, d, e)
        if kind == 12:
            c = r.randint(-1, 5)
            return f"chunk {c} {d}", lambda: t.chunk(c, d)[-1], lambda: self.last(
                self.w.many("chunk", 8, w, c, d))
        c = r.randint(-1, 5)
        room = 1 + max(t.shape, default=1)
        return f"split {c} {d}", lambda: t.split(c, d)[0], lambda: self.last(
            self.w.many("split", room, room, w, C.c_int64(c), d)[::-1])

    def last(self, tensors):
        for t in tensors[:-1]:
            self.w.release(t)
        return tensors[-1]

    def factors(self, n):
        s = []
        for _ in range(self.r.randint(0, 3)):
            f = self.r.choice([d for d in (1, 2, 3, 4, 5, 6, 10) if n and n % d == 0] or [0, 1, 2])
            s.append(f)
            if f:
                n //= f
        s.append(n)
        self.r.shuffle(s)
        if self.r.random() < .4:
            s[self.r.randrange(len(s))] = self.r.choice([-1, -1, -1, 7, -2])
        return s

    def copy_step(self, t, w):
        r, n = self.r, self.w.new
        kind = r.randrange(6)
        dtype = r.choice(DTYPES)
        if kind == 0:
            return "clone", lambda: t.clone(), lambda: n("clone", w)
        if kind == 1:
            return "contiguous", lambda: t.contiguous(), lambda: n("contiguous", w)
        if kind == 2:
            if t.is_floating_point() and not dtype.is_floating_point and not dtype.is_complex:
                if not bool((t.isfinite() & (t.abs() < 100)).all()) or dtype == torch.uint8:
                    return None  # what C leaves undefined
            return f"to {dtype}", lambda: t.to(dtype), lambda: n("to_dtype", w, NUMBERS[dtype])
        if kind == 3:
            v = r.choice([0, 1, -1, 255, 256, -255, -256, 127, 128, -129, 2**31, -2**31, 2.5, -1.0, 1e5, 1e60,
                          float("inf"), float("nan"), True, 1 + 2j, 3 + 0j, 2**40, 1e19])
            if t.numel() == 1 and t.dtype in (torch.float16, torch.bfloat16):
                return None  # torch checks more elements, and not one
            def fill():
                c = n("clone", w)
                try:
                    self.w.check(self.w.lib.weir_fill_(c, scalar(v)))
                except Failed:
                    self.w.release(c)
                    raise
                return c
            return f"fill_ {v} of {t.dtype}", lambda: t.clone().fill_(v), fill
        if kind == 4:
            o = self.values([self.r.choice([v, v, v, 1, 2]) for v in t.shape[self.r.randint(0, t.dim()):]],
                            r.choice([t.dtype, torch.float32, torch.bool]))
            if t.dtype == torch.uint8 or (o.is_floating_point() and not t.is_floating_point()):
                o = o.to(t.dtype)
            def copy():
                c, s = n("clone", w), self.w.of(o)
                try:
                    self.w.check(self.w.lib.weir_copy_(c, s, False))
                except Failed:
                    self.w.release(c)
                    raise
                finally:
                    self.w.release(s)
                return c
            return f"copy_ {tuple(t.shape)} {tuple(o.shape)}", lambda: t.clone().copy_(o), copy
        name = r.choice(["zeros_like", "ones_like"])
        return name, lambda: getattr(torch, name)(t), lambda: n(name, w, None)

    def range_step(self):
        r = self.r
        def number():
            return r.choice([r.randint(-20, 20), r.randint(-20, 20), round(r.uniform(-9, 9), 2), 0, 1, float("inf"),
                             2.5]) if r.random() < .5 else r.randint(-9, 9)
        a, b, s = number(), number(), number()
        dtype = r.choice([None, None, None] + DTYPES)
        if dtype is not None and not dtype.is_floating_point and any(isinstance(v, float) for v in (a, b, s)):
            return None
        o = Options(dtype=NUMBERS.get(dtype, 0))
        return (f"arange {a} {b} {s} {dtype}", lambda: torch.arange(a, b, s, dtype=dtype),
                lambda: self.w.new("arange", scalar(a), scalar(b), scalar(s), C.byref(o)))

    def print_options(self):
        r = self.r
        o = dict(precision=r.choice([4, 4, 2, 0, 8]), threshold=r.choice([1000, 20, 5]), edgeitems=r.choice([3, 2, 1]),
                 linewidth=r.choice([80, 80, 40, 10]))
        sci = r.choice([None, None, None, True, False])
        torch.set_printoptions(sci_mode=sci, **o)
        self.w.check(self.w.lib.weir_set_print_options(
            C.byref(PrintOptions(sci_mode={None: 0, True: 1, False: -1}[sci], **o))))

    def program(self):
        self.print_options()
        t = self.values(self.sizes(), self.r.choice(DTYPES))
        w = self.w.of(t)
        self.print_one(t, w)
        for _ in range(8):
            step = self.r.choice([lambda: self.view_step(t, w), lambda: self.view_step(t, w),
                                  lambda: self.copy_step(t, w), self.range_step])()
            if not step:
                continue
            got = self.both(f"{step[0]} of {tuple(t.shape)} {t.stride()}", step[1], step[2])
            if not got:
                continue
            self.compare(step[0] + f" of {tuple(t.shape)}", *got)
            if step[0].startswith("arange") and not same_elements(got[0], self.w.elements(got[1], got[0].dtype)):
                self.w.release(got[1])  # as near as it must be, and no more
                continue
            if self.r.random() < .3:
                self.print_one(*got)
            self.w.release(w)
            t, w = got
        self.w.release(w)


def main():
    weir = Weir(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    steps = bad = 0
    for i in range(seed, seed + count):
        run = Run(weir, i)
        torch.manual_seed(i)
        run.program()
        steps += run.steps
        bad += run.bad
        if bad > 20:
            break
    print(f"{steps} steps of {count} programs, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

"""The part of ops.py about shape.h: what is cut, turned, repeated and padded. A mixin of its Calls."""
import ctypes as C

import torch
import torch.nn.functional as F

from tensors import DTYPES, Device, NUMBERS, Options, scalar, shape

MODES = ["constant", "reflect", "replicate", "circular"]


def ints(values):
    return (C.c_int * max(1, len(values)))(*values)


def longs(values):
    return (C.c_int64 * max(1, len(values)))(*values)


class Shapes:
    def dim(self, t):
        r = self.r
        return r.randint(-t.dim() - 1, t.dim()) if r.random() < .15 else r.randint(-max(t.dim(), 1), max(t.dim() - 1, 0))

    def known(self, name, count, *arguments):
        """Of a function that gives as many as it is asked for."""
        out = (C.c_void_p * max(1, count))()
        self.w.check(getattr(self.w.lib, "weir_" + name)(out, *arguments))
        return [C.c_void_p(v) for v in out[:count]]

    def part(self):
        r = self.r
        t, w = self.tensor(self.sizes(), r.choice(DTYPES))
        d = self.dim(t)
        size = t.shape[d] if t.dim() and -t.dim() <= d < t.dim() else 2
        name = r.choice("unbind split_with_sizes tensor_split tensor_split_at unfold diagonal movedim swapaxes "
                        "unflatten expand_as broadcast_to meshgrid".split())
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d}"
        if name == "unbind":
            self.judge(what, lambda: torch.unbind(t, d), lambda: self.w.many(name, 64, 64, w, d))
        elif name == "split_with_sizes":
            parts = [r.randint(0, size) for _ in range(r.randint(1, 3))]
            if r.random() < .8 and sum(parts[:-1]) <= size:
                parts[-1] = size - sum(parts[:-1])
            if r.random() < .05:
                parts[0] = -1
            self.judge(what + f" {parts}", lambda: torch.split(t, parts, d),
                       lambda: self.known(name, len(parts), w, longs(parts), len(parts), d))
        elif name == "tensor_split":
            n = r.randint(0, 4)
            self.judge(what + f" {n}", lambda: torch.tensor_split(t, n, d), lambda: self.known(name, n, w, n, d))
        elif name == "tensor_split_at":
            at = [r.randint(-size - 1, size + 1) for _ in range(r.randint(1, 3))]
            self.judge(what + f" {at}", lambda: torch.tensor_split(t, at, d),
                       lambda: self.known(name, len(at) + 1, w, longs(at), len(at), d))
        elif name == "unfold":
            n, step = r.randint(-1 if r.random() < .1 else 0, size + (r.random() < .1)), r.randint(r.random() > .05, 3)
            self.judge(what + f" {n} {step}", lambda: t.unfold(d, n, step),
                       lambda: self.w.new(name, w, d, C.c_int64(n), C.c_int64(step)))
        elif name == "diagonal":
            o, e = r.randint(-4, 4), self.dim(t)
            self.judge(what + f" {e} offset {o}", lambda: torch.diagonal(t, o, d, e),
                       lambda: self.w.new(name, w, C.c_int64(o), d, e))
        elif name == "movedim":
            n = r.randint(1, max(1, t.dim()))
            a, b = [self.dim(t) for _ in range(n)], [self.dim(t) for _ in range(n)]
            if r.random() < .7 and t.dim():
                a, b = r.sample(range(t.dim()), n), r.sample(range(t.dim()), n)
            self.judge(what + f" {a} {b}", lambda: torch.movedim(t, a, b),
                       lambda: self.w.new(name, w, ints(a), ints(b), n))
        elif name == "swapaxes":
            e = self.dim(t)
            self.judge(what + f" {e}", lambda: torch.swapaxes(t, d, e), lambda: self.w.new(name, w, d, e))
        elif name == "unflatten" and t.dim() and t.numel():
            s = r.choice([[-1, 1], [1, size], [size, 1, 1], [2, -1], [2, 2], [-1], [3], [-1, -1], [-2, size]])
            self.judge(what + f" {s}", lambda: t.unflatten(d, s), lambda: self.w.new(name, w, d, shape(s)))
        elif name in ("expand_as", "broadcast_to"):
            s = list(t.shape)
            s = [r.choice([3, v]) if v == 1 else v if r.random() < .95 else v + 1 for v in s]
            s = ([2] if r.random() < .3 else []) + s if r.random() < .9 else s[1:]
            if name == "broadcast_to":
                self.judge(what + f" {s}", lambda: torch.broadcast_to(t, s), lambda: self.w.new(name, w, shape(s)))
            else:
                o, ow = self.tensor(s, torch.float32)
                self.judge(what + f" {s}", lambda: t.expand_as(o), lambda: self.w.new(name, w, ow))
                self.w.release(ow)
        elif name == "meshgrid":
            self.grid()
        self.w.release(w)

    def grid(self):
        r = self.r
        n = r.randint(1, 4)
        parts = [self.tensor([r.randint(0, 3)] if r.random() < .9 else [], torch.float32 if r.random() < .98 else
                             torch.int32) for _ in range(n)]
        ts, xy = [p[0] for p in parts], r.random() < .5
        ws = (C.c_void_p * n)(*[p[1].value for p in parts])
        self.own_strides = True
        self.judge(f"meshgrid {[tuple(t.shape) for t in ts]} {xy}",
                   lambda: torch.meshgrid(ts, indexing="xy" if xy else "ij"),
                   lambda: self.known("meshgrid", n, ws, n, xy))
        self.own_strides = False
        for p in parts:
            self.w.release(p[1])

    def arrange(self):
        r = self.r
        t, w = self.tensor(self.sizes(), r.choice(DTYPES))
        d = self.dim(t)
        name = r.choice("flip fliplr flipud rot90 roll roll_all repeat tile stack pad pad".split())
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d}"
        if name == "flip":
            dims = [self.dim(t) for _ in range(r.randint(1, 3))]
            self.own_strides = not t.is_contiguous()
            self.judge(what + f" {dims}", lambda: torch.flip(t, dims), lambda: self.w.new(name, w, ints(dims), len(dims)))
        elif name in ("fliplr", "flipud"):
            self.own_strides = not t.is_contiguous()
            self.judge(what, lambda: getattr(torch, name)(t), lambda: self.w.new(name, w))
        elif name == "rot90":
            k, e = r.randint(-5, 5), self.dim(t)
            self.own_strides = not t.is_contiguous()
            self.judge(what + f" {e} {k}", lambda: torch.rot90(t, k, (d, e)), lambda: self.w.new(name, w, k, d, e))
        elif name == "roll_all":
            k = r.randint(-9, 9)
            self.judge(what + f" {k}", lambda: torch.roll(t, k), lambda: self.w.new("roll", w, longs([k]), None, 1))
        elif name == "roll":
            n = r.randint(1, 3)
            s, dims = [r.randint(-9, 9) for _ in range(n)], [self.dim(t) for _ in range(n)]
            self.judge(what + f" {s} {dims}", lambda: torch.roll(t, s, dims),
                       lambda: self.w.new("roll", w, longs(s), ints(dims), n))
        elif name in ("repeat", "tile"):
            s = [r.choice([1, 1, 2, 3, 0]) for _ in range(r.randint(max(0, t.dim() - (r.random() < .3)), t.dim() + 1))]
            if s and r.random() < .03:
                s[0] = -2
            self.judge(what + f" {s}", lambda: getattr(t, name)(s), lambda: self.w.new(name, w, shape(s)))
        elif name == "stack":
            self.stacks(t, w, r.choice(["hstack", "vstack", "dstack"]))
        else:
            self.pad(t, w)
        self.own_strides = False
        self.w.release(w)

    def stacks(self, t, w, name):
        r = self.r
        n = r.randint(0, 3)
        others = [self.tensor(t.shape if r.random() < .9 else self.sizes(), t.dtype) for _ in range(n)]
        ts = [t] + [o[0] for o in others]
        ws = (C.c_void_p * (n + 1))(w.value, *[o[1].value for o in others])
        self.own_strides = True
        self.judge(f"{name} {[tuple(t.shape) for t in ts]} {t.dtype}", lambda: getattr(torch, name)(ts),
                   lambda: self.w.new(name, ws, n + 1))
        for o in others:
            self.w.release(o[1])

    def pad(self, t, w):
        r = self.r
        mode = r.choice([0, 0, 1, 2, 3])
        n = r.randint(1, max(1, t.dim())) if not mode else r.randint(1, 3)
        p = [r.choice([0, 1, 1, 2, 2, 3, -1]) for _ in range(2 * n)]
        if r.random() < .03:
            p = p[:-1]
        v = r.choice([0, 0, 1, 2.5, True, 7]) if not mode else None
        what = f"pad {MODES[mode]} {tuple(t.shape)} {t.stride()} {t.dtype} by {p} value {v}"
        self.own_strides = True
        number = scalar(0 if v is None else v)
        try:
            theirs = torch.tensor(F.pad(t, p, MODES[mode], v).shape)
        except (RuntimeError, NotImplementedError):
            theirs = None
        if mode and t.dtype in (torch.bool, torch.bfloat16, torch.float16) and theirs is None:
            return  # torch's cpu has not each kernel in each of these
        if mode == 3 and min(p) < 0:
            return  # torch's shows memory that it has not filled where what is cut meets what wraps
        self.judge(what, lambda: F.pad(t, p, MODES[mode], v), lambda: self.w.new("pad", w, longs(p), len(p), mode, number))

    def matrix(self):
        r = self.r
        name = r.choice("tril triu diag diag_embed trace eye linspace logspace".split())
        t, w = self.tensor(self.sizes(), r.choice(DTYPES))
        k = r.randint(-4, 4)
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {k}"
        options = Options(dtype=NUMBERS[t.dtype], device=Device(1))
        if name in ("tril", "triu"):
            if r.random() < .5:
                self.judge(what, lambda: getattr(torch, name)(t, k), lambda: self.w.new(name, w, C.c_int64(k)))
            else:
                self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(k),
                              lambda c: self.w.check(getattr(self.w.lib, f"weir_{name}_")(c, C.c_int64(k))))
        elif name == "diag":
            self.judge(what, lambda: torch.diag(t, k), lambda: self.w.new(name, w, C.c_int64(k)))
        elif name == "diag_embed":
            a, b = self.dim(t), self.dim(t)
            self.judge(what + f" {a} {b}", lambda: torch.diag_embed(t, k, a, b),
                       lambda: self.w.new(name, w, C.c_int64(k), a, b))
        elif name == "trace":
            self.judge(what, lambda: torch.trace(t), lambda: self.w.new(name, w), several=8,
                       scale=t.abs().double().nan_to_num(0, 0, 0).sum() if t.dtype.is_floating_point else None)
        elif name == "eye":
            n, m = r.randint(-1, 4), r.randint(-1, 4)
            self.judge(what + f" {n} {m}", lambda: torch.eye(n, m, dtype=t.dtype),
                       lambda: self.w.new(name, C.c_int64(n), C.c_int64(m), C.byref(options)))
        else:
            self.space(name, t.dtype, options)
        self.w.release(w)

    def space(self, name, dtype, options):
        r = self.r
        a, b = (r.choice([0, 1, -2, 2.5, 7, -3.5, 0.1]) for _ in "ab")
        n = r.choice([0, 1, 2, 3, 5, 8, 33, -1])
        if not dtype.is_floating_point and not dtype.is_complex:
            a, b = int(a), int(b)
        if dtype == torch.uint8:  # torch's cpu goes wrong where the step is negative
            a, b = sorted((abs(a) % 3, abs(b) % 3))
        what = f"{name} {a} {b} {n} {dtype}"
        numbers = scalar(a), scalar(b), C.c_int64(n)
        if name == "linspace":
            self.judge(what, lambda: torch.linspace(a, b, n, dtype=dtype),
                       lambda: self.w.new(name, *numbers, C.byref(options)), several=4,
                       scale=torch.tensor(float(max(abs(a), abs(b)))))
        else:
            self.judge(what, lambda: torch.logspace(a, b, n, 10.0, dtype=dtype),
                       lambda: self.w.new(name, *numbers, C.c_double(10), C.byref(options)), several=64)

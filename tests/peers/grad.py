"""Derivatives on the cpu beside PyTorch's autograd, in double.

    python tests/peers/grad.py LIBWEIR [PROGRAMS [SEED]]

Needs a torch for the cpu (any build). Random programs of 1 to 20 operations over a few leaves run through both
libraries; a weighted sum of what they made goes back. Gradients of all leaves must be equal to rounding; where one
refuses (a leaf changed in place, elements that a derivative needs changed) the other must, for the same reason. Every
other program is then gone through once more: a second derivative, of the sum of the squares of the first. Ends with a line that
counts the steps, exit status 1 where they differ.
"""
import ctypes as C
import math
import random
import re
import sys
import warnings

import torch

from slopes import Slopes, overlaps
from tensors import Failed, Weir, scalar, shape

warnings.filterwarnings("ignore")
ALL_COMPLEX = False
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
SHARED = .15  # of steps are changes of memory that tensors share


class Conv(C.Structure):
    _fields_ = [("stride", C.c_int64 * 2), ("padding", C.c_int64 * 2), ("dilation", C.c_int64 * 2), ("groups", C.c_int64)]


class Pool(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 2), ("stride", C.c_int64 * 2), ("padding", C.c_int64 * 2), ("dilation", C.c_int64 * 2)]


class Attend(C.Structure):
    _fields_ = [("mask", C.c_void_p), ("is_causal", C.c_bool), ("dropout", C.c_double), ("scale", C.c_double), ("enable_gqa", C.c_bool)]


class Windows(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 3), ("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("ceil_mode", C.c_bool), ("exclude_pad", C.c_bool), ("divisor_override", C.c_int64)]


class Interpolate(C.Structure):
    _fields_ = [("size", C.c_int64 * 3), ("scale", C.c_double * 3), ("mode", C.c_int), ("align_corners", C.c_bool), ("recompute", C.c_bool)]


class GradOptions(C.Structure):
    _fields_ = [("grad_outputs", C.c_void_p), ("retain_graph", C.c_bool), ("create_graph", C.c_bool), ("allow_unused", C.c_bool)]


def pair(a, b):
    return (C.c_int64 * 2)(a, b)


def ints(values):
    return (C.c_int * 8)(*values)


def longs(values):
    return (C.c_int64 * 16)(*values)


def alive(t):
    """Whether torch still knows what it is: not a view of several whose base was changed."""
    try:
        return t.grad_fn or True
    except RuntimeError:
        return False


def noise(t):
    """Whether elements of it are what rounding left of 0: their sign, and so the side of a kink, is as good as random."""
    size = t.detach().abs()
    return bool(((size > 0) & (size < 1e-13)).any())


def attention(q, k, v, causal, scale, mask=None):
    """In operations whose derivatives have derivatives. A row that a mask hides is 0."""
    x = q @ k.transpose(-1, -2) * (scale or q.shape[-1] ** -.5)
    if mask is not None:
        added = mask if mask.is_floating_point() else torch.zeros(mask.shape, dtype=x.dtype).masked_fill(~mask, -math.inf)
        hidden = (added.detach() == -math.inf).all(-1, keepdim=True)
        return (x + added.masked_fill(hidden, 0)).softmax(-1).masked_fill(hidden, 0) @ v
    if causal:
        x = x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return x.softmax(-1) @ v


class EmbeddingWith(C.Structure):
    _fields_ = [("has_padding", C.c_bool), ("padding_idx", C.c_int64), ("max_norm", C.c_double), ("norm_type", C.c_double), ("scale", C.c_bool)]


class Program(Slopes):
    def __init__(self, weir, seed):
        self.w, self.r, self.seed = weir, random.Random(seed), seed
        self.log, self.steps, self.bad, self.pool, self.held, self.leaves = [], 0, 0, [], [], []
        self.smooth = True
        self.twice = True
        self.refused = False  # by torch alone: then run() again, with what it keeps being copied
        self.copied = False

    def complain(self, what, theirs, ours):
        self.bad += 1
        print(f"seed {self.seed}: {what}\n  torch: {theirs}\n  weir:  {ours}\n  program: {'; '.join(self.log)}")

    def new(self, name, *arguments):
        out = self.w.new(name, *arguments)
        self.held.append(out)
        return out

    def leaf(self, sizes, requires=True):
        t = torch.randn(sizes, dtype=torch.float64)
        if self.r.random() < .15:
            t = t.round()
        w = self.w.of(t)
        self.held.append(w)
        if requires:
            t.requires_grad_()
            self.w.check(self.w.lib.weir_requires_grad_(w, True))
            self.leaves.append((t, w))
        return t, w

    def size(self):
        return [self.r.choice([1, 2, 3, 4]) for _ in range(self.r.randint(0, 4))]

    def pick(self):
        return self.r.choice([p for p in self.pool[-6:] if alive(p[0])] or self.leaves[:1] or self.pool[:1])

    # ---- steps: a name, torch's and Weir's

    def unary(self, t, w):
        name = self.r.choice("neg abs relu exp log sqrt rsqrt sin cos tanh sigmoid".split())
        if name in ("log", "sqrt", "rsqrt"):
            positive = lambda x: x.abs() + 0.5
            def ours():
                a = self.new("add_scalar", self.new("abs", w), scalar(0.5))
                return self.new(name, a)
            return name, lambda: getattr(torch, name)(positive(t)), ours
        if name == "exp":
            return name, lambda: torch.exp(torch.tanh(t)), lambda: self.new("exp", self.new("tanh", w))
        return name, lambda: getattr(torch, name)(t), lambda: self.new(name, w)

    def binary(self, t, w):
        r = self.r
        other = [v if r.random() < .8 else 1 for v in t.shape[r.choice([0, 0, len(t.shape) // 2]):]]
        u, v = self.pick() if r.random() < .5 else self.leaf(other, r.random() < .6)
        try:
            torch.broadcast_shapes(t.shape, u.shape)
        except RuntimeError:
            u, v = self.leaf(other)
        name = r.choice("add sub mul div maximum minimum add_alpha sub_alpha pow where".split())
        if name == "div":
            return name, lambda: t / (u.abs() + .5), lambda: self.new("div", w, self.new("add_scalar", self.new("abs", v), scalar(.5)))
        if name == "pow":
            return (name, lambda: (t.abs() + .5) ** u.tanh(),
                    lambda: self.new("pow", self.new("add_scalar", self.new("abs", w), scalar(.5)), self.new("tanh", v)))
        if name.endswith("alpha"):
            alpha = r.choice([2, -1.5, 1])
            return (f"{name} {alpha}", lambda: getattr(torch, name[:3])(t, u, alpha=alpha), lambda: self.new(name, w, v, scalar(alpha)))
        if name == "where":
            return name, lambda: torch.where(t > u, t, u * 2), lambda: self.new(
                "where", self.new("gt", w, v), w, self.new("mul_scalar", v, scalar(2)))
        return name, lambda: getattr(torch, name)(t, u), lambda: self.new(name, w, v)

    def number(self, t, w):
        r = self.r
        v = r.choice([2, 0.5, -1.5, 3])
        name = r.choice(["add", "sub", "mul", "div", "pow2", "radd", "rsub", "rdiv", "rpow", "clamp"])
        if name == "pow2":
            p = r.choice([2, 3, 1, 0])
            return f"pow {p}", lambda: t ** p, lambda: self.new("pow_scalar", w, scalar(p))
        if name == "clamp":
            low, high = scalar(-.5), scalar(.75)
            if r.random() < .3:
                bound = r.choice([-1, 0, 1])  # what round() made lies there
                return f"clamp_min {bound}", lambda: t.clamp_min(bound), lambda: self.new("clamp_min", w, scalar(bound))
            return name, lambda: t.clamp(-.5, .75), lambda: self.new("clamp", w, C.byref(low), C.byref(high))
        if name == "radd":
            return name, lambda: v + t, lambda: self.new("scalar_add", scalar(v), w)
        if name == "rsub":
            return name, lambda: v - t, lambda: self.new("scalar_sub", scalar(v), w)
        if name == "rdiv":
            return name, lambda: v / (t.abs() + .5), lambda: self.new("scalar_div", scalar(v), self.new("add_scalar", self.new("abs", w), scalar(.5)))
        if name == "rpow":
            return name, lambda: 1.5 ** t.tanh(), lambda: self.new("scalar_pow", scalar(1.5), self.new("tanh", w))
        return f"{name} {v}", lambda: getattr(torch, name)(t, v), lambda: self.new(name + "_scalar", w, scalar(v))

    def reduce(self, t, w):
        r = self.r
        name = r.choice("sum mean prod amax amin nansum var std norm logsumexp max_dim min_dim softmax log_softmax var_mean".split())
        if not t.dim():
            return None
        d, keep = r.randrange(-t.dim(), t.dim()), r.random() < .5
        if name in ("softmax", "log_softmax"):
            return f"{name} {d}", lambda: getattr(torch, name)(t, d), lambda: self.new(name, w, d)
        if name in ("max_dim", "min_dim"):
            def ours():
                a, b = C.c_void_p(), C.c_void_p()
                self.w.check(getattr(self.w.lib, "weir_" + name)(C.byref(a), C.byref(b), w, d, keep))
                self.held.extend((a, b))
                return a
            return f"{name} {d}", lambda: getattr(torch, name[:3])(t, d, keep)[0], ours
        if name in ("var", "std", "var_mean"):
            c = r.choice([0, 0.5]) if t.shape[d] < 3 else r.choice([0, 1])
            if name == "std" and t.shape[d] < 2:
                return None
            if name == "var_mean":
                def ours():
                    a, b = C.c_void_p(), C.c_void_p()
                    self.w.check(self.w.lib.weir_var_mean_dim(C.byref(a), C.byref(b), w, d, C.c_double(c), keep))
                    self.held.extend((a, b))
                    return self.new("mul", a, b)
                def theirs():
                    a, b = torch.var_mean(t, d, correction=c, keepdim=keep)
                    return a * b
                return f"var_mean {d} {c}", theirs, ours
            return (f"{name} {d} {c}", lambda: getattr(torch, name)(t, d, correction=c, keepdim=keep),
                    lambda: self.new(name + "_dim", w, d, C.c_double(c), keep))
        if name == "norm":
            p = r.choice([2, 1, 3, 1.5, 0, math.inf, 2.5])
            self.twice = False
            return f"norm {p} {d}", lambda: torch.linalg.vector_norm(t, p, d, keep), lambda: self.new("norm_dim", w, C.c_double(p), d, keep)
        if name == "logsumexp":
            return f"{name} {d}", lambda: torch.logsumexp(t, d, keep), lambda: self.new(name, w, d, keep)
        if name == "prod":
            self.twice = False
            return f"prod {d}", lambda: torch.prod(t, d, keep), lambda: self.new("prod_dim", w, d, keep)
        if r.random() < .3:
            dims = r.sample(range(t.dim()), r.randint(1, t.dim()))
            return (f"{name} {dims} {keep}", lambda: getattr(torch, name)(t, dims, keepdim=keep),
                    lambda: self.new(name + "_dims", w, ints(dims), len(dims), keep))
        return f"{name} {d} {keep}", lambda: getattr(torch, name)(t, d, keepdim=keep), lambda: self.new(name + "_dim", w, d, keep)

    def view(self, t, w):
        r, n = self.r, self.new
        kind = r.choice("transpose permute slice select narrow unsqueeze squeeze expand reshape flatten unfold diagonal chunk".split())
        if kind == "unsqueeze":
            d = r.randint(0, t.dim())
            return (f"{kind} {d}", lambda: t.unsqueeze(d), lambda: n("unsqueeze", w, d)) if t.dim() < 5 else None
        if not t.dim() or t.numel() > 4000:
            return None
        d, e = r.randrange(t.dim()), r.randrange(t.dim())
        size = t.shape[d]
        if kind == "transpose":
            return f"{kind} {d} {e}", lambda: t.transpose(d, e), lambda: n(kind, w, d, e)
        if kind == "permute":
            order = r.sample(range(t.dim()), t.dim())
            return f"{kind} {order}", lambda: t.permute(order), lambda: n(kind, w, ints(order))
        if kind == "slice":
            a, step = r.randrange(size), r.choice([1, 1, 2])
            end = r.randint(a + 1, size + 1)
            return (f"{kind} {d} {a} {end} {step}", lambda: torch.ops.aten.slice(t, d, a, end, step),
                    lambda: n(kind, w, d, C.c_int64(a), C.c_int64(end), C.c_int64(step)))
        if kind == "select":
            a = r.randrange(size)
            return f"{kind} {d} {a}", lambda: t.select(d, a), lambda: n(kind, w, d, C.c_int64(a))
        if kind == "narrow":
            a = r.randrange(size)
            return f"{kind} {d} {a}", lambda: t.narrow(d, a, 1), lambda: n(kind, w, d, C.c_int64(a), C.c_int64(1))
        if kind == "squeeze":
            return f"{kind} {d}", lambda: t.squeeze(d), lambda: n(kind, w, d)
        if kind == "expand":
            s = [3 if v == 1 else v for v in t.shape]
            s = [2] + s if t.dim() < 5 and r.random() < .4 else s
            return f"{kind} {s}", lambda: t.expand(s), lambda: n(kind, w, shape(s))
        if kind == "reshape":
            return kind, lambda: t.reshape(-1, size), lambda: n(kind, w, shape([-1, size]))
        if kind == "flatten":
            return kind, lambda: t.flatten(), lambda: n(kind, w, 0, -1)
        if kind == "unfold":
            s, step = r.randint(1, size), r.choice([1, 2])
            return (f"{kind} {d} {s} {step}", lambda: t.unfold(d, s, step),
                    lambda: n(kind, w, d, C.c_int64(s), C.c_int64(step))) if t.dim() < 5 else None
        if kind == "diagonal":
            if d == e:
                return None
            o = r.choice([0, 1, -1])
            return f"{kind} {o} {d} {e}", lambda: t.diagonal(o, d, e), lambda: n(kind, w, C.c_int64(o), d, e)
        def ours():
            parts = self.w.many("chunk", 8, w, 2, d)
            self.held.extend(parts)
            return parts[-1]
        return f"chunk {d}", lambda: t.chunk(2, d)[-1], ours

    def arrange(self, t, w):
        r, n = self.r, self.new
        kind = r.choice("flip roll repeat tril triu diag_embed pad cat stack clone contiguous to meshgrid rot90".split())
        if t.numel() > 2000:
            return None
        if kind == "clone":
            return kind, lambda: t.clone(), lambda: n(kind, w)
        if kind == "contiguous":
            return kind, lambda: t.contiguous(), lambda: n(kind, w)
        if kind == "to":
            return kind, lambda: t.float().double(), lambda: n("to_dtype", n("to_dtype", w, 7), 8)
        if kind == "stack" and t.dim() < 5:
            d = r.randint(0, t.dim())
            u, v = self.leaf(list(t.shape))
            return f"{kind} {d}", lambda: torch.stack([t, u, t], d), lambda: n(kind, (C.c_void_p * 3)(w, v, w), 3, d)
        if not t.dim():
            return None
        d = r.randrange(t.dim())
        if kind == "cat":
            s = list(t.shape)
            s[d] = 2
            u, v = self.leaf(s)
            return f"{kind} {d}", lambda: torch.cat([u, t, t], d), lambda: n(kind, (C.c_void_p * 3)(v, w, w), 3, d)
        if kind == "flip":
            dims = r.sample(range(t.dim()), r.randint(1, t.dim()))
            return f"{kind} {dims}", lambda: t.flip(dims), lambda: n(kind, w, ints(dims), len(dims))
        if kind == "roll":
            s = r.randint(-3, 3)
            return f"{kind} {s} {d}", lambda: t.roll(s, d), lambda: n(kind, w, longs([s]), ints([d]), 1)
        if kind == "repeat":
            s = [r.choice([1, 2]) for _ in t.shape]
            s = [2] + s if t.dim() < 5 and r.random() < .3 else s
            return f"{kind} {s}", lambda: t.repeat(s), lambda: n(kind, w, shape(s))
        if kind in ("tril", "triu") and t.dim() > 1:
            k = r.randint(-1, 1)
            return f"{kind} {k}", lambda: getattr(t, kind)(k), lambda: n(kind, w, C.c_int64(k))
        if kind == "diag_embed" and t.dim() < 4:
            k = r.randint(-1, 1)
            return f"{kind} {k}", lambda: t.diag_embed(k, 0, -1), lambda: n(kind, w, C.c_int64(k), 0, -1)
        if kind == "rot90" and t.dim() > 1:
            k = r.randint(0, 3)
            return f"{kind} {k}", lambda: t.rot90(k, (0, 1)), lambda: n(kind, w, k, 0, 1)
        if kind == "pad":
            mode = r.choice(["constant", "constant", "reflect", "replicate", "circular"])
            if mode == "constant":
                p = [r.randint(-1 if v > 2 else 0, 2) for v in reversed(t.shape) for _ in (0, 1)]
            elif t.dim() in (2, 3):
                p = [r.randint(0, t.shape[-1] - 1) for _ in (0, 1)]
            else:
                return None
            m = ["constant", "reflect", "replicate", "circular"].index(mode)
            return (f"pad {p} {mode}", lambda: torch.nn.functional.pad(t, p, mode),
                    lambda: n("pad", w, longs(p), len(p), m, scalar(0)))
        return None

    def norm(self):
        r, n, f = self.r, self.new, torch.nn.functional
        name = r.choice("layer_norm rms_norm group_norm".split())
        lead, last = [r.randint(1, 3) for _ in range(r.randint(1, 2))], [r.randint(2, 4) for _ in range(r.randint(1, 2))]
        if name == "group_norm":
            groups, each = r.choice([(1, 3), (2, 2), (3, 1)])
            a, x = self.leaf([lead[0], groups * each] + last)
            size = [groups * each]
        else:
            a, x = self.leaf(lead + last)
            size = last
        b, y = self.leaf(size) if r.random() < .7 else (None, None)
        c, z = self.leaf(size) if b is not None and r.random() < .8 else (None, None)  # PyTorch wants a weight beside a bias
        what, eps = f"{name} {list(a.shape)} {size} {b is not None} {c is not None}", C.c_double(.1)
        if name == "rms_norm":
            return what, lambda: f.rms_norm(a, size, b, .1), lambda: n(name, x, shape(size), y, eps)
        if name == "layer_norm":
            return what, lambda: f.layer_norm(a, size, b, c, .1), lambda: n(name, x, shape(size), y, z, eps)
        return what, lambda: f.group_norm(a, groups, b, c, .1), lambda: n(name, x, C.c_int64(groups), y, z, eps)

    def product(self, t, w):
        r, n = self.r, self.new
        kind = r.choice("matmul matmul linear addmm conv2d max_pool2d norm norm attention".split())
        if kind == "norm":
            return self.norm()
        if kind in ("conv2d", "max_pool2d"):
            h, wd = r.randint(3, 7), r.randint(3, 7)
            groups, ins, outs = r.choice([(1, 2, 3), (2, 2, 4), (1, 1, 2), (3, 3, 3)])
            lead = [r.randint(1, 3)] if r.random() < .8 else []
            a, x = self.leaf(lead + [ins, h, wd])
            if kind == "max_pool2d":
                self.twice = False  # PyTorch's second derivative is 0 where ours is none
                s, p, dl = r.choice([1, 2, 3]), r.choice([0, 1]), r.choice([1, 1, 2])
                kk = 2 if not p else r.choice([2, 3])
                if (kk - 1) * dl + 1 > min(h, wd) + 2 * p:
                    dl = 1
                o = Pool(pair(kk, kk), pair(s, s), pair(p, p), pair(dl, dl))
                return (f"pool {kk} {s} {p} {dl}", lambda: torch.nn.functional.max_pool2d(a, kk, s, p, dl),
                        lambda: n("max_pool2d", x, C.byref(o)))
            kh, kw = r.randint(1, 3), r.randint(1, 3)
            s, p, dl = [(r.choice([1, 1, 2, 3]), r.choice([1, 2])) for _ in range(1)][0], (r.randint(0, 2), r.randint(0, 2)), (r.choice([1, 1, 2]), 1)
            b, y = self.leaf([outs, ins // groups, kh, kw])
            c, z = self.leaf([outs]) if r.random() < .5 else (None, None)
            o = Conv(pair(*s), pair(*p), pair(*dl), groups)
            return (f"conv {lead + [ins, h, wd]} {[outs, kh, kw]} {s} {p} {dl} {groups}",
                    lambda: torch.nn.functional.conv2d(a, b, c, s, p, dl, groups),
                    lambda: n("conv2d", x, y, z, C.byref(o)))
        if not t.dim():
            return None
        if kind == "attention":
            if t.dim() < 2:
                return None
            causal, scale = r.random() < .5, r.choice([0, .7])
            keys, (u, v), (a, x) = r.randint(1, 5), (None, None), (None, None)
            u, v = self.leaf(list(t.shape[:-2]) + [keys, t.shape[-1]], r.random() < .7)
            a, x = self.leaf(list(t.shape[:-2]) + [keys, 3], r.random() < .7)
            m, j = None, None
            if r.random() < .5:
                sizes = [s if r.random() < .7 else 1 for s in list(t.shape[:-1]) + [keys]][-r.randint(1, t.dim()):]
                m, causal = torch.rand(sizes) < .6, False
                if r.random() < .5:
                    f, _ = self.leaf(sizes, False)
                    m = f.masked_fill(~m, -math.inf)
                j = self.whole(m)
                if m.is_floating_point() and r.random() < .3:
                    m.requires_grad_()
                    self.w.check(self.w.lib.weir_requires_grad_(j, True))
                    self.leaves.append((m, j))
            o = Attend(j, causal, 0, scale, False)
            return (f"{kind} {keys} {causal} {scale} {None if m is None else (m.dtype, list(m.shape))}", lambda: attention(t, u, a, causal, scale, m),
                    lambda: n("scaled_dot_product_attention", w, v, x, C.byref(o)))
        k = t.shape[-1]
        if kind == "linear":
            b, y = self.leaf([r.randint(1, 3), k])
            c, z = self.leaf([b.shape[0]]) if r.random() < .6 else (None, None)
            return kind, lambda: torch.nn.functional.linear(t, b, c), lambda: n(kind, w, y, z)
        if kind == "addmm":
            if t.dim() != 2:
                return None
            b, y = self.leaf([k, 3])
            c, z = self.leaf(r.choice([[3], [t.shape[0], 3], []]))
            return (kind, lambda: torch.addmm(c, t, b, beta=.5, alpha=2),
                    lambda: n(kind, z, w, y, C.c_double(.5), C.c_double(2)))
        batch = list(t.shape[:-2]) if t.dim() > 2 else []
        s = r.choice([[k], [k, 2], [r.choice([1, v]) for v in batch for _ in (0,)] and [r.choice([1, v]) for v in batch] + [k, 2] or [k, 2], [2, k, 3] if t.dim() <= 3 and (not batch or batch[0] in (1, 2)) else [k, 3]])
        b, y = self.leaf(s)
        if r.random() < .3 and t.dim() >= 2:
            b, y = self.leaf(r.choice([[t.shape[-2]], [2, t.shape[-2]]]))
            if b.dim() == 1 and t.dim() > 2:  # torch keeps a copy of such matrices, which a change of them does not reach
                t, w = t.clone(), n("clone", w)
            return f"matmul {list(b.shape)} {list(t.shape)}", lambda: b @ t, lambda: n("matmul", y, w)
        return f"matmul {list(t.shape)} {s}", lambda: t @ b, lambda: n("matmul", w, y)

    def both(self, name, *arguments):
        """The first of two results."""
        a, b = C.c_void_p(), C.c_void_p()
        self.w.check(getattr(self.w.lib, "weir_" + name)(C.byref(a), C.byref(b), *arguments))
        self.held.extend((a, b))
        return a

    def whole(self, t):
        w = self.w.of(t)
        self.held.append(w)
        return w

    def choose(self, t, w):
        """By indices, masks, order."""
        r, n = self.r, self.new
        if not t.dim():
            return None
        d, in_place = r.randrange(-t.dim(), t.dim()), r.random() < .3
        size, k = t.shape[d], r.randint(1, 4)
        kind = r.choice("select add copy fill gather scatter scatter_add scatter_value take put masked_fill masked_tensor masked_select "
                        "masked_scatter index index_put embedding repeat_interleave take_along".split())
        def ours(name, *rest):
            if not in_place:
                return lambda: n(name, w, *rest)
            def run():
                x = n("mul_scalar", w, scalar(2))
                self.w.check(getattr(self.w.lib, "weir_%s_" % name)(x, *rest))
                return x
            return run
        def theirs(name, *rest, **more):
            return lambda: getattr(t * 2, name + "_")(*rest, **more) if in_place else getattr(t, name)(*rest, **more)
        i = torch.randint(0, size, (k,)) if kind != "copy" else torch.randperm(size)[:k]
        j = self.whole(i)
        slices = list(t.shape)
        slices[d] = len(i)
        if kind == "select":
            return f"index_select {d} {i.tolist()}", lambda: t.index_select(d, i), lambda: n("index_select", w, d, j)
        if kind in ("add", "copy"):
            u, v = self.leaf(slices)
            return f"index_{kind} {d} {i.tolist()} {in_place}", theirs("index_" + kind, d, i, u), ours("index_" + kind, d, j, v)
        if kind == "fill":
            return f"index_fill {d} {in_place}", theirs("index_fill", d, i, 2.), ours("index_fill", d, j, scalar(2.))
        if kind in ("gather", "scatter", "scatter_add", "scatter_value", "take_along"):
            shape = [v if a == d % t.dim() else r.randint(1, v) for a, v in enumerate(t.shape)]
            shape[d] = k if kind in ("gather", "scatter_add", "take_along") else r.randint(1, size)
            if kind == "take_along":
                shape = [k if a == d % t.dim() else r.choice([1, v]) for a, v in enumerate(t.shape)]
            i = torch.rand(shape[:d % t.dim()] + [max(size, shape[d])] + shape[d % t.dim() + 1:]).argsort(d).narrow(d, 0, shape[d]) % size
            j = self.whole(i.contiguous())
            if kind == "take_along":
                return f"take_along_dim {d} {shape}", lambda: torch.take_along_dim(t, i, d), lambda: n("take_along_dim", w, j, d)
            if kind == "gather":
                return f"gather {d} {shape}", lambda: t.gather(d, i), lambda: n(kind, w, d, j)
            if kind == "scatter_value":
                return f"{kind} {d} {shape} {in_place}", theirs("scatter", d, i, 3.), ours(kind, d, j, scalar(3.))
            u, v = self.leaf(shape)
            return f"{kind} {d} {shape} {in_place}", theirs(kind, d, i, u), ours(kind, d, j, v)
        if kind in ("take", "put"):
            i = torch.randperm(t.numel())[:k]
            add = r.random() < .5
            j = self.whole(i)
            if kind == "take":
                return f"take {i.tolist()}", lambda: t.take(i), lambda: n("take", w, j)
            u, v = self.leaf([len(i)])
            return f"put {i.tolist()} {add} {in_place}", theirs("put", i, u, accumulate=add), ours("put", j, v, add)
        if kind.startswith("masked"):
            m = torch.rand([v if r.random() < .8 else 1 for v in t.shape]) < .5
            j = self.whole(m)
            if kind == "masked_fill":
                return f"{kind} {list(m.shape)} {in_place}", theirs(kind, m, -1.), ours(kind, j, scalar(-1.))
            if kind == "masked_tensor":
                u, v = self.leaf([])
                return f"{kind} {list(m.shape)} {in_place}", theirs("masked_fill", m, u), ours("masked_fill_tensor", j, v)
            if kind == "masked_select":
                return f"{kind} {list(m.shape)}", lambda: t.masked_select(m), lambda: n(kind, w, j)
            u, v = self.leaf([t.numel()])
            return f"{kind} {list(m.shape)} {in_place}", theirs(kind, m, u), ours(kind, j, v)
        if kind in ("index", "index_put"):
            d = d % t.dim()
            m = torch.rand(t.shape[-1:]) < .7
            last = d < t.dim() - 1 and r.random() < .3
            lists = [None] * d + [i] + ([None] * (t.dim() - d - 2) + [m.nonzero()[:, 0][:1]] if last else [])
            if not all(x is None or len(x) for x in lists):
                return None
            pointers = (C.c_void_p * 8)(*[x if x is None else self.whole(x) for x in lists])
            key = tuple(slice(None) if x is None else x for x in lists)
            if kind == "index":
                return f"index {lists}", lambda: t[key], lambda: n("index", w, pointers, len(lists))
            add = r.random() < .6
            if not add:
                key, pointers = (i[:1],), (C.c_void_p * 1)(self.whole(i[:1] % t.shape[0]))
                key = (i[:1] % t.shape[0],)
                lists = list(key)
            u, v = self.leaf(list(t[key].shape) if r.random() < .5 else [])
            return (f"index_put {lists} {add} {in_place}", theirs("index_put", key if all(not isinstance(x, slice) for x in key) else lists, u, accumulate=add)
                    if all(not isinstance(x, slice) for x in key) else None, ours("index_put", pointers, len(lists), v, add)) if all(
                        not isinstance(x, slice) for x in key) else None
        if kind == "embedding":
            if t.dim() != 2:
                return None
            i = torch.randint(0, t.shape[0], (k, 2))
            j = self.whole(i)
            if r.random() < .3:
                return kind, lambda: torch.nn.functional.embedding(i, t), lambda: n(kind, j, w)
            padding, scale = r.choice([None, 0, -1]), r.random() < .6
            o = EmbeddingWith(padding is not None, padding or 0, 0, 0, scale)
            self.twice = self.twice and not scale  # torch's second derivative knows nothing of the scale
            return (f"{kind} {i.tolist()} {padding} {scale}", lambda: torch.nn.functional.embedding(i, t, padding, scale_grad_by_freq=scale),
                    lambda: n("embedding_with", j, w, C.byref(o)))
        if r.random() < .5:
            return f"{kind} {k} {d}", lambda: t.repeat_interleave(k, d), lambda: n(kind, w, C.c_int64(k), d)
        c = torch.randint(0, 3, (size,))
        e = self.whole(c)
        return f"{kind} {c.tolist()} {d}", lambda: t.repeat_interleave(c, d), lambda: n(kind + "_tensor", w, e, d)

    def order(self, t, w):
        """Where elements differ, for ties are anybody's."""
        r, n = self.r, self.new
        if not t.dim() or not t.numel() or t.detach().unique().numel() < t.numel():
            return None
        d, keep = r.randrange(-t.dim(), t.dim()), r.random() < .5
        size = t.shape[d]
        kind = r.choice("cumsum cummax cummin sort topk kthvalue median median_all quantile nanquantile nanmedian diff".split())
        if kind == "cumsum":
            return f"{kind} {d}", lambda: t.cumsum(d), lambda: n(kind, w, d)
        if kind in ("cummax", "cummin"):
            return f"{kind} {d}", lambda: getattr(t, kind)(d)[0], lambda: self.both(kind, w, d)
        if kind == "sort":
            return f"{kind} {d} {keep}", lambda: t.sort(d, keep)[0], lambda: self.both(kind, w, d, keep)
        k = r.randint(1, size)
        if kind == "topk":
            return f"{kind} {k} {d} {keep}", lambda: t.topk(k, d, keep)[0], lambda: self.both(kind, w, C.c_int64(k), d, keep)
        if kind == "kthvalue":
            return f"{kind} {k} {d} {keep}", lambda: t.kthvalue(k, d, keep)[0], lambda: self.both(kind, w, C.c_int64(k), d, keep)
        if kind in ("median", "nanmedian"):
            return f"{kind} {d} {keep}", lambda: getattr(t, kind)(d, keep)[0], lambda: self.both(kind + "_dim", w, d, keep)
        if kind == "median_all":
            return kind, lambda: t.median(), lambda: n("median", w)
        if kind == "diff":
            return f"{kind} {d}", lambda: t.diff(dim=d), lambda: n(kind, w, C.c_int64(1), d)
        q = r.choice([0, .25, .5, .9, 1])
        return f"{kind} {q} {d} {keep}", lambda: getattr(t, kind)(q, d, keep), lambda: n(kind + "_dim", w, C.c_double(q), d, keep)

    def planes(self, t, w):
        """Pools and other sizes, of a leaf of 1 to 3 axes."""
        r, n, f = self.r, self.new, torch.nn.functional
        axes = r.randint(1, 3)
        a, x = self.leaf([r.randint(1, 2), r.randint(1, 2)] + [r.randint(3, 6) for _ in range(axes)])
        three = lambda v: (C.c_int64 * 3)(*v)
        kind = r.choice("avg max max_indices adaptive_avg adaptive_max interpolate".split())
        if kind.startswith("adaptive"):
            size = [r.randint(1, 5) for _ in range(axes)]
            name = f"{kind}_pool{axes}d"
            return f"{name} {list(a.shape)} {size}", lambda: getattr(f, name)(a, size), lambda: n(name, x, C.byref(three(size)))
        if kind == "interpolate":
            modes = [["nearest", "nearest-exact", "linear", "area"], ["nearest", "nearest-exact", "bilinear", "bicubic", "area"],
                     ["nearest", "nearest-exact", "trilinear", "area"]][axes - 1]
            mode = r.choice(modes)
            align = mode.endswith(("linear", "cubic")) and r.random() < .5
            size = [r.randint(1, 8) for _ in range(axes)]
            number = ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"].index(mode)
            o = Interpolate(three(size), (C.c_double * 3)(), number, align, False)
            return (f"interpolate {list(a.shape)} {size} {mode} {align}",
                    lambda: f.interpolate(a, size, mode=mode, align_corners=align if mode.endswith(("linear", "cubic")) else None),
                    lambda: n(kind, x, C.byref(o)))
        kernel = [r.randint(1, 3) for _ in range(axes)]
        stride, pad, ceil = [r.randint(1, 2) for _ in range(axes)], [r.randint(0, k // 2) for k in kernel], r.random() < .3
        if kind == "avg":
            include, divisor = r.random() < .5, r.choice([None, None, 3]) if axes > 1 else None
            o = Windows(three(kernel), three(stride), three(pad), three([]), ceil, not include, divisor or 0)
            name = f"avg_pool{axes}d"
            more = {"divisor_override": divisor} if axes > 1 else {}
            return (f"{name} {list(a.shape)} {kernel} {stride} {pad} {ceil} {include} {divisor}",
                    lambda: getattr(f, name)(a, kernel, stride, pad, ceil, include, **more), lambda: n(name, x, C.byref(o)))
        if axes == 2:
            kind = "max_indices"
        o = Windows(three(kernel), three(stride), three(pad), three([1] * axes), ceil, False, 0)
        name = f"max_pool{axes}d"
        ours = (lambda: self.both(name + "_with_indices", x, C.byref(o))) if kind == "max_indices" else lambda: n(name, x, C.byref(o))
        return f"{name} {list(a.shape)} {kernel} {stride} {pad} {ceil}", lambda: getattr(f, name)(a, kernel, stride, pad, 1, ceil), ours

    def matrices(self, t, w):
        r, n = self.r, self.new
        size, batch = r.randint(1, 3), r.choice([[], [], [2], [2, 1]])
        a, x = self.leaf(batch + [size, size])
        b, y = self.leaf(r.choice([[], batch]) + [size, r.randint(1, 3)])
        eye = torch.eye(size, dtype=torch.float64) * 4
        e = self.whole(eye)
        full, ours_full = lambda: torch.tanh(a) + eye, lambda: n("add", n("tanh", x), e)
        kind = r.choice("inv det slogdet solve solve_vector triangular cholesky lu_factor lu lu_solve cholesky_solve cholesky_inverse cond".split())
        self.twice = self.twice and kind != "slogdet"
        lin = torch.linalg
        if kind in ("inv", "det"):
            return f"{kind} {list(a.shape)}", lambda: getattr(lin, kind)(full()), lambda: n(kind, ours_full())
        if kind == "slogdet":
            def logarithm():
                s, v = C.c_void_p(), C.c_void_p()
                m = ours_full()
                self.w.check(self.w.lib.weir_slogdet(C.byref(s), C.byref(v), m))
                self.held.extend((s, v))
                return v
            return f"{kind} {list(a.shape)}", lambda: lin.slogdet(full())[1], logarithm
        if kind == "solve":
            return f"{kind} {list(a.shape)} {list(b.shape)}", lambda: lin.solve(full(), b), lambda: n(kind, ours_full(), y)
        if kind == "solve_vector":
            b, y = self.leaf(batch + [size])
            return f"{kind} {list(a.shape)} {list(b.shape)}", lambda: lin.solve(full(), b), lambda: n("solve", ours_full(), y)
        if kind in ("lu_factor", "lu"):
            a, x = self.leaf(batch + [size, r.randint(1, 3)])
            e2 = self.whole(torch.eye(*a.shape[-2:], dtype=torch.float64) * 4)
            whole, at = (lambda: torch.tanh(a) + torch.eye(*a.shape[-2:], dtype=torch.float64) * 4), r.choice([1, 2]) if kind == "lu" else 0
            return (f"{kind} {list(a.shape)} {at}", lambda: getattr(lin, kind)(whole())[at],
                    lambda: self.several(kind, 3 if at else 2, n("add", n("tanh", x), e2), True)[at])
        if kind == "lu_solve":
            left, adjoint = r.random() < .5, r.random() < .5
            if not left:
                b, y = self.leaf(batch + [r.randint(1, 3), size])
            return (f"{kind} {list(a.shape)} {list(b.shape)} {left} {adjoint}", lambda: lin.lu_solve(*lin.lu_factor(full()), b, left=left, adjoint=adjoint),
                    lambda: n("lu_solve", *self.several("lu_factor", 2, ours_full(), True), y, left, adjoint))
        if kind == "cond":
            p = r.choice([None, -2, "fro", "nuc", 1, -1, math.inf, -math.inf])
            self.twice = False
            if p in (1, -1, math.inf, -math.inf):
                # sums that differ by their rounding alone: either has the gradient
                m = full().detach()
                sums = torch.stack([m.abs(), torch.linalg.inv(m).abs()]).sum(-2 if p in (1, -1) else -1)
                apart = (sums.unsqueeze(-1) - sums.unsqueeze(-2)).abs() + torch.eye(size, dtype=torch.float64)
                p = "fro" if bool((apart < 1e-9).any()) else p
            return f"cond {list(a.shape)} {p}", lambda: lin.cond(full(), p), lambda: n("cond", ours_full(), str(p).encode() if p is not None else None)
        upper = r.random() < .5
        if kind == "cholesky_solve":
            return f"{kind} {list(a.shape)} {list(b.shape)} {upper}", lambda: torch.cholesky_solve(b, full(), upper), lambda: n(kind, y, ours_full(), upper)
        if kind == "cholesky_inverse":
            if len(batch) == 2:
                self.twice = False
            return f"{kind} {list(a.shape)} {upper}", lambda: torch.cholesky_inverse(full(), upper), lambda: n(kind, ours_full(), upper)
        if kind == "triangular":
            left, unit = r.random() < .5, r.random() < .3
            if not left:
                b, y = self.leaf(batch + [r.randint(1, 3), size])
            return (f"{kind} {list(a.shape)} {list(b.shape)} {upper} {left} {unit}",
                    lambda: lin.solve_triangular(full(), b, upper=upper, left=left, unitriangular=unit),
                    lambda: n("solve_triangular", ours_full(), y, upper, left, unit))
        def factor():
            m = ours_full()
            return n("cholesky", n("matmul", m, n("transpose", m, -1, -2)), upper)
        return f"{kind} {list(a.shape)} {upper}", lambda: lin.cholesky(full() @ full().mT, upper=upper), factor

    def several(self, name, count, *arguments):
        outs = [C.c_void_p() for _ in range(count)]
        self.w.check(getattr(self.w.lib, "weir_" + name)(*[C.byref(o) for o in outs], *arguments))
        self.held.extend(outs)
        return outs

    def factored(self, t, w):
        """Factorisations. Of vectors that are free in sign, what does not depend on it."""
        r, n, lin = self.r, self.new, torch.linalg
        rows, columns, batch = r.randint(1, 4), r.randint(1, 4), r.choice([[], [], [2], [2, 1]])
        kind = r.choice("qr qr_r svd svd_u svd_v svdvals eigh eigvalsh pinv lstsq nuc norm2".split())
        if kind in ("eigh", "eigvalsh"):
            columns = rows
        a, x = self.leaf(batch + [rows, columns])
        apart = torch.zeros(rows, columns, dtype=torch.float64)
        for i in range(min(rows, columns)):
            apart[i, i] = 3 * (i + 1) ** 2  # values are far from one another
        e = self.whole(apart)
        full, ours_full = lambda: torch.tanh(a) + apart, lambda: n("add", n("tanh", x), e)
        what = f"{kind} {list(a.shape)}"
        if kind in ("qr", "qr_r"):
            mode = r.choice(["reduced", "complete", "r"] if r.random() < .3 else ["reduced"])
            at = 0 if kind == "qr" and mode != "r" else 1
            return f"{what} {mode}", lambda: lin.qr(full(), mode)[at], lambda: self.several("qr", 2, ours_full(), mode.encode())[at]
        if kind == "eigh":
            upper = r.random() < .5
            def vectors():
                values, v = self.several("eigh", 2, ours_full(), upper)
                return n("mul", n("mul", v, v), n("unsqueeze", values, -2))
            def theirs():
                values, v = lin.eigh(full(), "U" if upper else "L")
                return v * v * values.unsqueeze(-2)
            return f"{what} {upper}", theirs, vectors
        if kind == "eigvalsh":
            return what, lambda: lin.eigvalsh(full()), lambda: n(kind, ours_full(), False)
        if kind.startswith("svd") and kind != "svdvals":
            whole = r.random() < .3
            def squares():
                u, s, vh = self.several("svd", 3, ours_full(), whole)
                k = min(rows, columns)
                u, vh = n("narrow", u, -1, C.c_int64(0), C.c_int64(k)), n("narrow", vh, -2, C.c_int64(0), C.c_int64(k))
                return n("mul", u, u) if kind == "svd_u" else n("mul", vh, vh) if kind == "svd_v" else n("matmul", n("mul", u, n("unsqueeze", n("sin", s), -2)), vh)
            def theirs():
                u, s, vh = lin.svd(full(), whole)
                k = min(rows, columns)
                u, vh = u[..., :k], vh[..., :k, :]
                return u * u if kind == "svd_u" else vh * vh if kind == "svd_v" else (u * s.sin().unsqueeze(-2)) @ vh
            return f"{what} {whole}", theirs, squares
        if kind == "svdvals":
            return what, lambda: lin.svdvals(full()), lambda: n(kind, ours_full())
        if kind == "pinv":
            return what, lambda: lin.pinv(full()), lambda: n(kind, ours_full(), C.c_double(-1))
        if kind == "lstsq":
            b, y = self.leaf(batch + [rows, r.randint(1, 3)])
            if rows < columns:
                return None  # torch's own second operand of a vector and its derivative are of full rank by columns
            return what, lambda: lin.lstsq(full(), b).solution, lambda: n(kind, ours_full(), y)
        order = "nuc" if kind == "nuc" else 2
        return what, lambda: lin.matrix_norm(full(), order), lambda: n("matrix_norm", ours_full(), str(order).encode(), None, False)

    def in_place(self, t, w):
        """Of a tensor of its own."""
        r = self.r
        kind = r.choice("mul_ add_ relu_ tanh_ copy_ fill_ zero_ mul_scalar_ leaf late".split())
        a, x = (t.clone(), self.new("clone", w)) if kind != "leaf" else (t, w)
        u, v = self.leaf(list(t.shape))
        lib = self.w.lib
        def ours(call):
            def run():
                self.w.check(call())
                return x
            return run
        if kind == "leaf":
            if not t.is_leaf or not t.requires_grad:
                return None
            return "leaf add_", lambda: a.add_(1), ours(lambda: lib.weir_add_scalar_(x, scalar(1)))
        if kind == "late":  # what exp() keeps is changed
            def theirs():
                y = a.exp()
                y.mul_(2)
                return y
            def mine():
                y = self.new("exp", x)
                self.w.check(lib.weir_mul_scalar_(y, scalar(2)))
                return y
            return "late", theirs, mine
        if kind == "copy_":
            return kind, lambda: a.copy_(u * 2), ours(lambda: lib.weir_copy_(x, self.new("mul_scalar", v, scalar(2)), False))
        if kind == "fill_":
            return kind, lambda: a.fill_(.5), ours(lambda: lib.weir_fill_(x, scalar(.5)))
        if kind == "zero_":
            return kind, lambda: a.zero_(), ours(lambda: lib.weir_zero_(x))
        if kind == "mul_scalar_":
            return kind, lambda: a.mul_(3), ours(lambda: lib.weir_mul_scalar_(x, scalar(3)))
        if kind in ("relu_", "tanh_"):
            return kind, lambda: getattr(a, kind)(), ours(lambda: getattr(lib, "weir_" + kind)(x))
        return kind, lambda: getattr(a, kind)(u), ours(lambda: getattr(lib, "weir_" + kind)(x, v))

    # ---- memory that tensors share

    def parts(self, t, w):
        """One of several views that a function gives, a view made in no_grad, what detach() gives."""
        r, n = self.r, self.new
        kind = r.choice("unbind split split_sizes tensor_split chunk detach".split())
        if kind == "detach":
            return kind, lambda: t.detach(), lambda: n(kind, w)
        if not t.dim():
            return None
        d = r.randrange(t.dim())
        size = t.shape[d]
        def many(name, *arguments):
            out, count = (C.c_void_p * 8)(), C.c_int()
            room = () if name == "chunk" else (8,)
            self.w.check(getattr(self.w.lib, "weir_" + name)(out, C.byref(count), *room, w, *arguments))
            self.held.extend(C.c_void_p(v) for v in out[:count.value])
            return self.held[-1]
        if kind in ("unbind", "split") and size > 8:
            return None
        if kind == "unbind":
            return f"{kind} {d}", lambda: t.unbind(d)[-1], lambda: many(kind, d)
        if kind == "chunk":
            return f"{kind} {d}", lambda: t.chunk(2, d)[-1], lambda: many(kind, 2, d)
        if kind == "split":
            return f"{kind} {d}", lambda: t.split(2, d)[-1], lambda: many(kind, C.c_int64(2), d)
        out = (C.c_void_p * 2)()
        if kind == "tensor_split":
            def split():
                self.w.check(self.w.lib.weir_tensor_split(out, w, 2, d))
                self.held.extend(C.c_void_p(v) for v in out)
                return self.held[-1]
            return f"{kind} {d}", lambda: t.tensor_split(2, d)[-1], split
        def sizes():
            self.w.check(self.w.lib.weir_split_with_sizes(out, w, longs([size - 1, 1]), 2, d))
            self.held.extend(C.c_void_p(v) for v in out)
            return self.held[-1]
        return f"{kind} {d}", lambda: t.split([size - 1, 1], d)[-1], sizes

    def unseen(self, t, w):
        """A view that was made in no_grad, and is changed, or asked after its base was."""
        r = self.r
        if not t.dim() or overlaps(t):
            return None
        u, v = self.leaf([])
        with torch.no_grad():
            a = t[0]
        was = self.w.lib.weir_set_grad_enabled(False)
        b = self.new("select", w, 0, C.c_int64(0))
        self.w.lib.weir_set_grad_enabled(was & 1)
        if r.random() < .7:
            def ours():
                self.w.check(self.w.lib.weir_mul_(b, v))
                return b
            return "no_grad", lambda: a.mul_(u), ours
        def theirs():
            t.mul_(u)
            return a + 1
        def ours():
            self.w.check(self.w.lib.weir_mul_(w, v))
            return self.new("add_scalar", b, scalar(1))
        return "no_grad, base", theirs, ours

    def change(self, t, w):
        r, lib = self.r, self.w.lib
        kind = r.choice("mul_ add_ sub_ copy_ copy_ fill_ zero_ relu_ tanh_ sigmoid_ mul_scalar_ masked_fill masked_tensor masked_scatter "
                        "index_fill index_add index_copy scatter put tril self".split())
        if overlaps(t):
            return None
        def ours(name, *arguments):
            def run():
                self.w.check(getattr(lib, "weir_" + name)(w, *arguments))
                return w
            return run
        if kind in ("mul_", "add_", "sub_", "copy_"):
            other = [v if r.random() < .8 else 1 for v in t.shape[r.choice([0, 0, len(t.shape) // 2]):]]
            u, v = self.leaf(other, r.random() < .7)
            more = (False,) if kind == "copy_" else ()
            return kind, lambda: getattr(t, kind)(u), ours(kind, v, *more)
        if kind == "self":
            return kind, lambda: t.add_(t), ours("add_", w)
        if kind == "fill_":
            return kind, lambda: t.fill_(.5), ours(kind, scalar(.5))
        if kind == "mul_scalar_":
            return kind, lambda: t.mul_(1.5), ours(kind, scalar(1.5))
        if kind in ("zero_", "relu_", "tanh_", "sigmoid_"):
            return kind, lambda: getattr(t, kind)(), ours(kind)
        if kind.startswith("masked"):
            m = torch.rand([v if r.random() < .8 else 1 for v in t.shape]) < .5
            j = self.whole(m)
            if kind == "masked_fill":
                return kind, lambda: t.masked_fill_(m, -1.), ours("masked_fill_", j, scalar(-1.))
            u, v = self.leaf([] if kind == "masked_tensor" else [t.numel()])
            if kind == "masked_tensor":
                return kind, lambda: t.masked_fill_(m, u), ours("masked_fill_tensor_", j, v)
            return kind, lambda: t.masked_scatter_(m, u), ours("masked_scatter_", j, v)
        if not t.dim():
            return None
        if kind == "tril":
            return (kind, lambda: t.tril_(), ours("tril_", C.c_int64(0))) if t.dim() > 1 else None
        d = r.randrange(t.dim())
        if kind == "put":
            i = torch.randperm(t.numel())[:2]
            u, v = self.leaf([len(i)])
            return kind, lambda: t.put_(i, u), ours("put_", self.whole(i), v, False)
        i = torch.randperm(t.shape[d])[:2]
        j = self.whole(i)
        if kind == "index_fill":
            return kind, lambda: t.index_fill_(d, i, 2.), ours("index_fill_", d, j, scalar(2.))
        slices = list(t.shape)
        slices[d] = len(i)
        u, v = self.leaf(slices)
        if kind == "scatter":
            shape = [len(i) if a == d else 1 for a in range(t.dim())]
            i = i.reshape(shape)
            u, v = self.leaf(shape)
            return kind, lambda: t.scatter_(d, i, u), ours("scatter_", d, self.whole(i), v)
        return f"{kind} {d}", lambda: getattr(t, kind + "_")(d, i, u), ours(kind + "_", d, j, v)

    def shared(self):
        """Views of one memory, views of those, and changes of any of them."""
        r = self.r
        t, w = self.pick()
        base = r.choice(["clone", "clone", "clone", "plain", "itself"])
        if base == "itself" and t.stride() == self.w.stride(w):
            all = [(t, w)]
        elif base == "plain":
            all = [self.leaf([r.randint(1, 4) for _ in range(r.randint(1, 3))], False)]
        else:
            all = [(t.contiguous().clone(), self.new("clone", self.new("contiguous", w)))]
        self.log.append(f"{base} of {list(t.shape)}")
        for _ in range(r.randint(2, 8)):
            k = r.randrange(len(all))
            t, w = all[k]
            choice = r.choice([self.view, self.view, self.change, self.change, self.parts, self.use, "drop"])
            if r.random() < .05:
                choice = self.unseen
            if choice == "drop":
                if len(all) > 1 and base != "itself":
                    self.held.remove(w)
                    self.w.release(w)
                    del all[k]
                    self.log.append(f"drop {k}")
                continue
            if choice == self.parts and r.random() < .6:
                continue
            got = choice(t, w)
            if not got or t.numel() > 500:
                continue
            what, theirs, ours = got
            if choice in (self.change, self.unseen):  # torch takes a view for a leaf that has not been asked since its base was changed
                alive(t)
            made = self.attempt(f"{k}: {what} of {list(t.shape)}", theirs, ours)
            if not made or choice in (self.change, self.unseen):
                continue
            if choice == self.use:
                self.pool.extend([] if noise(made[0]) else [made])
            elif made[0].numel():
                all.append(made)
        for t, w in all[-3:]:
            if bool(t.detach().isfinite().all()) and float(t.detach().abs().max()) < 1e3 and not noise(t):
                self.attempt("asked", lambda: t + 0, lambda: self.new("add_scalar", w, scalar(0)))
                self.pool.append((t, w))

    def use(self, t, w):
        if self.r.random() < .8:
            return "used", lambda: t * 2, lambda: self.new("mul_scalar", w, scalar(2))
        return "kept", lambda: t * t, lambda: self.new("mul", w, w)

    # ---- a program

    def step(self):
        if self.r.random() < SHARED:
            return self.shared()
        t, w = self.pick()
        choice = self.r.choice([self.unary, self.binary, self.binary, self.number, self.reduce, self.view, self.view,
                                self.arrange, self.product, self.in_place, self.choose, self.choose, self.order,
                                self.planes, self.matrices, self.factored, self.function, self.two, self.three,
                                self.activation, self.running, self.reduced_to, self.part_replaced, self.bag])
        got = choice(t, w)
        if not got:
            return
        what, theirs, ours = got
        made = self.attempt(f"{what} of {list(t.shape)}", theirs, ours)
        if made and made[0].numel() and bool(made[0].detach().isfinite().all()) and float(made[0].detach().abs().max()) < 1e6 and not noise(made[0]):
            self.pool.append(made)

    def attempt(self, what, theirs, ours):
        """What both made, or None where both refuse, for the same reason."""
        self.log.append(what)
        self.steps += 1
        try:
            a, wrong = theirs(), None
        except (RuntimeError, IndexError) as e:
            a, wrong = None, str(e)
        try:
            b, sentence = ours(), None
        except Failed as e:
            b, sentence = None, str(e)
        if (wrong is None) != (sentence is None):
            return self.complain("one fails", wrong, sentence)
        if wrong is not None:
            maker = re.compile(r"^Output \d of \w+ is a view")  # of one of several: ours has fewer kinds
            sooner = sentence.startswith("unsupported operation: more than one element")  # than what torch asks first
            if wrong == LEAF and sentence == LEAF.replace("a leaf", "a view of a leaf"):  # torch's flatten() may be t itself
                return
            if maker.sub("", wrong.splitlines()[0]) != maker.sub("", sentence) and not (sooner and ("inplace" in wrong or "in-place" in wrong)):
                self.complain("words", wrong, sentence)
            return
        if tuple(a.shape) != self.w.shape(b):
            return self.complain("shape", tuple(a.shape), self.w.shape(b))
        if a.requires_grad != bool(self.w.lib.weir_tensor_requires_grad(b) & 1):
            return self.complain("requires_grad", a.requires_grad, not a.requires_grad)
        return a, b

    def compare(self, what, x, y):
        # of second derivatives one may say none where the other's formula names an operand that counts for nothing
        if x is None or not y:
            if x is None and not y:
                return
            zeros = "second derivative" in self.log and not (x if x is not None else self.w.elements(y, torch.float64)).any()
            if (x is None) != (not y) and not zeros:
                self.complain(what + ": one has none", x, bool(y))
            return
        got = self.w.elements(y, torch.float64).reshape(x.shape)
        if tuple(x.shape) != self.w.shape(y):
            return self.complain(what + ": shape", tuple(x.shape), self.w.shape(y))
        if not torch.allclose(x, got, rtol=1e-7, atol=1e-7 * (1 + float(x.abs().nan_to_num(0, 0, 0).max() if x.numel() else 0)), equal_nan=True):
            self.complain(what, x, got)

    def loss(self):
        total, ours = None, None
        for t, w in [p for p in self.pool if alive(p[0])][-3:]:
            s, v = t.sin().sum(), self.new("sum", self.new("sin", w))
            total, ours = (s, v) if total is None else (total + s, self.new("add", ours, v))
        return total, ours

    def run(self):
        for _ in range(self.r.randint(1, 3)):
            self.pool.append(self.leaf(self.size()))
        for _ in range(self.r.randint(1, 20)):
            self.step()
        total, ours = self.loss()
        again = self.twice and self.seed % 2 == 0
        self.back(total, ours, list(self.leaves), again)
        for t in self.held:
            self.w.release(t)

    def back(self, total, ours, leaves, again):
        self.steps += 1
        lib = self.w.lib
        n = len(leaves)
        out, inputs, outs = (C.c_void_p * n)(), (C.c_void_p * n)(*[w for _, w in leaves]), (C.c_void_p * 1)(ours)
        o = GradOptions(None, True, again, True)
        try:
            theirs, wrong = torch.autograd.grad(total, [t for t, _ in leaves], retain_graph=True, create_graph=again, allow_unused=True), None
        except RuntimeError as e:
            theirs, wrong = None, str(e)
        try:
            self.w.check(lib.weir_grad(out, outs, 1, inputs, n, C.byref(o)))
            sentence = None
        except Failed as e:
            sentence = str(e)
        if wrong and sentence and wrong.startswith(("Output ", "A view was")):  # what was kept is a view of several
            return None
        changed = "modified by an inplace"
        if wrong and changed in wrong and changed not in (sentence or ""):  # torch keeps more than the derivative needs
            self.refused = True
            return None
        if self.copied and sentence and not wrong and changed in sentence:  # without the copies torch refused, too
            return None
        if (wrong is None) != (sentence is None) or (wrong and wrong.replace("torch.DoubleTensor", "weir.DoubleTensor")[:100] != sentence[:100]):
            return self.complain("backward: one fails", wrong, sentence)
        if wrong:
            return None
        mine = [C.c_void_p(v) if v else None for v in out]
        self.held.extend(v for v in mine if v)
        for i, (x, y) in enumerate(zip(theirs, mine)):
            self.compare(f"gradient {i}", None if x is None else x.detach(), y)
        try:
            torch.autograd.backward(total, retain_graph=True)
            wrong = None
        except RuntimeError as e:
            wrong = str(e)
        refused = bool(lib.weir_backward(ours, None, again))
        if wrong and not refused and "modified by an inplace" in wrong:
            self.refused = True
            return None
        if refused or wrong:
            return None if refused and wrong else self.complain("backward", wrong, self.w.lib.weir_error_message())
        for i, (t, w) in enumerate(leaves):
            got = lib.weir_tensor_grad(w)
            self.compare(f"gathered {i}", t.grad, C.c_void_p(got) if got else None)
        pairs = [(x, y) for x, y in zip(theirs, mine) if x is not None and x.requires_grad and bool(x.detach().abs().isfinite().all())] if again else []
        if not pairs or self.bad:
            return None
        total, ours = None, None
        for x, y in pairs:
            if x.is_complex():
                x, y = torch.view_as_real(x.resolve_conj()), self.new("view_as_real", y)
            s, v = (x * x).sum(), self.new("sum", self.new("mul", y, y))
            total, ours = (s, v) if total is None else (total + s, self.new("add", ours, v))
        self.log.append("second derivative")
        return self.back(total, ours, leaves, False) if float(total) < 1e6 and bool(lib.weir_tensor_requires_grad(ours) & 1) else None


class Complex(Program):
    """Programs over complex64: what has a derivative there."""

    def number(self):
        sizes = [self.r.choice([1, 2, 3]) for _ in range(self.r.randint(1, 3))]
        return self.numbers(sizes, self.r.random() < .8)

    def numbers(self, sizes, complex=True):
        t = torch.randn(sizes, dtype=torch.complex64 if complex else torch.float32)
        w = self.w.of(t)
        self.held.append(w)
        t.requires_grad_()
        self.w.check(self.w.lib.weir_requires_grad_(w, True))
        self.leaves.append((t, w))
        return t, w

    def one(self):
        r, n = self.r, self.new
        t, w = r.choice(self.pool[-4:])
        z = t.is_complex()
        kind = r.choice("neg abs exp log sqrt rsqrt sin cos tanh sigmoid reciprocal pow add sub mul div matmul conj real imag "
                        "as_real as_complex sum mean transpose narrow cat stack flip to where mul_number rsub change".split())
        unary = {"neg": "neg", "abs": "abs", "sin": "sin", "cos": "cos", "tanh": "tanh", "sigmoid": "sigmoid"}
        if kind in unary:
            return kind, lambda: getattr(torch, kind)(t), lambda: n(kind, w)
        if kind == "exp":
            return kind, lambda: torch.exp(torch.tanh(t)), lambda: n("exp", n("tanh", w))
        if kind in ("log", "sqrt", "rsqrt", "reciprocal") and z:
            return kind, lambda: getattr(torch, kind)(t), lambda: n(kind, w)
        if kind == "pow" and z:
            p = r.choice([2, 3, 0, 1, .5, -1])
            return f"{kind} {p}", lambda: t ** p, lambda: n("pow_scalar", w, scalar(p))
        if kind in ("add", "sub", "mul", "div"):
            u, v = self.numbers([k if r.random() < .8 else 1 for k in t.shape], r.random() < .6)
            return kind, lambda: getattr(torch, kind)(t, u), lambda: n(kind, w, v)
        if kind == "mul_number":
            s = scalar(.5 - 1.5j)
            return kind, lambda: t * (.5 - 1.5j), lambda: n("mul_scalar", w, s)
        if kind == "rsub":
            return kind, lambda: 2 - t, lambda: n("scalar_sub", scalar(2), w)
        if kind == "matmul" and t.dim() and z:
            u, v = self.numbers([t.shape[-1], 2] if r.random() < .7 else [t.shape[-1]])
            return kind, lambda: t @ u, lambda: n(kind, w, v)
        if kind == "conj":
            return kind, lambda: t.conj(), lambda: n(kind, w)
        if kind == "real" or (kind == "imag" and z):
            return kind, lambda: getattr(t, kind), lambda: n(kind, w)
        if kind == "as_real" and z:
            return kind, lambda: torch.view_as_real(t.resolve_conj()), lambda: n("view_as_real", w)
        if kind == "as_complex" and not z and t.dim() and t.shape[-1] == 2:
            return kind, lambda: torch.view_as_complex(t.contiguous()), lambda: n("view_as_complex", n("contiguous", w))
        if kind == "to":
            other = torch.float32 if z else torch.complex64
            return kind, lambda: t.to(other), lambda: n("to_dtype", w, 7 if z else 9)
        if kind == "where":
            m = torch.rand(t.shape) < .5
            j = self.whole(m)
            return kind, lambda: torch.where(m, t, t * 2), lambda: n("where", j, w, n("mul_scalar", w, scalar(2)))
        if not t.dim():
            return None
        d = r.randrange(t.dim())
        if kind in ("sum", "mean"):
            return kind, lambda: getattr(t, kind)(d), lambda: n(kind + "_dim", w, d, False)
        if kind == "transpose":
            return kind, lambda: t.transpose(0, d), lambda: n(kind, w, 0, d)
        if kind == "narrow":
            return kind, lambda: t.narrow(d, 0, 1), lambda: n(kind, w, d, C.c_int64(0), C.c_int64(1))
        if kind in ("cat", "stack"):
            return kind, lambda: getattr(torch, kind)([t, t], d), lambda: n(kind, (C.c_void_p * 2)(w, w), 2, d)
        if kind == "flip":
            return kind, lambda: t.flip([d]), lambda: n(kind, w, ints([d]), 1)
        if kind == "change":
            u, v = self.numbers(list(t.shape)[1:], z)
            def theirs():
                a = t.clone()
                a[0].mul_(u)
                return a
            def ours():
                x = n("clone", w)
                self.w.check(self.w.lib.weir_mul_(n("select", x, 0, C.c_int64(0)), v))
                return x
            return kind, theirs, ours
        return None

    def run(self):
        n = self.new
        self.pool = [self.number() for _ in range(2)]
        for _ in range(self.r.randint(1, 8)):
            got = self.one()
            made = self.attempt(*got) if got else None
            if made and made[0].numel() and bool(torch.view_as_real(made[0].detach().resolve_conj() + 0j).isfinite().all()) and float(made[0].detach().abs().max()) < 30:
                self.pool.append(made)
        total, ours = None, None
        for t, w in self.pool[-2:]:
            s, v = (t.real + (2 * t.imag if t.is_complex() else 0)).sin().sum(), None
            both = n("add", n("real", w), n("mul_scalar", n("imag", w), scalar(2))) if t.is_complex() else n("real", w)
            v = n("sum", n("sin", both))
            total, ours = (s, v) if total is None else (total + s, n("add", ours, v))
        self.back(total, ours, list(self.leaves), self.seed % 2 == 0)
        for t in self.held:
            self.w.release(t)

    def compare(self, what, x, y):
        if x is None or not y:
            if (x is None) != (not y):
                self.complain(what + ": one has none", x, bool(y))
            return
        x = x.resolve_conj()
        got = self.w.elements(y, x.dtype).reshape(x.shape)
        size = float(x.abs().max()) if x.numel() else 0
        if size < 1e4 and not torch.allclose(x, got, rtol=2e-3, atol=2e-4 * (1 + size)):
            self.complain(what, x, got)


def main():
    weir = Weir(sys.argv[1])
    weir.lib.weir_tensor_grad.restype = C.c_void_p
    weir.lib.weir_tensor_grad.argtypes = [C.c_void_p]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    steps = bad = 0
    for i in range(seed, seed + count):
        torch.manual_seed(i)
        p = (Complex if i % 8 == 7 or ALL_COMPLEX else Program)(weir, i)
        p.run()
        if p.refused and not p.bad:
            torch.manual_seed(i)
            with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
                p = type(p)(weir, i)
                p.copied = True
                p.run()
            p.bad += p.refused
        steps += p.steps
        bad += p.bad
        if bad > 8:
            break
    print(f"{steps} steps of {count} programs, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

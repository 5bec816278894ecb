"""The part of ops.py about indexing.h: elements chosen by index tensors and by masks. A mixin of its Calls."""
import ctypes as C

import torch
import torch.nn.functional as F

from tensors import DTYPES, Device, NUMBERS, Options, scalar, shape

OPS = ["sum", "prod", "mean", "amax", "amin"]
WIDE = [torch.float32] * 3 + [torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8, torch.bool,
                              torch.complex64, torch.float16, torch.bfloat16]


class BagOptions(C.Structure):
    _fields_ = [("mode", C.c_int), ("include_last_offset", C.c_bool), ("has_padding", C.c_bool), ("padding_idx", C.c_int64)]


class Indices:
    def index(self, sizes, places, low=0, wrong=.04, dtype=None):
        """Places below `places`: torch's and Weir's; a few out of bounds."""
        r = self.r
        n = 1
        for s in sizes:
            n *= s
        t = torch.tensor([r.randint(low, max(places - 1, low)) for _ in range(n)], dtype=torch.int64).reshape(sizes)
        if n and r.random() < wrong:
            t.view(-1)[r.randrange(n)] = r.choice([places, places + 3, -1 if low == 0 else low - 2])
        t = t.to(dtype or r.choice([torch.int64] * 7 + [torch.int32] * 2 + ([torch.float32] if r.random() < .1 else [torch.int64])))
        w = self.w.of(t)
        if len(sizes) > 1 and r.random() < .2:
            t = t.transpose(0, 1).contiguous()
            self.w.release(w)
            w = self.moved(self.w.of(t), "transpose", 0, 1)
            t = t.transpose(0, 1)
        return t, w

    def plain_sizes(self):
        """As sizes(), less often empty."""
        s = self.sizes()
        return [max(1, v) for v in s] if self.r.random() < .9 else s

    def place_of(self, t):
        """A dimension, as it is asked for and as it is."""
        n = max(t.dim(), 1)
        d = self.r.randint(-n, n - 1)
        return d, d % n

    def rounding(self, t, *more):
        """What sums of these are rounded by."""
        if t.dtype not in self.eps():
            return None
        size = sum(float(x.abs().double().nan_to_num(0, 0, 0).sum()) for x in (t, *more))
        return torch.ones((), dtype=torch.float64) * size

    def eps(self):
        return (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)

    def slices(self):
        r = self.r
        dtype = r.choice(WIDE)
        t, w = self.tensor(self.plain_sizes(), dtype, small=True)
        d, at = self.place_of(t)
        size = t.shape[at] if t.dim() else 1
        n = r.randint(0, 5) if t.dim() else 1
        if not t.numel():
            n = 0  # torch looks at what is chosen of nothing, or does not
        name = r.choice("index_select index_select index_add index_add index_copy index_fill".split())
        wrap = name == "index_fill"
        sizes = [n] if n != 1 or r.random() < .7 else []
        if r.random() < .02:
            sizes = [1, max(n, 1)]
        i, iw = self.index(sizes, size, -size if wrap else 0)
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} dim {d} index {tuple(i.shape)} {i.dtype} {i.tolist()}"
        if name == "index_select":
            self.judge(what, lambda: torch.index_select(t, d, i), lambda: self.w.new(name, w, d, iw))
        elif name == "index_fill":
            v = self.number()
            self.both_ways(what + f" {v}", t, w, name, (d, i, v), (d, iw, scalar(v)))
        else:
            shape_of = list(t.shape)
            if t.dim():
                shape_of[at] = i.numel()
            if r.random() < .03 and shape_of:
                shape_of[r.randrange(len(shape_of))] += 1
            if r.random() < .03:
                shape_of = shape_of[1:]
            s, sw = self.tensor(shape_of, dtype if r.random() < .97 else torch.float64, small=True)
            scale = self.rounding(t, s) if s.dtype == dtype else None
            if name == "index_add" and r.random() < .3:
                v = r.choice([2, 1, 0.5, -1]) if dtype.is_floating_point else r.choice([2, 1])
                self.both_ways(what + f" alpha {v} of {tuple(s.shape)} {s.dtype}", t, w, "index_add_alpha", (d, i, s), (d, iw, sw, scalar(v)),
                               scale, theirs="index_add", alpha=v)
            else:
                self.both_ways(what + f" of {tuple(s.shape)} {s.stride()} {s.dtype}", t, w, name, (d, i, s), (d, iw, sw), scale)
            self.w.release(sw)
        for x in (w, iw):
            self.w.release(x)

    def both_ways(self, what, t, w, name, arguments, ours, scale=None, theirs=None, **keep):
        """New, or in place on a copy."""
        theirs = theirs or name
        several = 4 if t.dtype.itemsize > 2 or t.dtype.is_complex else 8
        if self.r.random() < .5:
            self.own_strides = True
            self.judge(what, lambda: self.aten(theirs)(t, *arguments, **keep), lambda: self.w.new(name, w, *ours), scale, several)
            self.own_strides = False
            return
        def run():
            c = self.w.new("clone", w)
            try:
                self.w.check(getattr(self.w.lib, f"weir_{name}_")(c, *ours))
            except Exception:
                self.w.release(c)
                raise
            return c
        self.judge(what + " in place", lambda: self.aten(theirs + "_")(t.clone(), *arguments, **keep), run, scale, several)

    def aten(self, name):
        if name.startswith("index_put"):
            return getattr(torch.ops.aten, name)  # with None in its list
        return getattr(torch.Tensor, name)

    def elements(self):
        r = self.r
        dtype = r.choice(WIDE)
        t, w = self.tensor(self.plain_sizes(), dtype, small=True)
        d, at = self.place_of(t)
        size = t.shape[at] if t.dim() else 1
        sizes = [v if r.random() < .6 else r.randint(0 if r.random() < .2 else 1, max(v, 1)) for v in t.shape]
        sizes = [min(v, u) for v, u in zip(sizes, t.shape)]
        if t.dim():
            sizes[at] = r.randint(0 if r.random() < .1 else 1, 5)
        if not size and 0 not in sizes:
            sizes[at] = 0
        if r.random() < .03:
            sizes = sizes[1:] if r.random() < .5 or len(sizes) > 4 else sizes + [1]
        if r.random() < .03 and sizes:
            sizes[r.randrange(len(sizes))] += 2
        i, iw = self.index(sizes, size)
        name = r.choice("gather gather scatter scatter_value scatter_add scatter_add scatter_reduce scatter_reduce take_along_dim".split())
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} dim {d} index {tuple(i.shape)} {i.stride()} {i.dtype}"
        more = [v + r.choice([0, 0, 0, 1]) for v in sizes]
        if r.random() < .03 and more:
            more[r.randrange(len(more))] -= 1
        more = [max(v, 0) for v in more]
        s, sw = self.tensor(more, dtype if r.random() < .97 else torch.int16, small=True)
        what += f" src {tuple(s.shape)} {s.stride()}"
        if name == "gather":
            self.judge(what, lambda: torch.gather(t, d, i), lambda: self.w.new(name, w, d, iw))
        elif name == "take_along_dim":
            good = i.clamp(-size, max(size - 1, 0)) if i.dtype in (torch.int64, torch.int32) else i
            gw = self.w.of(good.contiguous())
            if size and t.dim() == i.dim():
                self.own_strides = True
                self.judge(what, lambda: torch.take_along_dim(t, good, d), lambda: self.w.new(name, w, gw, d))
                self.own_strides = False
            self.w.release(gw)
        elif name == "scatter_value":
            v = self.number()
            self.both_ways(what + f" {v}", t, w, name, (d, i, v), (d, iw, scalar(v)), theirs="scatter")
        elif name == "scatter":
            if not self.twice(i, at):
                self.both_ways(what, t, w, name, (d, i, s), (d, iw, sw))
        elif name == "scatter_add":
            self.both_ways(what, t, w, name, (d, i, s), (d, iw, sw), self.rounding(t, s) if s.dtype == dtype else None)
        else:
            op, keep = r.randrange(5), r.random() < .6
            scale = self.rounding(t, s) if op in (0, 2) and s.dtype == dtype else None
            if op == 1 and scale is None and dtype in self.eps():
                scale = torch.ones(()) * float(t.abs().double().nan_to_num(0, 0, 0).clamp(1).prod() *
                                               s.abs().double().nan_to_num(0, 0, 0).clamp(1).prod()) if s.dtype == dtype else None
            self.both_ways(what + f" {OPS[op]} include_self {keep}", t, w, name, (d, i, s, OPS[op]), (d, iw, sw, op, keep), scale,
                           include_self=keep)
        for x in (w, iw, sw):
            self.w.release(x)

    def twice(self, i, at):
        """Whether an element would be set twice: torch says that any of the values may stay."""
        if i.dtype not in (torch.int64, torch.int32) or not i.numel() or not i.dim():
            return i.dtype in (torch.int64, torch.int32) and i.numel() > 1
        if at >= i.dim():
            return False
        s = i.to(torch.int64).sort(at).values
        return bool((s.diff(dim=at) == 0).any())

    def numbers(self):
        r = self.r
        dtype = r.choice(WIDE)
        t, w = self.tensor(self.plain_sizes(), dtype, small=True)
        n = t.numel()
        i, iw = self.index(r.choice([[], [3], [2, 2], [0], [1, 4]]), n, -n, dtype=torch.int64 if r.random() < .95 else torch.int32)
        name = r.choice(["take", "put"])
        what = f"{name} {tuple(t.shape)} {t.stride()} {t.dtype} {i.tolist()} {i.dtype}"
        if name == "take":
            self.judge(what, lambda: torch.take(t, i), lambda: self.w.new(name, w, iw))
        else:
            s, sw = self.tensor([i.numel() + (r.random() < .05)], dtype if r.random() < .95 else torch.int16, small=True)
            more = r.random() < .5
            where = (i % n if n else i).to(torch.int64).flatten()
            if more or where.unique().numel() == where.numel():
                self.own_strides = True
                self.both_ways(what + f" accumulate {more}", t, w, name, (i, s, more), (iw, sw, more), self.rounding(t, s) if s.dtype == dtype else None)
                self.own_strides = False
            self.w.release(sw)
        for x in (w, iw):
            self.w.release(x)

    def listed(self):
        """a[i, :, mask]."""
        r = self.r
        dtype = r.choice(WIDE)
        t, w = self.tensor(self.plain_sizes(), dtype, small=True)
        if not t.dim():
            return
        together = r.choice([[], [3], [2, 3], [1], [0], [2, 1]])
        ts, ws, d = [], [], 0
        while d < t.dim() + (r.random() < .03) and len(ts) < 5:
            kind = r.choice(["none", "none", "index", "index", "mask"])
            if kind == "mask" and d < t.dim():
                k = r.randint(1, min(2, t.dim() - d))
                sizes = [v + (r.random() < .02) for v in t.shape[d:d + k]]
                m = torch.rand(sizes) < .5
                if r.random() < .1:
                    m = m.to(torch.uint8)
                want = together[-1] if together else 1
                if r.random() < .7 and m.numel():  # so that it goes with the others
                    m.view(-1)[:] = 0
                    m.view(-1)[:min(max(want, 1), m.numel())] = 1
                ts.append(m)
                ws.append(self.w.of(m))
                d += k
            elif kind == "index":
                size = t.shape[d] if d < t.dim() else 1
                i, iw = self.index([v if r.random() < .8 else 1 for v in together] if r.random() < .95 else [4], size, -size,
                                   dtype=r.choice([torch.int64] * 8 + [torch.int32] + ([torch.int16] if r.random() < .1 else [torch.int64])))
                ts.append(i)
                ws.append(iw)
                d += 1
            elif d < t.dim():
                ts.append(None)
                ws.append(None)
                d += 1
        masks = [x for x in ts if x is not None and x.dtype in (torch.bool, torch.uint8)]
        alone = len(masks) == 1 and all(x is None or x is masks[0] for x in ts)  # torch's index_put is masked_fill() then
        if all(x is None for x in ts) or masks and d > t.dim():
            for x in [w] + [x for x in ws if x]:
                self.w.release(x)
            return
        array = (C.c_void_p * len(ws))(*[x.value if x else None for x in ws])
        what = f"index {tuple(t.shape)} {t.stride()} {t.dtype} by {[None if x is None else (tuple(x.shape), str(x.dtype), x.tolist()) for x in ts]}"
        self.own_strides = True
        self.judge(what, lambda: torch.ops.aten.index(t, ts), lambda: self.w.new("index", w, array, len(ws)))
        try:
            result = torch.ops.aten.index(t, ts)
        except (RuntimeError, IndexError):
            result = None
        if result is not None:
            more = r.random() < .6
            sizes = [v if r.random() < .8 else 1 for v in result.shape][r.choice([0, 0, 0, 1, 9]):]
            if r.random() < .05 and sizes:
                sizes[0] += 1
            s, sw = self.tensor(sizes, dtype if r.random() < .97 else torch.int16, small=True)
            try:
                which = torch.ops.aten.index(torch.arange(t.numel()).reshape(t.shape), ts).flatten()
                once = which.unique().numel() == which.numel()
            except (RuntimeError, IndexError):
                once = True
            if (more or once) and not (alone and (masks[0].dtype == torch.uint8 or s.dtype != dtype)):
                scale = self.rounding(t, s.expand(result.shape)) if more and s.dtype == dtype and len(sizes) <= result.dim() and sizes == list(
                    s.shape) and self.fits(sizes, result.shape) else None
                self.both_ways("index_put, " + what + f" {tuple(s.shape)} {s.dtype} accumulate {more}", t, w, "index_put", (ts, s, more),
                               (array, len(ws), sw, more), scale)
            self.w.release(sw)
        self.own_strides = False
        for x in [w] + [x for x in ws if x]:
            self.w.release(x)

    def fits(self, sizes, shape_of):
        try:
            return tuple(torch.broadcast_shapes(sizes, shape_of)) == tuple(shape_of)
        except RuntimeError:
            return False

    def masks(self):
        r = self.r
        dtype = r.choice(DTYPES)
        t, w = self.tensor(self.sizes(), dtype)
        m, mw = self.tensor(self.like(t.shape), torch.bool if r.random() < .97 else r.choice([torch.uint8, torch.float32]), small=True)
        name = r.choice("masked_fill masked_fill masked_fill_tensor masked_select masked_scatter nonzero nonzero_tuple".split())
        what = f"{name} {tuple(t.shape)} {t.stride()} {t.dtype} mask {tuple(m.shape)} {m.stride()} {m.dtype}"
        self.own_strides = True
        if name == "masked_fill":
            v = self.number()
            self.both_ways(what + f" {v}", t, w, name, (m, v), (mw, scalar(v)))
        elif name == "masked_fill_tensor":
            v, vw = self.tensor([] if r.random() < .95 else [1], r.choice([dtype, torch.float32, torch.int64]), small=True)
            self.both_ways(what + f" {v}", t, w, name, (m, v), (mw, vw), theirs="masked_fill")
            self.w.release(vw)
        elif name == "masked_select":
            self.judge(what, lambda: torch.masked_select(t, m), lambda: self.w.new(name, w, mw))
        elif name == "masked_scatter":
            s, sw = self.tensor([r.choice([t.numel() * 3, t.numel() * 3, 1, 2])], dtype if r.random() < .97 else torch.int16, small=True)
            if m.dtype == torch.bool:
                self.both_ways(what + f" {s.numel()} {s.dtype}", t, w, name, (m, s), (mw, sw))
            self.w.release(sw)
        elif name == "nonzero":
            self.own_strides = False
            self.judge(what, lambda: torch.nonzero(t), lambda: self.w.new(r.choice(["nonzero", "argwhere"]), w))
        else:
            self.judge(what, lambda: torch.where(t), lambda: self.w.many("nonzero_tuple", 8, 8, w))
        self.own_strides = False
        for x in (w, mw):
            self.w.release(x)

    def bags(self):
        r = self.r
        t, w = self.tensor([r.randint(1, 6), r.randint(1, 4)], r.choice([torch.float32] * 3 + [torch.float64]), small=True)
        n, mode, flat = r.randint(0, 7), r.choice(["mean", "sum", "max"]), r.random() < .7
        i, iw = self.index([n] if flat else [r.randint(1, 3), r.randint(1, 3)], t.shape[0], wrong=0, dtype=r.choice([torch.int64, torch.int32]))
        o = torch.tensor([0] + sorted(r.randint(0, n) for _ in range(r.randint(0, 4))), dtype=i.dtype) if flat else None
        last = flat and r.random() < .3
        if last:
            o = torch.cat([o, torch.tensor([n], dtype=i.dtype)])
        s, sw = self.tensor(i.shape, t.dtype, small=True) if mode == "sum" and r.random() < .5 else (None, None)
        pad = r.randint(-t.shape[0], t.shape[0] - 1) if r.random() < .3 and i.numel() else None
        ow = self.w.of(o) if flat else None
        how = BagOptions(["mean", "sum", "max"].index(mode), last, pad is not None, pad or 0)
        self.judge(f"embedding_bag {mode} {tuple(t.shape)} {i.tolist()} {o} pad {pad} last {last} weights {s}",
                   lambda: F.embedding_bag(i, t, o, mode=mode, per_sample_weights=s, include_last_offset=last, padding_idx=pad),
                   lambda: self.w.new("embedding_bag", iw, w, ow, sw, C.byref(how)), self.rounding(t, *([s] if s is not None else [])), 16)
        for x in (w, iw, ow, sw):
            if x:
                self.w.release(x)
        t, w = self.tensor(self.plain_sizes() or [2], r.choice(DTYPES))
        d, at = self.place_of(t)
        k = r.randint(-t.shape[at] - (r.random() < .1), max(t.shape[at] - 1, 0)) if t.numel() else 0
        s, sw = self.tensor([v for j, v in enumerate(t.shape) if j != at] if r.random() < .95 else [2], r.choice([t.dtype, torch.float32]), small=True)
        self.own_strides = True
        if t.numel():
            self.judge(f"select_scatter {tuple(t.shape)} {t.stride()} {t.dtype} {tuple(s.shape)} {s.dtype} {d} {k}",
                       lambda: torch.select_scatter(t, s, d, k), lambda: self.w.new("select_scatter", w, sw, d, C.c_int64(k)))
        self.own_strides = False
        self.w.release(w)
        self.w.release(sw)

    def permutation(self):
        """Sorted, for the numbers are the generator's own; and what is refused."""
        r = self.r
        n, dtype = r.choice([0, 1, 2, 5, 100, 300, 2049, 2050, -1]), r.choice(DTYPES)
        options = Options(dtype=NUMBERS[dtype], device=Device(1))
        if dtype == torch.bfloat16 and n > 257:
            return  # torch's repeats some
        def ours():
            w = self.w.new("randperm", C.c_int64(n), C.byref(options))
            back = self.w.of(self.w.elements(w, dtype).sort().values)
            self.w.release(w)
            return back
        self.judge(f"randperm {n} {dtype}", lambda: torch.randperm(n, dtype=dtype).sort().values, ours)

    def made(self):
        r = self.r
        if r.random() < .1:
            return self.permutation()
        name = r.choice("repeat_interleave repeat_interleave_tensor one_hot tril_indices triu_indices embedding embedding embedding_dense_backward".split())
        if name.startswith("repeat"):
            t, w = self.tensor(self.sizes() or [1], r.choice(DTYPES))
            d, at = self.place_of(t)
            if name == "repeat_interleave":
                n = r.randint(-1 if r.random() < .1 else 0, 3)
                self.judge(f"{name} {tuple(t.shape)} {n} {d}", lambda: torch.repeat_interleave(t, n, d),
                           lambda: self.w.new(name, w, C.c_int64(n), d))
            else:
                size = t.shape[at] if t.dim() else 1
                i, iw = self.index(r.choice([[size]] * 5 + [[], [1], [size + 1], [1, size]]), 4, -1 if r.random() < .05 else 0, wrong=0)
                self.own_strides = True
                self.judge(f"{name} {tuple(t.shape)} {i.tolist()} {i.dtype} {d}", lambda: torch.repeat_interleave(t, i, d),
                           lambda: self.w.new(name, w, iw, d))
                self.own_strides = False
                self.w.release(iw)
            self.w.release(w)
        elif name == "one_hot":
            i, iw = self.index(r.choice([[], [3], [2, 2], [0]]), 4, wrong=.1)
            n = r.choice([-1, 4, 5, 2, 0])
            self.judge(f"one_hot {i.tolist()} {i.dtype} {n}", lambda: F.one_hot(i, n), lambda: self.w.new(name, iw, C.c_int64(n)))
            self.w.release(iw)
        elif name.endswith("indices"):
            a, b, k = r.randint(-1 if r.random() < .05 else 0, 6), r.randint(-1 if r.random() < .05 else 0, 6), r.randint(-8, 8)
            dtype = r.choice([torch.int64, torch.int64, torch.int32, torch.float32])
            options = Options(dtype=NUMBERS[dtype], device=Device(1))
            self.judge(f"{name} {a} {b} {k} {dtype}", lambda: getattr(torch, name)(a, b, k, dtype=dtype),
                       lambda: self.w.new(name, C.c_int64(a), C.c_int64(b), C.c_int64(k), C.byref(options)))
        elif name == "embedding":
            t, w = self.tensor(r.choice([[4, 3], [6, 1], [1, 5]] * 4 + [[4]]), r.choice(DTYPES))
            i, iw = self.index(r.choice([[], [3], [2, 2], [0], [5]]), t.shape[0])
            self.judge(f"embedding {tuple(t.shape)} {t.stride()} {t.dtype} {i.tolist()} {i.dtype}", lambda: F.embedding(i, t),
                       lambda: self.w.new(name, iw, w))
            self.w.release(w)
            self.w.release(iw)
        else:
            n = r.randint(1, 5)
            i, iw = self.index(r.choice([[], [3], [2, 2], [0], [7]]), n, wrong=0, dtype=r.choice([torch.int64, torch.int32]))
            g, gw = self.tensor(list(i.shape) + [3], r.choice([torch.float32, torch.float64]), small=True)
            pad, freq = r.randint(-1, n - 1), r.random() < .5
            self.judge(f"{name} {tuple(g.shape)} {g.stride()} {i.tolist()} {n} {pad} {freq}",
                       lambda: torch.ops.aten.embedding_dense_backward(g, i, n, pad, freq),
                       lambda: self.w.new(name, gw, iw, C.c_int64(n), C.c_int64(pad), freq), self.rounding(g), 8)
            self.w.release(iw)
            self.w.release(gw)

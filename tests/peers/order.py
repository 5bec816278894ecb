"""The part of ops.py about order.h: running reductions, sorting, what is in the middle, places. A mixin of its Calls."""
import ctypes as C

import torch

from tensors import DTYPES


class Order:
    def running(self):
        r = self.r
        name = r.choice("cumsum cumsum cumprod logcumsumexp cummax cummin cumsum_ cumprod_ diff".split())
        dtype = r.choice(DTYPES)
        t, w = self.tensor(self.sizes(), dtype, small=r.random() < .5)
        d = self.dim(t)
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d}"
        real = dtype.is_floating_point or dtype.is_complex
        size = (t.abs().double() if not dtype.is_complex else t.abs().double()).nan_to_num(0, 0, 0).sum() if real else None
        if name == "logcumsumexp" and dtype.is_complex:
            pass
        elif name.endswith("_"):
            self.in_place(what, t, w, lambda c: getattr(c, name)(d),
                          lambda c: self.w.check(getattr(self.w.lib, "weir_" + name)(c, d)),
                          1 if name == "cumprod_" else 8, size if name == "cumsum_" else None)
        elif name in ("cummax", "cummin"):
            self.judge(what, lambda: getattr(torch, name)(t, d), lambda: self.pair_of(name, w, d))
        elif name == "diff":
            n = r.choice([1, 1, 1, 2, 3, 0, -1, 40])
            self.own_strides = True
            self.judge(what + f" {n}", lambda: torch.diff(t, n, d), lambda: self.w.new(name, w, C.c_int64(n), d), size, 4)
            self.own_strides = False
        else:
            self.judge(what, lambda: getattr(torch, name)(t, d), lambda: self.w.new(name, w, d),
                       size if name != "cumprod" else None, 8 if name != "cumprod" else 64)
        self.w.release(w)

    def sorting(self):
        r = self.r
        t, w = self.tensor(self.sizes(), r.choice(DTYPES), small=r.random() < .5)
        d, name, down = self.dim(t), r.choice(["sort", "sort", "argsort", "topk", "topk", "kthvalue"]), r.random() < .5
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d} {down}"
        size = t.shape[d] if t.dim() and -t.dim() <= d < t.dim() else 1
        k = r.randint(0, size) if r.random() < .9 else r.choice([-1, size + 1])
        if name == "sort":
            self.judge(what, lambda: torch.sort(t, dim=d, descending=down, stable=True), lambda: self.pair_of(name, w, d, down))
        elif name == "argsort":
            self.judge(what, lambda: torch.argsort(t, dim=d, descending=down, stable=True), lambda: self.w.new(name, w, d, down))
        elif name == "topk" and not t.dim() and not k:
            pass  # torch's shows memory that it has not filled
        elif name == "topk":
            self.places(what + f" {k}", t, d, lambda: torch.topk(t, k, d, down), lambda: self.pair_of(name, w, C.c_int64(k), d, down), True)
        else:
            self.places(what + f" {k}", t, d, lambda: torch.kthvalue(t, k, d, down),
                        lambda: self.pair_of(name, w, C.c_int64(k), d, down), down)
        self.w.release(w)

    def places(self, what, t, d, theirs, ours, kept):
        """Values and places, where any of equals will do."""
        def both():
            a = theirs()
            return (a[0], a[1])
        got = self.call(what, both, ours)
        if not got:
            return
        (value, at), (mine, place) = got
        self.judge_one(what, value, mine, None, 1, None)
        p = self.w.elements(place, torch.int64).reshape(at.shape)
        if tuple(at.shape) != self.w.shape(place):
            self.complain(what + ": places", at, p)
        elif p.numel():
            if t.dim():
                q = p if kept else p.unsqueeze(d)
                there = torch.gather(t, d, q)
                there = there if kept else there.squeeze(d)
            else:
                there = t
            if not torch.equal(there.double().nan_to_num(7e77), value.double().nan_to_num(7e77)):
                self.complain(what + ": places", at, p)
        self.w.release(mine)
        self.w.release(place)

    def middle(self):
        r = self.r
        name = r.choice(["median", "median", "nanmedian", "quantile", "nanquantile"])
        dtype = r.choice(DTYPES if "quantile" not in name else [torch.float32, torch.float32, torch.float64, torch.int32])
        t, w = self.tensor(self.sizes(), dtype, small=r.random() < .5)
        d, keep = self.dim(t), r.random() < .5
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d} {keep}"
        t = t.contiguous()  # torch's cpu reads beyond what is expanded
        if "quantile" in name:
            q = r.choice([0, 1, .5, .25, .1, r.random(), r.random(), 1.5])
            size = t.abs().double().nan_to_num(0, 0, 0).max() if t.numel() else None
            if r.random() < .3:
                self.judge(what + f" all {q}", lambda: getattr(torch, name)(t, q), lambda: self.w.new(name, w, C.c_double(q)), size, 4)
            else:
                self.own_strides = True
                self.judge(what + f" {q}", lambda: getattr(torch, name)(t, q, d, keep),
                           lambda: self.w.new(name + "_dim", w, C.c_double(q), d, keep), size, 4)
                self.own_strides = False
        elif r.random() < .3:
            self.judge(what + " all", lambda: getattr(torch, name)(t), lambda: self.w.new(name, w))
        else:
            self.places(what, t, d, lambda: getattr(torch, name)(t, d, keep), lambda: self.pair_of(name + "_dim", w, d, keep), keep)
        self.w.release(w)

    def searching(self):
        r = self.r
        dtype = r.choice(DTYPES)
        s, v = self.sizes(), self.sizes()
        if r.random() < .7:
            s = [r.choice([0, 1, 2, 5, 9, 40])]
        elif v:
            s = v[:-1] + [r.randint(0, 6)]
        other = dtype if r.random() < .8 else r.choice(DTYPES)
        small = other != dtype or r.random() < .7  # what one dtype cannot hold torch compares in ways of its own
        a, wa = self.tensor(s, dtype, small=small)
        b, wb = self.tensor(v, other, small=small)
        right, narrow = r.random() < .5, r.random() < .3
        if a.dim() and not a.dtype.is_complex and a.dtype != torch.bool:
            self.w.release(wa)
            a = a.sort(-1)[0].contiguous()
            wa = self.w.of(a)
        name = r.choice(["searchsorted", "searchsorted", "bucketize", "isin"])
        what = f"{name} {tuple(a.shape)} {a.dtype} {tuple(b.shape)} {b.stride()} {b.dtype} {right} {narrow}"
        if name == "searchsorted":
            self.judge(what, lambda: torch.searchsorted(a, b, right=right, out_int32=narrow),
                       lambda: self.w.new(name, wa, wb, right, narrow))
        elif name == "bucketize":
            self.judge(what, lambda: torch.bucketize(b, a, right=right, out_int32=narrow),
                       lambda: self.w.new(name, wb, wa, right, narrow))
        else:
            self.own_strides = True
            self.judge(what, lambda: torch.isin(b, a, invert=right), lambda: self.w.new(name, wb, wa, right))
            self.own_strides = False
        self.w.release(wa)
        self.w.release(wb)

    def several_of(self, name, *arguments):
        """What a function with three results gives."""
        out = [C.c_void_p() for _ in range(3)]
        self.w.check(getattr(self.w.lib, "weir_" + name)(*[C.byref(o) for o in out], *arguments))
        return out

    def counting(self):
        r = self.r
        name = r.choice("unique unique unique_consecutive unique_dim unique_consecutive_dim mode mode bincount bincount histc histc".split())
        t, w = self.tensor(self.sizes(), r.choice(DTYPES), small=r.random() < .6)
        d, keep = self.dim(t), r.random() < .5
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {d} {keep}"
        if name.endswith("_dim"):
            if t.is_complex() or not bool(t.isnan().any()):  # torch sorts NaN anywhere
                self.own_strides = True
                self.judge(what, lambda: getattr(torch, name[:-4])(t, dim=d, return_inverse=True, return_counts=True), lambda: self.several_of(name, w, d))
                self.own_strides = False
        elif name.startswith("unique"):
            self.judge(what, lambda: getattr(torch, name)(t, return_inverse=True, return_counts=True),
                       lambda: self.several_of(name, w))
        elif name == "mode":
            if not t.is_complex() and not bool(t.isnan().any()):  # torch sorts NaN anywhere
                self.places(what, t, d, lambda: torch.mode(t, d, keep), lambda: self.pair_of(name, w, d, keep), keep)
        elif name == "bincount":
            self.bins(r)
        else:
            n = r.choice([1, 3, 10, 100, 0])
            low, high = r.choice([(0, 0), (0, 0), (-2, 2), (0, 1), (1, 0), (3, 3)])
            whole = t.is_floating_point() and bool(t.isfinite().all())  # torch's sentence has NaN's sign
            if t.dtype in (torch.float32, torch.float64, torch.int64) and (whole or low != high):
                self.judge(what + f" {n} {low} {high}", lambda: torch.histc(t, n, low, high),
                           lambda: self.w.new(name, w, C.c_int64(n), C.c_double(low), C.c_double(high)))
        self.w.release(w)

    def bins(self, r):
        n = r.choice([0, 1, 5, 40])
        t = torch.randint(0, 30, (n,) if r.random() < .9 else (n, 1)).to(r.choice(DTYPES))
        if r.random() < .05 and not t.is_complex() and t.dtype not in (torch.uint8, torch.bool):
            t = -t
        x = torch.randn(n + (r.random() < .05)).to(r.choice([torch.float32, torch.float64, torch.float16, torch.int32]))
        least, weighted = r.choice([0, 0, 3, 50, -1]), r.random() < .5
        w, wx = self.w.of(t), self.w.of(x)
        self.judge(f"bincount of {tuple(t.shape)} {t.dtype} {weighted} {x.dtype} {tuple(x.shape)} {least}",
                   lambda: torch.bincount(t, x if weighted else None, least),
                   lambda: self.w.new("bincount", w, wx if weighted else None, C.c_int64(least)),
                   x.double().abs().sum() if weighted else None, 4)
        self.w.release(w)
        self.w.release(wx)

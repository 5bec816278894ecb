"""Cases of ops.py: variances, norms, counts, extremes of both kinds, log-sum-exp."""
import ctypes as C
import math

import torch


class Reductions:
    def pair_of(self, name, *arguments):
        """What a function with two results gives."""
        a, b = C.c_void_p(), C.c_void_p()
        self.w.check(getattr(self.w.lib, "weir_" + name)(C.byref(a), C.byref(b), *arguments))
        return a, b

    def over(self, t):
        """Dimensions that are asked for: how Weir's function ends, its arguments, torch's."""
        r = self.r
        n = max(t.dim(), 1)
        kind = r.choice(["", "_dim", "_dim", "_dims"])
        if kind == "_dim":
            d = r.randint(-n - 1, n) if r.random() < .1 else r.randint(-n, n - 1)
            return kind, (d,), d
        if kind == "_dims":
            dims = [r.randint(-n, n - 1) for _ in range(r.randint(1, 3))]
            return kind, ((C.c_int * 4)(*dims), len(dims)), dims
        return kind, (), None

    def largest(self, t):
        """The largest element: what a result's rounding is measured by."""
        x = (t.double().abs() if not t.is_complex() else t.abs().double()).nan_to_num(0, 0, 0)
        return x.max() if x.numel() else torch.zeros((), dtype=torch.float64)

    def variance(self):
        r = self.r
        dtype = r.choice([torch.float32] * 3 + [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64])
        t, w = self.tensor(self.sizes(), dtype, small=r.random() < .7)
        if not bool(t.isfinite().all()):
            t, w = self.tensor(self.sizes(), dtype, small=True)  # torch's running mean of infinities depends on their places
        kind, ours, theirs = self.over(t)
        name = r.choice(["var", "std", "var_mean", "std_mean"])
        correction, keep = r.choice([1, 1, 0, 2, 0.5, 9, -2]), r.random() < .5
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} over {theirs} correction {correction} keepdim {keep}"
        c = C.c_double(correction)
        size = self.largest(t) + 1
        scale = torch.maximum(size * size, size)
        # torch squares and sums complex numbers in float32, a root magnifies what that loses near 0
        several = 8 if not name.startswith("std") else 32
        call = self.pair_of if name.endswith("mean") else self.w.new
        if kind:
            self.judge(what, lambda: getattr(torch, name)(t, theirs, correction=correction, keepdim=keep),
                       lambda: call(name + kind, w, *ours, c, keep), scale, several)
        else:
            self.judge(what, lambda: getattr(torch, name)(t, correction=correction), lambda: call(name, w, c), scale, several)
        self.w.release(w)

    def norm(self):
        r = self.r
        dtype = r.choice([torch.float32] * 3 + [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int32])
        t, w = self.tensor(self.sizes(), dtype, small=True)
        kind, ours, theirs = self.over(t)
        p, keep = r.choice([2, 2, 1, 0, 3, 0.5, math.inf, -math.inf, -1, 2.5]), bool(kind) and r.random() < .5
        what = f"norm {p} of {tuple(t.shape)} {t.stride()} {t.dtype} over {theirs} keepdim {keep}"
        arguments = ours + ((keep,) if kind else ())
        self.judge(what, lambda: torch.linalg.vector_norm(t, p, theirs, keep),
                   lambda: self.w.new("norm" + kind, w, C.c_double(p), *arguments), several=64 if dtype.is_complex else 16)
        self.w.release(w)

    def counts(self):
        r = self.r
        dtype = r.choice(list(self.dtypes()))
        t, w = self.tensor(self.sizes(), dtype, small=r.random() < .5)
        kind, ours, theirs = self.over(t)
        keep = r.random() < .5
        name = r.choice(["count_nonzero", "aminmax", "nansum", "logsumexp"])
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} over {theirs} keepdim {keep}"
        if name == "count_nonzero":
            self.judge(what, lambda: torch.count_nonzero(t, theirs), lambda: self.w.new(name + kind, w, *ours))
        elif name == "aminmax" and kind != "_dims":
            keep = keep and kind == "_dim"
            arguments = ours + ((keep,) if kind else ())
            self.judge(what, lambda: torch.aminmax(t, dim=theirs, keepdim=keep),
                       lambda: self.pair_of(name + kind, w, *arguments))
        elif name == "nansum":
            arguments = ours + ((keep,) if kind else ())
            scale = t.abs().double().nan_to_num(0, 0, 0).sum() if dtype.is_floating_point else None
            self.judge(what, lambda: torch.nansum(t, theirs, keepdim=bool(kind) and keep),
                       lambda: self.w.new(name + kind, w, *arguments), scale, 8)
        elif name == "logsumexp" and kind:
            self.judge(what, lambda: torch.logsumexp(t, theirs, keep),
                       lambda: self.w.new(name + ("_dims" if kind == "_dims" else ""), w, *ours, keep),
                       self.largest(t) + 1, 16)
        self.w.release(w)

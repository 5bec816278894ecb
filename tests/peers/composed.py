"""Small functions beside PyTorch: sliding blocks, pools of powers, covariances, trapezoids, norms with a bound, sets.

    python tests/peers/composed.py LIBWEIR [CALLS [SEED]]

Values to rounding (double), shapes, and whether both refuse, in the same words. Ends with a line that counts, exit status 1
where one was unlike. What is put together here: unfold_blocks fold lp_pool1d lp_pool2d lp_pool3d cov corrcoef trapezoid
cumulative_trapezoid renorm embedding_renorm_ block_diag cartesian_prod channel_shuffle.
"""
import ctypes as C
import random
import sys
import warnings

import torch
import torch.nn.functional as F

from tensors import Failed, Weir

warnings.filterwarnings("ignore")


class Blocks(C.Structure):
    _fields_ = [(name, C.c_int64 * 2) for name in ("kernel", "dilation", "padding", "stride")]


class Pool(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 3), ("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("ceil_mode", C.c_bool), ("exclude_pad", C.c_bool), ("divisor_override", C.c_int64)]


class Calls:
    def __init__(self, weir, seed):
        self.w, self.r, self.bad, self.count = weir, random.Random(seed), 0, 0

    def tensor(self, sizes, dtype=torch.float64):
        t = torch.randn(sizes, dtype=torch.float64)
        t = (t * 3).to(dtype) if dtype != torch.bool else t > 0
        return t, self.w.of(t)

    def judge(self, what, theirs, ours):
        self.count += 1
        try:
            a, wrong = theirs(), None
        except (RuntimeError, IndexError, NotImplementedError) as e:
            a, wrong = None, str(e).splitlines()[0]
        try:
            b, sentence = ours(), None
        except Failed as e:
            b, sentence = None, str(e)
        if wrong or sentence:
            if not wrong or not sentence or wrong.replace("torch.", "weir.") != sentence:
                self.bad += 1
                print(f"{what}\n  torch: {wrong}\n  weir:  {sentence}")
            return
        got = self.w.elements(b, a.dtype).reshape(a.shape) if tuple(a.shape) == self.w.shape(b) else None
        if got is None or not torch.allclose(a.double(), got.double(), rtol=1e-9 if a.dtype == torch.float64 else 1e-5, atol=1e-12 if a.dtype == torch.float64 else 1e-5, equal_nan=True):
            self.bad += 1
            print(f"{what}\n  torch: {tuple(a.shape)} {a}\n  weir:  {self.w.shape(b)} {got}")

    def blocks(self):
        r, n = self.r, self.w.new
        pairs = [[r.choice([1, 2, 3, 0 if r.random() < .02 else 2]) for _ in (0, 1)], [r.choice([1, 1, 2]) for _ in (0, 1)],
                 [r.choice([0, 0, 1, 2, -1 if r.random() < .02 else 0]) for _ in (0, 1)], [r.choice([1, 2, 3]) for _ in (0, 1)]]
        o = Blocks(*[(C.c_int64 * 2)(*p) for p in pairs])
        lead = r.choice([[], [2], [1], [0]]) if r.random() < .95 else [1, 1]
        sizes = lead + [r.choice([1, 2, 3, 0 if r.random() < .05 else 1]), r.randint(1, 6), r.randint(1, 6)]
        t, w = self.tensor(sizes, r.choice([torch.float64] * 5 + [torch.int64, torch.bool]))
        if r.random() < .6:
            return self.judge(f"unfold {sizes} {pairs}", lambda: F.unfold(t, *pairs), lambda: n("unfold_blocks", w, C.byref(o)))
        size = [r.randint(1, 7) for _ in (0, 1)]
        count = [(size[i] + 2 * pairs[2][i] - pairs[1][i] * (pairs[0][i] - 1) - 1) // pairs[3][i] + 1 for i in (0, 1)]
        if r.random() < .9 and min(count) > 0:
            sizes = lead[:1] + [2 * max(1, pairs[0][0] * pairs[0][1]), count[0] * count[1]]
            t, w = self.tensor(sizes)
        elif len(sizes) > 3:
            return None
        return self.judge(f"fold {list(t.shape)} {size} {pairs}", lambda: F.fold(t, size, *pairs),
                          lambda: n("fold", w, (C.c_int64 * 2)(*size), C.byref(o)))

    def powers(self):
        r = self.r
        axes, p = r.randint(1, 3), r.choice([1, 2, 3, 2.5])
        kernel, stride, ceil = [r.randint(1, 3) for _ in range(axes)], [r.randint(1, 3) for _ in range(axes)], r.random() < .3
        t, w = self.tensor([2, 2] + [r.randint(3, 6) for _ in range(axes)])
        o = Pool((C.c_int64 * 3)(*kernel), (C.c_int64 * 3)(*stride), ceil_mode=ceil)
        name = f"lp_pool{axes}d"
        one = lambda v: v[0] if axes == 1 else tuple(v)
        self.judge(f"{name} {list(t.shape)} {p} {kernel} {stride} {ceil}", lambda: getattr(F, name)(t, p, one(kernel), one(stride), ceil),
                   lambda: self.w.new(name, w, C.c_double(p), C.byref(o)))

    def matrices(self):
        r, n = self.r, self.w.new
        sizes = [r.randint(0 if r.random() < .1 else 1, 4) for _ in range(r.choice([0, 1, 2, 2, 2, 3]))]
        t, w = self.tensor(sizes, r.choice([torch.float64] * 4 + [torch.int64, torch.bool]))
        kind = r.choice("cov corrcoef trapezoid cumulative_trapezoid renorm shuffle".split())
        d = r.randint(-2, 2)
        if kind == "cov":
            c = r.randint(0, 2)
            return self.judge(f"cov {sizes} {t.dtype} {c}", lambda: torch.cov(t, correction=c), lambda: n("cov", w, C.c_int64(c)))
        if kind == "corrcoef":
            return self.judge(f"corrcoef {sizes} {t.dtype}", lambda: torch.corrcoef(t), lambda: n("corrcoef", w))
        if kind == "shuffle":
            if t.dim() == 3 and not t.numel():
                return None
            g = r.choice([0, 1, 2, 2, 3])
            return self.judge(f"channel_shuffle {sizes} {g}", lambda: F.channel_shuffle(t, g), lambda: n("channel_shuffle", w, C.c_int64(g)))
        if kind == "renorm":
            t, w = self.tensor(sizes)
            p, most = r.choice([1, 2, 3, 0]), r.choice([1, 2, .5, -1 if r.random() < .1 else 1])
            return self.judge(f"renorm {sizes} {p} {d} {most}", lambda: torch.renorm(t, p, d, most), lambda: n("renorm", w, C.c_double(p), d, C.c_double(most)))
        dx = r.choice([1, .5, 2])
        return self.judge(f"{kind} {sizes} {t.dtype} {dx} {d}", lambda: getattr(torch, kind)(t, dx=dx, dim=d), lambda: n(kind, w, C.c_double(dx), d))

    def sets(self):
        r, n = self.r, self.w.new
        kind = r.choice("block_diag cartesian_prod embedding".split())
        if kind == "embedding":
            t, w = self.tensor([5, 3])
            i = torch.randint(0, 5, (r.randint(1, 6),))
            p, most = r.choice([1, 2, 3]), r.choice([1, 2, .5])
            def theirs():
                a = t.clone()
                F.embedding(i, a, max_norm=most, norm_type=p)
                return a
            def ours():
                self.w.check(self.w.lib.weir_embedding_renorm_(w, self.w.of(i), C.c_double(most), C.c_double(p)))
                return w
            return self.judge(f"embedding_renorm_ {i.tolist()} {p} {most}", theirs, ours)
        both = [self.tensor([r.randint(0, 3) for _ in range(r.choice([0, 1, 2, 2, 3 if r.random() < .05 else 1]))] if kind == "block_diag" else
                            [r.randint(0, 3)] if r.random() < .95 else [2, 2], r.choice([torch.float64] * 6 + [torch.int64])) for _ in range(r.randint(1, 4))]
        pointers = (C.c_void_p * 4)(*[w for _, w in both])
        return self.judge(f"{kind} {[(list(t.shape), t.dtype) for t, _ in both]}", lambda: getattr(torch, kind)(*[t for t, _ in both]),
                          lambda: n(kind, pointers, len(both)))


def main():
    weir = Weir(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    torch.manual_seed(seed)
    calls = Calls(weir, seed)
    while calls.count < count and calls.bad < 12:
        calls.r.choice([calls.blocks, calls.powers, calls.matrices, calls.matrices, calls.sets])()
    print(f"{calls.count} calls, {calls.bad} unlike torch {torch.__version__}")
    sys.exit(calls.bad > 0)


if __name__ == "__main__":
    main()

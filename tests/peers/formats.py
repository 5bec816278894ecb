"""formats.py LIBWEIR [CALLS] [SEED]: memory formats beside PyTorch's: which strides factories, conversions and copies
give, what is contiguous in which format, and that convolutions and pools keep the format of what they are of."""
import ctypes as C
import sys

import torch

from ops import Calls, Conv, Pool, pair
from tensors import DTYPES, NUMBERS, Device, Options, Weir, scalar, shape

FORMATS = [torch.preserve_format, torch.contiguous_format, torch.channels_last, torch.channels_last_3d]
BY_RANK = {4: 2, 5: 3}


class Formats(Calls):
    def some(self, dtype=None, dims=None):
        """A tensor in any layout, the formats' own and steps through them among them."""
        r = self.r
        sizes = [r.choice([1, 1, 2, 3, 4, 5]) for _ in range(r.choice([0, 1, 3, 4, 4, 4, 4, 5, 5]) if dims is None else dims)]
        if r.random() < .03 and sizes:
            sizes[r.randrange(len(sizes))] = 0
        t, w = self.tensor(sizes, dtype or r.choice(DTYPES))
        if r.random() < .6 and t.dim() in BY_RANK:
            f = BY_RANK[t.dim()]
            t, w = t.contiguous(memory_format=FORMATS[f]), self.moved(w, "contiguous_format", f)
        if r.random() < .2 and t.dim():
            d = r.randrange(t.dim())
            t, w = t.narrow(d, 0, min(1, t.shape[d])), self.moved(w, "narrow", d, C.c_int64(0), C.c_int64(min(1, t.shape[d])))
        return t, w

    def same_place(self, t, out, w, ours):
        return (out.data_ptr() == t.data_ptr()) == (self.w.lib.weir_tensor_data(ours) == self.w.lib.weir_tensor_data(w))

    def convert(self):
        r = self.r
        t, w = self.some()
        f = r.randrange(4)
        g = r.choice([None, None] + DTYPES)
        what = f"{FORMATS[f]} {g} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        for k in range(1, 4):
            self.steps += 1
            if t.is_contiguous(memory_format=FORMATS[k]) != bool(self.w.lib.weir_tensor_is_contiguous_format(w, k)):
                self.complain(f"is_contiguous {FORMATS[k]} of {tuple(t.shape)} {t.stride()}", t.is_contiguous(memory_format=FORMATS[k]), self.w.stride(w))
        self.judge("contiguous " + what, lambda: t.contiguous(memory_format=FORMATS[f]), lambda: self.w.new("contiguous_format", w, f))
        o = Options(dtype=NUMBERS[g] if g else 0, memory_format=f)
        cast = g or t.dtype
        if not (t.dtype.is_complex and not cast.is_complex) and not (t.dtype.is_floating_point and not cast.is_floating_point):
            self.judge("to " + what, lambda: t.to(cast, memory_format=FORMATS[f]), lambda: self.w.new("to", w, C.byref(o)))
            got = self.both("to " + what, lambda: t.to(cast, memory_format=FORMATS[f]), lambda: self.w.new("to", w, C.byref(o)))
            if got:
                if t.numel() and not self.same_place(t, got[0], w, got[1]):
                    self.complain("to is itself: " + what, got[0].data_ptr() == t.data_ptr(), None)
                self.w.release(got[1])
        o = Options(copy=True, memory_format=f)
        self.judge("clone " + what, lambda: t.clone(memory_format=FORMATS[f]), lambda: self.w.new("to", w, C.byref(o)))
        self.w.release(w)

    def like(self, sizes=None):
        if sizes is not None:
            return super().like(sizes)
        r = self.r
        t, w = self.some()
        f = r.randrange(4)
        o = Options(memory_format=f)
        name = r.choice(["zeros_like", "ones_like", "full_like"])
        what = f"{name} {FORMATS[f]} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        if name == "full_like":
            self.judge(what, lambda: torch.full_like(t, 1, memory_format=FORMATS[f]), lambda: self.w.new(name, w, scalar(1), C.byref(o)))
        else:
            self.judge(what, lambda: getattr(torch, name)(t, memory_format=FORMATS[f]), lambda: self.w.new(name, w, C.byref(o)))
        got = self.both("empty_like " + what, lambda: torch.empty_like(t, memory_format=FORMATS[f]), lambda: self.w.new("empty_like", w, C.byref(o)))
        if got:
            self.compare("empty_like " + what, got[0], got[1], elements=False)
            self.w.release(got[1])
        sizes = list(t.shape)
        if f:
            o = Options(dtype=NUMBERS[t.dtype], device=Device(1), memory_format=f)
            got = self.both(f"empty {sizes} {FORMATS[f]}", lambda: torch.empty(sizes, dtype=t.dtype, memory_format=FORMATS[f]),
                            lambda: self.w.new("empty", shape(sizes), C.byref(o)))
            if got:
                self.compare(f"empty {sizes} {FORMATS[f]}", got[0], got[1], elements=False)
                self.w.release(got[1])
        self.w.release(w)

    def images(self):
        r = self.r
        dtype = r.choice([torch.float32] * 4 + [torch.float64])
        t, w = self.some(dtype, 4)
        k = r.choice([1, 1, 2, 3])
        o, ow = self.tensor([r.choice([1, 2, 3, 5]), t.shape[1], k, k], dtype)
        if r.random() < .3:
            o, ow = o.contiguous(memory_format=torch.channels_last), self.moved(ow, "contiguous_format", 2)
        if not t.numel() or o.shape[1] != t.shape[1]:
            self.w.release(w)
            return self.w.release(ow)
        conv = Conv(pair(1, 1), pair(1, 1), pair(1, 1), 1)
        what = f"of {tuple(t.shape)} {t.stride()} {dtype} {tuple(o.shape)} {o.stride()}"
        scale = torch.conv2d(t.abs().nan_to_num(0, 0, 0).double(), o.abs().nan_to_num(0, 0, 0).double(), None, 1, 1)
        # Where there is one channel both formats fit, and torch's choice is its kernel's; torch's padding is nothing, ours is 0,
        # and 0 times infinity is NaN.
        self.own_strides = 1 in (t.shape[1], o.shape[0])
        if t.isfinite().all() and o.isfinite().all() and torch.conv2d(t, o, None, 1, 1).isfinite().all():
            self.judge("conv2d " + what, lambda: torch.conv2d(t, o, None, 1, 1), lambda: self.w.new("conv2d", w, ow, None, C.byref(conv)), scale, 16)
        self.own_strides = False
        if min(t.shape[2:]) >= 2 and not t.isnan().any():
            pool = Pool(pair(2, 2), pair(2, 2), pair(0, 0), pair(1, 1))
            self.judge("max_pool2d " + what, lambda: torch.max_pool2d(t, 2), lambda: self.w.new("max_pool2d", w, C.byref(pool)))
        self.w.release(w)
        self.w.release(ow)

    def one(self):
        self.r.choice([self.convert, self.convert, self.like, self.images])()


def main():
    weir = Weir(sys.argv[1])
    weir.lib.weir_tensor_is_contiguous_format.restype = C.c_bool
    count, seed = (int(a) for a in (sys.argv[2:] + ["10000", "1"][len(sys.argv) - 2:])[:2])
    torch.manual_seed(seed)
    run = Formats(weir, seed)
    for _ in range(count):
        run.one()
        if run.bad > 20:
            break
    print(f"{run.steps} calls, {run.bad} unlike torch {torch.__version__}")
    sys.exit(run.bad > 0)


if __name__ == "__main__":
    main()

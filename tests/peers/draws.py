"""Cases of ops.py: categories drawn by probabilities."""
import ctypes as C

import torch


class Draws:
    def multinomial(self):
        """What is refused, the result's dtype and shape; and what both draw, by a chi square of two samples."""
        r = self.r
        dtype = r.choice([torch.float32] * 3 + [torch.float64, torch.float16, torch.bfloat16, torch.int64])
        rows, categories = r.choice([0, 1, 3]), r.choice([1, 2, 5, 5])
        sizes = r.choice([[categories], [rows, categories], [rows, categories], [], [1, 2, 2]])
        t = torch.rand(sizes).mul(4).add(.1).to(dtype)
        if t.numel() and dtype.is_floating_point and r.random() < .5:
            value = r.choice([0., 0., -1., float("inf"), float("nan")])
            t.view(-1)[r.randrange(t.numel())] = value
        if r.random() < .1:
            t = t * 0
        t[t.isnan()] = r.choice([-1., float("nan")]) if dtype.is_floating_point else 0
        n, again = r.choice([0, 1, 2, 4, 6, 3000]), r.random() < .5
        w = self.w.of(t)
        what = f"multinomial {n} of {t.tolist()} {t.dtype} replacement {again}"
        got = self.call(what, lambda: torch.multinomial(t, n, again),
                        lambda: self.w.new("multinomial", w, C.c_int64(n), again, None))
        if got:
            self.drawn(what, t, *got, not again)
            self.w.release(got[1])
        self.w.release(w)

    def drawn(self, what, t, a, w, unique):
        if NUMBER_INT64 != self.w.lib.weir_tensor_dtype(w) or tuple(a.shape) != self.w.shape(w):
            return self.complain(what, (a.dtype, a.shape), (self.w.lib.weir_tensor_dtype(w), self.w.shape(w)))
        b = self.w.elements(w, torch.int64).reshape(a.shape)
        if not a.numel():
            return None
        k = t.shape[-1]
        for p, x, y in zip(t.reshape(-1, k), a.reshape(-1, a.shape[-1]), b.reshape(-1, a.shape[-1])):
            if int(y.min()) < 0 or int(y.max()) >= k:
                return self.complain(what, x, y)
            x, y = x.bincount(minlength=k).double(), y.bincount(minlength=k).double()
            if bool((y[p == 0] > max(0, int(x.sum() - (p > 0).sum()) if unique else 0)).any()):
                return self.complain(what + ": of probability 0", x, y)
            seen = x + y > 0
            if float(((x - y) ** 2 / (x + y))[seen].sum()) > 45 + k:  # once in 10^8 rows
                return self.complain(what + ": how often", x, y)
        return None


NUMBER_INT64 = 5

"""Steps of grad.py: functions, activations, and what chooses or runs along a dimension, each beside torch's."""
import ctypes as C
import math

import torch

from indices import BagOptions
from tensors import scalar


def overlaps(t):
    """Whether elements of it are one: what a change in place leaves there is undefined."""
    places = torch.arange(1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))).as_strided(t.shape, t.stride(), 0)
    return places.unique().numel() < t.numel()


UNARY = {  # a name, and how a leaf is brought to where it is defined
    "erf": 0, "erfc": 0, "erfinv": "unit", "lgamma": "gamma", "digamma": "gamma", "log1p": "positive", "expm1": 0, "log2": "positive",
    "log10": "positive", "exp2": 0, "tan": "unit", "asin": "unit", "acos": "unit", "atan": 0, "sinh": 0, "cosh": 0, "asinh": 0,
    "acosh": "above", "atanh": "unit", "reciprocal": "positive", "sinc": 0, "floor": 0, "ceil": 0, "round": 0, "trunc": 0, "frac": 0,
    "sign": 0,  # of sgn torch gathers a zero that it cannot add to
}
PLAIN = "silu mish hardsigmoid hardswish logsigmoid selu relu6 tanhshrink softsign".split()


class Slopes:
    def brought(self, t, w, where):
        n = self.new
        if where == "unit":
            return torch.tanh(t) * .9, n("mul_scalar", n("tanh", w), scalar(.9))
        if where in ("positive", "above"):
            least = .25 if where == "positive" else 1.25
            return t.abs() + least, n("add_scalar", n("abs", w), scalar(least))
        return t, w

    def function(self, t, w):
        r, n = self.r, self.new
        name = r.choice(list(UNARY) + ["logit", "nan_to_num", "round_decimals"])
        if name == "logit":
            if bool((t.detach().abs() > 12).any()):  # of what sigmoid() rounds next to 1 rounding is all that remains
                return None
            a, b = torch.sigmoid(t), n("sigmoid", w)
            eps = r.choice([None, .25])
            self.twice = self.twice and not bool(((a == 0) | (a == 1)).any())  # torch's second one is NaN there, also of what eps clamps
            return f"logit {eps}", lambda: torch.logit(a, eps), lambda: n("logit", b, C.c_double(-1 if eps is None else eps))
        if name == "nan_to_num":
            off = torch.tensor([r.choice([0, 0, math.inf, -math.inf, math.nan]) for _ in range(t.numel())], dtype=torch.float64).reshape(t.shape)
            a, b = t + off, n("add", w, self.whole(off))
            return name, lambda: a.nan_to_num(1., 2., 3.), lambda: n(name, b, C.c_double(1), C.byref(C.c_double(2)), C.byref(C.c_double(3)))
        if name == "round_decimals":
            return name, lambda: torch.round(t, decimals=1), lambda: n(name, w, 1)
        if UNARY[name] == "gamma" and bool((t.detach().abs() < .2).any() or ((t.detach() - t.detach().round()).abs() < .2).any()):
            return None
        if name == "sinc" and bool((t == 0).any()):
            self.twice = False  # torch's second derivative is NaN there
        a, b = self.brought(t, w, UNARY[name])
        return name, lambda: getattr(torch, name)(a), lambda: n(name, b)

    def two(self, t, w):
        r, n = self.r, self.new
        name = r.choice("atan2 hypot logaddexp logaddexp2 fmax fmin copysign xlogy remainder fmod div_floor div_trunc".split())
        sizes = [v if r.random() < .8 else 1 for v in t.shape[r.choice([0, 0, len(t.shape) // 2]):]]
        u, v = self.leaf(sizes, r.random() < .7)
        if name.startswith("div_"):
            mode, self.twice = name[4:], False  # torch's zeros have a history
            return name, lambda: torch.div(t, u.abs() + .5, rounding_mode=mode), lambda: n(
                "div_rounding", w, n("add_scalar", n("abs", v), scalar(.5)), mode.encode())
        if name == "xlogy":
            return name, lambda: torch.xlogy(t, u.abs() + .5), lambda: n(name, w, n("add_scalar", n("abs", v), scalar(.5)))
        if name in ("remainder", "fmod"):
            if r.random() < .4:
                return name + " 0.75", lambda: getattr(torch, name)(t, .75), lambda: n(name + "_scalar", w, scalar(.75))
            if r.random() < .3 and name == "remainder":
                return name + " 5 %", lambda: torch.remainder(torch.tensor(5., dtype=torch.float64), t.abs() + .5), lambda: n(
                    "scalar_remainder", scalar(5.), n("add_scalar", n("abs", w), scalar(.5)))
            return name, lambda: getattr(torch, name)(t, u.abs() + .5), lambda: n(name, w, n("add_scalar", n("abs", v), scalar(.5)))
        if name == "copysign":
            self.twice = self.twice and not bool((t == 0).any())
        if name == "copysign" and r.random() < .3:
            return name + " -2", lambda: torch.copysign(t, -2.), lambda: n("copysign_scalar", w, scalar(-2.))
        if name in ("atan2", "hypot") and bool(((t == 0) & (u <= 0)).any()):
            return None  # either side of atan2's cut, by the sign of a 0
        return f"{name} {sizes}", lambda: getattr(torch, name)(t, u), lambda: n(name, w, v)

    def three(self, t, w):
        r, n = self.r, self.new
        name = r.choice("lerp lerp_number addcmul addcdiv clamp clamp_number clamp_one where_number".split())
        (u, v), (x, y) = [self.leaf([s if r.random() < .8 else 1 for s in t.shape], r.random() < .7) for _ in (0, 1)]
        if name == "lerp":
            return name, lambda: torch.lerp(t, u, x), lambda: n(name, w, v, y)
        if name == "lerp_number":
            return name, lambda: torch.lerp(t, u, .3), lambda: n("lerp_scalar", w, v, scalar(.3))
        if name.startswith("addc"):
            value = r.choice([1, -.5, 2])
            return (f"{name} {value}", lambda: getattr(torch, name)(t, u, x.abs() + .5, value=value),
                    lambda: n(name, w, v, n("add_scalar", n("abs", y), scalar(.5)), scalar(value)))
        if name == "clamp":
            return name, lambda: t.clamp(u, x), lambda: n("clamp_tensor", w, v, y)
        low, high = r.choice([-1, -.5, .5]), r.choice([0, .5, 1])
        a, b = scalar(low), scalar(high)
        if name == "clamp_number":
            return f"{name} {low} {high}", lambda: t.clamp(low, high), lambda: n("clamp", w, C.byref(a), C.byref(b))
        return f"{name} {low}", lambda: t.clamp(min=low), lambda: n("clamp", w, C.byref(a), None)

    def activation(self, t, w):
        r, n, f = self.r, self.new, torch.nn.functional
        d = C.c_double
        name = r.choice(PLAIN + "gelu gelu_tanh leaky_relu elu celu softplus softshrink hardshrink threshold hardtanh glu prelu".split())
        self.twice = self.twice and name != "hardsigmoid"  # torch has none
        if name in PLAIN:
            return name, lambda: getattr(f, name)(t), lambda: n(name, w)
        if name.startswith("gelu"):
            how = "tanh" if name.endswith("tanh") else "none"
            return name, lambda: f.gelu(t, approximate=how), lambda: n("gelu", w, how.encode())
        if name == "glu":
            if not t.dim() or t.shape[-1] % 2:
                return None
            return name, lambda: f.glu(t, -1), lambda: n(name, w, -1)
        if name == "prelu":
            self.twice = self.twice and not bool((t == 0).any())  # of 0 torch's second derivative has the other side
            u, v = self.leaf([t.shape[1] if t.dim() > 1 else 1])
            return name, lambda: f.prelu(t, u), lambda: n(name, w, v)
        if name == "softplus":
            beta, threshold = r.choice([1, 2, .5]), r.choice([20, 1])
            self.twice = self.twice and not bool((t * beta == threshold).any())  # torch's second one has the other side there
            return f"{name} {beta} {threshold}", lambda: f.softplus(t, beta, threshold), lambda: n(name, w, d(beta), d(threshold))
        if name == "threshold":
            return name, lambda: f.threshold(t, .3, 5.), lambda: n(name, w, d(.3), d(5.))
        if name == "hardtanh":
            return name, lambda: f.hardtanh(t, -.5, .75), lambda: n(name, w, d(-.5), d(.75))
        v = r.choice([.1, 1, .5])
        return f"{name} {v}", lambda: getattr(f, name)(t, v), lambda: n(name, w, d(v))

    def running(self, t, w):
        r, n = self.r, self.new
        if not t.dim():
            return None
        d = r.randrange(-t.dim(), t.dim())
        name = r.choice("cumprod cumprod logcumsumexp cumprod_".split())
        if name == "cumprod_":
            def ours():
                x = n("mul_scalar", w, scalar(2))
                self.w.check(self.w.lib.weir_cumprod_(x, d))
                return x
            return f"{name} {d}", lambda: (t * 2).cumprod_(d), ours
        # torch's second derivative goes through log(|gradient|): differences of the first say it is not right where that is 0
        self.twice = self.twice and name != "logcumsumexp"
        return f"{name} {d}", lambda: getattr(torch, name)(t, d), lambda: n(name, w, d)

    def reduced_to(self, t, w):
        r, n = self.r, self.new
        if not t.dim():
            return None
        d, op, include = r.randrange(-t.dim(), t.dim()), r.randrange(5), r.random() < .5
        name = "sum prod mean amax amin".split()[op]
        sizes = [r.randint(1, 4) if a == d % t.dim() else r.randint(1, v) for a, v in enumerate(t.shape)]
        i = torch.randint(0, t.shape[d], sizes)
        j = self.whole(i)
        u, v = self.leaf(sizes, r.random() < .8)
        if name == "prod":
            # of two zeros in one place torch has no second derivative
            zeros = torch.zeros_like(t.detach()).scatter_add(d, i, (u.detach() == 0).double())
            self.twice = self.twice and not bool((zeros > 1).any()) and not bool((t == 0).any())
        if r.random() < .3:
            def ours():
                x = n("mul_scalar", w, scalar(2))
                self.w.check(self.w.lib.weir_scatter_reduce_(x, d, j, v, op, include))
                return x
            return f"scatter_reduce_ {name} {d} {include}", lambda: (t * 2).scatter_reduce_(d, i, u, name, include_self=include), ours
        return (f"scatter_reduce {name} {d} {i.tolist()} {include}", lambda: t.scatter_reduce(d, i, u, name, include_self=include),
                lambda: n("scatter_reduce", w, d, j, v, op, include))

    def part_replaced(self, t, w):
        r, n = self.r, self.new
        if not t.dim() or overlaps(t):  # torch writes to a copy that overlaps, too
            return None
        d, kind = r.randrange(-t.dim(), t.dim()), r.choice("select slice diagonal".split())
        size, big = t.shape[d], C.c_int64
        if kind == "select":
            i = r.randrange(-size, size)
            u, v = self.leaf(list(t.select(d, i).shape))
            return f"select_scatter {d} {i}", lambda: t.select_scatter(u, d, i), lambda: n("select_scatter", w, v, d, big(i))
        if kind == "slice":
            start, step = r.randrange(size), r.choice([1, 2])
            end = r.randint(start + 1, size + 1)
            u, v = self.leaf(list(torch.ops.aten.slice(t, d, start, end, step).shape))
            return (f"slice_scatter {d} {start} {end} {step}", lambda: t.slice_scatter(u, d, start, end, step),
                    lambda: n("slice_scatter", w, v, d, big(start), big(end), big(step)))
        if t.dim() < 2:
            return None
        e, offset = (d + 1) % t.dim(), r.choice([0, 0, 1])
        u, v = self.leaf(list(t.diagonal(offset, d, e).shape))
        return (f"diagonal_scatter {offset} {d} {e}", lambda: t.diagonal_scatter(u, offset, d, e),
                lambda: n("diagonal_scatter", w, v, big(offset), d, e))

    def bag(self, t, w):
        r, n = self.r, self.new
        if t.dim() != 2 or t.shape[0] < 2:
            return None
        mode = r.randrange(3)
        name = "mean sum max".split()[mode]
        i = torch.randint(0, t.shape[0], (r.randint(1, 7),))
        starts = torch.tensor([0] + sorted(r.choices(range(len(i) + 1), k=r.randint(0, 3))))
        padding = r.choice([None, None, 1])
        o = BagOptions(mode, False, padding is not None, padding or 0)
        j, k = self.whole(i), self.whole(starts)
        u, v = self.leaf([len(i)]) if name == "sum" and r.random() < .6 else (None, None)
        self.twice = False
        return (f"bag {name} {i.tolist()} {starts.tolist()} {padding}",
                lambda: torch.nn.functional.embedding_bag(i, t, starts, mode=name, per_sample_weights=u, padding_idx=padding),
                lambda: n("embedding_bag", j, w, k, v, C.byref(o)))

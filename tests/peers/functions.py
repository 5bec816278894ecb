"""Cases of ops.py: functions.h: functions of one to three operands, and activations."""
import ctypes as C
import math

import torch
import torch.nn.functional as F

from tensors import DTYPES, scalar

# name: how many roundings of its dtype it may be off torch's, whose float32 polynomials are good to some units
ONE = {"erf": 4, "erfc": 64, "erfinv": 16, "lgamma": 16, "digamma": 16, "log1p": 4, "expm1": 4, "log2": 4, "log10": 4, "exp2": 4,
       "tan": 8, "asin": 4, "acos": 4, "atan": 4, "sinh": 8, "cosh": 8, "asinh": 8, "acosh": 8, "atanh": 8, "reciprocal": 1,
       "sinc": 4, "floor": 1, "ceil": 1, "round": 1, "trunc": 1, "frac": 1, "sign": 1, "sgn": 4, "bitwise_not": 1,
       "square": 1, "deg2rad": 2, "rad2deg": 2}
ASKS = ["isnan", "isinf", "signbit"]
TWO = ["remainder", "fmod", "xlogy", "copysign", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
PAIRS = ["atan2", "hypot", "nextafter", "logaddexp", "logaddexp2", "fmax", "fmin", "gcd", "lcm", "logical_xor", "heaviside", "ldexp"]
PLAIN = ["silu", "mish", "hardsigmoid", "hardswish", "logsigmoid", "selu", "relu6", "softsign", "tanhshrink"]
IN_PLACE = ["silu", "mish", "hardsigmoid", "hardswish", "selu", "relu6"]
WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
REAL = [torch.float32] * 3 + [torch.float64, torch.float16, torch.bfloat16]


def double(v):
    return C.c_double(v)


def number_or_none(v):
    return None if v is None else C.byref(C.c_double(v))


class Functions:
    def kind(self, likely):
        """A dtype: mostly one that the operation has."""
        return self.r.choice(likely if self.r.random() < .85 else DTYPES)

    def finite(self, sizes, dtype):
        """Without infinities and NaN, for what torch's vectors and its tails do differently with."""
        t, w = self.tensor(sizes, dtype, small=True)
        return t, w

    def function(self):
        r = self.r
        name = r.choice(list(ONE))
        likely = WHOLE if name == "bitwise_not" else REAL + [torch.complex64] + WHOLE[:2]
        dtype = self.kind(likely)
        small = r.random() < .6 or dtype == torch.complex64 or name in ("sinc", "lgamma", "digamma", "tan")
        t, w = self.tensor(self.sizes(), dtype, small=small)
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        several = ONE[name] if not dtype.is_complex else 64
        scale = None
        if name in ("lgamma", "digamma"):
            scale = torch.ones(()) * 4 if dtype.is_floating_point or not dtype.is_complex else None  # near their zeros
        if name in ("sinc", "erfc", "tan"):
            scale = torch.ones(())
        if name == "erf" and dtype in (torch.float16, torch.bfloat16):
            scale = torch.ones(()) * 1e-4  # torch's vectors round near 0 as near 1
        if dtype.is_complex and not small:
            several = 64
        if dtype.is_complex and name in ("deg2rad", "rad2deg"):
            several = 1
        if r.random() < .3:
            self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(),
                          lambda c: self.w.check(getattr(self.w.lib, f"weir_{name}_")(c)), several if scale is None or name == "erf" else 1e4,
                          scale if name == "erf" else None)
        else:
            self.judge(what, lambda: getattr(torch, name)(t), lambda: self.w.new(name, w), scale, several)
        self.w.release(w)

    def ask(self):
        r = self.r
        name = r.choice(ASKS)
        t, w = self.tensor(self.sizes(), r.choice(DTYPES))
        self.judge(f"{name} of {tuple(t.shape)} {t.dtype}", lambda: getattr(torch, name)(t), lambda: self.w.new(name, w))
        self.w.release(w)

    def parameter(self):
        """Functions of one operand with numbers."""
        r = self.r
        name = r.choice(["round_decimals", "logit", "nan_to_num"])
        t, w = self.tensor(self.sizes(), self.kind(REAL), small=name != "nan_to_num")
        place = r.random() < .3
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        several = 1
        if name == "round_decimals":
            d = r.choice([0, 1, 2, -1, -2, 3])
            several = 2
            if d == 0 and t.dtype in WHOLE:
                d = 1
            if t.dtype.itemsize == 2 and t.dtype.is_floating_point:
                d = 0  # torch rounds after each step
            ours, theirs = (d,), lambda c: torch.round(c, decimals=d)
            them_ = lambda c: c.round_(decimals=d)
        elif name == "logit":
            eps = r.choice([None, None, 0.125] + ([1e-6, 0.] if t.dtype.itemsize > 2 else []))  # torch's is a half
            ours, theirs = (double(-1. if eps is None else eps),), lambda c: torch.logit(c, eps)
            them_ = lambda c: c.logit_(eps)
            several = 32
        else:
            nan, high, low = r.choice([0., 1.5, -3.]), r.choice([None, 7., 1e4]), r.choice([None, -7., 2.])
            ours = (double(nan), number_or_none(high), number_or_none(low))
            theirs, them_ = lambda c: torch.nan_to_num(c, nan, high, low), lambda c: c.nan_to_num_(nan, high, low)
        what += f" {ours}"
        self.own_strides = name == "nan_to_num"
        if place:
            self.in_place(what + " in place", t, w, them_,
                          lambda c: self.w.check(getattr(self.w.lib, f"weir_{name}_")(c, *ours)), several * (4 if name != "logit" else 1e6))
        else:
            self.judge(what, lambda: theirs(t), lambda: self.w.new(name, w, *ours), torch.ones(()) * .25 if name == "logit" else None, several)
        self.own_strides = False
        self.w.release(w)

    def not_zero(self, t, w, name):
        """What integers are divided by."""
        if name in ("remainder", "fmod", "div") and not t.dtype.is_complex and t.dtype != torch.bool:
            keep = t.dtype
            t = (t.abs() + 1).to(keep)
            w = self.moved(self.moved(w, "abs"), "add_scalar", scalar(1))
        return t, w

    def two(self):
        r, lib = self.r, self.w.lib
        name = r.choice(TWO)
        bits = name.startswith("bitwise")
        likely = WHOLE if bits else REAL + WHOLE[:5]
        da = self.kind(likely)
        db = da if r.random() < .6 else self.kind(likely)
        sizes = self.sizes()
        small = r.random() < .7
        t, w = self.tensor(sizes, da, small=small)
        form = r.randrange(6)
        several = {"xlogy": 8}.get(name, 1)
        scale = None
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        if form < 3:
            self.own_strides = da != db or not da.is_floating_point
            o, ow = self.tensor(self.like(sizes), db, small=small)
            o, ow = self.not_zero(o, ow, name)
            what += f" and {tuple(o.shape)} {o.stride()} {o.dtype}"
            common = torch.result_type(t, o)
            skip = common.itemsize == 2 and any(x.numel() == 1 and not torch.equal(x, x.to(common).to(x.dtype)) for x in (t, o))
            skip = skip or (name in ("remainder", "fmod") and bool((o == 0).any()))
            skip = skip or name in ("remainder", "fmod") and common.is_floating_point and (not small or common.itemsize == 2)
            if not skip and form == 2:
                self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(o),
                              lambda c: self.w.check(getattr(lib, f"weir_{name}_")(c, ow)), several)
            elif not skip:
                self.judge(what, lambda: getattr(torch, name)(t, o), lambda: self.w.new(name, w, ow), scale, several)
            self.w.release(ow)
        else:
            v = r.choice([1, 2, 3, 7, True, -1, -2] if bits else [1, 2, 3, -2, 0.5, -1.5])
            what += f" and {v}"
            if name in ("remainder", "fmod") and (not small or t.dtype.itemsize == 2 and t.dtype.is_floating_point):
                v, t2 = 1, None
            elif form == 3:
                self.judge(what, lambda: getattr(torch, name)(t, v), lambda: self.w.new(name + "_scalar", w, scalar(v)), scale, several)
            elif form == 4:
                self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(v),
                              lambda c: self.w.check(getattr(lib, f"weir_{name}_scalar_")(c, scalar(v))), several)
            elif name not in ("fmod", "copysign"):
                self.own_strides = True
                t, w = self.not_zero(t, w, name)
                if name != "remainder" or not bool((t == 0).any()):
                    self.judge(what + " reversed", lambda: getattr(torch, name)(v, t), lambda: self.w.new("scalar_" + name, scalar(v), w), scale, several)
        self.own_strides = False
        self.w.release(w)

    def pair(self):
        r, lib = self.r, self.w.lib
        name = r.choice(PAIRS)
        likely = WHOLE[:5] if name in ("gcd", "lcm") else DTYPES if name == "logical_xor" else REAL if name != "heaviside" else REAL + WHOLE
        da = self.kind(likely)
        db = da if r.random() < .7 else self.kind(likely)
        sizes = self.sizes()
        small = r.random() < .6 or name in ("ldexp", "logaddexp", "logaddexp2", "lcm", "hypot")
        (t, w), (o, ow) = self.tensor(sizes, da, small=small), self.tensor(self.like(sizes), db, small=small)
        several = {"atan2": 4, "hypot": 2, "logaddexp": 8, "logaddexp2": 8, "ldexp": 4}.get(name, 1)
        if name == "ldexp" and (da, db) == (torch.float64, torch.float32):
            several = 2.**30  # the power of 2 is float32
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} and {tuple(o.shape)} {o.stride()} {o.dtype}"
        common = torch.result_type(t, o)
        # torch's complex logaddexp is not here; single elements of float16 are not rounded by torch's cpu
        skip = name.startswith("logaddexp") and common.is_complex or da != db and torch.float16 in (da, db) or da != db and torch.bfloat16 in (da, db)
        if name in ("gcd", "lcm") and common in (torch.int8, torch.int16, torch.int32, torch.int64):  # the least number has no absolute one in torch
            skip = skip or any(bool((v.to(common) == torch.iinfo(common).min).any()) for v in (t, o))
        scale = torch.ones(()) if name.startswith("logaddexp") or name == "ldexp" else None
        self.own_strides = da != db or not da.is_floating_point or name == "ldexp"
        if not skip and r.random() < .25 and hasattr(t, name + "_"):
            self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(o),
                          lambda c: self.w.check(getattr(lib, f"weir_{name}_")(c, ow)), several)
        elif not skip:
            self.judge(what, lambda: getattr(torch, name)(t, o), lambda: self.w.new(name, w, ow), scale, several)
        self.own_strides = False
        self.w.release(w)
        self.w.release(ow)

    def powers(self):
        """float_power, and div with its rounding."""
        r, lib = self.r, self.w.lib
        sizes = self.sizes()
        da, db = self.dtypes()
        (t, w), (o, ow) = self.tensor(sizes, da, small=True), self.tensor(self.like(sizes), db, small=True)
        what = f"{tuple(t.shape)} {t.stride()} {t.dtype} and {tuple(o.shape)} {o.stride()} {o.dtype}"
        self.own_strides = True
        if r.random() < .4:
            v = r.choice([2, 0.5, -1, 3.])
            if r.random() < .5:
                self.judge("float_power of " + what, lambda: torch.float_power(t, o), lambda: self.w.new("float_power", w, ow), None, 8)
            else:
                self.judge(f"float_power of {what} {v}", lambda: torch.float_power(t, v),
                           lambda: self.w.new("float_power_scalar", w, scalar(v)), None, 8)
        else:
            mode = r.choice([None, "trunc", "trunc", "floor", "up"])
            ours = None if mode is None else mode.encode()
            o, ow = self.not_zero(o, ow, "div")
            v = r.choice([2, 3, -2, 0.5, 1.5])
            common = torch.result_type(t, o)
            if common.itemsize == 2 and (da != db or mode):
                pass
            elif not bool((o == 0).any()) and r.random() < .5:
                self.judge(f"div {mode} of {what}", lambda: torch.div(t, o, rounding_mode=mode), lambda: self.w.new("div_rounding", w, ow, ours), None, 2)
            elif not bool((o == 0).any()) and r.random() < .5:
                self.in_place(f"div_ {mode} of {what}", t, w, lambda c: c.div_(o, rounding_mode=mode),
                              lambda c: self.w.check(lib.weir_div_rounding_(c, ow, ours)), 2)
            elif da.itemsize != 2 and r.random() < .5:
                self.judge(f"div {mode} of {what} by {v}", lambda: torch.div(t, v, rounding_mode=mode),
                           lambda: self.w.new("div_rounding_scalar", w, scalar(v), ours), None, 2)
            elif da.itemsize != 2:
                self.in_place(f"div_ {mode} of {what} by {v}", t, w, lambda c: c.div_(v, rounding_mode=mode),
                              lambda c: self.w.check(lib.weir_div_rounding_scalar_(c, scalar(v), ours)), 2)
        self.own_strides = False
        self.w.release(w)
        self.w.release(ow)

    def three(self):
        r, lib = self.r, self.w.lib
        name = r.choice(["lerp", "lerp_scalar", "addcmul", "addcdiv"])
        sizes = self.sizes()
        da = self.kind(REAL + [torch.complex64])
        db, dc = (da if r.random() < .85 else r.choice(DTYPES) for _ in "bc")
        (t, w), (o, ow), (z, zw) = (self.tensor(s, d, small=True) for s, d in
                                    ((sizes, da), (self.like(sizes), db), (self.like(sizes), dc)))
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}, {tuple(o.shape)} {o.dtype}, {tuple(z.shape)} {z.dtype}"
        v = r.choice([1, 2, -1, 0.5, 1.5, 0.25])
        self.own_strides = True
        same = len({da, db, dc}) == 1
        ours = (ow, zw) if name == "lerp" else (ow, scalar(v)) if name == "lerp_scalar" else (ow, zw, scalar(v))
        theirs = {"lerp": lambda c: torch.lerp(c, o, z), "lerp_scalar": lambda c: torch.lerp(c, o, v),
                  "addcmul": lambda c: torch.addcmul(c, o, z, value=v), "addcdiv": lambda c: torch.addcdiv(c, o, z, value=v)}[name]
        there = {"lerp": lambda c: c.lerp_(o, z), "lerp_scalar": lambda c: c.lerp_(o, v),
                 "addcmul": lambda c: c.addcmul_(o, z, value=v), "addcdiv": lambda c: c.addcdiv_(o, z, value=v)}[name]
        scale = torch.ones(()) * 64
        if name == "addcdiv":
            both = torch.result_type(o, z)
            z = torch.where(z.abs() > .3, z, torch.ones((), dtype=dc)) if dc.is_floating_point or dc.is_complex else z
            if dc.is_floating_point or dc.is_complex:
                self.w.release(zw)
                zw = self.w.of(z.contiguous())
                ours = (ow, zw, scalar(v))
        if name == "lerp" and not z.dim() and dc != da:
            pass  # a number, then, for torch
        elif not same and torch.result_type(torch.result_type(t, o) and t, z).itemsize == 2:
            pass
        elif r.random() < .3:
            self.in_place(what + f" {v} in place", t, w, there,
                          lambda c: self.w.check(getattr(lib, "weir_" + name + "_")(c, *ours)), 8, scale)
        else:
            self.judge(what + f" {v}", lambda: theirs(t), lambda: self.w.new(name, w, *ours), scale, 8)
        self.own_strides = False
        for x in (w, ow, zw):
            self.w.release(x)

    def bounds(self):
        r, lib = self.r, self.w.lib
        sizes = self.sizes()
        da, db = self.dtypes()
        dc = db if r.random() < .7 else r.choice(DTYPES)
        (t, w), (o, ow), (z, zw) = (self.tensor(s, d) for s, d in ((sizes, da), (self.like(sizes), db), (self.like(sizes), dc)))
        what = f"clamp of {tuple(t.shape)} {t.stride()} {t.dtype}, {tuple(o.shape)} {o.dtype}, {tuple(z.shape)} {z.dtype}"
        kind = r.randrange(4)
        self.own_strides = True
        if len({da, db, dc}) > 1 and any(d.itemsize == 2 and d.is_floating_point for d in (da, db, dc)):
            pass
        elif kind < 3 and torch.complex64 in (da, db, dc) and not t.shape == o.shape == z.shape:
            pass  # torch looks at shapes first
        elif kind == 0:
            self.judge(what, lambda: torch.clamp(t, o, z), lambda: self.w.new("clamp_tensor", w, ow, zw))
        elif kind == 1:
            self.judge(what + " low", lambda: torch.clamp(t, min=o), lambda: self.w.new("clamp_tensor", w, ow, None))
        elif kind == 2 and torch.complex64 in (da, db, dc):
            pass  # torch looks at shapes first
        elif kind == 2:
            self.in_place(what + " in place", t, w, lambda c: c.clamp_(o, z),
                          lambda c: self.w.check(lib.weir_clamp_tensor_(c, ow, zw)))
        else:
            low, high = r.choice([0, -1, 0.5, 1]), r.choice([1, 2, 1.5])
            which = r.randrange(3)
            if da == torch.bool:
                pass  # torch's names of what its cpu lacks there are of another form
            elif which == 0:
                self.judge(what + f" {low}", lambda: torch.clamp_min(t, low), lambda: self.w.new("clamp_min", w, scalar(low)))
            elif which == 1:
                self.judge(what + f" {high}", lambda: torch.clamp_max(t, high), lambda: self.w.new("clamp_max", w, scalar(high)))
            else:
                a, b = scalar(low), scalar(high)
                self.in_place(what + f" {low} {high} in place", t, w, lambda c: c.clamp_(low, high),
                              lambda c: self.w.check(lib.weir_clamp_(c, C.byref(a), C.byref(b))))
        self.own_strides = False
        for x in (w, ow, zw):
            self.w.release(x)

    def activation(self):
        r, lib = self.r, self.w.lib
        name = r.choice(PLAIN * 2 + ["gelu", "gelu", "leaky_relu", "elu", "celu", "softplus", "hardtanh", "softshrink",
                                     "hardshrink", "threshold", "prelu", "glu"])
        t, w = self.tensor(self.sizes(), self.kind(REAL), small=r.random() < .8 or name in ("gelu", "softsign"))
        if not t.dtype.is_floating_point and name in ("softsign", "tanhshrink") and t.dtype != torch.complex64:
            self.w.release(w)
            t, w = self.tensor(self.sizes(), torch.float32, small=True)
        if t.dtype.is_floating_point and not bool(t.isfinite().all()):
            self.w.release(w)
            t, w = self.tensor(self.sizes(), t.dtype, small=True)  # torch's vectors give NaN for gelu of infinity, its tails do not
        a, b = r.choice([1., .5, 2., -1.]), r.choice([2., 3., 20.])
        numbers, theirs = {
            "gelu": ((r.choice([b"none", b"tanh", b"tanh"]),), lambda c, m: F.gelu(c, approximate=m.decode())),
            "leaky_relu": ((a,), F.leaky_relu), "elu": ((a,), F.elu), "celu": ((a,), F.celu), "softplus": ((abs(a), b), F.softplus),
            "hardtanh": ((a, b), F.hardtanh), "softshrink": ((a,), F.softshrink), "hardshrink": ((abs(a),), F.hardshrink),
            "threshold": ((a, b), F.threshold)}.get(name, ((), getattr(F, name)))
        ours = [double(v) if isinstance(v, float) else v for v in numbers]
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {numbers}"
        scale, several = torch.ones(()), 8
        self.own_strides = name in ("softsign", "tanhshrink", "prelu", "glu", "logsigmoid")
        if t.dtype.is_complex:
            several = 64
        if name in ("softsign", "tanhshrink") and t.dtype.itemsize == 2:
            several = 16
        if name == "prelu":
            channels = t.shape[1] if t.dim() > 1 else 1
            o, ow = self.tensor(r.choice([[1], [channels], [channels], [], [3], [1, 1]]), t.dtype if r.random() < .95 else torch.float64, small=True)
            self.judge(what + f" {tuple(o.shape)} {o.dtype}", lambda: F.prelu(t, o), lambda: self.w.new(name, w, ow))
            self.w.release(ow)
        elif name == "glu":
            d = self.dim(t)
            self.judge(what + f" {d}", lambda: F.glu(t, d), lambda: self.w.new(name, w, d), scale, several)
        elif name in IN_PLACE + ["leaky_relu", "elu", "celu", "hardtanh", "threshold"] and r.random() < .3:
            self.in_place(what + " in place", t, w, lambda c: theirs(c, *numbers, inplace=True),
                          lambda c: self.w.check(getattr(lib, f"weir_{name}_")(c, *ours)), 512)
        else:
            self.judge(what, lambda: theirs(t, *numbers), lambda: self.w.new(name, w, *ours), scale, several)
        self.own_strides = False
        self.w.release(w)

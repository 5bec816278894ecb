"""Operations on the cpu beside PyTorch's: promotion, results, shapes, strides, and errors' texts.

    python tests/peers/ops.py LIBWEIR [CALLS [SEED [CASE...]]]

Needs a torch for the cpu (any build) and numpy. First torch.result_type() for all pairs of dtypes as tensors,
tensors without dimensions and numbers; then random calls through both libraries. Where one fails the other must, with
the same sentence; else dtype, shape, strides and elements must be equal, these to the rounding of their dtype.
Ends with a line that counts the calls, exit status 1 where they differ.
"""
import ctypes as C
import re
import sys
import warnings

import torch

from draws import Draws
from indices import Indices
from functions import Functions
from linalg import Linalg
from order import Order
from losses import Losses
from modules import Modules
from networks import Networks
from reductions import Reductions
from sequence import Sequence
from shapes import Shapes
from tensors import DTYPES, NUMBERS, Failed, Run, Weir, plain, scalar, shape

warnings.filterwarnings("ignore")
NO_DTYPE = {torch.complex128, torch.complex32} | ({torch.bcomplex32} if hasattr(torch, "bcomplex32") else set())
EPS = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7, torch.float32: 2.0**-23, torch.float64: 2.0**-52,
       torch.complex64: 2.0**-23}

UNARY = "neg abs relu exp log sqrt rsqrt sin cos tanh sigmoid logical_not isfinite".split()
BINARY = ("add sub mul div floor_divide pow maximum minimum eq ne lt le gt ge logical_and logical_or").split()
NO_SCALAR = ("maximum", "minimum", "logical_and", "logical_or")
REDUCE = "sum mean prod amax amin all any".split()


class Conv(C.Structure):
    _fields_ = [("stride", C.c_int64 * 2), ("padding", C.c_int64 * 2), ("dilation", C.c_int64 * 2),
                ("groups", C.c_int64)]


class Pool(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 2), ("stride", C.c_int64 * 2), ("padding", C.c_int64 * 2),
                ("dilation", C.c_int64 * 2)]


def pair(a, b):
    return (C.c_int64 * 2)(a, b)


def check_mixins(kind):
    """Parts share a namespace: a name that two of them define would silently be the first one's alone."""
    where = {}
    for part in kind.__mro__[1:-1]:
        for name in vars(part):
            if not name.startswith("__") and where.setdefault(name, part) is not part:
                raise SystemExit(f"ops.py: {part.__name__} and {where[name].__name__} both define {name}()")


def sentence_of(text):
    """torch says first which product it is; nothing depends on it."""
    text = plain(text)
    for prefix in ("mm: ", "addmm: "):
        if text.startswith(prefix + "mat1 and mat2"):
            text = text[len(prefix):]
    return text


class Calls(Draws, Losses, Modules, Networks, Functions, Indices, Linalg, Order, Reductions, Sequence, Shapes, Run):
    def tensor(self, sizes, dtype, small=False):
        """The same tensor twice: torch's and Weir's, perhaps turned, stepped or repeated."""
        r = self.r
        sizes = list(sizes)
        order = list(range(len(sizes)))
        if r.random() < .3:
            r.shuffle(order)
        base = [sizes[i] for i in order]
        step = r.choice([1, 1, 1, 2])
        at = r.randrange(len(base)) if base and step > 1 else None
        if at is not None:
            base[at] *= 2
        t = self.values(base, dtype)
        if small:
            t = self.small(base, dtype)
        w = self.w.of(t)
        if at is not None:
            t = torch.ops.aten.slice(t, at, 0, 2**62, 2)
            w = self.moved(w, "slice", at, C.c_int64(0), C.c_int64(2**62), C.c_int64(2))
        back = [order.index(i) for i in range(len(order))]
        if back != sorted(back):
            t = t.permute(back)
            w = self.moved(w, "permute", (C.c_int * 8)(*back))
        for d, size in enumerate(sizes):
            if size == 1 and r.random() < .05:
                sizes[d] = 3
                t = t.expand(sizes)
                w = self.moved(w, "expand", shape(sizes))
        return t, w

    def moved(self, w, name, *arguments):
        out = self.w.new(name, w, *arguments)
        self.w.release(w)
        return out

    def small(self, sizes, dtype):
        n = 1
        for s in sizes:
            n *= s
        if dtype == torch.bool:
            return (torch.rand(n) < .5).reshape(sizes)
        t = torch.randint(0 if dtype == torch.uint8 else -3, 4, (n,))
        t = t.to(dtype) if not dtype.is_floating_point else torch.randn(n).to(dtype)
        if dtype.is_complex:
            t = torch.complex(torch.randn(n), torch.randn(n))
        return t.reshape(sizes)

    def like(self, sizes):
        """Sizes that mostly broadcast with these."""
        r = self.r
        s = [r.choice([v, v, v, v, 1]) for v in sizes[r.choice([0, 0, 0, len(sizes) // 2]):]]
        if r.random() < .05 and s:
            s[r.randrange(len(s))] = 6
        if r.random() < .1 and len(s) < 5:
            s = [r.choice([1, 2])] + s
        return s

    def dtypes(self):
        r = self.r
        a = r.choice(DTYPES)
        return a, (a if r.random() < .6 else r.choice(DTYPES))

    def number(self):
        return self.r.choice([0, 1, 2, 3, -1, -2, 0.5, -1.5, 2.0, True, False, 1e-3, 2 + 1j, 100])

    own_strides = False  # torch's result lies in memory as it suits its library

    # ---- judging

    def judge(self, what, theirs, ours, scale=None, several=1.0, where=None):
        got = self.call(what, theirs, ours)
        if not got:
            return
        a, b = got
        a = a if isinstance(a, (tuple, list)) else (a,)
        b = b if isinstance(b, (tuple, list)) else (b,)
        for x, y in zip(a, b):
            if isinstance(x, bool):
                if x != y:
                    self.complain(what, x, y)
                continue
            self.judge_one(what, x, y, scale, several, where)
            self.w.release(y)

    def judge_one(self, what, t, w, scale, several, where):
        dtype = self.w.lib.weir_tensor_dtype(w)
        if NUMBERS[t.dtype] != dtype:
            return self.complain(what + ": dtype", t.dtype, dtype)
        if not self.own_strides:
            self.compare(what, t, w, elements=False)
        elif tuple(t.shape) != self.w.shape(w):
            return self.complain(what + ": shape", tuple(t.shape), self.w.shape(w))
        mine = self.w.elements(w, t.dtype).reshape(t.shape)
        if where is not None:
            t, mine = t[where], mine[where]
        if self.far(t, mine, scale, several):
            self.complain(what + ": elements", t, mine)
        return None

    def far(self, t, mine, scale, several):
        if t.dtype not in EPS:
            return not torch.equal(t, mine)
        wide = torch.complex128 if t.dtype.is_complex else torch.float64
        x, y = t.to(wide), mine.to(wide)
        if wide == torch.complex128:
            x, y = torch.view_as_real(x), torch.view_as_real(y)
        if not torch.equal(x.isnan(), y.isnan()) and not t.dtype.is_complex:
            return True
        good = x.isfinite() & y.isfinite()
        if t.dtype.is_complex:
            good = good.all(-1, keepdim=True).expand(x.shape)
            size = x.abs().amax(-1, keepdim=True).expand(x.shape)
        else:
            size = x.abs()
            rest = ~good & ~x.isnan()
            # an overflow may round either way at the edge
            edge = {torch.float16: 6e4, torch.bfloat16: 3e38, torch.float32: 3.3e38, torch.float64: 1.7e308}[t.dtype]
            if not torch.equal(x[rest].clamp(-edge, edge), y[rest].clamp(-edge, edge)):
                return True
        if scale is not None:
            size = torch.maximum(size, scale.to(torch.float64).expand(size.shape)
                                 if not t.dtype.is_complex else size + float(scale.max()) if scale.numel() else size)
        tiny = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133, torch.float32: 2.0**-149,
                torch.float64: 2.0**-1074, torch.complex64: 2.0**-126}[t.dtype]
        return bool(((x - y).abs() > several * EPS[t.dtype] * size + 2 * tiny)[good].any())

    def call(self, what, theirs, ours):
        """As Run.both, with sentences as said here; a dtype Weir has not is no difference."""
        self.steps += 1
        a = b = wrong = sentence = None
        try:
            a = theirs()
        except (RuntimeError, IndexError, ValueError, TypeError) as e:
            wrong = sentence_of(e)
        try:
            b = ours()
        except Failed as e:
            sentence = str(e)
        first = a[0] if isinstance(a, (tuple, list)) and a else a
        if isinstance(first, torch.Tensor) and first.dtype in NO_DTYPE or wrong and "Complex" in wrong and sentence:
            if sentence is None:
                self.complain(what + ": no such dtype", a, self.w.text(b))
            return None
        if sentence and "no dtype here" in sentence:
            return None  # torch goes through complex128
        if what.startswith("conv_transpose") and wrong is None and sentence and not a.numel():
            return None  # oneDNN's has no elements; torch's own refuses it, as ours does
        if what.startswith("scatter_reduce") and "mean" in what and wrong and "div_floor_cpu" in wrong and sentence is None:
            return None  # without an index nothing is divided, but torch asks for it
        if (wrong is None) != (sentence is None):
            self.complain(what + ": one fails", wrong or a, sentence)
            return None
        if wrong is not None:
            if wrong != sentence and not self.alike(what, wrong, sentence):
                self.complain(what, wrong, sentence)
            return None
        return a, b

    def alike(self, what, wrong, sentence):
        """A linear layer is one product or a product and a sum, as torch's strides would have it."""
        if "INTERNAL ASSERT" in wrong or "Unsupported memory format" in wrong:
            return True
        if what.startswith("linear"):
            pattern = ("have the same dtype|expected scalar type|shapes cannot be multiplied|"
                       "^The (size|expanded size) of|^output with shape|^\"addmm_impl_cpu_\"")
        elif what.startswith("unflatten"):
            pattern = "^unflatten got an unexpected error:"
        elif what.startswith(("batch_norm", "instance_norm")):
            pattern = "could not infer output dtype|not implemented for 'Long'"
        elif what.startswith("conv"):
            pattern = "size|padding|dilation|stride|type|memory descriptor|overflow"
        elif what.startswith("interpolate"):
            pattern = "not implemented for"
        elif what.startswith("layer_norm"):
            pattern = "mixed dtype|not implemented for 'Long'"
        elif what.startswith("pad"):
            pattern = "must be >= 1 in every dimension|is too small|leaves nothing of"
        elif what.startswith("TransformerEncoder"):
            pattern = "^For mask_type == 1|^Expected key_padded_mask.shape"
        elif what.startswith("attention"):
            pattern = "^The size of tensor a .* must match the size of tensor b|^output with shape"
        elif what.startswith(("index_select", "embedding")):
            pattern = "out of range in self|out of DATA bounds|axis dim should be positive"
        elif what.startswith("index_add"):
            pattern = "out of range in self|out of bounds for dim|tensor has no dimensions|Number of indices"
        elif what.startswith("index_copy"):
            pattern = "same slice shapes"
        elif what.startswith("scatter"):
            pattern = "to be no larger|Dimension out of range|same number of dimensions|not implemented for '(Bool|ComplexFloat)'|^index .* out of bounds|^value cannot be"
        elif what.startswith("index"):
            pattern = "(tensors used as indices|too many indices|Dimension out of range|size of tensor|shape of the mask)|^index .* out of bounds|^shape mismatch"
        elif what.startswith("masked_scatter"):
            pattern = "^expand|The size of tensor|doesn't match|expanded size|must match"
        elif what.startswith("multinomial"):
            pattern = "^invalid multinomial distribution"  # torch's is of the first row that is none
        elif what.startswith("meshgrid"):
            pattern = "^weir.meshgrid: Expected 0D or 1D tensor"
        elif what.startswith("adaptive"):
            pattern = "^\"adaptive_(avg|max)_pool2d(_channels_last)?\" not implemented|^adaptive_avg_pool3d"
        else:
            pattern = "\"(max|avg)_pool2d"
        return re.search(pattern, wrong) and re.search(pattern, sentence)

    # ---- cases

    def unary(self):
        name = self.r.choice(UNARY)
        t, w = self.tensor(self.sizes(), self.r.choice(DTYPES))
        several = {"sigmoid": 64, "exp": 4, "log": 4, "sin": 4, "cos": 4, "tanh": 4, "rsqrt": 4}.get(name, 1)
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        if t.dtype.is_complex:
            several = 16
        if name in ("sin", "cos") and t.dtype in EPS and t.numel() and bool((t.abs() > 1e6).any()):
            t, w = self.tensor([3], t.dtype, small=True)
        if name not in ("isfinite", "sigmoid") and self.r.random() < .3:
            self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(),
                          lambda c: self.w.check(getattr(self.w.lib, f"weir_{name}_")(c)), several)
        else:
            self.judge(what, lambda: getattr(torch, name)(t), lambda: self.w.new(name, w), several=several,
                       scale=torch.ones(()) * 1e-4 if name == "sigmoid" else None)
        self.w.release(w)

    def in_place(self, what, t, w, theirs, ours, several=1.0, scale=None):
        """On copies that are dense: torch's clone keeps strides."""
        def run():
            c = self.w.new("clone", w)
            try:
                ours(c)
            except Failed:
                self.w.release(c)
                raise
            return c
        self.judge(what, lambda: theirs(t.clone()), run, scale, several)

    def binary(self):
        r, lib = self.r, self.w.lib
        name = r.choice(BINARY)
        sizes = self.sizes()
        da, db = self.dtypes()
        t, w = self.tensor(sizes, da, small=name in ("pow", "mul", "floor_divide"))
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype}"
        form = r.randrange(6)
        several = 4 if name == "pow" else 1
        if t.dtype.is_complex or db.is_complex:
            several = 1000 if name == "pow" else 64  # the power's angle is rounded before it is multiplied
        if form < 3 or name in NO_SCALAR:
            # torch's cpu converts first, into memory of its own
            self.own_strides = da != db or not da.is_floating_point
            o, ow = self.tensor(self.like(sizes), db, small=name in ("pow", "mul", "floor_divide"))
            if name == "floor_divide" and db not in (torch.bool, torch.complex64):
                o, ow = o.abs() + 1, self.moved(self.moved(ow, "abs"), "add_scalar", scalar(1))
            what += f" and {tuple(o.shape)} {o.stride()} {o.dtype}"
            if name == "floor_divide" and (o.dtype in (torch.bool, torch.complex64)):
                return
            common = torch.result_type(t, o)
            if common.itemsize == 2 and any(x.numel() == 1 and not torch.equal(x, x.to(common).to(x.dtype)) for x in (t, o)):
                return  # torch's cpu does not round to float16 what is a single element
            if form == 2 and name not in ("maximum", "minimum"):
                self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(o),
                              lambda c: self.w.check(getattr(lib, f"weir_{name}_")(c, ow)), several)
            else:
                self.judge(what, lambda: getattr(torch, name)(t, o), lambda: self.w.new(name, w, ow), several=several)
            self.w.release(ow)
        else:
            v = self.number()
            if name == "floor_divide" and v == 0:
                return
            if t.dtype == torch.bool and name == "pow":
                v = 2  # torch's cpu does without the power that it has not where the exponent is True
            if t.dtype.itemsize == 2:
                v = self.r.choice([0, 1, 2, -1, 0.5, -1.5])  # torch's cpu rounds others to float16 first, or not
            what += f" and {v}"
            if form == 3:
                self.judge(what, lambda: getattr(t, name)(v), lambda: self.w.new(name + "_scalar", w, scalar(v)),
                           several=several)
            elif form == 4 and not (name == "pow" and t.dtype in (torch.bool, torch.complex64)):
                self.in_place(what + " in place", t, w, lambda c: getattr(c, name + "_")(v),
                              lambda c: self.w.check(getattr(lib, f"weir_{name}_scalar_")(c, scalar(v))), several)
            elif name in ("sub", "add", "mul", "pow"):
                self.own_strides = name == "pow"
                theirs = {"sub": lambda: v - t, "add": lambda: v + t, "mul": lambda: v * t,
                          "pow": lambda: torch.pow(v, t)}[name]
                self.judge(what + " reversed", theirs, lambda: self.w.new("scalar_" + name, scalar(v), w),
                           several=several)
        self.own_strides = False
        self.w.release(w)

    def size_of(self, t):
        return t.abs().double() if t.dtype != torch.bool else t.double()

    def alpha(self):
        r = self.r
        name = r.choice(["add", "sub"])
        sizes = self.sizes()
        da, db = self.dtypes()
        (t, w), (o, ow) = self.tensor(sizes, da, small=True), self.tensor(self.like(sizes), db, small=True)
        v = self.number()
        scale = None
        try:
            scale = self.size_of(t) + self.size_of(o) * abs(v)
        except RuntimeError:
            pass
        self.own_strides = da != db
        self.judge(f"{name} {t.dtype} {o.dtype} alpha {v} {tuple(t.shape)} {tuple(o.shape)}",
                   lambda: getattr(torch, name)(t, o, alpha=v),
                   lambda: self.w.new(name + "_alpha", w, ow, scalar(v)), scale=scale, several=4)
        self.own_strides = False
        self.w.release(w)
        self.w.release(ow)

    def clear(self, t, o, rtol, atol):
        """Where |t - o| is not as good as atol + rtol |o|: torch rounds both to the dtype, Weir neither."""
        if t.dtype not in EPS or o.dtype != t.dtype:
            return None
        wide = torch.complex128 if t.dtype.is_complex else torch.float64
        try:
            off, most = (t.to(wide) - o.to(wide)).abs(), atol + rtol * o.to(wide).abs()
        except RuntimeError:
            return None
        return ~((off - most).abs() <= 4 * EPS[t.dtype] * (most + off))

    def choose(self):
        r = self.r
        sizes = self.sizes()
        da, db = self.dtypes()
        c, cw = self.tensor(self.like(sizes), r.choice([torch.bool] * 5 + [torch.float32, torch.uint8]), small=True)
        (t, w), (o, ow) = self.tensor(sizes, da), self.tensor(self.like(sizes), db)
        self.own_strides = da != db or c.dtype != torch.bool
        self.judge(f"where {tuple(c.shape)} {c.dtype} {tuple(t.shape)} {t.dtype} {tuple(o.shape)} {o.dtype}",
                   lambda: torch.where(c, t, o), lambda: self.w.new("where", cw, w, ow))
        low, high = (v if not isinstance(v, complex) else None for v in (self.number(), self.number()))
        low = r.choice([None, low])
        self.own_strides = False
        self.judge(f"clamp {t.dtype} {low} {high}", lambda: torch.clamp(t, low, high),
                   lambda: self.w.new("clamp", w, None if low is None else C.byref(scalar(low)),
                                      None if high is None else C.byref(scalar(high))))
        self.own_strides = True
        self.judge(f"isclose {t.dtype} {o.dtype} {tuple(t.shape)} {tuple(o.shape)}",
                   lambda: torch.isclose(t, o, 1e-3, 1e-2, True),
                   lambda: self.w.new("isclose", w, ow, C.c_double(1e-3), C.c_double(1e-2), True),
                   where=self.clear(t, o, 1e-3, 1e-2))
        self.own_strides = False
        def flag(name, *rest):
            out = C.c_bool()
            self.w.check(getattr(self.w.lib, "weir_" + name)(C.byref(out), w, ow, *rest))
            return bool(out.value)
        self.judge(f"equal {t.dtype} {o.dtype}", lambda: torch.equal(t, o), lambda: flag("equal"))
        clear = self.clear(t, o, .5, 1.)
        if clear is None or bool(clear.all()):
            self.judge(f"allclose {t.dtype} {o.dtype}", lambda: torch.allclose(t, o, .5, 1.),
                       lambda: flag("allclose", C.c_double(.5), C.c_double(1.), False))
        for x in (cw, w, ow):
            self.w.release(x)

    def exact_prod(self, t, *over, **keep):
        """torch's product, and of float16 and bfloat16 the one of float64 rounded once: torch's cpu rounds, and
        overflows, after each factor; its GPUs and Weir calculate in float32."""
        out = torch.prod(t, *over, **keep)
        return torch.prod(t.double(), *over, **keep).to(t.dtype) if t.dtype.itemsize == 2 and t.dtype in EPS else out

    def any_order(self, t, *over, **keep):
        """Of which products no order of the factors leaves the range of the calculation."""
        if t.dtype not in EPS or t.dtype.is_complex:
            return None
        end = 700 if t.dtype == torch.float64 else 85  # ln of the range, less a little
        logs = torch.where(t == 0, 0, t.double().abs().log().nan_to_num(0, 0, 0))
        try:
            return ((torch.sum(logs.clamp(min=0), *over, **keep) < end) &
                    (torch.sum(logs.clamp(max=0), *over, **keep) > -end))
        except IndexError:
            return None

    def reduce(self):
        r = self.r
        dtype = r.choice(DTYPES)
        t, w = self.tensor(self.sizes(), dtype, small=r.random() < .5)
        name = r.choice(REDUCE + ["max", "min", "argmax", "argmin", "max_dim", "min_dim", "softmax", "log_softmax"])
        keep = r.random() < .5
        d = r.randint(-t.dim() - 1, t.dim()) if r.random() < .2 else r.randint(-max(t.dim(), 1), max(t.dim() - 1, 0))
        what = f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} over {d} keepdim {keep}"
        scale = None
        if name in ("sum", "mean") and dtype in EPS:
            scale = t.abs().double().nan_to_num(0, 0, 0).sum()
        if scale is not None and name == "mean":
            scale = scale / max(1, t.numel())
        several = 8 if name != "prod" else 1 if t.dtype.itemsize == 2 else 8 * max(1, t.numel())
        reduced = self.exact_prod if name == "prod" else getattr(torch, name, None)
        if name in ("softmax", "log_softmax"):
            self.judge(what, lambda: getattr(torch, name)(t, d), lambda: self.w.new(name, w, d), several=32,
                       scale=torch.ones(()) * 100)
        elif name in ("max_dim", "min_dim"):
            def both():
                v, i = C.c_void_p(), C.c_void_p()
                self.w.check(getattr(self.w.lib, "weir_" + name)(C.byref(v), C.byref(i), w, d, keep))
                return v, i
            # of equals torch's cpu gives any: places only where all differ
            self.judge(what, lambda: getattr(torch, name[:3])(t, d, keep)[:1], lambda: both()[:1])
        elif name in ("argmax", "argmin") or (name in REDUCE and r.random() < .5):
            if name in REDUCE:
                self.judge(what, lambda: reduced(t, d, keepdim=keep), lambda: self.w.new(name + "_dim", w, d, keep),
                           scale, several, self.any_order(t, d, keepdim=keep) if name == "prod" else None)
            elif r.random() < .5:
                self.judge(what, lambda: getattr(torch, name)(t, d, keep), lambda: self.w.new(name + "_dim", w, d, keep))
            else:
                self.judge(what + " all", lambda: getattr(torch, name)(t), lambda: self.w.new(name, w))
        elif name in ("max", "min") or r.random() < .5 or name == "prod":
            self.judge(what + " all", lambda: reduced(t), lambda: self.w.new(name, w), scale, several,
                       self.any_order(t) if name == "prod" else None)
        else:
            dims = [r.randint(-t.dim(), t.dim() - 1) for _ in range(r.randint(1, 2))] if t.dim() else [0]
            dims = dims[:1] if not t.numel() else dims
            self.judge(what + f" {dims}", lambda: getattr(torch, name)(t, dims, keepdim=keep),
                       lambda: self.w.new(name + "_dims", w, (C.c_int * 4)(*dims), len(dims), keep), scale, several)
        self.w.release(w)

    def product(self):
        r = self.r
        m, k, n, b = (r.choice([1, 2, 3, 5, 8]) for _ in range(4))
        m, k = r.choice([m] * 9 + [0]), r.choice([k] * 9 + [0])
        da, db = self.dtypes() if r.random() < .3 else (torch.float32,) * 2
        if r.random() < .5:
            db = da
        k2 = k if r.random() < .9 else k + 1
        if not m * k and (da == torch.bool or da != db):
            return  # torch notices only where there is something to multiply
        lead = r.choice([[], [], [b], [b, 2]])
        sa = r.choice([lead + [m, k], [k], [m, k]])
        sb = r.choice([[l if r.random() < .7 else 1 for l in lead] + [k2, n], [k2], [k2, n]])
        (t, w), (o, ow) = self.tensor(sa, da, small=True), self.tensor(sb, db, small=True)
        name = r.choice(["matmul"] * 4 + ["mm", "bmm", "mv", "dot", "addmm", "linear"])
        what = f"{name} {tuple(t.shape)} {t.stride()} {t.dtype} {tuple(o.shape)} {o.stride()} {o.dtype}"
        scale = torch.ones(()) * (4 * k + 4)
        if name == "addmm":
            c, cw = self.tensor(r.choice([[m, n], [n], [1, n], [], [m, 1], [7]]), da if r.random() < .9 else db,
                                small=True)
            al, be = r.choice([(1, 1), (2, 3), (1, 0)])
            self.judge(what + f" {tuple(c.shape)}", lambda: torch.addmm(c, t, o, beta=be, alpha=al),
                       lambda: self.w.new("addmm", cw, w, ow, C.c_double(be), C.c_double(al)), scale, 16)
            self.w.release(cw)
        elif name == "linear":
            o2, ow2 = self.tensor(r.choice([[n, k2], [k2], [n, k2]]), db, small=True)
            c, cw = (None, None) if r.random() < .4 else self.tensor([n if r.random() < .9 else n + 1], db, small=True)
            if o2.dim() == 1 and c is not None:
                c, cw = None, None
            what = f"linear {tuple(t.shape)} {t.dtype} {tuple(o2.shape)} {o2.dtype} {None if c is None else c.shape}"
            self.judge(what, lambda: torch.nn.functional.linear(t, o2, c), lambda: self.w.new("linear", w, ow2, cw),
                       scale, 16)
            self.w.release(ow2)
        else:
            self.judge(what, lambda: getattr(torch, name)(t, o), lambda: self.w.new(name, w, ow), scale, 16)
        self.w.release(w)
        self.w.release(ow)

    def image(self):
        r = self.r
        g = r.choice([1, 1, 1, 2])
        n, c, h, x = r.randint(0, 3), r.randint(1, 3), r.randint(1, 9), r.randint(1, 9)
        kh, kw, outs = r.randint(1, 4), r.randint(1, 4), r.randint(1, 4) * g
        stride, pad, dil = ([r.choice([1, 1, 2, 3]) for _ in "ab"], [r.choice([0, 0, 1, 2]) for _ in "ab"],
                            [r.choice([1, 1, 2]) for _ in "ab"])
        if r.random() < .05:
            stride[0], pad[1], dil[0] = r.choice([(-1, 0, 1), (1, -1, 1), (1, 0, -1)])
        dtype = r.choice([torch.float32] * 4 + [torch.float64, torch.int64, torch.bool])
        cin = c * g if r.random() < .95 else c * g + 1
        t, w = self.tensor([n, cin, h, x] if r.random() < .8 else [cin, h, x], dtype, small=True)
        o, ow = self.tensor([outs, c, kh, kw], dtype, small=True)
        b, bw = self.tensor([outs if r.random() < .95 else outs + 1], dtype, small=True)
        with_bias = r.random() < .5
        conv = Conv(pair(*stride), pair(*pad), pair(*dil), g)
        what = f"conv2d {tuple(t.shape)} {t.stride()} {dtype} {tuple(o.shape)} stride {stride} pad {pad} dil {dil} g {g}"
        self.own_strides = True
        self.judge(what, lambda: torch.conv2d(t, o, b if with_bias else None, stride, pad, dil, g),
                   lambda: self.w.new("conv2d", w, ow, bw if with_bias else None, C.byref(conv)),
                   torch.ones(()) * 9 * (c * kh * kw + 1), 16)
        pool = Pool(pair(kh, kw), pair(*stride), pair(*pad), pair(*dil))
        what = f"max_pool2d {tuple(t.shape)} {dtype} kernel {kh, kw} stride {stride} pad {pad} dil {dil}"
        self.judge(what, lambda: torch.max_pool2d(t, [kh, kw], stride, pad, dil),
                   lambda: self.w.new("max_pool2d", w, C.byref(pool)))
        self.own_strides = False
        for v in (w, ow, bw):
            self.w.release(v)

    def join(self):
        r = self.r
        sizes = self.sizes()
        d = r.randint(-len(sizes) - 1, len(sizes))
        parts = []
        for _ in range(r.randint(1, 4)):
            s = list(sizes)
            if s and -len(s) <= d < len(s) and r.random() < .7:
                s[d] = r.randint(0, 3)
            if s and r.random() < .05:
                s[r.randrange(len(s))] = 6
            if r.random() < .05:
                s = [0]
            parts.append(self.tensor(s, self.dtypes()[1] if r.random() < .3 else torch.float32))
        name = r.choice(["cat", "stack"])
        if name == "stack":
            s = tuple(parts[0][0].shape)
            parts = [p for p in parts if tuple(p[0].shape) == s or r.random() < .1]
        ts = [p[0] for p in parts]
        ws = (C.c_void_p * len(parts))(*[p[1].value for p in parts])
        self.own_strides = True
        self.judge(f"{name} {[tuple(t.shape) for t in ts]} {[str(t.dtype) for t in ts]} {d}",
                   lambda: getattr(torch, name)(ts, d), lambda: self.w.new(name, ws, len(parts), d))
        self.own_strides = False
        for p in parts:
            self.w.release(p[1])

    def overlap(self):
        r = self.r
        t = torch.arange(12.).reshape(3, 4) if r.random() < .5 else torch.arange(9.).reshape(3, 3)
        w = self.w.of(t)
        kind = r.randrange(4)
        n = self.w.new
        if kind == 0:
            a, b = t[1:], t[:-1]
            wa, wb = (n("slice", w, 0, C.c_int64(f), C.c_int64(f + 2), C.c_int64(1)) for f in (1, 0))
        elif kind == 1 and t.shape[0] == t.shape[1]:
            a, b, wa, wb = t, t.t(), n("slice", w, 0, C.c_int64(0), C.c_int64(9), C.c_int64(1)), n("t", w)
        elif kind == 2:
            a, b = t[:1].expand(3, t.shape[1]), t
            one = n("slice", w, 0, C.c_int64(0), C.c_int64(1), C.c_int64(1))
            wa, wb = n("expand", one, shape(a.shape)), w
        else:
            a, b = t[:2], t[1:]
            wa, wb = (n("slice", w, 0, C.c_int64(f), C.c_int64(f + 2), C.c_int64(1)) for f in (0, 1))
        def ours():
            self.w.check(self.w.lib.weir_add_(wa, wb))
            return n("clone", wa)
        self.judge(f"add_ where memory is shared, {kind}", lambda: a.add_(b), ours)

    only = ()  # names of cases; none: all

    def one(self):
        if self.only:
            return getattr(self, self.r.choice(self.only))()
        return self.r.choice([self.unary] * 3 + [self.factor] + [self.binary] * 6 + [self.reduce] * 4 + [self.product] * 3 +
                      [self.multinomial, self.alpha, self.choose, self.image, self.image, self.join, self.overlap] +
                              [self.variance, self.norm, self.counts] + [self.part, self.arrange, self.matrix] * 2 +
                              [self.function] * 4 + [self.ask, self.parameter, self.two, self.two, self.pair, self.pair] +
                              [self.powers, self.three, self.bounds] + [self.activation] * 3 +
                              [self.einsum, self.contraction, self.added, self.vectors] +
                              [self.attention, self.multihead, self.recurrent, self.cell, self.transformer, self.layer, self.convolution_layer] +
                              [self.running, self.sorting, self.middle, self.searching, self.counting] +
                              [self.slices, self.elements, self.numbers, self.listed, self.masks, self.made, self.bags] + [self.windows, self.adaptive, self.norms, self.distances, self.convolution, self.interpolation, self.classes, self.differences] +
                              [self.criterion, self.criterion, self.padded, self.upsampled, self.plain_layer, self.bag_layer, self.decoder, self.hooked, self.cast, self.normaliser, self.whole_channels])()


check_mixins(Calls)

# ---- promotion and random numbers

def result_types(weir):
    """All pairs of dtypes as tensors with and without dimensions, and as numbers."""
    count = bad = 0
    def ask(what, theirs, *arguments):
        nonlocal count, bad
        count += 1
        out = C.c_int()
        status = weir.lib.weir_result_type(C.byref(out), *arguments)
        want = torch.result_type(*theirs)
        if (status != 0) != (want in NO_DTYPE) or (not status and NUMBERS[want] != out.value):
            bad += 1
            print(f"result_type {what}: torch {want}, weir {out.value} {weir.lib.weir_error_message()}")
    for default in (torch.float32, torch.float64, torch.float16):
        torch.set_default_dtype(default)
        weir.check(weir.lib.weir_set_default_dtype(NUMBERS[default]))
        for a in DTYPES:
            for da in (torch.ones(2, dtype=a), torch.ones((), dtype=a)):
                wa = weir.of(da)
                for b in DTYPES:
                    for db in (torch.ones(2, dtype=b), torch.ones((), dtype=b)):
                        wb = weir.of(db)
                        ask(f"{a} {da.dim()} {b} {db.dim()}", (da, db), wa, wb, scalar(0))
                        weir.release(wb)
                for v in (True, 1, 1.5, 1j):
                    if default == torch.float32 or not isinstance(v, complex):
                        ask(f"{a} {da.dim()} {v}", (da, v), wa, None, scalar(v))
                weir.release(wa)
    torch.set_default_dtype(torch.float32)
    weir.check(weir.lib.weir_set_default_dtype(NUMBERS[torch.float32]))
    for a in DTYPES:
        for b in DTYPES:
            count += 1
            out = C.c_int()
            status = weir.lib.weir_promote_types(C.byref(out), NUMBERS[a], NUMBERS[b])
            want = torch.promote_types(a, b)
            if (status != 0) != (want in NO_DTYPE) or (not status and NUMBERS[want] != out.value):
                bad += 1
                print(f"promote_types {a} {b}: torch {want}, weir {out.value}")
    return count, bad


def refusals(run):
    """What random_ and its kin refuse."""
    g = None
    for dtype in DTYPES:
        t = torch.ones(2, dtype=dtype)
        for name, ours, arguments in (
                ("normal_", "normal_", (0., 1.)), ("normal_", "normal_", (0., -1.)), ("uniform_", "uniform_", (0., 1.)),
                ("uniform_", "uniform_", (1., 0.)), ("uniform_", "uniform_", (0., 1e6)), ("uniform_", "uniform_", (0., float("inf"))),
                ("random_", "random_", (0, 2)), ("random_", "random_", (3, 3)), ("random_", "random_", (0, 500)),
                ("random_", "random_", (-5, 50)), ("random_", "random_", (0, 500000)), ("bernoulli_", "bernoulli_", (.5,)),
                ("bernoulli_", "bernoulli_", (2.,))):
            w = run.w.of(t)
            c = [C.c_double(v) if isinstance(v, float) else C.c_int64(v) for v in arguments]
            run.call(f"{name} {arguments} of {dtype}", lambda: getattr(t.clone(), name)(*arguments),
                     lambda: run.w.check(getattr(run.w.lib, "weir_" + ours)(w, *c, g)))
            run.w.release(w)


def main():
    weir = Weir(sys.argv[1])
    weir.lib.weir_set_grad_enabled(False)  # layers' parameters require gradients, and are filled in place
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    steps, bad = result_types(weir)
    run = Calls(weir, seed)
    run.only = sys.argv[4:]
    refusals(run)
    torch.manual_seed(seed)
    for _ in range(count):
        run.one()
        if run.bad > 400:
            break
    steps += run.steps
    bad += run.bad
    print(f"{steps} calls, {bad} unlike torch {torch.__version__}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

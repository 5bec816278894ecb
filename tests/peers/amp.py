"""Autocast and the gradient scaler beside PyTorch's.

    python tests/peers/amp.py LIBWEIR [CALLS [SEED]]

On the cpu every call is made under torch.autocast("cpu") and under weir_autocast_enter(): dtypes, shapes and elements of the
results must be equal, and what the one refuses the other must. On CUDA (the software device, where it is on the library
path) the reference is what torch's header of autocast lists (ATen/autocast_mode.h): operands cast by the policy it has for
the operation, then torch's operation on the cpu. A model of two layers is differentiated under autocast by both. Scalers go
through random iterations, some of whose gradients are infinite or NaN. Ends with a line that counts the calls, exit status 1
where they differ.
"""
import ctypes as C
import glob
import os
import re
import sys
import warnings

import torch
import torch.nn.functional as F

from ops import Calls
from tensors import NUMBERS, Device, Failed, Options, Weir, scalar, shape

warnings.filterwarnings("ignore")
f32, f64, f16, bf16, i64 = torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64
D, I = C.c_double, C.c_int64
MEAN = 0


class Pooling(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 3), ("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("ceil_mode", C.c_bool), ("count_exclude_pad", C.c_bool), ("divisor_override", C.c_int64)]


class Autocast(C.Structure):
    _fields_ = [("enabled", C.c_bool * 2), ("dtype", C.c_int * 2), ("flags", C.c_bool * 3)]


class How(C.Structure):
    _fields_ = [("dtype", C.c_int), ("disabled", C.c_bool), ("uncached", C.c_bool)]


class Scaling(C.Structure):
    _fields_ = [("init_scale", D), ("growth_factor", D), ("backoff_factor", D), ("growth_interval", I), ("disabled", C.c_bool)]


def rows():
    """(Weir's function, sizes of its tensors, its other arguments, torch's function of the tensors, its name in torch's
    lists)."""
    out = []

    def row(name, sizes, function, *more, listed=None):
        out.append((name, sizes, more, function, listed or name))

    v, m, b3 = [(4,)], [(3, 4)], [(2, 3, 4), (2, 4, 5)]
    for name in ("exp log log2 log10 log1p expm1 reciprocal rsqrt sinh cosh tan asin acos erfinv sqrt sin tanh neg abs relu "
                 "sigmoid erf atan floor sum mean prod amax max").split():
        row(name, m, getattr(torch, name))
    row("square", m, torch.square, listed="pow")
    row("softplus", m, F.softplus, D(1), D(20))
    for name in ("gelu",):
        row(name, m, F.gelu, b"none")
    for name in "silu mish hardswish logsigmoid".split():
        row(name, m, getattr(F, name))
    for name in "add sub mul div maximum minimum atan2 pow".split():
        row(name, m + m, getattr(torch, name))
    row("pow_scalar", m, lambda a: torch.pow(a, 2.5), scalar(2.5), listed="pow")
    row("scalar_pow", m, lambda a: torch.pow(2.5, a), None, listed="pow")
    for name in ("addcmul", "addcdiv"):
        row(name, m * 3, getattr(torch, name), scalar(1.0))
    for name in ("sum", "prod"):
        row(name + "_dim", m, lambda a, name=name: getattr(torch, name)(a, 1), 1, False, listed=name)
    row("sum_dims", m, lambda a: a.sum((0, 1)), (C.c_int * 2)(0, 1), 2, False, listed="sum")
    for name in ("cumsum", "cumprod", "softmax", "log_softmax"):
        row(name, m, lambda a, name=name: getattr(torch, name)(a, 1), 1)
    row("logsumexp", m, lambda a: a.logsumexp(1), 1, False)
    row("norm", m, torch.norm, D(2))
    row("norm_dim", m, lambda a: torch.norm(a, 3, 1), D(3), 1, False, listed="norm")
    row("var", m, torch.var, D(1))
    row("mm", [(3, 4), (4, 5)], torch.mm)
    row("matmul", b3, torch.matmul)
    row("matmul", v + v, torch.matmul)
    row("bmm", b3, torch.bmm)
    row("mv", m + v, torch.mv)
    row("dot", v + v, torch.dot)
    row("outer", v + v, torch.outer)
    row("inner", m + m, torch.inner, listed="tensordot")
    row("tensordot", [(3, 4), (4, 5)], lambda a, b: torch.tensordot(a, b, 1), 1)
    row("addmm", [(5,), (3, 4), (4, 5)], torch.addmm, D(1), D(1))
    row("addmv", [(3,), (3, 4), (4,)], torch.addmv, D(1), D(1))
    row("addr", [(3, 4), (3,), (4,)], torch.addr, scalar(1), scalar(1))
    row("addbmm", [(3, 5)] + b3, torch.addbmm, D(1), D(1))
    row("baddbmm", [(2, 3, 5)] + b3, torch.baddbmm, D(1), D(1))
    row("linear", [(3, 4), (5, 4), (5,)], F.linear)
    row("linear", [(2, 3, 4), (5, 4)], F.linear, None)
    row("matrix_power", [(4, 4)], lambda a: torch.linalg.matrix_power(a, 3), I(3), listed="matmul")
    row("matrix_power", [(4, 4)], lambda a: torch.linalg.matrix_power(a, 1), I(1), listed="none")
    row("cdist", [(3, 4), (5, 4)], torch.cdist, D(2))
    row("cross", [(4, 3), (4, 3)], lambda a, b: torch.cross(a, b, 1), 1)
    row("conv1d", [(2, 3, 6), (4, 3, 3), (4,)], F.conv1d, None)
    row("conv2d", [(2, 3, 6, 6), (4, 3, 3, 3), (4,)], F.conv2d, None)
    row("conv3d", [(1, 2, 4, 4, 4), (3, 2, 3, 3, 3), (3,)], F.conv3d, None)
    row("conv_transpose1d", [(2, 3, 6), (3, 4, 3), (4,)], F.conv_transpose1d, None)
    row("conv_transpose2d", [(2, 3, 6, 6), (3, 4, 3, 3), (4,)], F.conv_transpose2d, None)
    row("conv_transpose3d", [(1, 2, 4, 4, 4), (2, 3, 3, 3, 3), (3,)], F.conv_transpose3d, None)
    row("prelu", [(2, 3, 4), (3,)], F.prelu)
    row("scaled_dot_product_attention", [(2, 2, 3, 4)] * 3, F.scaled_dot_product_attention, None)
    row("layer_norm", [(3, 4), (4,), (4,)], lambda a, w, b: F.layer_norm(a, (4,), w, b), "layer", listed="layer_norm")
    row("rms_norm", [(3, 4), (4,)], lambda a, w: F.rms_norm(a, (4,), w, 1e-6), "rms", listed="rms_norm")
    row("group_norm", [(2, 4, 3), (4,), (4,)], lambda a, w, b: F.group_norm(a, 2, w, b), "group", listed="group_norm")
    row("cosine_similarity", m + m, F.cosine_similarity, 1, D(1e-8))
    row("pairwise_distance", m + m, F.pairwise_distance, D(2), D(1e-6), False, listed="norm_of_difference")
    row("normalize", m, F.normalize, D(2), 1, D(1e-12), listed="norm_of_quotient")
    for name in "mse_loss l1_loss".split():
        row(name, m + m, getattr(F, name), MEAN)
    row("smooth_l1_loss", m + m, F.smooth_l1_loss, MEAN, D(1))
    row("huber_loss", m + m, F.huber_loss, MEAN, D(1))
    row("kl_div", m + m, F.kl_div, MEAN, False)
    row("soft_margin_loss", m + m, F.soft_margin_loss, MEAN)
    row("hinge_embedding_loss", m + m, F.hinge_embedding_loss, D(1), MEAN)
    row("margin_ranking_loss", m * 3, F.margin_ranking_loss, D(0), MEAN)
    row("triplet_margin_loss", m * 3, F.triplet_margin_loss, D(1), D(2), MEAN)
    row("binary_cross_entropy_with_logits", m + m, F.binary_cross_entropy_with_logits, None, None, MEAN)
    row("binary_cross_entropy", m + m, lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()), "bce", listed="banned")
    row("cross_entropy", m + m, F.cross_entropy, None, listed="nll_loss")
    row("avg_pool2d", [(2, 3, 4, 4)], lambda a: F.avg_pool2d(a, 2), 2)
    row("avg_pool3d", [(2, 3, 4, 4, 4)], lambda a: F.avg_pool3d(a, 2), 3)
    row("max_pool3d", [(2, 3, 4, 4, 4)], lambda a: F.max_pool3d(a, 2), 3)
    row("adaptive_avg_pool3d", [(2, 3, 4, 4, 4)], lambda a: F.adaptive_avg_pool3d(a, 2), (C.c_int64 * 3)(2, 2, 2))
    row("adaptive_avg_pool2d", [(2, 3, 4, 4)], lambda a: F.adaptive_avg_pool2d(a, 2), (C.c_int64 * 2)(2, 2))
    row("pad", [(2, 3, 4)], lambda a: F.pad(a, (1, 1), "reflect"), (C.c_int64 * 2)(1, 1), 2, 1, scalar(0))
    row("pad", [(2, 3, 4)], lambda a: F.pad(a, (1, 1), "replicate"), (C.c_int64 * 2)(1, 1), 2, 2, scalar(0))
    row("pad", [(2, 3, 4)], lambda a: F.pad(a, (1, 1)), (C.c_int64 * 2)(1, 1), 2, 0, scalar(0))
    for name in "inv cholesky svdvals eigvalsh".split():
        row(name, [(3, 3)], lambda a, name=name: getattr(torch.linalg, name)(a), *([False] if name in ("cholesky", "eigvalsh") else []))
    row("solve", [(3, 3), (3, 2)], torch.linalg.solve)
    row("trace", [(3, 3)], torch.trace)
    row("quantile", m, lambda a: torch.quantile(a, .3), D(.3))
    row("cat", m + m, lambda *t: torch.cat(t), "list", 0)
    row("stack", m + m + m, lambda *t: torch.stack(t), "list", 0)
    row("hstack", m + m, lambda *t: torch.hstack(t), "list", listed="cat")
    row("multi_dot", [(3, 4), (4, 5), (5, 2)], lambda *t: torch.linalg.multi_dot(t), "list", listed="linalg_multi_dot")
    row("einsum", [(3, 4), (4, 5)], lambda *t: torch.einsum("ij,jk->ik", *t), b"ij,jk->ik", listed="einsum")
    row("einsum", [(3, 4)], lambda *t: torch.einsum("ij->ji", *t), b"ij->ji", listed="einsum")
    return out


class Amp(Calls):
    def __init__(self, weir, seed):
        super().__init__(weir, seed)
        self.rows = rows()
        self.policy = policies()
        self.own_strides = True

    def call(self, what, theirs, ours):
        """Sentences are ops.py's affair."""
        self.steps += 1
        a = b = wrong = sentence = None
        if self.under:
            theirs, ours = self.peers_scope(theirs, self.under), self.scope(ours, self.under, 1)
        try:
            a = theirs()
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as e:
            wrong = str(e)
        try:
            b = ours()
        except Failed as e:
            sentence = str(e)
        lacking = wrong and "could not create a primitive" in wrong  # oneDNN has none for this processor
        if lacking or (wrong is None) != (sentence is None):
            if not lacking:
                self.complain(what + ": one fails", wrong or a, sentence)
            self.end(b if isinstance(b, (list, tuple)) else [b])
            return None
        return None if wrong is not None else (a, b)

    def operands(self, sizes, listed):
        r = self.r
        kinds = r.choice([[f32], [f32], [f16], [bf16], [f32, f16], [f32, bf16], [f32, f64], [f64], [i64], [f16, bf16]])
        if "loss" in listed or "binary" in listed:  # of integers, and of float32 with float64, is losses.py's affair
            kinds = [f32, f16, bf16] if r.random() < .9 else [f64]
        if "conv" in listed and f64 in kinds:  # whether a bias may be of another dtype is the kernel's affair
            kinds = [f64]
        out = []
        for s in sizes:
            t = torch.rand(s, dtype=f64).mul(.8).add(.1)
            if listed in ("inv", "cholesky", "svdvals", "eigvalsh", "solve") and s[-1:] == s[-2:-1]:
                t = t + t.mT + 4 * torch.eye(s[-1], dtype=f64)
            t = t.to(r.choice(kinds))
            out.append(t)
        return out

    def arguments(self, row, ours):
        """The call of Weir's function."""
        name, sizes, more, _, _ = row
        w = self.w
        if more[:1] == ("list",):
            return lambda: w.new(name, (C.c_void_p * len(ours))(*[o.value for o in ours]), len(ours), *more[1:])
        if name == "einsum":
            return lambda: w.new(name, more[0], (C.c_void_p * len(ours))(*[o.value for o in ours]), len(ours))
        if name == "scalar_pow":
            return lambda: w.new(name, scalar(2.5), ours[0])
        if name in ("layer_norm", "rms_norm"):
            return lambda: w.new(name, ours[0], shape([4]), *ours[1:], D(1e-5 if name == "layer_norm" else 1e-6))
        if name == "group_norm":
            return lambda: w.new(name, ours[0], I(2), *ours[1:], D(1e-5))
        if name == "binary_cross_entropy":
            return self.bce(ours)
        if "pool" in name and isinstance(more[0], int):
            p = Pooling((C.c_int64 * 3)(*[2] * more[0]), (C.c_int64 * 3)(*[2] * more[0]), (C.c_int64 * 3)(),
                        (C.c_int64 * 3)(1, 1, 1))
            return lambda: w.new(name, ours[0], C.byref(p))
        return lambda: w.new(name, *ours, *more)

    def bce(self, ours):
        def run():
            a = self.w.new("sigmoid", ours[0])
            b = self.w.new("sigmoid", ours[1])
            try:
                return self.w.new("binary_cross_entropy", a, b, None, MEAN)
            finally:
                self.w.release(a)
                self.w.release(b)
        return run

    under = None

    def scope(self, call, lower, device):
        def run():
            scope = Autocast()
            self.w.check(self.w.lib.weir_autocast_enter(C.byref(scope), device, C.byref(How(NUMBERS[lower]))))
            try:
                return call()
            finally:
                self.w.lib.weir_autocast_exit(C.byref(scope))
        return run

    def peers_scope(self, call, lower):
        def run():
            with torch.autocast("cpu", lower):
                return call()
        return run

    def modules(self):
        """Those of sequence.py, which are made of listed operations; but for transformers, whose fused kernel torch takes
        on the cpu under autocast too, where it knows no list."""
        self.under, self.inner = bf16, 2.0**-7
        self.r.choice([self.recurrent, self.cell, self.multihead])()
        self.under, self.own_strides = None, True

    def one(self):
        r = self.r
        row = r.choice(self.rows)
        lower = r.choice([bf16, f16])
        cuda = self.cuda and r.random() < .5
        theirs = self.operands(row[1], row[0])
        ours = [self.w.of(t) for t in theirs]
        if cuda:
            ours = [self.moved(o, "to", C.byref(Options(device=Device(2, 0)))) for o in ours]
        what = f"{'cuda' if cuda else 'cpu'} {row[0]}{row[2]} of {[(tuple(t.shape), t.dtype) for t in theirs]} under {lower}"
        run = self.arguments(row, ours)

        weir = self.scope(run, lower, 2 if cuda else 1)
        peer = (lambda: self.by_policy(row, theirs, lower)) if cuda else self.peers_scope(lambda: row[3](*theirs), lower)

        if not (cuda and self.other_reference(row[0], theirs)):
            self.measured(row, what, peer, weir, theirs, lower)
        for o in ours:
            self.w.release(o)

    def other_reference(self, name, theirs):
        """What the cpu's torch, the reference for CUDA, has no kernel of, or the device has none of."""
        kinds = {t.dtype for t in theirs}
        return (i64 in kinds or name in ("inv", "cholesky", "svdvals", "eigvalsh", "solve", "quantile") or
                name in ("avg_pool3d", "max_pool3d", "adaptive_avg_pool3d") and kinds != {f32})

    def measured(self, row, what, peer, weir, theirs, lower):
        scale = torch.tensor(float(sum(t.double().abs().sum() for t in theirs)))
        narrow = [t.dtype for t in theirs if t.dtype in (f16, bf16)] + [lower]
        # products and sums within may be rounded to the narrow dtype in another order
        inner = 2.0**-7 if bf16 in narrow else 2.0**-10
        if all(t.dtype == f64 for t in theirs):
            inner = 0
        self.inner = inner
        self.judge(what, peer, weir, scale, 4)

    def far(self, t, mine, scale, several):
        if t.dtype in (f32, f64) and self.inner:
            # a wide result of narrow operands
            x, y = t.double(), mine.double()
            return bool(((x - y).abs() > 4 * self.inner * torch.maximum(x.abs(), torch.tensor(1. if self.under else .1)))[x.isfinite()].any())
        return super().far(t, mine, torch.maximum(scale, torch.tensor(0.)) if scale is not None else None, several)

    # ---- CUDA

    def by_policy(self, row, theirs, lower):
        name, listed = row[0], row[4]
        eligible = [t.is_floating_point() and t.dtype != f64 for t in theirs]
        if listed == "banned":
            raise RuntimeError("unsafe to autocast")
        if listed == "norm_of_difference":
            return torch.norm((theirs[0] - theirs[1] + 1e-6).to(self.single(theirs)), 2, -1)
        way = "fp32" if listed == "norm_of_quotient" else self.policy.get(listed)
        if way == "lower":
            to = [lower if e else t.dtype for e, t in zip(eligible, theirs)]
        elif way == "fp32":
            to = [f32 if e else t.dtype for e, t in zip(eligible, theirs)]
        elif way == "promote":
            kinds = {t.dtype for e, t in zip(eligible, theirs) if e}
            widest = f32 if f32 in kinds else lower
            if f32 not in kinds and kinds - {lower} or self.met_early(eligible, theirs, lower):
                raise RuntimeError("Unexpected floating ScalarType")
            to = [widest if e else t.dtype for e, t in zip(eligible, theirs)]
        else:
            to = [t.dtype for t in theirs]
        return row[3](*[t.to(d) for t, d in zip(theirs, to)])

    def met_early(self, eligible, theirs, lower):
        now = lower
        for e, t in zip(eligible, theirs):
            if e and t.dtype == f32:
                now = f32
            elif e and now != f32 and t.dtype != lower:
                return True
        return False

    def single(self, theirs):
        d = torch.result_type(*theirs)
        return f32 if d in (f16, bf16) else d


def policies():
    """torch's lists for CUDA: name -> lower, fp32, promote."""
    text = open(glob.glob(os.path.join(os.path.dirname(torch.__file__), "include/ATen/autocast_mode.h"))[0]).read()
    out = {}
    for macro, way in (("LOWER_PRECISION_FP", "lower"), ("FP32", "fp32"), ("FP32_SET_OPT_DTYPE", "fp32"), ("PROMOTE", "promote")):
        body = re.search(r"#define AT_FORALL_%s\(_\)(.*?)\n\n" % macro, text, re.S).group(1)
        for name in re.findall(r"_\((\w+)", body):
            out[name] = way
    out["norm"] = "fp32"  # AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE
    return out


# ---- derivatives

def layers(run, lower):
    """x -> linear -> relu -> linear -> cross_entropy; weights' gradients in their own dtype, twice through kept casts."""
    w = run.w
    parameters = [torch.randn(6, 4) * .3, torch.randn(6) * .1, torch.randn(3, 6) * .3, torch.randn(3) * .1]
    x, target = torch.randn(5, 4), torch.randint(0, 3, (5,))
    mine = [w.of(p) for p in parameters]
    parameters = [p.requires_grad_() for p in parameters]
    w.lib.weir_set_grad_enabled(True)
    for p in mine:
        w.check(w.lib.weir_requires_grad_(p, True))
    wx, wt = w.of(x), w.of(target)
    scope = Autocast()
    w.check(w.lib.weir_autocast_enter(C.byref(scope), 1, C.byref(How(NUMBERS[lower]))))
    made = []
    for _ in range(2):
        h = w.new("linear", wx, mine[0], mine[1])
        g = w.new("relu", h)
        y = w.new("linear", g, mine[2], mine[3])
        loss = w.new("cross_entropy", y, wt, None)
        w.check(w.lib.weir_backward(loss, None, False))
        made += [h, g, y, loss]
    w.lib.weir_autocast_exit(C.byref(scope))
    with torch.autocast("cpu", lower):
        for _ in range(2):
            theirs = F.cross_entropy(F.linear(F.linear(x, parameters[0], parameters[1]).relu(), parameters[2], parameters[3]), target)
            theirs.backward()
    w.lib.weir_set_grad_enabled(False)
    w.lib.weir_tensor_grad.restype = C.c_void_p
    run.inner = 2.0**-7 if lower == bf16 else 2.0**-10
    for p, m in zip(parameters, mine):
        run.steps += 1
        grad = C.c_void_p(w.lib.weir_tensor_grad(m))
        run.judge_one(f"gradient of {tuple(p.shape)} under {lower}", p.grad, grad, torch.tensor(1.), 4, None)
    for t in made + mine + [wx, wt]:
        w.release(t)


# ---- scalers

def scalers(run):
    """Iterations of one or two optimizers; gradients are put there by hand."""
    w, r = run.w, run.r
    o = dict(init_scale=2.0**r.randint(-3, 20) * r.choice([1, 1.1]), growth_factor=r.choice([2., 1.5, 1.001]),
             backoff_factor=r.choice([.5, .3]), growth_interval=r.randint(1, 4))
    theirs = torch.amp.GradScaler("cpu", **o)
    mine = w.new("grad_scaler_new", C.byref(Scaling(o["init_scale"], o["growth_factor"], o["backoff_factor"], o["growth_interval"])))
    w.lib.weir_grad_scaler_get_scale.restype = D
    dtypes = [r.choice([f32, f32, f64, bf16, f16] if r.random() < .2 else [f32, f64, bf16]) for _ in range(3)]
    values = [torch.randn(3).to(d) for d in dtypes]
    ps = [v.clone().requires_grad_() for v in values]
    ws = [w.of(v) for v in values]
    w.lib.weir_set_grad_enabled(True)
    for p in ws:
        w.check(w.lib.weir_requires_grad_(p, True))
    count = r.choice([1, 2])
    parts = [[0, 1, 2]] if count == 1 else [[0], [1, 2]]
    optimizers = [torch.optim.SGD([ps[i] for i in part], .1) for part in parts]
    ours = []
    for part in parts:
        ours.append(w.new("optimizer_create", 0, (C.c_void_p * len(part))(*[ws[i].value for i in part]), len(part), None))
        options = (C.c_double * 32)()
        w.check(w.lib.weir_optimizer_get_options(options, ours[-1], 0))
        options[0] = .1
        w.check(w.lib.weir_optimizer_set_options(ours[-1], 0, options))
    for step in range(r.randint(1, 12)):
        iteration(run, step, theirs, mine, ps, ws, optimizers, ours)
        run.steps += 1
        if theirs.get_scale() != w.lib.weir_grad_scaler_get_scale(mine):
            run.complain(f"scale after {step} of {o}", theirs.get_scale(), w.lib.weir_grad_scaler_get_scale(mine))
        tracker = I()
        w.lib.weir_grad_scaler_state(None, C.byref(tracker), mine)
        if theirs.state_dict()["_growth_tracker"] != tracker.value:
            run.complain(f"tracker after {step} of {o}", theirs.state_dict(), tracker.value)
        for p, q in zip(ps, ws):
            p, run.inner = p.detach(), 0
            if run.far(p, w.elements(q, p.dtype), torch.tensor(1.), 8):
                run.complain(f"parameters after {step} of {o} {dtypes}", p, w.elements(q, p.dtype))
    w.lib.weir_set_grad_enabled(False)
    for x in ours:
        w.lib.weir_optimizer_release(x)
    w.lib.weir_grad_scaler_release(mine)
    for q in ws:
        w.release(q)


def iteration(run, step, theirs, mine, ps, ws, optimizers, ours):
    w, r = run.w, run.r

    def both(what, a, b):
        wrong = sentence = None
        try:
            a()
        except (RuntimeError, ValueError, AssertionError) as e:
            wrong = str(e)
        try:
            b()
        except Failed as e:
            sentence = str(e)
        if wrong != sentence:
            run.complain(f"scaler {what}", wrong, sentence)
        return wrong is None

    def scaled():
        t = w.of(torch.ones(()))
        s = w.new("grad_scaler_scale", mine, t)
        w.release(t)
        w.release(s)
    if r.random() < .9 or not step:
        theirs.scale(torch.ones(()))
        if r.random() < .95:
            scaled()
        else:
            scaled()
    bad = r.choice([None, None, None, float("inf"), float("nan"), -float("inf")])
    for i, (p, q) in enumerate(zip(ps, ws)):
        g = torch.randn(3).to(p.dtype) * theirs.get_scale()
        if bad is not None and r.random() < .4:
            g[r.randrange(3)] = bad
        p.grad = g.clone() if r.random() < .9 else None
        grad = w.of(g) if p.grad is not None else None
        w.check(w.lib.weir_tensor_set_grad(q, grad))
    for o, m in zip(optimizers, ours):
        if r.random() < .3:
            both("unscale_", lambda: theirs.unscale_(o), lambda: w.check(w.lib.weir_grad_scaler_unscale_(mine, m)))
        if r.random() < .05:
            both("unscale_", lambda: theirs.unscale_(o), lambda: w.check(w.lib.weir_grad_scaler_unscale_(mine, m)))
        if r.random() < .95:
            both("step", lambda: theirs.step(o), lambda: w.check(w.lib.weir_grad_scaler_step(mine, m)))
        if r.random() < .05:
            both("step", lambda: theirs.step(o), lambda: w.check(w.lib.weir_grad_scaler_step(mine, m)))
    if r.random() < .1:
        both("update", lambda: theirs.update(16.), lambda: w.check(w.lib.weir_grad_scaler_update_to(mine, D(16))))
    elif not both("update", theirs.update, lambda: w.check(w.lib.weir_grad_scaler_update(mine))):
        both("update", lambda: theirs.update(16.), lambda: w.check(w.lib.weir_grad_scaler_update_to(mine, D(16))))


def main():
    weir = Weir(sys.argv[1])
    weir.lib.weir_set_grad_enabled(False)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    torch.manual_seed(seed)
    run = Amp(weir, seed)
    weir.lib.weir_cuda_is_available.restype = C.c_bool
    run.cuda = weir.lib.weir_cuda_is_available()
    for i in range(count):
        run.one()
        if i % 4 == 0:
            run.modules()
        if i % 20 == 0:
            layers(run, run.r.choice([bf16, f16]))
            scalers(run)
        if run.bad > 200:
            break
    print(f"{run.steps} calls{' on the cpu and CUDA' if run.cuda else ''}, {run.bad} unlike torch {torch.__version__}")
    sys.exit(run.bad > 0)


if __name__ == "__main__":
    main()

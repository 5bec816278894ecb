"""The part of ops.py about losses.h. A mixin of its Calls."""
import ctypes as C

import torch
import torch.nn.functional as F

REDUCTIONS = ["mean", "sum", "none", "batchmean"]


class ClassOptions(C.Structure):
    _fields_ = [("weight", C.c_void_p), ("ignore", C.c_bool), ("ignore_index", C.c_int64), ("reduction", C.c_int),
                ("label_smoothing", C.c_double)]


class Losses:
    def classes(self):
        r = self.r
        name = r.choice(["nll_loss", "cross_entropy", "cross_entropy"])
        dtype = r.choice([torch.float32] * 3 + [torch.float64])
        sizes = [r.randint(1, 3)] * (r.random() < .85) + [r.randint(1, 5)]
        if len(sizes) > 1:
            sizes += [r.randint(1, 4) for _ in range(r.choice([0, 0, 1, 2, 3]))]
        t, w = self.tensor(sizes, dtype, small=True)
        sizes = list(t.shape)
        n = sizes[1] if len(sizes) > 1 else sizes[0]
        places = sizes[:1] + sizes[2:] if len(sizes) > 1 else []
        if r.random() < .05 and places:
            places[0] += 1
        target = torch.randint(0, n, places)
        if r.random() < .3:
            target = torch.where(torch.rand(places) < .3, torch.tensor(-100), target)
        if r.random() < .03:
            target = target + 7
        target = target.to(r.choice([torch.int64] * 20 + [torch.int32, torch.float32]))
        if name == "cross_entropy" and r.random() < .2:
            target = torch.rand(sizes, dtype=dtype)
        ignore = r.choice([-100, -100, 0, 1]) if target.dtype == torch.int64 else -100
        weight, ww = self.pick([n], dtype, .4)
        reduction, smooth = r.choice([0, 0, 1, 2]), r.choice([0, 0, .1, .5]) if name == "cross_entropy" else 0.
        o = ClassOptions(ww, ignore != -100, ignore, reduction, smooth)
        wt = self.w.of(target)
        what = f"{name} of {tuple(sizes)} {dtype} target {tuple(target.shape)} {target.dtype} ignore {ignore} weight {weight is not None} {REDUCTIONS[reduction]} smooth {smooth}"
        more = {"label_smoothing": smooth} if name == "cross_entropy" else {}
        wide = weight is not None and weight.dtype != dtype  # what they weigh is of the shorter dtype
        self.own_strides = True
        self.judge(what, lambda: getattr(F, name)(t, target, weight, ignore_index=ignore, reduction=REDUCTIONS[reduction], **more),
                   lambda: self.w.new(name, w, wt, C.byref(o)), (self.largest(t) + 3) * t.numel() * 3, 2.0**33 if wide else 16)
        self.own_strides = False
        self.free(w, ww, wt)

    def differences(self):
        r = self.r
        name = r.choice(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                         "binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss", "hinge_embedding_loss",
                         "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss"])
        dtype = r.choice([torch.float32] * 3 + [torch.float64])
        sizes = [r.randint(1, 5) for _ in range(2 if name.startswith(("cos", "trip")) else r.randint(0, 3))]
        (t, w), (o, wo) = [self.tensor(sizes, dtype, small=True) for _ in "ab"]
        if name in ("binary_cross_entropy", "kl_div"):
            t, o = t.sigmoid(), o.sigmoid()
        if name == "binary_cross_entropy_with_logits":
            o = o.sigmoid()
        if name in ("soft_margin_loss", "hinge_embedding_loss"):
            o = o.sign()
        if list(t.shape) != list(o.shape):
            return self.free(w, wo)
        self.free(w, wo)
        w, wo = self.w.of(t), self.w.of(o)
        reduction = r.choice([0, 1, 2])
        x, d = r.choice([1., .5, 2.]), REDUCTIONS[reduction]
        f, n, c = getattr(F, name), self.w.new, C.c_double(x)
        what = f"{name} of {tuple(sizes)} {dtype} {x} {d}"
        s = torch.randint(0, 2, sizes[:1] if name.startswith("cos") else sizes).to(dtype) * 2 - 1
        ws = self.w.of(s)
        runs = {
            "mse_loss": (lambda: f(t, o, reduction=d), lambda: n(name, w, wo, reduction)),
            "l1_loss": (lambda: f(t, o, reduction=d), lambda: n(name, w, wo, reduction)),
            "smooth_l1_loss": (lambda: f(t, o, reduction=d, beta=x), lambda: n(name, w, wo, reduction, c)),
            "huber_loss": (lambda: f(t, o, reduction=d, delta=x), lambda: n(name, w, wo, reduction, c)),
            "binary_cross_entropy": (lambda: f(t, o, reduction=d), lambda: n(name, w, wo, None, reduction)),
            "binary_cross_entropy_with_logits": (lambda: f(t, o, pos_weight=o, reduction=d), lambda: n(name, w, wo, None, wo, reduction)),
            "kl_div": (lambda: f(t, o, reduction=d), lambda: n(name, w, wo, reduction, False)),
            "soft_margin_loss": (lambda: f(t, o, reduction=d), lambda: n(name, w, wo, reduction)),
            "hinge_embedding_loss": (lambda: f(t, o, x, reduction=d), lambda: n(name, w, wo, c, reduction)),
            "margin_ranking_loss": (lambda: f(t, o, s, x, reduction=d), lambda: n(name, w, wo, ws, c, reduction)),
            "cosine_embedding_loss": (lambda: f(t, o, s, .2, reduction=d), lambda: n(name, w, wo, ws, C.c_double(.2), reduction)),
            "triplet_margin_loss": (lambda: f(t, o, -o, x, reduction=d), lambda: self.negated(name, w, wo, c, reduction)),
        }[name]
        self.own_strides = True
        self.judge(what, *runs, (self.largest(t) + self.largest(o) + 1) ** 2 * max(1, t.numel()), 16)
        self.own_strides = False
        self.free(w, wo, ws)

    def negated(self, name, w, wo, c, reduction):
        other = self.w.new("neg", wo)
        try:
            return self.w.new(name, w, wo, other, c, C.c_double(2), reduction)
        finally:
            self.w.release(other)

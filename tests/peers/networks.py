"""The part of ops.py about nn.h: pooling, normalisation, convolutions, interpolation, losses. A mixin of its Calls.

Names that are put together here: avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool3d, these and max_pool2d
_with_indices; adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
adaptive_max_pool3d; conv1d conv3d conv_transpose1d conv_transpose2d conv_transpose3d.
"""
import ctypes as C

import torch
import torch.nn.functional as F

from tensors import shape

FLOATS = [torch.float32] * 4 + [torch.float64, torch.float16, torch.bfloat16]
ANY = FLOATS * 3 + [torch.int64, torch.uint8, torch.int32, torch.bool]


class PoolOptions(C.Structure):
    _fields_ = [("kernel", C.c_int64 * 3), ("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("ceil_mode", C.c_bool), ("exclude_pad", C.c_bool), ("divisor_override", C.c_int64)]


class ConvOptions(C.Structure):
    _fields_ = [("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("output_padding", C.c_int64 * 3), ("groups", C.c_int64), ("same", C.c_bool)]


class Interpolation(C.Structure):
    _fields_ = [("size", C.c_int64 * 3), ("scale", C.c_double * 3), ("mode", C.c_int), ("align_corners", C.c_bool),
                ("recompute", C.c_bool)]


MODES = ["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"]


class BatchNorm(C.Structure):
    _fields_ = [("training", C.c_bool), ("momentum", C.c_double), ("eps", C.c_double)]


def three(values):
    return (C.c_int64 * 3)(*values)


class Networks:
    def images(self, axes, dtype, most=9):
        """An input of so many axes, seldom of another number."""
        r = self.r
        lead = [r.choice([0, 1, 2, 3])] if r.random() < .7 else []
        sizes = lead + [r.choice([1, 2, 3, 3, 0 if r.random() < .1 else 2])]
        sizes += [r.randint(0 if r.random() < .02 else 1, most) for _ in range(axes)]
        if r.random() < .02:
            sizes = sizes[1:]
        if r.random() < .02:
            sizes = [1] + sizes
        return self.tensor(sizes, dtype, small=True)

    def windows(self):
        """Pools with windows of one size."""
        r = self.r
        axes = r.choice([1, 2, 2, 3])
        most, places = r.random() < .6, r.random() < .5
        if most and not places and axes == 2:
            places = True
        dtype = r.choice(ANY)
        if axes == 3 and not most and dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32  # torch's cpu has no such kernel
        t, w = self.images(axes, dtype, 9 if axes < 3 else 6)
        if axes == 3:
            t, w = t.contiguous(), self.moved(w, "contiguous")
        odd = r.random() < .1
        kernel = [r.randint(-1 if odd else 1, 4) for _ in range(axes)]
        stride = [r.choice([0, 1, 2, 3] + [-1] * odd) for _ in range(axes)]
        pad = [r.choice([0, 0, 1, 2 if odd else 0]) if k > 1 else 0 - (odd and r.random() < .2) for k in kernel]
        dilation = [r.choice([0, 1, 1, 2] + [-1] * odd) if most else 1 for _ in range(axes)]
        ceil, inside = r.random() < .4, r.random() < .5
        divisor = r.choice([0, 0, 0, 3, -2]) if not most and axes > 1 else 0
        o = PoolOptions(three(kernel), three(stride), three(pad), three(dilation), ceil, not inside, divisor)
        s = [v or k for v, k in zip(stride, kernel)]
        d = [v or 1 for v in dilation]
        name = f"{'max' if most else 'avg'}_pool{axes}d" + ("_with_indices" if most and places else "")
        what = (f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} kernel {kernel} stride {s} pad {pad} dilation {d} "
                f"ceil {ceil} include {inside} divisor {divisor}")
        self.own_strides = True
        if most:
            def theirs():
                return getattr(torch, f"max_pool{axes}d")(t, kernel, s, pad, d, ceil) if not places else getattr(
                    torch.nn.functional, f"max_pool{axes}d_with_indices")(t, kernel, s, pad, d, ceil)
            ours = (lambda: self.pair_of(name, w, C.byref(o))) if places else (lambda: self.w.new(name, w, C.byref(o)))
            self.judge(what, theirs, ours)
        else:
            more = (divisor or None,) if axes > 1 else ()
            self.judge(what, lambda: getattr(F, name)(t, kernel, s, pad, ceil, inside, *more),
                       lambda: self.w.new(name, w, C.byref(o)), several=4, scale=self.largest(t))
        self.own_strides = False
        self.w.release(w)

    def adaptive(self):
        r = self.r
        axes = r.choice([1, 2, 2, 3])
        most = r.random() < .5
        t, w = self.images(axes, r.choice(ANY))
        size = [r.choice([1, 1, 2, 3, 5, 7, 0 if r.random() < .1 else 1, -2 if r.random() < .05 else 4]) for _ in range(axes)]
        if r.random() < .2:
            size = [1] * axes
        if size == [1] * axes and t.dim() not in (axes + 1, axes + 2):
            return self.w.release(w)  # that is a mean, of whatever comes
        name = f"adaptive_{'max' if most else 'avg'}_pool{axes}d"
        self.own_strides = True
        self.judge(f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} to {size}", lambda: getattr(F, name)(t, size),
                   lambda: self.w.new(name, w, three(size)), several=4, scale=self.largest(t))
        self.own_strides = False
        self.w.release(w)

    def pick(self, sizes, dtype, chance=.7):
        """A parameter, or none: (torch's, Weir's)."""
        r = self.r
        if r.random() > chance:
            return None, None
        if r.random() < .03:
            dtype = torch.float64
        if r.random() < .03 and sizes:
            sizes = [sizes[0] + 1] + list(sizes[1:])
        return self.tensor(sizes, dtype, small=True)

    def free(self, *tensors):
        for t in tensors:
            if t is not None:
                self.w.release(t)

    def parameter_dtype(self, dtype):
        return torch.float32 if dtype in (torch.float16, torch.bfloat16) and self.r.random() < .5 else dtype

    def norms(self):
        r = self.r
        name = r.choice(["layer_norm", "rms_norm", "group_norm", "batch_norm", "batch_norm", "instance_norm"])
        dtype = r.choice(FLOATS * 3 + [torch.int64])
        eps = r.choice([1e-5, 1e-5, 1e-3, 0.1])
        sizes = [r.choice([1, 2, 3, 4] + [0] * (r.random() < .1)) for _ in range(r.randint(1 if r.random() < .05 else 2, 5))]
        t, w = self.tensor(sizes, dtype, small=True)
        sizes = list(t.shape)
        some = self.parameter_dtype(dtype)
        what = f"{name} of {tuple(sizes)} {t.stride()} {dtype} parameters {some} eps {eps}"
        scale = (self.largest(t) + 1) * 8
        if name == "instance_norm":
            some = dtype  # torch's takes float32 statistics beside bfloat16 only together with a weight
        if name == "batch_norm" or name == "instance_norm":
            return self.statistics(name, what, t, w, sizes, some, eps, scale)
        self.own_strides = True
        if name == "group_norm":
            channels = sizes[1] if len(sizes) > 1 else 1
            groups = r.choice([g for g in range(1, 5) if channels % g == 0 or r.random() < .03])
            (weight, ww), (bias, wb) = self.pick([channels], some), self.pick([channels], some)
            if channels:
                scale = scale / eps ** .5 if t.numel() <= 4 * sizes[0] * groups else scale  # of few values
                self.judge(what + f" groups {groups}", lambda: F.group_norm(t, groups, weight, bias, eps),
                           lambda: self.w.new(name, w, C.c_int64(groups), ww, wb, C.c_double(eps)), scale, 8)
        else:
            shape_of = sizes[-r.randint(1, len(sizes)):]
            if r.random() < .05:
                shape_of = shape_of[1:] + [2]
            (weight, ww), (bias, wb) = self.pick(shape_of, some), self.pick(shape_of, some)
            if name == "layer_norm":
                self.judge(what + f" over {shape_of}", lambda: F.layer_norm(t, shape_of, weight, bias, eps),
                           lambda: self.w.new(name, w, shape(shape_of), ww, wb, C.c_double(eps)), scale, 8)
            elif weight is None or weight.dtype == dtype:
                none = r.random() < .3
                self.judge(what + f" over {shape_of} {none}", lambda: F.rms_norm(t, shape_of, weight, None if none else eps),
                           lambda: self.w.new(name, w, shape(shape_of), ww, C.c_double(-1 if none else eps)), scale * 8, 8)
        self.own_strides = False
        self.free(w, ww, wb)

    def statistics(self, name, what, t, w, sizes, some, eps, scale):
        r = self.r
        training, momentum = r.random() < .6, r.choice([0.1, 0.5, 1.0])
        if len(sizes) < 2 or 0 in sizes:
            return self.w.release(w)
        channels = [sizes[1]]
        (weight, ww), (bias, wb) = self.pick(channels, some), self.pick(channels, some)
        (mean, wm), (var, wv) = self.pick(channels, some, 1), self.pick(channels, some, 1)
        var = var.abs()
        wv2 = self.w.of(var)
        if training and r.random() < .3 or name == "instance_norm" and len({x.dtype for x in (weight, bias, mean, var) if x is not None}) > 1:
            mean = var = wm_ = None
        o = BatchNorm(training, momentum, eps)
        dtype_of = t.dtype
        fine = len({x.dtype for x in (weight, bias, mean, var) if x is not None}) < 2 and mean is not None and mean.dtype != torch.float64
        what += f" training {training} momentum {momentum} weight {weight is not None} running {mean is not None} {[x.dtype for x in (weight, bias, mean, var) if x is not None]}"
        a, b = (None, None) if mean is None else (wm, wv2)
        if name == "instance_norm" and any(x is not None and x.numel() != channels[0] for x in (weight, bias, mean, var)):
            return self.free(w, ww, wb, wm, wv, wv2)
        self.own_strides = True
        self.judge(what, lambda: getattr(F, name)(t, mean, var, weight, bias, training, momentum, eps),
                   lambda: self.w.new(name, w, a, b, ww, wb, C.byref(o)), scale / min(eps, 1) ** .5 if not training else scale, 16)
        same = all(x is None or x.dtype == dtype_of for x in (weight, bias, mean, var)) or name == "batch_norm" and fine
        if mean is not None and same:
            for theirs, ours in ((mean, a), (var, b)):
                self.judge_one(what + ": running", theirs, ours, scale, 8, None)
        self.own_strides = False
        self.free(w, ww, wb, wm, wv, wv2)

    def distances(self):
        r = self.r
        name = r.choice(["normalize", "cosine_similarity", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "dropout"])
        dtype = r.choice(FLOATS * 3 + [torch.int64])
        self.own_strides = True
        if name.startswith("pixel"):
            f = r.choice([1, 2, 2, 3, 0 if r.random() < .1 else 2])
            sizes = [r.choice([1, 2, 4, 6, 9]) for _ in range(r.randint(2 if r.random() < .05 else 3, 5))]
            if len(sizes) > 2 and r.random() < .8:
                sizes[-3] *= f * f if name == "pixel_shuffle" else 1
                sizes[-2:] = [v * (f or 1) if name != "pixel_shuffle" else v for v in sizes[-2:]]
            t, w = self.tensor(sizes, r.choice(ANY))
            t, w = t.contiguous(), self.moved(w, "contiguous")
            self.judge(f"{name} of {tuple(t.shape)} {t.stride()} {t.dtype} {f}", lambda: getattr(F, name)(t, f),
                       lambda: self.w.new(name, w, C.c_int64(f)))
            self.own_strides = False
            return self.w.release(w)
        t, w = self.tensor(self.sizes(), dtype, small=True)
        d, p = self.dim(t), r.choice([2, 2, 1, 3])
        what = f"{name} of {tuple(t.shape)} {t.stride()} {dtype} along {d} p {p}"
        if name == "normalize":
            self.judge(what, lambda: F.normalize(t, p, d), lambda: self.w.new(name, w, C.c_double(p), d, C.c_double(1e-12)), several=16)
        elif name == "dropout":
            p = r.choice([0, 1, -1, 2, .5])
            train = r.random() < .5 or p == .5
            if p != .5:
                self.judge(what + f" {p}", lambda: F.dropout(t, p, train), lambda: self.w.new(name, w, C.c_double(p), train, None))
        else:
            o, wo = self.tensor(self.like(list(t.shape)), r.choice([dtype, torch.float32]), small=True)
            size = torch.maximum(self.largest(t), self.largest(o)) + 1
            if name == "cosine_similarity":
                self.judge(what, lambda: F.cosine_similarity(t, o, d), lambda: self.w.new(name, w, wo, d, C.c_double(1e-8)),
                           size, 32 if o.dtype == dtype else 32 * max(torch.finfo(d).eps for d in (o.dtype, dtype) if d.is_floating_point) / 2**-52)
            else:
                keep = r.random() < .5
                self.judge(what, lambda: F.pairwise_distance(t, o, p, keepdim=keep),
                           lambda: self.w.new(name, w, wo, C.c_double(p), C.c_double(1e-6), keep), size, 32)
            self.w.release(wo)
        self.own_strides = False
        self.w.release(w)

    def convolution(self):
        r = self.r
        axes, back = r.choice([1, 1, 2, 3]), r.random() < .6
        if axes == 2:
            back = True
        name = f"conv_transpose{axes}d" if back else f"conv{axes}d"
        dtype = r.choice([torch.float32] * 5 + [torch.float64, torch.int64])
        odd = r.random() < .1
        groups = r.choice([1, 1, 2, 3])
        a, b = groups * r.randint(1, 2), r.randint(1, 3) * (1 if back else groups)
        t, w = self.tensor([r.randint(1, 2)] * (r.random() < .7) + [a + odd * (r.random() < .3)] +
                           [r.randint(1, 7) for _ in range(axes)], dtype, small=True)
        kernel = [r.randint(1, 3) for _ in range(axes)]
        k, wk = self.tensor(([a, b] if back else [b, a // groups]) + kernel, dtype, small=True)
        bias, wb = self.pick([b * groups if back else b], dtype, .5)
        if bias is not None and bias.dtype != dtype:
            bias, wb = None, None
        stride, dilation = [r.randint(1 - (odd and r.random() < .1), 3) for _ in kernel], [r.choice([1, 1, 2, 3]) for _ in kernel]
        pad = [r.choice([0, 0, 1, 2, -1 if odd else 0]) for _ in kernel]
        more = [r.choice([0, 0, 1, 2 if odd else 0]) if back else 0 for _ in kernel]
        same = not back and r.random() < .2
        if same:
            stride = [1] * axes if not odd else stride
        if 0 in stride:
            stride = [1] * axes
        o = ConvOptions(three(stride), three(pad), three(dilation), three(more), groups, same)
        what = (f"{name} of {tuple(t.shape)} {t.stride()} by {tuple(k.shape)} {dtype} bias {bias is not None} stride {stride} pad {pad} "
                f"dilation {dilation} more {more} groups {groups} same {same}")
        p = "same" if same else pad
        n = k.numel() / k.shape[0 if not back else 1] + 2
        scale = (self.largest(t) + 1) * (self.largest(k) + 1) * n ** .5 * 2
        self.own_strides = True
        f = getattr(F, name)
        self.judge(what, (lambda: f(t, k, bias, stride, pad, more, groups, dilation)) if back else
                   (lambda: f(t, k, bias, stride, p, dilation, groups)), lambda: self.w.new(name, w, wk, wb, C.byref(o)), scale, 4)
        self.own_strides = False
        self.free(w, wk, wb)

    def interpolation(self):
        r = self.r
        mode = r.choice(MODES)
        axes = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, r.choice([1, 2, 3]))
        if r.random() < .03:
            axes = r.choice([0, 1, 2, 3])
        t, w = self.images(axes, r.choice(FLOATS * 3 + [torch.uint8] * ("nearest" in mode) + [torch.int64]), 7)
        if t.dim() != axes + 2 and r.random() < .9:
            return self.w.release(w)
        t, w = t.contiguous(), self.moved(w, "contiguous")
        align = r.random() < (.4 if mode not in ("nearest", "nearest-exact", "area") else .02)
        if not 3 <= t.dim() <= 5:
            return self.w.release(w)
        n = t.dim() - 2
        size = [r.choice([1, 2, 3, 5, 8, 13, -1 if r.random() < .05 else 4]) for _ in range(n)] if r.random() < .5 else None
        scale = [r.choice([2., .5, 1.5, 3., .3, 1., 2.7]) for _ in range(n)] if size is None or r.random() < .03 else None
        again = scale is not None and size is None and r.random() < .3
        o = Interpolation(three(size or [0]), (C.c_double * 3)(*(scale or [0])), MODES.index(mode), align, again)
        self.own_strides = True
        kind = align if align or mode in ("linear", "bilinear", "bicubic", "trilinear") else None
        self.judge(f"interpolate {mode} of {tuple(t.shape)} {t.dtype} to {size} by {scale} align {align} again {again}",
                   lambda: F.interpolate(t, size, scale, mode, kind, again or None), lambda: self.w.new("interpolate", w, C.byref(o)),
                   self.largest(t), 64)
        self.own_strides = False
        self.w.release(w)

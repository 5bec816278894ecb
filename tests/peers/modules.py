"""Cases of ops.py: losses as modules, decoders and Transformer, pads, Upsample and other layers of torch.nn that are a function and its arguments.
A mixin of its Calls. What torch prints of a module, the names and order of its state and what it gives are compared.

Names that are put together here: constant_pad1d constant_pad2d constant_pad3d reflection_pad1d
reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d circular_pad1d
circular_pad2d circular_pad3d zero_pad1d zero_pad2d zero_pad3d batch_norm1d batch_norm2d batch_norm3d
instance_norm1d instance_norm2d instance_norm3d dropout1d dropout2d dropout3d.
"""
import ctypes as C

import torch

from indices import BagOptions
from losses import REDUCTIONS, ClassOptions
from networks import MODES, Interpolation, three
from sequence import Encode, Norm, Transformer
from tensors import NUMBERS, Options, scalar, shape

P = C.c_void_p
FLOATS = [torch.float32] * 3 + [torch.float64]
# What a loss is made with, behind out: kinds of torch's arguments in Weir's order.
LOSSES = {
    "L1Loss": ("l1_loss", ["reduction"]),
    "MSELoss": ("mse_loss", ["reduction"]),
    "SmoothL1Loss": ("smooth_l1_loss", ["reduction", "beta"]),
    "HuberLoss": ("huber_loss", ["reduction", "delta"]),
    "KLDivLoss": ("kl_div_loss", ["reduction", "log_target"]),
    "SoftMarginLoss": ("soft_margin_loss", ["reduction"]),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", ["margin", "reduction"]),
    "MarginRankingLoss": ("margin_ranking_loss", ["margin", "reduction"]),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", ["margin", "reduction"]),
    "TripletMarginLoss": ("triplet_margin_loss", ["margin", "p", "reduction"]),
    "BCELoss": ("bce_loss", ["weight", "reduction"]),
    "BCEWithLogitsLoss": ("bce_with_logits_loss", ["weight", "pos_weight", "reduction"]),
    "NLLLoss": ("nll_loss", ["classes"]),
    "CrossEntropyLoss": ("cross_entropy_loss", ["classes"]),
}
PADS = {"constant": "ConstantPad", "reflection": "ReflectionPad", "replication": "ReplicationPad", "circular": "CircularPad", "zero": "ZeroPad"}


class BagLayer(C.Structure):
    _fields_ = [("tensor", Options), ("bag", BagOptions)]


class Decode(C.Structure):
    _fields_ = [(n, P) for n in ("tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask")] + [
        ("tgt_is_causal", C.c_bool), ("memory_is_causal", C.c_bool)]


class Modules:
    def state_names(self, what, theirs, m):
        """The names of both states, in order."""
        lib, names = self.w.lib, []
        lib.weir_tensors_name.restype = C.c_char_p
        lib.weir_tensors_name.argtypes = [P, C.c_size_t]
        state = self.w.new("module_state", m)
        while (name := lib.weir_tensors_name(state, len(names))) is not None:
            names.append(name.decode())
        lib.weir_tensors_release(state)
        if names != list(theirs.state_dict()):
            self.complain(what + ": names of the state", list(theirs.state_dict()), names)

    def run_layer(self, theirs, name, arguments, tensors, ours, scale, several=8):
        """Makes Weir's layer beside torch's and calls both; ours: Weir's tensors (or None), in order."""
        what = f"{theirs} of {[None if t is None else (tuple(t.shape), str(t.dtype)) for t in tensors]} {theirs.training}"
        m = self.module(name, theirs, *arguments)
        self.state_names(what, theirs, m)
        inputs = (P * len(ours))(*[w.value if w is not None else None for w in ours])
        def run():
            with torch.no_grad():
                return theirs(*tensors)
        self.own_strides = True
        self.judge(what, run, lambda: self.w.new("module_call_many", m, inputs, len(ours)), scale, several)
        self.own_strides = False
        self.w.lib.weir_module_release(m)

    # ---- losses

    def loss_tensors(self, title, dtype):
        """What the loss is called with."""
        r = self.r
        sizes = [r.randint(1, 5) for _ in range(2 if title[:3] in ("Cos", "Tri") else r.randint(0, 3))]
        a, b = self.small(sizes, dtype), self.small(sizes, dtype)
        if title in ("NLLLoss", "CrossEntropyLoss"):
            lead, n = r.choice([[], [3], [2]]), r.randint(1, 5)
            more = [r.randint(1, 3)] * (len(lead) and r.choice([0, 0, 1, 2]))
            return [self.small(lead + [n] + more, dtype), torch.randint(0, n, lead + more)]
        if title in ("BCELoss", "KLDivLoss"):
            a, b = a.sigmoid(), b.sigmoid()
        if title == "BCEWithLogitsLoss":
            b = b.sigmoid()
        if title in ("SoftMarginLoss", "HingeEmbeddingLoss"):
            b = b.sign()
        sign = lambda shape: torch.randint(0, 2, shape).to(dtype) * 2 - 1
        more = {"MarginRankingLoss": lambda: [sign(sizes)], "CosineEmbeddingLoss": lambda: [sign(sizes[:1])],
                "TripletMarginLoss": lambda: [self.small(sizes, dtype)]}
        return [a, b] + more.get(title, lambda: [])()

    def criterion(self):
        r = self.r
        title = r.choice(list(LOSSES))
        name, kinds = LOSSES[title]
        dtype = r.choice(FLOATS)
        tensors = self.loss_tensors(title, dtype)
        reduction = r.choice([0, 0, 1, 2])
        keywords, arguments, held = {}, [], []
        def weight(n):
            held.append(torch.rand(n, dtype=dtype) + .1)
            return held[-1], self.w.of(held[-1])
        for kind in kinds:
            number = r.choice([.5, 1., 2.]) if r.random() < .97 or title != "TripletMarginLoss" else -1.
            if kind == "reduction":
                keywords[kind], ours = REDUCTIONS[reduction], reduction
            elif kind == "log_target":
                keywords[kind] = ours = r.random() < .5
            elif kind in ("weight", "pos_weight"):
                keywords[kind], ours = weight(tensors[0].shape) if r.random() < .4 else (None, None)
            elif kind == "classes":
                n = tensors[0].shape[tensors[0].dim() > 1]
                keywords["weight"], ww = weight([n]) if r.random() < .4 else (None, None)
                keywords["ignore_index"], keywords["reduction"] = r.choice([-100, 0, 1]), REDUCTIONS[reduction]
                smooth = r.choice([0., .1]) if title == "CrossEntropyLoss" else 0.
                keywords.update({"label_smoothing": smooth} if title == "CrossEntropyLoss" else {})
                ours = C.byref(ClassOptions(ww, keywords["ignore_index"] != -100, keywords["ignore_index"], reduction, smooth))
            else:
                keywords[kind], ours = (number, C.c_double(number)) if kind != "p" else (2., C.c_double(2))
            arguments.append(ours)
        ours = [self.w.of(t) for t in tensors]
        try:
            theirs = getattr(torch.nn, title)(**keywords)
        except ValueError as error:
            def refused():
                raise error
            self.call(title, refused, lambda: self.w.new("module_" + name, *arguments))
        else:
            scale = sum(self.largest(t) for t in tensors if t.is_floating_point()) ** 2 * max(1, tensors[0].numel()) + 3
            self.run_layer(theirs, name, arguments, tensors, ours, scale, 32)
        self.end(ours + [a for a in arguments if isinstance(a, P)])

    # ---- pads, Upsample

    def padded(self):
        r = self.r
        kind, axes = r.choice(list(PADS)), r.choice([1, 2, 3])
        padding = [r.choice([0, 1, 1, 2, -1 if kind in ("constant", "zero") else 1]) for _ in range(2 * axes)]
        value = [r.choice([0, 2, 1.5, True])] if kind == "constant" else []
        theirs = getattr(torch.nn, f"{PADS[kind]}{axes}d")(tuple(padding), *value)
        sizes = [r.randint(1, 2)] * (r.random() < .7) + [2] + [r.randint(3, 5) for _ in range(axes)]
        if kind == "circular" and r.random() < .05:
            sizes = sizes[1:] if len(sizes) == axes + 1 else [1] + sizes
        t, w = self.tensor(sizes, r.choice([torch.float32, torch.float64, torch.int64] if kind in ("constant", "zero", "circular") else FLOATS), small=True)
        ours = (C.c_int64 * 6)(*padding)
        self.run_layer(theirs, f"{kind}_pad{axes}d", [ours] + [scalar(v) for v in value], [t], [w], None, 1)
        self.end([w])

    def upsampled(self):
        r = self.r
        title = r.choice(["Upsample", "Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"])
        mode = {"UpsamplingNearest2d": "nearest", "UpsamplingBilinear2d": "bilinear"}.get(title, r.choice(MODES))
        axes = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode, r.choice([1, 2, 3]) if title == "Upsample" else 2)
        alone = axes == 1 or r.random() < .5
        size = [r.randint(1, 7) for _ in range(1 if alone else axes)] if r.random() < .5 else None
        scale = None if size else [r.choice([2., .5, 1.5, 3.]) for _ in range(1 if alone else axes)]
        align = mode in ("linear", "bilinear", "bicubic", "trilinear") and (title == "UpsamplingBilinear2d" or r.random() < .5)
        own = {"mode": mode, "align_corners": align or None} if title == "Upsample" else {}
        plain = lambda v: v and (v[0] if alone else tuple(v))
        theirs = getattr(torch.nn, title)(plain(size), plain(scale), **own)
        o = Interpolation(three(size or [0]), (C.c_double * 3)(*(scale or [0])), MODES.index(mode), align, False)
        t, w = self.tensor([2, 3] + [r.randint(2, 5) for _ in range(axes)], r.choice(FLOATS), small=True)
        name = {"Upsample": "upsample", "UpsamplingNearest2d": "upsampling_nearest2d", "UpsamplingBilinear2d": "upsampling_bilinear2d"}[title]
        self.run_layer(theirs, name, [C.byref(o)], [t], [w], self.largest(t), 64)
        self.end([w])

    # ---- functions of one tensor or two

    def plain_layer(self):
        r = self.r
        name = r.choice(["channel_shuffle", "softmin", "softmax2d", "cosine_similarity", "pairwise_distance"])
        dtype, count = r.choice(FLOATS), 1
        sizes = [2, r.choice([2, 4, 6]), r.randint(1, 4), r.randint(1, 4)][:r.choice([4, 4, 3, 2])]
        if name == "channel_shuffle":
            groups = r.choice([1, 2, 2, 3, 0 if r.random() < .1 else 2])
            theirs, arguments = torch.nn.ChannelShuffle(groups), [C.c_int64(groups)]
        elif name == "softmin":
            dim = r.randint(-2, 1)
            theirs, arguments = torch.nn.Softmin(dim), [dim]
        elif name == "softmax2d":
            theirs, arguments = torch.nn.Softmax2d(), []
        elif name == "cosine_similarity":
            dim, eps, count = r.randint(-2, 1), r.choice([1e-8, .1]), 2
            theirs, arguments = torch.nn.CosineSimilarity(dim, eps), [dim, C.c_double(eps)]
        else:
            p, eps, keep, count = r.choice([1., 2., 3.]), r.choice([1e-6, .1]), r.random() < .5, 2
            theirs, arguments = torch.nn.PairwiseDistance(p, eps, keep), [C.c_double(p), C.c_double(eps), keep]
        tensors, ours = zip(*[self.tensor(sizes, dtype, small=True) for _ in range(count)])
        if len({tuple(t.shape) for t in tensors}) == 1:
            self.run_layer(theirs, name, arguments, tensors, ours, sum(self.largest(t) for t in tensors) + 1, 64)
        self.end(ours)

    def bag_layer(self):
        r = self.r
        mode, padding, last = r.choice(["mean", "sum", "max"]), r.choice([None, 0, 2, -1]), r.random() < .3
        theirs = torch.nn.EmbeddingBag(5, 3, mode=mode, padding_idx=padding, include_last_offset=last)
        o = BagLayer(Options(), BagOptions(["mean", "sum", "max"].index(mode), last, padding is not None, padding or 0))
        flat = r.random() < .6
        x = torch.randint(0, 5, [6] if flat else [2, 3])
        tensors = [x, torch.tensor([0, 2, 5] + [6] * last) if flat else None]
        if mode == "sum" and r.random() < .5:
            tensors.append(self.small(list(x.shape), torch.float32))
        if not flat and len(tensors) == 2 and r.random() < .5:
            tensors.pop()
        ours = [t if t is None else self.w.of(t) for t in tensors]
        self.run_layer(theirs, "embedding_bag", [C.c_int64(5), C.c_int64(3), C.byref(o)], tensors, ours, torch.ones(()) * 8, 16)
        self.end([w for w in ours if w is not None])

    # ---- decoders, Transformer

    def attention_masks(self, rows, columns, n, heads, kind):
        """A mask of places, seldom of each head, and one of padding; either may be missing."""
        r = self.r
        out = []
        for sizes in (r.choice([[rows, columns], [(n or 1) * heads, rows, columns]]), [n] * (n > 0) + [columns]):
            if r.random() < .5:
                out.append((None, None))
                continue
            mask, w = self.tensor(sizes if r.random() < .98 else [7] * len(sizes), kind, small=True)
            out.append(self.first_seen(mask, w) if kind == torch.bool else (mask, w))
        return out

    def decoder(self):
        """TransformerDecoderLayer, TransformerDecoder (layers), Transformer (both)."""
        r, nn = self.r, torch.nn
        heads, whole, layers = r.choice([1, 2]), r.random() < .4, r.choice([0, 1, 2])
        e, wide = heads * r.choice([1, 2, 4]), r.choice([1, 3, 8])
        first, before, bias, gelu = (r.random() < p for p in (.5, .5, .7, .5))
        eps, dtype = r.choice([1e-5, 1e-2]), r.choice([torch.float32] * 3 + [torch.float64])
        o = Options(dtype=NUMBERS[dtype])
        activation = "gelu" if gelu else "relu"
        own = (wide, 0, activation) + ((None, None) if whole else ()) + (eps, first, before, bias)
        how = Transformer(o, wide, 0, True, activation.encode() if gelu or r.random() < .5 else None, eps, first, before, not bias)
        arguments = C.c_int64(e), C.c_int64(heads), C.byref(how)
        if whole:
            counts = r.choice([1, 2]), r.choice([1, 2])
            theirs, name = nn.Transformer(e, heads, *counts, *own, dtype=dtype), "transformer"
            arguments = arguments[:2] + tuple(C.c_int64(c) for c in counts) + arguments[2:]
        else:
            theirs, name = nn.TransformerDecoderLayer(e, heads, *own, dtype=dtype), "transformer_decoder_layer"
        if layers and not whole:
            norm = r.random() < .5
            theirs, name = nn.TransformerDecoder(theirs, layers, nn.LayerNorm(e, dtype=dtype) if norm else None), "transformer_decoder"
            arguments = (self.w.new("module_transformer_decoder_layer", *arguments), C.c_int64(layers),
                         self.w.new("module_layer_norm", shape([e]), C.byref(Norm(o))) if norm else None)
        for p in theirs.parameters():
            nn.init.normal_(p, 0, .5)
        m = self.module(name, theirs, *arguments)
        self.state_names(name, theirs, m)
        n, s, t = r.choice([0, 1, 2, 3]), r.choice([1, 2, 5]), r.choice([1, 2, 4])
        def sizes(length):
            wrong = r.random() < .02
            lead = [n + (wrong and whole), length] if first else [length, n + (wrong and whole)]
            return (lead if n else [length]) + [e + (wrong and whole and r.random() < .5)]
        (x, wx), (y, wy) = self.tensor(sizes(s), dtype, small=True), self.tensor(sizes(t), dtype, small=True)
        s, t = (v.shape[1 if first and n else 0] for v in (x, y))  # one that was 1 may be repeated
        if not whole and {x.shape[-1], y.shape[-1]} != {e}:
            self.w.lib.weir_module_release(m)
            return self.end([wx, wy])
        kind = r.choice([torch.bool, dtype])
        src, tgt = self.attention_masks(s, s, n, heads, kind), self.attention_masks(t, t, n, heads, kind)
        memory = self.attention_masks(t, s, n, heads, kind)
        causal = tgt[0][0] is None and r.random() < .3
        mask = nn.Transformer.generate_square_subsequent_mask(t, dtype=dtype) if causal else tgt[0][0]
        held = [w for part in (src, tgt, memory) for _, w in part]
        decode = Decode(tgt[0][1], memory[0][1], tgt[1][1], memory[1][1], causal, False)
        what = (f"{type(theirs).__name__} {e} {heads} {wide} layers {layers} first {first} before {before} bias {bias} {activation} {dtype} of {tuple(x.shape)} "
                f"{tuple(y.shape)} {kind} causal {causal} masks {[None if k is None else tuple(k.shape) for part in (src, tgt, memory) for k, _ in part]}")
        keywords = {"tgt_mask": mask, "memory_mask": memory[0][0], "tgt_key_padding_mask": tgt[1][0], "memory_key_padding_mask": memory[1][0]}
        keywords.update({"src_mask": src[0][0], "src_key_padding_mask": src[1][0]} if whole else {})
        def run():
            torch.backends.mha.set_fastpath_enabled(False)
            try:
                return theirs(*((x, y) if whole else (y, x)), **keywords).detach()
            except AssertionError as error:
                raise RuntimeError(str(error).replace("torch.Size", "weir.Size")) from error
        def ours():
            if whole:
                return self.w.new("transformer", m, wx, wy, C.byref(Encode(src[0][1], src[1][1], False)), C.byref(decode))
            return self.w.new("transformer_decode", m, wy, wx, C.byref(decode))
        self.own_strides = True
        self.judge(what, run, ours, torch.ones(()) * 30, 256)
        if causal:
            self.judge("the causal mask", lambda: mask, lambda: self.w.new("generate_square_subsequent_mask", C.c_int64(t), C.byref(o)))
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.end([w for w in [wx, wy] + held if w])

    # ---- hooks

    def hooked(self):
        """A network whose hooks multiply what they see: the order of their calls, the result, all gradients."""
        r, nn, lib = self.r, torch.nn, self.w.lib
        kinds = ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"]
        depth = r.choice([1, 2, 3])
        theirs = nn.Sequential(*[nn.Linear(3, 3) if i % 2 == 0 else nn.Tanh() for i in range(depth)])
        children = (P * depth)(*[self.w.new("module_linear", C.c_int64(3), C.c_int64(3), None) if i % 2 == 0 else self.w.new("module_tanh") for i in range(depth)])
        ours = self.w.new("module_sequential", children, C.c_size_t(depth))
        lib.weir_module_child.restype = lib.weir_module_parameter.restype = lib.weir_tensor_grad.restype = lib.weir_tensor_retain.restype = P
        for path, p in theirs.named_parameters():
            nn.init.normal_(p)
            w = self.w.of(p.detach())
            self.w.check(lib.weir_copy_(P(lib.weir_module_parameter(ours, path.encode())), w, False))
            self.w.release(w)
        seen, keep, ids, describe = ([], []), [], [], []
        call = C.CFUNCTYPE(C.c_int, P, C.POINTER(P), C.c_int, C.POINTER(P), P)
        for number in range(r.randint(1, 6)):
            kind, factor = r.randrange(4), r.choice([None, 2., -.5])
            at = r.choice([""] + [str(i) for i in range(depth)])
            place = 0 if kind in (0, 3) else 1  # what it replaces: inputs, or the output
            def mine(m, inputs, count, out, user, n=number, f=factor, k=kind, in_=place == 0):
                seen[1].append((n, None if k == 2 else count))
                target = inputs if in_ else out
                if f is not None and target[0]:
                    target[0] = self.w.new("mul_scalar", P(target[0]), scalar(f)).value
                return 0
            def other(module, *a, n=number, f=factor, k=kind):
                seen[0].append((n, None if k == 2 else len(a[0])))
                x = a[1] if k == 1 else a[0]
                if f is None or isinstance(x, tuple) and x[0] is None:
                    return None
                return tuple(v * f for v in x) if isinstance(x, tuple) else x * f
            keep.append(call(mine))
            name = C.c_uint64()
            m = P(lib.weir_module_child(ours, at.encode()))
            self.w.check(lib.weir_module_register_hook(C.byref(name), m, kind, keep[-1], None, None))
            handle = getattr(theirs.get_submodule(at), "register_" + kinds[kind])(other)
            ids.append((m, name, handle))
            describe.append((kinds[kind], at, factor))
        if r.random() < .3:
            m, name, handle = r.choice(ids)
            lib.weir_module_remove_hook(m, name)
            handle.remove()
        x = torch.randn(2, 3)
        wx = self.w.of(x)
        wanted = r.random() < .7
        x.requires_grad_(wanted)
        lib.weir_set_grad_enabled(True)
        self.w.check(lib.weir_requires_grad_(wx, wanted))
        def run():
            y = theirs(x)
            y.sum().backward()
            return [y.detach()] + [v.grad for v in [x] * wanted + list(theirs.parameters())]
        def mine():
            y = self.w.new("module_call", ours, wx)
            s = self.w.new("sum", y)
            self.w.check(lib.weir_backward(s, None, False))
            self.w.release(s)
            held = [wx] * wanted + [P(lib.weir_module_parameter(ours, path.encode())) for path, _ in theirs.named_parameters()]
            return [y] + [P(lib.weir_tensor_retain(P(lib.weir_tensor_grad(v)))) for v in held]
        self.own_strides = True
        self.judge(f"hooks of {depth} layers, {describe}, input {wanted}", run, mine, torch.ones(()) * 200, 64)
        self.own_strides = False
        if seen[0] != seen[1]:
            self.complain(f"hooks of {depth} layers: calls", seen[0], seen[1])
        lib.weir_set_grad_enabled(False)
        lib.weir_module_release(ours)
        self.w.release(wx)

    def normaliser(self):
        """Layers of normalisation follow a few batches and are evaluated then; the statistics that they keep."""
        r, nn = self.r, torch.nn
        axes, kind, n = r.choice([1, 2, 3]), r.choice(["Batch", "Instance"]), r.randint(1, 4)
        eps, momentum = r.choice([1e-5, 1e-3, .1]), r.choice([.1, .5, None] if kind == "Batch" else [.1, .5])
        affine, running, bias = r.random() < .6, r.random() < .6, r.random() < .8
        theirs = getattr(nn, f"{kind}Norm{axes}d")(n, eps, momentum, affine, running, bias=bias)
        for t in theirs.parameters():
            nn.init.normal_(t)
        flags = [momentum is None, not affine, not bias, not running, affine, running]
        m = self.module(f"{kind.lower()}_norm{axes}d", theirs, C.c_int64(n), C.byref(Norm(Options(), eps, momentum or 0, (C.c_bool * 6)(*flags))))
        self.state_names(str(theirs), theirs, m)
        lib = self.w.lib
        lib.weir_module_buffer.restype = lib.weir_tensor_retain.restype = P
        calls = r.randint(1, 3)
        for step in range(calls + 1):
            if step == calls:
                theirs.eval()
                lib.weir_module_eval(m)
            sizes = [r.choice([1, 2, 3]), n if r.random() < .95 else n + 1] + [r.choice([1, 2, 3, 5]) for _ in range(axes)]
            sizes = sizes[:2] if axes == 1 and r.random() < .2 else sizes[1:] if r.random() < .1 else sizes
            t, w = self.tensor(sizes, torch.float32, small=True)
            def run(t=t):
                with torch.no_grad():
                    y = theirs(t)
                return [y] + [b for _, b in theirs.named_buffers()]
            def ours(w=w):
                y = self.w.new("module_call", m, w)
                return [y] + [P(lib.weir_tensor_retain(P(lib.weir_module_buffer(m, name.encode())))) for name, _ in theirs.named_buffers()]
            self.own_strides = True
            self.judge(f"{theirs} of {tuple(t.shape)}, training {theirs.training}", run, ours, self.largest(t) + 8, 64)
            self.own_strides = False
            self.w.release(w)
        lib.weir_module_release(m)

    def whole_channels(self):
        """Dropout of channels: as it is where nothing is dropped, where all is, and evaluated."""
        r = self.r
        axes, p = r.choice([1, 2, 3]), r.choice([0, 1, .5])
        theirs = getattr(torch.nn, f"Dropout{axes}d")(p)
        if p == .5 or r.random() < .3:
            theirs.eval()
        m = self.module(f"dropout{axes}d", theirs, C.c_double(p))
        if not theirs.training:
            self.w.lib.weir_module_eval(m)
        t, w = self.tensor([2, 3, 2, 4, 2][:axes + 2], torch.float32, small=True)
        self.own_strides = True
        self.judge(f"{theirs} of {tuple(t.shape)}, training {theirs.training}", lambda: theirs(t), lambda: self.w.new("module_call", m, w), self.largest(t), 8)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.w.release(w)

    def cast(self):
        """A network as another dtype, by the name of the method; evaluated."""
        r, nn = self.r, torch.nn
        name = r.choice(["half", "bfloat16", "float", "double"])
        theirs = nn.BatchNorm1d(3)
        nn.init.normal_(theirs.weight)
        m = self.module("batch_norm1d", theirs, C.c_int64(3), None)
        getattr(theirs, name)().eval()
        self.w.check(getattr(self.w.lib, "weir_module_" + name)(m))
        self.w.lib.weir_module_eval(m)
        t, w = self.tensor([2, 3], theirs.weight.dtype, small=True)
        def run():
            with torch.no_grad():
                return theirs(t)
        self.own_strides = True
        if list(t.shape)[1] == 3:
            self.judge(f"{name} of {theirs}", run, lambda: self.w.new("module_call", m, w), torch.ones(()) * 8, 8)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.w.release(w)

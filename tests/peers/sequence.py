"""Cases of ops.py: attention, recurrent layers and cells.

Names that are put together here: lstm_cell gru_cell rnn_cell.
"""
import ctypes as C

import torch

from tensors import Device, Options, shape

P = C.c_void_p
F = torch.nn.functional


class Attention(C.Structure):
    _fields_ = [("mask", P), ("is_causal", C.c_bool), ("dropout", C.c_double), ("scale", C.c_double), ("enable_gqa", C.c_bool)]


class MultiheadLayer(C.Structure):
    _fields_ = [("tensor", Options), ("no_bias", C.c_bool), ("batch_first", C.c_bool), ("dropout", C.c_double),
                ("kdim", C.c_int64), ("vdim", C.c_int64)]


class Multihead(C.Structure):
    _fields_ = [("key_padding_mask", P), ("attn_mask", P), ("is_causal", C.c_bool), ("each_head", C.c_bool)]


class Recurrent(C.Structure):
    _fields_ = [("tensor", Options), ("num_layers", C.c_int64), ("no_bias", C.c_bool), ("batch_first", C.c_bool),
                ("bidirectional", C.c_bool), ("relu", C.c_bool), ("dropout", C.c_double), ("proj_size", C.c_int64)]


class Transformer(C.Structure):
    _fields_ = [("tensor", Options), ("dim_feedforward", C.c_int64), ("dropout", C.c_double), ("no_dropout", C.c_bool),
                ("activation", C.c_char_p), ("layer_norm_eps", C.c_double), ("batch_first", C.c_bool), ("norm_first", C.c_bool),
                ("no_bias", C.c_bool)]


class Encode(C.Structure):
    _fields_ = [("mask", P), ("src_key_padding_mask", P), ("is_causal", C.c_bool)]


class Norm(C.Structure):
    _fields_ = [("tensor", Options), ("eps", C.c_double), ("momentum", C.c_double), ("flags", C.c_bool * 6)]


class Embedding(C.Structure):
    _fields_ = [("tensor", Options), ("has_padding", C.c_bool), ("padding_idx", C.c_int64), ("max_norm", C.c_double), ("norm_type", C.c_double),
                ("scale", C.c_bool)]


class ConvLayer(C.Structure):
    _fields_ = [("tensor", Options), ("no_bias", C.c_bool), ("stride", C.c_int64 * 3), ("padding", C.c_int64 * 3), ("dilation", C.c_int64 * 3),
                ("output_padding", C.c_int64 * 3), ("groups", C.c_int64), ("same", C.c_bool)]


class Sequence:
    def module(self, name, theirs, *arguments):
        """Weir's module with torch's parameters, names compared."""
        lib = self.w.lib
        lib.weir_module_parameter.restype = P
        m = self.w.new("module_" + name, *arguments)
        for path, t in theirs.named_parameters():
            to, from_ = P(lib.weir_module_parameter(m, path.encode())), self.w.of(t.detach())
            if not to.value:
                self.complain(f"{name}: no parameter {path}", None, None)
            else:
                self.w.check(lib.weir_copy_(to, from_, False))
            self.w.release(from_)
        lib.weir_module_count_parameters.argtypes = [P, P]
        count = C.c_int64()
        self.w.check(lib.weir_module_count_parameters(C.byref(count), m))
        if count.value != sum(t.numel() for t in theirs.parameters()):
            self.complain(f"{name}: elements of parameters", sum(t.numel() for t in theirs.parameters()), count.value)
        text = C.c_char_p()
        self.w.check(lib.weir_module_to_string(C.byref(text), m))
        said = repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
        if text.value.decode() != said:
            self.complain(f"{name}: text", said, text.value.decode())
        return m

    def several(self, name, count, *arguments, wanted=None):
        outs = [P() for _ in range(count)]
        wanted = wanted or [True] * count
        self.w.check(getattr(self.w.lib, "weir_" + name)(*[C.byref(o) if k else None for o, k in zip(outs, wanted)], *arguments))
        return [o for o, k in zip(outs, wanted) if k]

    # ---- attention

    def attention(self):
        r = self.r
        dtype = r.choice([torch.float32] * 4 + [torch.float64, torch.float16, torch.bfloat16])
        lead = r.choice([[], [2], [2, 4], [1, 4], [2, 2, 2]])
        l, s, e, v = (r.choice([1, 2, 3, 5, 40]) for _ in "lsev")
        gqa = len(lead) >= 2 and r.random() < .2
        less = lead[:-1] + [lead[-1] // 2] if gqa and r.random() < .9 else lead
        shapes = [lead + [l, e], less + [s, e], less + [s, v]]
        if r.random() < .05:
            at = r.randrange(3)
            shapes[at] = shapes[at][-1:] if r.random() < .3 else shapes[at][:-1] + [shapes[at][-1] + 1]
        t, w = zip(*[self.tensor(x, dtype if r.random() < .98 else torch.float64, small=True) for x in shapes])
        mask = wmask = None
        if r.random() < .5:
            sizes = r.choice([[l, s], [1, s], [l, 1], lead + [l, s], lead[:-1] + [1, l, s] if lead else [l, s]])
            mask, wmask = self.tensor(sizes, r.choice([torch.bool, torch.bool, dtype, torch.int32]), small=True)
        causal, scale = r.random() < .3 and (mask is None or r.random() < .1), r.choice([None, None, 2., .1])
        o = Attention(wmask, causal, 1.5 if mask is None and r.random() < .05 else 0., scale or 0, gqa)
        what = (f"attention {[tuple(x.shape) for x in t]} {[x.dtype for x in t]} mask {mask if mask is None else (tuple(mask.shape), mask.dtype)} "
                f"causal {causal} scale {scale} gqa {gqa} dropout {o.dropout}")
        self.own_strides = True
        # torch rounds its products and weights to the dtype, or not, as its kernels like
        def theirs():
            q, k, x = [y.double() for y in t] if dtype in (torch.float16, torch.bfloat16) and not sum(y.dtype != dtype for y in t) and (mask is None or mask.dtype != torch.int32) else t
            m = mask if mask is None or mask.dtype != dtype or q.dtype != torch.float64 else mask.double()
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                y = F.scaled_dot_product_attention(q, k, x, m, o.dropout, causal, scale=scale, enable_gqa=gqa)
            return y.to(dtype) if q.dtype == torch.float64 else y
        several = 64 if dtype in (torch.float32, torch.float64) else 16
        self.judge(what, theirs, lambda: self.w.new("scaled_dot_product_attention", *w, C.byref(o)), torch.ones(()) * 5, several)
        self.own_strides = False
        self.end([x for x in w + (wmask,) if x])

    def multihead(self):
        r = self.r
        heads = r.choice([1, 2, 4])
        e = heads * r.choice([1, 2, 3])
        n, l, s = (r.choice([1, 2, 3, 5]) for _ in "nls")
        own, first, bias = r.random() < .5, r.random() < .5, r.random() < .7
        kdim, vdim = (e, e) if own or r.random() < .5 else (r.choice([e, 5]), 3)
        theirs = torch.nn.MultiheadAttention(e, heads, bias=bias, batch_first=first, kdim=kdim, vdim=vdim)
        for p in theirs.parameters():
            torch.nn.init.normal_(p, 0, .5)
        m = self.module("multihead_attention", theirs, C.c_int64(e), C.c_int64(heads),
                        C.byref(MultiheadLayer(Options(), not bias, first, 0, kdim if kdim != e else 0, vdim if vdim != e else 0)))
        batched = r.random() < .8
        order = (lambda length, f: [n, length, f] if first else [length, n, f]) if batched else (lambda length, f: [length, f])
        q, wq = self.tensor(order(l, e if r.random() < .97 else e + 1), torch.float32, small=True)
        if own:
            s, (k, wk), (v, wv) = l, (q, wq), (q, wq)
        else:
            (k, wk), (v, wv) = self.tensor(order(s, kdim), torch.float32, small=True), self.tensor(order(s, vdim), torch.float32, small=True)
        mask = wmask = padding = wpadding = None
        kind = r.choice([torch.bool, torch.float32])
        if r.random() < .4:
            sizes = [l, s] if r.random() < .5 else [(n if batched else 1) * heads, l, s]
            mask, wmask = self.tensor(sizes if r.random() < .95 else [l, s + 1], kind, small=True)
        if r.random() < .4:
            padding, wpadding = self.tensor(([n] if batched else []) + [s if r.random() < .95 else s + 1], kind, small=True)
        weights, each = r.random() < .7, r.random() < .5
        o = Multihead(wpadding, wmask, False, each)
        what = (f"multihead {e} {heads} {tuple(q.shape)} {tuple(k.shape)} {tuple(v.shape)} first {first} bias {bias} kdim {kdim} vdim {vdim} "
                f"mask {None if mask is None else tuple(mask.shape)} padding {None if padding is None else tuple(padding.shape)} {kind} weights {weights} each {each}")
        def run():
            with torch.no_grad():
                try:
                    y, x = theirs(q, k, v, key_padding_mask=padding, need_weights=weights, attn_mask=mask, average_attn_weights=not each)
                except AssertionError as error:
                    raise RuntimeError(str(error).replace("torch.Size", "weir.Size")) from error
            return (y, x) if weights else (y,)
        self.own_strides = True
        self.judge(what, run, lambda: self.several("multihead_attention", 2, m, wq, wk, wv, C.byref(o), wanted=[True, weights]),
                   torch.ones(()) * 30, 32)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.end([x for x in {id(x): x for x in (wq, wk, wv, wmask, wpadding) if x}.values()])

    # ---- transformers

    def transformer(self):
        r, nn = self.r, torch.nn
        heads = r.choice([1, 2, 4])
        e, wide, layers = heads * r.choice([1, 2, 4]), r.choice([1, 3, 8]), r.choice([0, 1, 2, 3])
        first, before, bias, gelu = (r.random() < p for p in (.5, .5, .7, .5))
        eps, dtype = r.choice([1e-5, 1e-2]), r.choice([torch.float32] * 3 + [torch.float64])
        o = Options(dtype=7 if dtype == torch.float32 else 8)
        activation = "gelu" if gelu else "relu"
        theirs = nn.TransformerEncoderLayer(e, heads, wide, 0 if layers else .1, activation, eps, first, before, bias, dtype=dtype)
        how = Transformer(o, wide, 0, layers > 0, activation.encode() if gelu or r.random() < .5 else None, eps, first, before, not bias)
        arguments = C.c_int64(e), C.c_int64(heads), C.byref(how)
        if layers:
            norm = r.random() < .5
            theirs = nn.TransformerEncoder(theirs, layers, nn.LayerNorm(e, dtype=dtype) if norm else None, enable_nested_tensor=False)
            arguments = (self.w.new("module_transformer_encoder_layer", *arguments), C.c_int64(layers),
                         self.w.new("module_layer_norm", shape([e]), C.byref(Norm(o))) if norm else None)
        for p in theirs.parameters():
            nn.init.normal_(p, 0, .5)
        m = self.module("transformer_encoder" if layers else "transformer_encoder_layer", theirs, *arguments)
        training = layers > 0 and r.random() < .5
        theirs.train(training)
        self.w.lib.weir_module_train(m, training)
        n, l = r.choice([1, 2, 3]), r.choice([1, 2, 5])
        batched = r.random() < .8
        sizes = ([n, l, e] if first else [l, n, e]) if batched else [l, e]
        x, w = self.tensor(sizes[:-1] + [e if r.random() < .97 else e + 1], dtype, small=True)
        mask = wmask = padding = wpadding = None
        kind = r.choice([torch.bool, dtype])
        if r.random() < .5:
            mask, wmask = self.tensor(r.choice([[l, l], [(n if batched else 1) * heads, l, l]]), kind, small=True)
        if r.random() < .4:
            padding, wpadding = self.tensor(([n] if batched else []) + [l], kind, small=True)
        if kind == torch.bool:  # a row that sees nothing is NaN, or not, as torch's kernel likes
            mask, wmask = (mask, wmask) if mask is None else self.first_seen(mask, wmask)
            padding, wpadding = (padding, wpadding) if padding is None else self.first_seen(padding, wpadding)
        what = (f"{type(theirs).__name__} {e} {heads} {wide} layers {layers} first {first} before {before} bias {bias} {activation} eps {eps} {dtype} of "
                f"{tuple(x.shape)} mask {None if mask is None else tuple(mask.shape)} padding {None if padding is None else tuple(padding.shape)} {kind} "
                f"training {training}")
        # torch's kernel for evaluation adds no masks: those of numbers make it give NaN, and it has sentences of its own
        fast = kind == torch.bool and r.random() < .5 and x.shape[-1] == e and (mask is None or mask.shape[-1] == mask.shape[-2] == l)
        def run():
            torch.backends.mha.set_fastpath_enabled(fast)
            with torch.set_grad_enabled(not fast):
                try:
                    return theirs(x, mask, src_key_padding_mask=padding).detach()
                except AssertionError as error:
                    raise RuntimeError(str(error).replace("torch.Size", "weir.Size")) from error
        self.own_strides = True
        self.judge(what, run, lambda: self.w.new("transformer_encode", m, w, C.byref(Encode(wmask, wpadding, False))), torch.ones(()) * 30, 256)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.end([x for x in (w, wmask, wpadding) if x])

    def first_seen(self, mask, w):
        """Each row sees its first place."""
        self.w.release(w)
        mask = mask.clone()
        mask[..., 0] = False
        return mask, self.w.of(mask)

    # ---- activations and Embedding, as layers

    def layer(self):
        r, nn = self.r, torch.nn
        real = lambda: C.c_double(r.choice([.5, 1., .25, 2., 20.]))
        numbers = {"leaky_relu": 1, "elu": 1, "celu": 1, "softshrink": 1, "hardshrink": 1, "softplus": 2, "hardtanh": 2, "threshold": 2}
        titles = {"silu": "SiLU", "mish": "Mish", "hardsigmoid": "Hardsigmoid", "hardswish": "Hardswish", "logsigmoid": "LogSigmoid", "selu": "SELU",
                  "relu6": "ReLU6", "softsign": "Softsign", "tanhshrink": "Tanhshrink", "leaky_relu": "LeakyReLU", "elu": "ELU", "celu": "CELU",
                  "softshrink": "Softshrink", "hardshrink": "Hardshrink", "softplus": "Softplus", "hardtanh": "Hardtanh", "threshold": "Threshold",
                  "gelu": "GELU", "glu": "GLU", "prelu": "PReLU", "embedding": "Embedding"}
        name = r.choice(list(titles))
        make, values = getattr(nn, titles[name]), [real() for _ in range(numbers.get(name, 0))]
        if name == "hardtanh":
            values[0] = C.c_double(-values[0].value)
        theirs, ours = [v.value for v in values], values
        x, w = self.tensor([2, 4, 6], torch.float32, small=True)
        if name == "gelu":
            theirs, ours = [r.choice(["none", "tanh"])], []
            ours = [theirs[0].encode()]
        elif name == "glu":
            theirs = ours = [r.choice([0, 1, 2, -1])]
        elif name == "prelu":
            theirs = [r.choice([1, 4]), .25]
            ours = [C.c_int64(theirs[0]), C.c_double(.25), None]
        elif name == "embedding":
            self.w.release(w)
            x = torch.randint(0, 5, r.choice([(), (3,), (2, 3)]), dtype=r.choice([torch.int64, torch.int32]))
            w, padding = self.w.of(x), r.choice([None, 0, 2, -1])
            most, norm, scale = r.choice([None, None, 1., .5]), r.choice([2., 2., 1., 3.]), r.random() < .3
            theirs = [5, 3, padding, most, norm, scale]
            ours = [C.c_int64(5), C.c_int64(3), C.byref(Embedding(Options(), padding is not None, padding or 0, most or 0, norm, scale))]
        theirs = make(*theirs)
        m = self.module(name, theirs, *ours)
        def run():
            with torch.no_grad():
                return theirs(x)
        self.own_strides = True
        self.judge(f"{theirs} of {tuple(x.shape)}", run, lambda: self.w.new("module_call", m, w), torch.ones(()) * 4, 8)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.w.release(w)

    def convolution_layer(self):
        r = self.r
        three = lambda v: (C.c_int64 * 3)(*v)
        axes, turned = r.choice([(1, False), (3, False), (1, True), (2, True), (3, True)])
        groups, bias, same = r.choice([1, 1, 2]), r.random() < .6, not turned and r.random() < .2
        a, b = groups * r.randint(1, 3), groups * r.randint(1, 3)
        pick = lambda *values: [r.choice(values) for _ in range(axes)]
        # torch pads by itself where places are even, and counts what it has padded
        kernel, pad, dilation = pick(1, 3) if same else pick(1, 2, 3), pick(0, 0, 1), pick(1, 1, 2)
        stride, more = [1] * axes if same else pick(1, 2), [0] * axes
        if turned:
            more = [r.choice([0, max(s, d) - 1]) for s, d in zip(stride, dilation)]
        options = {"output_padding": more} if turned else {}
        theirs = getattr(torch.nn, f"Conv{'Transpose' * turned}{axes}d")(
            a, b, kernel, stride, "same" if same else pad, dilation=dilation, groups=groups, bias=bias, **options)
        m = self.module(f"conv{'_transpose' * turned}{axes}d", theirs, C.c_int64(a), C.c_int64(b), three(kernel), C.byref(
            ConvLayer(Options(), not bias, three(stride), three([0] * axes if same else pad), three(dilation), three(more), groups, same)))
        x, w = self.tensor([2, a] + [r.randint(5, 7) for _ in range(axes)], torch.float32, small=True)
        def run():
            with torch.no_grad():
                return theirs(x)
        self.own_strides = True
        self.judge(f"{theirs} of {tuple(x.shape)}", run, lambda: self.w.new("module_call", m, w), torch.ones(()) * 8, 16)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.w.release(w)

    # ---- recurrent layers

    def recurrent(self):
        r = self.r
        name = r.choice(["LSTM", "GRU", "RNN"])
        inputs, hidden, layers = r.choice([1, 3, 4]), r.choice([2, 3, 5]), r.choice([1, 1, 2, 3])
        bias, first, both = r.random() < .7, r.random() < .5, r.random() < .4
        proj, relu = r.choice([0, 0, 1]) if name == "LSTM" else 0, name == "RNN" and r.random() < .5
        dtype = r.choice([torch.float32] * 3 + [torch.float64])
        more = {"proj_size": proj} if name == "LSTM" else {"nonlinearity": "relu" if relu else "tanh"} if name == "RNN" else {}
        theirs = getattr(torch.nn, name)(inputs, hidden, num_layers=layers, bias=bias, batch_first=first, bidirectional=both, dtype=dtype, **more)
        o = Recurrent(Options(dtype=7 if dtype == torch.float32 else 8), layers, not bias, first, both, relu, 0, proj)
        m = self.module(name.lower(), theirs, C.c_int64(inputs), C.c_int64(hidden), C.byref(o))
        n, l = r.choice([1, 2, 3]), r.choice([1, 2, 7])
        batched, given = r.random() < .8, r.random() < .5
        x = [l, inputs if r.random() < .97 else inputs + 1]
        if batched:
            x.insert(0 if first else 1, n)
        t, w = self.tensor(x if r.random() < .98 else x + [1], dtype, small=True)
        rows = layers * (2 if both else 1)
        state = lambda f: self.tensor(([rows, n, f] if batched else [rows, f]) if r.random() < .97 else [rows + 1, n, f], dtype, small=True)
        (h, wh), (c, wc) = (state(proj or hidden), state(hidden)) if given else ((None, None), (None, None))
        lstm = name == "LSTM"
        what = (f"{name} {inputs} {hidden} layers {layers} bias {bias} first {first} both {both} proj {proj} relu {relu} {dtype} of {tuple(t.shape)} "
                f"state {None if h is None else (tuple(h.shape), tuple(c.shape))}")
        def run():
            with torch.no_grad():
                y, z = theirs(t, ((h, c) if lstm else h) if given else None)
            return (y,) + (tuple(z) if lstm else (z,))
        self.own_strides = True
        self.judge(what, run, lambda: self.several("recurrent", 3, m, w, wh, wc if lstm else None, wanted=[True, True, lstm]), torch.ones(()), 64)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.end([x for x in (w, wh, wc) if x])

    def cell(self):
        r = self.r
        name = r.choice(["LSTM", "GRU", "RNN"])
        inputs, hidden, bias, relu = r.choice([1, 3, 4]), r.choice([2, 3, 5]), r.random() < .7, name == "RNN" and r.random() < .5
        more = {"nonlinearity": "relu" if relu else "tanh"} if name == "RNN" else {}
        theirs = getattr(torch.nn, name + "Cell")(inputs, hidden, bias, **more)
        m = self.module(name.lower() + "_cell", theirs, C.c_int64(inputs), C.c_int64(hidden),
                        C.byref(Recurrent(Options(), 0, not bias, False, False, relu, 0, 0)))
        lead = r.choice([[], [1], [3], [3]])
        t, w = self.tensor(lead + [inputs if r.random() < .95 else inputs + 1], torch.float32, small=True)
        (h, wh), (c, wc) = [self.tensor((lead if r.random() < .95 else [2] * len(lead)) + [hidden if r.random() < .97 else hidden + 1], torch.float32, small=True) for _ in "hc"]
        given, lstm = r.random() < .7, name == "LSTM"
        def run():
            with torch.no_grad():
                z = theirs(t, ((h, c) if lstm else h) if given else None)
            return (z[0],) + tuple(z) if lstm else (z, z)
        self.own_strides = True
        self.judge(f"{name}Cell {inputs} {hidden} {bias} {relu} {tuple(t.shape)} {tuple(h.shape)} {tuple(c.shape)} {given}", run,
                   lambda: self.several("recurrent", 3, m, w, wh if given else None, wc if given and lstm else None,
                                        wanted=[True, True, lstm]), torch.ones(()), 64)
        self.own_strides = False
        self.w.lib.weir_module_release(m)
        self.end([w, wh, wc])

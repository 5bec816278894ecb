"""Cases of ops.py: sums of products, products added to something, distances and what is made of vectors."""
import ctypes as C
import math

import torch

FLOATS = [torch.float32] * 4 + [torch.float64, torch.complex64, torch.int64]


class Linalg:
    def arrays(self, tensors):
        return (C.c_void_p * len(tensors))(*[t.value for t in tensors]), len(tensors)

    def some(self, shapes, dtype):
        """Tensors of these shapes, torch's and Weir's; a dtype is seldom another."""
        pairs = [self.tensor(s, dtype if self.r.random() < .97 else torch.float64, small=True) for s in shapes]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def end(self, tensors):
        for t in tensors:
            self.w.release(t)

    # ---- einsum

    def einsum_equation(self):
        """An equation, mostly right, and the operands' shapes."""
        r = self.r
        if r.random() < .25:
            return r.choice([
                ("bij,bjk->bik", [[3, 2, 4], [3, 4, 5]]), ("ii->i", [[4, 4]]), ("ii", [[4, 4]]), ("ij->ji", [[2, 3]]),
                ("i,j->ij", [[2], [3]]), ("...ij,...jk->...ik", [[2, 1, 3, 4], [5, 4, 2]]), ("bhid,bhjd->bhij", [[2, 3, 4, 5], [2, 3, 6, 5]]),
                ("ij,jk,kl->il", [[2, 3], [3, 4], [4, 5]]), ("i j,j k", [[2, 3], [3, 4]]), ("...->", [[2, 3]]),
                ("bn,anm,bm->ba", [[2, 3], [4, 3, 5], [2, 5]]), ("iij->ij", [[3, 3, 2]]), ("iij->j", [[3, 2, 2]]),
                ("ij->ijk", [[2, 3]]), ("ij->ii", [[2, 3]]), ("ij", [[2, 3, 4]]), ("...ijk", [[2, 3]]), ("ij,jk", [[2, 3]]),
                ("ij", [[2, 3], [3, 4]]), ("i.j", [[2, 3]]), ("i....j", [[2, 3]]), ("i...j...", [[2, 3]]), ("i%j", [[2, 3]]),
                ("ij->i1", [[2, 3]]), ("ij->i.", [[2, 3]]), ("ij->......i", [[2, 3]]), ("ij,jk->ik", [[2, 3], [4, 5]]),
                ("...i,...i->...", [[2, 3], [4, 3]]), ("", [[]]), ("->", [[]]), (",->", [[], []]), ("i,->i", [[3], []]),
                ("b...,b...->b...", [[2, 3], [2, 1]]), ("...a->...", [[2, 3, 4]]), ("...a->a", [[2, 3, 4]])])
        sizes = {c: r.choice([1, 2, 3, 4]) for c in "abcdeXY"}
        count = r.choice([1, 2, 2, 2, 3])
        names, shapes = [], []
        for _ in range(count):
            letters = [r.choice("abcdeXY"[:r.choice([3, 5, 7])]) for _ in range(r.randint(0, 4))]
            shape = [sizes[c] if r.random() < .9 else 1 for c in letters]
            if r.random() < .02 and shape:
                shape[0] += 1
            if r.random() < .25:
                at = r.randint(0, len(letters))
                extra = [r.choice([1, 2]) for _ in range(r.randint(0, 2))]
                letters.insert(at, "...")
                shape[at:at] = extra
            names.append("".join(letters))
            shapes.append(shape)
        equation = ",".join(names)
        if r.random() < .7:
            used = sorted(set("".join(names)) - {"."})
            r.shuffle(used)
            equation += "->" + ("..." if r.random() < .5 and "." in equation else "") + "".join(used[:r.randint(0, len(used))])
        return equation, shapes

    def einsum(self):
        equation, shapes = self.einsum_equation()
        if len(set(equation) - set(" .,->")) + 2 * ("." in equation) > 8:
            return  # more dimensions than a tensor of Weir's has
        dtype = self.r.choice(FLOATS)
        pairs = [self.tensor(s, dtype, small=True) for s in shapes]
        t, w = [p[0] for p in pairs], [p[1] for p in pairs]
        what = f"einsum {equation!r} {[tuple(x.shape) for x in t]} {[x.stride() for x in t]} {[x.dtype for x in t]}"
        array, count = self.arrays(w)
        bound = torch.ones(()) * 200
        self.own_strides = True
        self.judge(what, lambda: torch.einsum(equation, *t), lambda: self.w.new("einsum", equation.encode(), array, count), bound, 16)
        self.own_strides = False
        self.end(w)

    # ---- contractions

    def contraction(self):
        r = self.r
        name = r.choice(["tensordot", "tensordot_dims", "inner", "outer", "multi_dot"])
        dtype = r.choice(FLOATS)
        bound = torch.ones(()) * 400
        if name == "multi_dot":
            sizes = [r.randint(1, 5) for _ in range(r.randint(2, 6))]
            shapes = [[a, b] for a, b in zip(sizes, sizes[1:])]
            if r.random() < .3:
                shapes[0] = shapes[0][1:]
            if r.random() < .3:
                shapes[-1] = shapes[-1][:1]
            if r.random() < .1:
                shapes[r.randrange(len(shapes))] = [2] * r.randint(0, 3)
            t, w = self.some(shapes, dtype)
            array, count = self.arrays(w)
            what = f"multi_dot {[tuple(x.shape) for x in t]} {[x.dtype for x in t]}"
            self.judge(what, lambda: torch.linalg.multi_dot(t), lambda: self.w.new(name, array, count), bound * 20, 16)
        elif name in ("inner", "outer"):
            k = r.randint(1, 4)
            shapes = [[r.randint(1, 3) for _ in range(r.randint(0, 2))] + [k if r.random() < .95 else 5] for _ in "ab"]
            if name == "outer":
                shapes = [s if r.random() < .1 else s[-1:] for s in shapes]
            t, w = self.some([s if r.random() < .95 else [] for s in shapes], dtype)
            what = f"{name} {[tuple(x.shape) for x in t]} {[x.dtype for x in t]}"
            self.judge(what, lambda: getattr(torch, name)(*t), lambda: self.w.new(name, *w), bound, 16)
        else:
            n = r.randint(0, 2)
            common = [r.randint(1, 3) for _ in range(n)]
            a = [r.randint(1, 3) for _ in range(r.randint(0, 2))] + common
            b = [c if r.random() < .9 else 1 for c in common] + [r.randint(1, 3) for _ in range(r.randint(0, 2))]
            if r.random() < .05 and b:
                b[0] = 5
            t, w = self.some([a, b], dtype)
            what = f"{name} {tuple(a)} {tuple(b)} {n} {[x.dtype for x in t]}"
            if name == "tensordot":
                n = n if r.random() < .9 else r.choice([-1, n + 1, 6])
                self.judge(what, lambda: torch.tensordot(*t, n), lambda: self.w.new(name, *w, n), bound, 16)
            else:
                da, db = [r.randint(-len(a), len(a) - 1) if r.random() < .1 else len(a) - n + i for i in range(n)], list(range(n))
                what += f" {da} {db}"
                self.judge(what, lambda: torch.tensordot(*t, (da, db)),
                           lambda: self.w.new(name, *w, (C.c_int * 8)(*da), (C.c_int * 8)(*db), n), bound, 16)
        self.end(w)

    def added(self):
        r = self.r
        name = r.choice(["addmv", "addr", "addbmm", "baddbmm"])
        dtype = r.choice(FLOATS + [torch.bool])
        b, n, m, p = (r.choice([1, 2, 3, 4, 5]) for _ in "bnmp")
        out, x, y = {"addmv": ([n], [n, m], [m]), "addr": ([n, p], [n], [p]), "addbmm": ([n, p], [b, n, m], [b, m, p]),
                     "baddbmm": ([b, n, p], [b, n, m], [b, m, p])}[name]
        if r.random() < .3 and name != "addmv":
            out = self.like(out)
        shapes = [out, x, y]
        if r.random() < .08:
            s = r.choice(shapes)
            s[r.randrange(len(s))] += 1
        if r.random() < .03:
            shapes[r.randrange(3)] = [2, 2]
        t, w = self.some(shapes, dtype)
        alpha, beta = r.choice([(1, 1), (2, 3), (1, 0), (-1, 1)])
        number = scalar_of if name == "addr" else C.c_double
        what = f"{name} {[tuple(v.shape) for v in t]} {[v.dtype for v in t]} beta {beta} alpha {alpha}"
        self.own_strides = name == "addr"
        self.judge(what, lambda: getattr(torch, name)(*t, beta=beta, alpha=alpha),
                   lambda: self.w.new(name, *w, number(beta), number(alpha)), torch.ones(()) * 400, 16)
        self.own_strides = False
        self.end(w)

    # ---- of vectors

    def vectors(self):
        r = self.r
        name = r.choice(["cdist", "kron", "cross", "vander"])
        dtype = r.choice(FLOATS + [torch.float16])
        bound = torch.ones(()) * 100
        if name == "cdist":
            k, batch = r.choice([0, 1, 3, 5]), [r.randint(1, 2) for _ in range(r.choice([0, 0, 1, 2]))]
            many = r.random() < .2
            sa, sb = batch + [r.choice([30, 40]) if many else r.randint(0, 5), k], self.like(batch) + [r.randint(1, 5), k if r.random() < .95 else 2]
            if r.random() < .05:
                sa = sa[-1:]
            t, w = zip(*[self.tensor(s, dtype, small=True) for s in (sa, sb)]) if many else self.some([sa, sb], dtype)
            p = r.choice([2., 2., 1., 0., .5, 3., math.inf, -1.])
            # torch's own product of rows, like ours, is off by the root of its rounding near 0
            self.judge(f"cdist {tuple(sa)} {tuple(sb)} {[x.dtype for x in t]} {p}", lambda: torch.cdist(*t, p),
                       lambda: self.w.new(name, *w, C.c_double(p)), bound if not many else bound * 4, 16)
        elif name == "kron":
            t, w = self.some([[r.randint(0, 3) for _ in range(r.randint(0, 3))] for _ in "ab"], dtype)
            self.own_strides = True
            self.judge(f"kron {[tuple(x.shape) for x in t]} {[x.dtype for x in t]}", lambda: kron(*t),
                       lambda: self.w.new(name, *w))
            self.own_strides = False
        elif name == "cross":
            s = [r.randint(1, 3) for _ in range(r.randint(0, 2))]
            at = r.randint(0, len(s))
            s.insert(at, 3 if r.random() < .95 else 2)
            other = [v if v == 3 or r.random() < .8 else 1 for v in s]
            dim = at if r.random() < .7 else r.randint(-len(s) - 1, len(s))
            t, w = self.some([s, other if r.random() < .97 else other + [1]], r.choice([dtype, dtype, torch.bool]))
            self.own_strides = True
            self.judge(f"cross {tuple(s)} {tuple(other)} {dim} {[x.dtype for x in t]}", lambda: torch.linalg.cross(*t, dim=dim),
                       lambda: self.w.new(name, *w, dim), bound, 4)
            self.own_strides = False
        else:
            t, w = self.some([[r.randint(0, 5)] if r.random() < .95 else [2, 2]], dtype)
            n, increasing = r.choice([0, 1, 3, 5, -1]), r.random() < .5
            self.own_strides = True
            self.judge(f"vander {tuple(t[0].shape)} {dtype} {n} {increasing}", lambda: torch.vander(t[0], n, increasing),
                       lambda: self.w.new(name, *w, C.c_int64(n), increasing), several=8)
            self.own_strides = False
        self.end(w)


def kron(a, b):
    """torch's, which takes a view of its product, though there is not always one."""
    try:
        return torch.kron(a, b)
    except RuntimeError as e:
        if "view size is not compatible" not in str(e):
            raise
        n = max(a.dim(), b.dim())
        x, y = a.reshape([1] * (n - a.dim()) + list(a.shape)), b.reshape([1] * (n - b.dim()) + list(b.shape))
        for d in range(n):
            x, y = x.unsqueeze(2 * d + 1), y.unsqueeze(2 * d)
        z = x * y
        return z.reshape([z.shape[2 * d] * z.shape[2 * d + 1] for d in range(n)])


class Number(C.Structure):
    _fields_ = [("dtype", C.c_int), ("i", C.c_int64), ("f", C.c_double), ("imag", C.c_double)]


def scalar_of(v):
    return Number(5, v, 0, 0)

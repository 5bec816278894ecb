"""Cases of ops.py: sums of products, products added to something, distances and what is made of vectors."""
import ctypes as C
import math

import torch

FLOATS = [torch.float32] * 4 + [torch.float64, torch.complex64, torch.int64]


class Factors:
    def matrix_of(self, rows, columns, dtype, kind):
        """Matrices of a batch: random ones, singular ones of small integers, symmetric or positive ones."""
        r = self.r
        lead = r.choice([[], [], [2], [2, 3], [0]])
        t = torch.randn(lead + [rows, columns], dtype=torch.float64)
        if kind == "singular":
            t = t.round()
            if rows and columns:
                t[..., -1, :] = t[..., 0, :] if rows > 1 else 0
        if kind in ("symmetric", "positive") and rows == columns:
            t = t + t.mT if kind == "symmetric" else t @ t.mT + torch.eye(rows, dtype=torch.float64)
        t = t.to(dtype)
        w = self.w.of(t)
        if r.random() < .3:
            t, w = t.mT.contiguous().mT, self.moved(self.w.of(t.mT.contiguous()), "transpose", -1, -2)
        return t, w

    def bound_of(self, t):
        x = t.detach().double().nan_to_num(0, 0, 0).abs()
        return (x.max() if x.numel() else torch.zeros(())) + 1

    def condition(self, t):
        if not t.numel():
            return 1.
        s = torch.linalg.svdvals(t.double())
        return float((s[..., 0] / s[..., -1]).nan_to_num(math.inf).max())

    def factor(self):
        r = self.r
        name = r.choice(["det", "slogdet", "inv", "solve", "solve_triangular", "cholesky", "qr", "eigvalsh", "svdvals", "pinv", "matrix_rank",
                         "lstsq", "matrix_power", "matrix_norm", "eigh", "svd", "lu_factor", "lu", "lu_solve", "cholesky_solve", "cholesky_inverse", "cond"])
        dtype = r.choice([torch.float32] * 3 + [torch.float64])
        n, m = r.choice([1, 2, 3, 5, 8]), r.choice([1, 2, 3, 5, 8])
        square = name not in ("qr", "svdvals", "pinv", "matrix_rank", "lstsq", "matrix_norm", "svd", "lu_factor", "lu") and (name != "cond" or r.random() < .7)
        if square and r.random() < .97:
            m = n
        kind = "positive" if name.startswith("cholesky") and r.random() < .9 else "symmetric" if name.startswith("eig") else \
            "singular" if name in ("det", "inv", "solve", "matrix_rank", "lu_factor", "lu", "cond") and r.random() < .3 else "any"
        if kind == "singular" and name != "matrix_rank":
            m, n = m and 2, n and 2  # of larger ones rounding decides which element of the diagonal is 0, if one is
        t, w = self.matrix_of(m, n, dtype, kind)
        if r.random() < .03:
            t = t[..., 0] if t.dim() == 2 or name.startswith("eig") else t.to(torch.int64)
            self.w.release(w)
            w = self.w.of(t)
        self.own_strides = True
        try:
            getattr(self, "on_" + name, self.plain)(name, t, w)
        finally:
            self.own_strides = False
            self.w.release(w)

    def many(self, name, count, *arguments):
        outs = [C.c_void_p() for _ in range(count)]
        self.w.check(getattr(self.w.lib, "weir_" + name)(*[C.byref(o) for o in outs], *arguments))
        return outs

    def good(self, t):
        return t.dim() < 2 or not t.is_floating_point() or t.shape[-1] != t.shape[-2] or self.condition(t) < 1e4

    def plain(self, name, t, w):
        if name != "det" and not self.good(t) and not bool((torch.linalg.det(t) == 0).any()):
            return  # torch's own result has few digits
        scale = self.bound_of(t) ** max(t.shape[-1] if t.dim() else 1, 1) * 50 if name == "det" else None
        if name == "inv" and t.is_floating_point() and t.numel() and t.dim() >= 2 and t.shape[-1] == t.shape[-2] and self.condition(t) < 1e5:
            scale = self.bound_of(torch.linalg.inv(t.double())) * self.condition(t)
        extra = (False,) if name == "eigvalsh" else ()
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: getattr(torch.linalg, name)(t), lambda: self.w.new(name, w, *extra),
                   scale if scale is not None else self.bound_of(t) * 8, 64)

    def on_slogdet(self, name, t, w):
        if not self.good(t):
            return
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: tuple(torch.linalg.slogdet(t)), lambda: self.many(name, 2, w), torch.ones(()) * 200, 64)

    def on_solve(self, name, t, w):
        r = self.r
        k = t.shape[-1] if t.dim() else 1
        lead = list(t.shape[:-2])
        b = torch.randn(r.choice([lead + [k, 2], lead + [k, 2], lead + [k], [k], [k, 2], [k + 1, 2]]), dtype=t.dtype if t.is_floating_point() else torch.float32)
        if r.random() < .03:
            b = b.to(torch.float16)
        o = self.w.of(b)
        singular = t.is_floating_point() and t.dim() >= 2 and t.shape[-1] == t.shape[-2] and not self.good(t)
        exact = singular and t.numel() and bool((torch.linalg.det(t) == 0).any())
        if (not singular or exact) and t.numel():
            scale = torch.ones(()) * 100 if singular or t.dim() < 2 or not t.is_floating_point() else torch.ones(()) * 10 * self.condition(t)
            self.judge(f"{name} {tuple(t.shape)} {t.dtype} {tuple(b.shape)} {b.dtype}", lambda: torch.linalg.solve(t, b), lambda: self.w.new(name, w, o), scale, 64)
        self.w.release(o)

    def on_solve_triangular(self, name, t, w):
        r = self.r
        upper, left, unit = (r.random() < .5 for _ in "ulu")
        k = t.shape[-1] if t.dim() else 1
        b = torch.randn(([k, 2] if left else [2, k]) if r.random() < .9 else [k], dtype=t.dtype if t.is_floating_point() else torch.float32)
        o = self.w.of(b)
        if t.is_floating_point() and t.dim() >= 2 and t.numel() and t.shape[-1] == t.shape[-2]:
            x = t.double().triu() if upper else t.double().tril()
            scale = torch.ones(()) * 10 * self.condition(x if not unit else x - torch.diag_embed(x.diagonal(0, -2, -1)) + torch.eye(t.shape[-2], t.shape[-1]))
            if float(scale) < 1e5:
                self.judge(f"{name} {tuple(t.shape)} {tuple(b.shape)} {t.dtype} {upper} {left} {unit}",
                           lambda: torch.linalg.solve_triangular(t, b, upper=upper, left=left, unitriangular=unit),
                           lambda: self.w.new(name, w, o, upper, left, unit), scale * self.bound_of(b), 64)
        self.w.release(o)

    def on_cholesky(self, name, t, w):
        upper = self.r.random() < .5
        self.judge(f"{name} {tuple(t.shape)} {t.dtype} {upper}", lambda: torch.linalg.cholesky(t, upper=upper), lambda: self.w.new(name, w, upper),
                   self.bound_of(t) * 20, 64)

    def on_lu_factor(self, name, t, w):
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: tuple(torch.linalg.lu_factor(t)), lambda: self.many(name, 2, w, True), self.bound_of(t) * 200, 64)

    def on_lu(self, name, t, w):
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: tuple(torch.linalg.lu(t)), lambda: self.many(name, 3, w, True), self.bound_of(t) * 200, 64)

        if t.is_floating_point() and t.dim() >= 2 and t.numel():
            lu, pivots = torch.linalg.lu_factor_ex(t)[:2]
            ours = [self.w.of(lu), self.w.of(pivots)]
            self.judge(f"lu_unpack {tuple(t.shape)} {t.dtype}", lambda: torch.lu_unpack(lu, pivots), lambda: self.many("lu_unpack", 3, *ours))
            self.end(ours)

    def on_lu_solve(self, name, t, w):
        r = self.r
        if t.is_floating_point() and t.dim() >= 2 and (not self.good(t) or not t.numel()):
            return
        k, left, adjoint, half = t.shape[-1] if t.dim() else 1, r.random() < .6, r.random() < .4, r.random() < .03
        lu, pivots = torch.linalg.lu_factor(t)[:2] if t.is_floating_point() and t.dim() >= 2 else (t, torch.ones(k, dtype=torch.int32))
        pivots = pivots.long() if r.random() < .03 else pivots + k if r.random() < .03 else pivots[..., :1] if r.random() < .03 else pivots
        lead = r.choice([[], list(t.shape[:-2]), [2] + [1] * (t.dim() - 2)])
        b = torch.randn(lead + r.choice(([k, 2], [k, 3], [k, 0]) if left else ([2, k], [3, k])) if r.random() < .95 else [k], dtype=torch.float64 if half else lu.dtype if lu.is_floating_point() else None)
        ours = [self.w.of(x) for x in (lu, pivots, b)]
        scale = torch.ones(()) * 100 * (self.condition(t) if t.is_floating_point() and t.dim() >= 2 and t.shape[-1] == t.shape[-2] else 1)
        self.judge(f"{name} {tuple(lu.shape)} {lu.dtype} {tuple(pivots.shape)} {pivots.dtype} {tuple(b.shape)} {b.dtype} {left} {adjoint}",
                   lambda: torch.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint), lambda: self.w.new(name, *ours, left, adjoint), scale, 64)
        self.end(ours)

    def on_cholesky_solve(self, name, t, w):
        r = self.r
        k, upper = t.shape[-1] if t.dim() else 1, r.random() < .5
        if t.is_floating_point() and t.numel() and t.dim() >= 2:
            t = t + 3 * torch.eye(t.shape[-2], k, dtype=t.dtype)
        b = torch.randn([k + (r.random() < .05), 2] if r.random() < .5 else list(t.shape[:-2]) + [k, 3] if r.random() < .95 else [k]).to(t.dtype if r.random() < .97 else torch.float64)
        ours = [self.w.of(x) for x in (b, t)]
        scale = 1.
        if t.is_floating_point() and t.dim() >= 2 and t.shape[-1] == t.shape[-2]:
            scale = self.condition(t.double().triu() if upper else t.double().tril()) ** 2
        if scale < 1e5:
            self.judge(f"{name} {tuple(b.shape)} {b.dtype} {tuple(t.shape)} {t.dtype} {upper}", lambda: torch.cholesky_solve(b, t, upper=upper),
                       lambda: self.w.new(name, *ours, upper), torch.ones(()) * 100 * scale, 64)
        self.end(ours)

    def on_cholesky_inverse(self, name, t, w):
        upper, scale = self.r.random() < .5, 1.
        if t.is_floating_point() and t.dim() >= 2 and t.numel() and t.shape[-1] == t.shape[-2]:
            if self.r.random() < .1:
                t = t.clone()
                t[..., -1, -1] = 0
            else:
                scale = self.condition(t.double().triu() if upper else t.double().tril()) ** 2
        ours = self.w.of(t)
        if scale < 1e5:
            self.judge(f"{name} {tuple(t.shape)} {t.dtype} {upper}", lambda: torch.cholesky_inverse(t, upper=upper), lambda: self.w.new(name, ours, upper),
                       torch.ones(()) * 100 * scale, 64)
        self.w.release(ours)

    def on_cond(self, name, t, w):
        p = self.r.choice([None, 2, -2, "fro", "nuc", 1, -1, math.inf, -math.inf, 3, "x"])
        singular = t.is_floating_point() and t.dim() >= 2 and not self.good(t)
        if singular and (p in (None, 2, -2, "nuc") or not bool((torch.linalg.det(t) == 0).all())):
            return  # how small the least singular value is is rounding's
        scale = torch.ones(()) * 100
        if t.is_floating_point() and t.dim() >= 2 and t.shape[-1] == t.shape[-2] and not singular:
            scale = scale * self.condition(t) ** 2
        self.judge(f"{name} {tuple(t.shape)} {t.dtype} {p}", lambda: torch.linalg.cond(t, p), lambda: self.w.new(name, w, str(p).encode() if p is not None else None), scale, 64)

    def on_qr(self, name, t, w):
        mode = self.r.choice(["reduced", "complete", "r", "x"] if self.r.random() < .1 else ["reduced", "complete"])
        self.judge(f"{name} {tuple(t.shape)} {t.dtype} {mode}", lambda: tuple(torch.linalg.qr(t, mode)), lambda: self.many(name, 2, w, mode.encode()),
                   self.bound_of(t) * 200, 64)

    def on_pinv(self, name, t, w):
        if not t.is_floating_point() or t.dim() < 2 or self.condition(t) < 1e3:
            self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: torch.linalg.pinv(t), lambda: self.w.new(name, w, C.c_double(-1)),
                       self.bound_of(t) * 1000, 64)

    def on_matrix_rank(self, name, t, w):
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: torch.linalg.matrix_rank(t), lambda: self.w.new(name, w, C.c_double(-1)))

    def on_lstsq(self, name, t, w):
        if not t.is_floating_point() or t.dim() < 2 or not t.numel() or self.condition(t) > 1e3:
            return
        b = torch.randn(list(t.shape[:-1]) + [2], dtype=t.dtype)
        o = self.w.of(b)
        self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: torch.linalg.lstsq(t, b).solution, lambda: self.w.new(name, w, o), torch.ones(()) * 2000, 64)
        self.w.release(o)

    def on_matrix_power(self, name, t, w):
        p = self.r.choice([0, 1, 2, 3, 5, -1, -2])
        if p >= 0 or self.good(t) and t.is_floating_point():
            bound = self.bound_of(t) ** max(p, 1) * 1000 if p >= 0 else torch.ones(()) * 1000 * (self.condition(t) ** 2 if t.dim() >= 2 and t.shape[-1] == t.shape[-2] else 1)
            self.judge(f"{name} {tuple(t.shape)} {t.dtype} {p}", lambda: torch.linalg.matrix_power(t, p), lambda: self.w.new(name, w, C.c_int64(p)), bound, 64)

    def on_matrix_norm(self, name, t, w):
        r = self.r
        o = r.choice(["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf, 3])
        dims = [r.randint(-t.dim(), t.dim()) for _ in "ab"] if r.random() < .2 and t.dim() else None
        keep = r.random() < .5
        if not t.numel():
            return  # torch's refusals of nothing name functions that ours does not call
        self.judge(f"{name} {tuple(t.shape)} {t.dtype} {o} {dims} {keep}", lambda: torch.linalg.matrix_norm(t, o, dims or (-2, -1), keep),
                   lambda: self.w.new(name, w, str(o).encode(), (C.c_int * 2)(*dims) if dims else None, keep), self.bound_of(t) * 50, 64)

    def on_eigh(self, name, t, w):
        upper = self.r.random() < .5
        def ours():
            self.basis = self.many(name, 2, w, upper)
            return self.basis[0]
        self.basis = None
        if t.dtype != torch.int64:
            self.judge(f"{name} {tuple(t.shape)} {t.dtype}", lambda: torch.linalg.eigh(t, "U" if upper else "L")[0], ours, self.bound_of(t) * 20, 64)
        if self.basis and t.numel() and torch.equal(t, t.mT):
            v = self.w.elements(self.basis[1], t.dtype).reshape(t.shape).double()
            x = t.double()
            near = self.bound_of(t) * 1e3 * torch.finfo(t.dtype).eps
            values = torch.linalg.eigh(x)[0]
            if (x @ v - v * values.unsqueeze(-2)).abs().max() > near or (v.mT @ v - torch.eye(t.shape[-1])).abs().max() > near:
                self.complain(f"{name}: vectors", x, v)
        if self.basis:
            self.w.release(self.basis[1])

    def on_svd(self, name, t, w):
        full = self.r.random() < .5
        def ours():
            self.parts = self.many(name, 3, w, full)
            return self.parts[1]
        self.parts = None
        self.judge(f"{name} {tuple(t.shape)} {t.dtype} {full}", lambda: torch.linalg.svd(t, full)[1], ours, self.bound_of(t) * 20, 64)
        if self.parts:
            want = torch.linalg.svd(t, full)
            u, vh = (self.w.elements(self.parts[i], t.dtype).reshape(want[i].shape).double() for i in (0, 2))
            k, near = want[1].shape[-1], self.bound_of(t) * 1e3 * torch.finfo(t.dtype).eps
            again = (u[..., :k] * want[1].double().unsqueeze(-2)) @ vh[..., :k, :]
            if t.numel() and ((again - t.double()).abs().max() > near or (u.mT @ u - torch.eye(u.shape[-1])).abs().max() > near or
                              (vh @ vh.mT - torch.eye(vh.shape[-2])).abs().max() > near):
                self.complain(f"{name}: vectors", want, (u, vh))
            self.w.release(self.parts[0])
            self.w.release(self.parts[2])


class Linalg(Factors):
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

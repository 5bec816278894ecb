"""Optimizers beside PyTorch's.

    python tests/peers/optim.py LIBWEIR [RUNS [SEED]]

Each run makes parameters of random shapes and dtypes in both libraries, in one or two groups, an optimizer of a random
kind with random options, and makes 1 to 12 steps with the same gradients, some of them clipped, some parameters without
any; now and then the state goes through a set of tensors into another optimizer. After each step every parameter must be
torch's to the rounding of its dtype, grown by the steps. Options that torch refuses must be refused with its sentence.
Ends with a line that counts steps, exit status 1 where they differ.
"""
import ctypes as C
import sys
import warnings

import torch

from tensors import Failed, Run, Weir, shape

warnings.filterwarnings("ignore")

KINDS = [(torch.optim.SGD, "lr weight_decay momentum dampening nesterov maximize"),
         (torch.optim.Adam, "lr weight_decay betas eps amsgrad maximize"),
         (torch.optim.AdamW, "lr weight_decay betas eps amsgrad maximize"),
         (torch.optim.RMSprop, "lr weight_decay alpha eps momentum centered maximize"),
         (torch.optim.Adagrad, "lr weight_decay lr_decay eps initial_accumulator_value maximize")]
EPS = {torch.float32: 2.0**-23, torch.float64: 2.0**-52, torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}


class Options(C.Structure):
    _fields_ = [("lr", C.c_double), ("weight_decay", C.c_double), ("maximize", C.c_bool), ("momentum", C.c_double), ("dampening", C.c_double),
                ("nesterov", C.c_bool), ("beta1", C.c_double), ("beta2", C.c_double), ("eps", C.c_double), ("amsgrad", C.c_bool),
                ("alpha", C.c_double), ("centered", C.c_bool), ("lr_decay", C.c_double), ("initial_accumulator_value", C.c_double)]


class Optimizers(Run):
    def options(self, names):
        r = self.r
        bad = r.random() < .03
        values = {"lr": r.choice([1e-3, .1, .01, 0.]), "weight_decay": r.choice([0., 0., .01, .1]), "momentum": r.choice([0., .9, .5]),
                  "dampening": r.choice([0., 0., .1]), "nesterov": r.random() < .3, "maximize": r.random() < .2,
                  "betas": (r.choice([.9, .5, 0.]), r.choice([.999, .9])), "eps": r.choice([1e-8, 1e-3]), "amsgrad": r.random() < .3,
                  "alpha": r.choice([.99, .5]), "centered": r.random() < .3, "lr_decay": r.choice([0., .1]),
                  "initial_accumulator_value": r.choice([0., .5])}
        if bad:
            values[r.choice(["lr", "weight_decay"])] = -.5
        chosen = {n: values[n] for n in names.split() if r.random() < .8 or n == "lr"}
        return chosen

    def ours(self, kind, chosen):
        o = self.w.lib.weir_optim_defaults(kind)
        for name, v in chosen.items():
            if name == "betas":
                o.beta1, o.beta2 = v
            else:
                setattr(o, name, v)
        return o

    def parameter(self):
        r = self.r
        t = torch.randn([r.choice([1, 2, 3, 7, 40]) for _ in range(r.randint(0, 3))], dtype=torch.float64)
        t = t.to(r.choice([torch.float32] * 4 + [torch.float64, torch.bfloat16]))
        if t.dim() == 2 and r.random() < .3:
            t = t.t()
        t = t.clone().requires_grad_(True)
        w = self.w.of(t.detach().t() if t.dim() == 2 and not t.is_contiguous() else t.detach())
        if t.dim() == 2 and not t.is_contiguous():
            turned = self.w.new("t", w)
            self.w.release(w)
            w = turned
        self.w.check(self.w.lib.weir_requires_grad_(w, True))
        return t, w

    def create(self, kind, groups, chosen):
        lib, o = self.w.lib, C.c_void_p()
        for i, g in enumerate(groups):
            list_of = (C.c_void_p * len(g))(*[w.value for _, w in g])
            if not i:
                self.w.check(lib.weir_optimizer_create(C.byref(o), kind, list_of, len(g), C.byref(self.ours(kind, chosen[i]))))
            else:
                self.w.check(lib.weir_optimizer_add_group(o, list_of, len(g), C.byref(self.ours(kind, chosen[i]))))
        return o

    def gradients(self, group):
        for t, w in group:
            if self.r.random() < .1:
                t.grad = None
                self.w.check(self.w.lib.weir_tensor_set_grad(w, None))
                continue
            t.grad = torch.empty_like(t).copy_(torch.randn(t.shape, dtype=torch.float64))
            g = self.w.of(t.grad.contiguous())
            self.w.check(self.w.lib.weir_tensor_set_grad(w, g))
            self.w.release(g)

    def clip(self, group, what):
        r = self.r
        self.clipped = True  # by a norm in float32: what follows is as good as that
        list_of = (C.c_void_p * len(group))(*[w.value for _, w in group])
        if r.random() < .3 and any(t.grad is not None for t, _ in group):
            torch.nn.utils.clip_grad_value_([t for t, _ in group], .5)
            return self.w.check(self.w.lib.weir_clip_grad_value_(list_of, len(group), C.c_double(.5)))
        kind = r.choice([2., 2., 1., float("inf")])
        theirs = torch.nn.utils.clip_grad_norm_([t for t, _ in group], 1., kind)
        total = C.c_void_p()
        self.w.check(self.w.lib.weir_clip_grad_norm_(C.byref(total), list_of, len(group), C.c_double(1), C.c_double(kind)))
        mine = self.w.elements(total, torch.float64)[0]
        self.w.release(total)
        eps = max([EPS[t.dtype] for t, _ in group])
        if abs(float(theirs) - float(mine)) > 64 * eps * (1 + abs(float(theirs))):
            self.complain(what + f": norm {kind}", theirs, mine)
        return None

    def compare(self, what, group, step, scale):
        for t, w in group:
            mine = self.w.elements(w, t.dtype).reshape(t.shape)
            off = float((t.detach().double() - mine.double()).abs().max()) if t.numel() else 0
            bound = max(EPS[t.dtype], 2.0**-7 if self.clipped else 0) * (4 + 4 * step) * (float(t.detach().double().abs().max()) + scale)
            if not off <= bound:
                self.complain(f"{what}: {t.dtype} {tuple(t.shape)} after {step} steps, off by {off}, bound {bound}", t, mine)
                return False
        return True

    def renewed(self, kind, o, groups, chosen):
        """Another optimizer with the state of the first."""
        state, other = C.c_void_p(), self.create(kind, groups, chosen)
        self.w.check(self.w.lib.weir_optimizer_state(C.byref(state), o))
        self.w.check(self.w.lib.weir_optimizer_load_state(other, state))
        self.w.lib.weir_tensors_release(state)
        self.w.lib.weir_optimizer_release(o)
        return other

    def one(self):
        r = self.r
        kind = r.randrange(len(KINDS))
        make, names = KINDS[kind]
        groups = [[self.parameter() for _ in range(r.randint(1, 4))] for _ in range(r.choice([1, 1, 2]))]
        chosen = [self.options(names) for _ in groups]
        # torch's defaults are those of the first; it checks no other group's lr, and takes the first's sums for all
        same = {n: chosen[0][n] for n in ("lr", "weight_decay", "initial_accumulator_value", "momentum", "dampening", "nesterov") if n in chosen[0]}
        chosen = [chosen[0]] + [{**chosen[0], **c, **same} for c in chosen[1:]]
        chosen = [{n: v for n, v in c.items() if n in same or n not in ("initial_accumulator_value", "momentum", "dampening", "nesterov")} for c in chosen]
        for c in chosen[1:]:
            c["weight_decay"] = abs(c.get("weight_decay", 0.))
        self.clipped = False
        what = f"{make.__name__} {chosen}"
        wrong = sentence = theirs = o = None
        try:
            theirs = make([{"params": [t for t, _ in g], **c} for g, c in zip(groups, chosen)], **chosen[0])
        except ValueError as e:
            wrong = str(e)
        try:
            o = self.create(kind, groups, chosen)
        except Failed as e:
            sentence = str(e)
        if (wrong is None) != (sentence is None) or wrong and wrong != sentence:
            self.complain(what, wrong, sentence)
        steps = r.randint(1, 12) if theirs and o else 0
        for step in range(1, steps + 1):
            for g in groups:
                self.gradients(g)
                if r.random() < .2:
                    self.clip(g, what)
            theirs.step()
            self.w.check(self.w.lib.weir_optimizer_step(o))
            self.steps += 1
            if not all(self.compare(what, g, step, 1) for g in groups):
                break
            if r.random() < .1:
                o = self.renewed(kind, o, groups, chosen)
        if o:
            self.w.lib.weir_optimizer_zero_grad(o)
            self.w.lib.weir_optimizer_release(o)
        for g in groups:
            for _, w in g:
                if o and self.w.lib.weir_tensor_grad(w):
                    self.complain(what, "no gradient", "one")
                self.w.release(w)


class Schedules(C.Structure):
    _fields_ = [("step_size", C.c_int64), ("gamma", C.c_double), ("milestones", C.POINTER(C.c_int64)), ("milestone_count", C.c_int),
                ("factor", C.c_double), ("total_iters", C.c_int64), ("start_factor", C.c_double), ("end_factor", C.c_double), ("power", C.c_double),
                ("t_max", C.c_int64), ("t_0", C.c_int64), ("t_mult", C.c_int64), ("eta_min", C.c_double), ("max_lr", C.c_double),
                ("total_steps", C.c_int64), ("pct_start", C.c_double), ("div_factor", C.c_double), ("final_div_factor", C.c_double),
                ("linear", C.c_bool), ("three_phase", C.c_bool), ("keep_momentum", C.c_bool), ("base_momentum", C.c_double),
                ("max_momentum", C.c_double), ("lambda_", C.c_void_p), ("context", C.c_void_p), ("largest", C.c_bool), ("absolute", C.c_bool),
                ("patience", C.c_int64), ("cooldown", C.c_int64), ("threshold", C.c_double), ("min_lr", C.c_double), ("eps", C.c_double)]


class Rates(Optimizers):
    """Schedules, one or two of an optimizer, in turn."""

    def schedule(self):
        r = self.r
        n = r.randint(1, 8)
        stones = sorted(r.randint(1, 20) for _ in range(r.randint(1, 4)))
        kind, torchs, ours = r.choice([
            (0, ("StepLR", {"step_size": n, "gamma": .5}), None),
            (1, ("MultiStepLR", {"milestones": stones, "gamma": .5}), {"milestones": (C.c_int64 * 4)(*stones), "milestone_count": len(stones), "gamma": .5}),
            (2, ("ConstantLR", {"factor": .25, "total_iters": n}), None),
            (3, ("LinearLR", {"start_factor": .25, "end_factor": r.choice([1., .5]), "total_iters": n}), None),
            (4, ("ExponentialLR", {"gamma": .9}), None),
            (5, ("PolynomialLR", {"total_iters": n, "power": r.choice([1., 2.])}), None),
            (6, ("CosineAnnealingLR", {"T_max": n, "eta_min": r.choice([0., .01])}), {"t_max": n, "eta_min": None}),
            (7, ("CosineAnnealingWarmRestarts", {"T_0": n, "T_mult": r.choice([1, 2]), "eta_min": .001}), {"t_0": n, "t_mult": None, "eta_min": None}),
            (8, ("OneCycleLR", {"max_lr": .5, "total_steps": 41, "pct_start": r.choice([.3, .25]), "anneal_strategy": r.choice(["cos", "linear"]),
                                "three_phase": r.random() < .5}), {}),
        ])
        name, arguments = torchs
        o = self.w.lib.weir_schedule_defaults(kind)
        fields = ours if ours is not None else arguments
        for field, v in fields.items():
            v = arguments.get({"t_mult": "T_mult"}.get(field, field)) if v is None else v
            setattr(o, field, C.cast(v, C.POINTER(C.c_int64)) if field == "milestones" else v)
        if kind == 8:
            o.max_lr, o.total_steps, o.pct_start = arguments["max_lr"], 41, arguments["pct_start"]
            o.linear, o.three_phase = arguments["anneal_strategy"] == "linear", arguments["three_phase"]
        return kind, name, arguments, o

    def rates(self, theirs, o, what):
        for g, group in enumerate(theirs.param_groups):
            mine = Options()
            self.w.check(self.w.lib.weir_optimizer_get_options(C.byref(mine), o, g))
            momentum = group["betas"][0] if "betas" in group else group["momentum"]
            pairs = [(group["lr"], mine.lr), (momentum, mine.beta1 if "betas" in group else mine.momentum)]
            if any(abs(a - b) > 1e-12 * (1 + abs(a)) for a, b in pairs):
                self.complain(what, pairs[0][0], pairs[0][1])
                return False
        return True

    def one(self):
        r = self.r
        kind = r.choice([0, 1])
        groups = [[self.parameter()], [self.parameter()]]
        chosen = [{"lr": .1, "momentum": .9} if kind == 0 else {"lr": .1}, {"lr": .025, "momentum": .9} if kind == 0 else {"lr": .025}]
        theirs = KINDS[kind][0]([{"params": [t for t, _ in g], **c} for g, c in zip(groups, chosen)], **chosen[0])
        o = self.create(kind, groups, chosen)
        made = [self.schedule() for _ in range(r.choice([1, 1, 2]))]
        what, pairs = str([(name, arguments) for _, name, arguments, _ in made]), []
        for of, name, arguments, options in made:
            pairs.append((getattr(torch.optim.lr_scheduler, name)(theirs, **arguments), C.c_void_p()))
            self.w.check(self.w.lib.weir_schedule_create(C.byref(pairs[-1][1]), o, of, C.byref(options)))
        for step in range(40):
            if not self.rates(theirs, o, f"{what} at {step}"):
                break
            theirs.step()
            for a, b in pairs:
                a.step()
                self.w.check(self.w.lib.weir_schedule_step(b))
            self.steps += 1
        for _, b in pairs:
            self.w.lib.weir_schedule_release(b)
        self.w.lib.weir_optimizer_release(o)
        for g in groups:
            self.w.release(g[0][1])


def main():
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    w = Weir(sys.argv[1])
    w.lib.weir_optim_defaults.restype = Options
    w.lib.weir_tensor_grad.restype = C.c_void_p
    w.lib.weir_schedule_defaults.restype = Schedules
    p, rates = Optimizers(w, seed), Rates(w, seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    for _ in range(runs):
        p.one()
    for _ in range(runs // 4):
        rates.one()
    print(f"{runs} optimizers, {p.steps} steps; {runs // 4} schedules, {rates.steps} epochs: {p.bad + rates.bad} unlike")
    return p.bad + rates.bad != 0


if __name__ == "__main__":
    sys.exit(main())

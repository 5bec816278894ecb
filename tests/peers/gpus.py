"""What the engine must do on devices beside PyTorch's CUDA build, both in one process on two software devices.

    LD_LIBRARY_PATH=build/lib/sim WEIR_SIM_DEVICES=2 python tests/peers/gpus.py LIBWEIR [SEED]

PyTorch's kernels do not run there, so what is compared is what needs none: which device is current and where things
are made, copies, what is refused and in which words, streams, events, memory's figures and messages, scattering and
gathering, graphs, processes. Prints a line a row and ends with one that counts, exit status 1 where anything differs.
"""
import ctypes as C
import os
import re
import subprocess
import sys

import torch

from rows import P, Rows
from tensors import DTYPES, NUMBERS, Device, Options, Weir, shape

CPU = Device(1, 0)


def cuda(index):
    return Device(2, -1 if index is None else index)


class Guard(C.Structure):
    _fields_ = [("room", C.c_uint64 * 16)]


class EventOptions(C.Structure):
    _fields_ = [("enable_timing", C.c_bool), ("blocking", C.c_bool)]


class Devices(Rows):
    def __init__(self, weir, seed):
        super().__init__(weir, seed)
        lib = weir.lib
        for name in ("allocated", "reserved"):
            for name in ("weir_memory_" + name, "weir_max_memory_" + name):
                getattr(lib, name).restype = C.c_uint64

    def place(self, w):
        d = self.w.lib.weir_tensor_device(w)
        self.w.release(w)
        return f"cuda:{d.index}" if d.type == 2 else "cpu"

    def empty(self, sizes, where, **o):
        return self.w.new("empty", shape(sizes), C.byref(Options(device=where, **o)))

    def current(self):
        out = Device()
        self.w.check(self.w.lib.weir_current_device(C.byref(out)))
        return out.index

    def neutral(self, text):
        text = super().neutral(text)
        text = re.sub(r".*CUDA error: (invalid device ordinal).*", r"\1", text)
        text = re.sub(r".*(invalid device ordinal).*", r"\1", text)
        # torch names the argument, since 2.9, in operations that have a kernel of CUDA's alone
        text = re.sub(r"^(Expected all tensors to be on the same device, but) got \S+ is on (\S+), different from other tensors on (\S+) .*",
                      lambda m: f"{m[1]} found at least two devices, {' and '.join(sorted((m[2], m[3])))}!", text)
        text = re.sub(r"(found at least two devices,) (\S+) and (\S+)!.*", lambda m: f"{m[1]} {' and '.join(sorted((m[2], m[3])))}!", text)
        text = re.sub(r"^Event device.*", "Event device", text)  # torch prints the number as a character, 0
        # what is free depends on both libraries; what follows is Weir's own account, and torch's
        text = re.sub(r"(of which) \S+ \S+ (is free\.).*", r"\1 some \2", text)
        text = re.sub(r"^(CUDA graphs must be captured on a non-default stream).*", r"\1", text)
        text = re.sub(r"^(Cannot re-initialize CUDA in forked subprocess).*", r"\1", text)
        return re.sub(r"^CUDA is not available: ", "", text)

    # ---- where things are made

    def where(self):
        self.row("2 to 5, 8, 9 current device, defaults, conversion")
        w, lib = self.w, self.w.lib
        for index in (0, 1, -1, 0):
            def ours():
                w.check(lib.weir_set_device(cuda(index)))
                return self.current()
            self.fact(f"set_device({index})", lambda: (torch.cuda.set_device(index), torch.cuda.current_device())[1], ours)
        for path in ((1,), (1, 0), (1, -1), (1, 0, 1), (-1,)):
            guards = [Guard() for _ in path]
            def theirs(left=path):
                if not left:
                    return [torch.cuda.current_device(), str(torch.empty(1, device="cuda").device), str(torch.empty(1).device)]
                with torch.cuda.device(left[0]):
                    return [torch.cuda.current_device()] + theirs(left[1:])
            def ours(left=path):
                if not left:
                    return [self.current(), self.place(self.empty([1], cuda(None))), self.place(w.new("empty", shape([1]), None))]
                g = guards[len(left) - 1]
                lib.weir_device_enter(C.byref(g), cuda(left[0]))
                out = [self.current()] + ours(left[1:])
                lib.weir_guard_leave(C.byref(g))
                return out
            self.fact(f"guards of {path}", theirs, ours)
            self.fact(f"after guards of {path}", torch.cuda.current_device, self.current)
        for name, index in (("torch.cuda.FloatTensor", None), ("torch.cuda.HalfTensor", None), ("torch.cuda.IntTensor", None), ("torch.FloatTensor", 0)):
            def ours_type():
                w.check(lib.weir_set_default_tensor_type(name.encode()))
                return [self.describe(w.new("empty", shape([1]), None)), self.place(w.new("empty", shape([1]), None))]
            def theirs_type():
                torch.set_default_tensor_type(name)
                return [self.description(torch.empty(1)), str(torch.empty(1).device)]
            with torch.cuda.device(1):
                g = Guard()
                lib.weir_device_enter(C.byref(g), cuda(1))
                self.fact(f"made with default {name}", theirs_type, ours_type)
                lib.weir_guard_leave(C.byref(g))
        for name in ("cpu", "cuda", "cuda:1", "cuda:0", "cpu"):
            d = Device()
            lib.weir_device_parse(C.byref(d), name.encode())
            def ours_default():
                w.check(lib.weir_set_default_device(d))
                return [self.place(w.new("empty", shape([1]), None)), self.place(self.empty([1], CPU)), self.place(self.empty([1], cuda(None)))]
            def theirs_default():
                torch.set_default_device(name)
                return [str(torch.empty(1).device), str(torch.empty(1, device="cpu").device), str(torch.empty(1, device="cuda").device)]
            self.fact(f"default device {name}", theirs_default, ours_default)
        torch.set_default_device("cpu")
        for index in (2, 7, 63):
            self.fact(f"empty on cuda:{index}", lambda: torch.empty(1, device=f"cuda:{index}"), lambda: self.empty([1], cuda(index)))
        self.converted()

    def converted(self):
        w = self.w
        places = {"cpu": CPU, "cuda:0": cuda(0), "cuda:1": cuda(1)}
        for a, da in places.items():
            t, own = torch.empty(2, 3, device=a), self.empty([2, 3], da)
            for b, db in places.items():
                for copy in (False, True):
                    def ours():
                        o = w.new("to", own, C.byref(Options(device=db, copy=copy)))
                        same = o.value == own.value
                        return same, self.place(o)
                    self.fact(f"{a} to {b} copy {copy}", lambda: (t.to(b, copy=copy) is t, str(t.to(b).device)), ours)
                self.fact(f"new_empty of {a} on {b}", lambda: str(t.new_empty(2, device=b).device),
                          lambda: self.place(w.new("new_empty", own, shape([2]), C.byref(Options(device=db)))))
                with torch.cuda.device(1):
                    g = Guard()
                    w.lib.weir_device_enter(C.byref(g), cuda(1))
                    self.fact(f"empty_like of {a}, current 1", lambda: str(torch.empty_like(t).device), lambda: self.place(w.new("empty_like", own, None)))
                    self.fact(f"new_empty of {a}, current 1", lambda: str(t.new_empty(2).device), lambda: self.place(w.new("new_empty", own, shape([2]), None)))
                    self.fact(f"cuda() of {a}, current 1", lambda: str(t.cuda().device), lambda: self.place(w.new("cuda", own, Device(0, -1), False)))
                    w.lib.weir_guard_leave(C.byref(g))
            self.fact(f"cuda(cpu) of {a}", lambda: t.cuda(torch.device("cpu")), lambda: w.new("cuda", own, CPU, False))
            self.fact(f"cuda(1) of {a}", lambda: str(t.cuda(1).device), lambda: self.place(w.new("cuda", own, cuda(1), False)))
            self.fact(f"cpu() of {a} is the same", lambda: t.cpu() is t, lambda: (lambda o: (o.value == own.value, w.release(o))[0])(w.new("cpu", own)))
            for d in DTYPES:
                e, mine = torch.empty(2, dtype=d, device=a), self.empty([2], da, dtype=NUMBERS[d])
                self.fact(f"type of {d} on {a}", lambda: e.type().replace("torch.", "weir."), lambda: w.lib.weir_tensor_type(mine).decode())
                def pinned():
                    o = w.new("pin_memory", mine)
                    again = w.new("pin_memory", o)
                    out = (o.value == mine.value, w.lib.weir_tensor_is_pinned(o), again.value == o.value)
                    w.release(o)
                    w.release(again)
                    return out
                self.fact(f"pin_memory of {d} on {a}", lambda: (lambda p: (p is e, p.is_pinned(), p.pin_memory() is p))(e.pin_memory()), pinned)
                w.release(mine)
            w.release(own)

    # ---- copies

    def copies(self):
        self.row("7, 10 copies between devices, peers")
        w, lib = self.w, self.w.lib
        for a in (0, 1):
            for b in (0, 1):
                out = C.c_bool()
                if a != b:
                    self.fact(f"can {a} access {b}", lambda: torch.cuda.can_device_access_peer(a, b),
                              lambda: (w.check(lib.weir_can_access_peer(C.byref(out), cuda(a), cuda(b))), out.value)[1])
        places = {"cpu": CPU, "cuda:0": cuda(0), "cuda:1": cuda(1)}
        for n in range(150):
            d = self.r.choice(DTYPES)
            t, own = self.tensor(self.sizes(), d)
            for b in [self.r.choice(list(places)) for _ in range(3)]:
                t = t.contiguous()
                own = self.moved(own, "contiguous")
                own = self.moved(own, "to", C.byref(Options(device=places[b])))
                t = t.to(b).reshape(-1).reshape(t.shape)
            self.compare_there(f"{tuple(t.shape)} {d} by {b}", t, own)
            w.release(own)
        x, y = torch.empty(3, device="cuda:0"), torch.empty(4)
        wx, wy = self.empty([3], cuda(0)), self.empty([4], CPU)
        self.fact("copy_ of another size", lambda: x.copy_(y), lambda: w.check(lib.weir_copy_(wx, wy, False)))
        w.release(wx)
        w.release(wy)

    def compare_there(self, what, t, own):
        self.fact(what, lambda: (str(t.device), tuple(t.shape), t.cpu().clone(memory_format=torch.contiguous_format).reshape(-1, 1).view(torch.uint8).tolist()),
                  lambda: (self.where_is(own), self.w.shape(own), self.w.elements(own, t.dtype).view(-1, 1).view(torch.uint8).tolist()))

    def where_is(self, own):
        d = self.w.lib.weir_tensor_device(own)
        return f"cuda:{d.index}" if d.type == 2 else "cpu"

    # ---- what is refused

    def refused(self):
        self.row("6, 25 operations across devices")
        w = self.w
        places = {"cpu": CPU, "cuda:0": cuda(0), "cuda:1": cuda(1)}
        for a, da in places.items():
            for b, db in places.items():
                if a == b:
                    continue
                t, o = torch.empty(2, 2, device=a), torch.empty(2, 2, device=b)
                wt, wo = self.empty([2, 2], da), self.empty([2, 2], db)
                for name in ("add", "sub", "mul", "div", "pow", "maximum", "eq", "lt", "logical_and", "matmul", "mm"):
                    self.fact(f"{name} of {a} and {b}", lambda: getattr(torch, name)(t, o), lambda: w.new(name, wt, wo))
                self.fact(f"add_ of {a} and {b}", lambda: t.add_(o), lambda: w.check(w.lib.weir_add_(wt, wo)))
                both = (C.c_void_p * 2)(wt.value, wo.value)
                for name in ("cat", "stack"):
                    self.fact(f"{name} of {a} and {b}", lambda: getattr(torch, name)([t, o]), lambda: w.new(name, both, 2, 0))
                self.fact(f"equal of {a} and {b}", lambda: torch.equal(t, o), lambda: w.check(w.lib.weir_equal(C.byref(C.c_bool()), wt, wo)))
                self.fact(f"linear of {a} and {b}", lambda: torch.nn.functional.linear(t, o), lambda: w.new("linear", wt, wo, None))
                c, k = torch.empty(1, 1, 5, 5, device=a), torch.empty(1, 1, 3, 3, device=b)
                wc, wk = self.empty([1, 1, 5, 5], da), self.empty([1, 1, 3, 3], db)
                if a != "cpu":  # where torch asks CUDA's kernel
                    self.fact(f"conv2d of {a} and {b}", lambda: torch.conv2d(c, k), lambda: w.new("conv2d", wc, wk, None, None))
                if a == "cpu":  # the one that may join is without dimensions, and on the cpu
                    one, wone = torch.empty((), device=b), self.empty([], db)
                    self.fact(f"add of {a} and one of {b}", lambda: t.add_(one), lambda: w.check(w.lib.weir_add_(wt, wone)))
                    w.release(wone)
                for x in (wt, wo, wc, wk):
                    w.release(x)

    # ---- streams, events, graphs

    def streams(self):
        self.row("14 streams, 15 events, 31 graphs")
        w, lib = self.w, self.w.lib
        for index in (0, 1):
            for priority in (0, -1, -2, -3):  # torch has no more, the device has
                out = C.c_int()
                def ours():
                    s = w.new("stream_new", cuda(index), priority)
                    w.check(lib.weir_stream_priority(C.byref(out), s))
                    return out.value
                self.fact(f"priority {priority} on {index}", lambda: torch.cuda.Stream(index, priority).priority, ours)
            self.fact(f"different streams on {index}", lambda: len({torch.cuda.Stream(index).cuda_stream for _ in range(70)}),
                      lambda: len({w.new("stream_new", cuda(index), 0).value for _ in range(70)}))
            s, ws = torch.cuda.Stream(index), w.new("stream_new", cuda(index), 0)
            g = Guard()
            def within():
                w.check(lib.weir_stream_enter(C.byref(g), ws))
                now = w.new("current_stream", cuda(index))
                out = [self.current(), now.value == ws.value, self.place(self.empty([1], cuda(None)))]
                lib.weir_guard_leave(C.byref(g))
                now = w.new("current_stream", cuda(index))
                return out + [self.current(), now.value == ws.value]
            def theirs():
                with torch.cuda.stream(s):
                    out = [torch.cuda.current_device(), torch.cuda.current_stream(index) == s, str(torch.empty(1, device="cuda").device)]
                return out + [torch.cuda.current_device(), torch.cuda.current_stream(index) == s]
            self.fact(f"within a stream of {index}", theirs, within)
        self.events()
        graph, wgraph = torch.cuda.CUDAGraph(), w.new("graph_new")
        self.fact("capture on the default stream", lambda: graph.capture_begin(), lambda: w.check(lib.weir_graph_capture_begin(wgraph, None, 0)))

    def events(self):
        w, lib = self.w, self.w.lib
        out, ready = C.c_double(), C.c_bool()
        def made(timing, record, device=0):
            e = w.new("event_new", C.byref(EventOptions(timing, False)))
            s = w.new("current_stream", cuda(device))
            if record:
                w.check(lib.weir_event_record(e, s))
                w.check(lib.weir_event_synchronize(e))
            return e
        def theirs(timing, record, device=0):
            e = torch.cuda.Event(enable_timing=timing)
            if record:
                with torch.cuda.device(device):
                    e.record()
                e.synchronize()
            return e
        def elapsed(x, y):
            w.check(lib.weir_event_elapsed_time(C.byref(out), x, y))
            return out.value >= 0
        for a in (False, True):
            for b in (False, True):
                for ra in (False, True):
                    for rb in (False, True):
                        self.fact(f"elapsed timing {a, b} recorded {ra, rb}", lambda: theirs(a, ra).elapsed_time(theirs(b, rb)) >= 0,
                                  lambda: elapsed(made(a, ra), made(b, rb)))
        for record in (False, True):
            self.fact(f"query, recorded {record}", lambda: theirs(False, record).query(),
                      lambda: (w.check(lib.weir_event_query(C.byref(ready), made(False, record))), ready.value)[1])
        def again(kind):
            if kind == "torch":
                return theirs(False, True).record(torch.cuda.default_stream(1))
            return w.check(lib.weir_event_record(made(False, True), w.new("default_stream", cuda(1))))
        self.fact("record on another device", lambda: again("torch"), lambda: again("weir"))

    # ---- memory

    def memory(self):
        self.row("17 out of memory, 18 memory statistics, 19 empty_cache")
        w, lib = self.w, self.w.lib
        for fraction in (2.0, -0.5, 1.5):
            self.fact(f"fraction {fraction}", lambda: torch.cuda.set_per_process_memory_fraction(fraction, 0),
                      lambda: w.check(lib.weir_memory_set_fraction(cuda(0), C.c_double(fraction))))
        for size in (2**34, 2**40, 3 * 2**33 + 5, 2**50):
            self.fact(f"{size} bytes", lambda: torch.empty(size, dtype=torch.uint8, device="cuda:0"), lambda: self.empty([size], cuda(0), dtype=1))
        def figures(library):
            if library == "torch":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats(1)
                f = (torch.cuda.memory_allocated, torch.cuda.max_memory_allocated)
                make, cache = lambda n: torch.empty(n, dtype=torch.uint8, device="cuda:1"), torch.cuda.empty_cache
                reserved, drop = torch.cuda.memory_reserved, lambda x: None
                read = lambda: [g(1) for g in f]
            else:
                w.check(lib.weir_memory_empty_cache(cuda(1)))
                w.check(lib.weir_memory_reset_peak(cuda(1)))
                make, cache = lambda n: self.empty([n], cuda(1), dtype=1), lambda: w.check(lib.weir_memory_empty_cache(cuda(1)))
                reserved, drop = lambda i: lib.weir_memory_reserved(cuda(i)), w.release
                read = lambda: [lib.weir_memory_allocated(cuda(1)), lib.weir_max_memory_allocated(cuda(1))]
            out, base = [], read()[0]
            out.append(base)
            held = [make(n) for n in (1, 511, 512, 513, 2**20, 2**20 + 1, 11 * 2**20)]
            out += read()
            while held:
                drop(held.pop())
                out += read()
            out.append(reserved(1) > 0)  # kept
            cache()
            out += [reserved(1)] + read()
            return out
        self.fact("figures of allocations", lambda: figures("torch"), lambda: figures("weir"))
        text = C.c_char_p()
        def rows_of(table):
            return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|") and line.count("|") > 4]
        self.fact("rows of memory_summary", lambda: rows_of(torch.cuda.memory_summary(1, True)),
                  lambda: (w.check(lib.weir_memory_summary(C.byref(text), cuda(1), True)), rows_of(text.value.decode()))[1][:len(rows_of(torch.cuda.memory_summary(1, True)))])
        names = [k for k in torch.cuda.memory_stats(1) if k.count(".") == 2]
        value = C.c_int64()
        for name in names:
            self.fact(f"memory_stats has {name}", lambda: 0, lambda: lib.weir_memory_stat(C.byref(value), cuda(1), name.encode()))

    # ---- data parallelism

    def parallel(self):
        self.row("27 data parallelism")
        w, lib = self.w, self.w.lib
        two = (Device * 2)(cuda(0), cuda(1))
        for n in list(range(1, 9)) + [13]:
            t = torch.randn(n, 3)
            own = w.of(t)
            out, parts = (P * 2)(), C.c_int()
            def ours():
                w.check(lib.weir_parallel_scatter(out, C.byref(parts), own, two, 2))
                made = [P(v) for v in out[:parts.value]]
                return [(self.where_is(x), w.shape(x), w.elements(x, torch.float32).tolist()) for x in made]
            theirs = torch.nn.parallel.scatter(t, [0, 1])
            self.fact(f"scatter {n} rows", lambda: [(str(x.device), tuple(x.shape), x.cpu().reshape(-1).tolist()) for x in theirs], ours)
            def gathered():
                g = w.new("parallel_gather", out, parts.value, CPU)
                return (self.where_is(g), w.shape(g), w.elements(g, torch.float32).tolist())
            back = torch.nn.parallel.gather(theirs, "cpu")
            self.fact(f"gather {n} rows", lambda: (str(back.device), tuple(back.shape), back.reshape(-1).tolist()), gathered)
            w.release(own)
        none = self.empty([], CPU)
        out, parts = (P * 2)(), C.c_int()
        self.fact("scatter without dimensions", lambda: torch.nn.parallel.scatter(torch.ones(()), [0, 1]),
                  lambda: w.check(lib.weir_parallel_scatter(out, C.byref(parts), none, two, 2)))
        w.release(none)
        for places in (("cpu",), ("cuda:1",)):
            net = torch.nn.DataParallel(torch.nn.Linear(3, 2), [0, 1])
            mine = self.layer("linear", C.c_int64(3), C.c_int64(2))
            if places[0] != "cpu":
                net.module.to(places[0])
                w.check(lib.weir_module_cuda(mine, cuda(1)))
            dp = w.new("data_parallel", mine, None)
            x = self.empty([4, 3], cuda(0))
            self.fact(f"a module on {places[0]}", lambda: net(torch.empty(4, 3, device="cuda:0")), lambda: w.new("module_call", dp, x))
            w.release(x)

    # ---- what a process sees

    def processes(self):
        self.row("28 visibility, 29 processes")
        here = os.path.abspath(__file__)
        for visible in (None, "", "0", "1", "1,0", "0,7,1", "7", "0,0", "-1", "0,-1,1", "abc", "0,1,", " 1 , 0 ", "GPU-nothing"):
            env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
            if visible is not None:
                env["CUDA_VISIBLE_DEVICES"] = visible
            done = subprocess.run([sys.executable, here, sys.argv[1], "--seen"], env=env, stdout=subprocess.PIPE, text=True, check=True)
            self.fact(f"CUDA_VISIBLE_DEVICES={visible!r}", lambda: done.stdout.splitlines()[0], lambda: done.stdout.splitlines()[1])
        for what in ("torch", "weir"):
            r, s = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    if what == "torch":
                        torch.empty(1, device="cuda")
                    else:
                        self.empty([1], cuda(0))
                    said = "nothing"
                except Exception as e:
                    said = self.neutral(e)
                os.write(s, said.encode())
                os._exit(0)
            os.close(s)
            with os.fdopen(r) as f:
                said = f.read()
            os.waitpid(pid, 0)
            self.fact(f"{what} after a fork", lambda: "Cannot re-initialize CUDA in forked subprocess", lambda: said)


def seen(weir):
    """One line by torch and one by Weir: how many devices, and whether any."""
    count = C.c_int()
    weir.check(weir.lib.weir_cuda_device_count(C.byref(count)))
    weir.lib.weir_cuda_is_available.restype = C.c_bool
    print(torch._C._cuda_getDeviceCount(), torch.cuda.is_available())
    print(count.value, weir.lib.weir_cuda_is_available())


def main():
    weir = Weir(sys.argv[1])
    if sys.argv[2:] == ["--seen"]:
        return seen(weir)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.manual_seed(seed)
    run = Devices(weir, seed)
    for part in (run.where, run.copies, run.refused, run.streams, run.memory, run.parallel, run.processes):
        part()
    run.tally()
    print(f"{run.steps} comparisons, {run.bad} unlike torch {torch.__version__}")
    sys.stdout.flush()
    os._exit(run.bad > 0)


if __name__ == "__main__":
    main()

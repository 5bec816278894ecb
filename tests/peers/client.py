#!/usr/bin/env python3
"""client.py [CASE...]: PyTorch's published CUDA build as a client of the device below.

Every case checks its own results and prints what a run beside or below Weir must print as well:
bytes, sizes, errors; no addresses and no times. No case needs a kernel: the software device runs
only kernels that have a host twin, so data comes and goes by copies. Exit status 1 when a case
failed.
"""
import hashlib
import os
import re
import subprocess
import sys
import traceback

import numpy
import torch

MIB = 1 << 20


def digest(tensor):
    return hashlib.sha256(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def pattern(count, seed):
    return torch.from_numpy(numpy.random.default_rng(seed).integers(0, 256, count, dtype=numpy.uint8))


def error_of(action):
    """The kind of the exception and the first words of its first line; 'none' without one."""
    try:
        action()
    except Exception as error:  # any: what is compared is which
        return re.sub("0x[0-9a-f]+", "0x", f"{type(error).__name__}: {str(error).splitlines()[0].split('.')[0]}")
    return "none"


def devices():
    print(torch.version.cuda, torch.cuda.is_available(), torch.cuda.device_count())
    for i in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(i)
        print(i, p.name, p.major, p.minor, p.total_memory, p.multi_processor_count)
        print(torch.cuda.get_device_capability(i), torch.cuda.can_device_access_peer(i, (i + 1) % torch.cuda.device_count()))
    print("current", torch.cuda.current_device())
    with torch.cuda.device(torch.cuda.device_count() - 1):
        print("inside", torch.cuda.current_device())
    torch.cuda.set_device(0)
    print("bad device:", error_of(lambda: torch.empty(1, device="cuda:99")))


def empty():
    for count in (0, 1, 511, 512, 513, MIB, 3 * MIB + 1, 40 * MIB):
        x = torch.empty(count, dtype=torch.uint8, device="cuda")
        assert x.numel() == count and x.is_cuda and (count == 0 or x.data_ptr() % 256 == 0)
    shapes = [torch.empty(3, 5, 7, dtype=t, device="cuda").untyped_storage().nbytes()
              for t in (torch.float16, torch.float32, torch.float64, torch.bool)]
    print("storages", shapes)


def pageable():
    for count in (1, 1000, 64 * 1024, 64 * 1024 + 1, 4 * MIB, 33 * MIB + 3):
        host = pattern(count, count)
        there = host.cuda()
        back = there.cpu()
        assert torch.equal(back, host)
        print(count, digest(back))


def pinned():
    for count in (1, 64 * 1024, 5 * MIB + 7):
        host = pattern(count, count).pin_memory()
        assert host.is_pinned()
        there = torch.empty(count, dtype=torch.uint8, device="cuda")
        back = torch.empty(count, dtype=torch.uint8, pin_memory=True)
        there.copy_(host, non_blocking=True)
        back.copy_(there, non_blocking=True)
        torch.cuda.synchronize()
        assert torch.equal(back, host)
        print(count, digest(back), back.is_pinned())


def within():
    host = pattern(8 * MIB, 8)
    a = host.cuda()
    b = torch.empty_like(a)
    b.copy_(a)
    b[MIB:2 * MIB].copy_(a[5 * MIB:6 * MIB])
    c = b.clone()
    want = host.clone()
    want[MIB:2 * MIB] = host[5 * MIB:6 * MIB]
    assert torch.equal(c.cpu(), want)
    print(digest(c))


def streams():
    host = pattern(2 * MIB, 2).pin_memory()
    one, two = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    with torch.cuda.stream(one):
        a = host.cuda(non_blocking=True)
        ready = one.record_event()
    two.wait_event(ready)
    with torch.cuda.stream(two):
        b = torch.empty_like(a)
        b.copy_(a, non_blocking=True)
        a.record_stream(two)
    del a
    torch.cuda.current_stream().wait_stream(two)
    c = b.cpu()
    assert torch.equal(c, host)
    print(digest(c), one.query() in (True, False), two.priority < one.priority)
    one.synchronize()
    two.synchronize()
    print(one.query(), two.query(), torch.cuda.current_stream() == torch.cuda.default_stream())
    made = [torch.cuda.Stream() for _ in range(40)]
    print("streams", len({s.cuda_stream for s in made}) > 1)


def events():
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    print("not recorded:", error_of(lambda: begin.elapsed_time(end)))
    begin.record()
    torch.empty(MIB, device="cuda").copy_(torch.empty(MIB))
    end.record()
    end.synchronize()
    print(begin.query(), end.query(), begin.elapsed_time(end) >= 0)


def cache():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    x = [torch.empty(n * MIB, dtype=torch.uint8, device="cuda") for n in (1, 3, 11, 30)]
    full = torch.cuda.memory_reserved() - before
    del x
    kept = torch.cuda.memory_reserved() - before
    torch.cuda.empty_cache()
    print(full, kept, torch.cuda.memory_reserved() - before)
    stats = torch.cuda.memory_stats()
    print("ooms", stats.get("num_ooms"), "live", torch.cuda.memory_allocated() == stats.get("allocated_bytes.all.current", 0))


def memory():
    free, total = torch.cuda.mem_get_info()
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    less, same = torch.cuda.mem_get_info()
    assert same == total and less <= free
    print(total, free - less)
    del x
    print("too much:", error_of(lambda: torch.empty(total * 2, dtype=torch.uint8, device="cuda")))
    assert torch.empty(MIB, device="cuda").is_cuda


def two_devices():
    if torch.cuda.device_count() < 2:
        print("one device")
        return
    host = pattern(3 * MIB, 3)
    a = host.to("cuda:0")
    b = a.to("cuda:1")
    c = torch.empty_like(a)
    c.copy_(b)
    assert torch.equal(c.cpu(), host) and torch.equal(b.cpu(), host)
    with torch.cuda.device(1):
        d = torch.empty(MIB, dtype=torch.uint8, device="cuda")
        print(d.device, torch.cuda.current_stream().device)
    print(digest(b), b.device)


def registered():
    host = pattern(MIB, 4)
    runtime = torch.cuda.cudart()
    print("register", int(runtime.cudaHostRegister(host.data_ptr(), host.numel(), 0)), host.is_pinned())
    there = host.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(there.cpu(), host)
    print("unregister", int(runtime.cudaHostUnregister(host.data_ptr())), host.is_pinned())


def graph():
    host = pattern(MIB, 5).pin_memory()
    a, b = host.cuda(), torch.empty(MIB, dtype=torch.uint8, device="cuda")
    g = torch.cuda.CUDAGraph()

    def capture():
        with torch.cuda.graph(g):
            c = torch.empty_like(a)
            c.copy_(a)
            b.copy_(c)

    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):  # a cudaMalloc ends the capture
        print("capture:", error_of(capture))
        assert torch.equal(host.cuda().cpu(), host)
        return
    capture()
    a.copy_(pattern(MIB, 6))
    g.replay()
    torch.cuda.synchronize()
    print(digest(b), torch.equal(b.cpu(), pattern(MIB, 6)))


def send(pipe):
    torch.cuda.set_device(0)
    x = pattern(MIB, 7).cuda()
    torch.cuda.synchronize()
    why = error_of(lambda: pipe.send(x))  # an IPC handle: the memory is the sender's
    if why != "none":
        pipe.send(why)
    pipe.recv()


def worker(queue):
    x = pattern(MIB, 9).cuda()
    queue.put(digest(x))


def workers():
    spawn = torch.multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    children = [spawn.Process(target=worker, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    print([queue.get(timeout=300) for _ in children])
    for child in children:
        child.join()
    print([child.exitcode for child in children])


def shared():
    spawn = torch.multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    child = spawn.Process(target=send, args=(there,))
    child.start()
    there.close()  # so that a child that failed is an end of file here
    x = here.recv()
    if isinstance(x, str):  # without its cache, and with expandable segments, PyTorch cannot share
        assert os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") or os.environ.get("PYTORCH_ALLOC_CONF"), x
        print(x)
    else:
        assert torch.equal(x.cpu(), pattern(MIB, 7))
        print(x.device, digest(x))
    del x
    here.send(None)
    child.join()
    print(child.exitcode)


def pluggable():
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run([sys.executable, os.path.join(here, "pluggable.py"), os.environ["WEIR_LIBRARY"]],
                          stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, done.returncode)
    assert done.returncode == 0


def loader():
    data = torch.utils.data.TensorDataset(pattern(64 * 1024, 11).view(64, 1024))
    loaded = torch.utils.data.DataLoader(data, batch_size=16, num_workers=2, pin_memory=True)
    print([(batch.is_pinned(), digest(batch.cuda(non_blocking=True))) for (batch,) in loaded])


def threads():
    import threading

    digests = [None] * 8

    def work(i):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for k in range(20):
                host = pattern(200_000 + i, 100 * i + k)
                assert torch.equal(host.cuda().cpu(), host)
            digests[i] = digest(host.cuda())

    running = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(digests)


CASES = [devices, empty, pageable, pinned, within, streams, events, cache, memory, two_devices, registered,
         threads, graph, loader, workers, shared, pluggable]


def main():
    names = sys.argv[1:]
    bad = 0
    for case in CASES:
        if names and case.__name__ not in names:
            continue
        print(f"== {case.__name__}", flush=True)
        try:
            torch.cuda.set_device(0)
            case()
        except Exception:
            print("FAILED", traceback.format_exc().splitlines()[-1])
            traceback.print_exc()
            bad += 1
        sys.stdout.flush()
    print(f"{len(CASES) if not names else len(names)} cases, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""places.py: a program of torch, numba-cuda, cuda.bindings and ctypes each, with the same two wastes.
places.py PEER: runs one of them. Each step allocates and frees memory (PyTorch's from its own cache), and
waits for the device right after a copy to the host, which is a wait itself. No kernel is needed.
places.py check PEER TRACE WEIR: the findings of its trace name the lines of this file, and no others.
"""
import json
import re
import subprocess
import sys

STEPS = 64
BYTES = 1 << 20


def by_torch():
    import torch

    there = torch.empty(BYTES, dtype=torch.uint8, device="cuda")

    def step():
        here = there.cpu()
        torch.cuda.synchronize()  # torch waits
        return here

    for _ in range(STEPS):
        step()


def by_numba():
    import numpy
    from numba import cuda

    here = numpy.empty(BYTES, numpy.uint8)

    def step():
        there = cuda.device_array(BYTES, numpy.uint8)  # numba takes
        there.copy_to_host(here)
        cuda.synchronize()  # numba waits

    for _ in range(STEPS):
        step()


def by_bindings():
    import numpy
    from cuda.bindings import driver

    here = numpy.empty(BYTES, numpy.uint8)

    def results(answer):
        assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
        return answer[1] if len(answer) == 2 else None

    def step():
        there = results(driver.cuMemAlloc(BYTES))  # bindings takes
        results(driver.cuMemcpyDtoH(here.ctypes.data, there, BYTES))
        results(driver.cuCtxSynchronize())  # bindings waits
        results(driver.cuMemFree(there))

    results(driver.cuInit(0))
    device = results(driver.cuDeviceGet(0))
    results(driver.cuCtxSetCurrent(results(driver.cuDevicePrimaryCtxRetain(device))))
    for _ in range(STEPS):
        step()


def by_ctypes():
    import ctypes

    runtime = ctypes.CDLL("libcudart.so.13")
    here = ctypes.create_string_buffer(BYTES)

    def needs(status):
        assert status == 0, status

    def step():
        there = ctypes.c_void_p()
        needs(runtime.cudaMalloc(ctypes.byref(there), ctypes.c_size_t(BYTES)))  # ctypes takes
        needs(runtime.cudaMemcpy(here, there, ctypes.c_size_t(BYTES), 2))
        needs(runtime.cudaDeviceSynchronize())  # ctypes waits
        needs(runtime.cudaFree(there))

    for _ in range(STEPS):
        step()


def check(peer, trace, weir):
    lines = {m[1]: i + 1 for i, x in enumerate(open(__file__)) if (m := re.search(rf"  # {peer} (\w+)$", x))}
    report = [weir, "report", "findings", "-f", "json", "--min-cost", "0ns", trace]
    found = json.loads(subprocess.run(report, check=True, capture_output=True).stdout)

    def places(list_name, rule):
        return {(s["place"]["function"], s["place"]["file"].rsplit("/")[-1], s["place"]["line"])
                for f in found[list_name] if f["id"] == rule for s in f["sites"][:1]}

    def place(what):
        return f"by_{peer}.<locals>.step", "places.py", lines[what]

    waits = places("findings", "redundant-wait")
    assert waits == {place("waits")}, (waits, lines)
    taken = places("removed", "repeated-allocation")
    assert taken == {place(x) for x in lines if x == "takes"}, (taken, lines)
    print(f"{peer}: {len(waits) + len(taken)} places by name")


if len(sys.argv) == 2:
    globals()["by_" + sys.argv[1]]()
else:
    check(*sys.argv[2:])

#!/usr/bin/env python3
"""torch_figures.py: what tools/bench/gpu_tensor.c measures, by PyTorch, under the same names: lines of
"WHAT VALUE UNIT". What Weir's own kernels are compared with has no counterpart here."""
import statistics
import time

import torch

BURSTS, MIB = 11, 1 << 20
gpu = torch.device("cuda:0")
torch.backends.cudnn.allow_tf32 = False


def say(name, value, unit):
    print(f"{name} {value:.4g} {unit}", flush=True)


def device_ns(one, count):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    one()
    each = []
    for _ in range(BURSTS):
        torch.cuda.synchronize()
        start.record()
        for _ in range(count):
            one()
        end.record()
        end.synchronize()
        each.append(start.elapsed_time(end) * 1e6 / count)
    return statistics.median(each)


def host_ns(one, count):
    one()
    each = []
    for _ in range(BURSTS):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(count):
            one()
        each.append((time.perf_counter_ns() - begin) / count)
    torch.cuda.synchronize()
    return statistics.median(each)


def copies(name, to, source):
    def one():
        to.copy_(source, non_blocking=True)
        torch.cuda.synchronize()

    say(name, to.numel() / host_ns(one, 1), "GB/s")


there, again = (torch.zeros(256 * MIB, dtype=torch.uint8, device=gpu) for _ in range(2))
pinned = torch.zeros(256 * MIB, dtype=torch.uint8).pin_memory()
pageable = torch.zeros(256 * MIB, dtype=torch.uint8)
copies("h2d-pinned", there, pinned)
copies("d2h-pinned", pinned, there)
copies("h2d-pageable", there, pageable)
copies("d2h-pageable", pageable, there)
say("d2d", 2 * there.numel() / device_ns(lambda: there.copy_(again), 20), "GB/s")
del there, again, pinned, pageable
torch.cuda.empty_cache()


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=gpu)


def empty_new():
    empty(32 * MIB)
    torch.cuda.empty_cache()


say("hit", host_ns(lambda: empty(MIB), 10000), "ns")
say("large-hit", host_ns(lambda: empty(32 * MIB), 10000), "ns")
say("miss", host_ns(empty_new, 20), "ns")

x, y = (torch.randn(4096, 4096, device=gpu) for _ in range(2))
for name, one, each in [("add", lambda: x + y, 12), ("mul2", lambda: x * 2, 8), ("relu", lambda: torch.relu(x), 8),
                        ("cast", lambda: x.half(), 6), ("sum", lambda: x.sum(), 4),
                        ("sum-rows", lambda: x.sum(1), 4)]:
    say(name, each * x.numel() / device_ns(one, 50), "GB/s")


def gemm(name, dtype, side, count, tf32=False):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = (torch.randn(side, side, dtype=dtype, device=gpu) for _ in range(2))
    say(name, 2e-3 * side**3 / device_ns(lambda: a @ b, count), "TFLOP/s")
    torch.backends.cuda.matmul.allow_tf32 = False


gemm("gemm-float32", torch.float32, 4096, 10)
gemm("gemm-tf32", torch.float32, 4096, 20, True)
gemm("gemm-float16", torch.float16, 4096, 20)
gemm("gemm-bfloat16", torch.bfloat16, 4096, 20)
gemm("gemm-float64", torch.float64, 2048, 10)
gemm("gemm-128", torch.float32, 128, 200)
row = torch.randn(1, 4096, device=gpu)
say("gemv", 4 * x.numel() / device_ns(lambda: row @ x, 100), "GB/s")
image, weight = torch.randn(32, 64, 56, 56, device=gpu), torch.randn(64, 64, 3, 3, device=gpu)
say("conv", 2e-3 * 32 * 64 * 54 * 54 * 64 * 9 / device_ns(lambda: torch.conv2d(image, weight), 10), "TFLOP/s")
one, two = (torch.randn(1, device=gpu) for _ in range(2))
say("dispatch", host_ns(lambda: one + two, 500), "ns")

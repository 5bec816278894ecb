#!/usr/bin/env python3
"""ranges.py: a training loop in Python, its steps named by NVTX ranges.

usage: ranges.py [BATCHES]

The runtime library by ctypes (ctypes_vector.py), NVTX by its library (libnvtx3interop.so.1); without that
one, no ranges. For a report with Python's functions, lines and ranges:

    weir run -- python3 ranges.py
    weir report
"""
import array
import contextlib
import ctypes
import os
import sys

from ctypes_vector import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, Runtime, new

ELEMENTS = 1 << 14
BYTES = 4 * ELEMENTS


def load_nvtx():
    for place in ("", os.path.dirname(os.path.abspath(__file__)) + "/"):
        try:
            library = ctypes.CDLL(place + "libnvtx3interop.so.1")
            library.nvtxRangePushA.argtypes = [ctypes.c_char_p]
            return library
        except (OSError, AttributeError):
            pass
    return None


NVTX = load_nvtx()


@contextlib.contextmanager
def named(name):
    """What is called inside is in the range of that name."""
    if NVTX:
        NVTX.nvtxRangePushA(name.encode())
    yield
    if NVTX:
        NVTX.nvtxRangePop()


class Model:
    """Weights on the device; a batch is added to them by being kept."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.weights = new(cuda.cudaMalloc, BYTES)
        cuda.cudaMemset(self.weights, 0, BYTES)

    def forward(self, batch):
        with named("forward"):
            hidden = new(self.cuda.cudaMalloc, BYTES)  # WASTE: memory of its own in every batch
            self.cuda.cudaMemcpy(hidden, batch.buffer_info()[0], BYTES, HOST_TO_DEVICE)  # WASTE: pageable
            return hidden

    def backward(self, hidden):
        with named("backward"):
            self.cuda.cudaMemcpy(self.weights, hidden, BYTES, DEVICE_TO_DEVICE)
            self.cuda.cudaFree(hidden)
            self.cuda.cudaDeviceSynchronize()  # WASTE: nothing of it is read here

    def read(self):
        out = array.array("f", bytes(BYTES))
        self.cuda.cudaMemcpy(out.buffer_info()[0], self.weights, BYTES, DEVICE_TO_HOST)
        return out


def batches(count):
    for i in range(count):
        yield array.array("f", [float(i)]) * ELEMENTS


def train(model, count):
    for batch in batches(count):
        with named("batch"):
            model.backward(model.forward(batch))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    model = Model(Runtime())
    with named("train"):
        train(model, count)
    good = model.read() == array.array("f", [float(max(count - 1, 0))]) * ELEMENTS
    model.cuda.cudaFree(model.weights)
    print(f"ranges: {'ok' if good else 'wrong'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

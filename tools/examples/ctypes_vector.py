#!/usr/bin/env python3
"""ctypes_vector.py: CUDA from Python without any package: ctypes on the runtime library.

usage: ctypes_vector.py [ELEMENTS]

Uses whichever runtime is found, CUDA 13's or 12's. Sends vectors to the device and back through
pageable and pinned memory, copies and sets them there, and compares every byte.
"""
import array
import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3

SIGNATURES = {
    "cudaGetDeviceCount": [POINTER(c_int)],
    "cudaMalloc": [POINTER(c_void_p), c_size_t],
    "cudaFree": [c_void_p],
    "cudaMallocHost": [POINTER(c_void_p), c_size_t],
    "cudaFreeHost": [c_void_p],
    "cudaMemcpy": [c_void_p, c_void_p, c_size_t, c_int],
    "cudaMemcpyAsync": [c_void_p, c_void_p, c_size_t, c_int, c_void_p],
    "cudaMemset": [c_void_p, c_int, c_size_t],
    "cudaStreamCreateWithFlags": [POINTER(c_void_p), c_uint],
    "cudaStreamSynchronize": [c_void_p],
    "cudaStreamDestroy": [c_void_p],
    "cudaEventCreate": [POINTER(c_void_p)],
    "cudaEventRecord": [c_void_p, c_void_p],
    "cudaEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
    "cudaEventDestroy": [c_void_p],
    "cudaDeviceSynchronize": [],
}


class Runtime:
    """The runtime library; every function raises where CUDA returns an error."""

    def __init__(self):
        self.library = self.find()
        self.library.cudaGetErrorString.argtypes = [c_int]
        self.library.cudaGetErrorString.restype = c_char_p
        for name, arguments in SIGNATURES.items():
            function = getattr(self.library, name)
            function.argtypes = arguments
            function.restype = c_int
            setattr(self, name, self.checked(name, function))

    @staticmethod
    def find():
        for name in ("libcudart.so.13", "libcudart.so.12"):
            try:
                return ctypes.CDLL(name)
            except OSError:
                pass
        sys.exit("ctypes_vector: neither libcudart.so.13 nor libcudart.so.12 was found")

    def checked(self, name, function):
        def call(*arguments):
            error = function(*arguments)
            if error:
                text = self.library.cudaGetErrorString(error).decode()
                raise RuntimeError(f"{name}: {text} ({error})")

        return call


def new(make, *arguments):
    """The handle or address that a function writes through its first argument."""
    out = c_void_p()
    make(byref(out), *arguments)
    return out


def through_pageable(cuda, data, x, y):
    """Up, across and down again, with plain copies."""
    size = data.itemsize * len(data)
    back = array.array("f", bytes(size))
    cuda.cudaMemcpy(x, data.buffer_info()[0], size, HOST_TO_DEVICE)
    cuda.cudaMemcpy(y, x, size, DEVICE_TO_DEVICE)
    cuda.cudaMemcpy(back.buffer_info()[0], y, size, DEVICE_TO_HOST)
    return back == data


def through_pinned(cuda, data, x):
    """The same with pinned memory on a stream, timed by events."""
    size = data.itemsize * len(data)
    up, down = new(cuda.cudaMallocHost, size), new(cuda.cudaMallocHost, size)
    stream = new(cuda.cudaStreamCreateWithFlags, 1)
    begin, end = new(cuda.cudaEventCreate), new(cuda.cudaEventCreate)
    ctypes.memmove(up, data.buffer_info()[0], size)
    cuda.cudaEventRecord(begin, stream)
    cuda.cudaMemcpyAsync(x, up, size, HOST_TO_DEVICE, stream)
    cuda.cudaMemcpyAsync(down, x, size, DEVICE_TO_HOST, stream)
    cuda.cudaEventRecord(end, stream)
    cuda.cudaStreamSynchronize(stream)
    ms = c_float(-1)
    cuda.cudaEventElapsedTime(byref(ms), begin, end)
    same = ctypes.string_at(down, size) == data.tobytes()
    cuda.cudaEventDestroy(begin)
    cuda.cudaEventDestroy(end)
    cuda.cudaStreamDestroy(stream)
    cuda.cudaFreeHost(up)
    cuda.cudaFreeHost(down)
    return same and ms.value >= 0


def after_memset(cuda, x, size):
    """A quarter of the vector set to a byte; the rest stays."""
    quarter = size // 4
    back = ctypes.create_string_buffer(size)
    before = ctypes.create_string_buffer(size)
    cuda.cudaMemcpy(before, x, size, DEVICE_TO_HOST)
    cuda.cudaMemset(x, 0x5A, quarter)
    cuda.cudaMemcpy(back, x, size, DEVICE_TO_HOST)
    return back.raw[:quarter] == b"\x5a" * quarter and back.raw[quarter:] == before.raw[quarter:]


def main():
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 18
    cuda = Runtime()
    count = c_int()
    cuda.cudaGetDeviceCount(byref(count))
    data = array.array("f", (i * 0.5 for i in range(elements)))
    size = data.itemsize * elements
    x, y = new(cuda.cudaMalloc, size), new(cuda.cudaMalloc, size)
    steps = {
        "pageable": through_pageable(cuda, data, x, y),
        "pinned": through_pinned(cuda, data, x),
        "memset": after_memset(cuda, x, size),
    }
    cuda.cudaFree(x)
    cuda.cudaFree(y)
    cuda.cudaDeviceSynchronize()
    for name, good in steps.items():
        print(f"{name}: {'ok' if good else 'wrong'}")
    return 0 if all(steps.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

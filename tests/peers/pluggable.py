#!/usr/bin/env python3
"""pluggable.py LIBWEIR: PyTorch on Weir's allocator, by the lines that core/weir/torch.h shows.

Prints facts only. A process of its own: the allocator is chosen before the first CUDA tensor.
"""
import ctypes
import sys

import torch

MIB = 1 << 20
library = ctypes.CDLL(sys.argv[1])
library.weir_error_message.restype = ctypes.c_char_p
weir = torch.cuda.memory.CUDAPluggableAllocator(sys.argv[1], "weir_torch_malloc", "weir_torch_free")
record = library.weir_torch_record_stream
weir.allocator().set_record_stream_fn(ctypes.cast(record, ctypes.c_void_p).value)
torch.cuda.memory.change_current_allocator(weir)


def live():
    value, name = ctypes.c_int64(), b"allocated_bytes.all.current"
    # a weir_device is a type (2: CUDA, as in DLPack), and an index and 1
    assert library.weir_memory_stat(ctypes.byref(value), Device(2, 0), name) == 0, library.weir_error_message()
    return value.value


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("plus_1", ctypes.c_int)]

    def __init__(self, type=0, index=-1):
        super().__init__(type, index + 1)

    @property
    def index(self):
        return self.plus_1 - 1


host = torch.arange(MIB, dtype=torch.int32)
x = host.cuda()
print("copied", torch.equal(x.cpu(), host), "ours", live() >= 4 * MIB)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    y = torch.empty_like(x)
    y.copy_(x, non_blocking=True)
x.record_stream(side)
del x
z = torch.empty(MIB, dtype=torch.int32, device="cuda")  # not the memory that `side` may still read
torch.cuda.synchronize()
print("beside", torch.equal(y.cpu(), host))
del y, z
torch.cuda.synchronize()
big = torch.empty(1 << 50, dtype=torch.uint8, device="cuda")  # PyTorch does not look at NULL
print("none", big.data_ptr() == 0, library.weir_error_message()[:19].decode())
try:
    big[:10].copy_(torch.zeros(10, dtype=torch.uint8))
    print("copied into nothing")
except Exception as error:  # any: what is compared is which
    print(type(error).__name__, str(error).splitlines()[0])
del big
if torch.cuda.device_count() > 1:
    there = host.to("cuda:1")
    print("device 1", torch.equal(there.cpu(), host))
    del there
print("left", live())

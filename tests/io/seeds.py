#!/usr/bin/env python3
"""seeds.py FOLDER: files for the fuzzer to begin with."""
import json
import os
import struct
import sys

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def put(name, data):
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def npy(header, data, major=1):
    h = header.encode()
    return b'\x93NUMPY' + bytes([major, 0]) + struct.pack('<H' if major == 1 else '<I', len(h)) + h + data


for i, (descr, order, shape, size) in enumerate([('<f4', False, (2, 3), 24), ('>i8', True, (2, 2), 32), ('|b1', False, (), 1),
                                                ('<c8', False, (0, 4), 0), ('|u1', True, (1, 2, 3), 6), ('<f2', False, (5,), 10)]):
    header = repr({'descr': descr, 'fortran_order': order, 'shape': shape})
    put('npy%d' % i, npy(header + '\n', bytes(range(size)), 1 + i % 3))


def safetensors(header, size):
    h = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(h)) + h + bytes(i % 251 for i in range(size))


put('st0', safetensors({}, 0))
put('st1', safetensors({'a': {'dtype': 'F32', 'shape': [2, 2], 'data_offsets': [0, 16]}}, 16))
put('st2', safetensors({'__metadata__': {'k': 'v', 'é': '"\\\n'}, 'b': {'dtype': 'BOOL', 'shape': [], 'data_offsets': [0, 1]},
                        'c': {'dtype': 'BF16', 'shape': [1, 0], 'data_offsets': [1, 1], 'x': [{'y': None}, 1e3, True]}}, 1))
put('st3', safetensors(b'{"\\ud83d\\ude00":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}   ', 8))

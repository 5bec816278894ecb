#!/usr/bin/env python3
"""seeds.py FOLDER: files for the fuzzer to begin with."""
import io
import json
import os
import struct
import sys
import zipfile

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


def archive(method, **entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', method) as z:
        for name, data in entries.items():
            z.writestr(name.replace('_', '/').replace('0npy', '.npy'), data)
    return out.getvalue()


array = npy(repr({'descr': '<i4', 'fortran_order': False, 'shape': (40,)}), bytes(160))
put('npz0', archive(zipfile.ZIP_STORED, a0npy=array, b0npy=array))
u16 = npy(repr({'descr': '<u2', 'fortran_order': True, 'shape': (2, 1)}), bytes(4))
put('npy_u16', u16)
put('npz2', archive(zipfile.ZIP_STORED, a0npy=u16, readme=b'text'))
put('st4', safetensors({'a': {'dtype': 'F8_E5M2', 'shape': [2, 2], 'data_offsets': [0, 4]},
                        'b': {'dtype': 'F4', 'shape': [2], 'data_offsets': [4, 5]}}, 5))
put('npz1', archive(zipfile.ZIP_DEFLATED, a0npy=array))
pickle = (b'\x80\x02ccollections\nOrderedDict\n)Rq\x00(X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage'
          b'ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89h\x00tRX\x01\x00\x00\x00b'
          b']q\x01(K\x05G?\xf0\x00\x00\x00\x00\x00\x00\x88Ne}(K\x01h\x01uu.')
put('pt0', archive(zipfile.ZIP_STORED, **{'archive/data.pkl': pickle, 'archive/byteorder': b'little', 'archive/data/0': bytes(24)}))
put('pt1', archive(zipfile.ZIP_DEFLATED, **{'archive/data.pkl': pickle, 'archive/byteorder': b'big', 'archive/data/0': bytes(24)}))
objects = (b'\x80\x02}(X\x01\x00\x00\x00acargparse\nNamespace\n)\x81}(K\x01K\x02ubX\x01\x00\x00\x00bcm\nD\n)R(K\x01Nu'
           b'X\x01\x00\x00\x00c\x8f(K\x01\x90X\x01\x00\x00\x00dctorch._utils\n_rebuild_tensor_v3\n((X\x07\x00\x00\x00storage'
           b'ctorch.storage\nUntypedStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x18tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89}'
           b'ctorch\nuint16\ntRu.')
put('pt2', archive(zipfile.ZIP_STORED, **{'archive/data.pkl': objects, 'archive/byteorder': b'little', 'archive/data/0': bytes(24)}))

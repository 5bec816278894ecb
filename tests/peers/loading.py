"""loading.py LIBWEIR FOLDER [SEED]: checkpoints written by PyTorch, NumPy and safetensors, read by libweir, and
libweir's .npz read by NumPy: names, dtypes, shapes, strides, elements, which tensors share a storage, and what is
refused. The last line counts what was compared."""
import collections
import ctypes as C
import json
import os
import random
import sys
import zipfile

import numpy as np
import torch
from safetensors.torch import save_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tensors import NUMBERS, Shape  # noqa: E402

NAMES = {v: k for k, v in NUMBERS.items()}
OPTIONS = None
compared = collections.Counter()


def fail(*what):
    raise SystemExit(" ".join(map(str, what)))


def load_library(path):
    lib = C.CDLL(path)
    p = C.c_void_p
    for name, result, arguments in [
            ("error_message", C.c_char_p, []), ("tensor_data", p, [p]), ("tensor_shape", Shape, [p]), ("tensor_dtype", C.c_int, [p]),
            ("tensor_stride", C.c_int64, [p, C.c_int]), ("tensor_read", C.c_int, [p, C.c_size_t, C.c_int, p]),
            ("tensors_create", C.c_int, [p]), ("tensors_release", None, [p]), ("tensors_count", C.c_size_t, [p]), ("tensors_skipped_count", C.c_size_t, [p]), ("tensors_name", C.c_char_p, [p, C.c_size_t]),
            ("tensors_get", p, [p, C.c_char_p]), ("tensors_metadata", C.c_char_p, [p, C.c_char_p]),
            ("tensors_metadata_count", C.c_size_t, [p]), ("tensors_put", C.c_int, [p, C.c_char_p, p]), ("tensor_release", None, [p]),
            ("tensor_shares_storage", C.c_bool, [p, p]), ("pt_load", C.c_int, [p, C.c_char_p, p]), ("npz_load", C.c_int, [p, C.c_char_p, p]),
            ("npz_save", C.c_int, [C.c_char_p, p]), ("tensors_load", C.c_int, [p, C.c_char_p, p]), ("safetensors_open", C.c_int, [p, C.c_char_p]),
            ("safetensors_close", None, [p]), ("safetensors_read", C.c_int, [p, p, C.c_char_p, p]),
            ("safetensors_map", C.c_int, [p, p, C.c_char_p]), ("safetensors_count", C.c_size_t, [p]),
            ("safetensors_name", C.c_char_p, [p, C.c_size_t]), ("tensor_from", C.c_int, [p, p, C.c_int, Shape, p]),
            ("safetensors_map_all", C.c_int, [p, C.c_char_p])]:
        f = getattr(lib, "weir_" + name)
        f.restype, f.argtypes = result, arguments
    return lib


def made(function, *arguments):
    out = C.c_void_p()
    if function(C.byref(out), *arguments):
        fail(function.__name__, arguments, lib.weir_error_message().decode())
    return out


def refused(function, path, words):
    out = C.c_void_p()
    if not function(C.byref(out), path, None):
        fail(path, "was read")
    said = lib.weir_error_message().decode()
    if words not in said:
        fail(path, "says", repr(said), "not", repr(words))
    compared["refusals"] += 1


def elements(t):
    """Row by row, as bytes."""
    return torch.empty(t.numel(), dtype=t.dtype).copy_(t.detach().reshape(-1)).view(torch.uint8).numpy().tobytes() if t.numel() else b""


def same(what, weir, theirs, strides=True):
    s = lib.weir_tensor_shape(weir)
    if tuple(s.size[:s.count]) != tuple(theirs.shape):
        fail(what, "has shape", s.size[:s.count], "not", tuple(theirs.shape))
    if lib.weir_tensor_dtype(weir) != NUMBERS[theirs.dtype]:
        fail(what, "has dtype", lib.weir_tensor_dtype(weir), "not", theirs.dtype)
    if strides and theirs.numel() and tuple(lib.weir_tensor_stride(weir, i) for i in range(theirs.dim())) != theirs.stride():
        fail(what, "has strides", [lib.weir_tensor_stride(weir, i) for i in range(theirs.dim())], "not", theirs.stride())
    room = C.create_string_buffer(max(1, theirs.numel() * theirs.element_size()))
    if lib.weir_tensor_read(room, theirs.numel() * theirs.element_size(), NUMBERS[theirs.dtype], weir):
        fail(what, lib.weir_error_message().decode())
    if room.raw[:theirs.numel() * theirs.element_size()] != elements(theirs):
        fail(what, "has other elements")
    compared["tensors"] += 1


def random_tensor(r, dtype=None, sizes=None):
    dtype = dtype or r.choice(list(NUMBERS))
    sizes = sizes if sizes is not None else [r.choice([0, 1, 2, 3, 5, 17]) for _ in range(r.randint(0, 4))]
    t = torch.randint(0, 2 if dtype == torch.bool else 120, sizes).to(dtype)
    if t.dim() > 1 and r.random() < .3:
        t = t.transpose(0, 1)
    if t.dim() and t.shape[0] > 1 and r.random() < .3:
        t = t[1:]
    if t.dim() and r.random() < .2:
        t = t[..., ::2]
    if r.random() < .1:
        t = t.expand(3, *t.shape)
    return t


def nested(r, flat, texts, path="", depth=0):
    """A dict or list of tensors, numbers and more of these; what lies where goes into flat and texts."""
    out = {} if r.random() < .7 else []
    for i in range(r.randint(1, 5)):
        key = i if isinstance(out, list) else r.choice(["w%d" % i, "layer.%d.bias" % i, i, "é%d" % i])
        at = "%s.%s" % (path, key) if path else str(key)
        kind = r.random()
        if kind < .3 and depth < 3:
            v = nested(r, flat, texts, at, depth + 1)
        elif kind < .5:
            v = r.choice([3, -70000, 1 << 40, -1, 0.1, 1e-7, 1e22, 123456789.0, 1e16, 2.0, float("inf"), True, False, None, "text é"])
            texts[at] = str(v)
        elif kind < .6 and flat:
            v = r.choice(list(flat.values()))
            v = v.view(v.shape) if v.dim() else v
            flat[at] = v
        else:
            v = random_tensor(r)
            if r.random() < .2 and v.dtype.is_floating_point:
                v = torch.nn.Parameter(v)
            flat[at] = v
        if isinstance(out, list):
            out.append(v)
        else:
            out[key] = v
    return collections.OrderedDict(out) if isinstance(out, dict) and r.random() < .5 else out


def check_pt(r, rounds):
    for i in range(rounds):
        flat, texts = {}, {}
        what = nested(r, flat, texts)
        kwargs = {} if r.random() < .7 else {"pickle_protocol": r.choice([3, 4, 5])}
        torch.save(what, "t.pt", **kwargs)
        if r.random() < .2:
            deflate("t.pt")
        s = made(lib.weir_tensors_load, b"t.pt", None)
        if lib.weir_tensors_count(s) != len(flat) or lib.weir_tensors_metadata_count(s) != len(texts):
            fail("round", i, "has", lib.weir_tensors_count(s), "tensors, not", len(flat))
        for path, t in flat.items():
            same("%d: %s" % (i, path), lib.weir_tensors_get(s, path.encode()), t)
        for path, text in texts.items():
            if lib.weir_tensors_metadata(s, path.encode()).decode() != text:
                fail(path, "is", lib.weir_tensors_metadata(s, path.encode()), "not", text)
        for a in flat:
            for b in flat:
                ours = lib.weir_tensor_shares_storage(lib.weir_tensors_get(s, a.encode()), lib.weir_tensors_get(s, b.encode()))
                if ours != (flat[a].untyped_storage()._cdata == flat[b].untyped_storage()._cdata):
                    fail(i, a, "and", b, "share a storage" if ours else "share none")
        lib.weir_tensors_release(s)
        compared["files of torch.save"] += 1


def deflate(path):
    with zipfile.ZipFile(path) as old:
        parts = [(n, old.read(n)) for n in old.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for n, data in parts:
            new.writestr(n, data)


class Evil:
    def __init__(self, what):
        self.what = what

    def __reduce__(self):
        return self.what


def check_refusals():
    for what, words in [((os.system, ("true",)), "posix.system"), ((eval, ("1",)), "eval"), ((print, ("x",)), "print")]:
        torch.save(Evil(what), "t.pt")
        refused(lib.weir_pt_load, b"t.pt", words)
        torch.save({"a": Evil(what), "b": torch.ones(2)}, "t.pt")
        read = made(lib.weir_pt_load, b"t.pt", None)
        if lib.weir_tensors_count(read) != 1 or lib.weir_tensors_skipped_count(read) != 1:
            fail(words, "is not skipped")
        lib.weir_tensors_release(read)
    torch.save(torch.nn.Linear(2, 2), "t.pt")
    refused(lib.weir_pt_load, b"t.pt", "torch.nn.modules.linear.Linear")
    torch.save(torch.zeros(3, dtype=torch.complex128), "t.pt")
    refused(lib.weir_pt_load, b"t.pt", "torch.ComplexDoubleStorage")
    torch.save({"a": torch.zeros(3)}, "t.pt", _use_new_zipfile_serialization=False)
    refused(lib.weir_pt_load, b"t.pt", "before 1.6")
    refused(lib.weir_tensors_load, b"t.pt", "before 1.6")


def check_npz(r, rounds):
    dtypes = [d for d in NUMBERS if d != torch.bfloat16]
    for i in range(rounds):
        arrays = {"a%d" % k: random_tensor(r, r.choice(dtypes)) for k in range(r.randint(1, 6))}
        theirs = {k: v.numpy() for k, v in arrays.items()}
        if r.random() < .3:
            theirs = {k: np.asfortranarray(v) if v.ndim else v for k, v in theirs.items()}
        if r.random() < .2:
            theirs = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in theirs.items()}
        if r.random() < .3:
            arrays["long"] = torch.from_numpy(np.repeat(np.arange(r.randint(1, 99999)), r.randint(1, 9)))
            theirs["long"] = arrays["long"].numpy()
        (np.savez if r.random() < .4 else np.savez_compressed)("t.npz", **theirs)
        s = made(lib.weir_tensors_load if r.random() < .5 else lib.weir_npz_load, b"t.npz", None)
        if lib.weir_tensors_count(s) != len(arrays):
            fail("npz", i, "has", lib.weir_tensors_count(s), "arrays")
        for k, t in arrays.items():
            same("npz %d %s" % (i, k), lib.weir_tensors_get(s, k.encode()), t, False)
        if lib.weir_npz_save(b"ours.npz", s):
            fail(lib.weir_error_message().decode())
        with np.load("ours.npz", allow_pickle=False) as ours:
            for k, t in arrays.items():
                if ours[k].dtype != t.numpy().dtype or not np.array_equal(ours[k], t.numpy()):
                    fail("our npz", i, k)
        with zipfile.ZipFile("ours.npz") as z:
            if z.testzip() is not None:
                fail("our npz's sums")
        lib.weir_tensors_release(s)
        compared["files of numpy.savez"] += 1


def check_shards(r, rounds):
    for i in range(rounds):
        shards, weight_map = r.randint(1, 4), {}
        everything = {}
        for k in range(shards):
            name = "model-%05d-of-%05d.safetensors" % (k + 1, shards)
            part = {"p%d.%d" % (k, j): random_tensor(r, r.choice([d for d in NUMBERS if d != torch.complex64])).contiguous() for j in range(r.randint(1, 5))}
            save_file(part, name, metadata={"format": "pt"})
            everything.update(part)
            weight_map.update({n: name for n in part})
        with open("model.safetensors.index.json", "w") as f:
            json.dump({"metadata": {"total_size": 1}, "weight_map": weight_map}, f)
        opened = made(lib.weir_safetensors_open, r.choice([b".", b"model.safetensors.index.json"]))
        if sorted(lib.weir_safetensors_name(opened, k).decode() for k in range(lib.weir_safetensors_count(opened))) != sorted(everything):
            fail("names of shards differ")
        kept = []
        for n, t in everything.items():
            for how in (lambda: made(lib.weir_safetensors_read, opened, n.encode(), None), lambda: made(lib.weir_safetensors_map, opened, n.encode())):
                w = how()
                same("shard " + n, w, t, False)
                kept.append((w, t))
        lib.weir_safetensors_close(opened)
        for w, t in kept:
            same("after closing", w, t, False)
            lib.weir_tensor_release(w)
        for s in (made(lib.weir_safetensors_map_all, b"."), made(lib.weir_tensors_load, b".", None)):
            for n, t in everything.items():
                same("all " + n, lib.weir_tensors_get(s, n.encode()), t, False)
            lib.weir_tensors_release(s)
        compared["sharded checkpoints"] += 1
        missing = sorted(set(weight_map.values()))[-1]
        os.unlink(missing)
        refused(lambda out, path, options: lib.weir_safetensors_open(out, path), b".", "1 is not there: " + missing)


lib = load_library(sys.argv[1])
os.chdir(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 150
torch.manual_seed(seed)
check_pt(random.Random(seed), rounds)
check_refusals()
check_npz(random.Random(seed), rounds)
check_shards(random.Random(seed), rounds // 5)
print(", ".join("%d %s" % (n, what) for what, n in compared.items()) + ": all alike")

#!/usr/bin/env python3
"""Makes of the Toolkit's headers what the runtime stand-in has in common with every other runtime.

usage: gen.py PREPROCESSED INCLUDE_DIR UNSUPPORTED OUTDIR SOURCE...

PREPROCESSED is `cc -E -P` of headers.h, INCLUDE_DIR the Toolkit's, UNSUPPORTED the list of what the software
device's driver does not do. A SOURCE that defines cudaX, by RT_API or by a macro RT_...(cudaX, of rt.h, does it.
Any other entry point is the driver's function of its name, where the driver does it and the two have as many
parameters, and else answers cudaErrorNotSupported. Written to OUTDIR, only where the content changed:

  rt.gen.h              RT_PARAMS_cudaX: the parameters of cudaX as the headers declare them, and of rt_of_cudaX
  driver.gen.h          the driver's functions that are called: D(name without "cu", version, per-thread version),
                        the newest that cudaTypedefs.h names PFN_cu<name>_v<version> (0: no per-thread form)
  pass.gen.h            the entry points that are the driver's call of the same parameters
  unsupported.gen.h     the names that are not done: X(cudaX), a line each
  rename.gen.h          every entry point that is done and answers a cudaError_t is compiled as rt_of_cudaX
  watched.gen.h         and called by one of its own name: W(cudaX, (parameters), members, (arguments)),
                        W0(cudaX) where there are none
"""
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "driver"))
from gen import split_params, write  # noqa: E402

HEADERS = ["cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h",
           "cuda_vdpau_interop.h", "crt/host_runtime.h", "crt/device_functions.h"]
UNDECLARED = ["__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable"]
# Declared for texture references, which CUDA 12 removed: no runtime of today has them.
GONE = ["__cudaRegisterTexture", "__cudaRegisterSurface"]
# Windows only, or static inline in a header, or functions of device code: in no library of ours.
NOT_EXPORTED = ["cudaWGLGetDevice"]
# Where the driver's function is not the runtime's without its prefix.
RENAMED = {
    "cudaDeviceSynchronize": "CtxSynchronize",
    "cudaDeviceSetLimit": "CtxSetLimit",
    "cudaDeviceGetLimit": "CtxGetLimit",
    "cudaDeviceSetCacheConfig": "CtxSetCacheConfig",
    "cudaDeviceGetCacheConfig": "CtxGetCacheConfig",
    "cudaDeviceSetSharedMemConfig": "CtxSetSharedMemConfig",
    "cudaDeviceGetSharedMemConfig": "CtxGetSharedMemConfig",
    "cudaDeviceGetStreamPriorityRange": "CtxGetStreamPriorityRange",
    "cudaDeviceFlushGPUDirectRDMAWrites": "FlushGPUDirectRDMAWrites",
    "cudaGraphInstantiate": "GraphInstantiateWithFlags",
    "cudaHostUnregister": "MemHostUnregister",
    "cudaHostGetFlags": "MemHostGetFlags",
    "cudaDestroyTextureObject": "TexObjectDestroy",
    "cudaGetTextureObjectResourceViewDesc": "TexObjectGetResourceViewDesc",
    "cudaDestroySurfaceObject": "SurfObjectDestroy",
}
# A stub is no function of the driver's; the tables are the driver's own.
NOT_PASSED = ["cudaFuncSetSharedMemConfig", "cudaGetExportTable"]
# Newer versions have a parameter more, or answer otherwise.
OLDER = {"CtxGetDevice": 2000, "CtxSynchronize": 2000, "DeviceGetUuid": 9020}


def declared(include):
    """Names the headers declare; the suffix of those that have a per-thread default stream form."""
    names, suffixes = set(UNDECLARED), {}
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (include / header).read_text(), flags=re.S)
        names |= set(re.findall(r"\bCUDARTAPI\s+((?:__)?cuda\w+)\s*\(", text))
        for name, suffix in re.findall(r"#\s*define (cuda\w+)\s+__CUDART_API_PT(DS|SZ)\(", text):
            suffixes[name] = "_pt" + suffix.lower()
    return names - set(GONE) - set(NOT_EXPORTED), suffixes


def defined(sources):
    """Names that the sources define."""
    names = set()
    for source in sources:
        text = source.read_text()
        for name, suffix in re.findall(r"^RT_\w+\((\w+)(?:, (_pt\w\w))?", text, re.M):
            names |= {name, name + suffix}
        for name in re.findall(r"^RT_PAIR\((\w+)", text, re.M):
            names |= {name + "_ptds", name + "Async", name + "Async_ptsz"}
        for name, suffix in re.findall(r"\bRT_API[\w\s*]*\b((?:__)?cuda\w+)(##suffix)?\(", text):
            names |= {name, name + "_ptsz"} if suffix else {name}
    return names


def driver_functions(text):
    """{name: (version, per-thread version, [type])} of the driver's functions, from cudaTypedefs.h."""
    versions, found = {}, {}
    for name, version, suffix, params in re.findall(
            r"\bPFN_cu(\w+?)_v(\d+)(_ptds|_ptsz)?\s*\)\s*\(([^;]*?)\)\s*;", text):
        if int(version) <= OLDER.get(name, int(version)):
            versions.setdefault((name, bool(suffix)), {})[int(version)] = params
    for (name, per_thread), rows in versions.items():
        if not per_thread:
            newest = max(rows)
            types = [t for t, _ in split_params(" ".join(rows[newest].split()))]
            found[name] = (newest, max(versions.get((name, True), {0})), types)
    return found


def passed(name, suffix, params, driver):
    """The entry point as a call of the driver's function of that name; None: there is none."""
    function = RENAMED.get(name, name[4:])
    params = split_params(params)
    types = driver[function][2] if function in driver else []
    if name in NOT_PASSED or function not in driver or len(types) != len(params):
        return None
    device = any(t.startswith("CUdevice_v1") or t == "CUdevice" for t in types)
    arguments = ", ".join("handle" if device and n == "device" else f"({t})({n})"
                          for t, (_, n) in zip(types, params))
    if device:
        return f"RT_DEVICE_CALL({name}, {function}({arguments}))"
    if suffix:
        return f"RT_CALL_BOTH({name}, {suffix}, {function}({arguments}))"
    return f"RT_CALL({name}, {function}({arguments}))"


def watched(name, params):
    """A row of watched.gen.h."""
    fields = split_params(params)
    if not fields:
        return f"W0({name})"
    members = " ".join(f"{t} {n};" for t, n in fields)
    return f"W({name}, ({params}), {members}, ({', '.join(n for _, n in fields)}))"


def main():
    text, include, out = Path(sys.argv[1]).read_text(), Path(sys.argv[2]), sys.argv[4]
    missing = set(Path(sys.argv[3]).read_text().split())
    sources = [Path(s) for s in sys.argv[5:]]
    names, suffixes = declared(include)
    done = defined(sources)
    driver = driver_functions(text)
    does = {name: f for name, f in driver.items() if f"cu{name}" not in missing}
    found = re.findall(r"\bcudaError_t\s+(cuda\w+)\s*\(([^;{}]*?)\)\s*;", text)
    prototypes = {name: " ".join(params.split()) for name, params in found}
    rows = {name: passed(name, suffixes.get(name), params, does)
            for name, params in prototypes.items() if name not in done}
    calls = {name: row for name, row in rows.items() if row}
    names |= {name + suffix for name, suffix in suffixes.items()}
    done |= set(calls) | {name + suffixes.get(name, "") for name in calls}

    head = "/* Made by cuda/sim/runtime/gen.py from the Toolkit's headers. Not for editing. */\n"
    os.makedirs(out, exist_ok=True)
    write(os.path.join(out, "rt.gen.h"), head + "".join(
        f"#define RT_PARAMS_{name} ({params})\n#define RT_PARAMS_rt_of_{name} RT_PARAMS_{name}\n"
        for name, params in sorted(prototypes.items())))
    words = set(re.findall(r"\b([A-Z]\w+)\(", " ".join([*calls.values(), *(s.read_text() for s in sources)])))
    write(os.path.join(out, "driver.gen.h"), head + "".join(
        "D({}, {}, {})\n".format(name, *driver[name]) for name in sorted(words & set(driver))))
    write(os.path.join(out, "pass.gen.h"), head + "".join(
        f"{row}\n" for _, row in sorted(calls.items())))
    bases = {name + suffix: name for name, suffix in suffixes.items()}
    wrapped = {name: prototypes[bases.get(name, name)] for name in sorted(done & names)
               if bases.get(name, name) in prototypes}
    write(os.path.join(out, "rename.gen.h"), head + "".join(
        f"#define {name} rt_of_{name}\n" for name in wrapped))
    write(os.path.join(out, "watched.gen.h"), head + "".join(
        watched(name, params) + "\n" for name, params in wrapped.items()))
    write(os.path.join(out, "unsupported.gen.h"), head + "".join(
        f"X({name})\n" for name in sorted(names - done)))


main()

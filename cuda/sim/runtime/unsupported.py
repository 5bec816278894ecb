#!/usr/bin/env python3
"""Makes unsupported.def: the entry points of the CUDA runtime that the stand-in does not do.

usage: unsupported.py INCLUDE_DIR OBJECT... > unsupported.def

All names come from the Toolkit's headers (and three that the library
exports and no header declares); what the object files define is taken off.
"""
import re
import subprocess
import sys
from pathlib import Path

HEADERS = ["cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h",
           "cuda_vdpau_interop.h", "crt/host_runtime.h", "crt/device_functions.h"]
UNDECLARED = ["__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable"]
# Declared for texture references, which CUDA 12 removed: no runtime of today has them.
GONE = ["__cudaRegisterTexture", "__cudaRegisterSurface"]
# Windows only, or static inline in a header, or functions of device code: in no library of ours.
NOT_EXPORTED = ["cudaWGLGetDevice"]


def declared(include):
    """Names the headers declare, with their per-thread default stream forms."""
    names = set(UNDECLARED)
    for header in HEADERS:
        text = (include / header).read_text()
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        names |= set(re.findall(r"\bCUDARTAPI\s+((?:__)?cuda\w+)\s*\(", text))
        for name, suffix in re.findall(r"#\s*define (cuda\w+)\s+__CUDART_API_PT(DS|SZ)\(", text):
            names.add(name + "_pt" + suffix.lower())
    return names - set(GONE) - set(NOT_EXPORTED)


def defined(objects):
    lines = subprocess.run(["nm", "-g", "--defined-only", *objects], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if " T " in line}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    names = declared(Path(sys.argv[1])) - defined(sys.argv[2:])
    print("/* Made by unsupported.py: runtime entry points that answer cudaErrorNotSupported. */")
    for name in sorted(names):
        print(f"X({name})")


main()

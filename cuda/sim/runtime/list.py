#!/usr/bin/env python3
"""Lists the runtime's entry points that answer cudaErrorNotSupported on the software device.

usage: list.py UNSUPPORTED RUNTIME_LIBRARY DRIVER_UNSUPPORTED DRIVER_LIBRARY

They are those of UNSUPPORTED, which gen.py makes, and those that only pass a call on which the driver does
not do in any of its versions.
"""
import re
import subprocess
import sys
from pathlib import Path

# Where the runtime's name is not the driver's with another prefix.
RENAMED = {"cuFlushGPUDirectRDMAWrites": "cudaDeviceFlushGPUDirectRDMAWrites"}


def exports(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if " T " in line}


def base(name):
    """A driver function without version and stream suffix."""
    return re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", name)


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    definitions, runtime, unsupported, driver = sys.argv[1:]
    names = set(re.findall(r"^X\((\w+)\)", Path(definitions).read_text(), flags=re.M))
    missing = set(Path(unsupported).read_text().split())
    done = {base(name) for name in exports(driver) - missing}
    entries = exports(runtime)
    for name in {base(name) for name in missing} - done:
        name = RENAMED.get(name, name.replace("cu", "cuda", 1))
        names |= {name + suffix for suffix in ("", "_ptds", "_ptsz")} & entries
    print("\n".join(sorted(names)))


main()

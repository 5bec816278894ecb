#!/usr/bin/env python3
"""Makes the software device's entry points from NVIDIA's own headers.

usage: gen.py PREPROCESSED OUTDIR SOURCE.c...

PREPROCESSED is `cc -E -P` of cuda.h and cudaTypedefs.h under __CUDA_API_VERSION_INTERNAL, so that
every exported name with every version and stream suffix is declared in it. A SOURCE that defines
`CUresult sim_cuX(`, by a row `SIM_...(cuX, ...)` too or a row `X(sim_cuX, ...)` of a table, makes
cuX and its stream variants real; every other entry point answers CUDA_ERROR_NOT_SUPPORTED and is
listed. Written to OUTDIR, only where the content changed:

  api.gen.h        SIM_API_cuX numbers, prototypes of sim_cuX, its parameters as SIM_PARAMS_cuX
  entry.gen.c      the exported functions, their names, the table of cuGetProcAddress, error names
  unsupported.txt  the names that are not done, one a line

Stream variants: cuX_ptsz is cuX with the default stream taken per thread. A function with a stream
argument gets that argument made explicit (CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, never 0); one
without gets the default stream as an additional last argument.
"""
import os
import re
import sys

# Work before cuInit, in a forked child and after a sticky error: they touch no state.
STATELESS = {
    "cuDriverGetVersion", "cuGetErrorString", "cuGetErrorName", "cuGetProcAddress",
    "cuGetProcAddress_v2", "cuGetExportTable",
}
# Work while a sticky error is on the current context or it is destroyed, so that a program can
# ask, and leave it.
ANY_ERROR = re.compile(
    r"cuInit|cuDevice|cuCtx(Create|Destroy|PushCurrent|PopCurrent|SetCurrent|GetCurrent"
    r"|GetDevice|GetApiVersion|GetFlags|GetId|Detach)|cuModuleGetLoadingMode")
# Virtual memory management belongs to no context (none of these names CUDA_ERROR_INVALID_CONTEXT
# among its answers): they work while the current context is destroyed, not after a sticky error.
NO_CONTEXT = re.compile(
    r"cuMem(Address(Reserve|Free)|Create|Release|Map|Unmap|SetAccess|GetAccess|ExportToShareableHandle"
    r"|ImportFromShareableHandle|RetainAllocationHandle|GetAllocationGranularity"
    r"|GetAllocationPropertiesFromHandle)$")


def read_declarations(text):
    found = re.findall(r"\bCUresult\s+(cu\w+)\s*\(([^;{}]*?)\)\s*;", text)
    return {name: " ".join(params.split()) for name, params in found}


def read_typedefs(text):
    """[(base, version, suffix)] of cudaTypedefs.h"""
    found = re.findall(r"typedef\s+CUresult\s*\(\s*\*\s*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\s*\)", text)
    return [(base, int(version), suffix) for base, version, suffix in found]


def split_name(name):
    m = re.fullmatch(r"(\w+?)(?:_v(\d))?(_ptds|_ptsz)?", name)
    return m.group(1), int(m.group(2) or 1), m.group(3) or ""


def split_params(params):
    """[(type, name)] of a parameter list; no driver function takes an array or a function type."""
    if params in ("", "void"):
        return []
    out = []
    for one in params.split(","):
        m = re.fullmatch(r"\s*(.*?)\s*(\w+)\s*", one)
        out.append((m.group(1).replace(" *", "*").replace("* ", "*"), m.group(2)))
    return out


def types(params):
    return [t for t, _ in split_params(params)]


class Api:
    def __init__(self, declarations, done):
        self.declarations = declarations
        self.done = done
        self.ptds = {n[:-5] for n in declarations if n.endswith("_ptds")}
        self.ptsz = {n[:-5] for n in declarations if n.endswith("_ptsz")}

    def has_stream(self, name):
        return "CUstream" in types(self.declarations[name])

    def needs_default(self, core):
        """sim_core takes the default stream as one more argument"""
        return core in self.ptds or (core in self.ptsz and not self.has_stream(core))

    def core(self, name):
        """the implementation of an exported name, None if there is none"""
        base = re.sub(r"_pt(ds|sz)$", "", name)
        if base in self.done:
            return base
        stem, version, _ = split_name(base)
        for v in range(version + 1, 5):  # an old ABI with the parameters of a newer one
            newer = f"{stem}_v{v}"
            if newer in self.done and types(self.declarations[newer]) == types(
                    self.declarations[base]):
                return newer
        return None

    def call(self, name, core):
        per_thread = name.endswith(("_ptds", "_ptsz"))
        default = "CU_STREAM_PER_THREAD" if per_thread else "CU_STREAM_LEGACY"
        varies = core in self.ptds or core in self.ptsz
        arguments = [
            f"{n} ? {n} : {default}" if varies and t == "CUstream" else n
            for t, n in split_params(self.declarations[name])
        ]
        if self.needs_default(core):
            arguments.append(default)
        return f"sim_{core}({', '.join(arguments)})"

    def params(self, core):
        params = self.declarations[core]
        if self.needs_default(core):
            params = (params + ", " if params not in ("", "void") else "") + "CUstream default_stream"
        return f"({params})"

    def entry(self, name):
        params = self.declarations[name]
        core = self.core(name)
        base = re.sub(r"_pt(ds|sz)$", "", name)
        level = ("SIM_STATELESS" if base in STATELESS else
                 "SIM_ANY_ERROR" if ANY_ERROR.match(base) else
                 "SIM_NO_CONTEXT" if NO_CONTEXT.match(base) else "SIM_NORMAL")
        fields = split_params(params)
        lines = [f"SIM_EXPORT CUresult {name}({params or 'void'})", "{"]
        if fields:
            lines += ["  struct { %s } parameters_ = {%s};" % (" ".join(f"{t} {n};" for t, n in fields),
                                                    ", ".join(n for _, n in fields))]
        answer = f"sim_answer(SIM_API_{name}, {self.call(name, core)})" if core else \
            f"sim_not_supported(SIM_API_{name}, false)"
        lines += ["  struct sim_watched call_;",
                  f"  bool watched_ = sim_watch_call(&call_, \"{name}\", {'&parameters_' if fields else 'NULL'});",
                  f"  CUresult gate_ = sim_enter(SIM_API_{name}, {level});",
                  f"  CUresult result_ = gate_ ? gate_ : {answer};",
                  "  return unlikely(watched_) ? sim_watch_call_end(&call_, result_) : result_;"]
        return "\n".join(lines + ["}"])


def proc_rows(declarations, typedefs):
    """[(base, version, suffix, exported name)]: the k-th version of a base is its k-th export."""
    versions, exports = {}, {}
    for base, version, suffix in typedefs:
        versions.setdefault((base, suffix), set()).add(version)
    for name in declarations:
        stem, number, suffix = split_name(name)
        exports.setdefault((stem, suffix), []).append((number, name))
    rows = []
    for key in sorted(versions):
        names = [n for _, n in sorted(exports.get(key, []))]
        numbers = sorted(versions[key])
        if len(numbers) != len(names):
            sys.exit(f"gen.py: {key[0]}{key[1]}: versions {numbers} but exports {names}")
        rows += [(key[0], v, key[1], n) for v, n in zip(numbers, names)]
    return rows


def write(path, text):
    if os.path.exists(path) and open(path).read() == text:
        return
    with open(path, "w") as f:
        f.write(text)


def main():
    preprocessed, out, sources = sys.argv[1], sys.argv[2], sys.argv[3:]
    text = open(preprocessed).read()
    done = set()
    for source in sources:
        text_of = open(source).read()
        done |= set(re.findall(r"^(?:CUresult sim_|SIM_[A-Z]+\()(cu\w+)\b", text_of, re.M))
        for row in re.findall(r"^  X\((sim_cu.*)\)", text_of, re.M):
            done |= set(re.findall(r"\bsim_(cu\w+)", row))
    api = Api(read_declarations(text), done)
    names = sorted(api.declarations)
    unknown = done - set(names)
    if unknown:
        sys.exit(f"gen.py: not in cuda.h: {sorted(unknown)}")
    missing = [n for n in names if not api.core(n)]
    errors = re.findall(r"\b(CUDA_(?:SUCCESS|ERROR_\w+))\s*=\s*(\d+)", text)

    head = "/* Generated by cuda/sim/gen.py from cuda.h. Not for editing. */\n"
    h = [head, "#ifndef WEIR_SIM_API_GEN_H", "#define WEIR_SIM_API_GEN_H", "enum sim_api {"]
    h += [f"  SIM_API_{n}," for n in names] + ["  SIM_API_COUNT", "};", ""]
    h += [f"CUresult sim_{n}{api.params(n)};" for n in sorted(done)]
    h += [f"#define SIM_PARAMS_{n} {api.params(n)}" for n in sorted(done)] + ["#endif", ""]

    c = [head, '#include "cuda/sim/internal.h"', "",
         "#define SIM_EXPORT __attribute__((visibility(\"default\")))", "",
         "#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\"", ""]
    c += [api.entry(n) + "\n" for n in names]
    c += ["const char *const sim_api_names[] = {"] + [f'  "{n}",' for n in names] + ["};", ""]
    c += ["static const char *const unsupported[] = {"] + [f'  "{n}",' for n in missing]
    c += ["  NULL", "};", "",
          "SIM_EXPORT const char *const *weir_sim_unsupported(void) { return unsupported; }", ""]
    rows = proc_rows(api.declarations, read_typedefs(text))
    c += ["const struct sim_proc sim_procs[] = {"]
    for base, version, suffix, name in rows:
        c.append(f'  {{"{base}", {version}, {1 if suffix else 0}, SIM_PROC({name})}},')
    c += ["};", f"const unsigned sim_proc_count = {len(rows)};", ""]
    for base, version, suffix, name in rows:
        c.append(f"_Static_assert(__builtin_types_compatible_p(PFN_{base}_v{version}{suffix}, "
                 f"__typeof__(&{name})), \"{name}\");")
    c += ["", "const struct sim_error_name sim_error_names[] = {"]
    c += [f'  {{{value}, "{name}"}},' for name, value in errors] + ["  {0, NULL}", "};", ""]

    os.makedirs(out, exist_ok=True)
    write(os.path.join(out, "api.gen.h"), "\n".join(h))
    write(os.path.join(out, "entry.gen.c"), "\n".join(c))
    write(os.path.join(out, "unsupported.txt"), "".join(n + "\n" for n in missing))


if __name__ == "__main__":
    main()

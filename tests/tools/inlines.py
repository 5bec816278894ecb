#!/usr/bin/env python3
"""inlines.py SOURCE TEXT JSON FOLDED: every call of inlines.cc is reported with the functions that are
inlined where it is, by their whole names, at their lines: in a report as text and as JSON, and in stacks
that are exported. Compilers differ in whether a function of one file has its types in its name.
"""
import json
import re
import sys

LAMBDA = "shapes::pool<double, 2>::fill(unsigned long)::{lambda(int)#1}"
NAMES = {
    "take": "shapes::pool<double, 2>::take(int, unsigned long)",
    "lambda": LAMBDA + "::operator()(int) const",
    "each": f"void shapes::pool<double, 2>::each<{LAMBDA}>({LAMBDA}&&)",
    "fill": "shapes::pool<double, 2>::fill(unsigned long)",
    "copy_in": "void shapes::(anonymous namespace)::copy_in<double>(double*, double const&)",
    "store_one": "shapes::store_one(double*, double)",
    "store": "void shapes::store<double*, double*>(double*, double*)",
    "guard": "shapes::guard::~guard()",
    "main": "main",
}
SHORT = {"copy_in": "shapes::(anonymous namespace)::copy_in<double>", "store_one": "shapes::store_one"}
CALLS = {  # the list of places; innermost first: a function, or it and the word of its line
    "cudaMalloc": ("alloc", ["take", "lambda", "each", "fill", "main"]),
    "cudaMemcpy": ("copy", ["copy_in", "store_one", "store", ("main", "then")]),
    "cudaDeviceSynchronize": ("sync", ["guard", ("store", "end"), ("main", "then")]),
}

source, text, report, folded = (open(path).read() for path in sys.argv[1:])
report, shown = json.loads(report), text.split("\n")
lines = {m[1]: i + 1 for i, x in enumerate(source.split("\n")) if (m := re.search(r"// (\w+)$", x))}


def name(function):
    either = {NAMES[function], SHORT.get(function, NAMES[function])}
    return f"(?:{'|'.join(re.escape(x) for x in either)})"


for call, (kind, chain) in CALLS.items():
    chain = [x if isinstance(x, tuple) else (x, x) for x in chain]
    places = [f"{name(f)}  [^ ]*inlines.cc:{lines[at]}" for f, at in chain]
    first = [i for i, x in enumerate(shown) if f" {call} " in x and re.search(f" {places[0]}$", x)]
    assert first, (call, places[0], text)
    at = first[-1]  # in the table of places; that of functions has no callers
    callers = [x.partition("← ")[2] for x in shown[at + 1:at + len(places)]]
    assert all(re.fullmatch(*x) for x in zip(places[1:], callers, strict=True)), (call, places, callers)

    sites = [s for s in report["sites"][kind] if s["api"] == call]
    assert len(sites) == 1 and len(sites[0]["stacks"]) == 1, sites
    frames = sites[0]["stacks"][0]["frames"]
    at = next(i for i, x in enumerate(frames) if re.fullmatch(f"{name(chain[0][0])} .*", x))
    for frame, (f, place) in zip(frames[at:], chain):
        assert re.fullmatch(f"{name(f)} \\(\\S*inlines.cc:{lines[place]}\\)", frame), (frame, f, place)
    assert re.fullmatch(name(chain[0][0]), sites[0]["function"]), sites[0]
    assert sites[0]["line"] == lines[chain[0][1]], sites[0]

    stack = ";".join(name(f) for f, _ in reversed(chain)) + f";{call} [0-9]+"
    counted = sum(int(x.rsplit(" ", 1)[1]) for x in folded.splitlines() if re.search(f";{stack}$", x))
    assert counted == sites[0]["calls"], (stack, folded)

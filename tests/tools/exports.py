#!/usr/bin/env python3
"""Reads what weir export writes, by parsers of its own.

exports.py profiles FOLDER   FOLDER/folded.WEIGHT, speedscope and pprof have the same stacks and weights;
                             prints a line "WEIGHT SUM" for each weight
"""
import gzip
import json
import sys

WEIGHTS = ["calls", "host-time", "allocated", "copied", "live-at-peak"]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    """A list of (field, value): numbers, and bytes."""
    at, fields = 0, []
    while at < len(data):
        key, at = varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        else:
            raise AssertionError(f"wire type {wire}")
        fields.append((field, value))
    assert at == len(data)
    return fields


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def every(fields, number):
    return [v for f, v in fields if f == number]


def one(fields, number, absent=0):
    found = every(fields, number)
    assert len(found) <= 1
    return found[0] if found else absent


def add(sums, stack, weight):
    if weight:
        sums[stack] = sums.get(stack, 0) + weight


def folded(path):
    sums = {}
    for line in open(path, encoding="utf-8"):
        stack, weight = line.rstrip("\n").rsplit(" ", 1)
        assert int(weight) > 0
        add(sums, tuple(stack.split(";")), int(weight))
    return sums


def speedscope(path):
    top = json.load(open(path, encoding="utf-8"))
    assert top["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(top) <= {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    frames = top["shared"]["frames"]
    for f in frames:
        assert "name" in f and set(f) <= {"name", "file", "line", "col"}
    result = {}
    for p in top["profiles"]:
        assert set(p) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert p["type"] == "sampled" and p["unit"] in ("none", "nanoseconds", "bytes")
        assert len(p["samples"]) == len(p["weights"])
        assert p["endValue"] == sum(p["weights"]) and p["startValue"] == 0
        sums = result[p["name"]] = {}
        for sample, weight in zip(p["samples"], p["weights"]):
            add(sums, tuple(frames[i]["name"] for i in sample), weight)
    assert 0 <= top["activeProfileIndex"] < len(top["profiles"])
    return result


def pprof(path):
    top = message(gzip.open(path).read())
    strings = [s.decode("utf-8") for s in every(top, 6)]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    mappings = {one(message(m), 1) for m in every(top, 3)}
    functions = {one(message(f), 1): strings[one(message(f), 2)] for f in every(top, 5)}
    places = {}
    for data in every(top, 4):
        place = message(data)
        assert one(place, 1) not in places and one(place, 2) in mappings | {0}
        places[one(place, 1)] = functions[one(message(one(place, 4)), 1)]
    assert 0 not in mappings and 0 not in functions and 0 not in places
    types = [message(t) for t in every(top, 1)]
    names = [strings[one(t, 1)] for t in types]
    assert {strings[one(t, 2)] for t in types} == {"count", "nanoseconds", "bytes"}
    assert strings[one(top, 14)] in names and one(top, 9) > 0 and one(top, 10) > 0
    result = {name: {} for name in names}
    for data in every(top, 2):
        sample = message(data)
        values = packed(one(sample, 2))
        assert len(values) == len(names)
        stack = tuple(places[i] for i in reversed(packed(one(sample, 1))))
        for name, value in zip(names, values):
            add(result[name], stack, value)
    return result


def profiles(folder):
    scope, proto = speedscope(folder + "/speedscope"), pprof(folder + "/pprof")
    assert list(scope) == WEIGHTS and list(proto) == WEIGHTS
    for weight in WEIGHTS:
        fold = folded(f"{folder}/folded.{weight}")
        plain = {}
        for stack, value in scope[weight].items():
            add(plain, tuple(clean(name) for name in stack), value)
        assert fold == plain, weight
        plain = {}
        for stack, value in proto[weight].items():
            add(plain, tuple(clean(name) for name in stack), value)
        assert fold == plain, weight
        print(weight, sum(fold.values()))


def clean(name):
    """A name as folded stacks have it."""
    name = name.replace("\ufffd", "?").replace(";", ":")
    return "".join("?" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in name)


if __name__ == "__main__":
    {"profiles": profiles}[sys.argv[1]](*sys.argv[2:])

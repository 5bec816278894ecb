#!/usr/bin/env python3
"""Reads what weir export writes, by parsers of its own.

exports.py profiles FOLDER   FOLDER/folded.WEIGHT, speedscope, pprof and firefox have the same stacks and weights;
                             prints a line "WEIGHT SUM" for each weight
exports.py timelines FOLDER  FOLDER/perfetto and chrome have the same slices, stacks, flows and bytes live,
                             and nothing on a track overlaps; prints a line "WHAT SUM" for each of these
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


def table(thread, name, columns):
    """A table of a processed profile of Firefox Profiler's: its columns, each as long as it says."""
    found = thread[name]
    for column in columns:
        assert len(found[column]) == found["length"], (name, column)
    assert all(len(v) == found["length"] for v in found.values() if isinstance(v, list)), name
    return found


def within(values, length, null=False):
    for value in values:
        assert (null and value is None) or (isinstance(value, int) and 0 <= value < length), value


def firefox_stacks(thread, categories):
    """Names of each stack, outermost first. What each column is: the format's src/types/profile.js, version 48."""
    strings = thread["stringArray"]
    assert len(set(strings)) == len(strings) and all(isinstance(s, str) for s in strings)
    funcs = table(
        thread,
        "funcTable",
        ["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"],
    )
    within(funcs["name"], len(strings))
    within(funcs["fileName"], len(strings), null=True)
    assert set(funcs["resource"]) <= {-1} and set(funcs["isJS"]) <= {False}
    frames = table(
        thread,
        "frameTable",
        ["address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID"]
        + ["implementation", "line", "column"],
    )
    within(frames["func"], funcs["length"])
    within(frames["category"], categories)
    assert all(line is None or line > 0 for line in frames["line"])
    stacks, names = table(thread, "stackTable", ["prefix", "frame", "category", "subcategory"]), []
    within(stacks["frame"], frames["length"])
    within(stacks["category"], categories)
    for i, (prefix, frame) in enumerate(zip(stacks["prefix"], stacks["frame"])):
        assert prefix is None or 0 <= prefix < i
        names.append((() if prefix is None else names[prefix]) + (strings[funcs["name"][frames["func"][frame]]],))
    assert len({(p, f) for p, f in zip(stacks["prefix"], stacks["frame"])}) == stacks["length"]
    return names


def firefox(path):
    top = json.load(open(path, encoding="utf-8"), parse_float=lambda text: text)
    meta, result = top["meta"], {}
    assert meta["preprocessedProfileVersion"] == 48 and meta["interval"] > 0 and meta["markerSchema"] == []
    assert meta["symbolicated"] and float(meta["startTime"]) > 0 and meta["processType"] == 0 and top["libs"] == []
    assert [c["name"] for c in meta["categories"] if c["color"] == "grey"] == ["Other"]
    assert all(c["subcategories"][0] == "Other" for c in meta["categories"])
    for thread in top["threads"]:
        assert isinstance(thread["pid"], str) and isinstance(thread["tid"], int) and thread["pausedRanges"] == []
        table(thread, "markers", ["data", "name", "startTime", "endTime", "phase", "category"])
        table(thread, "resourceTable", ["lib", "name", "host", "type"])
        table(thread, "nativeSymbols", ["libIndex", "address", "name", "functionSize"])
        names = firefox_stacks(thread, len(meta["categories"]))
        samples = table(thread, "samples", ["stack", "time", "weight"])
        within(samples["stack"], len(names))
        assert samples["time"] == sorted(samples["time"])
        sums = result[thread["name"]] = {}
        kind = {"calls": "samples", "host-time": "tracing-ms"}.get(thread["name"], "bytes")
        assert samples["weightType"] == kind
        for stack, weight in zip(samples["stack"], samples["weight"]):
            if kind == "tracing-ms":
                whole, part = weight.split(".")
                assert len(part) == 6
                weight = int(whole) * 1000000 + int(part)
            add(sums, names[stack], weight)
    assert all(t["isMainThread"] for t in top["threads"])
    assert len({t["pid"] for t in top["threads"]}) == len(top["threads"])
    return result


def profiles(folder):
    scope, proto, fox = speedscope(folder + "/speedscope"), pprof(folder + "/pprof"), firefox(folder + "/firefox")
    assert list(scope) == WEIGHTS and list(proto) == WEIGHTS and list(fox) == WEIGHTS
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
        plain = {}
        for stack, value in fox[weight].items():
            add(plain, tuple(clean(name) for name in stack), value)
        assert fold == plain, weight
        print(weight, sum(fold.values()))


def track_kind(track, parent):
    process, thread, counter = one(track, 3, None), one(track, 4, None), one(track, 8, None)
    if process is not None:
        return "process"
    if thread is not None:
        return "thread"
    if counter is not None:
        assert one(message(counter), 3) == 3  # bytes
        return "counter"
    return {None: "device", "device": "stream", "process": "range"}[parent]


class Interned:
    """What packets of the sequence have interned so far, by field and number."""

    def __init__(self):
        self.tables = {}

    def take(self, data):
        for field, value in message(data):
            fields = message(value)
            table = self.tables.setdefault(field, {})
            assert one(fields, 1) > 0 and one(fields, 1) not in table
            table[one(fields, 1)] = fields

    def text(self, field, iid):
        return one(self.tables[field][iid], 2).decode("utf-8")

    def frame(self, iid):
        fields = self.tables[6][iid]
        path = one(self.tables[19][one(fields, 3)], 7)
        assert path in self.tables[17]
        if one(fields, 5):
            assert one(fields, 5) in self.tables[18]
        return self.text(5, one(fields, 2))

    def stack(self, iid):
        return tuple(self.frame(i) for i in every(self.tables[7][iid], 2)) if iid else ()


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def annotations(event, interned):
    found = {}
    for data in every(event, 4):
        fields = message(data)
        text = one(fields, 6, None)
        value = signed(one(fields, 4)) if text is None else text.decode("utf-8")
        found[interned.text(3, one(fields, 1))] = value
    return found


def perfetto(path):
    interned, tracks, parents, open_slices, ends = Interned(), {}, {}, {}, {}
    slices, live = [], {}
    for field, data in message(open(path, "rb").read()):
        assert field == 1
        packet = message(data)
        assert one(packet, 10) == 1 and one(packet, 13) == (2 if interned.tables else 3)
        for part in every(packet, 12):
            interned.take(part)
        for part in every(packet, 60):
            track = message(part)
            uuid, parent = one(track, 1), one(track, 5)
            assert uuid and uuid not in tracks and (not parent or parent in tracks)
            tracks[uuid], parents[uuid] = track_kind(track, tracks.get(parent)), parent
        for part in every(packet, 11):
            event, at = message(part), one(packet, 8)
            track, kind = one(event, 11), one(event, 9)
            if kind == 4:
                assert tracks[track] == "counter"
                live.setdefault(track, []).append((at, signed(one(event, 30))))
            elif kind == 1:
                assert track not in open_slices and at >= ends.get(track, 0)
                assert tracks[track] in ("thread", "stream", "range")
                open_slices[track] = (at, event)
            else:
                start, begun = open_slices.pop(track)
                assert kind == 2 and at >= start
                ends[track] = at
                slices.append(
                    (
                        tracks[track],
                        start,
                        at,
                        interned.text(2, one(begun, 10)),
                        interned.text(1, one(begun, 3)),
                        interned.stack(one(begun, 56)),
                        one(begun, 47),
                        tuple(sorted(annotations(begun, interned).items())),
                    )
                )
    assert not open_slices
    return slices, list(live.values())


def ns(text):
    whole, part = text.split(".")
    assert len(part) == 3
    return int(whole) * 1000 + int(part)


def chrome(path):
    top = json.load(open(path, encoding="utf-8"), parse_float=ns)
    frames, slices, live, arrows, named = top["stackFrames"], [], {}, {}, set()

    def stack(at):
        names = []
        while at is not None:
            names.append(frames[at]["name"])
            at = frames[at].get("parent")
        return tuple(reversed(names))

    for e in top["traceEvents"]:
        track = (e["pid"], e["tid"])
        if e["ph"] == "M":
            named.add(track)
        elif e["ph"] == "C":
            live.setdefault(track, []).append((e["ts"], e["args"]["bytes"]))
        elif e["ph"] == "X":
            kind = "stream" if e["pid"] >= 10**9 else "range" if e["tid"] >= 10**9 else "thread"
            assert kind == "thread" or track in named
            args = tuple(sorted(e["args"].items()))
            slices.append(
                [kind, e["ts"], e["ts"] + e["dur"], e["name"], e["cat"], stack(e.get("sf")), 0, args]
            )
        else:
            assert e["ph"] == ("s" if slices[-1][0] == "thread" else "f") and e["id"] > 0
            assert e["ts"] == slices[-1][1]
            slices[-1][6] = e["id"]
    return [tuple(s) for s in slices], list(live.values())


def timelines(folder):
    slices, live = perfetto(folder + "/perfetto")
    others, other_live = chrome(folder + "/chrome")
    assert others == slices
    assert live == other_live
    calls = [s for s in slices if s[0] == "thread"]
    works = [s for s in slices if s[0] == "stream"]
    ranges = [s for s in slices if s[0] == "range"]
    begun = {s[6] for s in calls if s[6]}
    assert begun == {s[6] for s in works if s[6]}
    for name, some in ("calls", calls), ("works", works), ("ranges", ranges):
        print(name, len(some))
        print(name + "-time", sum(s[2] - s[1] for s in some))
    print("copied", sum(dict(s[7]).get("bytes", 0) for s in calls if s[4] == "copy"))
    print("work-bytes", sum(dict(s[7]).get("bytes", 0) for s in works))
    print("flows", len([s for s in works if s[6]]))
    print("kernels", len([s for s in calls if "kernel" in dict(s[7])]))
    print("deepest", max((len(s[5]) for s in calls), default=0))
    print("failed", len([s for s in calls if "status" in dict(s[7])]))
    for values in live:
        assert [at for at, _ in values] == sorted(at for at, _ in values)
        assert all(value >= 0 for _, value in values)
        print("live", max(value for _, value in values))
        print("left", values[-1][1])


def clean(name):
    """A name as folded stacks have it."""
    name = name.replace("\ufffd", "?").replace(";", ":")
    return "".join("?" if ord(c) < 32 or 127 <= ord(c) < 160 else c for c in name)


if __name__ == "__main__":
    {"profiles": profiles, "timelines": timelines}[sys.argv[1]](*sys.argv[2:])

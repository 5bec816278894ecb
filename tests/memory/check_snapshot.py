#!/usr/bin/env python3
"""Checks memory snapshots, JSON or pickle, against the documented structure.

    check_snapshot.py FILE... [reserved=N] [allocated=N] [requested=N] [active=N] [device=N] [entries=N]

Structure: PyTorch's documentation, "Understanding CUDA Memory Usage", Snapshot API Reference, with
the keys its writer (torch/csrc/cuda/memory_snapshot.cpp) and its viewer (MemoryViz.js) know. What
is missing or of another type ends the check. Then consistency: blocks tile their segment, sums are
the figures given, and going back through the trace, as the viewer does, always finds what an entry
speaks of. Ends with 1 and a sentence where something is wrong.
"""
import json
import pickle
import sys

NUMBER, TEXT, BOOL, REAL = int, str, bool, float


def fail(sentence):
    sys.exit("check_snapshot: " + sentence)


def need(where, value, kind):
    if kind is PAIR:
        if not (isinstance(value, (tuple, list)) and len(value) == 2 and all(type(n) is int for n in value)):
            fail(f"{where} is no pair of numbers: {value!r}")
    elif isinstance(kind, dict):
        need(where, value, DICT)
        for key, inner in kind.items():
            if key not in value:
                fail(f"{where} has no {key}: {value!r}")
            need(f"{where}.{key}", value[key], inner)
    elif isinstance(kind, list):
        need(where, value, LIST)
        for i, item in enumerate(value):
            need(f"{where}[{i}]", item, kind[0])
    elif isinstance(kind, set):
        if value not in kind:
            fail(f"{where} is {value!r}, none of {sorted(kind)}")
    elif type(value) is not kind:
        fail(f"{where} is {value!r}, no {kind.__name__}")


PAIR = object()
DICT, LIST = dict, list
FRAME = {"name": TEXT, "filename": TEXT, "line": NUMBER}
BLOCK = {
    "address": NUMBER, "size": NUMBER, "requested_size": NUMBER, "frames": [FRAME],
    "state": {"active_allocated", "active_pending_free", "inactive"},
    "stream": NUMBER, "user_metadata": TEXT, "pool_id": PAIR,
}
SEGMENT = {
    "device": NUMBER, "address": NUMBER, "total_size": NUMBER, "allocated_size": NUMBER,
    "active_size": NUMBER, "requested_size": NUMBER, "stream": NUMBER,
    "segment_type": {"small", "large"}, "segment_pool_id": PAIR, "is_expandable": BOOL,
    "frames": [FRAME], "blocks": [BLOCK],
}
ACTIONS = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
           "segment_map", "segment_unmap", "oom", "snapshot"}
ENTRY = {
    "action": ACTIONS, "size": NUMBER, "stream": NUMBER, "device": NUMBER, "time_us": NUMBER,
    "pool_id": PAIR, "compile_context": TEXT, "user_metadata": TEXT, "frames": [FRAME],
}
NOTE = {"stage": {"START", "END"}, "name": TEXT, "device": NUMBER, "time_us": NUMBER}
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": TEXT, "max_split_size": NUMBER, "garbage_collection_threshold": REAL,
    "expandable_segments": BOOL, "pinned_num_register_threads": NUMBER,
    "release_lock_on_cudamalloc": BOOL, "pinned_use_cuda_host_register": BOOL,
    "roundup_power2_divisions": DICT,
}
SNAPSHOT = {
    "segments": [SEGMENT], "device_traces": [[ENTRY]], "allocator_settings": SETTINGS,
    "external_annotations": [NOTE],
    "weir": {"unwinder": TEXT, "stacks_lost": NUMBER, "devices": [
        {"device": NUMBER, "reserved_bytes": NUMBER, "unmapped_bytes": NUMBER,
         "entries_overwritten": NUMBER, "entries_lost": NUMBER}]},
}


def check_segment(segment):
    at, live, active, requested = segment["address"], 0, 0, 0
    for block in segment["blocks"]:
        if block["address"] != at:
            fail(f"a block begins at {block['address']}, where {at} was next")
        if block["size"] <= 0:
            fail(f"a block of {block['size']} bytes")
        at += block["size"]
        if block["state"] == "active_allocated":
            live += block["size"]
            requested += block["requested_size"]
            if not 0 < block["requested_size"] <= block["size"]:
                fail(f"a block of {block['size']} bytes for {block['requested_size']}")
        if block["state"] != "inactive":
            active += block["size"]
    if at != segment["address"] + segment["total_size"]:
        fail(f"the blocks of the segment at {segment['address']} do not fill it")
    found = (live, active, requested)
    said = (segment["allocated_size"], segment["active_size"], segment["requested_size"])
    if found != said:
        fail(f"the blocks of a segment add up to {found}, it says {said}")


def go_back(entries, segments):
    """What the viewer does: from the final state backwards, entry by entry."""
    ranges = sorted([s["address"], s["address"] + s["total_size"]] for s in segments)
    blocks = {b["address"]: b for s in segments for b in s["blocks"] if b["state"] != "inactive"}
    for entry in reversed(entries):
        action, addr = entry["action"], entry.get("addr")
        if action == "oom":
            need("an oom entry", entry, {"device_free": NUMBER})
            continue
        need("an entry", entry, {"addr": NUMBER})
        end = addr + entry["size"]
        if action == "alloc":
            if addr not in blocks:
                fail(f"alloc of {addr:#x}, which is not there afterwards")
            if blocks[addr]["requested_size"] != entry["size"]:
                fail(f"alloc of {entry['size']} bytes, found {blocks[addr]['requested_size']}")
            del blocks[addr]
        elif action == "free_completed":
            if addr in blocks:
                fail(f"free_completed of {addr:#x}, which is there afterwards")
            blocks[addr] = {"requested_size": entry["size"], "state": "active_pending_free"}
        elif action == "free_requested":
            if addr not in blocks or blocks[addr]["state"] != "active_pending_free":
                fail(f"free_requested of {addr:#x}, which does not wait afterwards")
            blocks[addr]["state"] = "active_allocated"
        elif action in ("segment_free", "segment_unmap"):
            if any(r[0] < end and addr < r[1] for r in ranges):
                fail(f"{action} of {addr:#x}, which is there afterwards")
            ranges.append([addr, end])
            ranges.sort()
            if action == "segment_unmap":
                ranges = join(ranges)
        elif action in ("segment_alloc", "segment_map"):
            inside = [r for r in ranges if r[0] <= addr and end <= r[1]]
            if not inside or (action == "segment_alloc" and inside[0] != [addr, end]):
                fail(f"{action} of {addr:#x}, which is not there afterwards")
            ranges.remove(inside[0])
            ranges += [r for r in ([inside[0][0], addr], [end, inside[0][1]]) if r[0] < r[1]]
            ranges.sort()
    for address in blocks:
        if not any(r[0] <= address < r[1] for r in ranges):
            fail(f"a block at {address:#x} has no segment at the beginning")
    return blocks, ranges


def join(ranges):
    out = []
    for r in ranges:
        if out and out[-1][1] == r[0]:
            out[-1][1] = r[1]
        else:
            out.append(list(r))
    return out


def load(path):
    with open(path, "rb") as f:
        text = f.read()
    return pickle.loads(text) if text[:1] == b"\x80" else json.loads(text)


def check(snapshot, wanted):
    need("snapshot", snapshot, SNAPSHOT)
    for segment in snapshot["segments"]:
        check_segment(segment)
    for trace in snapshot["device_traces"]:
        times = [e["time_us"] for e in trace]
        if times != sorted(times):
            fail("a trace is not in the order of time")
    devices = {d["device"]: d for d in snapshot["weir"]["devices"]}
    if len(snapshot["device_traces"]) != max(devices, default=-1) + 1:
        fail("there is not a trace a device")
    for device, own in devices.items():
        segments = [s for s in snapshot["segments"] if s["device"] == device]
        if sum(s["total_size"] for s in segments) + own["unmapped_bytes"] != own["reserved_bytes"]:
            fail("what is mapped and what is not do not add up to what is reserved")
        blocks, ranges = go_back(snapshot["device_traces"][device], segments)
        if wanted.get("whole") == "1" and (blocks or ranges):
            fail(f"before the first entry there were {len(blocks)} blocks and {len(ranges)} segments")
    only = int(wanted.get("device", 0))
    segments = [s for s in snapshot["segments"] if s["device"] == only]
    sums = {"reserved": devices[only]["reserved_bytes"],
            "allocated": sum(s["allocated_size"] for s in segments),
            "active": sum(s["active_size"] for s in segments),
            "requested": sum(s["requested_size"] for s in segments),
            "entries": len(snapshot["device_traces"][only]),
            "segments": len(segments)}
    for key, value in sums.items():
        if key in wanted and int(wanted[key]) != value:
            fail(f"{key} is {value}, the figures say {wanted[key]}")


arguments = sys.argv[1:]
for name in arguments:
    if "=" not in name:
        check(load(name), dict(a.split("=") for a in arguments if "=" in a))

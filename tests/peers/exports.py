#!/usr/bin/env python3
"""exports.py OUT FOLDER: weir export --format perfetto, read by Perfetto's own messages (PyPI's perfetto).

Every field is one that Perfetto knows, every number of something interned stands for something, and
there is a slice for each call and each operation of a device.
"""
import os
import sqlite3
import subprocess
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto


def unknown(message):
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            count += sum(unknown(part) for part in (value if field.is_repeated else [value]))
    return count


def read(path):
    trace = perfetto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    assert unknown(trace) == 0
    return trace.packet


def check(packets):
    """Numbers of slices by kind of track, and the most live bytes of each counter."""
    tracks, names, stacks, frames = {}, set(), set(), set()
    slices, live, depth = {}, {}, 0
    event = perfetto.TrackEvent
    for packet in packets:
        interned = packet.interned_data
        names.update(x.iid for x in interned.event_names)
        frames.update(x.iid for x in interned.frames)
        stacks.update(x.iid for x in interned.callstacks)
        assert all(frame in frames for x in interned.callstacks for frame in x.frame_ids)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            tracks[track.uuid] = "thread" if track.HasField("thread") else "stream"
            if track.HasField("counter"):
                assert track.counter.unit == perfetto.CounterDescriptor.UNIT_SIZE_BYTES
                live[track.uuid] = 0
        if not packet.HasField("track_event"):
            continue
        e = packet.track_event
        assert e.track_uuid in tracks
        if e.type == event.TYPE_COUNTER:
            live[e.track_uuid] = max(live[e.track_uuid], e.counter_value)
            continue
        depth = depth + 1 if e.type == event.TYPE_SLICE_BEGIN else depth - 1
        assert depth in (0, 1)
        if e.type == event.TYPE_SLICE_BEGIN:
            assert e.name_iid in names and (not e.callstack_iid or e.callstack_iid in stacks)
            kind = tracks[e.track_uuid]
            slices[kind] = slices.get(kind, 0) + 1
    assert depth == 0
    return slices, list(live.values())


def main(out, folder):
    os.makedirs(folder, exist_ok=True)
    weir, trace, exported = out + "/bin/weir", folder + "/t.db", folder + "/t.perfetto"
    caller = [out + "/tests/e2e/graph_caller", "random", "3"]
    run = [weir, "run", "--force", "--sim", "--device-times=all", "-o", trace, "--"]
    subprocess.run(run + caller, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([weir, "export", "--format", "perfetto", "-o", exported, trace], check=True)
    packets = read(exported)
    slices, live = check(packets)
    db = sqlite3.connect(trace)
    (calls,) = db.execute("SELECT count(*) FROM call").fetchone()
    (works,) = db.execute("SELECT count(*) FROM device_work WHERE kind < 5").fetchone()
    (peak,) = db.execute("SELECT peak FROM memory WHERE device = 0 AND mem IS NULL").fetchone()
    assert slices == {"thread": calls, "stream": works} and live == [peak], (slices, live)
    print(f"{len(packets)} packets, {calls} calls, {works} operations of the device, {peak} bytes live")


if __name__ == "__main__":
    main(*sys.argv[1:])

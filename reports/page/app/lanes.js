/* lanes.js: the operations of the timeline, as numbers: which lie in a span, which is at a moment. Operations
 * are sorted by lane and start. They may overlap within a lane: `reached` has, for each, the latest end of it
 * and those before it in its lane, which never falls, so that a search finds the first that reaches a moment. */
import { lowerBound, run } from './model.js';

let loaded = null;

/* {lane, start, duration, kind, bytes, site, event, name: columns; reached; first: of each lane, and one beyond} */
export function laneOps() {
  if (loaded) return loaded;
  const { ops, lanes } = run.index;
  const [lane, start, duration, kind, bytes, site, event, name] = [ops.lane, ops.start, ops.duration, ops.class, ops.bytes, ops.site, ops.event, ops.name].map(run.column);
  const reached = new Float64Array(start.length);
  const first = new Uint32Array(lanes.length + 1);
  for (let i = 0; i < start.length; i++) {
    const end = start[i] + duration[i];
    reached[i] = i && lane[i] === lane[i - 1] ? Math.max(end, reached[i - 1]) : end;
  }
  for (let n = 0; n <= lanes.length; n++) first[n] = lowerBound(lane, n);
  loaded = { lane, start, duration, kind, bytes, site, event, name, reached, first };
  return loaded;
}

/* The operations of a lane that may touch from .. to: [first, last) of all. */
export function opsWithin(lane, from, to) {
  const { start, reached, first } = laneOps();
  return [lowerBound(reached, from, first[lane], first[lane + 1]), lowerBound(start, to, first[lane], first[lane + 1])];
}

/* The operation of a lane at a moment, or within `slack` of it: the shortest. -1: none. */
export function opAt(lane, at, slack) {
  const { start, duration } = laneOps();
  const [from, to] = opsWithin(lane, at - slack, at + slack);
  let best = -1;
  for (let i = from; i < to; i++) {
    if (start[i] + duration[i] < at - slack) continue;
    if (best < 0 || duration[i] < duration[best]) best = i;
  }
  return best;
}

let busyOf = null;

/* What all operations of a lane, also those that are not in the page, did by bin: {bin, busy, count} columns. */
export function laneBins(lane) {
  if (!busyOf) {
    const { lane_bins: bins, lanes } = run.index;
    const of = run.column(bins.lane);
    const columns = [bins.bin, bins.busy_ns, bins.count].map(run.column);
    busyOf = lanes.map((_, n) => {
      const [from, to] = [lowerBound(of, n), lowerBound(of, n + 1)];
      const [bin, busy, count] = columns.map((c) => c.subarray(from, to));
      return { bin, busy, count };
    });
  }
  return busyOf[lane];
}

// Which rows the timeline has, from top to bottom: of each process its threads, what they put on
// streams, and what its GPUs did.
import { laneName, nameOfProcess, type Lane, type Timeline } from "../data/timeline";

export interface Row {
  top: number; height: number;
  label: string; // of the first row of a thread; else empty
  title: string; // what it holds, in words
  lane: Lane | null; // null: the name of a process
  stream: Uint32Array | null; // which of the lane's events a stream's row has
  process: number;
}
export interface Layout { rows: Row[]; height: number; hidden: number }

const NAME = 22, OUTER = 20, INNER = 13, DRIVER = 9, STREAM = 11, GAP = 3;
const MOST_STREAMS = 64;

// The calls that put something on each stream, thread by thread.
function streamRows(timeline: Timeline, process: number): [string, Lane, Uint32Array][] {
  const rows: [string, Lane, Uint32Array][] = [];
  for (const lane of timeline.lanes) {
    if (lane.process !== process || lane.kind !== "calls" || lane.depth) continue;
    const of = new Map<number, number[]>();
    for (let i = 0; i < lane.size; i++) {
      const stream = lane.streams[i]!;
      if (!stream) continue;
      const events = of.get(stream);
      if (events) events.push(i);
      else of.set(stream, [i]);
    }
    for (const [stream, events] of of) {
      const { handle } = timeline.streams[stream - 1]!;
      rows.push([handle === "0x0" ? "default stream" : `stream ${handle}`, lane, Uint32Array.from(events)]);
    }
  }
  return rows;
}

// As much as fits beside the row.
function shortName(timeline: Timeline, lane: Lane): string {
  if (lane.queue < 0) return laneName(timeline, lane);
  const { gpu, stream, name } = timeline.queues[lane.queue]!;
  return `${gpu} ${stream || name}`;
}

// A process's threads as they came, then the streams of GPUs by their numbers.
function lanesOf(timeline: Timeline, process: number): Lane[] {
  const own = timeline.lanes.filter((lane) => lane.process === process);
  const queues = own.filter((lane) => lane.queue >= 0).sort((a, b) =>
    laneName(timeline, a).localeCompare(laneName(timeline, b), "en", { numeric: true }));
  return [...own.filter((lane) => lane.queue < 0), ...queues];
}

// The processes as they came; where there are several hosts, those of each together.
function byHost({ processes }: Timeline): number[] {
  const hosts = [...new Set(processes.map(({ host }) => host))];
  const place = (process: number) => hosts.indexOf(processes[process]!.host);
  return processes.map((_, process) => process).sort((a, b) => place(a) - place(b));
}

export function layoutOf(timeline: Timeline, closed: Set<number>): Layout {
  const rows: Row[] = [];
  let top = 0, hidden = 0;
  const add = (height: number, row: Omit<Row, "top" | "height">) => {
    rows.push({ ...row, top, height });
    top += height + 1;
  };
  for (const process of byHost(timeline)) {
    const lanes = lanesOf(timeline, process);
    if (!lanes.length) continue;
    const { pid, comm } = timeline.processes[process]!;
    add(NAME, { label: nameOfProcess(timeline.processes[process]!), title: `process ${pid} ${comm ?? ""}`, lane: null, stream: null, process });
    if (closed.has(process)) continue;
    for (const lane of lanes) {
      const windows = lane.kind === "gpu" && timeline.processes[process]!.gpu_windows;
      const title = laneName(timeline, lane) + (windows ? "; shaded: GPU times were not recorded" : "");
      // Below the calls of its thread, if that makes any.
      const isBelow = lane.kind === "driver" && lanes.some((other) => other.kind === "calls" && other.thread === lane.thread);
      // A thread's ranges come above its calls.
      const isRange = lane.kind === "ranges";
      if (!lane.depth && !isBelow) top += GAP;
      const label = lane.depth ? "" : isBelow ? "  driver" : isRange ? "  ranges" : shortName(timeline, lane);
      const height = isBelow ? DRIVER : lane.depth || isRange || lane.kind === "driver" ? INNER : OUTER;
      add(height, { label, title, lane, stream: null, process });
    }
    if (lanes.some((lane) => lane.kind === "gpu") || !timeline.exact) continue;
    const streams = streamRows(timeline, process);
    hidden += Math.max(0, streams.length - MOST_STREAMS);
    for (const [label, lane, stream] of streams.slice(0, MOST_STREAMS))
      add(STREAM, { label: `  ${label}`, title: `${label}, given by ${laneName(timeline, lane)}`, lane, stream, process });
  }
  return { rows, height: top + 4, hidden };
}

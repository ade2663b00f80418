// The timeline's events, lane by lane, in columns. src/analyze/report/report_data.cpp writes them.
import { PackedNumbers } from "./packed";

export const FAILED = 1, LAUNCH = 2, IOCTL = 4, TIMED = 8, IS_KERNEL = 16;

export interface Kind {
  name: string; what: string; error: string; ending: string; category: number; flags: number;
  short: string; // of `what`
}
export interface Lane {
  kind: "ranges" | "calls" | "driver" | "gpu"; // ranges: the program's own
  index: number;
  process: number;
  thread: number; // -1: none
  queue: number;
  depth: number;
  size: number;
  begin: Float64Array; end: Float64Array; // ns
  latest: Float64Array; // the latest end of it and all before it
  sum: Float64Array; // ns, of the durations of all before it; one more than there are events
  kinds: Uint16Array;
  details: Uint32Array;
  streams: Uint16Array; // one more than which of the streams; 0: none
  ids: Float64Array;
  counts: Uint32Array;
  busy: Float64Array;
}
export interface Curves {
  step_ns: number; launches: number[]; to_device: number[]; to_host: number[]; other: number[];
  gpus: { device: number; step_ns: number; active: (number | null)[]; watts: (number | null)[] }[];
}
// Of the thread that launches most; those that begin in the part that is shown.
export interface Iterations {
  pid: number; tid: number;
  first: number; // the number of the first of them, from 1 in the whole trace
  warm_up: number; // how many of the whole trace's first ones are
  left_out: number; size: number;
  begin: Float64Array; end: Float64Array; // ns
  launches: Uint32Array;
  exposed: Float64Array; // ns in which only collectives ran
}
// host: where there are several; gpu_windows: in which its GPU times were recorded, in ns, where they were not always
export interface ProcessOf { pid: number; comm?: string; host?: string; gpu_windows?: [number, number][] }
interface Meta {
  from: number; to: number; resolution_ns: number;
  processes: ProcessOf[];
  threads: { process: number; tid: number }[];
  queues: { process: number; gpu: string; stream: string; name: string }[];
  streams: { process: number; handle: string; tid?: number }[];
  lanes: { kind: Lane["kind"]; thread?: number; queue?: number; depth: number; events: number }[];
  kinds: [number, number, number, number, number, number][];
  texts: string[]; short_names: Record<string, string>;
  details: string[]; details_left_out: boolean;
  categories: string[];
  curves: Curves;
  iterations: { pid: number; tid: number; first: number; warm_up: number; count: number; left_out: number } | null;
  left_out: { of_threads: number; of_queues: number; too_late: number };
  columns: { name: string; bytes: number }[];
}
export interface Timeline extends Omit<Meta, "lanes" | "kinds" | "columns" | "iterations"> {
  iterations: Iterations | null; lanes: Lane[]; kinds: Kind[]; exact: boolean;
}

function kindsOf(meta: Meta): Kind[] {
  const text = (index: number) => meta.texts[index] ?? "";
  return meta.kinds.map(([name, what, error, ending, category, flags]) => ({
    name: text(name), what: text(what), error: text(error), ending: text(ending), category, flags,
    short: meta.short_names[String(what)] ?? text(what),
  }));
}

function iterationsOf({ iterations: told }: Meta, column: (name: string) => PackedNumbers): Iterations | null {
  if (!told) return null;
  const { count: size, ...rest } = told;
  const begins = column("iteration_begin"), times = column("iteration_time"), launches = column("iteration_launches");
  const exposed = column("iteration_exposed"), numbers = () => new Float64Array(size);
  const all = { ...rest, size, begin: numbers(), end: numbers(), launches: new Uint32Array(size), exposed: numbers() };
  for (let i = 0, begin = 0; i < size; i++) {
    all.begin[i] = begin += begins.next();
    all.end[i] = begin + times.next();
    all.launches[i] = launches.next();
    all.exposed[i] = exposed.next();
  }
  return all;
}

function emptyLane(meta: Meta, index: number): Lane {
  const { kind, thread = -1, queue = -1, depth, events } = meta.lanes[index]!;
  const process = thread >= 0 ? meta.threads[thread]!.process : meta.queues[queue]!.process;
  const numbers = () => new Float64Array(events);
  return {
    kind, index, process, thread, queue, depth, size: events, begin: numbers(), end: numbers(), latest: numbers(),
    sum: new Float64Array(events + 1), kinds: new Uint16Array(events), details: new Uint32Array(events),
    streams: new Uint16Array(events), ids: numbers(), counts: new Uint32Array(events), busy: numbers(),
  };
}

export function timelineIn(bytes: Uint8Array): Timeline {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const meta = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size))) as Meta;
  const columns: Record<string, PackedNumbers> = {};
  let at = 4 + size;
  for (const column of meta.columns) {
    columns[column.name] = new PackedNumbers(bytes.subarray(at, at + column.bytes));
    at += column.bytes;
  }
  const column = (name: string) => columns[name] ?? new PackedNumbers(new Uint8Array());
  const begins = column("begin"), durations = column("duration"), kinds = column("kind"), details = column("details");
  const streams = column("stream"), ids = column("id"), counts = column("count"), busy = column("busy");
  const lanes = meta.lanes.map((_, index) => {
    const lane = emptyLane(meta, index);
    let begin = 0, id = 0, latest = 0;
    for (let i = 0; i < lane.size; i++) {
      begin += begins.next();
      const duration = durations.next();
      lane.begin[i] = begin;
      lane.end[i] = begin + duration;
      lane.latest[i] = latest = Math.max(latest, begin + duration);
      lane.kinds[i] = kinds.next();
      lane.details[i] = details.next();
      lane.streams[i] = streams.next();
      lane.ids[i] = id += ids.nextSigned();
      lane.counts[i] = 1 + counts.next();
      lane.busy[i] = duration + busy.nextSigned();
      lane.sum[i + 1] = lane.sum[i]! + lane.busy[i]!;
    }
    return lane;
  });
  return { ...meta, lanes, kinds: kindsOf(meta), iterations: iterationsOf(meta, column), exact: !meta.resolution_ns };
}

// The first index whose number is at least, or with `above` greater than, this.
export function firstAt(numbers: ArrayLike<number>, limit: number, from = 0, to = numbers.length): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (numbers[middle]! < limit) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function detailsOf(timeline: Timeline, lane: Lane, i: number): [string, string][] {
  const text = timeline.details[lane.details[i]!] ?? "";
  if (!text) return [];
  return text.split("\x1e").map((pair) => {
    const at = pair.indexOf("\x1f");
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
}

// What an event is called where there is little room: a launch by its kernel.
export function labelOf(timeline: Timeline, lane: Lane, i: number): string {
  const kind = timeline.kinds[lane.kinds[i]!]!;
  if (lane.counts[i]! > 1) return `${lane.counts[i]!.toLocaleString("en")} × …`;
  if (lane.kind === "ranges") return kind.name;
  if (lane.kind === "gpu" && !kind.short) return kind.name === "set" ? "fill" : kind.name;
  if (lane.kind === "gpu" && !(kind.flags & IS_KERNEL)) return `${kind.name} ${kind.short}`;
  return (kind.flags & LAUNCH || lane.kind !== "calls") && kind.short ? kind.short : kind.name;
}

// "python3 1407", "python3 10001407 on node2"
export const nameOfProcess = ({ pid, comm, host }: ProcessOf) =>
  `${comm || "process"} ${pid}${host ? ` on ${host}` : ""}`;

export function nameOf({ processes }: Timeline, pid: number): string {
  return nameOfProcess(processes.find((one) => one.pid === pid) ?? { pid, comm: "" });
}

export function laneName(timeline: Timeline, lane: Lane): string {
  if (lane.queue >= 0) {
    const { gpu, name } = timeline.queues[lane.queue]!;
    return `${gpu}, ${name}`;
  }
  const tid = timeline.threads[lane.thread]!.tid;
  return `thread ${tid}${lane.kind === "calls" ? "" : `, ${lane.kind}`}`;
}

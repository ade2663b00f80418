// The tables of the subcommands' answers, each with links to where in time its rows are.
import type {
  Answers, Block, CallRow, ClassRow, ExitRow, FailureRow, Gap, GraphRow, IoctlRow, KernelRow, MeasuredGap, OpenRow, ProcessRow,
} from "../data/answers";
import type { Timeline } from "../data/timeline";
import { h } from "../dom";
import { bytes, count, micro, moment, percent } from "../format";
import { columnsOf } from "../processes";
import type { Span, View } from "../view";
import { energy } from "./energy";
import { iterations } from "./iterations";
import { tablesOf, type RangeRow, type RangeTables } from "./range";
import { tableOf, type Column, type Link } from "./table";
import type { Tab } from "./tabs";

export interface Places {
  view: View; timeline: Timeline;
  show(span: Span): void; // brings the timeline into sight, too
  search(text: string): void;
}

const named = <Row extends { name: string }>(title: string): Column<Row> => ({ title, value: (row) => row.name, wide: true });
const number = <Row>(title: string, value: (row: Row) => number | undefined, show = count): Column<Row> => ({
  title, value, show: (row) => { const at = value(row); return at === undefined ? "" : show(at); },
});
const length = <Row>(title: string, value: (row: Row) => number | undefined): Column<Row> => number(title, value, (us) => micro(us));
const longest = <Row>(title: string, value: (row: Row) => number | undefined): Column<Row> => ({ ...length(title, value), kind: "bar" });
const failures = <Row extends { errors: number }>(): Column<Row> =>
  ({ title: "errors", value: (row) => row.errors, show: (row) => (row.errors ? count(row.errors) : "") });
const leftOut = (rows: number | undefined) => (rows ? `${count(rows)} more rows are not in this page.` : "");

const microSpan = (begin_us: number, time_us: number): Span => ({ from: begin_us * 1000, to: (begin_us + time_us) * 1000 });
const place = (places: Places, label: string, span: Span): Link => ({ label, go: () => places.show(span) });
const searchFor = (places: Places, text: string): Link => ({ label: "find in the timeline", go: () => places.search(text) });

function functions(rows: CallRow[], places: Places, caption: string, note: string): HTMLElement {
  const whole = rows.some((row) => row.p50_us !== undefined);
  return tableOf<CallRow>({
    caption, rows, note, sortBy: 2, link: (row) => searchFor(places, row.name),
    columns: [named("function"), number("calls", (row) => row.count), longest("total", (row) => (row.timed ? row.total_us : undefined)),
      length("mean", (row) => row.mean_us),
      ...(whole ? [length<CallRow>("p50", (row) => row.p50_us), length<CallRow>("p99", (row) => row.p99_us)] : []),
      length("longest", (row) => row.max_us), failures()],
  });
}

function kernels({ answers }: Answers, places: Places): HTMLElement[] {
  const { kernels: rows, classes, graphs, kernels_left_out } = answers.kernels;
  const isMeasured = rows.some((row) => row.gpu?.count);
  const shape = (of?: number[]) => (of ? of.join("×") : "");
  return [
    tableOf<KernelRow>({
      caption: "Kernels by configuration", rows, sortBy: isMeasured ? 3 : 1, note: leftOut(kernels_left_out),
      link: (row) => (row.first_ts === undefined ? null
        : place(places, "show when it was launched", { from: row.first_ts, to: (row.last_ts ?? row.first_ts) + 1 })),
      columns: [{ title: "kernel", value: (row) => row.kernel ?? "(unnamed)", wide: true }, number("runs", (row) => row.runs),
        { title: "class", value: (row) => row.class },
        ...(isMeasured ? [longest<KernelRow>("on the GPU", (row) => row.gpu?.total_us), length<KernelRow>("p50 on the GPU", (row) => row.gpu?.p50_us)] : []),
        { title: "grid", value: (row) => shape(row.grid) }, { title: "block", value: (row) => shape(row.block) },
        number("in graphs", (row) => row.in_graphs || undefined), length("launching", (row) => row.call?.total_us)],
    }),
    tableOf<ClassRow>({
      caption: "Classes of kernels", rows: classes, sortBy: 1,
      columns: [{ title: "class", value: (row) => row.class }, number("runs", (row) => row.runs),
        number("share", (row) => row.share, percent), number("kernels", (row) => row.kernels),
        length("on the GPU", (row) => row.gpu?.total_us), length("launching", (row) => row.call?.total_us)],
    }),
    ...(graphs.length ? [tableOf<GraphRow>({
      caption: "CUDA graphs", rows: graphs, sortBy: 1,
      link: (row) => (row.first_ts === undefined ? null
        : place(places, "show when it was launched", { from: row.first_ts, to: (row.last_ts ?? row.first_ts) + 1 })),
      columns: [{ title: "graph", value: (row) => `graph ${row.graph ?? ""}` }, number("launches", (row) => row.launches),
        number("nodes", (row) => row.nodes), number("kernels", (row) => row.kernels), number("kernel runs", (row) => row.runs),
        { title: "most frequent", value: (row) => row.most_frequent?.map((one) => `${one.count} × ${one.kernel}`).join(", "), wide: true }],
    })] : []),
  ];
}

const ioctlTable = (caption: string, rows: IoctlRow[], places: Places | null) => tableOf<IoctlRow>({
  caption, rows, sortBy: 3, link: places ? (row) => searchFor(places, row.name) : undefined,
  columns: [named("name"), number("operations", (row) => row.count), number("ioctls", (row) => row.ioctls),
    longest("total", (row) => row.total_us), length("p50", (row) => row.p50_us), length("longest", (row) => row.max_us),
    number("failed", (row) => row.failed || undefined)],
});

function ioctls({ answers }: Answers, places: Places): HTMLElement[] {
  const { driver_traced, calls, commands, outside_of_calls } = answers.ioctls;
  if (!driver_traced && !commands.length)
    return [tableOf({ caption: "Ioctls", rows: [], columns: [], sortBy: 0, note: "Driver requests were not recorded (needs --kernel)." })];
  return [ioctlTable("By the call behind them", calls, places), ioctlTable("Outside of calls, by process", outside_of_calls, null),
    ioctlTable("By command", commands, places)];
}

const CAUSES: Record<string, string> = {
  host_in_calls: "host in CUDA calls", host_other_threads: "other threads in CUDA calls",
  host_outside_calls: "host between CUDA calls", host_pause: "host made no CUDA call",
  launch_latency: "launch latency of the GPU", dependency: "waited for other work", queued: "queued", not_known: "not known",
};

function gaps({ answers }: Answers, places: Places): HTMLElement[] {
  const { measured, longest_idle = [], longest_between = [] } = answers.gaps;
  const at = (begin_us: number) => moment(begin_us * 1000);
  const tables: HTMLElement[] = [];
  if (measured?.longest_idle?.length)
    tables.push(tableOf<MeasuredGap>({
      caption: "When a GPU was idle, measured", rows: measured.longest_idle, sortBy: 1,
      link: (row) => place(places, "show in the timeline", microSpan(row.begin_us, row.time_us)),
      columns: [{ title: "from", value: (row) => row.begin_us, show: (row) => at(row.begin_us) }, longest("idle", (row) => row.time_us),
        { title: "GPU", value: (row) => row.device }, { title: "cause", value: (row) => CAUSES[row.cause] ?? row.cause },
        { title: "before it", value: (row) => row.before?.name, wide: true }, { title: "after it", value: (row) => row.after?.name, wide: true }],
    }));
  for (const [caption, rows] of [["When the GPU certainly had nothing to do (after waits)", longest_idle],
    ["Between two launches", longest_between]] as const)
    tables.push(tableOf<Gap>({
      caption, rows, sortBy: 1, link: (row) => place(places, "show in the timeline", microSpan(row.begin_us, row.time_us)),
      columns: [{ title: "from", value: (row) => row.begin_us, show: (row) => at(row.begin_us) }, longest("length", (row) => row.time_us),
        length("in CUDA calls", (row) => row.in_calls_us), { title: "longest call in it", value: (row) => row.longest_call?.name },
        { title: "after", value: (row) => row.after?.name }, { title: "until", value: (row) => row.until?.name },
        { title: "process", value: (row) => row.pid }],
    }));
  return tables;
}

function memory({ answers, trace }: Answers, places: Places): HTMLElement[] {
  const { peak } = answers.memory.memory.all, never = answers.memory.memory.never_freed?.largest ?? [];
  const end = trace.duration_us * 1000;
  const blocks = (caption: string, rows: Block[], until: number, note = "") => tableOf<Block>({
    caption, rows, note, sortBy: 1, link: (row) => place(places, "show from its allocation on", { from: row.since, to: Math.max(until, row.since + 1) }),
    columns: [{ title: "address", value: (row) => row.ptr }, { ...number("size", (row: Block) => row.size, bytes), kind: "bar" },
      { title: "kind", value: (row) => row.kind }, { title: "allocated by", value: (row) => row.function },
      { title: "since", value: (row) => row.since, show: (row) => moment(row.since) }, { title: "process", value: (row) => row.pid }],
  });
  return [
    blocks(`What held GPU memory at its peak: ${bytes(peak.gpu.bytes)} at ${moment(peak.gpu.ts)}`, peak.gpu.largest ?? [], peak.gpu.ts,
      peak.gpu.blocks > (peak.gpu.largest?.length ?? 0) ? `The largest of ${count(peak.gpu.blocks)} blocks.` : ""),
    ...(peak.host.bytes ? [blocks(`Pinned host memory at its peak: ${bytes(peak.host.bytes)}`, peak.host.largest ?? [], peak.host.ts)] : []),
    ...(never.length ? [blocks("Never freed", never, end)] : []),
  ];
}

function errors({ answers, trace }: Answers, places: Places): HTMLElement[] {
  const { failures, operations, gpu_errors, unfinished, processes } = answers.errors;
  const failed = (caption: string, rows: FailureRow[]) => tableOf<FailureRow>({
    caption, rows, sortBy: 2, link: (row) => place(places, "show when it failed", { from: row.first_ts, to: row.last_ts + 1 }),
    columns: [{ title: "what", value: (row) => row.what, wide: true }, { title: "error", value: (row) => row.error }, number("times", (row) => row.count),
      { title: "first", value: (row) => row.first_ts, show: (row) => moment(row.first_ts) },
      { title: "meaning", value: (row) => row.meaning ?? (row.benign ? "expected" : ""), wide: true }],
  });
  return [failed("Calls that failed", failures),
    ...(gpu_errors.length ? [failed("Errors of GPUs", gpu_errors)] : []),
    ...(operations.length ? [failed("Operations on the driver that failed", operations)] : []),
    ...(unfinished.length ? [tableOf<OpenRow>({
      caption: "Calls that did not return", rows: unfinished, sortBy: 1,
      link: (row) => place(places, "show in the timeline", { from: row.ts, to: trace.duration_us * 1000 }),
      columns: [{ title: "what", value: (row) => row.what }, length("open for", (row) => row.open_us),
        { title: "began", value: (row) => row.ts, show: (row) => moment(row.ts) }, { title: "process", value: (row) => row.pid },
        { title: "thread", value: (row) => row.tid }],
    })] : []),
    ...(processes.length ? [tableOf<ExitRow>({
      caption: "Processes that ended badly", rows: processes, sortBy: 0,
      link: (row) => place(places, "show its end", { from: row.ts - 1e6, to: row.ts + 1e6 }),
      columns: [{ title: "process", value: (row) => row.pid }, { title: "name", value: (row) => row.comm },
        { title: "how", value: (row) => (row.signal ? `signal ${row.signal}` : `exit status ${row.exit_code ?? "?"}`) },
        { title: "when", value: (row) => row.ts, show: (row) => moment(row.ts) }],
    })] : [])];
}

// From its first event to its last; null: it has none in the timeline.
export function spanOfProcess({ lanes, processes: known }: Timeline, pid: number): Span | null {
  const own = lanes.filter((lane) => lane.size && known[lane.process]!.pid === pid);
  return own.length ? { from: Math.min(...own.map((lane) => lane.begin[0]!)), to: Math.max(...own.map((lane) => lane.latest[lane.size - 1]!)) } : null;
}

function processes({ answers }: Answers, places: Places): HTMLElement[] {
  return [tableOf<ProcessRow>({
    caption: "Processes", rows: answers.summary.summary.processes ?? [], sortBy: -1,
    link: (row) => {
      const span = spanOfProcess(places.timeline, row.pid);
      return span && place(places, "show in the timeline", span);
    },
    columns: columnsOf(answers.summary.summary.processes ?? []),
  })];
}

function ofRange(tab: string, range: RangeTables, places: Places, note: string): HTMLElement[] {
  if (tab === "functions") return [functions(range.functions, places, "Functions in the selected range", note)];
  if (tab === "ioctls") return [functions(range.ioctls, places, "Operations on the driver in the selected range, by the call behind them", note)];
  const rows = range.kernels, isMeasured = rows.some((row) => row.gpu_count);
  return [tableOf<RangeRow>({
    caption: "Kernels in the selected range", rows, note, sortBy: isMeasured ? 3 : 1, link: (row) => searchFor(places, row.name),
    columns: [named("kernel"), number("launches", (row) => row.count), length("launching", (row) => row.total_us),
      ...(isMeasured ? [longest<RangeRow>("on the GPU", (row) => row.gpu_us), number<RangeRow>("runs on the GPU", (row) => row.gpu_count)] : []),
      length("longest launch", (row) => row.max_us)],
  })];
}

// With a range selected, those that can be counted again are; others say that they are not of it.
function inRange(tab: string, all: () => HTMLElement[], places: Places): HTMLElement[] {
  const { range } = places.view;
  if (!range) return all();
  if (!["functions", "kernels", "ioctls"].includes(tab))
    return [h("p", { class: "note" }, "This table is of the whole report, not of the selected range."), ...all()];
  const span = `${moment(range.from, 1)} to ${moment(range.to, 1)}`;
  if (!places.timeline.exact)
    return [h("p", { class: "note" }, `The timeline holds too many events for each to be in this page, so ${span} cannot be counted here. ` +
      `To count it, run: cudabpf calls --from ${range.from / 1e9}s --to ${range.to / 1e9}s, with the trace. Below is the whole report.`), ...all()];
  return ofRange(tab, tablesOf(places.timeline, range), places,
    `Counted in this page from the timeline, from ${span}: what began then. cudabpf --from and --to give the same figures.`);
}

export function tabsOf(answers: Answers, places: Places): Tab[] {
  const { calls: { calls, calls_left_out }, errors: found } = answers.answers;
  const all: [string, string, () => HTMLElement[], number?][] = [
    ["functions", "Functions", () => [functions(calls, places, "Functions", leftOut(calls_left_out))]],
    ["kernels", "Kernels", () => kernels(answers, places)],
    ["iterations", "Iterations", () => iterations(answers, places)],
    ["ioctls", "Ioctls", () => ioctls(answers, places)],
    ["gaps", "Gaps", () => gaps(answers, places)],
    ["memory", "Memory", () => memory(answers, places)],
    ["energy", "Energy", () => energy(answers, places)],
    ["errors", "Errors", () => errors(answers, places), found.failed_calls - found.usual_failures + found.unfinished_calls],
    ["processes", "Processes", () => processes(answers, places)],
  ];
  return all.map(([id, name, draw, badge]) => {
    let whole: HTMLElement[] | undefined; // as it was sorted and filtered
    return { id, name, badge, draw: () => inRange(id, () => (whole ??= draw()), places) };
  });
}

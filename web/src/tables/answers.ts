// The tables of the subcommands' answers, each with links to where in time its rows are.
import type {
  Allocator, Answers, AskedRow, Block, BlocksLevel, CallRow, ClassRow, DriverMoment, DriverShare, ExitRow, FailureRow, Gap, GraphRow, IoctlRow, KernelRow, MeasuredGap, HeldPart, OpenRow, ProcessRow,
} from "../data/answers";
import type { Timeline } from "../data/timeline";
import { h } from "../dom";
import { bytes, count, micro, moment } from "../format";
import { columnsOf as columnsOfProcesses } from "../processes";
import type { Span, View } from "../view";
import { columnsOf } from "./columns";
import { energy } from "./energy";
import { iterations } from "./iterations";
import { lines } from "./lines";
import { tablesOf, type RangeRow, type RangeTables } from "./range";
import { tableOf, type Column, type Link } from "./table";
import type { Tab } from "./tabs";

export interface Places {
  view: View; timeline: Timeline;
  show(span: Span): void; // brings the timeline into sight, too
  search(text: string): void;
}

const number = <Row>(title: string, value: (row: Row) => number | undefined, show = count): Column<Row> => ({
  title, value, show: (row) => { const at = value(row); return at === undefined ? "" : show(at); },
});
const length = <Row>(title: string, value: (row: Row) => number | undefined): Column<Row> => number(title, value, (us) => micro(us));
const leftOut = (rows: number | undefined) => (rows ? `${count(rows)} more rows are not in this page.` : "");

const microSpan = (begin_us: number, time_us: number): Span => ({ from: begin_us * 1000, to: (begin_us + time_us) * 1000 });
const place = (places: Places, label: string, span: Span): Link => ({ label, go: () => places.show(span) });
const searchFor = (places: Places, text: string): Link => ({ label: "find in the timeline", go: () => places.search(text) });

function functions(rows: CallRow[], { columns }: Answers, places: Places, caption: string, note: string): HTMLElement {
  return tableOf<CallRow>({ caption, rows, note, sortBy: 2, link: (row) => searchFor(places, row.name), columns: columnsOf(columns.functions, rows) });
}

const launchedAt = (places: Places) => ({ first_ts, last_ts }: { first_ts?: number | null; last_ts?: number | null }) =>
  (first_ts === undefined || first_ts === null ? null : place(places, "show when it was launched", { from: first_ts, to: (last_ts ?? first_ts) + 1 }));

function kernels({ answers, columns }: Answers, places: Places): HTMLElement[] {
  const { kernels: rows, classes, graphs, kernels_left_out } = answers.kernels;
  const isMeasured = rows.some((row) => row.gpu?.count);
  return [
    tableOf<KernelRow>({
      caption: "Kernels by configuration", rows, sortBy: isMeasured ? 3 : 1, note: leftOut(kernels_left_out), link: launchedAt(places),
      columns: columnsOf(columns.kernels, rows, { kernel: (row) => row.kernel ?? "(unnamed)" }),
    }),
    tableOf<ClassRow>({ caption: "Classes of kernels", rows: classes, sortBy: 1, columns: columnsOf(columns.classes, classes) }),
    ...(graphs.length ? [tableOf<GraphRow>({
      caption: "CUDA graphs", rows: graphs, sortBy: 1, link: launchedAt(places),
      columns: columnsOf(columns.graphs, graphs, { graph: (row) => `graph ${row.graph ?? ""}`,
        most_frequent: (row) => row.most_frequent?.map((one) => `${one.count} × ${one.kernel}`).join(", ") }),
    })] : []),
  ];
}

function ioctls({ answers, columns }: Answers, places: Places): HTMLElement[] {
  const { driver_traced, calls, commands, outside_of_calls } = answers.ioctls;
  if (!driver_traced && !commands.length)
    return [tableOf({ caption: "Ioctls", rows: [], columns: [], sortBy: 0, note: "Driver requests were not recorded (needs --kernel)." })];
  const table = (caption: string, rows: IoctlRow[], link?: (row: IoctlRow) => Link) =>
    tableOf<IoctlRow>({ caption, rows, sortBy: 3, link, columns: columnsOf(columns.ioctls, rows) });
  const link = (row: IoctlRow) => searchFor(places, row.name);
  return [table("By the call behind them", calls, link), table("Outside of calls, by process", outside_of_calls), table("By command", commands, link)];
}

const CAUSES: Record<string, string> = {
  host_in_calls: "host in CUDA calls", host_other_threads: "other threads in CUDA calls",
  host_outside_calls: "host between CUDA calls", host_pause: "host made no CUDA call",
  launch_latency: "launch latency of the GPU", dependency: "waited for other work", queued: "queued", not_known: "not known",
};

function gaps({ answers, columns }: Answers, places: Places): HTMLElement[] {
  const { measured, longest_idle = [], longest_between = [] } = answers.gaps;
  const link = (row: Gap | MeasuredGap) => place(places, "show in the timeline", microSpan(row.begin_us, row.time_us));
  const ofGpus = measured?.longest_idle ?? [];
  return [...(ofGpus.length ? [tableOf<MeasuredGap>({
    caption: "When a GPU was idle, measured", rows: ofGpus, sortBy: 1, link,
    columns: columnsOf(columns.gpu_idle, ofGpus, { cause: (row) => CAUSES[row.cause] ?? row.cause }),
  })] : []),
  ...([["When the GPU certainly had nothing to do (after waits)", longest_idle], ["Between two launches", longest_between]] as const)
    .map(([caption, rows]) => tableOf<Gap>({ caption, rows, sortBy: 1, link, columns: columnsOf(columns.idle, rows) }))];
}

const blocksOf = ({ columns }: Answers, places: Places) => (caption: string, rows: Block[], until: number, note = "") => tableOf<Block>({
  caption, rows, note, sortBy: 1, link: (row) => place(places, "show from its allocation on", { from: row.since, to: Math.max(until, row.since + 1) }),
  columns: columnsOf(columns.blocks, rows),
});

const named = (pid: number, comm?: string): string => `process ${pid}${comm ? ` ${comm}` : ""}`;
const sized = <Row>(title: string, value: (row: Row) => number): Column<Row> => ({ ...number<Row>(title, value, bytes), kind: "bar" });

function askedFor(rows: AskedRow[]): HTMLElement[] {
  return rows.length ? [tableOf<AskedRow>({
    caption: "GPU memory by whose code asked for it", rows, sortBy: 1, columns: [
      { title: "holder", value: ({ holder }) => holder ?? "(unknown)", wide: true }, sized("at the peak", (row) => row.at_peak),
      number("at the end", (row) => row.held, bytes), number("allocations", (row) => row.allocations)],
  })] : [];
}

function takenBy({ holder, function: name, others }: DriverShare): string {
  if (others) return "all others";
  if (name !== undefined) return `the driver, in ${name ?? "calls that are not in the trace"}`;
  return holder ?? "allocations, of an unknown holder";
}

const balance = (pid: number, comm: string | undefined, { ts, nvml, unexplained, shares }: DriverMoment): HTMLElement => tableOf<DriverShare>({
  caption: `GPU memory of ${named(pid, comm)} at ${moment(ts)}: ${bytes(nvml)}, as NVML says`, rows: shares, sortBy: 1,
  note: unexplained < 0 ? `${bytes(-unexplained)} more than NVML says.` : `${bytes(unexplained)} is unexplained.`,
  columns: [{ title: "for", value: takenBy, wide: true }, sized("size", (row) => row.bytes), number("pieces", (row) => row.objects)],
});

function allocator({ pid, comm, device, ...levels }: Allocator): HTMLElement {
  const rows: (BlocksLevel & { when: string })[] = [
    { when: "most allocated", ...levels.most_allocated }, { when: "most reserved", ...levels.most_reserved },
    { when: "most not allocated", ...levels.most_unused }, { when: "at the end", ...levels.end }];
  return tableOf<BlocksLevel & { when: string }>({
    caption: `PyTorch's blocks: ${named(pid, comm)}, GPU ${device}`, rows, sortBy: 5, columns: [
      { title: "when", value: ({ when }) => when }, number("at", (row) => row.ts, moment), number("blocks", (row) => row.blocks),
      number("allocated", (row) => row.allocated, bytes), number("reserved", (row) => row.reserved, bytes), sized("not allocated", (row) => row.unused)],
  });
}

function memory(all: Answers, places: Places): HTMLElement[] {
  const { answers, trace } = all;
  const { asked_by, driver, blocks: ofTorch } = answers.memory.memory;
  const { peak } = answers.memory.memory.all, never = answers.memory.memory.never_freed?.largest ?? [];
  const end = trace.duration_us * 1000;
  const blocks = blocksOf(all, places);
  return [
    blocks(`What held GPU memory at its peak: ${bytes(peak.gpu.bytes)} at ${moment(peak.gpu.ts)}`, peak.gpu.largest ?? [], peak.gpu.ts,
      peak.gpu.blocks > (peak.gpu.largest?.length ?? 0) ? `The largest of ${count(peak.gpu.blocks)} blocks.` : ""),
    ...(peak.host.bytes ? [blocks(`Pinned host memory at its peak: ${bytes(peak.host.bytes)}`, peak.host.largest ?? [], peak.host.ts)] : []),
    ...askedFor(asked_by?.gpu ?? []),
    ...(driver?.processes ?? []).flatMap(({ pid, comm, most }) => (most ? [balance(pid, comm, most)] : [])),
    ...(ofTorch?.allocators ?? []).map(allocator),
    ...(never.length ? [blocks("Never freed", never, end)] : []),
  ];
}

// Who held the memory when an allocation failed, for the first that did.
function ranOut(all: Answers, places: Places): HTMLElement[] {
  const { count: times, first: [out] } = all.answers.errors.ran_out;
  if (!out) return [];
  const parts = (caption: string, title: string, rows: HeldPart[]) => (rows.length ? [tableOf<HeldPart>({
    caption, rows, sortBy: 1, columns: [
      { title, value: ({ pid, name }) => [pid, name].filter((one) => one).join(" ") || "(unknown)", wide: true },
      { ...number<HeldPart>("size", (row) => row.bytes, bytes), kind: "bar" }, number("blocks", (row) => row.blocks)],
  })] : []);
  const where = out.device === undefined || out.device === null ? "" : ` on GPU ${out.device}`;
  const unknown = out.held_on_unknown_device ? ` On which GPU they held ${bytes(out.held_on_unknown_device)} more is not known.` : "";
  const driver = out.driver ? ` The driver itself had taken another ${bytes(out.driver)}, on all GPUs.` : "";
  const blocks = out.blocks ? ` Process ${out.pid} had reserved ${bytes(out.blocks.reserved)} there for PyTorch's blocks, and ` +
    `${bytes(out.blocks.unused)} of it was not allocated.` : "";
  const later = times > 1 ? ` Memory ran out ${times === 2 ? "once" : `${count(times - 1)} times`} later.` : "";
  return [h("p", { class: "note" }, `Memory ran out at ${moment(out.ts)}: process ${out.pid} asked for ${out.size ? bytes(out.size) : "memory"}${where} ` +
    `(${out.function}${out.holder ? ` by ${out.holder}` : ""}, call id ${out.call}). The processes of this trace then held ${bytes(out.held)}` +
    `${where ? " there" : " on all GPUs"}.${unknown}${driver}${blocks}${later}`),
  ...parts("Processes that held memory when it ran out", "process", out.processes),
  ...parts("Whose code had asked for it", "holder", out.holders),
  ...parts("At which lines", "line", out.lines),
  ...(out.largest.length ? [blocksOf(all, places)("The largest blocks when memory ran out", out.largest, out.ts)] : [])];
}

function errors(all: Answers, places: Places): HTMLElement[] {
  const { answers, trace, columns } = all;
  const { failures, operations, gpu_errors, unfinished, processes } = answers.errors;
  const failed = (caption: string, rows: FailureRow[]) => tableOf<FailureRow>({
    caption, rows, sortBy: 2, link: (row) => place(places, "show when it failed", { from: row.first_ts, to: row.last_ts + 1 }),
    columns: columnsOf(columns.failures, rows, { meaning: (row) => row.meaning ?? (row.benign ? "expected" : "") }),
  });
  return [failed("Calls that failed", failures),
    ...ranOut(all, places),
    ...(gpu_errors.length ? [failed("Errors of GPUs", gpu_errors)] : []),
    ...(operations.length ? [failed("Operations on the driver that failed", operations)] : []),
    ...(unfinished.length ? [tableOf<OpenRow>({
      caption: "Calls that did not return", rows: unfinished, sortBy: 1, columns: columnsOf(columns.unfinished, unfinished),
      link: (row) => place(places, "show in the timeline", { from: row.ts, to: trace.duration_us * 1000 }),
    })] : []),
    ...(processes.length ? [tableOf<ExitRow>({
      caption: "Processes that ended badly", rows: processes, sortBy: 0,
      link: (row) => place(places, "show its end", { from: row.ts - 1e6, to: row.ts + 1e6 }),
      columns: columnsOf(columns.exits, processes, { exit_code: (row) => (row.signal ? `signal ${row.signal}` : `exit status ${row.exit_code ?? "?"}`) }),
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
    columns: columnsOfProcesses(answers.summary.summary.processes ?? []),
  })];
}

function ofRange(tab: string, range: RangeTables, answers: Answers, places: Places, note: string): HTMLElement[] {
  if (tab === "functions") return [functions(range.functions, answers, places, "Functions in the selected range", note)];
  if (tab === "ioctls") return [functions(range.ioctls, answers, places, "Operations on the driver in the selected range, by the call behind them", note)];
  const rows = range.kernels, isMeasured = rows.some((row) => row.gpu_count);
  return [tableOf<RangeRow>({
    caption: "Kernels in the selected range", rows, note, sortBy: isMeasured ? 3 : 1, link: (row) => searchFor(places, row.name),
    columns: [{ title: "kernel", value: (row) => row.name, wide: true }, number("launches", (row) => row.count), length("launching", (row) => row.total_us),
      ...(isMeasured ? [{ ...length<RangeRow>("on the GPU", (row) => row.gpu_us), kind: "bar" as const }, number<RangeRow>("runs on the GPU", (row) => row.gpu_count)] : []),
      length("longest launch", (row) => row.max_us)],
  })];
}

// With a range selected, those that can be counted again are; others say that they are not of it.
function inRange(tab: string, all: () => HTMLElement[], answers: Answers, places: Places): HTMLElement[] {
  const { range } = places.view;
  if (!range) return all();
  if (!["functions", "kernels", "ioctls"].includes(tab))
    return [h("p", { class: "note" }, "This table is of the whole report, not of the selected range."), ...all()];
  const span = `${moment(range.from, 1)} to ${moment(range.to, 1)}`;
  if (!places.timeline.exact)
    return [h("p", { class: "note" }, `The timeline holds too many events for each to be in this page, so ${span} cannot be counted here. ` +
      `To count it, run: cudabpf calls --from ${range.from / 1e9}s --to ${range.to / 1e9}s, with the trace. Below is the whole report.`), ...all()];
  return ofRange(tab, tablesOf(places.timeline, range), answers, places,
    `Counted in this page from the timeline, from ${span}: what began then. cudabpf --from and --to give the same figures.`);
}

export function tabsOf(answers: Answers, places: Places): Tab[] {
  const { calls: { calls, calls_left_out }, errors: found } = answers.answers;
  const all: [string, string, () => HTMLElement[], number?][] = [
    ["functions", "Functions", () => [functions(calls, answers, places, "Functions", leftOut(calls_left_out))]],
    ["kernels", "Kernels", () => kernels(answers, places)],
    ["lines", "Python", () => lines(answers)],
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
    return { id, name, badge, draw: () => inRange(id, () => (whole ??= draw()), answers, places) };
  });
}

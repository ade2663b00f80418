// What a range of both traces holds, counted again from their timelines.
import type { Sided, TimedChange } from "../data/answers";
import type { Timeline } from "../data/timeline";
import { moment } from "../format";
import { tablesOf, type RangeRow } from "../tables/range";
import type { Span, View } from "../view";
import type { Linked } from "./linked";

export interface RangeTable { caption: string; what: string; rows: TimedChange[] }

const sided = ({ count, timed, total_us, mean_us }: RangeRow): Sided => ({ count, timed, total_us, mean_us });
const onGpu = ({ gpu_count = 0, gpu_us = 0 }: RangeRow): Sided =>
  ({ count: gpu_count, timed: gpu_count, total_us: gpu_us, mean_us: gpu_count ? gpu_us / gpu_count : undefined });

function together(a: RangeRow[], b: RangeRow[], of: (row: RangeRow) => Sided): TimedChange[] {
  const sides = [a, b].map((rows) => new Map(rows.map((row) => [row.name, of(row)] as const).filter(([, { count }]) => count)));
  return [...new Set(sides.flatMap((side) => [...side.keys()]))].map((name) => {
    const [of_a = null, of_b = null] = sides.map((side) => side.get(name));
    return { name, a: of_a, b: of_b, total_change_us: (of_b?.total_us ?? 0) - (of_a?.total_us ?? 0), p50: "" };
  });
}

export class Ranges {
  constructor(private readonly timelines: readonly [Timeline, Timeline], private readonly views: readonly [View, View],
    private readonly linked: Linked) {}

  // Where nothing is selected in one trace, its range is what lies above or below the other's.
  private spans(): [Span, Span] | null {
    const [{ range: a }, { range: b }] = this.views, { shifted } = this.linked;
    const later = (span: Span, by: number) => ({ from: span.from + by, to: span.to + by });
    if (!a && !b) return null;
    return [a ?? later(b!, -shifted), b ?? later(a!, shifted)];
  }
  note(): string {
    const [a, b] = this.spans()!.map(({ from, to }) => `${moment(from, 1)} to ${moment(to, 1)}`);
    return `Counted in this page from the timelines, from ${a} in A and from ${b} in B: what began then.`;
  }
  // By tab; null: no range is selected. Text: why it cannot be counted.
  counted(): Record<string, RangeTable[]> | string | null {
    const spans = this.spans();
    if (!spans) return null;
    if (this.timelines.some(({ exact }) => !exact))
      return "The timelines hold too many events for each to be in this page, so the selected ranges cannot be counted here. Below are the whole traces.";
    const [a, b] = this.timelines.map((timeline, i) => tablesOf(timeline, spans[i]!)) as [ReturnType<typeof tablesOf>, ReturnType<typeof tablesOf>];
    const onGpus = together(a.kernels, b.kernels, onGpu);
    return {
      functions: [{ caption: "Functions in the selected ranges", what: "function", rows: together(a.functions, b.functions, sided) }],
      kernels: [...(onGpus.length ? [{ caption: "Kernels on the GPU in the selected ranges", what: "kernel", rows: onGpus }] : []),
        { caption: "Launches in the selected ranges", what: "kernel", rows: together(a.kernels, b.kernels, sided) }],
      ioctls: [{ caption: "Operations on the driver in the selected ranges, by the call behind them", what: "call", rows: together(a.ioctls, b.ioctls, sided) }],
    };
  }
}

// What can be counted or measured at each moment, above the timeline and on the same axis.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { MemoryAnswer } from "../data/answers";
import type { Timeline } from "../data/timeline";
import { h } from "../dom";
import { bytes, count } from "../format";
import type { View } from "../view";
import { gutter } from "./canvas";

interface Line { label: string; values: (number | null)[]; color: string }
export interface Curve {
  title: string;
  times: number[]; // ns; each value holds from its time to the next, or the other way round
  until?: boolean; // each holds from the time before
  lines: Line[];
  format: (value: number) => string;
  marks: number[]; // round numbers: the axis has the largest that the curve reaches
  rate_ns?: number; // a rate, counted in buckets this long: its mean over several is one too
  top: number; // the largest value that is drawn
  beside?: Curve; // of the other trace, drawn to the same scale
}

const HEIGHT = 62;
const LEAST_PIXELS = 4; // of a rate that is drawn as one step
const ROUND = Array.from({ length: 60 }, (_, i) => Number(`${[1, 2, 5][i % 3]}e${Math.floor(i / 3) - 4}`));
const BINARY = Array.from({ length: 60 }, (_, i) => 2 ** i);

// A sum of each bucket, as a rate per second; after the last there is nothing more.
const perSecond = (sums: number[], step: number) => [...sums.map((sum) => (sum * 1e9) / step), 0, 0];
const isAny = (values: (number | null)[]) => values.some((value) => value);
const topOf = (values: ArrayLike<number | null | undefined>) => Array.from(values).reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
const buckets = (lines: Line[], step: number, from = 0) =>
  Array.from({ length: Math.max(...lines.map((line) => line.values.length)) }, (_, i) => from + i * step);

// A sample tells of the time up to it, from the one before. Where some are missing, so is the curve.
function sampled(title: string, label: string, color: string, step: number, values: (number | null)[],
  format: (value: number) => string): Curve {
  const times: number[] = [], figures: (number | null)[] = [];
  const at = values.flatMap((value, i) => (value === null ? [] : [i]));
  const apart = at.slice(1).map((i, k) => i - at[k]!).sort((a, b) => a - b);
  const usual = apart[apart.length >> 1] ?? 1;
  let before = -Infinity;
  for (const i of at) {
    if (i - before > 3 * usual) {
      if (times.length) {
        times.push(times.at(-1)! + 1);
        figures.push(null);
      }
      times.push(Math.max(0, i + 1 - usual) * step);
      figures.push(values[i]!);
    }
    times.push((i + 1) * step);
    figures.push(values[i]!);
    before = i;
  }
  const lines = [{ label, values: figures, color }];
  return { title, times, until: true, format, marks: ROUND, lines, top: topOf(figures) };
}

export function curvesOf(timeline: Timeline, memory: MemoryAnswer): Curve[] {
  const { curves } = timeline, list: Curve[] = [];
  const step = curves.step_ns;
  const add = (curve: Omit<Curve, "times" | "top">, of: number, from = 0) =>
    list.push({ ...curve, times: buckets(curve.lines, of, from), top: Math.max(...curve.lines.map(({ values }) => topOf(values))) });
  if (isAny(curves.launches))
    add({ title: "launches a second", format: (value) => (value < 10 ? String(Number(value.toPrecision(2))) : count(Math.round(value))), marks: ROUND, rate_ns: step,
      lines: [{ label: "", values: perSecond(curves.launches, step), color: "c-kernel" }] }, step);
  const copies = ([["to the GPU", curves.to_device, "c-transfer"], ["from the GPU", curves.to_host, "c-waiting-copy"],
    ["other copies", curves.other, "c-other"]] as const).filter(([, values]) => isAny(values));
  if (copies.length)
    add({ title: "copied a second", format: bytes, marks: BINARY,
      lines: copies.map(([label, values, color]) => ({ label, values: perSecond(values, step), color })) }, step);
  const { bytes: kinds, blocks } = memory.all.curve;
  const held = Object.entries({ ...kinds, ...(blocks && { "PyTorch's blocks": blocks }) }).filter(([, values]) => isAny(values));
  if (held.length)
    add({ title: "memory held", format: bytes, marks: BINARY,
      lines: held.map(([label, values], i) => ({ label, values, color: ["c-memory", "c-init", "c-module", "c-graph"][i % 4]! })),
    }, memory.all.curve.step_us * 1000, memory.all.curve.from_us * 1000);
  const isTold = (values: (number | null)[]) => values.some((value) => value !== null);
  for (const { device, step_ns, active, watts } of curves.gpus) {
    if (isTold(active))
      list.push(sampled(`GPU ${device} activity`, "sampled", "c-kernel", step_ns, active, (value) => `${value.toFixed(0)} %`));
    if (isTold(watts))
      list.push(sampled(`GPU ${device} power`, "sampled", "c-init", step_ns, watts, (value) => `${value.toFixed(0)} W`));
  }
  return list;
}

// As much of a rate as one step of it has. Buckets that are narrower than a pixel would make a band of it, where some of
// them hold one iteration more than others.
function together({ rate_ns, times, lines }: Curve, ns_per_pixel: number): { buckets: number; data: uPlot.AlignedData } {
  const few = rate_ns ? Math.log2((LEAST_PIXELS * ns_per_pixel) / rate_ns) : 0;
  const buckets = 2 ** Math.max(0, Math.ceil(few));
  if (buckets === 1) return { buckets, data: [times, ...lines.map(({ values }) => values)] };
  const meanFrom = (values: (number | null)[], from: number) => { // the last step may be of fewer
    const of = values.slice(from, from + buckets);
    return of.reduce<number>((sum, value) => sum + (value ?? 0), 0) / of.length;
  };
  const starts = Array.from({ length: Math.ceil(times.length / buckets) }, (_, i) => i * buckets);
  return { buckets, data: [[...starts.map((i) => times[i]!), times.at(-1)! + rate_ns!],
    ...lines.map(({ values }) => [...starts.map((i) => meanFrom(values, i)), 0])] };
}

// Those of two traces, drawn to the same scale.
export function toSameScale(a: Curve[], b: Curve[]) {
  for (const one of a) {
    const other = b.find(({ title }) => title === one.title);
    if (other) [one.beside, other.beside] = [other, one];
  }
}

export class Curves {
  readonly box = h("div", { class: "curves" });
  plots: uPlot[] = [];
  private buckets: number[] = []; // of each plot, how many are one step

  constructor(readonly curves: Curve[], private readonly view: View, private readonly side: string) {
    view.listen((what) => {
      if (what === "window") this.plots.forEach((_, index) => this.follow(index));
    });
    new ResizeObserver(() => {
      for (const plot of this.plots) plot.setSize({ width: this.box.clientWidth, height: HEIGHT });
    }).observe(this.box);
  }
  private follow(index: number) {
    const plot = this.plots[index]!, { from, to } = this.view.window;
    const curve = this.curves[index]!;
    const { buckets, data } = together(curve, (to - from) / Math.max(10, this.box.clientWidth - gutter()));
    if (buckets !== this.buckets[index]) {
      curve.top = data.slice(1).reduce((top, values) => Math.max(top, topOf(values)), 0);
      plot.setData(data, false);
    }
    this.buckets[index] = buckets;
    plot.setScale("x", { min: from, max: to });
  }
  draw() {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
    for (const plot of this.plots) plot.destroy();
    this.box.replaceChildren();
    this.buckets = [];
    this.plots = this.curves.map((curve) => {
      const said = h("span", { class: "said" });
      const top = () => Math.max(curve.top, curve.beside?.top ?? 0);
      const cell = h("div", { class: "curve" }, h("div", { class: "curve-title" }, h("b", {}, curve.title), said));
      this.box.append(cell);
      const paths = uPlot.paths.stepped!({ align: curve.until ? -1 : 1 });
      const plot = new uPlot({
        width: this.box.clientWidth || 600, height: HEIGHT, legend: { show: false }, padding: [6, 8, 6, 0],
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: `time${this.side}` }, points: { show: false } },
        scales: { x: { time: false }, y: { range: () => [0, top() * 1.35 || 1] } },
        axes: [{ show: false }, {
          size: gutter(), stroke: color("faint"), font: "10px system-ui, sans-serif", gap: 4, space: 24,
          splits: () => [0, ...curve.marks.filter((one) => one <= top()).slice(-1)], ticks: { show: false }, grid: { stroke: color("line"), width: 1 },
          values: (_, values) => values.map((value) => curve.format(value)),
        }],
        series: [{}, ...curve.lines.map((line) => ({
          label: line.label, stroke: color(line.color), fill: `${color(line.color)}22`, width: 1.25, paths,
          points: { show: false },
        }))],
        hooks: { setCursor: [(at) => this.say(curve, at, said)] },
      } as uPlot.Options, [curve.times, ...curve.lines.map((line) => line.values)] as uPlot.AlignedData, cell);
      plot.root.setAttribute("aria-hidden", "true");
      this.say(curve, plot, said);
      return plot;
    });
    this.plots.forEach((_, index) => this.follow(index));
  }
  private say(curve: Curve, plot: uPlot, said: HTMLElement) {
    const at = plot.cursor.idx;
    const values = curve.lines.map(({ label }, index) => {
      const value = at === null || at === undefined ? null : plot.data[index + 1]![at];
      return [label, value === null || value === undefined ? "" : curve.format(value)].filter(Boolean).join(" ");
    });
    said.textContent = values.join(" · ");
  }
}

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
  steps?: number[]; // that the axis may have from one number to the next
  top: number; // the largest value, here and where it is compared with
}

const HEIGHT = 62;
const WHOLE = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3));
const BINARY = Array.from({ length: 60 }, (_, i) => 2 ** i);

// A sum of each bucket, as a rate per second; after the last there is nothing more.
const perSecond = (sums: number[], step: number) => [...sums.map((sum) => (sum * 1e9) / step), 0, 0];
const isAny = (values: (number | null)[]) => values.some((value) => value);
const topOf = (lines: Line[]) => lines.reduce((top, line) => line.values.reduce<number>((most, value) => Math.max(most, value ?? 0), top), 0);
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
  return { title, times, until: true, format, steps: WHOLE, lines, top: topOf(lines) };
}

export function curvesOf(timeline: Timeline, memory: MemoryAnswer): Curve[] {
  const { curves } = timeline, list: Curve[] = [];
  const step = curves.step_ns;
  const add = (curve: Omit<Curve, "times" | "top">, of: number, from = 0) =>
    list.push({ ...curve, times: buckets(curve.lines, of, from), top: topOf(curve.lines) });
  if (isAny(curves.launches))
    add({ title: "launches a second", format: (value) => count(Math.round(value)), steps: WHOLE,
      lines: [{ label: "launches", values: perSecond(curves.launches, step), color: "c-kernel" }] }, step);
  const copies = ([["to the GPU", curves.to_device, "c-transfer"], ["from the GPU", curves.to_host, "c-waiting-copy"],
    ["other copies", curves.other, "c-other"]] as const).filter(([, values]) => isAny(values));
  if (copies.length)
    add({ title: "copied a second", format: bytes, steps: BINARY,
      lines: copies.map(([label, values, color]) => ({ label, values: perSecond(values, step), color })) }, step);
  const held = Object.entries(memory.all.curve.bytes).filter(([, values]) => isAny(values));
  if (held.length)
    add({ title: "memory held", format: bytes, steps: BINARY,
      lines: held.map(([label, values], i) => ({ label, values, color: ["c-memory", "c-init", "c-module", "c-graph"][i % 4]! })),
    }, memory.all.curve.step_us * 1000, memory.all.curve.from_us * 1000);
  const isTold = (values: (number | null)[]) => values.some((value) => value !== null);
  for (const { device, step_ns, active, watts } of curves.gpus) {
    if (isTold(active))
      list.push(sampled(`GPU ${device} activity`, "activity, sampled", "c-kernel", step_ns, active, (value) => `${value.toFixed(0)} %`));
    if (isTold(watts))
      list.push(sampled(`GPU ${device} power`, "power, sampled", "c-init", step_ns, watts, (value) => `${value.toFixed(0)} W`));
  }
  return list;
}

// Those of two traces, drawn to the same scale.
export function toSameScale(a: Curve[], b: Curve[]) {
  for (const one of a) {
    const other = b.find(({ title }) => title === one.title);
    if (other) one.top = other.top = Math.max(one.top, other.top);
  }
}

export class Curves {
  readonly box = h("div", { class: "curves" });
  plots: uPlot[] = [];
  private readonly says: HTMLElement[] = [];

  constructor(readonly curves: Curve[], private readonly view: View, private readonly side: string) {
    view.listen((what) => {
      if (what === "window") for (const plot of this.plots) this.follow(plot);
    });
    new ResizeObserver(() => {
      for (const plot of this.plots) plot.setSize({ width: this.box.clientWidth, height: HEIGHT });
    }).observe(this.box);
  }
  private follow(plot: uPlot) {
    plot.setScale("x", { min: this.view.window.from, max: this.view.window.to });
  }
  draw() {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
    for (const plot of this.plots) plot.destroy();
    this.box.replaceChildren();
    this.says.length = 0;
    this.plots = this.curves.map((curve) => {
      const said = h("span", { class: "said" });
      const cell = h("div", { class: "curve" }, h("div", { class: "curve-title" }, h("b", {}, curve.title), said));
      this.says.push(said);
      this.box.append(cell);
      const paths = uPlot.paths.stepped!({ align: curve.until ? -1 : 1 });
      const plot = new uPlot({
        width: this.box.clientWidth || 600, height: HEIGHT, legend: { show: false }, padding: [6, 8, 6, 0],
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: `time${this.side}` }, points: { show: false } },
        scales: { x: { time: false }, y: { range: () => [0, curve.top > 0 ? curve.top * 1.35 : 1] } },
        axes: [{ show: false }, {
          size: gutter(), stroke: color("faint"), font: "10px system-ui, sans-serif", gap: 4, space: 24,
          ...(curve.steps && { incrs: curve.steps }), ticks: { show: false }, grid: { stroke: color("line"), width: 1 },
          values: (_, values) => values.map((value) => curve.format(value)),
        }],
        series: [{}, ...curve.lines.map((line) => ({
          label: line.label, stroke: color(line.color), fill: `${color(line.color)}22`, width: 1.25, paths,
          points: { show: false },
        }))],
        hooks: { setCursor: [(at) => this.say(curve, at, said)] },
      } as uPlot.Options, [curve.times, ...curve.lines.map((line) => line.values)] as uPlot.AlignedData, cell);
      plot.root.setAttribute("aria-hidden", "true");
      this.follow(plot);
      this.say(curve, plot, said);
      return plot;
    });
  }
  private say(curve: Curve, plot: uPlot, said: HTMLElement) {
    const at = plot.cursor.idx;
    const values = curve.lines.map((line) => {
      const value = at === null || at === undefined ? null : line.values[at];
      return `${line.label}${value === null || value === undefined ? "" : ` ${curve.format(value)}`}`;
    });
    said.textContent = values.join(" · ");
  }
}

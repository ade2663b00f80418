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
interface Curve { title: string; step: number; from: number; lines: Line[]; format: (value: number) => string; stepped?: boolean }

const HEIGHT = 62;

// A sum of each bucket, as a rate per second; after the last there is nothing more.
const perSecond = (sums: number[], step: number) => [...sums.map((sum) => (sum * 1e9) / step), 0, 0];
const isAny = (values: (number | null)[]) => values.some((value) => value);

export function curvesOf(timeline: Timeline, memory: MemoryAnswer): Curve[] {
  const { curves } = timeline, list: Curve[] = [];
  const step = curves.step_ns;
  if (isAny(curves.launches))
    list.push({ title: "launches a second", step, from: 0, format: (value) => count(Math.round(value)),
      lines: [{ label: "launches", values: perSecond(curves.launches, step), color: "c-kernel" }] });
  const copies = ([["to the GPU", curves.to_device, "c-transfer"], ["from the GPU", curves.to_host, "c-waiting-copy"],
    ["other copies", curves.other, "c-other"]] as const).filter(([, values]) => isAny(values));
  if (copies.length)
    list.push({ title: "copied a second", step, from: 0, format: bytes,
      lines: copies.map(([label, values, color]) => ({ label, values: perSecond(values, step), color })) });
  const held = Object.entries(memory.all.curve.bytes).filter(([, values]) => isAny(values));
  if (held.length)
    list.push({ title: "memory held", step: memory.all.curve.step_us * 1000, from: memory.all.curve.from_us * 1000,
      format: bytes, stepped: true,
      lines: held.map(([label, values], i) => ({ label, values, color: ["c-memory", "c-init", "c-module", "c-graph"][i % 4]! })) });
  for (const gpu of curves.gpus) {
    if (isAny(gpu.active))
      list.push({ title: `GPU ${gpu.device} activity`, step: gpu.step_ns, from: 0, format: (value) => `${value.toFixed(0)} %`,
        lines: [{ label: "activity, sampled", values: gpu.active, color: "c-kernel" }] });
    if (isAny(gpu.watts))
      list.push({ title: `GPU ${gpu.device} power`, step: gpu.step_ns, from: 0, format: (value) => `${value.toFixed(0)} W`,
        lines: [{ label: "power, sampled", values: gpu.watts, color: "c-init" }] });
  }
  return list;
}

export class Curves {
  readonly box = h("div", { class: "curves" });
  private plots: uPlot[] = [];
  private readonly says: HTMLElement[] = [];

  constructor(private readonly curves: Curve[], private readonly view: View) {
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
      const length = Math.max(...curve.lines.map((line) => line.values.length));
      // A curve that was cut off at its last bucket goes on to that bucket's end.
      const times = Array.from({ length }, (_, i) => curve.from + i * curve.step);
      const step = curve.step < 1 ? undefined : uPlot.paths.stepped!({ align: 1 });
      const plot = new uPlot({
        width: this.box.clientWidth || 600, height: HEIGHT, legend: { show: false }, padding: [6, 8, 6, 0],
        cursor: { y: false, drag: { x: false, y: false }, sync: { key: "time" }, points: { show: false } },
        scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.35 : 1] } },
        axes: [{ show: false }, {
          size: gutter(), stroke: color("faint"), font: "10px system-ui, sans-serif", gap: 4, space: 24,
          ticks: { show: false }, grid: { stroke: color("line"), width: 1 },
          values: (_, values) => values.map((value) => curve.format(value)),
        }],
        series: [{}, ...curve.lines.map((line) => ({
          label: line.label, stroke: color(line.color), fill: `${color(line.color)}22`, width: 1.25, paths: step,
          points: { show: false },
        }))],
        hooks: { setCursor: [(at) => this.say(curve, at, said)] },
      } as uPlot.Options, [times, ...curve.lines.map((line) => line.values)] as uPlot.AlignedData, cell);
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

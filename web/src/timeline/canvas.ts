// The timeline on its canvas: the axis, the rows that are in sight, and what is chosen.
import type { Phase } from "../data/answers";
import type { Lane, Timeline } from "../data/timeline";
import { firstAt, nameOf } from "../data/timeline";
import { h, oncePerFrame } from "../dom";
import { moment } from "../format";
import { PHASE_COLOURS, phasesIn, type PlacedPhase } from "../phases";
import type { Chosen, Span, View } from "../view";
import { paintIterations } from "./iterations";
import { paintLane, paintStream, paintUnrecorded, type Colors, type Frame } from "./paint";
import { layoutOf, type Layout, type Row } from "./rows";
import type { Search } from "./search";

const PHASES = 20, ITERATIONS = 42, ITERATION = 16; // where they begin, in pixels, below the times; and how high one is
export const gutter = () => (window.innerWidth < 700 ? 92 : 168);

export function colorsOf(element: Element, categories: string[]): Colors {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    categories: categories.map((name) => color(`c-${name.replace(" ", "-")}`) || color("faint")),
    phases: Array.from({ length: PHASE_COLOURS }, (_, index) => color(`p-${index}`)),
    text: color("text"), onBar: color("on-bar"), faint: color("faint"), line: color("line"), back: color("back"),
    accent: color("accent"), failed: color("bad"), range: color("range"), band: color("band"), strong: color("strong"),
  };
}

// Round times, so many that their texts have room.
export function ticksOf(span: Span, width: number): { step: number; at: number[] } {
  const least = ((span.to - span.from) / width) * 110;
  const unit = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, [1, 2, 5, 10].map((times) => times * unit).find((size) => size >= least) ?? unit * 10);
  const at: number[] = [];
  for (let ns = Math.ceil(span.from / step) * step; ns < span.to; ns += step) at.push(ns);
  return { step, at };
}

export class TimelineCanvas {
  readonly box: HTMLElement;
  readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly spacer = h("div", { class: "spacer" });
  private readonly context = this.canvas.getContext("2d")!;
  private readonly closed = new Set<number>();
  private readonly phases: PlacedPhase[];
  private colors!: Colors;
  layout: Layout;
  readonly axis: number; // pixels: times, and below them phases and iterations
  selecting: Span | null = null;
  pointer: number | null = null; // where the mouse is, in pixels from the left; null: elsewhere
  frames = 0;
  readonly draw = oncePerFrame(() => this.paint());

  constructor(
    readonly timeline: Timeline, readonly view: View, readonly search: Search, phases: Phase[], side: string,
  ) {
    this.phases = phasesIn(phases);
    this.axis = timeline.iterations ? ITERATIONS + ITERATION + 3 : ITERATIONS;
    this.layout = layoutOf(timeline, this.closed);
    this.box = h("div", {
      class: "tracks", tabindex: 0, role: "application", "aria-roledescription": "timeline",
      "aria-label": `Timeline${side && ` of ${side}`}. W and S zoom, A and D move, arrow keys go from event to event, slash searches.`,
      "aria-describedby": `timeline-said${side}`,
    }, this.canvas, this.spacer);
    this.box.addEventListener("scroll", this.draw, { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.box);
    view.listen(() => this.draw());
    this.recolor();
  }

  recolor() {
    this.colors = colorsOf(document.documentElement, this.timeline.categories);
    this.draw();
  }
  resize() {
    const height = Math.min(this.layout.height + this.axis, Math.max(220, Math.round(window.innerHeight * 0.62)));
    this.box.style.height = `${height}px`;
    this.spacer.style.height = `${Math.max(0, this.layout.height + this.axis - height)}px`;
    const ratio = window.devicePixelRatio || 1, width = this.box.clientWidth;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.draw();
  }
  isInIterations(y: number): boolean {
    return !!this.timeline.iterations && y >= ITERATIONS && y < this.axis;
  }
  // Whether this is where a row of a process is folded: at its triangle, and with a finger near it.
  isFold(x: number, row: Row | null, finger = false): boolean {
    return !!row && !row.lane && x < (finger ? 48 : 24);
  }
  // Makes those visible of which something is to be seen.
  unfold(processes: Iterable<number>) {
    for (const process of processes) if (this.closed.has(process)) this.toggle(process);
  }
  toggle(process: number) {
    if (!this.closed.delete(process)) this.closed.add(process);
    this.layout = layoutOf(this.timeline, this.closed);
    this.resize();
  }

  get plot() {
    const left = gutter();
    return { left, width: Math.max(10, this.box.clientWidth - left - 8) };
  }
  timeAt(x: number): number {
    const { left, width } = this.plot, { from, to } = this.view.window;
    return from + ((x - left) / width) * (to - from);
  }
  xOf(ns: number): number {
    const { left, width } = this.plot, { from, to } = this.view.window;
    return left + ((ns - from) / (to - from)) * width;
  }
  rowAt(y: number): Row | null {
    if (y < this.axis) return null;
    const at = y - this.axis + this.box.scrollTop;
    return this.layout.rows.find((row) => at >= row.top && at <= row.top + row.height) ?? null;
  }
  // Within a few pixels of it.
  eventAt(x: number, y: number): Chosen | null {
    const lane = this.rowAt(y)?.lane;
    if (!lane || x < this.plot.left) return null;
    const near = (this.timeAt(x + 3) - this.timeAt(x));
    return nearestEvent(lane, this.timeAt(x), near, this.rowAt(y)!.stream);
  }
  scrollTo(lane: number) {
    this.unfold([this.timeline.lanes[lane]!.process]);
    const row = this.layout.rows.find((one) => one.lane?.index === lane && !one.stream);
    if (!row) return;
    const room = this.box.clientHeight - this.axis, { scrollTop } = this.box;
    if (row.top < scrollTop || row.top + row.height > scrollTop + room)
      this.box.scrollTop = Math.max(0, row.top - room / 2);
  }
  scrollToProcess(pid: number) {
    const row = this.layout.rows.find((one) => !one.lane && this.timeline.processes[one.process]!.pid === pid);
    if (row) this.box.scrollTop = row.top;
  }

  private paint() {
    const { context, colors, box } = this;
    const ratio = window.devicePixelRatio || 1, height = box.clientHeight, { left, width } = this.plot;
    this.frames++;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.back;
    context.fillRect(0, 0, box.clientWidth, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const frame: Frame = {
      context, colors, timeline: this.timeline, search: this.search, span: this.view.window, left, width,
    };
    this.paintBeyond(frame, height);
    this.paintGrid(frame, height);
    context.save();
    context.beginPath();
    context.rect(0, this.axis, box.clientWidth, height - this.axis);
    context.clip();
    this.paintRows(frame, height);
    this.paintRange(frame, height);
    this.paintChosen(frame);
    context.restore();
  }

  // Where the trace had not begun, or has ended.
  private paintBeyond({ context, colors, left, width }: Frame, height: number) {
    const { from, to } = this.view.whole;
    const begin = Math.min(this.xOf(from), left + width), end = Math.max(this.xOf(to), left);
    context.fillStyle = colors.band;
    if (begin > left) context.fillRect(left, this.axis, begin - left, height);
    if (end < left + width) context.fillRect(end, this.axis, left + width - end, height);
  }

  private paintGrid(frame: Frame, height: number) {
    const { context, colors, left, width, span } = frame;
    const { step, at } = ticksOf(span, width);
    context.fillStyle = colors.line;
    for (const ns of at) context.fillRect(Math.round(this.xOf(ns)), 18, 1, height);
    context.fillStyle = colors.faint;
    context.textAlign = "center";
    for (const ns of at) {
      const text = moment(ns, step), half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(Math.max(this.xOf(ns), left + half), left + width - half), 9);
    }
    context.textAlign = "left";
    const { iterations, processes } = this.timeline;
    const whose = processes.length > 1 && iterations ? ` of ${nameOf(this.timeline, iterations.pid)}` : "";
    context.fillText(fitted(context, `phases${whose}`, left - 14), 8, PHASES + 10);
    for (const phase of this.phases) {
      if (phase.begin_us === undefined || phase.end_us === undefined) continue;
      const from = Math.max(left, this.xOf(phase.begin_us * 1000));
      const to = Math.min(left + width, this.xOf(phase.end_us * 1000));
      if (to <= from) continue;
      context.fillStyle = colors.band;
      context.fillRect(from, PHASES, to - from - 1, 19);
      context.fillStyle = colors.phases[phase.colour]!;
      context.fillRect(from, PHASES + 16, Math.max(1, to - from - 1), 3);
      context.fillStyle = colors.text;
      if (context.measureText(phase.name).width < to - from - 8) context.fillText(phase.name, from + 5, PHASES + 8.5);
    }
    if (!iterations) return;
    context.fillText("iterations", 8, ITERATIONS + ITERATION / 2 + 0.5);
    paintIterations(frame, iterations, ITERATIONS, ITERATION);
  }

  private paintRows(frame: Frame, height: number) {
    const { context, colors, left, width } = frame, scrolled = this.box.scrollTop - this.axis;
    for (const row of this.layout.rows) {
      const y = row.top - scrolled;
      if (y + row.height < this.axis || y > height) continue;
      if (!row.lane) {
        context.fillStyle = colors.band;
        context.fillRect(0, y, left + width + 8, row.height);
        context.fillStyle = colors.strong;
        context.font = "600 12px system-ui, sans-serif";
        context.fillText(`${this.closed.has(row.process) ? "▸" : "▾"} ${row.label}`, 8, y + row.height / 2 + 0.5);
        context.font = "11px system-ui, sans-serif";
        continue;
      }
      context.save();
      context.beginPath();
      context.rect(left, y, width, row.height);
      context.clip();
      const windows = row.lane.kind === "gpu" && this.timeline.processes[row.process]!.gpu_windows;
      if (windows) paintUnrecorded(frame, windows, y, row.height);
      if (row.stream) paintStream(frame, row.lane, row.stream, y, row.height);
      else paintLane(frame, row.lane, y, row.height);
      context.restore();
      if (!row.label) continue;
      const isInner = row.label.startsWith(" "), x = isInner ? 26 : 14;
      context.fillStyle = isInner ? colors.faint : colors.text;
      context.font = `${row.height < 12 ? 9 : 11}px system-ui, sans-serif`;
      context.fillText(fitted(context, row.label.trim(), left - 6 - x), x, y + row.height / 2 + 0.5);
      context.font = "11px system-ui, sans-serif";
    }
  }

  private paintRange({ context, colors, left, width }: Frame, height: number) {
    const range = this.selecting ?? this.view.range;
    if (!range) return;
    const from = Math.max(left, this.xOf(range.from)), to = Math.min(left + width, this.xOf(range.to));
    if (to <= from) return;
    context.fillStyle = colors.range;
    context.fillRect(from, this.axis, to - from, height);
    context.fillStyle = colors.accent;
    context.fillRect(from, this.axis, 1, height);
    context.fillRect(to - 1, this.axis, 1, height);
  }

  private paintChosen({ context, colors, left, width }: Frame) {
    const { chosen } = this.view;
    if (!chosen) return;
    const lane = this.timeline.lanes[chosen.lane]!;
    const row = this.layout.rows.find((one) => one.lane === lane && !one.stream);
    if (!row) return;
    const begin = this.xOf(lane.begin[chosen.event]!), end = this.xOf(lane.end[chosen.event]!);
    if (end < left || begin > left + width) return;
    const from = Math.max(left - 3, begin), to = Math.min(left + width + 3, Math.max(end, from + 3));
    context.strokeStyle = colors.strong;
    context.lineWidth = 2;
    context.strokeRect(from - 1, row.top - this.box.scrollTop + this.axis - 1, to - from + 2, row.height + 2);
  }
}

// A label in the room that it has; the number of a stream is what tells it from others.
function fitted(context: CanvasRenderingContext2D, label: string, room: number): string {
  const fits = (text: string) => context.measureText(text).width <= room;
  if (fits(label)) return label;
  let text = label.replace("stream ", "s");
  if (fits(text)) return text;
  while (text && !fits(`${text}…`)) text = text.slice(0, -1);
  return `${text}…`;
}

function nearestEvent(lane: Lane, ns: number, near: number, only: Uint32Array | null): Chosen | null {
  let best = -1, least = near;
  const look = (i: number) => {
    const distance = Math.max(lane.begin[i]! - ns, ns - lane.end[i]!, 0);
    if (distance < least || (best < 0 && distance <= near)) [best, least] = [i, distance];
  };
  const first = firstAt(lane.latest, ns - near);
  const last = firstAt(lane.begin, ns + near, first);
  if (only) {
    for (let at = firstAt(only, first); at < only.length && only[at]! < last; at++) look(only[at]!);
  } else {
    for (let i = Math.max(first, last - 200); i < last; i++) look(i);
  }
  return best < 0 ? null : { lane: lane.index, event: best };
}

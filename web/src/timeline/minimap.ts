// The whole trace in a strip, with the part that is shown as a window that can be moved.
import { firstAt, type Timeline } from "../data/timeline";
import { h, oncePerFrame } from "../dom";
import type { View } from "../view";
import { colorsOf, gutter } from "./canvas";

const HEIGHT = 44;

export class Minimap {
  readonly canvas = h("canvas", { class: "minimap", "aria-hidden": "true" });
  private colors;
  private picture: ImageBitmap | HTMLCanvasElement | null = null;
  private readonly draw = oncePerFrame(() => this.paint());

  constructor(private readonly timeline: Timeline, private readonly view: View) {
    this.colors = colorsOf(document.documentElement, timeline.categories);
    view.listen(() => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    const move = (event: PointerEvent) => {
      if (!(event.buttons & 1)) return;
      const { left, width } = this.plot, { from, to } = view.whole, half = (view.window.to - view.window.from) / 2;
      const at = from + ((event.offsetX - left) / width) * (to - from);
      view.show({ from: at - half, to: at + half });
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      move(event);
    });
    this.canvas.addEventListener("pointermove", move);
  }
  recolor() {
    this.colors = colorsOf(document.documentElement, this.timeline.categories);
    this.picture = null;
    this.draw();
  }
  private get plot() {
    const left = gutter();
    return { left, width: Math.max(10, this.canvas.clientWidth - left - 8) };
  }
  private resize() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(HEIGHT * ratio);
    this.picture = null;
    this.draw();
  }

  // How much of each pixel's time a lane fills; the lanes lie on one another.
  private drawPicture(): HTMLCanvasElement {
    const picture = h("canvas");
    picture.width = this.canvas.width;
    picture.height = this.canvas.height;
    const context = picture.getContext("2d")!, ratio = window.devicePixelRatio || 1;
    context.scale(ratio, ratio);
    const { left, width } = this.plot, { from, to } = this.view.whole, step = (to - from) / width;
    const lanes = this.timeline.lanes.filter((lane) => !lane.depth && (lane.kind === "calls" || lane.kind === "gpu")).slice(0, 64);
    const height = (HEIGHT - 4) / Math.max(1, lanes.length);
    lanes.forEach((lane, row) => {
      let i = 0;
      for (let x = 0; x < width; x++) {
        const begin = from + x * step;
        while (i < lane.size && lane.latest[i]! < begin) i = firstAt(lane.latest, begin, i);
        if (i >= lane.size) break;
        if (lane.begin[i]! >= begin + step) continue;
        const next = firstAt(lane.begin, begin + step, i);
        let longest = i;
        for (let j = i; j < Math.min(next, i + 8); j++) if (lane.busy[j]! > lane.busy[longest]!) longest = j;
        const share = Math.min(1, (lane.sum[next]! - lane.sum[i]!) / step);
        context.globalAlpha = 0.35 + 0.65 * share;
        context.fillStyle = this.colors.categories[this.timeline.kinds[lane.kinds[longest]!]!.category]!;
        context.fillRect(left + x, 2 + row * height, 1, Math.max(1, height - (height > 4 ? 1 : 0)));
      }
    });
    return picture;
  }

  private paint() {
    const context = this.canvas.getContext("2d")!, ratio = window.devicePixelRatio || 1;
    if (!this.canvas.width) return;
    this.picture ??= this.drawPicture();
    const { left, width } = this.plot, { whole, window: shown, range } = this.view;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.colors.back;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const xOf = (ns: number) => left + Math.min(1, Math.max(0, (ns - whole.from) / (whole.to - whole.from))) * width;
    if (range) {
      context.fillStyle = this.colors.range;
      context.fillRect(xOf(range.from), 0, Math.max(1, xOf(range.to) - xOf(range.from)), HEIGHT);
    }
    const from = xOf(shown.from), to = Math.max(xOf(shown.to), from + 2);
    context.globalAlpha = 0.6;
    context.fillStyle = this.colors.band;
    context.fillRect(left, 0, from - left, HEIGHT);
    context.fillRect(to, 0, left + width - to, HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = this.colors.accent;
    context.strokeRect(from + 0.5, 0.5, to - from - 1, HEIGHT - 1);
    context.fillStyle = this.colors.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillText("whole trace", 8, HEIGHT / 2);
  }
}

// Draws a row of events: each as a bar; those too short for that, pixel by pixel, as strongly as
// they fill it, in the colour of the longest.
import { FAILED, firstAt, labelOf, type Lane, type Timeline } from "../data/timeline";
import type { Span } from "../view";
import type { Search } from "./search";

export interface Colors {
  categories: string[]; phases: string[]; text: string; onBar: string; faint: string; line: string; back: string; accent: string;
  failed: string; range: string; band: string; strong: string;
}
export interface Frame {
  context: CanvasRenderingContext2D; colors: Colors; timeline: Timeline; search: Search;
  span: Span; left: number; width: number; // of the part that has events, in pixels
}

const LEAST_BAR = 2, LEAST_LABEL = 34, LEVELS = 4, SAMPLES = 12;
const DIMMED = 0.13;

class Runs {
  private x = 0; private to = 0; private color = ""; private alpha = -1;
  constructor(private readonly frame: Frame, private readonly y: number, private readonly height: number) {}
  add(x: number, width: number, color: string, alpha: number) {
    if (color === this.color && alpha === this.alpha && x <= this.to) {
      this.to = Math.max(this.to, x + width);
      return;
    }
    this.flush();
    [this.x, this.to, this.color, this.alpha] = [x, x + width, color, alpha];
  }
  flush() {
    if (this.alpha < 0) return;
    const { context } = this.frame;
    context.globalAlpha = this.alpha;
    context.fillStyle = this.color;
    context.fillRect(this.x, this.y, this.to - this.x, this.height);
    context.globalAlpha = 1;
    this.alpha = -1;
  }
}

function paintBar(frame: Frame, lane: Lane, i: number, x: number, width: number, y: number, height: number) {
  const { context, colors, timeline } = frame;
  const kind = timeline.kinds[lane.kinds[i]!]!;
  const isFound = !frame.search.active || frame.search.hasAny(lane.index, i, i + 1);
  context.globalAlpha = isFound ? (lane.counts[i]! > 1 ? 0.7 : 1) : DIMMED;
  context.fillStyle = colors.categories[kind.category]!;
  context.fillRect(x, y, width > 4 ? width - 0.75 : width, height);
  context.globalAlpha = 1;
  if (kind.flags & FAILED) {
    context.fillStyle = colors.failed;
    context.fillRect(x, y, width, Math.max(2, height / 6));
  }
  if (width < LEAST_LABEL || height < 12 || !isFound) return;
  context.fillStyle = colors.onBar;
  const most = Math.floor((width - 8) / 6.1);
  const label = labelOf(timeline, lane, i);
  context.fillText(label.length > most ? `${label.slice(0, Math.max(1, most - 1))}…` : label, x + 4, y + height / 2 + 0.5);
}

// The longest of a few of them says what they look like.
function longestOf(lane: Lane, from: number, to: number): number {
  const step = Math.max(1, Math.floor((to - from) / SAMPLES));
  let longest = from;
  for (let i = from; i < to; i += step) if (lane.busy[i]! > lane.busy[longest]!) longest = i;
  return longest;
}

export function paintLane(frame: Frame, lane: Lane, y: number, height: number) {
  const { span, left, width, colors, timeline, search } = frame;
  const scale = width / (span.to - span.from), right = left + width;
  const xOf = (ns: number) => left + (ns - span.from) * scale;
  const runs = new Runs(frame, y, height);
  let i = firstAt(lane.latest, span.from);
  while (i < lane.size && lane.begin[i]! < span.to) {
    const x = xOf(lane.begin[i]!), end = xOf(lane.end[i]!);
    if (end - x >= LEAST_BAR) {
      runs.flush();
      const from = Math.max(x, left - 2), to = Math.min(end, right + 2);
      if (to > from) paintBar(frame, lane, i, from, to - from, y, height);
      i++;
      continue;
    }
    const pixel = Math.floor(x);
    let next = firstAt(lane.begin, span.from + (pixel + 1 - left) / scale, i + 1);
    // Only the last of them can reach beyond the pixel: it is a bar.
    if (next - 1 > i && xOf(lane.end[next - 1]!) - xOf(lane.begin[next - 1]!) >= LEAST_BAR) next--;
    if (pixel >= left - 1) {
      const share = Math.min(1, (lane.sum[next]! - lane.sum[i]!) * scale);
      const isFound = !search.active || search.hasAny(lane.index, i, next);
      const alpha = isFound ? 0.4 + (0.6 * Math.ceil(share * LEVELS)) / LEVELS : DIMMED;
      const kind = timeline.kinds[lane.kinds[longestOf(lane, i, next)]!]!;
      runs.add(pixel, 1, colors.categories[kind.category]!, alpha);
    }
    i = next;
  }
  runs.flush();
}

// Where nothing is known of a process's GPUs, since their times were recorded in windows.
export function paintUnrecorded(frame: Frame, windows: [number, number][], y: number, height: number) {
  const { span, left, width, context, colors } = frame;
  const scale = width / (span.to - span.from);
  context.fillStyle = colors.line;
  let from = span.from;
  const fill = (to: number) => {
    if (to > from) context.fillRect(left + (from - span.from) * scale, y, (to - from) * scale, height);
  };
  for (const [begin, end] of windows) {
    if (end < span.from) continue;
    if (begin >= span.to) break;
    fill(begin);
    from = Math.max(from, end);
  }
  fill(span.to);
}

// What a stream was given, when the call began.
export function paintStream(frame: Frame, lane: Lane, events: Uint32Array, y: number, height: number) {
  const { span, left, width, colors, timeline, search } = frame;
  const scale = width / (span.to - span.from);
  const beginOf = (at: number) => lane.begin[events[at]!]!;
  const place = (ns: number, low: number) => {
    let high = events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (beginOf(middle) < ns) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const runs = new Runs(frame, y, height);
  for (let at = place(span.from, 0); at < events.length && beginOf(at) < span.to; ) {
    const pixel = Math.floor(left + (beginOf(at) - span.from) * scale);
    const next = place(span.from + (pixel + 1 - left) / scale, at + 1);
    const isFound = !search.active || search.hasAny(lane.index, events[at]!, events[next - 1]! + 1);
    const kind = timeline.kinds[lane.kinds[events[at]!]!]!;
    runs.add(pixel, 1.5, colors.categories[kind.category]!, isFound ? 0.9 : DIMMED);
    at = Math.max(next, at + 1);
  }
  runs.flush();
}

// The row of iterations, below the phases: a box each, with its number, and its time where there is room.
import { firstAt, type Iterations } from "../data/timeline";
import { time } from "../format";
import type { Frame } from "./paint";

const LEAST_BOX = 2, LEAST_LABEL = 16;

export const numberOf = ({ first }: Iterations, index: number) => first + index;
export const isWarmUp = (all: Iterations, index: number) => numberOf(all, index) <= all.warm_up;

export function paintIterations({ context, colors, span, left, width }: Frame, all: Iterations, y: number, height: number) {
  const scale = width / (span.to - span.from);
  const xOf = (ns: number) => left + (ns - span.from) * scale;
  for (let i = Math.max(0, firstAt(all.begin, span.from) - 1); i < all.size && all.begin[i]! < span.to; ) {
    const from = Math.max(left, xOf(all.begin[i]!)), to = Math.min(left + width, xOf(all.end[i]!));
    context.fillStyle = colors.accent;
    context.globalAlpha = i % 2 ? 0.16 : 0.3;
    if (to - from < LEAST_BOX) { // several to a pixel
      const next = firstAt(all.begin, span.from + (Math.floor(from) + 1 - left) / scale, i + 1);
      const end = Math.min(left + width, xOf(all.end[next - 1]!));
      if (end >= left) context.fillRect(from, y, Math.max(1, end - from), height);
      context.globalAlpha = 1;
      i = next;
      continue;
    }
    context.fillRect(from, y, to - from - 1, height);
    context.globalAlpha = 1;
    if (isWarmUp(all, i)) { // as if not quite there
      context.fillStyle = colors.back;
      context.fillRect(from + 1, y + 1, Math.max(0, to - from - 3), height - 2);
    }
    const number = String(numberOf(all, i)), long = `${number}, ${time(all.end[i]! - all.begin[i]!)}`;
    const label = [long, number].find((text) => context.measureText(text).width < to - from - 6);
    context.fillStyle = colors.text;
    if (label && to - from > LEAST_LABEL) context.fillText(label, from + 3, y + height / 2 + 0.5);
    i++;
  }
}

// Which is there; -1: none.
export function iterationAt(all: Iterations, ns: number): number {
  const next = firstAt(all.begin, ns + 1e-9);
  return next && all.end[next - 1]! >= ns ? next - 1 : -1;
}

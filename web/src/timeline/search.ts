// Which events a search finds: those whose function or kernel has the text in its name.
import type { Timeline } from "../data/timeline";
import { firstAt } from "../data/timeline";
import type { Chosen, View } from "../view";

export class Search {
  active = false;
  total = 0;
  private found: Uint32Array[] = []; // of each lane, in order

  constructor(private readonly timeline: Timeline, private readonly view: View) {}

  run() {
    const text = this.view.search.trim().toLowerCase();
    this.active = text !== "";
    this.total = 0;
    this.found = [];
    if (!this.active) return;
    const matches = this.timeline.kinds.map((kind) =>
      `${kind.name}\n${kind.what}\n${kind.short}`.toLowerCase().includes(text));
    for (const lane of this.timeline.lanes) {
      const found: number[] = [];
      for (let i = 0; i < lane.size; i++) if (matches[lane.kinds[i]!]) found.push(i);
      this.found.push(Uint32Array.from(found));
      this.total += found.length;
    }
  }
  // Those of whose lanes something was found.
  processes(): Set<number> {
    return new Set(this.found.flatMap((found, lane) => (found.length ? [this.timeline.lanes[lane]!.process] : [])));
  }
  hasAny(lane: number, from: number, to: number): boolean {
    const found = this.found[lane]!;
    const at = firstAt(found, from);
    return at < found.length && found[at]! < to;
  }
  // The next in time after what is chosen, or before it; from the end it goes on at the other.
  step(forward: boolean): Chosen | null {
    const lanes = this.timeline.lanes;
    const { chosen } = this.view;
    const key = (one: Chosen) => [lanes[one.lane]!.begin[one.event]!, one.lane, one.event] as const;
    const less = (a: Chosen, b: Chosen) => {
      const [x, y] = [key(a), key(b)];
      return x[0] !== y[0] ? x[0] < y[0] : x[1] !== y[1] ? x[1] < y[1] : x[2] < y[2];
    };
    let best: Chosen | null = null, outermost: Chosen | null = null;
    const better = (a: Chosen, b: Chosen | null) => !b || (forward ? less(a, b) : less(b, a));
    this.found.forEach((found, lane) => {
      if (!found.length) return;
      const first = { lane, event: found[forward ? 0 : found.length - 1]! };
      if (better(first, outermost)) outermost = first;
      if (!chosen) return;
      // Events of a lane are in order, so the first one beyond what is chosen is its nearest.
      let low = 0, high = found.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        const one = { lane, event: found[middle]! };
        if (forward ? !less(chosen, one) : less(one, chosen)) low = middle + 1;
        else high = middle;
      }
      const at = forward ? low : low - 1;
      if (at < 0 || at >= found.length) return;
      const nearest = { lane, event: found[at]! };
      if (better(nearest, best)) best = nearest;
    });
    return best ?? outermost;
  }
}

// Keys: they move the timeline, choose in it and find.
import type { Chosen, View } from "../view";
import type { TimelineCanvas } from "./canvas";
import { spanOf } from "./input";
import type { Search } from "./search";

// The neighbours in time of an event of a lane; up and down, the row's neighbours at that time.
function neighbour(canvas: TimelineCanvas, chosen: Chosen | null, key: string): Chosen | null {
  const lanes = canvas.timeline.lanes;
  if (!chosen) {
    const { from, to } = canvas.view.window;
    for (const lane of lanes)
      for (let i = 0; i < lane.size; i++)
        if (lane.begin[i]! >= from && lane.begin[i]! < to) return { lane: lane.index, event: i };
    return lanes.length ? { lane: 0, event: 0 } : null;
  }
  const lane = lanes[chosen.lane]!;
  if (key === "ArrowRight") return chosen.event + 1 < lane.size ? { ...chosen, event: chosen.event + 1 } : null;
  if (key === "ArrowLeft") return chosen.event ? { ...chosen, event: chosen.event - 1 } : null;
  const rows = canvas.layout.rows.filter((row) => row.lane && !row.stream);
  const row = rows.findIndex((one) => one.lane === lane);
  const next = row < 0 ? null : rows[row + (key === "ArrowDown" ? 1 : -1)]?.lane;
  if (!next) return null;
  let event = 0;
  while (event + 1 < next.size && next.begin[event + 1]! <= lane.begin[chosen.event]!) event++;
  return { lane: next.index, event };
}

// Where zooming keeps still what is there: at the pointer, else what is chosen; else in the middle.
function still(canvas: TimelineCanvas): number | undefined {
  const { view, pointer, plot, timeline } = canvas;
  if (pointer !== null && pointer >= plot.left) return canvas.timeAt(pointer);
  if (!view.chosen) return undefined;
  const { from, to } = spanOf(timeline, view.chosen), at = (from + to) / 2;
  return at >= view.window.from && at <= view.window.to ? at : undefined;
}

const isTyping = (at: EventTarget | null) => at instanceof HTMLElement && !!at.closest("input:not([type=checkbox]), select, textarea");

let inUse: TimelineCanvas | null = null; // of two, the one that was last pointed at or had the focus

// Letters and signs act wherever the focus is, but where text is typed; arrows, which also scroll, in the timeline alone.
export function listenToKeys(canvas: TimelineCanvas, view: View, search: Search, focusSearch: () => void) {
  const { timeline } = canvas;
  inUse ??= canvas;
  for (const kind of ["focusin", "pointerenter", "pointerdown"]) canvas.box.addEventListener(kind, () => { inUse = canvas; });
  const zoom = (factor: number) => view.zoom(factor, still(canvas));
  const choose = (chosen: Chosen | null) => {
    if (!chosen) return;
    view.choose(chosen);
    const { from, to } = spanOf(timeline, chosen);
    if (to < view.window.from || from > view.window.to) {
      const half = (view.window.to - view.window.from) / 2;
      view.show({ from: from - half, to: from + half });
    }
    canvas.scrollTo(chosen.lane);
  };
  const keys: Record<string, () => void> = {
    w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => view.pan(-0.15), d: () => view.pan(0.15),
    "+": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": () => view.showAll(),
    "/": focusSearch,
    n: () => choose(search.active ? search.step(true) : null),
    p: () => choose(search.active ? search.step(false) : null),
    f: () => {
      if (view.chosen) view.showAround(spanOf(timeline, view.chosen));
      else if (view.range) view.showAround(view.range);
    },
    m: () => view.select(view.chosen ? spanOf(timeline, view.chosen) : view.window),
    Escape: () => (view.range ? view.select(null) : view.choose(null)),
  };
  const inTimeline: Record<string, () => void> = { Home: () => view.showAll() };
  for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"])
    inTimeline[key] = () => choose(neighbour(canvas, view.chosen, key));
  document.addEventListener("keydown", (event) => {
    if (inUse !== canvas || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = keys[key] ?? (event.target === canvas.box ? inTimeline[key] : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

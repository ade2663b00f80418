// Wheel, pointers and keys on the timeline.
import type { Timeline } from "../data/timeline";
import type { Chosen, View } from "../view";
import { AXIS, type TimelineCanvas } from "./canvas";
import type { Search } from "./search";

export interface Actions { hover(chosen: Chosen | null, x: number, y: number): void; focusSearch(): void }

const CLICK = 4; // pixels that a pointer may move and still click

export function spanOf(timeline: Timeline, { lane, event }: Chosen) {
  return { from: timeline.lanes[lane]!.begin[event]!, to: timeline.lanes[lane]!.end[event]! };
}

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

export function listenToKeys(canvas: TimelineCanvas, view: View, search: Search, actions: Actions) {
  const { timeline } = canvas;
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
    w: () => view.zoom(0.7), s: () => view.zoom(1 / 0.7), a: () => view.pan(-0.15), d: () => view.pan(0.15),
    "+": () => view.zoom(0.7), "-": () => view.zoom(1 / 0.7), "0": () => view.showAll(), Home: () => view.showAll(),
    "/": () => actions.focusSearch(),
    n: () => choose(search.active ? search.step(true) : null),
    p: () => choose(search.active ? search.step(false) : null),
    f: () => {
      if (view.chosen) view.showAround(spanOf(timeline, view.chosen));
      else if (view.range) view.showAround(view.range);
    },
    m: () => view.select(view.chosen ? spanOf(timeline, view.chosen) : view.window),
    Escape: () => (view.range ? view.select(null) : view.choose(null)),
  };
  for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"])
    keys[key] = () => choose(neighbour(canvas, view.chosen, key));
  canvas.box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

export function listenToWheel(canvas: TimelineCanvas, view: View) {
  canvas.box.addEventListener("wheel", (event) => {
    const isFocused = document.activeElement === canvas.box;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.shiftKey || sideways) {
      event.preventDefault();
      view.pan(((sideways ? event.deltaX : event.deltaY) / canvas.plot.width) * 0.8);
    } else if (event.ctrlKey || event.metaKey || isFocused) { // else the page is scrolled
      event.preventDefault();
      const x = event.clientX - canvas.box.getBoundingClientRect().left;
      view.zoom(Math.exp(Math.min(Math.max(event.deltaY, -240), 240) * 0.0028), canvas.timeAt(x));
    }
  }, { passive: false });
}

interface Press { x: number; y: number; from: number; to: number; at: number; selects: boolean; moved: boolean; scrolled: number }

export function listenToPointers(canvas: TimelineCanvas, view: View, actions: Actions) {
  const { box, timeline } = canvas;
  const pointers = new Map<number, PointerEvent>();
  let press: Press | null = null, spread = 0;
  const place = (event: PointerEvent | MouseEvent) => {
    const { left, top } = box.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const distance = () => {
    const [a, b] = [...pointers.values()];
    return a && b ? Math.abs(a.clientX - b.clientX) + Math.abs(a.clientY - b.clientY) : 0;
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button || event.offsetX > box.clientWidth) return;
    const { x, y } = place(event);
    pointers.set(event.pointerId, event);
    spread = distance();
    actions.hover(null, 0, 0);
    press = {
      x, y, ...view.window, at: canvas.timeAt(x), selects: event.shiftKey || y < AXIS, moved: false, scrolled: box.scrollTop,
    };
  });
  window.addEventListener("pointermove", (event) => {
    if (!press || !pointers.has(event.pointerId)) return;
    pointers.set(event.pointerId, event);
    const { x, y } = place(event);
    if (pointers.size === 2) {
      const now = distance();
      if (spread && now) view.zoom(spread / now, canvas.timeAt(x));
      spread = now;
      press.moved = true;
      return;
    }
    if (!press.moved && Math.hypot(x - press.x, y - press.y) < CLICK) return;
    press.moved = true;
    if (press.selects) {
      const now = canvas.timeAt(x);
      canvas.selecting = { from: Math.min(press.at, now), to: Math.max(press.at, now) };
      canvas.draw();
    } else {
      const by = ((press.x - x) / canvas.plot.width) * (press.to - press.from);
      if (event.pointerType === "mouse") box.scrollTop = press.scrolled + press.y - y;
      view.show({ from: press.from + by, to: press.to + by });
    }
  });
  const end = (event: PointerEvent) => {
    pointers.delete(event.pointerId);
    if (!press || pointers.size) return;
    const { x, y } = place(event);
    if (canvas.selecting) view.select(canvas.selecting);
    else if (!press.moved && event.type === "pointerup") click(x, y);
    canvas.selecting = null;
    press = null;
    canvas.draw();
  };
  const click = (x: number, y: number) => {
    const row = canvas.rowAt(y);
    if (row && !row.lane) canvas.toggle(row.process);
    else view.choose(canvas.eventAt(x, y));
  };
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
  box.addEventListener("dblclick", (event) => {
    const { x, y } = place(event);
    const chosen = canvas.eventAt(x, y);
    if (chosen) view.showAround(spanOf(timeline, chosen));
  });
  box.addEventListener("mousemove", (event) => {
    if (press) return;
    const { x, y } = place(event);
    actions.hover(canvas.eventAt(x, y), event.clientX, event.clientY);
  });
  box.addEventListener("mouseleave", () => actions.hover(null, 0, 0));
}

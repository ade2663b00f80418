// Wheel and pointers on the timeline.
import type { Timeline } from "../data/timeline";
import type { Chosen, View } from "../view";
import type { TimelineCanvas } from "./canvas";
import { iterationAt } from "./iterations";

export interface Pointed { event: Chosen | null; iteration: number } // -1: none
export type Hover = (at: Pointed | null, x: number, y: number) => void;

const CLICK = 4; // pixels that a pointer may move and still click

export function spanOf(timeline: Timeline, { lane, event }: Chosen) {
  return { from: timeline.lanes[lane]!.begin[event]!, to: timeline.lanes[lane]!.end[event]! };
}

// Within its border, in pixels.
function placeOn(box: HTMLElement, event: MouseEvent) {
  const { left, top } = box.getBoundingClientRect();
  return { x: event.clientX - left - box.clientLeft, y: event.clientY - top - box.clientTop };
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
      view.zoom(Math.exp(Math.min(Math.max(event.deltaY, -240), 240) * 0.0028), canvas.timeAt(placeOn(canvas.box, event).x));
    }
  }, { passive: false });
}

interface Press { x: number; y: number; from: number; to: number; at: number; selects: boolean; moved: boolean; scrolled: number }

export function listenToPointers(canvas: TimelineCanvas, view: View, hover: Hover) {
  const { box, timeline } = canvas;
  const pointers = new Map<number, PointerEvent>();
  let press: Press | null = null, spread = 0;
  const place = (event: MouseEvent) => placeOn(box, event);
  const pointed = (x: number, y: number): Pointed => ({
    event: canvas.eventAt(x, y),
    iteration: timeline.iterations && x >= canvas.plot.left && canvas.isInIterations(y) ? iterationAt(timeline.iterations, canvas.timeAt(x)) : -1,
  });
  const distance = () => {
    const [a, b] = [...pointers.values()];
    return a && b ? Math.abs(a.clientX - b.clientX) + Math.abs(a.clientY - b.clientY) : 0;
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button || event.offsetX > box.clientWidth) return;
    const { x, y } = place(event);
    pointers.set(event.pointerId, event);
    spread = distance();
    hover(null, 0, 0);
    press = {
      x, y, ...view.window, at: canvas.timeAt(x), selects: event.shiftKey || y < canvas.axis, moved: false, scrolled: box.scrollTop,
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
    else if (!press.moved && event.type === "pointerup") click(x, y, event.pointerType !== "mouse");
    canvas.selecting = null;
    press = null;
    canvas.draw();
  };
  const click = (x: number, y: number, finger: boolean) => {
    const row = canvas.rowAt(y);
    const { iterations } = timeline, iteration = pointed(x, y).iteration;
    if (iterations && iteration >= 0) view.select({ from: iterations.begin[iteration]!, to: iterations.end[iteration]! });
    else if (row && canvas.isFold(x, row, finger)) canvas.toggle(row.process);
    else view.choose(canvas.eventAt(x, y));
  };
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
  box.addEventListener("dblclick", (event) => {
    const { x, y } = place(event);
    const chosen = canvas.eventAt(x, y);
    if (chosen) view.showAround(spanOf(timeline, chosen));
  });
  // A finger that taps an event has it below, and no pointer that a tip could stand beside.
  box.addEventListener("pointermove", (event) => {
    if (press || event.pointerType !== "mouse") return;
    const { x, y } = place(event);
    canvas.pointer = x;
    box.style.cursor = canvas.isFold(x, canvas.rowAt(y)) ? "pointer" : "";
    hover(pointed(x, y), event.clientX, event.clientY);
  });
  box.addEventListener("pointerleave", () => {
    canvas.pointer = null;
    hover(null, 0, 0);
  });
}

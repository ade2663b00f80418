// A timeline with what belongs to it: search and zoom, the minimap, curves, what is selected and chosen.
import type { Phase } from "../data/answers";
import type { Timeline } from "../data/timeline";
import { h } from "../dom";
import { count, time } from "../format";
import type { Chosen, View } from "../view";
import { TimelineCanvas } from "./canvas";
import { Curves, type Curve } from "./curves";
import { Details, Tip, titleOf } from "./details";
import { listenToPointers, listenToWheel, spanOf } from "./input";
import { listenToKeys } from "./keys";
import { Minimap } from "./minimap";
import { Search } from "./search";

function searchBar(canvas: TimelineCanvas, view: View, search: Search, go: (to: Chosen) => void) {
  const said = h("span", { class: "note", role: "status" });
  const step = (forward: boolean) => {
    const next = search.active ? search.step(forward) : null;
    if (next) go(next);
  };
  const input = h("input", {
    type: "search", placeholder: "Find a function or kernel", "aria-label": "Find a function or kernel in the timeline",
    oninput: () => view.find(input.value),
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "Enter") step(!event.shiftKey);
      if (event.key === "Escape") canvas.box.focus();
    },
  });
  view.listen((what) => {
    if (what !== "search") return;
    search.run();
    canvas.unfold(search.processes());
    if (input.value !== view.search) input.value = view.search;
    said.textContent = search.active ? `${count(search.total)} found` : "";
    canvas.draw();
  });
  const button = (text: string, label: string, act: () => void) => h("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const bar = h("div", { class: "toolbar" }, h("div", { class: "find" }, input, button("↑", "Previous found", () => step(false)),
    button("↓", "Next found", () => step(true)), said),
    h("div", { class: "zoom" }, button("−", "Zoom out", () => view.zoom(1 / 0.6)), button("+", "Zoom in", () => view.zoom(0.6)),
      button("Whole trace", "Show the whole trace", () => view.showAll()),
      button("Select view", "Select view: the range that is shown", () => view.select(view.window))));
  return { bar, input };
}

function rangeBar(view: View) {
  const text = h("span", { role: "status" });
  const box = h("div", { class: "range", hidden: true }, text,
    h("button", { type: "button", onclick: () => view.range && view.showAround(view.range) }, "Zoom to it"),
    h("button", { type: "button", onclick: () => view.select(null) }, "Clear"));
  view.listen((what) => {
    if (what !== "range") return;
    box.hidden = !view.range;
    text.textContent = view.range ? `Selected: ${view.describe(view.range)}` : "";
  });
  return box;
}

function notesOf(timeline: Timeline, hidden: number): string[] {
  const { left_out } = timeline, notes: string[] = [];
  if (!timeline.exact)
    notes.push(`This page cannot hold all events: those less than ${time(timeline.resolution_ns)} apart are merged (pale; the tip gives their number). Streams are not drawn.`);
  if (timeline.details_left_out) notes.push("The arguments of some calls are not in this page: there are too many different ones.");
  if (left_out.of_threads) notes.push(`${count(left_out.of_threads)} events of further threads are not drawn.`);
  if (left_out.of_queues) notes.push(`${count(left_out.of_queues)} operations of further GPU streams are not drawn.`);
  if (timeline.iterations?.left_out) notes.push(`${count(timeline.iterations.left_out)} further iterations are not drawn.`);
  if (left_out.too_late) notes.push(`${count(left_out.too_late)} events whose time is impossible are not drawn.`);
  if (hidden) notes.push(`${count(hidden)} further streams are not drawn.`);
  return notes;
}

export function legendOf(timelines: Timeline[]): HTMLElement {
  const used = new Set(timelines.flatMap((timeline) =>
    timeline.lanes.flatMap((lane) => [...new Set(lane.kinds)].map((kind) => timeline.kinds[kind]!.category))));
  const key = (look: string, name: string) => h("li", {}, h("span", { class: `key ${look}`, "aria-hidden": "true" }), name);
  const inWindows = timelines.some(({ processes }) => processes.some((one) => one.gpu_windows));
  return h("ul", { class: "legend", "aria-label": "Colours" }, ...timelines[0]!.categories.flatMap((name, index) =>
    used.has(index) ? [key(`c-${name.replace(" ", "-")}`, name)] : []), inWindows && key("unrecorded", "GPU times not recorded"));
}

// How to move in it: with a mouse and keys, or with fingers; the style sheet shows one of them.
const KEYS: [string, string][] = [["W S", "zoom"], ["A D", "move"], ["← → ↑ ↓", "next event, in the timeline"], ["/", "find"], ["N P", "next and previous found"],
  ["F", "zoom to the event"], ["M", "select its time range"], ["0", "whole trace"], ["Esc", "clear"]];
export const keysNote = () => h("div", { class: "note keys" },
  h("p", { class: "by-mouse" }, "Drag to move, Shift and drag (or drag the times) to select a range, Ctrl and wheel to zoom; once the timeline has been clicked, the wheel alone zooms. A click on an iteration selects its time. Keys: ",
    ...KEYS.flatMap(([key, does], index) => [index ? " · " : "", h("kbd", {}, key), ` ${does}`])),
  h("p", { class: "by-touch" }, "Drag to move, spread two fingers to zoom, tap an event to read about it, tap it twice to zoom to it. " +
    "Drag the times to select a range. Tap the triangle beside a process to fold it."));

export class Section {
  readonly parts: HTMLElement[];
  readonly canvas: TimelineCanvas;
  readonly curves: Curves;
  readonly search: Search;
  private readonly minimap: Minimap;

  // `side`: "A" or "B" where the page has two.
  constructor(readonly timeline: Timeline, readonly view: View, phases: Phase[], curves: Curve[], side = "") {
    this.search = new Search(timeline, view);
    this.canvas = new TimelineCanvas(timeline, view, this.search, phases, side);
    this.minimap = new Minimap(timeline, view);
    this.curves = new Curves(curves, view, side);
    const { canvas, search } = this, tip = new Tip(timeline);
    const go = (chosen: Chosen) => {
      view.choose(chosen);
      view.showAround(spanOf(timeline, chosen));
      canvas.scrollTo(chosen.lane);
    };
    const { bar, input } = searchBar(canvas, view, search, go);
    listenToKeys(canvas, view, search, () => { input.focus(); input.select(); });
    listenToWheel(canvas, view);
    listenToPointers(canvas, view, tip.show.bind(tip));
    const notes = notesOf(timeline, canvas.layout.hidden).map((note) => h("p", { class: "note" }, note));
    this.parts = timeline.lanes.length
      ? [bar, this.minimap.canvas, this.curves.box, canvas.box, rangeBar(view), new Details(timeline, view, go, side).box, ...notes, this.said(side), tip.box]
      : [h("p", { class: "note" }, "There is nothing to draw.")];
  }
  // For those who hear the page.
  private said(side: string): HTMLElement {
    const { timeline, view } = this, said = h("p", { class: "hidden", id: `timeline-said${side}`, role: "status" });
    view.listen((what) => {
      if (what === "chosen" && view.chosen) {
        const { lane, event } = view.chosen, of = timeline.lanes[lane]!;
        said.textContent = `${titleOf(timeline, of, event)}, ${time(of.end[event]! - of.begin[event]!)}, ${view.describe(spanOf(timeline, view.chosen))}`;
      } else if (what === "window") said.textContent = `Shown: ${view.describe(view.window)}`;
    });
    return said;
  }
  has({ lane, event }: Chosen): boolean {
    return event < (this.timeline.lanes[lane]?.size ?? 0);
  }
  find(text: string) {
    this.view.find(text);
    const first = this.search.step(true);
    if (first) this.canvas.scrollTo(first.lane);
  }
  recolor() {
    this.canvas.recolor();
    this.minimap.recolor();
    this.curves.draw();
  }
  // Once it is in the page.
  begin() {
    this.canvas.resize();
    this.curves.draw();
    window.addEventListener("resize", () => this.canvas.resize());
  }
}

// The page from top to bottom. The verdict is drawn as soon as the answers are read, before the
// browser has come to the timeline, which may be long.
import { answersIn, type Answers } from "./data/answers";
import { unpack } from "./data/packed";
import { timelineIn, type Timeline } from "./data/timeline";
import { h } from "./dom";
import { count, time } from "./format";
import { headOf } from "./head";
import "./style.css";
import { tablesOf } from "./tables/range";
import { Tabs } from "./tables/tabs";
import { TimelineCanvas } from "./timeline/canvas";
import { Curves, curvesOf } from "./timeline/curves";
import { Details, Tip, titleOf } from "./timeline/details";
import { listenToKeys, listenToPointers, listenToWheel, spanOf } from "./timeline/input";
import { Minimap } from "./timeline/minimap";
import { Search } from "./timeline/search";
import { View, type Chosen, type Span } from "./view";

const page = document.getElementById("page")!;
let show: (span: Span) => void = () => {};
let recolor: () => void = () => {};

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
    notes.push(`There are too many events for each to be in this page: short ones that began within ${time(timeline.resolution_ns)} of each other are drawn ` +
      "as one, paler, which says how many it stands for. Streams are not drawn.");
  if (timeline.details_left_out) notes.push("The arguments of some calls are not in this page: there are too many different ones.");
  if (left_out.of_threads) notes.push(`${count(left_out.of_threads)} events of further threads are not drawn.`);
  if (left_out.of_queues) notes.push(`${count(left_out.of_queues)} works of further GPU queues are not drawn.`);
  if (left_out.too_late) notes.push(`${count(left_out.too_late)} events whose time is impossible are not drawn.`);
  if (hidden) notes.push(`${count(hidden)} further streams are not drawn.`);
  return notes;
}

function legend(timeline: Timeline): HTMLElement {
  const used = new Set(timeline.lanes.flatMap((lane) => [...new Set(lane.kinds)].map((kind) => timeline.kinds[kind]!.category)));
  return h("ul", { class: "legend", "aria-label": "Colours" }, ...timeline.categories.flatMap((name, index) =>
    used.has(index) ? [h("li", {}, h("span", { class: `key c-${name.replace(" ", "-")}`, "aria-hidden": "true" }), name)] : []));
}

function drawTimeline(answers: Answers, timeline: Timeline) {
  const view = new View({ from: timeline.from, to: timeline.to });
  const search = new Search(timeline, view), tip = new Tip(timeline);
  const canvas = new TimelineCanvas(timeline, view, search, answers.answers.summary.summary.phases ?? []);
  const minimap = new Minimap(timeline, view);
  const curves = new Curves(curvesOf(timeline, answers.answers.memory.memory), view);
  const section = h("section", { class: "timeline", "aria-labelledby": "timeline-title" });
  show = (span) => {
    view.showAround(span);
    section.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  };
  const go = (chosen: Chosen) => {
    view.choose(chosen);
    view.showAround(spanOf(timeline, chosen));
    canvas.scrollTo(chosen.lane);
  };
  const details = new Details(timeline, view, go);
  const { bar, input } = searchBar(canvas, view, search, go);
  const actions = { hover: tip.show.bind(tip), focusSearch: () => { input.focus(); input.select(); } };
  listenToKeys(canvas, view, search, actions);
  listenToWheel(canvas, view);
  listenToPointers(canvas, view, actions);
  const said = h("p", { class: "hidden", id: "timeline-said", role: "status" });
  view.listen((what) => {
    if (what === "chosen" && view.chosen) {
      const { lane, event } = view.chosen, of = timeline.lanes[lane]!;
      said.textContent = `${titleOf(timeline, of, event)}, ${time(of.end[event]! - of.begin[event]!)}, ${view.describe(spanOf(timeline, view.chosen))}`;
    } else if (what === "window") said.textContent = `Shown: ${view.describe(view.window)}`;
  });
  recolor = () => {
    canvas.recolor();
    minimap.recolor();
    curves.draw();
  };
  const places = { view, timeline, show, search: (text: string) => {
    view.find(text);
    const first = search.step(true);
    if (first) canvas.scrollTo(first.lane);
    section.scrollIntoView({ block: "start" });
  } };
  const isEmpty = !timeline.lanes.length;
  section.append(h("h2", { id: "timeline-title" }, "Timeline"));
  if (isEmpty) section.append(h("p", { class: "note" }, "There is nothing to draw."));
  else
    section.append(bar, minimap.canvas, curves.box, canvas.box, rangeBar(view), details.box, legend(timeline), ...notesOf(timeline, canvas.layout.hidden).map((note) => h("p", { class: "note" }, note)),
      h("p", { class: "note keys" }, "Drag to move, Shift and drag (or drag the times) to select a range, Ctrl and wheel to zoom; once the timeline has been clicked, the wheel alone zooms. " +
        "Keys: W S zoom, A D move, arrows go from event to event, / finds, N P next and previous found, F zooms to what is chosen, M selects it, 0 shows all, Esc clears."), said, tip.box);
  page.querySelector(".loading")?.remove();
  page.append(section);
  const has = ({ lane, event }: Chosen) => event < (timeline.lanes[lane]?.size ?? 0);
  view.restore(location.hash, has);
  page.append(new Tabs(answers, places).box, h("footer", {}, `Written by cudabpf ${answers.version}. Nothing in this file is loaded from elsewhere, and nothing is sent.`));
  window.addEventListener("hashchange", () => view.restore(location.hash, has));
  canvas.resize();
  curves.draw();
  window.addEventListener("resize", () => canvas.resize());
  document.documentElement.dataset["drawn"] = "true";
  Object.assign(window, { // for tests, and for whoever opens the console
    cudabpfReport: { answers, view, timeline, canvas, curves, search, tablesOf: (span: Span) => tablesOf(timeline, span) },
  });
}

function fail(error: unknown) {
  page.querySelector(".loading")?.remove();
  page.append(h("p", { class: "missing", role: "alert" }, `This page cannot be drawn: ${error instanceof Error ? error.message : String(error)}`));
}

async function start() {
  const parsed = new Promise<void>((done) =>
    document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", () => done()) : done());
  const answers = answersIn(await unpack("answers"));
  page.append(headOf(answers, (span) => show(span), () => recolor()), h("p", { class: "note loading" }, "The timeline is being read …"));
  await parsed;
  const bytes = await unpack("timeline");
  await new Promise((drawn) => setTimeout(drawn)); // the verdict is on the screen first
  drawTimeline(answers, timelineIn(bytes));
}

start().catch(fail);

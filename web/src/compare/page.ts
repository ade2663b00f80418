// The page of two traces: what differs first, then both timelines, one above the other.
import type { Answers, Comparison } from "../data/answers";
import type { Timeline } from "../data/timeline";
import { h } from "../dom";
import { Tabs } from "../tables/tabs";
import { curvesOf, toSameScale } from "../timeline/curves";
import { keysNote, legendOf, Section } from "../timeline/section";
import { View, type Span } from "../view";
import { headOf } from "./head";
import { Linked } from "./linked";
import { Ranges } from "./range";
import { tabsOf } from "./tables";

const phasesOf = ({ answers }: Answers) => answers.summary.summary.phases ?? [];

const lengthOf = ({ from, to }: Span) => to - from;

// From the first after warm-up to the last.
function iterationsIn({ iterations }: Timeline): Span | null {
  if (!iterations) return null;
  const { begin, end, warm_up, first, size } = iterations;
  return { from: begin[Math.min(Math.max(0, warm_up + 1 - first), size - 1)]!, to: end[size - 1]! };
}

// Where both repeat something, the first are one above the other, and the longer of the two fills the page.
function showIterations(linked: Linked, views: readonly [View, View], of: (Span | null)[]) {
  const [a, b] = of;
  if (!a || !b) return;
  linked.align(Math.round(b.from - a.from));
  const length = Math.max(lengthOf(a), lengthOf(b));
  views[0].show({ from: a.from - 0.02 * length, to: a.from + 1.02 * length });
}

// Whether they move together, and what lies above what.
function controls(linked: Linked, told: Comparison, iterations: (Span | null)[]) {
  const begins = ({ answers }: Answers) => new Map((answers.summary.summary.phases ?? []).flatMap(({ name, seen, begin_us }) =>
    (seen && begin_us !== undefined ? [[name, begin_us * 1000] as const] : [])));
  const ofA = begins(told.a), ofB = begins(told.b);
  const shifts: [string, number][] = [["the traces' beginnings", 0]];
  if (iterations[0] && iterations[1]) shifts.push(["the first iterations after warm-up", Math.round(iterations[1].from - iterations[0].from)]);
  for (const [name, at] of ofA) if (ofB.has(name)) shifts.push([`the beginnings of ${name}`, Math.round(ofB.get(name)! - at)]);
  const byHand = h("option", { value: "", disabled: true, hidden: true }, "as they were moved");
  const align = h("select", { id: "align", onchange: () => linked.align(shifts[Number(align.value)]![1]) },
    ...shifts.map(([name], index) => h("option", { value: index }, name)), byHand);
  const toggle = h("input", { type: "checkbox", id: "linked", onchange: () => {
    linked.set(toggle.checked);
    show();
  } });
  const show = () => {
    toggle.checked = linked.isOn;
    align.disabled = !linked.isOn;
    const index = shifts.findIndex(([, shift]) => shift === linked.shifted);
    align.value = index < 0 ? "" : String(index);
  };
  show();
  const box = h("div", { class: "linked" }, h("label", {}, toggle, " Move both, to the same scale"),
    h("label", {}, "One above the other: ", align));
  return { box, show };
}

export function comparisonPage(page: HTMLElement, told: Comparison): (timelines: Timeline[]) => void {
  let recolor = () => {};
  page.append(headOf(told, () => recolor()));
  return (timelines) => {
    const a = timelines[0]!, b = timelines[1]!, answers = [told.a, told.b] as const;
    const curves = [curvesOf(a, told.a.answers.memory.memory), curvesOf(b, told.b.answers.memory.memory)] as const;
    toSameScale(...curves);
    const views = [new View({ from: a.from, to: a.to }), new View({ from: b.from, to: b.to }, "b.")] as const;
    const linked = new Linked(...views), ranges = new Ranges([a, b], views, linked);
    const drawn = timelines.map((timeline, i) => new Section(timeline, views[i]!, phasesOf(answers[i]!), curves[i]!, "AB"[i]));
    const iterations = timelines.map(iterationsIn);
    showIterations(linked, views, iterations);
    const { box, show } = controls(linked, told, iterations);
    page.append(h("section", { class: "timeline", "aria-labelledby": "timeline-title" }, h("h2", { id: "timeline-title" }, "Timelines"), box,
      ...drawn.flatMap((section, i) => [h("h3", { class: "of-side" }, h("b", {}, "AB"[i]), ` ${answers[i]!.title}`), ...section.parts]),
      legendOf(timelines), keysNote()));
    recolor = () => drawn.forEach((section) => section.recolor());
    const restore = () => linked.during(() =>
      views.forEach((view, i) => view.restore(location.hash, (chosen) => drawn[i]!.has(chosen))));
    const again = () => {
      restore();
      show();
    };
    again();
    window.addEventListener("hashchange", again);
    page.append(new Tabs(tabsOf(told.difference, ranges), ...views).box);
    drawn.forEach((section) => section.begin());
    Object.assign(window, { cudabpfReport: { told, linked, ranges, sides: drawn } }); // for tests, and for whoever opens the console
  };
}

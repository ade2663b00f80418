// The page of one trace.
import type { Answers } from "./data/answers";
import type { Timeline } from "./data/timeline";
import { h } from "./dom";
import { headOf } from "./head";
import { servedBar } from "./served";
import { tabsOf } from "./tables/answers";
import { tablesOf } from "./tables/range";
import { Tabs } from "./tables/tabs";
import { curvesOf } from "./timeline/curves";
import { keysNote, legendOf, Section } from "./timeline/section";
import { View, type Span } from "./view";

// Brings it into sight.
export function scrollTo(element: Element) {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "start", behavior: isStill ? "auto" : "smooth" });
}

// Draws what is read first; what it returns draws the rest.
export function reportPage(page: HTMLElement, answers: Answers): (timelines: Timeline[]) => void {
  let show: (span: Span) => void = () => {}, recolor = () => {};
  page.append(servedBar(answers) ?? "", headOf(answers, (span) => show(span), () => recolor()));
  return (timelines) => {
    const timeline = timelines[0]!;
    const view = new View({ from: timeline.from, to: timeline.to });
    const drawn = new Section(timeline, view, answers.answers.summary.summary.phases ?? [], curvesOf(timeline, answers.answers.memory.memory));
    const { canvas, curves, search } = drawn;
    const section = h("section", { class: "timeline", "aria-labelledby": "timeline-title" }, h("h2", { id: "timeline-title" }, "Timeline"),
      ...drawn.parts, timeline.lanes.length > 0 && legendOf([timeline]), timeline.lanes.length > 0 && keysNote());
    show = (span) => {
      view.showAround(span);
      scrollTo(section);
    };
    recolor = () => drawn.recolor();
    page.append(section);
    const has = drawn.has.bind(drawn);
    view.restore(location.hash, has);
    page.append(new Tabs(tabsOf(answers, { view, timeline, show, search: (text) => {
      drawn.find(text);
      scrollTo(section);
    } }), view).box);
    window.addEventListener("hashchange", () => view.restore(location.hash, has));
    drawn.begin();
    Object.assign(window, { // for tests, and for whoever opens the console
      cudabpfReport: { answers, view, timeline, canvas, curves, search, tablesOf: (span: Span) => tablesOf(timeline, span) },
    });
  };
}

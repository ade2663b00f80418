// The page of one trace.
import type { Answers } from "./data/answers";
import type { Timeline } from "./data/timeline";
import { h } from "./dom";
import { headOf, type HeadActions } from "./head";
import { servedBar } from "./served";
import { spanOfProcess, tabsOf } from "./tables/answers";
import { iterationOf } from "./tables/iterations";
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
  const actions: HeadActions = { show: () => {}, showProcess: () => {}, recolor: () => {} };
  page.append(servedBar(answers) ?? "", headOf(answers, actions));
  return (timelines) => {
    const timeline = timelines[0]!;
    const view = new View({ from: timeline.from, to: timeline.to });
    const drawn = new Section(timeline, view, answers.answers.summary.summary.phases ?? [], curvesOf(timeline, answers.answers.memory.memory));
    const { canvas, curves, search } = drawn;
    const section = h("section", { class: "timeline", "aria-labelledby": "timeline-title" }, h("h2", { id: "timeline-title" }, "Timeline"),
      ...drawn.parts, timeline.lanes.length > 0 && legendOf([timeline]), timeline.lanes.length > 0 && keysNote());
    const show = (span: Span) => {
      view.showAround(span);
      scrollTo(section);
    };
    actions.show = show;
    actions.showProcess = (pid) => {
      const span = spanOfProcess(timeline, pid);
      if (!span) return;
      show(span);
      canvas.scrollToProcess(pid);
    };
    actions.recolor = () => drawn.recolor();
    page.append(section);
    const has = drawn.has.bind(drawn);
    const restore = () => {
      view.restore(location.hash, has);
      // A link may name one: #iteration=12
      const iteration = iterationOf(timeline.iterations, Number(/[#&]iteration=(\d{1,9})(&|$)/.exec(location.hash)?.[1]));
      if (!iteration) return;
      view.select(iteration);
      view.showAround(iteration);
    };
    restore();
    page.append(new Tabs(tabsOf(answers, { view, timeline, show, search: (text) => {
      drawn.find(text);
      scrollTo(section);
    } }), view).box);
    window.addEventListener("hashchange", restore);
    drawn.begin();
    Object.assign(window, { // for tests, and for whoever opens the console
      cudabpfReport: { answers, view, timeline, canvas, curves, search, tablesOf: (span: Span) => tablesOf(timeline, span) },
    });
  };
}

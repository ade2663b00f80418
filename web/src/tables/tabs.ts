// The tables behind their tabs. With a range selected, those that can be counted again are.
import type { Answers } from "../data/answers";
import { h } from "../dom";
import { count, moment } from "../format";
import * as of from "./answers";
import { tablesOf } from "./range";

const TABS = [["functions", "Functions"], ["kernels", "Kernels"], ["ioctls", "Ioctls"], ["gaps", "Gaps"], ["memory", "Memory"],
  ["errors", "Errors"], ["processes", "Processes"]] as const;
const RECOUNTED = ["functions", "kernels", "ioctls"];

export class Tabs {
  readonly box: HTMLElement;
  private readonly panel = h("div", { id: "panel", role: "tabpanel", tabindex: 0 });
  private readonly buttons: HTMLButtonElement[];

  constructor(private readonly answers: Answers, private readonly places: of.Places) {
    this.buttons = TABS.map(([id, name], index) => h("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel", onclick: () => this.open(id),
      onkeydown: (event: KeyboardEvent) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        const next = TABS[(index + step + TABS.length) % TABS.length]![0];
        this.open(next);
        document.getElementById(`tab-${next}`)?.focus();
      },
    }, name, this.badge(id)));
    this.box = h("section", { class: "tables", "aria-label": "Tables" },
      h("div", { role: "tablist", "aria-label": "Tables", class: "tabs" }, ...this.buttons), this.panel);
    places.view.listen((what) => {
      if (what === "range") this.draw();
    });
    this.open(places.view.tab);
  }
  private badge(id: string): HTMLElement | null {
    const { errors } = this.answers.answers;
    const bad = errors.failed_calls - errors.usual_failures + errors.unfinished_calls;
    return id === "errors" && bad > 0 ? h("span", { class: "badge" }, count(bad)) : null;
  }
  private open(tab: string) {
    this.places.view.openTab(TABS.some(([id]) => id === tab) ? tab : "functions");
    this.draw();
  }
  private draw() {
    const { view } = this.places, { tab, range } = view;
    this.buttons.forEach((button, index) => {
      const isOpen = TABS[index]![0] === tab;
      button.setAttribute("aria-selected", String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
    });
    this.panel.setAttribute("aria-labelledby", `tab-${tab}`);
    this.panel.replaceChildren(...(range && RECOUNTED.includes(tab) ? this.ofRange(tab, range) : this.ofTrace(tab)));
    if (range && !RECOUNTED.includes(tab)) this.panel.prepend(h("p", { class: "note" }, "This table is of the whole report, not of the selected range."));
  }
  private ofRange(tab: string, range: { from: number; to: number }): HTMLElement[] {
    const span = `${moment(range.from, 1)} to ${moment(range.to, 1)}`;
    if (!this.places.timeline.exact)
      return [h("p", { class: "note" }, `The timeline holds too many events for each to be in this page, so ${span} cannot be counted here. ` +
        `This can: cudabpf calls --from ${range.from / 1e9}s --to ${range.to / 1e9}s, with the trace. Below is the whole report.`), ...this.ofTrace(tab)];
    const note = `Counted in this page from the timeline, from ${span}: what began then. cudabpf --from and --to give the same figures.`;
    return of.ofRange(tab, tablesOf(this.places.timeline, range), this.places, note);
  }
  private ofTrace(tab: string): HTMLElement[] {
    const { answers, places } = this;
    const { calls, calls_left_out } = answers.answers.calls;
    switch (tab) {
      case "kernels": return of.kernels(answers, places);
      case "ioctls": return of.ioctls(answers, places);
      case "gaps": return of.gaps(answers, places);
      case "memory": return of.memory(answers, places);
      case "errors": return of.errors(answers, places);
      case "processes": return of.processes(answers, places);
      default: return [of.functions(calls, places, "Functions", calls_left_out ? `${count(calls_left_out)} more are not in this page.` : "")];
    }
  }
}

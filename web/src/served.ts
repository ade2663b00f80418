// What a report has besides when it is looked at from `cudabpf serve`: the way back to the list, and,
// of a trace whose capture had not ended, a way to have it made anew. The view stays: the address has it.
import type { Answers } from "./data/answers";
import { h } from "./dom";

export function servedBar({ served }: Answers): HTMLElement | undefined {
  return served && h("nav", { class: "served", "aria-label": "Traces" }, h("a", { href: "/" }, "All traces"),
    !served.ended && h("span", { class: "note" }, served.running ? "Recording goes on: this is what the trace had when the page was made. "
      : "The trace had no end when this was made. ",
      h("button", { type: "button", onclick: () => location.reload() }, "Update")));
}

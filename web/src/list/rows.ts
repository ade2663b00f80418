// A row a trace, the newest first. Rows stay the same elements as long as their trace is there, so that
// whoever is at one with the keyboard or a screen reader stays there when figures change.
import { h } from "../dom";
import { bytes, count, micro } from "../format";
import { errorsOf, lengthOf, lossesOf, startOf, verdictOf, type ListedTrace } from "./data";

const STATES = { unread: "being read", unreadable: "unreadable", ended: "", running: "running", cut_off: "cut off" };

const when = (one: ListedTrace) => {
  const start = startOf(one);
  return Number.isNaN(start) ? "" : new Date(start).toLocaleString("sv");
};

interface Cell { text: string; bad?: boolean; title?: string | undefined }

const COLUMNS: { name: string; number?: boolean; wide?: boolean; cell: (one: ListedTrace) => Cell }[] = [
  { name: "began", cell: (one) => ({ text: when(one), title: one.trace?.started ? undefined : "when its file was last written: it does not say when it began" }) },
  { name: "took", number: true, cell: (one) => ({ text: micro(lengthOf(one)) }) },
  { name: "program", wide: true, cell: (one) => ({ text: one.program ?? "" }) },
  { name: "calls", number: true, cell: (one) => ({ text: one.summary ? count(one.summary.calls) : "" }) },
  { name: "launches", number: true, cell: (one) => ({ text: one.summary ? count(one.summary.launched) : "" }) },
  { name: "errors", number: true, cell: (one) => {
    const errors = errorsOf(one);
    return { text: errors === undefined ? "" : count(errors), bad: !!errors };
  } },
  { name: "missing", wide: true, cell: (one) => {
    const text = one.error ?? lossesOf(one);
    return { text: text || (one.trace ? "nothing" : ""), bad: !!text };
  } },
  { name: "verdict", wide: true, cell: (one) => {
    const first = verdictOf(one);
    return { text: first ? first.title + (first.sure === "known" ? "" : `, ${first.sure}`) : "", title: first?.text };
  } },
  { name: "size", number: true, cell: (one) => ({ text: bytes(one.bytes) }) },
];

function set(element: HTMLElement, { text, bad, title }: Cell) {
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("bad", !!bad);
  if (title) element.title = title;
  else element.removeAttribute("title");
}

class Row {
  readonly link = h("a", {});
  readonly state = h("span", { class: "state" });
  readonly cells = COLUMNS.map((column) => h("td", { class: column.number ? "number" : column.wide ? "wide" : "", "data-name": column.name }));
  readonly box = h("tr", {}, h("th", { scope: "row" }, this.link, " ", this.state), ...this.cells);

  show(one: ListedTrace) {
    set(this.link, { text: one.name + (one.files > 1 ? ` and ${one.files - 1} more` : "") });
    if (one.state === "unreadable") this.link.removeAttribute("href");
    else this.link.setAttribute("href", one.report);
    set(this.state, { text: STATES[one.state] ?? "", bad: one.state === "unreadable" || one.state === "cut_off" });
    this.state.classList.toggle("running", one.state === "running");
    COLUMNS.forEach((column, index) => set(this.cells[index]!, column.cell(one)));
  }
}

export class Rows {
  private readonly rows = new Map<string, Row>();
  private readonly body = h("tbody", {});
  readonly box = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Traces", hidden: true },
    h("table", { class: "traces" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "trace"),
      ...COLUMNS.map(({ name, number }) => h("th", { scope: "col", class: number ? "number" : "" }, name)))), this.body));

  show(traces: ListedTrace[]) {
    const sorted = [...traces].sort((a, b) => startOf(b) - startOf(a) || (a.report < b.report ? -1 : 1));
    const there = new Set(sorted.map(({ report }) => report)); // names may look alike; this does not
    for (const [report, row] of this.rows)
      if (!there.has(report)) {
        row.box.remove();
        this.rows.delete(report);
      }
    const at = document.activeElement;
    let before: Element | null = null;
    for (const one of sorted) {
      let row = this.rows.get(one.report);
      if (!row) this.rows.set(one.report, row = new Row());
      row.show(one);
      const place: Element | null = before ? before.nextElementSibling : this.body.firstElementChild;
      if (place !== row.box) this.body.insertBefore(row.box, place);
      before = row.box;
    }
    // One that moves loses the focus.
    if (at instanceof HTMLElement && at !== document.activeElement && this.body.contains(at)) at.focus({ preventScroll: true });
    this.box.hidden = !sorted.length;
  }
}

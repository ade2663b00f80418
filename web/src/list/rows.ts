// A row a trace, sorted by any column and searched in all of them. Rows stay the same elements as long as their trace is
// there, so that whoever is at one with the keyboard or a screen reader stays there when figures change.
import { h } from "../dom";
import { bytes, count, micro } from "../format";
import { errorsOf, lengthOf, lossesOf, startOf, verdictOf, type ListedTrace } from "./data";

const STATES = { unread: "being read", unreadable: "unreadable", ended: "", running: "running", cut_off: "cut off" };

// When its file was written says nothing of when a trace began that was not read yet.
const when = (one: ListedTrace) => {
  const start = startOf(one);
  return Number.isNaN(start) || (!one.started && one.state === "unread") ? "" : new Date(start).toLocaleString("sv");
};
const nameOf = (one: ListedTrace) => one.name + (one.files > 1 ? ` and ${one.files - 1} more` : "");

interface Cell { text: string; bad?: boolean; title?: string | undefined }
interface Column {
  name: string; number?: boolean; wide?: boolean;
  cell: (one: ListedTrace) => Cell;
  value?: (one: ListedTrace) => number | undefined; // what is sorted by, if not the text
}

const COLUMNS: Column[] = [
  { name: "trace", cell: (one) => ({ text: nameOf(one) }) },
  { name: "began", value: startOf,
    cell: (one) => ({ text: when(one), title: one.started || !when(one) ? undefined : "when its file was last written: it does not say when it began" }) },
  { name: "took", number: true, value: lengthOf, cell: (one) => ({ text: micro(lengthOf(one)) }) },
  { name: "host", wide: true, cell: (one) => ({ text: one.host ?? "" }) },
  { name: "GPU", wide: true, cell: (one) => ({ text: one.gpus ?? "" }) },
  { name: "calls", number: true, value: (one) => one.summary?.calls, cell: (one) => ({ text: one.summary ? count(one.summary.calls) : "" }) },
  { name: "launches", number: true, value: (one) => one.summary?.launched, cell: (one) => ({ text: one.summary ? count(one.summary.launched) : "" }) },
  { name: "errors", number: true, value: errorsOf, cell: (one) => {
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
  { name: "size", number: true, value: ({ bytes }) => bytes, cell: (one) => ({ text: bytes(one.bytes) }) },
];
const BEGAN = 1;

// What a search looks at.
const wordsOf = (one: ListedTrace) =>
  [STATES[one.state] ?? "", one.program ?? "", ...COLUMNS.map((column) => column.cell(one).text)].join("\n").toLowerCase();

function set(element: HTMLElement, { text, bad, title }: Cell) {
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("bad", !!bad);
  if (title) element.title = title;
  else element.removeAttribute("title");
}

class Row {
  readonly link = h("a", {});
  readonly state = h("span", { class: "state" });
  readonly program = h("div", { class: "program", "data-name": "program" });
  readonly cells = COLUMNS.slice(1).map((column) => h("td", { class: column.number ? "number" : column.wide ? "wide" : "", "data-name": column.name }));
  readonly box = h("tr", {}, h("th", { scope: "row" }, this.link, " ", this.state, this.program), ...this.cells);

  show(one: ListedTrace) {
    set(this.link, { text: nameOf(one) });
    if (one.state === "unreadable") this.link.removeAttribute("href");
    else this.link.setAttribute("href", one.report);
    set(this.state, { text: STATES[one.state] ?? "", bad: one.state === "unreadable" || one.state === "cut_off" });
    this.state.classList.toggle("running", one.state === "running");
    set(this.program, { text: one.program ?? "", title: one.program });
    COLUMNS.slice(1).forEach((column, index) => set(this.cells[index]!, column.cell(one)));
  }
}

export class Rows {
  private readonly rows = new Map<string, Row>();
  private readonly body = h("tbody", {});
  private traces: ListedTrace[] = [];
  private sorted = BEGAN; // the newest first
  private rising = false;
  private text = "";
  private readonly heads = COLUMNS.map(({ name, number }, index) => h("th", { scope: "col", class: number ? "number" : "" },
    h("button", { type: "button", onclick: () => this.sort(index) }, name)));
  private readonly found = h("span", { class: "note", role: "status" });
  private readonly input = h("input", { type: "search", placeholder: "Find a trace", "aria-label": "Find a trace by anything in its row", oninput: () => {
    this.text = this.input.value.trim().toLowerCase();
    this.fill();
  } });
  readonly box = h("div", { hidden: true }, h("div", { class: "toolbar" }, h("div", { class: "find" }, this.input, this.found)),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Traces" },
      h("table", { class: "traces" }, h("thead", {}, h("tr", {}, ...this.heads)), this.body)));

  private sort(index: number) {
    this.rising = this.sorted === index ? !this.rising : !COLUMNS[index]!.value;
    this.sorted = index;
    this.fill();
  }
  // Those of which nothing is known come last, either way.
  private inOrder(a: ListedTrace, b: ListedTrace): number {
    const { value, cell } = COLUMNS[this.sorted]!, of = (one: ListedTrace) => (value ? value(one) : cell(one).text || undefined);
    const x = of(a), y = of(b), same = a.report < b.report ? -1 : 1; // names may look alike; this does not
    if (x === undefined || y === undefined) return x === y ? same : x === undefined ? 1 : -1;
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return (this.rising ? order : -order) || same;
  }
  show(traces: ListedTrace[]) {
    this.traces = traces;
    this.fill();
  }
  private fill() {
    const shown = this.traces.filter((one) => !this.text || wordsOf(one).includes(this.text)).sort((a, b) => this.inOrder(a, b));
    const there = new Set(shown.map(({ report }) => report));
    for (const [report, row] of this.rows)
      if (!there.has(report)) {
        row.box.remove();
        this.rows.delete(report);
      }
    const at = document.activeElement;
    let before: Element | null = null;
    for (const one of shown) {
      let row = this.rows.get(one.report);
      if (!row) this.rows.set(one.report, row = new Row());
      row.show(one);
      const place: Element | null = before ? before.nextElementSibling : this.body.firstElementChild;
      if (place !== row.box) this.body.insertBefore(row.box, place);
      before = row.box;
    }
    // One that moves loses the focus.
    if (at instanceof HTMLElement && at !== document.activeElement && this.body.contains(at)) at.focus({ preventScroll: true });
    this.heads.forEach((head, index) => {
      if (index === this.sorted) head.setAttribute("aria-sort", this.rising ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    this.found.textContent = this.text ? `${count(shown.length)} of ${count(this.traces.length)}` : "";
    this.box.hidden = !this.traces.length;
  }
}

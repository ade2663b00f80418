// A table that sorts by its heads and shows the rows that have a text.
import { h } from "../dom";

export interface Column<Row> {
  title: string;
  value: (row: Row) => string | number | undefined; // what is sorted by
  show?: (row: Row) => string; // else the value itself
  wide?: boolean;
  kind?: "bar"; // numbers, beside a bar of their share of the largest
  tone?: (row: Row) => "" | "worse" | "better";
}
export interface Link { label: string; go: () => void }
export interface TableOf<Row> {
  caption: string; rows: Row[]; columns: Column<Row>[]; note?: string; link?: (row: Row) => Link | null;
  sortBy: number; // which column at first; -1: none
  atFirst?: number; // how many rows are shown until all are asked for
  rising?: boolean; // at first, the smallest first
  sortValue?: (row: Row) => number; // at first, instead of that column's
}

const AT_FIRST = 50;

export function tableOf<Row>({ caption, rows, columns, sortBy, sortValue, rising: risesAtFirst = false, atFirst = AT_FIRST, note, link }: TableOf<Row>): HTMLElement {
  let sorted = sortBy, first = sortValue, rising = risesAtFirst, text = "", most = atFirst;
  const body = h("tbody"), said = h("p", { class: "note", role: "status" });
  const more = h("button", { type: "button", onclick: () => { most = Infinity; fill(); } });
  const isNumber = columns.map((column) => rows.some((row) => typeof column.value(row) === "number"));
  const heads = columns.map((column, index) => h("th", { scope: "col", class: isNumber[index] ? "number" : column.wide ? "wide" : "" },
    h("button", { type: "button", onclick: () => {
      rising = sorted === index ? !rising : typeof column.value(rows[0]!) === "string";
      sorted = index;
      first = undefined;
      fill();
    } }, column.title)));
  const largest = columns.map((column) =>
    column.kind === "bar" ? rows.reduce((most, row) => Math.max(most, Number(column.value(row) ?? 0)), 0) : 0);
  const shown = (column: Column<Row>, row: Row) => (column.show ? column.show(row) : String(column.value(row) ?? ""));

  function cellOf(row: Row, column: Column<Row>, index: number): HTMLElement {
    const cell = h("td", { class: [isNumber[index] && "number", column.wide && "wide", column.tone?.(row)].filter(Boolean).join(" ") });
    const text = shown(column, row), go = index === 0 && link ? link(row) : null;
    if (go) cell.append(h("button", { type: "button", class: "place", onclick: go.go, title: go.label },
      h("span", { class: "text" }, text || "–"), h("span", { class: "hidden" }, `: ${go.label}`)));
    else cell.append(column.wide ? h("span", { class: "text" }, text) : text);
    if (column.wide && text.length > 60) cell.title = text;
    if (largest[index]) {
      const bar = h("span", { class: "bar", "aria-hidden": "true" });
      bar.style.width = `${(100 * Number(column.value(row) ?? 0)) / largest[index]!}%`;
      cell.prepend(bar);
    }
    return cell;
  }
  function fill() {
    const wanted = rows.filter((row) => !text || columns.some((column) => shown(column, row).toLowerCase().includes(text)));
    const value = first ?? columns[sorted]?.value;
    if (value) wanted.sort((a, b) => {
      const x = value(a) ?? "", y = value(b) ?? "";
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en");
      return rising ? order : -order;
    });
    heads.forEach((head, index) => {
      if (index === sorted) head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    body.replaceChildren(...wanted.slice(0, most).map((row) => h("tr", {}, ...columns.map((column, index) => cellOf(row, column, index)))));
    more.hidden = wanted.length <= most;
    more.textContent = `Show all ${wanted.length.toLocaleString("en")} rows`;
    said.textContent = wanted.length === rows.length ? note ?? "" : `${wanted.length} of ${rows.length} rows. ${note ?? ""}`;
  }
  if (!rows.length) return h("div", { class: "table" }, h("p", { class: "note" }, note || `${caption}: none.`));
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${caption}`, oninput: () => {
    text = filter.value.trim().toLowerCase();
    most = atFirst;
    fill();
  } });
  fill();
  return h("div", { class: "table" },
    h("div", { class: "table-head" }, h("h3", {}, caption), rows.length > 8 && filter),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, ...heads)), body)),
    more, said);
}

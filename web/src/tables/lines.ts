// Where in its Python the program made its calls: a flame graph, and the user's lines.
import type { Answers, LineRow } from "../data/answers";
import { h } from "../dom";
import { columnsOf } from "./columns";
import { Flame } from "./flame";
import { tableOf } from "./table";

export function lines({ answers, columns }: Answers): HTMLElement[] {
  const { stacks } = answers;
  if (!stacks) return [h("p", { class: "note" }, "Where in Python calls were made was not recorded (needs --python).")];
  const flame = new Flame(stacks);
  return [flame.box, tableOf<LineRow>({
    caption: "Lines of Python", rows: stacks.lines, sortBy: stacks.lines.some((row) => row.gpu_us) ? 2 : 1,
    note: "The innermost line that is in no package and not in Python's own library.",
    link: (row) => (row.line.startsWith("(") ? null : { label: "find in the flame graph", go: () => {
      flame.search(row.line);
      flame.box.scrollIntoView({ block: "nearest" });
    } }),
    columns: columnsOf(columns.lines, stacks.lines),
  })];
}

// Of which process and thread the verdict, phases and iterations are; and, where there are several, a row for each before them,
// and their iterations and phases side by side.
import type { Answers, ProcessRow, StepsRow } from "./data/answers";
import { nameOfProcess } from "./data/timeline";
import { h, type Child } from "./dom";
import { count, micro } from "./format";
import { phasesIn } from "./phases";
import { columnsOf as described } from "./tables/columns";
import { tableOf, type Column } from "./tables/table";

const AT_FIRST = 6;

export function whoseOf({ answers }: Answers): Child {
  const { shown } = answers.summary.summary;
  if (!shown) return null;
  const others = shown.other_launches ? ` Other threads made ${count(shown.other_launches)} launches.` : "";
  return h("p", { class: "note whose" }, h("b", {}, `${nameOfProcess(shown)}, thread ${shown.tid}`),
    shown.other_launches ? `${shown.chosen === "asked for" ? "" : `, which ${shown.chosen}`}: the verdict, phases and iterations are its own.` : "", others);
}

export function columnsOf(rows: ProcessRow[]): Column<ProcessRow>[] {
  const has = (of: (row: ProcessRow) => unknown) => rows.some((row) => of(row));
  return [{ title: "process", value: nameOfProcess },
    ...(has((row) => row.command) ? [{ title: "command", value: (row: ProcessRow) => row.command, wide: true }] : []),
    { title: "threads", value: (row) => row.threads, show: (row) => count(row.threads) },
    { title: "calls", value: (row) => row.calls, show: (row) => count(row.calls) },
    { title: "launches", value: (row) => row.launches, show: (row) => count(row.launches) },
    { title: "waiting for the GPU", value: (row) => row.waiting_us, show: (row) => micro(row.waiting_us) },
    ...(has((row) => row.gpu_us) ? [{ title: "on the GPU", value: (row: ProcessRow) => row.gpu_us, show: (row: ProcessRow) => micro(row.gpu_us) }] : []),
    ...(has((row) => row.verdict) ? [{ title: "verdict", value: (row: ProcessRow) =>
      [row.verdict?.title, row.verdict && row.verdict.sure !== "known" ? row.verdict.sure : "", row.shown ? "shown below" : ""].filter(Boolean).join(", ") }] : [])];
}

export function processesOf({ answers }: Answers, show: (pid: number) => void): Child {
  const { processes: rows = [], other_processes } = answers.summary.summary, more = other_processes?.count ?? 0;
  if (rows.length + more < 2) return null;
  return h("section", { class: "of-processes", "aria-label": "Processes" }, tableOf<ProcessRow>({
    caption: `${count(rows.length + more)} processes`, rows, columns: columnsOf(rows), sortBy: -1, atFirst: AT_FIRST,
    note: more ? `${count(more)} more processes are not in this page.` : "", link: (row) => ({ label: "show in the timeline", go: () => show(row.pid) }),
  }));
}

// Of each process those of the thread that launches most: which rank takes longer, and where.
export function stepsOf({ answers, columns }: Answers, show: (pid: number) => void): Child {
  const { steps: rows = [] } = answers.summary.summary;
  if (rows.length < 2) return null;
  const phases = [...new Set(rows.flatMap((row) => phasesIn(row.phases).map(({ name }) => name)))];
  const process: Column<StepsRow> = { title: "process", value: (row) => (row.rank === undefined ? "" : `rank ${row.rank}, `) + nameOfProcess(row) };
  const link = (row: StepsRow) => ({ label: "show in the timeline", go: () => show(row.pid) });
  return h("section", { class: "of-processes", "aria-label": "Processes side by side" },
    tableOf<StepsRow>({ caption: "Iterations of each process", rows, sortBy: -1, atFirst: AT_FIRST, link, columns: described(columns.steps, rows, { pid: process.value as (row: StepsRow) => string }) }),
    tableOf<StepsRow>({ caption: "Phases of each process", rows, sortBy: -1, atFirst: AT_FIRST, columns: [process, ...phases.map((name): Column<StepsRow> => {
      const timeOf = (row: StepsRow) => phasesIn(row.phases).find((phase) => phase.name === name)?.time_us;
      return { title: name, value: timeOf, show: (row) => micro(timeOf(row)) };
    })] }));
}

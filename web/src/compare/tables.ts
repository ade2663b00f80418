// What `diff` answers, in tables: the figures of both, and the difference.
import type { Change, Difference, KernelChange, TimedChange } from "../data/answers";
import { h } from "../dom";
import { count, micro } from "../format";
import { tableOf, type Column } from "../tables/table";
import type { Tab } from "../tables/tabs";
import { changeOf, figureOf, JUDGED, judged, percentOf, signedTime } from "./head";
import type { Ranges } from "./range";

const more = (rows: number | undefined) => (rows ? `${count(rows)} more rows are not in this page.` : "");
const figure = <Row>(title: string, value: (row: Row) => number | null | undefined, show: (value: number) => string): Column<Row> => ({
  title, value: (row) => value(row) ?? undefined, show: (row) => { const at = value(row); return at === undefined || at === null ? "" : show(at); },
});

const medians: Column<TimedChange>[] = [
  figure("p50 A", (row) => row.a?.p50_us, micro), figure("p50 B", (row) => row.b?.p50_us, micro),
  { title: "Δ p50", value: (row) => row.p50_change_percent,
    show: (row) => judged[row.p50] ?? (row.p50_change_percent === undefined ? "" : percentOf(100, 100 + row.p50_change_percent)),
    tone: (row) => (row.p50 === "slower" ? "worse" : row.p50 === "faster" ? "better" : "") }];
const changeOfMean = ({ a, b }: TimedChange) => (a?.mean_us && b?.mean_us ? b.mean_us / a.mean_us - 1 : undefined);
const means: Column<TimedChange>[] = [
  figure("mean A", (row) => row.a?.mean_us, micro), figure("mean B", (row) => row.b?.mean_us, micro),
  { title: "Δ mean", value: changeOfMean, show: (row) => (changeOfMean(row) === undefined ? "" : percentOf(row.a!.mean_us!, row.b!.mean_us!)) }];

const timed = (caption: string, rows: TimedChange[], what: string, note = "", each = medians) => tableOf<TimedChange>({
  caption, rows, note: [note, each === medians && rows.length ? JUDGED : ""].filter(Boolean).join(" "), sortBy: 5, sortValue: (row) => Math.abs(row.total_change_us),
  columns: [{ title: what, value: (row) => row.name, wide: true },
    figure("count A", (row) => row.a?.count, count), figure("count B", (row) => row.b?.count, count),
    figure("total A", (row) => row.a?.total_us, micro), figure("total B", (row) => row.b?.total_us, micro),
    { title: "Δ total", value: (row) => (row.a && row.b ? row.total_change_us : undefined),
      show: (row) => (row.a && row.b ? signedTime(row.total_change_us) : row.a ? "only in A" : "only in B") },
    ...each],
});

const compared = (caption: string, rows: Change[], note = "") => tableOf<Change>({
  caption, rows, note: [note, rows.some(({ verdict }) => verdict && judged[verdict]) ? JUDGED : ""].filter(Boolean).join(" "), sortBy: -1,
  columns: [{ title: "figure", value: (row) => row.name }, { title: "A", value: (row) => row.a ?? undefined, show: (row) => figureOf(row, row.a) },
    { title: "B", value: (row) => row.b ?? undefined, show: (row) => figureOf(row, row.b) },
    { title: "change", value: (row) => (row.a ? ((row.b ?? 0) - row.a) / row.a : undefined), show: changeOf,
      tone: (row) => (row.verdict === "slower" ? "worse" : row.verdict === "faster" ? "better" : "") }],
});

// With a range selected in either trace, those that can be counted again are; others say that they are not of it.
function inRanges(id: string, all: () => HTMLElement[], ranges: Ranges): HTMLElement[] {
  const counted = ranges.counted();
  if (!counted) return all();
  const tables = typeof counted === "string" ? undefined : counted[id];
  if (!tables) return [h("p", { class: "note" }, typeof counted === "string" ? counted : "This table is of the whole traces, not of the selected ranges."), ...all()];
  return tables.map(({ caption, what, rows }) => timed(caption, rows, what, ranges.note(), means));
}

export function tabsOf(difference: Difference, ranges: Ranges): Tab[] {
  const { totals, iterations, on_iterations, phases, functions, kernels, gpu_kernels = [], ioctls, failures, settings } = difference;
  const figures = () => [
    ...(settings.length ? [tableOf({ caption: "Recorded differently", rows: settings, sortBy: -1,
      note: settings.filter((one) => one.so).map((one) => `${one.what}: ${one.so}.`).join(" "),
      columns: [{ title: "what", value: (row) => row.what }, { title: "A", value: (row) => row.a, wide: true }, { title: "B", value: (row) => row.b, wide: true }] })] : []),
    compared("Totals", totals), compared("Iterations", iterations, on_iterations.map((note) => `${note}.`).join(" ")), compared("Phases", phases)];
  const ran = () => [
    ...(gpu_kernels.length ? [timed("Kernels, time on the GPU", gpu_kernels, "kernel", more(difference.gpu_kernels_left_out))] : []),
    tableOf<KernelChange>({ caption: "Kernels that ran more or less often", rows: kernels, note: more(difference.kernels_left_out), sortBy: 4,
      sortValue: (row) => Math.abs(row.b - row.a),
      columns: [{ title: "kernel", value: (row) => row.kernel ?? "(no name)", wide: true }, { title: "class", value: (row) => row.class },
        figure("runs A", (row) => row.a || undefined, count), figure("runs B", (row) => row.b || undefined, count),
        { title: "change", value: (row) => row.b - row.a, show: (row) => percentOf(row.a, row.b) }] })];
  const tabs: Tab[] = [
    { id: "figures", name: "Figures", draw: figures },
    { id: "functions", name: "Functions", draw: () => [timed("Functions", functions, "function", more(difference.functions_left_out))] },
    { id: "kernels", name: "Kernels", draw: ran },
    { id: "ioctls", name: "Ioctls", draw: () => [timed("Ioctls by group", ioctls, "group", more(difference.ioctls_left_out))] },
    { id: "errors", name: "Errors", draw: () => [tableOf({ caption: "Calls that failed more or less often", rows: failures, sortBy: 3, note: more(difference.failures_left_out),
      columns: [{ title: "function", value: (row) => row.name }, { title: "error", value: (row) => row.error },
        { title: "A", value: (row) => row.a }, { title: "B", value: (row) => row.b }] })] },
  ];
  return tabs.map((tab) => ({ ...tab, draw: () => inRanges(tab.id, tab.draw, ranges) }));
}

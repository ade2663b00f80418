// What is read first of two traces: which they are, whether anything is missing, what became slower
// and faster, and where the time went in both.
import type { Answers, Change, Comparison, Difference, TimedChange } from "../data/answers";
import { h, prose, type Child } from "../dom";
import { bytes, count, micro, percent, times } from "../format";
import { commandOf, losses } from "../head";
import { phasesIn, type PlacedPhase } from "../phases";
import { themeButton } from "../theme";

const MOST_LISTED = 6;

export function figureOf({ unit }: Change, value: number | null): string {
  if (value === null) return "–";
  return unit === "us" ? micro(value) : unit === "bytes" ? bytes(value) : unit === "percent" ? percent(value) : count(value);
}

// What is shown of a change that is none, or that may be by chance.
export const judged: Record<string, string> = { same: "=", "not certain": "~", "too few": "too few" };
export const JUDGED = "= is the same, ~ no certain change or one of less than 0.05 %, too few: not enough calls to judge.";

const signed = (text: string, value: number) => (value > 0 ? `+${text}` : text.replace(/^-?/, "−"));

// "+18.4 %"; more than twice as much is easier read as "3.7 ×".
export function changeOf({ unit, a, b, verdict }: Change): string {
  if (a === null || b === null) return "";
  if (verdict && judged[verdict]) return judged[verdict];
  if (a === b) return "=";
  if (unit === "percent") return signed(`${Math.abs(b - a).toFixed(1)} points`, b - a);
  return percentOf(a, b);
}
export function percentOf(a: number, b: number): string {
  if (a === b) return "=";
  if (!a) return "new";
  if (!b) return "gone";
  const change = (100 * (b - a)) / a, size = Math.abs(change);
  if (change > 100) return b / a > 1e6 ? "over 1,000,000 ×" : times(b / a); // more, as where times are absurd
  return size < 0.05 ? "~" : signed(`${size.toFixed(1)} %`, change);
}
export const signedTime = (us: number) => (us ? signed(micro(Math.abs(us)), us) : "=");

// What diff says first; null: nothing can be compared as a whole.
function verdictOf({ same, verdict }: Difference): { title: string; text: string } | null {
  return same ? { title: "No difference", text: "Settings, totals, iterations, phases, functions, kernels and failures are the same in both." } : verdict;
}

// Those whose median changed by more than chance, by how much they changed the total.
function changed({ functions, gpu_kernels = [] }: Difference, which: "slower" | "faster"): Child {
  const all: [string, TimedChange][] = [...gpu_kernels.map((one) => ["on the GPU", one] as [string, TimedChange]),
    ...functions.map((one) => ["call", one] as [string, TimedChange])];
  const list = all.filter(([, { p50 }]) => p50 === which).sort(([, x], [, y]) => Math.abs(y.total_change_us) - Math.abs(x.total_change_us));
  return h("div", { class: `changed ${which}` }, h("h3", {}, `${which === "slower" ? "Slower" : "Faster"} in B`),
    list.length ? h("ol", {}, ...list.slice(0, MOST_LISTED).map(([where, { name, a, b, p50_change_percent }]) => h("li", {},
      h("span", { class: "name", title: name }, name), h("b", {}, percentOf(100, 100 + (p50_change_percent ?? 0))),
      h("span", { class: "note" }, `${where}: ${micro(a?.p50_us)} in A, ${micro(b?.p50_us)} in B, in the median`))))
      : h("p", { class: "note" }, "No function or kernel."),
    list.length > MOST_LISTED && h("p", { class: "note" }, `and ${count(list.length - MOST_LISTED)} more, in the tables`));
}

// Both to the same scale.
function phases({ a, b, difference }: Comparison): Child {
  const seen = ({ answers }: Answers) => phasesIn(answers.summary.summary.phases);
  const sides = [["A", seen(a)], ["B", seen(b)]] as const;
  const sum = (list: PlacedPhase[]) => list.reduce((all, phase) => all + phase.time_us, 0);
  const longest = Math.max(...sides.map(([, list]) => sum(list)));
  if (!longest || !difference.phases.length) return null;
  const colours = new Map(sides.flatMap(([, list]) => list.map(({ name, colour }) => [name, colour] as const)));
  const colour = (name: string) => `phase-${colours.get(name) ?? "none"}`;
  return h("section", { class: "phases", "aria-labelledby": "phases" }, h("h2", { id: "phases" }, "Where the time went"),
    ...sides.map(([side, list]) => h("div", { class: "side-strip", "aria-hidden": "true" }, h("b", {}, side),
      h("div", { class: "strip" }, ...list.map((phase) => {
        const part = h("span", { class: colour(phase.name), title: `${phase.name} ${micro(phase.time_us)}` });
        part.style.flexGrow = String(phase.time_us / longest);
        return part;
      }), rest(1 - sum(list) / longest)))),
    h("ul", {}, ...difference.phases.map((phase) => h("li", {}, h("span", { class: `key ${colour(phase.name)}`, "aria-hidden": "true" }), h("span", {}, phase.name),
      h("b", {}, changeOf(phase)), h("span", { class: "note" }, `${figureOf(phase, phase.a)} → ${figureOf(phase, phase.b)}`)))));
}
function rest(share: number): Child {
  const part = h("span", {});
  part.style.flexGrow = String(share);
  return share > 0 ? part : null;
}

export function headOf(told: Comparison, recolor: () => void): HTMLElement {
  const { a, b, difference } = told, verdict = verdictOf(difference);
  const side = (letter: string, of: Answers) => {
    const command = commandOf(of);
    return [h("p", { class: "side" }, h("b", {}, letter), ` ${of.title}`), command && h("p", { class: "command" }, h("code", {}, command)), h("p", { class: "where" }, of.heading)];
  };
  return h("header", {},
    h("div", { class: "title" }, h("h1", {}, "Two traces compared"), themeButton(recolor)),
    ...side("A", a), ...side("B", b), losses(a, "A"), losses(b, "B"),
    verdict && h("section", { class: "verdict", "aria-label": "Verdict" },
      h("article", { class: "finding first" }, h("h2", {}, verdict.title), h("p", {}, verdict.text))),
    !difference.same && h("section", { class: "changes", "aria-label": "What changed" }, changed(difference, "slower"), changed(difference, "faster")),
    h("p", { class: "note rule" }, ...prose("A median counts as changed if it differs by more than 5 %, and by more than chance between so many calls. " +
      `${JUDGED} To separate change from noise, compare several runs a side (\`cudabpf diff\`).`)),
    phases(told));
}

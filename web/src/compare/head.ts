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

const signed = (text: string, value: number) => (value > 0 ? `+${text}` : text.replace(/^-?/, "−"));

// "+18.4 %"; more than twice as much is easier read as "3.7 ×".
export function changeOf({ unit, a, b }: Change): string {
  if (a === null || b === null) return "";
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
  return size < 0.05 ? "≈" : signed(`${size.toFixed(1)} %`, change);
}
export const signedTime = (us: number) => (us ? signed(micro(Math.abs(us)), us) : "=");

// How an iteration's time changed. Where one of the traces does not wait after each, the times are not of the same, and none is said to be faster.
function titleOf(iteration: Change, comparable: boolean): string {
  const { a, b, verdict } = iteration as Change & { a: number; b: number };
  const whole = (value: number) => figureOf(iteration, value).replace(" ", "\u00a0");
  if (!comparable) return `An iteration: ${whole(a)} in A, ${whole(b)} in B`;
  if (verdict === "slower") return b > 2 * a ? `Iterations take ${times(b / a)} as long in B` : `Iterations are ${changeOf(iteration).replace(/^[+−]/, "")} slower in B`;
  if (verdict === "faster") return a > 2 * b ? `Iterations are ${times(a / b)} as fast in B` : `Iterations are ${changeOf(iteration).replace(/^[+−]/, "")} faster in B`;
  return "Iterations are as fast in B as in A";
}

// Of iterations first, which says most of how fast the program is; else of the whole traces.
function verdict({ same, iterations, totals, on_iterations }: Difference): [string, string[]] {
  if (same) return ["No difference", ["Settings, totals, iterations, phases, functions, kernels and failures are the same in both."]];
  const find = (list: Change[], measure: string) => list.find((one) => one.measure === measure && one.a !== null && one.b !== null);
  const both = (one: Change) => `${figureOf(one, one.a)} in A, ${figureOf(one, one.b)} in B (${changeOf(one)})`;
  const iteration = find(iterations, "iteration-time"), duration = find(totals, "duration");
  const gpu = find(totals, "gpu-time"), launches = find(totals, "launches");
  const lines = [...(iteration ? [`An iteration takes ${both(iteration)} in the median.`] : []), ...on_iterations.map((note) => `${note}.`),
    ...(gpu ? [`GPUs took ${both(gpu)} for kernels.`] : []), ...(launches ? [`Launches: ${both(launches)}.`] : []),
    ...(duration ? [`The whole trace took ${both(duration)}.`] : [])];
  if (iteration) return [titleOf(iteration, !on_iterations.length), lines];
  if (!duration || duration.a === duration.b) return ["B took as long as A", lines];
  const longer = duration.b! > duration.a!;
  return [longer && duration.b! > 2 * duration.a! ? `B took ${times(duration.b! / duration.a!)} as long`
    : `B took ${changeOf(duration).replace(/^[+−]/, "")} ${longer ? "longer" : "less time"}`, lines];
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
  const { a, b, difference } = told, [title, lines] = verdict(difference);
  const side = (letter: string, of: Answers) => {
    const command = commandOf(of);
    return [h("p", { class: "side" }, h("b", {}, letter), ` ${of.title}`), command && h("p", { class: "command" }, h("code", {}, command)), h("p", { class: "where" }, of.heading)];
  };
  return h("header", {},
    h("div", { class: "title" }, h("h1", {}, "Two traces compared"), themeButton(recolor)),
    ...side("A", a), ...side("B", b), losses(a, "A"), losses(b, "B"),
    h("section", { class: "verdict", "aria-label": "Verdict" },
      h("article", { class: "finding first" }, h("h2", {}, title), ...lines.map((line) => h("p", {}, line)))),
    !difference.same && h("section", { class: "changes", "aria-label": "What changed" }, changed(difference, "slower"), changed(difference, "faster")),
    h("p", { class: "note rule" }, ...prose("A median counts as changed if it differs by more than 5 %, and by more than chance between so many calls. " +
      "To separate change from noise, compare several runs a side (`cudabpf diff`).")),
    phases(told));
}

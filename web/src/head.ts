// What is read in the first ten seconds: whether anything is missing, the verdict, a few figures,
// and the phases.
import type { Answers, Finding } from "./data/answers";
import { h, prose, type Child } from "./dom";
import { bytes, commandLine, count, joules, micro, percent, time } from "./format";
import { phasesIn } from "./phases";
import { processesOf, stepsOf, whoseOf } from "./processes";
import { themeButton } from "./theme";
import type { Span } from "./view";

const microSpan = (from: number, to: number): Span => ({ from: from * 1000, to: to * 1000 });

const hasLost = ({ losses }: Answers["trace"]) => Object.values(losses).some((loss) => loss.count || loss.uncounted);

// What was run; of a process that ran already, how it had been started.
export function commandOf({ command, answers }: Answers): string {
  if (command?.length) return commandLine(command);
  const { shown, processes = [] } = answers.summary.summary;
  return processes.length === 1 ? shown?.command ?? "" : "";
}

export function losses({ trace, missing, served }: Answers, side = ""): HTMLElement {
  const lost = hasLost(trace);
  const isWhole = trace.complete && !lost;
  const whose = side ? `Trace ${side}` : "The trace";
  if (isWhole && !missing.trim())
    return h("p", { class: "whole" }, served?.running ? "No event has been lost so far." : `${whose} is complete: no event was lost.`);
  const title = isWhole ? `Notes on ${side ? `trace ${side}` : "this trace"}` : !trace.complete ? `${side ? whose : "This trace"} is not complete`
    : `Events ${side && `of ${side} `}were lost`;
  return h("section", { class: isWhole ? "missing mild" : "missing", "aria-label": `What is missing${side && ` from ${side}`}` },
    h("h2", {}, title), h("pre", { tabindex: 0, role: "group", "aria-label": title }, ...prose(missing.trim())));
}

function finding(one: Finding, first: boolean, show: (span: Span) => void): HTMLElement {
  const { begin_us, end_us } = one;
  return h("article", { class: first ? "finding first" : "finding" },
    h(first ? "h2" : "h3", {}, one.title, one.sure !== "known" && h("small", {}, ", probably")),
    // A sentence has a capital; the name of a function stays as it is.
    h("p", { class: /^[a-z]+[ ,;]/.test(one.text) ? "sentence" : "" }, ...prose(one.text)),
    begin_us !== undefined && end_us !== undefined && end_us > begin_us &&
      h("button", { type: "button", onclick: () => show(microSpan(begin_us, end_us)) }, "Show in the timeline"));
}

function figure(value: string, name: string, more = "", bad = false): HTMLElement {
  return h("div", { class: bad ? "figure bad" : "figure" }, h("dt", {}, name, more && ` ${more}`), h("dd", {}, value));
}

function energyFigures({ energy }: Answers["answers"]): HTMLElement[] {
  return energy.gpu_energy_report.gpus.filter(({ all }) => all.energy_j !== undefined).slice(0, 2).map(({ device, all, iterations }) =>
    figure(joules(all.energy_j!), `energy, GPU ${device}`, iterations?.each_j !== undefined ? `(${joules(iterations.each_j)} an iteration)` : ""));
}

function figures({ answers, trace }: Answers): HTMLElement {
  const { summary } = answers.summary, { errors } = answers;
  const gpus = answers.gaps.measured?.gpus ?? [];
  const moved = Object.values(summary.transfers ?? {}).reduce((sum, one) => sum + one.bytes, 0);
  const bad = errors.failed_calls - errors.usual_failures;
  const { iterations } = summary;
  return h("dl", { class: "figures" },
    figure(time((trace.part ? trace.part.to_us - trace.part.from_us : summary.duration_us) * 1000), trace.part ? "part of the trace" : "traced"),
    figure(count(summary.calls), "calls"),
    figure(count(summary.kernel_runs ?? 0), "kernels run", summary.launched ? `by ${count(summary.launched)} ${summary.launched === 1 ? "launch" : "launches"}` : ""),
    iterations?.count ? figure(count(iterations.count), "iterations", iterations.mean_us ? `of ${micro(iterations.mean_us)}` : "") : null,
    gpus[0] ? figure(percent(gpus[0].busy_share), `GPU ${gpus[0].device} busy, measured`) : null,
    ...energyFigures(answers),
    figure(bytes(answers.memory.memory.all.peak.gpu.bytes), "GPU memory at its peak"),
    figure(bytes(moved), "copied"),
    figure(count(bad), bad === 1 ? "unexpected failure" : "unexpected failures",
      errors.usual_failures ? `(${count(errors.usual_failures)} expected)` : "", bad > 0));
}

function phases({ answers }: Answers, show: (span: Span) => void): Child {
  const list = phasesIn(answers.summary.summary.phases);
  if (!list.length) return null;
  const sum = list.reduce((all, phase) => all + phase.time_us, 0);
  const strip = h("div", { class: "strip", "aria-hidden": "true" }, ...list.map((phase) => {
    const part = h("span", { class: `phase-${phase.colour}`, title: `${phase.name} ${micro(phase.time_us)}` });
    part.style.flexGrow = String(phase.time_us / sum);
    return part;
  }));
  return h("section", { class: "phases", "aria-labelledby": "phases" }, h("h2", { id: "phases" }, "Where the time went"), strip,
    h("ul", {}, ...list.map((phase) => {
      const key = h("span", { class: `key phase-${phase.colour}`, "aria-hidden": "true" });
      const { begin_us, end_us } = phase, isWindow = begin_us !== undefined && end_us !== undefined;
      const name = isWindow
        ? h("button", { type: "button", class: "place", title: "show in the timeline", onclick: () => show(microSpan(begin_us, end_us)) }, phase.name)
        : h("span", {}, phase.name);
      return h("li", {}, key, name, h("b", {}, micro(phase.time_us)), h("span", { class: "note" },
        [percent(phase.share), phase.note].filter(Boolean).join(", ")));
    })));
}

// What can be done from here, once the timeline is there.
export interface HeadActions { show(span: Span): void; showProcess(pid: number): void; recolor(): void }

export function headOf(answers: Answers, actions: HeadActions): HTMLElement {
  const show = (span: Span) => actions.show(span), command = commandOf(answers);
  const { part, since_us, order } = answers.trace, { verdict } = answers.answers.summary.summary;
  return h("header", {},
    h("div", { class: "title" }, h("h1", {}, answers.title), themeButton(() => actions.recolor())),
    command && h("p", { class: "command" }, h("code", {}, command)),
    h("p", { class: "where" }, answers.heading),
    order && h("p", { class: "where" }, order),
    since_us !== undefined && h("p", { class: "where" }, `Begins at ${micro(since_us)}: anything earlier is not in it.`),
    part && h("p", { class: "where" }, `This is a part of the trace${part.name ? `: ${part.name}` : ""}, from ${micro(part.from_us)} to ${micro(part.to_us)}.`),
    losses(answers), processesOf(answers, (pid) => actions.showProcess(pid)),
    h("section", { class: "verdict", "aria-label": "Verdict" }, whoseOf(answers),
      ...(verdict.length ? verdict.map((one, index) => finding(one, !index, show))
        : [h("article", { class: "finding first" }, h("h2", {}, "No verdict"), h("p", {}, "The trace holds too little to say what bounds the program."))])),
    figures(answers), phases(answers, show), stepsOf(answers, (pid) => actions.showProcess(pid)));
}

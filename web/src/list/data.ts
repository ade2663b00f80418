// What serve tells of the folder, in traces.json. Anything of a trace may be absent: it was not read
// yet, or cannot be read.
import type { Finding, Loss } from "../data/answers";

export interface ListedTrace {
  name: string; report: string; files: number; bytes: number; modified: string;
  state: "unread" | "unreadable" | "ended" | "running" | "cut_off";
  error?: string;
  host?: string; gpus?: string; started?: string; program?: string; // as its header has them
  trace?: { started?: string; since_us?: number; duration_us: number; calls: number; complete: boolean; losses: Record<string, Loss>;
    cut_off: string[]; missing: string[]; malformed: number };
  summary?: { calls: number; launched: number; kernel_runs: number;
    errors: { name: string; error: string; benign: boolean; count: number }[]; verdict: Finding[] };
}
export interface Listed { version: string; traces: ListedTrace[]; left_out: number; unread_folders: string[] }

// When recording began, or the part of it that was kept, in ms; where its header does not say, when its file was last written.
export const startOf = ({ trace, started, modified }: ListedTrace) =>
  (started ? Date.parse(started) + (trace?.since_us ?? 0) / 1000 : Date.parse(modified));
export const lengthOf = ({ trace }: ListedTrace): number | undefined => trace && trace.duration_us - (trace.since_us ?? 0);

// Failures that programs expect are no errors: the same are so in `errors`.
export const errorsOf = (one: ListedTrace): number | undefined =>
  one.summary?.errors.reduce((sum, { benign, count }) => sum + (benign ? 0 : count), 0);

// What matters most. That a running trace has no end yet is not it.
export const verdictOf = (one: ListedTrace): Finding | undefined =>
  one.summary?.verdict.find(({ id }) => one.state !== "running" || id !== "incomplete");

// What is missing from a trace, in a few words; empty: nothing. That a running trace has no end yet
// is no loss.
export function lossesOf(one: ListedTrace): string {
  if (!one.trace) return "";
  const texts = Object.entries(one.trace.losses).filter(([, loss]) => loss.count || loss.uncounted)
    .map(([reason, loss]) => `${loss.uncounted ? (loss.count ? `at least ${loss.count.toLocaleString("en")}` : "an unknown number of") : loss.count.toLocaleString("en")} ${reason}`);
  if (one.trace.malformed) texts.push(`${one.trace.malformed.toLocaleString("en")} unreadable ${one.trace.malformed === 1 ? "line" : "lines"}`);
  for (const part of one.trace.missing) texts.push(`${part} not there`);
  if (one.state === "cut_off") texts.push("cut off: it has no end");
  return texts.join("; ");
}

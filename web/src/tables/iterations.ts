// What the program does over and over, one by one.
import type { Answers } from "../data/answers";
import { nameOf, type Iterations } from "../data/timeline";
import { h } from "../dom";
import { count, micro, moment, time } from "../format";
import { isWarmUp, numberOf } from "../timeline/iterations";
import type { Span } from "../view";
import type { Places } from "./answers";
import { tableOf } from "./table";

export const spanOfIteration = (all: Iterations, index: number): Span => ({ from: all.begin[index]!, to: all.end[index]! });

// The one of this number, if the page has it.
export function iterationOf(all: Iterations | null, number: number): Span | null {
  const index = all ? number - all.first : -1;
  return all && index >= 0 && index < all.size ? spanOfIteration(all, index) : null;
}

function noteOf({ answers }: Answers, places: Places, all: Iterations): string {
  const told = answers.summary.summary.iterations, notes: string[] = [`${nameOf(places.timeline, all.pid)}, thread ${all.tid}.`];
  if (told?.p50_us) notes.push(`Without warm-up: ${micro(told.p50_us)} in the median, 99 % within ${micro(told.p99_us)}.`);
  if (told?.found === "within_a_wait") notes.push("The program does not wait after each iteration, so these times cover submission only.");
  if (all.left_out) notes.push(`${count(all.left_out)} more are not in this page.`);
  return notes.join(" ");
}

export function iterations(answers: Answers, places: Places): HTMLElement[] {
  const all = places.timeline.iterations;
  if (!all) return [h("p", { class: "note" }, "Nothing that repeats was found in the launches of the thread that launches most.")];
  const half = (answers.answers.summary.summary.iterations?.p50_us ?? 0) * 1000;
  const length = (index: number) => all.end[index]! - all.begin[index]!;
  return [tableOf<number>({
    caption: "Iterations", rows: Array.from({ length: all.size }, (_, index) => index), sortBy: 0, rising: true, note: noteOf(answers, places, all),
    link: (index) => ({ label: "show in the timeline, and select it", go: () => {
      places.view.select(spanOfIteration(all, index));
      places.show(spanOfIteration(all, index));
    } }),
    columns: [{ title: "iteration", value: (index) => numberOf(all, index), show: (index) => count(numberOf(all, index)) },
      { title: "began", value: (index) => all.begin[index]!, show: (index) => moment(all.begin[index]!) },
      { title: "took", value: length, show: (index) => time(length(index)), kind: "bar" },
      ...(half ? [{ title: "of the median", value: (index: number) => length(index) / half, show: (index: number) => `${(length(index) / half).toFixed(2)} ×` }] : []),
      ...(all.exposed.some((time) => time > 0) ? [{ title: "only collectives ran", value: (index: number) => all.exposed[index]!, show: (index: number) => time(all.exposed[index]!) }] : []),
      { title: "launches", value: (index) => all.launches[index]!, show: (index) => count(all.launches[index]!) },
      { title: "kind", value: (index) => (isWarmUp(all, index) ? "warm-up" : "") }],
  })];
}

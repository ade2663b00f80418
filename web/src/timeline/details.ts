// What is known of one event: in short beside the pointer, in full below the timeline.
import { detailsOf, FAILED, firstAt, labelOf, laneName, TIMED, type Lane, type Timeline } from "../data/timeline";
import { h } from "../dom";
import { count, moment, time } from "../format";
import type { Chosen, View } from "../view";
import type { Pointed } from "./input";
import { isWarmUp, numberOf } from "./iterations";

const MOST_LISTED = 60, MOST_IN_TIP = 7, LONGEST_IN_TIP = 160;

function facts(timeline: Timeline, lane: Lane, i: number): [string, string][] {
  const kind = timeline.kinds[lane.kinds[i]!]!, many = lane.counts[i]! > 1;
  const list: [string, string][] = [];
  if (many) {
    list.push(["stands for", `${count(lane.counts[i]!)} that began within ${time(timeline.resolution_ns)}`]);
    list.push(["they took", time(lane.busy[i]!)], ["the longest", kind.short || kind.name]);
  } else {
    if (kind.what) list.push([kind.flags & 16 ? "kernel" : lane.kind === "ranges" ? "domain" : "of", kind.what]);
    if (kind.flags & TIMED) list.push(["took", time(lane.end[i]! - lane.begin[i]!)]);
    if (kind.ending) list.push(["state", kind.ending.replace("_", " ")]);
    if (kind.flags & FAILED || kind.error) list.push(["error", kind.error || "it failed"]);
  }
  list.push(["began", moment(lane.begin[i]!, 1)], ["where", laneName(timeline, lane)]);
  const stream = timeline.streams[lane.streams[i]! - 1];
  if (stream && !many) list.push(["stream", stream.handle]);
  if (lane.details[i] === 1) list.push(["details", "not kept: there are too many different ones"]);
  return list.concat(detailsOf(timeline, lane, i).filter(([name]) => name !== "stream"));
}

export function titleOf(timeline: Timeline, lane: Lane, i: number): string {
  if (lane.counts[i]! > 1) return `${count(lane.counts[i]!)} ${lane.kind === "calls" || lane.kind === "ranges" ? lane.kind : "events"}`;
  const kind = timeline.kinds[lane.kinds[i]!]!;
  return lane.kind === "gpu" ? labelOf(timeline, lane, i) : kind.name;
}

export class Tip {
  readonly box = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  constructor(private readonly timeline: Timeline) {}

  private told({ event: chosen, iteration }: Pointed): [string, [string, string][]] | null {
    const { iterations, lanes } = this.timeline;
    if (iterations && iteration >= 0) return [`iteration ${count(numberOf(iterations, iteration))}${isWarmUp(iterations, iteration) ? ", warm-up" : ""}`, [
      ["took", time(iterations.end[iteration]! - iterations.begin[iteration]!)], ["launches", count(iterations.launches[iteration]!)],
      ["began", moment(iterations.begin[iteration]!, 1)]]];
    if (!chosen) return null;
    const lane = lanes[chosen.lane]!;
    return [titleOf(this.timeline, lane, chosen.event), facts(this.timeline, lane, chosen.event).slice(0, MOST_IN_TIP)];
  }

  show(at: Pointed | null, x: number, y: number) {
    const told = at && this.told(at);
    this.box.hidden = !told;
    if (!told) return;
    const [title, list] = told;
    this.box.replaceChildren(h("strong", {}, title),
      ...list.map(([name, value]) => h("div", {}, h("span", {}, name),
        value.length > LONGEST_IN_TIP ? `${value.slice(0, LONGEST_IN_TIP)}…` : value)));
    const { offsetWidth: width, offsetHeight: height } = this.box;
    this.box.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - width - 8))}px`;
    this.box.style.top = `${y + 18 + height > window.innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
  }
}

// The call of a number; there may be millions, but only a click asks.
function findCall(timeline: Timeline, id: number): Chosen | null {
  if (!id) return null;
  for (const lane of timeline.lanes) {
    if (lane.kind !== "calls") continue;
    const event = lane.ids.indexOf(id);
    if (event >= 0 && lane.counts[event] === 1) return { lane: lane.index, event };
  }
  return null;
}

function within(timeline: Timeline, lane: Lane, i: number, wanted: (other: Lane) => boolean, ofCall: boolean): Chosen[] {
  const found: Chosen[] = [];
  for (const other of timeline.lanes) {
    if (!wanted(other)) continue;
    const from = ofCall ? 0 : firstAt(other.begin, lane.begin[i]!);
    for (let j = from; j < other.size; j++) {
      if (!ofCall && other.begin[j]! > lane.end[i]!) break;
      if (ofCall ? other.ids[j] === lane.ids[i] : other.end[j]! <= lane.end[i]!) found.push({ lane: other.index, event: j });
    }
  }
  return found;
}

export class Details {
  readonly box: HTMLElement;

  constructor(private readonly timeline: Timeline, private readonly view: View, private readonly go: (to: Chosen) => void, side: string) {
    this.box = h("section", { class: "details", "aria-label": `Chosen event${side && ` of ${side}`}`, hidden: true });
    view.listen((what) => {
      if (what === "chosen") this.draw();
    });
  }

  private links(title: string, list: Chosen[]): HTMLElement | null {
    if (!list.length) return null;
    const { timeline } = this;
    return h("div", { class: "related" },
      h("h3", {}, `${title} (${count(list.length)})`),
      h("ol", {}, ...list.slice(0, MOST_LISTED).map((one) => {
        const lane = timeline.lanes[one.lane]!;
        const kind = timeline.kinds[lane.kinds[one.event]!]!;
        const what = kind.short && lane.kind !== "gpu" ? ` ${kind.short}` : "";
        return h("li", {}, h("button", { type: "button", onclick: () => this.go(one) },
          `${titleOf(timeline, lane, one.event)}${what}`), ` ${time(lane.end[one.event]! - lane.begin[one.event]!)}`);
      })),
      list.length > MOST_LISTED && h("p", { class: "note" }, `and ${count(list.length - MOST_LISTED)} more`));
  }

  private draw() {
    const { chosen } = this.view, { timeline } = this;
    this.box.hidden = !chosen;
    if (!chosen) return;
    const lane = timeline.lanes[chosen.lane]!, i = chosen.event, single = lane.counts[i] === 1;
    const isCall = lane.kind === "calls" && single;
    const behind = lane.kind === "calls" || !single ? null : findCall(timeline, lane.ids[i]!);
    const inSame = (other: Lane) => other.thread === lane.thread && other.thread >= 0;
    const children = isCall
      ? within(timeline, lane, i, (other) => inSame(other) && other.kind === "calls" && other.depth === lane.depth + 1, false) : [];
    const asked = isCall ? within(timeline, lane, i, (other) => inSame(other) && other.kind === "driver", true) : [];
    const did = isCall ? within(timeline, lane, i, (other) => other.kind === "gpu", true) : [];
    this.box.replaceChildren(
      h("div", { class: "details-head" },
        h("h3", {}, titleOf(timeline, lane, i)),
        h("button", { type: "button", onclick: () => this.go(chosen) }, "Zoom to it"),
        h("button", { type: "button", onclick: () => this.view.choose(null), "aria-label": "Close details" }, "Close")),
      h("dl", {}, ...facts(timeline, lane, i).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      ...[this.links("Requested by the call", behind ? [behind] : []), this.links("Calls made inside", children),
        this.links("Requests to the driver", asked), this.links("What the GPU did for it", did)].filter((list) => list !== null));
  }
}

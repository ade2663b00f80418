// What part of the trace is looked at, and what is chosen in it: everything that moves tells it here,
// and everything that draws hears of it. The address's fragment says the same.
import { time } from "./format";

export interface Span { from: number; to: number } // ns
export interface Chosen { lane: number; event: number }

type What = "window" | "range" | "chosen" | "search";

const views: View[] = []; // of the page, in the order of the fragment
let saving = 0;

function save() {
  clearTimeout(saving);
  saving = window.setTimeout(() => {
    try {
      history.replaceState(null, "", `#${views.map((view) => view.fragment()).join("&")}`);
    } catch { /* some browsers refuse that of a file: the view is merely not in the address */ }
  }, 150);
}

export class View {
  window: Span;
  range: Span | null = null;
  chosen: Chosen | null = null;
  search = "";
  tab = ""; // the first
  bounds: Span; // beyond which nothing is shown; of two traces side by side, those of both
  private readonly listeners: ((what: What) => void)[] = [];

  // `prefix`: of what the address says of this view, where the page has two.
  constructor(readonly whole: Span, private readonly prefix = "") {
    this.window = { ...whole };
    this.bounds = whole;
    views.push(this);
  }

  listen(listener: (what: What) => void) {
    this.listeners.push(listener);
  }
  private tell(what: What) {
    for (const listener of this.listeners) listener(what);
    save();
  }

  show({ from, to }: Span) {
    const least = 20; // ns: closer, a browser's numbers end
    const { bounds } = this, all = bounds.to - bounds.from;
    const length = Math.min(Math.max(to - from, least), all * 1.02);
    const middle = (from + to) / 2;
    const margin = all * 0.01;
    const first = Math.min(Math.max(middle - length / 2, bounds.from - margin), bounds.to + margin - length);
    this.window = { from: first, to: first + length };
    this.tell("window");
  }
  // With some room on both sides.
  showAround({ from, to }: Span) {
    const room = Math.max((to - from) * 0.15, 500);
    this.show({ from: from - room, to: to + room });
  }
  zoom(factor: number, at = (this.window.from + this.window.to) / 2) {
    const { from, to } = this.window;
    this.show({ from: at - (at - from) * factor, to: at + (to - at) * factor });
  }
  // By this share of what is shown.
  pan(share: number) {
    const by = (this.window.to - this.window.from) * share;
    this.show({ from: this.window.from + by, to: this.window.to + by });
  }
  showAll() {
    this.show(this.bounds);
  }
  select(range: Span | null) {
    this.range = range && range.to > range.from ? { from: Math.round(range.from), to: Math.round(range.to) } : null;
    this.tell("range");
  }
  choose(chosen: Chosen | null) {
    this.chosen = chosen;
    this.tell("chosen");
  }
  find(text: string) {
    this.search = text;
    this.tell("search");
  }
  openTab(tab: string) {
    this.tab = tab;
    save();
  }

  fragment(): string {
    const { from, to } = this.window;
    const parts = [`view=${Math.round(from)}-${Math.round(to)}`];
    if (this.tab) parts.push(`tab=${this.tab}`);
    if (this.range) parts.push(`range=${this.range.from}-${this.range.to}`);
    if (this.chosen) parts.push(`event=${this.chosen.lane}-${this.chosen.event}`);
    if (this.search) parts.push(`find=${encodeURIComponent(this.search)}`);
    return parts.map((part) => this.prefix + part).join("&");
  }
  // Anybody may have written the fragment.
  restore(fragment: string, has: (chosen: Chosen) => boolean) {
    const parts = new URLSearchParams(fragment.replace(/^#/, ""));
    const pair = (name: string) => {
      const match = /^(-?\d{1,17})-(-?\d{1,17})$/.exec(parts.get(this.prefix + name) ?? "");
      return match ? ([Number(match[1]), Number(match[2])] as const) : null;
    };
    const tab = parts.get(`${this.prefix}tab`);
    if (tab && /^[a-z]+$/.test(tab)) this.tab = tab;
    const shown = pair("view"), range = pair("range"), event = pair("event");
    this.find((parts.get(`${this.prefix}find`) ?? "").slice(0, 1000));
    if (shown && shown[1] > shown[0]) this.show({ from: shown[0], to: shown[1] });
    this.select(range && { from: range[0], to: range[1] });
    const chosen = event && { lane: event[0], event: event[1] };
    this.choose(chosen && has(chosen) ? chosen : null);
  }
  describe(span: Span): string {
    return `${(span.from / 1e9).toFixed(6)} s to ${(span.to / 1e9).toFixed(6)} s, ${time(span.to - span.from)}`;
  }
}

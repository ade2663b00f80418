// Python's stacks as a flame graph: the outermost functions on top, below each those that it called, as
// wide as what weighs in them. src/analyze/stacks/stack_tree.cpp makes the trees.
import type { StackTree, StacksAnswer } from "../data/answers";
import { h } from "../dom";
import { bytes, percent, time } from "../format";

export const MEASURES = [
  { name: "host", title: "time in calls", show: time }, { name: "gpu", title: "time on GPUs", show: time },
  { name: "bytes", title: "copied and filled", show: bytes }, { name: "allocated", title: "allocated", show: bytes },
] as const;
const KINDS = ["users", "library", "work"]; // of a text; also classes of style
const ROW = 20, BORDERS = 2, LEAST_WIDTH = 0.05; // px, px, % of the width

export interface Drawn { node: number; left: number; width: number; depth: number } // in %

// "step (train.py:12)", of "/home/me/train.py:12 step"; "(no line)" stays what it is.
export function labelOf(text: string): string {
  const space = text.lastIndexOf(" "), place = text.slice(0, space);
  return space < 0 || text.startsWith("(") ? text : `${text.slice(space + 1)} (${place.slice(place.lastIndexOf("/") + 1)})`;
}

// What is drawn with this node as wide as all, and what leads to it above; -1: all of the tree.
export function layOut({ parents, weights }: StackTree, chosen: number): Drawn[] {
  const above: number[] = [];
  for (let at = chosen; at >= 0; at = parents[at]!) above.unshift(at);
  const drawn: Drawn[] = above.map((node, depth) => ({ node, left: 0, width: 100, depth }));
  const from = new Map<number, Drawn & { next: number }>(); // where the next one below a node begins
  const whole = { node: chosen, left: 0, width: 100, depth: above.length - 1, next: 0 };
  const total = chosen >= 0 ? weights[chosen]! : parents.reduce((sum, parent, node) => sum + (parent < 0 ? weights[node]! : 0), 0);
  from.set(chosen, whole);
  for (let node = Math.max(0, chosen + 1); node < parents.length; node++) { // parents come before
    const parent = from.get(parents[node]!);
    if (!parent) continue;
    const one = { node, left: parent.next, width: (100 * weights[node]!) / total, depth: parent.depth + 1, next: parent.next };
    parent.next += one.width;
    if (one.width < LEAST_WIDTH) continue;
    from.set(node, one);
    drawn.push(one);
  }
  return drawn;
}

export class Flame {
  readonly box: HTMLElement;
  private measure: (typeof MEASURES)[number];
  private chosen = -1;
  private text = "";
  private readonly graph = h("div", { class: "flame", role: "group", "aria-label": "Flame graph of Python's stacks",
    onclick: (event: MouseEvent) => this.choose(event.target), onmousemove: (event: MouseEvent) => this.tell(event.target) });
  private readonly said = h("p", { class: "note flame-said", role: "status" });
  private readonly buttons: HTMLButtonElement[];
  private readonly find = h("input", { type: "search", placeholder: "Find a function, file or kernel", "aria-label": "Find in the flame graph",
    oninput: () => this.search(this.find.value) });
  private readonly back = h("button", { type: "button", onclick: () => this.zoom(-1) }, "Show all");

  constructor(private readonly stacks: StacksAnswer) {
    const some = MEASURES.filter(({ name }) => stacks.trees[name].parents.length);
    this.measure = some[0] ?? MEASURES[0];
    this.buttons = some.map((measure) => h("button", { type: "button", onclick: () => {
      this.measure = measure;
      this.zoom(-1);
    } }, measure.title));
    this.box = h("div", { class: "table" },
      h("div", { class: "table-head" }, h("h3", {}, "Python's stacks"),
        h("div", { class: "find" }, ...this.buttons, this.back, this.find)),
      this.graph, this.said, h("ul", { class: "legend" },
        ...([["users", "the program's own"], ["library", "packages and Python's library"], ["work", "calls and kernels"]] as const)
          .map(([kind, text]) => h("li", {}, h("span", { class: `key f-${kind}` }), text))));
    this.draw();
  }
  search(text: string) {
    this.text = text.trim().toLowerCase();
    if (this.find.value !== text) this.find.value = text;
    this.draw();
  }
  private get tree(): StackTree { return this.stacks.trees[this.measure.name]; }
  private textOf(node: number): string { return this.stacks.texts[this.tree.texts[node]!]!; }
  private labelOf(node: number): string {
    const isWork = this.stacks.kinds[this.tree.texts[node]!] === KINDS.indexOf("work");
    return isWork ? this.textOf(node) : labelOf(this.textOf(node));
  }
  private isFound(node: number): boolean { return Boolean(this.text) && this.textOf(node).toLowerCase().includes(this.text); }
  private total(): number { return this.tree.parents.reduce((sum, parent, node) => sum + (parent < 0 ? this.tree.weights[node]! : 0), 0); }

  private nodeOf(target: EventTarget | null): number {
    const bar = target instanceof HTMLElement ? target.closest<HTMLElement>("[data-node]") : null;
    return bar ? Number(bar.dataset["node"]) : -1;
  }
  private choose(target: EventTarget | null) {
    const node = this.nodeOf(target);
    if (node >= 0) this.zoom(node === this.chosen ? this.tree.parents[node]! : node);
  }
  private zoom(node: number) {
    this.chosen = node;
    this.draw();
  }
  private tell(target: EventTarget | null) {
    const node = this.nodeOf(target);
    this.said.textContent = node < 0 ? this.whole() : this.told(node);
  }
  private told(node: number): string {
    const weight = this.tree.weights[node]!;
    return `${this.textOf(node)}: ${this.measure.show(weight)}, ${percent((100 * weight) / this.total())} of ${this.measure.title}`;
  }
  // What is found counts once: not again within another that is found.
  private whole(): string {
    const { parents, weights, left_out } = this.tree, notes: string[] = [];
    if (this.text) {
      const within: boolean[] = [];
      let found = 0;
      for (let node = 0; node < parents.length; node++) {
        const isWithin = parents[node]! >= 0 && within[parents[node]!]!;
        if (!isWithin && this.isFound(node)) found += weights[node]!;
        within[node] = isWithin || this.isFound(node);
      }
      notes.push(`Found: ${this.measure.show(found)}, ${percent((100 * found) / (this.total() || 1))} of ${this.measure.title}.`);
    } else {
      notes.push(`${this.measure.show(this.total())} in all. Click a function to see it as wide as the page, once more to go back.`);
    }
    if (left_out) notes.push(`${this.measure.show(left_out)} are in stacks too many to be in this page.`);
    return notes.join(" ");
  }
  private draw() {
    this.buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === this.measure.title)));
    this.back.disabled = this.chosen < 0;
    const drawn = layOut(this.tree, this.chosen);
    this.graph.style.height = `${BORDERS + ROW * (1 + drawn.reduce((most, { depth }) => Math.max(most, depth), 0))}px`;
    this.graph.replaceChildren(...drawn.map(({ node, left, width, depth }) => {
      const kind = KINDS[this.stacks.kinds[this.tree.texts[node]!]!] ?? "work";
      const bar = h("button", { type: "button", class: `f-${kind}${this.isFound(node) ? " found" : ""}`, "data-node": node, title: this.told(node),
        onfocus: () => this.tell(bar) }, this.labelOf(node));
      Object.assign(bar.style, { left: `${left}%`, width: `${width}%`, top: `${depth * ROW}px`, height: `${ROW - 1}px` });
      return bar;
    }));
    this.said.textContent = this.whole();
  }
}

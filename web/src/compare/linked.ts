// Two timelines that move together: at the same scale, and so that moments that belong together are
// one above the other.
import type { View } from "../view";

export class Linked {
  private on = true;
  private shift = 0; // ns: what is later in B by this much is above what it belongs to in A
  private following = false;

  constructor(private readonly a: View, private readonly b: View) {
    a.listen((what) => this.follow(what, a, b));
    b.listen((what) => this.follow(what, b, a));
    this.align(0);
  }
  get isOn() {
    return this.on;
  }
  get shifted() {
    return this.shift;
  }
  private follow(what: string, leader: View, other: View) {
    if (!this.on || this.following) return;
    this.following = true;
    const by = other === this.b ? this.shift : -this.shift;
    if (what === "window") other.show({ from: leader.window.from + by, to: leader.window.to + by });
    if (what === "search" && other.search !== leader.search) other.find(leader.search);
    this.following = false;
  }
  // What is `shift` later in B belongs to it in A.
  align(shift: number) {
    const { a, b } = this;
    this.shift = shift;
    a.bounds = { from: Math.min(a.whole.from, b.whole.from - shift), to: Math.max(a.whole.to, b.whole.to - shift) };
    b.bounds = { from: a.bounds.from + shift, to: a.bounds.to + shift };
    if (this.on) a.show(a.window);
    if (a.range || b.range) a.select(a.range); // the other's may be another now
  }
  // What changes both, each by itself: then they are together as it left them.
  during(change: () => void) {
    const { on } = this;
    this.on = false;
    const [a, b] = [this.a.bounds, this.b.bounds];
    const all = { from: Math.min(a.from, b.from) - (b.to - b.from), to: Math.max(a.to, b.to) + (a.to - a.from) };
    this.a.bounds = this.b.bounds = all;
    change();
    this.set(on);
  }
  // Each by itself from now on; or together again, as they were left.
  set(on: boolean) {
    this.on = on;
    if (!on) {
      this.a.bounds = this.a.whole;
      this.b.bounds = this.b.whole;
      this.a.show(this.a.window);
      this.b.show(this.b.window);
    } else this.align(Math.round(this.b.window.from - this.a.window.from));
  }
}

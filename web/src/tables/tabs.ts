// Tables behind tabs.
import { h } from "../dom";
import { count } from "../format";
import type { View } from "../view";

export interface Tab { id: string; name: string; badge?: number; draw(): HTMLElement[] }

export class Tabs {
  readonly box: HTMLElement;
  private readonly panel = h("div", { id: "panel", role: "tabpanel", tabindex: 0 });
  private readonly buttons: HTMLButtonElement[];

  // `view` keeps which is open. What is selected in it or in `others` may change what they hold.
  constructor(private readonly tabs: Tab[], private readonly view: View, ...others: View[]) {
    this.buttons = tabs.map(({ id, name, badge }, index) => h("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "panel", onclick: () => this.open(id),
      onkeydown: (event: KeyboardEvent) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
        if (!step) return;
        const next = tabs[(index + step + tabs.length) % tabs.length]!.id;
        this.open(next);
        document.getElementById(`tab-${next}`)?.focus();
      },
    }, name, badge && badge > 0 ? h("span", { class: "badge" }, count(badge)) : null));
    this.box = h("section", { class: "tables", "aria-label": "Tables" },
      h("div", { role: "tablist", "aria-label": "Tables", class: "tabs" }, ...this.buttons), this.panel);
    for (const one of [view, ...others])
      one.listen((what) => {
        if (what === "range") this.draw();
      });
    this.open(view.tab);
  }
  private open(tab: string) {
    this.view.openTab(this.tabs.some(({ id }) => id === tab) ? tab : this.tabs[0]!.id);
    this.draw();
  }
  private draw() {
    this.tabs.forEach(({ id, draw }, index) => {
      const isOpen = id === this.view.tab, button = this.buttons[index]!;
      button.setAttribute("aria-selected", String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
      if (!isOpen) return;
      this.panel.setAttribute("aria-labelledby", `tab-${id}`);
      this.panel.replaceChildren(...draw());
    });
  }
}

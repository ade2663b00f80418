// Light or dark: as the reader's system has it, until the button is used.
import { h } from "./dom";

type Theme = "light" | "dark";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme | null = null;
const theme = (): Theme => chosen ?? (system.matches ? "dark" : "light");

// The style sheet knows the themes by this alone, so that each colour stands in it once.
function apply() {
  root.dataset["theme"] = theme();
}
apply();

// `changed` is called when colours have changed, for what is drawn on a canvas.
export function themeButton(changed: () => void): HTMLElement {
  const button = h("button", { type: "button", class: "theme", onclick: () => {
    chosen = theme() === "dark" ? "light" : "dark";
    show();
  } });
  const name = () => {
    const other = theme() === "dark" ? "light" : "dark";
    button.textContent = other === "light" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${other} colours`);
  };
  const show = () => {
    apply();
    name();
    changed();
  };
  system.addEventListener("change", show);
  name();
  return button;
}

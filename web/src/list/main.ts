// The page of `cudabpf serve`: the traces of a folder, each with what it holds in a row. It asks again
// every two seconds, so that traces that are being written are shown as they go.
import { h } from "../dom";
import { themeButton } from "../theme";
import "../style.css";
import { errorsOf, lossesOf, startOf, type Listed } from "./data";
import "./list.css";
import { Rows } from "./rows";

const EVERY_MS = 2000;

const page = document.getElementById("page")!;
const status = h("p", { class: "note", role: "status" }, "The folder is being read …");
const trouble = h("p", { class: "missing", role: "alert", hidden: true });
const rows = new Rows();
page.append(
  h("header", {}, h("div", { class: "title" }, h("h1", {}, "Traces"), themeButton(() => {})), status),
  trouble, h("main", {}, rows.box));

let told = "", footer: HTMLElement | undefined;

function say(element: HTMLElement, text: string) {
  if (element.textContent !== text) element.textContent = text; // a screen reader repeats what is set again
}

const many = (count: number, one: string, more: string) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

function show(list: Listed) {
  rows.show(list.traces);
  const running = list.traces.filter((one) => one.state === "running").length;
  const unread = list.traces.filter((one) => one.state === "unread").length;
  say(status, [
    list.traces.length ? many(list.traces.length, "trace", "traces") : "There is no trace in this folder (*.jsonl, *.jsonl.zst).",
    running && `${running} running`, unread && `${unread} being read`].filter(Boolean).join(", "));
  const missing = [
    list.left_out && `${many(list.left_out, "entry of the folder is", "entries of the folder are")} not shown: this list is full.`,
    list.unread_folders.length && `Could not be read: ${list.unread_folders.join(", ")}.`].filter(Boolean).join(" ");
  trouble.hidden = !missing;
  say(trouble, missing);
  footer ??= page.appendChild(h("footer", {}, `cudabpf ${list.version}. Figures are those of `, h("code", {}, "cudabpf summary"), "."));
}

async function ask() {
  const answer = await fetch("traces.json", { cache: "no-store", signal: AbortSignal.timeout(30_000) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  if (text !== told) show(JSON.parse(text) as Listed);
  told = text;
}

async function again() {
  try {
    if (!document.hidden || !told) await ask();
    document.documentElement.dataset["drawn"] = "true";
  } catch (error) {
    told = "";
    trouble.hidden = false;
    say(trouble, `The server gives no list: ${error instanceof Error ? error.message : String(error)}`);
  }
  setTimeout(() => void again(), EVERY_MS);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) void ask().catch(() => {}); });
Object.assign(window, { cudabpfList: { rows, errorsOf, lossesOf, startOf } }); // for tests, and for whoever opens the console
void again();

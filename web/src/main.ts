// The page from top to bottom. What is read first is drawn as soon as the answers are read, before the
// browser has come to the timelines, which may be long.
import { comparisonPage } from "./compare/page";
import { isComparison, toldIn } from "./data/answers";
import { unpack } from "./data/packed";
import { timelineIn } from "./data/timeline";
import { h } from "./dom";
import { reportPage } from "./report";
import "./style.css";

const page = document.getElementById("page")!;

function fail(error: unknown) {
  page.querySelector(".loading")?.remove();
  page.append(h("p", { class: "missing", role: "alert" }, `This page cannot be drawn: ${error instanceof Error ? error.message : String(error)}`));
}

async function start() {
  const parsed = new Promise<void>((done) =>
    document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", () => done()) : done());
  const told = toldIn(await unpack("answers"));
  const draw = isComparison(told) ? comparisonPage(page, told) : reportPage(page, told);
  const loading = h("p", { class: "note loading" }, "The timeline is being read …");
  page.append(loading);
  await parsed;
  const timelines = [];
  for (const id of isComparison(told) ? ["timeline", "timeline-b"] : ["timeline"]) timelines.push(timelineIn(await unpack(id)));
  await new Promise((drawn) => setTimeout(drawn)); // the verdict is on the screen first
  loading.remove();
  draw(timelines);
  page.append(h("footer", {}, `Written by cudabpf ${told.version}. Nothing in this file is loaded from elsewhere, and nothing is sent.`));
  document.documentElement.dataset["drawn"] = "true";
}

start().catch(fail);

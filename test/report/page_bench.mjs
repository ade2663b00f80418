// How soon a report is to be seen, and how smoothly it moves. usage: page_bench.mjs REPORT CHROMIUM WEB
import { createRequire } from "node:module";

const [report, executablePath, web] = process.argv.slice(2);
const { chromium } = createRequire(`${web}/package.json`)("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, offline: true });
const began = performance.now();
await page.goto(`file://${report}`, { waitUntil: "commit" });
await page.waitForSelector(".verdict", { timeout: 60_000 });
const verdict = performance.now() - began;
await page.waitForSelector("html[data-drawn]", { timeout: 120_000 });
const drawn = performance.now() - began;
const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);

// Each frame moves the view. What draws it has requested the frame before the test does, so the time
// between two frames has the drawing in it.
const framesOf = (moves) => page.evaluate(async (moves) => {
  const { view } = window.cudabpfReport, frames = 120, times = [];
  view.showAll();
  await new Promise(requestAnimationFrame);
  let last = performance.now();
  for (let i = 0; i < frames; i++) {
    if (moves === "zoom") view.zoom(i < frames / 2 ? 0.93 : 1 / 0.93);
    else if (moves === "pan") view.pan(i < frames / 2 ? 0.01 : -0.01);
    if (moves === "pan" && i === 0) view.zoom(0.5);
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  times.sort((a, b) => a - b);
  return { middle: times[frames / 2], worst: times[Math.floor(frames * 0.95)] };
}, moves);
const events = await page.evaluate(() => window.cudabpfReport.timeline.lanes.reduce((sum, lane) => sum + lane.size, 0));
const results = [];
for (const moves of ["zoom", "pan"]) {
  const { middle, worst } = await framesOf(moves);
  results.push(`${moves} ${(1000 / middle).toFixed(0)} frames/s, 95 % at least ${(1000 / worst).toFixed(0)}`);
}
console.log(`            ${events.toLocaleString("en")} events drawn; first paint ${Math.round(paint)} ms, verdict ${Math.round(verdict)} ms, ` +
  `timeline ${Math.round(drawn)} ms; ${results.join("; ")}`);
await browser.close();

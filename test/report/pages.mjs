// A browser, and the reports that report_page.py made for tests in $REPORTS, beside what the subcommands answer.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before } from "node:test";

export const { REPORTS, CHROMIUM, WEB } = process.env;
const require = createRequire(`${WEB}/package.json`);
const { chromium } = require("playwright-core");
export const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const json = (name) => JSON.parse(readFileSync(`${REPORTS}/${name}.json`, "utf8"));

export let browser;
before(async () => {
  // Chromium has no sandbox for root; and /dev/shm may be small.
  const args = ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  browser = await chromium.launch({ executablePath: CHROMIUM, args });
});
after(async () => { await browser?.close(); });

// A page that may not request anything from the network, and logs no complaint.
export async function opened(name, run, { width = 1280, colorScheme = "light", hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, offline: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [], requested = [];
  page.on("console", (message) => {
    const own = message.text().includes("willReadFrequently"); // of tests that read what is drawn
    if (["error", "warning"].includes(message.type()) && !own) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => requested.push(request.url()));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  const url = `file://${REPORTS}/${name}.html`;
  await page.goto(url + hash);
  await page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  await run(page);
  await page.waitForTimeout(50);
  assert.deepEqual(complaints, []);
  assert.deepEqual(requested.filter((one) => !one.startsWith(url)), []);
  await context.close();
}
export const shown = (page) => page.evaluate(() => ({ ...window.cudabpfReport.view.window }));
export const length = async (page) => { const { from, to } = await shown(page); return to - from; };
export const focus = (page) => page.locator(".tracks").first().focus();
export const rows = (page, table = page.locator("#panel .table").first()) => table.locator("tbody tr").evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => (cell.querySelector(".text") ?? cell).textContent.trim())));
export const plain = (text) => Number(text.replaceAll(",", ""));

// Texts are cut and made printable, and long lists are cut and say so.
export function same(page, expected, where) {
  if (Array.isArray(expected)) {
    assert.equal(page.length, Math.min(expected.length, 2000), where);
    page.forEach((one, index) => same(one, expected[index], `${where}[${index}]`));
  } else if (expected && typeof expected === "object") {
    for (const key of Object.keys(expected)) same(page[key], expected[key], `${where}.${key}`);
  } else if (typeof expected !== "string" || /^[\x20-\x7e]{0,4096}$/.test(expected)) assert.deepEqual(page, expected, where);
}

export const NAMES = readdirSync(REPORTS).filter((name) => name.endsWith(".html")).map((name) => name.slice(0, -5));
export const COMPARED = NAMES.filter((name) => name.startsWith("vs-"));


// What a person can do with the list of `cudabpf serve` in a browser. serve_page.py runs the server, at
// $URL, on the traces in $FOLDER.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, renameSync, unlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

const { URL: url, FOLDER, CHROMIUM, WEB, MORE, END } = process.env;
const require = createRequire(`${WEB}/package.json`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

let browser;
before(async () => {
  // Chromium has no sandbox for root; and /dev/shm may be small.
  const args = ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  browser = await chromium.launch({ executablePath: CHROMIUM, args });
});
after(async () => { await browser?.close(); });

// A page that makes requests only to the server, and logs no complaint.
async function opened(run, { width = 1280, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce", bypassCSP: false });
  const page = await context.newPage();
  const complaints = [], requested = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => requested.push(request.url()));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  await page.goto(url);
  await page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 4
    && ![...document.querySelectorAll(".state")].some((one) => one.textContent === "being read"), null, { timeout: 60_000 });
  await run(page);
  assert.deepEqual(complaints, []);
  assert.deepEqual(requested.filter((one) => !one.startsWith(url) && one !== "data:,"), []);
  await context.close();
}

const row = (page, name) => page.locator("tbody tr").filter({ has: page.getByRole("link", { name, exact: true }) });
const cell = (page, name, column) => row(page, name).locator(`[data-name="${column}"]`).textContent();
const listed = async (name) => (await (await fetch(`${url}traces.json`)).json()).traces.find((one) => one.name === name);
const plain = (text) => Number(text.replaceAll(",", ""));

test("a row has what the server says of its trace", () => opened(async (page) => {
  for (const name of ["gpt2.jsonl.zst", "lossy.jsonl", "run/growing.jsonl"]) {
    const { summary, program } = await listed(name);
    assert.equal(plain(await cell(page, name, "calls")), summary.calls);
    assert.equal(plain(await cell(page, name, "launches")), summary.launched);
    assert.equal(await cell(page, name, "program"), program);
    const finding = summary.verdict.find(({ id }) => name !== "run/growing.jsonl" || id !== "incomplete");
    assert.ok((await cell(page, name, "verdict")).startsWith(finding?.title ?? ""));
  }
  assert.equal(await cell(page, "gpt2.jsonl.zst", "missing"), "nothing");
  assert.equal(await row(page, "run/growing.jsonl").locator(".state").textContent(), "running");
  assert.match(await cell(page, "lossy.jsonl", "missing"), /ring_full/);
  const red = await row(page, "lossy.jsonl").locator('td[data-name="missing"]').evaluate((one) => getComputedStyle(one).color);
  assert.equal(red, "rgb(180, 35, 24)");
  assert.match(await page.locator("header [role=status]").textContent(), /^6 traces, 1 running$/);
}));

const names = (page) => page.locator("tbody th a").allTextContents();

test("each trace has its host and its GPU", () => opened(async (page) => {
  assert.deepEqual([await cell(page, "gpt2.jsonl.zst", "host"), await cell(page, "gpt2.jsonl.zst", "GPU")], ["vm", "NVIDIA H200"]);
  assert.equal(await cell(page, "gpt2.jsonl.zst", "began"), new Date("2026-11-28T06:05:53Z").toLocaleString("sv")); // not when it was copied here
}));

test("every column sorts, either way, and a search looks at all of a row", () => opened(async (page) => {
  const all = await names(page), sort = (name) => page.locator("thead button", { hasText: new RegExp(`^${name}$`) }).click();
  await sort("trace");
  assert.deepEqual(await names(page), [...all].sort((a, b) => a.localeCompare(b, "en", { numeric: true })));
  await sort("calls");
  const calls = async () => (await page.locator('td[data-name="calls"]').allTextContents()).filter(Boolean).map(plain);
  assert.deepEqual(await calls(), [...(await calls())].sort((a, b) => b - a));
  assert.equal(await page.locator("th[aria-sort]").textContent(), "calls");
  await sort("calls");
  assert.deepEqual(await calls(), [...(await calls())].sort((a, b) => a - b));
  assert.equal((await page.locator('td[data-name="calls"]').last().textContent()), "", "what is not known comes last");
  for (const [text, found] of [["h200", ["lossy.jsonl", "gpt2.jsonl.zst"]], ["transformer_inference", ["gpt2.jsonl.zst"]], ["ring_full", ["lossy.jsonl"]], ["no such", []]]) {
    await page.getByLabel("Find a trace").fill(text);
    assert.deepEqual((await names(page)).filter((name) => !name.startsWith("<") && name !== "hostile.jsonl"), found, text);
  }
  await page.waitForTimeout(2500); // the list has been requested again
  assert.equal(await page.locator("tbody tr").count(), 0);
}));

test("at 1280 pixels no column is cut, and no word of a program is broken", () => opened(async (page) => {
  const { scrollWidth, clientWidth } = await page.locator(".scroll").evaluate(({ scrollWidth, clientWidth }) => ({ scrollWidth, clientWidth }));
  assert.ok(scrollWidth <= clientWidth, `${scrollWidth} in ${clientWidth}`);
  const { height } = await row(page, "gpt2.jsonl.zst").boundingBox();
  assert.ok(height < 110, `${height} pixels high`);
}));

for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]])
  test(`fits ${width} pixels, and is accessible, ${colorScheme}`, () => opened(async (page) => {
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`), []);
  }, { width, colorScheme }));

test("a hostile name runs no script, and is shown as text", () => opened(async (page) => {
  const link = page.getByRole("link", { name: /<img src=x onerror=/ });
  assert.equal(await link.count(), 1);
  assert.equal(await page.locator("img, iframe, object, embed").count(), 0);
  await link.click();
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.match(await page.locator("h1").textContent(), /^<img src=x onerror=/);
}));

test("what cannot be read says why, and leads nowhere", () => opened(async (page) => {
  const unread = page.locator("tbody tr").filter({ hasText: "nothing.jsonl" });
  assert.equal(await unread.locator("a[href]").count(), 0);
  assert.match(await unread.locator('td[data-name="missing"]').textContent(), /is not a cudabpf trace/);
}));

test("by keyboard: to a report, and back", () => opened(async (page) => {
  const link = page.getByRole("link", { name: "gpt2.jsonl.zst", exact: true });
  for (let i = 0; i < 20 && !(await link.evaluate((one) => one === document.activeElement)); i++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/report/gpt2.jsonl.zst");
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await page.getByRole("button", { name: "Update" }).count(), 0); // it has ended
  await page.getByRole("link", { name: "All traces" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(url);
}));

test("a running trace is followed, in the list and in its report", () => opened(async (page) => {
  const name = "run/growing.jsonl", link = page.getByRole("link", { name, exact: true });
  await link.focus();
  appendFileSync(`${FOLDER}/${name}`, MORE);
  await page.waitForFunction((text) => [...document.querySelectorAll("tbody tr")].some((one) =>
    one.textContent.includes(text) && one.querySelector('td[data-name="launches"]').textContent === "40"), name, { timeout: 20_000 });
  assert.equal(await link.evaluate((one) => one === document.activeElement), true);
  await link.click();
  await page.waitForSelector("html[data-drawn]");
  const calls = () => page.evaluate(() => window.cudabpfReport.answers.answers.summary.summary.calls);
  assert.equal(await calls(), 40);
  // That it has no end yet is no fault.
  assert.match(await page.locator("nav.served").textContent(), /Recording goes on/);
  assert.doesNotMatch(await page.locator("header").textContent(), /incomplete/i);
  assert.equal(await page.locator(".missing").count(), 0);
  assert.equal(await page.locator("header .whole").textContent(), "No event has been lost so far.");
  appendFileSync(`${FOLDER}/${name}`, MORE + END);
  await page.waitForTimeout(300);
  await page.getByRole("button", { name: "Update" }).click();
  await page.waitForFunction(() => document.documentElement.dataset.drawn && window.cudabpfReport.answers.answers.summary.summary.calls === 70);
  assert.equal(await page.getByRole("button", { name: "Update" }).count(), 0);
}));

test("a trace that no process writes and that has no end is not complete", () => opened(async (page) => {
  await page.getByRole("link", { name: "hostile.jsonl", exact: true }).click();
  await page.waitForSelector("html[data-drawn]");
  assert.match(await page.locator("nav.served").textContent(), /had no end/);
  assert.match(await page.locator("header").textContent(), /This trace is not complete/);
}));

test("traces come and go", () => opened(async (page) => {
  renameSync(`${FOLDER}/lossy.jsonl`, `${FOLDER}/renamed.jsonl`);
  await page.getByRole("link", { name: "renamed.jsonl", exact: true }).waitFor({ timeout: 20_000 });
  assert.equal(await page.getByRole("link", { name: "lossy.jsonl", exact: true }).count(), 0);
  unlinkSync(`${FOLDER}/renamed.jsonl`);
  await page.getByRole("link", { name: "renamed.jsonl", exact: true }).waitFor({ state: "detached", timeout: 20_000 });
}));

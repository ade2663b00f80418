// What a person can do with a report in a browser. report_page.py makes the reports, and what the
// subcommands answer, in $REPORTS.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

const { REPORTS, CHROMIUM, WEB } = process.env;
const require = createRequire(`${WEB}/package.json`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const json = (name) => JSON.parse(readFileSync(`${REPORTS}/${name}.json`, "utf8"));

let browser;
before(async () => { browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] }); });
after(async () => { await browser?.close(); });

// A page that may not ask the network for anything, and complains of nothing.
async function opened(name, run, { width = 1280, colorScheme = "light", hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, offline: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [], asked = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => asked.push(request.url()));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  const url = `file://${REPORTS}/${name}.html`;
  await page.goto(url + hash);
  await page.waitForSelector("html[data-drawn]", { timeout: 30_000 });
  await run(page);
  await page.waitForTimeout(50);
  assert.deepEqual(complaints, []);
  assert.deepEqual(asked.filter((one) => !one.startsWith(url)), []);
  await context.close();
}
const shown = (page) => page.evaluate(() => ({ ...window.cudabpfReport.view.window }));
const length = async (page) => { const { from, to } = await shown(page); return to - from; };
const focus = (page) => page.locator(".tracks").focus();
const rows = (page) => page.locator("#panel .table").first().locator("tbody tr").evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => (cell.querySelector(".text") ?? cell).textContent.trim())));
const plain = (text) => Number(text.replaceAll(",", ""));

// Texts are cut and made printable, and long lists are cut and say so.
function same(page, told, where) {
  if (Array.isArray(told)) {
    assert.equal(page.length, Math.min(told.length, 2000), where);
    page.forEach((one, index) => same(one, told[index], `${where}[${index}]`));
  } else if (told && typeof told === "object") {
    for (const key of Object.keys(told)) same(page[key], told[key], `${where}.${key}`);
  } else if (typeof told !== "string" || /^[\x20-\x7e]{0,4096}$/.test(told)) assert.deepEqual(page, told, where);
}

const NAMES = readdirSync(REPORTS).filter((name) => name.endsWith(".html")).map((name) => name.slice(0, -5));

for (const name of NAMES) {
  test(`${name}: what the page has is what the subcommands answer`, () => opened(name, async (page) => {
    const answers = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.answers)));
    const told = json(name);
    for (const [subcommand, { trace, ...answer }] of Object.entries(told)) {
      same(answers.answers[subcommand], answer, subcommand);
      if (subcommand === "summary") same(answers.trace, trace, "trace");
    }
    const figures = await page.locator(".figures > div").evaluateAll((all) => Object.fromEntries(
      all.map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").textContent])));
    assert.equal(plain(figures["CUDA calls"]), told.summary.summary.calls);
    const verdict = told.summary.summary.verdict[0];
    if (verdict && name !== "hostile") {
      assert.equal(await page.locator(".finding.first h2").textContent().then((text) => text.startsWith(verdict.title)), true);
      assert.equal(await page.locator(".finding.first p").textContent(), verdict.text);
    }
  }));
  for (const width of [1280, 390])
    for (const colorScheme of ["light", "dark"])
      test(`${name}: fits ${width} pixels, and bars nobody, ${colorScheme}`, () => opened(name, async (page) => {
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(overflow <= 0, `${overflow} pixels too wide`);
        await focus(page);
        await page.keyboard.press("ArrowRight"); // with the details of an event
        await page.evaluate(axe);
        for (const tab of await page.locator("[role=tab]").all()) {
          await tab.click();
          const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
          const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
          assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" ")}`), []);
        }
      }, { width, colorScheme }));
}

test("a hostile trace runs no script, and is shown as text", () => opened("hostile", async (page) => {
  await focus(page);
  for (let i = 0; i < 30; i++) await page.keyboard.press(i % 3 ? "ArrowRight" : "ArrowDown");
  for (const tab of await page.locator("[role=tab]").all()) await tab.click();
  await page.locator(".tracks").hover({ position: { x: 400, y: 80 } });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("img, iframe, object, embed, link, a[href]").count(), 0);
  assert.equal(await page.locator("script").count(), 3);
  await page.locator("#tab-functions").click();
  assert.ok((await page.locator("#panel").textContent()).includes("<script>window.hacked=1</script>"));
  const all = await page.evaluate(() => JSON.stringify(window.cudabpfReport.answers));
  assert.ok(all.length < 300_000);
  const late = await page.evaluate(() => window.cudabpfReport.timeline.left_out.too_late);
  assert.ok(late > 0);
  assert.ok((await page.locator(".timeline").textContent()).includes("whose time is impossible"));
}));

test("the policy forbids what is not this script", () => opened("gpt2", async (page) => {
  const policy = await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content");
  assert.match(policy, /default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
  assert.doesNotMatch(policy, /unsafe/);
}));

test("an injected script is refused by the policy", async () => {
  const page = await browser.newPage();
  await page.goto(`file://${REPORTS}/gpt2.html`);
  await page.waitForSelector("html[data-drawn]");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.hacked = 1";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.close();
});

test("losses are said first, in red", () => opened("lossy", async (page) => {
  const box = page.locator("header .missing");
  assert.ok((await box.textContent()).includes("120 ring_full_entry"));
  const color = await box.evaluate((element) => getComputedStyle(element).borderTopColor);
  assert.equal(color, "rgb(180, 35, 24)");
  const [loss, verdict] = await page.evaluate(() => [".missing", ".verdict"].map((one) => document.querySelector(one).getBoundingClientRect().top));
  assert.ok(loss < verdict);
}));

test("wheel, drag and keys zoom and move", () => opened("gpt2", async (page) => {
  const tracks = page.locator(".tracks"), whole = await length(page);
  await tracks.hover({ position: { x: 700, y: 70 } });
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -240);
  await page.keyboard.up("Control");
  const near = await length(page);
  assert.ok(near < whole * 0.6, "Ctrl and wheel");
  await focus(page);
  await page.mouse.wheel(0, -240);
  await page.waitForTimeout(50);
  const nearer = await length(page);
  assert.ok(nearer < near * 0.6, "wheel alone, once it has the focus");
  let before = await shown(page);
  const box = await tracks.boundingBox();
  await page.mouse.move(box.x + 600, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 100, { steps: 4 });
  await page.mouse.up();
  let now = await shown(page);
  assert.ok(now.from > before.from && Math.abs(now.to - now.from - nearer) < 2, "drag");
  for (const [key, moves] of [["d", (a, b) => b.from > a.from], ["a", (a, b) => b.from < a.from],
    ["w", (a, b) => b.to - b.from < a.to - a.from], ["s", (a, b) => b.to - b.from > a.to - a.from]]) {
    before = await shown(page);
    await page.keyboard.press(key);
    now = await shown(page);
    assert.ok(moves(before, now), key);
  }
  await page.keyboard.press("0");
  assert.ok((await length(page)) >= whole * 0.99);
  await page.mouse.move(box.x + 600, box.y + 100);
  await page.evaluate(() => {
    document.activeElement.blur();
    window.scrollTo(0, window.scrollY - 100);
  });
  await page.waitForTimeout(600); // a wheel that turns on goes where it began
  const scrolled = await page.evaluate(() => window.scrollY);
  await page.mouse.wheel(0, 300);
  await page.waitForTimeout(200);
  assert.ok((await page.evaluate(() => window.scrollY)) > scrolled, "without the focus the wheel scrolls the page");
}));

test("search finds functions and kernels, and goes from one to the next", () => opened("gpt2", async (page) => {
  await focus(page);
  await page.keyboard.press("/");
  await page.keyboard.type("culaunchkernelex");
  const { count } = json("gpt2").calls.calls.find((row) => row.name === "cuLaunchKernelEx");
  assert.equal(plain((await page.locator(".find .note").textContent()).split(" ")[0]), count);
  await page.keyboard.press("Enter");
  const first = await page.evaluate(() => window.cudabpfReport.view.chosen);
  await page.keyboard.press("Enter");
  const second = await page.evaluate(() => window.cudabpfReport.view.chosen);
  assert.ok(second.event > first.event);
  await page.keyboard.press("Shift+Enter");
  assert.deepEqual(await page.evaluate(() => window.cudabpfReport.view.chosen), first);
  assert.ok((await page.locator(".details").textContent()).includes("cuLaunchKernelEx"));
}));

for (const [name, from, to] of [["gpt2", 14_950_000_000, 15_200_000_000], ["gpt2", 4_000_000_000, 5_200_000_000],
  ["measured", 7_810_000, 9_000_000]])
  test(`${name}: a range has the figures of --from ${from}ns --to ${to}ns`, () => opened(name, async (page) => {
    const sum = json(`${name}-summary-${from}-${to}`).summary.calls;
    const counted = await page.evaluate(([from, to]) => window.cudabpfReport.tablesOf({ from, to }), [from, to]);
    assert.equal(counted.functions.reduce((all, row) => all + row.count, 0), sum);
    const near = (a, b, what) => assert.ok(Math.abs(a - b) < 0.0015, `${what}: ${a} is not ${b}`);
    for (const [of, told] of [["functions", json(`${name}-calls-${from}-${to}`).calls], ["ioctls", json(`${name}-ioctls-${from}-${to}`).calls]]) {
      assert.ok(of === "ioctls" || told.length > 3);
      for (const row of told) {
        const one = counted[of].find((other) => other.name === row.name);
        assert.ok(one, `${of} ${row.name}`);
        for (const key of ["count", "timed"]) assert.equal(one[key], row[key], `${row.name} ${key}`);
        assert.equal(one.errors, row.errors ?? row.failed, `${row.name} errors`);
        near(one.total_us, row.total_us, `${row.name} total`);
        if (row.timed) near(one.max_us, row.max_us, `${row.name} longest`);
        if (of === "ioctls") assert.equal(one.ioctls ?? 0, row.ioctls, `${row.name} ioctls`);
      }
      const inside = counted[of].filter((row) => !row.name.startsWith("("));
      assert.equal(inside.length, told.length);
    }
    await page.evaluate(([from, to]) => window.cudabpfReport.view.select({ from, to }), [from, to]);
    const told = json(`${name}-calls-${from}-${to}`).calls;
    assert.equal(await page.locator("#panel h3").first().textContent(), "Functions in the selected range");
    assert.deepEqual((await rows(page)).map((row) => [row[0], plain(row[1])]).sort(), told.map((row) => [row.name, row.count]).sort());
    assert.ok((await page.locator("#panel").textContent()).includes("Counted in this page"));
  }));

test("a range is selected by Shift and drag, and cleared by Esc", () => opened("gpt2", async (page) => {
  await page.locator(".tracks").hover({ position: { x: 900, y: 80 } });
  const box = await page.locator(".tracks").boundingBox();
  await page.keyboard.down("Shift");
  await page.mouse.move(box.x + 900, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 1180, box.y + 100, { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  assert.ok((await page.locator(".range").textContent()).startsWith("Selected:"));
  assert.equal(await page.locator("#panel h3").first().textContent(), "Functions in the selected range");
  await focus(page);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#panel h3").first().textContent(), "Functions");
}));

test("tables sort, filter, and lead to the timeline", () => opened("gpt2", async (page) => {
  const names = async () => (await rows(page)).map((row) => row[0]);
  await page.getByRole("button", { name: "function", exact: true }).click();
  assert.deepEqual(await names(), [...(await names())].sort((a, b) => a.localeCompare(b, "en")));
  await page.getByRole("button", { name: "calls", exact: true }).click();
  const counts = (await rows(page)).map((row) => plain(row[1]));
  assert.deepEqual(counts, [...counts].sort((a, b) => b - a));
  await page.getByLabel("Filter: Functions").fill("memcpy");
  assert.deepEqual((await names()).sort(), ["cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync"]);
  await page.locator("#tab-gaps").click();
  const gap = json("gpt2").gaps.longest_idle[0];
  await page.locator("#panel .place").first().click();
  const { from, to } = await shown(page);
  assert.ok(from <= gap.begin_us * 1000 && to >= (gap.begin_us + gap.time_us) * 1000);
  assert.ok(to - from < gap.time_us * 1000 * 1.5);
}));

test("the address keeps the view", async () => {
  let hash = "";
  await opened("gpt2", async (page) => {
    await page.evaluate(() => window.cudabpfReport.view.show({ from: 15e9, to: 15.2e9 }));
    await page.evaluate(() => window.cudabpfReport.view.select({ from: 15.05e9, to: 15.1e9 }));
    await page.locator("#tab-kernels").click();
    await page.waitForTimeout(300);
    hash = new URL(page.url()).hash;
  });
  await opened("gpt2", async (page) => {
    assert.deepEqual(await shown(page), { from: 15e9, to: 15.2e9 });
    assert.equal(await page.locator("#tab-kernels").getAttribute("aria-selected"), "true");
    assert.ok((await page.locator(".range").textContent()).includes("15.050000 s to 15.100000 s"));
  }, { hash });
  for (const bad of ["#view=9-1&event=99999-99999999&tab=<b>&range=--", "#view=NaN-1e9", "#%", `#find=${"x".repeat(5000)}`])
    await opened("gpt2", async (page) => assert.ok((await length(page)) > 16e9), { hash: bad });
});

test("arrow keys go from event to event, and say so", () => opened("measured", async (page) => {
  await focus(page);
  await page.keyboard.press("ArrowRight");
  const first = await page.locator("#timeline-said").textContent();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await page.locator("#timeline-said").textContent(), first);
  assert.ok(await page.locator(".details").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator(".details").isVisible()));
}));

test("a launch knows what the GPU did, and that knows its launch", () => opened("measured", async (page) => {
  const launch = await page.evaluate(() => {
    const { timeline, view } = window.cudabpfReport;
    const lane = timeline.lanes.find((one) => one.kind === "calls" && !one.depth);
    const event = lane.kinds.findIndex((kind) => timeline.kinds[kind].name === "cuLaunchKernel");
    view.choose({ lane: lane.index, event });
    return { lane: lane.index, event };
  });
  await page.locator(".related", { hasText: "What the GPU did for it" }).getByRole("button").first().click();
  await page.locator(".related", { hasText: "Asked for by the call" }).getByRole("button").first().click();
  assert.deepEqual(await page.evaluate(() => window.cudabpfReport.view.chosen), launch);
}));

test("colours follow the system, and the button", () => opened("gpt2", async (page) => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await back(), "rgb(15, 18, 21)");
  await page.getByRole("button", { name: "Use light colours" }).click();
  assert.equal(await back(), "rgb(251, 251, 250)");
}, { colorScheme: "dark" }));

test("one touch pans, two zoom", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await page.goto(`file://${REPORTS}/gpt2.html`);
  await page.waitForSelector("html[data-drawn]");
  const box = await page.locator(".tracks").evaluate((element) => { element.scrollIntoView(); const { x, y } = element.getBoundingClientRect(); return { x, y }; });
  const session = await context.newCDPSession(page), y = box.y + 90;
  const touch = (type, ...xs) => session.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x: box.x + x, y, id })) });
  const whole = await length(page);
  await touch("touchStart", 180, 240);
  await touch("touchMove", 140, 290);
  await touch("touchMove", 110, 330);
  await touch("touchEnd");
  assert.ok((await length(page)) < whole * 0.6);
  await context.close();
});

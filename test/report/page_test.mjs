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
before(async () => {
  // Chromium has no sandbox for root; and /dev/shm may be small.
  const args = ["--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  browser = await chromium.launch({ executablePath: CHROMIUM, args });
});
after(async () => { await browser?.close(); });

// A page that may not ask the network for anything, and complains of nothing.
async function opened(name, run, { width = 1280, colorScheme = "light", hash = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, offline: true, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [], asked = [];
  page.on("console", (message) => {
    const own = message.text().includes("willReadFrequently"); // of tests that read what is drawn
    if (["error", "warning"].includes(message.type()) && !own) complaints.push(message.text());
  });
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
const focus = (page) => page.locator(".tracks").first().focus();
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
const COMPARED = NAMES.filter((name) => name.startsWith("vs-"));

for (const name of NAMES) {
  if (!COMPARED.includes(name)) test(`${name}: what the page has is what the subcommands answer`, () => opened(name, async (page) => {
    const answers = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.answers)));
    const told = json(name);
    for (const [subcommand, { trace, ...answer }] of Object.entries(told)) {
      same(answers.answers[subcommand], answer, subcommand);
      if (subcommand === "summary") same(answers.trace, trace, "trace");
    }
    const figures = await page.locator(".figures > div").evaluateAll((all) => Object.fromEntries(
      all.map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").textContent])));
    const { calls, launched, kernel_runs } = told.summary.summary;
    assert.equal(plain(figures["CUDA calls"]), calls);
    const [title, kernels] = Object.entries(figures).find(([one]) => one.startsWith("kernels run"));
    assert.deepEqual([plain(kernels), plain(title.replace(/\D/g, ""))], [kernel_runs, launched]);
    const verdict = told.summary.summary.verdict[0];
    if (verdict && name !== "hostile") {
      assert.equal(await page.locator(".finding.first h2").textContent().then((text) => text.startsWith(verdict.title)), true);
      assert.equal(await page.locator(".finding.first p").textContent(), verdict.text);
    }
  }));
  const looks = [[1280, "light"], [390, "dark"], ...(["hostile", "measured"].includes(name) ? [[1280, "dark"], [390, "light"]] : [])];
  for (const [width, colorScheme] of looks)
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
  assert.equal(await page.locator("script").count(), 4);
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

// What a curve shows at a moment: the figure at whose height its line is drawn.
const drawn = (page, title, ns) => page.evaluate(([title, ns]) => {
  const { curves } = window.cudabpfReport;
  const index = curves.curves.findIndex((curve) => curve.title === title);
  if (index < 0) return "no such curve";
  const plot = curves.plots[index], { canvas } = plot.ctx;
  const [, r, g, b] = /#(..)(..)(..)/.exec(plot.series[1].stroke(plot, 1)).map((hex) => parseInt(hex, 16));
  const { data } = plot.ctx.getImageData(Math.round(plot.valToPos(ns, "x", true)), 0, 1, canvas.height), rows = [];
  for (let y = 0; y < canvas.height; y++) {
    const [red, green, blue, alpha] = data.subarray(4 * y, 4 * y + 4);
    if (alpha > 120 && Math.abs(red - r) + Math.abs(green - g) + Math.abs(blue - b) < 40) rows.push(y);
  }
  if (!rows.length) return null;
  const y = rows.reduce((sum, one) => sum + one, 0) / rows.length + 0.5;
  const { max } = plot.scales.y, zero = plot.valToPos(0, "y", true), top = plot.valToPos(max, "y", true);
  return { value: ((y - zero) / (top - zero)) * max, pixel: max / (zero - top) };
}, [title, ns]);

test("samples of a GPU are drawn as high as they were", () => opened("sampled", async (page) => {
  const { from, to } = await page.evaluate(() => {
    const { answers } = window.cudabpfReport;
    const phase = answers.answers.summary.summary.phases.find((one) => one.name === "inference");
    return { from: phase.begin_us * 1000, to: phase.end_us * 1000 };
  });
  // As test/golden/sampled/README.md has it.
  for (const [share, watts] of [[0.1, 702], [0.5, 702], [0.9, 702]]) {
    const { value, pixel } = await drawn(page, "GPU 0 power", from + share * (to - from));
    assert.ok(Math.abs(value - watts) < 1.5 * pixel, `${value} W is not ${watts} W`);
    const activity = await drawn(page, "GPU 0 activity", from + share * (to - from));
    assert.ok(activity.value > 80, `${activity.value} %`);
  }
  for (const share of [0.2, 0.8]) {
    const { value, pixel } = await drawn(page, "GPU 0 power", from * share);
    assert.ok(Math.abs(value - 127) < 1.5 * pixel, `${value} W is not 127 W`);
    const activity = await drawn(page, "GPU 0 activity", from * share);
    assert.ok(Math.abs(activity.value) < 1.5 * activity.pixel, `${activity.value} % before the first call`);
  }
}));

// What a program did on simulated GPUs.
const gpuLines = NAMES.includes("simulated") ? json("simulated-gpu") : null;
const unbuilt = gpuLines ? false : "the simulated driver, CUPTI and NVML are not built";

test("each sample of both GPUs is in its curve", { skip: unbuilt }, () => opened("simulated", async (page) => {
  for (const [device, field, title] of [[0, "power_w", "power"], [1, "power_w", "power"], [0, "sm_active", "activity"], [1, "sm_active", "activity"]]) {
    const samples = gpuLines.filter((line) => line.op === "sample" && line.device === device && field in line);
    assert.ok(samples.length > 5);
    const told = await page.evaluate((title) => {
      const { curves } = window.cudabpfReport, curve = curves.curves.find((one) => one.title === title);
      return { times: curve.times, values: curve.lines[0].values };
    }, `GPU ${device} ${title}`);
    const step = await page.evaluate(() => window.cudabpfReport.timeline.curves.gpus[0].step_ns);
    for (const { ts, [field]: value } of samples) {
      const at = told.times.findIndex((time) => time > ts);
      assert.ok(told.times[at] - ts <= step && Math.abs(told.values[at] - value) < 1e-6, `GPU ${device} ${title} at ${ts}`);
      if (ts < 5e6) continue; // at the very edge
      const seen = await drawn(page, `GPU ${device} ${title}`, ts - 1e6);
      assert.ok(seen, `GPU ${device} ${title}: nothing is drawn at ${ts}`);
      assert.ok(Math.abs(seen.value - value) < Math.max(1.5 * seen.pixel, 1), `${seen.value} is not ${value}`);
    }
  }
}));

test("what the GPUs did is in their queues, when they did it", { skip: unbuilt }, () => opened("simulated", async (page) => {
  const works = gpuLines.filter((line) => ["kernel", "copy", "set", "graph"].includes(line.op)).sort((a, b) => a.ts - b.ts || a.duration_us - b.duration_us);
  assert.ok(works.length > 1000);
  const told = await page.evaluate(() => {
    const { timeline } = window.cudabpfReport, all = [];
    for (const lane of timeline.lanes) {
      if (lane.kind !== "gpu") continue;
      const { gpu, queue } = timeline.queues[lane.queue];
      for (let i = 0; i < lane.size; i++) {
        const { name, what } = timeline.kinds[lane.kinds[i]];
        all.push({ op: name, what, queue: `${gpu} ${queue}`, ts: lane.begin[i], ns: lane.end[i] - lane.begin[i], call: lane.ids[i] });
      }
    }
    return all.sort((a, b) => a.ts - b.ts || a.ns - b.ns);
  });
  assert.deepEqual(told, works.map((work) => ({ op: work.op, what: work.kernel ?? work.direction ?? "", queue: `GPU ${work.device} queue ${work.queue}`,
    ts: work.ts, ns: Math.round(work.duration_us * 1000), call: work.call })));
}));

for (const name of ["tracks", "measured"])
  test(`${name}: a GPU's work has its colour in its queue's row, from when it began until it ended`, () => opened(name, async (page) => {
    const colors = await page.evaluate(async () => {
      const { timeline, view, canvas } = window.cudabpfReport, found = [];
      const { box } = canvas, context = canvas.canvas.getContext("2d", { willReadFrequently: true });
      const hex = ([red, green, blue]) => `#${[red, green, blue].map((one) => one.toString(16).padStart(2, "0")).join("")}`;
      for (const lane of timeline.lanes.filter((one) => one.kind === "gpu"))
        for (const share of [0, 0.3, 0.7]) {
          const event = Math.floor(share * lane.size), begin = lane.begin[event], end = lane.end[event];
          if (end - begin < 100) continue;
          view.showAround({ from: begin, to: end });
          canvas.scrollTo(lane.index);
          await new Promise(requestAnimationFrame);
          await new Promise(requestAnimationFrame);
          let y = 0;
          while (y < box.clientHeight && canvas.rowAt(y)?.lane !== lane) y++;
          const at = (ns) => hex(context.getImageData(Math.round(canvas.xOf(ns) * devicePixelRatio), Math.round((y + 3) * devicePixelRatio), 1, 1).data);
          const category = timeline.categories[timeline.kinds[lane.kinds[event]].category].replace(" ", "-");
          const wanted = getComputedStyle(document.documentElement).getPropertyValue(`--c-${category}`).trim();
          const length = end - begin, isFree = event === 0 || lane.latest[event - 1] < begin - 0.1 * length;
          found.push({ wanted, inside: [0.03, 0.5, 0.97].map((part) => at(begin + part * length)),
            before: isFree ? at(begin - 0.05 * length) : null });
        }
      return found;
    });
    assert.ok(colors.length >= 4);
    for (const { wanted, inside, before } of colors) {
      assert.deepEqual(inside, [wanted, wanted, wanted]);
      assert.notEqual(before, wanted);
    }
    assert.ok(colors.some(({ before }) => before));
  }));

test("queues of GPUs stand in the order of their numbers, and arrow keys follow it", () => opened("tracks", async (page) => {
  const labels = await page.evaluate(() => window.cudabpfReport.canvas.layout.rows.filter((row) => row.lane?.kind === "gpu").map((row) => row.label));
  assert.deepEqual(labels, ["GPU 0 queue 7", "GPU 0 queue 13", "GPU 0 queue 14"]);
  await focus(page);
  await page.keyboard.press("ArrowRight");
  const queues = [];
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press("ArrowDown");
    queues.push(await page.evaluate(() => {
      const { view, timeline } = window.cudabpfReport, { queue } = timeline.lanes[view.chosen.lane];
      return queue < 0 ? "a thread" : timeline.queues[queue].queue;
    }));
  }
  assert.deepEqual(queues, ["a thread", "queue 7", "queue 13", "queue 14"]);
}));

test("a trace whose beginning was not kept says when it begins", () => opened("kept", async (page) => {
  assert.ok((await page.locator("header").textContent()).includes("Begins at 7.81 ms: what was before is not in it."));
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

for (const name of COMPARED)
  test(`${name}: begins with what diff answers`, () => opened(name, async (page) => {
    const told = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.told)));
    const { a, b, ...difference } = json(name);
    same(told.difference, difference, "difference");
    same(told.a.trace, a, "a");
    same(told.b.trace, b, "b");
    const rowsOf = (caption) => page.getByRole("region", { name: caption, exact: true }).locator("tbody tr").count();
    await page.locator("#tab-figures").click();
    assert.equal(await rowsOf("Totals"), difference.totals.length);
    await page.locator("#tab-functions").click();
    const more = page.locator("#panel").getByRole("button", { name: "Show all" });
    if (await more.count() && await more.isVisible()) await more.click();
    assert.equal(await rowsOf("Functions"), difference.functions.length);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
  }));

test("what became slower is said first, with both figures", () => opened("vs-slower", async (page) => {
  assert.equal(await page.locator(".finding.first h2").textContent(), "Iterations are 18.4 % slower in B");
  const slower = await page.locator(".slower li").allTextContents();
  assert.ok(slower[0].includes("gemm") && slower[0].includes("+29.9 %") && slower[0].includes("40.4 µs in A, 52.5 µs in B"), slower[0]);
  assert.equal(await page.locator(".faster li").count(), 0);
  await page.locator("#tab-kernels").click();
  const gemm = await page.locator("#panel tbody tr", { hasText: "gemm" }).first().locator("td").allTextContents();
  assert.deepEqual(gemm.slice(1), ["42", "42", "1.69 ms", "2.19 ms", "+504 µs", "40.4 µs", "52.5 µs", "+29.9 %"]);
}));

test("what is only asked for is no verdict on iterations", () => opened("vs-transformer", async (page) => {
  assert.equal(await page.locator(".finding.first h2").textContent(), "B took 72.6 % less time");
  assert.ok((await page.locator(".finding.first").textContent()).includes("B does not wait after each"));
}));

test("both timelines move together, and alone", () => opened("vs-transformer", async (page) => {
  const windows = () => page.evaluate(() => window.cudabpfReport.sides.map(({ view }) => ({ ...view.window })));
  const apart = ([a, b]) => [b.from - a.from, b.to - a.to];
  const near = (numbers, wanted, what) => numbers.forEach((one) => assert.ok(Math.abs(one - wanted) < 2, `${what}: ${one} is not ${wanted}`));
  near(apart(await windows()), 0, "at first");
  await focus(page);
  for (const key of ["w", "w", "d"]) await page.keyboard.press(key);
  let now = await windows();
  near(apart(now), 0, "moved");
  assert.ok(now[1].to - now[1].from < 9e9);
  const begins = await page.evaluate(() => ["a", "b"].map((side) => window.cudabpfReport.told[side].answers.summary.summary.phases
    .find((one) => one.name === "inference").begin_us * 1000));
  await page.getByLabel("One above the other:").selectOption({ label: "the beginnings of inference" });
  near(apart(await windows()), Math.round(begins[1] - begins[0]), "aligned");
  await page.locator(".tracks").nth(1).focus();
  await page.keyboard.press("s");
  near(apart(await windows()), Math.round(begins[1] - begins[0]), "from B");
  await page.getByLabel("Move both, to the same scale").uncheck();
  const before = await windows();
  await page.locator(".tracks").first().focus();
  await page.keyboard.press("w");
  now = await windows();
  assert.deepEqual(now[1], before[1]);
  assert.notDeepEqual(now[0], before[0]);
  await page.getByLabel("Move both, to the same scale").check();
  now = await windows();
  near([now[1].to - now[1].from], now[0].to - now[0].from, "the same scale again");
}));

test("the address keeps both views", async () => {
  let hash = "", kept;
  const windows = (page) => page.evaluate(() => window.cudabpfReport.sides.map(({ view }) => ({ from: Math.round(view.window.from), to: Math.round(view.window.to) })));
  await opened("vs-transformer", async (page) => {
    await page.getByLabel("One above the other:").selectOption({ label: "the beginnings of inference" });
    await page.evaluate(() => window.cudabpfReport.sides[0].view.zoom(0.3));
    kept = await windows(page);
    await page.waitForTimeout(300);
    hash = new URL(page.url()).hash;
  });
  await opened("vs-transformer", async (page) => assert.deepEqual(await windows(page), kept), { hash });
});

test("a range of two traces has the figures of --from and --to in both", () => opened("vs-transformer", async (page) => {
  const range = { from: 2_500_000_000, to: 5_200_000_000 };
  const [a, b] = ["a", "b"].map((side) => json(`vs-transformer-${side}-calls`).calls);
  const select = (side, span) => page.evaluate(([side, span]) => window.cudabpfReport.sides[side].view.select(span), [side, span]);
  await select(0, range); // in A alone: in B it is what lies below
  await page.locator("#tab-functions").click();
  assert.equal(await page.locator("#panel h3").first().textContent(), "Functions in the selected ranges");
  const counted = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.ranges.counted().functions[0].rows)));
  assert.ok(a.length > 3 && b.length > 3);
  for (const [side, told] of [["a", a], ["b", b]]) {
    const ofSide = counted.filter((row) => row[side]);
    assert.deepEqual(ofSide.map((row) => [row.name, row[side].count]).sort(), told.map((row) => [row.name, row.count]).sort());
    for (const row of told) assert.ok(Math.abs(ofSide.find((one) => one.name === row.name)[side].total_us - row.total_us) < 0.0015, row.name);
  }
  const shown = await rows(page);
  for (const row of shown) {
    const one = counted.find(({ name }) => name === row[0]);
    assert.deepEqual([row[1], row[2]].map((text) => (text ? plain(text) : undefined)), [one.a?.count, one.b?.count]);
  }
  await page.getByLabel("One above the other:").selectOption({ label: "the beginnings of inference" });
  await select(1, { from: 1e9, to: 2e9 }); // in both: each its own
  assert.ok((await page.locator("#panel").textContent()).includes("from 2.500000000 s to 5.200000000 s in A and from 1.000000000 s to 2.000000000 s in B"));
  await select(0, null); // in B alone
  const shift = await page.evaluate(() => window.cudabpfReport.linked.shifted);
  assert.ok((await page.locator("#panel").textContent()).includes(`from ${((1e9 - shift) / 1e9).toFixed(9)} s to`));
  await page.locator("#tab-errors").click();
  assert.ok((await page.locator("#panel").textContent()).startsWith("This table is of the whole traces"));
  await select(1, null);
  assert.ok(!(await page.locator("#panel").textContent()).startsWith("This table is"));
}));

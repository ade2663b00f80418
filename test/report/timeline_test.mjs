// What a person can do with the timeline, and what it draws.
import assert from "node:assert/strict";
import { test } from "node:test";
import { browser, focus, json, length, opened, plain, REPORTS, shown } from "./pages.mjs";

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
  await page.locator(".related", { hasText: "Requested by the call" }).getByRole("button").first().click();
  assert.deepEqual(await page.evaluate(() => window.cudabpfReport.view.chosen), launch);
}));

for (const name of ["tracks", "measured", "two-ranks"])
  test(`${name}: a GPU's work has its colour in its stream's row, from when it began until it ended`, () => opened(name, async (page) => {
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

test("the program's ranges are above the calls of their thread, one in the other", () => opened("ranges", async (page) => {
  const rows = await page.evaluate(() => {
    const { timeline, canvas } = window.cudabpfReport;
    return canvas.layout.rows.filter(({ lane }) => lane?.thread >= 0).map(({ lane, label }) =>
      `${label.trim()} ${lane.kind} ${lane.depth} ${lane.size} ${timeline.kinds[lane.kinds[0]].name}`);
  });
  assert.deepEqual(rows.slice(0, 3), ["ranges ranges 0 2 request 0", " ranges 1 4 prefill", " ranges 2 56 layer 0"]);
  assert.match(rows.at(-1), /^thread \d+ calls 0 1099 cuLaunchKernel$/);
  const layers = await page.evaluate(() => {
    const { timeline, view } = window.cudabpfReport;
    const lane = timeline.lanes.find(({ kind, depth }) => kind === "ranges" && depth === 2);
    view.choose({ lane: lane.index, event: 0 });
    return timeline.lanes.filter(({ kind }) => kind === "ranges").length;
  });
  assert.equal(layers, 5);
  const told = await page.locator(".details").textContent();
  for (const part of ["layer 0", "took", "domain", "thread 4300, ranges"]) assert.ok(told.includes(part), part);
  // They are no calls, and count in no table of what is selected.
  const functions = await page.evaluate(() => [...new Set(window.cudabpfReport.answers.answers.calls.calls.map(({ name }) => name))].sort());
  assert.deepEqual(functions, ["cuLaunchKernel", "cuStreamSynchronize"]);
}));

test("streams of GPUs are in the order of their numbers, and arrow keys follow it", () => opened("tracks", async (page) => {
  const labels = await page.evaluate(() => window.cudabpfReport.canvas.layout.rows.filter((row) => row.lane?.kind === "gpu").map((row) => row.label));
  assert.deepEqual(labels, ["GPU 0 stream 7", "GPU 0 stream 13", "GPU 0 stream 14"]);
  await focus(page);
  await page.keyboard.press("ArrowRight");
  const queues = [];
  for (let i = 0; i < 4; i++) {
    await page.keyboard.press("ArrowDown");
    queues.push(await page.evaluate(() => {
      const { view, timeline } = window.cudabpfReport, { queue } = timeline.lanes[view.chosen.lane];
      return queue < 0 ? "a thread" : timeline.queues[queue].stream;
    }));
  }
  assert.deepEqual(queues, ["a thread", "stream 7", "stream 13", "stream 14"]);
}));

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

test("keys act as soon as the page is there, wherever the focus is, but where text is typed", () => opened("gpt2", async (page) => {
  const narrows = async (what) => {
    const before = await length(page);
    await page.keyboard.press("w");
    assert.ok((await length(page)) < before, what);
  };
  await narrows("nothing was clicked");
  await page.getByRole("button", { name: "Show in the timeline" }).first().click();
  await narrows("after Show in the timeline");
  await page.locator(".minimap").click({ position: { x: 700, y: 20 } });
  await narrows("after a click on the overview");
  await page.locator("#tab-kernels").click();
  await narrows("in a tab");
  const before = await shown(page);
  await page.getByLabel("Find a function or kernel in the timeline").pressSequentially("was");
  assert.deepEqual(await shown(page), before);
}));

test("W zooms at the pointer, else at what is chosen", () => opened("gpt2", async (page) => {
  const { chosen, from, to } = await page.evaluate(() => {
    const { timeline, view } = window.cudabpfReport, event = 900, [lane] = timeline.lanes;
    view.choose({ lane: 0, event });
    return { chosen: (lane.begin[event] + lane.end[event]) / 2, from: lane.begin[event], to: lane.end[event] };
  });
  const share = async (ns) => { const window = await shown(page); return (ns - window.from) / (window.to - window.from); };
  const place = await share(chosen);
  for (let i = 0; i < 12; i++) await page.keyboard.press("w");
  assert.ok(Math.abs((await share(chosen)) - place) < 0.001, "what is chosen stays where it was");
  await page.keyboard.press("0");
  await page.locator(".tracks").hover({ position: { x: 400, y: 80 } });
  const at = () => page.evaluate(() => window.cudabpfReport.canvas.timeAt(400));
  const pointed = await at();
  for (let i = 0; i < 5; i++) await page.keyboard.press("w");
  assert.ok(Math.abs((await at()) - pointed) < 1000, "what is pointed at stays there");
  // What is chosen is now beyond the edge, and nothing is drawn there for it.
  assert.ok((await shown(page)).to < from || (await shown(page)).from > to);
  const [edge, strong] = await page.evaluate(() => {
    const { canvas } = window.cudabpfReport, row = canvas.layout.rows.find((one) => one.lane);
    const { data } = canvas.canvas.getContext("2d", { willReadFrequently: true }).getImageData(canvas.plot.left - 4, row.top + canvas.axis + 2, 6, 1);
    return [[...data], getComputedStyle(document.documentElement).getPropertyValue("--strong").trim()];
  });
  const [, ...rgb] = /#(..)(..)(..)/.exec(strong).map((hex) => parseInt(hex, 16));
  for (let i = 0; i < edge.length; i += 4) assert.notDeepEqual(edge.slice(i, i + 3), rgb);
}));

test("a process folds by its triangle alone, and finding unfolds it", () => opened("gpt2", async (page) => {
  const rows = () => page.evaluate(() => window.cudabpfReport.canvas.layout.rows.length);
  const tracks = page.locator(".tracks"), all = await rows();
  await tracks.click({ position: { x: 500, y: 72 } });
  assert.equal(await rows(), all, "the bar folds nothing");
  await tracks.click({ position: { x: 12, y: 72 } });
  assert.equal(await rows(), 1);
  await page.keyboard.press("/");
  await page.keyboard.type("culaunchkernelex");
  assert.equal(await rows(), all, "what is found is shown");
  await tracks.click({ position: { x: 12, y: 72 } });
  await page.getByRole("button", { name: "Next found" }).click();
  assert.equal(await rows(), all, "so is the next");
}));

test("a tap leaves no tip over the lanes, and the help is for fingers", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await page.goto(`file://${REPORTS}/gpt2.html`);
  await page.waitForSelector("html[data-drawn]");
  await page.evaluate(() => window.cudabpfReport.view.show({ from: 2.8e9, to: 3.0e9 }));
  await page.locator(".tracks").tap({ position: { x: 200, y: 93 } });
  await page.waitForFunction(() => window.cudabpfReport.view.chosen);
  assert.ok(await page.locator(".details").isVisible());
  assert.ok(!(await page.locator(".tip").isVisible()));
  assert.equal(await page.locator(".by-mouse").isVisible(), false);
  assert.match(await page.locator(".by-touch").innerText(), /two fingers/);
  await context.close();
});

test("iterations have a row: a click selects one, and the tip says which", () => opened("gpt2", async (page) => {
  const answered = json("gpt2").summary.summary.iterations;
  const all = await page.evaluate(() => {
    const { timeline: { iterations } } = window.cudabpfReport;
    return { ...iterations, begin: [...iterations.begin], end: [...iterations.end], launches: [...iterations.launches] };
  });
  assert.deepEqual([all.size, all.first, all.warm_up, all.left_out], [answered.count, 1, answered.warm_up, 0]);
  assert.equal(all.begin[0], Math.round(answered.begin_us * 1000));
  assert.equal(all.end.at(-1), Math.round(answered.end_us * 1000));
  assert.equal(Math.min(...all.launches), answered.fewest_launches);
  const lengths = all.begin.map((begin, i) => all.end[i] - begin).slice(answered.warm_up).sort((a, b) => a - b);
  const median = lengths.indexOf(Math.round(answered.p50_us * 1000));
  assert.ok(Math.abs(median - lengths.length / 2) < 2, `${median} of ${lengths.length}`);
  const x = await page.evaluate(() => {
    const { view, canvas, timeline: { iterations } } = window.cudabpfReport;
    view.showAround({ from: iterations.begin[9], to: iterations.end[11] });
    return canvas.xOf((iterations.begin[10] + iterations.end[10]) / 2);
  });
  await page.locator(".tracks").hover({ position: { x, y: 50 } });
  assert.match(await page.locator(".tip").textContent(), /^iteration 11took[\d.]+ mslaunches248began/);
  await page.locator(".tracks").click({ position: { x, y: 50 } });
  assert.deepEqual(await page.evaluate(() => window.cudabpfReport.view.range), { from: all.begin[10], to: all.end[10] });
}));

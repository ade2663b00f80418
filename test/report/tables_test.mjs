// The tables below the timeline, of the whole trace and of a range.
import assert from "node:assert/strict";
import { test } from "node:test";
import { focus, json, opened, plain, rows, shown } from "./pages.mjs";

for (const [name, from, to] of [["gpt2", 14_250_000_000, 14_500_000_000], ["gpt2", 2_500_000_000, 3_200_000_000],
  ["measured", 7_810_000, 9_000_000]])
  test(`${name}: a range has the figures of --from ${from}ns --to ${to}ns`, () => opened(name, async (page) => {
    const sum = json(`${name}-summary-${from}-${to}`).summary.calls;
    const counted = await page.evaluate(([from, to]) => window.cudabpfReport.tablesOf({ from, to }), [from, to]);
    assert.equal(counted.functions.reduce((all, row) => all + row.count, 0), sum);
    const near = (a, b, what) => assert.ok(Math.abs(a - b) < 0.0015, `${what}: ${a} is not ${b}`);
    for (const [of, expected] of [["functions", json(`${name}-calls-${from}-${to}`).calls], ["ioctls", json(`${name}-ioctls-${from}-${to}`).calls]]) {
      assert.ok(of === "ioctls" || expected.length > 3);
      for (const row of expected) {
        const one = counted[of].find((other) => other.name === row.name);
        assert.ok(one, `${of} ${row.name}`);
        for (const key of ["count", "timed"]) assert.equal(one[key], row[key], `${row.name} ${key}`);
        assert.equal(one.errors, row.errors ?? row.failed, `${row.name} errors`);
        near(one.total_us, row.total_us, `${row.name} total`);
        if (row.timed) near(one.max_us, row.max_us, `${row.name} longest`);
        if (of === "ioctls") assert.equal(one.ioctls ?? 0, row.ioctls, `${row.name} ioctls`);
      }
      const inside = counted[of].filter((row) => !row.name.startsWith("("));
      assert.equal(inside.length, expected.length);
    }
    await page.evaluate(([from, to]) => window.cudabpfReport.view.select({ from, to }), [from, to]);
    const expected = json(`${name}-calls-${from}-${to}`).calls;
    assert.equal(await page.locator("#panel h3").first().textContent(), "Functions in the selected range");
    assert.deepEqual((await rows(page)).map((row) => [row[0], plain(row[1])]).sort(), expected.map((row) => [row.name, row.count]).sort());
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

test("iterations are a table, each leads to its time, and so does a link", async () => {
  const expected = json("gpt2").summary.summary.iterations;
  await opened("gpt2", async (page) => {
    await page.locator("#tab-iterations").click();
    const all = await rows(page);
    assert.equal(all.length, expected.count);
    assert.deepEqual(all.map((row) => row[0].split(":")[0]), Array.from({ length: expected.count }, (_, i) => String(i + 1)));
    assert.deepEqual(all.map((row) => row[5]), all.map((_, i) => (i < expected.warm_up ? "warm-up" : "")));
    assert.deepEqual(new Set(all.map((row) => plain(row[4]))), new Set([expected.launches]));
    await page.getByRole("button", { name: "took", exact: true }).click();
    const first = (await rows(page))[0];
    assert.equal(first[0], "1"); // the slowest
    await page.locator("#panel .place").nth(1).click();
    const { from, to } = await page.evaluate(() => window.cudabpfReport.view.range);
    assert.equal((await rows(page))[1][2], `${((to - from) / 1e6).toFixed(1)} ms`);
    assert.equal((await rows(page))[0][0], "1", "it stays sorted");
  });
  await opened("gpt2", async (page) => {
    const { range, wanted } = await page.evaluate(() => {
      const { view, timeline: { iterations } } = window.cudabpfReport;
      return { range: view.range, wanted: { from: iterations.begin[11], to: iterations.end[11] } };
    });
    assert.deepEqual(range, wanted);
    const { from, to } = await shown(page);
    assert.ok(from < range.from && to > range.to && to - from < 2 * (range.to - range.from));
  }, { hash: "#iteration=12" });
  for (const bad of ["#iteration=0", "#iteration=36", "#iteration=9e9", "#iteration=-1"])
    await opened("gpt2", async (page) => assert.equal(await page.evaluate(() => window.cudabpfReport.view.range), null), { hash: bad });
});

test("energy is that of energy, or why there is none", async () => {
  await opened("sampled", async (page) => {
    const { gpus: [gpu] } = json("sampled").energy.gpu_energy_report;
    await page.locator("#tab-energy").click();
    const all = await rows(page);
    assert.deepEqual(all.map((row) => row[0]), ["all", ...gpu.phases.map(({ name }) => name), "iterations"]);
    assert.deepEqual(all[0].slice(1, 4), ["3,913 J", "91.7 J", "459 W"]);
    const blank = all.find((row) => row[0] === "warm-up");
    assert.deepEqual([blank[1], blank.at(-1)], ["", "the counter was not read in that time"]);
    assert.match(await page.locator("#panel .note").first().textContent(), /An iteration used 70\.4 J ± 3\.51 J, averaged over 40, .* Idle, this GPU used 127 W\. Process 4772 alone/);
    assert.match(await page.locator(".figures").textContent(), /energy, GPU 0 \(70\.4 J an iteration\)3,913 J/);
  });
  await opened("measured", async (page) => {
    await page.locator("#tab-energy").click();
    assert.equal(await page.locator("#panel").textContent(), "No energy figures: this trace has no GPU samples (its header does not say why).");
  });
});

test("who holds memory, and what the driver takes, is what memory answers", () => opened("memory", async (page) => {
  const { asked_by, driver, blocks } = json("memory").memory.memory;
  await page.locator("#tab-memory").click();
  const of = async (caption) => rows(page, page.locator("#panel .table").filter({ hasText: caption }));
  assert.deepEqual((await of("whose code asked for it")).map((row) => [row[0], plain(row.at(-1))]), asked_by.gpu.map((one) => [one.holder, one.allocations]));
  const [{ pid, most }] = driver.processes;
  const names = most.shares.map(({ holder, function: name }) => holder ?? `the driver, in ${name}`);
  assert.ok(names.includes("libnccl.so.2") && names.includes("the driver, in cuLaunchKernel"));
  assert.deepEqual((await of(`GPU memory of process ${pid} python3`)).map((row) => [row[0], plain(row.at(-1))]),
    most.shares.map((one, index) => [names[index], one.objects]));
  assert.match((await page.locator("#panel .note").allTextContents()).join(" "), /3\.85 MiB is unexplained\./);
  const [one] = blocks.allocators;
  const held = [["most allocated", one.most_allocated], ["most reserved", one.most_reserved], ["most not allocated", one.most_unused], ["at the end", one.end]];
  assert.deepEqual(new Map((await of("PyTorch's blocks")).map((row) => [row[0], plain(row[2])])), new Map(held.map(([when, level]) => [when, level.blocks])));
}));

test("who held the memory when it ran out is what errors answers", () => opened("ran-out", async (page) => {
  const { first: [out] } = json("ran-out").errors.ran_out;
  await page.locator("#tab-errors").click();
  const notes = (await page.locator("#panel .note").allTextContents()).join(" ");
  assert.match(notes, new RegExp(
    `Memory ran out at .*: process ${out.pid} asked for .* on GPU ${out.device} \\(${out.function} by ${out.holder}, call id ${out.call}\\)`));
  const of = async (caption) => rows(page, page.locator("#panel .table").filter({ hasText: caption }));
  const names = (parts) => parts.map(({ pid, name }) => [pid, name].filter(Boolean).join(" ") || "(unknown)");
  assert.ok(out.blocks.unused > 0 && out.driver > 0);
  assert.match(notes, /The driver itself had taken another .*, on all GPUs\./);
  assert.match(notes, /had reserved .* there for PyTorch's blocks, and .* of it was not allocated\./);
  for (const [caption, parts] of [["Processes that held memory", out.processes], ["Whose code", out.holders]])
    assert.deepEqual((await of(caption)).map((row) => [row[0], plain(row[2])]), names(parts).map((name, index) => [name, parts[index].blocks]));
  assert.deepEqual((await of("The largest blocks")).length, out.largest.length);
}));

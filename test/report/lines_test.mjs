// Python's stacks: the flame graph and the lines below it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { opened, REPORTS, rows } from "./pages.mjs";

// What `export --format folded` has: [["<module> (serve.py:60)", …], weight].
const folded = (weight) => readFileSync(`${REPORTS}/python-${weight}.folded`, "utf8").trim().split("\n").map((line) => {
  const space = line.lastIndexOf(" ");
  return [line.slice(0, space).split(";"), Number(line.slice(space + 1))];
});
const TITLES = { host: "time in calls", gpu: "time on GPUs", bytes: "copied and filled", allocated: "allocated" };
const measure = (page, weight) => page.locator("#panel .find").getByRole("button", { name: TITLES[weight], exact: true }).click();
// What is drawn: each bar's label, and what part of the graph it takes.
const bars = (page) => page.locator(".flame button").evaluateAll((all) =>
  all.map((bar) => ({ label: bar.textContent, left: parseFloat(bar.style.left), width: parseFloat(bar.style.width), depth: parseFloat(bar.style.top) / 20 })));

for (const weight of Object.keys(TITLES))
  test(`the graph of ${weight} has the figures of the folded stacks`, () => opened("python", async (page) => {
    await page.locator("#tab-lines").click();
    await measure(page, weight);
    const stacks = folded(weight), total = stacks.reduce((sum, [, weight]) => sum + weight, 0);
    assert.ok(stacks.length > 2);
    const drawn = await bars(page);
    for (let depth = 0; depth < 20; depth++) {
      const expected = new Map(); // the widths at this depth, by label
      for (const [frames, weight] of stacks)
        if (frames.length > depth) expected.set(frames[depth], (expected.get(frames[depth]) ?? 0) + (100 * weight) / total);
      for (const [label, width] of expected) {
        const found = drawn.filter((bar) => bar.depth === depth && bar.label === label).reduce((sum, bar) => sum + bar.width, 0);
        assert.ok(Math.abs(found - width) < 0.5, `${label} at ${depth}: ${found} % is not ${width} %`); // the narrowest are not drawn
      }
    }
    for (const bar of drawn) // each lies below one that it is a part of
      assert.ok(!bar.depth || drawn.some((above) => above.depth === bar.depth - 1 && above.left <= bar.left + 1e-3 &&
        bar.left + bar.width <= above.left + above.width + 1e-3), bar.label);
  }));

test("a function is shown as wide as the page, and all again", () => opened("python", async (page) => {
  await page.locator("#tab-lines").click();
  const before = await bars(page);
  const chosen = before.find((bar) => bar.width < 50 && bar.depth > 3 && bar.width > 20);
  await page.locator(".flame button", { hasText: chosen.label }).first().click();
  const after = await bars(page);
  assert.ok(after.filter((bar) => bar.depth < chosen.depth).every((bar) => bar.width === 100));
  assert.equal(after.find((bar) => bar.depth === chosen.depth).width, 100);
  await page.getByRole("button", { name: "Show all", exact: true }).click();
  assert.deepEqual(await bars(page), before);
}));

test("what is found is marked and summed, once", () => opened("python", async (page) => {
  await page.locator("#tab-lines").click();
  await measure(page, "gpu");
  await page.getByLabel("Find in the flame graph").fill("module.py");
  const stacks = folded("gpu"), sum = (some) => some.reduce((all, [, weight]) => all + weight, 0);
  const share = (100 * sum(stacks.filter(([frames]) => frames.some((frame) => frame.includes("module.py"))))) / sum(stacks);
  assert.ok((await page.locator(".flame-said").textContent()).includes(`${share.toFixed(1)} %`), share);
  assert.ok(await page.locator(".flame .found").count() > 2);
}));

test("lines lead to the graph", () => opened("python", async (page) => {
  await page.locator("#tab-lines").click();
  const [first] = await rows({ locator: (of) => page.locator(of.replace(".table", ".table:has(table)")) });
  await page.locator("#panel td button.place").first().click();
  assert.equal(await page.getByLabel("Find in the flame graph").inputValue(), first[0]);
  assert.ok(await page.locator(".flame .found").count() > 0);
}));

test("a trace without stacks says how to have them", () => opened("gpt2", async (page) => {
  await page.locator("#tab-lines").click();
  assert.ok((await page.locator("#panel").textContent()).includes("--python"));
}));

// The page of two traces.
import assert from "node:assert/strict";
import { test } from "node:test";
import { COMPARED, focus, json, opened, plain, rows, same } from "./pages.mjs";

for (const name of COMPARED)
  test(`${name}: begins with what diff answers`, () => opened(name, async (page) => {
    const answers = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.told)));
    const { a, b, ...difference } = json(name);
    same(answers.difference, difference, "difference");
    if (difference.verdict)
      assert.deepEqual(await page.locator(".finding.first > *").allTextContents(), [difference.verdict.title, difference.verdict.text]);
    same(answers.a.trace, a, "a");
    same(answers.b.trace, b, "b");
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
  assert.equal(await page.locator(".finding.first h2").textContent(), "Iterations take 18.4 % longer in B");
  const slower = await page.locator(".slower li").allTextContents();
  assert.ok(slower[0].includes("gemm") && slower[0].includes("+29.9 %") && slower[0].includes("40.4 µs in A, 52.5 µs in B"), slower[0]);
  assert.equal(await page.locator(".faster li").count(), 0);
  await page.locator("#tab-kernels").click();
  const gemm = await page.locator("#panel tbody tr", { hasText: "gemm" }).first().locator("td").allTextContents();
  assert.deepEqual(gemm.slice(1), ["42", "42", "1.69 ms", "2.19 ms", "+504 µs", "40.4 µs", "52.5 µs", "+29.9 %"]);
}));

test("iterations that were only issued get no verdict", () => opened("vs-transformer", async (page) => {
  assert.equal(await page.locator(".finding.first h2").textContent(), "Iterations cannot be compared");
  assert.ok((await page.locator(".finding.first").textContent()).includes("B does not synchronise after each iteration, so its times cover submission only."));
}));

test("both timelines move together, and alone", () => opened("vs-transformer", async (page) => {
  const windows = () => page.evaluate(() => window.cudabpfReport.sides.map(({ view }) => ({ ...view.window })));
  const apart = ([a, b]) => [b.from - a.from, b.to - a.to];
  const near = (numbers, wanted, what) => numbers.forEach((one) => assert.ok(Math.abs(one - wanted) < 2, `${what}: ${one} is not ${wanted}`));
  const { first, last } = await page.evaluate(() => {
    const all = window.cudabpfReport.sides.map(({ timeline }) => timeline.iterations);
    return { first: all.map(({ begin, warm_up }) => begin[warm_up]), last: all.map(({ end }) => end.at(-1)) };
  });
  const shift = first[1] - first[0];
  near(apart(await windows()), shift, "the first iterations are one above the other");
  for (const [i, { from, to }] of (await windows()).entries()) assert.ok(from < first[i] && to > last[i], "all iterations of both are in sight");
  await page.locator(".tracks").first().hover({ position: { x: 500, y: 80 } });
  for (const key of ["w", "w", "d"]) await page.keyboard.press(key);
  let now = await windows();
  near(apart(now), shift, "moved");
  assert.ok(now[1].to - now[1].from < 0.1e9);
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
  const range = { from: 2_500_000_000, to: 6_500_000_000 };
  const [a, b] = ["a", "b"].map((side) => json(`vs-transformer-${side}-calls`).calls);
  const select = (side, span) => page.evaluate(([side, span]) => window.cudabpfReport.sides[side].view.select(span), [side, span]);
  await page.getByLabel("One above the other:").selectOption({ label: "the traces' beginnings" });
  await select(0, range); // in A alone: in B it is what lies below
  await page.locator("#tab-functions").click();
  assert.equal(await page.locator("#panel h3").first().textContent(), "Functions in the selected ranges");
  const counted = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.ranges.counted().functions[0].rows)));
  assert.ok(a.length > 3 && b.length > 3);
  for (const [side, expected] of [["a", a], ["b", b]]) {
    const ofSide = counted.filter((row) => row[side]);
    assert.deepEqual(ofSide.map((row) => [row.name, row[side].count]).sort(), expected.map((row) => [row.name, row.count]).sort());
    for (const row of expected) assert.ok(Math.abs(ofSide.find((one) => one.name === row.name)[side].total_us - row.total_us) < 0.0015, row.name);
  }
  const shown = await rows(page);
  for (const row of shown) {
    const one = counted.find(({ name }) => name === row[0]);
    assert.deepEqual([row[1], row[2]].map((text) => (text ? plain(text) : undefined)), [one.a?.count, one.b?.count]);
  }
  await page.getByLabel("One above the other:").selectOption({ label: "the beginnings of inference" });
  await select(1, { from: 1e9, to: 2e9 }); // in both: each its own
  assert.ok((await page.locator("#panel").textContent()).includes("from 2.500000000 s to 6.500000000 s in A and from 1.000000000 s to 2.000000000 s in B"));
  await select(0, null); // in B alone
  const shift = await page.evaluate(() => window.cudabpfReport.linked.shifted);
  assert.ok((await page.locator("#panel").textContent()).includes(`from ${((1e9 - shift) / 1e9).toFixed(9)} s to`));
  await page.locator("#tab-errors").click();
  assert.ok((await page.locator("#panel").textContent()).startsWith("This table is of the whole traces"));
  await select(1, null);
  assert.ok(!(await page.locator("#panel").textContent()).startsWith("This table is"));
}));

test("what may be by chance is ~, as in the terminal, and says so", () => opened("vs-transformer", async (page) => {
  const SHOWN = { same: "=", "not certain": "~", "too few": "too few" };
  const { functions } = json("vs-transformer");
  await page.locator("#tab-functions").click();
  const more = page.locator("#panel").getByRole("button", { name: "Show all" });
  if (await more.count() && await more.isVisible()) await more.click();
  const shown = new Map((await rows(page)).map((row) => [row[0], row.at(-1)]));
  const judged = functions.filter(({ p50 }) => SHOWN[p50]);
  assert.ok(judged.some(({ p50 }) => p50 === "not certain") && judged.some(({ p50 }) => p50 === "too few"));
  for (const { name, p50 } of judged) assert.equal(shown.get(name), SHOWN[p50], name);
  assert.ok((await page.locator("#panel .note").first().textContent()).includes("~ no certain change"));
}));

test("more than twice is said in times", () => opened("vs-times", async (page) => {
  assert.equal(await page.locator(".finding.first h2").textContent(), "Iterations take 3.7 × as long in B");
  await page.locator("#tab-figures").click();
  const [p50] = await page.locator("#panel tbody tr", { hasText: /^p50/ }).allTextContents();
  assert.match(p50, /3\.7 ×$/);
  assert.deepEqual(await page.locator("#panel td", { hasText: "+3" }).allTextContents(), []);
}));

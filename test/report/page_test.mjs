// The page of one trace: what it says, to which readers, and what it lets none of them do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axe, browser, COMPARED, focus, json, length, NAMES, opened, plain, REPORTS, same, shown } from "./pages.mjs";

for (const [index, name] of NAMES.entries()) {
  if (!COMPARED.includes(name)) test(`${name}: what the page has is what the subcommands answer`, () => opened(name, async (page) => {
    const answers = JSON.parse(await page.evaluate(() => JSON.stringify(window.cudabpfReport.answers)));
    const expected = json(name);
    for (const [subcommand, { trace, ...answer }] of Object.entries(expected)) {
      same(answers.answers[subcommand], answer, subcommand);
      if (subcommand === "summary") same(answers.trace, trace, "trace");
    }
    const figures = await page.locator(".figures > div").evaluateAll((all) => Object.fromEntries(
      all.map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").textContent])));
    const { calls, launched, kernel_runs } = expected.summary.summary;
    assert.equal(plain(figures.calls), calls);
    const [title, kernels] = Object.entries(figures).find(([one]) => one.startsWith("kernels run"));
    assert.deepEqual([plain(kernels), plain(title.replace(/\D/g, ""))], [kernel_runs, launched]);
    const verdict = expected.summary.summary.verdict[0];
    if (verdict && name !== "hostile") {
      assert.equal(await page.locator(".finding.first h2").textContent().then((text) => text.startsWith(verdict.title)), true);
      assert.equal(await page.locator(".finding.first p").textContent(), verdict.text.replaceAll("`", ""));
    }
  }));
  // What is on a page has one look after the other; these two have the most kinds of it, and every look.
  const all = [[1280, "light"], [390, "dark"], [1280, "dark"], [390, "light"]];
  const looks = ["hostile", "measured"].includes(name) ? all : [all[index % 2]];
  for (const [width, colorScheme] of looks)
    test(`${name}: fits ${width} pixels, and is accessible, ${colorScheme}`, () => opened(name, async (page) => {
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

test("the address keeps the view", async () => {
  let hash = "";
  await opened("gpt2", async (page) => {
    await page.evaluate(() => window.cudabpfReport.view.show({ from: 14.4e9, to: 14.6e9 }));
    await page.evaluate(() => window.cudabpfReport.view.select({ from: 14.45e9, to: 14.5e9 }));
    await page.locator("#tab-kernels").click();
    await page.waitForTimeout(300);
    hash = new URL(page.url()).hash;
  });
  await opened("gpt2", async (page) => {
    assert.deepEqual(await shown(page), { from: 14.4e9, to: 14.6e9 });
    assert.equal(await page.locator("#tab-kernels").getAttribute("aria-selected"), "true");
    assert.ok((await page.locator(".range").textContent()).includes("14.450000 s to 14.500000 s"));
  }, { hash });
  for (const bad of ["#view=9-1&event=99999-99999999&tab=<b>&range=--", "#view=NaN-1e9", "#%", `#find=${"x".repeat(5000)}`])
    await opened("gpt2", async (page) => assert.ok((await length(page)) > 15.9e9), { hash: bad });
});

test("a trace whose beginning was not kept says when it begins", () => opened("kept", async (page) => {
  assert.ok((await page.locator("header").textContent()).includes("Begins at 7.81 ms: anything earlier is not in it."));
}));

test("colours follow the system, and the button", () => opened("gpt2", async (page) => {
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await back(), "rgb(15, 18, 21)");
  await page.getByRole("button", { name: "Use light colours" }).click();
  assert.equal(await back(), "rgb(251, 251, 250)");
}, { colorScheme: "dark" }));

// As far as they are apart to the eye (in OKLab): two that are named beside each other differ by 0.02 or so.
function apart(one, other) {
  const [a, b] = [one, other].map((text) => {
    const [r, g, b] = text.match(/\d+/g).map((part) => { const c = part / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    const [l, m, s] = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]].map(([x, y, z]) => Math.cbrt(x * r + y * g + z * b));
    return [0.21045 * l + 0.79362 * m - 0.00407 * s, 1.978 * l - 2.42859 * m + 0.45059 * s, 0.0259 * l + 0.78277 * m - 0.80868 * s];
  });
  return Math.hypot(...a.map((part, i) => part - b[i]));
}
for (const colorScheme of ["light", "dark"])
  test(`ten phases have ten colours, none a call's, ${colorScheme}`, () => opened("gpt2", async (page) => {
    const keys = await page.locator(".phases li .key").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
    const calls = await page.locator(".legend .key").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
    assert.deepEqual([keys.length, calls.length], [10, 9]);
    const strip = await page.locator(".strip span").evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
    assert.deepEqual(strip, keys);
    keys.forEach((one, i) => {
      for (const other of keys.slice(i + 1)) assert.ok(apart(one, other) > 0.1, `${one} and ${other}`);
      for (const other of calls) assert.ok(apart(one, other) > 0.07, `${one} and the call's ${other}`);
    });
  }, { colorScheme }));

test("several ranks stand side by side, and collectives have a colour and their calls", () => opened("two-ranks", async (page) => {
  const { steps } = json("two-ranks").summary.summary;
  const [iterations, phases] = await page.locator("[aria-label='Processes side by side'] table").evaluateAll((all) =>
    all.map((table) => [...table.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent))));
  assert.deepEqual(iterations.map(([process]) => process.slice(0, 7)), ["rank 0,", "rank 1,"]);
  assert.deepEqual(phases.map(([process]) => process.slice(0, 7)), ["rank 0,", "rank 1,"]);
  assert.equal(iterations.length, steps.length);
  assert.ok((await page.locator(".legend").first().textContent()).includes("collective"));
  const told = await page.evaluate(() => {
    const { timeline } = window.cudabpfReport;
    return timeline.lanes.filter(({ kind }) => kind === "gpu").flatMap((one) => [...one.kinds].map((kind, i) =>
      [timeline.categories[timeline.kinds[kind].category], timeline.details[one.details[i]] ?? ""])).filter(([category]) => category === "collective")[0][1];
  });
  for (const part of ["collective\u001fall_reduce", "collective_size\u001f33554432", "communicator\u001f1", "seq\u001f1"]) assert.ok(told.includes(part), told);
  await page.locator("#tab-iterations").click();
  assert.ok((await page.locator("#panel thead").textContent()).includes("only collectives ran"));
}));

test("text between backticks is code", () => opened("vs-slower", async (page) => {
  assert.equal(await page.locator(".rule code").textContent(), "cudabpf diff");
  assert.ok(!(await page.locator("header").textContent()).includes("`"));
}));

test("the command is said, and which thread the verdict is about", () => opened("gpt2", async (page) => {
  assert.equal(await page.locator(".command").textContent(), "python3 scripts/workloads/transformer_inference.py --tokens 32");
  assert.equal(await page.locator(".whose").textContent(), "python3 629, thread 629");
  assert.equal(await page.locator("h1").textContent(), "h200-gpt2.jsonl.zst");
  assert.equal(await page.locator(".of-processes").count(), 0);
}));

test("of several hosts each process has its own, and those of a host are together", () => opened("hosts", async (page) => {
  assert.ok((await page.locator("header .where").allTextContents()).some((text) => text.includes("clocks differ is NOT KNOWN")));
  const names = await page.evaluate(() => window.cudabpfReport.canvas.layout.rows.filter((row) => !row.lane).map((row) => row.label));
  assert.deepEqual([...names].sort(), ["python3 10000629 on vm (2)", "python3 646 on vm", "python3 697 on vm", "python3 698 on vm"]);
  const hosts = names.map((name) => name.split(" on ")[1]);
  assert.equal(hosts.filter((host, index) => host !== hosts[index - 1]).length, 2);
  const processes = await page.locator(".of-processes tbody tr td:first-child").allTextContents();
  assert.ok(processes.some((text) => text.startsWith("python3 10000629 on vm (2)")), processes.join());
}));

test("of several processes each has a row, before the verdict of one", () => opened("machine", async (page) => {
  const table = page.getByRole("region", { name: "Processes", exact: true }), names = table.locator("tbody .place .text");
  assert.deepEqual(await names.allTextContents(), ["trainer 108", ...[0, 1, 2, 3, 4].map((i) => `worker-${i} ${100 + i}`)]);
  await table.getByRole("button", { name: "Show all 9 rows" }).click();
  assert.equal(await names.count(), 9);
  const [first, whose, verdict] = await page.evaluate(() => [".of-processes", ".whose", ".finding.first"].map((one) => document.querySelector(one).getBoundingClientRect().top));
  assert.ok(first < whose && whose < verdict);
  assert.match(await page.locator(".whose").textContent(), /^trainer 108, thread 108, which launches most: .* Other threads made 32 launches\.$/);
  assert.equal(await page.locator(".figures dd").first().textContent(), "40 min 29 s");
  await table.locator(".place", { hasText: "worker-3" }).click();
  const { from, to } = await shown(page);
  assert.ok(from < 750_001_000_000 && from > 749e9 && to > 750_001_100_000 && to < 751e9);
}));

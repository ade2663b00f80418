// What was counted and measured, and when: curves, and what GPUs did.
import assert from "node:assert/strict";
import { test } from "node:test";
import { json, NAMES, opened } from "./pages.mjs";

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
    const samples = gpuLines.filter((line) => line.op === "sample" && line.gpu === device && field in line);
    assert.ok(samples.length > 5);
    const shown = await page.evaluate((title) => {
      const { curves } = window.cudabpfReport, curve = curves.curves.find((one) => one.title === title);
      return { times: curve.times, values: curve.lines[0].values };
    }, `GPU ${device} ${title}`);
    const step = await page.evaluate(() => window.cudabpfReport.timeline.curves.gpus[0].step_ns);
    for (const { ts, [field]: value } of samples) {
      const at = shown.times.findIndex((time) => time > ts);
      assert.ok(shown.times[at] - ts <= step && Math.abs(shown.values[at] - value) < 1e-6, `GPU ${device} ${title} at ${ts}`);
      if (ts < 5e6) continue; // at the very edge
      const seen = await drawn(page, `GPU ${device} ${title}`, ts - 1e6);
      assert.ok(seen, `GPU ${device} ${title}: nothing is drawn at ${ts}`);
      assert.ok(Math.abs(seen.value - value) < Math.max(1.5 * seen.pixel, 1), `${seen.value} is not ${value}`);
    }
  }
}));

test("what the GPUs did is in their streams' rows, when they did it", { skip: unbuilt }, () => opened("simulated", async (page) => {
  const operations = gpuLines.filter((line) => ["kernel", "copy", "set", "graph"].includes(line.op)).sort((a, b) => a.ts - b.ts || a.duration_us - b.duration_us);
  assert.ok(operations.length > 1000);
  const shown = await page.evaluate(() => {
    const { timeline } = window.cudabpfReport, all = [];
    for (const lane of timeline.lanes) {
      if (lane.kind !== "gpu") continue;
      const { gpu, stream } = timeline.queues[lane.queue];
      for (let i = 0; i < lane.size; i++) {
        const { name, what } = timeline.kinds[lane.kinds[i]];
        all.push({ op: name, what, row: `${gpu} ${stream}`, ts: lane.begin[i], ns: lane.end[i] - lane.begin[i], call: lane.ids[i] });
      }
    }
    return all.sort((a, b) => a.ts - b.ts || a.ns - b.ns);
  });
  assert.deepEqual(shown, operations.map((work) => ({ op: work.op, what: work.kernel ?? work.direction ?? "", row: `GPU ${work.device} stream ${work.queue}`,
    ts: work.ts, ns: Math.round(work.duration_us * 1000), call: work.call })));
}));

test("an axis has zero and the largest round number that its curve reaches", () => opened("graphs", async (page) => {
  const axes = await page.evaluate(() => window.cudabpfReport.curves.plots.map((plot) => [plot.axes[1]._splits, plot.scales.y.max]));
  assert.ok(axes.length >= 3);
  for (const [splits, max] of axes) {
    assert.equal(splits.length, 2);
    assert.equal(splits[0], 0);
    assert.ok(splits[1] > max / 4 && splits[1] <= max, `${splits[1]} of ${max}`);
  }
}));

test("launches as steady as in each iteration are a line, and as many as there were", () => opened("gpt2", async (page) => {
  const [wide, near, all] = await page.evaluate(() => {
    const { curves, view, answers, timeline } = window.cudabpfReport, plot = curves.plots[0];
    const sum = () => { const [times, rates] = plot.data; return times.slice(1).reduce((sum, time, i) => sum + (rates[i] * (time - times[i])) / 1e9, 0); };
    const wide = sum();
    view.show({ from: 14.5e9, to: 14.6e9 });
    return [wide, [...plot.data[0]].length === timeline.curves.launches.length + 2, answers.answers.summary.summary.launches];
  });
  assert.ok(Math.abs(wide - all) < 1, `${wide} are not ${all}`);
  assert.ok(near, "from near, each bucket is there");
}));

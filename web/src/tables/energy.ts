// How many joules each GPU used, as `energy` has it: in all, by phase, by iteration and by class of kernel.
import type { Answers, EnergyStretch, GpuEnergy } from "../data/answers";
import { h } from "../dom";
import { count, joules, micro } from "../format";
import type { Places } from "./answers";
import { tableOf, type Column } from "./table";

const figure = (title: string, value: (one: EnergyStretch) => number | undefined, show: (value: number) => string): Column<EnergyStretch> =>
  ({ title, value, show: (one) => { const at = value(one); return at === undefined ? "" : show(at); } });

function notesOf({ iterations, idle, process }: GpuEnergy): string {
  const notes: string[] = [];
  if (iterations?.each_j !== undefined)
    notes.push(`An iteration used ${joules(iterations.each_j)} ± ${joules(iterations.each_error_j ?? 0)}, averaged over ` +
      `${count(Math.round(iterations.count ?? 0))}, pauses included.`);
  notes.push(idle ? `Idle, this GPU used ${idle.power_w.toFixed(0)} W.` : "What this GPU uses when it is idle is not known.");
  if (process.pid !== undefined && process.energy_j !== undefined) notes.push(`Process ${process.pid} alone had it, and used ${joules(process.energy_j)}.`);
  return notes.join(" ");
}

function ofGpu(gpu: GpuEnergy, places: Places): HTMLElement[] {
  const title = `GPU ${gpu.device}${gpu.name && `, ${gpu.name}`}`, classes = gpu.kernel_classes;
  return [tableOf<EnergyStretch>({
    caption: `Energy of ${title}`, rows: [gpu.all, ...gpu.phases, ...(gpu.iterations ? [gpu.iterations] : [])], sortBy: -1, note: notesOf(gpu),
    link: ({ begin_us, end_us }) => (begin_us === undefined || end_us === undefined ? null
      : { label: "show in the timeline", go: () => places.show({ from: begin_us * 1000, to: end_us * 1000 }) }),
    columns: [{ title: "of", value: (one) => one.name }, figure("energy", (one) => one.energy_j, joules), figure("±", (one) => one.error_j, joules),
      figure("mean power", (one) => one.mean_power_w, (watts) => `${watts.toFixed(0)} W`), figure("above idle", (one) => one.above_idle_j, joules),
      figure("read over", ({ window_us }) => window_us && window_us[1] - window_us[0], micro),
      { title: "no figure, because", value: (one) => one.why_not, wide: true }],
  }),
  ...(classes?.classes?.length ? [tableOf({
    caption: `Energy by class of kernel, GPU ${gpu.device}: a model`, rows: classes.classes, sortBy: 1, note: "Time on the GPU × sampled power above idle.",
    columns: [{ title: "class", value: (row) => row.class }, { title: "energy", value: (row) => row.energy_j, show: (row) => joules(row.energy_j), kind: "bar" },
      { title: "on the GPU", value: (row) => row.gpu_time_us, show: (row) => micro(row.gpu_time_us) }],
  })] : []),
  ...(classes?.why_not ? [h("p", { class: "note" }, `No energy by class of kernel, GPU ${gpu.device}: ${classes.why_not}.`)] : [])];
}

export function energy({ answers }: Answers, places: Places): HTMLElement[] {
  const { gpus, why_not } = answers.energy.gpu_energy_report;
  return gpus.length ? gpus.flatMap((gpu) => ofGpu(gpu, places)) : [h("p", { class: "note" }, `No energy figures: ${why_not ?? "the trace has none"}.`)];
}

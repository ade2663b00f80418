// What the subcommands answer with --json, as far as the page shows it. docs/analysis.md says what
// the figures mean. Anything may be absent.

// A column of a page's table, as cudabpf describes it: "gpu.total_us" is within an object.
export interface Described { key: string; title: string; as: string; wide?: boolean; bar?: boolean; if_known?: boolean }
export type Columns = Record<
  "functions" | "kernels" | "classes" | "graphs" | "ioctls" | "idle" | "gpu_idle" | "blocks" | "failures" | "unfinished" | "exits" | "steps" | "lines", Described[]>;
export interface Loss { severity: string; count: number; uncounted?: boolean }
export interface Finding {
  id: string; title: string; sure: string; text: string; begin_us?: number; end_us?: number;
}
export interface Phase {
  name: string; seen: boolean; time_us: number; share?: number; begin_us?: number; end_us?: number; note?: string;
}
export interface Durations { count: number; total_us: number; p50_us?: number; p99_us?: number; max_us?: number }
export interface CallRow {
  name: string; count: number; errors: number; timed: number; total_us: number; mean_us?: number; p50_us?: number;
  p95_us?: number; p99_us?: number; max_us?: number; ioctls?: number;
}
export interface KernelRow {
  kernel?: string; class: string; grid?: number[]; block?: number[]; shared?: number; count: number; in_graphs: number;
  runs: number; share: number; failed: number; first_ts?: number; last_ts?: number; call?: Durations; gpu?: Durations;
}
export interface GraphRow {
  graph?: number; launches: number; nodes?: number; kernels?: number; runs: number; first_ts?: number; last_ts?: number;
  most_frequent?: { kernel: string; count: number }[]; gpu?: Durations;
}
export interface ClassRow {
  class: string; kernels: number; configurations: number; count: number; in_graphs: number; runs: number; share: number;
  call?: Durations; gpu?: Durations;
}
export interface IoctlRow {
  name: string; count: number; ioctls: number; failed: number; timed: number; total_us: number; mean_us?: number;
  p50_us?: number; p99_us?: number; max_us?: number; calls?: number; issuing_calls?: number; call_time_us?: number;
}
export interface NamedCall { id?: number; name: string }
export interface Gap {
  begin_us: number; time_us: number; pid: number; tid?: number; after?: NamedCall; until?: NamedCall;
  in_calls_us?: number; longest_call?: { name: string; time_us: number };
}
export interface MeasuredGap {
  begin_us: number; time_us: number; pid: number; tid?: number; device: number; cause: string;
  by_cause_us: Record<string, number>; before?: NamedCall; after?: NamedCall;
}
export interface Block {
  pid: number; tid?: number; kind: string; function: string; ptr: string; size: number; since: number; call?: number;
  age_us?: number; fate?: string;
}
export interface MemoryPeak { bytes: number; ts: number; blocks: number; largest?: Block[] }
// What a file's code asked for.
export interface AskedRow { holder?: string | null; at_peak: number; held: number; allocations: number }
// What the driver took of a process's GPUs: for what a library asked for, or for itself in calls of a function.
export interface DriverShare { holder?: string | null; function?: string | null; others?: boolean; bytes: number; objects: number }
export interface DriverMoment { ts: number; nvml: number; unexplained: number; shares: DriverShare[] }
// Blocks of PyTorch's allocator, beside what it had reserved.
export interface BlocksLevel { ts: number; blocks: number; allocated: number; reserved: number; unused: number }
export interface Allocator {
  pid: number; comm?: string; device: number; most_allocated: BlocksLevel; most_reserved: BlocksLevel; most_unused: BlocksLevel; end: BlocksLevel;
}
export interface MemoryAnswer {
  asked_by?: { gpu: AskedRow[] };
  driver?: { processes: { pid: number; comm?: string; most?: DriverMoment | null }[] };
  blocks?: { allocators: Allocator[] };
  all: {
    peak: { gpu: MemoryPeak; host: MemoryPeak };
    curve: { from_us: number; step_us: number; bytes: Record<string, number[]>; blocks?: number[] };
  };
  never_freed?: { largest?: Block[] } | null;
}
export interface FailureRow {
  what: string; error: string; count: number; first_ts: number; last_ts: number; meaning?: string; weight?: string;
  benign?: boolean;
}
// Who held how much memory when an allocation failed.
export interface HeldPart { name?: string | null; pid?: number; bytes: number; blocks: number }
export interface RanOut {
  ts: number; call: number; pid: number; function: string; holder?: string | null; device?: number | null; size?: number | null; held: number;
  held_on_unknown_device: number; driver?: number | null; processes: HeldPart[]; holders: HeldPart[]; lines: HeldPart[]; largest: Block[];
  blocks?: { allocated: number; reserved: number; unused: number }; // of PyTorch's allocator
}
export interface OpenRow { what: string; ts: number; open_us?: number; pid: number; tid: number }
export interface ExitRow { pid: number; ts: number; comm: string; exit_code?: number; signal?: number }
export interface ProcessRow {
  pid: number; comm: string; host?: string; threads: number; calls: number; launches: number; waiting_us: number;
  command?: string; shown?: boolean; gpu_us?: number; verdict?: { title: string; sure: string } | null;
}
// What a process does over and over, beside what others do.
export interface StepsRow { rank?: number; pid: number; host?: string; comm?: string; iterations: number; phases: Phase[] }

export interface IterationsAnswer {
  found: string; count: number; warm_up: number; in_part: number; launches: number; fewest_launches: number; most_launches: number;
  mean_us?: number; p50_us?: number; p99_us?: number; in_calls_us?: number; waiting_us?: number; timed: number;
}
export interface EnergyStretch {
  name?: string; begin_us?: number; end_us?: number; why_not?: string; window_us?: [number, number];
  energy_j?: number; error_j?: number; mean_power_w?: number; above_idle_j?: number;
}
export interface GpuEnergy {
  device: number; name: string; all: EnergyStretch; phases: EnergyStretch[];
  iterations: (EnergyStretch & { count?: number; each_j?: number; each_error_j?: number }) | null;
  idle: { power_w: number } | null; process: EnergyStretch & { pid?: number };
  kernel_classes: { why_not?: string; classes?: { class: string; gpu_time_us: number; shared_time_us: number; energy_j: number }[] } | null;
}
export interface EnergyAnswer { why_not?: string; gpus: GpuEnergy[] }

export interface StackTree { parents: number[]; texts: number[]; weights: number[]; left_out: number }
export interface LineRow { line: string; host_us: number; gpu_us?: number; copied_bytes?: number; allocated_bytes?: number }
export interface StacksAnswer {
  texts: string[]; kinds: number[]; trees: Record<"host" | "gpu" | "bytes" | "allocated", StackTree>; lines: LineRow[]; lines_left_out?: number;
}

export interface Answers {
  version: string; title: string; heading: string; missing: string;
  command: string[] | null; columns: Columns;
  served?: { ended: boolean; running: boolean }; // by `serve`, and not a file by itself
  trace: { calls: number; duration_us: number; complete: boolean; losses: Record<string, Loss>; missing: unknown[]; malformed: number; started?: string; since_us?: number; order?: string;
    part?: { from_us: number; to_us: number; name?: string } };
  answers: {
    summary: { summary: {
      verdict: Finding[]; calls: number; processes?: ProcessRow[]; steps?: StepsRow[]; duration_us: number; launched?: number;
      kernel_runs?: number; phases?: Phase[]; transfers?: Record<string, { count: number; bytes: number; time_us: number }>;
      iterations?: IterationsAnswer | null; shown?: { pid: number; tid: number; comm?: string; command?: string; chosen: string; other_launches: number } | null; other_processes?: { count: number };
    } };
    calls: { calls: CallRow[]; calls_left_out?: number };
    kernels: { classes: ClassRow[]; kernels: KernelRow[]; graphs: GraphRow[]; kernels_left_out?: number };
    ioctls: { driver_traced: boolean; calls: IoctlRow[]; commands: IoctlRow[]; outside_of_calls: IoctlRow[] };
    gaps: { longest_idle?: Gap[]; longest_between?: Gap[]; measured?: {
      gpus?: { device: number; busy_share: number }[]; longest_idle?: MeasuredGap[];
    } };
    memory: { memory: MemoryAnswer };
    energy: { gpu_energy_report: EnergyAnswer };
    errors: {
      failed_calls: number; usual_failures: number; unfinished_calls: number; failures: FailureRow[];
      operations: FailureRow[]; gpu_errors: FailureRow[]; unfinished: OpenRow[]; processes: ExitRow[];
      ran_out: { count: number; first: RanOut[] };
    };
    stacks: StacksAnswer | null;
  };
}

// What `diff --json` answers.
export interface Change {
  name: string; measure: string; unit: "count" | "us" | "bytes" | "percent"; a: number | null; b: number | null; verdict?: string;
}
export interface Sided { count: number; timed: number; total_us: number; mean_us?: number; p50_us?: number }
export interface TimedChange {
  name: string; a: Sided | null; b: Sided | null; total_change_us: number; p50: string; p50_change_percent?: number;
}
export interface KernelChange {
  kernel: string | null; class: string; a: number; b: number; grid?: number[]; block?: number[]; shared?: number;
}
export interface Difference {
  same: boolean; verdict: { title: string; text: string } | null; settings: { what: string; a: string; b: string; so: string }[];
  totals: Change[]; iterations: Change[]; on_iterations: string[]; phases: Change[];
  functions: TimedChange[]; kernels: KernelChange[]; gpu_kernels?: TimedChange[]; ioctls: TimedChange[];
  failures: { name: string; error: string; a: number; b: number }[];
  functions_left_out?: number; kernels_left_out?: number; gpu_kernels_left_out?: number; ioctls_left_out?: number; failures_left_out?: number;
}
export interface Comparison { version: string; title: string; difference: Difference; a: Answers; b: Answers }

export const isComparison = (told: Answers | Comparison): told is Comparison => "difference" in told;

export function toldIn(bytes: Uint8Array): Answers | Comparison {
  return JSON.parse(new TextDecoder().decode(bytes)) as Answers | Comparison;
}

// What `calls` and others tell of a range, counted again from the timeline's columns. A call is part
// of the range in which it began, as with --from and --to.
import type { CallRow } from "../data/answers";
import { FAILED, firstAt, IOCTL, IS_KERNEL, LAUNCH, TIMED, type Lane, type Timeline } from "../data/timeline";
import type { Span } from "../view";

export interface RangeRow extends CallRow { gpu_us?: number; gpu_count?: number }

class Rows {
  private readonly rows = new Map<string, RangeRow>();
  of(name: string): RangeRow {
    let row = this.rows.get(name);
    if (!row) this.rows.set(name, (row = { name, count: 0, errors: 0, timed: 0, total_us: 0 }));
    return row;
  }
  list(): RangeRow[] {
    const rows = [...this.rows.values()];
    for (const row of rows) if (row.timed) row.mean_us = row.total_us / row.timed;
    return rows.sort((a, b) => b.total_us - a.total_us);
  }
}

function add(row: RangeRow, lane: Lane, i: number, flags: number) {
  row.count++;
  if (flags & FAILED) row.errors++;
  if (!(flags & TIMED)) return;
  const us = (lane.end[i]! - lane.begin[i]!) / 1000;
  row.timed++;
  row.total_us += us;
  row.max_us = Math.max(row.max_us ?? 0, us);
}

export interface RangeTables { functions: RangeRow[]; kernels: RangeRow[]; ioctls: RangeRow[] }

export function tablesOf(timeline: Timeline, range: Span): RangeTables {
  const functions = new Rows(), kernels = new Rows(), ioctls = new Rows();
  const askedBy = new Map<number, string>();
  const drivers: [Lane, number, number][] = [];
  for (const lane of timeline.lanes) {
    const from = firstAt(lane.begin, range.from), to = firstAt(lane.begin, range.to, from);
    if (lane.kind === "driver") {
      drivers.push([lane, from, to]);
      for (let i = from; i < to; i++) if (lane.ids[i]) askedBy.set(lane.ids[i]!, "");
      continue;
    }
    for (let i = from; i < to; i++) {
      const kind = timeline.kinds[lane.kinds[i]!]!;
      if (lane.kind === "calls") {
        add(functions.of(kind.name), lane, i, kind.flags);
        if (kind.flags & LAUNCH && kind.what) add(kernels.of(kind.what), lane, i, kind.flags);
      } else if (kind.flags & IS_KERNEL) {
        const row = kernels.of(kind.what);
        row.gpu_count = (row.gpu_count ?? 0) + 1;
        row.gpu_us = (row.gpu_us ?? 0) + (lane.end[i]! - lane.begin[i]!) / 1000;
      }
    }
  }
  if (askedBy.size)
    for (const lane of timeline.lanes)
      if (lane.kind === "calls")
        for (let i = 0; i < lane.size; i++)
          if (askedBy.has(lane.ids[i]!)) askedBy.set(lane.ids[i]!, timeline.kinds[lane.kinds[i]!]!.name);
  for (const [lane, from, to] of drivers)
    for (let i = from; i < to; i++) {
      const kind = timeline.kinds[lane.kinds[i]!]!;
      const row = ioctls.of(askedBy.get(lane.ids[i]!) || "(outside of calls)");
      add(row, lane, i, kind.flags);
      if (kind.flags & IOCTL) row.ioctls = (row.ioctls ?? 0) + 1;
    }
  return { functions: functions.list(), kernels: kernels.list(), ioctls: ioctls.list() };
}

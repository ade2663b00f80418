// The columns of answers, as cudabpf describes them: src/analyze/columns.hpp.
import type { Described } from "../data/answers";
import { bytes, count, micro, moment, percent } from "../format";
import type { Column } from "./table";

const SHOWN: Record<string, (value: number) => string> = {
  count, figure: (value) => (value ? count(value) : ""), time: micro, timed: micro, moment, begin: (us) => moment(us * 1000), bytes, percent,
};

function valueOf(row: unknown, { key, as }: Described): string | number | undefined {
  const value = key.split(".").reduce<unknown>((of, part) => (of as Record<string, unknown> | null | undefined)?.[part], row) ?? undefined;
  if (as === "dimensions") return (value as number[] | undefined)?.join("×");
  return as === "timed" && !value ? undefined : (value as string | number | undefined);
}

// `own`: what the page makes of a key by itself.
export function columnsOf<Row>(described: Described[], rows: Row[], own: Record<string, (row: Row) => string | undefined> = {}): Column<Row>[] {
  return described.filter((one) => !one.if_known || rows.some((row) => valueOf(row, one))).map((one) => {
    const value: Column<Row>["value"] = own[one.key] ?? ((row: Row) => valueOf(row, one)), show = own[one.key] ? undefined : SHOWN[one.as];
    return { title: one.title, value, wide: one.wide, kind: one.bar ? "bar" : undefined,
      show: show && ((row: Row) => { const told = value(row); return told === undefined ? "" : show(told as number); }) };
  });
}

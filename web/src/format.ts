// Numbers as people read them, and as the subcommands' pages write them.

const digits = (value: number) => (value >= 100 ? 0 : value >= 10 ? 1 : 2);

export function count(value: number): string {
  return value.toLocaleString("en");
}

export function time(ns: number): string {
  if (ns < 0) return `-${time(-ns)}`;
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  for (const [unit, size] of [["µs", 1e3], ["ms", 1e6]] as const)
    if (ns < size * 999.5) return `${(ns / size).toFixed(digits(ns / size))} ${unit}`;
  const s = ns / 1e9;
  if (s < 100) return `${s.toFixed(digits(s))} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}

export const micro = (us: number | undefined) => (us === undefined ? "" : time(us * 1000));

// Since the trace began; `step` is the least difference that matters, in ns.
export function moment(ns: number, step = 1000): string {
  const decimals = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)))));
  return `${(ns / 1e9).toFixed(decimals)} s`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return unit ? `${value.toFixed(digits(value))} ${units[unit]}` : `${value} B`;
}

// "3.7 ×", "388 ×"
export function times(ratio: number): string {
  return `${ratio < 10 ? ratio.toFixed(1) : count(Math.round(ratio))} ×`;
}

// Three digits, as `energy` writes them; thousands in kJ.
export function joules(value: number): string {
  const [of, unit] = Math.abs(value) >= 10_000 ? [value / 1000, "kJ"] : [value, "J"];
  return `${Math.abs(of) >= 100 ? count(Math.round(of)) : Number(of.toPrecision(3))} ${unit}`;
}

// As a shell would take it.
export const commandLine = (words: string[]) =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");

export const percent = (share: number | undefined) => (share === undefined ? "" : `${share.toFixed(1)} %`);

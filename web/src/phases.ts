// Each phase has a colour of its own, the same on every page and in every theme; none is a call's.
import type { Phase } from "./data/answers";

export const PHASE_COLOURS = 10;

export interface PlacedPhase extends Phase { colour: number }

// Those that took time, each with the colour of its place among all phases.
export const phasesIn = (all: Phase[] = []): PlacedPhase[] =>
  all.map((phase, index) => ({ ...phase, colour: index % PHASE_COLOURS })).filter(({ seen, time_us }) => seen && time_us > 0);

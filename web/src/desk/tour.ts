/** What a tour is made of, and the facts that its sentences state. */

import { alignmentHead } from "./spot";
import { headName, weights, type HeadStats, type Kind, type Matrix, type Trace } from "./trace";
import type { View } from "./view";

/** What is on show at one moment. `spot` is the head in the large picture, such as "cross.1.2". */
export interface Scene {
  trace: Trace;
  view: View;
  spot: string;
}

export interface Task {
  ask: string | ((now: Scene) => string);
  /** `before` is what was on show until now; null at the beginning. */
  done: (now: Scene, before: Scene | null) => boolean;
  /** What there was to see, in numbers of this very trace. */
  told?: (now: Scene) => string;
  live?: boolean; // needs a model that answers
}

export interface Tour {
  id: string;
  title: string;
  text: readonly string[];
  /** What is so in this model. */
  here?: (trace: Trace) => string;
  tasks: readonly Task[];
  end?: string;
}

/** signed(-2.345) -> "−2.35" */
export function signed(value: number, digits = 2): string {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return `${value < 0 ? "−" : "+"}${text}`;
}

/** shareOf(-0.69) -> "50 %"; log-probabilities as people read them. What is not certain is never called certain. */
export function shareOf(logp: number): string {
  const percent = 100 * Math.exp(logp);
  if (percent >= 99.5 && percent < 100) return "> 99 %";
  return percent < 0.5 ? "< 1 %" : `${Math.round(percent)} %`;
}

/** “▁the” is shown as it is: where a word begins is part of the lesson. */
export function quoted(text: string): string {
  return `“${text}”`;
}

/** What the changes did, in one sentence or two. */
export function verdictOf({ trace }: Scene): string {
  const { baseline, target } = trace;
  if (!baseline) return "";
  const text = baseline.text === target.text ? "The translation stays the same." : `The translation is now ${quoted(target.text || "nothing")}.`;
  return `${text} The log-probability of the first one changes by ${signed(baseline.delta_logp)}.`;
}

/** Is this the answer to a question with changes in it? The view is ahead of the trace while the server works. */
export function judged({ trace }: Scene): boolean {
  return trace.baseline != null;
}

export function dark(trace: Trace, kind?: Kind): string[] {
  return heads(trace, kind).filter((head) => head.gate === 0).map((head) => head.id);
}

export function heads(trace: Trace, kind?: Kind): HeadStats[] {
  return (trace.stats?.heads ?? []).filter((head) => kind === undefined || head.id.startsWith(`${kind}.`));
}

export function sharpest(trace: Trace, kind: Kind): HeadStats | null {
  return heads(trace, kind).reduce<HeadStats | null>((best, head) => (best === null || head.entropy < best.entropy ? head : best), null);
}

export function matrixOf({ trace, spot }: Scene): Matrix {
  const [kind, layer, head] = spot.split(".");
  return weights(trace, kind as Kind, Number(layer), Number(head));
}

/** Where a row of the spot looks most: column and weight. */
export function brightest(scene: Scene, row: number): { column: number; weight: number } | null {
  const matrix = matrixOf(scene);
  if (row < 0 || row >= matrix.rows) return null;
  let column = 0;
  for (let other = 1; other < matrix.columns; other++) if (matrix.at(row, other) > matrix.at(row, column)) column = other;
  return { column, weight: matrix.at(row, column) };
}

export function isEnd(piece: string | undefined): boolean {
  return piece === undefined || /^<\/?s>$/.test(piece);
}

/** Two links that cross: the later source piece belongs to the earlier target piece. The clearest pair, or null. */
export function crossing(trace: Trace): [number, number][] | null {
  const best = new Map<number, [number, number]>(); // target -> source, weight
  for (const [source, target, weight] of trace.align?.links ?? [])
    if (weight > (best.get(target)?.[1] ?? 0)) best.set(target, [source, weight]);
  // The end of a text is the translation of nothing.
  const links = [...best].filter(([target, [source]]) => !isEnd(trace.source.tokens[source]?.piece) && !isEnd(trace.target.tokens[target]?.piece));
  let clearest: { pair: [number, number][]; weight: number } | null = null;
  for (const [target, [source, weight]] of links)
    for (const [later, [earlier, other]] of links)
      if (later > target && earlier < source && Math.min(weight, other) > (clearest?.weight ?? 0))
        clearest = { pair: [[source, target], [earlier, later]], weight: Math.min(weight, other) };
  return clearest?.pair ?? null;
}

export { alignmentHead, headName };

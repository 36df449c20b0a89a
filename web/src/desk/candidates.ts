/** One predicted piece: what else could have stood there, where it looked, and what would force it another way. */

import { partsOf, weights, type Trace } from "./trace";
import type { Pin, View } from "./view";

export interface Chance {
  id: number;
  piece: string;
  probability: number;
  taken: boolean;
  forcible: boolean; // an end or another mark is no piece that a translation could begin with
}

/** All that is told of a place, the taken one always among them, most probable first. */
export function chancesOf(trace: Trace, step: number): Chance[] {
  const token = trace.target.tokens[step];
  if (!token) return [];
  const told = token.topk.some(([id]) => id === token.id) ? token.topk : [...token.topk, [token.id, token.piece, token.logp] as const];
  return told
    .map(([id, piece, logp]) => ({ id, piece, probability: Math.exp(logp), taken: id === token.id, forcible: !isMark(piece) }))
    .sort((a, b) => b.probability - a.probability);
}

/** "<s>" and "</s>" are marks, "<" alone is a piece, and so is "<0xF0>", a byte of a letter that has no piece of its own. */
export function isMark(piece: string): boolean {
  return /^<[^>]+>$/.test(piece) && byteOf(piece) === null;
}

/** "<2de>" and "<formal>" tell the model what is wanted: marks that stand in for words of a person, and can be hidden like these. */
export function isTag(piece: string): boolean {
  return isMark(piece) && !/^<(\/?s|unk|pad)>$/.test(piece);
}

/** byteOf("<0xF0>") -> 240; null for all other pieces */
export function byteOf(piece: string): number | null {
  const found = /^<0x([0-9A-Fa-f]{2})>$/.exec(piece);
  return found ? Number.parseInt(found[1]!, 16) : null;
}

/** The place to begin with: where the model was least sure. */
export function leastSure(trace: Trace): number {
  const { tokens } = trace.target;
  return tokens.reduce((least, token, step) => (token.logp < tokens[least]!.logp ? step : least), 0);
}

/** "What if `id` stood at `step`?": everything before stays, and the search goes on from there. */
export function whatIf(trace: Trace, step: number, id: number): Partial<View> {
  return { prefix: [...trace.target.tokens.slice(0, step).map((token) => token.id), id], target: null, query: step };
}

export interface Looked {
  source: number;
  piece: string;
  weight: number;
}

export interface Looking {
  head: string; // "cross.1.2", or "cross.1" for the mean of a layer
  pieces: Looked[]; // most first
}

/** Where cross-attention looked at this step: by the head on show if it is one, else by the one that aligns, else by its last layer. */
export function lookedAt(trace: Trace, step: number, spot: string): Looking {
  const named = spot.startsWith("cross.") ? spot : (/^head:(cross\..+)$/.exec(trace.align?.method ?? "")?.[1] ?? null);
  const last = trace.model.dec_layers - 1;
  const heads = named ? [partsOf(named)] : Array.from({ length: trace.model.heads }, (_, head) => ({ layer: last, head }));
  const sums = new Float64Array(trace.source.tokens.length);
  for (const { layer, head } of heads) {
    const matrix = weights(trace, "cross", layer, head);
    if (step < matrix.rows) for (let s = 0; s < sums.length; s++) sums[s]! += matrix.at(step, s) / heads.length;
  }
  const pieces = Array.from(sums, (weight, source) => ({ source, piece: trace.source.tokens[source]!.piece, weight }));
  return { head: named ?? `cross.${last}`, pieces: pieces.sort((a, b) => b.weight - a.weight || a.source - b.source) };
}

/** Pieces of the word that a source piece belongs to; marks are words of their own. */
export function wordOf(trace: Trace, source: number): number[] {
  const { tokens } = trace.source;
  const own = tokens[source];
  if (!own) return [];
  if (isMark(own.piece)) return [source];
  return tokens.flatMap((token, s) => (token.word === own.word && !isMark(token.piece) ? [s] : []));
}

/** Hides the whole word, or shows it again if all of it is hidden. */
export function toggled(hidden: readonly number[], word: readonly number[]): number[] {
  const all = word.every((source) => hidden.includes(source));
  const rest = hidden.filter((source) => !word.includes(source));
  return all ? rest : [...rest, ...word].sort((a, b) => a - b);
}

/** "Light from `source` instead": one pin for each step. */
export function pinned(pins: readonly Pin[], step: number, source: number | null): Pin[] {
  const rest = pins.filter((pin) => pin.step !== step);
  return source === null ? rest : [...rest, { step, source, layers: "*" as const, strength: 1 }].sort((a, b) => a.step - b.step);
}

/** probabilityOf(0.0004) -> "0.04 %": never 0 for what is possible, never 100 for what is not certain. */
export function probabilityOf(p: number): string {
  if (p >= 0.9995) return p === 1 ? "100 %" : "> 99.9 %";
  if (p < 0.00005) return p === 0 ? "0 %" : "< 0.01 %";
  const percent = p * 100;
  return `${percent >= 10 ? percent.toFixed(1) : percent.toFixed(2)} %`;
}

/** The piece that is on show: the chosen one, else the least sure. */
export function shownStep(trace: Trace, query: number | null): number {
  return Math.min(query ?? leastSure(trace), trace.target.tokens.length - 1);
}

/** What stands at the rows and columns of a head's picture, and what is said of a cell. */

import { numberOf, type Cell, type Label } from "./heat";
import type { Kind, Trace } from "./trace";

export function sourceLabels(trace: Trace): Label[] {
  return trace.source.tokens.map(({ piece }) => ({ text: piece, lang: trace.model.src_lang }));
}

/** What row t is about to write. */
export function targetLabels(trace: Trace): Label[] {
  return trace.target.tokens.map(({ piece }) => ({ text: piece, lang: trace.model.tgt_lang }));
}

export function inputLabels(trace: Trace): Label[] {
  return trace.target.inputs.map((piece) => ({ text: piece, lang: trace.model.tgt_lang }));
}

export function rowLabels(trace: Trace, kind: Kind): Label[] {
  return kind === "enc" ? sourceLabels(trace) : targetLabels(trace);
}

export function columnLabels(trace: Trace, kind: Kind): Label[] {
  return kind === "dec" ? inputLabels(trace) : sourceLabels(trace);
}

export const ROW_TITLES: Readonly<Record<Kind, string>> = { enc: "a source piece", dec: "the piece to be written", cross: "the piece to be written" };
export const COLUMN_TITLES: Readonly<Record<Kind, string>> = { enc: "where it looks", dec: "what is written already", cross: "where it looks in the source" };

/** "saß attends to sat, 0.71, cross layer 5, head 2" */
export function sayCell(trace: Trace, kind: Kind, layer: number, head: number): (cell: Cell, value: number, hidden: boolean) => string {
  const [rows, columns] = [rowLabels(trace, kind), columnLabels(trace, kind)];
  return ({ row, column }, value, hidden) => {
    const [from, to] = [bare(rows[row]?.text ?? ""), bare(columns[column]?.text ?? "")];
    const what = hidden ? `${from} may not look at ${to}, masked` : `${from} attends to ${to}, ${numberOf(value)}`;
    return `${what}, ${kind} layer ${layer}, head ${head}`;
  };
}

/** bare("▁The") -> "The"; "▁" itself stays. */
export function bare(piece: string): string {
  return piece.length > 1 ? piece.replace(/^▁/, "") : piece;
}

/** For the live region: what is new, and what the changes did. */
export function sayOutcome(trace: Trace, touched: boolean): string {
  const verdict = trace.baseline;
  if (!touched || !verdict) return trace.target.text;
  const change = `${verdict.delta_logp < 0 ? "minus" : "plus"} ${Math.abs(verdict.delta_logp).toFixed(2)}`;
  const same = verdict.text === trace.target.text ? "The translation is the same" : trace.target.text;
  return `${same}. Log-probability of the first translation: ${change}.`;
}

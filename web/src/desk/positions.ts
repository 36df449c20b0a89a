/** Positions (section 3.5): how places look to the model, how alike two places are, and what happens when they are taken away. */

import { Matrix } from "./trace";

export type Layout = "interleaved" | "halves" | "tensor2tensor";

/** Sinusoids of the paper, (length, width).
 *
 *     PE(pos, 2i) = sin(pos / 10000^(2i/width)),   PE(pos, 2i+1) = cos(the same)
 *
 * "interleaved" is the paper's order; "halves" has all sines first; "tensor2tensor" too, with the last frequency exactly 1/10000.
 */
export function sinusoids(length: number, width: number, layout: Layout = "interleaved", offset = 0): Matrix {
  const pairs = width >> 1;
  const data = new Float32Array(length * width);
  for (let row = 0; row < length; row++)
    for (let pair = 0; pair < pairs; pair++) {
      const angle = (row + offset) * frequency(pair, width, layout);
      const [sine, cosine] = layout === "interleaved" ? [2 * pair, 2 * pair + 1] : [pair, pairs + pair];
      data[row * width + sine] = Math.sin(angle);
      data[row * width + cosine] = Math.cos(angle);
    }
  return new Matrix(length, width, data);
}

function frequency(pair: number, width: number, layout: Layout): number {
  const pairs = width >> 1;
  return 10000 ** -(pair / (layout === "tensor2tensor" ? Math.max(pairs - 1, 1) : pairs));
}

export interface Formula {
  layout: Layout;
  offset: number; // of the first place: some models count from 1 or 2
}

/** Which formula gives this table, or null: then it was learned, or somebody experiments with it. `shift`: by how much it was moved. */
export function formulaOf(table: Matrix, shift = 0, tolerance = 2e-3): Formula | null {
  if (table.rows < 2) return null; // a single row proves nothing
  for (const layout of ["interleaved", "halves", "tensor2tensor"] as const)
    for (let offset = shift; offset <= shift + 2; offset++) {
      const made = sinusoids(table.rows, table.columns, layout, offset).data;
      if (table.data.every((x, i) => Math.abs(x - made[i]!) < tolerance)) return { layout, offset };
    }
  return null;
}

/** After how many places a column repeats itself: 2 pi over its frequency. */
export function periodOf(column: number, width: number, layout: Layout): number {
  const pair = layout === "interleaved" ? column >> 1 : column % (width >> 1);
  return (2 * Math.PI) / frequency(pair, width, layout);
}

/** PE PE^T: how alike two places are. With the sinusoids it depends on their distance alone, and the diagonal is width / 2. */
export function likeness(table: Matrix): Matrix {
  const data = new Float32Array(table.rows * table.rows);
  for (let a = 0; a < table.rows; a++)
    for (let b = 0; b < table.rows; b++) {
      let sum = 0;
      for (let column = 0; column < table.columns; column++) sum += table.at(a, column) * table.at(b, column);
      data[a * table.rows + b] = sum;
    }
  return new Matrix(table.rows, table.rows, data);
}

/** cos(pos * frequency) of rotary positions: how far q and k are turned at each place. */
export function rotations(length: number, width: number): Matrix {
  const table = sinusoids(length, width, "halves");
  const pairs = width >> 1;
  const data = new Float32Array(length * pairs);
  for (let row = 0; row < length; row++) for (let pair = 0; pair < pairs; pair++) data[row * pairs + pair] = table.at(row, pairs + pair);
  return new Matrix(length, pairs, data);
}

/** Four columns to begin with, from fast to slow. */
export function fourOf(width: number): [number, number, number, number] {
  const last = width - 1;
  return [0, Math.round(last * 0.14), Math.round(last * 0.28), Math.round(last * 0.5)].map((x) => Math.min(x, last)) as [number, number, number, number];
}

/** A column as the points of an SVG polyline in a box, values from `low` to `high`. */
export function lineOf(table: Matrix, column: number, box: { width: number; height: number }, low = -1, high = 1): string {
  const step = table.rows > 1 ? box.width / (table.rows - 1) : 0;
  return Array.from({ length: table.rows }, (_, row) => {
    const y = box.height * (1 - (table.at(row, column) - low) / (high - low || 1));
    return `${round(row * step)},${round(y)}`;
  }).join(" ");
}

function round(x: number): number {
  return Math.round(x * 100) / 100;
}

export interface Experiment {
  kind: "normal" | "zero" | "shuffle" | "shift";
  number: number; // seed of the shuffle, length of the shift
}

/** experimentOf("shuffle:3") -> { kind: "shuffle", number: 3 }; and back by `written`. */
export function experimentOf(text: string): Experiment {
  const [kind = "", number = "0"] = text.split(":");
  if (kind === "zero") return { kind, number: 0 };
  if ((kind === "shuffle" || kind === "shift") && /^\d+$/.test(number)) return { kind, number: Number(number) };
  return { kind: "normal", number: 0 };
}

export function written({ kind, number }: Experiment): string {
  return kind === "shuffle" || kind === "shift" ? `${kind}:${number}` : kind;
}

/** What an experiment does, and what to look for, in a sentence. */
export function expected(experiment: Experiment, positions: string): string {
  const rotary = positions === "rotary";
  if (experiment.kind === "zero") return rotary ? "No q and no k is turned: every order of the words looks the same to self-attention." : "Nothing is added to the embeddings: every order of the words looks the same to the encoder.";
  if (experiment.kind === "shuffle") return "Each piece keeps its meaning and gets the place of another: the words are all there, in an order that nobody wrote.";
  if (experiment.kind === "shift")
    return `Every place is moved by ${experiment.number}: the distances stay. ${rotary ? "Rotary positions know distances only, so nothing should change." : "The less changes, the more the model goes by distances."}`;
  return positions === "learned" ? "Learned positions have no formula: what is alike here was found useful in training." : rotary ? "Rotary positions are not added to anything: q and k are turned by an angle that grows with their place." : "Near places look alike and far ones differ, by the same amount everywhere: the stripes beside the diagonal.";
}

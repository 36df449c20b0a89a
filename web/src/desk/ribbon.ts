/** The alignment as ribbons between two lines of words. Pure: the export draws with it too. */

import { Matrix, partsOf, weights, type Link, type Trace } from "./trace";
import type { Align, Units } from "./view";

/** A word or piece on the stage, and the pieces that it is made of. */
export interface Unit {
  text: string;
  pieces: number[];
}

export interface Ribbon {
  source: number; // unit
  target: number;
  weight: number;
}

export interface Placed {
  x: number; // left edge
  width: number;
}

const END = /^<(\/?s|pad)>$/; // no part of a word
const BYTE = /<0x([0-9A-F]{2})>/g; // letters that the vocabulary lacks are written byte by byte

/** unitsOf(["▁yester", "day", "</s>"], [0, 0, 0], "words") -> "yesterday" of pieces 0 and 1, "</s>" of piece 2 */
export function unitsOf(pieces: readonly string[], words: readonly (number | null)[], units: Units): Unit[] {
  const made: Unit[] = [];
  pieces.forEach((piece, index) => {
    const last = made.at(-1);
    const word = words[index];
    const joins = units === "words" && last && word !== null && word === words[index - 1] && !END.test(piece);
    if (joins) {
      last.text += piece;
      last.pieces.push(index);
    } else made.push({ text: piece, pieces: [index] });
  });
  return units === "words" ? made.map((unit) => ({ ...unit, text: spelt(unit.text) })) : made;
}

/** spelt("▁t<0x79>") -> "ty". Bytes that are no letter stay as they are. */
function spelt(word: string): string {
  const bare = word.replace(/^▁(?=.)/, "");
  const bytes = (run: string): string => {
    const numbers = [...run.matchAll(BYTE)].map(([, hex]) => Number.parseInt(hex!, 16));
    const text = new TextDecoder().decode(Uint8Array.from(numbers));
    return text.includes("\ufffd") ? run : text;
  };
  return bare.replace(/(?:<0x[0-9A-F]{2}>)+/g, bytes);
}

/** The cross attention that the ribbons show, target x source. `layer`: of which the mean is taken. */
export function alignmentOf(trace: Trace, align: Align, layer: number, spot: string | null): Matrix {
  const [layers, heads, rows, columns] = trace.attn.cross.shape as [number, number, number, number];
  const named = /^head:(cross\..+)$/.exec(trace.align?.method ?? "")?.[1];
  if (align === "spot" && spot?.startsWith("cross.")) return of(trace, spot);
  if ((align === "auto" || align === "spot") && named) return of(trace, named);
  if (align === "auto" && trace.align) return fromLinks(trace.align.links, rows, columns);
  const made = new Float32Array(rows * columns);
  const from = align === "max" ? 0 : Math.min(layer, layers - 1);
  for (let each = from; each < (align === "max" ? layers : from + 1); each++)
    for (let head = 0; head < heads; head++) {
      const { data } = weights(trace, "cross", each, head);
      if (align === "max") data.forEach((value, i) => (made[i] = Math.max(made[i]!, value)));
      else data.forEach((value, i) => (made[i] = made[i]! + value / heads));
    }
  return new Matrix(rows, columns, made);
}

function of(trace: Trace, id: string): Matrix {
  const { layer, head } = partsOf(id);
  return weights(trace, "cross", layer, head);
}

function fromLinks(links: readonly Link[], rows: number, columns: number): Matrix {
  const made = new Float32Array(rows * columns);
  for (const [source, target, weight] of links) if (target < rows && source < columns) made[target * columns + source] = weight;
  return new Matrix(rows, columns, made);
}

/** Pieces to units: light on a word is the sum over its source pieces, and the mean over those of the target. */
export function merged(matrix: Matrix, source: readonly Unit[], target: readonly Unit[]): Matrix {
  const made = new Float32Array(target.length * source.length);
  target.forEach((to, row) => {
    source.forEach((from, column) => {
      let sum = 0;
      for (const r of to.pieces) for (const c of from.pieces) sum += matrix.at(r, c);
      made[row * source.length + column] = sum / to.pieces.length;
    });
  });
  return new Matrix(target.length, source.length, made);
}

/** For each target unit the fewest ribbons that carry `keep` of its light, the strongest first. */
export function ribbonsOf(matrix: Matrix, keep: number): Ribbon[] {
  const made: Ribbon[] = [];
  for (let target = 0; target < matrix.rows; target++) {
    const row = [...matrix.data.subarray(target * matrix.columns, (target + 1) * matrix.columns)];
    const all = row.reduce((sum, value) => sum + value, 0);
    const order = row.map((_, i) => i).sort((a, b) => row[b]! - row[a]!);
    let carried = 0;
    for (const source of order) {
      if (row[source]! <= 0 || carried >= keep * all - 1e-6) break;
      carried += row[source]!;
      made.push({ source, target, weight: row[source]! });
    }
  }
  return made;
}

/** Two lines of words, both `width` wide where they fit: the gaps of the shorter one grow, up to a point, and it stands in the middle. */
export function placed(widths: readonly number[], width: number, least = 6, most = 34): Placed[] {
  const own = widths.reduce((sum, each) => sum + each, 0);
  const gaps = Math.max(1, widths.length - 1);
  const gap = Math.min(most, Math.max(least, (width - own) / gaps));
  const used = own + gap * (widths.length - 1);
  let x = Math.max(0, (width - used) / 2);
  return widths.map((each) => {
    const at = { x, width: each };
    x += each + gap;
    return at;
  });
}

/** How wide the wider of both lines is at least. */
export function leastWidth(widths: readonly number[], gap = 6): number {
  return widths.reduce((sum, each) => sum + each, 0) + gap * Math.max(0, widths.length - 1);
}

/** A ribbon as a path of SVG, from the foot of a word to the head of another. */
export function pathOf(from: Placed, to: Placed, height: number): string {
  const [a, b] = [round(from.x + from.width / 2), round(to.x + to.width / 2)];
  const bend = round(height * 0.5);
  return `M${a} 0C${a} ${bend} ${b} ${round(height - bend)} ${b} ${height}`;
}

/** Stroke of a ribbon in px. */
export function thickness(weight: number): number {
  return round(0.75 + 8 * Math.min(1, weight));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** How a matrix becomes a picture: shares of a scale, colours, max-pooled thumbnails. No canvas and no page: the export draws with it too. */

import { colourOf, tableOf, type Palette } from "./colours";
import { Matrix } from "./trace";
import type { Scale } from "./view";

export interface Label {
  text: string;
  lang?: string;
  title?: string;
}

export interface Cell {
  row: number;
  column: number;
}

export type Range = readonly [low: number, high: number];

const DECADES = 3; // what a logarithmic scale shows below its maximum

const FAINT = 0.5; // when no weight is larger, colours up to 1 would show one dark rectangle

/** weightRange(0.9) -> [0, 1]; weightRange(0.12) -> [0, 0.12]: what an untrained model looks at can be seen too, and the legend says so. */
export function weightRange(most: number): Range {
  return most > FAINT || most <= 0 ? [0, 1] : [0, most];
}

/** The largest of the weights of several matrices. */
export function largest(matrices: Iterable<Matrix>): number {
  let most = 0;
  for (const { data } of matrices) for (const value of data) if (value > most && Number.isFinite(value)) most = value;
  return most;
}

/** rangeOf(weights) -> [0, 1]; scores -> [min, max] of what is finite; diverging: as far below zero as above. */
export function rangeOf(matrix: Matrix, palette: Palette): Range {
  let low = Infinity;
  let high = -Infinity;
  for (const value of matrix.data) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  if (palette === "diverging") {
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return [-most, most];
  }
  return low >= 0 && high <= 1.001 ? [0, 1] : low === high ? [low, low + 1] : [low, high];
}

/** Where a value stands between the ends of the range, 0 to 1. Scales other than linear are for values that are not negative. */
export function shareOf(value: number, range: Range, scale: Scale): number {
  const low = range[0];
  const high = range[1];
  const share = Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  if (scale === "sqrt") return Math.sqrt(share);
  if (scale === "log") return share <= 0 ? 0 : Math.max(0, 1 + Math.log10(share) / DECADES);
  return share;
}

/** Each row divided by its own maximum: where a head looked most, however thinly it spread its light. */
export function rowRelative(matrix: Matrix): Matrix {
  const made = new Float32Array(matrix.data.length);
  for (let row = 0; row < matrix.rows; row++) {
    const begin = row * matrix.columns;
    let most = 0;
    for (let i = begin; i < begin + matrix.columns; i++) if (matrix.data[i]! > most) most = matrix.data[i]!;
    for (let i = begin; i < begin + matrix.columns; i++) made[i] = most > 0 ? matrix.data[i]! / most : 0;
  }
  return new Matrix(matrix.rows, matrix.columns, made);
}

/** Pixels of one picture element per cell, RGBA; what is masked, or no number, stays transparent. */
export function pixelsOf(
  matrix: Matrix,
  palette: Palette,
  range: Range,
  scale: Scale,
  masked?: (row: number, column: number) => boolean,
): Uint8ClampedArray<ArrayBuffer> {
  const table = tableOf(palette);
  const pixels = new Uint8ClampedArray(matrix.data.length * 4);
  for (let row = 0, i = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++, i++) {
      const value = matrix.data[i]!;
      if (!(value > -Infinity) || masked?.(row, column)) continue;
      const at = 3 * Math.round(shareOf(value, range, scale) * 255);
      const to = 4 * i;
      pixels[to] = table[at]!;
      pixels[to + 1] = table[at + 1]!;
      pixels[to + 2] = table[at + 2]!;
      pixels[to + 3] = 255;
    }
  return pixels;
}

export interface HeatRect extends Cell {
  x: number;
  y: number;
  width: number;
  height: number;
  fill: string | null; // null: masked, to be hatched
}

/** The same picture as rectangles of `size` px, for a drawing. */
export function layoutHeat(
  matrix: Matrix,
  options: {
    palette: Palette;
    scale?: Scale;
    range?: Range;
    size?: number;
    masked?: ((row: number, column: number) => boolean) | undefined;
  },
): { width: number; height: number; rects: HeatRect[] } {
  const { palette, scale = "linear", size = 18, masked } = options;
  const range = options.range ?? rangeOf(matrix, palette);
  const rects: HeatRect[] = [];
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      const value = matrix.at(row, column);
      const hidden = value === -Infinity || Number.isNaN(value) || (masked?.(row, column) ?? false);
      const fill = hidden ? null : colourOf(palette, shareOf(value, range, scale));
      rects.push({ row, column, x: column * size, y: row * size, width: size, height: size, fill });
    }
  return { width: matrix.columns * size, height: matrix.rows * size, rects };
}

/** Smaller by taking the largest of each block: a single bright cell is never lost. What is small enough stays as it is. */
export function maxPool(matrix: Matrix, most: number): Matrix {
  const rows = Math.min(matrix.rows, most);
  const columns = Math.min(matrix.columns, most);
  if (rows === matrix.rows && columns === matrix.columns) return matrix;
  const made = new Float32Array(rows * columns).fill(-Infinity);
  for (let row = 0; row < matrix.rows; row++) {
    const to = Math.floor((row * rows) / matrix.rows) * columns;
    for (let column = 0; column < matrix.columns; column++) {
      const at = to + Math.floor((column * columns) / matrix.columns);
      const value = matrix.data[row * matrix.columns + column]!;
      if (value > made[at]!) made[at] = value;
    }
  }
  return new Matrix(rows, columns, made);
}

/** Short enough for a cell, long enough to be true: 0.7134 -> "0.713", -1234.5 -> "-1.23e+3", -Infinity -> "−∞". */
export function numberOf(value: number): string {
  if (value === -Infinity) return "−∞";
  if (Number.isNaN(value)) return "no number";
  const size = Math.abs(value);
  const text = size === 0 ? "0" : size >= 1000 || size < 0.0005 ? value.toExponential(2) : size >= 10 ? value.toFixed(2) : value.toFixed(3);
  return text.replace("-", "−");
}

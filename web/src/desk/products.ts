/** How one number of a stage came about, and what a stage is like as a whole. */

import type { Matrix } from "./trace";

/** A sum of products: q[i] * k[i], or weight[j] * v[j]. */
export interface Products {
  left: number[];
  right: number[];
  products: number[];
  sum: number;
}

/** products([1, 2], [3, 4]) -> products 3 and 8, sum 11 */
export function products(left: ArrayLike<number>, right: ArrayLike<number>): Products {
  const [a, b] = [Array.from(left), Array.from(right)];
  if (a.length !== b.length) throw new RangeError(`${a.length} numbers times ${b.length}`);
  const each = a.map((x, i) => x * b[i]!);
  return { left: a, right: b, products: each, sum: each.reduce((sum, x) => sum + x, 0) };
}

/** One weight, from its dot product on: score = q . k, scaled = score / sqrt(d_k), exp(scaled) against the sum of its row. */
export interface Weighing extends Products {
  scaled: number;
  hidden: boolean;
  exp: number; // of this cell, with the row's maximum taken off first
  rowSum: number; // of the same over all that is visible
  rowMax: number;
  weight: number;
}

/** softmax(q k^T / sqrt(d_k))[row, column], step by step. `masked` is the row after the mask, in which hidden cells are
 * -Infinity. `temperature` divides the scaled scores, where somebody turned it. */
export function weighing(q: ArrayLike<number>, k: ArrayLike<number>, masked: ArrayLike<number>, column: number, temperature = 1): Weighing {
  const dot = products(q, k);
  const row = Array.from(masked);
  const rowMax = row.reduce((most, x) => Math.max(most, x), -Infinity);
  const exps = row.map((x) => (x === -Infinity ? 0 : Math.exp(x - rowMax)));
  const rowSum = exps.reduce((sum, x) => sum + x, 0);
  const exp = exps[column]!;
  return { ...dot, scaled: dot.sum / Math.sqrt(dot.left.length) / temperature, hidden: row[column] === -Infinity, exp, rowSum, rowMax, weight: exp / rowSum };
}

export function rowOf(matrix: Matrix, row: number): Float32Array {
  return matrix.data.subarray(row * matrix.columns, (row + 1) * matrix.columns);
}

export function columnOf(matrix: Matrix, column: number): number[] {
  return Array.from({ length: matrix.rows }, (_, row) => matrix.at(row, column));
}

export interface Statistics {
  count: number;
  hidden: number; // -Infinity, which count for nothing else here
  mean: number;
  std: number;
  least: number;
  most: number;
  norms: number[]; // of each row: sqrt of the sum of squares
}

export function statisticsOf(matrix: Matrix): Statistics {
  let [count, sum, squares, least, most] = [0, 0, 0, Infinity, -Infinity];
  const norms: number[] = [];
  for (let row = 0; row < matrix.rows; row++) {
    let own = 0;
    for (const x of rowOf(matrix, row)) {
      if (!Number.isFinite(x)) continue;
      count++;
      sum += x;
      own += x * x;
      least = Math.min(least, x);
      most = Math.max(most, x);
    }
    squares += own;
    norms.push(Math.sqrt(own));
  }
  const mean = count ? sum / count : 0;
  const hidden = matrix.rows * matrix.columns - count;
  return { count, hidden, mean, std: count ? Math.sqrt(Math.max(0, squares / count - mean * mean)) : 0, least, most, norms };
}

/** The columns in which something happens: those with the greatest values of each row in turn, at most `most`, from left to right.
 * A vocabulary of thousands of pieces is drawn as the few that any row thought of. */
export function telling(matrix: Matrix, most: number): number[] {
  if (matrix.columns <= most) return Array.from({ length: matrix.columns }, (_, column) => column);
  const orders = Array.from({ length: matrix.rows }, (_, row) => {
    const values = rowOf(matrix, row);
    return Array.from(values.keys()).sort((a, b) => values[b]! - values[a]!).slice(0, most);
  });
  const taken = new Set<number>();
  for (let place = 0; place < most && taken.size < most; place++)
    for (const order of orders) if (taken.size < most) taken.add(order[place]!);
  return [...taken].sort((a, b) => a - b);
}

/** A matrix as one pastes it into Python. -inf is np.inf there. */
export function numpyOf(matrix: Matrix, name: string): string {
  const rows = Array.from({ length: matrix.rows }, (_, row) => `    [${Array.from(rowOf(matrix, row), written).join(", ")}],`);
  return `${name} = np.array([\n${rows.join("\n")}\n], dtype=np.float32)  # [${matrix.rows}, ${matrix.columns}]`;
}

function written(x: number): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "np.nan" : x < 0 ? "-np.inf" : "np.inf";
  return String(Number(x.toPrecision(6)));
}

/** Two traces side by side: which pieces they share, and how their weights differ there. */

import { Matrix, type Trace } from "./trace";

/** Places of b for each place of a, and the other way; null where there is none. */
export interface Matched {
  ab: (number | null)[];
  ba: (number | null)[];
}

/** Only of one model, in whichever direction: another has other heads, and perhaps more of them. */
export function comparable(a: Trace, b: Trace): boolean {
  const bundle = (trace: Trace): string => trace.model.id.split(":")[0]!;
  return bundle(a) === bundle(b) && a.model.sha === b.model.sha;
}

/** Longest common subsequence of ids, so that order is kept. */
export function matchedBy(a: readonly number[], b: readonly number[]): Matched {
  const [n, m] = [a.length, b.length];
  const longest = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      longest[i]![j] = a[i] === b[j] ? longest[i + 1]![j + 1]! + 1 : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!);
  const ab: (number | null)[] = Array(n).fill(null);
  const ba: (number | null)[] = Array(m).fill(null);
  for (let i = 0, j = 0; i < n && j < m; )
    if (a[i] === b[j]) {
      ab[i] = j;
      ba[j++] = i++;
    } else if (longest[i + 1]![j]! >= longest[i]![j + 1]!) i++;
    else j++;
  return { ab, ba };
}

export interface Locked {
  source: Matched;
  read: Matched;
  predicted: Matched;
}

/** What a cursor in one trace points at in the other. Pieces that the decoder reads are those that it predicted, one place later. */
export function locked(a: Trace, b: Trace): Locked {
  const ids = (trace: Trace): number[] => trace.target.tokens.map((token) => token.id);
  const read = (trace: Trace): number[] => [-1, ...ids(trace)].slice(0, trace.target.inputs.length);
  return {
    source: matchedBy(a.source.tokens.map((token) => token.id), b.source.tokens.map((token) => token.id)),
    read: matchedBy(read(a), read(b)),
    predicted: matchedBy(ids(a), ids(b)),
  };
}

/** b - a in the places of b. Where a has no such row or column there is no difference to tell: NaN, drawn as a hatch. */
export function difference(a: Matrix, b: Matrix, rows: readonly (number | null)[], columns: readonly (number | null)[]): Matrix {
  const data = new Float32Array(b.rows * b.columns).fill(Number.NaN);
  for (let row = 0; row < b.rows; row++)
    for (let column = 0; column < b.columns; column++) {
      const [i, j] = [rows[row] ?? null, columns[column] ?? null];
      if (i !== null && j !== null) data[row * b.columns + column] = b.at(row, column) - a.at(i, j);
    }
  return new Matrix(b.rows, b.columns, data);
}

export interface Moved {
  shared: number; // cells that both have
  mean: number; // of |b - a| over these
  most: number;
  row: number; // where it is greatest
  column: number;
}

export function movedBy(matrix: Matrix): Moved {
  const moved: Moved = { shared: 0, mean: 0, most: 0, row: 0, column: 0 };
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      const change = Math.abs(matrix.at(row, column));
      if (Number.isNaN(change)) continue;
      moved.shared++;
      moved.mean += change;
      if (change > moved.most) [moved.most, moved.row, moved.column] = [change, row, column];
    }
  if (moved.shared) moved.mean /= moved.shared;
  return moved;
}

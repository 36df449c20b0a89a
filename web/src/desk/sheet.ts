/** Pictures of all heads of a kind in one sheet: a row of pictures for each layer, one pixel for each value. */

import type { Palette } from "./colours";
import { largest, maxPool, pixelsOf, weightRange } from "./heat";
import { layersOf, masked, weights, type Kind, type Trace } from "./trace";

export interface Sheet {
  width: number;
  height: number;
  rows: number; // of one picture
  columns: number;
  pixels: Uint8ClampedArray<ArrayBuffer>; // RGBA
}

/** Longer sentences are pooled to `most` values along each side. Drawn with a root, so that faint light is seen at that size. */
export function sheetOf(trace: Trace, kind: Kind, palette: Palette, most: number): Sheet {
  const [, , queries, keys] = trace.attn[kind].shape as [number, number, number, number];
  const [rows, columns] = [Math.min(queries, most), Math.min(keys, most)];
  const { heads } = trace.model;
  const layers = layersOf(trace.model, kind);
  const whole = rows === queries && columns === keys;
  const hides = whole ? (row: number, column: number) => masked(trace, kind, row, column) : undefined;
  const width = heads * columns;
  const pixels = new Uint8ClampedArray(width * layers * rows * 4);
  const pooled = Array.from({ length: layers * heads }, (_, at) => maxPool(weights(trace, kind, Math.floor(at / heads), at % heads), most));
  const range = weightRange(largest(pooled)); // one for all heads of a kind, so that they can be compared
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) {
      const own = pixelsOf(pooled[layer * heads + head]!, palette, range, "sqrt", hides);
      for (let row = 0; row < rows; row++)
        pixels.set(own.subarray(row * columns * 4, (row + 1) * columns * 4), ((layer * rows + row) * width + head * columns) * 4);
    }
  return { width, height: layers * rows, rows, columns, pixels };
}

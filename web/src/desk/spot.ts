/** Which head is in the spot, and the matrix that is shown of it. Pure: the export draws and writes the same. */

import type { Palette } from "./colours";
import { dimmed, lightOf } from "./gates";
import { largest, rangeOf, rowRelative, weightRange, type Range } from "./heat";
import { headId, layersOf, Matrix, masked, matrixOf, partsOf, weights, type Kind, type Tensor, type Trace } from "./trace";
import type { Scale, View } from "./view";

export interface SpotHead {
  id: string;
  kind: Kind;
  layer: number;
  head: number;
}

/** Also when the view names no head, or one that this model does not have. */
export function spotOf(view: View, trace: Trace | null): SpotHead {
  let { layer, head } = view;
  const { kind } = view;
  if (layer === null && trace) {
    const named = alignmentHead(trace);
    if (named && partsOf(named).kind === kind) ({ layer, head } = partsOf(named));
  }
  const most = trace ? { layer: layersOf(trace.model, kind) - 1, head: trace.model.heads - 1 } : { layer: 0, head: 0 };
  layer = Math.max(0, Math.min(layer ?? 0, most.layer));
  head = Math.max(0, Math.min(head ?? 0, most.head));
  return { id: headId(kind, layer, head), kind, layer, head };
}

/** The head that aligns best, where the server named one: "cross.5.2". */
export function alignmentHead(trace: Trace): string | null {
  return /^head:(.+)$/.exec(trace.align?.method ?? "")?.[1] ?? null;
}

/** Of the stages before the softmax a trace brings nothing: they are asked for by this name; null for the others. */
export function stageOf(view: View, { kind, layer }: SpotHead): string | null {
  if (view.stage === "softmax" || view.stage === "dimmed") return null;
  return `${kind === "enc" ? `enc.${layer}` : `dec.${layer}.${kind === "dec" ? "self" : "cross"}`}.${view.stage}`;
}

export interface Shown {
  values: Matrix; // what the numbers say
  matrix: Matrix; // what the colours say
  palette: Palette;
  scale: Scale;
  range: Range;
  masked: ((row: number, column: number) => boolean) | undefined;
}

function throughDimmer(looked: Matrix, light: number, { mode }: View, hides: (row: number, column: number) => boolean): Matrix {
  const { rows, columns, data } = looked;
  const passed = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++)
    passed.set(dimmed(data.subarray(row * columns, (row + 1) * columns), light, mode, (column) => hides(row, column)), row * columns);
  return new Matrix(rows, columns, passed);
}

/** What Spot shows; null while `tensor`, the stage that the view asks for, is not there. */
export function shownOf(trace: Trace, view: View, spot: SpotHead, tensor: Tensor | null): Shown | null {
  const hides = (row: number, column: number): boolean => masked(trace, spot.kind, row, column);
  if (stageOf(view, spot) !== null) {
    if (!tensor) return null;
    const values = matrixOf(tensor, spot.head);
    const range = rangeOf(values, "diverging");
    return { values, matrix: values, palette: "diverging", scale: "linear", range, masked: view.stage === "masked" ? hides : undefined };
  }
  const looked = weights(trace, spot.kind, spot.layer, spot.head);
  const light = view.stage === "dimmed" ? lightOf(view.gates, view.solo, spot.id) : 1;
  const values = light === 1 ? looked : throughDimmer(looked, light, view, hides);
  const matrix = view.relative ? rowRelative(values) : values;
  const range = view.relative ? ([0, 1] as const) : weightRange(largest([values]));
  return { values, matrix, palette: view.palette, scale: view.scale, range, masked: hides };
}

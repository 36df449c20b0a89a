/** The panels drawn anew as vectors, by the kernels that lay them out on the page. */

import { rgbOf, type Palette } from "./colours";
import { largest, layoutHeat, maxPool, numberOf, rangeOf, shareOf, weightRange, type Label, type Range } from "./heat";
import { ACCENT, FAINT, INK, LINE, WARM, breadth, element, group, hatched, words, type Picture } from "./svg";
import { KINDS, KIND_NAMES, Matrix, headName, layersOf, masked, weights, type Kind, type Trace } from "./trace";
import { FONT, layoutTree } from "./tree";
import type { Scale } from "./view";

/** A picture without its title and citation. */
export type Drawing = Pick<Picture, "width" | "height" | "body" | "description">;

export interface HeatAsked {
  matrix: Matrix;
  rows: readonly Label[];
  columns: readonly Label[];
  palette: Palette;
  scale: Scale;
  range?: Range | undefined;
  masked?: ((row: number, column: number) => boolean) | undefined;
}

/** A heat map with its words and the scale of its colours. */
export function drawHeat(asked: HeatAsked): Drawing {
  const { matrix, palette, scale } = asked;
  const range = asked.range ?? rangeOf(matrix, palette);
  const size = matrix.columns > 60 ? 9 : 20;
  const heat = layoutHeat(matrix, { palette, scale, range, size, masked: asked.masked });
  const font = Math.min(13, size * 0.9);
  const left = Math.max(20, ...asked.rows.map((label) => breadth(label.text, font))) + 10;
  const top = Math.max(20, ...asked.columns.map((label) => breadth(label.text, font))) + 10;
  const middle = size / 2 + font * 0.35;
  const cells = heat.rects.map(({ x, y, width, height, fill }) =>
    fill === null ? hatched(x, y, width, height) : element("rect", { x, y, width, height, fill: hex(fill) }),
  );
  const body = [
    group(
      { transform: `translate(${left} ${top - 8})`, "font-size": font },
      ...asked.columns.map((label, at) => words(0, 0, label.text, { transform: `translate(${at * size + middle} 0) rotate(-90)`, lang: label.lang })),
    ),
    group(
      { transform: `translate(${left - 8} ${top})`, "font-size": font, "text-anchor": "end" },
      ...asked.rows.map((label, at) => words(0, at * size + middle, label.text, { lang: label.lang })),
    ),
    // Without smoothing no seam shows between cells.
    group({ transform: `translate(${left} ${top})`, "shape-rendering": "crispEdges" }, ...cells),
    group({ transform: `translate(${left} ${top + heat.height + 14})` }, legend(palette, scale, range, heat.rects.some((rect) => rect.fill === null))),
  ];
  return {
    width: Math.max(left + heat.width, left + 260),
    height: top + heat.height + 50,
    body: body.join("\n"),
    description: `A heat map of ${matrix.rows} rows and ${matrix.columns} columns, values from ${numberOf(range[0])} to ${numberOf(range[1])}, ${scale} scale. Hatched cells are masked.`,
  };
}

/** The colours from end to end with the values that they stand for, and the hatch if there is one. */
function legend(palette: Palette, scale: Scale, range: Range, hatch: boolean): string {
  const [steps, width] = [60, 150];
  const parts: string[] = [];
  for (let step = 0; step < steps; step++) {
    const value = range[0] + ((range[1] - range[0]) * step) / (steps - 1);
    const fill = hexOf(rgbOf(palette, shareOf(value, range, scale)));
    parts.push(element("rect", { x: (step * width) / steps, y: 0, width: width / steps + 0.3, height: 10, fill }));
  }
  parts.push(words(0, 24, numberOf(range[0]), { "font-size": 11, fill: FAINT }));
  parts.push(words(width, 24, numberOf(range[1]), { "font-size": 11, fill: FAINT, "text-anchor": "end" }));
  if (hatch) parts.push(hatched(width + 22, 0, 16, 10), words(width + 44, 10, "masked", { "font-size": 11, fill: FAINT }));
  return parts.join("");
}

/** All heads of all kinds, small; under each how much of its light is on. */
export function drawLights(trace: Trace, palette: Palette, scale: Scale): Drawing {
  const [cell, gap, pool] = [44, 12, 16];
  const parts: string[] = [];
  let y = 0;
  for (const kind of KINDS) {
    const layers = layersOf(trace.model, kind);
    parts.push(words(0, y + 14, KIND_NAMES[kind], { "font-weight": 600 }));
    y += 24;
    for (let head = 0; head < trace.model.heads; head++)
      parts.push(words(46 + head * (cell + gap) + cell / 2, y + 10, `h${head}`, { "font-size": 11, fill: FAINT, "text-anchor": "middle" }));
    y += 16;
    const small = Array.from({ length: layers }, (_, layer) => Array.from({ length: trace.model.heads }, (_, head) => maxPool(weights(trace, kind, layer, head), pool)));
    const range = weightRange(largest(small.flat()));
    for (let layer = 0; layer < layers; layer++, y += cell + gap + 8) {
      parts.push(words(0, y + cell / 2 + 4, `L${layer}`, { "font-size": 11, fill: FAINT }));
      for (let head = 0; head < trace.model.heads; head++) {
        const picture = thumbnail(small[layer]![head]!, maxPool(visible(trace, kind), pool), cell, palette, scale, range);
        parts.push(group({ transform: `translate(${46 + head * (cell + gap)} ${y})` }, picture, dimmer(trace, kind, layer, head, cell)));
      }
    }
    y += 12;
  }
  const dimmed = (trace.stats?.heads ?? []).filter((head) => head.gate < 1);
  return {
    width: 46 + trace.model.heads * (cell + gap),
    height: y,
    body: parts.join("\n"),
    description: `Attention of every head: three kinds, layers from top to bottom, heads from left to right. ${
      dimmed.length ? `Dimmed: ${dimmed.map((head) => `${headName(head.id)} to ${Math.round(100 * head.gate)} %`).join(", ")}.` : "None is dimmed."
    }`,
  };
}

/** 1 where a row may look, 0 where it may not. Pooled, a block is hatched if nothing in it may be seen. */
function visible(trace: Trace, kind: Kind): Matrix {
  const [, , rows, columns] = trace.attn[kind].shape as [number, number, number, number];
  const made = new Float32Array(rows * columns);
  for (let i = 0; i < made.length; i++) made[i] = masked(trace, kind, Math.floor(i / columns), i % columns) ? 0 : 1;
  return new Matrix(rows, columns, made);
}

/** One path for each colour, for thousands of rectangles would make a file that no program likes to open. */
function thumbnail(matrix: Matrix, seen: Matrix, cell: number, palette: Palette, scale: Scale, range: Range): string {
  const [width, height] = [cell / matrix.columns, cell / matrix.rows];
  const paths = new Map<string, string>();
  for (let row = 0; row < matrix.rows; row++)
    for (let column = 0; column < matrix.columns; column++) {
      const share = Math.round(shareOf(matrix.at(row, column), range, scale) * 32) / 32;
      const fill = seen.at(row, column) ? hexOf(rgbOf(palette, share)) : "url(#masked)";
      const [x, y] = [short(column * width), short(row * height)];
      paths.set(fill, `${paths.get(fill) ?? ""}M${x} ${y}h${short(width)}v${short(height)}h-${short(width)}z`);
    }
  return group({ "shape-rendering": "crispEdges" }, ...[...paths].map(([fill, d]) => element("path", { d, fill })));
}

function dimmer(trace: Trace, kind: Kind, layer: number, head: number, cell: number): string {
  const gate = trace.stats?.heads.find(({ id }) => id === `${kind}.${layer}.${head}`)?.gate ?? 1;
  const track = element("rect", { x: 0, y: cell + 3, width: cell, height: 4, fill: "none", stroke: FAINT, "stroke-width": 0.75 });
  return track + (gate > 0 ? element("rect", { x: 0, y: cell + 3, width: cell * gate, height: 4, fill: ACCENT }) : "");
}

/** What the search kept and what it gave up. */
export function drawTree(trace: Trace): Drawing {
  const tree = layoutTree(trace.beam?.nodes ?? [], { winner: trace.nbest?.[0]?.node ?? null });
  const edges = tree.edges.map(({ path, twig }) =>
    element("path", {
      d: path,
      fill: "none",
      stroke: twig.best ? ACCENT : FAINT,
      "stroke-width": twig.best ? 2 : 1,
      "stroke-dasharray": twig.kept || twig.done ? undefined : "2 3",
    }),
  );
  const nodes = tree.nodes.map(({ x, y, width, piece, twig }) => {
    const box = element("rect", {
      x, y: y - 9, width, height: 18, rx: 4,
      fill: twig.best ? "#eef4cf" : "#ffffff",
      stroke: twig.best ? ACCENT : twig.kept || twig.done ? FAINT : LINE,
      "stroke-width": twig.done ? 2 : 1,
    });
    return box + words(x + width / 2, y + FONT * 0.33, piece, { "text-anchor": "middle", fill: twig.kept || twig.done ? INK : FAINT });
  });
  return {
    width: tree.width,
    height: tree.height,
    body: group({ "font-family": "ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', monospace", "font-size": FONT }, ...edges, ...nodes),
    description: `The beam search with ${tree.nodes.length} beginnings, from left to right. Dotted ones were given up; those with a thick edge are finished.`,
  };
}

export interface Bar {
  text: string;
  value: number;
  told: string;
}

/** Bars beside words; below zero they go to the left, in another colour. */
export function drawBars(bars: readonly Bar[], range: Range): Drawing {
  const [row, length] = [22, 240];
  const left = Math.max(40, ...bars.map((bar) => breadth(bar.text, 13))) + 12;
  const zero = ((0 - range[0]) / (range[1] - range[0] || 1)) * length;
  const drawn = bars.flatMap((bar, at) => {
    const reach = (Math.abs(bar.value) / (range[1] - range[0] || 1)) * length;
    const y = at * row;
    return [
      words(left - 10, y + 15, bar.text, { "text-anchor": "end" }),
      element("rect", { x: left + zero - (bar.value < 0 ? reach : 0), y: y + 4, width: reach, height: 14, fill: bar.value < 0 ? WARM : ACCENT }),
      words(left + length + 10, y + 15, bar.told, { fill: FAINT }),
    ];
  });
  const axis = element("path", { d: `M${short(left + zero)} 0V${bars.length * row}`, stroke: FAINT, "stroke-width": 1 });
  return {
    width: left + length + 70,
    height: Math.max(1, bars.length) * row,
    body: [...drawn, axis].join("\n"),
    description: bars.map((bar) => `${bar.text}: ${bar.told}`).join("; "),
  };
}

function hex(fill: string): string {
  const found = /^rgb\((\d+) (\d+) (\d+)\)$/.exec(fill);
  return found ? hexOf([Number(found[1]), Number(found[2]), Number(found[3])]) : fill;
}

/** Not every program reads rgb(1 2 3). */
function hexOf(rgb: readonly number[]): string {
  return `#${rgb.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** The stage as vectors: both lines of words, the ribbons between them, and how sure each word is. */

import { surenessOf } from "./confidence_bars";
import type { Drawing } from "./drawings";
import { bare } from "./labels";
import { alignmentOf, leastWidth, merged, pathOf, placed, ribbonsOf, thickness, unitsOf, type Placed, type Unit } from "./ribbon";
import { ACCENT, FAINT, LINE, breadth, element, group, words } from "./svg";
import type { Trace } from "./trace";
import type { View } from "./view";

const [FONT, BOX, RIBBONS, BARS] = [14, 24, 92, 34]; // px

/** `spot` is the head in the spot, such as "cross.1.2". */
export function drawStage(trace: Trace, view: Pick<View, "align" | "keep" | "units">, spot: string): Drawing {
  const source = unitsOf(trace.source.tokens.map(({ piece }) => piece), trace.source.tokens.map(({ word }) => word), view.units);
  const target = unitsOf(trace.target.tokens.map(({ piece }) => piece), trace.target.tokens.map(({ word }) => word), view.units);
  const layer = spot.startsWith("cross.") ? Number(spot.split(".")[1]) : Infinity;
  const ribbons = ribbonsOf(merged(alignmentOf(trace, view.align, layer, spot), source, target), view.keep);
  const widths = { source: widthsOf(source), target: widthsOf(target) };
  const width = Math.max(leastWidth(widths.source), leastWidth(widths.target));
  const places = { source: placed(widths.source, width), target: placed(widths.target, width) };
  const drawn = ribbons.map(({ source: from, target: to, weight }) =>
    element("path", {
      d: pathOf(places.source[from]!, places.target[to]!, RIBBONS),
      fill: "none",
      stroke: ACCENT,
      "stroke-width": thickness(weight),
      "stroke-opacity": 0.25 + 0.5 * Math.min(1, weight),
      "stroke-linecap": "round",
    }),
  );
  const body = [
    group({ transform: `translate(0 ${BOX + 2})` }, ...drawn),
    line(source, places.source, 0, trace.model.src_lang, trace.source.masked ?? []),
    line(target, places.target, BOX + RIBBONS + 4, trace.model.tgt_lang, []),
    group({ transform: `translate(0 ${2 * BOX + RIBBONS + 10})` }, ...target.map((unit, at) => sure(unit, places.target[at]!, trace))),
  ];
  const told = ribbons.map(({ source: from, target: to }) => `${bare(target[to]!.text)} from ${bare(source[from]!.text)}`);
  return {
    width,
    height: 2 * BOX + RIBBONS + 10 + BARS + 16,
    body: body.join("\n"),
    description: `The source above, the translation below, ribbons where it looks: ${told.join("; ")}. Numbers are the probability of each word in percent.`,
  };
}

function line(units: readonly Unit[], places: readonly Placed[], y: number, lang: string, hidden: readonly number[]): string {
  const boxes = units.map(({ text, pieces }, at) => {
    const { x, width } = places[at]!;
    const crossed = pieces.some((piece) => hidden.includes(piece));
    const box = element("rect", { x, y, width, height: BOX, rx: 5, fill: "#ffffff", stroke: LINE, "stroke-dasharray": crossed ? "3 3" : undefined });
    return box + words(x + width / 2, y + 17, text, { "text-anchor": "middle", "text-decoration": crossed ? "line-through" : undefined });
  });
  return group({ "font-size": FONT, lang }, ...boxes);
}

/** A bar and a number: neither colour nor height alone has to be read. */
function sure(unit: Unit, { x, width }: Placed, trace: Trace): string {
  const { probability, percent, tie } = surenessOf(unit, trace.target.tokens);
  const [middle, height] = [x + width / 2, Math.max(1, BARS * probability)];
  const bar = element("rect", { x: middle - 6, y: BARS - height, width: 12, height, fill: ACCENT, "fill-opacity": 0.75 });
  return bar + words(middle, BARS + 13, tie ? `${percent} ⚠` : percent, { "text-anchor": "middle", "font-size": 11, fill: FAINT });
}

function widthsOf(units: readonly Unit[]): number[] {
  return units.map(({ text }) => Math.max(26, Math.ceil(breadth(text, FONT)) + 14));
}

/** The pictures that the desk can be taken away as, each a file of SVG. */

import { leastSure } from "./candidates";
import { drawBars, drawHeat, drawLights, drawTree, type Drawing, type HeatAsked } from "./drawings";
import { drawStage } from "./drawing_stage";
import { citation, headSentence } from "./exporting";
import { picture } from "./svg";
import { barsOf, headName, type Trace } from "./trace";
import type { View } from "./view";

/** Everything that is on show. `heat` is the matrix in the spot as it is drawn there. */
export interface Shown {
  trace: Trace;
  view: View;
  spot: string;
  heat: HeatAsked | null;
}

export interface Exported {
  id: string; // in the file's name
  name: string;
  svg: string;
}

/** Names of the panels that have something to show; drawn when asked, for a large one takes a moment. */
export function picturesOf(shown: Shown): { id: string; name: string; draw: () => Exported }[] {
  const { trace, view, spot, heat } = shown;
  const made = (id: string, name: string, what: string, drawing: () => Drawing) => ({
    id,
    name,
    draw: (): Exported => ({ id, name, svg: picture({ title: `${name}: ${what}`, citation: citation(trace, `${name}: ${what}`), ...drawing() }) }),
  });
  const step = view.query ?? leastSure(trace); // as the panel has it
  const token = trace.target.tokens[step];
  return [
    made("stage", "Stage", alignedBy(view, trace, spot), () => drawStage(trace, view, spot)),
    made("lights", "Lighting desk", "every head", () => drawLights(trace, view.palette, view.scale)),
    ...(heat ? [made(spot, "Spot", `${headSentence(spot)}, ${view.stage}`, () => drawHeat(heat))] : []),
    ...(token ? [made(`token-${step}`, "Token", `“${token.piece}”, step ${step}`, () => drawBars(chances(token.topk), [0, 1]))] : []),
    ...(trace.beam?.nodes.length ? [made("beam", "Beam tree", `width ${trace.beam.size}`, () => drawTree(trace))] : []),
    ...(trace.baseline ? [made("verdict", "Verdict", "change of log-probability, piece by piece", () => verdict(trace))] : []),
  ];
}

function alignedBy(view: View, trace: Trace, spot: string): string {
  const named = /^head:(.+)$/.exec(trace.align?.method ?? "")?.[1];
  if (view.align === "spot" && spot.startsWith("cross.")) return `aligned by ${headName(spot)}`;
  if (view.align === "mean") return "aligned by the mean of a layer";
  if (view.align === "max") return "aligned by the brightest of all heads";
  return named ? `aligned by ${headName(named)}` : "aligned";
}

function chances(topk: readonly (readonly [number, string, number])[]): { text: string; value: number; told: string }[] {
  return topk.map(([, piece, logp]) => ({ text: piece, value: Math.exp(logp), told: Math.exp(logp).toFixed(3) }));
}

/** What each piece of the first translation gained or lost. */
function verdict(trace: Trace): Drawing {
  const { delta_logp } = trace.baseline!;
  const bars = barsOf(trace.baseline!).map(({ delta, piece }) => ({ text: piece, value: delta, told: delta.toFixed(2).replace("-", "−") }));
  const all = { text: "all", value: delta_logp, told: delta_logp.toFixed(2).replace("-", "−") };
  const values = [...bars, all].map((bar) => bar.value);
  return drawBars([...bars, all], [Math.min(0, ...values), Math.max(0, ...values)]);
}

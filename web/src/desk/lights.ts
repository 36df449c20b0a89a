/** What a hand does at the desk: mute, solo and dim a head, a layer, a column or a kind. Each gives the change of the view, and its name. */

import { covers, gateOf, withGate } from "./gates";
import { headName, headsOf, KIND_NAMES, KINDS, type Kind, type ModelFacts } from "./trace";
import type { View } from "./view";

export type Scope = "head" | "layer" | "column" | "kind";

export interface Hand {
  patch: Partial<View>;
  what: string;
}

interface Head {
  kind: Kind;
  layer: number;
  head: number;
}

/** patternOf("layer", cross 5·2) -> "cross.5.*" */
export function patternOf(scope: Scope, { kind, layer, head }: Head): string {
  const [l, h] = [scope === "column" || scope === "kind" ? "*" : layer, scope === "layer" || scope === "kind" ? "*" : head];
  return `${kind}.${l}.${h}`;
}

/** nameOf("cross.5.*") -> "cross layer 5" */
export function nameOf(pattern: string): string {
  const [kind, layer, head] = pattern.split(".");
  if (pattern === "*") return "all heads";
  if (layer === "*" && head === "*") return `all ${KIND_NAMES[kind as Kind].toLowerCase()} heads`;
  if (head === "*") return `${kind} layer ${layer}`;
  if (layer === "*") return `${kind} heads ${head}`;
  return headName(pattern);
}

export function membersOf(model: ModelFacts, pattern: string): string[] {
  return KINDS.flatMap((kind) => headsOf(model, kind)).filter((id) => covers(pattern, id));
}

/** Dark when any of them gives light; else full again. */
export function mute(view: View, model: ModelFacts, pattern: string): Hand {
  const dark = membersOf(model, pattern).every((id) => gateOf(view.gates, id) === 0);
  return { patch: { gates: withGate(view.gates, pattern, dark ? 1 : 0) }, what: `${dark ? "unmute" : "mute"} ${nameOf(pattern)}` };
}

/** Alone with those that are soloed already; or no longer. */
export function solo(view: View, model: ModelFacts, pattern: string): Hand {
  const members = membersOf(model, pattern);
  const alone = members.every((id) => view.solo.includes(id));
  const rest = view.solo.filter((id) => !members.includes(id));
  return { patch: { solo: alone ? rest : [...rest, ...members].sort() }, what: `${alone ? "end solo of" : "solo"} ${nameOf(pattern)}` };
}

export function dim(view: View, pattern: string, level: number): Hand {
  const share = Math.min(1, Math.max(0, Math.round(level * 100) / 100));
  return { patch: { gates: withGate(view.gates, pattern, share) }, what: `dim ${nameOf(pattern)} to ${Math.round(share * 100)} %` };
}

/** The first of a pattern's heads says how far its dimmer is open; NaN when they differ. */
export function levelOf(view: View, model: ModelFacts, pattern: string): number {
  const levels = new Set(membersOf(model, pattern).map((id) => gateOf(view.gates, id)));
  return levels.size === 1 ? [...levels][0]! : Number.NaN;
}

/** All that is changed inside, in words: ["muted: cross 1·2", "soloed: enc 0·3", "hidden: cat"]. */
export function changesOf(view: View, sourcePieces: readonly string[], targetPieces: readonly string[]): string[] {
  const said: string[] = [];
  const piece = (pieces: readonly string[], index: number): string => (pieces[index] ?? String(index)).replace(/^▁(?=.)/, "");
  const dark = view.gates.filter(([, value]) => value === 0).map(([pattern]) => nameOf(pattern));
  const dimmed = view.gates.filter(([, value]) => value > 0).map(([pattern, value]) => `${nameOf(pattern)} at ${Math.round(value * 100)} %`);
  if (dark.length) said.push(`muted: ${dark.join(", ")}`);
  if (dimmed.length) said.push(`dimmed: ${dimmed.join(", ")}`);
  if (view.solo.length) said.push(`solo: ${view.solo.map(headName).join(", ")}`);
  if (view.hidden.length) said.push(`hidden: ${view.hidden.map((index) => piece(sourcePieces, index)).join(", ")}`);
  for (const pin of view.pins) said.push(`light of “${piece(targetPieces, pin.step)}” from “${piece(sourcePieces, pin.source)}”`);
  if (view.positions !== "normal") said.push(`positions: ${view.positions.replace(":", " ")}`);
  if (view.temperature !== 1) said.push(`attention temperature ${view.temperature}`);
  if (view.prefix.length) said.push(`begins with ${view.prefix.length} forced ${view.prefix.length === 1 ? "piece" : "pieces"}`);
  return said;
}

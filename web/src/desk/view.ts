/** Everything that is chosen on the desk, as one plain object; and that object as an address. */

import { long, read, short, written, type Gate } from "./gates";
import type { Kind } from "./trace";

/** "At this step look at that source piece": layers "*" are all of the decoder. */
export interface Pin {
  step: number;
  source: number;
  layers: "*" | readonly number[];
  strength: number;
}

export type Stage = "scores" | "scaled" | "masked" | "softmax" | "dimmed";
export type GateMode = "zero" | "mean";
export type Align = "auto" | "mean" | "max" | "spot";
export type Units = "words" | "pieces";
export type Sort = "layer" | "entropy" | "diagonal" | "end_mass" | "importance";
export type Scale = "linear" | "sqrt" | "log";
export type Sequential = "cividis" | "viridis" | "greys";
export type Panel = "beam" | "positions" | "stepper" | "timelapse" | "compare";

export interface View {
  // What is asked
  model: string | null;
  tags: readonly string[]; // what the model is told beside its languages: pieces before the source
  text: string;
  trace: string | null; // id of one that the server keeps, for texts too long for an address
  target: string | null; // a translation to look at, instead of the model's own
  beam: number | null; // null: as the model searches by itself
  penalty: number | null;
  prefix: readonly number[]; // forced first pieces, as ids
  // What is changed inside
  gates: readonly Gate[];
  mode: GateMode; // what a dark head leaves behind: nothing, or its mean
  solo: readonly string[];
  hidden: readonly number[]; // source pieces that no head may see
  pins: readonly Pin[];
  positions: string; // normal | zero | shuffle:SEED | shift:K
  temperature: number;
  // What is looked at
  kind: Kind;
  layer: number | null; // null: where the alignment is
  head: number | null;
  query: number | null; // chosen row of the target
  stage: Stage;
  align: Align;
  keep: number; // share of each word's light that the ribbons show
  units: Units;
  sort: Sort;
  scale: Scale;
  palette: Sequential;
  relative: boolean; // colours up to the row's own maximum
  panel: Panel;
  compare: string; // "" | "base" | another sentence
  beside: string | null; // the same sentence in another direction of the model is compared, if `compare` is ""
  stepper: string; // name of a stage
  theme: "light" | "dark" | null;
}

export const START: View = Object.freeze<View>({
  model: null,
  tags: [],
  text: "",
  trace: null,
  target: null,
  beam: null,
  penalty: null,
  prefix: [],
  gates: [],
  mode: "zero",
  solo: [],
  hidden: [],
  pins: [],
  positions: "normal",
  temperature: 1,
  kind: "cross",
  layer: null,
  head: null,
  query: null,
  stage: "softmax",
  align: "auto",
  keep: 0.75,
  units: "pieces",
  sort: "layer",
  scale: "linear",
  palette: "cividis",
  relative: false,
  panel: "beam",
  compare: "",
  beside: null,
  stepper: "",
  theme: null,
});

/** What the server must be asked for again when it changes. */
const ASKED = ["model", "tags", "text", "trace", "target", "beam", "penalty", "prefix", "gates", "mode", "solo", "hidden", "pins", "positions", "temperature"] as const;
/** What is an intervention: it has a verdict, and "reset" takes it back. */
const CHANGES = ["prefix", "gates", "solo", "hidden", "pins", "positions", "temperature"] as const;

export function asksAgain(before: View, after: View): boolean {
  return ASKED.some((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
}

/** The view with nothing changed inside. */
export function untouched(view: View): View {
  return { ...view, ...Object.fromEntries(CHANGES.map((key) => [key, START[key]])) };
}

export function isTouched(view: View): boolean {
  return asksAgain(view, untouched(view));
}

/** Another text: what was said about pieces of the old one means nothing there. */
export function withText(view: View, text: string): View {
  return { ...view, text, trace: null, target: null, prefix: [], hidden: [], pins: [], query: null };
}

/** Another direction of the same model, or other tags: the heads are the same, the pieces are not. */
export function withTags(view: View, model: string | null, tags: readonly string[]): View {
  return { ...withText(view, view.text), model, tags, beside: model === view.model ? view.beside : null };
}

/** Another model: it has other heads and other pieces. */
export function withModel(view: View, model: string): View {
  return { ...withTags(view, model, []), gates: [], solo: [], layer: null, head: null };
}

/** For a file that carries the trace: what is in there needs no second place, and a second trace is not in there. */
export function besideTrace(view: View): View {
  return { ...view, text: "", trace: null, target: null, compare: "", beside: null };
}

const CHOICES = {
  kind: ["k", ["enc", "dec", "cross"]],
  stage: ["st", ["scores", "scaled", "masked", "softmax", "dimmed"]],
  align: ["al", ["auto", "mean", "max", "spot"]],
  units: ["u", ["words", "pieces"]],
  sort: ["so", ["layer", "entropy", "diagonal", "end_mass", "importance"]],
  scale: ["sc", ["linear", "sqrt", "log"]],
  palette: ["pa", ["cividis", "viridis", "greys"]],
  panel: ["p", ["beam", "positions", "stepper", "timelapse", "compare"]],
  mode: ["gm", ["zero", "mean"]],
  theme: ["th", ["light", "dark"]],
} as const satisfies Partial<Record<keyof View, readonly [string, readonly string[]]>>;

const NUMBERS = {
  beam: ["b", 1, 64, true],
  penalty: ["lp", 0, 5, false],
  layer: ["l", 0, 999, true],
  head: ["h", 0, 999, true],
  query: ["q", 0, 9999, true],
  keep: ["kp", 0, 1, false],
  temperature: ["at", 0.05, 100, false],
} as const satisfies Partial<Record<keyof View, readonly [string, number, number, boolean]>>;

const TEXTS = { model: "m", text: "s", trace: "t", target: "y", compare: "cmp", beside: "cm", stepper: "stg" } as const satisfies Partial<
  Record<keyof View, string>
>;

const LISTS = { prefix: "pre", hidden: "hide" } as const satisfies Partial<Record<keyof View, string>>;

const POSITIONS = /^(normal|zero|shuffle:\d{1,9}|shift:\d{1,4})$/;

/** "#/x?s=twenty-one&k=cross&l=1&h=2": only what differs from the start. */
export function toHash(view: View): string {
  const said = new URLSearchParams();
  for (const [key, letter] of entries(TEXTS)) if (view[key]) said.set(letter, view[key]);
  for (const [key, [letter]] of entries(NUMBERS)) if (view[key] !== null && view[key] !== START[key]) said.set(letter, String(view[key]));
  if (view.tags.length) said.set("tag", view.tags.join(","));
  if (view.gates.length) said.set("off", written(view.gates));
  if (view.solo.length) said.set("solo", view.solo.map(short).join(","));
  for (const [key, letter] of entries(LISTS)) if (view[key].length) said.set(letter, view[key].join(","));
  if (view.pins.length) said.set("pin", view.pins.map(writtenPin).join(","));
  if (view.positions !== "normal") said.set("ex", view.positions);
  for (const [key, [letter]] of entries(CHOICES)) if (view[key] !== null && view[key] !== START[key]) said.set(letter, view[key]);
  if (view.relative) said.set("rel", "1");
  const values = said.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2A", "*");
  return values ? `#/x?${values}` : "#/x";
}

/** The way back: fromHash(routeOf(toHash(view)).values) equals the view. What is not understood stays as at the start. */
export function fromHash(values: URLSearchParams): View {
  const view: Record<string, unknown> = { ...START };
  for (const [key, letter] of entries(TEXTS)) if (values.get(letter)) view[key] = values.get(letter);
  for (const [key, [letter, least, most, whole]] of entries(NUMBERS)) {
    const number = values.get(letter) ? Number(values.get(letter)) : Number.NaN;
    if (number >= least && number <= most && (!whole || Number.isInteger(number))) view[key] = number;
  }
  view["tags"] = parts(values, "tag");
  view["gates"] = read(values.get("off") ?? "");
  view["solo"] = parts(values, "solo").map(long).filter((id) => id !== null && !id.includes("*"));
  for (const [key, letter] of entries(LISTS)) view[key] = parts(values, letter).map(Number).filter((n) => Number.isInteger(n) && n >= 0);
  view["pins"] = parts(values, "pin").flatMap(readPin);
  if (POSITIONS.test(values.get("ex") ?? "")) view["positions"] = values.get("ex");
  for (const [key, [letter, allowed]] of entries(CHOICES)) {
    const said = values.get(letter) ?? "";
    if ((allowed as readonly string[]).includes(said)) view[key] = said;
  }
  view["relative"] = values.get("rel") === "1";
  return Object.freeze(view as unknown as View);
}

/** {step: 9, source: 10, layers: [1, 2], strength: 0.5} -> "9>10@1+2:0.5" */
function writtenPin(pin: Pin): string {
  const layers = pin.layers === "*" ? "" : `@${pin.layers.join("+")}`;
  return `${pin.step}>${pin.source}${layers}${pin.strength === 1 ? "" : `:${pin.strength}`}`;
}

function readPin(text: string): Pin[] {
  const found = /^(\d+)>(\d+)(?:@(\d+(?:\+\d+)*))?(?::(0?\.\d+|[01]))?$/.exec(text);
  if (!found) return [];
  const [, step, source, layers, strength = "1"] = found;
  return [{ step: Number(step), source: Number(source), layers: layers ? layers.split("+").map(Number) : "*", strength: Number(strength) }];
}

function parts(values: URLSearchParams, letter: string): string[] {
  return (values.get(letter) ?? "").split(",").filter(Boolean);
}

function entries<T extends object>(table: T): [keyof T, T[keyof T]][] {
  return Object.entries(table) as [keyof T, T[keyof T]][];
}

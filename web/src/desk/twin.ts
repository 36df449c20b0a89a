/** The same in Python: what one writes there to get the trace that the page shows, and a stage of it. */

import { toServer } from "./gates";
import { numpyOf } from "./products";
import type { Stage } from "./stages";
import type { Matrix, Trace } from "./trace";
import type { Pin, View } from "./view";

/** trace = Translator.load("en-de").trace("twenty-one", gates={"cross.1.2": 0.0}) */
export function tracing(trace: Trace, view: View): string {
  const said: string[] = [quoted(trace.source.text)];
  if (view.target !== null) said.push(`target=${quoted(view.target)}`);
  if (view.prefix.length) said.push(`prefix=[${view.prefix.join(", ")}]`);
  const gates = Object.entries(toServer(view.gates, view.solo));
  if (gates.length) said.push(`gates={${gates.map(([pattern, value]) => `${quoted(pattern)}: ${decimal(value)}`).join(", ")}}`);
  if (gates.length && view.mode !== "zero") said.push(`gate_mode=${quoted(view.mode)}`);
  if (view.hidden.length) said.push(`mask_source=[${view.hidden.join(", ")}]`);
  if (view.pins.length) said.push(`pins=[${view.pins.map(pinning).join(", ")}]`);
  if (view.positions !== "normal") said.push(`positions=${quoted(view.positions)}`);
  if (view.temperature !== 1) said.push(`temperature=${decimal(view.temperature)}`);
  const [bundle, direction] = trace.model.id.split(":");
  const told = direction ? [`target=${quoted(trace.model.tgt_lang)}`, `source=${quoted(trace.model.src_lang)}`] : [];
  if (view.tags.length) told.push(`tags=[${view.tags.map(quoted).join(", ")}]`);
  const loaded = `Translator.load(${quoted(bundle!)})${told.length ? `.towards(${told.join(", ")})` : ""}`;
  const chosen = [view.beam !== null && `beam=${view.beam}`, view.penalty !== null && `length_penalty=${view.penalty}`].filter(Boolean);
  if (!chosen.length) return `trace = ${loaded}.trace(${said.join(", ")})`;
  said.push(`search=t.settings.search.changed(${chosen.join(", ")})`);
  return `t = ${loaded}\ntrace = t.trace(${said.join(", ")})`;
}

export function imports(view: View): string {
  return `from limelight import Translator${view.pins.length ? "\nfrom limelight.inspection.interventions import Pin" : ""}`;
}

function pinning({ step, source, layers, strength }: Pin): string {
  const which = layers === "*" ? "" : `, layers=(${layers.map((layer) => `${layer},`).join(" ")})`;
  return `Pin(step=${step}, source=${source}${which}${strength === 1 ? "" : `, strength=${strength}`})`;
}

/** trace["enc.0.scores"][2] */
export function lookup(stage: Stage, head: number): string {
  const whole = stage.python !== null && !/trace\["|softmax/.test(stage.python) ? stage.python : `trace["${stage.name}"]`;
  return stage.axes[0] === "H" ? `${whole}[${head}]` : whole;
}

/** A column that is drawn of a vocabulary. */
export interface Column {
  id: number;
  piece: string;
}

/** The numbers on show, with where they come from and, if they are made of other stages alone, how. `columns`: those on show, if not all. */
export function asNumpy(stage: Stage, matrix: Matrix, head: number, trace: Trace, view: View, columns: readonly Column[] | null = null): string {
  const name = stage.title.replaceAll(/\W+/g, "_").toLowerCase();
  const made = stage.python && /trace\["|softmax/.test(stage.python) ? `\n# made of: ${stage.python}` : "";
  const softmax = made.includes("softmax") ? "\n# softmax(x) = np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)" : "";
  const some = columns ? `[:, [${columns.map(({ id }) => id).join(", ")}]]\n# columns: ${columns.map(({ piece }) => quoted(piece)).join(", ")}` : "";
  const how = tracing(trace, view).replaceAll("\n", "\n# ");
  return `import numpy as np\n\n# ${how}\n# ${lookup(stage, head)}${some}${made}${softmax}\n${numpyOf(matrix, name)}\n`;
}

function quoted(text: string): string {
  return JSON.stringify(text); // a string of JSON is one of Python too
}

function decimal(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

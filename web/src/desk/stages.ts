/** Every stage of one translation, in the order in which the model makes them: name, formula, axes, one sentence, and where the code is.
 *
 * The names are those of the paper's letters and of `trace["enc.0.scores"]` in Python.
 */

import { lightOf } from "./gates";
import { START, type View } from "./view";

export interface Made {
  enc_layers: number;
  dec_layers: number;
  heads: number;
  norm: string; // "pre" or "post": before a sub-layer or after it
  positions: string; // "sinusoidal", "learned" or "rotary"
}

/** What a row or a column stands for: a source piece, a piece that the target reads, a piece that it predicts, a number, a piece of V. */
export type Axis = "source" | "read" | "predicted" | "dim" | "vocabulary";

export interface Stage {
  name: string;
  title: string;
  group: string;
  formula: string; // several are parted by " ; "
  axes: readonly string[]; // letters, as ["H", "S", "K"]
  rows: Axis;
  columns: Axis;
  says: string;
  file: string;
  symbol: string;
  python: string | null; // made from earlier stages, or null where weights take part
  causal: boolean;
}

type Part = Omit<Stage, "name" | "group" | "causal"> & { causal?: boolean };

const MODEL = "src/limelight/model/";

/** What is changed inside, as far as a stage is made differently by it. */
export type Changed = Pick<View, "gates" | "solo" | "mode" | "hidden" | "pins" | "temperature">;

/** stagesOf(model) -> text, pieces, src.ids, src.embed, ... enc.0.q, ... memory, tgt.ids, ... logits, probs, beam */
export function stagesOf(model: Made, changed: Changed = START): Stage[] {
  const stages: Stage[] = [];
  const add = (group: string, name: string, part: Part): void => {
    stages.push({ causal: false, ...part, name, group });
  };
  for (const [name, part] of opening(model, "source")) add("Source", name, part);
  for (let layer = 0; layer < model.enc_layers; layer++) {
    const x = layer ? `enc.${layer - 1}.out` : "enc.in";
    for (const [name, part] of attention(model, `enc.${layer}`, "enc", x, changed)) add(`Encoder ${layer}`, name, part);
    for (const [name, part] of feedForward(model, `enc.${layer}`, `enc.${layer}.add_norm`, "S", "source")) add(`Encoder ${layer}`, name, part);
  }
  add("Encoder out", "memory", finish(model, `enc.${model.enc_layers - 1}.out`, "source"));
  for (const [name, part] of opening(model, "target")) add("Target", name, part);
  for (let layer = 0; layer < model.dec_layers; layer++) {
    const at = `dec.${layer}`;
    const x = layer ? `dec.${layer - 1}.out` : "dec.in";
    for (const [name, part] of attention(model, `${at}.self`, "dec", x, changed)) add(`Decoder ${layer} · self`, name, part);
    for (const [name, part] of attention(model, `${at}.cross`, "cross", `${at}.self.add_norm`, changed)) add(`Decoder ${layer} · cross`, name, part);
    for (const [name, part] of feedForward(model, at, `${at}.cross.add_norm`, "T", "predicted")) add(`Decoder ${layer} · feed-forward`, name, part);
  }
  for (const [name, part] of ending(model)) add("Output", name, part);
  return stages;
}

function opening(model: Made, side: "source" | "target"): [string, Part][] {
  const [short, stack, axis, rows] = side === "source" ? (["src", "enc", "S", "source"] as const) : (["tgt", "dec", "T", "read"] as const);
  const rotary = model.positions === "rotary";
  const table = { axes: [axis, "D"], rows, columns: "dim" as const };
  const text: [string, Part][] = [
    ["text", { title: "text", formula: '"text"', axes: [], rows, columns: "dim", says: "The sentence as it was written.", file: "src/limelight/text/normalize.py", symbol: "normalize", python: "trace.source.text" }],
    ["pieces", { title: "pieces", formula: '"text" → "pieces"', axes: [axis], rows, columns: "dim", says: "The sentence is cut into pieces that the model knows; ▁ marks the beginning of a word.", file: "src/limelight/text/pieces/tokenizer.py", symbol: "Tokenizer", python: "[token.piece for token in trace.source.tokens]" }],
  ];
  return [
    ...(side === "source" ? text : []),
    [`${short}.ids`, { title: "ids", formula: '"piece" → id ∈ "{" 0, …, V - 1 "}"', axes: [axis], rows, columns: "dim", says: side === "source" ? "Each piece is a number: its row in the table of embeddings." : "What the decoder reads: the start mark, then each piece that it has said itself.", file: "src/limelight/text/pieces/tokenizer.py", symbol: "Tokenizer.encode", python: null }],
    [`${short}.embed`, { ...table, title: "embed", formula: "e_i = E[id_i] * sqrt{d_model}", says: "A learned vector for each piece, times √d_model where the model scales its embeddings (3.4).", file: `${MODEL}embedding.py`, symbol: "Embedding", python: null }],
    [`pos.${stack}`, { ...table, title: "positions", ...positions(model.positions), file: `${MODEL}positions.py`, symbol: "Positions", python: null }],
    [`${stack}.in`, { ...table, title: "in", formula: rotary ? "x_i = e_i" : "x_i = e_i + PE_i", says: rotary ? "Nothing is added: rotary positions turn q and k later." : "Piece and place added: from here on a vector says both what and where.", file: `${MODEL}embedding.py`, symbol: "Embedding", python: `trace["${short}.embed"] + trace["pos.${stack}"]` }],
  ];
}

function positions(kind: string): { formula: string; says: string } {
  if (kind === "rotary") return { formula: "PE = 0", says: "Rotary positions add nothing here: they turn q and k in every self-attention instead." };
  if (kind === "learned") return { formula: 'PE_pos = W_pos', says: "Each place has a vector of its own that was learned like a word." };
  return {
    formula: "PE(pos, 2 i) = sin ( frac{pos}{10000^{2 i / d_model}} ) ; PE(pos, 2 i + 1) = cos ( … )",
    says: "Each place has a pattern of waves, from fast to slow; attention alone would not know the order of words.",
  };
}

/** Ten stages of an attention. `x` is the stage that its queries are made from. */
function attention(model: Made, at: string, kind: "enc" | "dec" | "cross", x: string, changed: Changed): [string, Part][] {
  const queries = kind === "enc" ? "S" : "T";
  const keys = kind === "dec" ? "T" : "S";
  const rows: Axis = kind === "enc" ? "source" : "predicted";
  const columns: Axis = kind === "dec" ? "read" : "source";
  const causal = kind === "dec";
  const pre = model.norm === "pre";
  const X = pre ? "Norm(X)" : "X";
  const from = kind === "cross" ? "M" : X;
  const turned = model.positions === "rotary" && kind !== "cross" ? (inner: string): string => `R(${inner})` : (inner: string): string => inner;
  const t = (stage: string): string => `trace["${at}.${stage}"]`;
  const python = attentionInPython(model, at, kind, changed);
  const square = { axes: ["H", queries, keys], rows, columns, file: `${MODEL}attention.py`, symbol: "attend_in_stages", causal };
  const projected = { file: `${MODEL}multi_head.py`, symbol: kind === "cross" ? "CrossAttention" : "SelfAttention", python: null, columns: "dim" as const };
  const looked = kind === "cross" ? "each source piece" : "each piece";
  return [
    [`${at}.q`, { ...projected, title: "q", formula: `Q = ${turned(`${X} W^Q`)}`, axes: ["H", queries, "K"], rows, says: "Queries: what each piece is looking for, one small vector per head." }],
    [`${at}.k`, { ...projected, title: "k", formula: `K = ${turned(`${from} W^K`)}`, axes: ["H", keys, "K"], rows: columns, says: `Keys: what ${looked} offers to be found by.` }],
    [`${at}.v`, { ...projected, title: "v", formula: `V = ${from} W^V`, axes: ["H", keys, "K"], rows: columns, says: `Values: what ${looked} hands over when it is looked at.` }],
    [`${at}.scores`, { ...square, title: "scores", formula: "Q K^T", says: "Each query times each key: how well they fit. Click a cell for its products.", python: `${t("q")} @ ${t("k")}.transpose(0, 2, 1)` }],
    [`${at}.scaled`, { ...square, title: "scaled", formula: "frac{Q K^T}{sqrt{d_k}}", says: "Divided by √d_k, or long vectors would make the softmax so sharp that nothing could be learned (3.2.1).", python: python.scaled }],
    [`${at}.masked`, { ...square, title: "masked", formula: 'frac{Q K^T}{sqrt{d_k}} + mask ; mask ∈ "{" 0, -∞ "}"', says: causal ? "What comes later is set to −∞: a piece may not look at what it is yet to say." : "Hidden source pieces are set to −∞. Where nothing is hidden, nothing changes.", python: python.masked }],
    [`${at}.attn`, { ...square, title: "attn", formula: 'A = softmax ( frac{Q K^T}{sqrt{d_k}} + mask )', says: "Each row becomes shares that sum to 1: this is the spotlight.", python: python.attn }],
    [`${at}.heads`, { title: "heads", formula: "head_h = g_h * A_h V_h", axes: ["H", queries, "K"], rows, columns: "dim", says: "What each head brings back: the values, mixed by the weights, times its dimmer g.", file: `${MODEL}multi_head.py`, symbol: "MultiHeadAttention.light", python: python.heads }],
    [`${at}.concat`, { title: "concat", formula: 'Concat(head_1, …, head_H) W^O', axes: [queries, "D"], rows, columns: "dim", says: "All heads side by side, mixed by W^O into one vector per piece.", file: `${MODEL}multi_head.py`, symbol: "MultiHeadAttention.light", python: null }],
    [`${at}.add_norm`, { title: "add & norm", formula: pre ? "X + Concat(…) W^O" : "Norm(X + Concat(…) W^O)", axes: [queries, "D"], rows, columns: "dim", says: pre ? "Added to the stream. This model normalizes before each sub-layer, so nothing is normalized here." : "Added to the stream and normalized: mean 0, spread 1 in each vector (3.1).", file: `${MODEL}layers.py`, symbol: "Block.connect", python: pre ? `trace["${x}"] + ${t("concat")}` : null }],
  ];
}

/** The lines of Python by which an attention makes one stage of the others, with all that is changed in it. */
function attentionInPython(model: Made, at: string, kind: "enc" | "dec" | "cross", changed: Changed): Record<"scaled" | "masked" | "attn" | "heads", string> {
  const t = (stage: string): string => `trace["${at}.${stage}"]`;
  const layer = Number(at.split(".")[1]);
  const hidden = kind === "dec" ? [] : changed.hidden;
  const pinned = kind === "cross" && changed.pins.some(({ layers }) => layers === "*" || layers.includes(layer));
  const gates = Array.from({ length: model.heads }, (_, head) => lightOf(changed.gates, changed.solo, `${kind}.${layer}.${head}`));
  const gate = gates.some((each) => each !== 1) ? `np.array([${gates.join(", ")}])[:, None, None]` : null;
  const mixed = `${t("attn")} @ ${t("v")}`;
  const seen = `np.isfinite(${t("masked")})`;
  const mean = `${seen} / ${seen}.sum(-1, keepdims=True) @ ${t("v")}`;
  const visible = kind === "dec" ? `np.tri(${t("scaled")}.shape[-1], dtype=bool)` : `~np.isin(np.arange(${t("scaled")}.shape[-1]), [${hidden.join(", ")}])`;
  return {
    scaled: `${t("scores")} / np.sqrt(${t("q")}.shape[-1])${changed.temperature === 1 ? "" : ` / ${changed.temperature}`}`,
    masked: kind === "dec" || hidden.length ? `np.where(${visible}, ${t("scaled")}, -np.inf)` : t("scaled"),
    attn: `softmax(${t("masked")})${pinned ? "  # but for the rows that are pinned" : ""}`,
    heads: gate === null ? mixed : changed.mode === "mean" ? `${gate} * (${mixed}) + (1 - ${gate}) * (${mean})` : `${gate} * (${mixed})`,
  };
}

function feedForward(model: Made, at: string, x: string, axis: "S" | "T", rows: Axis): [string, Part][] {
  const pre = model.norm === "pre";
  const shape = { axes: [axis, "D"], rows, columns: "dim" as const };
  return [
    [`${at}.ffn`, { ...shape, title: "ffn", formula: `FFN(y) = f(y W_1 + b_1) W_2 + b_2 ; y = ${pre ? "Norm(X)" : "X"}`, says: "Each piece by itself: widened to d_ff, bent by f, and brought back (3.3).", file: `${MODEL}feedforward.py`, symbol: "FeedForward", python: null }],
    [`${at}.out`, { ...shape, title: "out", formula: pre ? "X + FFN(Norm(X))" : "Norm(X + FFN(X))", says: "What this layer hands to the next one.", file: `${MODEL}layers.py`, symbol: "Block.connect", python: pre ? `trace["${x}"] + trace["${at}.ffn"]` : null }],
  ];
}

function finish(model: Made, last: string, rows: "source" | "predicted"): Part {
  const pre = model.norm === "pre";
  const encoder = rows === "source";
  return {
    title: encoder ? "memory" : "decoded",
    formula: pre ? (encoder ? "M = Norm(X)" : "Y = Norm(X)") : encoder ? "M = X" : "Y = X",
    axes: [encoder ? "S" : "T", "D"],
    rows,
    columns: "dim",
    says: encoder ? "The source as the decoder sees it: every cross-attention looks here." : "What the decoder made of each place, ready to be compared with every piece it knows.",
    file: `${MODEL}${encoder ? "encoder" : "decoder"}.py`,
    symbol: encoder ? "Encoder" : "Decoder",
    python: pre ? null : `trace["${last}"]`,
  };
}

function ending(model: Made): [string, Part][] {
  const wide = { axes: ["T", "V"], rows: "predicted" as const, columns: "vocabulary" as const };
  return [
    ["decoded", finish(model, `dec.${model.dec_layers - 1}.out`, "predicted")],
    ["logits", { ...wide, title: "logits", formula: "Y E^T", says: "Each place times the vector of each piece: how well it would fit here. The pieces that fit best are drawn.", file: `${MODEL}transformer.py`, symbol: "Transformer.logits", python: null }],
    ["probs", { ...wide, title: "probs", formula: "P = softmax(Y E^T)", says: "Shares that sum to 1 over all pieces: the probability of each to come next.", file: `${MODEL}transformer.py`, symbol: "Transformer.step", python: 'softmax(trace["logits"])' }],
    ["beam", { title: "beam", formula: '"score" = frac{log P(y | x)}{lp(n)}', axes: [], rows: "predicted", columns: "vocabulary", says: "The search keeps the most probable beginnings side by side; the beam tree above shows them all.", file: "src/limelight/decoding/beam.py", symbol: "beam", python: "trace.beam" }],
  ];
}

/** The other name of a stage: "cross.2.attn" is "dec.2.cross.attn", and "dec.2.attn" is "dec.2.self.attn". */
export function stageNamed(name: string): string {
  const parts = /^(cross|dec)\.(\d+)\.(q|k|v|scores|scaled|masked|attn|heads|concat|add_norm)$/.exec(name);
  if (!parts) return name;
  return `dec.${parts[2]}.${parts[1] === "cross" ? "cross" : "self"}.${parts[3]}`;
}

/** Which attention a stage belongs to, or null: "dec.2.cross.attn" -> { at: "dec.2.cross", kind: "cross", layer: 2, title: "attn" } */
export function attentionOf(name: string): { at: string; kind: "enc" | "dec" | "cross"; layer: number; title: string } | null {
  const parts = /^((enc|dec)\.(\d+)(?:\.(self|cross))?)\.(q|k|v|scores|scaled|masked|attn|heads|concat|add_norm)$/.exec(name);
  if (!parts || (parts[2] === "dec" && !parts[4])) return null;
  const kind = parts[2] === "enc" ? "enc" : parts[4] === "cross" ? "cross" : "dec";
  return { at: parts[1]!, kind, layer: Number(parts[3]), title: parts[5]! };
}

/** What a cell of a stage is made of, by the names of those stages; null where weights of the model take part. */
export type Recipe =
  | { do: "weigh"; q: string; k: string; masked: string } // a dot product, scaled, masked, against its row
  | { do: "mix"; attn: string; v: string } // a row of weights times a column of values
  | { do: "add"; a: string; b: string };

export function recipeOf(stage: Stage): Recipe | null {
  const attention = attentionOf(stage.name);
  if (attention && /^(scores|scaled|masked|attn)$/.test(attention.title)) return { do: "weigh", q: `${attention.at}.q`, k: `${attention.at}.k`, masked: `${attention.at}.masked` };
  if (attention?.title === "heads") return { do: "mix", attn: `${attention.at}.attn`, v: `${attention.at}.v` };
  const sum = /^trace\["([^"]+)"\] \+ trace\["([^"]+)"\]$/.exec(stage.python ?? "");
  return sum ? { do: "add", a: sum[1]!, b: sum[2]! } : null;
}

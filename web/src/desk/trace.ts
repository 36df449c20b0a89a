/** A trace as the server sends it (POST /api/v1/trace), and how its packed numbers are read. */

export type Kind = "enc" | "dec" | "cross";

export const KINDS: readonly Kind[] = ["enc", "dec", "cross"];
export const KIND_NAMES: Readonly<Record<Kind, string>> = { enc: "Encoder", dec: "Decoder", cross: "Cross" };

/** An array on the wire, row-major. "u8": value = byte * scale. "json": plain numbers. */
export interface Packed {
  shape: number[];
  enc: "u8" | "f16" | "f32" | "json";
  data: string | number[];
  scale?: number;
  causal?: boolean;
}

export interface Tensor {
  shape: number[];
  data: Float32Array;
}

export interface ModelFacts {
  id: string;
  step: number | null;
  sha: string;
  enc_layers: number;
  dec_layers: number;
  heads: number;
  d_model: number;
  d_ff: number;
  norm: string;
  positions: string;
  src_lang: string;
  tgt_lang: string;
  vocab: number;
}

export interface SourceToken {
  id: number;
  piece: string;
  start: number;
  end: number;
  word: number | null; // null: </s>
}

export type Candidate = [id: number, piece: string, logp: number];

export interface TargetToken {
  id: number;
  piece: string;
  word: number | null;
  logp: number;
  entropy: number; // bits
  rank: number; // 0: the most likely
  margin: number; // log-probability of the first minus that of the second
  topk: Candidate[];
}

export interface BeamNode {
  n: number;
  p: number; // parent, -1 for the root
  t: number; // step
  id: number;
  piece: string;
  lp: number;
  cum: number;
  kept: number;
  done: number;
}

export interface HeadStats {
  id: string;
  entropy: number;
  diagonal: number;
  end_mass: number;
  gate: number;
  importance: number | null;
}

export type Link = [source: number, target: number, weight: number];

/** What the changes did to the translation without them. `deltas`: of each of its pieces, in log-probability. */
export interface Baseline {
  trace_id?: string;
  text: string;
  logp?: number;
  delta_logp: number;
  deltas?: number[];
  tokens?: string[];
  chrf?: number;
}

/** The bars of a verdict. Its pieces are those of the translation without the changes; where they are not told, numbers stand there. */
export function barsOf({ deltas = [], tokens = [] }: Baseline): { delta: number; piece: string }[] {
  return deltas.map((delta, at) => ({ delta, piece: tokens.length === deltas.length ? tokens[at]! : String(at) }));
}

/** Row t predicts target.tokens[t] and has read target.inputs[0..t]; the columns of "dec" are the inputs. */
export interface Trace {
  v: number;
  trace_id: string;
  verified: boolean;
  model: ModelFacts;
  source: { text: string; tokens: SourceToken[]; pad?: number; masked?: number[] };
  target: { text: string; finish: string; logp: number; score: number; inputs: string[]; tokens: TargetToken[] };
  nbest?: { text: string; logp: number; score: number; node: number | null }[];
  beam?: { size: number; nodes: BeamNode[] } | null;
  attn: Record<Kind, Packed>;
  align?: { method: string; links: Link[]; words: Link[] };
  stats?: {
    heads: HeadStats[];
    coverage: number[];
    coverage_deviation: number;
    absent_in: number;
    absent_out: number;
  };
  baseline?: Baseline | null;
  translation?: { text: string; warnings: { code: string; message: string }[] }; // of the page, where that is another one
  stages?: Record<string, Packed>;
  timing_ms?: Record<string, number>;
}

export class Matrix {
  constructor(
    readonly rows: number,
    readonly columns: number,
    readonly data: Float32Array,
  ) {}

  at(row: number, column: number): number {
    return this.data[row * this.columns + column]!;
  }
}

/** headId("cross", 5, 2) -> "cross.5.2" */
export function headId(kind: Kind, layer: number, head: number): string {
  return `${kind}.${layer}.${head}`;
}

/** partsOf("cross.5.2") -> {kind: "cross", layer: 5, head: 2} */
export function partsOf(id: string): { kind: Kind; layer: number; head: number } {
  const [kind, layer, head] = id.split(".");
  return { kind: kind as Kind, layer: Number(layer), head: Number(head) };
}

/** As people say it: headName("cross.5.2") -> "cross 5·2" */
export function headName(id: string): string {
  return id.replace(".", " ").replace(".", "·");
}

export function layersOf(model: ModelFacts, kind: Kind): number {
  return kind === "enc" ? model.enc_layers : model.dec_layers;
}

/** All heads of a kind, layer by layer. */
export function headsOf(model: ModelFacts, kind: Kind): string[] {
  const ids: string[] = [];
  for (let layer = 0; layer < layersOf(model, kind); layer++)
    for (let head = 0; head < model.heads; head++) ids.push(headId(kind, layer, head));
  return ids;
}

/** The translation that somebody gave, where none was searched; else null. */
export function givenTarget(trace: Trace): string | null {
  return trace.beam === null ? trace.target.text : null;
}

const bytes = new WeakMap<Packed, Uint8Array>();

function bytesOf(packed: Packed): Uint8Array {
  let made = bytes.get(packed);
  if (!made) {
    const text = atob(packed.data as string);
    made = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) made[i] = text.charCodeAt(i);
    bytes.set(packed, made);
  }
  return made;
}

/** All values; or `count` of them from number `from` on. */
export function decode(packed: Packed, from = 0, count = sizeOf(packed.shape) - from): Float32Array {
  const values = new Float32Array(count);
  if (typeof packed.data !== "string") {
    const flat = packed.data.flat(Infinity) as (number | null)[];
    for (let i = 0; i < count; i++) values[i] = flat[from + i] ?? -Infinity; // JSON has no -inf
    return values;
  }
  const raw = bytesOf(packed);
  if (packed.enc === "u8") {
    const scale = packed.scale ?? 1 / 255;
    for (let i = 0; i < count; i++) values[i] = raw[from + i]! * scale;
  } else {
    const view = new DataView(raw.buffer);
    if (packed.enc === "f16") for (let i = 0; i < count; i++) values[i] = half(view.getUint16(2 * (from + i), true));
    else for (let i = 0; i < count; i++) values[i] = view.getFloat32(4 * (from + i), true);
  }
  return values;
}

export function tensorOf(packed: Packed): Tensor {
  return { shape: packed.shape, data: decode(packed) };
}

/** One head of a tensor [H, rows, columns], or a tensor [rows, columns] as it is. */
export function matrixOf(tensor: Tensor, head = 0): Matrix {
  const [columns, rows] = [tensor.shape.at(-1) ?? 1, tensor.shape.at(-2) ?? 1];
  const begin = tensor.shape.length > 2 ? head * rows * columns : 0;
  return new Matrix(rows, columns, tensor.data.subarray(begin, begin + rows * columns));
}

/** What a head looked at: rows are queries, columns are keys, each row sums to 1. */
export function weights(trace: Trace, kind: Kind, layer: number, head: number): Matrix {
  const packed = trace.attn[kind];
  const [layers, heads, rows, columns] = packed.shape as [number, number, number, number];
  if (!(layer >= 0 && layer < layers && head >= 0 && head < heads)) throw new RangeError(`no head ${headId(kind, layer, head)}`);
  return new Matrix(rows, columns, decode(packed, (layer * heads + head) * rows * columns, rows * columns));
}

/** May this row not look at this column? From the rules, never from the weights: a weight may be 0 by itself. */
export function masked(trace: Trace, kind: Kind, row: number, column: number): boolean {
  if (kind === "dec") return trace.attn.dec.causal !== false && column > row;
  return trace.source.masked?.includes(column) ?? false;
}

function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** IEEE 754 binary16; browsers know it as Float16Array only since 2025. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? Number.NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

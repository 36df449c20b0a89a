/** A model in a browser: two ONNX graphs, the encoder once for a sentence, the decoder once for each piece, several rows side by side. */

import * as ort from "onnxruntime-web/wasm";

import type { Config } from "./config";

export interface GraphFiles {
  encoder: Uint8Array;
  decoder: Uint8Array;
  shared?: { name: string; data: Uint8Array };
}

export interface Step {
  /** (rows, vocabulary); the search may change it. */
  logProbs: Float32Array;
  vocabulary: number;
  /** Of each decoder block, (rows, heads, source). */
  looks: Float32Array[];
}

/** The runtime of graphs: one thread, which needs no headers of a server. */
export function setRuntime(wasm: ArrayBuffer): void {
  ort.env.wasm.wasmBinary = wasm;
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
}

export class Model {
  private readonly gates: ort.Tensor;

  private constructor(
    private readonly encoder: ort.InferenceSession,
    private readonly decoder: ort.InferenceSession,
    readonly config: Config,
  ) {
    this.gates = new ort.Tensor("float32", new Float32Array(config.layers * config.heads).fill(1), [config.layers, config.heads]);
  }

  static async load(files: GraphFiles, config: Config): Promise<Model> {
    const options: ort.InferenceSession.SessionOptions = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };
    if (files.shared) options.externalData = [{ path: files.shared.name, data: files.shared.data }];
    const encoder = await ort.InferenceSession.create(files.encoder, options);
    return new Model(encoder, await ort.InferenceSession.create(files.decoder, options), config);
  }

  /** How bright each head of the cross-attentions is, 0 to 1, layer by layer. */
  dim(gates: readonly number[]): void {
    (this.gates.data as Float32Array).set(gates);
  }

  async start(source: readonly number[]): Promise<State> {
    const ids = new ort.Tensor("int64", BigInt64Array.from(source, BigInt), [1, source.length]);
    const given = await this.encoder.run({ source: ids });
    return new State(this.decoder, given, this.gates, this.config);
  }

  async release(): Promise<void> {
    await this.encoder.release();
    await this.decoder.release();
  }
}

/** What is remembered of a sentence between steps, of each row. It begins with one. */
export class State {
  private memory: Record<string, ort.Tensor>;
  private past: Record<string, ort.Tensor> = {};
  private rows = 1;

  constructor(
    private readonly decoder: ort.InferenceSession,
    given: ort.InferenceSession.OnnxValueMapType,
    private readonly gates: ort.Tensor,
    private readonly config: Config,
  ) {
    this.memory = { ...given } as Record<string, ort.Tensor>;
    const { layers, kv_heads, d_head } = config;
    for (let layer = 0; layer < layers; layer++)
      for (const letter of "kv") this.past[`past.${layer}.${letter}`] = new ort.Tensor("float32", new Float32Array(0), [1, kv_heads, 0, d_head]);
  }

  async step(tokens: readonly number[]): Promise<Step> {
    const token = new ort.Tensor("int64", BigInt64Array.from(tokens, BigInt), [tokens.length]);
    const found = await this.decoder.run({ token, ...this.memory, ...this.past, gates: this.gates });
    for (const [name, value] of Object.entries(found))
      if (name.startsWith("present.")) this.past[name.replace("present.", "past.")] = value as ort.Tensor;
    const logProbs = found["log_probs"]!;
    const looks = Array.from({ length: this.config.layers }, (_, layer) => found[`look.${layer}`]!.data as Float32Array);
    return { logProbs: logProbs.data as Float32Array, vocabulary: logProbs.dims[1]!, looks };
  }

  /** Row i goes on from what row parents[i] was. */
  reorder(parents: readonly number[]): void {
    const move = (tensor: ort.Tensor): ort.Tensor => {
      const data = tensor.data as Float32Array | Uint8Array;
      const size = data.length / tensor.dims[0]!;
      const moved = data instanceof Float32Array ? new Float32Array(parents.length * size) : new Uint8Array(parents.length * size);
      parents.forEach((from, to) => moved.set(data.subarray(from * size, (from + 1) * size), to * size));
      return new ort.Tensor(tensor.type as "float32", moved as Float32Array, [parents.length, ...tensor.dims.slice(1)]);
    };
    const all = (some: Record<string, ort.Tensor>): Record<string, ort.Tensor> =>
      Object.fromEntries(Object.entries(some).map(([name, tensor]) => [name, move(tensor)]));
    this.past = all(this.past);
    if (parents.length !== this.rows) this.memory = all(this.memory); // else rows of one sentence see the same
    this.rows = parents.length;
  }
}

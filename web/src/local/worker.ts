/** The worker: it is given the bytes of a model, and translates, so that the page never waits. It fetches nothing. */

import type { Config } from "./config";
import { Model, setRuntime } from "./model";
import { Pieces } from "./pieces";
import { Translating, type Asked, type Result } from "./translating";

export interface LoadMessage {
  kind: "load";
  wasm: ArrayBuffer;
  config: Config;
  files: Record<string, Uint8Array>;
  graphs: string[];
}

export type Question =
  | LoadMessage
  | { kind: "translate"; text: string; asked: Asked }
  | { kind: "ids"; texts: string[] }
  | { kind: "dim"; gates: number[] }
  | { kind: "gone"; of: number };

export type Answer = { number: number } & ({ done: unknown } | { part: string } | { error: string; name: string });

let translating: Translating | null = null;
const gone = new Set<number>();
let last: Promise<unknown> = Promise.resolve();

/** Lets messages in: a runtime of one thread never waits for anything, so that a translation would else be over before "gone" is heard. */
const { port1, port2 } = new MessageChannel();
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    port1.onmessage = () => resolve();
    port2.postMessage(null);
  });
}

async function answer(number: number, question: Question): Promise<unknown> {
  if (question.kind === "load") {
    setRuntime(question.wasm);
    const { config, files, graphs } = question;
    const find = (start: string): Uint8Array | undefined => files[graphs.find((name) => name.startsWith(start)) ?? ""];
    const shared = graphs.find((name) => name.startsWith("shared."));
    const model = await Model.load(
      { encoder: find("encoder.")!, decoder: find("decoder.")!, ...(shared ? { shared: { name: shared, data: files[shared]! } } : {}) },
      config,
    );
    const read = (name: string): Pieces => Pieces.read(files[name]!);
    const source = read(config.pieces.source);
    translating = new Translating(model, config, { source, target: config.pieces.target === config.pieces.source ? source : read(config.pieces.target) });
    return null;
  }
  if (!translating) throw new Error("no model is loaded");
  if (question.kind === "ids") return question.texts.map((text) => translating!.ids(text));
  if (question.kind === "dim") return translating.dim(question.gates);
  if (question.kind === "translate") {
    const isGone = (): Promise<boolean> => breathe().then(() => gone.has(number));
    if (await isGone()) throw new DOMException("nobody waits for this translation any more", "AbortError");
    const told = (part: string): void => postMessage({ number, part } satisfies Answer);
    const result: Result = await translating.translate(question.text, question.asked, isGone, told);
    return result;
  }
  return null;
}

self.onmessage = (event: MessageEvent<{ number: number } & Question>): void => {
  const { number } = event.data;
  if (event.data.kind === "gone") {
    gone.add(event.data.of);
    return;
  }
  last = last
    .then(() => answer(number, event.data))
    .then((done) => postMessage({ number, done } satisfies Answer))
    .catch((error: Error) => postMessage({ number, error: error.message ?? String(error), name: error.name ?? "Error" } satisfies Answer))
    .finally(() => gone.delete(number));
};

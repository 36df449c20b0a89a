/** `Translator` has the shape of the browsers' own: availability, create, translate, translateStreaming, destroy. Text stays in this browser. */

import { base, plain, type Config, type FileFacts, type Listed, type Models } from "./config";
import { address, isSingleFile, load, readModels } from "./files";
import type { Asked, Result } from "./translating";
import type { Answer, Question } from "./worker";

export type Availability = "unavailable" | "downloadable" | "available";

export interface Choosing {
  sourceLanguage: string;
  targetLanguage: string;
  /** One of several models, by its id. */
  model?: string;
}

export interface CreateOptions extends Choosing {
  /** Is told of events "downloadprogress" with `loaded` from 0 to 1. */
  monitor?: (target: EventTarget) => void;
  signal?: AbortSignal;
  /** Other numbers than its first. */
  numbers?: string;
}

export class DownloadProgress extends Event {
  readonly total = 1;
  constructor(readonly loaded: number) {
    super("downloadprogress");
  }
}

type Waiting = { resolve: (done: never) => void; reject: (error: Error) => void; told?: ((part: string) => void) | undefined };

export class Translator {
  private number = 0;
  private readonly waiting = new Map<number, Waiting>();
  private ended: Error | null = null;

  private constructor(
    private readonly worker: Worker,
    readonly sourceLanguage: string,
    readonly targetLanguage: string,
    readonly listed: Listed,
    readonly config: Config,
  ) {
    worker.onmessage = (event: MessageEvent<Answer>) => this.hear(event.data);
    worker.onerror = (event) => this.fail(new Error(event.message || "the worker of the page failed"));
  }

  static async availability(options: Choosing): Promise<Availability> {
    const models = await readModels();
    const found = choose(models, options);
    if (!found) return "unavailable";
    if (isSingleFile()) return "available";
    const needed = wanted(models, found.listed, found.listed.numbers[0]!);
    const there = "caches" in globalThis ? await Promise.all(needed.map(({ name, facts }) => caches.match(address(name, facts)).catch(() => undefined))) : [];
    return there.length && there.every(Boolean) ? "available" : "downloadable";
  }

  static async create(options: CreateOptions): Promise<Translator> {
    const { signal } = options;
    signal?.throwIfAborted();
    const models = await readModels();
    const found = choose(models, options);
    if (!found) {
      const there = models.models.flatMap((each) => each.directions.map((pair) => pair.join("-")));
      throw new DOMException(`no model here translates ${options.sourceLanguage} to ${options.targetLanguage}; there are ${there.join(", ")}`, "NotSupportedError");
    }
    const { listed, direction } = found;
    const numbers = options.numbers ?? listed.numbers[0]!;
    if (!listed.graphs[numbers]) throw new DOMException(`${listed.id} has no ${numbers}, but ${listed.numbers.join(", ")}`, "NotSupportedError");
    const target = new EventTarget();
    options.monitor?.(target);
    const asked = wanted(models, listed, numbers);
    const total = asked.reduce((sum, { facts }) => sum + facts.bytes, 0);
    const loaded = asked.map(() => 0);
    target.dispatchEvent(new DownloadProgress(0));
    const bytes = await Promise.all(
      asked.map(({ name, facts }, at) =>
        load(name, facts, (some) => {
          loaded[at] = some;
          target.dispatchEvent(new DownloadProgress(Math.min(1, loaded.reduce((a, b) => a + b, 0) / total)));
        }, signal),
      ),
    );
    signal?.throwIfAborted();
    const files = Object.fromEntries(asked.map(({ name }, at) => [name.split("/").pop()!, bytes[at]!]));
    const config = JSON.parse(new TextDecoder().decode(files["config.json"])) as Config;
    const script = URL.createObjectURL(new Blob([files["worker.js"]!], { type: "text/javascript" })); // the bytes that were verified
    const made = new Translator(new Worker(script), ...direction, listed, config);
    const wasm = files["ort.wasm"]!.buffer;
    delete files["ort.wasm"];
    delete files["worker.js"];
    const end = (): void => made.destroy(signal?.reason instanceof Error ? signal.reason : undefined);
    signal?.addEventListener("abort", end, { once: true });
    try {
      await made.ask({ kind: "load", wasm, config, files, graphs: listed.graphs[numbers] }, undefined, [wasm]);
    } catch (error) {
      made.destroy();
      throw error;
    } finally {
      signal?.removeEventListener("abort", end);
      URL.revokeObjectURL(script);
    }
    target.dispatchEvent(new DownloadProgress(1));
    return made;
  }

  async translate(text: string, options: { signal?: AbortSignal } = {}): Promise<string> {
    return (await this.explain(text, {}, options.signal)).text;
  }

  /** Parts of the translation, sentence by sentence. */
  translateStreaming(text: string, { signal }: { signal?: AbortSignal } = {}): ReadableStream<string> {
    const own = new AbortController();
    const follow = (): void => own.abort(signal!.reason);
    if (signal?.aborted) follow();
    signal?.addEventListener("abort", follow, { once: true });
    let open = true; // else nobody reads any more, and a part would be an error
    return new ReadableStream({
      start: (controller) => {
        void this.explain(text, {}, own.signal, (part) => open && part && controller.enqueue(part))
          .then(
            () => open && controller.close(),
            (error: unknown) => open && controller.error(error),
          )
          .finally(() => signal?.removeEventListener("abort", follow));
      },
      cancel: (reason) => {
        open = false;
        own.abort(reason);
      },
    });
  }

  /** The translation with its alternatives, confidences, warnings and, if asked for, attention. */
  explain(text: string, asked: Partial<Asked> = {}, signal?: AbortSignal, told?: (part: string) => void): Promise<Result> {
    const whole: Asked = { source: this.sourceLanguage, target: this.targetLanguage, ...asked };
    return this.ask<Result>({ kind: "translate", text, asked: whole }, signal, [], told);
  }

  ids(texts: string[]): Promise<number[][]> {
    return this.ask({ kind: "ids", texts });
  }

  /** Heads of the cross-attentions from 0 (dark) to 1 (as trained), layer by layer. */
  dim(gates: number[]): Promise<void> {
    return this.ask({ kind: "dim", gates });
  }

  destroy(why: Error = new DOMException("the translator was destroyed", "AbortError")): void {
    this.fail(why);
    this.worker.terminate();
  }

  private ask<T>(question: Question, signal?: AbortSignal, moved: Transferable[] = [], told?: (part: string) => void): Promise<T> {
    if (this.ended) return Promise.reject(this.ended);
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const number = ++this.number;
    return new Promise<T>((resolve, reject) => {
      const leave = (): void => {
        this.worker.postMessage({ number: ++this.number, kind: "gone", of: number });
        this.waiting.delete(number);
        reject(signal!.reason as Error);
      };
      const settle = <A>(end: (some: A) => void) => (some: A): void => {
        signal?.removeEventListener("abort", leave);
        end(some);
      };
      this.waiting.set(number, { resolve: settle(resolve as (done: never) => void), reject: settle(reject), told });
      signal?.addEventListener("abort", leave, { once: true });
      this.worker.postMessage({ number, ...question }, moved);
    });
  }

  private hear(answer: Answer): void {
    const waiting = this.waiting.get(answer.number);
    if (!waiting) return;
    if ("part" in answer) {
      waiting.told?.(answer.part);
      return;
    }
    this.waiting.delete(answer.number);
    if ("error" in answer) waiting.reject(answer.name === "AbortError" ? new DOMException(answer.error, answer.name) : new Error(answer.error));
    else waiting.resolve(answer.done as never);
  }

  private fail(why: Error): void {
    this.ended = why;
    for (const { reject } of this.waiting.values()) reject(why);
    this.waiting.clear();
  }
}

/** The files of a model in these numbers, and what every model needs. */
function wanted(models: Models, listed: Listed, numbers: string): { name: string; facts: FileFacts }[] {
  const own = ["config.json", ...listed.pieces, ...listed.graphs[numbers]!];
  return [
    ...Object.entries(models.shell).map(([name, facts]) => ({ name, facts })),
    ...own.map((name) => ({ name: `models/${listed.id}/${name}`, facts: listed.files[name]! })),
  ];
}

/** The model that has the very languages; else one of another region or script (pt for pt-BR). */
export function choose(models: Models, options: Choosing): { listed: Listed; direction: [string, string] } | undefined {
  for (const same of [plain, base])
    for (const listed of models.models) {
      if (options.model !== undefined && listed.id !== options.model) continue;
      const direction = listed.directions.find(([from, to]) => same(from) === same(options.sourceLanguage) && same(to) === same(options.targetLanguage));
      if (direction) return { listed, direction };
    }
  return undefined;
}

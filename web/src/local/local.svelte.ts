/** The state of the page that translates by itself: which model is there, what is written, what was found. */

import type { Listed } from "./config";
import { isSingleFile, readModels } from "./files";
import { Translator } from "./translator";
import type { Choice, Result } from "./translating";

export interface Way {
  id: string;
  model: Listed;
  source: string;
  target: string;
}

const PAUSE = 250; // ms after the last key
export const LONGEST = 100_000; // letters of a text

/** The text that an address brings: index.html#twenty-one. */
export function textOf(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1)).slice(0, LONGEST);
  } catch {
    return ""; // no text is spelled so
  }
}

export class LocalState {
  ways = $state.raw<Way[]>([]);
  runtime = 0; // bytes of what every model needs
  chosen = $state("");
  phase = $state<"looking" | "offered" | "loading" | "ready" | "failed">("looking");
  progress = $state(0);
  trouble = $state("");
  text = $state(textOf(globalThis.location?.hash ?? ""));
  busy = $state(false);
  result = $state.raw<Result | null>(null);
  of = $state(""); // the text that the result is of
  shown = $state(0); // the number of a choice
  names = $state.raw<string[]>([]);
  gates = $state.raw<number[]>([]);
  private translator: Translator | null = null;
  private turn: AbortController | null = null;
  private loading: AbortController | null = null; // of the model that was chosen last
  private pause: ReturnType<typeof setTimeout> | undefined;

  readonly way = $derived(this.ways.find(({ id }) => id === this.chosen));
  readonly choices = $derived<Choice[]>(this.result ? [this.result, ...this.result.alternatives] : []);
  readonly choice = $derived(this.choices[this.shown] ?? null);
  readonly fresh = $derived(this.of === this.text && !this.busy);

  async begin(): Promise<void> {
    await this.guard(async () => {
      const models = await readModels();
      this.runtime = Object.values(models.shell).reduce((sum, { bytes }) => sum + bytes, 0);
      this.ways = models.models.flatMap((model) =>
        model.directions.map(([source, target]) => ({ id: `${model.id} ${source} ${target}`, model, source, target })),
      );
      await this.choose(this.ways[0]!.id);
    });
  }

  /** Another direction. A model that is here already is loaded at once; what has to be fetched is offered. */
  async choose(id: string): Promise<void> {
    const before = this.way?.model.id;
    this.chosen = id;
    this.names = this.names.filter((name) => this.way!.model.names.includes(name));
    if (before === this.way!.model.id && (this.translator || this.phase === "loading")) return this.now();
    this.turn?.abort();
    this.translator?.destroy();
    this.translator = null;
    [this.result, this.busy, this.phase] = [null, false, "looking"];
    const signal = this.begins();
    await this.guard(async () => {
      const { source, target, model } = this.way!;
      const there = await Translator.availability({ sourceLanguage: source, targetLanguage: target, model: model.id });
      if (signal.aborted) return;
      if (there === "available" || isSingleFile()) await this.load();
      else this.phase = "offered";
    }, signal);
  }

  /** Bytes to fetch for the chosen model, with what all models need. */
  size(): number {
    const { model } = this.way!;
    const names = ["config.json", ...model.pieces, ...model.graphs[model.numbers[0]!]!];
    return this.runtime + names.reduce((sum, name) => sum + model.files[name]!.bytes, 0);
  }

  async load(): Promise<void> {
    const signal = this.begins();
    this.phase = "loading";
    this.progress = 0;
    const { source, target, model } = this.way!;
    await this.guard(async () => {
      const monitor = (to: EventTarget): void =>
        to.addEventListener("downloadprogress", (event) => {
          if (!signal.aborted) this.progress = (event as Event & { loaded: number }).loaded;
        });
      const made = await Translator.create({ sourceLanguage: source, targetLanguage: target, model: model.id, monitor, signal });
      if (signal.aborted) return made.destroy();
      this.translator = made;
      this.gates = new Array<number>(made.config.layers * made.config.heads).fill(1);
      this.phase = "ready";
      await this.now();
    }, signal);
  }

  /** What was being loaded is not wanted any more; the signal is of what comes now. */
  private begins(): AbortSignal {
    this.loading?.abort();
    return (this.loading = new AbortController()).signal;
  }

  get heads(): number {
    return this.translator?.config.heads ?? 1;
  }

  get calibrated(): boolean {
    return this.translator?.config.confidence != null;
  }

  write(): void {
    clearTimeout(this.pause);
    this.pause = setTimeout(() => void this.now(), PAUSE);
  }

  name(name: string): void {
    this.names = this.names.includes(name) ? this.names.filter((each) => each !== name) : [...this.names, name];
    void this.now();
  }

  async dim(at: number, gate: number): Promise<void> {
    this.gates = this.gates.with(at, gate);
    await this.translator?.dim(this.gates);
    await this.now();
  }

  async light(): Promise<void> {
    this.gates = this.gates.map(() => 1);
    await this.translator?.dim(this.gates);
    await this.now();
  }

  async now(): Promise<void> {
    clearTimeout(this.pause);
    this.turn?.abort();
    if (!this.translator || this.phase !== "ready") return;
    const turn = (this.turn = new AbortController());
    const [text, { source, target }] = [this.text, this.way!];
    if (!text.trim()) {
      this.result = null;
      this.of = text;
      this.busy = false;
      return;
    }
    this.busy = true;
    try {
      const asked = { source, target, names: this.names, nbest: this.translator.config.search.beam, attention: true };
      const result = await this.translator.explain(text, asked, turn.signal);
      [this.result, this.of, this.shown, this.trouble] = [result, text, 0, ""];
    } catch (error) {
      if (turn.signal.aborted) return;
      this.trouble = (error as Error).message;
    }
    this.busy = false;
  }

  private async guard(work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    try {
      this.trouble = "";
      await work();
    } catch (error) {
      if (signal?.aborted) return;
      this.phase = "failed";
      this.trouble = (error as Error).message;
    }
  }
}

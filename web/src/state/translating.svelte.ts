/** The translate page as a value: what was written, what is asked, what came back. Panels show it and call it, and know no server. */

import { Refused, type Alternative, type Answer, type Api, type Asked, type Limits, type Model, type Result, type Settings } from "../api";
import { charactersOf, wellFormed } from "../lib/counting";
import { detected, type Detected } from "../lib/detection";
import { AUTO, byName, fitting, match, nameOf, namesOf, sourcesOf, targetsOf, waysOf } from "../lib/languages";
import { waitFor, type Trouble } from "../lib/trouble";

export const NBEST = 4; // the best and three others, where the server allows so many; matches of the memory are numbered after them

export type Status =
  | { kind: "idle" }
  | { kind: "translating" }
  | { kind: "waiting"; trouble: Trouble; seconds: number }
  | { kind: "failed"; trouble: Trouble }
  | { kind: "done" };

export interface Exchange {
  request: Asked;
  response: unknown;
}

/** A translation on show, and exactly what it is a translation of. */
export interface Shown {
  of: string;
  asked: Asked;
  source: string;
  target: string;
  model: string;
  tags: readonly string[];
  result: Result;
  took: number;
}

/** What a link asks for. */
export interface Wished {
  source: string | null;
  target: string | null;
  text: string | null;
  tags?: readonly string[];
}

const NO_LIMITS: Limits = { characters: Infinity, alternatives: Infinity, beam: Infinity, file_bytes: Infinity };
const UNKNOWN: Settings = { delay: 500, keyNeeded: false, files: false, formats: [] };

export class Translating {
  text = $state("");
  source = $state(AUTO);
  target = $state("");
  model = $state<string | null>(null); // chosen by a person among several for the same pair
  chosenTags = $state.raw<readonly string[]>([]); // by a person; those that the model knows are told
  models = $state.raw<Model[]>([]);
  limits = $state.raw<Limits>(NO_LIMITS);
  corrections = $state(false); // are they kept?
  memory = $state(false); // is there one?
  desk = $state(false); // can one look inside?
  settings = $state.raw<Settings>(UNKNOWN);
  status = $state.raw<Status>({ kind: "idle" });
  shown = $state.raw<Shown | null>(null);
  chosen = $state(0); // 0: the best; else the number of an alternative
  detection = $state.raw<Detected | null>(null);
  exchange = $state.raw<Exchange | null>(null);

  readonly names: Record<string, string> = $derived(namesOf(this.models));
  readonly sources = $derived(byName(sourcesOf(this.models), this.names));
  readonly targets = $derived(byName(targetsOf(this.models, this.source), this.names));
  readonly fitting = $derived(waysOf(this.models, this.heard, this.target));
  readonly wanted = $derived(this.fitting.find((model) => model.id === this.model) ?? this.fitting[0]);
  /** What the model that is asked can be told, and what it is told. */
  readonly tags = $derived(this.wanted?.tags ?? []);
  readonly told = $derived(this.tags.filter((tag) => this.chosenTags.includes(tag)));
  readonly characters = $derived(charactersOf(this.text));
  readonly over = $derived(Math.max(0, this.characters - this.limits.characters));
  /** All translations of the text on show, the best first. */
  readonly choices = $derived(this.shown ? [this.shown.result, ...distinct(this.shown.result)] : []);
  readonly matches = $derived(this.shown?.result.matches ?? []);
  readonly current = $derived(this.choiceOf(this.chosen));
  /** Is what is shown a translation of what is written, into the language and by the model that are chosen? */
  readonly fresh = $derived(this.shown !== null && this.shown.of === this.text && aim(this.shown.asked) === aim(this.asked(this.text)));
  readonly calibrated = $derived(this.models.find((model) => model.id === this.shown?.model)?.calibrated ?? false);

  private timer: ReturnType<typeof setTimeout> | undefined;
  private under: AbortController | null = null;
  private opening: AbortController | null = null;
  private wished: Wished = { source: null, target: null, text: null };

  constructor(private readonly api: Api) {}

  /** The language that is translated from: the chosen one, or what was heard. */
  get heard(): string {
    return this.source === AUTO ? (this.detection?.source ?? this.sourcesToTarget()[0] ?? AUTO) : this.source;
  }

  name(code: string): string {
    return code === AUTO ? "Detect language" : nameOf(code, this.names);
  }

  /** Asks the server what it can do; then begins with what a link wants. */
  async open(wanted: Wished): Promise<void> {
    this.wished = wanted;
    this.text = wanted.text ?? "";
    this.chosenTags = wanted.tags ?? this.chosenTags;
    const done = await this.persist(async (signal) => {
      const [known, settings] = await Promise.all([this.api.models(signal), this.api.settings(signal)]);
      Object.assign(this, known, { settings });
    }, true);
    if (!done) return;
    const found = fitting(this.models, wanted.source ?? this.models[0]?.source ?? AUTO, wanted.target ?? "");
    if (found) Object.assign(this, found);
    this.status = { kind: "idle" };
    if (this.text.trim()) await this.now();
  }

  /** Somebody types: translated when nothing more comes for a while. What is under way is of no use any more. */
  write(text: string): void {
    this.text = text;
    this.stop();
    if (!text.trim()) this.forget();
    else this.timer = setTimeout(() => void this.now(), this.settings.delay);
  }

  chooseSource(source: string): void {
    this.source = source;
    this.model = null;
    this.detection = null;
    const found = fitting(this.models, source, this.target);
    if (found) this.target = found.target;
    void this.now();
  }

  chooseTarget(target: string): void {
    this.target = target;
    this.model = null;
    void this.now();
  }

  chooseModel(id: string): void {
    this.model = id;
    void this.now();
  }

  toggleTag(tag: string): void {
    this.chosenTags = this.told.includes(tag) ? this.told.filter((each) => each !== tag) : [...this.told, tag];
    void this.now();
  }

  /** Is there a model for the way back? */
  get canSwap(): boolean {
    const back = this.heard;
    return back !== AUTO && waysOf(this.models, this.target, back).length > 0;
  }

  /** The translation becomes the text. */
  swap(): void {
    if (!this.canSwap) return;
    const [source, target] = [this.target, this.heard];
    const text = this.current && this.fresh ? this.current.text : this.text;
    this.stop();
    Object.assign(this, { source, target, text, model: null, detection: null });
    this.forget();
    void this.now();
  }

  clear(): void {
    this.stop();
    this.text = "";
    this.forget();
  }

  choose(number: number): void {
    if (this.choiceOf(number)) this.chosen = number;
  }

  /** A translation by its number, or what a match of the memory says. */
  private choiceOf(number: number): Alternative | null {
    const match = this.matches[number - NBEST];
    return match ? { text: match.target, confidence: null } : (this.choices[number] ?? null);
  }

  /** Translates without waiting for more to be typed. */
  async now(): Promise<void> {
    this.stop();
    if (!this.text.trim() || !this.target) return;
    if (this.over) {
      this.status = { kind: "idle" };
      return;
    }
    const text = this.text;
    await this.persist(async (signal) => {
      this.status = { kind: "translating" };
      if (this.source === AUTO) await this.listen(text, signal);
      else this.detection = null;
      const request = this.asked(text);
      this.exchange = { request, response: null };
      const answer = await this.api.translate(request, signal);
      this.show(text, request, answer);
    });
  }

  /** After a refusal: what was not done is done now. */
  again(): Promise<void> {
    return this.models.length ? this.now() : this.open({ ...this.wished, text: this.text });
  }

  private asked(text: string): Asked {
    const nbest = Math.min(NBEST, this.limits.alternatives + 1, this.limits.beam);
    const asked: Asked = { text: wellFormed(text), source: this.heard, target: this.target, nbest, align: true };
    if (this.told.length) asked.tags = this.told;
    if (this.memory) asked.matches = true;
    if (this.model !== null && this.fitting.some((model) => model.id === this.model)) asked.model = this.model;
    return asked;
  }

  private async listen(text: string, signal: AbortSignal): Promise<void> {
    const guesses = await this.api.detect(wellFormed(text), signal);
    this.detection = detected(guesses, this.sourcesToTarget(), this.names);
  }

  /** With a language to be detected, only those count from which there is a way. */
  private sourcesToTarget(): string[] {
    const ways = waysOf(this.models, AUTO, this.target);
    return sourcesOf(ways).filter((source) => match(source, [this.target]) === undefined);
  }

  private show(text: string, request: Asked, answer: Answer): void {
    const result = answer.results[0]!;
    this.exchange = { request, response: answer };
    this.chosen = 0;
    this.shown = { of: text, asked: request, source: answer.source, target: answer.target, model: answer.model, tags: request.tags ?? [], result, took: answer.took_ms };
    this.status = { kind: "done" };
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.under?.abort();
    this.under = null;
  }

  private forget(): void {
    this.shown = null;
    this.exchange = null;
    this.detection = null;
    this.chosen = 0;
    this.status = { kind: "idle" };
  }

  /** Does it, and again for as long as a refusal says that this may help. True when it was done; false when it was given up.
   *  `opening`: what somebody types meanwhile does not stop it. */
  private async persist(work: (signal: AbortSignal) => Promise<void>, opening = false): Promise<boolean> {
    const controller = new AbortController();
    if (opening) {
      this.opening?.abort();
      this.opening = controller;
    } else this.under = controller;
    const { signal } = controller;
    for (let tries = 0; !signal.aborted; tries++) {
      try {
        await work(signal);
        return !signal.aborted;
      } catch (error) {
        if (signal.aborted) return false;
        if (!(error instanceof Refused)) throw error;
        const seconds = waitFor(error.trouble, tries);
        if (this.exchange && !this.exchange.response) this.exchange = { ...this.exchange, response: error.trouble };
        if (seconds === null) {
          this.status = { kind: "failed", trouble: error.trouble };
          return false;
        }
        await this.countDown(error.trouble, seconds, signal);
      }
    }
    return false;
  }

  private async countDown(trouble: Trouble, seconds: number, signal: AbortSignal): Promise<void> {
    for (let left = Math.ceil(seconds); left > 0 && !signal.aborted; left--) {
      this.status = { kind: "waiting", trouble, seconds: left };
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

/** What a translation is into, from and by, apart from its text. */
function aim({ source, target, model, tags }: Asked): string {
  return JSON.stringify([source, target, model ?? null, tags ?? []]);
}

/** Alternatives that say something else: an engine may give the same text in other pieces. */
function distinct(result: Result): Result["alternatives"] {
  const seen = new Set([result.text]);
  return result.alternatives.filter((other) => !seen.has(other.text) && seen.add(other.text));
}

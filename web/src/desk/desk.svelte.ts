/** The lighting desk as a value: what is chosen, what is asked, what came back. Panels show it and call it, and know no server. */

import { Refused, type Api, type Limits, type Model, type ProbeFacts } from "../api";
import { LONGEST_LINK, routeOf } from "../lib/link";
import type { Trouble } from "../lib/trouble";
import { Kept, persistently, questionOf, refusal, type Question, type Status } from "./asking";
import { shownStep } from "./candidates";
import { sayOutcome } from "./labels";
import { Ranking } from "./ranking.svelte";
import { BrowserRoad, type Road, type Step } from "./road";
import { spotOf } from "./spot";
import { Tensors } from "./tensors";
import { WhyState } from "./why.svelte";
import { givenTarget, type Tensor, type Trace } from "./trace";
import { asksAgain, fromHash, isTouched, START, toHash, untouched, withModel, withTags, withText, type View } from "./view";

/** A piece that is pointed at. */
export interface Place {
  side: "source" | "target";
  index: number;
}

const TYPING = 500; // ms without a key before a text is asked for
const DRAGGING = 120; // ms between questions while a dimmer moves
const KEPT = 24; // answers
const ANOTHER_TEXT = "another text";

export class Desk {
  view = $state.raw<View>(START);
  draft = $state(""); // the text as it stands in its field
  trace = $state.raw<Trace | null>(null);
  baseline = $state.raw<Trace | null>(null); // the same text with nothing changed; null when nothing is, or while it is not known
  other = $state.raw<Trace | null>(null); // what the trace is compared with
  otherTrouble = $state.raw<Trouble | null>(null); // why there is no other
  status = $state.raw<Status>({ kind: "idle" });
  hover = $state.raw<Place | null>(null);
  models = $state.raw<Model[]>([]);
  limits = $state.raw<Limits | null>(null);
  probes = $state.raw<ProbeFacts[] | null>(null);
  probesTrouble = $state.raw<Trouble | null>(null); // why nobody knows whether there are any
  step = $state.raw<Step>({ depth: 0, what: "" });
  top = $state(0); // steps that can be walked, with those that were undone
  live = $state(true); // false in an exported file: nobody answers
  readonly ranking: Ranking;
  readonly why: WhyState;

  readonly busy = $derived(this.status.kind === "working" || this.status.kind === "waiting");
  readonly touched = $derived(isTouched(this.view));
  /** The head in the spot, also when the view names none or one that this model does not have. */
  readonly spot = $derived.by(() => spotOf(this.view, this.trace));
  /** What muting each head did, if that was asked for this text and this model. */
  readonly ranks = $derived.by(() => (this.ranking.isOf(this.view.model, this.view.tags, this.view.text) ? this.ranking.ranks : null));
  /** The direction on show, as the server lists it; and all that the same model has. */
  readonly direction = $derived(this.models.find(({ id }) => id === (this.view.model ?? this.trace?.model.id)) ?? this.models[0] ?? null);
  readonly directions = $derived(this.models.filter(({ bundle }) => bundle === this.direction?.bundle));
  /** For the live region: what is new, and what it did. */
  readonly spoken = $derived.by(() => (this.status.kind === "done" && this.trace ? sayOutcome(this.trace, this.touched) : ""));

  private readonly answers = new Kept<Trace>(KEPT);
  private readonly questions = new WeakMap<Trace, Question>(); // that each answer is the answer to
  private readonly tensors: Tensors;
  private held: View | null = null; // as it was before a dimmer was taken hold of
  private under: AbortController | null = null;
  private turn = 0; // of the sentences to compare with: an answer to an earlier one is of no use
  private timer: ReturnType<typeof setTimeout> | undefined;
  private typing: ReturnType<typeof setTimeout> | undefined; // of its own: a dimmer that moves meanwhile does not lose what was typed
  private wanted = ""; // the question whose answer is on show or on its way

  constructor(
    readonly api: Api,
    private readonly road: Road = new BrowserRoad(),
  ) {
    this.ranking = new Ranking(api);
    this.why = new WhyState(api, (trace) => this.renewed(trace));
    this.tensors = new Tensors(api, (trace) => this.renewed(trace));
  }

  /** Begins with what the address says. */
  async open(hash: string, step: Step): Promise<void> {
    this.arrive(hash, step);
    const controller = new AbortController();
    const known = await persistently(() => this.api.models(), controller.signal, (status) => {
      if (!this.view.text) this.status = status;
    });
    if (known) {
      this.models = known.models;
      this.limits = known.limits;
      if (this.status.kind === "waiting" && !this.view.text) this.status = { kind: "idle" };
    }
  }

  /** An exported file brings its trace along; nobody answers questions there. */
  show(trace: Trace, hash: string): void {
    this.live = false;
    this.view = { ...fromHash(routeOf(hash).values), text: trace.source.text, target: givenTarget(trace), model: trace.model.id };
    this.draft = trace.source.text;
    this.trace = trace;
    this.status = { kind: "done" };
  }

  /** The browser went to another place: undo, redo, or an address that somebody wrote. */
  arrive(hash: string, step: Step): void {
    this.step = step;
    this.top = Math.max(this.top, step.depth);
    const view = fromHash(routeOf(hash).values);
    if (!this.live) {
      this.view = { ...view, text: this.view.text, target: this.view.target, model: this.view.model };
      return;
    }
    if (view.model !== this.view.model) this.forgetModel();
    this.held = null;
    this.view = view;
    this.draft = view.text;
    if (view.compare && view.compare !== "base") void this.compareWith(view.compare);
    this.ask(0);
  }

  /** Changes what is chosen. `what` says it in a few words and makes it a step that can be undone; "" does not. */
  change(patch: Partial<View>, what = ""): void {
    const after: View = Object.freeze({ ...this.view, ...patch });
    if (!this.live && asksAgain(this.view, after)) return;
    this.view = after;
    this.walk(what);
    this.ask(0);
  }

  /** A dimmer that is still held: shown at once, asked for in a while, and no step until `change` ends it. */
  preview(patch: Partial<View>): void {
    if (!this.live) return;
    this.held ??= this.view;
    this.view = Object.freeze({ ...this.view, ...patch });
    this.ask(DRAGGING);
  }

  /** The same model in another direction, or told other tags: its lights stay as they are. */
  aim(model: string | null, tags: readonly string[], what: string): void {
    this.ranking.forget();
    this.change(withTags(this.view, model, tags), what);
    if (this.view.compare && this.view.compare !== "base") void this.compareWith(this.view.compare);
  }

  /** Another model: what was said about heads and pieces of the old one, and what it was compared with, means nothing there. */
  useModel(id: string): void {
    this.forgetModel();
    this.change(withModel(this.view, id), `model ${id}`);
    if (this.view.compare && this.view.compare !== "base") void this.compareWith(this.view.compare);
  }

  /** Somebody types: asked for when nothing more comes for a while. */
  write(text: string): void {
    this.draft = text;
    clearTimeout(this.typing);
    if (text.trim()) this.typing = setTimeout(() => this.now(), TYPING);
  }

  /** Translates what stands in the field, without waiting. */
  now(): void {
    clearTimeout(this.typing);
    if (!this.draft.trim()) return;
    if (this.draft === this.view.text) {
      if (this.status.kind === "failed") this.wanted = "";
      return this.ask(0);
    }
    this.held = null;
    this.view = Object.freeze(withText(this.view, this.draft));
    this.ranking.forget();
    // A sentence that is still being written is one step, however often it was asked for.
    this.walk(this.step.what === ANOTHER_TEXT || !this.trace ? "" : ANOTHER_TEXT);
    this.ask(0);
  }

  undo(): void {
    if (this.step.depth > 0) this.road.back();
  }

  redo(): void {
    if (this.step.depth < this.top) this.road.forward();
  }

  /** All lights as they were. */
  reset(): void {
    if (this.touched) this.change(untouched(this.view), "reset the desk");
  }

  /** Named stages of the trace on show; fetched once. */
  async stage(names: readonly string[]): Promise<Record<string, Tensor>> {
    return this.trace ? this.tensors.of(this.trace, names, this.live) : {};
  }

  /** A file that the server makes of the trace on show; what it has forgotten meanwhile is asked for once more. */
  async exported(trace: Trace, asked: { format: string; view?: string }): Promise<Blob> {
    const made = (one: Trace): Promise<Blob> => this.api.exported({ trace_id: one.trace_id, ...asked });
    return made(trace).catch(async (error: unknown) => {
      const again = error instanceof Refused && error.trouble.status === 404 ? await this.renewed(trace) : null;
      if (!again) throw error;
      return made(again);
    });
  }

  rank(): Promise<void> {
    return this.ranking.run(this.view.model, this.view.tags, this.view.text);
  }

  /** What the piece on show came from. */
  async askWhy(): Promise<void> {
    if (this.live && this.trace) await this.why.ask(this.trace, shownStep(this.trace, this.view.query));
  }

  async loadProbes(): Promise<void> {
    if (!this.live || this.probes !== null) return;
    const { model } = this.view;
    const told = await this.api.probes(model).catch(refusal);
    if (model !== this.view.model) return;
    this.probes = "trouble" in told ? null : told;
    this.probesTrouble = "trouble" in told ? told.trouble : null;
  }

  async probe(n: number, step: number): Promise<Trace> {
    const key = `probe ${this.view.model} ${n} ${step}`;
    const trace = this.answers.get(key) ?? (await this.api.probe(n, step, this.view.model));
    this.answers.put(key, trace);
    return trace;
  }

  /** A second sentence with the same model and search and nothing changed, perhaps in another direction; null ends it. */
  async compareWith(text: string | null, direction = this.view.model): Promise<void> {
    const { model, beside } = this.view;
    const turn = ++this.turn;
    const told = text === null ? null : await this.answerTo({ ...untouched(withText(this.view, text)), model: direction }).catch(refusal);
    if (turn !== this.turn || model !== this.view.model || beside !== this.view.beside) return;
    this.other = told && "trouble" in told ? null : told;
    this.otherTrouble = told && "trouble" in told ? told.trouble : null;
  }

  /** While a dimmer is held nothing is written over the place that undo goes back to. */
  private walk(what: string): void {
    if (!what && this.held && asksAgain(this.held, this.view)) return;
    this.held = null;
    this.step = what ? { depth: this.step.depth + 1, what } : this.step;
    if (what) this.top = this.step.depth;
    if (what) this.road.push(this.address(), this.step);
    else this.road.replace(this.address(), this.step);
  }

  /** A text too long for an address is left out, and the trace that the server keeps is named instead. */
  private address(): string {
    const hash = toHash(this.view);
    if (hash.length <= LONGEST_LINK) return hash;
    return toHash({ ...this.view, text: "", target: null, trace: this.trace?.trace_id ?? null });
  }

  private ask(delay: number): void {
    clearTimeout(this.timer);
    if (!this.live) return;
    if (delay) this.timer = setTimeout(() => void this.answer(), delay);
    else void this.answer();
  }

  /** Shows the answer to the view as it is now. An answer that comes when the view has moved on is dropped. */
  private async answer(): Promise<void> {
    const view = this.view;
    const key = JSON.stringify(questionOf(view)) + (view.text ? "" : view.trace);
    if (key === this.wanted) return;
    this.wanted = key;
    this.under?.abort();
    const controller = new AbortController();
    this.under = controller;
    if (!view.text.trim() && view.trace === null) return this.forget();
    const there = this.answers.get(key);
    if (!there) this.status = { kind: "working" };
    const trace =
      there ??
      (await persistently(
        () => (view.text.trim() ? this.api.trace(questionOf(view), controller.signal) : this.recover(view.trace!, controller.signal)),
        controller.signal,
        (status) => (this.status = status),
      ));
    if (!trace) {
      if (this.wanted === key) this.wanted = ""; // it may be asked again
      return;
    }
    if (view.text.trim()) this.keep(questionOf(view), trace);
    this.trace = trace;
    this.status = { kind: "done" };
    if (toHash(this.view).length > LONGEST_LINK) this.walk("");
    if (view.beside) void this.compareWith(view.text, view.beside);
    else if (view.compare && view.compare !== "base") void this.compareWith(view.compare);
    await this.compareToBaseline(view);
  }

  /** The text of a trace that the server still keeps, and the translation that was given with it; the view then asks for itself. */
  private async recover(id: string, signal: AbortSignal): Promise<Trace> {
    const trace = await this.api.traceAgain(id, signal);
    if (!signal.aborted) {
      this.view = Object.freeze({ ...this.view, text: trace.source.text, target: givenTarget(trace) });
      this.draft = trace.source.text;
      this.ask(1);
    }
    return trace;
  }

  private async compareToBaseline(view: View): Promise<void> {
    const told = isTouched(view) ? await this.answerTo(untouched(view)).catch(refusal) : null;
    if (this.view === view || !asksAgain(this.view, view)) this.baseline = told && "trouble" in told ? null : told;
  }

  /** The trace on show, made once more; both are the same but for their names. */
  private async renewed(trace: Trace): Promise<Trace | null> {
    const question = this.questions.get(trace);
    if (!question) return null;
    const again = await this.api.trace(question, new AbortController().signal);
    this.keep(question, again);
    if (this.trace === trace) this.trace = again;
    return again;
  }

  /** The answer to another view, beside the one on show. Throws Refused. */
  private async answerTo(view: View): Promise<Trace> {
    const question = questionOf(view);
    return this.answers.get(JSON.stringify(question)) ?? this.keep(question, await this.api.trace(question, new AbortController().signal));
  }

  private keep(question: Question, trace: Trace): Trace {
    this.answers.put(JSON.stringify(question), trace);
    this.questions.set(trace, question);
    return trace;
  }

  private forgetModel(): void {
    this.probes = this.other = this.baseline = null;
    this.probesTrouble = this.otherTrouble = null;
    this.ranking.forget();
  }

  private forget(): void {
    this.trace = this.baseline = null;
    this.status = { kind: "idle" };
  }
}

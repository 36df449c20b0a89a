/** The review of a document as a value: its segments, the worst first, what a person makes of them, and the document with it. */

import { Refused, type Api, type Given, type Known, type Match, type Segment, type Settings } from "../api";
import { charactersOf, wellFormed } from "../lib/counting";
import type { Trouble } from "../lib/trouble";
import { refusalOf } from "../lib/uploads";

export const NBEST = 4; // ways to say a segment; matches of the memory are numbered after them, as where a text is translated
const MATCHES = 5;

export interface Row extends Segment {
  machine: string; // the translation before anybody changed it
  done: boolean; // somebody has looked at it
  sent: string; // the last correction of it that went to the server
}

/** What can be said instead. */
export interface Help {
  matches: Match[];
  alternatives: string[];
}

const TAGS = /<g id="\d{1,6}">|<\/g>|<x id="\d{1,6}"\/>/g;

/** Are all tags of the source there? The server looks closer; this tells it while one writes. */
export function keepsTags(source: string, text: string): boolean {
  const tags = (each: string) => (each.match(TAGS) ?? []).sort().join();
  return tags(source) === tags(text);
}

export class Reviewing {
  known = $state.raw<Known | null>(null);
  settings = $state.raw<Settings | null>(null);
  model = $state("");
  useMemory = $state(true);
  check = $state(false);
  file = $state.raw<{ name: string; data: string; model: string; source: string; target: string } | null>(null);
  rows = $state<Row[]>([]);
  at = $state(0);
  help = $state.raw<Record<string, Help>>({});
  busy = $state<"" | "asking" | "translating" | "downloading">("asking");
  trouble = $state.raw<Trouble | null>(null);
  problem = $state("");
  refused = $state.raw<{ line: number; message: string }[]>([]);
  unsaved = $state(false);
  kept = $state(0); // corrections that the server keeps

  private helping = new AbortController();

  /** Another document is on its way: what is written to this one would be lost with it. */
  readonly leaving = $derived(this.busy === "translating");
  readonly row = $derived<Row | null>(this.rows[this.at] ?? null);
  readonly done = $derived(this.rows.filter((row) => row.done).length);
  /** How many need no edit, where the bundle knows that. */
  readonly expected = $derived.by(() => {
    const told = this.rows.flatMap(({ unedited }) => (unedited === null ? [] : [unedited]));
    return told.length ? Math.round(told.reduce((sum, each) => sum + each, 0)) : null;
  });

  constructor(
    private readonly api: Api,
    private readonly save: (name: string, data: string) => void,
  ) {}

  async open(): Promise<void> {
    await this.try("asking", async () => {
      const [known, settings] = await Promise.all([this.api.models(), this.api.settings()]);
      Object.assign(this, { known, settings, model: known.models[0]?.id ?? "" });
    });
  }

  async load(name: string, size: number, read: () => Promise<string>): Promise<void> {
    if (!this.known || !this.settings || this.busy) return;
    this.problem = refusalOf(name, size, this.settings.formats, Math.floor((this.known.limits.file_bytes * 3) / 4) - 2_000) ?? "";
    if (this.problem) return;
    await this.try("translating", async () => {
      const asked = { name, data: await read(), model: this.model };
      const options = { ...(this.known!.memory && this.useMemory ? { memory: "use" as const } : {}), ...(this.check ? { check: true } : {}) };
      const answer = await this.api.document({ ...asked, ...options }, new AbortController().signal);
      this.file = { ...asked, model: answer.model, source: answer.source, target: answer.target };
      this.rows = answer.segments.map((segment) => ({ ...segment, machine: segment.text, done: false, sent: "" }));
      Object.assign(this, { at: 0, help: {}, refused: [], unsaved: false, kept: 0 });
      if (!this.rows.length) this.problem = "There is nothing to translate in this document.";
    });
    void this.ask();
  }

  go(to: number): void {
    this.at = Math.min(Math.max(0, to), Math.max(0, this.rows.length - 1));
    this.problem = "";
    void this.ask();
  }

  write(text: string): void {
    if (!this.row || this.leaving) return;
    Object.assign(this.row, { text, done: false });
    Object.assign(this, { unsaved: true, problem: "" });
  }

  /** Takes a match of the memory, or an alternative. */
  take(number: number): void {
    const help = this.row ? this.help[this.row.id] : undefined;
    const text = number < NBEST ? help?.alternatives[number] : help?.matches[number - NBEST]?.target;
    if (text !== undefined) this.write(text);
  }

  /** It is as it should be: on to the next that nobody has looked at. What was changed is kept as a correction, where the operator wants that. */
  accept(): void {
    const { row, file } = this;
    if (!row || !file || this.leaving) return;
    if (!row.text.trim()) {
      this.problem = "There is no translation to accept here: write one (e), or go on (j).";
      return;
    }
    row.done = this.unsaved = true;
    const [text, correction, before] = [row.source, row.text.trim(), row.sent];
    if (this.known?.corrections && correction !== before && correction !== row.machine.trim()) {
      row.sent = correction;
      this.api.correct({ text, translation: row.machine, correction: wellFormed(correction), model: file.model }).then(
        () => this.kept++,
        (error: unknown) => {
          row.sent = before;
          if (!(error instanceof Refused)) throw error;
          this.trouble = error.trouble;
        },
      );
    }
    const next = [...this.rows.keys()].map((step) => (this.at + 1 + step) % this.rows.length).find((at) => !this.rows[at]!.done);
    if (next !== undefined) this.go(next);
  }

  async download(): Promise<void> {
    const { file } = this;
    if (!file || this.busy) return;
    const segments: Given = {};
    for (const { id, text, done, confidence, reasons } of this.rows)
      if (text.trim()) segments[id] = { text: wellFormed(text), ...(done ? {} : { confidence: confidence ?? 0, ...(reasons.length ? { doubtful: true } : {}) }) };
    const before = this.unsaved;
    let saved = false;
    this.unsaved = false; // what is written from now on is not in the file
    await this.try("downloading", async () => {
      const made = await this.api.reviewed({ name: file.name, data: file.data, model: file.model, segments });
      this.refused = made.refused;
      this.save(file.name, made.data);
      saved = true;
    }).finally(() => (this.unsaved ||= before && !saved));
  }

  /** What can be said instead, asked for when a segment is looked at. Without an answer there is none. */
  private async ask(): Promise<void> {
    const { row, file, known } = this;
    this.helping.abort();
    const { signal } = (this.helping = new AbortController());
    if (!row || !file || !known || row.id in this.help || charactersOf(row.source) > known.limits.characters) return;
    const nbest = Math.min(NBEST, known.limits.alternatives + 1, known.limits.beam);
    const asked = { text: row.source, source: file.source, target: file.target, model: file.model, nbest, align: false, ...(known.memory ? { matches: true } : {}) };
    try {
      const result = (await this.api.translate(asked, signal)).results[0]!;
      if (signal.aborted || this.file !== file) return; // another document, whose segments have the same names
      const matches = (result.matches ?? []).slice(0, MATCHES);
      const others = new Set([result, ...result.alternatives].map(({ text }) => text.trim()));
      for (const known of ["", row.machine.trim(), ...matches.map(({ target }) => target.trim())]) others.delete(known);
      this.help = { ...this.help, [row.id]: { matches, alternatives: [...others].slice(0, NBEST) } };
    } catch (error) {
      if (!signal.aborted && !(error instanceof Refused)) throw error;
    }
  }

  private async try(busy: "asking" | "translating" | "downloading", work: () => Promise<void>): Promise<void> {
    Object.assign(this, { busy, trouble: null });
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.trouble = error.trouble;
    } finally {
      this.busy = "";
    }
  }
}

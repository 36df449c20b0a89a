/** A correction as a value: the translation is edited, completed from where the cursor stands, and sent. */

import { Refused, type Api } from "../api";
import { wellFormed } from "../lib/counting";
import type { Trouble } from "../lib/trouble";
import type { Shown, Translating } from "./translating.svelte";

export class Correcting {
  text = $state("");
  /** What is corrected; null while nothing is. */
  of = $state.raw<{ shown: Shown; translation: string } | null>(null);
  busy = $state(false);
  private keptOf = $state.raw<Shown | null>(null);
  trouble = $state.raw<Trouble | null>(null);

  readonly possible = $derived.by(() => this.translating.corrections && this.translating.fresh && this.translating.current !== null);
  readonly changed = $derived(this.of !== null && this.text.trim() !== "" && this.text.trim() !== this.of.translation.trim());

  constructor(
    private readonly api: Api,
    private readonly translating: Translating,
  ) {}

  /** Was a correction of the translation on show kept? */
  get kept(): boolean {
    return this.keptOf !== null && this.keptOf === this.translating.shown;
  }

  /** What is being written stays. */
  open(): void {
    const { shown, current, choices, chosen } = this.translating;
    if (this.of || !this.possible || !shown || !current) return;
    const translation = (choices[chosen] ?? shown.result).text; // the model's, also where a match of the memory is to be sent instead
    Object.assign(this, { of: { shown, translation }, text: current.text, keptOf: null, trouble: null });
  }

  close(): void {
    this.of = null;
    this.trouble = null;
  }

  /** The rest is translated anew after what stands before the cursor. */
  async complete(until: number): Promise<void> {
    const { of, text } = this;
    if (!of) return;
    const prefix = wellFormed(this.text.slice(0, until));
    const { shown } = of;
    const asked = { text: wellFormed(shown.of), source: shown.source, target: shown.target, model: shown.model, nbest: 1, align: false, prefix };
    await this.try(async () => {
      const answer = await this.api.translate(shown.tags.length ? { ...asked, tags: shown.tags } : asked, new AbortController().signal);
      if (this.of === of && this.text === text) this.text = answer.results[0]!.text;
    });
  }

  async send(): Promise<void> {
    const { of } = this;
    if (!of || !this.changed) return;
    const { shown, translation } = of;
    await this.try(async () => {
      await this.api.correct({ text: wellFormed(shown.of), translation, correction: wellFormed(this.text.trim()), model: shown.model });
      this.keptOf = shown;
      if (this.of === of) this.close();
    });
  }

  private async try(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.trouble = null;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.trouble = error.trouble;
    } finally {
      this.busy = false;
    }
  }
}

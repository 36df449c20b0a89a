/** Which word is pointed at, on which side; and with it what is lit on both. */

import { Links, litBy, unitsOf, type Side } from "../lib/words";
import type { Translating } from "./translating.svelte";

export interface Place {
  side: Side;
  unit: number;
}

const NOTHING: Record<Side, ReadonlySet<number>> = { source: new Set(), target: new Set() };

export class Spot {
  hovered = $state.raw<Place | null>(null);
  focused = $state.raw<Place | null>(null);

  constructor(private readonly translating: Translating) {}

  /** Links of the translation on show; null while it is not one of the text that is written, or when the counts of words differ. */
  readonly links = $derived.by(() => {
    const { current, fresh, shown } = this.translating;
    const alignment = current?.alignment;
    if (!alignment || !fresh || !shown) return null;
    const counted = (text: string, words?: string[]): boolean => !words || unitsOf(text).length === words.length;
    if (!counted(shown.of, alignment.source_words) || !counted(current.text, alignment.target_words)) return null;
    return new Links(alignment.words);
  });

  readonly at = $derived(this.links ? (this.hovered ?? this.focused) : null);
  readonly lit = $derived(this.at && this.links ? litBy(this.links, this.at.side, this.at.unit) : NOTHING);

  hover(side: Side, unit: number | null): void {
    this.hovered = unit === null ? null : { side, unit };
  }

  focus(side: Side, unit: number | null): void {
    this.focused = unit === null ? null : { side, unit };
  }

  leave(): void {
    this.hovered = this.focused = null;
  }
}

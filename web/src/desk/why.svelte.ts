/** Why this piece: what each piece of the source, and of the translation before it, did for it (POST /api/v1/why). */

import { Refused, type Api } from "../api";
import type { Trouble } from "../lib/trouble";
import { bare } from "./labels";
import type { Trace } from "./trace";

export interface Effect {
  piece: string;
  effect: number; // what it added to the log-probability; below 0 it spoke against it
  share: number; // of all effects, by size
}

export interface Why {
  word: string;
  first: number; // the piece that was asked for
  method: string;
  logp: number;
  source_share: number;
  source: Effect[];
  prefix: Effect[];
  unmatched?: { kind: "omission" | "addition"; word: string }[] | null; // words that nothing came from, or that came from nothing
}

/** "Left out: “six”. Made up: “eins”, “zwei”." */
export function sayUnmatched({ unmatched }: Why): string {
  const words = (wanted: string): string => (unmatched ?? []).filter(({ kind }) => kind === wanted).map(({ word }) => `“${word}”`).join(", ");
  const told = { "Left out": words("omission"), "Made up": words("addition") };
  return Object.entries(told).filter(([, some]) => some).map(([name, some]) => `${name}: ${some}.`).join(" ");
}

/** "“zwanzig” followed the source by 58 %, most of all “twenty”." */
export function sayWhy({ word, source_share, source, prefix }: Why): string {
  const most = [...source, ...prefix].reduce((best, each) => (Math.abs(each.share) > Math.abs(best.share) ? each : best), { piece: "", share: 0 });
  if (!most.piece) return `“${word}” followed nothing: no piece has any effect.`;
  return `“${word}” followed the source by ${Math.round(100 * source_share)} %, most of all “${bare(most.piece)}”.`;
}

/** Shade from 0 to 1: the strongest piece has 1, and what spoke against it has none of the light. */
export function shadesOf({ source, prefix }: Why): { source: number[]; prefix: number[] } {
  const most = Math.max(...[...source, ...prefix].map(({ share }) => Math.abs(share)), 1e-9);
  const shade = ({ share }: Effect): number => Math.max(0, share / most);
  return { source: source.map(shade), prefix: prefix.map(shade) };
}

export class WhyState {
  told = $state.raw<Why | null>(null);
  busy = $state(false);
  trouble = $state.raw<Trouble | null>(null);
  private of = $state(""); // the trace and the piece that were asked about last

  /** `renew` asks the question of a trace once more, since a server keeps few; null when it is not known. */
  constructor(
    private readonly api: Api,
    private readonly renew: (trace: Trace) => Promise<Trace | null>,
  ) {}

  /** The answer to a question that is no longer the last is dropped. */
  async ask(trace: Trace, piece: number): Promise<void> {
    if (this.isOf(trace, piece) && !this.trouble) return;
    let key = (this.of = keyOf(trace, piece));
    this.busy = true;
    this.told = this.trouble = null;
    try {
      const told = await this.api.why({ trace_id: trace.trace_id, piece, check: true }).catch(async (error: unknown) => {
        const again = error instanceof Refused && error.trouble.status === 404 ? await this.renew(trace) : null;
        if (!again) throw error;
        if (this.of === key) key = this.of = keyOf(again, piece);
        return this.api.why({ trace_id: again.trace_id, piece, check: true });
      });
      if (this.of === key) this.told = told;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (this.of === key) this.trouble = error.trouble;
    } finally {
      if (this.of === key) this.busy = false;
    }
  }

  isOf(trace: Trace, piece: number): boolean {
    return this.of === keyOf(trace, piece);
  }
}

function keyOf(trace: Trace, piece: number): string {
  return `${trace.trace_id} ${piece}`;
}

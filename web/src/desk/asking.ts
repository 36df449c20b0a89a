/** What the server is asked for a view, and how it is asked again when it is busy. */

import { Refused } from "../api";
import { wellFormed } from "../lib/counting";
import { waitFor, type Trouble } from "../lib/trouble";
import { toServer } from "./gates";
import type { View } from "./view";

export interface Question {
  model?: string;
  tags?: readonly string[];
  source: string;
  target?: string;
  prefix?: readonly number[];
  beam?: number;
  length_penalty?: number;
  topk: number;
  encoding: "u8";
  interventions?: Record<string, unknown>;
}

const TOPK = 8;

/** The body of POST /api/v1/trace. What is as usual is not said, so that equal views ask equal questions. */
export function questionOf(view: View): Question {
  const changes: Record<string, unknown> = {};
  const gates = toServer(view.gates, view.solo);
  if (Object.keys(gates).length) Object.assign(changes, { gates, gate_mode: view.mode });
  if (view.hidden.length) changes["mask_source"] = [...view.hidden].sort((a, b) => a - b);
  if (view.pins.length) changes["pin"] = view.pins;
  if (view.positions !== "normal") changes["positions"] = view.positions;
  if (view.temperature !== 1) changes["attn_temperature"] = view.temperature;
  return {
    ...(view.model === null ? {} : { model: view.model }),
    ...(view.tags.length ? { tags: view.tags } : {}),
    source: wellFormed(view.text),
    ...(view.target === null ? {} : { target: wellFormed(view.target) }),
    ...(view.prefix.length ? { prefix: view.prefix } : {}),
    ...(view.beam === null ? {} : { beam: view.beam }),
    ...(view.penalty === null ? {} : { length_penalty: view.penalty }),
    topk: TOPK,
    encoding: "u8",
    ...(Object.keys(changes).length ? { interventions: changes } : {}),
  };
}

export type Status =
  | { kind: "idle" }
  | { kind: "working" }
  | { kind: "waiting"; trouble: Trouble; seconds: number }
  | { kind: "failed"; trouble: Trouble }
  | { kind: "done" };

/** Does it, and again for as long as a refusal says that this may help. Null when it was left or given up; `tell` hears why. */
export async function persistently<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  tell: (status: Status) => void,
): Promise<T | null> {
  for (let tries = 0; !signal.aborted; tries++) {
    try {
      const done = await work();
      return signal.aborted ? null : done;
    } catch (error) {
      if (signal.aborted) return null;
      if (!(error instanceof Refused)) throw error;
      const seconds = waitFor(error.trouble, tries);
      if (seconds === null) {
        tell({ kind: "failed", trouble: error.trouble });
        return null;
      }
      for (let left = Math.ceil(seconds); left > 0 && !signal.aborted; left--) {
        tell({ kind: "waiting", trouble: error.trouble, seconds: left });
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }
  return null;
}

/** A refusal as a value; whatever else went wrong goes through. */
export function refusal(error: unknown): { trouble: Trouble } {
  if (error instanceof Refused) return { trouble: error.trouble };
  throw error;
}

/** The last few answers, so that going back is at once. */
export class Kept<T> {
  private readonly there = new Map<string, T>();

  constructor(private readonly most: number) {}

  get(key: string): T | undefined {
    const found = this.there.get(key);
    if (found !== undefined) this.put(key, found); // used last
    return found;
  }

  put(key: string, value: T): void {
    this.there.delete(key);
    this.there.set(key, value);
    if (this.there.size > this.most) this.there.delete(this.there.keys().next().value!);
  }
}

/** How sure each word on the stage is. */

import type { Unit } from "./ribbon";
import type { TargetToken } from "./trace";

export const TIE = 0.25; // of log-probability: of the chosen and the best other, one is at least 78 % as likely as the other

export interface Sureness {
  probability: number; // of the whole unit, given all that stands before it
  percent: string;
  tie: string | null; // what was almost as likely
}

/** The probability of a word is the product over its pieces; it is a tie where any of its pieces almost became another. */
export function surenessOf(unit: Unit, tokens: readonly TargetToken[]): Sureness {
  const own = unit.pieces.map((index) => tokens[index]!);
  const probability = Math.exp(own.reduce((sum, token) => sum + token.logp, 0));
  const close = own.find((token) => Math.abs(token.margin) < TIE);
  const rival = close?.topk.find(([id]) => id !== close.id);
  return { probability, percent: whole(probability), tie: rival ? rival[1] : null };
}

/** "97"; never "100" for what is not certain, nor "0" for what is possible. */
function whole(share: number): string {
  const rounded = Math.round(share * 100);
  if (rounded >= 100) return share < 0.9995 ? "99" : "100";
  return rounded <= 0 ? "<1" : String(rounded);
}

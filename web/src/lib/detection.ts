/** What to make of a guess at the language of a text, and what to say about it honestly. */

import { percent } from "./confidence";
import { match, nameOf } from "./languages";

export interface Guess {
  language: string;
  confidence: number; // 0 to 100
}

export interface Detected {
  source: string; // the language that is translated from
  sentence: string;
  certain: boolean; // false: look at the sentence
}

const ENOUGH = 50; // percent; below, another language is as probable

/** `sources`: the languages that the server can translate from, the first of them where nothing better is known. */
export function detected(
  guesses: readonly Guess[],
  sources: readonly string[],
  named: Readonly<Record<string, string>> = {},
): Detected | null {
  if (!sources.length) return null;
  const name = (code: string): string => nameOf(code, named);
  const best = guesses[0];
  const share = best ? percent(best.confidence / 100) : "";
  const ours = best && match(best.language, sources);
  if (ours && best.confidence >= ENOUGH) return { source: ours, sentence: `${name(ours)}, ${share} sure`, certain: true };
  if (ours && best.confidence > 0)
    return { source: ours, sentence: `Perhaps ${name(ours)}, only ${share} sure`, certain: false };
  const taken = guesses.map((guess) => match(guess.language, sources)).find(Boolean) ?? sources[0]!;
  if (best && best.confidence >= ENOUGH)
    return {
      source: taken,
      sentence: `This looks like ${name(best.language)} (${share}). It is translated as if it were ${name(taken)}.`,
      certain: false,
    };
  return { source: taken, sentence: `Too little text to tell. Taken for ${name(taken)}.`, certain: false };
}

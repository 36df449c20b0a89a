/** How sure a model is of each word, from the probabilities of its pieces (limelight.translator.confidence). */

import type { Config, Curve } from "./config";
import { SPACE, spell } from "./pieces";

export interface SureWord {
  text: string;
  confidence: number;
}

const CONTEXT = 1 / 3;
const BYTE = /^<0x([0-9A-F]{2})>$/;
const UNSPACED =
  "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}";
const WORDS = new RegExp(`[${UNSPACED}][^\\p{L}\\p{N}_ ⟦]*|[^ ${UNSPACED}]+`, "gu");

/** wordsOf([["▁Kat", 0.5], ["ze", 0.8], [".", 0.9]], 1) -> Katze. with 0.4 ** (2 / 3); punctuation at a word does not count. */
export function wordsOf(pieces: readonly (readonly [text: string, probability: number])[], whole: number, config: Config): SureWord[] {
  let text = "";
  const owners: [first: number, last: number][] = []; // of each UTF-16 unit
  for (let at = 0; at < pieces.length; ) {
    let end = at;
    while (end < pieces.length && BYTE.test(pieces[end]![0])) end++;
    const letters = end > at ? spell(pieces.slice(at, end).map(([piece]) => parseInt(piece.slice(3, 5), 16))) : pieces[at]![0].replaceAll(SPACE, " ");
    const own: [number, number] = end > at ? [at, end - 1] : [at, at];
    for (let i = 0; i < letters.length; i++) owners.push(own);
    text += letters;
    at = own[1] + 1;
  }
  return [...text.matchAll(WORDS)].map((match) => {
    const own = pieces.slice(owners[match.index]![0], owners[match.index + match[0].length - 1]![1] + 1);
    const told = own.filter(([piece]) => !/^\p{P}+$/u.test(piece.replaceAll(SPACE, "")));
    const product = (told.length ? told : own).reduce((sum, [, probability]) => sum * probability, 1);
    const claimed = product ** (1 - CONTEXT) * whole ** CONTEXT;
    return { text: match[0], confidence: config.confidence ? at(config.confidence.words, claimed) : claimed };
  });
}

/** The share of right words to be expected; without a calibration what the model claims. */
export function sentenceConfidence(words: readonly SureWord[], whole: number, config: Config): number {
  if (!config.confidence) return whole;
  if (!words.length) return at(config.confidence.sentences, whole);
  return words.reduce((sum, word) => sum + word.confidence, 0) / words.length;
}

/** Straight lines between knots, level outside. */
export function at(curve: Curve, claimed: number): number {
  const { knots } = curve;
  const after = knots.findIndex(([x]) => x > claimed);
  if (after <= 0) return knots[after === 0 ? 0 : knots.length - 1]![1];
  const [left, low] = knots[after - 1]!;
  const [right, high] = knots[after]!;
  return low + ((high - low) * (claimed - left)) / (right - left);
}

/** One line about the word that is pointed at. */

import { LEVELS, levelOf, percent } from "./confidence";
import { listed, stretchesOf, unitsOf, type Links, type Side, type Sure } from "./words";

/** readout for a word of the translation: `reinigt: 54 %, unsure. From “cleaning”.` */
export function readout(
  side: Side,
  unit: number,
  texts: Record<Side, string>,
  links: Links,
  words: readonly Sure[] = [],
): { word: string; says: string } {
  const word = wordAt(texts[side], unit);
  if (side === "source") {
    const became = names(texts.target, links.toTarget.get(unit));
    return { word, says: became ? `became ${became}` : "has no word of its own in the translation" };
  }
  const from = names(texts.source, links.toSource.get(unit));
  const least = leastOf(texts.target, unit, words);
  const step = LEVELS.find((each) => each.level === levelOf(least));
  const sure = step && least !== null ? `${percent(least)}, ${step.name}; ` : "";
  return { word, says: sure + (from ? `from ${from}` : "no word of the source in particular") };
}

/** A word between spaces may be several words to people; it is as sure as the least sure of them. */
function leastOf(text: string, unit: number, words: readonly Sure[]): number | null {
  const known = stretchesOf(text, words)
    .filter((stretch) => stretch.unit === unit)
    .map((stretch) => stretch.confidence)
    .filter((confidence) => typeof confidence === "number");
  return known.length ? Math.min(...known) : null;
}

function names(text: string, units: ReadonlySet<number> | undefined): string {
  return listed([...(units ?? [])].sort((a, b) => a - b).map((unit) => `“${isolated(wordAt(text, unit))}”`));
}

function wordAt(text: string, unit: number): string {
  const span = unitsOf(text)[unit];
  const word = span ? text.slice(span.begin, span.end) : "";
  return bare(word.replace(/\s+/g, " "));
}

/** Between U+2068 and U+2069 a word has its own direction and does not turn the sentence around it. */
export function isolated(word: string): string {
  return `\u2068${word}\u2069`;
}

/** Without punctuation around it, unless there is nothing else: bare("Fenster.") -> "Fenster". */
function bare(word: string): string {
  return word.replace(/^[\p{P}\s]+|[\p{P}\s]+$/gu, "") || word;
}

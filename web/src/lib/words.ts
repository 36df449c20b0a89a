/** Words in their places: where the words of an answer stand in a text, and which words of the other text they come from.
 *
 * A server counts words in two ways. Links are between words that a space (U+0020) parts, and nothing else: a line break is inside
 * a word. Confidences are of words as people see them, and in scripts without spaces of letters. A text is cut at both.
 */

export interface Sure {
  text: string;
  confidence: number | null;
}

/** A stretch of a text. `unit`: number of the word between spaces, null for blanks. `confidence` is undefined where nothing is told. */
export interface Stretch {
  text: string;
  begin: number;
  end: number;
  unit: number | null;
  confidence?: number | null;
}

interface Span {
  begin: number;
  end: number;
}

/** unitsOf(" a  b") -> [1, 2), [4, 5). As the server counts: between spaces, empty ones left out. */
export function unitsOf(text: string): Span[] {
  const found: Span[] = [];
  for (const match of text.matchAll(/[^ ]+/g)) found.push({ begin: match.index, end: match.index + match[0].length });
  return found;
}

/** Where each word stands, one after the other; null for one that is not there, which shifts none of the others. */
export function placesOf(text: string, words: readonly Sure[]): (Span | null)[] {
  let from = 0;
  return words.map((word) => {
    const begin = word.text ? text.indexOf(word.text, from) : -1;
    if (begin < 0) return null;
    from = begin + word.text.length;
    return { begin, end: from };
  });
}

/** The whole text as stretches: joined again they are the text. Blanks are stretches of their own. */
export function stretchesOf(text: string, words: readonly Sure[] = []): Stretch[] {
  const units = unitsOf(text);
  const places = placesOf(text, words);
  const cuts = new Set<number>([0, text.length]);
  for (const match of text.matchAll(/\s+/g)) cuts.add(match.index).add(match.index + match[0].length);
  for (const span of [...units, ...places]) if (span) cuts.add(span.begin).add(span.end);
  const at = [...cuts].sort((a, b) => a - b);

  let unit = 0;
  let word = 0;
  const made: Stretch[] = [];
  for (let i = 0; i + 1 < at.length; i++) {
    const [begin, end] = [at[i]!, at[i + 1]!];
    const piece = text.slice(begin, end);
    while (unit < units.length && units[unit]!.end <= begin) unit++;
    while (word < places.length && (places[word]?.end ?? -1) <= begin) word++;
    const blank = !piece.trim();
    const inUnit = units[unit] && units[unit]!.begin <= begin ? unit : null;
    const stretch: Stretch = { text: piece, begin, end, unit: blank ? null : inUnit };
    const place = places[word];
    if (!blank && place && place.begin <= begin) stretch.confidence = words[word]!.confidence;
    made.push(stretch);
  }
  return made;
}

export type Pair = readonly [source: number, target: number];

/** Links in both directions: links.toTarget.get(3) are the units of the translation that unit 3 of the source became. */
export class Links {
  readonly toTarget = new Map<number, Set<number>>();
  readonly toSource = new Map<number, Set<number>>();

  constructor(pairs: readonly Pair[]) {
    for (const [source, target] of pairs) {
      put(this.toTarget, source, target);
      put(this.toSource, target, source);
    }
  }
}

function put(map: Map<number, Set<number>>, key: number, value: number): void {
  const there = map.get(key);
  if (there) there.add(value);
  else map.set(key, new Set([value]));
}

export type Side = "source" | "target";

/** What is lit when one points at a word: the word itself, and those that it is linked to. */
export function litBy(links: Links, side: Side, unit: number): Record<Side, ReadonlySet<number>> {
  const own: ReadonlySet<number> = new Set([unit]);
  return side === "source"
    ? { source: own, target: links.toTarget.get(unit) ?? new Set() }
    : { source: links.toSource.get(unit) ?? new Set(), target: own };
}

/** The unit at a place in the text, also right after its last letter, where a caret stands that has just written it. */
export function unitAt(text: string, offset: number): number | null {
  const found = unitsOf(text).findIndex((span) => span.begin <= offset && offset <= span.end);
  return found < 0 ? null : found;
}

/** Words as one reads them: "a, b and c". */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

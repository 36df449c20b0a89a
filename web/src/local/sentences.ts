/** A text in sentences with what stands between them. One line that the model can take stays whole; else lines and their sentences are cut. */

import { findSpans } from "./protect";

export interface Part {
  text: string;
  after: string;
}

const CUTS = [/[.!?…;:]["'”“»)\]]*\s+|[。！？；：]/gu, /,\s+|\s[\u2013\u2014-]\s+|[，、]/gu, /\s+/gu];

const FIRST = /^[\s\x1c-\x1f\x85]+/;
const LAST = /(?<![\s\x1c-\x1f\x85])[\s\x1c-\x1f\x85]+$/;
const BREAK = /[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

/** cut(" One.\n\nTwo", ...) -> lead " ", "One." + "\n\n", "Two" + "" */
export function cut(text: string, language: string, fits: (text: string) => boolean): { lead: string; parts: Part[] } {
  const parts: Part[] = [];
  let lead = "";
  const add = (body: string): void => {
    const bare = body.replace(FIRST, "");
    const space = body.slice(0, body.length - bare.length);
    if (parts.length) parts[parts.length - 1]!.after += space;
    else lead += space;
    if (!bare) return;
    const core = bare.replace(LAST, "");
    parts.push({ text: core, after: bare.slice(core.length) });
  };
  const core = strip(text);
  if (!BREAK.test(core) && (!core || fits(core))) add(text);
  else {
    const segmenter = segmenterOf(language);
    for (const line of text.split(/(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])/)) {
      const found = strip(line) ? segmenter.segment(line) : [{ segment: line }];
      for (const { segment } of found) for (const piece of fits(strip(segment)) ? [segment] : halves(segment, fits)) add(piece);
    }
  }
  return { lead, parts };
}

/** White space as Python sees it: \s lacks four signs of it. */
function strip(text: string): string {
  return text.replace(FIRST, "").replace(LAST, "");
}

function segmenterOf(language: string): Intl.Segmenter {
  let locale = "en";
  try {
    locale = Intl.getCanonicalLocales(language.replaceAll("_", "-"))[0] ?? "en";
  } catch {
    // a code that the browser does not know
  }
  return new Intl.Segmenter(locale, { granularity: "sentence" });
}

/** In parts that fit: cut after a clause, a comma, a space or anywhere, near the middle, and never inside of what must stay whole. */
function halves(text: string, fits: (text: string) => boolean): string[] {
  const found: string[] = [];
  const todo = [text];
  while (todo.length) {
    const part = todo.pop()!;
    const place = fits(strip(part)) || [...strip(part)].length < 2 ? null : placeIn(part);
    if (place === null) {
      found.push(part);
      continue;
    }
    todo.push(part.slice(place), part.slice(0, place));
  }
  return found;
}

function placeIn(text: string): number | null {
  const middle = text.length / 2;
  const inside = new Uint8Array(text.length + 1);
  for (const span of findSpans(text)) inside.fill(1, span.at + 1, span.at + span.text.length);
  for (const cuts of CUTS) {
    const places = [...text.matchAll(cuts)].map((match) => match.index + match[0].length);
    const near = places.filter((place) => place > text.length / 4 && place < (3 * text.length) / 4 && text.slice(0, place).trim() && text.slice(place).trim() && !inside[place]);
    if (near.length) return near.reduce((a, b) => (Math.abs(a - middle) <= Math.abs(b - middle) ? a : b));
  }
  const bad = (place: number): boolean => inside[place] === 1 || /[\p{M}\u200d\udc00-\udfff]/u.test(text[place]!);
  const first = Math.max(1, Math.floor(middle));
  let place = first;
  while (place < text.length && bad(place)) place++;
  if (place < text.length) return place;
  for (place = first; place > 0 && bad(place); ) place--;
  return place || null;
}

/** What is wrong with a translation, seen from the two texts alone: it loops, copies, is empty or of odd length (limelight.decoding.guards). */

import { base } from "./config";

export interface Notice {
  code: string;
  message: string;
}

const DENSITY: Record<string, number> = { zh: 0.33, cmn: 0.33, yue: 0.33, ja: 0.43, ko: 0.5, he: 0.77, ar: 0.88 };
const RUN = /(.{1,40}?)\1{3,}/gsu;
const EDGES = /^[^\p{L}\p{N}]+|(?<=[\p{L}\p{N}])[^\p{L}\p{N}]+$/gu;
const CODE = /[\d!-/:-@[-`{-~]/;
const INSIDE = /['\u2019\u2010\u2011-]/g;

function words(text: string): string[] {
  return text.split(/\s+/u).filter(Boolean);
}

/** Letters, as Python counts them. */
function lengthOf(text: string): number {
  return [...text].length;
}

export function judge(source: string, text: string, from: string, to: string): Notice[] {
  if (!text.trim()) return source.trim() ? [{ code: "empty", message: `a source of ${lengthOf(source)} characters has an empty translation` }] : [];
  const expected = (DENSITY[base(to)] ?? 1) / (DENSITY[base(from)] ?? 1);
  const ratio = (lengthOf(text) + 15) / (lengthOf(source) * expected + 15);
  const sizes = `${lengthOf(text)} characters for a source of ${lengthOf(source)}`;
  const found: Notice[] = [];
  const loop = findLooping(source, text);
  if (loop) found.push({ code: "loop", message: loop });
  if (ratio > 3) found.push({ code: "too_long", message: sizes });
  if (ratio < 1 / 3) found.push({ code: "too_short", message: sizes });
  const copied = base(from) === base(to) ? null : findCopying(source, text);
  if (copied) found.push({ code: "copied", message: copied });
  return found;
}

export function findLooping(source: string, text: string): string | null {
  const after = words(text.toLowerCase());
  if (after.length - new Set(after).size >= 4) {
    const before = words(source.toLowerCase());
    const pair = mostFrequent(after, 2);
    const pairBefore = mostFrequent(before, 2);
    if (pair >= 10 && pair - pairBefore >= 5) return `2 words occur ${pair} times, in the source ${times(pairBefore)}`;
    const phrase = mostFrequent(after, 4);
    const phraseBefore = Math.max(1, mostFrequent(before, 4));
    if (phrase - phraseBefore >= 2) return `4 words occur ${phrase} times, in the source ${times(phraseBefore)}`;
  }
  if (after.some((word) => lengthOf(word) >= 16)) {
    const run = longestRun(text);
    const runBefore = run >= 16 ? longestRun(source) : 0;
    if (run >= 16 && run - runBefore >= 12) return `${run} characters in a row repeat a few of them, in the source ${runBefore}`;
  }
  return null;
}

function findCopying(source: string, text: string): string | null {
  const there = new Set(words(text.toLowerCase()));
  const both = [...new Set(words(source.toLowerCase()))].filter((word) => there.has(word)).length;
  if (2 * both < source.split(" ").length - 1) return null; // a cheap look that most text does not pass
  const bare = (of: string): string[] => words(of.toLowerCase()).map((word) => word.replace(EDGES, "")).filter(Boolean);
  const before = bare(source);
  const after = bare(text);
  const left = new Map<string, number>();
  for (const word of before) left.set(word, (left.get(word) ?? 0) + 1);
  let same = 0;
  for (const word of after) {
    const there = left.get(word) ?? 0;
    if (there) same++;
    left.set(word, there - 1);
  }
  if (same < 0.9 * Math.max(before.length, after.length)) return null;
  const spoken = words(source).reduce((sum, word) => sum + countWords(word), 0);
  return spoken >= 4 ? `${same} of ${after.length} words are those of the source` : null;
}

/** 0 for names, numbers and codes, 1 for a word, more for a row of characters without spaces. */
function countWords(word: string): number {
  const bare = word.replace(EDGES, "").replace(INSIDE, "");
  if ("#@<".includes(word[0]!) || !bare || /^\p{Lu}/u.test(bare) || !/\p{L}/u.test(bare) || CODE.test(bare)) return 0;
  const caseless = [...bare].filter((letter) => /\p{L}/u.test(letter) && letter.toLowerCase() === letter.toUpperCase()).length;
  return Math.max(1, Math.floor(caseless / 4));
}

function mostFrequent(of: readonly string[], n: number): number {
  const counts = new Map<string, number>();
  let most = 0;
  for (let at = 0; at + n <= of.length; at++) {
    const gram = of.slice(at, at + n).join(" ");
    const count = (counts.get(gram) ?? 0) + 1;
    counts.set(gram, count);
    most = Math.max(most, count);
  }
  return most;
}

function longestRun(text: string): number {
  let longest = 0;
  for (const word of words(text)) for (const match of word.matchAll(RUN)) longest = Math.max(longest, lengthOf(match[0]));
  return longest;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

/** The search of limelight.decoding, for one sentence: greedy, or a beam whose ended hypotheses make room for the next best. */

import type { SearchSettings } from "./config";
import type { Step } from "./model";

export interface Steppable {
  step(tokens: readonly number[]): Promise<Step>;
  reorder(parents: readonly number[]): void;
}

export interface Hypothesis {
  ids: number[];
  logProbs: number[]; // one for each id, and one for the end if it came to it
  score: number;
  finish: "eos" | "length";
}

export interface Task {
  pieces: number; // of the source, what stands before it included and its end not
  begin: readonly number[]; // ids that every translation begins with, at no cost
  allowed: readonly number[]; // pieces that may occur although they never do
}

export interface Rules {
  start: number;
  end: number;
  never: readonly number[];
  longest: number;
}

/** A hypothesis on its way: where it comes from, and what it has taken. */
interface Node {
  before: Node | null;
  token: number;
  logProb: number;
}

interface Grown {
  sum: number;
  parent: number;
  token: number;
  logProb: number;
}

const f32 = Math.fround;

/** What the sum of log-probabilities of so many pieces, the end counted, is divided by (Wu et al. 2016, equation 14). */
export function lengthPenalty(pieces: number, settings: SearchSettings): number {
  return (settings.length_norm === "gnmt" ? (5 + pieces) / 6 : pieces) ** settings.length_penalty;
}

/** Best first; none where nothing is possible. `gone` is asked at every step: nobody waits any more. */
export async function search(
  state: Steppable,
  task: Task,
  settings: SearchSettings,
  rules: Rules,
  gone: () => boolean | Promise<boolean> = () => false,
): Promise<Hypothesis[]> {
  const most = Math.min(settings.max_length, rules.longest);
  const asked = Math.max(settings.min_length + 1, Math.min(most, Math.trunc(settings.max_ratio * task.pieces) + settings.max_extra));
  const limit = Math.max(asked, task.begin.length + 1);
  const never = rules.never.filter((id) => !task.allowed.includes(id));
  const width = settings.beam;
  const enough = roundHalfEven(width * settings.patience);
  const bound = f32(lengthPenalty(limit, settings));
  const ended: { score: number; node: Node | null; end: number | null }[] = [];
  let alive: { sum: number; node: Node | null }[] = [{ sum: 0, node: null }];
  let tokens = [rules.start];
  for (let step = 0; step < limit; step++) {
    if (await gone()) throw new DOMException("nobody waits for this translation any more", "AbortError");
    const { logProbs, vocabulary } = await state.step(tokens);
    alive.forEach(({ node }, row) =>
      restrict(logProbs.subarray(row * vocabulary, (row + 1) * vocabulary), node, step, task, settings, rules, never),
    );
    const found = grow(alive, logProbs, vocabulary, width === 1 ? 1 : 2 * width);
    if (found.some(({ sum }) => Number.isNaN(sum) || sum === Infinity)) throw new Error("the scores of the model are no numbers");
    const last = limit <= step + 1;
    const lp = width === 1 ? lengthPenalty(step + 1, settings) : f32(lengthPenalty(step + 1, settings));
    const next: Grown[] = [];
    const take = (grown: Grown, end: boolean): void => {
      const before = alive[grown.parent]!.node;
      const node = end ? before : { before, token: grown.token, logProb: grown.logProb };
      ended.push({ score: width === 1 ? grown.sum / lp : f32(grown.sum / lp), node, end: end ? grown.logProb : null });
    };
    // What goes on comes first, what ends after it: of equal scores the first is the better.
    for (const grown of found.filter(({ token, sum }) => token !== rules.end && sum > -Infinity)) {
      if (last && found.indexOf(grown) < width) take(grown, false);
      else if (!last && next.length < width) next.push(grown);
    }
    for (const grown of found.slice(0, width)) if (grown.token === rules.end && grown.sum > -Infinity) take(grown, true);
    if (!next.length || ended.length >= enough) break;
    const highest = next[0]!.sum;
    const worst = [...ended].sort((a, b) => b.score - a.score)[Math.min(settings.nbest, width) - 1];
    if (worst && worst.score >= f32(highest / bound)) break;
    alive = next.map(({ sum, parent, token, logProb }) => ({ sum, node: { before: alive[parent]!.node, token, logProb } }));
    tokens = next.map(({ token }) => token);
    state.reorder(next.map(({ parent }) => parent));
  }
  ended.sort((a, b) => b.score - a.score);
  return distinct(ended.slice(0, settings.nbest).map(({ score, node, end }) => read(score, node, end)));
}

/** The rules of a step: what may not come is set to -Infinity, in place. */
function restrict(
  row: Float32Array,
  node: Node | null,
  step: number,
  task: Task,
  settings: SearchSettings,
  rules: Rules,
  never: readonly number[],
): void {
  const given = task.begin[step];
  if (given !== undefined) {
    row.fill(-Infinity);
    row[given] = 0;
    return;
  }
  for (const id of never) row[id] = -Infinity;
  if (step < settings.min_length) row[rules.end] = -Infinity;
  if (settings.no_repeat_ngram) for (const id of repeats(node, settings.no_repeat_ngram)) row[id] = -Infinity;
}

/** Pieces that followed the newest n - 1 before: n = 2, history a b a -> b */
function repeats(node: Node | null, n: number): number[] {
  const history: number[] = [];
  for (let at = node; at; at = at.before) history.push(at.token);
  history.reverse();
  const newest = history.slice(history.length - n + 1);
  const found: number[] = [];
  for (let at = 0; at + n <= history.length; at++)
    if (newest.every((id, i) => history[at + i] === id)) found.push(history[at + n - 1]!);
  return found;
}

/** The best `count` continuations of all rows, best first; of equals the first. */
function grow(alive: readonly { sum: number }[], logProbs: Float32Array, vocabulary: number, count: number): Grown[] {
  const all: Grown[] = [];
  alive.forEach(({ sum }, parent) => {
    const row = logProbs.subarray(parent * vocabulary, (parent + 1) * vocabulary);
    for (const token of best(row, count)) all.push({ sum: f32(sum + row[token]!), parent, token, logProb: row[token]! });
  });
  return all.sort((a, b) => (Number.isNaN(a.sum) ? -1 : Number.isNaN(b.sum) ? 1 : b.sum === a.sum ? 0 : b.sum > a.sum ? 1 : -1)).slice(0, count);
}

/** Places of the `count` highest, highest first, of equals the first. What is no number is highest, so that it is seen. */
export function best(row: Float32Array, count: number): number[] {
  const places: number[] = [];
  let least = -Infinity;
  for (let at = 0; at < row.length; at++) {
    const value = row[at]!;
    if (value !== value) return [at];
    if (places.length === count && value <= least) continue;
    let to = places.length;
    while (to > 0 && row[places[to - 1]!]! < value) to--;
    places.splice(to, 0, at);
    if (places.length > count) places.pop();
    least = row[places[places.length - 1]!]!;
  }
  return places;
}

function read(score: number, node: Node | null, end: number | null): Hypothesis {
  const ids: number[] = [];
  const logProbs: number[] = [];
  for (let at = node; at; at = at.before) {
    ids.push(at.token);
    logProbs.push(at.logProb);
  }
  ids.reverse();
  logProbs.reverse();
  if (end !== null) logProbs.push(end);
  return { ids, logProbs, score, finish: end === null ? "length" : "eos" };
}

function distinct(found: readonly Hypothesis[]): Hypothesis[] {
  const seen = new Set<string>();
  return found.filter(({ ids, finish }) => {
    const key = `${ids.join(" ")} ${finish}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** As Python rounds: 2.5 -> 2, 3.5 -> 4. */
function roundHalfEven(value: number): number {
  const down = Math.floor(value);
  return value - down === 0.5 ? down + (down % 2) : Math.round(value);
}

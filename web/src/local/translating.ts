/** Text in, translation out: cut, protect, encode, search, and search again what looped or was empty (limelight.translator). */

import { begins, type Config, type SearchSettings } from "./config";
import { sentenceConfidence, wordsOf, type SureWord } from "./confidence";
import { findLooping, judge, type Notice } from "./guards";
import type { Model, State, Step } from "./model";
import { normalize } from "./normalize";
import { type Pieces } from "./pieces";
import { faultOf, findSpans, protect, restore } from "./protect";
import { search, type Hypothesis, type Steppable } from "./search";
import { cut } from "./sentences";

export interface Asked {
  source: string;
  target: string;
  names?: string[];
  beam?: number;
  nbest?: number;
  guards?: boolean;
  /** Where the heads looked, of the best translation. */
  attention?: boolean;
}

export interface Attention {
  source: string[];
  target: string[];
  /** [layer][head]: weights (target, source). */
  weights: Float32Array[][];
}

export interface Choice {
  text: string;
  score: number;
  confidence: number;
  words: SureWord[];
}

export interface Result extends Choice {
  alternatives: Choice[];
  finish: "eos" | "length" | "empty_input";
  warnings: Notice[];
  attention?: Attention;
}

/** Whether nobody waits any more. */
type Gone = () => boolean | Promise<boolean>;

const NO_REPEAT = 3;

export class Translating {
  constructor(
    private readonly model: Model,
    private readonly config: Config,
    private readonly pieces: { source: Pieces; target: Pieces },
  ) {}

  ids(text: string): number[] {
    return this.pieces.source.encode(normalize(text, this.config.normalization), this.config.by_words);
  }

  dim(gates: readonly number[]): void {
    this.model.dim(gates);
  }

  release(): Promise<void> {
    return this.model.release();
  }

  /** `told` is given each part as soon as it is there. */
  async translate(text: string, asked: Asked, gone: Gone, told?: (part: string) => void): Promise<Result> {
    const { before } = begins(this.config, asked.source, asked.target, asked.names ?? []);
    const most = Math.min(Math.max(64, Math.round(this.config.search.max_length / 1.25)), this.config.longest - before.length);
    const longest = Math.min(most, this.config.taught ?? most);
    const { lead, parts } = cut(text, asked.source, (some) => this.few(some) && (some.length <= longest / 4 || this.ids(some).length <= longest));
    const made: Result[] = [];
    told?.(lead);
    for (const part of parts) {
      const result = await this.sentence(part.text, asked, gone);
      for (const each of [result, ...result.alternatives]) each.text += part.after;
      told?.(result.text);
      made.push(result);
    }
    return join(lead, made);
  }

  /** No more to be kept than there are marks for it. */
  private few(text: string): boolean {
    const { marks } = this.config;
    return !marks || text.length <= marks || findSpans(text).length <= marks;
  }

  private async sentence(given: string, asked: Asked, gone: Gone): Promise<Result> {
    const kept = protect(given, asked.guards === false ? 0 : this.config.marks);
    const text = normalize(kept.text, this.config.normalization);
    const { before, begin } = begins(this.config, asked.source, asked.target, asked.names ?? []);
    const ids = this.pieces.source.encode(text, this.config.by_words);
    if (!ids.length) return { ...NOTHING, text: given };
    const room = this.config.longest - before.length;
    const own = [...before, ...ids.slice(0, room)];
    const read = this.config.source_ends ? [...own, this.config.special.end] : own;
    const beam = asked.beam ?? this.config.search.beam;
    let settings: SearchSettings = { ...this.config.search, beam, nbest: Math.min(asked.nbest ?? 1, beam) };
    const marks = [...text.matchAll(/⟦(?:0|[1-9][0-9]{0,2})⟧/g)].map(([mark]) => this.pieces.target.vocabulary.indexOf(mark));
    const find = async (some: SearchSettings): Promise<{ found: Spoken[]; record: Recorded }> => {
      const record = new Recorded(await this.model.start(read), asked.attention === true);
      const task = { pieces: own.length, begin, allowed: marks.filter((id) => id >= 0) };
      const rules = { start: this.config.special.start, end: this.config.special.end, never: this.config.never, longest: this.config.longest };
      const seen = new Set<string>();
      const found = (await search(record, task, some, rules, gone))
        .map((each) => ({ ...each, ids: each.ids.slice(begin.length), logProbs: each.logProbs.slice(begin.length) }))
        .map((each) => ({ ...each, text: this.pieces.target.decode(each.ids) }))
        .filter((each) => !seen.has(each.text) && seen.add(each.text));
      if (!found.length) throw new Error("nothing is possible under the rules of this search");
      return { found, record };
    };
    const warnings: Notice[] = [];
    if (ids.length > room)
      warnings.push({ code: "source_cut", message: `the source has ${ids.length} pieces and the model takes ${room}; the rest was not translated` });
    let best = await find(settings);
    const cures: ((spoken: Spoken) => boolean)[] = [];
    for (const remedy of asked.guards === false ? [] : remedies(text)) {
      cures.push(remedy.fails);
      const helps = remedy.helps(settings);
      if (helps) settings = { ...settings, ...remedy.change }; // also where all is well: it must not be undone by the next
      if (!helps || !remedy.fails(best.found[0]!)) continue;
      const second = await find(settings).catch((error: Error) => {
        if (error.name === "AbortError") throw error;
        return null;
      });
      if (!second) continue;
      const cured = !cures.some((fails) => fails(second.found[0]!));
      if (cured) warnings.push({ code: "redecoded", message: remedy.message });
      if (cured || second.found[0]!.score > best.found[0]!.score) best = second;
    }
    const [first, ...others] = best.found;
    if (first!.finish === "length")
      warnings.push({ code: "length", message: `the translation was ended at its limit, after ${first!.ids.length} pieces` });
    if (asked.guards !== false) {
      warnings.push(...judge(text, first!.text, asked.source, asked.target));
      const fault = faultOf(kept, first!.text);
      if (fault) warnings.push({ code: "unprotected", message: `${fault}; here nothing is searched again for it, the command line does` });
    }
    const show = (spoken: Spoken): Choice => this.show(spoken, (marked) => restore(kept, marked));
    const shown = show(first!);
    const texts = new Set([shown.text]);
    const result: Result = {
      ...shown,
      alternatives: others
        .filter((each) => asked.guards === false || !faultOf(kept, each.text))
        .map(show)
        .filter((each) => !texts.has(each.text) && texts.add(each.text)),
      finish: first!.finish,
      warnings,
    };
    if (asked.attention) {
      const weights = best.record.along(first!, begin.length, this.config, read.length);
      const target = [...first!.ids, ...(first!.finish === "eos" ? [this.config.special.end] : [])];
      const name = (side: Pieces, ids: number[]): string[] => ids.map((id) => side.vocabulary[id]!);
      result.attention = { source: name(this.pieces.source, read), target: name(this.pieces.target, target), weights };
    }
    return result;
  }

  private show(spoken: Spoken, restored: (marked: string) => string): Choice {
    const total = spoken.logProbs.reduce((sum, each) => sum + each, 0);
    const whole = spoken.logProbs.length ? Math.exp(total / spoken.logProbs.length) : 1;
    const told = spoken.ids.map((id, at) => [this.pieces.target.vocabulary[id]!, Math.min(1, Math.exp(spoken.logProbs[at]!))] as const);
    const words = wordsOf(told, whole, this.config);
    const confidence = sentenceConfidence(words, whole, this.config);
    return {
      text: restored(spoken.text),
      score: spoken.score,
      confidence,
      words: words.flatMap(({ text, confidence: sure }) => restored(text).split(" ").filter(Boolean).map((each) => ({ text: each, confidence: sure }))),
    };
  }
}

type Spoken = Hypothesis & { text: string };

const NOTHING: Result = { text: "", score: 0, confidence: 1, words: [], alternatives: [], finish: "empty_input", warnings: [] };

function remedies(text: string): { fails: (spoken: Spoken) => boolean; helps: (s: SearchSettings) => boolean; change: Partial<SearchSettings>; message: string }[] {
  return [
    {
      fails: (spoken) => !spoken.text.trim(),
      helps: (settings) => settings.min_length === 0 && settings.max_length > 1,
      change: { min_length: 1 },
      message: "the first translation was empty; this one was searched with at least one piece",
    },
    {
      fails: (spoken) => findLooping(text, spoken.text) !== null,
      helps: (settings) => settings.no_repeat_ngram === null || settings.no_repeat_ngram > NO_REPEAT,
      change: { no_repeat_ngram: NO_REPEAT },
      message: `the first translation repeated itself; this one was searched without repeats of ${NO_REPEAT} pieces`,
    },
  ];
}

/** A state that remembers, if it is asked to, where each step looked. */
class Recorded implements Steppable {
  private readonly steps: { tokens: number[]; parents: number[]; looks: Float32Array[] }[] = [];
  private parents: number[] = [0];

  constructor(
    private readonly state: State,
    private readonly looking: boolean,
  ) {}

  async step(tokens: readonly number[]): Promise<Step> {
    const step = await this.state.step(tokens);
    if (this.looking) this.steps.push({ tokens: [...tokens], parents: this.parents, looks: step.looks });
    return step;
  }

  reorder(parents: readonly number[]): void {
    this.parents = [...parents];
    this.state.reorder(parents);
  }

  /** The looks of one hypothesis: the row that took its pieces, step by step. */
  along(spoken: Spoken, begin: number, config: Config, source: number): Float32Array[][] {
    const steps = this.steps.slice(0, spoken.logProbs.length + begin);
    const rows = this.rowsOf(spoken.ids, begin, steps.length);
    const wanted = steps.slice(begin);
    return Array.from({ length: config.layers }, (_, layer) =>
      Array.from({ length: config.heads }, (_, head) => {
        const weights = new Float32Array(wanted.length * source);
        wanted.forEach((step, at) => {
          const from = (rows[begin + at]! * config.heads + head) * source;
          weights.set(step.looks[layer]!.subarray(from, from + source), at * source);
        });
        return weights;
      }),
    );
  }

  /** Back from each row of the last step, the one whose pieces are these. */
  private rowsOf(ids: readonly number[], begin: number, steps: number): number[] {
    const last = this.steps[steps - 1]!;
    for (let row = 0; row < last.tokens.length; row++) {
      const rows: number[] = [];
      let at = row;
      let same = true;
      for (let step = steps - 1; step >= 0; step--) {
        rows[step] = at;
        const piece = step - 1 - begin; // what this step was given is what the one before it took
        if (piece >= 0 && this.steps[step]!.tokens[at] !== ids[piece]) same = false;
        at = this.steps[step]!.parents[at]!;
      }
      if (same) return rows;
    }
    return Array.from({ length: steps }, () => 0);
  }
}

function join(lead: string, made: readonly Result[]): Result {
  if (!made.length) return { ...NOTHING, text: lead };
  const spoken = made.filter((each) => each.finish !== "empty_input");
  const text = lead + made.map((each) => each.text).join("");
  if (made.length === 1) return { ...made[0]!, text, alternatives: made[0]!.alternatives.map((each) => ({ ...each, text: lead + each.text })) };
  const weight = (each: Result): number => Math.max(1, each.words.length);
  const total = spoken.reduce((sum, each) => sum + weight(each), 0);
  return {
    text,
    score: spoken.reduce((sum, each) => sum + each.score, 0),
    confidence: total ? spoken.reduce((sum, each) => sum + each.confidence * weight(each), 0) / total : 1,
    words: spoken.flatMap((each) => each.words),
    alternatives: [],
    finish: spoken.some((each) => each.finish === "length") ? "length" : "eos",
    warnings: made.flatMap((each) => each.warnings),
  };
}

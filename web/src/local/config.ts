/** What an export says of a model (config.json and models.json). */

import type { Step } from "./normalize";

export interface SearchSettings {
  beam: number;
  nbest: number;
  length_penalty: number;
  length_norm: "gnmt" | "power";
  patience: number;
  min_length: number;
  max_length: number;
  max_ratio: number;
  max_extra: number;
  no_repeat_ngram: number | null;
}

export interface Tags {
  source: Record<string, number>;
  target: Record<string, number>;
  target_begin: Record<string, number>;
  names: Record<string, number>;
}

export type Curve = { knots: [claimed: number, real: number][] };

export interface Config {
  languages: [string, string];
  directions: [string, string][];
  normalization: Step[];
  pieces: { source: string; target: string };
  special: { pad: number; start: number; end: number; unknown: number };
  source_begin: number[];
  target_begin: number[];
  source_ends: boolean;
  by_words: boolean;
  tags?: Tags;
  never: number[];
  marks: number;
  taught: number | null; // pieces of the longest sources that it was taught
  search: SearchSettings;
  confidence: { words: Curve; sentences: Curve } | null;
  alignment: [number, number][] | null;
  layers: number;
  heads: number;
  kv_heads: number;
  d_head: number;
  longest: number;
}

export interface FileFacts {
  bytes: number;
  sha256: string;
}

export interface Listed {
  id: string;
  directions: [string, string][];
  languages?: Record<string, string>; // what they are called; an older export does not say
  verdict?: string | null; // of a translator that nobody should use
  names: string[];
  numbers: string[];
  graphs: Record<string, string[]>;
  pieces: string[];
  files: Record<string, FileFacts>;
}

export interface Models {
  format: number;
  shell: Record<string, FileFacts>;
  models: Listed[];
}

/** base("pt-BR") -> "pt"; a private code (x-klingon) is all of it (limelight.text.languages). */
export function base(code: string): string {
  const whole = plain(code);
  return whole.startsWith("x-") ? whole : whole.split("-")[0]!;
}

export function plain(code: string): string {
  return code.replaceAll("_", "-").toLowerCase();
}

/** The ids before a source, and those that its translation begins with, in a direction and with names of tags. */
export function begins(config: Config, source: string, target: string, names: readonly string[]): { before: number[]; begin: number[] } {
  const tags = config.tags;
  if (!tags) return { before: config.source_begin, begin: config.target_begin };
  const id = (some: Record<string, number>, code: string): number[] => {
    if (!Object.keys(some).length) return [];
    if (some[code] === undefined) throw new Error(`the model was not taught ${code}`);
    return [some[code]];
  };
  const named = Object.keys(tags.names).filter((name) => names.includes(name));
  return {
    before: [...id(tags.source, source), ...id(tags.target, target), ...named.map((name) => tags.names[name]!)],
    begin: id(tags.target_begin, target),
  };
}

/** In which order the heads of a kind stand. */

import { headsOf, type HeadStats, type Kind, type Trace } from "./trace";
import type { Sort } from "./view";

export const SORTS: readonly { sort: Sort; name: string; says: string }[] = [
  { sort: "layer", name: "layer", says: "as the model has them" },
  { sort: "entropy", name: "spread (entropy)", says: "the sharpest first" },
  { sort: "diagonal", name: "word order (diagonal)", says: "those first that follow the order of the words" },
  { sort: "end_mass", name: "looks at the end", says: "those first that look at the end of the sentence" },
  { sort: "importance", name: "importance when muted", says: "those first that are missed most when muted" },
];

/** Heads of a kind in that order; those of which nothing is known keep theirs, at the end. */
export function sorted(trace: Trace, kind: Kind, sort: Sort, ranks: ReadonlyMap<string, number> | null): string[] {
  const ids = headsOf(trace.model, kind);
  if (sort === "layer") return ids;
  const stats = new Map(trace.stats?.heads.map((head) => [head.id, head]));
  const value = (id: string): number => measureOf(sort, stats.get(id), ranks?.get(id)) ?? Infinity;
  const values = new Map(ids.map((id) => [id, value(id)]));
  return ids.sort((a, b) => values.get(a)! - values.get(b)! || 0);
}

/** Small is first. */
function measureOf(sort: Sort, stats: HeadStats | undefined, rank: number | undefined): number | null {
  if (sort === "importance") return rank ?? stats?.importance ?? null; // a loss of log-probability is negative
  if (!stats) return null;
  if (sort === "entropy") return stats.entropy;
  return sort === "diagonal" ? -stats.diagonal : -stats.end_mass;
}

/** What a head does, in a word or two, from its numbers; null when nothing stands out. */
export function roleOf(stats: HeadStats, kind: Kind, aligns: boolean): string | null {
  if (aligns) return "alignment head";
  if (stats.end_mass > 0.7) return "rests on the end of the sentence";
  if (kind !== "cross" && stats.diagonal > 0.7) return "looks at itself";
  if (stats.diagonal > 0.6) return "follows the word order";
  if (stats.entropy < 0.35) return "very sharp";
  return null;
}

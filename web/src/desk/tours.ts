/** Eight short tours through the model on show. What they ask for is done on the desk itself, and ticked when the desk shows it. */

import { crossAttention, beam, explanation } from "./tour_translating";
import { heads, masks, vectors } from "./tour_attention";
import { positions, tokens } from "./tour_reading";
import type { Scene, Tour } from "./tour";

export const TOURS: readonly Tour[] = [tokens, positions, vectors, masks, heads, crossAttention, beam, explanation];

/** How many tasks are done once `now` is on show and `before` was: in their order, for each builds on the one before it. */
export function advanced(tour: Tour, done: number, now: Scene, before: Scene | null): number {
  let count = done;
  // What came about in one step can tick several tasks, but an act (a task that reads `before`) only the one whose turn it is.
  while (count < tour.tasks.length && tour.tasks[count]!.done(now, before)) {
    count++;
    before = now;
  }
  return count;
}

/** What is remembered of the tours, from whatever was stored: {"tokens": 2}; numbers that no tour can have are dropped. */
export function remembered(stored: string | null): Record<string, number> {
  const kept: Record<string, number> = {};
  let given: unknown;
  try {
    given = JSON.parse(stored ?? "{}");
  } catch {
    return kept;
  }
  for (const tour of TOURS) {
    const count = (given as Record<string, unknown> | null)?.[tour.id];
    if (Number.isInteger(count) && Number(count) > 0 && Number(count) <= tour.tasks.length) kept[tour.id] = Number(count);
  }
  return kept;
}

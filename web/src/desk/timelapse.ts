/** The same sentence over the steps of a training: how each head found its place. */

import type { Trace } from "./trace";

export type Measure = "entropy" | "diagonal" | "end_mass";

export interface Moment {
  step: number;
  trace: Trace;
}

export interface Course {
  id: string; // "cross.1.2"
  values: (number | null)[]; // one for each moment, null where nothing was saved
  first: number | null;
  last: number | null;
}

/** One course per head that any moment knows, in the order of the last. */
export function coursesOf(moments: readonly Moment[], measure: Measure, kind?: string): Course[] {
  const tables = moments.map((moment) => new Map((moment.trace.stats?.heads ?? []).map((head) => [head.id, head[measure]])));
  const ids = new Set(tables.toReversed().flatMap((table) => [...table.keys()]));
  return [...ids]
    .filter((id) => !kind || id.startsWith(`${kind}.`))
    .map((id) => {
      const values = tables.map((table) => table.get(id) ?? null);
      const there = values.filter((x): x is number => x !== null);
      return { id, values, first: there[0] ?? null, last: there.at(-1) ?? null };
    });
}

/** The range that all courses share, so that two sparklines can be compared. */
export function rangeOf(courses: readonly Course[]): [number, number] {
  const all = courses.flatMap((course) => course.values.filter((x): x is number => x !== null));
  if (!all.length) return [0, 1];
  const [low, high] = [Math.min(0, ...all), Math.max(...all)];
  return [low, high > low ? high : low + 1];
}

/** "d" of an SVG path: x by step, not by number, so that a gap in training is a gap in the picture. Lines break where nothing was saved. */
export function sparkline(steps: readonly number[], values: readonly (number | null)[], [low, high]: readonly [number, number], box: { width: number; height: number }): string {
  const [from, to] = [steps[0] ?? 0, steps.at(-1) ?? 1];
  let pen = "M";
  return steps
    .map((step, i) => {
      const value = values[i];
      if (value === null || value === undefined) {
        pen = "M";
        return "";
      }
      const x = to > from ? ((step - from) / (to - from)) * box.width : box.width / 2;
      const y = box.height * (1 - (value - low) / (high - low || 1));
      const part = `${pen}${round(x)} ${round(y)}`;
      pen = "L";
      return part;
    })
    .join("");
}

export function xOf(steps: readonly number[], step: number, width: number): number {
  const [from, to] = [steps[0] ?? 0, steps.at(-1) ?? 1];
  return round(to > from ? ((step - from) / (to - from)) * width : width / 2);
}

function round(x: number): number {
  return Math.round(x * 100) / 100;
}

/** The head that changed most: who the first look should go to. */
export function mostChanged(courses: readonly Course[]): Course | null {
  const change = (course: Course): number => (course.first === null || course.last === null ? -1 : Math.abs(course.last - course.first));
  return courses.reduce<Course | null>((best, course) => (best === null || change(course) > change(best) ? course : best), null);
}

/** 12000 -> "12 000" */
export function stepName(step: number): string {
  return String(step).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

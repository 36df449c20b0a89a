/** Dimmers: which heads are turned down, as patterns of which the later win, and which are soloed. */

import type { Kind } from "./trace";

/** ["cross.5.2", 0] is a mute, ["enc.0.*", 0.4] dims a whole layer. */
export type Gate = readonly [pattern: string, value: number];

const LETTERS: Readonly<Record<string, Kind>> = { e: "enc", d: "dec", c: "cross" };

/** covers("cross.*.*", "cross.5.2") -> true; also of patterns: covers("cross.*.*", "cross.5.*"). */
export function covers(pattern: string, other: string): boolean {
  if (pattern === "*") return true;
  const [a, b] = [pattern.split("."), other.split(".")];
  return b.length === 3 && a.every((part, i) => part === "*" || part === b[i]);
}

/** The dimmer of a head as it is set, whatever is soloed. */
export function gateOf(gates: readonly Gate[], id: string): number {
  return gates.findLast(([pattern]) => covers(pattern, id))?.[1] ?? 1;
}

/** What really reaches the stage: where heads of a kind are soloed, all others of that kind are dark. */
export function lightOf(gates: readonly Gate[], solo: readonly string[], id: string): number {
  const kind = id.split(".")[0]!;
  const dark = !solo.includes(id) && solo.some((each) => each.startsWith(`${kind}.`));
  return dark ? 0 : gateOf(gates, id);
}

/** A row of weights as it reaches the values. "mean": what a dimmer takes is spread evenly over all that the row may see.
 *
 *     dimmed(w, 0.25, "zero") -> 0.25 w;   dimmed(w, 0.25, "mean") -> 0.25 w + 0.75 / count, where it may be seen
 */
export function dimmed(row: ArrayLike<number>, light: number, mode: "zero" | "mean", hidden: (column: number) => boolean): Float32Array {
  const weights = Float32Array.from(row, (weight) => weight * light);
  if (mode === "zero" || light === 1) return weights;
  const seen = Array.from(weights.keys()).filter((column) => !hidden(column));
  for (const column of seen) weights[column]! += (1 - light) / seen.length;
  return weights;
}

/** With `pattern` at `value`; whatever it covers is forgotten. Full light that changes nothing is not written down. */
export function withGate(gates: readonly Gate[], pattern: string, value: number): Gate[] {
  const rest = gates.filter(([each]) => !covers(pattern, each));
  const level = Math.round(Math.min(1, Math.max(0, value)) * 100) / 100;
  const parts = pattern.split(".");
  const touched = rest.some(([each]) => overlaps(each.split("."), parts));
  return level === 1 && !touched ? rest : [...rest, [pattern, level]];
}

function overlaps(a: readonly string[], b: readonly string[]): boolean {
  return a.length < 3 || b.length < 3 || a.every((part, i) => part === "*" || b[i] === "*" || part === b[i]);
}

/** For the server, later over earlier: {"cross.*.*": 0, "cross.5.2": 1}. */
export function toServer(gates: readonly Gate[], solo: readonly string[]): Record<string, number> {
  const said: Record<string, number> = {};
  const put = (pattern: string, value: number): void => {
    delete said[pattern]; // keeps its old place otherwise
    said[pattern] = value;
  };
  for (const [pattern, value] of gates) put(pattern, value);
  for (const kind of new Set(solo.map((id) => id.split(".")[0]!))) put(`${kind}.*.*`, 0);
  for (const id of [...solo].sort()) put(id, gateOf(gates, id));
  return said;
}

/** For the address: [["cross.5.2", 0], ["enc.0.*", 0.4]] -> "c5.2,e0.*:0.4" */
export function written(gates: readonly Gate[]): string {
  return gates.map(([pattern, value]) => short(pattern) + (value === 0 ? "" : `:${value}`)).join(",");
}

/** The way back. What is not understood is left out: an address may come from anywhere. */
export function read(text: string): Gate[] {
  return text.split(",").flatMap((part): Gate[] => {
    const [name = "", value = "0"] = part.split(":");
    const pattern = long(name);
    const level = Number(value);
    return pattern !== null && level >= 0 && level <= 1 ? [[pattern, level]] : [];
  });
}

/** short("cross.5.2") -> "c5.2" */
export function short(pattern: string): string {
  const [kind = "", ...rest] = pattern.split(".");
  return kind === "*" ? "*" : kind[0] + rest.join(".");
}

/** long("c5.2") -> "cross.5.2"; null when it is no head */
export function long(name: string): string | null {
  if (name === "*") return "*";
  const found = /^([edc])(\d{1,3}|\*)\.(\d{1,3}|\*)$/.exec(name);
  return found ? `${LETTERS[found[1]!]}.${found[2]}.${found[3]}` : null;
}

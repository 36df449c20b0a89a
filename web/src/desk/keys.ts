/** Which key does what on the desk. */

import type { Pressed } from "../lib/keys";
import { KINDS, type Kind } from "./trace";

export type Action =
  | { do: "translate" | "write" | "mute" | "solo" | "pin" | "beam" | "undo" | "redo" | "export" | "help" | "learn" | "reset" | "why" }
  | { do: "kind"; kind: Kind }
  | { do: "layer" | "head" | "dim"; by: 1 | -1 };

const SINGLE: Readonly<Record<string, Action>> = {
  "/": { do: "write" },
  "1": { do: "kind", kind: KINDS[0]! },
  "2": { do: "kind", kind: KINDS[1]! },
  "3": { do: "kind", kind: KINDS[2]! },
  "[": { do: "layer", by: -1 },
  "]": { do: "layer", by: 1 },
  ",": { do: "head", by: -1 },
  ".": { do: "head", by: 1 },
  "-": { do: "dim", by: -1 },
  "=": { do: "dim", by: 1 },
  "+": { do: "dim", by: 1 },
  m: { do: "mute" },
  s: { do: "solo" },
  " ": { do: "pin" },
  b: { do: "beam" },
  z: { do: "undo" },
  Z: { do: "redo" },
  e: { do: "export" },
  y: { do: "why" },
  "?": { do: "help" },
};

/** Single keys do nothing where somebody writes or chooses, nor with Ctrl, ⌘ or Alt; Ctrl+Enter translates everywhere. */
export function deskAction(event: Pressed): Action | null {
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key === "Enter") return { do: "translate" };
  if (command || event.altKey || writes(event.target)) return null;
  if (event.key === " " && presses(event.target)) return null; // space presses a button
  return SINGLE[event.key] ?? null;
}

function writes(target: unknown): boolean {
  const { tagName, isContentEditable, type } = (target ?? {}) as { tagName?: string; isContentEditable?: boolean; type?: string };
  if (isContentEditable === true || tagName === "TEXTAREA" || tagName === "SELECT") return true;
  return tagName === "INPUT" && !/^(checkbox|radio|range|button)$/.test(type ?? "");
}

function presses(target: unknown): boolean {
  const { tagName } = (target ?? {}) as { tagName?: string };
  return /^(BUTTON|INPUT|SUMMARY|A)$/.test(tagName ?? "");
}
